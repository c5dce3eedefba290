//! Messages: what people, programs and the model said (`spec/sources/pi.md`, "Messages").

use super::*;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use palog::events::{
    ActionProposed, Effect, MessageAdded, ModelResponse, Opaque, Part, Role, TurnEnd, TurnEnded, TurnStarted, Usage,
};
use palog::json::{Omission, Omitted, OmittedReason, Value};
use palog::writer::args_digest;

use crate::record::{Block, Message, parse};
use crate::store::approvals::About;
use crate::tools;

/// A message with nothing said of it but its purpose.
pub(super) fn plain<'m>(role: Role, parts: Vec<Part<'m>>, purpose: Option<&'static str>) -> MessageAdded<'m> {
    MessageAdded { role, parts, response: None, partial: None, purpose: purpose.map(Str::from), in_context: None }
}

/// A value that the source does not hold.
fn missing() -> Value<'static> {
    Value::Omitted(Omitted { omitted: Omission { reason: OmittedReason::Unavailable, bytes: None } })
}

/// The words of a person in an entry, if they are such.
pub(crate) fn prompt_text(entry: &Entry<'_>) -> Option<String> {
    let message = entry.message.as_ref().filter(|m| m.role.as_deref() == Some("user") && m.provenance.is_none())?;
    let text = first_text(message.content.as_ref());
    (!text.trim().is_empty()).then_some(text)
}

/// The first text of a content.
pub(super) fn first_text(content: Option<&Raw<'_>>) -> String {
    let Some(content) = content else { return String::new() };
    if let Some(text) = content.text() {
        return text.into_owned();
    }
    let blocks: Vec<Block<'_>> = parse(content).unwrap_or_default();
    let text = blocks.iter().find_map(|block| block.text.as_ref()).and_then(Raw::text);
    text.map(|text| text.into_owned()).unwrap_or_default()
}

/// What the model said: the parts, and the calls among them, each with the client's id.
type Spoken<'d> = (Vec<Part<'d>>, Vec<(String, ActionProposed<'d>)>);

impl Conversation {
    pub(super) fn message(&mut self, here: &mut Here<'_>, message: &Message<'_>) -> Written {
        match message.role.as_deref().unwrap_or_default() {
            "user" => self.user(here, message),
            "assistant" => self.assistant(here, message),
            "toolResult" => self.result(here, message),
            "bashExecution" => self.command(here, message),
            "custom" | "hookMessage" => self.injected(here, message.content.as_ref()),
            "branchSummary" => self.branch_summary(here, message.summary.as_ref()),
            "compactionSummary" => self.summary(here, super::context::COMPACTED, message.summary.as_ref()).map(drop),
            _ => {
                self.report(here, Code::UnknownType, Severity::Warning);
                self.keep(here)
            }
        }
    }

    /// A message of the user's side: what it is, the client says where it put it in itself.
    fn user(&mut self, here: &mut Here<'_>, message: &Message<'_>) -> Written {
        let provenance = message.provenance.as_ref().and_then(|p| p.kind.as_deref());
        let (actor, purpose) = match provenance {
            Some("internal_system") => (ActorKind::Harness, "notification"),
            Some("inter_session") => (ActorKind::Agent, "prompt"),
            _ if self.known.is_agent => (ActorKind::Agent, "prompt"),
            _ => (ActorKind::User, "prompt"),
        };
        self.step(here, Step::Message);
        let parts = self.parts(here, message.content.as_ref())?;
        let id = self.emit(here, actor, plain(Role::User, parts, Some(purpose)))?;
        self.calls.prompted();
        let turn = TurnStarted { turn: None, message: Some(id.hex().into()) };
        self.emit(here, actor, turn).map(drop)
    }

    /// Text that an extension put in.
    pub(super) fn injected(&mut self, here: &mut Here<'_>, content: Option<&Raw<'_>>) -> Written {
        self.step(here, Step::Message);
        let parts = self.parts(here, content)?;
        self.emit(here, ActorKind::Harness, plain(Role::User, parts, Some("reminder"))).map(drop)
    }

    /// A command that the user typed, in the words in which the model is told of it.
    fn command(&mut self, here: &mut Here<'_>, message: &Message<'_>) -> Written {
        let (Some(command), output) = (message.command.as_deref(), message.output.as_deref().unwrap_or_default())
        else {
            return self.odd(here);
        };
        let mut text = format!("Ran `{command}`\n");
        match output {
            "" => text += "(no output)",
            // The client does not put a line end before the fence.
            output => text += &format!("```\n{output}\n```"),
        }
        if message.cancelled == Some(true) {
            text += "\n\n(command cancelled)";
        } else if let Some(code) = message.exit_code.filter(|code| *code != 0) {
            text += &format!("\n\nCommand exited with code {code}");
        }
        if let Some(path) = message.full_output_path.as_deref().filter(|_| message.truncated == Some(true)) {
            text += &format!("\n\n[Output truncated. Full output: {path}]");
        }
        self.step(here, Step::Message);
        let in_context = (message.exclude_from_context == Some(true)).then_some(false);
        let parts = vec![Part::text(text.as_str())];
        let added = MessageAdded { in_context, ..plain(Role::User, parts, Some("command_output")) };
        self.emit_how(here, ActorKind::Harness, added, Some(SrcHow::Normalized)).map(drop)
    }

    fn assistant(&mut self, here: &mut Here<'_>, message: &Message<'_>) -> Written {
        let stop = message.stop_reason.as_deref();
        let broken = matches!(stop, Some("aborted" | "error"));
        let own = match here.native {
            Native::Uuid(id) => id.to_owned(),
            Native::Offset(at) => format!("entry@{at}"),
            Native::Own => "session".to_owned(),
            Native::Row(_, key, _) => here.id.unwrap_or(key).to_owned(),
        };
        // What broke off before the provider gave it an id is no response.
        let response = message.response_id.as_deref().map(str::to_owned).or((!broken).then_some(own));
        let (parts, calls) = self.spoken(here, message)?;
        if !(broken && parts.is_empty()) {
            self.step(here, Step::Message);
            let added = MessageAdded {
                response: response.clone().map(Str::from),
                partial: broken.then_some(true),
                // The client leaves it out of what it sends.
                in_context: broken.then_some(false),
                ..plain(Role::Assistant, parts, None)
            };
            self.emit(here, ActorKind::Model, added)?;
        }
        if !broken {
            self.calls.spoke();
        }
        let run = message.marks.as_ref().and_then(|m| m.run_id.as_deref());
        let mut asked = Vec::new();
        for (call, proposed) in calls {
            let about = About::of(&proposed);
            self.emit(here, ActorKind::Model, proposed)?;
            asked.push((call, about));
        }
        for (call, about) in asked {
            for request in self.known.approvals.take(&call, run) {
                request.write(&mut self.out.log, Some(&about))?;
            }
        }
        if let Some(response) = response {
            self.response(here, message, response, stop, broken)?;
        }
        let (how, actor) = match stop {
            Some("aborted") => (TurnEnd::Interrupted, ActorKind::User),
            Some("error") => (TurnEnd::Error, ActorKind::Harness),
            _ => return Ok(()),
        };
        let reason = message.error_message.as_ref().and_then(Raw::text).map(|t| t.into_owned().into());
        self.emit(here, actor, TurnEnded { turn: None, how, reason }).map(drop)
    }

    /// What is known of a response.
    fn response(
        &mut self,
        here: &mut Here<'_>,
        message: &Message<'_>,
        response: String,
        stop: Option<&str>,
        broken: bool,
    ) -> Written {
        let usage = message.usage.as_ref();
        let stop = stop.filter(|_| !broken).map(|stop| match stop {
            "stop" => "end_turn",
            "length" => "max_tokens",
            "toolUse" => "tool_use",
            other => other,
        });
        let data = ModelResponse {
            response: response.into(),
            model: message.model.clone(),
            request: None,
            usage: usage.map(|u| Usage {
                input: u.input,
                output: u.output,
                cache_read: u.cache_read,
                cache_write: u.cache_write,
                reasoning: None,
            }),
            cost: usage.and_then(|u| u.cost.as_ref()).map(Raw::borrowed),
            stop: stop.map(|s| s.to_owned().into()),
            error: message.error_message.as_ref().filter(|_| broken).map(|e| Value::Inline(e.borrowed())),
        };
        self.emit(here, ActorKind::Model, data).map(drop)
    }

    /// The parts of what the model said, and the calls in it.
    fn spoken<'d>(&mut self, here: &Here<'_>, message: &'d Message<'_>) -> Result<Spoken<'d>, WriteError> {
        let mut calls = Vec::new();
        let Some(blocks) = message.content.as_ref().and_then(parse::<Vec<Raw<'d>>>) else {
            return Ok((self.parts(here, message.content.as_ref())?, calls));
        };
        let mut parts = Vec::with_capacity(blocks.len());
        for raw in blocks {
            let block: Block<'_> = parse(&raw).unwrap_or_default();
            let (Some("toolCall"), Some(id), Some(name)) = (block.r#type.as_deref(), &block.id, &block.name) else {
                parts.push(self.part(here, message, &raw, &block)?);
                continue;
            };
            let (args, digest) = match &block.arguments {
                Some(arguments) => {
                    self.look_at_numbers(here, arguments.get());
                    (Value::Inline(arguments.clone().into_owned()), args_digest(arguments))
                }
                None => (missing(), palog::blob::digest(b"")),
            };
            let place = self.place(here);
            let action = self.calls.propose(id, name, here.node, here.copy.is_some(), place);
            parts.push(Part::Action { action: action.clone().into() });
            let class = |class| Effect { class: Some(class), idempotency_key: None, target: None };
            let proposed = ActionProposed {
                action: action.into(),
                name: name.clone().into_owned(),
                args,
                args_digest: digest.into(),
                kind: tools::kind(name),
                effect: tools::effect(name).map(class),
                compensates: None,
            };
            calls.push((id.to_string(), proposed));
        }
        Ok((parts, calls))
    }

    /// The parts of a content that holds no calls: a text, or a list of blocks.
    pub(super) fn parts<'d>(
        &mut self,
        here: &Here<'_>,
        content: Option<&'d Raw<'_>>,
    ) -> Result<Vec<Part<'d>>, WriteError> {
        let Some(content) = content else { return Ok(Vec::new()) };
        if content.is_string() {
            return Ok(vec![Part::Text { text: Value::Inline(content.borrowed()) }]);
        }
        let Some(blocks) = parse::<Vec<Raw<'d>>>(content) else {
            return Ok(vec![Part::Opaque(self.opaque(None, content.borrowed()))]);
        };
        let nobody = Message::default();
        blocks.iter().map(|raw| self.part(here, &nobody, raw, &parse(raw).unwrap_or_default())).collect()
    }

    /// One block as a part.
    fn part<'d>(
        &mut self,
        here: &Here<'_>,
        message: &Message<'_>,
        raw: &Raw<'d>,
        block: &Block<'_>,
    ) -> Result<Part<'d>, WriteError> {
        let kind = block.r#type.as_deref().unwrap_or_default();
        let inline = |raw: &Raw<'_>| Value::Inline(raw.clone().into_owned());
        Ok(match kind {
            "text" if let Some(text) = &block.text => Part::Text { text: inline(text) },
            "thinking" if let Some(thinking) = &block.thinking => Part::Reasoning {
                text: Some(inline(thinking)),
                opaque: block.thinking_signature.as_ref().map(|signature| Opaque {
                    provider: message.api.as_deref().unwrap_or("unknown").to_owned().into(),
                    kind: Some("signature".into()),
                    value: inline(signature),
                }),
            },
            "image" if let (Some(data), Some(media)) = (&block.data, &block.mime_type) => {
                Part::Image { media: media.clone().into_owned(), data: self.picture(here, data, media)? }
            }
            _ => {
                let known = ["text", "thinking", "image", "toolCall"].contains(&kind);
                let code = if known { Code::UnexpectedShape } else { Code::UnknownBlock };
                let place = Place { kind: Some(kind.to_owned()), ..self.place(here) };
                self.out.warn(code, place);
                Part::Opaque(self.opaque(Some(kind), raw.clone()))
            }
        })
    }

    /// Content that is not understood.
    fn opaque<'d>(&self, kind: Option<&str>, value: Raw<'d>) -> Opaque<'d> {
        Opaque { provider: self.format.name.into(), kind: kind.map(|k| k.to_owned().into()), value: value.into() }
    }

    /// A picture: a blob of its bytes where the target has blobs and the base64 can be made again from them.
    fn picture(&mut self, here: &Here<'_>, data: &str, media: &str) -> Result<Value<'static>, WriteError> {
        let Some(bytes) = BASE64.decode(data).ok() else { return Ok(Value::from(data).into_owned()) };
        if !self.blobs.insert(palog::blob::digest(&bytes)) {
            let place = self.place_of(here, data);
            self.out.info(Code::DuplicateBlob, place);
        }
        Ok(self.out.log.blob(&bytes, media, None)?.unwrap_or_else(|| Value::from(data).into_owned()))
    }

    /// Reports numbers that a binary double cannot hold.
    fn look_at_numbers(&mut self, here: &Here<'_>, json: &str) {
        let bytes = json.as_bytes();
        let (mut at, mut inside) = (0, false);
        while at < bytes.len() {
            match bytes[at] {
                b'\\' if inside => at += 1,
                b'"' => inside = !inside,
                b'-' | b'0'..=b'9' if !inside => {
                    let rest = &bytes[at..];
                    let len = rest.iter().take_while(|b| b"+-.eE0123456789".contains(b)).count();
                    if !is_exact(&json[at..at + len]) {
                        let place = self.place_of(here, &json[at..at + len]);
                        self.out.info(Code::NumberPrecision, place);
                    }
                    at += len - 1;
                }
                _ => {}
            }
            at += 1;
        }
    }
}

/// Whether a double holds a number that has no fraction, and is near one that has.
fn is_exact(token: &str) -> bool {
    let Ok(double) = token.parse::<f64>() else { return false };
    let is_whole = !token.contains(['.', 'e', 'E']);
    double.is_finite() && (!is_whole || token == "-0" || format!("{double:.0}") == token)
}

#[cfg(test)]
mod tests {
    use super::is_exact;

    #[test]
    fn numbers_that_a_double_holds() {
        for exact in ["0", "-0", "0.10", "9007199254740992", "1e300", "-12"] {
            assert!(is_exact(exact), "{exact}");
        }
        for odd in ["9007199254740993", "2512292042121000001", "1e400", "-1e400"] {
            assert!(!is_exact(odd), "{odd}");
        }
    }
}
