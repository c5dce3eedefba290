//! Turns the entries of one session, one after the other, into the events of one log.
//!
//! An entry is mapped when it comes, without a look at what follows: so a file that grew gives the old log as a prefix.

mod clock;
mod context;
mod messages;
mod results;

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog::envelope::{ActorKind, Copy, CopyHow, Draft, Src, SrcHow, Time};
use palog::events::{ConfigSet, Data};
use palog::json::{Raw, Str};
use palog::writer::WriteError;
use palog_adapter::ids::{self, EventId, Ids, Native};
use palog_adapter::source::src;
use palog_adapter::sqlite::Row;
use palog_adapter::{Format, Records, Span, Taken, Transcript};

use crate::calls::Calls;
use crate::record::{Entry, KEPT, looks_like_record};
use crate::store::approvals::Approvals;
use crate::tree::{self, Step, Tree};
use clock::Clock;

pub(crate) use messages::prompt_text;

/// Where a record stands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At<'r> {
    /// In a file.
    Span(Span),
    /// In a database.
    Row(&'r Row),
}

/// The record at hand.
pub(crate) struct Here<'r> {
    /// Text of the entry, where it is that of the source byte for byte.
    text: &'r str,
    exact: bool,
    at: At<'r>,
    native: Native<'r>,
    id: Option<&'r str>,
    ordinal: u32,
    time: Option<Time<'r>>,
    /// Where it was copied from.
    copy: Option<Copied>,
    /// What its first event names as its parent.
    parent: Option<String>,
    /// Number of the entry in the tree.
    node: u32,
    kind: String,
    /// Its time as it stands, where that is none.
    odd_time: Option<Raw<'r>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copied {
    /// From the session that this one was forked from.
    Fork,
    /// From an earlier place in the same source.
    Replay(EventId),
}

/// What is known of a session before it is read.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Native id of the session that this one was forked from, of which records may have been copied.
    pub(crate) forked_from: Option<String>,
    /// It is the session of an agent that another one started.
    pub(crate) is_agent: bool,
    /// The first events of the entries, where they cannot be told from their ids alone: in databases.
    pub(crate) events: Option<HashMap<String, EventId>>,
    /// The requests for approval, by the call that they are about.
    pub(crate) approvals: Approvals,
}

/// One log while it is written.
pub(crate) struct Conversation {
    pub(crate) out: Transcript,
    pub(crate) known: Known,
    format: &'static Format,
    origin: Option<Ids>,
    tree: Tree,
    pub(crate) calls: Calls,
    clock: Clock,
    /// Digest of each entry by its id, to tell a replay from a reused id.
    digests: HashMap<String, u64>,
    blobs: HashSet<String>,
    /// Entries that hang under one that is not there: place, and number.
    unseen: HashMap<String, Vec<(Place, u32)>>,
    /// The header has come, and the entries below it have ids.
    has_ids: Option<bool>,
    /// When the fork was made; copies are older.
    forked: Option<Time<'static>>,
}

pub(crate) type Written = Result<(), WriteError>;

/// A definition that sets nothing.
pub(crate) const EMPTY_CONFIG: ConfigSet<'static> = ConfigSet {
    model: None,
    instructions: None,
    tools: None,
    skills: None,
    permission_mode: None,
    mode: None,
    client_version: None,
    directory: None,
    branch: None,
    title: None,
    policy_revision: None,
    manifest_digest: None,
};

impl Conversation {
    /// A session of which nothing was read.
    pub(crate) fn new(out: Transcript, known: Known) -> Self {
        let format = out.log.format();
        let origin = known.forked_from.as_ref().map(|from| Ids::new(format, from, "transcript"));
        Conversation {
            out,
            known,
            format,
            origin,
            tree: Tree::default(),
            calls: Calls::default(),
            clock: Clock::default(),
            digests: HashMap::new(),
            blobs: HashSet::new(),
            unseen: HashMap::new(),
            has_ids: None,
            forked: None,
        }
    }

    /// Maps one entry. `exact` says that `text` is the source's own bytes.
    pub(crate) fn entry(
        &mut self,
        entry: &Entry<'_>,
        text: &str,
        exact: bool,
        at: At<'_>,
        row: Option<Native<'_>>,
    ) -> Written {
        let kind = entry.kind();
        let id = entry.id.as_deref().filter(|_| !entry.is_header() && self.has_ids != Some(false));
        let seen = id.and_then(|id| Some((self.tree.find(id)?, self.digests.get(id).copied()?)));
        let digest = hash(text);
        let native = match (row, at, seen, id) {
            (Some(row), ..) => row,
            (None, At::Span(_), None, Some(id)) => Native::Uuid(id),
            (None, At::Span(span), ..) => Native::Offset(span.at),
            (None, At::Row(_), ..) => Native::Uuid(id.unwrap_or_default()),
        };
        self.out.count(kind.clone());
        if let At::Span(span) = at {
            self.out.look_at_text(text, exact, span);
        }
        let mut here = Here {
            text,
            exact,
            at,
            native,
            id,
            ordinal: 0,
            time: None,
            copy: None,
            parent: None,
            node: 0,
            kind,
            odd_time: None,
        };
        here.time = self.time_of(&here, entry);
        here.odd_time = entry.timestamp.as_ref().filter(|raw| crate::times::read(raw).time.is_none()).cloned();
        here.copy = match seen {
            Some((node, known)) => {
                let (code, copy) = if known == digest {
                    (Code::Replay, Some(Copied::Replay(self.tree.event(node))))
                } else {
                    (Code::IdReused, None)
                };
                let severity = if copy.is_some() { Severity::Info } else { Severity::Warning };
                self.report(&here, code, severity);
                copy
            }
            None if self.is_fork_copy(&here) => Some(Copied::Fork),
            None => None,
        };
        if here.copy == Some(Copied::Fork) {
            self.report(&here, Code::ForkedPrefix, Severity::Info);
        } else if self.has_ids.is_some() {
            self.forked = None;
        }
        let before = self.tree.last();
        self.link(&mut here, entry);
        self.dispatch(&mut here, entry)?;
        if let Some(id) = here.id {
            self.digests.entry(id.to_owned()).or_insert(digest);
        }
        let node = self.tree.last().filter(|_| self.tree.last() != before);
        self.tree.by_index.push(node);
        Ok(())
    }

    fn dispatch(&mut self, here: &mut Here<'_>, entry: &Entry<'_>) -> Written {
        match entry.r#type.as_deref().unwrap_or_default() {
            "session" if entry.id.is_some() => self.header(here, entry),
            "message" => match &entry.message {
                Some(message) => self.message(here, message),
                None => self.odd(here),
            },
            "compaction" => self.compaction(here, entry),
            "branch_summary" => self.branch_summary(here, entry.summary.as_ref()),
            "custom_message" => self.injected(here, entry.content.as_ref()),
            "model_change" if entry.model_id.is_some() => {
                let set = ConfigSet { model: entry.model_id.clone(), ..EMPTY_CONFIG };
                self.beside(here, set)
            }
            "session_info" if entry.name.is_some() => {
                self.beside(here, ConfigSet { title: entry.name.clone(), ..EMPTY_CONFIG })
            }
            "title" if entry.title.is_some() => {
                self.beside(here, ConfigSet { title: entry.title.clone(), ..EMPTY_CONFIG })
            }
            other => {
                if !entry.is_known() {
                    self.report(here, Code::UnknownType, Severity::Warning);
                } else if !KEPT.contains(&other) && other != "session_info" {
                    self.report(here, Code::UnexpectedShape, Severity::Warning);
                }
                self.keep(here)
            }
        }
    }

    /// The header: the first one is the file's own.
    fn header(&mut self, here: &mut Here<'_>, entry: &Entry<'_>) -> Written {
        if self.has_ids.is_some() {
            self.report(here, Code::SessionMismatch, Severity::Warning);
            return self.keep(here);
        }
        self.has_ids = Some(entry.has_ids());
        if !entry.has_ids() {
            self.report(here, Code::LegacyHeader, Severity::Info);
        }
        if self.known.forked_from.is_some() {
            self.forked = here.time.clone().map(Time::into_owned);
        }
        here.copy = None;
        let set = ConfigSet { directory: entry.cwd.clone(), ..EMPTY_CONFIG };
        if set == EMPTY_CONFIG {
            return self.keep(here);
        }
        self.emit(here, ActorKind::Harness, set).map(drop)
    }

    /// Entries that a fork took along are older than its header.
    fn is_fork_copy(&self, here: &Here<'_>) -> bool {
        let (Some(forked), Some(time)) = (&self.forked, &here.time) else { return false };
        time < forked
    }

    /// Finds the place of an entry in the tree.
    fn link(&mut self, here: &mut Here<'_>, entry: &Entry<'_>) {
        let last = self.tree.last();
        here.node = last.map_or(0, |n| n + 1);
        if entry.is_header() || matches!(here.copy, Some(Copied::Replay(_))) {
            return;
        }
        let named = entry.parent_id.as_ref().and_then(Raw::text);
        let up = match (&entry.parent_id, named.as_deref()) {
            _ if self.has_ids == Some(false) => last,
            (_, Some(named)) => match self.tree.find(named) {
                Some(up) => Some(up),
                None => {
                    let place = Place { names: Some(named.to_owned()), ..self.place(here) };
                    if here.id == Some(named) {
                        self.out.warn(Code::Cycle, place);
                    } else {
                        self.unseen.entry(named.to_owned()).or_default().push((place, here.node));
                    }
                    here.parent = Some(self.first_event(named).hex());
                    last
                }
            },
            // At a root the source says `null`.
            (Some(_), None) => None,
            (None, None) => {
                if last.is_some() && self.has_ids.is_some() {
                    self.report(here, Code::MissingParent, Severity::Warning);
                }
                last
            }
        };
        if here.parent.is_none() {
            here.parent = match self.tree.place(up) {
                tree::Place::Follows => None,
                tree::Place::Root => Some("root".into()),
                tree::Place::Under(event) => Some(event.hex()),
            };
        }
        let event = self.out.ids.event(here.native, 0);
        self.tree.enter(here.id, up, event, Step::Through);
        let waiting = here.id.and_then(|id| self.unseen.remove(id)).unwrap_or_default();
        if waiting.iter().any(|(_, node)| self.tree.hangs_under(here.node, *node)) {
            self.report(here, Code::Cycle, Severity::Warning);
        }
    }

    /// The first event of the entry with this id, also of one that has not come.
    pub(crate) fn first_event(&self, id: &str) -> EventId {
        let known = self.known.events.as_ref().and_then(|events| events.get(id)).copied();
        known.unwrap_or_else(|| self.out.ids.event(Native::Uuid(id), 0))
    }

    /// What the entry at hand puts on the path.
    fn step(&mut self, here: &Here<'_>, step: Step) {
        if !matches!(here.copy, Some(Copied::Replay(_))) {
            self.tree.set(here.node, step);
        }
    }

    /// Appends an event that is no message.
    fn beside<'d>(&mut self, here: &mut Here<'_>, data: impl Into<Data<'d>>) -> Written {
        self.emit(here, ActorKind::Harness, data).map(drop)
    }

    /// Appends an event of the record at hand and returns its id.
    fn emit<'d>(
        &mut self,
        here: &mut Here<'_>,
        actor: ActorKind,
        data: impl Into<Data<'d>>,
    ) -> Result<EventId, WriteError> {
        self.emit_how(here, actor, data, None)
    }

    fn emit_how<'d>(
        &mut self,
        here: &mut Here<'_>,
        actor: ActorKind,
        data: impl Into<Data<'d>>,
        how: Option<SrcHow>,
    ) -> Result<EventId, WriteError> {
        let how = if here.exact { how } else { Some(SrcHow::Degraded) };
        let id = self.out.ids.event(here.native, here.ordinal);
        let mut draft = Draft::new(id.hex(), actor, data);
        draft.time = here.time.clone();
        draft.src = vec![self.src(here, how)];
        draft.parent = here.parent.take().map(Str::from);
        draft.copy = match (here.copy, &self.known.forked_from, &self.origin) {
            (Some(Copied::Fork), Some(from), Some(origin)) => {
                let original = match here.native {
                    Native::Uuid(_) => Some(origin.event(here.native, here.ordinal).hex().into()),
                    // Places in the other source are other ones.
                    Native::Offset(_) | Native::Row(..) | Native::Own => None,
                };
                Some(Copy { log: Some(ids::log(self.format, from).into()), event: original, how: CopyHow::Fork })
            }
            (Some(Copied::Replay(event)), ..) => {
                let event = (here.ordinal == 0).then(|| event.hex().into());
                Some(Copy { log: None, event, how: CopyHow::Replay })
            }
            _ => None,
        };
        if matches!(draft.data, Data::Kept(..)) {
            draft.ignorable = Some(true);
        }
        if let Some(time) = here.odd_time.take() {
            draft.ext = Some(Raw::of(&HashMap::from([(self.format.namespace, HashMap::from([("timestamp", time)]))])));
        }
        here.ordinal += 1;
        self.out.log.append(&mut draft)?;
        Ok(id)
    }

    fn src<'s>(&self, here: &Here<'_>, how: Option<SrcHow>) -> Src<'s> {
        match here.at {
            At::Span(span) => src(&self.out.source, span, how),
            At::Row(row) => row.src(&self.out.source, how),
        }
    }

    /// The place of the record at hand.
    fn place(&self, here: &Here<'_>) -> Place {
        let record = here.id.map(str::to_owned);
        match here.at {
            At::Span(span) => Place { record, kind: Some(here.kind.clone()), ..self.out.place(span) },
            At::Row(row) => {
                let detail = Some(format!("{} {}", row.table(), row.key()));
                let input = Some(self.out.input.path.clone());
                Place { input, record, kind: Some(here.kind.clone()), detail, ..Place::default() }
            }
        }
    }

    /// The place of a piece of the record at hand.
    fn place_of(&self, here: &Here<'_>, piece: &str) -> Place {
        let mut place = self.place(here);
        let offset = (piece.as_ptr() as usize).checked_sub(here.text.as_ptr() as usize);
        if let (At::Span(span), Some(offset)) = (here.at, offset.filter(|o| o + piece.len() <= here.text.len()))
            && here.exact
        {
            place.offset = Some(span.at + offset as u64);
            place.length = Some(piece.len() as u64);
        }
        place
    }

    fn report(&mut self, here: &Here<'_>, code: Code, severity: Severity) {
        let place = self.place(here);
        self.out.log.diagnostics.push(Diagnostic::new(code, severity, place));
    }

    /// Keeps a record that maps to nothing.
    fn keep(&mut self, here: &mut Here<'_>) -> Written {
        self.out.input.kept += 1;
        let Ok(raw) = Raw::parse(here.text) else { return Ok(()) };
        let data = self.out.log.kept(&here.kind.clone(), raw);
        self.emit_how(here, ActorKind::Harness, data, Some(SrcHow::Opaque)).map(drop)
    }

    /// Keeps a record of a known type that has another form.
    fn odd(&mut self, here: &mut Here<'_>) -> Written {
        self.report(here, Code::UnexpectedShape, Severity::Warning);
        self.keep(here)
    }

    /// A record that could not be read.
    pub(crate) fn skip(&mut self) {
        self.tree.by_index.push(None);
    }

    /// The head, if the newest message is not the one that the record number `at` is or leads to.
    pub(crate) fn moved_to(&self, at: usize) -> Option<Option<EventId>> {
        self.tree.moved_to(*self.tree.by_index.get(at)?)
    }

    /// What can be said only when the source is over. Nothing of it is written.
    pub(crate) fn conclude(&mut self) {
        let mut unseen: Vec<Place> =
            std::mem::take(&mut self.unseen).into_values().flatten().map(|(place, _)| place).collect();
        unseen.sort_by_key(|place| place.offset);
        for place in unseen {
            self.out.warn(Code::MissingParent, place);
        }
        self.end_of_time();
        for (place, went_on) in self.calls.silent() {
            self.out.warn(if went_on { Code::ResultLost } else { Code::CallWithoutResult }, place);
        }
    }
}

fn hash(text: &str) -> u64 {
    let mut hash = DefaultHasher::new();
    text.hash(&mut hash);
    hash.finish()
}

impl Records for Conversation {
    fn transcript(&mut self) -> &mut Transcript {
        &mut self.out
    }

    fn take(&mut self, text: &str, exact: bool, span: Span) -> Result<Taken, WriteError> {
        let entry = match serde_json::from_str::<Entry<'_>>(text) {
            Ok(entry) => entry,
            Err(error) => return Ok(Taken::from_error(&error, text)),
        };
        if entry.r#type.is_none() {
            return Ok(Taken::Shapeless("it has no type".into()));
        }
        self.entry(&entry, text, exact, At::Span(span), None).map(|()| Taken::Record)
    }

    fn looks_like_record(text: &str) -> bool {
        looks_like_record(text)
    }

    fn readable_id(fragment: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(fragment);
        let (_, rest) = text.split_once("\"id\":\"")?;
        Some(rest.split_once('"')?.0.to_owned())
    }
}
