//! Sessions that are files of JSON lines: those of pi, and those of OpenClaw before it had databases.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use palog::diagnostic::Severity;
use palog::events::{ChildKind, ChildLink, ChildSpawned, Parent, ParentMode, Recorded, SourceOrder};
use palog_adapter::source::keep;
use palog_adapter::{
    Format, ImportError, Log, LogName, LogReport, Options, Report, Target, Transcript, ids, output, transcript,
};

use crate::conversation::{Conversation, Known};
use crate::record::{Entry, looks_like_record};

/// The name of the source.
const TRANSCRIPT: &str = "transcript";

/// What the client records durably: token counts stand in the entry of their response. Calls are written with their
/// response, and whether before they act is not known; results only when all calls of a response are done.
const RECORDS: &[Recorded] = &[Recorded::Usage];

/// A session, and where its entries are.
#[derive(Clone, Debug)]
pub(crate) struct FileSession {
    /// Native id by the header or, failing that, the name of the file.
    pub(crate) id: Option<String>,
    /// The file; `None` for standard input.
    pub(crate) path: Option<PathBuf>,
    /// Its path within what was imported.
    pub(crate) locator: String,
    /// What was on standard input.
    pub(crate) stdin: Option<Arc<File>>,
    /// Ids of the sessions that were forked from this one.
    pub(crate) forks: Vec<String>,
    /// The session whose agent started this one.
    pub(crate) spawned_by: Option<String>,
}

/// What the first entries of a file say of it.
#[derive(Debug, Default)]
pub(crate) struct First {
    pub(crate) id: Option<String>,
    pub(crate) version: Option<u64>,
    /// Native id of the session that this one came out of.
    pub(crate) parent: Option<String>,
    pub(crate) directory: Option<String>,
    /// An entry of the family was among those that were looked at.
    recognised: bool,
    lines: u64,
}

impl First {
    /// Takes in an entry, and says whether all is known.
    fn take(&mut self, text: &str) -> bool {
        let Ok(entry) = serde_json::from_str::<Entry<'_>>(text) else { return false };
        self.recognised |= is_entry(&entry);
        if !entry.is_header() {
            return false;
        }
        self.id = entry.id.as_ref().map(ToString::to_string);
        self.version = entry.version;
        self.directory = entry.cwd.as_ref().map(ToString::to_string);
        let parent = entry.parent_session.as_deref().or(entry.branched_from.as_deref());
        self.parent = parent.map(|parent| id_in_name(parent.rsplit(['/', '\\']).next().unwrap_or(parent)));
        true
    }

    /// Reads the header, and goes back to the beginning.
    pub(crate) fn peek(bytes: &mut File) -> io::Result<Self> {
        let mut first = First::default();
        let lines = transcript::peek(bytes, looks_like_record, |text| first.take(text))?;
        first.lines = lines;
        Ok(first)
    }
}

/// Whether an entry is certainly one of the family.
pub(crate) fn is_entry(entry: &Entry<'_>) -> bool {
    if entry.is_header() {
        return entry.cwd.is_some() || entry.version.is_some();
    }
    entry.is_known() && entry.parent_id.is_some() && entry.id.is_some()
}

/// The session in the name of a file: what stands behind the time, else the whole name.
pub(crate) fn id_in_name(name: &str) -> String {
    let name = name.strip_suffix(".jsonl").unwrap_or(name);
    name.rsplit_once('_').map_or(name, |(_, id)| id).to_owned()
}

impl FileSession {
    /// A session in the file `path`; `root` is what was imported.
    pub(crate) fn of(path: &Path, root: &Path, first: &First) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let within = path.strip_prefix(root).ok().filter(|p| !p.as_os_str().is_empty());
        FileSession {
            id: Some(first.id.clone().unwrap_or_else(|| id_in_name(&name))),
            path: Some(path.into()),
            locator: within.map_or_else(|| name.into_owned(), |p| p.to_string_lossy().into_owned()),
            stdin: None,
            forks: Vec::new(),
            spawned_by: None,
        }
    }

    /// A session that came from standard input.
    pub(crate) fn of_stdin(bytes: File) -> Self {
        FileSession {
            id: None,
            path: None,
            locator: "-".into(),
            stdin: Some(Arc::new(bytes)),
            forks: Vec::new(),
            spawned_by: None,
        }
    }

    /// Size of the file, as the file system tells it now.
    pub(crate) fn size(&self) -> u64 {
        self.path.as_ref().and_then(|p| p.metadata().ok()).map_or(0, |m| m.len())
    }
}

/// Imports one session.
pub(crate) fn import(
    format: &'static Format,
    session: &FileSession,
    target: &mut dyn Target,
    options: &Options,
) -> Result<Report, ImportError> {
    output::all_or_none(target, |target| import_session(format, session, target, options))
}

fn import_session(
    format: &'static Format,
    session: &FileSession,
    target: &mut dyn Target,
    options: &Options,
) -> Result<Report, ImportError> {
    let path = session.path.as_ref().map_or_else(|| "-".to_owned(), |p| p.display().to_string());
    let unreadable = |error| ImportError::Read { path: (&path).into(), error };
    let opened = match (&session.path, &session.stdin) {
        (Some(path), _) => File::open(path),
        (None, Some(stdin)) => stdin.try_clone(),
        (None, None) => Err(io::ErrorKind::NotFound.into()),
    };
    let mut bytes = opened.map_err(unreadable)?;
    let first = First::peek(&mut bytes).map_err(unreadable)?;
    if !first.recognised {
        return Err(ImportError::NothingRecognised { input: path, product: format.product, lines: first.lines });
    }
    let id = first.id.clone().or_else(|| session.id.clone()).unwrap_or_else(|| "unknown".into());
    let from = |from: &String, mode| Parent {
        log: ids::log(format, from).into(),
        session: Some(from.clone().into()),
        at: None,
        event: None,
        action: None,
        mode,
        workspace: None,
    };
    let forked_from = first.parent.clone().filter(|parent| *parent != id);
    let parent = match &session.spawned_by {
        Some(by) => Some(from(by, ParentMode::Spawn)),
        None => forked_from.as_ref().map(|parent| from(parent, ParentMode::Fork)),
    };
    let mut output = target.open(&LogName { session: id.clone(), parent: None })?;
    let place = output.sources.take().filter(|_| options.sources);
    let mut log = Log::open(format, &id, parent, output)?;
    if let Some(place) = &place {
        bytes = keep(place, TRANSCRIPT, &mut bytes, session.path.as_deref())?;
    }
    log.open_source(TRANSCRIPT, &session.locator, RECORDS, SourceOrder::Source, place.is_some())?;
    let out = Transcript::new(log, TRANSCRIPT.into(), path, &format!("{}.jsonl", format.name));
    let known = Known { forked_from, is_agent: session.spawned_by.is_some(), ..Known::default() };
    let mut conversation = Conversation::new(out, known);
    let end = transcript::read(&mut conversation, &mut bytes)?;
    conversation.conclude();
    let Transcript { mut log, input, .. } = conversation.out;
    log.close_source(TRANSCRIPT, &end)?;
    for fork in &session.forks {
        let spawned = ChildSpawned {
            child: ids::log(format, fork).into(),
            session: fork.clone().into(),
            action: None,
            kind: ChildKind::Fork,
            // The header of its file names this session.
            link: ChildLink::Explicit,
        };
        log.about(&format!("child/{fork}"), 0, spawned)?;
    }
    let records = input.records;
    let (diagnostics, events) = log.finish()?;
    let mut report = Report::default();
    report.inputs.push(input);
    report.logs.push(logged(format, id, records, events, &diagnostics));
    report.diagnostics.extend(diagnostics);
    Ok(report)
}

/// What a report says of a log.
pub(crate) fn logged(
    format: &'static Format,
    session: String,
    records: u64,
    events: u64,
    diagnostics: &palog::diagnostic::Diagnostics,
) -> LogReport {
    let severities = [Severity::Error, Severity::Void, Severity::Warning, Severity::Info];
    LogReport {
        path: None,
        format: format.name,
        session,
        parent: None,
        records,
        events,
        onto: None,
        severities: severities.map(|s| (s, diagnostics.count(s))).into(),
    }
}
