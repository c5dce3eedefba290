//! Turns the messages of one session, one after the other, into the events of one log.

use std::collections::HashSet;

use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog::envelope::{ActorKind, Copy, CopyHow, Draft, SrcHow, Time};
use palog::events::{
    ActionEnded, ActionProposed, Applied, ApprovalEnded, ApprovalOutcome, BranchMoved, ContextCompacted, Data, Effect,
    MessageAdded, ModelResponse, Outcome, Part, Role, TurnEnd, TurnEnded, TurnStarted, WindowItem,
};
use palog::json::{Raw, Value};
use palog::writer::{WriteError, args_digest};
use palog_adapter::ids::{EventId, Ids};
use palog_adapter::{InputReport, Log};

use crate::batches::{Planned, Repeats};
use crate::calls::{Calls, Made, calls};
use crate::record::Record;
use crate::texts::{self, User};
use crate::tools::{self, Leave, Said};

/// Member of `ext` under which stands what a row says beside what the model was given.
const EXT: &str = "com.nousresearch.hermes";

pub(crate) type Written = Result<(), WriteError>;

/// One log while it is written.
pub(crate) struct Conversation {
    pub(crate) log: Log,
    /// Name of the source.
    pub(crate) source: &'static str,
    pub(crate) ids: Ids,
    pub(crate) input: InputReport,
    pub(crate) calls: Calls,
    /// The log that rows at the beginning are copied from, and why they are.
    pub(crate) origin: Option<(String, CopyHow)>,
    /// The session is that of a subagent: another agent prompts it.
    pub(crate) is_agent: bool,
    /// Delegations of which the database tells how they ended.
    pub(crate) delegations: HashSet<String>,
    /// Delegations that the log tells of, and those whose result was brought to the model.
    pub(crate) handed_over: HashSet<String>,
    pub(crate) delivered: HashSet<String>,
    /// Jobs that calls of the session made.
    pub(crate) jobs: HashSet<String>,
    /// The newest response, and why it stopped.
    pub(crate) response: Option<(String, Option<&'static str>)>,
    /// How many rows came that are part of what the model sees, and that are not compacted.
    pub(crate) active: u64,
    pub(crate) present: u64,
    /// The newest row that was not taken back, and whether the row before is one that was; it is unanswered.
    head: Option<EventId>,
    left: Option<Left>,
    newest: Option<Time<'static>>,
    descending: bool,
}

/// Rows that were taken back, the last of which came just before.
struct Left {
    record: Record,
    /// How many events it made.
    events: u32,
    answered: bool,
}

/// The record at hand.
pub(crate) struct Here<'r> {
    record: &'r Record,
    time: Option<Time<'r>>,
    ordinal: u32,
    copy: Option<(EventId, Option<&'r str>, CopyHow)>,
}

impl<'r> Here<'r> {
    /// Sets when the events that follow happened.
    pub(crate) fn set_time(&mut self, time: Option<Time<'r>>) {
        self.time = time;
    }

    /// The same, where the record made `events` events already.
    pub(crate) fn after(self, events: u32) -> Self {
        Here { ordinal: events, ..self }
    }
}

impl Conversation {
    pub(crate) fn new(log: Log, source: &'static str, input: InputReport) -> Self {
        Conversation {
            ids: log.ids(source),
            log,
            source,
            input,
            calls: Calls::default(),
            origin: None,
            is_agent: false,
            delegations: HashSet::new(),
            handed_over: HashSet::new(),
            delivered: HashSet::new(),
            jobs: HashSet::new(),
            response: None,
            active: 0,
            present: 0,
            head: None,
            left: None,
            newest: None,
            descending: false,
        }
    }

    /// Maps a message.
    pub(crate) fn message(&mut self, record: Record, planned: &Planned) -> Written {
        self.count(&record);
        self.active += u64::from(record.flag("active", true));
        self.present += u64::from(!record.flag("compacted", false));
        let time = self.time(&record, "timestamp");
        let origin = self.origin.clone();
        let copy = match (planned.repeats, &origin) {
            (Some(Repeats::Here(event)), _) => Some((event, None, CopyHow::Compaction)),
            (Some(Repeats::There(event)), Some((log, how))) => Some((event, Some(log.as_str()), *how)),
            (Some(Repeats::There(_)), None) | (None, _) => None,
        };
        let mut here = Here { record: &record, time, ordinal: 0, copy };
        if !planned.undone {
            self.go_on()?;
        }
        if ["content", "tool_calls"].iter().any(|column| record.is_odd(column)) {
            let place = Place { kind: Some(record.table.clone()), ..self.place(&record) };
            self.warn(Code::UnexpectedShape, place);
        }
        let answered = match record.text("role").as_deref() {
            Some("user") => self.user(&mut here)?,
            Some("assistant") => self.assistant(&mut here)?,
            Some("tool") => self.tool(&mut here)?,
            Some("system" | "developer") => self.instructions(&mut here)?,
            other => {
                let place = Place { kind: Some(format!("message/{}", other.unwrap_or("?"))), ..self.place(&record) };
                self.warn(Code::UnknownType, place);
                self.keep(&record)?;
                true
            }
        };
        if let Some(window) = &planned.window {
            self.compacted(&mut here, window)?;
        }
        let events = here.ordinal;
        if planned.undone {
            self.left = Some(Left { record, events, answered });
        } else {
            self.head = Some(record.event(&self.ids, 0));
        }
        Ok(())
    }

    /// What follows rows that were taken back does not follow them.
    pub(crate) fn go_on(&mut self) -> Written {
        let Some(Left { record, events, answered }) = self.left.take() else { return Ok(()) };
        let to = self.head.map_or_else(|| "root".to_owned(), EventId::hex);
        let mut here = Here { record: &record, time: None, ordinal: events, copy: None };
        if !answered {
            let ended = TurnEnded { turn: None, how: TurnEnd::Interrupted, reason: Some("undo".into()) };
            self.emit(&mut here, ActorKind::User, ended, Some(SrcHow::Synthesized))?;
        }
        self.emit(&mut here, ActorKind::User, BranchMoved { to: to.into() }, Some(SrcHow::Synthesized)).map(drop)
    }

    /// A compaction: what it wrote is what the model sees from here on.
    fn compacted(&mut self, here: &mut Here<'_>, window: &[EventId]) -> Written {
        let item = |event: &EventId| WindowItem::Event { event: event.hex().into(), parts: None };
        let compacted = ContextCompacted {
            trigger: None,
            window: Some(window.iter().map(item).collect()),
            pruned: None,
            tokens_before: None,
            tokens_after: None,
        };
        here.copy = None;
        self.emit(here, ActorKind::Harness, compacted, Some(SrcHow::Synthesized)).map(drop)
    }

    /// A row of the role `user`. Returns whether nothing waits for an answer.
    fn user(&mut self, here: &mut Here<'_>) -> Result<bool, WriteError> {
        let record = here.record;
        let said = texts::user(record);
        let (actor, purpose) = match said {
            User::Prompt if self.is_agent => (ActorKind::Agent, None),
            User::Prompt => (ActorKind::User, None),
            User::Steer => (ActorKind::User, Some("steer")),
            User::Observed => (ActorKind::User, Some("observed")),
            User::Notification => (ActorKind::Harness, Some("notification")),
            User::Reminder => (ActorKind::Harness, Some("reminder")),
            User::Summary => (ActorKind::Harness, Some("summary")),
        };
        let parts = self.parts(record)?;
        let message = MessageAdded { purpose: purpose.map(Into::into), ..message(Role::User, parts) };
        let id = self.emit(here, actor, message, None)?;
        if self.is_again(here) {
            return Ok(true);
        }
        if matches!(said, User::Prompt | User::Notification) {
            let started = TurnStarted { turn: None, message: Some(id.hex().into()) };
            self.emit(here, actor, started, None)?;
        }
        let content = record.content();
        if let Some((delegation, completed)) = texts::delegation(content.text()) {
            self.delivered.insert(delegation.to_owned());
            if self.handed_over.contains(delegation) && !self.delegations.contains(delegation) {
                self.delegation_ended(here, delegation, completed)?;
            }
        }
        Ok(!matches!(said, User::Prompt | User::Steer | User::Notification))
    }

    /// A row of the role `assistant`. Returns whether it ends what it answers.
    fn assistant(&mut self, here: &mut Here<'_>) -> Result<bool, WriteError> {
        let record = here.record;
        let content = record.content();
        let parts = self.parts(record)?;
        if texts::is_summary(record, &content) {
            let summary = MessageAdded { purpose: Some("summary".into()), ..message(Role::Assistant, parts) };
            self.emit(here, ActorKind::Harness, summary, None)?;
            return Ok(true);
        }
        let made = calls(record).unwrap_or_else(|| {
            let place = Place { kind: Some("tool_calls".into()), ..self.place(record) };
            self.warn(Code::UnexpectedShape, place);
            Vec::new()
        });
        let finish = record.word("finish_reason");
        if finish.is_none() && made.is_empty() && texts::is_interruption(content.text()) {
            let note = MessageAdded { purpose: Some("interruption".into()), ..message(Role::Assistant, parts) };
            self.emit(here, ActorKind::Harness, note, None)?;
            if !self.is_again(here) {
                let ended = TurnEnded { turn: None, how: TurnEnd::Interrupted, reason: None };
                self.emit(here, ActorKind::User, ended, Some(SrcHow::Synthesized))?;
            }
            return Ok(true);
        }
        let again = self.is_again(here);
        let mut spoken = self.reasoning(record);
        spoken.extend(parts);
        let mut proposed = Vec::new();
        for Made { id, name, args } in &made {
            let action = if again { self.calls.action(id) } else { self.calls.propose(id, name, args.get()) };
            spoken.push(Part::Action { action: action.clone().into() });
            proposed.push((action, name.clone(), args.clone()));
        }
        // Without a reason it was broken off, or did not come from a model.
        let response = finish.as_ref().filter(|_| !again).map(|_| record.key.clone());
        let said = MessageAdded { response: response.clone().map(Into::into), ..message(Role::Assistant, spoken) };
        self.emit(here, ActorKind::Model, said, None)?;
        if again {
            return Ok(made.is_empty());
        }
        for (action, name, args) in proposed {
            let digest = args_digest(&args);
            let proposed = ActionProposed {
                action: action.into(),
                kind: tools::kind(&name),
                effect: tools::effect(&name).map(|class| Effect {
                    class: Some(class),
                    idempotency_key: None,
                    target: None,
                }),
                name: name.into(),
                args: Value::Inline(args),
                args_digest: digest.into(),
                compensates: None,
            };
            self.emit(here, ActorKind::Model, proposed, None)?;
        }
        if let (Some(response), Some(finish)) = (response, finish) {
            let stop = if made.is_empty() { stop(&finish) } else { Some("tool_use") };
            let known = response_of(&response, stop.map_or_else(|| finish.clone().into_owned(), str::to_owned));
            self.emit(here, ActorKind::Model, known, None)?;
            if here.copy.is_none() {
                self.response = Some((response, stop));
            }
        }
        Ok(made.is_empty())
    }

    /// A row of the role `tool`.
    fn tool(&mut self, here: &mut Here<'_>) -> Result<bool, WriteError> {
        let record = here.record;
        let id = record.text("tool_call_id").unwrap_or_default().into_owned();
        let again = self.is_again(here);
        let action = self.calls.action(&id);
        let (tool, told) = match self.calls.get_mut(&id) {
            Some(call) => (Some(call.name.clone()), std::mem::replace(&mut call.told, true)),
            None => (None, false),
        };
        let content = record.content();
        let named = record.word("tool_name").is_some();
        let disposition = record.word("effect_disposition");
        let said = match &tool {
            Some(tool) if !told && !again => tools::said(tool, named, disposition.as_deref(), content.text()),
            _ => Said::default(),
        };
        let parts = self.parts(record)?;
        let result = Part::Result { action: action.clone().into(), parts, is_error: None, r#final: !said.goes_on };
        // The client gives the model one result for a call that it made, and no other.
        let in_context = (tool.is_none() || told && !again).then_some(false);
        let told = MessageAdded { in_context, ..message(Role::Tool, vec![result]) };
        self.emit(here, ActorKind::Tool, told, None)?;
        if let Some(leave) = said.leave {
            let (outcome, actor) = match leave {
                Leave::Granted => (ApprovalOutcome::Granted, ActorKind::User),
                Leave::GrantedByPolicy => (ApprovalOutcome::Granted, ActorKind::Policy),
                Leave::Denied => (ApprovalOutcome::Denied, ActorKind::User),
            };
            let ended = ApprovalEnded {
                approval: None,
                action: Some(action.clone().into()),
                outcome,
                scope: None,
                args: None,
                input: None,
                reason: None,
                join: None,
            };
            self.emit(here, actor, ended, None)?;
        }
        if let Some((outcome, applied)) = said.end {
            self.emit(here, ActorKind::Tool, ended(&action, outcome, applied), None)?;
        }
        self.jobs.extend(said.job);
        if let Some(delegation) = said.delegation {
            let goals = delegation.goals.as_deref().and_then(|goals| Raw::parse(goals).ok());
            self.delegation_began(here, &delegation.id, goals.as_ref())?;
        }
        Ok(false)
    }

    fn instructions(&mut self, here: &mut Here<'_>) -> Result<bool, WriteError> {
        let parts = self.parts(here.record)?;
        let role = if here.record.text("role").as_deref() == Some("system") { Role::System } else { Role::Developer };
        self.emit(here, ActorKind::Harness, message(role, parts), None)?;
        Ok(true)
    }

    /// Whether the row stands in this log already.
    fn is_again(&self, here: &Here<'_>) -> bool {
        matches!(here.copy, Some((_, None, _)))
    }

    /// Keeps a record that maps to nothing.
    pub(crate) fn keep(&mut self, record: &Record) -> Written {
        self.input.kept += 1;
        let data = self.log.kept(&record.table, record.json());
        let mut draft = Draft::new(record.event(&self.ids, 0).hex(), ActorKind::Importer, data);
        draft.ignorable = Some(true);
        draft.src.push(record.src(self.source, Some(SrcHow::Opaque)));
        self.log.append(&mut draft)
    }

    /// The record, before anything was made of it.
    pub(crate) fn here<'r>(&mut self, record: &'r Record, time: &str) -> Here<'r> {
        let time = self.time(record, time);
        Here { record, time, ordinal: 0, copy: None }
    }

    /// Appends an event that comes from the record at hand.
    pub(crate) fn emit<'d>(
        &mut self,
        here: &mut Here<'_>,
        actor: ActorKind,
        data: impl Into<Data<'d>>,
        how: Option<SrcHow>,
    ) -> Result<EventId, WriteError> {
        self.emit_of(here, &[], actor, data, how)
    }

    /// Appends an event that comes from the record at hand, and from others with it.
    pub(crate) fn emit_of<'d>(
        &mut self,
        here: &mut Here<'_>,
        more: &[&Record],
        actor: ActorKind,
        data: impl Into<Data<'d>>,
        how: Option<SrcHow>,
    ) -> Result<EventId, WriteError> {
        let id = here.record.event(&self.ids, here.ordinal);
        let mut draft = Draft::new(id.hex(), actor, data).at(here.time.clone());
        if let Some((event, log, how)) = &here.copy {
            // Only the first event of a record is the same in both.
            let event = (here.ordinal == 0).then(|| event.hex().into());
            draft.copy = Some(Copy { log: log.map(|log| log.to_owned().into()), event, how: *how });
        }
        let content =
            here.record.text("content").filter(|_| here.ordinal == 0 && here.record.word("api_content").is_some());
        if let Some(content) = content {
            draft.ext = Some(Raw::of(&serde_json::json!({ EXT: { "content": content } })));
        }
        draft.src.extend(std::iter::once(here.record).chain(more.iter().copied()).map(|r| r.src(self.source, how)));
        here.ordinal += 1;
        self.log.append(&mut draft)?;
        Ok(id)
    }

    /// Counts a record.
    pub(crate) fn count(&mut self, record: &Record) {
        *self.input.by_type.entry(record.table.clone()).or_default() += 1;
        self.input.records += 1;
    }

    /// The time of a record; reports one that is none, or that runs backwards.
    fn time<'r>(&mut self, record: &'r Record, column: &str) -> Option<Time<'r>> {
        let place = self.place(record);
        let time = match record.time(column) {
            Ok(time) => time?,
            Err(()) => {
                self.warn(Code::BadTime, place);
                return None;
            }
        };
        if column == "timestamp" {
            let backwards = self.newest.as_ref().is_some_and(|newest| time < *newest);
            if backwards && !std::mem::replace(&mut self.descending, true) {
                self.log.diagnostics.push(Diagnostic::new(Code::TimeBackwards, Severity::Info, place));
            }
            if !backwards {
                self.descending = false;
                self.newest = Some(time.clone());
            }
        }
        Some(time)
    }

    /// The place of a record, for a diagnostic.
    pub(crate) fn place(&self, record: &Record) -> Place {
        Place {
            input: Some(self.input.path.clone()),
            record: Some(format!("{}/{}", record.table, record.key)),
            session: Some(self.log.session().to_owned()),
            ..Place::default()
        }
    }

    pub(crate) fn warn(&mut self, code: Code, place: Place) {
        self.log.diagnostics.push(Diagnostic::new(code, Severity::Warning, place));
    }
}

/// A message with nothing but a role and parts.
fn message(role: Role, parts: Vec<Part<'_>>) -> MessageAdded<'_> {
    MessageAdded { role, parts, response: None, partial: None, purpose: None, in_context: None }
}

/// An end without anything beside it.
pub(crate) fn ended(action: &str, outcome: Outcome, applied: Applied) -> ActionEnded<'static> {
    ActionEnded {
        action: action.to_owned().into(),
        attempt: None,
        outcome,
        applied,
        output: None,
        receipt: None,
        error: None,
    }
}

/// What is known of a response when its message came.
pub(crate) fn response_of(response: &str, stop: String) -> ModelResponse<'static> {
    ModelResponse {
        response: response.to_owned().into(),
        model: None,
        request: None,
        usage: None,
        cost: None,
        stop: Some(stop.into()),
        error: None,
    }
}

/// Why a response stopped, in the words of the log.
fn stop(finish: &str) -> Option<&'static str> {
    match finish {
        "stop" => Some("end_turn"),
        "tool_calls" | "function_call" => Some("tool_use"),
        "length" => Some("max_tokens"),
        "content_filter" => Some("refusal"),
        _ => None,
    }
}
