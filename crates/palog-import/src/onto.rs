//! Takes what is new or different in a source into a log that was imported before (spec 01, "Kept sources").
//!
//! The source is imported anew, into a place beside the log, and both are compared event by event. What the log does not say
//! yet is appended to it; a message that became another one is revised, and one that is gone is taken out of what the model
//! sees. Nothing in the log is rewritten, and a second time nothing is appended.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use palog::blob::{BlobStore, StoredName, hex, sibling};
use palog::envelope::{ActorKind, Draft, Event, Src};
use palog::events::{Data, MessageRevised, Part, SourceChange, SourceChanged, WindowItem};
use palog::json::Str;
use palog::live::{AppendError, Durability, Expect, LogFile, OpenError};
use palog::reader::{Item, Reader};
use palog_adapter::{Additions, Directory, ImportError, LogReport, Options, Report};
use sha2::{Digest, Sha256};

use crate::Session;
use crate::kept::Sources;

/// Why nothing, or not all, was appended.
#[derive(Debug)]
#[non_exhaustive]
pub enum OntoError {
    /// The source could not be imported.
    Import(ImportError),
    /// The log could not be read, or what lies beside it not be written.
    Io(PathBuf, io::Error),
    /// The log cannot be appended to.
    Open(PathBuf, OpenError),
    /// An event was refused.
    Append(PathBuf, AppendError),
    /// The session has no log of this id: the log is another session's.
    OtherSession(PathBuf),
}

impl std::fmt::Display for OntoError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OntoError::Import(error) => error.fmt(f),
            OntoError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            OntoError::Open(path, error) => write!(f, "{}: {error}", path.display()),
            OntoError::Append(path, error) => write!(f, "{}: {error}", path.display()),
            OntoError::OtherSession(path) => write!(f, "{} is the log of another session", path.display()),
        }
    }
}

impl std::error::Error for OntoError {}

impl From<ImportError> for OntoError {
    fn from(error: ImportError) -> Self {
        OntoError::Import(error)
    }
}

/// A digest that stands for a place or a content.
type Mark = [u8; 16];

/// What a log says of one place in a source, by one type of event.
#[derive(Debug)]
struct Said {
    event: String,
    content: Mark,
    /// The source was found to say it still.
    still: bool,
}

/// A log that was imported before.
#[derive(Debug, Default)]
struct Known {
    said: HashMap<Mark, Vec<Said>>,
    ids: HashSet<String>,
    /// The place of each message, and the source that it is from.
    messages: HashMap<String, (Mark, String)>,
}

/// Appends to `target` what `session` holds and it does not: to this log, or to the logs of the session and its subagents in
/// this directory, where a log that is not there is made. The report tells of these logs alone.
///
/// # Errors
/// See [`OntoError`]. What was appended before stays, and the next time the rest is.
pub fn onto(session: &Session, target: &Path, options: &Options) -> Result<Report, OntoError> {
    let fail = |error| OntoError::Io(target.to_path_buf(), error);
    let folder = if target.is_dir() { Some(target) } else { target.parent() };
    let folder = folder.filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside = tempfile::Builder::new().prefix(".onto-").tempdir_in(folder).map_err(fail)?;
    let mut options = options.clone();
    options.sources &= target.is_dir() || sibling(target, "sources").is_dir();
    let mut report = session.import(&mut Directory::new(beside.path()), &options)?;
    let only = if target.is_dir() { None } else { Some(id_of(target).map_err(fail)?) };
    for made in std::mem::take(&mut report.logs) {
        let Some(fresh) = made.path.clone() else { continue };
        let log = match &only {
            None => folder.join(fresh.file_name().unwrap_or_default()),
            Some(id) if id_of(&fresh).map_err(fail)? == *id => target.to_path_buf(),
            Some(_) => continue,
        };
        let done =
            if log.exists() { add(&fresh, &log)? } else { place_anew(&fresh, &log, made.events).map_err(fail)? };
        report.logs.push(LogReport { path: Some(log), events: done.appended, onto: Some(done), ..made });
    }
    if report.logs.is_empty() {
        return Err(OntoError::OtherSession(target.to_path_buf()));
    }
    Ok(report)
}

/// Appends to `log` what the log `fresh` of the same session says and it does not.
fn add(fresh: &Path, log: &Path) -> Result<Additions, OntoError> {
    let fail = |error| OntoError::Io(log.to_path_buf(), error);
    if id_of(fresh).map_err(fail)? != id_of(log).map_err(fail)? {
        return Err(OntoError::OtherSession(log.to_path_buf()));
    }
    let known = Known::read(log).map_err(fail)?;
    move_blobs(fresh, log).map_err(fail)?;
    let sources = Sources::merge(&sibling(fresh, "sources"), &sibling(log, "sources")).map_err(fail)?;
    let (names, done) = (HashMap::new(), Additions::default());
    let mut addition = Addition { log, known, out: None, sources, names, done };
    addition.take_all(fresh)?;
    addition.take_out()?;
    addition.finish()
}

/// Puts a log with what lies beside it where none is.
fn place_anew(fresh: &Path, log: &Path, events: u64) -> io::Result<Additions> {
    if sibling(fresh, "sources").is_dir() {
        fs::rename(sibling(fresh, "sources"), sibling(log, "sources"))?;
    }
    move_blobs(fresh, log)?;
    fs::hard_link(fresh, log).or_else(|_| fs::rename(fresh, log))?;
    Ok(Additions { appended: events, ..Additions::default() })
}

/// The id of a log, which its first line tells.
fn id_of(path: &Path) -> io::Result<String> {
    let mut reader = Reader::new(File::open(path)?);
    match reader.next()? {
        Some(Item::Event(event, _)) => Ok(event.log.to_string()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "it does not begin like a log")),
    }
}

fn mark(parts: &[&[u8]]) -> Mark {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    let mut mark = Mark::default();
    mark.copy_from_slice(&digest.finalize()[..16]);
    mark
}

/// The place that an event tells of: its first record, and its type. What an importer says itself has none but its kind.
fn place(event: &Event<'_>, data: &Data<'_>, rename: &BTreeMap<String, String>) -> Mark {
    let renamed = |source: &str| rename.get(source).cloned().unwrap_or_else(|| source.to_owned());
    let (about, at) = match (event.src.first(), data) {
        (Some(Src { source, at: Some(at), .. }), _) => (renamed(source), at.to_string()),
        (Some(src), _) => {
            let text = |s: &Option<Str<'_>>| s.as_ref().map(ToString::to_string).unwrap_or_default();
            (renamed(&src.source), format!("{}\0{}", text(&src.table), text(&src.key)))
        }
        (None, Data::NoteAdded(note)) => {
            (note.source.as_deref().map(renamed).unwrap_or_default(), note.kind.to_string())
        }
        (None, Data::SourceOpened(opened)) => (renamed(&opened.source), String::new()),
        (None, _) => Default::default(),
    };
    mark(&[event.kind.as_bytes(), about.as_bytes(), at.as_bytes()])
}

/// What an event says, apart from where it stands. Of a message, what the model sees of it.
fn content(event: &Event<'_>, data: &Data<'_>) -> Mark {
    let json = |value: &Data<'_>| serde_json::to_vec(value).unwrap_or_default();
    match data {
        Data::MessageAdded(message) => shown(Some(&message.parts), message.in_context != Some(false)),
        _ => {
            let actor = serde_json::to_vec(&event.actor).unwrap_or_default();
            let ext = event.ext.as_ref().map(|ext| ext.get()).unwrap_or_default();
            mark(&[event.kind.as_bytes(), &actor, ext.as_bytes(), &json(data)])
        }
    }
}

/// What the model sees of a message.
fn shown(parts: Option<&Vec<Part<'_>>>, is_seen: bool) -> Mark {
    let parts = parts.filter(|_| is_seen).map(|parts| serde_json::to_vec(parts).unwrap_or_default());
    mark(&[parts.as_deref().unwrap_or(b"not seen")])
}

/// Whether only the newest event at a place counts.
fn last_wins(data: &Data<'_>) -> bool {
    matches!(data, Data::ConfigSet(_) | Data::ModelResponse(_) | Data::ObservationRecorded(_))
}

impl Known {
    fn read(log: &Path) -> io::Result<Self> {
        let mut known = Known::default();
        let mut reader = Reader::new(BufReader::with_capacity(1 << 20, File::open(log)?));
        let none = BTreeMap::new();
        while let Some(item) = reader.next()? {
            let Item::Event(event, _) = item else { continue };
            known.ids.insert(event.id.to_string());
            let Ok(data) = event.data() else { continue };
            if let Data::MessageRevised(revision) = &data {
                let content = shown(revision.parts.as_ref(), revision.removed != Some(true));
                known.revise(&revision.message, content);
                continue;
            }
            let at = place(&event, &data, &none);
            if matches!(data, Data::MessageAdded(_)) {
                let source = event.src.first().map(|src| src.source.to_string()).unwrap_or_default();
                known.messages.insert(event.id.to_string(), (at, source));
            }
            known.add(at, event.id.to_string(), content(&event, &data));
        }
        Ok(known)
    }

    fn add(&mut self, at: Mark, event: String, content: Mark) {
        self.said.entry(at).or_default().push(Said { event, content, still: false });
    }

    fn revise(&mut self, message: &str, content: Mark) {
        let said = self.messages.get(message).and_then(|(at, _)| self.said.get_mut(at)).into_iter().flatten();
        said.filter(|said| said.event == message).for_each(|said| said.content = content);
    }

    /// The event that says this at this place.
    fn find(&mut self, at: &Mark, content: &Mark, last_wins: bool) -> Option<&str> {
        let said = self.said.get_mut(at)?;
        if last_wins {
            let is_last = said.last().is_some_and(|last| last.content == *content);
            said.iter_mut().for_each(|said| said.still = true);
            return said.last().filter(|_| is_last).map(|last| last.event.as_str());
        }
        let same = said.iter_mut().find(|said| !said.still && said.content == *content)?;
        same.still = true;
        Some(&same.event)
    }

    /// The first message at this place that nothing was found for yet.
    fn first_left(&mut self, at: &Mark) -> Option<&mut Said> {
        self.said.get_mut(at)?.iter_mut().find(|said| !said.still)
    }

    /// An id for an event that the source says with an id that another event has.
    fn free_id(&self, id: &str, content: &Mark) -> String {
        if !self.ids.contains(id) {
            return id.to_owned();
        }
        let mut id = hex(&mark(&[id.as_bytes(), content]));
        while self.ids.contains(&id) {
            id = hex(&mark(&[id.as_bytes(), content]));
        }
        id
    }
}

/// What is being appended.
struct Addition<'l> {
    log: &'l Path,
    known: Known,
    /// The log, opened when there is something to append.
    out: Option<LogFile>,
    sources: Sources,
    /// Events of the fresh import, by what they are called in the log.
    names: HashMap<String, String>,
    done: Additions,
}

impl Addition<'_> {
    /// Compares every event of the log `fresh`, and appends what is new.
    fn take_all(&mut self, fresh: &Path) -> Result<(), OntoError> {
        let fail = |error| OntoError::Io(fresh.to_path_buf(), error);
        let mut reader = Reader::new(BufReader::with_capacity(1 << 20, File::open(fresh).map_err(fail)?));
        while let Some(item) = reader.next().map_err(fail)? {
            let Item::Event(event, line) = item else { continue };
            match event.data() {
                Ok(Data::LogOpened(_)) => {}
                Ok(data) => self.take(&event, data)?,
                Err(error) => return Err(fail(io::Error::other(format!("line {}: {error}", line.number)))),
            }
        }
        Ok(())
    }

    fn take(&mut self, event: &Event<'_>, mut data: Data<'_>) -> Result<(), OntoError> {
        self.sources.rename_in(&mut data);
        self.name_in(&mut data);
        let at = place(event, &data, &self.sources.names);
        let content = content(event, &data);
        if let Some(known) = self.known.find(&at, &content, last_wins(&data)) {
            self.names.insert(event.id.to_string(), known.to_owned());
            return Ok(());
        }
        if let Data::MessageAdded(message) = &data
            && let Some(said) = self.known.first_left(&at)
        {
            (said.still, said.content) = (true, content);
            let known = said.event.clone();
            let is_seen = message.in_context != Some(false);
            let revision = MessageRevised {
                message: known.clone().into(),
                parts: is_seen.then(|| message.parts.clone()),
                removed: (!is_seen).then_some(true),
            };
            self.names.insert(event.id.to_string(), known);
            self.done.revised += 1;
            return self.append(event, content, revision.into());
        }
        self.append(event, content, data)
    }

    /// Appends an event of the fresh import with the payload `data`.
    fn append(&mut self, event: &Event<'_>, content: Mark, data: Data<'_>) -> Result<(), OntoError> {
        let id = self.known.free_id(&event.id, &content);
        let own = |name: &Str<'_>| self.names.get(name.as_str()).cloned().unwrap_or_else(|| name.to_string());
        let mut copy = event.copy.clone();
        if let Some(copy) = copy.as_mut().filter(|copy| copy.log.is_none()) {
            copy.event = copy.event.as_ref().map(|name| own(name).into());
        }
        let mut src = event.src.clone();
        src.iter_mut().for_each(|src| src.source = self.sources.name(&src.source).into());
        let mut draft = Draft {
            id: id.clone().into(),
            time: event.time.clone(),
            recorded: event.recorded.clone(),
            actor: event.actor.clone(),
            epoch: event.epoch,
            parent: event.parent.as_ref().map(|name| own(name).into()),
            cause: event.cause.iter().map(|name| own(name).into()).collect(),
            copy,
            src,
            ignorable: event.ignorable,
            ext: event.ext.clone(),
            data,
        };
        self.write(&mut draft)?;
        if id != event.id.as_str() {
            self.names.insert(event.id.to_string(), id);
        }
        Ok(())
    }

    fn write(&mut self, draft: &mut Draft<'_>) -> Result<(), OntoError> {
        let path = || self.log.to_path_buf();
        if self.out.is_none() {
            self.out = Some(LogFile::open(self.log).map_err(|error| OntoError::Open(path(), error))?);
        }
        let id = draft.id.to_string();
        if let Some(out) = &mut self.out {
            out.append(draft, Expect::default(), Durability::Buffered).map_err(|e| OntoError::Append(path(), e))?;
        }
        self.known.ids.insert(id);
        self.done.appended += 1;
        Ok(())
    }

    /// Events that a payload refers to, by what they are called in the log.
    fn name_in(&self, data: &mut Data<'_>) {
        let rename = |name: &mut Str<'_>| {
            if let Some(own) = self.names.get(name.as_str()) {
                *name = own.clone().into();
            }
        };
        match data {
            Data::TurnStarted(started) => started.message.iter_mut().for_each(rename),
            Data::InputEnded(ended) => ended.message.iter_mut().for_each(rename),
            Data::BranchMoved(moved) => rename(&mut moved.to),
            Data::NoteAdded(note) => note.about.iter_mut().for_each(rename),
            Data::ContextCompacted(compacted) => {
                for item in compacted.window.iter_mut().flatten() {
                    if let WindowItem::Event { event, .. } = item {
                        rename(event);
                    }
                }
            }
            _ => {}
        }
    }

    /// Takes messages that are gone out of what the model sees.
    fn take_out(&mut self) -> Result<(), OntoError> {
        let unseen = shown(None, false);
        let mut gone: Vec<String> = Vec::new();
        for (message, (at, source)) in &self.known.messages {
            let said = self.known.said.get(at).into_iter().flatten().find(|said| said.event == *message);
            if said.is_some_and(|said| !said.still && said.content != unseen) {
                gone.push(message.clone());
                let changed = (source.clone(), SourceChange::Rewritten);
                if self.sources.changed.iter().all(|(known, _)| known != source) {
                    self.sources.changed.push(changed);
                }
            }
        }
        gone.sort();
        for message in gone {
            let data = MessageRevised { message: message.clone().into(), parts: None, removed: Some(true) };
            let id = self.known.free_id(&hex(&mark(&[b"removed", message.as_bytes()])), &unseen);
            self.write(&mut Draft::new(id, ActorKind::Importer, data))?;
            self.done.removed += 1;
        }
        for (source, how) in std::mem::take(&mut self.sources.changed) {
            let id = hex(&mark(&[b"changed", source.as_bytes(), &self.sources.digest]));
            if !self.known.ids.contains(&id) {
                let data = SourceChanged { source: source.into(), how, at: None };
                self.write(&mut Draft::new(id, ActorKind::Importer, data))?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Additions, OntoError> {
        if let Some(out) = &mut self.out {
            out.flush(Durability::Sync).map_err(|error| OntoError::Append(self.log.to_path_buf(), error))?;
        }
        Ok(self.done)
    }
}

/// Moves the blobs of a log to another one; what is there already stays.
fn move_blobs(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (BlobStore::beside(from), BlobStore::beside(to));
    if !from.root().is_dir() {
        return Ok(());
    }
    for stored in from.list()? {
        let StoredName::Blob(digest) = stored?.name else { continue };
        if let (Some(old), Some(new)) = (from.path(&digest), to.path(&digest))
            && !new.exists()
        {
            fs::create_dir_all(new.parent().unwrap_or(&new))?;
            fs::rename(old, new)?;
        }
    }
    Ok(())
}
