//! Small logs, written line by line, and what they reduce to.

mod actions;
mod family;
mod held;
mod invariants;
mod log;
mod turns;
mod work;

use serde_json::{Value, json};

use super::{Reducer, reduce};
use crate::diagnostic::{Code, Diagnostics};
use crate::reader::{Item, Reader};
use crate::recover::{Context, Recovery, recover};
use crate::state::{Action, ActionState, Approval, ApprovalStatus, PendingKind, State};

/// A log under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) lines: Vec<String>,
}

/// Everything that a source can record.
pub(crate) const ALL: &[&str] = &[
    "action.proposed",
    "action.started",
    "action.ended",
    "approval.requested",
    "approval.ended",
    "input.queued",
    "input.ended",
    "turn.ended",
    "lease",
    "child.ended",
    "usage",
    "workspace",
];

impl Log {
    /// A log whose writer records everything.
    pub(crate) fn live() -> Self {
        Log::opened(json!({"records": ALL}))
    }

    /// A log made from one source, `main`, that records `records`.
    pub(crate) fn imported(records: &[&str]) -> Self {
        Log::opened(json!({"derived": {"mapping": "test/1"}})).source("main", records)
    }

    pub(crate) fn opened(more: Value) -> Self {
        let mut data = json!({"spec": "1.0", "session": "s", "agent": {"name": "test"}});
        merge(&mut data, more);
        Log::default().add("log.opened", data)
    }

    pub(crate) fn source(self, name: &str, records: &[&str]) -> Self {
        let data = json!({
            "source": name, "vendor": "test", "locator": format!("{name}.jsonl"), "records": records, "kept": true, "order": "source"
        });
        self.add("source.opened", data)
    }

    /// Adds an event; its id is `e` and its seq.
    pub(crate) fn add(self, kind: &str, data: Value) -> Self {
        self.with(kind, data, json!({}))
    }

    /// Adds an event with further members of the envelope, or others in place of the usual ones.
    pub(crate) fn with(mut self, kind: &str, data: Value, more: Value) -> Self {
        let seq = self.lines.len();
        let mut event = json!({
            "log": "l", "seq": seq, "id": format!("e{seq}"), "type": kind, "time": null, "actor": {"kind": "harness"}, "data": data
        });
        merge(&mut event, more);
        self.lines.push(line_of(event));
        self
    }

    /// Adds a line as it stands.
    pub(crate) fn line(mut self, line: &str) -> Self {
        self.lines.push(line.to_owned());
        self
    }

    /// Adds an event under an epoch.
    pub(crate) fn under(self, epoch: u64, kind: &str, data: Value) -> Self {
        self.with(kind, data, json!({"epoch": epoch}))
    }

    /// A lease without an end, taken by `w` and its epoch.
    pub(crate) fn lease(self, epoch: u64) -> Self {
        self.under(epoch, "lease.acquired", json!({"epoch": epoch, "holder": format!("w{epoch}")}))
    }

    /// A task with a plan of the steps `s` and `u`, and an attempt at it.
    pub(crate) fn task(self, task: &str) -> Self {
        self.add("task.opened", json!({"task": task, "goal": "it"}))
            .plan(task, 1)
            .add("attempt.started", json!({"attempt": format!("{task}/1"), "task": task, "worker": "w"}))
    }

    /// A plan of the steps `s` and `u`.
    pub(crate) fn plan(self, task: &str, revision: u64) -> Self {
        let steps = json!([{"step": "s"}, {"step": "u", "needs": ["s"]}]);
        self.add("plan.revised", json!({"task": task, "revision": revision, "steps": steps}))
    }

    /// A command and its end.
    pub(crate) fn command(self, command: &str, task: &str, operation: &str) -> Self {
        self.add("command.issued", json!({"command": command, "task": task, "operation": operation}))
            .add("command.ended", json!({"command": command, "outcome": "applied"}))
    }

    /// A prompt and the turn that it starts.
    pub(crate) fn prompt(self, id: &str) -> Self {
        self.user(id, json!({})).add("turn.started", json!({"message": id}))
    }

    /// A message of the user that starts no turn.
    pub(crate) fn user(self, id: &str, more: Value) -> Self {
        let mut event = json!({"id": id, "actor": {"kind": "user"}});
        merge(&mut event, more);
        self.with("message.added", json!({"role": "user", "parts": [{"type": "text", "text": "do"}]}), event)
    }

    /// A message of the model with text alone.
    pub(crate) fn says(self, response: &str) -> Self {
        let data = json!({"role": "assistant", "response": response, "parts": [{"type": "text", "text": "so"}]});
        self.with("message.added", data, json!({"actor": {"kind": "model"}}))
    }

    /// What is known of a response.
    pub(crate) fn stop(self, response: &str, stop: &str) -> Self {
        self.add("model.response", json!({"response": response, "stop": stop}))
    }

    /// A whole answer.
    pub(crate) fn answer(self, response: &str) -> Self {
        self.says(response).stop(response, "end_turn")
    }

    /// A message of the model with a call, and the action.
    pub(crate) fn call(self, response: &str, action: &str, class: &str) -> Self {
        self.call_of(response, action, json!({"effect": {"class": class}}))
    }

    pub(crate) fn call_of(self, response: &str, action: &str, more: Value) -> Self {
        let data = json!({"role": "assistant", "response": response, "parts": [{"type": "action", "action": action}]});
        self.with("message.added", data, json!({"actor": {"kind": "model"}})).propose(action, more)
    }

    pub(crate) fn propose(self, action: &str, more: Value) -> Self {
        self.add("action.proposed", proposal(action, more))
    }

    pub(crate) fn start(self, action: &str) -> Self {
        self.add("action.started", json!({"action": action}))
    }

    pub(crate) fn end(self, action: &str, outcome: &str, applied: &str) -> Self {
        self.add("action.ended", json!({"action": action, "outcome": outcome, "applied": applied}))
    }

    pub(crate) fn result(self, action: &str, last: bool) -> Self {
        let part = json!({"type": "result", "action": action, "parts": [], "final": last});
        self.with("message.added", json!({"role": "tool", "parts": [part]}), json!({"actor": {"kind": "tool"}}))
    }

    pub(crate) fn ask(self, approval: &str, action: &str) -> Self {
        self.add("approval.requested", json!({"approval": approval, "kind": "permission", "action": action}))
    }

    pub(crate) fn decide(self, approval: &str, outcome: &str) -> Self {
        self.add("approval.ended", json!({"approval": approval, "outcome": outcome}))
    }

    pub(crate) fn reconcile(self, action: &str, outcome: &str, basis: &str) -> Self {
        self.add("action.reconciled", json!({"action": action, "outcome": outcome, "basis": basis}))
    }

    pub(crate) fn text(&self) -> String {
        self.lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }

    pub(crate) fn reduce(&self) -> (State, Diagnostics) {
        reduce(self.text().as_bytes()).expect("memory can be read")
    }

    pub(crate) fn state(&self) -> State {
        self.reduce().0
    }

    pub(crate) fn recovery(&self) -> Recovery {
        recover(&self.state(), &Context::new())
    }

    /// The state and the doubt of an action, as words.
    pub(crate) fn judged(&self, action: &str) -> (ActionState, String) {
        let state = self.state();
        let action = get(&state, action);
        (action.state, action.doubt.map_or_else(String::new, |d| d.to_string()))
    }

    pub(crate) fn is(&self, action: &str) -> ActionState {
        self.judged(action).0
    }

    /// What is pending: kind and event.
    pub(crate) fn pending(&self) -> Vec<(PendingKind, String)> {
        self.state().pending.into_iter().map(|p| (p.kind, p.event)).collect()
    }

    pub(crate) fn codes(&self) -> Vec<Code> {
        self.reduce().1.groups().iter().map(|g| g.code).collect()
    }

    pub(crate) fn approvals(&self) -> Vec<(String, ApprovalStatus)> {
        self.state().approvals.into_iter().map(|Approval { approval, status, .. }| (approval, status)).collect()
    }
}

/// The line of an event: the version comes first.
pub(crate) fn line_of(mut event: Value) -> String {
    let palog = event.as_object_mut().and_then(|event| event.remove("palog")).unwrap_or(json!(1));
    event.to_string().replacen('{', &format!("{{\"palog\":{palog},"), 1)
}

/// The payload of a proposal, whose arguments are the name of the action where nothing else is said.
pub(crate) fn proposal(action: &str, more: Value) -> Value {
    let mut data = json!({"action": action, "name": "tool", "args": action});
    merge(&mut data, more);
    if data.get("args_digest").is_none() {
        data["args_digest"] = digest_of(&data["args"]).into();
    }
    data
}

/// The digest of arguments.
pub(crate) fn digest_of(args: &Value) -> String {
    crate::blob::digest(args.to_string().as_bytes())
}

pub(crate) fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}

pub(crate) fn get<'s>(state: &'s State, action: &str) -> &'s Action {
    state.action(action).unwrap_or_else(|| panic!("no action {action}"))
}

/// Reduces step by step, asking for the state after each event.
pub(crate) fn stepwise(text: &str) -> (State, Diagnostics) {
    let mut reader = Reader::new(text.as_bytes());
    let mut reducer = Reducer::new();
    while let Some(item) = reader.next().expect("memory can be read") {
        match item {
            Item::Event(event, line) => reducer.apply(&event, Some(&line)),
            Item::Fault(fault) => reducer.fault(fault),
        }
        let _ = reducer.state();
    }
    reducer.finish()
}
