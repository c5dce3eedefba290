//! The calls of one session, by the vendor's ids.

use std::collections::HashMap;

use palog::json::Raw;
use serde::Deserialize;

use crate::record::Record;

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

/// A call that a row of the role `assistant` makes.
pub(crate) struct Made {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) args: Raw<'static>,
}

/// The calls in a row; `None` where they have another form than calls.
pub(crate) fn calls(record: &Record) -> Option<Vec<Made>> {
    let Some(list) = record.value("tool_calls") else {
        return record.word("tool_calls").is_none().then(Vec::new);
    };
    let list: Vec<ToolCall<'_>> = serde_json::from_str(list.get()).ok()?;
    let made = list.into_iter().enumerate().map(|(at, call)| {
        let function = call.function.unwrap_or(Function { name: None, arguments: None });
        Made {
            id: call.id.or(call.call_id).unwrap_or_else(|| format!("{}/{at}", record.key)),
            name: function.name.unwrap_or_default(),
            args: function.arguments.as_ref().map_or_else(|| Raw::string(""), arguments),
        }
    });
    Some(made.collect())
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct ToolCall<'a> {
    id: Option<String>,
    call_id: Option<String>,
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Function<'a> {
    name: Option<String>,
    arguments: Option<Raw<'a>>,
}

/// The arguments of a call: the object where the string holds one and nothing is lost so, else the string.
fn arguments(raw: &Raw<'_>) -> Raw<'static> {
    let Some(text) = raw.text() else { return raw.clone().into_owned() };
    match Raw::parse(&text) {
        Ok(object) if object.get() == &*text && text.starts_with('{') => object.into_owned(),
        _ => Raw::string(&text),
    }
}
