//! Calls in records that have no known form: members that stand twice or have another type, items of a later version. What
//! they say cannot be relied on, but that there was a call must not be lost. What holds the arguments of a call is one,
//! whatever its type is called.

use std::fmt;

use palog::json::{Raw, Str};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use crate::record::parse;

/// Types of the items by which the model calls a tool.
const PROPOSALS: &[&str] = &["function_call", "custom_tool_call", "local_shell_call"];

/// Members in which a record may hold an item, also as its JSON.
const INNER: [&str; 2] = ["payload", "item"];

/// How deep records are looked into: a line, its payload, an item in that, and lists between them.
const DEPTH: usize = 6;

/// Members that hold what a call asks for.
const ARGUMENTS: [&str; 3] = ["arguments", "input", "action"];

/// Calls that the provider makes itself: there is no doubt of what they are.
const OF_THE_PROVIDER: &[&str] = &["web_search_call", "image_generation_call"];

/// A call that a record of no known form tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hidden {
    /// Its id, or the JSON that stands in its place.
    pub(crate) id: Option<String>,
    /// Name of the tool.
    pub(crate) name: Option<String>,
    /// Its type.
    pub(crate) r#type: String,
}

/// The members of an object in their order, also those that stand twice.
struct Members<'a>(Vec<(Str<'a>, Raw<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Vec<(Str<'de>, Raw<'de>)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        d.deserialize_map(All).map(Members)
    }
}

/// The calls that the text of a record tells of.
pub(crate) fn calls(text: &str) -> Vec<Hidden> {
    let mut found = Vec::new();
    if let Ok(raw) = Raw::parse(text) {
        look(&raw, 0, &mut found);
    }
    found
}

fn look(raw: &Raw<'_>, depth: usize, found: &mut Vec<Hidden>) {
    if depth == DEPTH {
        return;
    }
    if let Some(list) = parse::<Vec<Raw<'_>>>(raw) {
        list.iter().for_each(|item| look(item, depth + 1, found));
    }
    let Some(Members(members)) = parse(raw) else { return };
    let all = |name: &'static str| members.iter().filter(move |(own, _)| own.as_str() == name).map(|(_, value)| value);
    let text = |value: &Raw<'_>| value.text().map_or_else(|| value.get().to_owned(), |text| text.into_owned());
    let mut ids: Vec<Option<String>> = all("call_id").map(|id| Some(text(id)).filter(|id| id != "null")).collect();
    ids.dedup();
    let types: Vec<_> = all("type").filter_map(|t| t.text()).collect();
    let typed = types.iter().find(|t| t.ends_with("_call"));
    let asks = ARGUMENTS.into_iter().any(|member| all(member).next().is_some());
    let named = all("name").next().is_some();
    let by_type = typed.filter(|t| !ids.is_empty() || PROPOSALS.contains(&&***t)).is_some();
    let by_form = if ids.is_empty() {
        // The line itself has no arguments.
        depth > 0 && asks && (named || all("id").next().is_some())
    } else {
        asks || named && !types.iter().any(|t| t.ends_with("_output"))
    };
    if by_type || by_form && !types.iter().any(|t| OF_THE_PROVIDER.contains(&&**t)) {
        let name = all("name").find_map(|name| name.text()).map(|name| name.into_owned());
        if ids.is_empty() {
            ids.push(all("id").next().map(text).filter(|_| by_form));
        }
        let r#type = typed.or(types.first()).map_or("call", |t| &**t);
        found.extend(ids.into_iter().map(|id| Hidden { id, name: name.clone(), r#type: r#type.to_owned() }));
    }
    for (_, value) in members.iter().filter(|(own, _)| INNER.iter().any(|inner| own.eq_ignore_ascii_case(inner))) {
        look(value, depth + 1, found);
        let inside = value.text().filter(|text| text.starts_with(['{', '[']));
        if let Some(value) = inside.as_deref().and_then(|text| Raw::parse(text).ok()) {
            look(&value, depth + 1, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_in_whatever_form() {
        let ids = |text: &str| calls(text).into_iter().map(|c| c.id.unwrap_or_else(|| "-".into())).collect::<Vec<_>>();
        for (text, want) in [
            (
                r#"{"type":"response_item","payload":{"type":"message","type":"function_call","call_id":"c"}}"#,
                &["c"][..],
            ),
            (r#"{"type":"response_item","payload":{"type":"function_call","call_id":"c","call_id":"d"}}"#, &["c", "d"]),
            (
                r#"{"payload":{"type":"message"},"type":"response_item","payload":{"type":"function_call","call_id":"c"}}"#,
                &["c"],
            ),
            (r#"{"type":"response_item","payload":[{"type":"function_call","call_id":7}]}"#, &["7"]),
            (r#"{"type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch"}}"#, &["-"]),
            (r#"{"type":"response_item","payload":{"type":"function_call","call_id":null}}"#, &["-"]),
            (r#"{"type":"response_item","payload":{"type":"shell_call","call_id":"c"}}"#, &["c"]),
            (r#"{"type":"zz","payload":{"type":"zz","item":{"type":"function_call","call_id":"c"}}}"#, &["c"]),
            (r#"{"type":"response_item","payload":{"call_id":"c","name":"shell","arguments":"{}"}}"#, &["c"]),
            (r#"{"type":"response_item","payload":{"type":"tool_use","id":"c","action":{}}}"#, &["c"]),
            (r#"{"type":"response_item","payload":{"type":"shell","name":"shell","input":"x"}}"#, &["-"]),
            (r#"{"type":"response_item","Payload":{"type":"function_call","call_id":"c"}}"#, &["c"]),
            (r#"{"type":"response_item","payload":"{\"type\":\"function_call\",\"call_id\":\"c\"}"}"#, &["c"]),
            (r#"{"type":"response_item","payload":{"type":"web_search_call","id":"w"}}"#, &[]),
            (r#"{"type":"response_item","payload":{"type":"web_search_call","id":"w","action":{}}}"#, &[]),
            (r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c"}}"#, &[]),
            (r#"{"type":"response_item","payload":{"type":"message","content":"{\"type\":\"function_call\"}"}}"#, &[]),
        ] {
            assert_eq!(ids(text), want, "{text}");
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(calls(&deep), []);
    }
}
