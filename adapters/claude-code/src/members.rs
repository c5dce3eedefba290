//! Reads an object of the source by its members, also where one of them stands twice.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::ops::Deref;

use palog::json::Str;
use serde::Deserialize;
use serde::de::value::MapDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// What an object holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Read<'a, T> {
    /// The object as it stands.
    pub(crate) text: &'a str,
    pub(crate) members: T,
    /// A member stood twice. With the same value it counts once; with another value nobody knows which is meant, and it counts
    /// as absent.
    pub(crate) repeated: bool,
}

impl<T> Deref for Read<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.members
    }
}

/// Reads an object.
///
/// # Errors
/// When `json` is no object, or its members have not the form that `T` asks for.
pub(crate) fn read<'a, T: Deserialize<'a>>(json: &'a str) -> Result<Read<'a, T>, serde_json::Error> {
    if !json.trim_ascii_start().starts_with('{') {
        // A list would do for the members in their order.
        return Err(serde_json::Error::custom("no object"));
    }
    let error = match serde_json::from_str(json) {
        Ok(members) => return Ok(Read { text: json, members, repeated: false }),
        Err(error) => error,
    };
    let Ok(Distinct { members, repeated: true }) = serde_json::from_str(json) else { return Err(error) };
    let known = members.into_iter().filter_map(|(name, value)| Some((name.0.into_owned(), value?)));
    T::deserialize(MapDeserializer::new(known)).map(|members| Read { text: json, members, repeated: true })
}

/// Longer than any id, name or other word of the client: a text that stands for one and is longer counts as absent.
pub(crate) const LONGEST: usize = 64 << 10;

/// Whether one of these members of an object is a text that is longer than a word can be.
pub(crate) fn has_long(json: &str, names: &[&str]) -> bool {
    let is_long = |(name, value): (&Str<'_>, &Option<&RawValue>)| {
        value.is_some_and(|value| value.get().len() > LONGEST && value.get().starts_with('"'))
            && names.contains(&name.as_str())
    };
    json.len() > LONGEST
        && serde_json::from_str(json).is_ok_and(|distinct: Distinct<'_>| distinct.members.iter().any(is_long))
}

/// The members of an object, each once; without a value where several stand.
struct Distinct<'a> {
    members: HashMap<Str<'a>, Option<&'a RawValue>>,
    repeated: bool,
}

impl<'de: 'a, 'a> Deserialize<'de> for Distinct<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Distinct<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut distinct = Distinct { members: HashMap::new(), repeated: false };
                while let Some((name, value)) = map.next_entry::<Str<'de>, &'de RawValue>()? {
                    match distinct.members.entry(name) {
                        Entry::Vacant(first) => drop(first.insert(Some(value))),
                        Entry::Occupied(mut before) => {
                            distinct.repeated = true;
                            if before.get().is_none_or(|b| b.get() != value.get()) {
                                before.insert(None);
                            }
                        }
                    }
                }
                Ok(distinct)
            }
        }
        d.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        name: Option<Str<'a>>,
        #[serde(borrow)]
        value: Option<&'a RawValue>,
    }

    fn named(json: &str) -> (Option<String>, Option<String>, bool) {
        let Read { members: Named { name, value }, repeated, .. } = read(json).expect("an object");
        (name.map(|n| n.to_string()), value.map(|v| v.get().to_owned()), repeated)
    }

    #[test]
    fn a_member_that_stands_twice_counts_only_if_it_says_the_same() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(named(r#"{"name":"a","value":[1],"more":1,"more":2}"#), (some("a"), some("[1]"), false));
        assert_eq!(named(r#"{"name":"a","value":1,"name":"a"}"#), (some("a"), some("1"), true));
        assert_eq!(named(r#"{"name":"a","value":1,"n\u0061me":"b"}"#), (None, some("1"), true));
        assert_eq!(named(r#"{"name":"a","name":"b","name":"b"}"#), (None, None, true));
        for json in ["[1]", "7", r#"{"name":7}"#, r#"{"name":7,"value":1,"value":1}"#, r#"{"name":"a""#] {
            assert!(read::<Named<'_>>(json).is_err(), "{json}");
        }
    }
}
