//! Imports one session: its transcript, its subagents, and what lies beside them.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use palog::diagnostic::Severity;
use palog::events::{ChildKind, ChildLink, ChildSpawned, Parent, ParentMode, Recorded, SourceOrder};
use palog_adapter::ids::{self, Ids, Native};
use palog_adapter::source::{keep, name_of};
use palog_adapter::{ImportError, Log, LogName, LogReport, Options, Report, Target, Transcript, output, transcript};

use crate::children::{Child, Children};
use crate::conversation::Conversation;
use crate::first::First;
use crate::forks::Siblings;
use crate::paths::{Role, Session, Sidecar};
use crate::{FORMAT, sidecars};

/// What a transcript records durably (R-EVT-011). Calls are held back until their response ended, results may be lost with the
/// process, and neither starts nor approvals are written: only the absence of token counts means that there were none.
const RECORDS: &[Recorded] = &[Recorded::Usage];

/// Imports one session with its subagents.
///
/// # Errors
/// When a file cannot be read, the target refuses, or nothing in the transcript is known. The target is aborted then.
pub fn import(session: &Session, target: &mut dyn Target, options: &Options) -> Result<Report, ImportError> {
    output::all_or_none(target, |target| import_session(session, target, options))
}

/// One transcript that becomes one log.
struct Job<'s> {
    /// Native id of the session; of a subagent its agent id.
    session: String,
    /// The session id that the records carry.
    carried: String,
    /// Set for a subagent.
    parent: Option<Parent<'static>>,
    source: String,
    locator: String,
    /// For reports.
    path: String,
    bytes: File,
    /// Where the bytes come from, for a copy without reading them.
    file: Option<PathBuf>,
    sidecars: Vec<&'s Sidecar>,
    siblings: Option<&'s Siblings>,
}

fn import_session(session: &Session, target: &mut dyn Target, options: &Options) -> Result<Report, ImportError> {
    let path = session.transcript.as_ref().map_or_else(|| "-".to_owned(), |p| p.display().to_string());
    let opened = match (&session.transcript, &session.stdin) {
        (Some(path), _) => File::open(path),
        (None, Some(stdin)) => stdin.try_clone(),
        (None, None) => Err(io::ErrorKind::NotFound.into()),
    };
    let mut bytes = opened.map_err(|error| ImportError::Read { path: (&path).into(), error })?;
    let first = First::peek(&mut bytes).map_err(|error| ImportError::Read { path: (&path).into(), error })?;
    if !first.recognised {
        return Err(ImportError::NothingRecognised { input: path, product: FORMAT.product, lines: first.lines });
    }
    let stem = session.transcript.as_ref().and_then(|p| p.file_stem()).map(|s| s.to_string_lossy().into_owned());
    let carried = first.session.or_else(|| session.id.clone()).or(stem).unwrap_or_else(|| "unknown".into());
    let agent = first.agent.filter(|_| first.sidechain);
    let is_agent = agent.is_some();
    let id = agent.or_else(|| session.id.clone()).unwrap_or_else(|| carried.clone());
    let mut report = Report::default();
    let mut children = Children::of(&session.sidecars, &mut report.diagnostics);
    let mut sidecars: Vec<&Sidecar> = session.sidecars.iter().filter(|s| s.role != Role::Agent).collect();
    sidecars.append(&mut children.unrecognised);
    sidecars.sort_by(|a, b| a.source.cmp(&b.source));
    let job = Job {
        source: if is_agent { format!("agent/{}", name_of(&id)) } else { "transcript".into() },
        parent: is_agent.then(|| spawned_by(&carried, None)),
        session: id,
        // The file's name is the session's id; without one, the first record tells it.
        carried: if is_agent { carried } else { session.id.clone().unwrap_or(carried) },
        locator: session.locator.clone(),
        path: path.clone(),
        bytes,
        file: session.transcript.clone(),
        sidecars,
        siblings: Some(&session.siblings),
    };
    let root = job.session.clone();
    let carried = job.carried.clone();
    run(job, &mut children, target, options, &mut report)?;
    while let Some(child) = children.next() {
        let bytes = child.open().map_err(|error| ImportError::Read { path: (&child.path).into(), error })?;
        let file = child.file().map(Path::to_path_buf);
        let Child { agent, locator, path, meta, parent, .. } = child;
        let (by, action) = parent.unwrap_or_else(|| (root.clone(), None));
        let job = Job {
            source: format!("agent/{}", name_of(&agent)),
            parent: Some(spawned_by(&by, action)),
            session: agent,
            carried: carried.clone(),
            locator,
            path,
            bytes,
            file,
            sidecars: meta.into_iter().collect(),
            siblings: None,
        };
        run(job, &mut children, target, options, &mut report)?;
    }
    Ok(report)
}

/// The parent of a subagent's log.
fn spawned_by(session: &str, action: Option<String>) -> Parent<'static> {
    Parent {
        log: ids::log(&FORMAT, session).into(),
        session: Some(session.to_owned().into()),
        at: None,
        event: None,
        action: action.map(Into::into),
        mode: ParentMode::Spawn,
        workspace: None,
    }
}

/// Writes one log.
fn run<'s>(
    mut job: Job<'s>,
    children: &mut Children<'s>,
    target: &mut dyn Target,
    options: &Options,
    report: &mut Report,
) -> Result<(), ImportError> {
    let name = LogName {
        session: job.session.clone(),
        parent: job.parent.as_ref().and_then(|p| p.session.as_ref()).map(ToString::to_string),
    };
    let mut output = target.open(&name)?;
    let place = output.sources.take().filter(|_| options.sources);
    if let Some(place) = &place {
        // What is read is the copy, so that a file which grows meanwhile is the same to both.
        job.bytes = keep(place, &job.source, &mut job.bytes, job.file.as_deref())?;
    }
    let family = job.siblings.map(|siblings| siblings.family(job.file.as_deref())).unwrap_or_default();
    let fork = family.fork;
    let last_shared = fork.as_ref().and_then(|f| f.last.clone());
    let parent = job.parent.clone().or_else(|| {
        let fork = fork.as_ref()?;
        let ids = Ids::new(&FORMAT, &fork.origin.session, "transcript");
        Some(Parent {
            log: ids::log(&FORMAT, &fork.origin.session).into(),
            session: Some(fork.origin.session.clone().into()),
            at: last_shared.clone().map(Into::into),
            event: last_shared.as_deref().map(|uuid| ids.event(Native::Uuid(uuid), 0).hex().into()),
            action: None,
            mode: ParentMode::Fork,
            workspace: None,
        })
    });
    let mut log = Log::open(&FORMAT, &job.session, parent, output)?;
    log.open_source(&job.source, &job.locator, RECORDS, SourceOrder::Source, place.is_some())?;
    let out = Transcript::new(log, job.source.clone(), job.path.clone(), "claude-code.jsonl");
    let mut conversation = Conversation::new(out, job.carried, job.parent.is_some(), fork.map(|f| f.origin));
    sidecars::offer_files(&mut conversation, &job.sidecars)?;
    let end = transcript::read(&mut conversation, &mut job.bytes)?;
    conversation.conclude();
    conversation.out.log.close_source(&job.source, &end)?;
    sidecars::write(&mut conversation.out, &job.sidecars, place.as_deref(), report)?;
    for fork in family.forks {
        let spawned = ChildSpawned {
            child: ids::log(&FORMAT, &fork).into(),
            session: fork.clone().into(),
            action: None,
            kind: ChildKind::Fork,
            link: ChildLink::Inferred,
        };
        conversation.out.log.about(&format!("fork/{fork}"), 0, spawned)?;
    }
    children.adopt(&mut conversation, &mut job.bytes, &job.locator, &job.source)?;
    let Transcript { log, input, .. } = conversation.out;
    let (diagnostics, events) = log.finish()?;
    report.logs.push(LogReport {
        path: None,
        session: job.session,
        parent: name.parent,
        format: FORMAT.name,
        records: input.records,
        events,
        onto: None,
        severities: [Severity::Error, Severity::Void, Severity::Warning, Severity::Info]
            .map(|s| (s, diagnostics.count(s)))
            .into(),
    });
    report.inputs.push(input);
    report.diagnostics.extend(diagnostics);
    Ok(())
}
