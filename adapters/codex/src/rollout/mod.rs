//! Turns the records of one rollout, one after the other, into the events of one log.
//!
//! A record is mapped when it comes, without a look at what follows: so a rollout that grew gives the old log as a prefix.

mod context;
mod items;
mod kept;
mod parts;
mod screen;
mod turns;

pub(crate) use items::typed_prompt;

use std::collections::{HashMap, HashSet};

use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog::envelope::{ActorKind, Copy, CopyHow, Draft, SrcHow, Time};
use palog::events::{ConfigSet, Data, ModelResponse};
use palog::json::{Raw, Str, Value};
use palog::writer::WriteError;
use palog_adapter::export::{EndMark, Mark, Synthesized};
use palog_adapter::ids::{self, EventId, Ids, Native};
use palog_adapter::source::src;
use palog_adapter::{Records, Span, Taken, Transcript};

use crate::FORMAT;
use crate::calls::Calls;
use crate::hidden;
use crate::lineage::{Natives, Prefix, item_id};
use crate::record::{
    Compacted, Event, Form, HistoryBase, Item, Line, Meta, Retained, Settings, TYPES, Typed, UsageRecord,
    looks_like_record, parse,
};
use crate::tools::Outputs;
use crate::usage::{Counted, Totals};

/// Where copies of another session's records end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    /// Before this ordinal.
    Ordinal(u64),
    /// Before this offset.
    Offset(u64),
}

/// Records that were copied from another session.
#[derive(Debug)]
pub(crate) struct Copies {
    /// Native id of that session.
    pub(crate) session: String,
    /// Why.
    pub(crate) how: CopyHow,
    /// Where they end: their originals are at hand, or the rollout tells where its own records begin.
    pub(crate) until: Until,
}

/// What is known of a rollout before it is read.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The session is that of an agent which another agent started.
    pub(crate) is_agent: bool,
    /// Its dialect is the one that records what ran.
    pub(crate) paginated: bool,
    /// Its copied records.
    pub(crate) copies: Option<Copies>,
    /// The running total of tokens that it goes on from.
    pub(crate) totals: Totals,
    /// Said of its header: a prefix in another file.
    pub(crate) base: Option<Base>,
}

/// The prefix in another file.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    pub(crate) session: String,
    /// The ordinal before which it ends.
    pub(crate) end: u64,
    /// What is known of it, if it is at hand.
    pub(crate) prefix: Option<Prefix>,
}

impl Base {
    /// A prefix that is not at hand.
    pub(crate) fn of(base: &HistoryBase) -> Self {
        Base { session: base.thread_id.clone(), end: base.end_ordinal_exclusive, prefix: None }
    }
}

/// The record at hand.
struct Here<'r> {
    /// Text of the record, where it is that of the source byte for byte.
    text: &'r str,
    exact: bool,
    span: Span,
    native: Native<'r>,
    ordinal: u32,
    time: Option<Time<'r>>,
    copied: bool,
    /// What an exporter says of it.
    mark: Mark,
}

/// The turn that the client works on.
#[derive(Debug, Default)]
struct Task {
    id: Option<String>,
    /// The client said that it was made by a person or a program, and not by itself.
    attributed: bool,
    /// The client is one that says so.
    attributes: bool,
    /// The log says that it began.
    started: bool,
}

/// One log while it is written.
pub(crate) struct Rollout {
    pub(crate) out: Transcript,
    session: String,
    known: Known,
    origin: Option<Ids>,
    natives: Natives,
    calls: Calls,
    /// What outputs of commands hold.
    outputs: Outputs,
    /// Tools of the program that started the session.
    dynamic: HashSet<String>,
    /// The turn that is open, and whether the client marks turns at all.
    task: Option<Task>,
    marks_turns: bool,
    /// Turns that the log says began.
    begun: HashSet<String>,
    config: ConfigSet<'static>,
    /// Messages by the hash of their item's id, and of the item.
    messages: HashMap<u64, EventId>,
    /// The newest message.
    head: Option<EventId>,
    /// What stood before each turn that a prompt began.
    before_prompts: Vec<Before>,
    /// All prompts, for compactions that keep them.
    prompts: Vec<EventId>,
    /// Agents that a record told of.
    pub(crate) told_of: HashSet<String>,
    /// Ordinals of messages, for reverts.
    placed: Vec<(u64, EventId)>,
    blobs: HashSet<String>,
    newest: Option<Time<'static>>,
    descending: bool,
    headed: bool,
    /// Copies of another session's records have not ended.
    copying: bool,
}

/// What stood before a turn.
#[derive(Clone, Copy, Debug)]
struct Before {
    head: Option<EventId>,
    /// How many messages had ordinals.
    placed: usize,
    /// How many prompts there were.
    prompts: usize,
}

type Written = Result<(), WriteError>;

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

impl Rollout {
    /// A rollout of the session `session`.
    pub(crate) fn new(out: Transcript, session: String, known: Known) -> Self {
        let origin = known.copies.as_ref().map(|c| Ids::new(&FORMAT, &c.session, "transcript"));
        Rollout {
            out,
            session,
            origin,
            natives: Natives::default(),
            calls: Calls::default(),
            outputs: if known.paginated { Outputs::Headed } else { Outputs::Alone },
            dynamic: HashSet::new(),
            task: None,
            marks_turns: false,
            begun: HashSet::new(),
            config: EMPTY_CONFIG,
            messages: HashMap::new(),
            head: None,
            before_prompts: Vec::new(),
            prompts: Vec::new(),
            told_of: HashSet::new(),
            placed: Vec::new(),
            blobs: HashSet::new(),
            newest: None,
            descending: false,
            headed: false,
            copying: true,
            known,
        }
    }

    /// Maps one record. `exact` says that `text` is the source's own bytes.
    fn record(&mut self, line: &Line<'_>, form: Form, text: &str, exact: bool, span: Span) -> Written {
        let item: Option<Item<'_>> = match form {
            Form::Enveloped => line.payload.as_ref().and_then(parse),
            Form::BareItem => serde_json::from_str(text).ok(),
            Form::BareHeader | Form::BareMark | Form::None => None,
        };
        let native = self.natives.of(item_id(line, item.as_ref()), span.at);
        let kind = kind(line, form);
        self.out.count(kind.clone());
        self.out.look_at_text(text, exact, span);
        let copied = self.headed && self.is_copied(line, span);
        let time = self.time_of(line, form, copied, span);
        let mark = Mark::read(line.palog.as_ref()).unwrap_or_default();
        let mut here = Here { text, exact, span, native, ordinal: 0, time, copied, mark };
        if copied {
            let place = Place { kind: Some(kind.clone()), ..self.out.place(span) };
            self.out.info(Code::ForkedPrefix, place);
        }
        let before = self.head;
        let payload = line.payload.as_ref();
        match (form, line.r#type.as_deref(), payload) {
            (Form::BareHeader, ..) => {
                let place = self.out.place(span);
                self.out.warn(Code::LegacyHeader, place);
                match serde_json::from_str::<Meta<'_>>(text) {
                    Ok(meta) => self.header(&mut here, &meta, &kind)?,
                    Err(_) => self.odd(&mut here, &kind)?,
                }
            }
            (Form::BareItem, ..) => match &item {
                Some(item) => self.item(&mut here, item, text, false, &kind)?,
                None => self.odd(&mut here, &kind)?,
            },
            (Form::BareMark, ..) => self.keep(&mut here, &kind)?,
            (_, Some("session_meta"), Some(payload)) => match parse::<Meta<'_>>(payload) {
                Some(meta) => self.header(&mut here, &meta, &kind)?,
                None => self.odd(&mut here, &kind)?,
            },
            _ if here.mark.synthesized == Some(Synthesized::Screen) => self.keep(&mut here, &kind)?,
            _ if here.mark.synthesized == Some(Synthesized::NoResult) => {
                self.no_result(&mut here, item.as_ref(), &kind)?
            }
            (_, Some("response_item"), Some(payload)) => match &item {
                Some(item) => {
                    let summary = line.metadata.as_ref().is_some_and(|m| m.compaction_output);
                    self.item(&mut here, item, payload.get(), summary, &kind)?;
                }
                None => self.odd(&mut here, &kind)?,
            },
            (_, Some("event_msg"), Some(payload)) => match parse::<Event<'_>>(payload) {
                Some(event) => self.screen(&mut here, &event, payload, &kind)?,
                None => self.odd(&mut here, &kind)?,
            },
            (_, Some("turn_context"), Some(payload)) => match parse::<Settings<'_>>(payload) {
                Some(settings) => self.settings(&mut here, &settings, &kind)?,
                None => self.odd(&mut here, &kind)?,
            },
            (_, Some("compacted"), Some(payload)) => match parse::<Compacted<'_>>(payload) {
                Some(compacted) => self.compacted(&mut here, &compacted, &kind)?,
                None => self.odd(&mut here, &kind)?,
            },
            (_, Some("token_usage_record"), Some(payload)) => match parse::<UsageRecord<'_>>(payload) {
                Some(usage) => self.usage(&mut here, &usage)?,
                None => self.odd(&mut here, &kind)?,
            },
            (_, Some("retained_context"), Some(payload)) => match parse::<Retained<'_>>(payload) {
                Some(retained) => self.retained(&mut here, &retained, &kind)?,
                None => self.odd(&mut here, &kind)?,
            },
            (_, Some(other), _) if TYPES.contains(&other) => self.keep(&mut here, &kind)?,
            _ => self.unknown(&mut here, &kind)?,
        }
        if let (Some(ordinal), Some(head), true) = (line.ordinal, self.head, self.head != before) {
            self.placed.push((ordinal, head));
        }
        self.headed = true;
        Ok(())
    }

    /// Whether a record is a copy: copies stand first.
    fn is_copied(&mut self, line: &Line<'_>, span: Span) -> bool {
        let copied = match self.known.copies.as_ref().map(|c| c.until) {
            Some(Until::Ordinal(until)) => line.ordinal.is_some_and(|ordinal| ordinal < until),
            Some(Until::Offset(until)) => span.at < until,
            None => false,
        };
        self.copying &= copied;
        self.copying
    }

    /// The header: the first one is the file's own, a later one came with copied records.
    fn header(&mut self, here: &mut Here<'_>, meta: &Meta<'_>, kind: &str) -> Written {
        if self.headed {
            if let Some(id) = meta.id.as_deref().filter(|id| *id != self.session && !here.copied) {
                self.out.input.foreign += 1;
                let place = Place { session: Some(id.into()), ..self.out.place(here.span) };
                self.out.warn(Code::SessionMismatch, place);
            }
            return self.keep(here, kind);
        }
        if let Some(base) = self.known.base.clone() {
            let place = Place { names: Some(base.session.clone()), ..self.out.place(here.span) };
            let mut tell = |code, severity, why: Option<String>| {
                let found = Diagnostic::new(code, severity, place.clone());
                self.out.log.diagnostics.push(Diagnostic { why, ..found });
            };
            let moved = base.prefix.and_then(|prefix| prefix.moved);
            let changed =
                moved.map(|at| format!("its file was changed: the prefix ends at byte {at} and not where it did"));
            if base.session != self.session {
                let severity = if changed.is_some() { Severity::Warning } else { Severity::Info };
                tell(Code::ForkedByReference, severity, changed);
            }
            if base.prefix.is_none() {
                let why = "the history before it is in another file, which is not at hand or shorter";
                tell(Code::MissingParent, Severity::Warning, Some(why.into()));
            }
        }
        let instructions = meta.base_instructions.as_ref().map(|b| &b.text).or(meta.instructions.as_ref());
        let set = ConfigSet {
            instructions: instructions.filter(|i| i.is_string()).map(|i| Value::Inline(i.borrowed())),
            client_version: meta.cli_version.clone(),
            directory: meta.cwd.clone(),
            branch: meta.git.as_ref().and_then(|g| g.branch.clone()),
            ..EMPTY_CONFIG
        };
        self.config.directory = set.directory.clone().map(Str::into_owned);
        self.dynamic
            .extend(meta.dynamic_tools.iter().flatten().filter_map(|tool| Some(tool.name.as_ref()?.to_string())));
        self.emit(here, ActorKind::Harness, set)?;
        match self.known.base.take() {
            Some(base) if base.prefix.is_some() && base.session == self.session => self.revert(here, base.end),
            _ => Ok(()),
        }
    }

    /// Members of the definition: written when they change.
    fn settings(&mut self, here: &mut Here<'_>, settings: &Settings<'_>, kind: &str) -> Written {
        fn changed<'a>(new: Option<&Str<'a>>, old: &mut Option<Str<'static>>) -> Option<Str<'a>> {
            let new = new.filter(|n| !n.is_empty() && old.as_deref() != Some(n.as_str()))?;
            *old = Some(new.clone().into_owned());
            Some(new.clone())
        }
        let mode = settings.collaboration_mode.as_ref().and_then(|m| m.mode.as_ref());
        let set = ConfigSet {
            model: changed(settings.model.as_ref(), &mut self.config.model),
            permission_mode: changed(settings.approval_policy.as_ref(), &mut self.config.permission_mode),
            mode: changed(mode, &mut self.config.mode),
            directory: changed(settings.cwd.as_ref(), &mut self.config.directory),
            ..EMPTY_CONFIG
        };
        if set == EMPTY_CONFIG {
            return self.keep(here, kind);
        }
        self.emit(here, ActorKind::Harness, set).map(drop)
    }

    /// The counts of a response.
    fn usage(&mut self, here: &mut Here<'_>, record: &UsageRecord<'_>) -> Written {
        self.known.totals.response();
        // Forks and agents copy what their parents counted.
        here.copied |= record.thread_id.as_deref().is_some_and(|id| id != self.session) && self.origin.is_some();
        let response = ModelResponse {
            response: record.response_id.clone(),
            model: self.config.model.clone(),
            request: None,
            usage: Some(record.usage.usage()),
            cost: None,
            stop: None,
            error: None,
        };
        self.emit(here, ActorKind::Model, response).map(drop)
    }

    /// A running total: what it adds to the one before.
    fn total(&mut self, here: &mut Here<'_>, event: &Event<'_>, kind: &str) -> Written {
        let Some(info) = &event.info else { return self.keep(here, kind) };
        match self.known.totals.take(info) {
            Counted::New(counts) => {
                let response = ModelResponse {
                    response: format!("token_count@{}", here.span.at).into(),
                    model: self.config.model.clone(),
                    request: None,
                    usage: Some(counts.usage()),
                    cost: None,
                    stop: None,
                    error: None,
                };
                self.emit_how(here, ActorKind::Model, response, Some(SrcHow::Synthesized)).map(drop)
            }
            Counted::Again => {
                let place = self.out.place(here.span);
                self.out.info(Code::CumulativeReemit, place);
                self.keep(here, kind)
            }
            Counted::Nothing => self.keep(here, kind),
        }
    }

    /// The time of a record; reports one that is not there, has another form, or runs backwards.
    fn time_of<'r>(&mut self, line: &'r Line<'_>, form: Form, copied: bool, span: Span) -> Option<Time<'r>> {
        let Some(raw) = line.timestamp.as_ref() else {
            if form != Form::BareHeader {
                let place = self.out.place(span);
                self.out.info(Code::TimeMissing, place);
            }
            return None;
        };
        let Some(time) = raw.text().and_then(|t| Time::parse(t.into_owned())) else {
            let place = self.out.place(span);
            self.out.warn(Code::BadTime, place);
            return None;
        };
        if copied {
            return Some(time);
        }
        if self.newest.as_ref().is_some_and(|newest| time < *newest) {
            if !std::mem::replace(&mut self.descending, true) {
                let place = self.out.place(span);
                self.out.info(Code::TimeBackwards, place);
            }
        } else {
            self.descending = false;
            self.newest = Some(time.clone().into_owned());
        }
        Some(time)
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
        self.emit_with(here, actor, data, how, None)
    }

    /// Appends an event with members of the provider's API.
    fn emit_with<'d>(
        &mut self,
        here: &mut Here<'_>,
        actor: ActorKind,
        data: impl Into<Data<'d>>,
        how: Option<SrcHow>,
        ext: Option<Raw<'d>>,
    ) -> Result<EventId, WriteError> {
        let how = if here.exact { how } else { Some(SrcHow::Degraded) };
        let id = self.out.ids.event(here.native, here.ordinal);
        let mut draft = Draft::new(id.hex(), actor, data);
        draft.time = here.time.clone();
        draft.src = vec![src(&self.out.source, here.span, how)];
        draft.ext = ext;
        if let (true, Some(copies), Some(origin)) = (here.copied, &self.known.copies, &self.origin) {
            let original = match here.native {
                Native::Uuid(_) => Some(origin.event(here.native, here.ordinal).hex().into()),
                // Offsets in the other file are other ones.
                Native::Offset(_) | Native::Row(..) | Native::Own => None,
            };
            draft.copy =
                Some(Copy { log: Some(ids::log(&FORMAT, &copies.session).into()), event: original, how: copies.how });
        }
        if matches!(draft.data, Data::Kept(..)) {
            draft.ignorable = Some(true);
        }
        here.ordinal += 1;
        self.out.log.append(&mut draft)?;
        if matches!(draft.data, Data::MessageAdded(_)) {
            self.head = Some(id);
        }
        Ok(id)
    }

    /// What can be said only when the rollout is over. Nothing of it is written.
    pub(crate) fn conclude(&mut self) {
        let path = self.out.input.path.clone();
        for (place, went_on) in self.calls.silent(&path) {
            self.out.warn(if went_on { Code::ResultLost } else { Code::CallWithoutResult }, place);
        }
    }
}

/// The vendor's name of a record's kind.
fn kind(line: &Line<'_>, form: Form) -> String {
    let r#type = line.r#type.as_deref().unwrap_or_default();
    match form {
        Form::BareHeader => "header".into(),
        Form::BareMark => line.record_type.as_deref().unwrap_or_default().to_owned(),
        Form::BareItem | Form::None => r#type.to_owned(),
        Form::Enveloped => {
            let inner = line.payload.as_ref().and_then(parse::<Typed<'_>>).and_then(|t| t.r#type);
            inner.map_or_else(|| r#type.to_owned(), |inner| format!("{type}/{inner}"))
        }
    }
}

impl Records for Rollout {
    fn transcript(&mut self) -> &mut Transcript {
        &mut self.out
    }

    fn take(&mut self, text: &str, exact: bool, span: Span) -> Result<Taken, WriteError> {
        let shapeless = match serde_json::from_str::<Line<'_>>(text) {
            Ok(line) if line.form() != Form::None => {
                return self.record(&line, line.form(), text, exact, span).map(|()| Taken::Record);
            }
            Ok(_) => Taken::Shapeless("neither an envelope nor an item".into()),
            Err(error) => Taken::from_error(&error, text),
        };
        if shapeless == Taken::NoJson || hidden::calls(text).is_empty() {
            return Ok(shapeless);
        }
        // It is kept here, since more comes of it.
        self.out.count("(other)".into());
        let native = Native::Offset(span.at);
        let mark = Mark::default();
        let mut here = Here { text, exact, span, native, ordinal: 0, time: None, copied: false, mark };
        self.odd(&mut here, "unexpected").map(|()| Taken::Record)
    }

    fn looks_like_record(text: &str) -> bool {
        looks_like_record(text)
    }

    fn readable_id(fragment: &[u8]) -> Option<String> {
        let marker = b"\"call_id\":\"";
        let at = memchr::memmem::find(fragment, marker)? + marker.len();
        let len = memchr::memchr(b'"', &fragment[at..])?;
        std::str::from_utf8(&fragment[at..at + len]).ok().map(str::to_owned)
    }
}
