//! The calls of one transcript: their names, and which have a result.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use palog::diagnostic::Place;

use palog_adapter::Span;
use palog_adapter::ids::EventId;

/// How many places of results are kept for reports about records that a walk bypasses.
const RECENT: usize = 64;

/// A call that starts a subagent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spawn {
    /// Hash of the prompt.
    pub(crate) prompt: u64,
    /// A child was linked to it.
    pub(crate) linked: bool,
}

/// A call.
#[derive(Debug)]
pub(crate) struct Call {
    /// Name of the tool, if it can be read.
    pub(crate) name: Option<Box<str>>,
    /// How often the id was used.
    uses: u32,
    /// Number of the response that it is a part of.
    response: u32,
    /// The model was told something of it.
    pub(crate) told: bool,
    /// Set if it starts a subagent.
    pub(crate) spawn: Option<Spawn>,
    /// It asks to go on in the background.
    pub(crate) background: bool,
    line: u64,
    at: u64,
    len: u64,
}

/// The call that made a child.
#[derive(Debug)]
pub(crate) struct Caller {
    /// The action.
    pub(crate) action: String,
    /// The record with the call.
    pub(crate) span: Span,
}

impl Call {
    fn caller(&self, id: &str) -> Caller {
        Caller { action: action(id, self.uses), span: Span { at: self.at, len: self.len, line: self.line } }
    }
}

/// All calls, by the vendor's ids.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    by_id: HashMap<String, Call>,
    /// Ids of the calls that start a subagent, by the hash of their prompt.
    by_prompt: HashMap<u64, VecDeque<String>>,
    newest_response: u32,
    results: VecDeque<(EventId, Place)>,
}

/// The hash that prompts are compared by.
pub(crate) fn prompt_hash(text: &str) -> u64 {
    let mut hash = DefaultHasher::new();
    text.hash(&mut hash);
    hash.finish()
}

/// The action that a use of a call id stands for: the id, and `#2`, `#3` … behind it when it is used again. An id that ends so
/// itself has `#1` behind it at its first use, so that no two uses have one name.
fn action(id: &str, uses: u32) -> String {
    let looks_used = id.rsplit_once('#').is_some_and(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    if uses == 1 && !looks_used { id.to_owned() } else { format!("{id}#{uses}") }
}

impl Calls {
    /// Takes a call in and returns its action.
    pub(crate) fn propose(
        &mut self,
        id: &str,
        name: Option<&str>,
        response: u32,
        place: &Place,
        prompt: Option<u64>,
    ) -> String {
        let uses = self.by_id.get(id).map_or(1, |c| c.uses + 1);
        let call = Call {
            name: name.map(Into::into),
            uses,
            response,
            told: false,
            spawn: prompt.map(|prompt| Spawn { prompt, linked: false }),
            background: false,
            line: place.line.unwrap_or_default(),
            at: place.offset.unwrap_or_default(),
            len: place.length.unwrap_or_default(),
        };
        if let Some(prompt) = prompt {
            self.by_prompt.entry(prompt).or_default().push_back(id.to_owned());
        }
        self.by_id.insert(id.to_owned(), call);
        action(id, uses)
    }

    /// Notes that a response came.
    pub(crate) fn response(&mut self, number: u32) {
        self.newest_response = self.newest_response.max(number);
    }

    /// The newest call with this id, and its action.
    pub(crate) fn get_mut(&mut self, id: &str) -> Option<(&mut Call, String)> {
        self.by_id.get_mut(id).map(|call| {
            let action = action(id, call.uses);
            (call, action)
        })
    }

    /// Remembers where a result stands.
    pub(crate) fn result(&mut self, event: EventId, place: Place) {
        if self.results.len() == RECENT {
            self.results.pop_front();
        }
        self.results.push_back((event, place));
    }

    /// Where the result with this message stands, if it is one of the latest.
    pub(crate) fn result_place(&self, event: EventId) -> Option<Place> {
        self.results.iter().find(|(e, _)| *e == event).map(|(_, p)| p.clone())
    }

    /// The call with this id, linked to its child.
    pub(crate) fn link(&mut self, id: &str) -> Option<Caller> {
        let call = self.by_id.get_mut(id)?;
        if let Some(spawn) = &mut call.spawn {
            spawn.linked = true;
        }
        Some(call.caller(id))
    }

    /// The first call that starts a subagent with this prompt and has none yet.
    pub(crate) fn spawn_by_prompt(&mut self, prompt: u64) -> Option<Caller> {
        let ids = self.by_prompt.get_mut(&prompt)?;
        while let Some(id) = ids.pop_front() {
            // The id may have been used again since.
            if let Some(call) = self.by_id.get_mut(&id)
                && call.spawn.is_some_and(|spawn| spawn.prompt == prompt && !spawn.linked)
            {
                call.spawn = Some(Spawn { prompt, linked: true });
                return Some(call.caller(&id));
            }
        }
        None
    }

    /// Calls of which the model was told nothing, in the order of the source: id, place, and whether a later response came.
    pub(crate) fn untold(&self, input: &str) -> Vec<(Place, bool)> {
        let mut untold: Vec<(&String, &Call)> = self.by_id.iter().filter(|(_, c)| !c.told).collect();
        untold.sort_by_key(|(_, c)| c.at);
        let place = |id: &String, c: &Call| Place {
            input: Some(input.to_owned()),
            line: Some(c.line),
            offset: Some(c.at),
            length: Some(c.len),
            call: Some(id.clone()),
            ..Place::default()
        };
        untold.into_iter().map(|(id, c)| (place(id, c), self.newest_response > c.response)).collect()
    }
}
