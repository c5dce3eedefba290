//! Turns the messages of one session, one after the other, into the events of one log.

mod parts;
mod prompts;
pub(crate) mod step;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog::envelope::{ActorKind, Draft, SrcHow};
use palog::events::{BranchMoved, ConfigSet, Data, KeptRecord, NoteAdded};
use palog::json::{Raw, Value};
use palog::writer::WriteError;
use palog_adapter::ids::{EventId, Ids};
use palog_adapter::source::note;
use palog_adapter::{InputReport, Log};
use serde::Serialize;

use crate::FORMAT;
use crate::approvals::Approvals;
use crate::calls::Calls;
use crate::compaction::{Compactions, Pruned};
use crate::record::{Head, Info, Origin, Part, Record, Revert, time};

pub(crate) type Written = Result<(), WriteError>;

/// Which event of a record an event is: what tells their ids apart.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    /// What the record says first.
    First = 0,
    Turn = 1,
    Config = 2,
    Response = 3,
    TurnEnd = 4,
    Compaction = 5,
    Pruned = 6,
    Ended = 7,
    Denied = 8,
    Child = 9,
    Result = 10,
    Observed = 11,
    Unsaid = 12,
    Kept = 13,
    History = 14,
    Moved = 15,
    InputEnd = 16,
    Stray = 17,
}

/// Where an event comes from.
pub(crate) struct Told<'o> {
    /// The record that its id is made from.
    at: &'o Origin,
    slot: Slot,
    /// All records that it comes from; none = the one above.
    from: Vec<&'o Origin>,
    /// When it happened, in milliseconds.
    time: Option<i64>,
    how: Option<SrcHow>,
    ext: Option<Raw<'static>>,
}

impl<'o> Told<'o> {
    pub(crate) fn by(at: &'o Origin, slot: Slot) -> Self {
        Told { at, slot, from: Vec::new(), time: None, how: None, ext: None }
    }

    pub(crate) fn time(mut self, time: Option<i64>) -> Self {
        self.time = time;
        self
    }

    pub(crate) fn from(mut self, from: Vec<&'o Origin>) -> Self {
        self.from = from;
        self
    }

    pub(crate) fn how(mut self, how: SrcHow) -> Self {
        self.how = Some(how);
        self
    }

    /// Members of the vendor's own that are worth having at hand.
    pub(crate) fn ext<T: Serialize>(mut self, members: &T) -> Self {
        self.ext = Some(Raw::of(&BTreeMap::from([(FORMAT.namespace, members)])));
        self
    }
}

/// A message that was written, and its events on the path.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) message: String,
    pub(crate) events: Vec<EventId>,
}

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

/// What the log says at the end, of things that may have changed since.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) origin: Origin,
    pub(crate) action: String,
    pub(crate) fact: &'static str,
    pub(crate) time: Option<i64>,
    pub(crate) detail: Option<Value<'static>>,
}

/// One log while it is written.
pub(crate) struct Mapper {
    pub(crate) log: Log,
    /// What was read for it.
    pub(crate) input: InputReport,
    /// Name of the source that the records come from.
    pub(crate) source: String,
    ids: Ids,
    /// The session is that of an agent that another one started.
    pub(crate) is_child: bool,
    /// Version of the client that made the session.
    version: Option<String>,
    calls: Calls,
    pub(crate) approvals: Approvals,
    pub(crate) compactions: Compactions,
    placed: Vec<Placed>,
    /// Prompts that began a turn.
    turns: HashSet<String>,
    model: Option<String>,
    mode: Option<String>,
    /// Agents that a record told of.
    pub(crate) told_of: HashSet<String>,
    observed: Vec<Observed>,
    /// Accepted prompts that a message holds which is still to come.
    pub(crate) waiting: HashMap<String, Origin>,
    blobs: HashSet<String>,
    /// Where the client keeps outputs that it cut, and those that were looked at.
    pub(crate) outputs: Option<PathBuf>,
    pub(crate) spilled: Vec<PathBuf>,
}

impl Mapper {
    pub(crate) fn new(log: Log, source: &str, input: InputReport) -> Self {
        let ids = log.ids(source);
        Mapper {
            log,
            input,
            source: source.to_owned(),
            ids,
            is_child: false,
            version: None,
            calls: Calls::default(),
            approvals: Approvals::default(),
            compactions: Compactions::default(),
            placed: Vec::new(),
            turns: HashSet::new(),
            model: None,
            mode: None,
            told_of: HashSet::new(),
            observed: Vec::new(),
            waiting: HashMap::new(),
            blobs: HashSet::new(),
            outputs: None,
            spilled: Vec::new(),
        }
    }

    /// Appends an event and returns its id.
    pub(crate) fn append<'d>(
        &mut self,
        told: Told<'_>,
        actor: ActorKind,
        data: impl Into<Data<'d>>,
    ) -> Result<EventId, WriteError> {
        let id = told.at.event(&self.ids, told.slot as u32);
        self.append_as(id, told, actor, data)
    }

    fn append_as<'d>(
        &mut self,
        id: EventId,
        told: Told<'_>,
        actor: ActorKind,
        data: impl Into<Data<'d>>,
    ) -> Result<EventId, WriteError> {
        let mut draft = Draft::new(id.hex(), actor, data).at(told.time.and_then(time));
        draft.ignorable = matches!(draft.data, Data::Kept(..)).then_some(true);
        let from = if told.from.is_empty() { vec![told.at] } else { told.from };
        draft.src = from.into_iter().map(|origin| origin.src(&self.source, told.how)).collect();
        draft.ext = told.ext;
        self.log.append(&mut draft)?;
        Ok(id)
    }

    /// Reports something about a record.
    pub(crate) fn report(&mut self, code: Code, severity: Severity, place: Place) {
        let place = Place { session: Some(self.log.session().to_owned()), ..place };
        self.log.diagnostics.push(Diagnostic::new(code, severity, place));
    }

    pub(crate) fn place(&self, origin: &Origin) -> Place {
        origin.place(&self.input.path)
    }

    /// Keeps a record that maps to nothing, verbatim.
    pub(crate) fn keep(&mut self, record: &Record<'_>, kind: &str) -> Written {
        let kind = if kind.is_empty() { "unexpected" } else { kind };
        let value = match Raw::parse(&record.text) {
            Ok(raw) => Value::Inline(raw),
            Err(_) => Value::from(&*record.text).into_owned(),
        };
        let data = Data::Kept(format!("x.{}/{kind}", FORMAT.namespace).into(), KeptRecord { record: value });
        self.input.kept += 1;
        let told = Told::by(&record.origin, Slot::Kept).time(record.created).how(SrcHow::Opaque);
        self.append(told, ActorKind::Importer, data).map(drop)
    }

    /// A record that has not the form of its kind.
    pub(crate) fn odd(&mut self, record: &Record<'_>) -> Written {
        let place = self.place(&record.origin);
        self.report(Code::UnexpectedShape, Severity::Warning, place);
        self.keep(record, &record.kind)
    }

    /// What the session says of itself.
    pub(crate) fn session(&mut self, record: &Record<'_>, head: &Head<'_>) -> Written {
        self.version = head.version.as_ref().map(ToString::to_string);
        let set = ConfigSet {
            title: head.title.clone(),
            directory: head.directory.clone(),
            client_version: head.version.clone(),
            ..EMPTY_CONFIG
        };
        let created = head.time.and_then(|t| t.created).or(record.created);
        let told = Told::by(&record.origin, Slot::First).time(created).how(SrcHow::Degraded);
        self.append(told, ActorKind::Harness, set)?;
        if head.title.as_ref().is_some_and(|title| is_title_of_fork(title)) {
            let text =
                "the title says that it is a fork; nothing records of which session, so what was copied counts here";
            self.log.about("lineage", 0, NoteAdded { text: Some(Value::from(text)), ..note("lineage") })?;
        }
        Ok(())
    }

    /// One message with its parts, in the order of their ids. `removed` says that only what the client recorded of its changes
    /// still has it.
    pub(crate) fn message(&mut self, message: &Record<'_>, parts: &[Record<'_>]) -> Written {
        let Some(info) = message.read::<Info<'_>>() else {
            self.odd(message)?;
            return self.strays(&message.id, parts);
        };
        let created = info.time.and_then(|t| t.created).or(message.created);
        self.prune(created)?;
        let read: Vec<Option<Part<'_>>> = parts.iter().map(Record::read).collect();
        self.begin_message(&message.id);
        let mut group = Group {
            message,
            created,
            parts,
            read: &read,
            told: vec![false; parts.len()],
            begun: false,
            slot: Slot::First,
        };
        match info.role.as_deref() {
            Some("user") => self.prompt(&mut group, &info)?,
            Some("assistant") => self.answer(&mut group, &info)?,
            _ => {
                self.odd(message)?;
                group.begun = true;
                self.unseen(&mut group)?;
            }
        }
        let Group { told, begun, .. } = group;
        if !begun {
            self.keep(message, "message")?;
        }
        for (part, told) in parts.iter().zip(told) {
            if !told {
                self.keep_part(part)?;
            }
        }
        Ok(())
    }

    /// Parts without a message that can be read. The client does not see them; what they say was done was done.
    pub(crate) fn strays(&mut self, message: &str, parts: &[Record<'_>]) -> Written {
        let Some(first) = parts.first() else { return Ok(()) };
        let read: Vec<Option<Part<'_>>> = parts.iter().map(Record::read).collect();
        let holder = Record {
            kind: "message".into(),
            id: message.to_owned(),
            created: first.created,
            text: "{}".into(),
            origin: first.origin.clone(),
        };
        let mut group = Group {
            message: &holder,
            created: first.created,
            parts,
            read: &read,
            told: vec![false; parts.len()],
            begun: true,
            slot: Slot::Stray,
        };
        self.unseen(&mut group)?;
        for (part, told) in parts.iter().zip(group.told) {
            if !told {
                self.keep_part(part)?;
            }
        }
        Ok(())
    }

    /// Keeps a part; one that nobody knows is told of.
    fn keep_part(&mut self, record: &Record<'_>) -> Written {
        let part: Option<Part<'_>> = record.read();
        let kind = part.as_ref().map(|p| p.kind().to_owned()).unwrap_or_default();
        if part.is_none() {
            return self.odd(record);
        }
        if !parts::KNOWN.contains(&kind.as_str()) {
            let place = Place { kind: Some(kind.clone()), ..self.place(&record.origin) };
            self.report(Code::UnknownBlock, Severity::Warning, place);
        }
        self.keep(record, &format!("part/{}", if kind.is_empty() { "unexpected" } else { &kind }))
    }

    /// Records that say again, or said before, what the events before say.
    pub(crate) fn history(&mut self, origins: &[Origin]) -> Written {
        // A line has room for some hundred references.
        for chunk in origins.chunks(500) {
            let Some(first) = chunk.first() else { continue };
            let told = Told::by(first, Slot::History).from(chunk.iter().collect()).how(SrcHow::Degraded);
            let note = NoteAdded {
                source: Some(self.source.clone().into()),
                records: Some(chunk.len() as u64),
                ..note("history")
            };
            self.append(told, ActorKind::Importer, note)?;
        }
        Ok(())
    }

    /// The head goes back to before a message.
    pub(crate) fn back_to_before(&mut self, origin: &Origin, message: &str, part: Option<&str>) -> Written {
        let Some(at) = self.placed.iter().position(|p| p.message == message) else {
            let place = Place { names: Some(message.to_owned()), ..self.place(origin) };
            self.report(Code::MissingParent, Severity::Warning, place);
            return Ok(());
        };
        // With a part, what the message says before that part stays; it is one event here.
        let until = if part.is_some() { at + 1 } else { at };
        let to = self.placed[..until].iter().rev().find_map(|p| p.events.last());
        let to = to.map_or_else(|| "root".to_owned(), |id| id.hex());
        let told = Told::by(origin, Slot::Moved);
        self.append(told, ActorKind::User, BranchMoved { to: to.into() }).map(drop)
    }

    /// What a person took back and has not gone on from.
    pub(crate) fn reverted(&mut self, origin: &Origin, revert: &Revert) -> Written {
        self.back_to_before(origin, &revert.message, revert.part.as_deref())
    }

    /// Says what became of results whose content was dropped before `until`.
    fn prune(&mut self, until: Option<i64>) -> Written {
        for Pruned { action, origin, time } in self.compactions.dropped_before(until) {
            let data = palog::events::ContextCompacted {
                trigger: None,
                window: None,
                pruned: Some(vec![action.into()]),
                tokens_before: None,
                tokens_after: None,
            };
            let id = self.append(Told::by(&origin, Slot::Pruned).time(Some(time)), ActorKind::Harness, data)?;
            self.on_path(id);
        }
        Ok(())
    }

    /// An event of the newest message is on the path.
    pub(crate) fn on_path(&mut self, id: EventId) {
        if let Some(placed) = self.placed.last_mut() {
            placed.events.push(id);
        }
    }

    /// What can be said when all messages were written.
    pub(crate) fn conclude(&mut self) -> Written {
        self.prune(None)?;
        for (place, passed) in self.calls.silent() {
            let code = if passed { Code::ResultLost } else { Code::CallWithoutResult };
            self.report(code, Severity::Warning, place);
        }
        for observed in std::mem::take(&mut self.observed) {
            let Observed { origin, action, fact, time: as_of, detail } = observed;
            let data = palog::events::ObservationRecorded {
                fact: fact.into(),
                subject: Some(action.into()),
                as_of: as_of.and_then(time),
                source: self.source.clone().into(),
                detail,
            };
            self.append(Told::by(&origin, Slot::Observed).time(as_of), ActorKind::Importer, data)?;
        }
        Ok(())
    }

    /// Members of the definition: written when they change.
    fn settle(&mut self, group: &Group<'_, '_>, info: &Info<'_>) -> Written {
        let model = info.full_model().filter(|m| self.model.as_ref() != Some(m));
        let mode = info.agent.as_ref().map(ToString::to_string).filter(|m| self.mode.as_ref() != Some(m));
        // The answer of a compaction is made by an agent of its own, and others go on after it.
        if info.is_summary() || (model.is_none() && mode.is_none()) {
            return Ok(());
        }
        self.model = model.clone().or(self.model.take());
        self.mode = mode.clone().or(self.mode.take());
        let set = ConfigSet { model: model.map(Into::into), mode: mode.map(Into::into), ..EMPTY_CONFIG };
        let told = Told::by(&group.message.origin, Slot::Config).time(group.created);
        self.append(told, ActorKind::Harness, set).map(drop)
    }

    /// Who speaks in a prompt: to an agent, the one that started it does.
    pub(crate) fn asker(&self) -> ActorKind {
        if self.is_child { ActorKind::Agent } else { ActorKind::User }
    }

    /// A message begins.
    pub(crate) fn begin_message(&mut self, message: &str) {
        self.placed.push(Placed { message: message.to_owned(), events: Vec::new() });
    }

    /// A prompt began a turn.
    pub(crate) fn begin_turn(&mut self, message: &str) {
        self.calls.prompted();
        self.turns.insert(message.to_owned());
    }

    /// The model said something.
    pub(crate) fn begin_answer(&mut self) {
        self.calls.spoke();
    }

    /// The action that the next use of a call id stands for.
    pub(crate) fn name_call(&mut self, id: &str) -> String {
        self.calls.name(id)
    }

    /// A call of which no end is told.
    pub(crate) fn unended(&mut self, action: &str, place: Place) {
        self.calls.unended(action, place);
    }

    /// It is known what a call waits for, or that it was refused.
    pub(crate) fn explained(&mut self, action: &str) {
        self.calls.explained(action);
    }

    /// Something that may have changed since is told at the end.
    pub(crate) fn observed(&mut self, observed: Observed) {
        self.observed.push(observed);
    }

    /// Whether a client of this version made the session.
    pub(crate) fn is_version(&self, version: &str) -> bool {
        self.version.as_deref() == Some(version)
    }

    /// The events of the message number `at` that are on the path.
    pub(crate) fn events_of(&self, at: usize) -> impl Iterator<Item = EventId> + '_ {
        self.placed[at].events.iter().copied()
    }

    /// The messages, by id.
    pub(crate) fn known_messages(&self) -> BTreeMap<&str, usize> {
        self.placed.iter().enumerate().map(|(at, p)| (p.message.as_str(), at)).collect()
    }
}

/// A message while it is written.
pub(crate) struct Group<'g, 'r> {
    message: &'g Record<'r>,
    /// When it was made.
    created: Option<i64>,
    parts: &'g [Record<'r>],
    /// The parts that can be read.
    read: &'g [Option<Part<'g>>],
    /// Which parts an event comes from.
    told: Vec<bool>,
    /// Whether an event comes from the message itself.
    begun: bool,
    /// What its first event is to its record.
    slot: Slot,
}

impl<'g> Group<'g, '_> {
    /// Native id of the message.
    pub(crate) fn id(&self) -> &'g str {
        &self.message.id
    }

    /// Where the message stands.
    pub(crate) fn origin(&self) -> &'g Origin {
        &self.message.origin
    }

    /// An event comes from the part number `at`.
    pub(crate) fn tell(&mut self, at: usize) {
        self.told[at] = true;
    }

    /// Marks parts as told, and returns the records of an event that comes from them and from the message.
    fn records(&mut self, parts: &[usize]) -> Vec<&'g Origin> {
        let mut all = vec![&self.message.origin];
        for at in parts {
            self.told[*at] = true;
            all.push(&self.parts[*at].origin);
        }
        self.begun = true;
        all
    }

    /// The parts with what they say.
    fn each(&self) -> impl Iterator<Item = (usize, &'g Record<'g>, &'g Part<'g>)> + use<'g>
    where
        Self: 'g,
    {
        let (parts, read) = (self.parts, self.read);
        read.iter().enumerate().filter_map(move |(at, part)| Some((at, &parts[at], part.as_ref()?)))
    }
}

/// Whether the client gave the title to a fork.
fn is_title_of_fork(title: &str) -> bool {
    let number = title.strip_suffix(')').and_then(|t| t.rsplit_once(" (fork #")).map(|(_, n)| n);
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Calls by the id that the client gives them, for what other records say of them.
pub(crate) type ByCall<T> = HashMap<(String, String), T>;
