//! The items of `palog show`.

use std::io::{self, Write};

use palog::envelope::{Actor, Time};
use palog::events::Data;
use palog::project::{Fate, Item, Told};
use serde::Serialize;

use crate::render::text::clean_json;

/// One item of a transcript.
#[derive(Serialize)]
pub(crate) struct Entry<'a> {
    seq: u64,
    id: &'a str,
    r#type: &'a str,
    time: Option<&'a Time<'a>>,
    actor: &'a Actor<'a>,
    /// Whether it belongs to the branch that went on.
    live: bool,
    /// What became of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    fate: Option<CallFate>,
    data: &'a Data<'a>,
}

/// What the events of the whole log tell of a call.
#[derive(Serialize)]
struct CallFate {
    started: bool,
    asked: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    applied: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reconciled: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<&'static str>,
    told: &'static str,
}

impl From<Fate> for CallFate {
    fn from(fate: Fate) -> Self {
        CallFate {
            started: fate.started,
            asked: fate.asked,
            outcome: fate.ended.map(|(outcome, _)| outcome.word()),
            applied: fate.ended.map(|(_, applied)| applied.word()),
            reconciled: fate.reconciled.map(palog::events::Reconciled::word),
            approval: fate.approval.map(palog::events::ApprovalOutcome::word),
            told: match fate.told {
                None => "none",
                Some(Told::Running) => "partial",
                Some(_) => "result",
            },
        }
    }
}

impl<'a> Entry<'a> {
    /// The entry of an item.
    pub(crate) fn new(item: &'a Item<'a>) -> Self {
        let event = item.event;
        Entry {
            seq: event.seq,
            id: &event.id,
            r#type: &event.kind,
            time: event.time.as_ref(),
            actor: &event.actor,
            live: item.live,
            fate: item.fate.map(CallFate::from),
            data: item.data,
        }
    }

    /// Writes it as one line behind `before`.
    pub(crate) fn write(&self, out: &mut dyn Write, before: &str) -> io::Result<()> {
        out.write_all(before.as_bytes())?;
        out.write_all(clean_json(&serde_json::to_string(self)?).as_bytes())
    }
}
