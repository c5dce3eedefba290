//! Snapshots: a state with what its reducer has to remember (spec 04, "Snapshots").

use serde::{Deserialize, Serialize};

use super::Reducer;
use crate::cursor::Cursor;
use crate::envelope::MAJOR;

/// The form in which this version remembers; a snapshot of another one is refused.
const FORM: &str = concat!(env!("CARGO_PKG_VERSION"), "/3");

/// A snapshot, as it is read; [`Reducer::snapshot`] writes the same.
#[derive(Debug, Deserialize)]
struct Snapshot {
    palog: u32,
    form: String,
    cursor: Cursor,
    reducer: Reducer,
}

/// A state with what its reducer has to remember (spec 04, "Snapshots").
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Snapshot"))]
pub(crate) struct SnapshotOf<'r> {
    /// Major version of the format.
    palog: u32,
    /// The program and the form that it remembers in; another one refuses the snapshot.
    form: &'static str,
    /// The last line that was taken in, `SEQ:SHA256`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    cursor: Cursor,
    /// The state, and what else this program remembers.
    #[cfg_attr(feature = "schema", schemars(with = "Remembered"))]
    reducer: &'r Reducer,
}

/// The state, and what else this program remembers; the form of that is its own.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema, Serialize)]
struct Remembered {
    /// The state.
    state: crate::state::State,
    #[serde(flatten)]
    others: std::collections::BTreeMap<String, serde_json::Value>,
}

/// Whether a file that begins so is a snapshot, of whatever version.
#[must_use]
pub fn is_snapshot(head: &[u8]) -> bool {
    head.starts_with(format!("{{\"palog\":{MAJOR},\"form\":\"").as_bytes())
}

/// Why a snapshot cannot be gone on from.
#[derive(Debug)]
#[non_exhaustive]
pub enum SnapshotError {
    /// It is no snapshot, or damaged.
    Malformed(serde_json::Error),
    /// It was made by another version.
    Version {
        /// What made it.
        form: String,
    },
}

impl std::fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SnapshotError::Malformed(error) => write!(f, "it is no snapshot: {error}"),
            SnapshotError::Version { form } => write!(f, "it is of the form {form}, and this program's is {FORM}"),
        }
    }
}

impl std::error::Error for SnapshotError {}

impl Reducer {
    /// What has been taken in so far, as JSON; `cursor` is the last line (R-STA-011). What was found wrong is in it only as
    /// far as the state says so: a reducer that goes on from it reports what it finds from there on.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "all maps are written as lists")]
    pub fn snapshot(&mut self, cursor: Cursor) -> String {
        self.state();
        let snapshot = SnapshotOf { palog: MAJOR, form: FORM, cursor, reducer: self };
        serde_json::to_string(&snapshot).expect("a snapshot has a JSON text")
    }

    /// Goes on from a snapshot: the reducer, and the line after which the log has to be read.
    ///
    /// # Errors
    /// When the text is no snapshot of this version.
    pub fn restore(text: &str) -> Result<(Self, Cursor), SnapshotError> {
        #[derive(Deserialize)]
        struct Head {
            palog: u32,
            form: String,
        }
        let head: Head = serde_json::from_str(text).map_err(SnapshotError::Malformed)?;
        if (head.palog, head.form.as_str()) != (MAJOR, FORM) {
            return Err(SnapshotError::Version { form: head.form });
        }
        let snapshot: Snapshot = serde_json::from_str(text).map_err(SnapshotError::Malformed)?;
        debug_assert!(snapshot.palog == MAJOR && snapshot.form == FORM);
        Ok((snapshot.reducer, snapshot.cursor))
    }
}

/// Maps as lists of pairs, in the order of their keys: two reducers that know the same write the same.
pub(super) mod pairs {
    use std::collections::HashMap;
    use std::hash::{BuildHasher, Hash};

    use serde::de::{Deserialize, Deserializer};
    use serde::ser::{Serialize, Serializer};

    pub(crate) fn serialize<K, V, H, S>(map: &HashMap<K, V, H>, s: S) -> Result<S::Ok, S::Error>
    where
        K: Ord + Serialize,
        V: Serialize,
        S: Serializer,
    {
        let mut pairs: Vec<(&K, &V)> = map.iter().collect();
        pairs.sort_unstable_by_key(|(key, _)| *key);
        s.collect_seq(pairs)
    }

    pub(crate) fn deserialize<'de, K, V, H, D>(d: D) -> Result<HashMap<K, V, H>, D::Error>
    where
        K: Eq + Hash + Deserialize<'de>,
        V: Deserialize<'de>,
        H: BuildHasher + Default,
        D: Deserializer<'de>,
    {
        let pairs: Vec<(K, V)> = Vec::deserialize(d)?;
        Ok(pairs.into_iter().collect())
    }
}

/// A time that is kept.
pub(super) mod time {
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::{Serialize, Serializer};

    use crate::envelope::Time;

    pub(crate) fn serialize<S: Serializer>(time: &Option<Time<'static>>, s: S) -> Result<S::Ok, S::Error> {
        time.serialize(s)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Time<'static>>, D::Error> {
        let text: Option<String> = Option::deserialize(d)?;
        text.map(|text| Time::parse(text).ok_or_else(|| D::Error::custom("no time"))).transpose()
    }
}
