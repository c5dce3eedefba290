//! What lies beside a transcript: kept as it is, and told in the closing block of the log.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use palog::blob::digest;
use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog::envelope::{ActorKind, Draft, SrcHow, Time};
use palog::events::{Data, KeptRecord, ObservationRecorded, SourceOrder};
use palog::json::{Raw, Value};
use serde::Deserialize;

use crate::conversation::{Conversation, Span, note, src};
use crate::ids::{Ids, Native};
use crate::import::{SourceEnd, close_source, keep, open_source};
use crate::paths::{Role, Sidecar};
use crate::report::{ImportError, InputReport, Report};

/// Makes spilled output known to the conversation before its transcript is read.
pub(crate) fn offer_files(conversation: &mut Conversation, sidecars: &[&Sidecar]) -> Result<(), ImportError> {
    for sidecar in sidecars.iter().filter(|s| s.role == Role::File && s.source.starts_with("tool-results/")) {
        // What cannot be read is reported when it is kept.
        let Ok(bytes) = fs::read(&sidecar.path) else { continue };
        let media = if std::str::from_utf8(&bytes).is_ok() { "text/plain; charset=utf-8" } else { "application/octet-stream" };
        if let Some(blob) = conversation.blob(&bytes, media, &sidecar.source)? {
            conversation.spilled.insert(sidecar.source.clone(), blob);
        }
    }
    Ok(())
}

/// Keeps each file and tells of it.
pub(crate) fn write(
    conversation: &mut Conversation,
    session: &str,
    sidecars: &[&Sidecar],
    place: Option<&Path>,
    report: &mut Report,
) -> Result<(), ImportError> {
    for sidecar in sidecars {
        let path = sidecar.path.display().to_string();
        let bytes = match fs::read(&sidecar.path) {
            Ok(bytes) => bytes,
            Err(error) => {
                let place = Place { input: Some(path), ..Place::default() };
                let unreadable = Diagnostic::new(Code::Unreadable, Severity::Error, place).because(error.to_string());
                conversation.diagnostics.push(unreadable);
                continue;
            }
        };
        let mut input = InputReport { path, format: format!("claude-code.{}", format(sidecar.role)), ..InputReport::default() };
        if sidecar.role == Role::History {
            history(conversation, session, sidecar, &bytes, place, &mut input)?;
        } else {
            if let Some(place) = place {
                let mut file = File::open(&sidecar.path)
                    .map_err(|error| ImportError::Read { path: sidecar.path.clone(), error })?;
                let mut kept = keep(place, &sidecar.source, &mut file, Some(&sidecar.path))?;
                let mut copy = Vec::with_capacity(bytes.len());
                kept.read_to_end(&mut copy).map_err(|error| ImportError::Read { path: sidecar.path.clone(), error })?;
                document(conversation, session, sidecar, &copy, true, &mut input)?;
            } else {
                document(conversation, session, sidecar, &bytes, false, &mut input)?;
            }
        }
        report.inputs.push(input);
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

/// A file that is one record: a JSON document, or content.
fn document(
    conversation: &mut Conversation,
    session: &str,
    sidecar: &Sidecar,
    bytes: &[u8],
    kept: bool,
    input: &mut InputReport,
) -> Result<(), ImportError> {
    let source = &sidecar.source;
    open_source(conversation, session, source, &sidecar.locator, &[], SourceOrder::Source, kept)?;
    let json = matches!(sidecar.role, Role::AgentMeta | Role::Status | Role::Task);
    let text = std::str::from_utf8(bytes).ok().filter(|_| json).map(str::trim);
    let raw = text.and_then(|t| Raw::parse(t).ok().map(|raw| (raw, t)));
    let (at, len) = match &raw {
        Some((_, text)) => (bytes.len() - bytes.trim_ascii_start().len(), text.len()),
        None => (0, bytes.len()),
    };
    let span = Span { at: at as u64, len: len as u64, line: 1 };
    let id = Ids::new(session, source).event(Native::Offset(span.at), 0).hex();
    let told: Option<Data<'_>> = match (&raw, sidecar.role) {
        (Some((raw, _)), Role::Status) => Some(status(raw, source).into()),
        (Some((raw, _)), Role::Task) => Some(task(raw, source).into()),
        (Some((raw, _)), _) => Some(kept_record("agent-meta", raw)),
        (None, _) if json && !bytes.is_empty() => {
            let place = Place { input: Some(input.path.clone()), ..Place::default() };
            conversation.diagnostics.push(Diagnostic::new(Code::UnexpectedShape, Severity::Warning, place));
            None
        }
        (None, _) => None,
    };
    let data = told.unwrap_or_else(|| {
        let note = palog::events::NoteAdded {
            source: Some(source.as_str().into()),
            len: Some(len as u64),
            digest: Some(digest(bytes).into()),
            ..note("file")
        };
        note.into()
    });
    let mut draft = Draft::new(id, ActorKind::Importer, data);
    if matches!(draft.data, Data::Kept(..)) {
        draft.ignorable = Some(true);
    }
    draft.src.push(src(source, span, raw.is_none().then_some(SrcHow::Opaque)));
    conversation.append(&mut draft)?;
    input.records = u64::from(!bytes.is_empty());
    input.lines = bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()).count() as u64;
    let end = SourceEnd {
        digest: digest(bytes),
        len: bytes.len() as u64,
        records: input.records,
        terminated: bytes.ends_with(b"\n"),
    };
    Ok(close_source(conversation, session, source, &end)?)
}

fn kept_record<'d>(kind: &str, raw: &Raw<'d>) -> Data<'d> {
    Data::Kept(format!("x.com.anthropic.claude-code/{kind}").into(), KeptRecord { record: Value::Inline(raw.clone()) })
}

/// What the registry of processes says of the session. The file lags behind what happens, so it never decides anything.
fn status<'d>(raw: &Raw<'d>, source: &str) -> ObservationRecorded<'d> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Status {
        status: Option<String>,
        status_updated_at: Option<i64>,
        updated_at: Option<i64>,
        started_at: Option<i64>,
    }
    let status: Status = serde_json::from_str(raw.get()).unwrap_or_default();
    let (fact, at) = match status.status {
        Some(fact) => (fact, status.status_updated_at.or(status.updated_at)),
        None => ("registered".into(), status.updated_at.or(status.started_at)),
    };
    ObservationRecorded {
        fact: fact.into(),
        subject: None,
        as_of: at.and_then(milliseconds),
        source: source.to_owned().into(),
        detail: Some(Value::Inline(raw.clone())),
    }
}

/// The state of a task in the client's task list.
fn task<'d>(raw: &Raw<'d>, source: &str) -> ObservationRecorded<'d> {
    ObservationRecorded {
        fact: "task".into(),
        subject: None,
        as_of: None,
        source: source.to_owned().into(),
        detail: Some(Value::Inline(raw.clone())),
    }
}

/// A time from milliseconds since 1970.
fn milliseconds(at: i64) -> Option<Time<'static>> {
    Time::parse(jiff::Timestamp::from_millisecond(at).ok()?.to_string())
}

/// The session's lines of a file that all sessions share.
fn history(
    conversation: &mut Conversation,
    session: &str,
    sidecar: &Sidecar,
    bytes: &[u8],
    place: Option<&Path>,
    input: &mut InputReport,
) -> Result<(), ImportError> {
    #[derive(Deserialize)]
    struct Line {
        #[serde(rename = "sessionId")]
        session: String,
    }
    let own: Vec<u8> = bytes
        .split_inclusive(|b| *b == b'\n')
        .filter(|line| serde_json::from_slice::<Line>(line).is_ok_and(|l| l.session == session))
        .flatten()
        .copied()
        .collect();
    if own.is_empty() {
        return Ok(());
    }
    let source = &sidecar.source;
    open_source(conversation, session, source, &sidecar.locator, &[], SourceOrder::Source, place.is_some())?;
    if let Some(place) = place {
        let path = place.join(source);
        File::create(&path).and_then(|mut f| f.write_all(&own)).map_err(|e| ImportError::Write(e.into()))?;
    }
    let ids = Ids::new(session, source);
    let mut at = 0;
    for line in own.split_inclusive(|b| *b == b'\n') {
        let text = std::str::from_utf8(line).unwrap_or_default().trim_end();
        if let Ok(raw) = Raw::parse(text) {
            let span = Span { at, len: text.len() as u64, line: input.lines + 1 };
            let id = ids.event(Native::Offset(at), 0).hex();
            let mut draft = Draft::new(id, ActorKind::Importer, kept_record("history", &raw));
            draft.ignorable = Some(true);
            draft.src.push(src(source, span, Some(SrcHow::Opaque)));
            conversation.append(&mut draft)?;
            input.records += 1;
            input.kept += 1;
        }
        input.lines += 1;
        at += line.len() as u64;
    }
    let end = SourceEnd {
        digest: digest(&own),
        len: own.len() as u64,
        records: input.records,
        terminated: own.ends_with(b"\n"),
    };
    Ok(close_source(conversation, session, source, &end)?)
}
