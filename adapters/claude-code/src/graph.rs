//! The tree of records by `uuid` and `parentUuid`, and the path that it gives to the events of a log (spec 02, R-ENV-022).
//!
//! The vendor links every record of the tree, also those that are no messages, and hangs each tool result under its own
//! call. The path of a log links messages only. So a link is followed through records that are no messages, and no parent
//! is written where the record follows the head of the path anyway.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use palog_adapter::ids::EventId;

/// A uuid, or the first half of the digest of an id that is none: what records are looked up by.
pub(crate) type Key = u128;

/// The key of a native record id.
pub(crate) fn key(id: &str) -> Key {
    let digits = id.bytes().filter(|b| *b != b'-');
    let canonical = id.len() == 36 && [8, 13, 18, 23].iter().all(|&at| id.as_bytes()[at] == b'-');
    if canonical && digits.clone().count() == 32 {
        let value = digits.clone().try_fold(0_u128, |n, b| {
            let digit = char::from(b).to_digit(16).filter(|_| !b.is_ascii_uppercase())?;
            Some((n << 4) | u128::from(digit))
        });
        if let Some(value) = value {
            return value;
        }
    }
    let digest = Sha256::digest(id.as_bytes());
    digest[..16].iter().fold(0, |n, b| (n << 8) | u128::from(*b))
}

/// What a record is on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// No message: its link is followed.
    Through,
    /// A message of a person.
    Prompt,
    /// The result of a call.
    Result,
    /// A message that the client made.
    Client,
    /// A part of the response with this number.
    Response(u32),
    /// A boundary of a compaction.
    Boundary,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    class: Class,
    /// The node before it: on the path for messages; for others the message that they lead to, or what they wait behind.
    up: Up,
    /// A node above it, as near to the top of its tree as was needed so far; at the top itself, the node.
    top: u32,
    /// At the top of a tree, the newest message in it that was not waited for.
    newest: Option<u32>,
    /// Payload digest, to tell a replay from a reused id.
    digest: u64,
    /// The first event of the record.
    event: EventId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Up {
    Root,
    Node(u32),
    /// A record that has not come yet.
    Awaited,
}

/// What `parent` the first event of a record gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parent<'a> {
    /// None: the record follows the head.
    Head,
    /// `root`.
    Root,
    /// The first event of this record.
    Record(&'a str),
    /// This event.
    Event(EventId),
}

/// A place in the graph for a record that was linked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<'a> {
    /// What to write as parent.
    pub(crate) parent: Parent<'a>,
    /// The record named as parent is not in the source so far.
    pub(crate) unseen: bool,
    /// Results that a walk along the source's links misses, by number.
    pub(crate) bypassed: [Option<u32>; 4],
    /// The record closes a loop of parents, which is cut there.
    pub(crate) cycle: bool,
}

/// The tree of one source.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: Vec<Node>,
    by_key: HashMap<Key, u32>,
    /// Records that were named before they came, with those that wait for them.
    awaited: HashMap<Key, Vec<u32>>,
    head: Option<u32>,
}

/// How far back a link may reach for its parent to be taken as the head.
const REACH: usize = 256;

impl Graph {
    /// Number of the record with this id, if it came.
    pub(crate) fn find(&self, id: &str) -> Option<u32> {
        self.by_key.get(&key(id)).copied()
    }

    /// The digest that the record was entered with.
    pub(crate) fn digest(&self, node: u32) -> u64 {
        self.nodes[node as usize].digest
    }

    /// The first event of the record.
    pub(crate) fn event(&self, node: u32) -> EventId {
        self.nodes[node as usize].event
    }

    /// The head of the path.
    pub(crate) fn head(&self) -> Option<u32> {
        self.head
    }

    /// Whether a record with this key came.
    pub(crate) fn has(&self, key: Key) -> bool {
        self.by_key.contains_key(&key)
    }

    /// Whether the message lies on the path of the head, near its end.
    pub(crate) fn is_before_head(&self, message: u32) -> bool {
        self.head.is_some_and(|head| self.hangs_under(head, &[message]))
    }

    /// The first events of the messages from the record `first` to the record `last`, which lies below it. Walks through as many
    /// messages as `budget` allows, and takes them off.
    pub(crate) fn between(&mut self, first: &str, last: &str, budget: &mut usize) -> Option<Vec<EventId>> {
        let (first, mut at) = (self.message_at(self.find(first)?)?, self.message_at(self.find(last)?)?);
        let mut events = Vec::new();
        while let Some(rest) = budget.checked_sub(1) {
            *budget = rest;
            events.push(self.event(at));
            if at == first {
                events.reverse();
                return Some(events);
            }
            match self.nodes[at as usize].up {
                Up::Node(up) => at = up,
                Up::Root | Up::Awaited => return None,
            }
        }
        None
    }

    /// Moves the head.
    pub(crate) fn move_head(&mut self, node: u32) {
        self.head = Some(node);
    }

    /// What a link leads to: a message, nothing, or a record that is no message and waits for its own parent.
    fn resolve(&mut self, link: Up) -> Up {
        let mut end = link;
        while let Up::Node(n) = end
            && self.nodes[n as usize].class == Class::Through
            && let up @ (Up::Node(_) | Up::Root) = self.nodes[n as usize].up
        {
            end = up;
        }
        // What was walked through leads there at once from now on.
        let mut at = link;
        while let Up::Node(n) = at
            && at != end
        {
            at = std::mem::replace(&mut self.nodes[n as usize].up, end);
        }
        end
    }

    /// The message that a link leads to.
    fn message(&mut self, link: Up) -> Up {
        match self.resolve(link) {
            Up::Node(n) if self.nodes[n as usize].class == Class::Through => Up::Awaited,
            end => end,
        }
    }

    /// The message at or before the record `node`.
    pub(crate) fn message_at(&mut self, node: u32) -> Option<u32> {
        match self.message(Up::Node(node)) {
            Up::Node(n) => Some(n),
            Up::Root | Up::Awaited => None,
        }
    }

    /// The top of the tree that a node is in.
    fn top(&mut self, node: u32) -> u32 {
        let mut top = node;
        while self.nodes[top as usize].top != top {
            top = self.nodes[top as usize].top;
        }
        let mut at = node;
        while at != top {
            at = std::mem::replace(&mut self.nodes[at as usize].top, top);
        }
        top
    }

    /// Enters a record under the record `parent` (`None`: the source says that it has none).
    pub(crate) fn place<'a>(
        &mut self,
        id: &str,
        parent: Option<&'a str>,
        class: Class,
        digest: u64,
        event: EventId,
    ) -> Placed<'a> {
        let number = self.nodes.len() as u32;
        let own = key(id);
        let mut unseen = false;
        let link = match parent {
            None => Up::Root,
            Some(parent) => match self.by_key.get(&key(parent)) {
                Some(n) => Up::Node(*n),
                None => {
                    unseen = true;
                    self.awaited.entry(key(parent)).or_default().push(number);
                    Up::Awaited
                }
            },
        };
        let waiting = self.awaited.remove(&own);
        let target = self.message(link);
        let mut bypassed = [None; 4];
        let (parent, up) = if class == Class::Through {
            // Only a record that something hangs under already needs a place on the path.
            let parent = match (&waiting, target) {
                (None, _) => Parent::Head,
                (Some(_), Up::Root) => Parent::Root,
                (Some(_), Up::Node(n)) => Parent::Event(self.event(n)),
                (Some(_), Up::Awaited) => parent.map_or(Parent::Root, Parent::Record),
            };
            (parent, self.resolve(link))
        } else if class == Class::Boundary {
            (Parent::Head, self.head.map_or(Up::Root, Up::Node))
        } else {
            let through = matches!(link, Up::Node(n) if self.nodes[n as usize].class == Class::Through);
            match (target, self.head) {
                (Up::Root, None) => (Parent::Head, Up::Root),
                (Up::Root, Some(_)) => (Parent::Root, Up::Root),
                (Up::Node(n), Some(head)) if self.follows(head, n, class, through.then_some(&mut bypassed)) => {
                    (Parent::Head, Up::Node(head))
                }
                (Up::Node(n), _) => (Parent::Event(self.event(n)), Up::Node(n)),
                (Up::Awaited, _) => (parent.map_or(Parent::Root, Parent::Record), target),
            }
        };
        self.nodes.push(Node { class, up, top: number, newest: None, digest, event });
        self.by_key.entry(own).or_insert(number);
        self.hang(number, up);
        if class != Class::Through && waiting.is_none() {
            let top = self.top(number);
            self.nodes[top as usize].newest = Some(number);
        }
        let mut cycle = false;
        match waiting {
            Some(waiting) => cycle = self.arrive(&waiting, number),
            None if class != Class::Through => self.head = Some(number),
            None => {}
        }
        Placed { parent, unseen, bypassed, cycle }
    }

    /// Puts the tree of `node` under another node.
    fn hang(&mut self, node: u32, under: Up) {
        let Up::Node(under) = under else { return };
        let (top, below) = (self.top(under), self.nodes[node as usize].newest);
        self.nodes[node as usize].top = top;
        let newest = &mut self.nodes[top as usize].newest;
        *newest = (*newest).max(below);
    }

    /// An awaited record came: what waited hangs under it, and the newest record under it is the head. Says whether that
    /// closed a loop.
    fn arrive(&mut self, waiting: &[u32], number: u32) -> bool {
        let mut cycle = false;
        let mut newest = None;
        for &node in waiting {
            newest = newest.max(self.nodes[node as usize].newest);
            let closes = self.top(number) == node;
            cycle |= closes;
            let class = self.nodes[node as usize].class;
            let up = match (closes, class) {
                (true, _) => Up::Root,
                (false, Class::Through) => Up::Node(number),
                (false, _) => self.message(Up::Node(number)),
            };
            self.nodes[node as usize].up = up;
            self.hang(node, if closes { Up::Root } else { Up::Node(number) });
        }
        if newest.is_some() {
            self.head = newest;
        }
        cycle
    }

    fn hangs_under(&self, mut node: u32, waiting: &[u32]) -> bool {
        for _ in 0..REACH {
            if waiting.contains(&node) {
                return true;
            }
            match self.nodes[node as usize].up {
                Up::Node(up) => node = up,
                Up::Root | Up::Awaited => return false,
            }
        }
        false
    }

    /// Whether a record of `class` whose link leads to `target` follows `head`: nothing lies between but results, what the
    /// client made, and parts of the response that `target` is a part of. A message of a person is not hung behind parts
    /// of a response that it bypasses: there the client dropped them.
    fn follows(&self, head: u32, target: u32, class: Class, mut bypassed: Option<&mut [Option<u32>; 4]>) -> bool {
        let response = match self.nodes[target as usize].class {
            Class::Response(n) => Some(n),
            _ => None,
        };
        let parts_may_lie_between = matches!(class, Class::Result | Class::Response(_));
        let mut at = head;
        let mut passed = 0;
        for _ in 0..REACH {
            if at == target {
                return true;
            }
            let node = &self.nodes[at as usize];
            let passes = match node.class {
                Class::Result => {
                    if let Some(list) = bypassed.as_mut()
                        && passed < list.len()
                    {
                        list[passed] = Some(at);
                        passed += 1;
                    }
                    true
                }
                Class::Client => true,
                Class::Response(n) => parts_may_lie_between && response == Some(n),
                Class::Prompt | Class::Boundary | Class::Through => false,
            };
            match node.up {
                Up::Node(up) if passes => at = up,
                _ => return false,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: &str) -> EventId {
        palog_adapter::ids::Ids::new(&crate::FORMAT, "s", "transcript").event(palog_adapter::ids::Native::Uuid(id), 0)
    }

    fn place<'a>(graph: &mut Graph, id: &str, parent: Option<&'a str>, class: Class) -> Parent<'a> {
        graph.place(id, parent, class, 0, event(id)).parent
    }

    #[test]
    fn parallel_results_follow_the_head() {
        let mut g = Graph::default();
        assert_eq!(place(&mut g, "u", None, Class::Prompt), Parent::Head);
        assert_eq!(place(&mut g, "t", Some("u"), Class::Through), Parent::Head);
        for (id, parent) in [("a", "t"), ("b", "a"), ("c", "b")] {
            assert_eq!(place(&mut g, id, Some(parent), Class::Response(1)), Parent::Head);
        }
        for (id, parent) in [("rc", "c"), ("ra", "a"), ("rb", "b")] {
            assert_eq!(place(&mut g, id, Some(parent), Class::Result), Parent::Head);
        }
        assert_eq!(place(&mut g, "d", Some("ra"), Class::Response(2)), Parent::Head);
    }

    #[test]
    fn a_prompt_that_bypasses_a_call_leaves_it_on_a_dead_branch() {
        let mut g = Graph::default();
        place(&mut g, "u", None, Class::Prompt);
        place(&mut g, "text", Some("u"), Class::Response(1));
        place(&mut g, "call", Some("text"), Class::Response(1));
        assert_eq!(place(&mut g, "v", Some("text"), Class::Prompt), Parent::Event(event("text")));
        assert_eq!(g.head(), Some(3));
    }

    #[test]
    fn a_child_that_comes_before_its_parents_keeps_the_head() {
        let mut g = Graph::default();
        assert_eq!(place(&mut g, "answer", Some("listing"), Class::Response(1)), Parent::Record("listing"));
        assert_eq!(place(&mut g, "prompt", None, Class::Prompt), Parent::Root);
        assert_eq!(place(&mut g, "other", Some("prompt"), Class::Through), Parent::Head);
        assert_eq!(place(&mut g, "listing", Some("other"), Class::Through), Parent::Event(event("prompt")));
        assert_eq!(g.head(), Some(0));
        assert_eq!(place(&mut g, "result", Some("answer"), Class::Result), Parent::Head);
    }

    #[test]
    fn a_progress_record_is_walked_through_and_names_what_it_bypasses() {
        let mut g = Graph::default();
        place(&mut g, "u", None, Class::Prompt);
        place(&mut g, "call", Some("u"), Class::Response(1));
        place(&mut g, "progress", Some("call"), Class::Through);
        place(&mut g, "result", Some("call"), Class::Result);
        let placed = g.place("answer", Some("progress"), Class::Response(2), 0, event("answer"));
        assert_eq!(placed.parent, Parent::Head);
        assert_eq!(placed.bypassed, [Some(3), None, None, None]);
    }

    #[test]
    fn loops_end() {
        let mut g = Graph::default();
        place(&mut g, "a", Some("b"), Class::Response(1));
        assert!(g.place("b", Some("a"), Class::Response(2), 0, event("b")).cycle);
        place(&mut g, "t", Some("s"), Class::Through);
        assert!(g.place("s", Some("t"), Class::Through, 0, event("s")).cycle);
        assert_eq!(place(&mut g, "c", Some("s"), Class::Prompt), Parent::Root);
        assert!(g.place("self", Some("self"), Class::Prompt, 0, event("self")).cycle);
    }

    #[test]
    fn what_waits_behind_records_that_are_no_messages_finds_its_place() {
        let mut g = Graph::default();
        place(&mut g, "u", None, Class::Prompt);
        assert_eq!(place(&mut g, "answer", Some("t2"), Class::Response(1)), Parent::Record("t2"));
        place(&mut g, "t2", Some("t1"), Class::Through);
        assert_eq!(g.message_at(2), None);
        place(&mut g, "t1", Some("u"), Class::Through);
        assert_eq!((g.head(), g.message_at(2), g.message_at(3)), (Some(1), Some(0), Some(0)));
    }

    /// Each step of a walk is made once.
    #[test]
    fn long_chains_are_not_walked_again() {
        let id = |n: usize| format!("r{n}");
        for classes in [[Class::Through; 2], [Class::Through, Class::Client]] {
            let mut g = Graph::default();
            place(&mut g, "r0", None, Class::Prompt);
            for n in 1..1000 {
                let parent = id(n - 1);
                place(&mut g, &id(n), Some(&parent), classes[n % 2]);
            }
            let leads_to_a_message =
                |node: &Node| matches!(node.up, Up::Node(n) if g.nodes[n as usize].class != Class::Through);
            assert!(g.nodes[1..].iter().all(leads_to_a_message));
            assert!(g.nodes.iter().all(|node| node.top == 0));
        }
        // In reverse order, and each record before the one that it hangs under.
        for pairs in [false, true] {
            let mut g = Graph::default();
            let order = |n: usize| if pairs { n ^ 1 } else { 999 - n };
            for n in (0..1000).map(order) {
                let parent = n.checked_sub(1).map(id);
                place(&mut g, &id(n), parent.as_deref(), Class::Client);
            }
            let top = g.top(0);
            assert!((0..1000).all(|n| g.top(n) == top));
            assert_eq!(g.head(), g.find("r999"));
        }
    }

    #[test]
    fn keys_of_uuids_are_their_digits() {
        assert_eq!(key("00000000-0000-0000-0000-0000000000ff"), 255);
        assert_ne!(key("00000000-0000-0000-0000-0000000000FF"), 255);
        assert_ne!(key("x"), key("y"));
    }
}
