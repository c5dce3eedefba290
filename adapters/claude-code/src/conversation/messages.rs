//! Messages: what the user, the model and the client said.

use super::*;
use crate::members::LONGEST;

/// What a record of the user's side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Prompt,
    Notification,
    Command,
    CommandOutput,
    Summary,
    Interruption,
    Continuation,
    Reminder,
    Result,
}

const INTERRUPTIONS: [&str; 2] = ["[Request interrupted by user]", "[Request interrupted by user for tool use]"];
const CONTINUATION: &str = "Continue from where you left off.";
const NO_RESPONSE: &str = "No response requested.";
/// How many parts one message holds at most.
const PARTS: usize = 10_000;
const COMMANDS: [&str; 4] = ["<command-name>", "<command-message>", "<bash-input>", "<local-command-caveat>"];
const OUTPUTS: [&str; 4] = ["<local-command-stdout>", "<local-command-stderr>", "<bash-stdout>", "<bash-stderr>"];

/// The text of content that is one text.
fn only_text<'r>(content: &'r Content<'_>) -> Option<std::borrow::Cow<'r, str>> {
    match content {
        Content::Text(raw) => raw.text(),
        Content::Blocks(blocks) => match &blocks[..] {
            [one] if one.members.r#type == *"text" => one.members.text.as_ref()?.text(),
            _ => None,
        },
    }
}

fn said(record: &Record<'_>, content: &Content<'_>) -> Said {
    if let Content::Blocks(blocks) = content
        && blocks.iter().any(|b| b.members.r#type == *"tool_result")
    {
        return Said::Result;
    }
    if record.is_compact_summary {
        return Said::Summary;
    }
    if record.is_notification() {
        return Said::Notification;
    }
    let typed = record.prompt_source.is_some();
    let Some(text) = only_text(content).filter(|_| !typed) else {
        return if record.is_meta { Said::Reminder } else { Said::Prompt };
    };
    let text = text.trim_start();
    if matches!(content, Content::Blocks(_)) && INTERRUPTIONS.contains(&text) {
        return Said::Interruption;
    }
    if OUTPUTS.iter().any(|o| text.starts_with(o)) {
        return Said::CommandOutput;
    }
    if COMMANDS.iter().any(|c| text.starts_with(c)) {
        return Said::Command;
    }
    if record.is_meta {
        return if text == CONTINUATION { Said::Continuation } else { Said::Reminder };
    }
    Said::Prompt
}

/// Whether content is something that a person, or the client, can say: texts, pictures and documents. Of what a person is known
/// to have typed, a part is enough.
fn is_speech(content: &Content<'_>, typed: bool) -> bool {
    let Content::Blocks(blocks) = content else {
        return only_text(content).is_some_and(|text| typed || !text.is_empty());
    };
    let said = |block: &Block<'_>| match &*block.members.r#type {
        "text" => block.members.text.as_ref().is_some_and(|text| text.is_string() && text.get() != "\"\""),
        "image" | "document" => block.members.source.is_some(),
        _ => false,
    };
    let of_result = |block: &Block<'_>| block.members.tool_use_id.is_some();
    let known = if typed { blocks.iter().any(said) } else { !blocks.is_empty() && blocks.iter().all(said) };
    known && !blocks.iter().any(of_result)
}

/// What a record is by the mark of an exporter; `None` where it says nothing of it.
fn marked(mark: &Mark) -> Option<Said> {
    Some(match mark.purpose.as_deref()? {
        "prompt" => Said::Prompt,
        "notification" => Said::Notification,
        "command" => Said::Command,
        "command_output" => Said::CommandOutput,
        "summary" => Said::Summary,
        "interruption" => Said::Interruption,
        "continuation" => Said::Continuation,
        _ => Said::Reminder,
    })
}

/// The first text of a prompt; `None` where the record is something else.
pub(crate) fn prompt_text<'r>(record: &'r Record<'_>) -> Option<std::borrow::Cow<'r, str>> {
    let (_, content) = message(record).filter(|_| &*record.r#type == "user")?;
    if said(record, content) != Said::Prompt {
        return None;
    }
    match content {
        Content::Text(raw) => raw.text(),
        Content::Blocks(blocks) => blocks.iter().find_map(|block| block.members.text.as_ref()?.text()),
    }
}

/// The hash by which queued texts and messages are compared; content of several parts has none.
pub(crate) fn text_hash(content: &Content<'_>) -> Option<u64> {
    only_text(content).map(|text| crate::calls::prompt_hash(&text))
}

/// A message with one part list and nothing else said of it.
fn plain<'m>(role: Role, parts: Vec<Part<'m>>, purpose: Option<&'static str>) -> MessageAdded<'m> {
    MessageAdded { role, parts, response: None, partial: None, purpose: purpose.map(Str::from), in_context: None }
}

impl Conversation {
    /// Whether a record of the user's side is what it looks like. A result in another form has no words, has marks of a result,
    /// or belongs to the turn that is open.
    pub(super) fn is_readable(&self, record: &Record<'_>, content: &Content<'_>) -> bool {
        let said = said(record, content);
        if said == Said::Result || record.is_meta {
            return true;
        }
        let typed = record.prompt_source.is_some();
        let of_turn = said == Said::Prompt
            && !(typed || self.is_agent)
            && record.prompt_id.as_deref().is_some_and(|id| self.turn.as_deref() == Some(id));
        is_speech(content, typed) && !record.has_marks_of_result() && !of_turn
    }

    pub(super) fn user(&mut self, here: &mut Here<'_>, digest: u64) -> Written {
        let Some((_, content)) = message(here.record) else { return Ok(()) };
        if here.mark.synthesized == Some(Synthesized::NoResult) {
            return self.no_result(here, content, digest);
        }
        let said = marked(&here.mark).unwrap_or_else(|| said(here.record, content));
        let class = match said {
            Said::Prompt => Class::Prompt,
            Said::Result => Class::Result,
            Said::Notification
            | Said::Command
            | Said::CommandOutput
            | Said::Summary
            | Said::Interruption
            | Said::Continuation
            | Said::Reminder => Class::Client,
        };
        let parent = self.link(here, class, digest);
        if said == Said::Result {
            return self.results(here, content, parent);
        }
        let (purpose, actor) = match said {
            Said::Prompt if self.is_agent => ("prompt", ActorKind::Agent),
            Said::Prompt | Said::Result => ("prompt", ActorKind::User),
            Said::Notification => ("notification", ActorKind::Harness),
            Said::Command => ("command", ActorKind::Harness),
            Said::CommandOutput => ("command_output", ActorKind::Harness),
            Said::Summary => ("summary", ActorKind::Harness),
            Said::Interruption => ("interruption", ActorKind::Harness),
            Said::Continuation => ("continuation", ActorKind::Harness),
            Said::Reminder => ("reminder", ActorKind::Harness),
        };
        let purpose = here.mark.purpose.clone().map_or(Str::from(purpose), Str::from);
        let actor = here.mark.actor.unwrap_or(actor);
        let parts = self.parts(here, content)?;
        let added = MessageAdded { purpose: Some(purpose), ..plain(Role::User, parts, None) };
        let id = self.emit(here, actor, parent, added)?;
        if matches!(said, Said::Prompt | Said::Notification) {
            let turn = TurnStarted { turn: here.record.prompt_id.clone(), message: Some(id.hex().into()) };
            self.emit(here, actor, None, turn)?;
            self.turn = here.record.prompt_id.as_deref().map(str::to_owned);
            if said == Said::Notification {
                self.notification(here, content)?;
            }
            self.delivered(here, content, Operation::Dequeue, id)?;
        }
        match said {
            Said::Interruption => {
                let ended = TurnEnded { turn: None, how: TurnEnd::Interrupted, reason: None };
                self.emit(here, ActorKind::User, None, ended)?;
            }
            Said::Prompt => self.permission_mode(here, false)?,
            Said::Notification
            | Said::Command
            | Said::CommandOutput
            | Said::Summary
            | Said::Continuation
            | Said::Reminder
            | Said::Result => {}
        }
        Ok(())
    }

    /// Ends the queued input that a message holds.
    pub(super) fn delivered(
        &mut self,
        here: &mut Here<'_>,
        content: &Content<'_>,
        how: Operation,
        id: EventId,
    ) -> Written {
        let Some(input) = text_hash(content).and_then(|hash| self.queue.deliver(hash, how)) else { return Ok(()) };
        let ended =
            InputEnded { input: input.hex().into(), outcome: InputOutcome::Taken, message: Some(id.hex().into()) };
        self.emit(here, ActorKind::Harness, None, ended).map(drop)
    }

    /// A background task ended, by the client's mark.
    pub(super) fn notification(&mut self, here: &mut Here<'_>, content: &Content<'_>) -> Written {
        let Some(text) = only_text(content) else { return Ok(()) };
        let Some((call, status)) = tools::notified(&text) else { return Ok(()) };
        let (Some((outcome, applied)), Some((_, action))) = (tools::notification(status), self.calls.get_mut(call))
        else {
            return Ok(());
        };
        let ended = ActionEnded {
            action: action.into(),
            attempt: None,
            outcome,
            applied,
            output: None,
            receipt: None,
            error: None,
        };
        self.emit(here, ActorKind::Harness, None, ended).map(drop)
    }

    /// A note that stands where a result would be: the model is told the words, and of the call nothing is told but what the
    /// exporter knew.
    fn no_result(&mut self, here: &mut Here<'_>, content: &Content<'_>, digest: u64) -> Written {
        let Content::Blocks(blocks) = content else { return self.unread(here, "user", digest) };
        let parent = self.link(here, Class::Result, digest);
        let told = blocks.iter().filter_map(|block| block.members.content.as_ref());
        let parts = told.map(|text| Part::Text { text: Value::Inline(text.borrowed()) }).collect();
        self.emit(here, ActorKind::Importer, parent, plain(Role::Tool, parts, Some("no_result")))?;
        let call = blocks.iter().find_map(|block| block.members.tool_use_id.as_deref());
        match (here.mark.end, call.and_then(|call| self.calls.get_mut(call))) {
            (Some(end), Some((_, action))) => self.ended_by_mark(here, action, end),
            _ => Ok(()),
        }
    }

    pub(super) fn local_command(&mut self, here: &mut Here<'_>, digest: u64) -> Written {
        let parent = self.link(here, Class::Client, digest);
        let Some(content) = here.record.content.clone() else { return Ok(()) };
        let output = content.text().is_some_and(|t| OUTPUTS.iter().any(|o| t.trim_start().starts_with(o)));
        let purpose = if output { "command_output" } else { "command" };
        let added = plain(Role::User, vec![Part::Text { text: content.into() }], Some(purpose));
        self.emit(here, ActorKind::Harness, parent, added).map(drop)
    }

    pub(super) fn assistant(&mut self, here: &mut Here<'_>, digest: u64) -> Written {
        let Some((message, content)) = message(here.record) else { return Ok(()) };
        if here.record.is_api_error_message {
            return self.api_error(here, content, digest);
        }
        if message.model.as_deref() == Some("<synthetic>") {
            return self.synthetic(here, content, digest);
        }
        let response = response_of(here.record, message);
        let count = self.responses.len() as u32;
        let known = self.responses.get(&response).map(|r| r.number);
        let number = known.unwrap_or(count);
        if known.is_none() {
            self.calls.response(number);
            for input in self.queue.answered() {
                let ended = InputEnded { input: input.hex().into(), outcome: InputOutcome::Dropped, message: None };
                // Written behind the message: the first event of a record is what others name as parent (R-ENV-024).
                self.withdrawn.push(ended);
            }
        }
        let parent = self.link(here, Class::Response(number), digest);
        let (parts, calls) = self.model_parts(here, content, number)?;
        let added = MessageAdded {
            response: Some(response.clone().into()),
            purpose: here.mark.purpose.clone().map(Str::from),
            ..plain(Role::Assistant, parts, None)
        };
        let actor = here.mark.actor.unwrap_or(ActorKind::Model);
        self.model_message(here, actor, parent, added, calls)?;
        self.response(here, message, &response, number)?;
        for ended in std::mem::take(&mut self.withdrawn) {
            self.emit(here, ActorKind::Harness, None, ended)?;
        }
        Ok(())
    }

    /// The parts of a record of the model's side and the calls in it. A call that cannot be read stands among the parts alone.
    pub(super) fn model_parts<'d>(
        &mut self,
        here: &mut Here<'_>,
        content: &'d Content<'_>,
        number: u32,
    ) -> Result<(Vec<Part<'d>>, Vec<ActionProposed<'d>>), WriteError> {
        let mut calls = Vec::new();
        let Content::Blocks(blocks) = content else { return Ok((self.parts(here, content)?, calls)) };
        let mut parts = Vec::with_capacity(blocks.len());
        for (place, block) in blocks.iter().enumerate() {
            let m = &block.members;
            if m.r#type != *"tool_use" {
                parts.push(self.part(here, block)?);
                continue;
            }
            // A call without an id is known by where it stands.
            let id = m
                .id
                .clone()
                .unwrap_or_else(|| format!("{}.{place}", self.out.ids.event(here.native, here.ordinal).hex()).into());
            let kind = m.name.as_deref().and_then(tools::kind);
            let prompt = (kind == Some(palog::events::ActionKind::Spawn))
                .then(|| spawn_prompt(m.input.as_ref()))
                .map(|p| crate::calls::prompt_hash(&p.unwrap_or_default()));
            let action = self.calls.propose(&id, m.name.as_deref(), number, &self.out.place(here.span), prompt);
            if let Some((call, _)) = self.calls.get_mut(&id) {
                call.background = m.input.as_ref().is_some_and(in_background);
            }
            parts.push(Part::Action { action: action.clone().into() });
            let (Some(_), Some(name)) = (&m.id, &m.name) else {
                self.odd(here, "the id or the name of a call cannot be read");
                continue;
            };
            let marked = here.mark.call.clone().unwrap_or_default();
            let (args, digest) = match &m.input {
                Some(input) => (Value::Inline(input.borrowed()), args_digest(input)),
                None => (missing(), palog::blob::digest(b"")),
            };
            calls.push(ActionProposed {
                action: action.into(),
                name: name.clone(),
                args,
                args_digest: digest.into(),
                kind: marked.kind.or(kind),
                effect: marked.class.or(tools::effect(name)).map(|c| Effect {
                    class: Some(c),
                    idempotency_key: None,
                    target: None,
                }),
                compensates: None,
            });
        }
        Ok((parts, calls))
    }

    /// Writes a message of the model's side and the calls in it.
    fn model_message(
        &mut self,
        here: &mut Here<'_>,
        actor: ActorKind,
        mut parent: Option<String>,
        mut added: MessageAdded<'_>,
        calls: Vec<ActionProposed<'_>>,
    ) -> Written {
        // A response can be several messages, and calls in it cannot be moved out of a line that is too long.
        let mut parts = std::mem::take(&mut added.parts).into_iter();
        loop {
            let message = MessageAdded { parts: parts.by_ref().take(PARTS).collect(), ..added.clone() };
            self.emit(here, actor, parent.take(), message)?;
            if parts.len() == 0 {
                break;
            }
        }
        for call in calls {
            self.emit(here, ActorKind::Model, None, call)?;
        }
        Ok(())
    }

    /// Writes what a record of the model's side says of its response beside a message that cannot be read.
    pub(super) fn report(&mut self, here: &mut Here<'_>, message: &Message<'_>) -> Written {
        let response = response_of(here.record, message);
        let number = self.responses.get(&response).map_or(self.responses.len() as u32, |r| r.number);
        self.response(here, message, &response, number)
    }

    /// Writes what is known of a response if it is new or changed.
    fn response(&mut self, here: &mut Here<'_>, message: &Message<'_>, response: &str, number: u32) -> Written {
        let mut hash = DefaultHasher::new();
        message.usage.as_ref().map(Raw::get).hash(&mut hash);
        message.stop_reason.as_deref().hash(&mut hash);
        let facts = hash.finish();
        let place = self.out.place(here.span);
        let before = self.responses.insert(response.to_owned(), Response { number, written: facts });
        if self.superseded.0 != response {
            self.superseded = (response.to_owned(), Vec::new());
        }
        match before {
            Some(before) if before.written == facts => {
                self.superseded.1.push(place);
                return Ok(());
            }
            Some(_) => {
                for place in std::mem::take(&mut self.superseded.1) {
                    self.out.info(Code::UsageSuperseded, place);
                }
            }
            None => {}
        }
        self.superseded.1.push(place);
        let usage = message.usage.as_ref().and_then(|raw| {
            let usage: crate::record::Usage = serde_json::from_str(raw.get()).ok()?;
            Some(Usage {
                input: usage.input_tokens,
                output: usage.output_tokens,
                cache_read: usage.cache_read_input_tokens,
                cache_write: usage.cache_creation_input_tokens,
                reasoning: None,
            })
        });
        let data = ModelResponse {
            response: response.to_owned().into(),
            model: message.model.clone(),
            request: here.record.request_id.clone(),
            usage,
            cost: None,
            stop: message.stop_reason.clone(),
            error: None,
        };
        self.emit(here, ActorKind::Model, None, data).map(drop)
    }

    /// An error that the client shows in place of an answer; the model never sees it.
    fn api_error(&mut self, here: &mut Here<'_>, content: &Content<'_>, digest: u64) -> Written {
        let parent = self.link(here, Class::Client, digest);
        let (parts, calls) = self.model_parts(here, content, self.responses.len() as u32)?;
        let added = MessageAdded { in_context: Some(false), ..plain(Role::Assistant, parts, Some("error")) };
        self.model_message(here, ActorKind::Harness, parent, added, calls)?;
        let reason = here.record.error.as_ref().filter(|error| error.get().len() <= LONGEST).and_then(Raw::text);
        let reason = reason.map(|t| t.into_owned().into());
        let ended = TurnEnded { turn: None, how: TurnEnd::Error, reason };
        self.emit(here, ActorKind::Harness, None, ended).map(drop)
    }

    /// A record that the client made in the model's name: what was left of a cut stream, or a stand-in for an answer.
    fn synthetic(&mut self, here: &mut Here<'_>, content: &Content<'_>, digest: u64) -> Written {
        let parent = self.link(here, Class::Client, digest);
        let stand_in = only_text(content).is_some_and(|t| t == NO_RESPONSE);
        let (parts, calls) = self.model_parts(here, content, self.responses.len() as u32)?;
        let (actor, purpose) =
            if stand_in { (ActorKind::Harness, Some("continuation")) } else { (ActorKind::Model, None) };
        let added = MessageAdded { partial: Some(true), ..plain(Role::Assistant, parts, purpose) };
        self.model_message(here, actor, parent, added, calls)
    }

    /// The parts of content that is no response of the model.
    pub(super) fn parts<'d>(&mut self, here: &Here<'_>, content: &'d Content<'_>) -> Result<Vec<Part<'d>>, WriteError> {
        match content {
            Content::Text(raw) if raw.is_string() => Ok(vec![Part::Text { text: Value::Inline(raw.borrowed()) }]),
            Content::Text(raw) => Ok(vec![Part::Opaque(anthropic(None, raw.borrowed()))]),
            Content::Blocks(blocks) => blocks.iter().map(|b| self.part(here, b)).collect(),
        }
    }

    /// One block as a part.
    pub(super) fn part<'d>(&mut self, here: &Here<'_>, block: &'d Block<'_>) -> Result<Part<'d>, WriteError> {
        let m = &block.members;
        Ok(match &*m.r#type {
            "text" if let Some(text) = &m.text => Part::Text { text: Value::Inline(text.borrowed()) },
            "thinking" if let Some(thinking) = &m.thinking => Part::Reasoning {
                text: Some(Value::Inline(thinking.borrowed())),
                opaque: m.signature.as_ref().map(|s| anthropic(Some("signature"), s.borrowed())),
            },
            "redacted_thinking" if let Some(data) = &m.data => {
                Part::Reasoning { text: None, opaque: Some(anthropic(Some("redacted_thinking"), data.borrowed())) }
            }
            "image" if let Some(source) = &m.source => {
                match (&*source.r#type.clone().unwrap_or_default(), &source.media_type, &source.data) {
                    ("base64", Some(media), Some(data)) => {
                        Part::Image { media: media.clone(), data: self.picture(here, data, media)? }
                    }
                    _ => Part::Opaque(anthropic(Some("image"), block.raw.borrowed())),
                }
            }
            other => {
                if !OPAQUE_BLOCKS.contains(&other) {
                    let known =
                        ["text", "thinking", "redacted_thinking", "image", "tool_use", "tool_result"].contains(&other);
                    let code = if known { Code::UnexpectedShape } else { Code::UnknownBlock };
                    let place = Place { kind: Some(other.to_owned()), ..self.out.place(here.span) };
                    self.out.warn(code, place);
                }
                Part::Opaque(anthropic(Some(other).filter(|kind| !kind.is_empty()), block.raw.borrowed()))
            }
        })
    }

    /// A picture: a blob of its bytes where the target has blobs and the base64 can be made again from them.
    pub(super) fn picture<'d>(
        &mut self,
        here: &Here<'_>,
        data: &'d Raw<'_>,
        media: &str,
    ) -> Result<Value<'d>, WriteError> {
        let token = data.get().trim_matches('"');
        let Some(bytes) = BASE64.decode(token).ok().filter(|_| data.is_string()) else {
            return Ok(Value::Inline(data.borrowed()));
        };
        if !self.blobs.insert(palog::blob::digest(&bytes)) {
            let offset = (token.as_ptr() as usize).checked_sub(here.text.as_ptr() as usize);
            let mut place = self.out.place(here.span);
            if let Some(offset) = offset.filter(|o| here.exact && o + token.len() <= here.text.len()) {
                place.offset = Some(here.span.at + offset as u64);
                place.length = Some(token.len() as u64);
            }
            self.out.info(Code::DuplicateBlob, place);
        }
        Ok(self.out.log.blob(&bytes, media, None)?.unwrap_or_else(|| Value::Inline(data.borrowed())))
    }
}

/// The response that a record of the model's side belongs to.
fn response_of(record: &Record<'_>, message: &Message<'_>) -> String {
    message.id.as_deref().or(record.uuid.as_deref()).unwrap_or_default().to_owned()
}

/// The prompt that a call gives to a subagent.
fn spawn_prompt(input: Option<&Raw<'_>>) -> Option<String> {
    #[derive(serde::Deserialize)]
    #[serde(bound(deserialize = "'de: 'a"))]
    struct Input<'a> {
        prompt: Option<Raw<'a>>,
    }
    let input: Input<'_> = serde_json::from_str(input?.get()).ok()?;
    Some(input.prompt?.text()?.into_owned())
}

/// Whether the input of a call asks for the background. Where that cannot be read, it may.
fn in_background(input: &Raw<'_>) -> bool {
    #[derive(serde::Deserialize)]
    #[serde(bound(deserialize = "'de: 'a"))]
    struct Input<'a> {
        run_in_background: Option<Raw<'a>>,
    }
    read::<Input<'_>>(input.get()).is_ok_and(|Read { members, repeated, .. }| {
        repeated || members.run_in_background.is_some_and(|flag| flag.get() != "false")
    })
}

/// Content that only the provider understands.
fn anthropic<'r>(kind: Option<&'r str>, value: Raw<'r>) -> Opaque<'r> {
    Opaque { provider: "anthropic".into(), kind: kind.map(Str::from), value: value.into() }
}

/// A value that the source does not hold.
pub(super) fn missing() -> Value<'static> {
    Value::Omitted(Omitted { omitted: Omission { reason: OmittedReason::Unavailable, bytes: None } })
}
