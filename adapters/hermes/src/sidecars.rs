//! Entries of a session in files that all sessions share: kept as they are.

use std::fs;
use std::path::Path;

use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog::envelope::{ActorKind, Draft, SrcHow};
use palog::events::SourceOrder;
use palog::json::Raw;
use palog_adapter::ids::Native;
use palog_adapter::source::src;
use palog_adapter::{ImportError, InputReport, Report, SourceEnd, Span};
use serde::Deserialize;

use crate::conversation::Conversation;
use crate::paths::{Role, Sidecar};

/// `cron/jobs.json`.
#[derive(Deserialize)]
struct Jobs<'a> {
    #[serde(borrow)]
    jobs: Vec<Raw<'a>>,
}

#[derive(Deserialize)]
struct Entry {
    id: Option<String>,
    session_id: Option<String>,
}

/// Keeps the session's entries of each file and tells of them.
pub(crate) fn write(
    out: &mut Conversation,
    sidecars: &[Sidecar],
    place: Option<&Path>,
    report: &mut Report,
) -> Result<(), ImportError> {
    for sidecar in sidecars {
        let path = sidecar.path.display().to_string();
        let at = Place { input: Some(path.clone()), ..Place::default() };
        let text = match fs::read_to_string(&sidecar.path) {
            Ok(text) => text,
            Err(error) => {
                let unreadable = Diagnostic::new(Code::Unreadable, Severity::Error, at).because(error.to_string());
                out.log.diagnostics.push(unreadable);
                continue;
            }
        };
        let Some(entries) = entries(sidecar.role, &text) else {
            out.warn(Code::UnexpectedShape, at);
            continue;
        };
        report.inputs.push(keep(out, sidecar, path, &entries, place)?);
    }
    Ok(())
}

fn entries(role: Role, text: &str) -> Option<Vec<Raw<'_>>> {
    match role {
        Role::Jobs => serde_json::from_str::<Jobs<'_>>(text).ok().map(|jobs| jobs.jobs),
        Role::Gateway => {
            let entries: std::collections::BTreeMap<String, Raw<'_>> = serde_json::from_str(text).ok()?;
            Some(entries.into_values().collect())
        }
    }
}

fn keep(
    out: &mut Conversation,
    sidecar: &Sidecar,
    path: String,
    entries: &[Raw<'_>],
    place: Option<&Path>,
) -> Result<InputReport, ImportError> {
    let (source, kind) = match sidecar.role {
        Role::Jobs => ("jobs", "cron_job"),
        Role::Gateway => ("gateway", "gateway_session"),
    };
    let is_own = |raw: &&Raw<'_>| {
        serde_json::from_str::<Entry>(raw.get()).is_ok_and(|entry| match sidecar.role {
            Role::Jobs => entry.id.is_some_and(|id| out.jobs.contains(&id)),
            Role::Gateway => entry.session_id.as_deref() == Some(out.log.session()),
        })
    };
    let own: Vec<&Raw<'_>> = entries.iter().filter(is_own).collect();
    let records = own.len() as u64;
    let mut input =
        InputReport { path, format: format!("hermes.{source}"), records, kept: records, ..InputReport::default() };
    input.foreign = entries.len() as u64 - records;
    if own.is_empty() {
        return Ok(input);
    }
    out.log.open_source(source, &sidecar.locator, &[], SourceOrder::Source, place.is_some())?;
    let ids = out.log.ids(source);
    let mut kept = Vec::new();
    for raw in own {
        let span = Span { at: kept.len() as u64, len: raw.get().len() as u64, line: 1 };
        kept.extend(raw.get().as_bytes());
        kept.push(b'\n');
        let data = out.log.kept(kind, raw.borrowed());
        let mut draft = Draft::new(ids.event(Native::Offset(span.at), 0).hex(), ActorKind::Importer, data);
        draft.ignorable = Some(true);
        draft.src.push(src(source, span, Some(SrcHow::Opaque)));
        out.log.append(&mut draft)?;
    }
    if let Some(place) = place {
        fs::write(place.join(source), &kept).map_err(|e| ImportError::Write(e.into()))?;
    }
    out.log.close_source(source, &SourceEnd::of(&kept, records))?;
    Ok(input)
}
