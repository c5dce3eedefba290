//! What is made of a damaged or odd file: `expect/expect.json`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::case::Verdict;
use crate::implementation::Quality;

/// `expect/expect.json`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The name of the case.
    pub case: String,
    /// What it shows.
    pub title: String,
    /// Family of the fault; for grouping.
    pub kind: String,
    /// What is done.
    pub operation: String,
    /// How it goes.
    pub outcome: Quality,
    /// The files.
    pub inputs: Vec<Input>,
    /// Totals over all files.
    pub counts: BTreeMap<String, u64>,
    /// What is reported.
    pub diagnostics: Vec<Diagnostic>,
    /// What is still there afterwards.
    pub preserve: Vec<Preserve>,
    /// The verdicts.
    #[serde(default)]
    pub verdicts: Vec<SessionVerdict>,
    /// Further facts of the state.
    #[serde(default)]
    pub state: BTreeMap<String, Value>,
    /// What holds.
    pub must: Vec<String>,
    /// What does not.
    pub must_not: Vec<String>,
    /// The members that are meant; absent = all.
    #[serde(skip)]
    pub only: Option<Vec<String>>,
}

impl Expect {
    /// Whether `member` is meant in this case.
    #[must_use]
    pub fn means(&self, member: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|m| m == member))
    }
}

/// A file of a case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Where it is.
    pub path: String,
    /// What it is.
    pub format: String,
    /// Its size.
    pub bytes: u64,
    /// Its digest.
    pub sha256: String,
    /// Its lines.
    pub lines: Option<u64>,
    /// Its whole records.
    pub records: Option<u64>,
    /// Pieces of records.
    pub fragments: Option<u64>,
    /// Records by type.
    pub by_type: Option<BTreeMap<String, u64>>,
}

/// What is reported.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Diagnostic {
    /// Its code.
    pub code: String,
    /// How bad it is.
    pub severity: String,
    /// How often.
    pub count: u64,
    /// Where.
    #[serde(default)]
    pub at: Vec<Place>,
}

/// Where something is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The file.
    pub input: Option<String>,
    /// Line, from 1.
    pub line: Option<u64>,
    /// Offset in bytes.
    pub offset: Option<u64>,
    /// Length in bytes.
    pub length: Option<u64>,
    /// JSON pointer.
    pub pointer: Option<String>,
    /// Id of the record.
    pub record: Option<String>,
    /// The id that it refers to.
    pub names: Option<String>,
    /// The call.
    pub call: Option<String>,
    /// The session.
    pub session: Option<String>,
    /// The type.
    pub r#type: Option<String>,
    /// Anything else.
    pub detail: Option<String>,
}

/// What is still there afterwards.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preserve {
    /// What it is; for people.
    pub what: String,
    /// A text.
    pub text: Option<String>,
    /// Bytes of the source.
    pub place: Option<Place>,
}

/// The verdict over a session.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionVerdict {
    /// The file that it is about, where there are several.
    pub input: Option<String>,
    /// The session; absent = the only one.
    pub session: Option<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why; for people.
    pub because: String,
}
