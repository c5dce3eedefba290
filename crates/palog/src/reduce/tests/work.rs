//! Tasks, plans and commands.

use serde_json::json;

use super::{Log, get};
use crate::diagnostic::{Code, Severity};
use crate::events::StepStatus;
use crate::state::{ActionState, ApprovalStatus, CommandStatus, Count, TaskStatus};

fn live() -> Log {
    Log::live().prompt("p").task("t")
}

fn found(log: &Log) -> Vec<(Code, Severity)> {
    log.reduce().1.groups().iter().map(|g| (g.code, g.severity)).collect()
}

fn task(log: &Log) -> (TaskStatus, bool, u64) {
    let state = log.state();
    let task = state.task("t").expect("it was opened");
    (task.status, task.replanning, task.plan_revision.0)
}

fn steps(log: &Log) -> Vec<(String, StepStatus)> {
    log.state().tasks.remove(0).steps.into_iter().map(|s| (s.step, s.status)).collect()
}

/// R-WRK-001
#[test]
fn an_action_belongs_to_the_task_of_the_attempt_that_started_last() {
    let of = |log: &Log, id: &str| get(&log.state(), id).task.clone();
    let log = Log::live().prompt("p").call("r", "before", "pure").task("t").call("r", "a", "pure");
    let log = log.add("attempt.started", json!({"attempt": "v/1", "task": "v", "worker": "w"})).call("r", "b", "pure");
    let log = log.add("attempt.ended", json!({"attempt": "v/1", "how": "complete"})).call("r", "c", "pure");
    let log = log.add("attempt.ended", json!({"attempt": "t/1", "how": "lost"})).call("r", "d", "pure");
    let tasks = ["before", "a", "b", "c", "d"].map(|id| of(&log, id));
    let is = |task: &str| Some(task.to_owned());
    assert_eq!(tasks, [None, is("t"), is("v"), is("t"), None]);
}

/// R-WRK-002
#[test]
fn a_plan_that_is_not_newer_is_void() {
    let log = live().plan("t", 3);
    assert_eq!((task(&log).2, found(&log)), (3, vec![]));
    for old in [2, 3] {
        let late = log.clone().add("plan.revised", json!({"task": "t", "revision": old, "steps": []}));
        assert_eq!((steps(&late).len(), found(&late)), (2, vec![(Code::StalePlan, Severity::Void)]));
        assert!(late.state().indeterminate.is_empty());
    }
}

/// R-WRK-003
#[test]
fn a_new_plan_keeps_what_was_verified_and_no_leave() {
    let step = |log: Log, step: &str, verified: bool| {
        log.add("step.changed", json!({"task": "t", "step": step, "status": "done", "verified": verified}))
    };
    let log = step(step(live(), "s", true), "u", false).plan("t", 2);
    assert_eq!(steps(&log), [("s".into(), StepStatus::Done), ("u".into(), StepStatus::Pending)]);
    let artifact = json!({"artifact": "x", "digest": "sha256:0", "verified": true});
    let by_artifact = live()
        .add("artifact.recorded", artifact)
        .add("step.changed", json!({"task": "t", "step": "u", "status": "done", "artifact": "x"}))
        .plan("t", 2);
    assert_eq!(steps(&by_artifact)[1].1, StepStatus::Done);
    let asked = live().call("r", "a", "write_remote").ask("x", "a");
    let granted = asked.clone().decide("x", "granted");
    assert_eq!((asked.is("a"), granted.is("a")), (ActionState::Awaiting, ActionState::Approved));
    for log in [asked, granted] {
        let log = log.plan("t", 2);
        assert_eq!((log.is("a"), log.approvals()), (ActionState::Lapsed, vec![("x".into(), ApprovalStatus::Lapsed)]));
        let cause = json!({"id": "again", "cause": ["e8"]});
        let anew = log.with("approval.requested", json!({"approval": "y", "kind": "permission", "action": "a"}), cause);
        let anew = anew.decide("y", "granted");
        assert_eq!(anew.is("a"), ActionState::Approved, "{}", anew.text());
    }
    let begun = live().call("r", "a", "write_remote").ask("x", "a").decide("x", "granted").start("a").plan("t", 2);
    assert_eq!((begun.is("a"), begun.approvals()[0].1), (ActionState::Running, ApprovalStatus::Granted));
    let denied = live().call("r", "a", "write_remote").ask("x", "a").decide("x", "denied").plan("t", 2);
    assert_eq!(denied.is("a"), ActionState::Denied);
    let elsewhere = Log::live().prompt("p").call("r", "a", "write_remote").ask("x", "a").task("t").plan("t", 2);
    assert_eq!(elsewhere.is("a"), ActionState::Awaiting, "it is not of this task");
}

/// R-WRK-004
#[test]
fn a_command_is_applied_once_however_often_it_is_delivered() {
    let issue = json!({"command": "c", "task": "t", "operation": "pause"});
    let log = live().command("c", "t", "pause").add("command.issued", issue);
    assert_eq!((log.state().commands.len(), found(&log)), (1, vec![(Code::CommandRepeated, Severity::Warning)]));
    let resumed = log.command("d", "t", "resume").add("command.ended", json!({"command": "c", "outcome": "applied"}));
    assert_eq!(task(&resumed).0, TaskStatus::Open, "the pause does not come back");
    let first = live().command("c", "t", "pause").add("command.ended", json!({"command": "c", "outcome": "rejected"}));
    assert_eq!(first.state().commands[0].status, CommandStatus::Applied);
}

/// R-WRK-005
#[test]
fn a_command_for_another_plan_is_not_applied() {
    let issue = |expected: u64| {
        let data = json!({"command": "c", "task": "t", "operation": "cancel", "expected_plan_revision": expected});
        live().add("command.issued", data)
    };
    let end = |log: Log| log.add("command.ended", json!({"command": "c", "outcome": "applied"}));
    assert!(!issue(1).state().commands[0].stale);
    assert_eq!(task(&end(issue(1))).0, TaskStatus::Cancelled);
    for log in [issue(0), issue(2), issue(1).plan("t", 2)] {
        assert!(log.state().commands[0].stale);
        let log = end(log);
        assert_eq!((task(&log).0, log.state().commands[0].status), (TaskStatus::Open, CommandStatus::Rejected));
        assert_eq!(found(&log), [(Code::StaleCommand, Severity::Void)]);
    }
    let rejected = issue(0).add("command.ended", json!({"command": "c", "outcome": "rejected"}));
    assert!(found(&rejected).is_empty(), "that is how it has to end");
}

/// R-WRK-006
#[test]
fn a_command_has_its_effect_when_it_ends_as_applied() {
    let issued = live().add("command.issued", json!({"command": "c", "task": "t", "operation": "cancel"}));
    assert_eq!(task(&issued).0, TaskStatus::Open);
    let after = |operation: &str| task(&live().command("c", "t", operation));
    assert_eq!(after("pause"), (TaskStatus::Paused, false, 1));
    assert_eq!(after("cancel"), (TaskStatus::Cancelled, false, 1));
    assert_eq!(after("replan"), (TaskStatus::Open, true, 1));
    assert_eq!(after("suspend_and_replan"), (TaskStatus::Paused, true, 1));
    let planned = live().command("c", "t", "suspend_and_replan").plan("t", 2);
    assert_eq!(task(&planned), (TaskStatus::Paused, false, 2));
    assert_eq!(task(&planned.command("d", "t", "resume")), (TaskStatus::Open, false, 2));
    for operation in ["cancel", "replan", "suspend_and_replan"] {
        let log = live().call("r", "a", "write_remote").ask("x", "a").command("c", "t", operation);
        assert_eq!(log.is("a"), ActionState::Lapsed, "{operation}");
    }
    let closed = live().command("c", "t", "cancel").command("d", "t", "resume");
    assert_eq!(task(&closed).0, TaskStatus::Cancelled, "a closed task stays what it is");
}

/// R-WRK-006
#[test]
fn an_answer_is_given_and_a_session_taken_over_by_command() {
    let asks = Log::live().prompt("p").task("t").call_of("r", "q", json!({"kind": "question"}));
    let answer = json!({"command": "c", "task": "t", "operation": "answer_question", "approval": "q", "input": "yes"});
    let issued = asks.add("command.issued", answer);
    assert_eq!(issued.approvals()[0].1, ApprovalStatus::Open);
    let answered = issued.add("command.ended", json!({"command": "c", "outcome": "applied"}));
    assert_eq!(answered.approvals()[0].1, ApprovalStatus::Answered);
    let taken = Log::live().prompt("p").lease(3).task("t").command("c", "t", "take_over");
    assert_eq!((taken.state().epoch, taken.state().lease), (Some(Count(4)), None));
    let late = taken.call("r", "a", "pure").under(3, "action.started", json!({"action": "a"}));
    assert_eq!(late.is("a"), ActionState::Proposed, "the old holder is out");
    let by_issuer = Log::live()
        .prompt("p")
        .lease(3)
        .add("command.issued", json!({"command": "c", "task": "t", "operation": "take_over"}));
    let by_issuer = by_issuer.lease(4).under(4, "command.ended", json!({"command": "c", "outcome": "applied"}));
    assert_eq!(by_issuer.state().lease.map(|lease| lease.epoch), Some(Count(4)), "the issuer's own lease stands");
}

/// R-WRK-007
#[test]
fn what_is_told_of_something_unknown_is_reported() {
    let cases = [
        ("task.closed", json!({"task": "x", "how": "complete"})),
        ("attempt.ended", json!({"attempt": "x", "how": "lost"})),
        ("step.changed", json!({"task": "t", "step": "x", "status": "done"})),
        ("command.ended", json!({"command": "x", "outcome": "applied"})),
        ("resource.released", json!({"resource": "x"})),
        ("plan.revised", json!({"task": "t", "revision": 2, "steps": [{"step": "s", "needs": ["x"]}]})),
        ("source.changed", json!({"source": "x", "how": "gap"})),
    ];
    for (kind, data) in cases {
        assert_eq!(found(&live().add(kind, data)), [(Code::UnknownSubject, Severity::Warning)], "{kind}");
    }
    assert_eq!(steps(&live().add("step.changed", json!({"task": "t", "step": "x", "status": "done"}))).len(), 3);
}
