//! The mark that an exporter leaves on a record of another vendor, in a member of its own: `palog`.
//!
//! Clients pass over members that they do not know. An importer reads the mark where the vendor's own words would be taken for
//! more, or for less, than the log knew: whether a call of another vendor's tool took effect cannot be told by this vendor's
//! texts. A mark stands at the record, where no output of a tool can reach.

use palog::envelope::ActorKind;
use palog::events::{ActionKind, Applied, EffectClass, Outcome};
use palog::json::Raw;
use serde::{Deserialize, Serialize};

/// What an exporter says of one record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mark {
    /// Where the session comes from; on its first record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<Moved>,
    /// No record of the session stands behind this one: the exporter made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synthesized: Option<Synthesized>,
    /// What the message is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// Who speaks in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<ActorKind>,
    /// What is known of the call in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallMark>,
    /// What is known of the end of the call whose result it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<EndMark>,
    /// The model was told that the call goes on in the background.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
}

/// Where a session comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// Id of the log.
    pub log: String,
    /// Its native session id.
    pub session: String,
    /// The program that ran it.
    pub agent: String,
}

/// Why an exporter made a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Synthesized {
    /// In place of a result that the log does not hold.
    NoResult,
    /// A copy of what a compaction left to the model.
    Window,
    /// For the screen, where another record says the same to the model or nothing may be said to it.
    Screen,
}

/// What is known of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallMark {
    /// What it can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<EffectClass>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ActionKind>,
}

/// What is known of the end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndMark {
    /// It ended.
    Ended {
        /// How.
        outcome: Outcome,
        /// Whether its effect took place.
        applied: Applied,
    },
    /// It was refused by a person.
    DeniedByUser,
    /// It was refused by a rule.
    DeniedByPolicy,
    /// That is not known.
    Open,
}

impl Mark {
    /// Reads the mark of a record; `None` where it has none, or one of another form.
    #[must_use]
    pub fn read(member: Option<&Raw<'_>>) -> Option<Mark> {
        serde_json::from_str(member?.get()).ok()
    }

    /// Whether it says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Mark::default()
    }
}
