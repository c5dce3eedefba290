//! JSON, read totally: what a generic tree cannot hold is replaced, never refused.

use std::fmt;

use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Deserializer, Map, Value};

/// How deep a value is read; what lies deeper becomes `null`.
const DEPTH: usize = 100;

/// Reads one JSON value. Half surrogates become U+FFFD, numbers that no double holds become `0`, of members of one name the
/// last stays, and what lies deeper than a hundred levels becomes `null`.
///
/// # Errors
/// When `text` is not exactly one JSON value.
pub fn value(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|_| Ok(tree(serde_json::from_str::<&RawValue>(text)?.get(), 0)))
}

fn tree(text: &str, depth: usize) -> Value {
    match text.as_bytes().first() {
        Some(b'{' | b'[') if depth >= DEPTH => Value::Null,
        Some(b'{') => {
            let members = Deserializer::from_str(text).deserialize_map(Members).unwrap_or_default();
            members
                .into_iter()
                .map(|(name, raw)| (string(name.get()), tree(raw.get(), depth + 1)))
                .collect::<Map<_, _>>()
                .into()
        }
        Some(b'[') => {
            let items = Deserializer::from_str(text).deserialize_seq(Items).unwrap_or_default();
            items.into_iter().map(|raw| tree(raw.get(), depth + 1)).collect()
        }
        Some(b'"') => string(text).into(),
        _ => serde_json::from_str(text).unwrap_or_else(|_| 0.into()),
    }
}

/// The characters of a string token.
fn string(token: &str) -> String {
    serde_json::from_str(token).unwrap_or_else(|_| {
        // A half of a pair is the only thing in a well-formed token that makes no string.
        let bytes: Result<Bytes, _> = serde_json::from_str(token);
        bytes.map_or_else(|_| token.to_owned(), |b| lossy(&b.0))
    })
}

/// UTF-8 in which halves of surrogate pairs stand as three bytes each, as `serde_json` hands them out.
fn lossy(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut rest = bytes;
    while let Err(error) = std::str::from_utf8(rest) {
        let (good, bad) = rest.split_at(error.valid_up_to());
        text.push_str(&String::from_utf8_lossy(good));
        text.push('\u{fffd}');
        rest = bad.get(3..).unwrap_or_default();
    }
    text.push_str(&String::from_utf8_lossy(rest));
    text
}

struct Bytes(Vec<u8>);

impl<'de> serde::Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Take;
        impl Visitor<'_> for Take {
            type Value = Bytes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
        }
        d.deserialize_bytes(Take)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(&'de RawValue, &'de RawValue)>;
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

struct Items;

impl<'de> Visitor<'de> for Items {
    type Value = Vec<&'de RawValue>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(items)
    }
}

/// What lies at `path`, a JSON pointer; `null` if there is nothing.
#[must_use]
pub fn at<'v>(value: &'v Value, path: &str) -> &'v Value {
    value.pointer(path).unwrap_or(&Value::Null)
}

/// The text at `path`.
#[must_use]
pub fn text<'v>(value: &'v Value, path: &str) -> Option<&'v str> {
    at(value, path).as_str()
}

/// The list at `path`; an empty one if there is none.
#[must_use]
pub fn list<'v>(value: &'v Value, path: &str) -> &'v [Value] {
    at(value, path).as_array().map_or(&[], Vec::as_slice)
}

/// The count at `path`, written as a number or, as states do, as a string of digits.
#[must_use]
pub fn count(value: &Value, path: &str) -> Option<u64> {
    let found = at(value, path);
    found.as_u64().or_else(|| found.as_str()?.parse().ok())
}

/// Shows every string within `value` to `visit`.
pub fn strings(value: &Value, visit: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, visit)),
        Value::Object(members) => members.values().for_each(|member| strings(member, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_tree_cannot_hold_is_replaced() {
        let text = r#"{"a":"x\ud83dy","a\udc00":1,"n":1e400,"m":[12345678901234567890123,{"a":2,"a":3}]}"#;
        let read = value(text).expect("JSON");
        assert_eq!(read["a"], "x\u{fffd}y");
        assert_eq!(read["a\u{fffd}"], 1);
        assert_eq!(read["n"], 0);
        assert_eq!(read["m"][1], json!({"a": 3}));
        assert!(value("{\"a\":1").is_err());
        let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
        assert!(value(&deep).is_ok());
    }

    #[test]
    fn counts_are_numbers_or_digits() {
        let read = json!({"a": 3, "b": "12", "c": "x", "d": -1});
        assert_eq!(
            [count(&read, "/a"), count(&read, "/b"), count(&read, "/c"), count(&read, "/d")],
            [Some(3), Some(12), None, None]
        );
    }
}
