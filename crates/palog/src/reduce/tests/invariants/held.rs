//! What holds for every log in which something is held, redacted, or gone on with elsewhere.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRng, TestRunner};
use serde_json::{Value, json};

use super::super::{ALL, Log};
use super::logs::{Plan, events, log_of, logs};
use super::{RIGHT, check, control, reduce_other, reducing};
use crate::cursor::Cursor;
use crate::reader::{Item, Reader};
use crate::recover::{Context, Verdict, recover};
use crate::reduce::Reducer;

/// R-OWN-001
#[test]
fn what_came_too_late_changes_nothing() {
    let fearless = reducing(|bytes| {
        reduce_other(bytes, |log| {
            log_of(events(log).into_iter().map(|mut event| {
                event.as_object_mut().map(|members| members.remove("epoch"));
                event
            }))
        })
    });
    check(
        logs(),
        |subject, plan| {
            let log = plan.log();
            let void: Vec<String> = RIGHT.state(&log).void.into_iter().map(|void| void.at.event).collect();
            // One that others name as their parent is missing without it.
            let named =
                void.iter().any(|id| log.lines.iter().any(|line| line.contains(&format!("\"parent\":\"{id}\""))));
            prop_assume!(!named);
            let less = log_of(events(&log).into_iter().filter(|event| void.iter().all(|id| event["id"] != json!(id))));
            prop_assert_eq!(control(subject, &less), control(subject, &log));
            Ok(())
        },
        &[("one that knows no epochs", fearless)],
    );
}

/// R-STA-010, R-EVT-014
#[test]
fn with_all_content_redacted_the_control_state_is_the_same() {
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
    let literal = reducing(|bytes| {
        reduce_other(bytes, |log| {
            let held =
                |event: &Value| event["type"] != "action.proposed" || event["data"]["args"]["$omitted"].is_null();
            log_of(events(log).into_iter().filter(held))
        })
    });
    check(
        logs(),
        |subject, plan| {
            let log = plan.log();
            let redacted = log_of(events(&log).into_iter().map(|mut event| {
                redact(&mut event["data"]);
                event
            }));
            prop_assert_eq!(control(subject, &redacted), control(subject, &log));
            Ok(())
        },
        &[("one that needs the arguments", literal)],
    );
}

/// The reducer after these lines.
fn reducer_after(mut reducer: Reducer, text: &str) -> Reducer {
    let mut reader = Reader::new(text.as_bytes());
    while let Some(item) = reader.next().expect("memory can be read") {
        match item {
            Item::Event(event, line) => reducer.apply(&event, Some(&line)),
            Item::Fault(fault) => reducer.fault(fault),
        }
    }
    reducer
}

/// R-STA-011
#[test]
fn a_snapshot_and_what_comes_after_it_are_the_whole() {
    fn property(plan: &Plan, cut: usize, keep: fn(String) -> String) -> Result<(), TestCaseError> {
        let log = plan.log();
        let cut = cut % log.lines.len();
        let part = |lines: &[String]| Log { lines: lines.to_vec() }.text();
        let snapshot = reducer_after(Reducer::new(), &part(&log.lines[..cut])).snapshot(Cursor::of(0, b""));
        let (reducer, _) = Reducer::restore(&keep(snapshot)).expect("it is ours");
        // What was said twice before the cut, and what came of it after, is the same as at once.
        prop_assert_eq!(reducer_after(reducer, &part(&log.lines[cut..])).finish().0, log.state());
        Ok(())
    }
    let config = Config { failure_persistence: None, ..Config::default() };
    let cuts = (logs(), any::<usize>());
    if let Err(error) =
        TestRunner::new(config.clone()).run(&cuts, |(plan, cut)| property(&plan, cut, |snapshot| snapshot))
    {
        panic!("{error}");
    }
    let config = Config { max_shrink_iters: 0, ..config };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let forgets = |snapshot: String| {
        snapshot
            .replace("\"open\":true", "\"open\":false")
            .replace("\"answered\":\"1\"", "\"answered\":\"9\"")
            .replace("\"running\"", "\"proposed\"")
            .replace("\"status\":\"queued\"", "\"status\":\"dropped\"")
    };
    let found = TestRunner::new_with_rng(config, rng).run(&cuts, |(plan, cut)| property(&plan, cut, forgets));
    assert!(matches!(found, Err(TestError::Fail(..))), "a snapshot that forgets is not found out: {found:?}");
}

/// R-FAM-002
#[test]
fn a_fork_with_its_parent_at_hand_runs_and_reconciles_nothing_of_it() {
    let opened = |mode: &str| {
        let parent = json!({"log": "l", "mode": mode});
        let data = json!({"spec": "1.0", "session": "m", "agent": {"name": "test"}, "records": ALL, "parent": parent});
        Log::default().with("log.opened", data, json!({"log": "m"})).text()
    };
    let (fork, continuation) = (opened("fork"), opened("continue"));
    let owes = |plan: &Plan, child: &str| {
        let parent = reducer_after(Reducer::new(), &plan.log().text());
        let state = reducer_after(Reducer::after_parent(parent), child).finish().0;
        let recovery = recover(&state, &Context::new());
        let inherited = state.actions.iter().all(|action| action.inherited);
        recovery.obligations.iter().any(|owed| owed.call.is_some())
            || !inherited
            || matches!(recovery.verdict, Verdict::NeedsReconcile | Verdict::Owned)
    };
    let config = Config { failure_persistence: None, ..Config::default() };
    let held = TestRunner::new(config.clone()).run(&logs(), |plan| {
        prop_assert!(!owes(&plan, &fork));
        Ok(())
    });
    if let Err(error) = held {
        panic!("{error}");
    }
    // A continuation takes everything over: taken for a fork, it is found out.
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let found = TestRunner::new_with_rng(Config { max_shrink_iters: 0, ..config }, rng).run(&logs(), |plan| {
        prop_assert!(!owes(&plan, &continuation));
        Ok(())
    });
    assert!(matches!(found, Err(TestError::Fail(..))), "{found:?}");
}
