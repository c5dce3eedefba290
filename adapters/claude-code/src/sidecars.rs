//! What lies beside a transcript: kept as it is, and told in the closing block of the log.

use std::fs;
use std::path::Path;

use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog::envelope::Time;
use palog::events::ObservationRecorded;
use palog::json::{Raw, Value};
use palog_adapter::{Document, ImportError, Report, Transcript};
use serde::Deserialize;

use crate::conversation::Conversation;
use crate::history;
use crate::members::LONGEST;
use crate::paths::{Role, Sidecar, Unread};

/// Makes spilled output known to the conversation before its transcript is read.
pub(crate) fn offer_files(conversation: &mut Conversation, sidecars: &[&Sidecar]) -> Result<(), ImportError> {
    for sidecar in sidecars.iter().filter(|s| s.unread.is_none() && s.source.starts_with("tool-results/")) {
        // What cannot be read is reported when it is kept.
        let Ok(bytes) = fs::read(&sidecar.path) else { continue };
        let media =
            if std::str::from_utf8(&bytes).is_ok() { "text/plain; charset=utf-8" } else { "application/octet-stream" };
        if let Some(blob) = conversation.out.log.blob(&bytes, media, Some(&sidecar.source))? {
            conversation.spilled.insert(sidecar.source.clone(), blob);
        }
    }
    Ok(())
}

/// Keeps each file and tells of it.
pub(crate) fn write(
    out: &mut Transcript,
    sidecars: &[&Sidecar],
    place: Option<&Path>,
    report: &mut Report,
) -> Result<(), ImportError> {
    for sidecar in sidecars {
        if let Some(unread) = &sidecar.unread {
            let (code, why) = match unread {
                Unread::Link => (Code::NotFollowed, "it is a link".into()),
                Unread::NoFile => (Code::NotFollowed, "it is neither a file nor a folder".into()),
                Unread::Error(why) => (Code::Unreadable, why.clone()),
            };
            let place = Place { input: Some(sidecar.path.display().to_string()), ..Place::default() };
            out.log.diagnostics.push(Diagnostic::new(code, Severity::Error, place).because(why));
            continue;
        }
        let told = if sidecar.role == Role::History {
            history::write(out, sidecar, place)?
        } else {
            let format = format!("claude-code.{}", format(sidecar.role));
            let document = Document {
                source: &sidecar.source,
                locator: &sidecar.locator,
                path: &sidecar.path,
                format: &format,
                json: matches!(sidecar.role, Role::AgentMeta | Role::Status | Role::Task),
            };
            out.log.document(&document, place, |log, raw| match sidecar.role {
                Role::Status => Some(status(raw, &sidecar.source).into()),
                Role::Task => Some(task(raw, &sidecar.source).into()),
                _ => Some(log.kept("agent-meta", raw)),
            })?
        };
        report.inputs.extend(told);
    }
    Ok(())
}

/// The name of a role in reports.
fn format(role: Role) -> &'static str {
    match role {
        Role::Agent => "jsonl",
        Role::AgentMeta => "meta",
        Role::File => "file",
        Role::Status => "status",
        Role::Task => "task",
        Role::FileHistory => "file-history",
        Role::History => "history",
    }
}

/// What the registry of processes says of the session. The file lags behind what happens, so it never decides anything.
fn status<'d>(raw: Raw<'d>, source: &str) -> ObservationRecorded<'d> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Status {
        status: Option<String>,
        status_updated_at: Option<i64>,
        updated_at: Option<i64>,
        started_at: Option<i64>,
    }
    let status: Status = serde_json::from_str(raw.get()).unwrap_or_default();
    let (fact, at) = match status.status.filter(|fact| fact.len() <= LONGEST) {
        Some(fact) => (fact, status.status_updated_at.or(status.updated_at)),
        None => ("registered".into(), status.updated_at.or(status.started_at)),
    };
    ObservationRecorded {
        fact: fact.into(),
        subject: None,
        as_of: at.and_then(milliseconds),
        source: source.to_owned().into(),
        detail: Some(Value::Inline(raw)),
    }
}

/// The state of a task in the client's task list.
fn task<'d>(raw: Raw<'d>, source: &str) -> ObservationRecorded<'d> {
    ObservationRecorded {
        fact: "task".into(),
        subject: None,
        as_of: None,
        source: source.to_owned().into(),
        detail: Some(Value::Inline(raw)),
    }
}

/// A time from milliseconds since 1970.
fn milliseconds(at: i64) -> Option<Time<'static>> {
    Time::parse(jiff::Timestamp::from_millisecond(at).ok()?.to_string())
}
