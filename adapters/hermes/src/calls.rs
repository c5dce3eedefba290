//! The calls of one session, by the vendor's ids.

use std::collections::HashMap;

/// A call.
#[derive(Debug)]
pub(crate) struct Call {
    /// Name of the tool.
    pub(crate) name: Box<str>,
    /// The action that it is.
    pub(crate) action: String,
    /// The model was given a result.
    pub(crate) told: bool,
}

/// All calls.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    by_id: HashMap<String, (u32, Call)>,
    /// Calls that hand work over, in their order: the action and its arguments.
    pub(crate) delegations: Vec<(String, String)>,
}

impl Calls {
    /// Takes a call in, and returns its action: the id, and `#2`, `#3` … behind it when the id is used again.
    pub(crate) fn propose(&mut self, id: &str, name: &str, arguments: &str) -> String {
        let uses = self.by_id.get(id).map_or(1, |(uses, _)| uses + 1);
        let action = if uses == 1 { id.to_owned() } else { format!("{id}#{uses}") };
        if name == "delegate_task" {
            self.delegations.push((action.clone(), arguments.to_owned()));
        }
        self.by_id.insert(id.to_owned(), (uses, Call { name: name.into(), action: action.clone(), told: false }));
        action
    }

    /// The newest call with this id. Some providers put the id of an item behind that of the call.
    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut Call> {
        let known = if self.by_id.contains_key(id) { id } else { id.split('|').next().unwrap_or(id) };
        self.by_id.get_mut(known).map(|(_, call)| call)
    }

    /// The action of the newest call with this id; the id itself where there is none.
    pub(crate) fn action(&mut self, id: &str) -> String {
        self.get_mut(id).map_or_else(|| id.to_owned(), |call| call.action.clone())
    }
}
