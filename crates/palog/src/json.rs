//! JSON values that are carried, not interpreted: a value read is the value written, byte for byte.
//!
//! A generic JSON tree rounds numbers, refuses lone surrogates and drops duplicate keys; the types here keep the token
//! as it stands and decode only on demand (spec 01, R-BYT-018).

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

/// A short string such as an id or a name, borrowed where the JSON has no escapes.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Str<'a>(pub Cow<'a, str>);

impl<'a> Str<'a> {
    /// The characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Detaches the string from the line that it was read from.
    #[must_use]
    pub fn into_owned(self) -> Str<'static> {
        Str(Cow::Owned(self.0.into_owned()))
    }
}

impl std::ops::Deref for Str<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Str<'_> {
    fn eq(&self, other: &str) -> bool {
        *self.0 == *other
    }
}

impl fmt::Debug for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'a> From<&'a str> for Str<'a> {
    fn from(s: &'a str) -> Self {
        Str(Cow::Borrowed(s))
    }
}

impl From<String> for Str<'_> {
    fn from(s: String) -> Self {
        Str(Cow::Owned(s))
    }
}

impl<'a> From<Cow<'a, str>> for Str<'a> {
    fn from(s: Cow<'a, str>) -> Self {
        Str(s)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Str<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E: de::Error>(self, v: &'de str) -> Result<Self::Value, E> {
                Ok(v.into())
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Self::Value, E> {
                Ok(v.to_owned().into())
            }
        }
        d.deserialize_str(Visitor)
    }
}

impl Serialize for Str<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0)
    }
}

/// One JSON value, kept as its text.
#[derive(Clone)]
pub struct Raw<'a>(Cow<'a, RawValue>);

impl<'a> Raw<'a> {
    /// The JSON text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Takes `text` if it is one JSON value (a line feed or a carriage return between its tokens becomes a space, since
    /// an event is one line).
    ///
    /// # Errors
    /// When `text` is not exactly one JSON value.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        let raw: &'a RawValue = serde_json::from_str(text)?;
        Ok(Self::from(raw))
    }

    /// The JSON string of `text`.
    #[must_use]
    pub fn string(text: &str) -> Raw<'static> {
        Raw::of(&text)
    }

    /// The JSON text of any value that serialises without failing: a string, a number, a list or map of such.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "only maps with keys that are no strings fail to serialise")]
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Raw<'static> {
        Raw(Cow::Owned(serde_json::value::to_raw_value(value).expect("a plain value has a JSON text")))
    }

    /// Whether the value is a JSON string.
    #[must_use]
    pub fn is_string(&self) -> bool {
        self.get().starts_with('"')
    }

    /// The characters of a JSON string; an escaped lone surrogate becomes U+FFFD. `None` if the value is no string.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'_, str>> {
        self.is_string().then(|| decode(self.get()))
    }

    /// Offsets within the JSON text of escaped surrogates that lack their other half.
    #[must_use]
    pub fn lone_surrogates(&self) -> Vec<usize> {
        lone_surrogates(self.get().as_bytes())
    }

    /// Detaches the value from the line that it was read from.
    #[must_use]
    pub fn into_owned(self) -> Raw<'static> {
        Raw(Cow::Owned(self.0.into_owned()))
    }

    /// A second handle on the same text, without a copy.
    #[must_use]
    pub fn borrowed(&self) -> Raw<'_> {
        Raw(Cow::Borrowed(&self.0))
    }
}

impl<'a> From<&'a RawValue> for Raw<'a> {
    fn from(raw: &'a RawValue) -> Self {
        let text = raw.get();
        if memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_none() {
            return Raw(Cow::Borrowed(raw));
        }
        // Inside strings both are escaped, so what is found stands between tokens.
        let flat = text.replace(['\n', '\r'], " ");
        Raw(RawValue::from_string(flat).map_or(Cow::Borrowed(raw), Cow::Owned))
    }
}

impl PartialEq for Raw<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(d).map(Raw::from)
    }
}

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(s)
    }
}

/// A value that stands in the line, lies in a blob beside it, or is known to be missing (spec 02, "Values").
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// The value itself.
    Inline(Raw<'a>),
    /// A reference to a blob.
    Blob(BlobRef<'a>),
    /// The value is not there, and why.
    Omitted(Omitted),
}

impl<'a> Value<'a> {
    /// The characters of an inline string (lone surrogates as U+FFFD), else `None`.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Value::Inline(raw) => raw.text(),
            Value::Blob(_) | Value::Omitted(_) => None,
        }
    }

    /// Bytes that the value takes up in the line.
    #[must_use]
    pub fn inline_len(&self) -> usize {
        match self {
            Value::Inline(raw) => raw.get().len(),
            Value::Blob(_) | Value::Omitted(_) => 0,
        }
    }

    /// Detaches the value from the line that it was read from.
    #[must_use]
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Inline(raw) => Value::Inline(raw.into_owned()),
            Value::Blob(blob) => Value::Blob(BlobRef {
                digest: blob.digest.into_owned(),
                size: blob.size,
                media: blob.media.into_owned(),
                name: blob.name.map(Str::into_owned),
            }),
            Value::Omitted(omitted) => Value::Omitted(omitted),
        }
    }
}

impl From<&str> for Value<'_> {
    fn from(text: &str) -> Self {
        Value::Inline(Raw::string(text))
    }
}

impl<'a> From<Raw<'a>> for Value<'a> {
    fn from(raw: Raw<'a>) -> Self {
        Value::Inline(raw)
    }
}

/// A reference to content beside the log, by its SHA-256 (spec 02, "Values").
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlobRef<'a> {
    /// `sha256:` and 64 lower-case hexadecimal digits.
    #[serde(rename = "$blob")]
    pub digest: Str<'a>,
    /// Length of the content in bytes.
    pub size: u64,
    /// Media type of the content.
    pub media: Str<'a>,
    /// File name that the content had, if any.
    #[serde(default, deserialize_with = "crate::wire::present", skip_serializing_if = "Option::is_none")]
    pub name: Option<Str<'a>>,
}

/// What stands for a value that is missing (spec 02, "Values").
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Omitted {
    /// Why and how much.
    #[serde(rename = "$omitted")]
    pub omitted: Omission,
}

/// Why a value is missing, and its size where that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Omission {
    /// The reason.
    pub reason: OmittedReason,
    /// Length of the missing content in bytes.
    #[serde(default, deserialize_with = "crate::wire::present", skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// Why a value is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum OmittedReason {
    /// The source holds a part only.
    Truncated,
    /// It was taken out on purpose.
    Redacted,
    /// It is known to exist, and could not be had.
    Unavailable,
    /// Only its provider can read it.
    OpaqueProvider,
}

/// The member names that are reserved as the first member of a value (spec 02, R-ENV-026).
const RESERVED: [&str; 3] = ["\"$blob\"", "\"$omitted\"", "\"$literal\""];

/// The reserved name that an object begins with.
fn reserved(text: &str) -> Option<&'static str> {
    let inner = text.strip_prefix('{')?.trim_start();
    RESERVED.into_iter().find(|name| inner.starts_with(name))
}

/// It has one member: what stood beside it would be lost.
#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), deny_unknown_fields)]
struct Literal<'a> {
    #[serde(rename = "$literal")]
    literal: Raw<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Value<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(d)?;
        let parsed = match reserved(raw.get()) {
            None => return Ok(Value::Inline(raw.into())),
            Some("\"$blob\"") => serde_json::from_str(raw.get()).map(Value::Blob),
            Some("\"$omitted\"") => serde_json::from_str(raw.get()).map(Value::Omitted),
            Some(_) => serde_json::from_str::<Literal<'_>>(raw.get()).map(|l| Value::Inline(l.literal)),
        };
        parsed.map_err(de::Error::custom)
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Inline(raw) if reserved(raw.get()).is_some() => {
                let mut map = s.serialize_map(Some(1))?;
                map.serialize_entry("$literal", raw)?;
                map.end()
            }
            Value::Inline(raw) => raw.serialize(s),
            Value::Blob(blob) => blob.serialize(s),
            Value::Omitted(omitted) => omitted.serialize(s),
        }
    }
}

/// Decodes a JSON string token, quotes included; lone surrogates become U+FFFD.
fn decode(token: &str) -> Cow<'_, str> {
    let inner = &token[1..token.len() - 1];
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Cow::Borrowed(inner);
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let escape = rest.as_bytes()[at + 1];
        rest = &rest[at + 2..];
        match escape {
            b'n' => out.push('\n'),
            b't' => out.push('\t'),
            b'r' => out.push('\r'),
            b'b' => out.push('\u{8}'),
            b'f' => out.push('\u{c}'),
            b'u' => {
                let unit = hex4(rest.as_bytes());
                rest = &rest[4..];
                out.push(match unit {
                    0xD800..=0xDBFF => match low_half(rest.as_bytes()) {
                        Some(low) => {
                            rest = &rest[6..];
                            let code = 0x1_0000 + (((unit & 0x3FF) << 10) | (low & 0x3FF));
                            char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
                        }
                        None => char::REPLACEMENT_CHARACTER,
                    },
                    unit => char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER),
                });
            }
            other => out.push(char::from(other)),
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The value of four hexadecimal digits; zero where they are none (a JSON token that was parsed has four).
fn hex4(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |n, &b| n * 16 + char::from(b).to_digit(16).unwrap_or(0))
}

/// The low half of a surrogate pair, if its escape stands first in `bytes`.
fn low_half(bytes: &[u8]) -> Option<u32> {
    if bytes.len() < 6 || !bytes.starts_with(b"\\u") {
        return None;
    }
    let unit = hex4(&bytes[2..]);
    (0xDC00..=0xDFFF).contains(&unit).then_some(unit)
}

/// Offsets within valid JSON text of escaped surrogates that lack their other half. An escape stands only inside strings,
/// so the whole text can be scanned as one.
#[must_use]
pub fn lone_surrogates(text: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(step) = memchr::memchr(b'\\', &text[at..]) {
        at += step;
        if text.get(at + 1) != Some(&b'u') {
            at += 2;
            continue;
        }
        let unit = hex4(text.get(at + 2..).unwrap_or_default());
        if (0xD800..=0xDBFF).contains(&unit) && low_half(text.get(at + 6..).unwrap_or_default()).is_some() {
            at += 12;
            continue;
        }
        if (0xD800..=0xDFFF).contains(&unit) {
            found.push(at);
        }
        at += 6;
        if at >= text.len() {
            break;
        }
    }
    found
}

#[cfg(feature = "schema")]
mod schema {
    use super::{BlobRef, Omitted, Raw, Str, Value};
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use std::borrow::Cow;

    impl JsonSchema for Str<'_> {
        fn inline_schema() -> bool {
            true
        }
        fn schema_name() -> Cow<'static, str> {
            "String".into()
        }
        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({"type": "string"})
        }
    }

    impl JsonSchema for Raw<'_> {
        fn inline_schema() -> bool {
            true
        }
        fn schema_name() -> Cow<'static, str> {
            "AnyValue".into()
        }
        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!(true)
        }
    }

    impl JsonSchema for Value<'_> {
        fn schema_name() -> Cow<'static, str> {
            "Value".into()
        }
        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            let blob = generator.subschema_for::<BlobRef<'static>>();
            let omitted = generator.subschema_for::<Omitted>();
            json_schema!({
                "description": "Any JSON value, a reference to a blob, or the mark of a missing value. An object whose first member is `$blob`, `$omitted` or `$literal` is written as `{\"$literal\": …}`.",
                "if": {"type": "object", "required": ["$blob"]}, "then": blob,
                "else": {"if": {"type": "object", "required": ["$omitted"]}, "then": omitted}
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value<'_> {
        serde_json::from_str(text).expect("a value")
    }

    /// R-BYT-018
    #[test]
    fn a_value_comes_out_as_it_went_in() {
        for text in [
            "18446744073709551617",
            "1e400",
            "-0.10",
            r#""\ud83d half""#,
            r#"{"a":1,"a":2}"#,
            &("[".repeat(200) + &"]".repeat(200)),
            r#"{"$literal":{"$blob":"not one of ours"}}"#,
        ] {
            assert_eq!(serde_json::to_string(&value(text)).expect("it serialises"), text);
        }
    }

    /// R-ENV-026
    #[test]
    fn an_object_that_looks_reserved_is_escaped() {
        let tricky = Value::Inline(Raw::parse(r#"{ "$blob":"sha256:x"}"#).expect("json"));
        let text = serde_json::to_string(&tricky).expect("it serialises");
        assert_eq!(text, r#"{"$literal":{ "$blob":"sha256:x"}}"#);
        assert_eq!(value(&text), tricky);
    }

    #[test]
    fn a_literal_has_nothing_beside_it() {
        assert!(serde_json::from_str::<Value<'_>>(r#"{"$literal":1,"more":2}"#).is_err());
    }

    #[test]
    fn text_decodes_with_replacement() {
        let cases = [
            (r#""plain""#, "plain"),
            (r#""a\n\"\\\/\u00e9""#, "a\n\"\\/é"),
            (r#""\ud83d\ude00""#, "😀"),
            (r#""x\ud83d""#, "x\u{fffd}"),
            (r#""\ud83dA""#, "\u{fffd}A"),
            (r#""\ude00\ud83d\ude00""#, "\u{fffd}😀"),
        ];
        for (token, want) in cases {
            assert_eq!(Raw::parse(token).expect("json").text().expect("a string"), want, "{token}");
        }
    }

    #[test]
    fn lone_surrogates_are_found_where_they_stand() {
        assert_eq!(lone_surrogates(br#"{"a":"\ud83d","b":"\\ud83d","c":"\ud83d\ude00"}"#), [6]);
        assert_eq!(lone_surrogates(br#""\ud83d\ud83d\ude00\ude00""#), [1, 19]);
    }

    #[test]
    fn line_breaks_between_tokens_become_spaces() {
        assert_eq!(Raw::parse("{\"a\":\r\n1}").expect("json").get(), "{\"a\":  1}");
    }
}
