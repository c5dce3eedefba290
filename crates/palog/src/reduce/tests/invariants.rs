//! What holds for every log (spec 04, "Properties"), over logs made at random. Each property is shown to fail where the
//! function that it is about is wrong.

mod held;
mod logs;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRng, TestRunner};
use serde_json::{Value, json};

use self::logs::{Plan, events, log_of, logs, two_sources, without};
use super::Log;
use crate::diagnostic::Severity;
use crate::recover::{Context, Decision, Obligation, Recovery, SubjectKind, Verdict, recover};
use crate::state::{ActionState, ApprovalStatus, State};

/// What is tested.
#[derive(Clone, Copy)]
struct Subject {
    reduce: fn(&[u8]) -> (State, u64),
    stepwise: fn(&str) -> State,
    recover: fn(&State) -> Recovery,
}

/// The reducer and the recovery of this crate.
const RIGHT: Subject = Subject {
    reduce: |bytes| {
        let (state, found) = crate::reduce::reduce(bytes).expect("memory can be read");
        (state, found.count(Severity::Error))
    },
    stepwise: |text| super::stepwise(text).0,
    recover: |state| recover(state, &Context::new()),
};

impl Subject {
    fn state(&self, log: &Log) -> State {
        (self.reduce)(log.text().as_bytes()).0
    }

    fn recovery(&self, log: &Log) -> Recovery {
        (self.recover)(&self.state(log))
    }
}

type Property<T> = fn(&Subject, &T) -> Result<(), TestCaseError>;

/// Tries a property on random inputs: it holds for the right functions, and fails with each of the wrong ones.
fn check<T: std::fmt::Debug + Clone>(
    strategy: impl Strategy<Value = T>,
    property: Property<T>,
    wrong: &[(&str, Subject)],
) {
    // PROPTEST_CASES says how many.
    let config = Config { failure_persistence: None, ..Config::default() };
    if let Err(error) = TestRunner::new(config.clone()).run(&strategy, |input| property(&RIGHT, &input)) {
        panic!("{error}");
    }
    for (name, subject) in wrong {
        let config = Config { cases: 3000, max_shrink_iters: 0, ..config.clone() };
        let rng = TestRng::deterministic_rng(config.rng_algorithm);
        let found = TestRunner::new_with_rng(config, rng).run(&strategy, |input| property(subject, &input));
        assert!(matches!(found, Err(TestError::Fail(..))), "{name} is not found out: {found:?}");
    }
}

/// A right subject with another reducer.
const fn reducing(reduce: fn(&[u8]) -> (State, u64)) -> Subject {
    Subject { reduce, ..RIGHT }
}

/// The right reducer, given another text.
fn reduce_other(bytes: &[u8], change: impl Fn(&Log) -> Log) -> (State, u64) {
    let lines = String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect();
    (RIGHT.reduce)(change(&Log { lines }).text().as_bytes())
}

type Control = (BTreeMap<String, Value>, Vec<Value>, Vec<Value>, Value, Value, Verdict);

/// Takes the references to events out of a value, and whatever else is a place in the log.
fn without_places(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_places),
        Value::Object(members) => {
            members.retain(|name, member| name != "seq" && member.get("seq").is_none());
            members.values_mut().for_each(without_places);
        }
        _ => {}
    }
}

/// What of a state decides what may happen next, whatever the numbers of the events are.
fn control(subject: &Subject, log: &Log) -> Control {
    let state = subject.state(log);
    let plain = |mut value: Value| {
        without_places(&mut value);
        value
    };
    let actions = state.actions.iter().map(|a| (a.action.clone(), plain(json!(a)))).collect();
    let mut approvals: Vec<Value> = state.approvals.iter().map(|a| plain(json!(a))).collect();
    approvals.sort_by_key(|a| a["approval"].to_string());
    let mut pending: Vec<Value> = state.pending.iter().map(|p| plain(json!(p))).collect();
    pending.sort_by_key(ToString::to_string);
    let held = json!([
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
    (actions, approvals, pending, json!(state.turns), plain(held), (subject.recover)(&state).verdict)
}

/// R-STA-006, R-REC-026
#[test]
fn the_same_log_gives_the_same_state() {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let moody = reducing(|bytes| {
        let (mut state, errors) = (RIGHT.reduce)(bytes);
        state.title = Some(CALLS.fetch_add(1, Ordering::Relaxed).to_string());
        (state, errors)
    });
    check(
        logs(),
        |subject, plan| {
            let log = plan.log();
            prop_assert_eq!(subject.state(&log), subject.state(&log));
            prop_assert_eq!(subject.recovery(&log), subject.recovery(&log));
            Ok(())
        },
        &[("a reducer that counts its calls", moody)],
    );
}

/// R-STA-006
#[test]
fn step_by_step_is_the_same_as_at_once() {
    let forgetful = Subject {
        stepwise: |text| super::stepwise(&text[..text.trim_end().rfind('\n').map_or(0, |at| at + 1)]).0,
        ..RIGHT
    };
    check(
        logs(),
        |subject, plan| {
            let log = plan.log();
            prop_assert_eq!((subject.stepwise)(&log.text()), subject.state(&log));
            Ok(())
        },
        &[("one that forgets the last step", forgetful)],
    );
}

/// R-STA-007
#[test]
fn every_prefix_and_every_damage_has_a_state() {
    let damage = proptest::collection::vec((any::<proptest::sample::Index>(), 0..3_u8, any::<u8>()), 0..4);
    let blind = reducing(|bytes| {
        let (mut state, errors) = (RIGHT.reduce)(bytes);
        state.indeterminate.clear();
        (state, errors)
    });
    let fragile = reducing(|bytes| {
        let (mut state, errors) = (RIGHT.reduce)(bytes);
        state.indeterminate.truncate(usize::from(!bytes.contains(&0)));
        (state, errors)
    });
    check(
        (logs(), damage),
        |subject, (plan, damage)| {
            let log = plan.log();
            for end in 0..=log.lines.len() {
                let (state, errors) = (subject.reduce)(Log { lines: log.lines[..end].to_vec() }.text().as_bytes());
                prop_assert_eq!(state.indeterminate.is_empty(), errors == 0);
                let _ = (subject.recover)(&state);
            }
            let mut bytes = log.text().into_bytes();
            for (at, how, byte) in damage {
                let at = at.index(bytes.len());
                match how {
                    0 => bytes[at] = b"\0\n\"}{\xff9"[usize::from(*byte) % 7],
                    1 => drop(bytes.drain(at..(at + 9).min(bytes.len()))),
                    _ => bytes.truncate(at + 1),
                }
            }
            let (state, errors) = (subject.reduce)(&bytes);
            prop_assert_eq!(state.indeterminate.is_empty(), errors == 0);
            Ok(())
        },
        &[("one that concludes from anything", blind), ("one that overlooks zero bytes", fragile)],
    );
}

/// R-REC-027
#[test]
fn nothing_is_ready_idle_or_closed_while_something_blocks() {
    let hasty = Subject {
        recover: |state| {
            let mut recovery = (RIGHT.recover)(state);
            if recovery.verdict == Verdict::NeedsReconcile {
                recovery.verdict = Verdict::Ready;
            }
            recovery
        },
        ..RIGHT
    };
    check(
        logs(),
        |subject, plan| {
            let recovery = subject.recovery(&plan.log());
            let blocked = recovery.obligations.iter().any(|o| o.blocking);
            prop_assert!(!blocked || !matches!(recovery.verdict, Verdict::Ready | Verdict::Idle | Verdict::Closed));
            Ok(())
        },
        &[("one that goes on", hasty)],
    );
}

/// R-BYT-004, R-BYT-005, R-STA-007
#[test]
fn a_cut_at_any_byte_is_the_longest_prefix_of_whole_lines() {
    let generous = reducing(|bytes| (RIGHT.reduce)(&[bytes, b"\n"].concat()));
    check(
        (logs(), proptest::collection::vec(any::<proptest::sample::Index>(), 8)),
        |subject, (plan, cuts)| {
            let text = plan.log().text();
            let ends = text.match_indices('\n').map(|(at, _)| at);
            for cut in cuts.iter().map(|cut| cut.index(text.len() + 1)).chain(ends) {
                let whole = text[..cut].rfind('\n').map_or(0, |at| at + 1);
                prop_assert_eq!(
                    (subject.reduce)(&text.as_bytes()[..cut]).0,
                    (subject.reduce)(&text.as_bytes()[..whole]).0
                );
            }
            Ok(())
        },
        &[("one that takes half a line", generous)],
    );
}

/// R-ENV-005
#[test]
fn repeated_lines_change_nothing() {
    let counting = reducing(|bytes| reduce_other(bytes, |log| log_of(events(log))));
    check(
        (logs(), proptest::collection::vec((any::<proptest::sample::Index>(), any::<proptest::sample::Index>()), 1..6)),
        |subject, (plan, again)| {
            let log = plan.log();
            let mut lines = log.lines.clone();
            for (line, place) in again {
                let line = line.index(log.lines.len());
                // A line is repeated behind its first place.
                let first = lines.iter().position(|l| *l == log.lines[line]).expect("it is there");
                let place = first + 1 + place.index(lines.len() - first);
                lines.insert(place, log.lines[line].clone());
            }
            prop_assert_eq!(subject.state(&Log { lines }), subject.state(&log));
            Ok(())
        },
        &[("one that counts them", counting)],
    );
}

/// R-STA-002, R-STA-010
#[test]
fn without_compactions_and_moves_the_control_state_is_the_same() {
    fn projection(kind: &str) -> bool {
        kind.starts_with("context.") || kind.starts_with("branch.") || kind == "message.revised"
    }
    let forgetful = reducing(|bytes| {
        reduce_other(bytes, |log| {
            let all = events(log);
            let last = all.iter().rposition(|event| event["type"] == "context.compacted").unwrap_or(0);
            log_of(
                all.into_iter()
                    .enumerate()
                    .filter(|(n, event)| *n >= last || event["type"] != "action.proposed")
                    .map(|(_, event)| event),
            )
        })
    });
    check(
        logs(),
        |subject, plan| {
            let log = plan.log();
            prop_assert_eq!(control(subject, &without(&log, projection)), control(subject, &log));
            Ok(())
        },
        &[("one that forgets what was compacted", forgetful)],
    );
}

/// R-ENV-012
#[test]
fn without_ignorable_events_nothing_comes_closer_to_ready() {
    let strict = reducing(|bytes| {
        let unknown = |kind: &str| kind.starts_with("x.");
        if String::from_utf8_lossy(bytes).contains("\"type\":\"x.") {
            let (mut state, errors) = reduce_other(bytes, |log| without(log, unknown));
            state.pending.clear();
            return (state, errors);
        }
        (RIGHT.reduce)(bytes)
    });
    check(
        logs(),
        |subject, plan| {
            let distance = |verdict| match verdict {
                Verdict::Ready => 0,
                Verdict::Idle => 1,
                _ => 2,
            };
            let log = plan.log();
            let less = without(&log, |kind| kind.starts_with("x."));
            prop_assert!(distance(subject.recovery(&less).verdict) >= distance(subject.recovery(&log).verdict));
            Ok(())
        },
        &[("one that is stopped by what it may ignore", strict)],
    );
}

/// R-ENV-012, R-REC-001
#[test]
fn an_unknown_critical_event_makes_everything_indeterminate() {
    let easy = reducing(|bytes| reduce_other(bytes, |log| without(log, |kind| kind == "weather.changed")));
    check(
        (logs(), any::<proptest::sample::Index>()),
        |subject, (plan, place)| {
            let mut all = events(&plan.log());
            let place = 1 + place.index(all.len());
            let mut event = all[0].clone();
            (event["id"], event["type"], event["data"]) = ("unheard".into(), "weather.changed".into(), json!({}));
            all.insert(place, event);
            prop_assert_eq!(subject.recovery(&log_of(all)).verdict, Verdict::Indeterminate);
            Ok(())
        },
        &[("one that passes over what it does not know", easy)],
    );
}

/// R-ACT-021
#[test]
fn a_fork_never_runs_or_reconciles_what_it_inherited() {
    let greedy = reducing(|bytes| {
        let (mut state, errors) = (RIGHT.reduce)(bytes);
        state.actions.iter_mut().for_each(|action| action.inherited = false);
        (state, errors)
    });
    check(
        logs(),
        |subject, plan| {
            let copies = events(&plan.log()).into_iter().enumerate().map(|(n, mut event)| {
                if n > 0 && event["type"] != "source.opened" {
                    event["copy"] = json!({"log": "other", "how": "fork"});
                }
                event
            });
            let recovery = subject.recovery(&log_of(copies));
            let acts = [
                Decision::Run,
                Decision::Reconcile,
                Decision::Answer,
                Decision::Compensate,
                Decision::Wait,
                Decision::Skip,
            ];
            let owed = recovery.obligations.iter().find(|owed| acts.contains(&owed.decision));
            prop_assert!(owed.is_none(), "{:?}", owed);
            Ok(())
        },
        &[("one that takes it for its own", greedy)],
    );
}

/// Whether the first attempt of an action may have run, told from its events alone: it began, and nobody said with a reason
/// that nothing came of it, nor ever will.
fn may_have_run(events: &[Value], action: &str) -> bool {
    let mut own = events.iter().filter(|event| event["data"]["action"] == action);
    let is = |event: &Value, kind: &str| event["type"] == kind;
    let settles = |e: &Value| {
        is(e, "action.reconciled") && e["data"]["outcome"] == "not_applied" && e["data"]["basis"] == "human"
    };
    own.clone().any(|event| is(event, "action.started")) && !own.any(settles)
}

/// R-REC-007, R-REC-016, R-REC-017
#[test]
fn what_may_have_run_is_not_run_again() {
    let again = Subject {
        recover: |state| {
            let mut recovery = (RIGHT.recover)(state);
            for owed in recovery.obligations.iter_mut().filter(|owed| owed.decision == Decision::Reconcile) {
                owed.decision = Decision::Run;
            }
            recovery
        },
        ..RIGHT
    };
    let unstarted = reducing(|bytes| reduce_other(bytes, |log| without(log, |kind| kind == "action.started")));
    check(
        logs(),
        |subject, plan| {
            let log = plan.log();
            let all = events(&log);
            let runs = |log: &Log| {
                let owed = subject.recovery(log).obligations;
                let run =
                    |owed: &Obligation| owed.decision == Decision::Run && owed.subject.kind == SubjectKind::Action;
                let runs = owed.into_iter().filter(run);
                runs.map(|owed| owed.subject.id).collect::<Vec<_>>()
            };
            let state = subject.state(&log);
            for action in runs(&log) {
                let known = state.action(&action).expect("an action");
                // A read may run again, the target settles what has a key, and what is void has no effect; attempts that
                // others named are not counted.
                if state.void.is_empty()
                    && !known.only_reads()
                    && known.idempotency_key.is_none()
                    && all.iter().all(|e| e["data"]["attempt"].is_null())
                {
                    prop_assert!(!may_have_run(&all, &action), "{} is run again", action);
                }
                // Whoever obeys, and stops right after the start, does not run it a second time.
                let attempt = known.attempt.0;
                let started = log.clone().add("action.started", json!({"action": action, "attempt": attempt}));
                prop_assert!(!runs(&started).contains(&action), "{} is run after it was started", action);
            }
            Ok(())
        },
        &[("one that runs what is in doubt", again), ("one that overlooks starts", unstarted)],
    );
}

/// R-ACT-001
#[test]
fn two_interleavings_of_the_sources_give_the_same_actions() {
    let ordered = reducing(|bytes| {
        reduce_other(bytes, |log| {
            // An answer counts only behind the question.
            let all = events(log);
            let asked = all.iter().position(|event| event["type"] == "approval.requested").unwrap_or(all.len());
            log_of(
                all.into_iter()
                    .enumerate()
                    .filter(|(n, event)| *n > asked || event["type"] != "approval.ended")
                    .map(|(_, event)| event),
            )
        })
    });
    check(
        two_sources(),
        |subject, (one, two)| {
            let judged = |log: &Log| {
                let state = subject.state(log);
                let actions: BTreeMap<_, _> =
                    state.actions.iter().map(|a| (a.action.clone(), (a.state, a.doubt, a.applied))).collect();
                let mut approvals: Vec<(Option<String>, ApprovalStatus)> =
                    state.approvals.iter().map(|a| (a.action.clone(), a.status)).collect();
                approvals.sort();
                (actions, approvals)
            };
            prop_assert_eq!(judged(one), judged(two));
            Ok(())
        },
        &[("one that goes by the order", ordered)],
    );
}

/// Each verdict occurs in at least one of fifty logs, and each state of an action in one of a hundred.
#[test]
fn the_logs_are_of_all_kinds() {
    const LOGS: u32 = 600;
    let mut verdicts: BTreeMap<Verdict, u32> = BTreeMap::new();
    let mut states: BTreeMap<ActionState, u32> = BTreeMap::new();
    let config = Config { cases: LOGS, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let counted = std::cell::RefCell::new((&mut verdicts, &mut states));
    let count = |plan: Plan| {
        let state = RIGHT.state(&plan.log());
        let mut counted = counted.borrow_mut();
        *counted.0.entry((RIGHT.recover)(&state).verdict).or_default() += 1;
        let of_all: std::collections::BTreeSet<ActionState> = state.actions.iter().map(|a| a.state).collect();
        of_all.into_iter().for_each(|state| *counted.1.entry(state).or_default() += 1);
        Ok(())
    };
    TestRunner::new_with_rng(config, rng).run(&logs(), count).expect("counting does not fail");
    use Verdict::{AwaitingHuman, Closed, Idle, Indeterminate, NeedsReconcile, Owned, Ready};
    for verdict in [Indeterminate, Closed, Owned, NeedsReconcile, AwaitingHuman, Ready, Idle] {
        let count = verdicts.get(&verdict).copied().unwrap_or_default();
        assert!(count * 50 >= LOGS, "{verdict}: {verdicts:?}");
    }
    assert_eq!(states.len(), 10, "{states:?}");
    assert!(states.values().all(|count| count * 100 >= LOGS), "{states:?}");
}
