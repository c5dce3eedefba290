//! The path that the model saw: which events lie between the beginning and the head (spec 04, "The path").

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

use crate::diagnostic::{Code, Diagnostic, Place, Severity};
use crate::envelope::{CopyHow, Event};
use crate::events::Data;

/// No node: the beginning.
const ROOT: u32 = u32::MAX;

/// A parent that was named and has not come.
const AWAITED: u32 = u32::MAX - 1;

/// 128 bits of the SHA-256 of an id.
pub(super) type Key = [u64; 2];

/// The key of an id.
pub(super) fn key(id: &str) -> Key {
    let digest = Sha256::digest(id.as_bytes());
    let half = |at: usize| digest[at..at + 8].iter().fold(0, |n, b| n << 8 | u64::from(*b));
    [half(0), half(8)]
}

/// What a node of the path is (spec 04).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeKind {
    /// `message.added`.
    Message,
    /// `context.compacted`.
    Compaction,
    /// `branch.moved`.
    Move,
    /// Any other event that names a parent, or that an earlier event named as its parent.
    Other,
}

/// An event that lies on a path (spec 04).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRef {
    index: u32,
    /// Its place in the log.
    pub seq: u64,
    /// Where the caller finds it, as given to [`PathIndex::push`].
    pub locator: u64,
    /// What it is.
    pub kind: NodeKind,
    /// Whether it stands here by the order of the log only, because the parent that it names is missing or closes a loop.
    pub inferred: bool,
}

/// 48 bytes for each event that can lie on a path.
#[derive(Debug)]
struct Node {
    seq: u64,
    locator: u64,
    /// Half of the key of its response; 0 = of none.
    response: u64,
    /// The node before it, [`ROOT`] or [`AWAITED`].
    parent: u32,
    /// What it hangs under until its parent comes.
    before: u32,
    /// A node further up that it hangs under for good; itself where there is none.
    up: u32,
    /// The head once it had come: itself, unless an event before it named it as its parent.
    head: u32,
    kind: NodeKind,
    /// The parent that it names would have closed a loop.
    cut: bool,
}

/// Where an event stands: it is a node, or it hangs under one.
#[derive(Clone, Copy, Debug)]
enum Stands {
    As(u32),
    Under(u32),
}

impl Stands {
    fn index(self) -> u32 {
        match self {
            Stands::As(index) | Stands::Under(index) => index,
        }
    }
}

/// Nodes that wait for one parent.
#[derive(Debug)]
struct Waiting {
    name: Box<str>,
    nodes: Vec<u32>,
}

/// An index of all paths of a log, built event by event (spec 04, "The path").
///
/// Memory is about 24 bytes for each event and 48 more for each that can lie on a path; no payload is kept.
#[derive(Debug)]
pub struct PathIndex {
    nodes: Vec<Node>,
    stands: HashMap<Key, Stands>,
    awaited: HashMap<Key, Waiting>,
    head: u32,
    last_seq: Option<u64>,
}

impl Default for PathIndex {
    fn default() -> Self {
        PathIndex { nodes: Vec::new(), stands: HashMap::new(), awaited: HashMap::new(), head: ROOT, last_seq: None }
    }
}

impl PathIndex {
    /// Takes in an event that changes nothing, because its epoch was over: one that names it as its parent stands under the
    /// head of that time.
    pub(super) fn pass(&mut self, event: &Event<'_>) {
        let id = key(&event.id);
        if !self.awaited.contains_key(&id) {
            self.stands.entry(id).or_insert(Stands::Under(self.head));
        }
    }

    /// Takes in the next event. `locator` is where the caller finds it again: the offset of its line in bytes.
    ///
    /// A line or an id that is there already, and the replay of a record, put nothing on the path. Returns what is wrong
    /// with the parent that the event names; parents that never come are told by [`PathIndex::missing`].
    pub fn push(&mut self, event: &Event<'_>, data: &Data<'_>, locator: u64) -> Option<Diagnostic> {
        let id = key(&event.id);
        if self.last_seq.is_some_and(|last| event.seq <= last) || self.stands.contains_key(&id) {
            return None;
        }
        self.last_seq = Some(event.seq);
        let waiters = self.awaited.remove(&id).map_or_else(Vec::new, |w| w.nodes);
        let replay = event.copy.as_ref().filter(|c| c.how == CopyHow::Replay && c.log.is_none());
        let (kind, names) = match (replay, data) {
            (Some(_), _) => (NodeKind::Other, None),
            (None, Data::MessageAdded(_)) => (NodeKind::Message, event.parent.as_deref()),
            (None, Data::ContextCompacted(_)) => (NodeKind::Compaction, event.parent.as_deref()),
            (None, Data::BranchMoved(to)) => (NodeKind::Move, Some(to.to.as_str())),
            (None, _) => (NodeKind::Other, event.parent.as_deref()),
        };
        if kind == NodeKind::Other && names.is_none() && waiters.is_empty() {
            let first = replay.and_then(|c| self.stands.get(&key(c.event.as_deref()?)));
            let under = first.map_or(self.head, |first| first.index());
            self.stands.insert(id, Stands::Under(under));
            return None;
        }

        let index = u32::try_from(self.nodes.len()).ok().filter(|n| *n < AWAITED)?;
        let before = match waiters.first() {
            None => self.head,
            Some(first) => {
                let before = self.nodes[*first as usize].before;
                if self.is_under(before, &waiters) { ROOT } else { before }
            }
        };
        let named = names.filter(|name| *name != "root");
        let found = named.and_then(|name| self.stands.get(&key(name))).map(|s| s.index());
        let cut =
            named.is_some_and(|name| name == event.id.as_str()) || found.is_some_and(|p| self.is_under(p, &waiters));
        let parent = match (named, found) {
            _ if cut => before,
            (Some(_), Some(parent)) => parent,
            (Some(name), None) => {
                let waiting =
                    self.awaited.entry(key(name)).or_insert_with(|| Waiting { name: name.into(), nodes: Vec::new() });
                waiting.nodes.push(index);
                AWAITED
            }
            (None, _) if names.is_some() => ROOT,
            (None, _) => before,
        };
        let response = match data {
            Data::MessageAdded(message) => message.response.as_deref().map_or(0, |r| key(r)[0] | 1),
            _ => 0,
        };
        let before = if parent == AWAITED { before } else { parent };
        let up = if matches!(parent, AWAITED | ROOT) { index } else { parent };
        self.head = self.newest_under(&waiters).unwrap_or(index);
        self.nodes.push(Node { seq: event.seq, locator, response, parent, before, up, head: index, kind, cut });
        for waiter in &waiters {
            (self.nodes[*waiter as usize].parent, self.nodes[*waiter as usize].up) = (index, index);
        }
        self.nodes[index as usize].head = self.head;
        self.stands.insert(id, Stands::As(index));
        cut.then(|| {
            let place = Place {
                offset: Some(locator),
                record: Some(event.id.to_string()),
                names: named.map(str::to_owned),
                ..Place::default()
            };
            Diagnostic::new(Code::Cycle, Severity::Warning, place)
                .because("the parent that the event names comes after it on the path")
        })
    }

    /// The node that new events hang under; `None` while nothing is on the path.
    #[must_use]
    pub fn head(&self) -> Option<NodeRef> {
        (self.head != ROOT).then(|| self.node(self.head, AWAITED))
    }

    /// The path from the beginning up to and including `head`.
    #[must_use]
    pub fn path(&self, head: NodeRef) -> Vec<NodeRef> {
        self.walk(head.index, AWAITED)
    }

    /// The path of what was the head when the event at `seq` was the last one: later events, and what they tell of the
    /// place of earlier ones, do not count.
    #[must_use]
    pub fn at(&self, seq: u64) -> Vec<NodeRef> {
        let count = self.nodes.partition_point(|n| n.seq <= seq);
        let last = u32::try_from(count).unwrap_or(ROOT).wrapping_sub(1);
        self.nodes[..count].last().map_or_else(Vec::new, |node| self.walk(node.head, last))
    }

    /// The path that led to the event `id`, without the event and without the other parts of its response: what the model
    /// saw when it produced that response. For an event that lies on no path: the path of the event that it hangs under.
    /// `None` if there is no such event.
    #[must_use]
    pub fn path_before(&self, id: &str) -> Option<Vec<NodeRef>> {
        let mut path = self.walk(self.stands.get(&key(id))?.index(), AWAITED);
        if let Some(Stands::As(index)) = self.stands.get(&key(id)) {
            let response = self.nodes[*index as usize].response;
            let own =
                |n: &NodeRef| n.index == *index || (response != 0 && self.nodes[n.index as usize].response == response);
            path.truncate(path.iter().position(own).unwrap_or(path.len()));
        }
        Some(path)
    }

    /// The node that the event `id` is; `None` if it lies on no path, or there is no such event.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<NodeRef> {
        match self.stands.get(&key(id))? {
            Stands::As(index) => Some(self.node(*index, AWAITED)),
            Stands::Under(_) => None,
        }
    }

    /// Whether there is an event `id`.
    #[must_use]
    pub fn has(&self, id: &str) -> bool {
        self.stands.contains_key(&key(id))
    }

    /// Which nodes lie on the path of the head.
    #[must_use]
    pub fn live(&self) -> Live<'_> {
        let mut nodes = vec![false; self.nodes.len()];
        self.head().into_iter().flat_map(|head| self.path(head)).for_each(|n| nodes[n.index as usize] = true);
        Live { index: self, nodes }
    }

    /// The parents that were named and never came, and where: there the order of the log is followed.
    pub fn missing(&self) -> impl Iterator<Item = Diagnostic> {
        let mut all: Vec<(u32, &str)> =
            self.awaited.values().flat_map(|w| w.nodes.iter().map(|n| (*n, &*w.name))).collect();
        all.sort_unstable();
        all.into_iter().map(|(node, name)| {
            let place = Place {
                offset: Some(self.nodes[node as usize].locator),
                names: Some(name.to_owned()),
                ..Place::default()
            };
            Diagnostic::new(Code::MissingParent, Severity::Warning, place)
        })
    }

    fn node(&self, index: u32, last: u32) -> NodeRef {
        let node = &self.nodes[index as usize];
        let inferred = node.cut || self.above(index, last).1;
        NodeRef { index, seq: node.seq, locator: node.locator, kind: node.kind, inferred }
    }

    /// What `index` hangs under while `last` is the last node, and whether that is for want of its parent.
    fn above(&self, index: u32, last: u32) -> (u32, bool) {
        let node = &self.nodes[index as usize];
        let wanting = node.parent != ROOT && node.parent > last.min(AWAITED - 1);
        (if wanting { node.before } else { node.parent }, wanting)
    }

    fn walk(&self, from: u32, last: u32) -> Vec<NodeRef> {
        let mut path = Vec::new();
        let mut index = from;
        while index != ROOT {
            path.push(self.node(index, last));
            index = self.above(index, last).0;
        }
        path.reverse();
        path
    }

    /// The newest node that is one of `waiters` or hangs under one, and that nothing waited for: what waited for it hangs
    /// under it.
    fn newest_under(&mut self, waiters: &[u32]) -> Option<u32> {
        let mut elsewhere = HashSet::new();
        let all = if waiters.is_empty() { 0 } else { u32::try_from(self.nodes.len()).ok()? };
        for candidate in (0..all).rev() {
            let top = self.top(candidate);
            if elsewhere.contains(&top) {
                continue;
            }
            if !self.is_under(top, waiters) {
                elsewhere.insert(top);
                continue;
            }
            // What was the head when it came is the newest one behind it, as long as it still hangs there.
            let head = self.nodes[candidate as usize].head;
            if head == candidate || self.is_under(head, waiters) {
                return Some(head);
            }
        }
        None
    }

    /// Whether `index` is one of `nodes` (in rising order, none of which has its parent yet) or hangs under one. All links
    /// made so far are free of loops.
    fn is_under(&mut self, mut index: u32, nodes: &[u32]) -> bool {
        if nodes.is_empty() {
            return false;
        }
        while index != ROOT {
            let top = self.top(index);
            if nodes.binary_search(&top).is_ok() {
                return true;
            }
            let top = &self.nodes[top as usize];
            index = if top.parent == AWAITED { top.before } else { ROOT };
        }
        false
    }

    /// The node above `index` that hangs under nothing, or whose parent has not come.
    fn top(&mut self, mut index: u32) -> u32 {
        loop {
            let up = self.nodes[index as usize].up;
            if up == index {
                return index;
            }
            // Each step halves the way for the next one.
            self.nodes[index as usize].up = self.nodes[up as usize].up;
            index = up;
        }
    }
}

/// Tells which events lie on the path of the head, or hang under it (spec 04).
#[derive(Debug)]
pub struct Live<'i> {
    index: &'i PathIndex,
    nodes: Vec<bool>,
}

impl Live<'_> {
    /// Whether the event `id` belongs to the path of the head; `false` = to a branch that was left.
    #[must_use]
    pub fn has(&self, id: &str) -> bool {
        self.index.stands.get(&key(id)).is_none_or(|s| s.index() == ROOT || self.nodes[s.index() as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::sample::{self, events};

    /// Indexes `lines` and returns the index with what `push` told.
    fn index(lines: &[&str]) -> (PathIndex, Vec<Diagnostic>) {
        let (mut index, mut told) = (PathIndex::default(), Vec::new());
        for line in events(lines).lines() {
            let event = Event::parse(line).expect("an event");
            told.extend(index.push(&event, &event.data().expect("a payload"), event.seq * 1000));
        }
        (index, told)
    }

    fn seqs(path: &[NodeRef]) -> Vec<u64> {
        path.iter().map(|n| n.seq).collect()
    }

    fn head_path(index: &PathIndex) -> Vec<u64> {
        seqs(&index.head().map(|h| index.path(h)).unwrap_or_default())
    }

    const U: &str = r#"message.added {"role":"user","parts":[]}"#;
    const A: &str = r#"message.added {"role":"assistant","parts":[],"response":"r"}"#;

    #[test]
    fn without_parents_the_path_is_the_log() {
        let (index, told) = index(&[&format!("u {U}"), r#"t turn.started {}"#, &format!("a {A}"), &format!("b {A}")]);
        assert_eq!(head_path(&index), [0, 2, 3]);
        assert!(told.is_empty() && index.missing().next().is_none());
        assert_eq!(index.head().expect("a head").locator, 3000);
        assert!(index.find("t").is_none());
    }

    #[test]
    fn a_rewind_leaves_a_dead_branch() {
        let (index, _) = index(&[
            &format!("u {U}"),
            &format!("a {A}"),
            r#"t turn.ended {"how":"complete"}"#,
            &format!("v {U}"),
            r#"n turn.started {}"#,
            &format!("w ^t {U}"),
        ]);
        assert_eq!(head_path(&index), [0, 1, 5]);
        let live = index.live();
        let told: Vec<bool> = ["u", "a", "t", "v", "n", "w"].iter().map(|id| live.has(id)).collect();
        assert_eq!(told, [true, true, true, false, false, true]);
    }

    #[test]
    fn root_begins_anew() {
        let (index, _) = index(&[&format!("u {U}"), &format!("v ^root {U}"), &format!("a {A}")]);
        assert_eq!(head_path(&index), [1, 2]);
    }

    #[test]
    fn an_awaited_parent_is_no_new_head() {
        // The call comes before its prompt; the answer follows the call.
        let (index, told) = index(&[&format!("o {U}"), &format!("c ^u {A}"), &format!("u {U}"), &format!("r {U}")]);
        assert_eq!(head_path(&index), [0, 2, 1, 3]);
        assert!(told.is_empty());
        assert_eq!(seqs(&index.at(1)), [0, 1], "until it comes the call hangs under the head before");
        assert!(index.at(1)[1].inferred && !index.at(2)[2].inferred);
        assert_eq!(seqs(&index.at(2)), [0, 2, 1]);
    }

    #[test]
    fn the_head_is_the_newest_event_under_an_awaited_parent() {
        // The call waits for an attachment of its prompt; the prompt comes first, and names no call.
        let waiting =
            [format!("c ^x {A}"), format!("u ^root {U}"), r#"x ^u config.set {}"#.to_owned(), format!("r {U}")];
        let waiting: Vec<&str> = waiting.iter().map(String::as_str).collect();
        let (index, _) = index(&waiting);
        assert_eq!(head_path(&index), [1, 2, 0, 3]);
        assert_eq!(seqs(&index.at(1)), [1]);
        assert_eq!(seqs(&index.at(2)), [1, 2, 0]);
    }

    #[test]
    fn awaited_parents_can_wait_themselves() {
        let (index, _) = index(&[&format!("o {U}"), &format!("c ^b {A}"), &format!("b ^a {A}"), &format!("a {U}")]);
        assert_eq!(head_path(&index), [0, 3, 2, 1]);
        assert_eq!(seqs(&index.at(2)), [0, 2, 1]);
    }

    #[test]
    fn a_missing_parent_leaves_the_order_of_the_log_and_is_told() {
        let (index, told) = index(&[&format!("u {U}"), &format!("a ^gone {A}"), &format!("v {U}")]);
        assert_eq!(head_path(&index), [0, 1, 2]);
        let inferred: Vec<bool> = index.path(index.head().expect("a head")).iter().map(|n| n.inferred).collect();
        assert_eq!(inferred, [false, true, false]);
        assert!(told.is_empty());
        let missing: Vec<_> = index.missing().collect();
        assert_eq!(missing.len(), 1);
        assert_eq!((missing[0].code, missing[0].place.names.as_deref()), (Code::MissingParent, Some("gone")));
        assert_eq!(missing[0].place.offset, Some(1000));
    }

    #[test]
    fn a_cycle_is_cut_where_it_closes() {
        let (index, told) =
            index(&[&format!("o {U}"), &format!("a ^b {A}"), &format!("b ^a {U}"), &format!("s ^s {U}")]);
        assert_eq!(head_path(&index), [0, 2, 1, 3]);
        let told: Vec<_> = told.iter().map(|d| (d.code, d.place.record.as_deref())).collect();
        assert_eq!(told, [(Code::Cycle, Some("b")), (Code::Cycle, Some("s"))]);
    }

    #[test]
    fn a_longer_cycle_is_cut_too() {
        // x waits for z; y hangs under x; z names y.
        let (index, told) = index(&[&format!("o {U}"), &format!("x ^z {A}"), &format!("y {A}"), &format!("z ^y {U}")]);
        assert_eq!(head_path(&index), [0, 3, 1, 2]);
        assert_eq!(told.len(), 1);
    }

    #[test]
    fn a_move_sets_the_head() {
        let (index, _) = index(&[
            &format!("u {U}"),
            &format!("a {A}"),
            &format!("v {U}"),
            r#"m branch.moved {"to":"a"}"#,
            &format!("w {U}"),
        ]);
        assert_eq!(head_path(&index), [0, 1, 3, 4]);
        assert_eq!(seqs(&index.at(2)), [0, 1, 2]);
        assert_eq!(seqs(&index.at(3)), [0, 1, 3]);
    }

    #[test]
    fn the_path_before_a_response_has_none_of_its_parts() {
        let (index, _) = index(&[
            &format!("u {U}"),
            &format!("a {A}"),
            &format!("r {U}"),
            &format!("b {A}"),
            r#"p action.proposed {"action":"c","name":"n","args":{},"args_digest":"sha256:0"}"#,
        ]);
        assert_eq!(index.path_before("b").as_deref().map(seqs), Some(vec![0]));
        assert_eq!(index.path_before("r").as_deref().map(seqs), Some(vec![0, 1]));
        assert_eq!(index.path_before("p").as_deref().map(seqs), Some(vec![0, 1, 2, 3]));
        assert!(index.path_before("nobody").is_none());
    }

    #[test]
    fn replays_and_repeated_lines_change_no_path() {
        let text = events(&[&format!("u {U}"), &format!("a {A}"), &format!("v {U}"), &format!("w ^a2 {U}")]);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let replay = lines[1]
            .replace(r#""seq":1,"id":"a""#, r#""seq":3,"id":"a2""#)
            .replace(r#""data""#, r#""copy":{"event":"a","how":"replay"},"data""#);
        lines[3] = lines[3].replace(r#""seq":3"#, r#""seq":4"#);
        lines.insert(3, replay);
        lines.insert(1, lines[0].clone());
        let mut index = PathIndex::default();
        for line in &lines {
            let event = Event::parse(line).expect("an event");
            index.push(&event, &event.data().expect("a payload"), 0);
        }
        assert_eq!(head_path(&index), [0, 1, 4], "the replay stands for what it repeats");
    }

    #[test]
    fn at_any_seq_the_path_is_that_of_the_log_cut_there() {
        for seed in 0..300_u64 {
            let lines = sample::random(seed, 14);
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let (whole, _) = index(&lines);
            for n in 1..=lines.len() {
                let (cut, _) = index(&lines[..n]);
                let want = cut.head().map(|h| cut.path(h)).unwrap_or_default();
                assert_eq!(whole.at(n as u64 - 1), want, "seed {seed}, {n} lines: {lines:#?}");
                let mut seen = seqs(&want);
                seen.sort_unstable();
                seen.dedup();
                assert_eq!(seen.len(), want.len(), "seed {seed}: an event stands once");
            }
        }
    }
}
