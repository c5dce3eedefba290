//! The calls of one rollout: their names, what became of them, and whether the model was told.

use std::collections::HashMap;

use palog::diagnostic::Place;
use palog_adapter::Span;

/// A call.
#[derive(Debug)]
pub(crate) struct Call {
    /// Name of the tool.
    pub(crate) name: Box<str>,
    /// Its namespace, where the item has one.
    pub(crate) namespace: Option<Box<str>>,
    /// How often the id was used.
    uses: u32,
    /// How many prompts had come.
    turn: u32,
    /// The model was given something.
    pub(crate) told: bool,
    /// A record said how it ended, or that it was refused.
    pub(crate) ended: bool,
    /// The call was copied from another session.
    copied: bool,
    span: Span,
}

/// All calls, by the vendor's ids.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    by_id: HashMap<String, Call>,
    turn: u32,
    /// The newest turn with a message of the model behind its prompt.
    spoken: u32,
}

/// The action that a use of a call id stands for: the id, and `#2`, `#3` … behind it when it is used again.
fn action(id: &str, uses: u32) -> String {
    if uses == 1 { id.to_owned() } else { format!("{id}#{uses}") }
}

impl Calls {
    /// Takes a call in and returns its action.
    pub(crate) fn propose(
        &mut self,
        id: &str,
        name: &str,
        namespace: Option<&str>,
        copied: bool,
        span: Span,
    ) -> String {
        let uses = self.by_id.get(id).map_or(1, |c| c.uses + 1);
        let call = Call {
            name: name.into(),
            namespace: namespace.map(Into::into),
            uses,
            turn: self.turn,
            told: false,
            ended: false,
            copied,
            span,
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

    /// The action of the newest call with this id.
    pub(crate) fn action(&self, id: &str) -> Option<String> {
        self.by_id.get(id).map(|call| action(id, call.uses))
    }

    /// A prompt came.
    pub(crate) fn prompted(&mut self) {
        self.turn += 1;
    }

    /// The model said something.
    pub(crate) fn spoke(&mut self) {
        self.spoken = self.turn;
    }

    /// Calls of which nothing is known but that they were made, in the order of the source: id, place, and whether the
    /// model went on in a later turn.
    pub(crate) fn silent(&self, input: &str) -> Vec<(Place, bool)> {
        let mut silent: Vec<(&String, &Call)> =
            self.by_id.iter().filter(|(_, c)| !c.told && !c.ended && !c.copied).collect();
        silent.sort_by_key(|(_, c)| c.span.at);
        let place = |id: &String, c: &Call| Place {
            input: Some(input.to_owned()),
            line: Some(c.span.line),
            offset: Some(c.span.at),
            length: Some(c.span.len),
            call: Some(id.clone()),
            ..Place::default()
        };
        silent.into_iter().map(|(id, c)| (place(id, c), self.spoken > c.turn)).collect()
    }
}
