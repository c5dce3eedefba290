//! What other files hold of a session: lines of files that all sessions share, rows of databases, and its lock. They are kept,
//! and told in the closing block of the log.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog::envelope::{ActorKind, Draft, Src, SrcHow, Time};
use palog::events::{
    ChildKind, ChildLink, ChildSpawned, ConfigSet, Data, InputQueued, ObservationRecorded, Part, SourceOrder,
};
use palog::json::{Raw, Value};
use palog_adapter::ids::{self, Native};
use palog_adapter::source::src;
use palog_adapter::sqlite::Store;
use palog_adapter::{ImportError, InputReport, Log, Report, SourceEnd, Span};
use serde::Deserialize;

use crate::FORMAT;
use crate::rollout::{EMPTY_CONFIG, Rollout};

/// What lies beside the rollouts and holds something of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// `history.jsonl`: prompts as they were typed.
    History,
    /// `session_index.jsonl`: names.
    Index,
    /// `queue_N.sqlite`: messages that wait.
    Queue,
    /// `state_N.sqlite`: what the client knows of its threads, and which started which.
    State,
    /// `thread-writer-locks/ID.lock`, which the client that has the thread open locks.
    Lock,
}

impl Role {
    /// All of them, in the order of their sources.
    pub(crate) const ALL: [Role; 5] = [Role::History, Role::Index, Role::Lock, Role::Queue, Role::State];

    /// Name of its source in the log.
    pub(crate) const fn source(self) -> &'static str {
        match self {
            Role::History => "history",
            Role::Index => "index",
            Role::Lock => "lock",
            Role::Queue => "queue",
            Role::State => "state",
        }
    }

    /// The tables that are read, each with the column that says which row it is, and the one that says whose.
    const fn tables(self) -> &'static [(&'static str, &'static str, &'static str)] {
        match self {
            Role::Queue => &[("queued_items", "id", "thread_id")],
            Role::State => &[("threads", "id", "id"), ("thread_spawn_edges", "child_thread_id", "parent_thread_id")],
            Role::History | Role::Index | Role::Lock => &[],
        }
    }
}

/// The lines of each thread, read when they are first asked for, and what was found on the way; or why they cannot be.
type Lines = Result<(HashMap<String, Vec<u8>>, Vec<Diagnostic>), Box<Diagnostic>>;

/// A file that holds something of sessions. All of these share what was read of it.
#[derive(Clone, Debug)]
pub(crate) struct Sidecar {
    pub(crate) role: Role,
    /// Path within what was imported.
    pub(crate) locator: String,
    pub(crate) path: PathBuf,
    lines: Arc<OnceLock<Lines>>,
}

/// A line of a shared file.
#[derive(Deserialize)]
struct Entry {
    /// Of the index.
    id: Option<String>,
    /// Of the history.
    session_id: Option<String>,
}

impl Sidecar {
    pub(crate) fn new(role: Role, path: PathBuf, locator: String) -> Self {
        Sidecar { role, locator, path, lines: Arc::default() }
    }

    fn lines(&self) -> &Lines {
        self.lines.get_or_init(|| {
            if !self.role.tables().is_empty() {
                return self.of_database();
            }
            let place = || Place { input: Some(self.path.display().to_string()), ..Place::default() };
            let unreadable = |e: io::Error| {
                Box::new(Diagnostic::new(Code::Unreadable, Severity::Error, place()).because(e.to_string()))
            };
            Ok((self.of_file().map_err(unreadable)?, Vec::new()))
        })
    }

    fn of_file(&self) -> io::Result<HashMap<String, Vec<u8>>> {
        let mut all: HashMap<String, Vec<u8>> = HashMap::new();
        for line in fs::read(&self.path)?.split_inclusive(|b| *b == b'\n') {
            let Ok(Entry { id, session_id }) = serde_json::from_slice(line) else { continue };
            let own = if self.role == Role::Index { id } else { session_id };
            if let Some(own) = own {
                all.entry(own).or_default().extend_from_slice(line);
            }
        }
        Ok(all)
    }

    /// Rows as lines of JSON, each with its table.
    fn of_database(&self) -> Lines {
        let store = Store::open(&self.path)?;
        let mut all: HashMap<String, Vec<u8>> = HashMap::new();
        for (table, key, owner) in self.role.tables() {
            if !store.table(table).is_some_and(|table| table.has(key)) {
                continue;
            }
            let Ok(()) = store.each(table, &format!("ORDER BY \"{key}\""), &[], |row| {
                if let Some(own) = row.text(owner) {
                    let lines = all.entry(own.to_owned()).or_default();
                    lines.extend(row.line());
                    lines.push(b'\n');
                }
                Ok::<_, Infallible>(())
            });
        }
        Ok((all, store.findings()))
    }
}

/// What a line tells beside being there.
#[derive(Default, Deserialize)]
struct Told {
    /// Of the index.
    thread_name: Option<String>,
    /// Of a database.
    table: Option<String>,
    #[serde(default)]
    row: Row,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Row {
    id: Option<String>,
    name: Option<String>,
    archived: Option<i64>,
    archived_at: Option<i64>,
    child_thread_id: Option<String>,
    status: Option<String>,
    payload_json: Option<String>,
}

/// Keeps what each file holds of the session, and tells of it.
pub(crate) fn write(
    rollout: &mut Rollout,
    sidecars: &[Sidecar],
    place: Option<&Path>,
    report: &mut Report,
) -> Result<(), ImportError> {
    for sidecar in sidecars {
        report.inputs.extend(match sidecar.role {
            Role::Lock => lock(&mut rollout.out.log, sidecar, place)?,
            _ => lines(rollout, sidecar, place)?,
        });
    }
    Ok(())
}

/// A lock says nothing of who holds it: the operating system knows that, and forgets it with the process.
fn lock(log: &mut Log, sidecar: &Sidecar, place: Option<&Path>) -> Result<Option<InputReport>, ImportError> {
    if sidecar.path.file_stem().is_none_or(|stem| stem != log.session()) {
        return Ok(None);
    }
    let source = sidecar.role.source();
    log.open_source(source, &sidecar.locator, &[], SourceOrder::Source, place.is_some())?;
    keep(place, source, b"")?;
    let data = ObservationRecorded {
        fact: "writer_lock".into(),
        subject: None,
        as_of: None,
        source: source.into(),
        detail: None,
    };
    let mut draft = Draft::new(log.ids(source).event(Native::Offset(0), 0).hex(), ActorKind::Importer, data);
    draft.src.push(src(source, Span { at: 0, len: 0, line: 1 }, Some(SrcHow::Synthesized)));
    log.append(&mut draft)?;
    log.close_source(source, &SourceEnd::of(b"", 0))?;
    let path = sidecar.path.display().to_string();
    Ok(Some(InputReport { path, format: "codex.lock".into(), ..InputReport::default() }))
}

fn lines(rollout: &mut Rollout, sidecar: &Sidecar, place: Option<&Path>) -> Result<Option<InputReport>, ImportError> {
    let path = sidecar.path.display().to_string();
    let source = sidecar.role.source();
    let log = &mut rollout.out.log;
    let mut input = InputReport { path, format: format!("codex.{source}"), ..InputReport::default() };
    let own = match sidecar.lines() {
        Ok((lines, findings)) => {
            findings.iter().for_each(|found| log.diagnostics.push(found.clone()));
            lines.get(log.session())
        }
        Err(why) => {
            log.diagnostics.push((**why).clone());
            return Ok(None);
        }
    };
    let Some(own) = own else { return Ok(Some(input)) };
    log.open_source(source, &sidecar.locator, &[], SourceOrder::Source, place.is_some())?;
    keep(place, source, own)?;
    let mut at = 0;
    for line in own.split_inclusive(|b| *b == b'\n') {
        let text = std::str::from_utf8(line).unwrap_or_default().trim_end();
        input.lines += 1;
        if let Ok(raw) = Raw::parse(text) {
            let span = Span { at, len: text.len() as u64, line: input.lines };
            record(rollout, sidecar.role, &raw, span, &mut input)?;
            input.records += 1;
        }
        at += line.len() as u64;
    }
    rollout.out.log.close_source(source, &SourceEnd::of(own, input.records))?;
    Ok(Some(input))
}

/// One line: kept, if nothing tells all of it, and what it tells.
fn record(
    rollout: &mut Rollout,
    role: Role,
    raw: &Raw<'_>,
    span: Span,
    input: &mut InputReport,
) -> Result<(), ImportError> {
    let told: Told = serde_json::from_str(raw.get()).unwrap_or_default();
    let source = role.source();
    let table = told.table.as_deref().unwrap_or_default();
    let row = told.row;
    let key = row.child_thread_id.clone().or(row.id.clone()).filter(|_| !table.is_empty());
    let mut data: Vec<Data<'_>> = Vec::new();
    match (role, told.thread_name) {
        // The file is only ever added to: the last name counts.
        (Role::Index, Some(name)) => data.push(ConfigSet { title: Some(name.into()), ..EMPTY_CONFIG }.into()),
        _ => {
            let kind = if table.is_empty() { source.to_owned() } else { format!("{source}/{table}") };
            data.push(rollout.out.log.kept(&kind, raw.borrowed()));
            input.kept += 1;
        }
    }
    let observed =
        |fact: &'static str, subject: Option<String>, as_of: Option<Time<'static>>, detail: Option<String>| {
            ObservationRecorded {
                fact: fact.into(),
                subject: subject.map(Into::into),
                as_of,
                source: source.into(),
                detail: detail.map(|text| Value::from(text.as_str()).into_owned()),
            }
        };
    match table {
        "threads" => {
            if let Some(name) = row.name {
                data.push(ConfigSet { title: Some(name.into()), ..EMPTY_CONFIG }.into());
            }
            if row.archived.is_some_and(|archived| archived != 0) {
                let seconds = row.archived_at.and_then(|at| jiff::Timestamp::from_second(at).ok());
                data.push(observed("archived", None, seconds.and_then(|at| Time::parse(at.to_string())), None).into());
            }
        }
        "thread_spawn_edges" => {
            if let Some(child) = row.child_thread_id {
                let log = ids::log(&FORMAT, &child);
                if rollout.told_of.insert(child.clone()) {
                    let spawned = ChildSpawned {
                        child: log.clone().into(),
                        session: child.into(),
                        action: None,
                        kind: ChildKind::Subagent,
                        link: ChildLink::Explicit,
                    };
                    data.push(spawned.into());
                }
                // The client leaves it open when the child has ended: it proves nothing.
                data.push(observed("child", Some(log), None, row.status).into());
            }
        }
        "queued_items" => {
            if let (Some(id), Some(payload)) = (row.id, row.payload_json) {
                let value = match Raw::parse(&payload) {
                    Ok(raw) => Value::Inline(raw.into_owned()),
                    Err(_) => Value::from(payload.as_str()).into_owned(),
                };
                data.push(InputQueued { input: id.into(), parts: vec![Part::Json { value }] }.into());
            }
        }
        _ => {}
    }
    let log = &mut rollout.out.log;
    let known = key.as_ref().map(|key| format!("{table}/{key}/{}", palog::blob::digest(raw.get().as_bytes())));
    let native = known.as_deref().map_or(Native::Offset(span.at), Native::Uuid);
    let ids = log.ids(source);
    for (ordinal, data) in (0..).zip(data) {
        let kept = matches!(data, Data::Kept(..));
        let mut draft = Draft::new(ids.event(native, ordinal).hex(), ActorKind::Importer, data);
        draft.ignorable = kept.then_some(true);
        let place = src(source, span, kept.then_some(SrcHow::Opaque));
        draft.src.push(match &key {
            Some(key) => Src {
                at: None,
                len: None,
                table: Some(table.to_owned().into()),
                key: Some(key.clone().into()),
                ..place
            },
            None => place,
        });
        log.append(&mut draft)?;
    }
    Ok(())
}

/// Keeps the session's part of a file beside its log.
fn keep(place: Option<&Path>, source: &str, bytes: &[u8]) -> Result<(), ImportError> {
    let Some(place) = place else { return Ok(()) };
    let copy = File::create(place.join(source)).and_then(|mut file| file.write_all(bytes));
    copy.map_err(|e| ImportError::Write(e.into()))
}
