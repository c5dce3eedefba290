//! The two examples at work: one writes a log, the other follows it.

#[path = "../examples/follow.rs"]
#[expect(dead_code, reason = "`main` is for the command line")]
mod follow;
#[path = "../examples/live_agent.rs"]
#[expect(dead_code, reason = "`main` is for the command line")]
mod live_agent;

use std::time::Duration;

/// Types of the events of a turn in which leave was given.
const TURN: [&str; 13] = [
    "message.added",
    "turn.started",
    "message.added",
    "action.proposed",
    "model.response",
    "approval.requested",
    "approval.ended",
    "action.started",
    "action.ended",
    "message.added",
    "message.added",
    "model.response",
    "turn.ended",
];

fn types(told: &[u8]) -> Vec<&str> {
    let told = std::str::from_utf8(told).expect("text");
    told.lines().filter_map(|line| line.split_whitespace().next_back()).collect()
}

#[test]
fn one_writes_and_the_other_follows() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("demo.palog.jsonl");
    let first = live_agent::run_turn(&path, "Greet the world", |_| true).expect("a turn");
    assert_eq!(std::fs::read_to_string(folder.path().join("greeting.txt")).expect("it acted"), "Greet the world");

    let mut told = Vec::new();
    let cursor = follow::follow(&path, None, Duration::ZERO, &mut told).expect("follow").expect("a cursor");
    assert_eq!(cursor, first);
    assert_eq!(types(&told), [&["log.opened"], &TURN[..]].concat());

    // The second turn is followed while it is written, and ends in a refusal.
    let mut told = Vec::new();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| live_agent::run_turn(&path, "Once more", |_| false).expect("a turn"));
        let cursor = follow::follow(&path, Some(cursor), Duration::from_secs(2), &mut told).expect("follow");
        assert_eq!(cursor, Some(writer.join().expect("the writer")));
    });
    let denied: Vec<_> = TURN.into_iter().filter(|t| !["action.started", "action.ended"].contains(t)).collect();
    assert_eq!(types(&told), denied);
    assert_eq!(std::fs::read_to_string(folder.path().join("greeting.txt")).expect("a file"), "Greet the world");
}
