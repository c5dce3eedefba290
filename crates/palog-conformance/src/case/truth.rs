//! What a truthful reader says of a genuine file: `expect/truth.json`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::case::Verdict;

/// `expect/truth.json`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Truth {
    /// The sessions, subagents among them.
    pub sessions: Vec<Session>,
    /// What was going on in the world; for people.
    pub really_happened: String,
}

/// What is true of one session.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// Its native id.
    pub session: String,
    /// Its main file.
    pub file: String,
    /// Its records.
    pub records: Tally,
    /// Inputs that a person or the calling program gave.
    #[serde(deserialize_with = "Option::deserialize")]
    pub typed_prompts: Option<u64>,
    /// Distinct responses of the model.
    #[serde(deserialize_with = "Option::deserialize")]
    pub model_responses: Option<u64>,
    /// What of this is copied from another session; absent = nothing.
    #[serde(default)]
    pub inherited: Family,
    /// The calls, in the order of their records.
    pub calls: Vec<Call>,
    /// What the input shows of questions and answers.
    pub approvals: Vec<Approval>,
    /// Tokens.
    #[serde(deserialize_with = "Option::deserialize")]
    pub usage: Option<Usage>,
    /// Its children.
    pub children: Vec<Child>,
    /// The session that it came out of.
    #[serde(deserialize_with = "Option::deserialize")]
    pub parent: Option<String>,
    /// Whether a record says that it is over.
    pub ended: Option<Value>,
    /// What makes it ready.
    pub pending: Vec<Work>,
    /// The answer.
    pub verdict: Verdict,
    /// Other answers that are as true.
    #[serde(default)]
    pub verdict_also: Vec<Verdict>,
    /// Why; for people.
    pub because: String,
    /// What is left open; for people.
    pub doubt: Option<String>,
}

impl Session {
    /// Whether a verdict, by its word on the wire, is true of the session.
    #[must_use]
    pub fn accepts(&self, verdict: &str) -> bool {
        self.verdict.word() == verdict || self.verdict_also.iter().any(|also| also.word() == verdict)
    }
}

/// How many records there are.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// In total.
    pub total: u64,
    /// By the vendor's type.
    pub by_type: BTreeMap<String, u64>,
}

/// What a session has in common with the one that it came out of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// Records.
    pub records: u64,
    /// Typed prompts.
    pub typed_prompts: u64,
    /// Responses of the model.
    pub model_responses: u64,
    /// Calls.
    pub calls: u64,
}

/// What is true of a call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Its id.
    pub call: String,
    /// Name of the tool.
    pub name: String,
    /// Its state.
    pub state: String,
    /// Whether it ran.
    pub applied: String,
    /// Whether it holds the session.
    pub blocking: bool,
    /// What the model was given.
    pub told: String,
    /// Why; for people.
    pub why: String,
    /// Whether its record is a copy.
    #[serde(default)]
    pub inherited: bool,
    /// Other states that are as true.
    #[serde(default)]
    pub also: Vec<String>,
}

/// What is true of a question.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The call.
    pub call: String,
    /// What became of it.
    pub status: String,
    /// What shows it; for people.
    pub evidence: String,
}

/// Token counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Input, without cache.
    pub input: Option<u64>,
    /// Output.
    pub output: Option<u64>,
    /// Read from a cache.
    pub cache_read: Option<u64>,
    /// Written to a cache.
    pub cache_write: Option<u64>,
    /// Spent on reasoning.
    pub reasoning: Option<u64>,
}

/// What is true of a child.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Child {
    /// Its native session id.
    pub session: String,
    /// What kind of child it is.
    pub kind: String,
    /// The call that made it.
    pub call: Option<String>,
    /// How surely it belongs there.
    pub link: String,
}

/// Something that waits.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// What it is.
    pub kind: String,
    /// What shows it; for people.
    pub evidence: String,
}
