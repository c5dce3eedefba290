//! What the screen was shown: what ran and how it ended (`spec/sources/codex.md`, "Events").

use super::*;

use palog::events::{ActionKind, ActionProposed, Applied, ChildKind, ChildLink, ChildSpawned, Outcome, Part, TurnEnd};
use palog::json::Raw;
use palog::writer::args_digest;

use crate::calls::{Call, Ended};
use crate::record::Done;
use crate::tools;

/// Events that repeat what items say, or tell of the screen only: known, and kept.
const KEPT: &[&str] = &[
    "agent_message",
    "agent_reasoning",
    "agent_reasoning_raw_content",
    "agent_reasoning_section_break",
    "collab_agent_interaction_end",
    "collab_close_end",
    "collab_resume_end",
    "collab_waiting_end",
    "context_compacted",
    "deprecation_notice",
    "dynamic_tool_call_request",
    "entered_review_mode",
    "error",
    "exec_command_begin",
    "exited_review_mode",
    "guardian_assessment",
    "image_generation_end",
    "mcp_tool_call_begin",
    "patch_apply_begin",
    "plan_update",
    "stream_error",
    "sub_agent_activity",
    "thread_goal_updated",
    "turn_diff",
    "undo_completed",
    "user_message",
    "view_image_tool_call",
    "warning",
    "web_search_begin",
    "web_search_end",
];

/// Items of the screen that repeat what an item of the context says.
const REPEATED: &[&str] = &[
    "UserMessage",
    "AgentMessage",
    "Reasoning",
    "ContextCompaction",
    "EnteredReviewMode",
    "ExitedReviewMode",
    "Plan",
    "WebSearch",
];

/// Where a command comes from that a person typed.
const USER_SHELL: &str = "user_shell";

impl Rollout {
    pub(super) fn screen(&mut self, here: &mut Here<'_>, event: &Event<'_>, payload: &Raw<'_>, kind: &str) -> Written {
        match event.r#type.as_deref().unwrap_or_default() {
            "task_started" | "turn_started" => self.task_started(here, event, kind),
            "task_complete" | "turn_complete" => self.task_ended(here, event, TurnEnd::Complete, kind),
            "turn_aborted" => self.task_ended(here, event, TurnEnd::Interrupted, kind),
            "token_count" => self.total(here, event, kind),
            "thread_settings_applied" => match &event.thread_settings {
                Some(settings) => self.settings(here, settings, kind),
                None => self.odd(here, kind),
            },
            "thread_rolled_back" => match event.num_turns {
                Some(turns) => self.rolled_back(here, turns, kind),
                None => self.odd(here, kind),
            },
            "thread_name_updated" if event.thread_name.is_some() => {
                let set = ConfigSet { title: event.thread_name.clone(), ..EMPTY_CONFIG };
                self.emit(here, ActorKind::User, set).map(drop)
            }
            "item_completed" if self.is_elsewhere(here, event) => self.odd(here, kind),
            "item_completed" => match &event.item {
                Some(item) => self.done(here, item, item.id.as_deref(), event.turn_id.as_deref(), kind),
                None => self.odd(here, kind),
            },
            known @ ("exec_command_end" | "patch_apply_end" | "mcp_tool_call_end" | "dynamic_tool_call_response") => {
                let Some(mut done) = parse::<Done<'_>>(payload) else { return self.odd(here, kind) };
                done.r#type = Some(match known {
                    "exec_command_end" => "CommandExecution".into(),
                    "patch_apply_end" => "FileChange".into(),
                    "mcp_tool_call_end" => "McpToolCall".into(),
                    _ => "DynamicToolCall".into(),
                });
                self.done(here, &done, done.call_id.as_deref(), event.turn_id.as_deref(), kind)
            }
            "collab_agent_spawn_end" if event.new_thread_id.is_some() => {
                let call = parse::<Done<'_>>(payload).and_then(|d| d.call_id);
                self.spawned(here, event.new_thread_id.as_deref().unwrap_or_default(), call.as_deref())
            }
            other if KEPT.contains(&other) => self.keep(here, kind),
            _ => self.unknown(here, kind),
        }
    }

    /// Whether an event says that it is one of another thread: only copies are.
    fn is_elsewhere(&self, here: &Here<'_>, event: &Event<'_>) -> bool {
        let origin = self.known.copies.as_ref().map(|copies| copies.session.as_str()).filter(|_| here.copied);
        event.thread_id.as_deref().is_some_and(|thread| thread != self.session && Some(thread) != origin)
    }

    /// Something ran, and ended.
    fn done(
        &mut self,
        here: &mut Here<'_>,
        done: &Done<'_>,
        call: Option<&str>,
        turn: Option<&str>,
        kind: &str,
    ) -> Written {
        let what = done.r#type.as_deref().unwrap_or_default();
        let Some(call) = call.filter(|_| !REPEATED.contains(&what)) else {
            return if REPEATED.contains(&what) { self.keep(here, kind) } else { self.odd(here, kind) };
        };
        let outcome = match what {
            "CommandExecution" => command(done),
            "FileChange" => patch(done),
            "McpToolCall" => tool(done),
            "DynamicToolCall" => match done.success.or(by_status(done)) {
                Some(true) => End::At(Outcome::Succeeded, Applied::Yes),
                Some(false) => End::At(Outcome::Failed, Applied::Yes),
                None => End::Open,
            },
            "ImageView" => End::At(Outcome::Succeeded, Applied::Yes),
            "CollabAgentToolCall" => match by_status(done) {
                Some(true) => End::At(Outcome::Succeeded, Applied::Yes),
                Some(false) => End::At(Outcome::Failed, Applied::Unknown),
                None => End::Open,
            },
            "SubAgentActivity" if done.kind.as_deref() == Some("started") => End::At(Outcome::Succeeded, Applied::Yes),
            "SubAgentActivity" => End::Open,
            other => {
                let kind = format!("{kind}/{other}");
                self.warn_kind(Code::UnknownType, here.span, &kind);
                End::Open
            }
        };
        if outcome == End::Open {
            if done.exit_code.is_some() && done.status.as_deref() != Some("in_progress") {
                self.warn_call(Code::UnexpectedShape, here, call);
            }
            return self.keep(here, kind);
        }
        let Self { calls, dynamic, .. } = self;
        let fits = |call: &Call| {
            let fits = |name: &str| tools::fits(what, name, call.namespace.as_deref(), dynamic.contains(name));
            call.name.as_deref().is_none_or(fits)
        };
        let action = match calls.end(call, turn, fits) {
            Ended::Action(action) => action,
            Ended::Several => {
                self.warn_call(Code::IdReused, here, call);
                return self.keep(here, kind);
            }
            Ended::Unfit => {
                self.warn_call(Code::UnexpectedShape, here, call);
                return self.keep(here, kind);
            }
            Ended::Nobody if call.starts_with("exec-") || done.source.as_deref() == Some(USER_SHELL) => {
                self.unasked(here, done, what, call, turn)?
            }
            // The record with the call may be lost.
            Ended::Nobody => self.calls.suppose(call, turn, here.copied, here.span),
        };
        match outcome {
            End::At(outcome, applied) => {
                let output = results(done);
                self.ended(here, action, outcome, applied, output)?;
            }
            End::Declined => self.denied(here, action, ActorKind::User)?,
            End::Open => {}
        }
        let spawn = matches!(
            (what, done.tool.as_deref()),
            ("CollabAgentToolCall", Some("spawn_agent")) | ("SubAgentActivity", _)
        );
        let threads = done.receiver_thread_ids.iter().flatten().chain(&done.agent_thread_id).filter(|_| spawn);
        for thread in threads {
            self.spawned(here, thread, Some(call))?;
        }
        Ok(())
    }

    /// Something ran that no call of the model asked for: a command of the user, or one that a script ran. The record names
    /// no call that it belongs to, so it is an action of its own.
    fn unasked(
        &mut self,
        here: &mut Here<'_>,
        done: &Done<'_>,
        what: &str,
        id: &str,
        turn: Option<&str>,
    ) -> Result<String, WriteError> {
        let name = match what {
            "CommandExecution" => "exec_command",
            "FileChange" => "apply_patch",
            _ => done.tool.as_deref().unwrap_or(what),
        };
        let actor = if done.source.as_deref() == Some(USER_SHELL) { ActorKind::User } else { ActorKind::Harness };
        let action = self.calls.suppose(id, turn, here.copied, here.span);
        let mut args: Vec<(&str, &Raw<'_>)> = Vec::new();
        args.extend(done.command.as_ref().map(|c| ("command", c)));
        args.extend(done.cwd.as_ref().map(|c| ("cwd", c)));
        let args = Raw::of(&args.into_iter().collect::<std::collections::BTreeMap<_, _>>());
        let proposed = ActionProposed {
            action: action.clone().into(),
            name: name.to_owned().into(),
            args_digest: args_digest(&args).into(),
            args: Value::Inline(args),
            kind: Some(ActionKind::Job),
            effect: None,
            compensates: None,
        };
        self.emit_how(here, actor, proposed, Some(SrcHow::Synthesized))?;
        Ok(action)
    }

    fn spawned(&mut self, here: &mut Here<'_>, thread: &str, call: Option<&str>) -> Written {
        let action = call.map(|call| self.calls.action(call).unwrap_or_else(|| call.to_owned()));
        self.told_of.insert(thread.to_owned());
        let spawned = ChildSpawned {
            child: ids::log(&FORMAT, thread).into(),
            session: thread.to_owned().into(),
            action: action.map(Into::into),
            kind: ChildKind::Subagent,
            link: ChildLink::Explicit,
        };
        self.emit(here, ActorKind::Harness, spawned).map(drop)
    }
}

/// What was given back, whole: what the model was told may be less.
fn results<'d>(done: &'d Done<'_>) -> Option<Vec<Part<'d>>> {
    let mut parts = Vec::new();
    let texts = [&done.aggregated_output, &done.stdout, &done.stderr];
    let texts = if done.aggregated_output.is_some() { &texts[..1] } else { &texts[1..] };
    for text in texts.iter().filter_map(|t| t.as_ref()).filter(|t| t.is_string() && t.get() != "\"\"") {
        parts.push(Part::Text { text: Value::Inline(text.borrowed()) });
    }
    parts.extend(done.changes.as_ref().map(|c| Part::Json { value: Value::Inline(c.borrowed()) }));
    parts.extend(done.result.as_ref().map(|r| Part::Json { value: Value::Inline(r.borrowed()) }));
    parts.extend(done.content_items.as_ref().and_then(parse::<Vec<Raw<'_>>>).into_iter().flatten().map(dynamic));
    (!parts.is_empty()).then_some(parts)
}

/// An item of a dynamic tool's result, which is named in another style than those of the context.
fn dynamic(raw: Raw<'_>) -> Part<'_> {
    match parse::<crate::record::Content<'_>>(&raw).and_then(|c| c.text).map(Raw::into_owned) {
        Some(text) if text.is_string() => Part::Text { text: Value::Inline(text) },
        _ => Part::Json { value: Value::Inline(raw) },
    }
}

/// How something ended, by its own record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    At(Outcome, Applied),
    /// A person said no.
    Declined,
    /// It does not say.
    Open,
}

fn by_status(done: &Done<'_>) -> Option<bool> {
    match done.status.as_deref() {
        Some("completed") => Some(true),
        Some("failed") => Some(false),
        _ => None,
    }
}

fn command(done: &Done<'_>) -> End {
    match (done.status.as_deref(), done.exit_code) {
        (Some("declined"), None) => End::Declined,
        // What was refused has no code.
        (Some("declined" | "in_progress"), _) => End::Open,
        (None | Some("completed"), Some(0)) => End::At(Outcome::Succeeded, Applied::Yes),
        // Killed commands have the code -1.
        (_, Some(code)) if code != 0 => End::At(Outcome::Failed, Applied::Yes),
        (Some("failed"), None) => End::At(Outcome::Failed, Applied::Unknown),
        _ => End::Open,
    }
}

fn patch(done: &Done<'_>) -> End {
    match (done.status.as_deref(), done.success) {
        (Some("declined"), None | Some(false)) => End::Declined,
        (Some("completed"), None | Some(true)) | (None, Some(true)) => End::At(Outcome::Succeeded, Applied::Yes),
        // Some of its files may have been changed.
        (Some("failed"), _) | (None, Some(false)) => End::At(Outcome::Failed, Applied::Unknown),
        _ => End::Open,
    }
}

/// A tool of a server: its answer says that it ran, an error of the connection does not say how far.
fn tool(done: &Done<'_>) -> End {
    /// What a server answered; of older clients in `Ok`, or what went wrong in `Err`.
    #[derive(Default, serde::Deserialize)]
    #[serde(bound(deserialize = "'de: 'a"))]
    struct Answer<'a> {
        content: Option<Raw<'a>>,
        #[serde(rename = "structuredContent")]
        structured: Option<Raw<'a>>,
        #[serde(rename = "isError", alias = "is_error")]
        is_error: Option<bool>,
        #[serde(rename = "Ok")]
        ok: Option<Raw<'a>>,
        #[serde(rename = "Err")]
        err: Option<Raw<'a>>,
    }
    let outer: Answer<'_> = done.result.as_ref().and_then(parse).unwrap_or_default();
    let inner: Option<Answer<'_>> = outer.ok.as_ref().map(|ok| parse(ok).unwrap_or_default());
    let answered = inner.is_some() || outer.content.is_some() || outer.structured.is_some();
    let failed = inner.as_ref().unwrap_or(&outer).is_error == Some(true);
    match (done.status.as_deref(), answered) {
        (Some("completed"), _) => End::At(Outcome::Succeeded, Applied::Yes),
        (Some("failed"), true) => End::At(Outcome::Failed, Applied::Yes),
        (Some("failed"), false) => End::At(Outcome::Failed, Applied::Unknown),
        (None, true) if failed => End::At(Outcome::Failed, Applied::Yes),
        (None, true) => End::At(Outcome::Succeeded, Applied::Yes),
        (None, false) if outer.err.is_some() => End::At(Outcome::Failed, Applied::Unknown),
        _ => End::Open,
    }
}
