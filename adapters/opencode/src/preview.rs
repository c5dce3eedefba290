//! The tables of the preview API: a message is one row with all that it holds, and prompts have an inbox
//! (`spec/sources/opencode.md`, "Preview API").

use palog::diagnostic::{Code, Place, Severity};
use palog::envelope::ActorKind;
use palog::events::{
    self, ActionEnded, ConfigSet, InputEnded, InputOutcome, InputQueued, MessageAdded, ModelResponse, Role, TurnStarted,
};
use palog::json::{Raw, Str, Value};
use palog::writer::args_digest;
use palog_adapter::sqlite::Row;
use serde::Deserialize;

use crate::calls::{missing, propose};
use crate::mapper::{EMPTY_CONFIG, Mapper, Slot, Told, Written, step};
use crate::record::{Model, Origin, Record, State, Times, Tokens, lenient, parse, text};
use crate::tools::{self, Verdict};

/// A message of the preview API.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Message<'a> {
    #[serde(default, deserialize_with = "lenient")]
    time: Option<Times>,
    text: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    content: Option<Vec<Content<'a>>>,
    #[serde(default, deserialize_with = "lenient")]
    model: Option<Model<'a>>,
    #[serde(default, deserialize_with = "text")]
    finish: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    tokens: Option<Tokens>,
    cost: Option<Raw<'a>>,
    error: Option<Raw<'a>>,
}

/// What a message of the model holds.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Content<'a> {
    #[serde(default, deserialize_with = "text")]
    r#type: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    id: Option<Str<'a>>,
    text: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "text")]
    name: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    state: Option<State<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    time: Option<Times>,
}

/// `session_input.prompt`.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Prompt<'a> {
    text: Option<Raw<'a>>,
}

/// A call in a message.
struct Call<'c> {
    action: String,
    tool: &'c str,
    state: &'c State<'c>,
    time: Times,
    origin: Origin,
}

fn said<'d>(text: Option<&'d Raw<'_>>) -> Option<events::Part<'d>> {
    let text = text.filter(|t| t.is_string() && t.get() != "\"\"")?;
    Some(events::Part::Text { text: Value::Inline(text.borrowed()) })
}

impl Mapper {
    /// What the client tells the model of its surroundings.
    pub(crate) fn preview_context(&mut self, row: &Row) -> Written {
        let set = ConfigSet { instructions: row.text("baseline").map(Value::from), ..EMPTY_CONFIG };
        let origin = Origin::of(row);
        self.append(Told::by(&origin, Slot::First), ActorKind::Harness, set).map(drop)
    }

    /// A prompt that was accepted.
    pub(crate) fn preview_input(&mut self, row: &Row) -> Written {
        let record = Record::of_row(row);
        let prompt: Option<Prompt<'_>> = row.text("prompt").and_then(|text| serde_json::from_str(text).ok());
        let (Some(id), Some(prompt)) = (row.text("id"), prompt) else { return self.odd(&record) };
        let parts = said(prompt.text.as_ref()).into_iter().collect();
        let queued = InputQueued { input: id.to_owned().into(), parts };
        let actor = self.asker();
        self.append(Told::by(&record.origin, Slot::First).time(record.created), actor, queued)?;
        if row.integer("promoted_seq").is_some() {
            self.waiting.insert(id.to_owned(), record.origin);
        }
        Ok(())
    }

    /// A message.
    pub(crate) fn preview_message(&mut self, row: &Row) -> Written {
        let record = Record::of_data(row);
        let Some(message) = record.read::<Message<'_>>() else { return self.odd(&record) };
        match row.text("type") {
            Some("user") => self.preview_prompt(&record, &message),
            Some("assistant") => self.preview_answer(&record, &message),
            kind => {
                let place = Place { kind: kind.map(str::to_owned), ..self.place(&record.origin) };
                self.report(Code::UnknownType, Severity::Warning, place);
                self.keep(&Record::of_row(row), &format!("session_message/{}", kind.unwrap_or("unexpected")))
            }
        }
    }

    fn preview_prompt(&mut self, record: &Record<'_>, message: &Message<'_>) -> Written {
        let created = message.time.and_then(|t| t.created).or(record.created);
        let actor = self.asker();
        let added = MessageAdded {
            role: Role::User,
            parts: said(message.text.as_ref()).into_iter().collect(),
            response: None,
            partial: None,
            purpose: Some("prompt".into()),
            in_context: None,
        };
        self.begin_message(&record.id);
        let id = self.append(Told::by(&record.origin, Slot::First).time(created), actor, added)?;
        self.on_path(id);
        if let Some(input) = self.waiting.remove(&record.id) {
            let taken = InputEnded {
                input: record.id.clone().into(),
                outcome: InputOutcome::Taken,
                message: Some(id.hex().into()),
            };
            self.append(Told::by(&input, Slot::InputEnd), ActorKind::Harness, taken)?;
        }
        let turn = TurnStarted { turn: Some(record.id.clone().into()), message: Some(id.hex().into()) };
        self.append(Told::by(&record.origin, Slot::Turn).time(created), actor, turn)?;
        self.begin_turn(&record.id);
        Ok(())
    }

    fn preview_answer(&mut self, record: &Record<'_>, message: &Message<'_>) -> Written {
        let (mut parts, mut calls) = (Vec::new(), Vec::new());
        let mut ends_with_call = false;
        for content in message.content.iter().flatten() {
            ends_with_call = false;
            match content.r#type.as_deref() {
                Some("text") => parts.extend(said(content.text.as_ref())),
                Some("reasoning") => {
                    let text = content.text.as_ref().filter(|t| t.is_string() && t.get() != "\"\"");
                    let text = text.map(|text| Value::Inline(text.borrowed()));
                    parts.extend(text.map(|text| events::Part::Reasoning { text: Some(text), opaque: None }));
                }
                Some("tool") => {
                    if let Some(call) = self.preview_call(record, content) {
                        parts.push(events::Part::Action { action: call.action.clone().into() });
                        calls.push(call);
                        ends_with_call = true;
                    }
                }
                kind => {
                    let place = Place { kind: kind.map(str::to_owned), ..self.place(&record.origin) };
                    self.report(Code::UnknownBlock, Severity::Warning, place);
                }
            }
        }
        let created = message.time.and_then(|t| t.created).or(record.created);
        let completed = message.time.and_then(|t| t.completed);
        self.begin_message(&record.id);
        if !parts.is_empty() {
            self.begin_answer();
            // The client completes a message after its calls. A call that it was handed whole was not cut off.
            let is_whole = (completed.is_some() || ends_with_call) && message.error.is_none();
            let added = MessageAdded {
                role: Role::Assistant,
                parts,
                response: Some(record.id.clone().into()),
                partial: (!is_whole).then_some(true),
                purpose: None,
                in_context: None,
            };
            let id = self.append(Told::by(&record.origin, Slot::First).time(created), ActorKind::Model, added)?;
            self.on_path(id);
        }
        for call in &calls {
            let args = call.state.input.as_ref();
            let digest = args.map_or_else(|| palog::blob::digest(b""), args_digest);
            let args = match args {
                Some(args) => Value::Inline(args.borrowed()),
                None => missing(),
            };
            let proposed = propose(&call.action, call.tool, args, digest);
            self.append(Told::by(&call.origin, Slot::Turn).time(call.time.created), ActorKind::Model, proposed)?;
        }
        calls.iter().try_for_each(|call| self.preview_outcome(call))?;
        let response = ModelResponse {
            response: record.id.clone().into(),
            model: message.model.as_ref().and_then(Model::full).map(Into::into),
            request: None,
            usage: message.tokens.as_ref().map(step::usage),
            cost: message.cost.as_ref().map(Raw::borrowed),
            stop: message.finish.as_deref().map(|finish| step::stop(finish).to_owned().into()),
            error: message.error.as_ref().map(|error| Value::Inline(error.borrowed())),
        };
        let told = Told::by(&record.origin, Slot::Response).time(completed);
        self.append(told, ActorKind::Model, response).map(drop)
    }

    /// A call, if its arguments are whole.
    fn preview_call<'c>(&mut self, record: &Record<'_>, content: &'c Content<'c>) -> Option<Call<'c>> {
        let state = content.state.as_ref()?;
        let status = state.status.as_deref()?;
        if !matches!(status, "running" | "completed" | "error") {
            return None;
        }
        let id = content.id.as_deref()?;
        let action = self.name_call(id);
        // Several calls stand in one row.
        let origin = match &record.origin {
            Origin::Row { table, key, digest } => Origin::Row {
                table: table.clone(),
                key: key.clone(),
                digest: palog::blob::sha256_hex(format!("{digest} {action}").as_bytes()),
            },
            span @ Origin::Span { .. } => span.clone(),
        };
        if status == "running" {
            let place = Place { call: Some(id.to_owned()), ..self.place(&origin) };
            self.unended(&action, place);
        }
        let time = content.time.unwrap_or_default();
        Some(Call { action, tool: content.name.as_deref().unwrap_or("unknown"), state, time, origin })
    }

    fn preview_outcome(&mut self, call: &Call<'_>) -> Written {
        #[derive(Default, Deserialize)]
        struct Failure {
            message: Option<String>,
        }
        let failed = call.state.status.as_deref() == Some("error");
        let verdict = match call.state.status.as_deref() {
            Some("completed") => {
                // What a tool says of its run stands in another member here.
                let run = State { metadata: call.state.structured.clone(), ..State::default() };
                tools::completed(call.tool, &run, false)
            }
            Some("error") => {
                let failure: Failure = call.state.error.as_ref().and_then(parse).unwrap_or_default();
                tools::failed(call.tool, &failure.message.unwrap_or_default())
            }
            _ => return Ok(()),
        };
        match verdict {
            Verdict::Ended(outcome, applied) => {
                let ended = ActionEnded {
                    action: call.action.clone().into(),
                    attempt: None,
                    outcome,
                    applied,
                    output: None,
                    receipt: None,
                    error: None,
                };
                let told = Told::by(&call.origin, Slot::Ended).time(call.time.completed);
                self.append(told, ActorKind::Tool, ended)?;
            }
            Verdict::DeniedByUser => self.preview_denied(call, ActorKind::User)?,
            Verdict::DeniedByPolicy => self.preview_denied(call, ActorKind::Policy)?,
            Verdict::Open => {}
        }
        let texts: Option<Vec<Content<'_>>> = call.state.content.as_ref().and_then(parse);
        let texts = texts.unwrap_or_default();
        let is_text = |content: &Content<'_>| content.r#type.as_deref() == Some("text") && content.text.is_some();
        let parts = if failed || texts.is_empty() || !texts.iter().all(is_text) {
            vec![events::Part::Json { value: whole(call.state) }]
        } else {
            texts.iter().filter_map(|content| said(content.text.as_ref())).collect()
        };
        let result = events::Part::Result {
            action: call.action.clone().into(),
            parts,
            is_error: failed.then_some(true),
            r#final: true,
        };
        let added = MessageAdded {
            role: Role::Tool,
            parts: vec![result],
            response: None,
            partial: None,
            purpose: None,
            in_context: None,
        };
        let id = self.append(Told::by(&call.origin, Slot::Result).time(call.time.completed), ActorKind::Tool, added)?;
        self.on_path(id);
        Ok(())
    }

    fn preview_denied(&mut self, call: &Call<'_>, by: ActorKind) -> Written {
        let denied = events::ApprovalEnded {
            approval: None,
            action: Some(call.action.clone().into()),
            outcome: events::ApprovalOutcome::Denied,
            scope: None,
            args: None,
            input: None,
            reason: None,
            join: None,
        };
        self.append(Told::by(&call.origin, Slot::Denied).time(call.time.completed), by, denied).map(drop)
    }
}

/// What the model is told where that is no text: these members, in this order.
fn whole(state: &State<'_>) -> Value<'static> {
    let members = [("error", &state.error), ("content", &state.content), ("structured", &state.structured)];
    let present: Vec<String> =
        members.iter().filter_map(|(name, value)| Some(format!("\"{name}\":{}", value.as_ref()?.get()))).collect();
    let text = format!("{{{}}}", present.join(","));
    Raw::parse(&text).map_or_else(|_| missing(), |raw| Value::Inline(raw.into_owned()))
}
