//! What the contexts for all providers have in common: where they come from, and what they lack.

use serde::Serialize;

use crate::events::Part;
use crate::project::content::LeftOutReason;

/// What a client puts in place of the content of a result that was pruned.
pub(super) const CLEARED: &str = "[Old tool result content cleared]";

/// A call that the context holds without a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unresolved {
    /// The action.
    pub action: String,
    /// The vendor's id of the call, as it stands in the messages.
    pub call: String,
    /// The message that holds it; absent where only a window holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
}

/// Something that the model saw and that the messages lack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// The event; absent where only a window holds it, or nothing names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The other log that this one goes on from: all that the model saw there, up to the event. Absent = this log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// The type of the part; absent = the whole event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The action that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Why.
    pub reason: LeftOutReason,
}

/// The events that a context was made from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Path {
    /// Ids of the message events, in the order in which the model saw them.
    pub events: Vec<String>,
    /// Those of them whose place is known by the order of the log only: the parent that they name is missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inferred: Vec<String>,
}

/// The vendor's id of a call: the action without the `#n` that tells reused ids apart (spec 03, "Action").
#[must_use]
pub fn call_id(action: &str) -> &str {
    match action.rsplit_once('#') {
        Some((id, n)) if !id.is_empty() && !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) => id,
        _ => action,
    }
}

/// The type of a part.
pub(super) fn word(part: &Part<'_>) -> &'static str {
    match part {
        Part::Text { .. } => "text",
        Part::Reasoning { .. } => "reasoning",
        Part::Image { .. } => "image",
        Part::File { .. } => "file",
        Part::Json { .. } => "json",
        Part::Action { .. } => "action",
        Part::Result { .. } => "result",
        Part::Opaque(_) => "opaque",
    }
}
