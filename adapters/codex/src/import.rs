//! Imports one session: its rollouts, and what other files hold of it.

use std::io;

use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog::envelope::CopyHow;
use palog::events::{ChildKind, ChildLink, ChildSpawned, NoteAdded, Parent, ParentMode, Recorded, SourceOrder};
use palog_adapter::ids;
use palog_adapter::source::note;
use palog_adapter::{ImportError, Log, LogName, LogReport, Options, Report, Target, Transcript, output, transcript};

use crate::first::First;
use crate::lineage::{self, Prefix};
use crate::opened::Opened;
use crate::paths::{RolloutFile, Session, TRANSCRIPT, thread_in_name};
use crate::rollout::{Base, Copies, Known, Rollout, Until};
use crate::usage::Totals;
use crate::{FORMAT, sidecars};

/// What the paginated dialect records durably. Ends of turns and token counts are written when they happen. Calls are not
/// (a call is written with its response, and whether before it acts is not known), and results may be lost with the process.
const PAGINATED: &[Recorded] = &[Recorded::TurnEnded, Recorded::Usage];

/// What other rollouts record durably: older clients do not mark the ends of turns.
const LEGACY: &[Recorded] = &[Recorded::Usage];

/// Imports one session.
///
/// # Errors
/// When a file cannot be read, the target refuses, or nothing in the rollout is known. The target is aborted then.
pub fn import(session: &Session, target: &mut dyn Target, options: &Options) -> Result<Report, ImportError> {
    output::all_or_none(target, |target| import_session(session, target, options))
}

/// Where a session comes from.
fn parent(session: &str, first: &First, prefix: Option<&Prefix>) -> Option<Parent<'static>> {
    let of = |from: &str, mode| Parent {
        log: ids::log(&FORMAT, from).into(),
        session: Some(from.to_owned().into()),
        at: None,
        event: None,
        action: None,
        mode,
        workspace: None,
    };
    if first.is_agent {
        return first.parent.as_deref().map(|by| of(by, ParentMode::Spawn));
    }
    let base = first.base.as_ref().filter(|b| b.thread_id != session);
    if let Some(base) = base {
        let last = prefix.and_then(|p| p.last).map(|id| id.hex().into());
        return Some(Parent {
            at: Some(base.end_ordinal_exclusive.to_string().into()),
            event: last,
            ..of(&base.thread_id, ParentMode::Fork)
        });
    }
    first.forked_from.as_deref().filter(|from| *from != session).map(|from| of(from, ParentMode::Fork))
}

fn import_session(session: &Session, target: &mut dyn Target, options: &Options) -> Result<Report, ImportError> {
    let file = session.files.first();
    let mut opened = match (file, &session.stdin) {
        (Some(file), _) => Opened::file(file)?,
        (None, Some(stdin)) => Opened::stdin(stdin)?,
        (None, None) => return Err(ImportError::Read { path: "-".into(), error: io::ErrorKind::NotFound.into() }),
    };
    let path = opened.path.clone();
    let unreadable = |error| ImportError::Read { path: (&path).into(), error };
    let named = file.and_then(|f| thread_in_name(&f.path));
    let first = First::peek(&mut opened.bytes, named.as_deref()).map_err(unreadable)?;
    if !first.recognised {
        return Err(ImportError::NothingRecognised { input: path, product: FORMAT.product, lines: first.lines });
    }
    let stem = file.and_then(|f| f.path.file_stem()).map(|s| s.to_string_lossy().into_owned());
    let id = first.id.clone().or_else(|| session.id.clone()).or(named).or(stem).unwrap_or_else(|| "unknown".into());
    let mut known = Known { is_agent: first.is_agent, paginated: first.paginated, ..Known::default() };
    let (mut prefix, mut unconfirmed) = (None, None);
    if let Some(base) = first.base.as_ref() {
        if base.thread_id != id {
            prefix = lineage::prefix(base, &session.parent).map_err(unreadable)?;
        }
        known.totals = Totals::going_on(prefix.as_ref().and_then(|p| p.total));
        known.base = Some(Base { prefix, ..Base::of(base) });
    } else if let (Some(from), Some(until)) =
        (first.forked_from.as_ref().or(first.parent.as_ref()), first.inherited_below)
    {
        let until = if lineage::shows_copies(&mut opened.bytes, until, from).map_err(unreadable)? {
            Some(Until::Ordinal(until))
        } else {
            let confirmed = lineage::copied(&mut opened.bytes, &session.parent).map_err(unreadable)?;
            Some(Until::Offset(confirmed)).filter(|_| confirmed > 0)
        };
        unconfirmed = until.is_none().then_some(from);
        known.copies = until.map(|until| Copies { session: from.clone(), how: CopyHow::Inherit, until });
    } else if let Some(from) = first.forked_from.as_ref() {
        let until = Until::Offset(lineage::copied(&mut opened.bytes, &session.parent).map_err(unreadable)?);
        unconfirmed = session.parent.is_empty().then_some(from);
        known.copies = Some(Copies { session: from.clone(), how: CopyHow::Fork, until });
    }
    let parent = parent(&id, &first, prefix.as_ref());
    let by = parent.as_ref().filter(|p| p.mode == ParentMode::Spawn).and_then(|p| p.session.as_ref());
    let name = LogName { session: id.clone(), parent: by.map(ToString::to_string) };
    let mut output = target.open(&name)?;
    let place = output.sources.take().filter(|_| options.sources);
    let mut log = Log::open(&FORMAT, &id, parent, output)?;
    if let Some(from) = unconfirmed {
        let place = Place { input: Some(path.clone()), names: Some(from.clone()), ..Place::default() };
        let why = "nothing tells which records are copies of that session's: all are taken to be this one's own";
        log.diagnostics.push(Diagnostic::new(Code::MissingParent, Severity::Warning, place).because(why));
    }
    let records = if first.paginated {
        PAGINATED
    } else if first.bare {
        &[]
    } else {
        LEGACY
    };
    let stdin = RolloutFile { path: "-".into(), locator: "-".into(), source: TRANSCRIPT.into(), twin: None };
    let file = file.unwrap_or(&stdin);
    opened.keep(file, place.as_deref())?;
    log.diagnostics.extend(std::mem::take(&mut opened.found));
    log.open_source(&file.source, &file.locator, records, SourceOrder::Source, place.is_some())?;
    let format = if first.bare { "codex.rollout-bare" } else { "codex.rollout" };
    let out = Transcript::new(log, file.source.clone(), path, format);
    let mut rollout = Rollout::new(out, id.clone(), known);
    let mut report = Report::default();
    let mut ends = Vec::new();
    ends.push((file.source.clone(), transcript::read(&mut rollout, &mut opened.bytes)?, opened.compressed));
    for file in session.files.iter().skip(1) {
        let mut opened = Opened::file(file)?;
        rollout.out.log.diagnostics.extend(std::mem::take(&mut opened.found));
        let first = First::peek(&mut opened.bytes, None)
            .map_err(|error| ImportError::Read { path: file.path.clone(), error })?;
        // What it goes on from was just read.
        let base = first.base.as_ref().map(|base| Base { prefix: Some(Prefix::default()), ..Base::of(base) });
        opened.keep(file, place.as_deref())?;
        rollout.out.log.open_source(&file.source, &file.locator, records, SourceOrder::Source, place.is_some())?;
        report.inputs.push(rollout.go_on(&file.source, opened.path.clone(), base));
        ends.push((file.source.clone(), transcript::read(&mut rollout, &mut opened.bytes)?, opened.compressed));
    }
    rollout.conclude();
    for (source, end, compressed) in &ends {
        rollout.out.log.close_source(source, end)?;
        if let Some(file) = compressed {
            // The records have places in the content: the file is told by its digest.
            let data = NoteAdded {
                source: Some(source.clone().into()),
                len: Some(file.len),
                digest: Some(file.digest.clone().into()),
                ..note("compressed")
            };
            rollout.out.log.about(source, 2, data)?;
        }
    }
    sidecars::write(&mut rollout, &session.sidecars, place.as_deref(), &mut report)?;
    for child in session.offspring.iter().filter(|c| !rollout.told_of.contains(&c.id)) {
        let spawned = ChildSpawned {
            child: ids::log(&FORMAT, &child.id).into(),
            session: child.id.clone().into(),
            action: None,
            kind: if child.is_fork { ChildKind::Fork } else { ChildKind::Subagent },
            // The header of its rollout names this session.
            link: ChildLink::Explicit,
        };
        rollout.out.log.about(&format!("child/{}", child.id), 0, spawned)?;
    }
    let Transcript { log, input, .. } = rollout.out;
    report.inputs.push(input);
    let (diagnostics, events) = log.finish()?;
    report.logs.push(LogReport {
        path: None,
        format: FORMAT.name,
        session: id,
        parent: name.parent,
        records: report.inputs.iter().filter(|i| i.format.starts_with("codex.rollout")).map(|i| i.records).sum(),
        events,
        onto: None,
        severities: [Severity::Error, Severity::Void, Severity::Warning, Severity::Info]
            .map(|s| (s, diagnostics.count(s)))
            .into(),
    });
    report.diagnostics.extend(diagnostics);
    Ok(report)
}
