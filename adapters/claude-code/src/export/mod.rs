//! Writes a log as a transcript of the current client (`spec/sources/claude-code.md`, "Export").
//!
//! One block a record, in one chain; the records of one response have one message id. What the log does not say is not
//! written, but for what a record must have; that is declared.

mod parts;
mod record;

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Read, Seek, Write};

use palog::envelope::{ActorKind, Event};
use palog::events::{CompactionTrigger, ContextCompacted, Data, MessageAdded, Part, Role, TurnEnd, WindowItem};
use palog::json::Raw;
use palog_adapter::export::{
    Class, Cue, Destination, EndMark, ExportError, Field, Losses, Mark, Moved, Synthesized, View, call_name, message,
    name_uuid, note,
};
use serde_json::json;

use crate::FORMAT;
use record::{Block, Line, Message, Usage};

/// What the client itself writes where a person stopped a turn.
const INTERRUPTED: &str = "[Request interrupted by user]";
/// How much of a prompt is written for the client's list of sessions, in characters.
const LISTED: usize = 200;
/// What stands where a prompt was of which nothing can be written.
const UNREADABLE: &str =
    "[This is a note of the program that moved this session. A message stood here that cannot be read.]";
/// The time of what has none, and comes before everything that has one.
const NO_TIME: &str = "1970-01-01T00:00:00.000Z";

/// The place of a transcript below the client's directory.
#[must_use]
pub fn place(destination: &Destination) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let slug: String = destination.directory.chars().map(plain).collect();
    format!("projects/{slug}/{}.jsonl", destination.session)
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
        branch: view.state.config.branch.clone(),
        time: view.began.clone().unwrap_or_else(|| NO_TIME.to_owned()),
        mark: Some(Moved {
            log: view.state.log.clone().unwrap_or_default(),
            session: view.state.session.clone().unwrap_or_default(),
            agent: view.state.agent.as_ref().map(|a| a.name.clone()).unwrap_or_default(),
        }),
        destination,
        out,
        losses,
        last: None,
        number: 0,
        prompt: String::new(),
        turn: false,
        prompted: None,
        calls: BTreeMap::new(),
        ids: HashSet::new(),
        written: BTreeMap::new(),
        declared: HashSet::new(),
    };
    writer.about(view);
    for cue in &cues {
        writer.write(view, cue)?;
    }
    writer.close(view)
}

struct Writer<'w> {
    destination: &'w Destination,
    out: &'w mut dyn Write,
    losses: &'w mut Losses,
    branch: Option<String>,
    time: String,
    /// Where the session comes from, until a record says so.
    mark: Option<Moved>,
    last: Option<String>,
    number: u64,
    /// Id of the prompt that the turn began with.
    prompt: String,
    /// A turn is open.
    turn: bool,
    /// What the user said last.
    prompted: Option<String>,
    /// The id and the record of each call.
    calls: BTreeMap<String, (String, String)>,
    /// The ids of all calls.
    ids: HashSet<String>,
    /// The records of each step.
    written: BTreeMap<usize, Vec<String>>,
    /// Responses whose losses were declared.
    declared: HashSet<usize>,
}

/// What a record of the user's side is.
#[derive(Clone, Copy, Default)]
struct Kind {
    meta: bool,
    summary: bool,
}

impl Writer<'_> {
    /// Declares what holds for the session as a whole.
    fn about<R: Read + Seek>(&mut self, view: &View<'_, R>) {
        let config = &view.state.config;
        let why = "the client's version is that of the client which goes on";
        self.losses.count(Field::ConfigOther, Class::Omitted, why, u64::from(config.client_version.is_some()));
    }

    fn write<R: Read + Seek>(&mut self, view: &mut View<'_, R>, cue: &Cue) -> Result<(), ExportError> {
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

    /// A message of the user's side.
    fn said<R: Read + Seek>(&mut self, view: &mut View<'_, R>, step: usize) -> Result<(), ExportError> {
        let entry = view.entry(step)?;
        let content = &mut view.content;
        let losses = &mut *self.losses;
        let said = message(&entry, |event, message, parts| {
            let purpose = message.purpose.as_deref();
            if purpose == Some("reminder") && event.actor.kind == ActorKind::Harness {
                let why = "it is what the first client told its model of itself; this client tells its own";
                losses.declare(Field::MessageReminder, Class::Omitted, why, Some(&event.id), None);
                return Ok(None);
            }
            let mut blocks = Vec::new();
            for part in parts {
                blocks.extend(parts::block(content, part, &event.id, losses)?);
            }
            Ok::<_, io::Error>(Some(Said::of(event, message, blocks, losses)))
        });
        let Some(said) = said.and_then(|said| said).map_err(ExportError::Read)? else { return Ok(()) };
        self.clock(said.time.as_deref(), &said.event);
        let mut said = said;
        if said.content.get() == "[]" {
            if !said.begins {
                return Ok(());
            }
            let why = "a note stands where the prompt would be, of which nothing can be written";
            self.losses.declare(Field::PartText, Class::Synthesized, why, Some(&said.event), None);
            said.content = Raw::string(UNREADABLE);
        }
        if said.begins {
            self.begin();
            self.prompted = last_words(&said.content).or(self.prompted.take());
        }
        self.turn &= said.mark.purpose.as_deref() != Some("interruption");
        let line = Message::User { role: "user", content: said.content };
        self.record(step, "user", Some(line), said.mark, said.kind)
    }

    /// A part that stood beside results.
    fn beside<R: Read + Seek>(&mut self, view: &mut View<'_, R>, step: usize, at: usize) -> Result<(), ExportError> {
        let entry = view.entry(step)?;
        let (content, losses) = (&mut view.content, &mut *self.losses);
        let block = message(&entry, |event, _, parts| parts::block(content, &parts[at], &event.id, losses));
        let Some(block) = block.and_then(|block| block).map_err(ExportError::Read)? else { return Ok(()) };
        let line = Message::User { role: "user", content: Raw::of(&[block]) };
        let mark = Mark { purpose: Some("beside".into()), ..Mark::default() };
        self.record(step, "user", Some(line), mark, Kind { meta: true, summary: false })
    }

    /// A part of what the model said.
    fn spoken<R: Read + Seek>(&mut self, view: &mut View<'_, R>, step: usize, at: usize) -> Result<(), ExportError> {
        let entry = view.entry(step)?;
        let (content, losses) = (&mut view.content, &mut *self.losses);
        let block = message(&entry, |event, message, parts| {
            let time = event.time.as_ref().map(|t| t.as_str().to_owned());
            let purpose = message.purpose.as_ref().map(ToString::to_string);
            let actor = Some(event.actor.kind).filter(|actor| *actor != ActorKind::Model);
            let block = parts::block(content, &parts[at], &event.id, losses)?;
            Ok::<_, io::Error>((block, time, Mark { purpose, actor, ..Mark::default() }, event.id.to_string()))
        });
        let (block, time, mark, event) = block.and_then(|block| block).map_err(ExportError::Read)?;
        self.clock(time.as_deref(), &event);
        let Some(block) = block else { return Ok(()) };
        self.answer(view, step, block, mark)
    }

    /// A call.
    fn called<R: Read + Seek>(&mut self, view: &mut View<'_, R>, step: usize, action: &str) -> Result<(), ExportError> {
        let entry = view.entry(step)?;
        let event = entry.event().map_err(|e| ExportError::Read(e.into()))?;
        self.clock(event.time.as_ref().map(palog::envelope::Time::as_str), &event.id);
        let (id, renamed) = self.name(action);
        if renamed {
            let why = "an id stands for one call only, and has letters that the provider takes";
            self.losses.declare(Field::ActionId, Class::Normalized, why, Some(&event.id), Some(action));
        }
        let proposed = view.proposal(action, |p, ext| (p.name.to_string(), p.args.clone().into_owned(), form(ext)))?;
        let Some((name, args, form)) = proposed else {
            let why = "the log tells of the place of the call, and of nothing else of it";
            self.losses.critical(Field::ActionArgs, Class::Omitted, why, Some(&event.id), Some(action));
            return Ok(());
        };
        let call = view.call_mark(action);
        let input = match view.content.json(&args).map_err(ExportError::Read)? {
            Ok(input) if input.get().starts_with('{') => input,
            Ok(input) => {
                let why = "the provider takes an object; the arguments are its member `input`";
                self.losses.declare(Field::ActionArgs, Class::Normalized, why, Some(&event.id), Some(action));
                Raw::of(&BTreeMap::from([("input", input)]))
            }
            Err(_) => {
                let why = "the arguments are not at hand";
                self.losses.critical(Field::ActionArgs, Class::Omitted, why, Some(&event.id), Some(action));
                Raw::of(&BTreeMap::<&str, &str>::new())
            }
        };
        if form {
            let why = "the provider has one kind of call";
            self.losses.declare(Field::ActionForm, Class::Degraded, why, Some(&event.id), Some(action));
        }
        let block = Raw::of(&Block::ToolUse { id: &id, name: &name, input });
        self.answer(view, step, block, Mark { call: Some(call), ..Mark::default() })?;
        self.ids.insert(id.clone());
        self.calls.insert(action.to_owned(), (id, self.last.clone().unwrap_or_default()));
        Ok(())
    }

    /// The id of a call in this transcript.
    fn name(&self, action: &str) -> (String, bool) {
        let vendors = palog::project::call_id(action);
        let (id, renamed) = call_name(vendors);
        if vendors != action || self.ids.contains(&id) {
            return (call_name(&format!("{action}#")).0, true);
        }
        (id, renamed)
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
        let Some((id, call)) = self.calls.get(action).cloned().filter(|_| !orphan) else {
            let why = "the provider refuses a result without its call";
            self.losses.declare(Field::ResultOrphan, Class::Omitted, why, Some(&view.steps[step].event), Some(action));
            return Ok(());
        };
        let (content, losses) = (&mut view.content, &mut *self.losses);
        let told = message(&entry, |event, _, parts| {
            let Some(Part::Result { parts, is_error, r#final, .. }) = parts.get(at) else {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the part is no result"));
            };
            let time = event.time.as_ref().map(|t| t.as_str().to_owned());
            Ok((parts::told(content, parts, &event.id, losses)?, *is_error, *r#final, time, event.id.to_string()))
        });
        let (content, is_error, last, time, event) = told.and_then(|told| told).map_err(ExportError::Read)?;
        self.clock(time.as_deref(), &event);
        let block = Raw::of(&Block::ToolResult { tool_use_id: &id, content, is_error });
        let mark = Mark { end: Some(view.end_mark(action)), background: !last, ..Mark::default() };
        self.result(step, block, &call, mark)
    }

    /// The note that stands where a result would be.
    fn unresolved<R: Read + Seek>(&mut self, view: &View<'_, R>, action: &str) -> Result<(), ExportError> {
        let Some((id, call)) = self.calls.get(action).cloned() else { return Ok(()) };
        if view.state.action(action).is_some_and(|known| known.inherited && !known.is_settled()) {
            let why = "that the call was made by the parent of the session cannot be said: it is taken for its own";
            self.losses.declare(Field::ActionState, Class::Degraded, why, None, Some(action));
            self.losses.declare(Field::Verdict, Class::Degraded, why, None, Some(action));
        }
        let text = note(view.state.action(action), view.fate(action));
        let block = Block::ToolResult { tool_use_id: &id, content: Raw::string(&text), is_error: Some(true) };
        let end = Some(view.end_mark(action)).filter(|end| *end != EndMark::Open);
        let mark = Mark { synthesized: Some(Synthesized::NoResult), end, ..Mark::default() };
        self.result(usize::MAX, Raw::of(&block), &call, mark)
    }

    fn result(&mut self, step: usize, block: Raw<'_>, call: &str, mark: Mark) -> Result<(), ExportError> {
        let message = Message::User { role: "user", content: Raw::of(&[block]) };
        let line = Line { message: Some(message), source_tool_assistant_uuid: Some(call), mark, ..Line::default() };
        self.put(step, "user", line)
    }

    /// A record with one block of a response.
    fn answer<R: Read + Seek>(
        &mut self,
        view: &View<'_, R>,
        step: usize,
        block: Raw<'_>,
        mark: Mark,
    ) -> Result<(), ExportError> {
        let at = view.steps[step].response;
        let response = at.and_then(|at| view.responses.get(at)).cloned().unwrap_or_default();
        let first = at.is_some_and(|at| self.declared.insert(at));
        let made = format!("msg_{}", at.unwrap_or(step));
        let id = response.id.clone().unwrap_or_else(|| name_uuid(&[&self.destination.session, &made]));
        let model = response.model.clone().or_else(|| view.state.config.model.clone());
        let foreign = view.state.vendor.as_deref() != Some(FORMAT.name);
        let usage = response.usage.as_ref().map(|usage| {
            let (read, write) = (usage.cache_read.unwrap_or(0), usage.cache_write.unwrap_or(0));
            let input = usage.input.unwrap_or(0);
            Usage {
                input_tokens: if foreign { input.saturating_sub(read + write) } else { input },
                cache_creation_input_tokens: write,
                cache_read_input_tokens: read,
                output_tokens: usage.output.unwrap_or(0),
            }
        });
        // A call that lies aside is none that a reader should look for.
        let aside = response.stop.as_deref() == Some("tool_use") && !response.calls;
        let stop = response.stop.as_deref().filter(|_| !aside);
        let made_stop = match stop {
            Some(_) => None,
            None if response.calls => Some("tool_use"),
            None if response.completes && !aside => Some("end_turn"),
            None => None,
        };
        if first {
            let event = Some(view.steps[step].event.as_str());
            if response.id.is_none() {
                let why = "a response has an id; no record names one";
                self.losses.declare(Field::ResponseId, Class::Synthesized, why, event, None);
            }
            if response.model.is_none() {
                let why = "a response names its model; it is the one of the session, or none";
                self.losses.declare(Field::ResponseModel, Class::Synthesized, why, event, None);
            }
            if aside {
                let why = "the calls that it stopped for lie on a branch that was left";
                self.losses.declare(Field::ResponseStop, Class::Omitted, why, event, None);
            }
            if made_stop.is_some() {
                let why = "why the response stopped is concluded from its calls and from the end of its turn";
                self.losses.declare(Field::ResponseStop, Class::Synthesized, why, event, None);
            }
            if foreign && usage.is_some() {
                let why = "tokens that came from a cache are counted beside the input, and not in it";
                self.losses.declare(Field::ResponseUsage, Class::Normalized, why, event, None);
            }
            if response.usage.as_ref().is_some_and(|usage| usage.reasoning.is_some()) {
                let why = "tokens that were spent on reasoning are not counted apart";
                self.losses.declare(Field::ResponseUsage, Class::Degraded, why, event, None);
            }
        }
        let message = Message::Assistant {
            id: &id,
            r#type: "message",
            role: "assistant",
            model: model.as_deref().unwrap_or_default(),
            content: [block],
            stop_reason: stop.or(made_stop),
            stop_sequence: None,
            usage,
        };
        self.record(step, "assistant", Some(message), mark, Kind::default())
    }

    /// From here on the model sees less.
    fn compacted<R: Read + Seek>(&mut self, view: &mut View<'_, R>, step: usize) -> Result<(), ExportError> {
        let entry = view.entry(step)?;
        let event = entry.event().map_err(|e| ExportError::Read(e.into()))?;
        let data = event.data().map_err(|e| ExportError::Read(e.into()))?;
        let Data::ContextCompacted(compaction) = &data else { return Ok(()) };
        self.clock(event.time.as_ref().map(palog::envelope::Time::as_str), &event.id);
        let trigger = match compaction.trigger {
            Some(CompactionTrigger::Manual) => Some("manual"),
            Some(CompactionTrigger::Auto) => Some("auto"),
            _ => None,
        };
        let Some(window) = &compaction.window else { return self.pruned(compaction, trigger, &event.id) };
        let Some(shape) = self.shape(view, window, step, &event.id)? else { return Ok(()) };
        let before = self.last.take();
        let boundary = self.uuid(self.number);
        let anchor = self.uuid(self.number + 1);
        let mut meta = json!({});
        let tokens = [("preTokens", compaction.tokens_before), ("postTokens", compaction.tokens_after)];
        trigger.into_iter().for_each(|trigger| meta["trigger"] = trigger.into());
        for (name, tokens) in tokens {
            tokens.into_iter().for_each(|tokens| meta[name] = tokens.into());
        }
        if let (Some(head), Some(tail)) = (shape.preserved.first(), shape.preserved.last()) {
            meta["preservedSegment"] = json!({"headUuid": head, "anchorUuid": anchor, "tailUuid": tail});
            meta["preservedMessages"] =
                json!({"anchorUuid": anchor, "uuids": shape.preserved, "allUuids": shape.preserved});
        }
        let line = Line {
            logical_parent_uuid: before.as_deref(),
            subtype: Some("compact_boundary"),
            content: Some("Conversation compacted"),
            compact_metadata: Some(Raw::of(&meta)),
            ..Line::default()
        };
        self.put(step, "system", line)?;
        debug_assert_eq!(self.last.as_deref(), Some(boundary.as_str()));
        for content in shape.copies {
            let mark = Mark { synthesized: Some(Synthesized::Window), ..Mark::default() };
            let message = Message::User { role: "user", content };
            self.record(usize::MAX, "user", Some(message), mark, Kind { meta: false, summary: true })?;
        }
        Ok(())
    }

    fn pruned(
        &mut self,
        compaction: &ContextCompacted<'_>,
        trigger: Option<&str>,
        event: &str,
    ) -> Result<(), ExportError> {
        let why = "whether the client leaves the content of these results out was not seen";
        self.losses.declare(Field::CompactionPruned, Class::Degraded, why, Some(event), None);
        let pruned = compaction.pruned.iter().flatten();
        let ids: Vec<&str> = pruned.filter_map(|a| self.calls.get(a.as_str()).map(|(id, _)| id.as_str())).collect();
        let mut meta = json!({"compactedToolIds": ids});
        trigger.into_iter().for_each(|trigger| meta["trigger"] = trigger.into());
        compaction.tokens_before.into_iter().for_each(|tokens| meta["preTokens"] = tokens.into());
        let meta = Raw::of(&meta);
        let line =
            Line { subtype: Some("microcompact_boundary"), microcompact_metadata: Some(meta), ..Line::default() };
        self.put(usize::MAX, "system", line)
    }

    /// How a window can be written; `None` and a loss where only its provider can read it.
    fn shape<R: Read + Seek>(
        &mut self,
        view: &mut View<'_, R>,
        window: &[WindowItem<'_>],
        step: usize,
        event: &str,
    ) -> Result<Option<Shape>, ExportError> {
        let opaque = |item: &WindowItem<'_>| match item {
            WindowItem::Message { message } => message.parts.iter().any(is_foreign),
            WindowItem::Event { parts, .. } => parts.iter().flatten().any(is_foreign),
        };
        if window.iter().any(opaque) {
            let why = "another provider's summary: the model is given the whole history in its place";
            self.losses.declare(Field::CompactionOpaque, Class::Opaque, why, Some(event), None);
            return Ok(None);
        }
        // The client puts what it preserved behind the first message that follows the boundary.
        let at = |item: &WindowItem<'_>| match item {
            WindowItem::Event { event, .. } => view.step_of(event),
            WindowItem::Message { .. } => None,
        };
        let places: Vec<Option<usize>> = window.iter().map(at).collect();
        let is_earlier = |place: &Option<usize>| place.is_some_and(|place| place < step);
        let anchored = !window.is_empty() && !is_earlier(&places[0]);
        let behind = places.iter().skip(1).all(is_earlier);
        let mut shape = Shape::default();
        for (item, place) in window.iter().zip(&places) {
            match (item, place) {
                // It is written where it stands.
                (WindowItem::Event { .. }, Some(place)) if *place > step => {}
                (WindowItem::Event { parts: None, .. }, Some(place)) if anchored && behind => {
                    shape.preserved.extend(self.written.get(place).into_iter().flatten().cloned());
                }
                (WindowItem::Event { parts, .. }, Some(place)) => {
                    let entry = view.entry(*place)?;
                    let (content, losses) = (&mut view.content, &mut *self.losses);
                    let copy = message(&entry, |_, message, own| {
                        let parts = parts.as_deref().unwrap_or(own);
                        copy(content, message.role, message.purpose.as_deref(), parts, event, losses)
                    });
                    shape.copies.extend(copy.and_then(|copy| copy).map_err(ExportError::Read)?);
                }
                (WindowItem::Event { .. }, None) => {
                    let why = "the window names an event that is on no branch that is written";
                    self.losses.declare(Field::CompactionWindow, Class::Omitted, why, Some(event), None);
                }
                (WindowItem::Message { message }, _)
                    if message.parts.iter().all(|part| view.is_reminder(message.role, part)) =>
                {
                    let why = "it is what the first client told its model of itself; this client tells its own";
                    self.losses.declare(Field::MessageReminder, Class::Omitted, why, Some(event), None);
                }
                (WindowItem::Message { message }, _) => {
                    let (content, losses) = (&mut view.content, &mut *self.losses);
                    let copy = copy(content, message.role, None, &message.parts, event, losses);
                    shape.copies.extend(copy.map_err(ExportError::Read)?);
                }
            }
        }
        Ok(Some(shape))
    }

    /// The end of a turn.
    fn ended<R: Read + Seek>(&mut self, view: &View<'_, R>, end: usize) -> Result<(), ExportError> {
        let end = &view.ends[end];
        match end.how {
            TurnEnd::Complete => {
                let why = "the reason why the last response stopped says so";
                self.losses.declare(Field::TurnEnd, Class::Normalized, why, Some(&end.event), None);
            }
            TurnEnd::Interrupted if self.turn => {
                let why = "the client says by a message of its own that a turn was interrupted";
                self.losses.declare(Field::PartText, Class::Synthesized, why, Some(&end.event), None);
                let block = Raw::of(&Block::Text { text: Raw::string(INTERRUPTED) });
                let message = Message::User { role: "user", content: Raw::of(&[block]) };
                let mark = Mark { purpose: Some("interruption".into()), ..Mark::default() };
                self.record(usize::MAX, "user", Some(message), mark, Kind::default())?;
            }
            TurnEnd::Interrupted => {}
            _ => {
                let why = "that a turn broke off has no form of its own";
                self.losses.declare(Field::TurnEnd, Class::Omitted, why, Some(&end.event), None);
            }
        }
        self.turn = false;
        Ok(())
    }

    /// What the client lists a session by.
    fn close<R: Read + Seek>(&mut self, view: &View<'_, R>) -> Result<(), ExportError> {
        let session = &self.destination.session;
        if let Some(title) = &view.state.title {
            let line = json!({"type": "custom-title", "customTitle": title, "sessionId": session});
            writeln!(self.out, "{line}").map_err(ExportError::Write)?;
        }
        if let (Some(prompt), Some(leaf)) = (&self.prompted, &self.last) {
            let line = json!({"type": "last-prompt", "lastPrompt": prompt, "leafUuid": leaf, "sessionId": session});
            writeln!(self.out, "{line}").map_err(ExportError::Write)?;
        }
        Ok(())
    }

    fn begin(&mut self) {
        self.turn = true;
        self.prompt = name_uuid(&[&self.destination.session, "prompt", &self.number.to_string()]);
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

    fn uuid(&self, number: u64) -> String {
        name_uuid(&[FORMAT.name, &self.destination.session, &number.to_string()])
    }

    fn record(
        &mut self,
        step: usize,
        r#type: &str,
        message: Option<Message<'_>>,
        mark: Mark,
        kind: Kind,
    ) -> Result<(), ExportError> {
        let line = Line {
            message,
            is_meta: kind.meta,
            is_compact_summary: kind.summary,
            is_visible_in_transcript_only: kind.summary,
            mark,
            ..Line::default()
        };
        self.put(step, r#type, line)
    }

    /// Writes a record of the tree, behind the one before.
    fn put(&mut self, step: usize, r#type: &str, line: Line<'_>) -> Result<(), ExportError> {
        let uuid = self.uuid(self.number);
        self.number += 1;
        let of_turn = line.source_tool_assistant_uuid.is_some() || line.mark == Mark::default();
        let prompt = Some(self.prompt.as_str()).filter(|p| r#type == "user" && of_turn && !p.is_empty());
        let mut line = Line {
            parent_uuid: self.last.as_deref(),
            prompt_id: prompt,
            r#type,
            uuid: &uuid,
            timestamp: &self.time,
            cwd: &self.destination.directory,
            session_id: &self.destination.session,
            git_branch: self.branch.as_deref(),
            ..line
        };
        line.mark.moved = self.mark.take();
        serde_json::to_writer(&mut *self.out, &line).map_err(|e| ExportError::Write(e.into()))?;
        self.out.write_all(b"\n").map_err(ExportError::Write)?;
        if step != usize::MAX {
            self.written.entry(step).or_default().push(uuid.clone());
        }
        self.last = Some(uuid);
        Ok(())
    }
}

/// How a window is written.
#[derive(Default)]
struct Shape {
    /// The records that stay in sight.
    preserved: Vec<String>,
    /// What is written once more.
    copies: Vec<Raw<'static>>,
}

/// Whether nobody but another provider can read a part.
fn is_foreign(part: &Part<'_>) -> bool {
    match part {
        Part::Opaque(opaque) => &*opaque.provider != "anthropic",
        _ => false,
    }
}

/// A message of the user's side that is written once more.
fn copy(
    content: &mut palog::project::Content<'_>,
    role: Role,
    purpose: Option<&str>,
    parts: &[Part<'_>],
    event: &str,
    losses: &mut Losses,
) -> io::Result<Option<Raw<'static>>> {
    if purpose == Some("reminder") || matches!(role, Role::Developer | Role::System) {
        let why = "it is what the first client told its model of itself; this client tells its own";
        losses.declare(Field::MessageReminder, Class::Omitted, why, Some(event), None);
        return Ok(None);
    }
    let told = |part: &Part<'_>| matches!(part, Part::Action { .. } | Part::Result { .. });
    if role != Role::User || parts.iter().any(told) {
        let why = "the client keeps messages of the user's side only beside its summary";
        losses.declare(Field::CompactionWindow, Class::Degraded, why, Some(event), None);
        return Ok(None);
    }
    let mut blocks = Vec::new();
    for part in parts {
        blocks.extend(parts::block(content, part, event, losses)?);
    }
    Ok(Some(plain(blocks)).filter(|content| content.get() != "[]"))
}

/// Whether a call has members of its provider's that this one does not have.
fn form(ext: Option<&Raw<'_>>) -> bool {
    ext.is_some_and(|ext| ext.get().contains("\"com.openai\""))
}

/// The content of a message: its text where it is one, else its blocks.
fn plain(blocks: Vec<Raw<'static>>) -> Raw<'static> {
    #[derive(serde::Deserialize)]
    #[serde(bound(deserialize = "'de: 'a"))]
    struct OnlyText<'a> {
        r#type: &'a str,
        text: Raw<'a>,
    }
    if let [one] = blocks.as_slice()
        && let Ok(OnlyText { r#type: "text", text }) = serde_json::from_str(one.get())
    {
        return text.into_owned();
    }
    Raw::of(&blocks)
}

/// The last text of a content, without what may be long.
fn last_words(content: &Raw<'_>) -> Option<String> {
    #[derive(serde::Deserialize)]
    #[serde(bound(deserialize = "'de: 'a"))]
    struct Block<'a> {
        text: Option<Raw<'a>>,
    }
    let text = match content.text() {
        Some(text) => Some(text.into_owned()),
        None => {
            let blocks: Vec<Block<'_>> = serde_json::from_str(content.get()).unwrap_or_default();
            blocks.iter().rev().find_map(|block| Some(block.text.as_ref()?.text()?.into_owned()))
        }
    };
    text.map(|text| text.chars().take(LISTED).collect())
}

/// A message of the user's side, ready to be written.
struct Said {
    event: String,
    time: Option<String>,
    content: Raw<'static>,
    mark: Mark,
    kind: Kind,
    begins: bool,
}

impl Said {
    fn of(event: &Event<'_>, message: &MessageAdded<'_>, blocks: Vec<Raw<'static>>, losses: &mut Losses) -> Self {
        let purpose = message.purpose.as_deref();
        let is_prompt = matches!(purpose, None | Some("prompt")) && event.actor.kind == ActorKind::User;
        if message.role != Role::User {
            let why =
                "the provider has no such role between the messages: it is written on the user's side, as the client's";
            losses.declare(Field::MessageRole, Class::Normalized, why, Some(&event.id), None);
        }
        let summary = purpose == Some("summary");
        let mark = if is_prompt {
            Mark::default()
        } else {
            let purpose = Some(purpose.unwrap_or("prompt").to_owned());
            Mark { purpose, actor: Some(event.actor.kind), ..Mark::default() }
        };
        let content = if purpose == Some("interruption") { Raw::of(&blocks) } else { plain(blocks) };
        Said {
            event: event.id.to_string(),
            time: event.time.as_ref().map(|t| t.as_str().to_owned()),
            content,
            mark,
            kind: Kind { meta: !summary && event.actor.kind == ActorKind::Harness, summary },
            begins: matches!(purpose, None | Some("prompt" | "notification")),
        }
    }
}
