//! Turns the records of one transcript, one after the other, into the events of one log.
//!
//! A record is mapped when it comes, without a look at what follows: so a transcript that grew gives the old log as a
//! prefix (R-EVT-001, R-EVT-002). Where a later record can overturn a conclusion, the conclusion waits for it.

mod context;
mod identity;
mod kept;
mod messages;
mod results;

use identity::Seen;
use kept::Sidechains;
pub(crate) use messages::{prompt_text, text_hash};

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog::envelope::{ActorKind, Copy, CopyHow, Draft, Src, SrcHow, Time};
use palog::events::{
    ActionEnded, ActionProposed, ApprovalEnded, ApprovalOutcome, BranchMoved, ChildEnded, ChildKind, ChildLink,
    ChildSpawned, CompactionTrigger, ConfigSet, ContextCompacted, Data, Effect, InputEnded, InputOutcome, InputQueued,
    MessageAdded, ModelResponse, NoteAdded, Opaque, Part, Role, TurnEnd, TurnEnded, TurnStarted, Usage, WindowItem,
};
use palog::json::{Omission, Omitted, OmittedReason, Raw, Str, Value};
use palog::writer::{WriteError, args_digest};
use palog_adapter::export::{EndMark, Mark, Synthesized};
use palog_adapter::ids::{self, EventId, Ids, Native};
use palog_adapter::source::{note, src};
use palog_adapter::{Records, Span, Taken, Transcript};

use crate::FORMAT;
use crate::calls::Calls;
use crate::graph::{Class, Graph, Key, Parent, key};
use crate::members::{Read, read};
use crate::queue::{Operation, Queue};
use crate::record::{Block, Content, Message, Nullable, Record, ToolUseResult, is_misspelt, looks_like_record};
use crate::tools::{self, Facts, Verdict};

/// Types that are known and kept without being mapped (`spec/sources/claude-code.md`, "Records").
const KEPT: &[&str] = &[
    "agent-name",
    "atis-latch",
    "bridge-session",
    "file-history-delta",
    "file-history-snapshot",
    "frame-link",
    "last-prompt",
    "pr-link",
    "progress",
    "query_update",
    "relocated",
    "search_results_received",
    "worktree-state",
];

/// Subtypes of `system` that are known and kept.
const KEPT_SYSTEM: &[&str] =
    &["api_error", "away_summary", "informational", "scheduled_task_fire", "stop_hook_summary"];

/// Blocks of the provider that are known and carried as they stand.
const OPAQUE_BLOCKS: &[&str] = &[
    "code_execution_tool_result",
    "container_upload",
    "document",
    "mcp_tool_result",
    "mcp_tool_use",
    "search_result",
    "server_tool_use",
    "tool_reference",
    "web_fetch_tool_result",
    "web_search_tool_result",
];

/// The session that a fork was made from, and which records it copied.
pub(crate) struct Origin {
    /// Native id of that session.
    pub(crate) session: String,
    /// The copied records.
    pub(crate) shared: HashSet<Key>,
}

/// An error result of which the next record tells whether a person refused the call or stopped it.
struct Undecided {
    action: String,
    src: Src<'static>,
}

/// What is known of a response while its records come.
struct Response {
    number: u32,
    /// Hash of the token counts and the stop that were written last.
    written: u64,
}

/// The record at hand.
struct Here<'r> {
    record: &'r Record<'r>,
    /// Text of the record, where it is that of the source byte for byte.
    text: &'r str,
    exact: bool,
    span: Span,
    native: Native<'r>,
    ordinal: u32,
    time: Option<Time<'r>>,
    copied: bool,
    /// What it becomes does not hold all that it may say: it is kept as well.
    odd: bool,
    kept: bool,
    /// What an exporter says of it.
    mark: Mark,
}

/// One log while it is written.
pub(crate) struct Conversation {
    pub(crate) out: Transcript,
    origin: Option<(Origin, Ids)>,
    /// The session id that records carry.
    carried: String,
    is_agent: bool,
    graph: Graph,
    /// How many messages windows may still list that the source does not: it grows with each record, so that a log grows as its
    /// source does.
    budget: usize,
    /// Records with an id that are not in the graph.
    others: HashMap<Key, Seen>,
    pub(crate) calls: Calls,
    responses: HashMap<String, Response>,
    /// Places of the latest records of the latest response whose counts have not been replaced.
    superseded: (String, Vec<Place>),
    queue: Queue,
    /// The prompt that the open turn began with.
    turn: Option<String>,
    undecided: Vec<Undecided>,
    /// Where the record before this one ends, of those that are mapped.
    record_end: u64,
    refused: Vec<Undecided>,
    withdrawn: Vec<InputEnded<'static>>,
    descending: bool,
    config: ConfigSet<'static>,
    /// Records that were named and had not come: key, place.
    unseen: Vec<(Key, Place)>,
    /// Leaves that summaries are about.
    summaries: Vec<(Key, Place)>,
    /// Agents that were linked to a call.
    pub(crate) linked: HashMap<String, Option<String>>,
    blobs: HashSet<String>,
    /// Sizes and references of spilled files, by their names.
    pub(crate) spilled: HashMap<String, Value<'static>>,
    newest: Option<Time<'static>>,
    /// Records of subagents in this transcript.
    pub(crate) sidechains: Sidechains,
}

type Written = Result<(), WriteError>;

impl Conversation {
    /// A transcript whose records carry the session id `carried`.
    pub(crate) fn new(out: Transcript, carried: String, is_agent: bool, origin: Option<Origin>) -> Self {
        let origin = origin.map(|o| {
            let ids = Ids::new(&FORMAT, &o.session, "transcript");
            (o, ids)
        });
        Conversation {
            out,
            origin,
            carried,
            is_agent,
            graph: Graph::default(),
            budget: 1 << 16,
            others: HashMap::new(),
            calls: Calls::default(),
            responses: HashMap::new(),
            superseded: Default::default(),
            queue: Queue::default(),
            turn: None,
            undecided: Vec::new(),
            record_end: 0,
            refused: Vec::new(),
            withdrawn: Vec::new(),
            descending: false,
            config: EMPTY_CONFIG,
            unseen: Vec::new(),
            summaries: Vec::new(),
            linked: HashMap::new(),
            blobs: HashSet::new(),
            spilled: HashMap::new(),
            newest: None,
            sidechains: Sidechains::default(),
        }
    }

    /// Maps one record. `exact` says that `text` is the source's own bytes.
    fn record(&mut self, read: &Read<'_, Record<'_>>, text: &str, exact: bool, span: Span) -> Written {
        let record = &read.members;
        self.budget += 16;
        let kind = record.kind();
        let tree = record.uuid.is_some();
        let digest = identity::digest(record, text);
        let known = record.uuid.as_deref().and_then(|uuid| self.seen(uuid));
        let native = match record.uuid.as_deref() {
            Some(uuid) if known.is_none() => Native::Uuid(uuid),
            _ => Native::Offset(span.at),
        };
        let copied = match (&self.origin, record.uuid.as_deref()) {
            (Some((origin, _)), Some(uuid)) => origin.shared.contains(&key(uuid)),
            _ => false,
        };
        let time = self.time_of(record, span);
        let mark = Mark::read(record.palog.as_ref()).unwrap_or_default();
        let mut here =
            Here { record, text, exact, span, native, ordinal: 0, time, copied, odd: false, kept: false, mark };
        self.out.count(kind.clone());
        self.out.look_at_text(text, exact, span);
        if !self.is_agent && record.is_sidechain && tree {
            self.sidechain(&mut here)?;
            self.remember(&here, digest);
            return Ok(());
        }
        if let Some(session) = record.session_id.as_deref()
            && session != self.carried
        {
            self.out.input.foreign += 1;
            let place = Place { session: Some(session.into()), ..self.out.place(span) };
            self.out.warn(Code::SessionMismatch, place);
        }
        if let Some(known) = known {
            let place = Place { record: record.uuid.as_deref().map(str::to_owned), ..self.out.place(span) };
            if known.digest == digest {
                self.out.warn(Code::Replay, place);
                return self.replayed(&mut here, known.event, &kind);
            }
            self.out.warn(Code::IdReused, place);
        }
        if let Some(why) = Record::oddity(read) {
            self.odd(&mut here, why);
        }
        self.settle_refusals(&mut here)?;
        match (&*record.r#type, record.subtype.as_deref()) {
            (other, _) if record.message.is_some() && !matches!(other, "user" | "assistant") => {
                self.unread(&mut here, &kind, digest)?;
                self.calls_of_unknown(&mut here)?;
            }
            ("user", _) if message(record).is_some_and(|(_, content)| self.is_readable(record, content)) => {
                self.user(&mut here, digest)?
            }
            ("assistant", _) if message(record).is_some() => self.assistant(&mut here, digest)?,
            ("system", Some("compact_boundary")) => self.compaction(&mut here, digest)?,
            ("system", Some("microcompact_boundary")) if record.microcompact_metadata.is_some() => {
                self.microcompaction(&mut here, digest)?;
            }
            ("system", Some("local_command")) if record.content.as_ref().is_some_and(Raw::is_string) => {
                self.local_command(&mut here, digest)?;
            }
            ("system", Some("turn_duration")) => {
                let parent = self.link(&mut here, Class::Through, digest);
                let ended = TurnEnded { turn: None, how: TurnEnd::Complete, reason: None };
                self.emit(&mut here, ActorKind::Harness, parent, ended)?;
            }
            ("attachment", _) => self.attachment(&mut here, &kind, digest)?,
            ("queue-operation", _) => self.queue_operation(&mut here)?,
            ("mode", _) if record.mode.is_some() => {
                let set = ConfigSet { mode: record.mode.clone(), ..EMPTY_CONFIG };
                self.emit(&mut here, ActorKind::Harness, None, set)?;
            }
            ("permission-mode", _) if record.permission_mode.is_some() => self.permission_mode(&mut here, true)?,
            ("custom-title", _) if record.custom_title.is_some() => {
                let set = ConfigSet { title: record.custom_title.clone(), ..EMPTY_CONFIG };
                self.emit(&mut here, ActorKind::User, None, set)?;
            }
            ("ai-title", _) if record.ai_title.is_some() => {
                let set = ConfigSet { title: record.ai_title.clone(), ..EMPTY_CONFIG };
                self.emit(&mut here, ActorKind::Harness, None, set)?;
            }
            ("summary", _) if record.summary.is_some() => self.summary(&mut here)?,
            ("last-prompt", _) if record.leaf_uuid.is_some() => self.leaf(&mut here, &kind)?,
            _ => {
                if is_kept(record) {
                    self.keep(&mut here, &kind, digest)?;
                } else {
                    self.unread(&mut here, &kind, digest)?;
                    if record.r#type != *"user" {
                        self.calls_of_unknown(&mut here)?;
                    }
                }
                if let ("assistant", Some(message)) = (&*record.r#type, &record.message)
                    && message.stop_reason.as_deref() == Some("tool_use")
                {
                    // That there is a call can be read.
                    self.report(&mut here, message)?;
                }
            }
        }
        if here.odd && !here.kept {
            self.keep_verbatim(&mut here, &kind, None)?;
        }
        self.write_refusals(&mut here)?;
        if tree {
            self.definition(&mut here)?;
        }
        self.remember(&here, digest);
        Ok(())
    }

    /// The time of a record, if it has one (R-ENV-023); reports one that has another form, or runs backwards.
    fn time_of<'r>(&mut self, record: &'r Record<'_>, span: Span) -> Option<Time<'r>> {
        let raw = record.timestamp.as_ref()?;
        let time = raw.text().and_then(|t| Time::parse(t.into_owned()));
        let Some(time) = time else {
            let place = self.out.place(span);
            self.out.warn(Code::BadTime, place);
            return None;
        };
        if record.uuid.is_some() {
            self.backwards(&time, span);
        }
        Some(time)
    }

    fn backwards(&mut self, time: &Time<'_>, span: Span) {
        if self.newest.as_ref().is_some_and(|newest| time < newest) {
            if self.descending {
                return;
            }
            self.descending = true;
            let place = self.out.place(span);
            self.out.info(Code::TimeBackwards, place);
        } else {
            self.descending = false;
            self.newest = Some(time.clone().into_owned());
        }
    }

    /// Appends an event of the record at hand, which it names (R-ENV-019), and returns its id.
    fn emit<'d>(
        &mut self,
        here: &mut Here<'_>,
        actor: ActorKind,
        parent: Option<String>,
        data: impl Into<Data<'d>>,
    ) -> Result<EventId, WriteError> {
        let how = if here.exact { None } else { Some(SrcHow::Degraded) };
        let src = vec![src(&self.out.source, here.span, how)];
        self.emit_from(here, actor, parent, data, src)
    }

    fn emit_from<'d>(
        &mut self,
        here: &mut Here<'_>,
        actor: ActorKind,
        parent: Option<String>,
        data: impl Into<Data<'d>>,
        src: Vec<Src<'d>>,
    ) -> Result<EventId, WriteError> {
        let id = self.out.ids.event(here.native, here.ordinal);
        let mut draft = Draft::new(id.hex(), actor, data);
        draft.time = here.time.clone();
        draft.parent = parent.map(Str::from);
        draft.src = src;
        if let (true, Some((origin, ids))) = (here.copied, &self.origin) {
            // What follows a record's own events depends on the log: there the numbers of the two logs differ.
            let same_number = !matches!(draft.data, Data::ConfigSet(_) | Data::InputEnded(_));
            draft.copy = Some(Copy {
                log: Some(ids::log(&FORMAT, &origin.session).into()),
                event: same_number.then(|| ids.event(here.native, here.ordinal).hex().into()),
                how: CopyHow::Fork,
            });
        }
        if matches!(draft.data, Data::Kept(..)) {
            draft.ignorable = Some(true);
        }
        here.ordinal += 1;
        match self.out.log.append(&mut draft) {
            Err(WriteError::LineTooLong { .. }) if !matches!(draft.data, Data::Kept(..)) => {
                self.keep_instead(here, draft)?
            }
            written => written?,
        }
        Ok(id)
    }

    /// Enters the record into the tree and returns what its first event has to name as parent.
    fn link(&mut self, here: &mut Here<'_>, class: Class, digest: u64) -> Option<String> {
        let uuid = here.record.uuid.as_deref()?;
        let parent = match &here.record.parent_uuid {
            Nullable::Some(parent) => Some(parent.as_str()),
            Nullable::Null | Nullable::Absent => None,
        };
        let event = self.out.ids.event(here.native, 0);
        let placed = self.graph.place(uuid, parent, class, digest, event);
        let place = Place { record: Some(uuid.to_owned()), ..self.out.place(here.span) };
        if placed.cycle {
            self.out.warn(Code::Cycle, place.clone());
        }
        if let (true, false, Some(parent)) = (placed.unseen, placed.cycle, parent) {
            self.unseen.push((key(parent), Place { names: Some(parent.to_owned()), ..place }));
        }
        for result in placed.bypassed.into_iter().flatten() {
            if let Some(place) = self.calls.result_place(self.graph.event(result)) {
                self.out.log.diagnostics.push(Diagnostic::new(Code::BypassedRecord, Severity::Warning, place));
            }
        }
        match placed.parent {
            Parent::Head => None,
            Parent::Root => Some("root".into()),
            Parent::Record(uuid) => Some(self.out.ids.event(Native::Uuid(uuid), 0).hex()),
            Parent::Event(event) => Some(event.hex()),
        }
    }

    /// Members of the definition that every record of the tree carries: written when they change.
    fn definition(&mut self, here: &mut Here<'_>) -> Written {
        let record = here.record;
        let changed = |new: &Option<Str<'_>>, old: &Option<Str<'static>>| {
            new.clone().filter(|n| !n.is_empty() && old.as_deref() != Some(n.as_str())).map(Str::into_owned)
        };
        let set = ConfigSet {
            client_version: changed(&record.version, &self.config.client_version),
            directory: changed(&record.cwd, &self.config.directory),
            branch: changed(&record.git_branch, &self.config.branch),
            ..EMPTY_CONFIG
        };
        if set == EMPTY_CONFIG {
            return Ok(());
        }
        let keep = |new: &Option<Str<'static>>, old: &mut Option<Str<'static>>| {
            if new.is_some() {
                old.clone_from(new);
            }
        };
        keep(&set.client_version, &mut self.config.client_version);
        keep(&set.directory, &mut self.config.directory);
        keep(&set.branch, &mut self.config.branch);
        self.emit(here, ActorKind::Harness, None, set).map(drop)
    }

    fn permission_mode(&mut self, here: &mut Here<'_>, always: bool) -> Written {
        let mode = here.record.permission_mode.clone();
        if !always && (mode.is_none() || mode.as_deref() == self.config.permission_mode.as_deref()) {
            return Ok(());
        }
        self.config.permission_mode = mode.clone().map(Str::into_owned);
        let set = ConfigSet { permission_mode: mode, ..EMPTY_CONFIG };
        self.emit(here, ActorKind::Harness, None, set).map(drop)
    }
}

impl Records for Conversation {
    fn transcript(&mut self) -> &mut Transcript {
        &mut self.out
    }

    fn take(&mut self, text: &str, exact: bool, span: Span) -> Result<Taken, WriteError> {
        match read::<Record<'_>>(text) {
            Ok(record) => self.record(&record, text, exact, span).map(|()| Taken::Record),
            Err(error) => Ok(Taken::from_error(&error, text)),
        }
    }

    fn looks_like_record(text: &str) -> bool {
        looks_like_record(text)
    }

    fn readable_id(fragment: &[u8]) -> Option<String> {
        let marker = b"\"uuid\":\"";
        let at = memchr::memmem::find(fragment, marker)? + marker.len();
        let len = memchr::memchr(b'"', &fragment[at..])?;
        std::str::from_utf8(&fragment[at..at + len]).ok().map(str::to_owned)
    }
}

/// Whether a record is of a kind that is kept without being mapped, and has what its kind has.
fn is_kept(record: &Record<'_>) -> bool {
    match &*record.r#type {
        "system" => record.subtype.as_deref().is_some_and(|s| KEPT_SYSTEM.contains(&s)),
        "progress" => record.data.is_some(),
        kind => KEPT.contains(&kind),
    }
}

/// The message of a record that has content.
fn message<'r, 'a>(record: &'r Record<'a>) -> Option<(&'r Message<'a>, &'r Content<'a>)> {
    let message = record.message.as_ref()?;
    Some((message, message.content.as_ref()?))
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
