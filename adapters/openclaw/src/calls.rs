//! The calls of one session: their names, and whether the model was told what came of them.

use std::collections::HashMap;

use palog::diagnostic::Place;

/// A call.
#[derive(Debug)]
pub(crate) struct Call {
    /// Name of the tool.
    pub(crate) name: Box<str>,
    /// Number of its entry in the tree.
    pub(crate) node: u32,
    /// The model was told something of it.
    pub(crate) told: bool,
    /// Something says how it ended, or that it was refused.
    pub(crate) ended: bool,
    uses: u32,
    copied: bool,
    /// How many prompts had come.
    turn: u32,
    place: Place,
}

/// All calls, by the client's ids.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    by_id: HashMap<String, Call>,
    turn: u32,
    /// The newest turn in which the model said something.
    spoken: u32,
}

/// The action that a use of a call id stands for: the id, and `#2`, `#3` … behind it when it is used again.
fn action(id: &str, uses: u32) -> String {
    if uses == 1 { id.to_owned() } else { format!("{id}#{uses}") }
}

impl Calls {
    /// Takes a call in and returns its action.
    pub(crate) fn propose(&mut self, id: &str, name: &str, node: u32, copied: bool, place: Place) -> String {
        let uses = self.by_id.get(id).map_or(1, |c| c.uses + 1);
        let call = Call {
            name: name.into(),
            node,
            told: false,
            ended: false,
            uses,
            copied,
            turn: self.turn,
            place: Place { call: Some(id.to_owned()), ..place },
        };
        self.by_id.insert(id.to_owned(), call);
        action(id, uses)
    }

    /// The newest call with this id, and its action.
    pub(crate) fn get_mut(&mut self, id: &str) -> Option<(&mut Call, String)> {
        self.by_id.get_mut(id).map(|call| {
            let action = action(id, call.uses);
            (call, action)
        })
    }

    /// A prompt came.
    pub(crate) fn prompted(&mut self) {
        self.turn += 1;
    }

    /// The model said something.
    pub(crate) fn spoke(&mut self) {
        self.spoken = self.turn;
    }

    /// Calls of which nothing is known but that they were made: their places, and whether the model went on in a later
    /// turn.
    pub(crate) fn silent(&self) -> Vec<(Place, bool)> {
        let mut silent: Vec<&Call> = self.by_id.values().filter(|c| !c.told && !c.ended && !c.copied).collect();
        silent.sort_by(|a, b| (a.node, &a.place.call).cmp(&(b.node, &b.place.call)));
        silent.into_iter().map(|c| (c.place.clone(), self.spoken > c.turn)).collect()
    }
}
