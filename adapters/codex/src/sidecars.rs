//! Lines of a session in files that all sessions share: kept as they are, and told in the closing block of the log.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog::envelope::{ActorKind, Draft, SrcHow};
use palog::events::{ConfigSet, Data, SourceOrder};
use palog::json::Raw;
use palog_adapter::ids::Native;
use palog_adapter::source::src;
use palog_adapter::{ImportError, InputReport, Log, Report, SourceEnd, Span};
use serde::Deserialize;

use crate::paths::{Role, Sidecar};
use crate::rollout::EMPTY_CONFIG;

#[derive(Deserialize)]
struct Entry {
    /// Of the index.
    id: Option<String>,
    thread_name: Option<String>,
    /// Of the history.
    session_id: Option<String>,
}

/// Keeps the session's lines of each file and tells of them.
pub(crate) fn write(
    log: &mut Log,
    sidecars: &[Sidecar],
    place: Option<&Path>,
    report: &mut Report,
) -> Result<(), ImportError> {
    for sidecar in sidecars {
        report.inputs.extend(shared(log, sidecar, place)?);
    }
    Ok(())
}

fn shared(log: &mut Log, sidecar: &Sidecar, place: Option<&Path>) -> Result<Option<InputReport>, ImportError> {
    let path = sidecar.path.display().to_string();
    let bytes = match fs::read(&sidecar.path) {
        Ok(bytes) => bytes,
        Err(error) => {
            let place = Place { input: Some(path), ..Place::default() };
            let unreadable = Diagnostic::new(Code::Unreadable, Severity::Error, place).because(error.to_string());
            log.diagnostics.push(unreadable);
            return Ok(None);
        }
    };
    let format = match sidecar.role {
        Role::Index => "codex.index",
        Role::History => "codex.history",
    };
    let mut input = InputReport { path, format: format.into(), ..InputReport::default() };
    let is_own = |line: &[u8]| {
        serde_json::from_slice::<Entry>(line)
            .is_ok_and(|e| [e.id, e.session_id].iter().flatten().any(|id| id == log.session()))
    };
    let own: Vec<u8> = bytes.split_inclusive(|b| *b == b'\n').filter(|line| is_own(line)).flatten().copied().collect();
    if own.is_empty() {
        return Ok(Some(input));
    }
    log.open_source(sidecar.source, &sidecar.locator, &[], SourceOrder::Source, place.is_some())?;
    if let Some(place) = place {
        let copy = File::create(place.join(sidecar.source)).and_then(|mut f| f.write_all(&own));
        copy.map_err(|e| ImportError::Write(e.into()))?;
    }
    let ids = log.ids(sidecar.source);
    let mut at = 0;
    for line in own.split_inclusive(|b| *b == b'\n') {
        let text = std::str::from_utf8(line).unwrap_or_default().trim_end();
        input.lines += 1;
        if let Ok(raw) = Raw::parse(text) {
            let span = Span { at, len: text.len() as u64, line: input.lines };
            let name = serde_json::from_str::<Entry>(text).ok().and_then(|e| e.thread_name);
            let (data, how): (Data<'_>, _) = match (sidecar.role, name) {
                // The file is only ever added to: the last name counts.
                (Role::Index, Some(name)) => (ConfigSet { title: Some(name.into()), ..EMPTY_CONFIG }.into(), None),
                _ => (log.kept(format.trim_start_matches("codex."), raw), Some(SrcHow::Opaque)),
            };
            let mut draft = Draft::new(ids.event(Native::Offset(at), 0).hex(), ActorKind::Importer, data);
            draft.ignorable = matches!(draft.data, Data::Kept(..)).then_some(true);
            input.kept += u64::from(draft.ignorable.is_some());
            draft.src.push(src(sidecar.source, span, how));
            log.append(&mut draft)?;
            input.records += 1;
        }
        at += line.len() as u64;
    }
    log.close_source(sidecar.source, &SourceEnd::of(&own, input.records))?;
    Ok(Some(input))
}
