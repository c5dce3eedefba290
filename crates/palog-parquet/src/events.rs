//! The table `events`: a row for each line of a log.

use std::borrow::Cow;

use palog::diagnostic::Code;
use palog::envelope::{Event, Time};
use palog::events::{Data, MessageAdded, ModelResponse, Part, Usage};
use palog::json::{Str, Value};

use crate::cell::{Flag, Int, Lying, Micros, Text, Texts, table};

table! {
    /// A line of a log.
    EventRow, EventColumns {
        /// Id of the log.
        log: Text!,
        /// Number of the line in its log, from 1: the order.
        line_number: Int!,
        /// Offset of its first byte in the log.
        offset: Int!,
        /// The diagnostic code that says why the line is no event, or why its payload could not be read.
        fault: Text?,
        /// `seq`.
        seq: Int?,
        /// `id`.
        id: Text?,
        /// `type`.
        kind as "type": Text?,
        /// `time`, cut to microseconds.
        time: Micros?,
        /// `time` as it stands.
        time_text: Text?,
        /// `recorded`, cut to microseconds.
        recorded: Micros?,
        /// `recorded` as it stands.
        recorded_text: Text?,
        /// `actor.kind`.
        actor_kind: Text?,
        /// `actor.id`.
        actor_id: Text?,
        /// `epoch`.
        epoch: Int?,
        /// `parent`.
        parent: Text?,
        /// `cause`.
        cause: Texts?,
        /// `copy.how`; null = the event is no copy.
        copy_how: Text?,
        /// `copy.log`.
        copy_log: Text?,
        /// `copy.event`.
        copy_event: Text?,
        /// `source` of the first native record.
        source: Text?,
        /// `at` of the first native record.
        source_at: Int?,
        /// `len` of the first native record.
        source_len: Int?,
        /// `how` of the first native record.
        source_how: Text?,
        /// `ignorable`.
        ignorable: Flag?,
        /// Role of a message.
        role: Text?,
        /// `purpose` of a message.
        purpose: Text?,
        /// `partial` of a message.
        partial: Flag?,
        /// `in_context` of a message.
        in_context: Flag?,
        /// The text parts of a message or an input, one a line, without reasoning and results; or the text of a note.
        text: Text?,
        /// Digests of texts of the same kind that lie in blobs.
        text_blobs: Texts?,
        /// The actions whose place is in the message.
        calls: Texts?,
        /// The actions whose results are in the message.
        results: Texts?,
        /// How many of these results are marked as errors; null = there are no results.
        result_errors: Int?,
        /// The vendor's id of a turn.
        turn: Text?,
        /// Id of an input.
        input: Text?,
        /// Id of a response of the model.
        response: Text?,
        /// Id of a request to the model.
        request: Text?,
        /// Model of a request, a response or the definition.
        model: Text?,
        /// Why a response stopped.
        stop: Text?,
        /// Input tokens of a response, as the line says.
        usage_input: Int?,
        /// Output tokens of a response, as the line says.
        usage_output: Int?,
        /// Cached input tokens of a response, as the line says.
        usage_cache_read: Int?,
        /// Input tokens that were written to a cache, as the line says.
        usage_cache_write: Int?,
        /// Output tokens for reasoning, as the line says.
        usage_reasoning: Int?,
        /// What the line adds to the input tokens of the session: each response counts once, copies not at all.
        counted_input: Int?,
        /// The same for output tokens.
        counted_output: Int?,
        /// The same for cached input tokens.
        counted_cache_read: Int?,
        /// The same for input tokens that were written to a cache.
        counted_cache_write: Int?,
        /// The same for output tokens for reasoning.
        counted_reasoning: Int?,
        /// `cost` of a response: JSON.
        cost: Text?,
        /// Id of the action that the event is about.
        action: Text?,
        /// Number of its attempt.
        attempt: Int?,
        /// Name of the proposed tool.
        action_name: Text?,
        /// `kind` of a proposed action.
        action_kind: Text?,
        /// `effect.class` of a proposed action.
        action_class: Text?,
        /// `effect.idempotency_key` of a proposed action.
        idempotency_key: Text?,
        /// `effect.target` of a proposed action.
        target: Text?,
        /// How an action, a reconciliation, an approval, an input, a turn, a child, a command, a task, an attempt at one or the log ended; the new status of a step.
        outcome: Text?,
        /// Whether the effect of an action took place.
        applied: Text?,
        /// Id of a request for approval.
        approval: Text?,
        /// What a request for approval is about.
        approval_kind: Text?,
        /// How far a grant reaches.
        scope: Text?,
        /// Id of a child's log.
        child: Text?,
        /// Working directory.
        directory: Text?,
        /// Branch of the version control system.
        branch: Text?,
        /// Revision of the workspace.
        revision: Text?,
        /// Permission mode, in the vendor's word.
        permission_mode: Text?,
        /// Title of the session.
        title: Text?,
        /// What was observed, or the kind of a note.
        fact: Text?,
        /// The error of an action or a response: its characters, or JSON.
        error: Text?,
        /// The reason that is given: its characters, or JSON.
        reason: Text?,
        /// The bytes of the line, without its line feed; null = the line is longer than readers accept.
        line: Lying?,
    }
}

impl EventColumns {
    /// Gives the column `line` of the rows that were added.
    pub(crate) fn give_lines(&mut self, lines: arrow_array::BinaryArray) {
        self.line = Some(lines);
    }
}

/// What a row needs that does not stand in the event as it is.
#[derive(Default)]
pub(crate) struct Lifted<'e> {
    text: Option<Cow<'e, str>>,
    blobs: Vec<&'e str>,
    calls: Vec<&'e str>,
    results: Vec<&'e str>,
    result_errors: i64,
    error: Option<Cow<'e, str>>,
    reason: Option<Cow<'e, str>>,
    cause: Vec<&'e str>,
}

impl<'e> Lifted<'e> {
    /// Takes out of the event what has to be put together.
    pub(crate) fn of(event: &'e Event<'e>, data: Option<&'e Data<'e>>) -> Self {
        let mut lifted = Lifted { cause: event.cause.iter().map(Str::as_str).collect(), ..Lifted::default() };
        match data {
            Some(Data::MessageAdded(d)) => lifted.parts(&d.parts),
            Some(Data::InputQueued(d)) => lifted.parts(&d.parts),
            Some(Data::NoteAdded(d)) => d.text.iter().for_each(|text| lifted.text(text)),
            Some(Data::ActionEnded(d)) => lifted.error = d.error.as_ref().and_then(characters),
            Some(Data::ModelResponse(d)) => lifted.error = d.error.as_ref().and_then(characters),
            Some(Data::ApprovalEnded(d)) => lifted.reason = d.reason.as_ref().and_then(characters),
            Some(Data::TaskClosed(d)) => lifted.reason = d.reason.as_ref().and_then(characters),
            Some(Data::AttemptEnded(d)) => lifted.reason = d.reason.as_ref().and_then(characters),
            Some(Data::CommandEnded(d)) => lifted.reason = d.reason.as_ref().and_then(characters),
            Some(Data::TurnEnded(d)) => lifted.reason = d.reason.as_deref().map(Cow::Borrowed),
            Some(Data::LogClosed(d)) => lifted.reason = d.reason.as_deref().map(Cow::Borrowed),
            _ => {}
        }
        lifted
    }

    fn parts(&mut self, parts: &'e [Part<'e>]) {
        for part in parts {
            match part {
                Part::Text { text } => self.text(text),
                Part::Action { action } => self.calls.push(action),
                Part::Result { action, is_error, .. } => {
                    self.results.push(action);
                    self.result_errors += i64::from(*is_error == Some(true));
                }
                _ => {}
            }
        }
    }

    fn text(&mut self, value: &'e Value<'e>) {
        if let Value::Blob(blob) = value {
            self.blobs.push(&blob.digest);
        } else if let Some(more) = value.text() {
            match &mut self.text {
                None => self.text = Some(more),
                Some(text) => {
                    let text = text.to_mut();
                    text.push('\n');
                    text.push_str(&more);
                }
            }
        }
    }
}

/// The characters of a string, else the JSON text; `None` where the value lies elsewhere.
fn characters<'e>(value: &'e Value<'e>) -> Option<Cow<'e, str>> {
    match value {
        Value::Inline(raw) => raw.text().or(Some(Cow::Borrowed(raw.get()))),
        Value::Blob(_) | Value::Omitted(_) => None,
    }
}

/// A counter of the format; what no 64 bits with a sign can hold is left to the line itself.
pub(crate) fn int(n: u64) -> Option<i64> {
    i64::try_from(n).ok()
}

/// The row of an event. `data` is `None` where the payload could not be read.
pub(crate) fn row<'e>(event: &'e Event<'e>, data: Option<&'e Data<'e>>, lifted: &'e Lifted<'e>) -> EventRow<'e> {
    let src = event.src.first();
    let copy = event.copy.as_ref();
    let mut row = EventRow {
        fault: data.is_none().then(|| Code::BadPayload.as_str()),
        seq: int(event.seq),
        id: Some(&event.id),
        kind: Some(&event.kind),
        time: event.time.as_ref().map(Time::micros),
        time_text: event.time.as_ref().map(Time::as_str),
        recorded: event.recorded.as_ref().map(Time::micros),
        recorded_text: event.recorded.as_ref().map(Time::as_str),
        actor_kind: Some(event.actor.kind.word()),
        actor_id: event.actor.id.as_deref(),
        epoch: event.epoch.and_then(int),
        parent: event.parent.as_deref(),
        cause: Some(&lifted.cause),
        copy_how: copy.map(|c| c.how.word()),
        copy_log: copy.and_then(|c| c.log.as_deref()),
        copy_event: copy.and_then(|c| c.event.as_deref()),
        source: src.map(|s| &*s.source),
        source_at: src.and_then(|s| s.at).and_then(int),
        source_len: src.and_then(|s| s.len).and_then(int),
        source_how: src.and_then(|s| s.how).map(palog::envelope::SrcHow::word),
        ignorable: event.ignorable,
        text: lifted.text.as_deref(),
        text_blobs: Some(&lifted.blobs),
        error: lifted.error.as_deref(),
        reason: lifted.reason.as_deref(),
        ..EventRow::default()
    };
    if let Some(data) = data {
        payload(&mut row, data, lifted);
    }
    row
}

fn payload<'e>(row: &mut EventRow<'e>, data: &'e Data<'e>, lifted: &'e Lifted<'e>) {
    match data {
        Data::MessageAdded(d) => message(row, d, lifted),
        Data::ModelResponse(d) => response(row, d),
        Data::ModelRequested(d) => (row.model, row.request) = (d.model.as_deref(), d.request.as_deref()),
        Data::InputQueued(d) => row.input = Some(&d.input),
        Data::InputEnded(d) => (row.input, row.outcome) = (Some(d.input.as_str()), Some(d.outcome.word())),
        Data::TurnStarted(d) => row.turn = d.turn.as_deref(),
        Data::TurnEnded(d) => (row.turn, row.outcome) = (d.turn.as_deref(), Some(d.how.word())),
        Data::LogClosed(d) => row.outcome = Some(d.how.word()),
        Data::ActionProposed(d) => {
            let effect = d.effect.as_ref();
            row.action = Some(&d.action);
            row.action_name = Some(&d.name);
            row.action_kind = d.kind.map(palog::events::ActionKind::word);
            row.action_class = effect.and_then(|e| e.class).map(palog::events::EffectClass::word);
            row.idempotency_key = effect.and_then(|e| e.idempotency_key.as_deref());
            row.target = effect.and_then(|e| e.target.as_deref());
        }
        Data::ActionStarted(d) => (row.action, row.attempt) = (Some(d.action.as_str()), d.attempt.and_then(int)),
        Data::ActionEnded(d) => {
            (row.action, row.attempt) = (Some(d.action.as_str()), d.attempt.and_then(int));
            (row.outcome, row.applied) = (Some(d.outcome.word()), Some(d.applied.word()));
        }
        Data::ActionReconciled(d) => {
            (row.action, row.attempt) = (Some(d.action.as_str()), d.attempt.and_then(int));
            row.outcome = Some(d.outcome.word());
        }
        Data::ApprovalRequested(d) => {
            (row.action, row.approval) = (d.action.as_deref(), d.approval.as_deref());
            row.approval_kind = Some(d.kind.word());
        }
        Data::ApprovalEnded(d) => {
            (row.action, row.approval) = (d.action.as_deref(), d.approval.as_deref());
            (row.outcome, row.scope) = (Some(d.outcome.word()), d.scope.map(palog::events::Scope::word));
        }
        Data::ConfigSet(d) => {
            (row.model, row.directory, row.branch) = (d.model.as_deref(), d.directory.as_deref(), d.branch.as_deref());
            (row.permission_mode, row.title) = (d.permission_mode.as_deref(), d.title.as_deref());
        }
        Data::WorkspaceRecorded(d) => row.revision = d.revision.as_deref(),
        Data::ChildSpawned(d) => (row.child, row.action) = (Some(d.child.as_str()), d.action.as_deref()),
        Data::ChildEnded(d) => (row.child, row.outcome) = (Some(d.child.as_str()), d.status.as_deref()),
        Data::ObservationRecorded(d) => (row.fact, row.action) = (Some(d.fact.as_str()), d.subject.as_deref()),
        Data::NoteAdded(d) => row.fact = Some(&d.kind),
        Data::ArtifactRecorded(d) => row.action = d.action.as_deref(),
        Data::AttemptEnded(d) => row.outcome = Some(d.how.word()),
        Data::TaskClosed(d) => row.outcome = Some(d.how.word()),
        Data::CommandEnded(d) => row.outcome = Some(d.outcome.word()),
        Data::StepChanged(d) => row.outcome = Some(d.status.word()),
        _ => {}
    }
}

fn message<'e>(row: &mut EventRow<'e>, data: &'e MessageAdded<'e>, lifted: &'e Lifted<'e>) {
    row.role = Some(data.role.word());
    (row.purpose, row.partial, row.in_context) = (data.purpose.as_deref(), data.partial, data.in_context);
    row.response = data.response.as_deref();
    (row.calls, row.results) = (Some(lifted.calls.as_slice()), Some(lifted.results.as_slice()));
    row.result_errors = (!lifted.results.is_empty()).then_some(lifted.result_errors);
}

fn response<'e>(row: &mut EventRow<'e>, data: &'e ModelResponse<'e>) {
    (row.response, row.model) = (Some(data.response.as_str()), data.model.as_deref());
    (row.request, row.stop) = (data.request.as_deref(), data.stop.as_deref());
    row.cost = data.cost.as_ref().map(|cost| cost.get());
    if let Some(Usage { input, output, cache_read, cache_write, reasoning }) = &data.usage {
        let [input, output, cache_read, cache_write, reasoning] =
            [input, output, cache_read, cache_write, reasoning].map(|n| n.and_then(int));
        (row.usage_input, row.usage_output, row.usage_reasoning) = (input, output, reasoning);
        (row.usage_cache_read, row.usage_cache_write) = (cache_read, cache_write);
    }
}
