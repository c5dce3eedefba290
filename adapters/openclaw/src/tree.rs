//! The tree of entries by `id` and `parentId`. Its links are the path itself: what the model sees is what lies between the
//! root and the newest entry.

use std::collections::HashMap;

use palog_adapter::ids::EventId;

/// An entry in the tree.
#[derive(Debug)]
struct Node {
    up: Option<u32>,
    /// The first event of the entry.
    event: EventId,
    step: Step,
}

/// What an entry puts on the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing: its link is followed.
    Through,
    /// A message.
    Message,
    /// The result of the call whose entry has this number, if that is known.
    Result { call: Box<str>, of: Option<u32> },
    /// A new window, which this event tells of.
    Window(EventId),
}

/// Where an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It follows what stands before it.
    Follows,
    /// It begins anew.
    Root,
    /// It hangs under the message whose first event this is.
    Under(EventId),
}

/// The tree of one source.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    by_id: HashMap<String, u32>,
    /// Entries by their place among all records, for formats that count them.
    pub(crate) by_index: Vec<Option<u32>>,
}

impl Tree {
    /// Number of the entry with this id.
    pub(crate) fn find(&self, id: &str) -> Option<u32> {
        self.by_id.get(id).copied()
    }

    /// The newest entry.
    pub(crate) fn last(&self) -> Option<u32> {
        (self.nodes.len() as u32).checked_sub(1)
    }

    /// The first event of an entry.
    pub(crate) fn event(&self, node: u32) -> EventId {
        self.nodes[node as usize].event
    }

    /// The event that others hang under.
    fn head(&self, node: u32) -> EventId {
        match self.nodes[node as usize].step {
            Step::Window(event) => event,
            _ => self.event(node),
        }
    }

    /// The message that an entry is, or leads to.
    pub(crate) fn message(&self, mut node: Option<u32>) -> Option<u32> {
        while let Some(n) = node {
            let at = &self.nodes[n as usize];
            if at.step != Step::Through {
                return node;
            }
            node = at.up;
        }
        None
    }

    /// Where an entry stands that hangs under `up`.
    pub(crate) fn place(&self, up: Option<u32>) -> Place {
        let (target, head) = (self.message(up), self.message(self.last()));
        match target {
            _ if target == head => Place::Follows,
            Some(message) => Place::Under(self.head(message)),
            None => Place::Root,
        }
    }

    /// The event that is the head, if `node` leads to another message than the newest entry does.
    pub(crate) fn moved_to(&self, node: Option<u32>) -> Option<Option<EventId>> {
        let (target, head) = (self.message(node), self.message(self.last()));
        (target != head).then(|| target.map(|n| self.head(n)))
    }

    /// Enters an entry.
    pub(crate) fn enter(&mut self, id: Option<&str>, up: Option<u32>, event: EventId, step: Step) -> u32 {
        let number = self.nodes.len() as u32;
        self.nodes.push(Node { up, event, step });
        if let Some(id) = id {
            self.by_id.entry(id.to_owned()).or_insert(number);
        }
        number
    }

    /// Says what an entry puts on the path.
    pub(crate) fn set(&mut self, node: u32, step: Step) {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.step = step;
        }
    }

    /// The entries from the root to `node`.
    fn path(&self, node: Option<u32>) -> Vec<u32> {
        let mut path: Vec<u32> = std::iter::successors(node, |n| self.nodes[*n as usize].up).collect();
        path.reverse();
        path
    }

    /// The messages on the path to `last` from the entry `first` on; none where that is not on it.
    pub(crate) fn kept(&self, first: Option<u32>, last: Option<u32>) -> Vec<u32> {
        let path = self.path(last);
        let from = path.iter().position(|n| Some(*n) == first).unwrap_or(path.len());
        let is_message = |n: &u32| matches!(self.nodes[*n as usize].step, Step::Message | Step::Result { .. });
        path[from..].iter().copied().filter(is_message).collect()
    }

    /// The calls whose results are among these messages, and which themselves are not.
    pub(crate) fn split(&self, kept: &[u32]) -> Vec<&str> {
        let is_split = |n: &u32| match &self.nodes[*n as usize].step {
            Step::Result { call, of: Some(of) } if !kept.contains(of) => Some(&**call),
            _ => None,
        };
        kept.iter().filter_map(is_split).collect()
    }

    /// Whether `node` hangs under `above`.
    pub(crate) fn hangs_under(&self, node: u32, above: u32) -> bool {
        std::iter::successors(Some(node), |n| self.nodes[*n as usize].up).any(|n| n == above)
    }
}
