//! Logs made at random: sound in form, and in what they say whatever comes.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::super::{ALL, Log, line_of, merge};

/// What a log is made of.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// What the writer records, if the log is live; else what its source does.
    live: bool,
    records: &'static [&'static str],
    /// A second source, and what it records.
    hooks: Option<&'static [&'static str]>,
    /// Whether events carry epochs.
    fenced: bool,
    steps: Vec<Step>,
}

/// One step: an event, or a few that belong together.
#[derive(Clone, Debug)]
struct Step {
    what: What,
    /// The parent that a message names.
    parent: Option<&'static str>,
    /// The source that it comes from.
    source: Option<&'static str>,
    /// It is a copy from another log.
    copied: bool,
    /// Its epoch, where there are any.
    epoch: Option<u64>,
}

#[derive(Clone, Debug)]
enum What {
    Prompt { turn: bool },
    Says { response: &'static str, done: bool },
    Stop { response: &'static str, stop: &'static str },
    Call { response: &'static str, action: &'static str, kind: &'static str, class: &'static str },
    Start { action: &'static str, attempt: Option<u64> },
    End { action: &'static str, attempt: Option<u64>, outcome: &'static str, applied: &'static str },
    Told { action: &'static str, last: bool },
    Ask { approval: &'static str, action: &'static str },
    Decide { approval: &'static str, action: &'static str, outcome: &'static str },
    Queue,
    Taken { outcome: &'static str },
    TurnEnd { how: &'static str },
    Reconcile { action: &'static str, outcome: &'static str, basis: &'static str },
    Compact,
    Move { to: &'static str },
    Vendor,
    Note,
    Close { how: &'static str },
    Unheard,
    Malformed,
    Lease { epoch: u64, verb: &'static str },
    Held(Held),
}

/// What is held, worked on or stands outside.
#[derive(Clone, Debug)]
struct Held {
    kind: &'static str,
    task: &'static str,
    action: &'static str,
    thing: &'static str,
    number: u64,
    flag: bool,
    status: &'static str,
    operation: &'static str,
}

fn held() -> impl Strategy<Value = Held> {
    let kinds = &[
        "task",
        "task",
        "attempt.ended",
        "task.closed",
        "plan",
        "step.changed",
        "command.issued",
        "command.issued",
        "command.ended",
        "command.ended",
        "checkpoint.created",
        "checkpoint.restored",
        "workspace.recorded",
        "artifact.recorded",
        "resource.acquired",
        "resource.released",
        "grant.added",
        "grant.revoked",
        "message.revised",
        "redaction.applied",
        "source.changed",
    ];
    let names = (select(&["t", "v"][..]), select(&["a", "b", "c"][..]), select(&["k", "l"][..]));
    let operations = &["pause", "resume", "cancel", "replan", "suspend_and_replan", "take_over"];
    let status = select(&["pending", "running", "done", "failed"][..]);
    (select(&kinds[..]), names, 0..4_u64, any::<bool>(), status, select(&operations[..])).prop_map(
        |(kind, (task, action, thing), number, flag, status, operation)| Held {
            kind,
            task,
            action,
            thing,
            number,
            flag,
            status,
            operation,
        },
    )
}

impl Held {
    fn add(&self, log: Log) -> Log {
        let Held { kind, task, action, thing, number, flag, status, operation } = self;
        let data = match *kind {
            "task" => return log.task(task),
            "plan" => return log.plan(task, *number),
            "attempt.ended" => json!({"attempt": format!("{task}/1"), "how": if *flag { "complete" } else { "lost" }}),
            "task.closed" => json!({"task": task, "how": if *flag { "complete" } else { "cancelled" }}),
            "step.changed" => json!({"task": task, "step": "s", "status": status, "verified": flag}),
            "command.issued" => json!({"command": thing, "task": task, "operation": operation}),
            "command.ended" => json!({"command": thing, "outcome": if *number > 0 { "applied" } else { "rejected" }}),
            "checkpoint.created" => {
                let effects = json!([{"action": action, "state": if *flag { "running" } else { "succeeded" }}]);
                json!({"checkpoint": thing, "at": number * 33, "task": task, "steps": [], "effects": effects})
            }
            "checkpoint.restored" => json!({"checkpoint": thing}),
            "workspace.recorded" => json!({"revision": number.to_string()}),
            "artifact.recorded" => json!({"artifact": thing, "digest": format!("sha256:{number}")}),
            "resource.acquired" => json!({"resource": thing, "kind": "lock", "task": task}),
            "resource.released" => json!({"resource": thing}),
            "grant.added" => json!({"grant": thing, "task": task}),
            "grant.revoked" => json!({"grant": thing}),
            "message.revised" => json!({"message": "p0", "removed": true}),
            "redaction.applied" => json!({"events": ["p0"]}),
            _ => json!({"source": "main", "how": if *flag { "gap" } else { "vanished" }}),
        };
        log.add(kind, data)
    }
}

fn what() -> impl Strategy<Value = What> {
    let action = || select(&["a", "b", "c"][..]);
    let response = || select(&["r", "s", "t"][..]);
    let approval = || select(&["x", "y"][..]);
    let attempt = || proptest::option::weighted(0.15, 1..3_u64);
    prop_oneof![
        4 => any::<bool>().prop_map(|turn| What::Prompt { turn }),
        5 => (response(), any::<bool>()).prop_map(|(response, done)| What::Says { response, done }),
        2 => (response(), select(&["end_turn", "tool_use", "max_tokens"][..])).prop_map(|(response, stop)| What::Stop { response, stop }),
        5 => (response(), action(), select(&["tool", "tool", "tool", "question", "delivery"][..]), select(&["unknown", "write_local", "read_local", "pure"][..]))
            .prop_map(|(response, action, kind, class)| What::Call { response, action, kind, class }),
        2 => (action(), attempt()).prop_map(|(action, attempt)| What::Start { action, attempt }),
        3 => (action(), attempt(), select(&["succeeded", "failed", "cancelled"][..]), select(&["yes", "no", "partial", "unknown", "yes", "yes"][..]))
            .prop_map(|(action, attempt, outcome, applied)| What::End { action, attempt, outcome, applied }),
        3 => (action(), proptest::bool::weighted(0.8)).prop_map(|(action, last)| What::Told { action, last }),
        2 => (approval(), action()).prop_map(|(approval, action)| What::Ask { approval, action }),
        2 => (approval(), action(), select(&["granted", "granted", "denied", "expired", "answered"][..]))
            .prop_map(|(approval, action, outcome)| What::Decide { approval, action, outcome }),
        1 => Just(What::Queue),
        1 => select(&["taken", "dropped"][..]).prop_map(|outcome| What::Taken { outcome }),
        2 => select(&["complete", "interrupted", "error"][..]).prop_map(|how| What::TurnEnd { how }),
        2 => (action(), select(&["applied", "not_applied", "in_progress", "unknown"][..]), select(&["human", "looked"][..]))
            .prop_map(|(action, outcome, basis)| What::Reconcile { action, outcome, basis }),
        1 => Just(What::Compact),
        1 => select(&["root", "p0", "p1"][..]).prop_map(|to| What::Move { to }),
        1 => prop_oneof![Just(What::Vendor), Just(What::Note)],
        2 => (1..4_u64, select(&["acquired", "acquired", "renewed", "released"][..])).prop_map(|(epoch, verb)| What::Lease { epoch, verb }),
        9 => held().prop_map(What::Held),
        1 => prop_oneof![
            8 => Just(What::Note),
            3 => select(&["complete", "transferred"][..]).prop_map(|how| What::Close { how }),
            1 => Just(What::Unheard),
            1 => Just(What::Malformed),
        ],
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let parent = proptest::option::weighted(0.15, select(&["root", "p0", "p1", "p2", "p3", "ctx", "gone"][..]));
    let source = proptest::option::weighted(0.3, select(&["main", "hooks"][..]));
    let epoch = proptest::option::of(select(&[1, 1, 2, 2, 3][..]));
    (what(), parent, source, proptest::bool::weighted(0.05), epoch)
        .prop_map(|(what, parent, source, copied, epoch)| Step { what, parent, source, copied, epoch })
}

/// Any log.
pub(super) fn logs() -> impl Strategy<Value = Plan> {
    let sets: &[&[&str]] = &[&["usage"], ALL, &["approval.requested", "approval.ended"]];
    let hooks: &[&[&str]] = &[&["approval.requested"], &[], ALL];
    (
        any::<bool>(),
        select(sets),
        proptest::option::weighted(0.3, select(hooks)),
        proptest::bool::weighted(0.25),
        proptest::collection::vec(step(), 3..24),
    )
        .prop_map(|(live, records, hooks, fenced, steps)| Plan { live, records, hooks, fenced, steps })
}

impl Plan {
    /// The log.
    pub(super) fn log(&self) -> Log {
        let mut log = if self.live { Log::live() } else { Log::imported(self.records) };
        if let Some(records) = self.hooks {
            log = log.source("hooks", records);
        }
        let (mut prompts, mut compacted) = (0, false);
        for step in &self.steps {
            let mut more = json!({});
            if let Some(parent) = step.parent {
                more["parent"] = parent.into();
            }
            if let Some(source) = step.source {
                more["src"] = json!([{"source": source, "at": 0, "len": 1}]);
            }
            if step.copied {
                more["copy"] = json!({"log": "other", "how": "fork"});
            }
            log = match step.what {
                What::Prompt { turn } => {
                    let id = format!("p{prompts}");
                    prompts += 1;
                    let log = log.user(&id, more);
                    if turn { log.add("turn.started", json!({"message": id})) } else { log }
                }
                What::Says { response, done } => {
                    merge(&mut more, json!({"actor": {"kind": "model"}}));
                    let data =
                        json!({"role": "assistant", "response": response, "parts": [{"type": "text", "text": "so"}]});
                    let log = log.with("message.added", data, more);
                    if done { log.stop(response, "end_turn") } else { log }
                }
                What::Stop { response, stop } => log.stop(response, stop),
                What::Call { response, action, kind, class } => {
                    let data = json!({"role": "assistant", "response": response, "parts": [{"type": "action", "action": action}]});
                    let mut effect = json!({"class": class});
                    if action == "c" {
                        effect["idempotency_key"] = "k".into();
                    }
                    let proposal = super::super::proposal(action, json!({"kind": kind, "effect": effect}));
                    log.with("message.added", data, more.clone()).with(
                        "action.proposed",
                        proposal,
                        without_parent(more),
                    )
                }
                What::Start { action, attempt } => {
                    log.with("action.started", attempted(json!({"action": action}), attempt), more)
                }
                What::End { action, attempt, outcome, applied } => {
                    let data = json!({"action": action, "outcome": outcome, "applied": applied});
                    log.with("action.ended", attempted(data, attempt), more)
                }
                What::Told { action, last } => log.result(action, last),
                What::Ask { approval, action } => log.with(
                    "approval.requested",
                    json!({"approval": approval, "kind": "permission", "action": action}),
                    more,
                ),
                What::Decide { approval, action, outcome } => log.with(
                    "approval.ended",
                    json!({"approval": approval, "action": action, "outcome": outcome}),
                    more,
                ),
                What::Queue => log.add("input.queued", json!({"input": "i", "parts": []})),
                What::Taken { outcome } => log.add("input.ended", json!({"input": "i", "outcome": outcome})),
                What::TurnEnd { how } => log.add("turn.ended", json!({"how": how})),
                What::Reconcile { action, outcome, basis } => log.reconcile(action, outcome, basis),
                What::Compact if compacted => log.add("context.compacted", json!({"window": []})),
                What::Compact => {
                    compacted = true;
                    log.with("context.compacted", json!({"window": []}), json!({"id": "ctx"}))
                }
                What::Move { to } => log.add("branch.moved", json!({"to": to})),
                What::Vendor => log.with("x.org.example/kept", json!({"record": 1}), more),
                What::Note => log.add("note.added", json!({"kind": "import"})),
                What::Close { how } => log.add("log.closed", json!({"how": how})),
                What::Unheard => log.add("weather.changed", json!({})),
                What::Malformed => log.add("action.proposed", json!({})),
                What::Lease { .. } if !self.fenced => log,
                What::Lease { epoch, verb } => {
                    log.under(epoch, &format!("lease.{verb}"), json!({"epoch": epoch, "holder": "w"}))
                }
                What::Held(ref held) => held.add(log),
            };
            if let Some(epoch) = step.epoch.filter(|_| self.fenced && !matches!(step.what, What::Lease { .. })) {
                let last = log.lines.pop().expect("an event");
                let mut event: Value = serde_json::from_str(&last).expect("a line of ours");
                event["epoch"] = epoch.into();
                log.lines.push(line_of(event));
            }
        }
        log
    }
}

fn attempted(mut data: Value, attempt: Option<u64>) -> Value {
    if let Some(attempt) = attempt {
        data["attempt"] = attempt.into();
    }
    data
}

fn without_parent(mut more: Value) -> Value {
    more.as_object_mut().map(|more| more.remove("parent"));
    more
}

/// The events of a log.
pub(super) fn events(log: &Log) -> Vec<Value> {
    log.lines.iter().map(|line| serde_json::from_str(line).expect("a line of ours")).collect()
}

/// A log of these events, numbered anew; ids stay.
pub(super) fn log_of(events: impl IntoIterator<Item = Value>) -> Log {
    let numbered = events.into_iter().enumerate().map(|(seq, mut event)| {
        event["seq"] = json!(seq);
        line_of(event)
    });
    Log { lines: numbered.collect() }
}

/// The log without the events of some types.
pub(super) fn without(log: &Log, gone: impl Fn(&str) -> bool) -> Log {
    log_of(events(log).into_iter().filter(|event| !gone(event["type"].as_str().unwrap_or_default())))
}

/// What two sources tell of the same two actions, each in its own order.
pub(super) fn two_sources() -> impl Strategy<Value = (Log, Log)> {
    let of_action = |action: &'static str| {
        let applied = select(&["yes", "no", "unknown"][..]);
        let end = proptest::option::of((select(&["succeeded", "failed"][..]), applied.clone()));
        let decision = proptest::option::of((select(&["granted", "denied", "expired"][..]), any::<bool>()));
        let late = proptest::option::weighted(0.25, select(&["yes", "no"][..]));
        (select(&["unknown", "pure"][..]), end, any::<bool>(), decision, late).prop_map(
            move |(class, end, asked, decision, late)| {
                let (mut main, mut hooks) = (Vec::new(), Vec::new());
                main.push(("action.proposed", super::super::proposal(action, json!({"effect": {"class": class}}))));
                if let Some((outcome, applied)) = end {
                    main.push(("action.ended", json!({"action": action, "outcome": outcome, "applied": applied})));
                }
                if asked {
                    hooks.push(("approval.requested", json!({"kind": "permission", "action": action})));
                }
                if let Some((outcome, by_main)) = decision {
                    let event = ("approval.ended", json!({"action": action, "outcome": outcome}));
                    if by_main { main.push(event) } else { hooks.push(event) }
                }
                if let Some(applied) = late {
                    hooks.push(("action.ended", json!({"action": action, "outcome": "cancelled", "applied": applied})));
                }
                (main, hooks)
            },
        )
    };
    let sets: &[&[&str]] = &[&["usage"], &["approval.requested", "approval.ended"], ALL];
    let picks = proptest::collection::vec(any::<bool>(), 12);
    (of_action("a"), of_action("b"), select(sets), select(sets), picks).prop_map(
        |(a, b, main_records, hook_records, picks)| {
            let start = || Log::imported(main_records).source("hooks", hook_records);
            let append = |log: Log, source: &str, (kind, data): &(&str, Value)| {
                log.with(kind, data.clone(), json!({"src": [{"source": source, "at": 0, "len": 1}]}))
            };
            let (main, hooks) = ([a.0, b.0].concat(), [a.1, b.1].concat());
            let one = main.iter().fold(start(), |log, event| append(log, "main", event));
            let one = hooks.iter().fold(one, |log, event| append(log, "hooks", event));
            let (mut two, mut left, mut right) = (start(), main.iter().peekable(), hooks.iter().peekable());
            let mut picks = picks.into_iter().cycle();
            loop {
                let hooks_turn = left.peek().is_none() || (right.peek().is_some() && picks.next() == Some(true));
                let Some(event) = (if hooks_turn { right.next() } else { left.next() }) else { break };
                two = append(two, if hooks_turn { "hooks" } else { "main" }, event);
            }
            (one, two)
        },
    )
}
