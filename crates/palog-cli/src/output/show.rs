//! The items of `palog show`.

use std::io::{self, Write};

use palog::cursor::Cursor;
use palog::envelope::{Actor, Time};
use palog::events::{Applied, ApprovalOutcome, Data, Outcome, Reconciled};
use palog::project::{Fate, Item, Told};
use serde::Serialize;

use crate::render::text::clean_json;

/// One item of a transcript.
#[derive(Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct Entry<'a> {
    /// Position of its event in the log.
    seq: u64,
    /// Id of its event.
    id: &'a str,
    /// Type of its event.
    r#type: &'a str,
    /// When it happened; `null` = the source had no time.
    time: Option<&'a Time<'a>>,
    /// Who did it.
    actor: &'a Actor<'a>,
    /// Whether it belongs to the branch that went on.
    live: bool,
    /// What became of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    fate: Option<CallFate>,
    /// Its place in the log, to go on from; where a log is followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    /// The payload of its event.
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    data: &'a Data<'a>,
}

/// A session as people read it; written item by item, see [`Overview::json_head`].
#[cfg(any(test, feature = "schema"))]
#[derive(schemars::JsonSchema, Serialize)]
pub(crate) struct Transcript<'a> {
    /// Which session it is.
    #[serde(flatten)]
    overview: crate::render::overview::Overview,
    /// What is in it, in the order of the log.
    items: Vec<Entry<'a>>,
    /// The place of the last event, `SEQ:SHA256`: what `--after` takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

/// What the events of the whole log tell of a call.
#[derive(Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
struct CallFate {
    /// Whether its start is recorded.
    started: bool,
    /// Whether a person or a policy was asked for leave.
    asked: bool,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    /// Whether its effect took place, as its end says.
    #[serde(skip_serializing_if = "Option::is_none")]
    applied: Option<Applied>,
    /// What the newest reconciliation found.
    #[serde(skip_serializing_if = "Option::is_none")]
    reconciled: Option<Reconciled>,
    /// How the newest request for leave ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<ApprovalOutcome>,
    /// What the model was told of it.
    told: palog::state::Told,
}

impl From<Fate> for CallFate {
    fn from(fate: Fate) -> Self {
        CallFate {
            started: fate.started,
            asked: fate.asked,
            outcome: fate.ended.map(|(outcome, _)| outcome),
            applied: fate.ended.map(|(_, applied)| applied),
            reconciled: fate.reconciled,
            approval: fate.approval,
            told: match fate.told {
                None => palog::state::Told::Nothing,
                Some(Told::Running) => palog::state::Told::Partial,
                Some(_) => palog::state::Told::Result,
            },
        }
    }
}

impl<'a> Entry<'a> {
    /// The entry of an item.
    pub(crate) fn new(item: &'a Item<'a>, cursor: Option<Cursor>) -> Self {
        let event = item.event;
        Entry {
            seq: event.seq,
            id: &event.id,
            r#type: &event.kind,
            time: event.time.as_ref(),
            actor: &event.actor,
            live: item.live,
            fate: item.fate.map(CallFate::from),
            cursor: cursor.map(|cursor| cursor.to_string()),
            data: item.data,
        }
    }

    /// Writes it as one line behind `before`.
    pub(crate) fn write(&self, out: &mut dyn Write, before: &str) -> io::Result<()> {
        out.write_all(before.as_bytes())?;
        out.write_all(clean_json(&serde_json::to_string(self)?).as_bytes())
    }
}
