//! What rows beside the entries tell: deliveries, children, waiting inputs, and what was seen of the gateway.

use std::collections::HashSet;

use palog::envelope::ActorKind;
use palog::events::{
    ActionEnded, ActionKind, ActionProposed, ActionStarted, Applied, ChildEnded, ChildKind, ChildLink, ChildSpawned,
    Effect, EffectClass, InputEnded, InputOutcome, InputQueued, ObservationRecorded, Outcome, Part,
};
use palog::json::{Raw, Str, Value};
use palog::writer::{WriteError, args_digest};
use palog_adapter::sqlite::Row;
use palog_adapter::{Log, ids};
use serde::Deserialize;

use super::approvals::STATE;
use super::import::STORE;
use super::input::{columns, tell};
use crate::FORMAT;
use crate::conversation::Conversation;
use crate::record::{lenient, text};
use crate::times::of_milliseconds;

/// Rows that have a time, in the order of their times.
#[derive(Debug, Default)]
pub(super) struct Work {
    waiting: Vec<Item>,
    proposed: HashSet<String>,
    children: HashSet<String>,
}

#[derive(Debug)]
struct Item {
    at: i64,
    source: &'static str,
    row: Row,
    /// Native id of the child that the row is about.
    child: Option<String>,
}

impl Work {
    /// Takes a row in.
    pub(super) fn push(&mut self, time: &str, source: &'static str, row: Row, child: Option<String>) {
        let at = row.integer(time).unwrap_or(i64::MAX);
        self.waiting.push(Item { at, source, row, child });
        self.waiting.sort_by_key(|item| item.at);
    }

    /// Writes what happened before `time`.
    pub(super) fn write_until(&mut self, time: i64, conversation: &mut Conversation) -> Result<(), WriteError> {
        let due = self.waiting.partition_point(|item| item.at < time || time == i64::MAX);
        for item in self.waiting.drain(..due).collect::<Vec<_>>() {
            let log = &mut conversation.out.log;
            match (item.row.table(), &item.child) {
                ("conversation_deliveries", _) => self.operation(log, &item.row)?,
                ("delivery_queue_entries", _) => self.queued(log, &item.row)?,
                (_, Some(child)) => self.child(log, &item, child)?,
                _ => observe(log, &item.row)?,
            }
        }
        Ok(())
    }

    /// Proposes a delivery, unless another row did.
    fn propose(
        &mut self,
        log: &mut Log,
        (source, row, time): (&str, &Row, &str),
        action: &str,
        args: Raw<'_>,
        target: Option<String>,
    ) -> Result<(), WriteError> {
        if !self.proposed.insert(action.to_owned()) {
            return Ok(());
        }
        let effect =
            Effect { class: Some(EffectClass::WriteRemote), idempotency_key: None, target: target.map(Str::from) };
        let proposed = ActionProposed {
            action: action.into(),
            name: "deliver".into(),
            args_digest: args_digest(&args).into(),
            args: Value::Inline(args),
            kind: Some(ActionKind::Delivery),
            effect: Some(effect),
            compensates: None,
        };
        tell(log, source, row, 0, ActorKind::Harness, time, proposed)
    }

    /// A delivery, as the conversation with a channel tells it.
    fn operation(&mut self, log: &mut Log, row: &Row) -> Result<(), WriteError> {
        let id = row.text("queue_id").or(row.text("operation_id")).unwrap_or_default();
        let action = format!("delivery/{id}");
        let told = ["operation_kind", "conversation_id", "message_hash"];
        let args: serde_json::Map<String, serde_json::Value> =
            told.iter().filter_map(|name| Some(((*name).to_owned(), row.text(name)?.into()))).collect();
        let target = row.text("conversation_id").map(str::to_owned);
        self.propose(log, (STORE, row, "created_at"), &action, Raw::of(&args), target)?;
        let (outcome, applied) = match row.text("status") {
            Some("sent" | "replied") => (Outcome::Succeeded, Applied::Yes),
            Some("rejected") => (Outcome::Failed, Applied::No),
            Some("suppressed") => (Outcome::Cancelled, Applied::No),
            // It was handed to the channel, and nobody knows what the channel did.
            Some("unknown") => return started(log, STORE, row, &action, "updated_at"),
            _ => return Ok(()),
        };
        let receipt = ["platform_message_id", "reply_message_id"];
        let receipt: serde_json::Map<String, serde_json::Value> =
            receipt.iter().filter_map(|name| Some(((*name).to_owned(), row.text(name)?.into()))).collect();
        let receipt = (!receipt.is_empty()).then(|| Value::Inline(Raw::of(&receipt)));
        let error = row.text("rejection_error").map(Value::from);
        ended(log, STORE, row, &action, (outcome, applied), receipt, error)
    }

    /// A delivery in the queue of the gateway.
    fn queued(&mut self, log: &mut Log, row: &Row) -> Result<(), WriteError> {
        let action = format!("delivery/{}", row.text("id").unwrap_or_default());
        let json = row.text("entry_json").unwrap_or("null");
        let args = Raw::parse(json).map_or_else(|_| Raw::string(json), Raw::into_owned);
        let target = row.text("channel").zip(row.text("target")).map(|(channel, target)| format!("{channel}:{target}"));
        self.propose(log, (STATE, row, "enqueued_at"), &action, args, target)?;
        // Marked before anything is sent, and taken back where it provably was not.
        let began = row.integer("platform_send_started_at").is_some() || row.text("recovery_state").is_some();
        let done = row.text("status") == Some("completed");
        if began && !done {
            started(log, STATE, row, &action, "platform_send_started_at")?;
        }
        match row.text("status") {
            Some("completed") => ended(log, STATE, row, &action, (Outcome::Succeeded, Applied::Yes), None, None),
            Some("failed") => {
                let applied = if began { Applied::Unknown } else { Applied::No };
                let error = row.text("last_error").map(Value::from);
                ended(log, STATE, row, &action, (Outcome::Failed, applied), None, error)
            }
            _ => Ok(()),
        }
    }

    /// A session that this one started, or that was forked from it.
    fn child(&mut self, log: &mut Log, item: &Item, child: &str) -> Result<(), WriteError> {
        let row = &item.row;
        if !self.children.insert(child.to_owned()) {
            return observe(log, row);
        }
        let is_fork = row.text("fork_source_session_id").is_some() && row.text("spawned_by").is_none();
        let id = ids::log(&FORMAT, child);
        let spawned = ChildSpawned {
            child: id.clone().into(),
            session: child.to_owned().into(),
            action: None,
            kind: if is_fork { ChildKind::Fork } else { ChildKind::Subagent },
            // The row names both sessions.
            link: ChildLink::Explicit,
        };
        tell(log, item.source, row, 0, ActorKind::Harness, "created_at", spawned)?;
        if let Some((status, time)) = end_of(row) {
            let ended = ChildEnded { child: id.into(), status: Some(status.into()), output: None };
            tell(log, item.source, row, 1, ActorKind::Agent, time, ended)?;
        }
        Ok(())
    }
}

/// How the run of a child ended, and the column with the time.
fn end_of(row: &Row) -> Option<(String, &'static str)> {
    #[derive(Deserialize)]
    #[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
    struct Run<'a> {
        #[serde(default, deserialize_with = "lenient")]
        ended_at: Option<i64>,
        #[serde(default, deserialize_with = "lenient")]
        outcome: Option<Ended<'a>>,
    }
    #[derive(Deserialize)]
    #[serde(bound(deserialize = "'de: 'a"))]
    struct Ended<'a> {
        #[serde(default, deserialize_with = "text")]
        status: Option<Str<'a>>,
    }
    if row.table() == "task_runs" {
        row.integer("ended_at")?;
        return Some((row.text("status")?.to_owned(), "ended_at"));
    }
    let run: Run<'_> = serde_json::from_str(row.text("payload_json")?).ok()?;
    run.ended_at?;
    let status = run.outcome.and_then(|o| o.status).map_or_else(|| "ended".to_owned(), |s| s.to_string());
    Some((status, ""))
}

fn started(log: &mut Log, source: &str, row: &Row, action: &str, time: &str) -> Result<(), WriteError> {
    let started = ActionStarted { action: action.into(), attempt: None, args_digest: None };
    tell(log, source, row, 1, ActorKind::Harness, time, started)
}

fn ended(
    log: &mut Log,
    source: &str,
    row: &Row,
    action: &str,
    (outcome, applied): (Outcome, Applied),
    receipt: Option<Value<'_>>,
    error: Option<Value<'_>>,
) -> Result<(), WriteError> {
    let action = action.into();
    let ended = ActionEnded { action, attempt: None, outcome, applied, output: None, receipt, error };
    tell(log, source, row, 2, ActorKind::Harness, "updated_at", ended)
}

/// An input that was accepted; `message` is the event that holds it, if one does.
pub(super) fn input(log: &mut Log, row: &Row, message: Option<String>) -> Result<(), WriteError> {
    #[derive(Deserialize)]
    #[serde(bound(deserialize = "'de: 'a"))]
    struct Message<'a> {
        content: Option<Raw<'a>>,
    }
    let json = row.text("message_json").unwrap_or("null");
    let content = serde_json::from_str::<Message<'_>>(json).ok().and_then(|m| m.content).filter(Raw::is_string);
    let part = match content {
        Some(text) => Part::Text { text: Value::Inline(text) },
        None => Part::Json { value: Raw::parse(json).map_or_else(|_| Value::from(json), Value::Inline) },
    };
    let input = row.text("input_id").unwrap_or_default().to_owned();
    let queued = InputQueued { input: input.clone().into(), parts: vec![part] };
    tell(log, STORE, row, 0, ActorKind::User, "accepted_at", queued)?;
    let (outcome, actor) = match (&message, row.text("state")) {
        (Some(_), _) => (InputOutcome::Taken, ActorKind::Harness),
        (None, Some("cancelled")) => (InputOutcome::Dropped, ActorKind::User),
        _ => return Ok(()),
    };
    let ended = InputEnded { input: input.into(), outcome, message: message.map(Str::from) };
    tell(log, STORE, row, 1, actor, "", ended)
}

/// What the client says of the session itself.
pub(super) fn status(log: &mut Log, node: &Row) -> Result<(), WriteError> {
    let Some(status) = node.text("status") else { return Ok(()) };
    let observed = ObservationRecorded {
        fact: if status == "running" { "busy" } else { "idle" }.into(),
        subject: None,
        as_of: node.integer("updated_at").and_then(of_milliseconds),
        source: STORE.into(),
        detail: Some(Value::Inline(Raw::of(&serde_json::json!({ "status": status })))),
    };
    tell(log, STORE, node, 1, ActorKind::Harness, "updated_at", observed)
}

/// What a row of the gateway's database showed when it was read. None of it says what is so now.
pub(super) fn observe(log: &mut Log, row: &Row) -> Result<(), WriteError> {
    let (fact, subject, time) = match row.table() {
        "state_leases" => ("lease", row.text("scope"), "heartbeat_at"),
        "cron_jobs" => ("scheduled_job", row.text("job_id"), "runtime_updated_at_ms"),
        "cron_run_receipts" => ("job_run", row.text("job_id"), "started_at_ms"),
        "gateway_boot_lifecycle" => ("gateway_start", None, "started_at_ms"),
        "task_runs" | "subagent_runs" | "session_nodes" => ("run", row.text("run_id"), "last_event_at"),
        _ => ("gateway_restart", None, "updated_at_ms"),
    };
    let source = if row.table() == "session_nodes" { STORE } else { STATE };
    let observed = ObservationRecorded {
        fact: fact.into(),
        subject: subject.map(Str::from),
        as_of: row.integer(time).and_then(of_milliseconds),
        source: source.into(),
        detail: Some(Value::Inline(columns(row))),
    };
    tell(log, source, row, 0, ActorKind::Harness, time, observed)
}
