//! Imports one session: its transcript, its subagents, and what lies beside them.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use palog::blob::hex;
use palog::diagnostic::{Code, Severity};
use palog::envelope::{ActorKind, Draft, SPEC};
use palog::events::{
    Agent, ChildKind, ChildLink, ChildSpawned, Data, Derived, LogOpened, Parent, ParentMode, Recorded, SourceOpened, SourceOrder,
};
use palog::reader::{Lines, Next};
use palog::writer::{WriteError, Writer};
use sha2::{Digest, Sha256};

use crate::children::{Child, Children};
use crate::conversation::{Conversation, Opening, Span, note};
use crate::forks;
use crate::framing::{self, Piece};
use crate::ids::{self, Ids, Native};
use crate::output::{LogName, Target};
use crate::paths::{Role, Session, Sidecar};
use crate::record::{Record, looks_like_record};
use crate::report::{ImportError, LogReport, Report};
use crate::{FORMAT, MAPPING, Options, sidecars};

/// What a transcript records durably. Calls are held back until their response ended, results may be lost with the
/// process, and neither starts nor approvals are written: only the absence of token counts means that there were none.
const RECORDS: &[Recorded] = &[Recorded::Usage];

/// Imports one session with its subagents.
///
/// # Errors
/// When a file cannot be read, the target refuses, or nothing in the transcript is known. The target is aborted then.
pub fn import(session: &Session, target: &mut dyn Target, options: &Options) -> Result<Report, ImportError> {
    let imported = import_session(session, target, options).and_then(|mut report| {
        for (log, path) in report.logs.iter_mut().zip(target.commit()?) {
            log.path = path;
        }
        Ok(report)
    });
    if imported.is_err() {
        target.abort();
    }
    imported
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
    siblings: &'s [PathBuf],
}

fn import_session(session: &Session, target: &mut dyn Target, options: &Options) -> Result<Report, ImportError> {
    let path = session.transcript.as_ref().map_or_else(|| "-".to_owned(), |p| p.display().to_string());
    let mut bytes = match &session.transcript {
        Some(path) => File::open(path).map_err(|error| ImportError::Read { path: path.clone(), error })?,
        None => spooled(io::stdin().lock()).map_err(|error| ImportError::Read { path: "-".into(), error })?,
    };
    let first = First::peek(&mut bytes).map_err(|error| ImportError::Read { path: (&path).into(), error })?;
    if !first.recognised {
        return Err(ImportError::NothingRecognised { input: path, lines: first.lines });
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
        source: if is_agent { format!("agent/{id}") } else { "transcript".into() },
        parent: is_agent.then(|| spawned_by(&carried, None)),
        session: id,
        // The file's name is the session's id; without one, the first record tells it.
        carried: if is_agent { carried } else { session.id.clone().unwrap_or(carried) },
        locator: session.locator.clone(),
        path: path.clone(),
        bytes,
        file: session.transcript.clone(),
        sidecars,
        siblings: &session.siblings,
    };
    let root = job.session.clone();
    let carried = job.carried.clone();
    run(job, &mut children, target, options, &mut report)?;
    while let Some(child) = children.next() {
        let Child { agent, locator, path, file, meta, parent, bytes, .. } = child;
        let (by, action) = parent.unwrap_or_else(|| (root.clone(), None));
        let job = Job {
            source: format!("agent/{agent}"),
            parent: Some(spawned_by(&by, action)),
            session: agent,
            carried: carried.clone(),
            locator,
            path,
            bytes,
            file,
            sidecars: meta.into_iter().collect(),
            siblings: &[],
        };
        run(job, &mut children, target, options, &mut report)?;
    }
    Ok(report)
}

/// The parent of a subagent's log.
fn spawned_by(session: &str, action: Option<String>) -> Parent<'static> {
    Parent {
        log: ids::log(session).into(),
        session: Some(session.to_owned().into()),
        at: None,
        event: None,
        action: action.map(Into::into),
        mode: ParentMode::Spawn,
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
    let output = target.open(&name)?;
    let place = output.sources.filter(|_| options.sources);
    if let Some(place) = &place {
        // What is read is the copy, so that a file which grows meanwhile is the same to both.
        job.bytes = keep(place, &job.source, &mut job.bytes, job.file.as_deref())?;
    }
    let writer = Writer::new(output.log, ids::log(&job.session), output.bulk);
    let family = forks::family(job.file.as_deref(), job.siblings);
    let fork = family.fork;
    let last_shared = fork.as_ref().and_then(|f| f.last.clone());
    let parent = job.parent.clone().or_else(|| {
        let fork = fork.as_ref()?;
        let ids = Ids::new(&fork.origin.session, "transcript");
        Some(Parent {
            log: ids::log(&fork.origin.session).into(),
            session: Some(fork.origin.session.clone().into()),
            at: last_shared.clone().map(Into::into),
            event: last_shared.as_deref().map(|uuid| ids.event(Native::Uuid(uuid), 0).hex().into()),
            action: None,
            mode: ParentMode::Fork,
        })
    });
    let mut conversation = Conversation::new(
        writer,
        Opening {
            session: job.session.clone(),
            carried: job.carried.clone(),
            is_agent: job.parent.is_some(),
            source: job.source.clone(),
            path: job.path.clone(),
            origin: fork.map(|f| f.origin),
        },
    );
    open_log(&mut conversation, &job.session, parent)?;
    open_source(&mut conversation, &job.session, &job.source, &job.locator, RECORDS, SourceOrder::Source, place.is_some())?;
    sidecars::offer_files(&mut conversation, &job.sidecars)?;
    let end = read(&mut conversation, &mut job.bytes).map_err(|error| match error {
        ReadError::Read(error) => ImportError::Read { path: (&job.path).into(), error },
        ReadError::Write(error) => ImportError::Write(error),
    })?;
    conversation.conclude();
    close_source(&mut conversation, &job.session, &job.source, &end)?;
    sidecars::write(&mut conversation, &job.session, &job.sidecars, place.as_deref(), report)?;
    for fork in family.forks {
        let spawned = ChildSpawned {
            child: ids::log(&fork).into(),
            session: fork.clone().into(),
            action: None,
            kind: ChildKind::Fork,
            link: ChildLink::Inferred,
        };
        own_event(&mut conversation, &job.session, &format!("fork/{fork}"), 0, spawned)?;
    }
    children.adopt(&mut conversation, &mut job.bytes, &job.locator, &job.source)?;
    report.logs.push(LogReport {
        path: None,
        session: job.session,
        parent: name.parent,
        records: conversation.input.records,
        events: 0,
        severities: [Severity::Error, Severity::Void, Severity::Warning, Severity::Info]
            .map(|s| (s, conversation.diagnostics.count(s)))
            .into(),
    });
    let (input, diagnostics, events) = conversation.finish()?;
    if let Some(log) = report.logs.last_mut() {
        log.events = events;
    }
    report.inputs.push(input);
    report.diagnostics.extend(diagnostics);
    Ok(())
}

/// The first event of a log.
fn open_log(conversation: &mut Conversation, session: &str, parent: Option<Parent<'static>>) -> Result<(), WriteError> {
    let opened = LogOpened {
        spec: SPEC.into(),
        session: session.to_owned().into(),
        agent: Agent { name: FORMAT.into(), version: None },
        owner: None,
        records: None,
        derived: Some(Derived { mapping: MAPPING.into() }),
        parent,
        env: None,
    };
    own_event(conversation, session, "log", 0, opened)
}

/// Opens a source of a log.
pub(crate) fn open_source(
    conversation: &mut Conversation,
    session: &str,
    source: &str,
    locator: &str,
    records: &[Recorded],
    order: SourceOrder,
    kept: bool,
) -> Result<(), WriteError> {
    let opened = SourceOpened {
        source: source.to_owned().into(),
        vendor: FORMAT.into(),
        version: None,
        locator: locator.to_owned().into(),
        records: records.to_vec(),
        kept,
        order,
    };
    own_event(conversation, session, source, 0, opened)
}

/// What is known of a source when it is over.
pub(crate) struct SourceEnd {
    pub(crate) digest: String,
    pub(crate) len: u64,
    pub(crate) records: u64,
    /// Whether the last record had its line ending.
    pub(crate) terminated: bool,
}

/// Says how far a source was read.
pub(crate) fn close_source(
    conversation: &mut Conversation,
    session: &str,
    source: &str,
    end: &SourceEnd,
) -> Result<(), WriteError> {
    let note = palog::events::NoteAdded {
        source: Some(source.to_owned().into()),
        len: Some(end.len),
        digest: Some(end.digest.clone().into()),
        records: Some(end.records),
        terminated: Some(end.terminated),
        ..note("source_end")
    };
    own_event(conversation, session, source, 1, note)
}

/// An event of the importer about a source.
fn own_event<'d>(
    conversation: &mut Conversation,
    session: &str,
    source: &str,
    ordinal: u32,
    data: impl Into<Data<'d>>,
) -> Result<(), WriteError> {
    let id = Ids::new(session, source).event(Native::Uuid("source"), ordinal).hex();
    conversation.append(&mut Draft::new(id, ActorKind::Importer, data))
}

enum ReadError {
    Read(io::Error),
    Write(WriteError),
}

impl From<WriteError> for ReadError {
    fn from(error: WriteError) -> Self {
        ReadError::Write(error)
    }
}

/// Reads a transcript to its end.
fn read(conversation: &mut Conversation, bytes: &mut File) -> Result<SourceEnd, ReadError> {
    bytes.seek(SeekFrom::Start(0)).map_err(ReadError::Read)?;
    let mut hashing = Hashing { input: bytes, digest: Sha256::new(), len: 0 };
    let mut terminated = true;
    {
        let mut lines = Lines::new(&mut hashing).of_any_length();
        loop {
            let (line, torn) = match lines.next_line().map_err(ReadError::Read)? {
                Next::Line(line) => (line, false),
                Next::TornTail(line) => (line, true),
                Next::TooLong(_) | Next::End => break,
            };
            terminated = !torn;
            let bom = if line.offset == 0 && line.bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
            let lead = bom + line.bytes[bom..].iter().take_while(|b| b.is_ascii_whitespace()).count();
            let bytes = line.bytes[lead..].trim_ascii_end();
            conversation.input.lines += 1;
            if !bytes.is_empty() {
                let span = Span { at: line.offset + lead as u64, len: bytes.len() as u64, line: line.number };
                read_line(conversation, bytes, span, torn)?;
            }
        }
    }
    Ok(SourceEnd {
        digest: format!("sha256:{}", hex(&hashing.digest.finalize())),
        len: hashing.len,
        records: conversation.input.records,
        terminated,
    })
}

/// Takes one line, which should be one record.
fn read_line(conversation: &mut Conversation, bytes: &[u8], span: Span, torn: bool) -> Result<(), WriteError> {
    let (text, invalid) = framing::text(bytes);
    for (at, len) in &invalid {
        let span = Span { at: span.at + *at as u64, len: *len as u64, ..span };
        conversation.damage(Code::InvalidUtf8, span, "bytes that are not UTF-8");
    }
    match serde_json::from_str::<Record<'_>>(&text) {
        Ok(record) => return conversation.record(&record, &text, invalid.is_empty(), span),
        Err(error) if error.is_data() && serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok() => {
            return conversation.shapeless(&text, span, error.to_string());
        }
        Err(_) => {}
    }
    let pieces = framing::recover(bytes, looks_like_record);
    let records = pieces.iter().filter(|p| matches!(p, Piece::Record { .. })).count();
    if records > 1 {
        conversation.damage(Code::ConcatenatedRecords, span, format!("{records} records on one line"));
    }
    for piece in pieces {
        let (Piece::Record { at, len } | Piece::Fragment { at, len } | Piece::Hole { at, len }) = piece;
        let own = Span { at: span.at + at as u64, len: len as u64, ..span };
        let bytes = &bytes[at..at + len];
        match piece {
            Piece::Hole { .. } => {
                conversation.damage(Code::NulRun, own, format!("{len} zero bytes"));
                conversation.fragment(own, bytes, "hole")?;
            }
            Piece::Fragment { .. } => {
                conversation.input.fragments += 1;
                let is_tail = torn && own.at + own.len == span.at + span.len;
                let (code, kind) = if is_tail { (Code::TornTail, "torn") } else { (Code::Fragment, "fragment") };
                conversation.damaged_record(code, own, readable_id(bytes));
                conversation.fragment(own, bytes, kind)?;
            }
            Piece::Record { .. } => {
                let (text, invalid) = framing::text(bytes);
                match serde_json::from_str::<Record<'_>>(&text) {
                    Ok(record) => conversation.record(&record, &text, invalid.is_empty(), own)?,
                    Err(error) => conversation.shapeless(&text, own, error.to_string())?,
                }
            }
        }
    }
    Ok(())
}

/// The record id that can still be read in a fragment.
fn readable_id(bytes: &[u8]) -> Option<String> {
    let marker = b"\"uuid\":\"";
    let at = memchr::memmem::find(bytes, marker)? + marker.len();
    let len = memchr::memchr(b'"', &bytes[at..])?;
    std::str::from_utf8(&bytes[at..at + len]).ok().map(str::to_owned)
}

/// What the first records of a transcript say of it.
#[derive(Default)]
pub(crate) struct First {
    pub(crate) session: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) sidechain: bool,
    /// Hash and length of the first prompt.
    pub(crate) prompt: Option<u64>,
    /// Length of the first record.
    pub(crate) len: u64,
    /// A record of the tree was among them.
    in_tree: bool,
    /// A record of this format was among them; without one the file was read to its end.
    pub(crate) recognised: bool,
    /// Physical lines that were looked at.
    pub(crate) lines: u64,
}

impl First {
    /// Reads the first records, and goes back to the beginning.
    pub(crate) fn peek(bytes: &mut File) -> io::Result<Self> {
        bytes.seek(SeekFrom::Start(0))?;
        let mut first = First::default();
        let mut lines = Lines::new(&mut *bytes).of_any_length();
        'lines: while let Next::Line(line) | Next::TornTail(line) = lines.next_line()? {
            first.lines += 1;
            let line = line.bytes.trim_ascii();
            let (text, _) = framing::text(line);
            if serde_json::from_str::<Record<'_>>(&text).is_ok() {
                if first.take(&text) {
                    break;
                }
                continue;
            }
            for piece in framing::recover(line, looks_like_record) {
                let Piece::Record { at, len } = piece else { continue };
                let (text, _) = framing::text(&line[at..at + len]);
                if first.take(&text) {
                    break 'lines;
                }
            }
        }
        bytes.seek(SeekFrom::Start(0))?;
        Ok(first)
    }
}

impl First {
    /// Takes in a record, and says whether all is known.
    fn take(&mut self, text: &str) -> bool {
        let Ok(record) = serde_json::from_str::<Record<'_>>(text) else { return false };
        self.recognised |= record.is_recognised();
        if self.len == 0 {
            self.len = text.len() as u64;
        }
        if self.session.is_none() {
            self.session = record.session_id.as_deref().filter(|s| !s.is_empty()).map(str::to_owned);
        }
        if record.uuid.is_some() && !self.in_tree {
            self.in_tree = true;
            self.agent = record.agent_id.as_deref().filter(|s| !s.is_empty()).map(str::to_owned);
            self.sidechain = record.is_sidechain;
            let content = record.message.as_ref().and_then(|m| m.content.as_ref());
            self.prompt = content.and_then(crate::conversation::text_hash);
        }
        self.in_tree && self.session.is_some()
    }
}

/// Copies a stream into an unnamed temporary file.
fn spooled(mut input: impl Read) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    io::copy(&mut input, &mut file)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// Copies a source to its place beside the log and opens the copy. A file is copied by the file system where that can.
pub(crate) fn keep(place: &Path, source: &str, bytes: &mut File, file: Option<&Path>) -> Result<File, ImportError> {
    let path = place.join(source);
    let mut copy = || -> io::Result<File> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        match file {
            Some(file) => {
                fs::copy(file, &path)?;
                make_writable(&path)?;
            }
            None => {
                bytes.seek(SeekFrom::Start(0))?;
                let mut out = BufWriter::new(File::create(&path)?);
                io::copy(bytes, &mut out)?;
                out.flush()?;
            }
        }
        File::open(&path)
    };
    copy().map_err(|e| ImportError::Write(io::Error::new(e.kind(), format!("{}: {e}", path.display())).into()))
}

/// A copy of a read-only file is the user's own.
fn make_writable(path: &Path) -> io::Result<()> {
    let mut permissions = fs::metadata(path)?.permissions();
    if permissions.readonly() {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            permissions.set_mode(permissions.mode() | 0o200);
        }
        #[cfg(not(unix))]
        #[expect(clippy::permissions_set_readonly_false, reason = "there is one such bit only")]
        permissions.set_readonly(false);
        fs::set_permissions(path, permissions)?;
    }
    Ok(())
}

/// Hashes what is read.
struct Hashing<R> {
    input: R,
    digest: Sha256,
    len: u64,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.input.read(buffer)?;
        self.digest.update(&buffer[..n]);
        self.len += n as u64;
        Ok(n)
    }
}
