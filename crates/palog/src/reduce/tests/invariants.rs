//! What holds for every log (spec 04, "Properties"), over logs made at random.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{ALL, Log, line_of, stepwise};
use crate::cursor::Cursor;
use crate::events::{ActionKind, Applied, EffectClass};
use crate::reader::{Item, Reader};
use crate::recover::{Context, Verdict, recover};
use crate::reduce::Reducer;
use crate::state::{ActionState, Doubt, State, Told};

const LOGS: u64 = 300;

/// A generator that is always the same (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len())]
    }
}

/// A log made at random: sound in form, and in what it says whatever comes.
fn log(seed: u64) -> Log {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    for _ in 0..4 {
        dice.roll(2);
    }
    let live = dice.roll(3) == 0;
    let mut log = if live {
        Log::live()
    } else {
        Log::imported(dice.pick(&[&["usage"][..], ALL, &["approval.requested", "approval.ended"]]))
    };
    if dice.roll(3) == 0 {
        log = log.source("hooks", dice.pick(&[&["approval.requested"][..], &[], ALL]));
    }
    let length = 4 + dice.roll(24);
    let mut prompts = 0;
    for _ in 0..length {
        let (action, response) = (dice.pick(&["a", "b", "c"]), dice.pick(&["r", "s", "t"]));
        let approval = dice.pick(&["x", "y"]);
        let class = dice.pick(&["unknown", "write_local", "read_local", "pure"]);
        let outcome = dice.pick(&["succeeded", "failed", "cancelled"]);
        let applied = dice.pick(&["yes", "no", "partial", "unknown", "yes", "yes"]);
        let mut more = json!({});
        if dice.roll(6) == 0 {
            more = json!({"parent": dice.pick(&["root", "p0", "p1", "p2", "p3", "ctx", "gone"])});
        }
        if dice.roll(3) == 0 {
            super::merge(&mut more, json!({"src": [{"source": dice.pick(&["main", "hooks"]), "at": 0, "len": 1}]}));
        }
        log = match dice.roll(30) {
            22..=28 => held(log, &mut dice),
            0..=2 => {
                prompts += 1;
                let id = format!("p{}", prompts - 1);
                if dice.roll(4) == 0 {
                    log.user(&id, more)
                } else {
                    log.user(&id, more).add("turn.started", json!({"message": id}))
                }
            }
            3..=4 => {
                let data =
                    json!({"role": "assistant", "response": response, "parts": [{"type": "text", "text": "so"}]});
                log.with("message.added", data, more)
            }
            5 => log.stop(response, dice.pick(&["end_turn", "tool_use", "max_tokens"])),
            6..=8 => {
                let kind = dice.pick(&["tool", "tool", "tool", "question", "delivery"]);
                log.call_of(response, action, json!({"kind": kind, "effect": {"class": class}}))
            }
            9 => log.with("action.started", json!({"action": action}), more),
            10..=11 => {
                let data = json!({"action": action, "outcome": outcome, "applied": applied});
                log.with("action.ended", data, more)
            }
            12..=13 => log.result(action, dice.roll(5) > 0),
            14 => log.with(
                "approval.requested",
                json!({"approval": approval, "kind": "permission", "action": action}),
                more,
            ),
            15 => {
                let outcome = dice.pick(&["granted", "denied", "expired", "answered"]);
                log.with("approval.ended", json!({"approval": approval, "action": action, "outcome": outcome}), more)
            }
            16 => log.add("input.queued", json!({"input": "i", "parts": []})),
            17 => log.add("input.ended", json!({"input": "i", "outcome": dice.pick(&["taken", "dropped"])})),
            18 => log.add("turn.ended", json!({"how": dice.pick(&["complete", "interrupted", "error"])})),
            19 => log.reconcile(
                action,
                dice.pick(&["applied", "not_applied", "in_progress", "unknown"]),
                dice.pick(&["human", "looked"]),
            ),
            20 => match dice.roll(4) {
                0 => log.with("context.compacted", json!({"window": []}), json!({"id": "ctx"})),
                1 => log.add("branch.moved", json!({"to": dice.pick(&["root", "p0", "p1"])})),
                2 => log.with("x.org.example/kept", json!({"record": 1}), more),
                _ => log.add("note.added", json!({"kind": "import"})),
            },
            _ => match dice.roll(12) {
                0 | 1 => log.add("log.closed", json!({"how": dice.pick(&["complete", "transferred"])})),
                2 => log.add("lease.unheard_of", json!({})),
                3 => log.add("action.proposed", json!({})),
                _ => log.answer(response),
            },
        };
    }
    if dice.roll(4) == 0 {
        log = fenced(log, &mut dice);
    }
    // The id of a compaction is used once only.
    let mut seen = false;
    log.lines.retain(|line| !line.contains("\"id\":\"ctx\"") || !std::mem::replace(&mut seen, true));
    renumber(log)
}

/// Adds an event about what is held, worked on or stands outside.
fn held(log: Log, dice: &mut Dice) -> Log {
    let (task, action) = (dice.pick(&["t", "v"]), dice.pick(&["a", "b", "c"]));
    let (thing, revision) = (dice.pick(&["k", "l"]), dice.roll(4));
    let status = dice.pick(&["pending", "running", "done", "failed"]);
    let state = dice.pick(&["running", "succeeded", "unknown", "proposed"]);
    match dice.roll(18) {
        0 | 1 => log.task(task),
        2 => log.add("attempt.ended", json!({"attempt": format!("{task}/1"), "how": dice.pick(&["complete", "lost"])})),
        3 => log.add("task.closed", json!({"task": task, "how": dice.pick(&["complete", "cancelled"])})),
        4 => log.plan(task, revision as u64),
        5 => {
            log.add("step.changed", json!({"task": task, "step": "s", "status": status, "verified": dice.roll(2) == 0}))
        }
        6 | 7 => {
            let operation = dice.pick(&["pause", "resume", "cancel", "replan", "suspend_and_replan", "take_over"]);
            let command = json!({"command": thing, "task": task, "operation": operation});
            log.add("command.issued", command)
        }
        8 | 9 => log
            .add("command.ended", json!({"command": thing, "outcome": dice.pick(&["applied", "applied", "rejected"])})),
        10 => {
            let effects = json!([{"action": action, "state": state}]);
            let at = dice.pick(&[0, 99]);
            log.add(
                "checkpoint.created",
                json!({"checkpoint": thing, "at": at, "task": task, "steps": [], "effects": effects}),
            )
        }
        11 => log.add("checkpoint.restored", json!({"checkpoint": thing})),
        12 => log.add("workspace.recorded", json!({"revision": revision.to_string()})),
        13 => log.add("artifact.recorded", json!({"artifact": thing, "digest": format!("sha256:{revision}")})),
        14 => log.add("resource.acquired", json!({"resource": thing, "kind": "lock", "task": task})),
        15 => log.add("resource.released", json!({"resource": thing})),
        16 => log.add("grant.added", json!({"grant": thing, "task": task})),
        _ => match dice.roll(4) {
            0 => log.add("grant.revoked", json!({"grant": thing})),
            1 => log.add("message.revised", json!({"message": "p0", "removed": true})),
            2 => log.add("redaction.applied", json!({"events": ["p0"]})),
            _ => log.add("source.changed", json!({"source": "main", "how": dice.pick(&["gap", "vanished"])})),
        },
    }
}

/// Writes some of the events under epochs, and takes leases.
fn fenced(mut log: Log, dice: &mut Dice) -> Log {
    let mut lines = vec![log.lines.remove(0)];
    for line in log.lines {
        let mut event: Value = serde_json::from_str(&line).expect("a line of ours");
        if dice.roll(2) == 0 {
            event["epoch"] = json!(dice.pick(&[1, 1, 2, 2, 3]));
        }
        lines.push(line_of(event));
        if dice.roll(8) == 0 {
            let (epoch, kind) = (dice.pick(&[1, 2, 3]), dice.pick(&["acquired", "acquired", "renewed", "released"]));
            let lease = Log { lines }.under(epoch, &format!("lease.{kind}"), json!({"epoch": epoch, "holder": "w"}));
            lines = lease.lines;
            let last = lines.len() - 1;
            let id = format!("\"id\":\"e{last}\"");
            lines[last] = lines[last].replace(&id, &format!("\"id\":\"lease{last}\""));
        }
    }
    Log { lines }
}

/// Gives the lines new numbers; ids stay.
fn renumber(mut log: Log) -> Log {
    for (seq, line) in log.lines.iter_mut().enumerate() {
        let mut event: Value = serde_json::from_str(line).expect("a line of ours");
        event["seq"] = json!(seq);
        *line = line_of(event);
    }
    log
}

fn without(log: &Log, wanted: impl Fn(&Value) -> bool) -> Log {
    let keep = |line: &&String| wanted(&serde_json::from_str(line).expect("a line of ours"));
    renumber(Log { lines: log.lines.iter().filter(keep).cloned().collect() })
}

type Control = (
    BTreeMap<String, (ActionState, Option<Doubt>, Applied, Told, u64, bool)>,
    Vec<Value>,
    Vec<Value>,
    Value,
    Value,
    Verdict,
);

/// What of a state decides what may happen next, whatever the numbers of the events are.
fn control(state: &State) -> Control {
    let actions = state
        .actions
        .iter()
        .map(|a| (a.action.clone(), (a.state, a.doubt, a.applied, a.told, a.turn.0, a.passed_over)))
        .collect();
    let plain = |value: Value| {
        let mut value = value;
        if let Some(members) = value.as_object_mut() {
            members.retain(|name, _| !matches!(name.as_str(), "requested" | "ended" | "queued"));
        }
        value
    };
    let mut approvals: Vec<Value> = state.approvals.iter().map(|a| plain(json!(a))).collect();
    approvals.sort_by_key(|a| a["approval"].to_string());
    let mut pending: Vec<Value> = state.pending.iter().chain([]).map(|p| plain(json!(p))).collect();
    pending.sort_by_key(ToString::to_string);
    let mut held = json!([
        state.epoch,
        state.lease,
        state.grants,
        state.tasks,
        state.attempts,
        state.commands,
        state.workspace,
        state.artifacts,
        state.resources,
        state.checkpoints
    ]);
    without_places(&mut held);
    (actions, approvals, pending, json!(state.turns), held, recover(state, &Context::new()).verdict)
}

/// Takes the references to events out of a value.
fn without_places(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_places),
        Value::Object(members) => {
            members.retain(|_, member| member.get("seq").is_none());
            members.values_mut().for_each(without_places);
        }
        _ => {}
    }
}

/// R-STA-006, R-REC-026
#[test]
fn step_by_step_is_the_same_as_at_once_and_so_is_a_second_time() {
    for seed in 0..LOGS {
        let log = log(seed);
        let (state, found) = log.reduce();
        let (again, found_again) = stepwise(&log.text());
        assert_eq!(state, again, "seed {seed}");
        assert_eq!(format!("{found:?}"), format!("{found_again:?}"), "seed {seed}");
        assert_eq!(recover(&state, &Context::new()), recover(&again, &Context::new()));
    }
}

/// R-STA-007
#[test]
fn bytes_that_are_no_log_have_a_state_too() {
    for seed in 0..LOGS {
        let mut dice = Dice(seed + 3);
        let mut bytes = log(seed % 20).text().into_bytes();
        for _ in 0..=dice.roll(4) {
            let at = dice.roll(bytes.len());
            match dice.roll(3) {
                0 => bytes[at] = dice.pick(b"\0\n\"}{\xff9"),
                1 => drop(bytes.drain(at..(at + 9).min(bytes.len()))),
                _ => bytes.truncate(at + 1),
            }
        }
        let (state, found) = crate::reduce::reduce(&bytes[..]).expect("memory can be read");
        assert_eq!(state.indeterminate.is_empty(), found.count(crate::diagnostic::Severity::Error) == 0, "seed {seed}");
    }
}

/// R-REC-027
#[test]
fn nothing_is_ready_idle_or_closed_while_something_blocks() {
    let mut blocked = 0;
    for seed in 0..LOGS {
        let recovery = log(seed).recovery();
        if recovery.obligations.iter().any(|o| o.blocking) {
            blocked += 1;
            assert!(
                !matches!(recovery.verdict, Verdict::Ready | Verdict::Idle | Verdict::Closed),
                "seed {seed}: {recovery:#?}"
            );
        }
    }
    assert!(blocked > 100);
}

/// R-STA-007
#[test]
fn a_cut_at_any_byte_is_the_longest_prefix_of_whole_lines() {
    for seed in 0..6 {
        let text = log(seed).text();
        for cut in 0..=text.len() {
            let whole = text[..cut].rfind('\n').map_or(0, |at| at + 1);
            if cut % 41 == 0 || cut == whole {
                let state = |text: &str| crate::reduce::reduce(text.as_bytes()).expect("memory can be read").0;
                assert_eq!(state(&text[..cut]), state(&text[..whole]), "seed {seed}, byte {cut}");
            }
        }
    }
}

#[test]
fn repeated_lines_change_nothing() {
    for seed in 0..LOGS {
        let log = log(seed);
        let mut dice = Dice(seed + 1);
        let mut lines = Vec::new();
        for (at, line) in log.lines.iter().enumerate() {
            lines.push(line.clone());
            if dice.roll(3) == 0 {
                lines.push(log.lines[dice.roll(at + 1)].clone());
            }
        }
        assert_eq!(Log { lines }.state(), log.state(), "seed {seed}");
    }
}

/// R-OWN-001
#[test]
fn without_what_came_too_late_the_control_state_is_the_same() {
    let mut late = 0;
    for seed in 0..4 * LOGS {
        let log = log(seed);
        let state = log.state();
        let void: Vec<&str> = state.void.iter().map(|void| void.at.event.as_str()).collect();
        late += void.len();
        // One that others name as their parent or cause is missing without it.
        let named = |id: &&&str| log.lines.iter().any(|line| line.contains(&format!("\"parent\":\"{id}\"")));
        if void.iter().any(|id| named(&id)) {
            continue;
        }
        let less = without(&log, |event| void.iter().all(|id| event["id"] != json!(id)));
        assert_eq!(control(&less.state()), control(&state), "seed {seed}:\n{}", log.text());
    }
    assert!(late > 200, "{late} events came too late");
}

/// R-STA-011
#[test]
fn a_snapshot_and_what_comes_after_it_are_the_whole() {
    for seed in 0..LOGS {
        let text = log(seed).text();
        let cut = Dice(seed + 11).roll(text.lines().count());
        let mut reader = Reader::new(text.as_bytes());
        let mut reducer = Reducer::new();
        let mut line_number = 0;
        while let Some(item) = reader.next().expect("memory can be read") {
            match item {
                Item::Event(event, line) => reducer.apply(&event, Some(&line)),
                Item::Fault(fault) => reducer.fault(fault),
            }
            if line_number == cut {
                let snapshot = reducer.snapshot(Cursor::of(0, b""));
                reducer = Reducer::restore(&snapshot).expect("it is ours").0;
            }
            line_number += 1;
        }
        assert_eq!(reducer.finish().0, log(seed).state(), "seed {seed}, cut {cut}");
    }
}

/// R-STA-010
#[test]
fn with_all_content_redacted_the_control_state_is_the_same() {
    let mut changed = 0;
    for seed in 0..LOGS {
        let log = log(seed);
        let redact = |line: &String| {
            let mut event: Value = serde_json::from_str(line).expect("a line of ours");
            redact(&mut event["data"]);
            line_of(event)
        };
        let redacted = Log { lines: log.lines.iter().map(redact).collect() };
        changed += u32::from(redacted.lines != log.lines);
        assert_eq!(control(&redacted.state()), control(&log.state()), "seed {seed}:\n{}", log.text());
    }
    assert!(changed > LOGS as u32 / 2, "{changed} logs have content");
}

/// Puts a mark in the place of every value that can be redacted.
fn redact(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Object(members) => {
            for (name, member) in members {
                match name.as_str() {
                    "args" | "text" | "goal" | "record" | "reason" | "evidence" => {
                        *member = json!({"$omitted": {"reason": "redacted"}});
                    }
                    _ => redact(member),
                }
            }
        }
        _ => {}
    }
}

/// R-FAM-002
#[test]
fn a_fork_never_runs_or_reconciles_what_it_inherited() {
    for seed in 0..LOGS {
        let parent = log(seed);
        let mut reducer = Reducer::new();
        let text = parent.text();
        let mut reader = Reader::new(text.as_bytes());
        while let Some(item) = reader.next().expect("memory can be read") {
            if let Item::Event(event, line) = item {
                reducer.apply(&event, Some(&line));
            }
        }
        let opened = json!({"spec": "1.0", "session": "m", "agent": {"name": "test"}, "records": ALL, "parent": {"log": "l", "mode": "fork"}});
        let fork = Log::default().with("log.opened", opened, json!({"log": "m"}));
        let mut reducer = Reducer::after_parent(reducer);
        let text = fork.text();
        let mut reader = Reader::new(text.as_bytes());
        while let Some(Item::Event(event, line)) = reader.next().expect("memory can be read") {
            reducer.apply(&event, Some(&line));
        }
        let state = reducer.finish().0;
        assert!(state.actions.iter().all(|action| action.inherited), "seed {seed}");
        let recovery = recover(&state, &Context::new());
        let about_actions = recovery.obligations.iter().filter(|o| o.call.is_some()).count();
        assert_eq!(about_actions, 0, "seed {seed}: {recovery:#?}");
        assert!(recovery.verdict != Verdict::NeedsReconcile && recovery.verdict != Verdict::Owned, "seed {seed}");
    }
}

/// R-STA-002, R-STA-010
#[test]
fn without_compactions_and_moves_the_control_state_is_the_same() {
    let mut changed = 0;
    for seed in 0..4 * LOGS {
        let log = log(seed);
        let less = without(&log, |event| {
            let kind = event["type"].as_str().unwrap_or_default();
            !kind.starts_with("context.") && !kind.starts_with("branch.") && kind != "message.revised"
        });
        changed += u32::from(less.lines.len() < log.lines.len());
        assert_eq!(control(&less.state()), control(&log.state()), "seed {seed}:\n{}", log.text());
    }
    assert!(changed > 100, "the logs have no compactions and moves to speak of");
}

/// R-ENV-012
#[test]
fn without_ignorable_events_nothing_comes_closer_to_ready() {
    let distance = |verdict| match verdict {
        Verdict::Ready => 0,
        Verdict::Idle => 1,
        _ => 2,
    };
    for seed in 0..LOGS {
        let log = log(seed);
        let less = without(&log, |event| !event["type"].as_str().unwrap_or_default().starts_with("x."));
        assert!(distance(less.recovery().verdict) >= distance(log.recovery().verdict), "seed {seed}");
    }
}

/// R-ACT-001
#[test]
fn two_interleavings_of_the_sources_give_the_same_actions() {
    let mut apart = 0;
    for seed in 0..LOGS {
        let mut dice = Dice(seed * 2 + 1);
        let from = |source: &str| json!({"src": [{"source": source, "at": 0, "len": 1}]});
        let mut main = Vec::new();
        let mut hooks = Vec::new();
        for action in ["a", "b"] {
            main.push((
                "action.proposed",
                super::proposal(action, json!({"effect": {"class": dice.pick(&["unknown", "pure"])}})),
            ));
            if dice.roll(2) == 0 {
                let applied = dice.pick(&["yes", "no", "unknown"]);
                main.push((
                    "action.ended",
                    json!({"action": action, "outcome": dice.pick(&["succeeded", "failed"]), "applied": applied}),
                ));
            }
            if dice.roll(2) == 0 {
                hooks.push(("approval.requested", json!({"kind": "permission", "action": action})));
            }
            if dice.roll(2) == 0 {
                let outcome = dice.pick(&["granted", "denied", "expired"]);
                let part = json!({"action": action, "outcome": outcome});
                if dice.roll(2) == 0 {
                    main.push(("approval.ended", part))
                } else {
                    hooks.push(("approval.ended", part))
                }
            }
            if dice.roll(4) == 0 {
                let applied = dice.pick(&["yes", "no"]);
                hooks.push(("action.ended", json!({"action": action, "outcome": "cancelled", "applied": applied})));
            }
        }
        let start = || Log::imported(dice_records(seed)).source("hooks", dice_records(seed / 3));
        let append = |log: Log, source: &str, (kind, data): &(&str, Value)| log.with(kind, data.clone(), from(source));
        let one = main.iter().fold(start(), |log, event| append(log, "main", event));
        let one = hooks.iter().fold(one, |log, event| append(log, "hooks", event));
        let (mut two, mut left, mut right) = (start(), main.iter().peekable(), hooks.iter().peekable());
        while left.peek().is_some() || right.peek().is_some() {
            let from_hooks = right.peek().is_some() && (left.peek().is_none() || dice.roll(2) == 0);
            let (source, event) = if from_hooks { ("hooks", right.next()) } else { ("main", left.next()) };
            two = append(two, source, event.expect("one of them has more"));
        }
        apart += u32::from(one.lines != two.lines);
        let judged = |log: &Log| {
            let state = log.state();
            let actions: BTreeMap<_, _> = state
                .actions
                .iter()
                .map(|a| (a.action.clone(), (a.state, a.doubt, a.applied, a.class == EffectClass::Pure)))
                .collect();
            let mut approvals: Vec<_> = state.approvals.iter().map(|a| (a.action.clone(), a.status)).collect();
            approvals.sort();
            assert!(state.actions.iter().all(|a| a.kind == ActionKind::Tool));
            (actions, approvals)
        };
        assert_eq!(judged(&one), judged(&two), "seed {seed}:\n{}\n{}", one.text(), two.text());
    }
    assert!(apart > 100, "the interleavings are all the same");
}

fn dice_records(seed: u64) -> &'static [&'static str] {
    match seed % 3 {
        0 => &["usage"],
        1 => &["approval.requested", "approval.ended"],
        _ => ALL,
    }
}

#[test]
fn the_logs_are_of_all_kinds() {
    let mut verdicts: BTreeMap<Verdict, u64> = BTreeMap::new();
    for seed in 0..LOGS {
        *verdicts.entry(log(seed).recovery().verdict).or_default() += 1;
    }
    let all = [
        Verdict::Indeterminate,
        Verdict::Closed,
        Verdict::Owned,
        Verdict::NeedsReconcile,
        Verdict::AwaitingHuman,
        Verdict::Ready,
        Verdict::Idle,
    ];
    for verdict in all {
        let count = verdicts.get(&verdict).copied().unwrap_or_default();
        assert!(count * 50 >= LOGS, "{verdict} occurs {count} times in {LOGS} logs: {verdicts:?}");
    }
}
