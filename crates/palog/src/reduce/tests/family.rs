//! Forks and continuations.

use serde_json::json;

use super::{ALL, Log, get, merge};
use crate::diagnostic::{Code, Diagnostics, Severity};
use crate::reader::{Item, Reader};
use crate::reduce::{Reducer, reduce_with_parent};
use crate::state::{ActionState, ApprovalStatus, Count, PendingKind, State};

fn take(reducer: &mut Reducer, log: &Log) {
    let text = log.text();
    let mut reader = Reader::new(text.as_bytes());
    while let Some(Item::Event(event, line)) = reader.next().expect("memory can be read") {
        reducer.apply(&event, Some(&line));
    }
}

/// Reduces `child` with its parent at hand.
fn with_parent(parent: &Log, child: &Log) -> (State, Diagnostics) {
    let mut reducer = Reducer::new();
    take(&mut reducer, parent);
    let mut reducer = Reducer::after_parent(reducer);
    take(&mut reducer, child);
    reducer.finish()
}

/// A log with the id `m` that comes out of `l`.
fn child(mode: &str, more: serde_json::Value) -> Log {
    let mut parent = json!({"log": "l", "mode": mode, "event": "e5"});
    merge(&mut parent, more);
    let data = json!({"spec": "1.0", "session": "m", "agent": {"name": "test"}, "records": ALL, "parent": parent});
    Log::default().with("log.opened", data, json!({"log": "m"}))
}

fn own(log: Log, kind: &str, data: serde_json::Value) -> Log {
    let id = format!("m{}", log.lines.len());
    log.with(kind, data, json!({"log": "m", "id": id}))
}

fn parent() -> Log {
    Log::live().prompt("p").call("r", "a", "write_remote").start("a").call("r", "b", "write_remote").ask("x", "b")
}

/// R-FAM-001
#[test]
fn a_log_goes_on_from_its_parents_state_or_says_that_history_is_missing() {
    let alone = child("fork", json!({})).reduce();
    assert_eq!(alone.1.groups().iter().map(|g| g.code).collect::<Vec<_>>(), [Code::ParentMissing]);
    assert!(alone.0.actions.is_empty() && !alone.0.parent.expect("a parent").at_hand);
    let (state, found) = with_parent(&parent(), &child("fork", json!({})));
    assert!(found.is_empty(), "{found:?}");
    assert!(state.parent.as_ref().expect("a parent").at_hand);
    assert_eq!((state.log.as_deref(), state.session.as_deref()), (Some("m"), Some("m")));
    assert_eq!((state.counts.messages, state.counts.events), (Count(0), Count(1)), "that was counted there");
    assert_eq!(state.pending.first().map(|p| p.kind), Some(PendingKind::Prompt), "the prompt has no answer here");
    let copied = child("fork", json!({})).user("c", json!({"log": "m", "copy": {"log": "l", "how": "fork"}}));
    assert!(copied.codes().is_empty(), "it holds that history itself");
    let stranger = {
        let mut other = parent();
        other.lines.iter_mut().for_each(|line| *line = line.replace("\"log\":\"l\"", "\"log\":\"k\""));
        with_parent(&other, &child("fork", json!({}))).0
    };
    assert!(stranger.actions.is_empty(), "another log is no parent");
}

/// R-FAM-001
#[test]
fn a_parent_counts_up_to_the_event_that_is_named() {
    let reduced = |child: &Log| {
        let (parent, child) = (parent(), child.text());
        reduce_with_parent(parent.text().as_bytes(), child.as_bytes()).expect("memory can be read").0
    };
    let at = |event: &str| reduced(&child("fork", json!({"event": event})));
    // e4 proposes a, e5 starts it.
    assert_eq!(at("e4").actions.iter().map(|a| a.state).collect::<Vec<_>>(), [ActionState::Proposed]);
    assert_eq!(at("e5").actions.iter().map(|a| a.state).collect::<Vec<_>>(), [ActionState::Running]);
    let elsewhere = at("e99");
    assert!(elsewhere.actions.is_empty() && !elsewhere.parent.expect("a parent").at_hand);
    let mut whole = child("fork", json!({}));
    whole.lines[0] = whole.lines[0].replace("\"event\":\"e5\",", "");
    assert_eq!(reduced(&whole).actions.len(), 2);
    let spawned = reduced(&child("spawn", json!({"event": "e5"})));
    assert!(spawned.actions.is_empty(), "a child agent begins anew");
}

/// R-FAM-001
#[test]
fn what_comes_in_the_child_comes_after_all_of_the_parent() {
    let long = (0..9).fold(parent(), |log, n| log.add("note.added", json!({"kind": format!("n{n}")})));
    let answered =
        own(child("fork", json!({})), "message.added", json!({"role": "assistant", "response": "r9", "parts": []}));
    let answered = own(answered, "turn.ended", json!({"how": "complete"}));
    let (state, _) = with_parent(&long, &answered);
    assert!(state.pending.is_empty(), "{:?}", state.pending);
    assert_eq!(state.counts.responses, Count(1));
    assert_eq!(state.head.as_deref(), Some("m1"));
}

/// R-FAM-002
#[test]
fn a_fork_inherits_and_a_continuation_takes_over() {
    let before = parent()
        .lease(2)
        .add("grant.added", json!({"grant": "g"}))
        .task("t")
        .add("resource.acquired", json!({"resource": "l", "kind": "lock"}))
        .add("input.queued", json!({"input": "i", "parts": []}));
    let (fork, _) = with_parent(&before, &child("fork", json!({})));
    assert!(fork.actions.iter().all(|action| action.inherited));
    assert_eq!(get(&fork, "b").state, ActionState::Lapsed);
    assert_eq!(fork.approvals[0].status, ApprovalStatus::Lapsed);
    assert!(fork.grants.is_empty() && fork.attempts.is_empty() && fork.resources.is_empty() && fork.inputs.is_empty());
    assert_eq!((fork.epoch, fork.lease, fork.tasks.len()), (None, None, 1));
    let (state, found) = with_parent(&before, &child("continue", json!({})));
    assert!(state.actions.iter().all(|action| !action.inherited));
    assert_eq!((get(&state, "a").state, get(&state, "b").state), (ActionState::Running, ActionState::Awaiting));
    assert_eq!((state.grants.len(), state.resources.len(), state.inputs.len()), (1, 1, 1));
    assert!(state.lease.is_some(), "the old holder may be alive");
    assert_eq!(state.parent.as_ref().and_then(|parent| parent.handed_over), Some(false));
    assert_eq!(found.count(Severity::Error), 0);
    let handed = |parent: &Log, child: &Log| with_parent(parent, child).0.parent.and_then(|parent| parent.handed_over);
    let transferred = before.clone().under(2, "log.closed", json!({"how": "transferred"}));
    assert_eq!(handed(&transferred, &child("continue", json!({}))), Some(true));
    assert_eq!(with_parent(&transferred, &child("continue", json!({}))).0.closed, None);
    let lease =
        |epoch: u64| own(child("continue", json!({})), "lease.acquired", json!({"epoch": epoch, "holder": "w"}));
    assert_eq!((handed(&before, &lease(3)), handed(&before, &lease(2))), (Some(true), Some(false)));
    assert_eq!(child("continue", json!({})).state().parent.and_then(|parent| parent.handed_over), None);
    let silent = child("continue", json!({}));
    let silent = Log { lines: vec![silent.lines[0].replace("\"action.started\",", "")] };
    let idle = Log::live().prompt("p").call("r", "a", "write_remote");
    assert_eq!(
        get(&with_parent(&idle, &silent).0, "a").state,
        ActionState::Unknown,
        "its start would leave no trace now"
    );
}

/// R-FAM-003
#[test]
fn a_fork_in_its_parents_workspace_is_indeterminate_after_a_write_until_it_is_recorded() {
    let fork = |workspace: &str| child("fork", json!({"workspace": workspace}));
    let propose = |log: Log, class: &str| {
        let data = super::proposal("w", json!({"effect": {"class": class}}));
        own(log, "action.proposed", data)
    };
    let start = |log: Log| own(log, "action.started", json!({"action": "w"}));
    let codes = |log: &Log| with_parent(&parent(), log).0.indeterminate.iter().map(|r| r.code).collect::<Vec<_>>();
    let wrote = start(propose(fork("same"), "write_local"));
    assert_eq!(codes(&wrote), [Code::SharedWorkspace]);
    assert_eq!(with_parent(&parent(), &wrote).1.count(Severity::Error), 1);
    assert_eq!(codes(&start(propose(fork("same"), "unknown"))), [Code::SharedWorkspace]);
    assert!(codes(&propose(fork("same"), "write_local")).is_empty(), "it was not started");
    assert!(codes(&start(propose(fork("same"), "read_local"))).is_empty());
    assert!(codes(&start(propose(fork("same"), "write_remote"))).is_empty());
    for workspace in ["copy", "checkpoint", "none"] {
        assert!(codes(&start(propose(fork(workspace), "write_local"))).is_empty(), "{workspace}");
    }
    let torn = wrote.clone().line(r#"{"palog":1}"#);
    let (state, _) = super::stepwise(&torn.text());
    assert_eq!(state, torn.state(), "also where a line that is no event follows");
    let recorded = own(wrote, "workspace.recorded", json!({"revision": "1"}));
    assert!(codes(&recorded).is_empty());
    let again = own(recorded, "action.ended", json!({"action": "w", "outcome": "succeeded", "applied": "yes"}));
    assert_eq!(codes(&again), [Code::SharedWorkspace]);
    let silent = Log { lines: vec![fork("same").lines[0].replace("\"action.started\",", "")] };
    assert_eq!(codes(&propose(silent, "write_local")), [Code::SharedWorkspace], "it may have run");
}
