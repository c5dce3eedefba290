//! Where events hang: the head, and what hangs under parents that are still to come (spec 04, "The path").

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::envelope::Event;

/// 128 bits of the SHA-256 of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key([u8; 16]);

impl Key {
    /// The key of an id.
    pub(crate) fn of(id: &str) -> Self {
        let digest = Sha256::digest(id.as_bytes());
        let mut key = [0; 16];
        key.copy_from_slice(&digest[..16]);
        Key(key)
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&crate::blob::hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        let number = u128::from_str_radix(&text, 16).ok().filter(|_| text.len() == 32);
        number.map(|n| Key(n.to_be_bytes())).ok_or_else(|| serde::de::Error::custom("a key is 32 hexadecimal digits"))
    }
}

/// Hashes a [`Key`] by its own bits, which are a hash already.
#[derive(Debug, Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 ^= u64::from_le_bytes(*first);
        }
    }
    fn write_usize(&mut self, _length_of_the_key: usize) {}
}

/// A map by id: a key takes 16 bytes.
pub(crate) type KeyMap<V> = HashMap<Key, V, BuildHasherDefault<KeyHasher>>;

/// The events that hang under one parent that is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct GroupId(u32);

/// The coming of a parent: what hangs under it belongs to a turn from then on (R-TRN-010).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Adoption {
    pub(super) seq: u64,
    pub(super) turn: usize,
}

/// The newest adoption of each group, or of one that it hangs in.
#[derive(Debug, Default)]
pub(super) struct Adoptions(Vec<Option<Adoption>>);

impl Adoptions {
    /// The adoption of what came to hang in `group` at `seq`.
    pub(super) fn of(&self, group: Option<GroupId>, seq: u64) -> Option<Adoption> {
        self.0.get(group?.0 as usize).copied().flatten().filter(|adoption| adoption.seq > seq)
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Group {
    /// While the parent is still to come, the group that the head was in; afterwards the group that the parent is in.
    outer: Option<GroupId>,
    came: bool,
    /// A group further out, on the way to the outermost one.
    shortcut: Option<GroupId>,
    adopted: Option<Adoption>,
    /// The newest event on the path in it, and its seq.
    newest: (u64, String),
}

/// What an event is on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node<'e> {
    /// It lies on the path.
    On,
    /// It changes what the model sees; nothing of the control state may depend on it (R-STA-002).
    Window,
    /// It makes another event the head; nothing of the control state may depend on it.
    Moves(&'e str),
    /// It changes how a message is seen, and is not on the path; nothing of the control state may depend on it.
    Aside,
    /// It lies on the path if it names a parent.
    Beside,
    /// It can be a parent and puts nothing on the path.
    Still,
    /// It is no part of the conversation.
    Off,
}

/// Where an event stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Placement {
    /// The group that it hangs in.
    pub(super) group: Option<GroupId>,
    /// It is the first of its group: it names a parent that is still to come.
    pub(super) begins: bool,
    /// The group that waited for it.
    pub(super) awaited_by: Option<GroupId>,
    /// The parent that it names closes a loop, which was cut (R-ENV-010).
    pub(super) cycle: bool,
    /// Its id stands in the log already (R-ENV-007): it puts nothing on the path.
    pub(super) duplicate: bool,
}

/// Which events there are and what hangs under what, as far as turns and the head need it.
///
/// An event takes 20 bytes in a hash map, about 32 with its free slots.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Path {
    /// Seq of each event, in four bytes without alignment.
    #[serde(with = "super::snapshot::pairs")]
    seqs: KeyMap<[u8; 4]>,
    /// Events before this one are of a parent's log.
    parents_end: u32,
    /// Compactions and moves.
    #[serde(with = "super::snapshot::pairs")]
    windows: KeyMap<()>,
    /// Runs of seqs that hang in one group, in ascending order: first, last, group.
    runs: Vec<(u32, u32, GroupId)>,
    groups: Vec<Group>,
    #[serde(with = "super::snapshot::pairs")]
    awaited: KeyMap<GroupId>,
    head: Option<String>,
    /// The group of the newest message, whatever moves and compactions say.
    group: Option<GroupId>,
}

impl Path {
    /// The newest event on the path.
    pub(super) fn head(&self) -> Option<&str> {
        self.head.as_deref()
    }

    /// Whether the event with this id is in the log.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.seqs.contains_key(key) || self.windows.contains_key(key)
    }

    /// Takes in an event that changes nothing: another one may name it as its parent. `false`: its id was taken.
    pub(super) fn pass(&mut self, id: &str, order: u64) -> bool {
        let key = Key::of(id);
        let fresh = !self.is_duplicate(&key);
        if self.awaited.contains_key(&key) {
            self.windows.insert(key, ());
        } else {
            let seq = u32::try_from(order).unwrap_or(u32::MAX);
            self.seqs.entry(key).or_insert(seq.to_le_bytes());
        }
        fresh
    }

    /// What was taken in so far, up to the event of this number, is of another log: its ids can stand here as well.
    pub(super) fn leave_behind(&mut self, order: u64) {
        self.parents_end = u32::try_from(order).unwrap_or(u32::MAX);
    }

    fn is_duplicate(&self, key: &Key) -> bool {
        let own = |seq: &[u8; 4]| u32::from_le_bytes(*seq) >= self.parents_end;
        self.seqs.get(key).map_or_else(|| self.windows.contains_key(key), own)
    }

    /// Takes the next event in, which is the one of this number.
    pub(super) fn place(&mut self, event: &Event<'_>, order: u64, node: Node<'_>) -> Placement {
        let key = Key::of(&event.id);
        if self.is_duplicate(&key) {
            return Placement { group: self.before(), duplicate: true, ..Placement::default() };
        }
        if matches!(node, Node::Window | Node::Moves(_) | Node::Aside) {
            self.windows.insert(key, ());
            match node {
                Node::Moves(to) => self.head = (to != "root").then(|| to.to_owned()),
                Node::Window => self.set_head(&event.id),
                _ => {}
            }
            return Placement { group: self.before(), ..Placement::default() };
        }
        let waiting = self.awaited.remove(&key).map(|group| self.root(group));
        let mut placement = Placement { awaited_by: waiting, ..Placement::default() };
        // An event that others waited for and that names no parent stands where they stood meanwhile.
        let before = match waiting {
            Some(group) => {
                self.groups[group.0 as usize].outer.and_then(|outer| self.live(outer)).filter(|g| *g != group)
            }
            None => self.before(),
        };
        let named = event.parent.as_deref().filter(|_| node != Node::Still);
        placement.group = match named {
            None => before,
            Some("root") => None,
            Some(parent) if parent == &*event.id => {
                placement.cycle = true;
                before
            }
            Some(parent) => {
                let parent = Key::of(parent);
                match self.seqs.get(&parent).copied() {
                    Some(seq) => {
                        let group = self.group_at(u32::from_le_bytes(seq));
                        placement.cycle = waiting.is_some() && group == waiting;
                        if placement.cycle { before } else { group }
                    }
                    None if self.windows.contains_key(&parent) => before,
                    None => Some(self.wait_for(parent, before, &mut placement)),
                }
            }
        };
        if let Some(group) = waiting {
            let came = &mut self.groups[group.0 as usize];
            (came.outer, came.shortcut, came.came) = (placement.group, placement.group, true);
        }
        let seq = u32::try_from(order).unwrap_or(u32::MAX);
        self.seqs.insert(key, seq.to_le_bytes());
        if let Some(group) = placement.group {
            self.extend(seq, group);
        }
        let on_path = match node {
            Node::On => true,
            Node::Beside | Node::Off => named.is_some(),
            Node::Window | Node::Moves(_) | Node::Aside | Node::Still => false,
        };
        match waiting {
            // The newest event under one that comes late is the head, not the late one.
            Some(group) => {
                let (seq, newest) = self.groups[group.0 as usize].newest.clone();
                self.lead(placement.group, seq, &newest);
            }
            None if on_path => self.lead(placement.group, order, &event.id),
            None => {}
        }
        placement
    }

    /// Whether a parent with this id is named and has not come.
    pub(super) fn awaits(&self, key: &Key) -> bool {
        self.awaited.contains_key(key) && !self.windows.contains_key(key)
    }

    /// Makes an event in `group` the head.
    fn lead(&mut self, group: Option<GroupId>, seq: u64, id: &str) {
        self.group = group;
        if let Some(group) = group.map(|group| &mut self.groups[group.0 as usize]).filter(|group| group.newest.0 <= seq)
        {
            group.newest.0 = seq;
            group.newest.1.clear();
            group.newest.1.push_str(id);
        }
        self.set_head(id);
    }

    fn set_head(&mut self, id: &str) {
        let head = self.head.get_or_insert_default();
        head.clear();
        head.push_str(id);
    }

    /// The group that an event hangs in if it names no parent.
    fn before(&mut self) -> Option<GroupId> {
        self.group.and_then(|group| self.live(group))
    }

    /// The group of those that wait for `parent`.
    fn wait_for(&mut self, parent: Key, before: Option<GroupId>, placement: &mut Placement) -> GroupId {
        if let Some(group) = self.awaited.get(&parent).copied() {
            return self.root(group);
        }
        let group = GroupId(u32::try_from(self.groups.len()).unwrap_or(u32::MAX));
        let newest = (0, String::new());
        self.groups.push(Group { outer: before, came: false, shortcut: before, adopted: None, newest });
        self.awaited.insert(parent, group);
        placement.begins = true;
        group
    }

    /// The group that `group` has become a part of, as long as that one still waits for a parent.
    fn live(&mut self, group: GroupId) -> Option<GroupId> {
        let root = self.root(group);
        (!self.groups[root.0 as usize].came).then_some(root)
    }

    /// Follows a group whose parent has come to the one that the parent hangs in.
    fn root(&mut self, mut group: GroupId) -> GroupId {
        while let Group { shortcut: Some(outer), came: true, .. } = self.groups[group.0 as usize] {
            // Each step halves the way for the next one.
            if let Group { shortcut: Some(next), came: true, .. } = self.groups[outer.0 as usize] {
                self.groups[group.0 as usize].shortcut = Some(next);
            }
            group = outer;
        }
        group
    }

    /// The parent of `group` has come, or begins a turn.
    pub(super) fn adopt(&mut self, group: GroupId, adoption: Adoption) {
        self.groups[group.0 as usize].adopted = Some(adoption);
    }

    /// What all adoptions so far come to.
    pub(super) fn adoptions(&self) -> Adoptions {
        /// No way out from a group has been followed yet.
        const UNSEEN: usize = usize::MAX;
        let mut newest = self.groups.iter().map(|group| group.adopted).collect::<Vec<_>>();
        let (mut begun, mut known) = (vec![UNSEEN; newest.len()], vec![false; newest.len()]);
        for start in 0..self.groups.len() {
            let (mut way, mut next) = (Vec::new(), Some(start));
            while let Some(at) = next.filter(|at| !known[*at] && begun[*at] != start) {
                begun[at] = start;
                way.push(at);
                next = self.groups[at].outer.map(|outer| outer.0 as usize);
            }
            // Parents that are still missing can hang in one another: then all on the loop have the same.
            let on_loop = next.filter(|at| !known[*at]).and_then(|at| way.iter().position(|on| *on == at));
            let mut outer = next.and_then(|at| newest[at]);
            if let Some(from) = on_loop {
                outer = way[from..].iter().filter_map(|at| newest[*at]).max();
            }
            for at in way.into_iter().rev() {
                newest[at] = newest[at].max(outer);
                known[at] = true;
                outer = newest[at];
            }
        }
        Adoptions(newest)
    }

    fn group_at(&mut self, seq: u32) -> Option<GroupId> {
        let at = self.runs.partition_point(|(first, _, _)| *first <= seq).checked_sub(1)?;
        let (_, last, group) = self.runs[at];
        if seq <= last { self.live(group) } else { None }
    }

    fn extend(&mut self, seq: u32, group: GroupId) {
        match self.runs.last_mut() {
            Some((_, last, same)) if *same == group && seq.saturating_sub(*last) <= 1 => *last = seq,
            _ => self.runs.push((seq, seq, group)),
        }
    }
}
