//! Items: what the model was given and what it said (`spec/sources/codex.md`, "Items").

use super::parts::{first_text, openai};
use super::*;

use palog::events::{
    ActionEnded, ActionProposed, Applied, ApprovalEnded, ApprovalOutcome, Effect, MessageAdded, Outcome, Part, Role,
    TurnStarted,
};
use palog::json::{Omission, Omitted, OmittedReason};
use palog::writer::args_digest;

use crate::calls::Told;
use crate::lineage::hash;
use crate::record::Content;
use crate::tools::{self, Outputs, Verdict};

/// Items that only the provider understands, or that have no form of their own in a log: carried as they stand.
const OPAQUE: &[&str] = &[
    "additional_tools",
    "agent_message",
    "compaction",
    "compaction_summary",
    "context_compaction",
    "image_generation_call",
    "tool_search_call",
    "tool_search_output",
    "web_search_call",
];

/// What a message of the user's side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Prompt,
    Injected,
    Reminder,
    Interruption,
    CommandOutput,
}

/// The wrappers by which the client's own messages begin, where it does not say what a message is.
const WRAPPERS: &[(&str, Said)] = &[
    ("<turn_aborted>", Said::Interruption),
    ("<user_shell_command>", Said::CommandOutput),
    ("<environment_context>", Said::Reminder),
    ("<user_instructions>", Said::Reminder),
    ("<permissions instructions>", Said::Reminder),
    ("<INSTRUCTIONS>", Said::Reminder),
    ("# AGENTS.md instructions", Said::Reminder),
    ("<skill>", Said::Reminder),
    ("<subagent_notification>", Said::Reminder),
];

/// What a message with the role of the user is: by the client's word for its parts, else by its wrapper.
fn said(item: &Item<'_>) -> Said {
    let kinds = item.kinds();
    let is = |prefix: &str| kinds.iter().any(|k| k.starts_with(prefix));
    if kinds.iter().all(|k| k == "unknown") && !kinds.is_empty() {
        return Said::Injected;
    }
    if !kinds.is_empty() {
        return match () {
            () if is("user.") => Said::Prompt,
            () if is("generic.turn_aborted") => Said::Interruption,
            () if is("shell.user_command") => Said::CommandOutput,
            () => Said::Reminder,
        };
    }
    let text = first_text(item.content.as_ref());
    let text = text.trim_start();
    WRAPPERS.iter().find(|(wrapper, _)| text.starts_with(wrapper)).map_or(Said::Prompt, |(_, said)| *said)
}

/// What a message is by the mark of an exporter; `None` where it says nothing of it.
fn marked(mark: &Mark) -> Option<Said> {
    Some(match mark.purpose.as_deref()? {
        "prompt" => Said::Prompt,
        "interruption" => Said::Interruption,
        "command_output" => Said::CommandOutput,
        _ => Said::Injected,
    })
}

/// The words of a person in an item, if they are such.
pub(crate) fn typed_prompt(item: &Item<'_>) -> Option<String> {
    let is_message = item.r#type.as_deref() == Some("message") && item.role.as_deref() == Some("user");
    let text = if is_message && said(item) == Said::Prompt { first_text(item.content.as_ref()) } else { String::new() };
    (!text.trim().is_empty()).then_some(text)
}

/// A message with nothing said of it but its purpose.
fn plain<'m>(role: Role, parts: Vec<Part<'m>>, purpose: Option<&'static str>) -> MessageAdded<'m> {
    MessageAdded { role, parts, response: None, partial: None, purpose: purpose.map(Str::from), in_context: None }
}

/// Members of the provider's API that a message or a call has beside its content.
fn ext(members: &[(&str, Option<&str>)]) -> Option<Raw<'static>> {
    let members: serde_json::Map<String, serde_json::Value> =
        members.iter().filter_map(|(name, value)| Some(((*name).to_owned(), (*value)?.into()))).collect();
    (!members.is_empty()).then(|| Raw::of(&serde_json::json!({ "com.openai": members })))
}

impl Rollout {
    /// One item. `raw` is its text; `summary` says that the model made it for a compaction.
    pub(super) fn item(
        &mut self,
        here: &mut Here<'_>,
        item: &Item<'_>,
        raw: &str,
        summary: bool,
        kind: &str,
    ) -> Written {
        let r#type = item.r#type.as_deref().unwrap_or_default();
        let asks = [&item.arguments, &item.input, &item.action].iter().any(|member| member.is_some());
        let calls = asks || item.call_id.is_some();
        // None of these has anything of a call, and calls that are not the client's have no name.
        if calls && matches!(r#type, "message" | "reasoning" | "agent_message" | "ghost_snapshot")
            || item.name.is_some() && OPAQUE.contains(&r#type)
        {
            return self.odd(here, kind);
        }
        match r#type {
            "message" => self.message(here, item, raw, summary, kind),
            "reasoning" => {
                self.begin_if_due(here)?;
                let texts: Vec<_> = item.summary.iter().flatten().filter_map(|s| s.text.as_ref()?.text()).collect();
                let text = match &item.summary.as_deref() {
                    Some([Content { text: Some(text), .. }]) if text.is_string() => {
                        Some(Value::Inline(text.borrowed()))
                    }
                    _ => (!texts.is_empty()).then(|| Value::from(texts.join("\n\n").as_str()).into_owned()),
                };
                let Ok(whole) = Raw::parse(raw) else { return Ok(()) };
                let part = Part::Reasoning { text, opaque: Some(openai(Some("reasoning"), whole)) };
                self.spoken(here, vec![part], None, None).map(drop)
            }
            "function_call" | "custom_tool_call" | "local_shell_call" => self.call(here, item, kind),
            "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
                self.output(here, item, raw, r#type)
            }
            "agent_message" => self.agent_message(here, raw),
            other if OPAQUE.contains(&other) => {
                let Ok(whole) = Raw::parse(raw) else { return Ok(()) };
                let part = Part::Opaque(openai(Some(other), whole));
                if matches!(other, "additional_tools" | "tool_search_output") {
                    let added = plain(Role::Developer, vec![part], Some("reminder"));
                    return self.emit(here, ActorKind::Harness, added).map(drop);
                }
                self.begin_if_due(here)?;
                self.spoken(here, vec![part], None, None).map(drop)
            }
            // The client accepts it and does not use it.
            "ghost_snapshot" => self.keep(here, kind),
            _ => self.unknown(here, kind),
        }
    }

    /// Something that the model said.
    fn spoken(
        &mut self,
        here: &mut Here<'_>,
        parts: Vec<Part<'_>>,
        purpose: Option<&'static str>,
        ext: Option<Raw<'static>>,
    ) -> Result<EventId, WriteError> {
        if purpose.is_none() {
            self.calls.spoke();
        }
        let own = here.mark.purpose.clone().map(Str::from);
        let added = MessageAdded { purpose: own.or(purpose.map(Str::from)), ..plain(Role::Assistant, parts, None) };
        let actor = here.mark.actor.unwrap_or(ActorKind::Model);
        self.emit_with(here, actor, added, None, ext)
    }

    fn message(&mut self, here: &mut Here<'_>, item: &Item<'_>, raw: &str, summary: bool, kind: &str) -> Written {
        let role = match item.role.as_deref() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some("developer") => Role::Developer,
            Some("system") => Role::System,
            _ => return self.odd(here, kind),
        };
        if role == Role::Assistant {
            let summary = summary || here.mark.purpose.as_deref() == Some("summary");
            if !summary {
                self.begin_if_due(here)?;
            }
            let parts = self.parts(here, item.content.as_ref())?;
            let ext = ext(&[("phase", item.phase.as_deref())]);
            let id = self.spoken(here, parts, summary.then_some("summary"), ext)?;
            self.remember(item, raw, id);
            return Ok(());
        }
        let said = match (marked(&here.mark), role) {
            (Some(said), _) => said,
            (None, Role::User) => said(item),
            (None, _) => Said::Reminder,
        };
        let parts = self.parts(here, item.content.as_ref())?;
        let directory = if said == Said::Reminder { self.directory_in(item) } else { None };
        let (purpose, actor) = match said {
            Said::Prompt if self.is_steer() => ("steer", self.prompter(here)),
            Said::Prompt => ("prompt", self.prompter(here)),
            Said::Injected => ("injected", ActorKind::Harness),
            Said::Reminder => ("reminder", ActorKind::Harness),
            Said::Interruption => ("interruption", ActorKind::Harness),
            Said::CommandOutput => ("command_output", ActorKind::Harness),
        };
        let own = here.mark.purpose.clone();
        let actor = here.mark.actor.unwrap_or(actor);
        let added = MessageAdded {
            purpose: Some(own.clone().map_or(Str::from(purpose), Str::from)),
            ..plain(role, parts, None)
        };
        let before = self.before();
        let id = self.emit(here, actor, added)?;
        self.remember(item, raw, id);
        if matches!(said, Said::Prompt) {
            self.prompts.push(id);
        }
        let begins = purpose == "prompt" || own.as_deref() == Some("notification") && self.is_due();
        if begins {
            self.before_prompts.push(before);
            self.begin(here, actor, id)?;
        }
        match directory {
            Some(directory) => {
                self.config.directory = Some(directory.clone().into());
                let set = ConfigSet { directory: Some(directory.into()), ..EMPTY_CONFIG };
                self.emit_how(here, ActorKind::Harness, set, Some(SrcHow::Synthesized)).map(drop)
            }
            None => Ok(()),
        }
    }

    /// The directory that the client tells the model, where no header has told it.
    fn directory_in(&self, item: &Item<'_>) -> Option<String> {
        if self.config.directory.is_some() {
            return None;
        }
        let text = first_text(item.content.as_ref());
        let context = text.trim_start().strip_prefix("<environment_context>")?;
        let line = context.lines().find_map(|line| line.trim().strip_prefix("Current working directory: "));
        let tag = context.split_once("<cwd>").and_then(|(_, rest)| Some(rest.split_once("</cwd>")?.0));
        line.or(tag).map(|d| d.trim().to_owned()).filter(|d| !d.is_empty())
    }

    /// Who speaks in a prompt: to an agent, and in the records that it was given, the parent does.
    fn prompter(&self, here: &Here<'_>) -> ActorKind {
        let inherits = here.copied && self.known.copies.as_ref().is_some_and(|c| c.how == CopyHow::Inherit);
        if self.known.is_agent || inherits { ActorKind::Agent } else { ActorKind::User }
    }

    /// A message of another agent.
    fn agent_message(&mut self, here: &mut Here<'_>, raw: &str) -> Written {
        let Ok(whole) = Raw::parse(raw) else { return Ok(()) };
        let parts = vec![Part::Opaque(openai(Some("agent_message"), whole))];
        let prompts = self.known.is_agent || here.mark.purpose.as_deref() == Some("prompt");
        if self.is_due() && prompts {
            let before = self.before();
            let id = self.emit(here, ActorKind::Agent, plain(Role::User, parts, Some("prompt")))?;
            self.before_prompts.push(before);
            return self.begin(here, ActorKind::Agent, id);
        }
        let id = self.emit(here, ActorKind::Agent, plain(Role::User, parts, Some("notification")))?;
        if self.is_due() { self.begin(here, ActorKind::Agent, id) } else { Ok(()) }
    }

    /// A message may stand in the window of a later compaction.
    fn remember(&mut self, item: &Item<'_>, raw: &str, id: EventId) {
        if let Some(own) = item.id.as_deref() {
            self.messages.insert(hash(&("id", own, item.content.as_ref().map(Raw::get))), id);
        } else {
            self.messages.insert(hash(&("item", raw)), id);
        }
    }

    /// The message that an item of a window is.
    pub(super) fn remembered(&self, item: &Item<'_>, raw: &str) -> Option<EventId> {
        let key = match item.id.as_deref() {
            Some(own) => hash(&("id", own, item.content.as_ref().map(Raw::get))),
            None => hash(&("item", raw)),
        };
        self.messages.get(&key).copied()
    }

    fn call(&mut self, here: &mut Here<'_>, item: &Item<'_>, kind: &str) -> Written {
        let r#type = item.r#type.as_deref().unwrap_or_default();
        let shell = r#type == "local_shell_call";
        let name = if shell { Some("local_shell") } else { item.name.as_deref() };
        let (Some(call), Some(name)) = (item.call_id.as_deref(), name) else { return self.odd(here, kind) };
        self.begin_if_due(here)?;
        let namespace = item.namespace.as_deref();
        let turn = self.turn_of(item);
        let action = self.calls.propose(call, name, namespace, turn.as_deref(), here.copied, here.span);
        let args = match r#type {
            "function_call" => item.arguments.as_ref().map(arguments),
            "custom_tool_call" => item.input.as_ref().map(Raw::borrowed),
            _ => item.action.as_ref().map(Raw::borrowed),
        };
        let (args, digest) = match args {
            Some(args) => {
                let digest = args_digest(&args);
                (Value::Inline(args), digest)
            }
            None => (missing(), palog::blob::digest(b"")),
        };
        self.spoken(here, vec![Part::Action { action: action.clone().into() }], None, None)?;
        let marked = here.mark.call.clone().unwrap_or_default();
        let proposed = ActionProposed {
            action: action.into(),
            name: name.into(),
            args,
            args_digest: digest.into(),
            kind: marked.kind.or(tools::kind(name, namespace)),
            effect: marked.class.or(tools::effect(name, namespace)).map(|c| Effect {
                class: Some(c),
                idempotency_key: None,
                target: None,
            }),
            compensates: None,
        };
        let marked = (r#type != "function_call").then_some(r#type);
        self.emit_with(here, ActorKind::Model, proposed, None, ext(&[("type", marked), ("namespace", namespace)]))
            .map(drop)
    }

    fn output(&mut self, here: &mut Here<'_>, item: &Item<'_>, raw: &str, r#type: &str) -> Written {
        let Some(call) = item.call_id.as_deref() else {
            // Goals reach the model as the output of no call.
            let Ok(whole) = Raw::parse(raw) else { return Ok(()) };
            let parts = vec![Part::Opaque(openai(item.r#type.as_deref(), whole))];
            return self.emit(here, ActorKind::Harness, plain(Role::Developer, parts, Some("reminder"))).map(drop);
        };
        let text = first_text(item.output.as_ref());
        let is_list = item.output.as_ref().is_some_and(|o| o.get().starts_with('['));
        let turn = self.turn_of(item);
        let (verdict, action) = match self.calls.output(call, turn.as_deref()) {
            Some(Told { call: known, action, at, sure }) => {
                let verdict = match &known.name {
                    Some(name) if !self.dynamic.contains(&**name) => {
                        let namespace = known.namespace.as_deref();
                        if self.outputs == Outputs::Alone && tools::is_shell(name, namespace) && tools::is_bare(&text) {
                            self.outputs = Outputs::Bare;
                        }
                        tools::verdict(name, namespace, &text, is_list, self.outputs)
                    }
                    _ => Verdict::Open,
                };
                let verdict = here.mark.end.map_or(verdict, by_mark);
                // What a record before told of its end stands.
                let verdict = match verdict {
                    Verdict::Background => verdict,
                    _ if known.ended || !sure => Verdict::Open,
                    _ => verdict,
                };
                let ends = !matches!(verdict, Verdict::Open | Verdict::Background);
                self.calls.told(call, at, ends);
                if !sure {
                    self.warn_call(Code::IdReused, here, call);
                }
                (verdict, action)
            }
            None => {
                self.warn_call(Code::OrphanResult, here, call);
                let action = self.calls.suppose(call, turn.as_deref(), here.copied, here.span);
                let name = item.name.as_deref().or(r#type.strip_suffix("_output")).unwrap_or(r#type);
                self.made_up(here, action.clone(), name.to_owned())?;
                (Verdict::Open, action)
            }
        };
        let parts = self.parts(here, item.output.as_ref())?;
        let r#final = verdict != Verdict::Background && !here.mark.background;
        let result = Part::Result { action: action.clone().into(), parts, is_error: None, r#final };
        self.emit(here, ActorKind::Tool, plain(Role::Tool, vec![result], None))?;
        self.concluded(here, action, verdict)
    }

    /// A note that stands where a result would be: the model is told the words, and of the call nothing is told but what the
    /// exporter knew.
    pub(super) fn no_result(&mut self, here: &mut Here<'_>, item: Option<&Item<'_>>, kind: &str) -> Written {
        let Some(output) = item.and_then(|item| item.output.as_ref()) else { return self.odd(here, kind) };
        let parts = vec![Part::Text { text: Value::Inline(output.borrowed()) }];
        self.emit(here, ActorKind::Importer, plain(Role::Tool, parts, Some("no_result")))?;
        let call = item.and_then(|item| item.call_id.as_deref()).and_then(|call| self.calls.action(call));
        match (here.mark.end, call) {
            (Some(end), Some(action)) => self.concluded(here, action, by_mark(end)),
            _ => Ok(()),
        }
    }

    fn concluded(&mut self, here: &mut Here<'_>, action: String, verdict: Verdict) -> Written {
        match verdict {
            Verdict::Ended(outcome, applied) => self.ended(here, action, outcome, applied, None),
            Verdict::DeniedByUser => self.denied(here, action, ActorKind::User),
            Verdict::DeniedByPolicy => self.denied(here, action, ActorKind::Policy),
            Verdict::Background | Verdict::Open => Ok(()),
        }
    }

    /// The turn that an item belongs to: the one that it names, else the one that is open.
    fn turn_of(&self, item: &Item<'_>) -> Option<String> {
        let open = || self.task.as_ref()?.id.clone();
        item.turn().map(str::to_owned).or_else(open)
    }

    pub(super) fn ended(
        &mut self,
        here: &mut Here<'_>,
        action: String,
        outcome: Outcome,
        applied: Applied,
        output: Option<Vec<Part<'_>>>,
    ) -> Written {
        let ended =
            ActionEnded { action: action.into(), attempt: None, outcome, applied, output, receipt: None, error: None };
        self.emit(here, ActorKind::Tool, ended).map(drop)
    }

    pub(super) fn denied(&mut self, here: &mut Here<'_>, action: String, by: ActorKind) -> Written {
        let ended = ApprovalEnded {
            approval: None,
            action: Some(action.into()),
            outcome: ApprovalOutcome::Denied,
            scope: None,
            args: None,
            input: None,
            reason: None,
            join: None,
        };
        self.emit(here, by, ended).map(drop)
    }
}

/// What the mark of an exporter says of the end of a call.
fn by_mark(end: EndMark) -> Verdict {
    match end {
        EndMark::Ended { outcome, applied } => Verdict::Ended(outcome, applied),
        EndMark::DeniedByUser => Verdict::DeniedByUser,
        EndMark::DeniedByPolicy => Verdict::DeniedByPolicy,
        EndMark::Open => Verdict::Open,
    }
}

/// The arguments of a function call. The provider writes them as a string; where that is an object that a line can hold as it
/// stands, they are that object, else the string.
fn arguments<'r>(raw: &'r Raw<'_>) -> Raw<'r> {
    let Some(text) = raw.text() else { return raw.borrowed() };
    if !text.starts_with('{') || text.contains(['\n', '\r']) {
        return raw.borrowed();
    }
    match Raw::parse(&text) {
        // White space around the object would be lost.
        Ok(object) if object.get() == text => object.into_owned(),
        _ => raw.borrowed(),
    }
}

/// A value that the source does not hold.
pub(super) fn missing() -> Value<'static> {
    Value::Omitted(Omitted { omitted: Omission { reason: OmittedReason::Unavailable, bytes: None } })
}

impl Rollout {
    /// The turn of a message that nobody prompted: it begins with what the model says.
    fn begin_if_due(&mut self, here: &mut Here<'_>) -> Written {
        if !self.is_due() {
            return Ok(());
        }
        let turn = self.started();
        self.emit(here, ActorKind::Harness, TurnStarted { turn, message: None }).map(drop)
    }

    /// A turn begins with a prompt.
    fn begin(&mut self, here: &mut Here<'_>, actor: ActorKind, message: EventId) -> Written {
        self.calls.prompted();
        let turn = self.started();
        self.emit(here, actor, TurnStarted { turn, message: Some(message.hex().into()) }).map(drop)
    }
}
