//! Writes a log as a rollout of the current client (`spec/sources/codex.md`, "Export").
//!
//! The model's context is in items and the screen's in events, so both are written. What the log does not say is not written,
//! but for what a record must have; that is declared.

mod items;

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Read, Seek, Write};

use palog::envelope::ActorKind;
use palog::events::{Data, Part, Recorded, Role, TurnEnd, WindowItem, WindowMessage};
use palog::json::Raw;
use palog_adapter::export::{
    Class, Cue, Destination, EndMark, ExportError, Field, Losses, Mark, Moved, Synthesized, View, call_name, message,
    name_uuid, note,
};
use serde_json::{Value as Json, json};

use crate::FORMAT;
use items::{Beside, Item, Spoken};

/// The version whose dialect is written.
const DIALECT: &str = "0.171.0";
/// What stands where a prompt was of which nothing can be written.
const UNREADABLE: &str =
    "[This is a note of the program that moved this session. A message stood here that cannot be read.]";
/// The time of what has none, and comes before everything that has one.
const NO_TIME: &str = "1970-01-01T00:00:00.000Z";
/// Stops after which the model's turn is over.
const FINAL_STOPS: &[&str] = &["end_turn", "stop_sequence", "max_tokens", "refusal"];

/// The place of a rollout below the client's directory, for a session that began at `began`.
#[must_use]
pub fn place(destination: &Destination, began: Option<&str>) -> String {
    let time = began.filter(|time| time.len() >= 19).unwrap_or(NO_TIME);
    let (day, clock) = (&time[..10], time[11..19].replace(':', "-"));
    format!("sessions/{}/rollout-{day}T{clock}-{}.jsonl", day.replace('-', "/"), destination.session)
}

/// Writes the session of `view` to `out`.
///
/// # Errors
/// When the log cannot be read again, or the output refuses.
pub fn export<R: Read + Seek>(
    view: &mut View<'_, R>,
    destination: &Destination,
    out: &mut dyn Write,
    losses: &mut Losses,
) -> Result<(), ExportError> {
    view.declare_common(destination, losses);
    let cues = view.cues(losses)?;
    let mut writer = Writer {
        destination,
        out,
        losses,
        time: view.began.clone().unwrap_or_else(|| NO_TIME.to_owned()),
        ordinal: 0,
        turn: None,
        turns: 0,
        response: None,
        said: None,
        calls: BTreeMap::new(),
        ids: HashSet::new(),
        shown: HashSet::new(),
        answered: false,
        total: Counts::default(),
        of_turn: Counts::default(),
    };
    writer.header(view)?;
    for cue in &cues {
        writer.write(view, cue)?;
    }
    writer.finish(view, None)?;
    writer.conclude(view)
}

/// Token counts in the provider's words: what came from a cache is a part of the input.
#[derive(Clone, Copy, Default)]
struct Counts {
    input: u64,
    cached: u64,
    written: u64,
    output: u64,
    reasoning: u64,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.input += other.input;
        self.cached += other.cached;
        self.written += other.written;
        self.output += other.output;
        self.reasoning += other.reasoning;
    }

    fn json(self) -> Json {
        json!({
            "input_tokens": self.input, "cached_input_tokens": self.cached, "cache_write_input_tokens": self.written,
            "output_tokens": self.output, "reasoning_output_tokens": self.reasoning,
            "total_tokens": self.input + self.output,
        })
    }
}

/// A call that was written.
#[derive(Clone)]
struct Call {
    id: String,
    name: String,
    args: Raw<'static>,
    beside: Beside,
}

struct Writer<'w> {
    destination: &'w Destination,
    out: &'w mut dyn Write,
    losses: &'w mut Losses,
    time: String,
    ordinal: u64,
    /// The turn that is open.
    turn: Option<String>,
    turns: u64,
    /// The response that is being written.
    response: Option<usize>,
    /// The last text of the model in the turn.
    said: Option<Raw<'static>>,
    calls: BTreeMap<String, Call>,
    /// The ids of all calls.
    ids: HashSet<String>,
    /// Steps that a window shows before their place.
    shown: HashSet<usize>,
    /// The last response of the turn has no call.
    answered: bool,
    total: Counts,
    of_turn: Counts,
}

impl Writer<'_> {
    fn header<R: Read + Seek>(&mut self, view: &View<'_, R>) -> Result<(), ExportError> {
        let config = &view.state.config;
        let session = &self.destination.session;
        if config.client_version.as_deref() != Some(DIALECT) {
            let why = "the version of the client is that of the dialect that is written";
            self.losses.count(Field::ConfigOther, Class::Synthesized, why, 1);
        }
        let why = "the client keeps titles outside of the session";
        self.losses.count(Field::ConfigTitle, Class::Omitted, why, u64::from(view.state.title.is_some()));
        let mut meta = json!({
            "session_id": session, "id": session, "timestamp": self.time, "cwd": self.destination.directory,
            "originator": "palog", "cli_version": DIALECT, "source": "cli", "history_mode": "paginated",
        });
        if let Some(branch) = &config.branch {
            meta["git"] = json!({"branch": branch});
        }
        let moved = Moved {
            log: view.state.log.clone().unwrap_or_default(),
            session: view.state.session.clone().unwrap_or_default(),
            agent: view.state.agent.as_ref().map(|a| a.name.clone()).unwrap_or_default(),
        };
        self.line("session_meta", &Raw::of(&meta), &Mark { moved: Some(moved), ..Mark::default() })
    }

    fn write<R: Read + Seek>(&mut self, view: &mut View<'_, R>, cue: &Cue) -> Result<(), ExportError> {
        let response = match cue {
            Cue::Spoken { step, .. } | Cue::Called { step, .. } => view.steps[*step].response,
            _ => None,
        };
        self.finish(view, response)?;
        self.response = response;
        match cue {
            Cue::Said { step } => self.said(view, *step),
            Cue::Beside { step, part } => self.beside(view, *step, *part),
            Cue::Spoken { step, part } => self.spoken(view, *step, *part),
            Cue::Called { step, action } => self.called(view, *step, action),
            Cue::Told { step, part, action, orphan } => self.told(view, *step, *part, action, *orphan),
            Cue::Unresolved { action } => self.unresolved(view, action),
            Cue::Compacted { step } => self.compacted(view, *step),
            Cue::TurnEnded(end) => self.ended(view, *end),
        }
    }

    /// Ends the response that was written, before one with another number, or none, goes on.
    fn finish<R: Read + Seek>(&mut self, view: &View<'_, R>, next: Option<usize>) -> Result<(), ExportError> {
        let Some(at) = self.response.take().filter(|at| Some(*at) != next) else { return Ok(()) };
        let response = &view.responses[at];
        if response.id.is_some() && response.usage.is_none() {
            self.losses.count(Field::ResponseId, Class::Omitted, "the client names a response with its counts only", 1);
        }
        if response.model.is_some() {
            self.losses.count(
                Field::ResponseModel,
                Class::Omitted,
                "the client does not name the model of a response",
                1,
            );
        }
        if response.stop.is_some() {
            let why = "why a response stopped is told by the end of its turn only";
            self.losses.count(Field::ResponseStop, Class::Degraded, why, 1);
        }
        if let Some(usage) = &response.usage {
            let foreign = view.state.vendor.as_deref() != Some(FORMAT.name);
            let (read, write) = (usage.cache_read.unwrap_or(0), usage.cache_write.unwrap_or(0));
            let cached = if foreign { read + write } else { 0 };
            if foreign {
                let why = "tokens that came from a cache are counted in the input, and not beside it";
                self.losses.count(Field::ResponseUsage, Class::Normalized, why, 1);
            }
            let untold = [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning];
            if !foreign && untold.iter().any(Option::is_none) {
                let why = "a count that no record tells is written as none";
                self.losses.count(Field::ResponseUsage, Class::Synthesized, why, 1);
            }
            let counts = Counts {
                input: usage.input.unwrap_or(0) + cached,
                cached: read,
                written: write,
                output: usage.output.unwrap_or(0),
                reasoning: usage.reasoning.unwrap_or(0),
            };
            let id = response.id.clone().unwrap_or_else(|| {
                self.losses.count(
                    Field::ResponseId,
                    Class::Synthesized,
                    "a response has an id; no record names one",
                    1,
                );
                self.uuid("response", at as u64)
            });
            self.total.add(counts);
            self.of_turn.add(counts);
            let (session, turn) = (&self.destination.session, self.turn.clone());
            let record = json!({
                "thread_id": session, "turn_id": turn, "session_id": session, "root_turn_id": turn, "response_id": id,
                "usage": counts.json(), "turn_token_usage": self.of_turn.json(), "thread_token_usage": self.total.json(),
            });
            self.line("token_usage_record", &Raw::of(&record), &Mark::default())?;
        }
        self.answered = !response.calls;
        let is_final = response.stop.as_deref().is_some_and(|stop| FINAL_STOPS.contains(&stop));
        if is_final && self.turn.is_some() {
            let why = "the end of a turn is concluded from why its last response stopped";
            self.losses.count(Field::TurnEnd, Class::Synthesized, why, u64::from(!response.completes));
            self.complete(None)?;
        }
        Ok(())
    }

    /// Ends the turn that is open.
    fn complete(&mut self, error: Option<&str>) -> Result<(), ExportError> {
        let Some(turn) = self.turn.take() else { return Ok(()) };
        let last = self.said.take();
        let mut event = json!({"type": "task_complete", "turn_id": turn, "root_turn_id": turn,
            "last_agent_message": last.as_ref().and_then(Raw::text)});
        if let Some(error) = error {
            event["error"] = json!({"message": error, "codex_error_info": "other"});
        }
        self.line("event_msg", &Raw::of(&event), &Mark::default())
    }

    /// Begins a turn, and ends the one before where the model answered it and no record of its kind would say so.
    fn begin<R: Read + Seek>(&mut self, view: &View<'_, R>) -> Result<(), ExportError> {
        self.conclude(view)?;
        let turn = self.uuid("turn", self.turns);
        self.turns += 1;
        self.of_turn = Counts::default();
        self.said = None;
        self.turn = Some(turn.clone());
        self.answered = false;
        let event = json!({"type": "task_started", "turn_id": turn, "root_turn_id": turn});
        self.line("event_msg", &Raw::of(&event), &Mark::default())
    }

    fn conclude<R: Read + Seek>(&mut self, view: &View<'_, R>) -> Result<(), ExportError> {
        if self.turn.is_none() || !self.answered || view.state.declares(Recorded::TurnEnded) {
            return Ok(());
        }
        let why = "the end of a turn is concluded from an answer without a call";
        self.losses.count(Field::TurnEnd, Class::Synthesized, why, 1);
        self.complete(None)
    }

    /// What the model does belongs to a turn.
    fn begin_if_due<R: Read + Seek>(&mut self, view: &View<'_, R>) -> Result<(), ExportError> {
        if self.turn.is_none() { self.begin(view) } else { Ok(()) }
    }

    /// A message of the user's side.
    fn said<R: Read + Seek>(&mut self, view: &mut View<'_, R>, step: usize) -> Result<(), ExportError> {
        let entry = view.entry(step)?;
        if self.shown.contains(&step) {
            return Ok(());
        }
        let (content, losses) = (&mut view.content, &mut *self.losses);
        let said = message(&entry, |event, message, parts| {
            let purpose = message.purpose.as_deref();
            if purpose == Some("reminder") && event.actor.kind == ActorKind::Harness {
                let why = "it is what the first client told its model of itself; this client tells its own";
                losses.declare(Field::MessageReminder, Class::Omitted, why, Some(&event.id), None);
                return Ok(None);
            }
            let role = role_of(message.role, event.actor.kind);
            if message.role != Role::User && role == Role::User {
                let why = "the provider has no such role: it is written on the user's side";
                losses.declare(Field::MessageRole, Class::Normalized, why, Some(&event.id), None);
            }
            let (mut blocks, mut own) = (Vec::new(), Vec::new());
            for part in parts {
                match part {
                    Part::Opaque(opaque) if items::is_item(opaque) => own.extend(content.json(&opaque.value)?.ok()),
                    part => blocks.extend(items::block(content, role, part, &event.id, losses)?),
                }
            }
            let by_user = event.actor.kind == ActorKind::User && matches!(purpose, None | Some("prompt" | "steer"));
            let mark = if by_user && purpose != Some("steer") {
                Mark { purpose: Some("prompt".into()), ..Mark::default() }
            } else {
                let purpose = Some(purpose.unwrap_or("prompt").to_owned());
                Mark { purpose, actor: Some(event.actor.kind), ..Mark::default() }
            };
            let begins = matches!(purpose, None | Some("prompt" | "notification"));
            let time = event.time.as_ref().map(|t| t.as_str().to_owned());
            Ok::<_, io::Error>(Some((role, blocks, own, by_user, mark, begins, time, event.id.to_string())))
        });
        let said = said.and_then(|said| said).map_err(ExportError::Read)?;
        let Some((role, blocks, own, by_user, mark, begins, time, event)) = said else { return Ok(()) };
        self.clock(time.as_deref(), &event);
        let mut blocks = blocks;
        if begins {
            self.begin(view)?;
            if blocks.is_empty() && own.is_empty() {
                let why = "a note stands where the prompt would be, of which nothing can be written";
                self.losses.declare(Field::PartText, Class::Synthesized, why, Some(&event), None);
                blocks.push(items::text(Raw::string(UNREADABLE)));
            }
        }
        for item in own {
            self.line("response_item", &item, &mark)?;
        }
        if blocks.is_empty() {
            return Ok(());
        }
        let screen = by_user.then(|| blocks.iter().filter_map(on_screen).collect::<Vec<Json>>());
        let item = Item::Message { role: word(role), content: blocks, phase: None };
        self.line("response_item", &Raw::of(&item), &mark)?;
        match screen {
            Some(content) => {
                let id = self.uuid("said", self.ordinal);
                self.show(json!({"type": "UserMessage", "id": id, "content": content}), &Mark::default())
            }
            None => Ok(()),
        }
    }

    /// A part that stood beside results.
    fn beside<R: Read + Seek>(&mut self, view: &mut View<'_, R>, step: usize, at: usize) -> Result<(), ExportError> {
        let entry = view.entry(step)?;
        let (content, losses) = (&mut view.content, &mut *self.losses);
        let block = message(&entry, |event, _, parts| items::block(content, Role::User, &parts[at], &event.id, losses));
        let Some(block) = block.and_then(|block| block).map_err(ExportError::Read)? else { return Ok(()) };
        let item = Item::Message { role: "user", content: vec![block], phase: None };
        let mark = Mark { purpose: Some("beside".into()), actor: Some(ActorKind::Harness), ..Mark::default() };
        self.line("response_item", &Raw::of(&item), &mark)
    }

    /// A part of what the model said.
    fn spoken<R: Read + Seek>(&mut self, view: &mut View<'_, R>, step: usize, at: usize) -> Result<(), ExportError> {
        self.begin_if_due(view)?;
        let entry = view.entry(step)?;
        let (content, losses) = (&mut view.content, &mut *self.losses);
        let spoken = message(&entry, |event, message, parts| {
            let time = event.time.as_ref().map(|t| t.as_str().to_owned());
            let beside = Beside::of(event.ext.as_ref());
            let purpose = message.purpose.as_ref().map(ToString::to_string);
            let actor = Some(event.actor.kind).filter(|actor| *actor != ActorKind::Model);
            let spoken = items::spoken(content, &parts[at], &event.id, losses)?;
            let mark = Mark { purpose, actor, ..Mark::default() };
            Ok::<_, io::Error>((spoken, beside, mark, time, event.id.to_string()))
        });
        let (spoken, beside, mark, time, event) = spoken.and_then(|spoken| spoken).map_err(ExportError::Read)?;
        self.clock(time.as_deref(), &event);
        match spoken {
            Spoken::Nothing => Ok(()),
            Spoken::Item(item) => self.line("response_item", &item, &mark),
            Spoken::Thought(text) => {
                let id = self.uuid("thought", self.ordinal);
                let mark = Mark { synthesized: Some(Synthesized::Screen), ..Mark::default() };
                self.show(json!({"type": "Reasoning", "id": id, "summary_text": [text], "raw_content": []}), &mark)
            }
            Spoken::Block(block) => {
                self.said = on_screen(&block).and_then(|block| Some(Raw::string(block.get("text")?.as_str()?)));
                if let Some(text) = &self.said {
                    let id = self.uuid("answer", self.ordinal);
                    let content = json!([{"type": "Text", "text": text}]);
                    self.show(json!({"type": "AgentMessage", "id": id, "content": content}), &Mark::default())?;
                }
                let phase = beside.phase.as_deref();
                let item = Item::Message { role: "assistant", content: vec![block], phase };
                self.line("response_item", &Raw::of(&item), &mark)
            }
        }
    }

    /// A call.
    fn called<R: Read + Seek>(&mut self, view: &mut View<'_, R>, step: usize, action: &str) -> Result<(), ExportError> {
        self.begin_if_due(view)?;
        let entry = view.entry(step)?;
        let event = entry.event().map_err(|e| ExportError::Read(e.into()))?;
        self.clock(event.time.as_ref().map(palog::envelope::Time::as_str), &event.id);
        let vendors = palog::project::call_id(action);
        let (mut id, mut renamed) = call_name(vendors);
        if vendors != action || self.ids.contains(&id) {
            (id, renamed) = (call_name(&format!("{action}#")).0, true);
        }
        if renamed {
            let why = "an id stands for one call only, and has letters that the provider takes";
            self.losses.declare(Field::ActionId, Class::Normalized, why, Some(&event.id), Some(action));
        }
        let proposed =
            view.proposal(action, |p, ext| (p.name.to_string(), p.args.clone().into_owned(), Beside::of(ext)))?;
        let Some((name, args, beside)) = proposed else {
            let why = "the log tells of the place of the call, and of nothing else of it";
            self.losses.critical(Field::ActionArgs, Class::Omitted, why, Some(&event.id), Some(action));
            return Ok(());
        };
        let args = match view.content.json(&args).map_err(ExportError::Read)? {
            Ok(args) => args,
            Err(_) => {
                let why = "the arguments are not at hand";
                self.losses.critical(Field::ActionArgs, Class::Omitted, why, Some(&event.id), Some(action));
                Raw::of("{}").into_owned()
            }
        };
        let item = items::call(&beside, &name, &id, args.borrowed());
        let mark = Mark { call: Some(view.call_mark(action)), ..Mark::default() };
        self.ids.insert(id.clone());
        self.calls.insert(action.to_owned(), Call { id, name, args, beside });
        self.line("response_item", &item, &mark)
    }

    /// What the model was told of a call.
    fn told<R: Read + Seek>(
        &mut self,
        view: &mut View<'_, R>,
        step: usize,
        at: usize,
        action: &str,
        orphan: bool,
    ) -> Result<(), ExportError> {
        let entry = view.entry(step)?;
        let Some(call) = self.calls.get(action).cloned().filter(|_| !orphan) else {
            let why = "the client drops a result without its call";
            self.losses.declare(Field::ResultOrphan, Class::Omitted, why, Some(&view.steps[step].event), Some(action));
            return Ok(());
        };
        let (content, losses) = (&mut view.content, &mut *self.losses);
        let told = message(&entry, |event, _, parts| {
            let Some(Part::Result { parts, is_error, r#final, .. }) = parts.get(at) else {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the part is no result"));
            };
            if *is_error == Some(true) {
                let why = "the provider has no mark for an error: the model sees its words only";
                losses.declare(Field::ResultError, Class::Degraded, why, Some(&event.id), Some(action));
            }
            let time = event.time.as_ref().map(|t| t.as_str().to_owned());
            Ok((items::told(content, parts, &event.id, losses)?, *r#final, time, event.id.to_string()))
        });
        let (output, last, time, event) = told.and_then(|told| told).map_err(ExportError::Read)?;
        self.clock(time.as_deref(), &event);
        let end = view.end_mark(action);
        self.screen_of_call(&call, end, &output)?;
        let item = items::output(&call.beside, &call.id, output);
        self.line("response_item", &item, &Mark { end: Some(end), background: !last, ..Mark::default() })
    }

    /// The note that stands where a result would be.
    fn unresolved<R: Read + Seek>(&mut self, view: &View<'_, R>, action: &str) -> Result<(), ExportError> {
        let Some(call) = self.calls.get(action).cloned() else { return Ok(()) };
        let text = note(view.state.action(action), view.fate(action));
        let end = Some(view.end_mark(action)).filter(|end| *end != EndMark::Open);
        let item = items::output(&call.beside, &call.id, Raw::string(&text));
        self.line("response_item", &item, &Mark { synthesized: Some(Synthesized::NoResult), end, ..Mark::default() })
    }

    /// What the screen shows of a call: it is a tool of none of the client's own kinds.
    fn screen_of_call(&mut self, call: &Call, end: EndMark, output: &Raw<'_>) -> Result<(), ExportError> {
        let success = match end {
            EndMark::Ended { outcome, .. } => Some(outcome == palog::events::Outcome::Succeeded),
            EndMark::DeniedByUser | EndMark::DeniedByPolicy => Some(false),
            EndMark::Open => None,
        };
        let Some(success) = success else { return Ok(()) };
        let shown: Vec<Json> = output.text().iter().map(|text| json!({"type": "inputText", "text": text})).collect();
        let status = if success { "completed" } else { "failed" };
        let item = json!({
            "type": "DynamicToolCall", "id": call.id, "tool": call.name, "arguments": call.args,
            "status": status, "content_items": shown, "success": success,
        });
        self.show(item, &Mark { synthesized: Some(Synthesized::Screen), ..Mark::default() })
    }

    /// From here on the model sees less.
    fn compacted<R: Read + Seek>(&mut self, view: &mut View<'_, R>, step: usize) -> Result<(), ExportError> {
        let entry = view.entry(step)?;
        let event = entry.event().map_err(|e| ExportError::Read(e.into()))?;
        let data = event.data().map_err(|e| ExportError::Read(e.into()))?;
        let Data::ContextCompacted(compaction) = &data else { return Ok(()) };
        self.clock(event.time.as_ref().map(palog::envelope::Time::as_str), &event.id);
        let Some(window) = &compaction.window else {
            let why = "the client cannot leave out the content of single results";
            self.losses.declare(Field::CompactionPruned, Class::Omitted, why, Some(&event.id), None);
            return Ok(());
        };
        let foreign = |parts: &[Part<'_>]| {
            parts.iter().any(|part| matches!(part, Part::Opaque(opaque) if &*opaque.provider != "openai"))
        };
        let opaque = |item: &WindowItem<'_>| match item {
            WindowItem::Message { message } => foreign(&message.parts),
            WindowItem::Event { parts, .. } => parts.as_deref().is_some_and(foreign),
        };
        if window.iter().any(opaque) {
            let why = "another provider's summary: the model is given the whole history in its place";
            self.losses.declare(Field::CompactionOpaque, Class::Opaque, why, Some(&event.id), None);
            return Ok(());
        }
        let mut history = Vec::new();
        for item in window {
            match item {
                WindowItem::Message { message }
                    if message.parts.iter().all(|part| view.is_reminder(message.role, part)) =>
                {
                    let why = "it is what the first client told its model of itself; this client tells its own";
                    self.losses.declare(Field::MessageReminder, Class::Omitted, why, Some(&event.id), None);
                }
                WindowItem::Message { message } => self.window_message(view, message, &event.id, &mut history)?,
                WindowItem::Event { event: named, parts } => {
                    let Some(at) = view.step_of(named) else {
                        let why = "the window names an event that is on no branch that is written";
                        self.losses.declare(Field::CompactionWindow, Class::Omitted, why, Some(&event.id), None);
                        continue;
                    };
                    let entry = view.entry(at)?;
                    let own = message(&entry, |event, message, own| {
                        let reminder = message.purpose.as_deref() == Some("reminder");
                        let parts = parts.as_deref().unwrap_or(own);
                        let parts: Vec<Raw<'static>> = parts.iter().map(Raw::of).collect();
                        (role_of(message.role, event.actor.kind), reminder, parts)
                    });
                    let (role, reminder, parts) = own.map_err(ExportError::Read)?;
                    if reminder {
                        let why = "it is what the first client told its model of itself; this client tells its own";
                        self.losses.declare(Field::MessageReminder, Class::Omitted, why, Some(&event.id), None);
                        continue;
                    }
                    let parts = parts.iter().map(|part| serde_json::from_str(part.get())).collect::<Result<_, _>>();
                    let parts: Vec<Part<'_>> = parts.map_err(|e| ExportError::Read(e.into()))?;
                    self.window_message(view, &WindowMessage { role, parts }, named, &mut history)?;
                    if at > step {
                        self.shown.insert(at);
                    }
                }
            }
        }
        let compacted = json!({"message": "", "replacement_history": history});
        self.line("compacted", &Raw::of(&compacted), &Mark::default())
    }

    /// The items of one message of a window.
    fn window_message<R: Read + Seek>(
        &mut self,
        view: &mut View<'_, R>,
        message: &WindowMessage<'_>,
        event: &str,
        history: &mut Vec<Raw<'static>>,
    ) -> Result<(), ExportError> {
        let mut blocks = Vec::new();
        for part in &message.parts {
            let item = match part {
                Part::Action { action } => {
                    let call = self.calls.get(action.as_str());
                    call.map(|call| items::call(&call.beside, &call.name, &call.id, call.args.borrowed()))
                }
                Part::Result { action, parts, .. } => match self.calls.get(action.as_str()).cloned() {
                    Some(call) => {
                        let told = items::told(&mut view.content, parts, event, self.losses);
                        Some(items::output(&call.beside, &call.id, told.map_err(ExportError::Read)?))
                    }
                    None => None,
                },
                part if message.role == Role::Assistant => {
                    let spoken = items::spoken(&mut view.content, part, event, self.losses);
                    match spoken.map_err(ExportError::Read)? {
                        Spoken::Item(item) => Some(item),
                        Spoken::Block(block) => {
                            let content = vec![block];
                            Some(Raw::of(&Item::Message { role: "assistant", content, phase: None }))
                        }
                        Spoken::Thought(_) | Spoken::Nothing => None,
                    }
                }
                Part::Opaque(opaque) if items::is_item(opaque) => {
                    view.content.json(&opaque.value).map_err(ExportError::Read)?.ok()
                }
                part => {
                    let block = items::block(&mut view.content, message.role, part, event, self.losses);
                    blocks.extend(block.map_err(ExportError::Read)?);
                    None
                }
            };
            history.extend(item);
        }
        if !blocks.is_empty() {
            let role = role_of(message.role, ActorKind::Harness);
            history.push(Raw::of(&Item::Message { role: word(role), content: blocks, phase: None }));
        }
        Ok(())
    }

    /// The end of a turn.
    fn ended<R: Read + Seek>(&mut self, view: &View<'_, R>, end: usize) -> Result<(), ExportError> {
        let end = &view.ends[end];
        match end.how {
            TurnEnd::Complete => self.complete(None),
            TurnEnd::Interrupted => {
                let Some(turn) = self.turn.take() else { return Ok(()) };
                let event =
                    json!({"type": "turn_aborted", "turn_id": turn, "root_turn_id": turn, "reason": "interrupted"});
                self.line("event_msg", &Raw::of(&event), &Mark::default())
            }
            _ => self.complete(Some(end.reason.as_deref().unwrap_or("the turn broke off"))),
        }
    }

    /// Goes on to the time of an event.
    fn clock(&mut self, time: Option<&str>, event: &str) {
        match time {
            Some(time) => time.clone_into(&mut self.time),
            None => {
                let why = "a record has a time; it is that of the record before";
                self.losses.declare(Field::Time, Class::Synthesized, why, Some(event), None);
            }
        }
    }

    fn uuid(&self, what: &str, number: u64) -> String {
        name_uuid(&[FORMAT.name, &self.destination.session, what, &number.to_string()])
    }

    /// Shows something on the screen.
    fn show(&mut self, item: Json, mark: &Mark) -> Result<(), ExportError> {
        let at = self.time.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_millisecond);
        let event = json!({
            "type": "item_completed", "thread_id": self.destination.session, "turn_id": self.turn, "item": item,
            "started_at_ms": at, "completed_at_ms": at,
        });
        self.line("event_msg", &Raw::of(&event), mark)
    }

    fn line(&mut self, r#type: &str, payload: &Raw<'_>, mark: &Mark) -> Result<(), ExportError> {
        #[derive(serde::Serialize)]
        struct Line<'l> {
            timestamp: &'l str,
            ordinal: u64,
            r#type: &'l str,
            payload: &'l Raw<'l>,
            #[serde(skip_serializing_if = "Mark::is_empty")]
            palog: &'l Mark,
        }
        let line = Line { timestamp: &self.time, ordinal: self.ordinal, r#type, payload, palog: mark };
        self.ordinal += 1;
        serde_json::to_writer(&mut *self.out, &line).map_err(|e| ExportError::Write(e.into()))?;
        self.out.write_all(b"\n").map_err(ExportError::Write)
    }
}

/// The role of a message in the provider's API. What a person typed is on the user's side, wherever the first client put it.
fn role_of(role: Role, actor: ActorKind) -> Role {
    match role {
        Role::Assistant => Role::Assistant,
        Role::Developer | Role::System if actor != ActorKind::User => Role::Developer,
        _ => Role::User,
    }
}

fn word(role: Role) -> &'static str {
    match role {
        Role::Assistant => "assistant",
        Role::Developer | Role::System => "developer",
        _ => "user",
    }
}

/// A part of a message as the screen has it.
fn on_screen(block: &Raw<'_>) -> Option<Json> {
    #[derive(serde::Deserialize)]
    #[serde(bound(deserialize = "'de: 'a"))]
    struct Block<'a> {
        text: Option<Raw<'a>>,
        image_url: Option<Raw<'a>>,
    }
    let block: Block<'_> = serde_json::from_str(block.get()).ok()?;
    match (block.text, block.image_url) {
        (Some(text), _) => Some(json!({"type": "text", "text": text, "text_elements": []})),
        (None, Some(url)) => Some(json!({"type": "image", "image_url": url})),
        (None, None) => None,
    }
}
