//! Leases, admission, tasks, checkpoints, children and what is held.

use serde_json::{Value, json};

use super::*;
use crate::recover::{Environment, SubjectKind, WorkspaceNow};

fn task() -> Log {
    Log::live().prompt("p").task("t")
}

fn ready() -> Log {
    live()
}

fn environment() -> Environment {
    Environment::default()
}

fn within(log: &Log, environment: &Environment) -> Recovery {
    recover(&log.state(), &Context::new().within(environment))
}

fn at(log: &Log, now: &str) -> Recovery {
    recover(&log.state(), &Context::new().at(Time::parse(now).expect("a time")))
}

/// R-REC-028
#[test]
fn a_lease_is_live_until_it_is_released_overtaken_or_over_by_the_clock() {
    let lease = json!({"epoch": 1, "holder": "w1", "ttl": 60});
    let log = ready().with("lease.acquired", lease, json!({"epoch": 1, "time": "2026-11-29T12:00:00Z"}));
    let verdicts = |now: &str| (at(&log, now).verdict, at(&log, now).rule);
    assert_eq!(verdicts("2026-11-29T12:00:59Z"), (Verdict::Owned, "R-REC-003".into()));
    assert_eq!(verdicts("2026-11-29T12:01:00Z").0, Verdict::Ready);
    verdict(&log, Verdict::Owned, "R-REC-003");
    assert_eq!(owed(&log.recovery(), "s"), [(Decision::Wait, "R-REC-003".to_owned(), true)]);
    assert!(log.recovery().obligations.iter().all(|o| o.decision == Decision::Wait), "its work is the holder's");
    let own = Environment { epoch: Some(1), ..environment() };
    assert_eq!(within(&log, &own).verdict, Verdict::Ready, "it is the caller's own");
    verdict(&log.clone().under(1, "lease.released", json!({"epoch": 1})), Verdict::Ready, "R-REC-006");
    verdict(&log.clone().under(2, "note.added", json!({"kind": "import"})), Verdict::Ready, "R-REC-006");
    verdict(&log.under(1, "log.closed", json!({"how": "transferred"})), Verdict::Closed, "R-REC-002");
    verdict(&ready().lease(1), Verdict::Owned, "R-REC-003");
}

/// R-REC-029
#[test]
fn work_goes_on_only_where_everything_is_as_recorded() {
    let log = || {
        live()
            .add("config.set", json!({"policy_revision": "p1", "manifest_digest": "sha256:m"}))
            .add("workspace.recorded", json!({"revision": "1", "dirty": false, "digest": "sha256:w"}))
            .add("resource.acquired", json!({"resource": "k", "kind": "lock"}))
            .add("resource.acquired", json!({"resource": "tree", "kind": "worktree"}))
            .under(5, "lease.acquired", json!({"epoch": 5, "holder": "w"}))
            .under(5, "lease.released", json!({"epoch": 5}))
            .under(5, "checkpoint.created", json!({"checkpoint": "c", "at": 1, "steps": [], "effects": []}))
            .under(5, "checkpoint.restored", json!({"checkpoint": "c"}))
    };
    let good = || Environment {
        epoch: Some(6),
        policy_revision: Some("p1".into()),
        manifest_digest: Some("sha256:m".into()),
        tools: Some(vec!["tool".into()]),
        workspace: Some(WorkspaceNow {
            revision: Some("1".into()),
            dirty: Some(false),
            digest: Some("sha256:w".into()),
        }),
        resources: Some(vec!["k".into()]),
        checkpoints: Some(vec!["c".into()]),
    };
    for environment in [good(), environment()] {
        let recovery = within(&log(), &environment);
        assert_eq!(recovery.verdict, Verdict::Ready, "{recovery:#?}");
        assert!(recovery.obligations.iter().any(|o| o.decision == Decision::Run));
    }
    let workspace = |now: WorkspaceNow| Environment { workspace: Some(now), ..good() };
    let bad = [
        (Environment { epoch: Some(4), ..good() }, "epoch 4"),
        (Environment { policy_revision: Some("p2".into()), ..good() }, "policy revision is p2"),
        (Environment { manifest_digest: Some("sha256:n".into()), ..good() }, "manifest is sha256:n"),
        (Environment { tools: Some(vec![]), ..good() }, "tool is not at hand"),
        (workspace(WorkspaceNow { revision: Some("2".into()), ..WorkspaceNow::default() }), "revision is 2"),
        (workspace(WorkspaceNow { dirty: Some(true), ..WorkspaceNow::default() }), "workspace is dirty"),
        (workspace(WorkspaceNow { digest: Some("sha256:v".into()), ..WorkspaceNow::default() }), "digest is sha256:v"),
        (Environment { resources: Some(vec!["tree".into()]), ..good() }, "lock k is not held"),
        (Environment { checkpoints: Some(vec![]), ..good() }, "checkpoint c is not at hand"),
    ];
    for (environment, says) in bad {
        let recovery = within(&log(), &environment);
        assert_eq!((recovery.verdict, recovery.rule.as_str()), (Verdict::AwaitingHuman, "R-REC-005"), "{says}");
        let [admission] = recovery.obligations.as_slice() else { panic!("{says}: {recovery:#?}") };
        assert!(admission.reason.contains(says), "{says}: {}", admission.reason);
        assert_eq!(
            (admission.decision, admission.rule.as_str(), admission.blocking),
            (Decision::Ask, "R-REC-029", true)
        );
        assert_eq!(admission.subject.kind, SubjectKind::Session);
    }
    let idle = Log::live().add("config.set", json!({"policy_revision": "p1"}));
    let other = Environment { policy_revision: Some("p2".into()), ..environment() };
    assert_eq!(within(&idle, &other).verdict, Verdict::Idle, "there is nothing to admit");
}

/// R-REC-030
#[test]
fn a_paused_task_goes_on_only_when_a_person_says_so() {
    let log = task().command("c", "t", "pause");
    verdict(&log, Verdict::AwaitingHuman, "R-REC-005");
    owes(&log, "t", Decision::Ask, "R-REC-030", true);
    verdict(&log.command("d", "t", "resume"), Verdict::Ready, "R-REC-006");
}

/// R-REC-031
#[test]
fn a_cancelled_task_is_finished_when_nothing_of_it_is_left() {
    let base = || {
        task()
            .call("r", "a", "write_remote")
            .ask("x", "a")
            .call("r", "b", "write_remote")
            .start("b")
            .add("grant.added", json!({"grant": "g", "task": "t"}))
            .add("resource.acquired", json!({"resource": "k", "kind": "token", "task": "t"}))
            .command("c", "t", "cancel")
    };
    owes(&base(), "a", Decision::Skip, "R-REC-031", false);
    owes(&base(), "b", Decision::Reconcile, "R-REC-008", true);
    owes(&base(), "t/1", Decision::Reconcile, "R-REC-031", true);
    owes(&base(), "g", Decision::Release, "R-REC-031", false);
    owes(&base(), "k", Decision::Release, "R-REC-031", false);
    assert!(owed(&base().recovery(), "x").is_empty(), "nobody has to answer any more");
    verdict(&base(), Verdict::NeedsReconcile, "R-REC-004");
    let ended = base().add("attempt.ended", json!({"attempt": "t/1", "how": "cancelled"}));
    assert!(owed(&ended.recovery(), "t/1").is_empty());
    let settled = ended.reconcile("b", "applied", "human").result("b", true).result("a", true).answer("r2");
    verdict(&settled, Verdict::Ready, "R-REC-006");
    let clean = settled.add("grant.revoked", json!({"grant": "g"})).add("resource.released", json!({"resource": "k"}));
    let left: Vec<_> = clean.recovery().obligations.iter().map(|o| (o.subject.id.clone(), o.decision)).collect();
    assert!(left.iter().all(|(_, decision)| *decision == Decision::Skip), "{left:?}");
}

/// R-REC-032
#[test]
fn a_command_comes_before_other_work() {
    let issue = |expected: u64| {
        let data = json!({"command": "c", "task": "t", "operation": "pause", "expected_plan_revision": expected});
        task().call("r", "a", "write_remote").add("command.issued", data)
    };
    owes(&issue(1), "c", Decision::Run, "R-REC-032", false);
    owes(&issue(7), "c", Decision::Skip, "R-REC-032", false);
    for log in [issue(1), issue(7)] {
        verdict(&log, Verdict::Ready, "R-REC-006");
        assert_eq!(log.recovery().obligations.len(), 1, "nothing else goes on");
        let rejected = log.add("command.ended", json!({"command": "c", "outcome": "rejected"}));
        owes(&rejected, "a", Decision::Run, "R-REC-016", false);
    }
}

/// R-REC-033
#[test]
fn a_checkpoint_that_does_not_agree_needs_a_person() {
    let created = |log: Log, id: &str, at: u64| {
        log.add("checkpoint.created", json!({"checkpoint": id, "at": at, "task": "t", "steps": [], "effects": []}))
    };
    let bad = created(task(), "k", 99);
    verdict(&bad, Verdict::AwaitingHuman, "R-REC-005");
    owes(&bad, "k", Decision::Ask, "R-REC-033", true);
    verdict(&created(bad.clone(), "l", 1), Verdict::Ready, "R-REC-006");
    verdict(&created(task(), "k", 1), Verdict::Ready, "R-REC-006");
    verdict(&bad.add("task.closed", json!({"task": "t", "how": "failed"})), Verdict::Ready, "R-REC-006");
}

/// R-REC-034
#[test]
fn a_child_whose_parent_is_gone_is_an_orphan() {
    let child =
        |action: &str| json!({"child": "m", "session": "m", "action": action, "kind": "subagent", "link": "explicit"});
    let spawn = |log: Log| log.call_of("r", "a", json!({"kind": "spawn"})).start("a").add("child.spawned", child("a"));
    let open = spawn(Log::live().prompt("p"));
    assert!(owed(&open.recovery(), "m").is_empty(), "its parent is there");
    let closed = open.clone().add("log.closed", json!({"how": "interrupted"}));
    owes(&closed, "m", Decision::Ask, "R-REC-034", true);
    let ended = open.clone().add("child.ended", json!({"child": "m"})).add("log.closed", json!({"how": "interrupted"}));
    assert!(owed(&ended.recovery(), "m").is_empty());
    let cancelled = spawn(task()).command("c", "t", "cancel");
    owes(&cancelled, "m", Decision::Ask, "R-REC-034", true);
    let passed = Log::imported(&["usage"])
        .prompt("p")
        .call_of("r", "a", json!({"kind": "spawn"}))
        .add("child.spawned", child("a"));
    let passed = passed.prompt("q").answer("r2");
    owes(&passed, "m", Decision::Ask, "R-REC-034", false);

    let mine = Log::opened(json!({"records": ALL, "parent": {"log": "l", "action": "a", "mode": "spawn"}})).prompt("p");
    let seen_by = |parent: &Log| recover(&mine.state(), &Context::new().child_of(&parent.state()));
    assert_eq!(seen_by(&open).verdict, Verdict::Ready);
    assert_eq!(owed(&seen_by(&closed), "s"), [(Decision::Ask, "R-REC-034".to_owned(), true)]);
    assert_eq!(owed(&seen_by(&passed), "s"), [(Decision::Ask, "R-REC-034".to_owned(), false)]);
}

/// R-REC-035
#[test]
fn a_step_is_restarted_where_nothing_else_is_left_to_go_on_with() {
    let running = json!({"task": "t", "step": "s", "status": "running"});
    let idle = Log::live().task("t").add("step.changed", running.clone());
    owes(&idle, "s", Decision::RestartStep, "R-REC-035", false);
    verdict(&idle, Verdict::Ready, "R-REC-006");
    let asked = task().add("step.changed", running.clone());
    assert!(asked.recovery().obligations.iter().all(|o| o.decision != Decision::RestartStep), "the prompt comes first");
    let doubtful = Log::live().task("t").add("step.changed", running).propose("a", json!({})).start("a");
    assert!(doubtful.recovery().obligations.iter().all(|o| o.decision != Decision::RestartStep));
    let replan = task().call("r", "a", "write_remote").command("c", "t", "replan");
    owes(&replan, "t", Decision::Continue, "R-REC-035", false);
    owes(&replan, "a", Decision::Wait, "R-REC-035", false);
    owes(&replan.plan("t", 2), "a", Decision::Run, "R-REC-016", false);
}

/// R-REC-036
#[test]
fn what_is_held_for_something_closed_is_released() {
    let held = |task: Value| {
        let mut data = json!({"resource": "k", "kind": "container"});
        crate::reduce::tests::merge(&mut data, task);
        Log::live().task("t").add("resource.acquired", data)
    };
    let close = |log: Log| log.add("task.closed", json!({"task": "t", "how": "complete"}));
    owes(&close(held(json!({"task": "t"}))), "k", Decision::Release, "R-REC-036", false);
    verdict(&close(held(json!({"task": "t"}))), Verdict::Ready, "R-REC-006");
    assert!(owed(&close(held(json!({}))).recovery(), "k").is_empty());
    let closed = held(json!({})).add("log.closed", json!({"how": "complete"}));
    owes(&closed, "k", Decision::Release, "R-REC-036", false);
    verdict(&closed, Verdict::Closed, "R-REC-002");
}

/// R-REC-037
#[test]
fn what_came_too_late_is_evidence() {
    let log = live().lease(1).under(1, "action.started", json!({"action": "a"})).lease(2);
    let log = log.under(2, "lease.released", json!({"epoch": 2}));
    let late = log.under(1, "action.ended", json!({"action": "a", "outcome": "succeeded", "applied": "yes"}));
    owes(&late, "a", Decision::Reconcile, "R-REC-008", true);
    assert_eq!(evidence(&late.recovery(), EvidenceKind::LateWrite), 1);
}

/// R-REC-018, R-REC-029
#[test]
fn a_grant_that_is_gone_gives_no_leave() {
    let granted = |expires: Value| {
        let mut grant = json!({"grant": "g"});
        crate::reduce::tests::merge(&mut grant, expires);
        live().with("grant.added", grant, json!({"id": "g0"})).ask("x", "a").with(
            "approval.ended",
            json!({"approval": "x", "outcome": "granted"}),
            json!({"cause": ["g0"]}),
        )
    };
    owes(&granted(json!({})), "a", Decision::Run, "R-REC-016", false);
    owes(&granted(json!({})).add("grant.revoked", json!({"grant": "g"})), "a", Decision::Ask, "R-REC-018", true);
    let policy =
        |now: &str| granted(json!({"policy_revision": "p1"})).add("config.set", json!({"policy_revision": now}));
    owes(&policy("p1"), "a", Decision::Run, "R-REC-016", false);
    owes(&policy("p2"), "a", Decision::Ask, "R-REC-018", true);
    let expiring = granted(json!({"expires": "2026-01-01T00:00:00Z"}));
    assert_eq!(owed(&at(&expiring, "2025-12-31T00:00:00Z"), "a")[0].0, Decision::Run);
    assert_eq!(owed(&at(&expiring, "2026-01-01T00:00:00Z"), "a")[0].1, "R-REC-018");
    let request = json!({"approval": "x", "kind": "permission", "action": "a", "expires": "2026-01-01T00:00:00Z"});
    let own = live().add("approval.requested", request).decide("x", "granted");
    assert_eq!(owed(&at(&own, "2026-01-01T00:00:00Z"), "a")[0].1, "R-REC-018");
}
