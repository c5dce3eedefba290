//! Leases and grants, sources that change, the world, and snapshots.

use serde_json::json;

use super::{Log, get};
use crate::cursor::Cursor;
use crate::diagnostic::{Code, Severity};
use crate::reader::{Item, Reader};
use crate::reduce::{Reducer, SnapshotError};
use crate::state::{ActionState, Count, State};

fn live() -> Log {
    Log::live().prompt("p").call("r", "a", "write_remote")
}

/// What was found, with its severity.
fn found(log: &Log) -> Vec<(Code, Severity)> {
    log.reduce().1.groups().iter().map(|g| (g.code, g.severity)).collect()
}

fn holder(log: &Log) -> Option<(u64, String)> {
    log.state().lease.map(|lease| (lease.epoch.0, lease.holder))
}

/// R-OWN-001
#[test]
fn what_comes_under_an_epoch_that_is_over_changes_nothing() {
    let before = live().lease(1).lease(2);
    let late = json!({"action": "a", "outcome": "succeeded", "applied": "yes"});
    let after = before.clone().under(1, "action.ended", late);
    let (state, end) = (before.state(), after.state());
    assert_eq!((state.actions, state.head), (end.actions, end.head));
    assert_eq!(found(&after), [(Code::LateWrite, Severity::Void)]);
    let [void] = end.void.as_slice() else { panic!("{:?}", end.void) };
    assert_eq!((void.kind.as_str(), void.action.as_deref()), ("action.ended", Some("a")));
    assert!(end.indeterminate.is_empty(), "one late write must not block a log");
    // Not even what nobody understands.
    let unknown = before.clone().under(1, "quota.exceeded", json!({})).under(1, "action.proposed", json!({}));
    assert!(unknown.state().indeterminate.is_empty());
    assert_eq!(unknown.state().void.len(), 2);
    // The epoch is the greatest that was seen, and that of a copy is another log's.
    let seen =
        live().under(7, "note.added", json!({"kind": "import"})).under(6, "action.started", json!({"action": "a"}));
    assert_eq!(seen.is("a"), ActionState::Proposed);
    for kind in ["context.compacted", "branch.moved", "message.revised", "x.org.example/thing"] {
        let data = json!({"to": "p", "message": "p", "window": []});
        let log = live().under(7, kind, data).under(6, "action.started", json!({"action": "a"}));
        assert_eq!(log.is("a"), ActionState::Running, "{kind} decides nothing about others");
    }
    let copy = json!({"epoch": 1, "copy": {"log": "other", "how": "fork"}});
    assert_eq!(before.with("action.started", json!({"action": "a"}), copy).is("a"), ActionState::Running);
}

/// R-OWN-001
#[test]
fn an_event_may_name_a_late_one_as_its_parent() {
    let log = live().lease(2).with("note.added", json!({"kind": "import"}), json!({"id": "late", "epoch": 1}));
    let log = log.user("q", json!({"parent": "late", "epoch": 2}));
    assert_eq!(log.state().head.as_deref(), Some("q"));
    assert_eq!(log.codes(), [Code::LateWrite]);
}

/// R-OWN-002
#[test]
fn a_lease_begins_under_a_new_epoch_and_ends_when_it_is_released_or_overtaken() {
    assert_eq!(holder(&live()), None);
    assert_eq!(holder(&live().lease(2)), Some((2, "w2".into())));
    assert_eq!(holder(&live().lease(2).lease(3)), Some((3, "w3".into())));
    let again = live().lease(2).under(2, "lease.acquired", json!({"epoch": 2, "holder": "thief"}));
    assert_eq!((holder(&again), found(&again)), (Some((2, "w2".into())), vec![(Code::LateWrite, Severity::Void)]));
    let released = live().lease(2).under(2, "lease.released", json!({"epoch": 2}));
    assert_eq!((holder(&released), released.state().epoch), (None, Some(Count(2))));
    let renewed = released.clone().under(2, "lease.renewed", json!({"epoch": 2, "holder": "w2"}));
    assert_eq!((holder(&renewed), found(&renewed)), (None, vec![(Code::LateWrite, Severity::Void)]));
    let overtaken = live().lease(2).under(3, "note.added", json!({"kind": "import"}));
    assert_eq!((holder(&overtaken), overtaken.state().epoch), (None, Some(Count(3))));
    let at = |time: &str, kind: &str| {
        let more = json!({"epoch": 1, "time": time});
        live().lease(1).with(kind, json!({"epoch": 1, "holder": "w1", "ttl": 60}), more)
    };
    let renewed = at("2026-11-29T12:00:30Z", "lease.renewed").state().lease.expect("it stands");
    assert_eq!(renewed.expires.as_deref(), Some("2026-11-29T12:01:30Z"));
}

/// R-OWN-003
#[test]
fn an_event_without_an_epoch_is_reported_and_counts() {
    let log = live().lease(1).start("a");
    assert_eq!((log.is("a"), found(&log)), (ActionState::Running, vec![(Code::NoEpoch, Severity::Warning)]));
    let imported = live().lease(1).with(
        "action.started",
        json!({"action": "a"}),
        json!({"src": [{"source": "main", "at": 0, "len": 1}]}),
    );
    assert!(found(&imported).is_empty());
}

/// R-OWN-004, R-EVT-013
#[test]
fn a_grant_stands_until_it_is_revoked() {
    let granted = live()
        .with("grant.added", json!({"grant": "g", "names": ["tool"]}), json!({"id": "g0"}))
        .ask("x", "a")
        .with("approval.ended", json!({"approval": "x", "outcome": "granted"}), json!({"cause": ["g0"]}));
    let state = granted.state();
    assert_eq!((state.grants[0].revoked, state.approvals[0].grant.as_deref()), (false, Some("g")));
    let revoked = granted.add("grant.revoked", json!({"grant": "g"}));
    assert!(revoked.state().grants[0].revoked);
    assert_eq!(revoked.is("a"), ActionState::Approved, "what was granted was granted; recovery asks anew");
    let unknown = live().add("grant.revoked", json!({"grant": "h"}));
    assert_eq!(found(&unknown), [(Code::UnknownSubject, Severity::Warning)]);
    assert!(unknown.state().grants[0].revoked);
}

/// R-STA-009
#[test]
fn a_source_that_changed_declares_nothing_about_the_time_before() {
    let base = Log::imported(super::ALL).prompt("p").call("r", "a", "write_remote").ask("x", "a");
    assert_eq!(base.is("a"), ActionState::Awaiting);
    for how in ["gap", "truncated", "rewritten", "vanished", "grown_elsewhere"] {
        let changed = base.clone().add("source.changed", json!({"source": "main", "how": how}));
        assert_eq!(changed.judged("a"), (ActionState::Unknown, "asked".into()), "{how}");
        let later = changed.call("r2", "b", "write_remote");
        let judged = if how == "vanished" { ActionState::Unknown } else { ActionState::Proposed };
        assert_eq!(later.is("b"), judged, "{how}");
    }
    let told = base.clone().end("a", "failed", "yes").add("source.changed", json!({"source": "main", "how": "gap"}));
    assert_eq!(told.is("a"), ActionState::Failed, "what it did tell stands");
    let other = base.source("second", super::ALL).add("source.changed", json!({"source": "second", "how": "gap"}));
    assert_eq!(other.is("a"), ActionState::Awaiting, "the other source declares it still");
    let writer = live().source("main", super::ALL).add("source.changed", json!({"source": "main", "how": "gap"}));
    assert_eq!(writer.is("a"), ActionState::Proposed, "the writer declares it still");
}

/// R-STA-010
#[test]
fn revisions_and_redactions_leave_the_control_state_as_it_is() {
    let log = live().result("a", false);
    let revised = log
        .clone()
        .add("message.revised", json!({"message": "p", "removed": true}))
        .add("redaction.applied", json!({"events": ["p"]}));
    let plain = |log: &Log| {
        let State { actions, pending, turns, head, .. } = log.state();
        (actions, pending, turns, head)
    };
    assert_eq!(plain(&log), plain(&revised));
    assert!(found(&revised).is_empty());
}

/// R-WLD-002
#[test]
fn the_last_record_of_the_workspace_and_of_an_artifact_counts() {
    let log = live()
        .add("workspace.recorded", json!({"vcs": "git", "revision": "1"}))
        .add("workspace.recorded", json!({"vcs": "git", "revision": "2", "dirty": true}));
    assert_eq!(log.state().workspace.expect("it is recorded").revision.as_deref(), Some("2"));
    let artifact = |digest: &str, verified: serde_json::Value| {
        let mut data = json!({"artifact": "x", "digest": digest});
        super::merge(&mut data, verified);
        data
    };
    let checked = live().add("artifact.recorded", artifact("sha256:1", json!({"verified": true})));
    let same = checked.clone().add("artifact.recorded", artifact("sha256:1", json!({})));
    let other = checked.add("artifact.recorded", artifact("sha256:2", json!({})));
    assert_eq!((same.state().artifacts.len(), same.state().artifacts[0].verified), (1, true));
    assert!(!other.state().artifacts[0].verified, "it is another content");
}

/// R-WLD-003
#[test]
fn a_resource_is_held_until_it_is_released() {
    let held = live().add("resource.acquired", json!({"resource": "x", "kind": "lock"}));
    assert!(held.state().resources[0].held);
    assert!(!held.add("resource.released", json!({"resource": "x"})).state().resources[0].held);
}

/// R-WLD-001, R-WLD-004
#[test]
fn a_checkpoint_is_checked_and_replaces_nothing() {
    let base = || {
        Log::live()
            .add("config.set", json!({"policy_revision": "p1", "manifest_digest": "sha256:m"}))
            .lease(4)
            .task("t")
            .add("artifact.recorded", json!({"artifact": "x", "digest": "sha256:x", "verified": true}))
            .add("step.changed", json!({"task": "t", "step": "s", "status": "done", "artifact": "x"}))
            .with("workspace.recorded", json!({"revision": "1"}), json!({"id": "ws"}))
            .call("r", "a", "write_remote")
            .ask("ap", "a")
            .call("r", "b", "write_remote")
            .start("b")
    };
    let good = json!({
        "checkpoint": "k", "at": 2, "task": "t", "plan_revision": 1, "policy_revision": "p1",
        "manifest_digest": "sha256:m", "workspace": "ws", "lease": {"epoch": 4},
        "steps": [{"step": "s", "digest": "sha256:x", "verified": true}],
        "pending": {"step": "u", "approval": "ap"},
        "effects": [{"action": "b", "state": "running"}, {"action": "a", "state": "awaiting"}]
    });
    let checkpoint = |data: serde_json::Value| base().add("checkpoint.created", data).state().checkpoints.remove(0);
    assert_eq!(checkpoint(good.clone()).flaws, Vec::<String>::new());
    let wrong = [
        ("at", json!(99), "covers"),
        ("plan_revision", json!(2), "plan 2"),
        ("policy_revision", json!("p2"), "policy p2"),
        ("manifest_digest", json!("sha256:n"), "manifest"),
        ("workspace", json!("e1"), "workspace"),
        ("lease", json!({"epoch": 3}), "epoch 3"),
        ("steps", json!([{"step": "u"}]), "u is not done"),
        ("steps", json!([{"step": "s", "digest": "sha256:y"}]), "another artifact"),
        ("pending", json!({"step": "s"}), "not to be done"),
        ("pending", json!({"step": "u", "approval": "none"}), "no leave"),
        ("effects", json!([{"action": "b", "state": "succeeded"}]), "b is running"),
        ("effects", json!([{"action": "a", "state": "awaiting"}]), "leaves out b"),
        ("effects", json!([{"action": "b", "state": "running"}, {"action": "c", "state": "failed"}]), "c is not known"),
    ];
    for (member, value, says) in wrong {
        let mut data = good.clone();
        data[member] = value;
        let flaws = checkpoint(data).flaws;
        assert!(flaws.iter().any(|flaw| flaw.contains(says)), "{member}: {flaws:?} does not say {says:?}");
    }
    // Taken of the lines of R-WLD-004 by hand.
    let lines = concat!(
        "[\"epoch\",\"4\"]\n",
        "[\"action\",\"a\",\"1\",\"awaiting\",\"no\"]\n",
        "[\"action\",\"b\",\"1\",\"running\",\"unknown\"]\n",
        "[\"approval\",\"ap\",\"open\"]\n",
        "[\"task\",\"t\",\"open\",\"1\"]\n",
        "[\"step\",\"s\",\"done\"]\n",
        "[\"step\",\"u\",\"pending\"]\n",
    );
    let mut digested = good.clone();
    digested["state_digest"] = crate::blob::digest(lines.as_bytes()).into();
    assert_eq!(checkpoint(digested.clone()).flaws, Vec::<String>::new());
    let other = base().end("b", "succeeded", "yes").add("checkpoint.created", digested).state();
    assert!(other.checkpoints[0].flaws.iter().any(|flaw| flaw.contains("digest of the state")));
    let mut lie = good;
    lie["effects"] = json!([{"action": "b", "state": "succeeded"}]);
    let log = base().add("checkpoint.created", lie);
    assert_eq!(log.is("b"), ActionState::Running, "the events stand");
    assert!(found(&log).contains(&(Code::CheckpointMismatch, Severity::Warning)));
    assert!(log.state().indeterminate.is_empty());
    let restored = log.add("checkpoint.restored", json!({"checkpoint": "k"}));
    assert!(restored.state().checkpoints[0].restored.is_some());
    let unknown = Log::live().add("checkpoint.restored", json!({"checkpoint": "k"}));
    assert_eq!(found(&unknown), [(Code::UnknownSubject, Severity::Warning)]);
}

/// R-STA-011
#[test]
fn a_snapshot_is_gone_on_from_only_by_its_own_version() {
    let mut reducer = Reducer::new();
    let text = live().text();
    let mut reader = Reader::new(text.as_bytes());
    let mut cursor = Cursor::of(0, b"");
    while let Some(Item::Event(event, line)) = reader.next().expect("memory can be read") {
        reducer.apply(&event, Some(&line));
        cursor = Cursor::of(event.seq, line.bytes);
    }
    let snapshot = reducer.snapshot(cursor);
    assert_eq!(snapshot, reducer.snapshot(cursor), "what is known has one form");
    let (restored, place) = Reducer::restore(&snapshot).expect("it is ours");
    assert_eq!((place, restored.finish().0), (cursor, live().state()));
    let old = snapshot.replacen(env!("CARGO_PKG_VERSION"), "0.0.0", 1);
    assert!(matches!(Reducer::restore(&old), Err(SnapshotError::Version { form }) if form.starts_with("0.0.0")));
    assert!(matches!(Reducer::restore(&snapshot[..snapshot.len() / 2]), Err(SnapshotError::Malformed(_))));
    assert!(matches!(Reducer::restore("{}"), Err(SnapshotError::Malformed(_))));
    let _ = get(&live().state(), "a");
}
