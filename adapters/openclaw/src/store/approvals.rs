//! Requests for approval: rows that change before what they are about can begin.

use palog::envelope::{ActorKind, Draft};
use palog::events::{ActionProposed, ApprovalEnded, ApprovalKind, ApprovalOutcome, ApprovalRequested, Data, Scope};
use palog::json::{Raw, Str, Value};
use palog::writer::WriteError;
use palog_adapter::Log;
use palog_adapter::sqlite::Row;
use serde::Deserialize;

use crate::record::{lenient, text};
use crate::times::of_milliseconds;

/// Name of the source that rows of the state database are kept in.
pub(crate) const STATE: &str = "state";

/// The action that a request is about.
#[derive(Clone, Debug)]
pub(crate) struct About {
    action: String,
    digest: String,
    /// The command that it runs, if it runs one.
    command: Option<String>,
}

impl About {
    /// What a request has to know of a call.
    pub(crate) fn of(call: &ActionProposed<'_>) -> Self {
        #[derive(Deserialize)]
        struct Arguments {
            command: Option<String>,
        }
        let arguments = match &call.args {
            Value::Inline(raw) => serde_json::from_str::<Arguments>(raw.get()).ok(),
            _ => None,
        };
        About {
            action: call.action.to_string(),
            digest: call.args_digest.to_string(),
            command: arguments.and_then(|a| a.command),
        }
    }
}

/// What a request shows to those who are asked.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
struct Presentation<'a> {
    #[serde(default, deserialize_with = "text")]
    command_text: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    allowed_decisions: Option<Vec<String>>,
}

/// A row of `operator_approvals`.
#[derive(Clone, Debug)]
pub(crate) struct Approval {
    pub(crate) row: Row,
}

/// The requests of one session that no call was found for so far.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    waiting: Vec<Approval>,
    calls: Vec<String>,
}

impl Approvals {
    /// Takes a request in.
    pub(crate) fn push(&mut self, row: Row) {
        self.calls.extend(row.text("source_tool_call_id").map(str::to_owned));
        self.waiting.push(Approval { row });
    }

    /// Whether there is, or was, a request about the call.
    pub(crate) fn has(&self, call: &str) -> bool {
        self.calls.iter().any(|known| known == call)
    }

    /// The requests about a call of the run `run`.
    pub(crate) fn take(&mut self, call: &str, run: Option<&str>) -> Vec<Approval> {
        let is_about = |approval: &mut Approval| {
            let of_run = approval.row.text("source_run_id");
            approval.row.text("source_tool_call_id") == Some(call)
                && (run.is_none() || of_run.is_none() || of_run == run)
        };
        self.waiting.extract_if(.., is_about).collect()
    }

    /// Those that are about no call that came.
    pub(crate) fn rest(&mut self) -> Vec<Approval> {
        std::mem::take(&mut self.waiting)
    }
}

impl Approval {
    /// Writes the request, and how it ended.
    pub(crate) fn write(&self, log: &mut Log, about: Option<&About>) -> Result<(), WriteError> {
        let row = &self.row;
        let presented: Presentation<'_> =
            row.text("presentation_json").and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
        let id = row.text("approval_id").unwrap_or_default();
        let action = about.map(|a| a.action.as_str()).or(row.text("source_tool_call_id"));
        // The arguments are those of the call as far as both show the same command.
        let same = about.filter(|a| a.command.is_some() && a.command.as_deref() == presented.command_text.as_deref());
        let requested = ApprovalRequested {
            approval: Some(id.into()),
            kind: ApprovalKind::Permission,
            action: action.map(Str::from),
            args_digest: same.map(|a| a.digest.as_str().into()),
            options: presented.allowed_decisions.as_ref().map(Raw::of),
            expires: row.integer("expires_at_ms").and_then(of_milliseconds),
            join: None,
        };
        self.append(log, 0, ActorKind::Harness, "created_at_ms", requested)?;
        let (outcome, actor) = match (row.text("status"), row.text("terminal_reason")) {
            (Some("allowed"), _) => (ApprovalOutcome::Granted, ActorKind::User),
            (Some("denied"), Some("user")) => (ApprovalOutcome::Denied, ActorKind::User),
            (Some("denied"), _) => (ApprovalOutcome::Denied, ActorKind::Policy),
            (Some("expired"), _) => (ApprovalOutcome::Expired, ActorKind::Harness),
            (Some("cancelled"), _) => (ApprovalOutcome::Withdrawn, ActorKind::Harness),
            _ => return Ok(()),
        };
        let scope = match row.text("decision") {
            Some("allow-once") => Some(Scope::Once),
            Some("allow-always") => Some(Scope::Rule),
            _ => None,
        };
        let ended = ApprovalEnded {
            approval: Some(id.into()),
            action: action.map(Str::from),
            outcome,
            scope,
            args: None,
            input: None,
            reason: row.text("terminal_reason").map(Value::from),
            join: None,
        };
        self.append(log, 1, actor, "resolved_at_ms", ended)
    }

    fn append<'d>(
        &self,
        log: &mut Log,
        ordinal: u32,
        actor: ActorKind,
        time: &str,
        data: impl Into<Data<'d>>,
    ) -> Result<(), WriteError> {
        let id = self.row.event(&log.ids(STATE), ordinal).hex();
        let mut draft = Draft::new(id, actor, data);
        draft.time = self.row.integer(time).and_then(of_milliseconds);
        draft.src.push(self.row.src(STATE, None));
        log.append(&mut draft)
    }
}
