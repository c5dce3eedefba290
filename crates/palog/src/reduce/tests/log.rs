//! The log as a whole: its order, sources, configuration, counts.

use serde_json::json;

use super::{Log, get, stepwise};
use crate::blob::sha256_hex;
use crate::cursor::Cursor;
use crate::diagnostic::{Code, Severity};
use crate::events::Recorded;
use crate::reader::{Item, Reader};
use crate::recover::Verdict;
use crate::reduce::Reducer;
use crate::state::{ActionState, Count, State};

fn errors(log: &Log) -> Vec<Code> {
    log.state().indeterminate.iter().map(|r| r.code).collect()
}

/// R-ENV-003, R-ENV-004
#[test]
fn a_log_begins_with_its_opening_and_is_one_log() {
    assert_eq!(errors(&Log::default().prompt("p")), [Code::NotOpened]);
    assert_eq!(
        errors(&Log::live().add("log.opened", json!({"spec": "1.0", "session": "t", "agent": {"name": "x"}}))),
        [Code::NotOpened]
    );
    let other = Log::live().with("action.proposed", super::proposal("a", json!({})), json!({"log": "m", "seq": 1}));
    assert_eq!(errors(&other), [Code::OtherLog]);
    assert!(other.state().actions.is_empty());
    assert!(errors(&Log::live()).is_empty());
}

/// R-ENV-005
#[test]
fn a_gap_is_an_error_and_so_is_another_line_in_the_same_place() {
    let gap = Log::live().with("note.added", json!({"kind": "import"}), json!({"seq": 2}));
    assert_eq!(errors(&gap), [Code::SeqGap]);
    let log = Log::live().prompt("p");
    let repeated = log.lines[1].clone();
    let (state, found) = log.clone().line(&repeated).reduce();
    assert_eq!(found.groups()[0].code, Code::SeqRepeated);
    assert_eq!(found.groups()[0].severity, Severity::Warning);
    assert_eq!(state, log.state());
    let conflicting = repeated.replace("\"do\"", "\"be\"");
    assert_eq!(errors(&log.clone().line(&conflicting)), [Code::SeqConflict]);
    let gone = Log::live().with("note.added", json!({"kind": "import"}), json!({"seq": 2}));
    let filled = gone.with("note.added", json!({"kind": "import"}), json!({"seq": 1}));
    assert_eq!(errors(&filled), [Code::SeqGap, Code::SeqConflict]);
}

/// R-ENV-008, R-STA-011
#[test]
fn a_link_holds_also_to_a_line_that_only_a_snapshot_remembers() {
    let linked = |log: &Log, to: usize| {
        let prev = sha256_hex(log.lines[to].as_bytes());
        log.clone().with("note.added", json!({"kind": "x"}), json!({"prev": prev}))
    };
    let log = Log::live().prompt("p");
    assert_eq!(errors(&linked(&log, 2)), []);
    assert_eq!(errors(&linked(&log, 1)), [Code::PrevMismatch]);
    let repeated = log.clone().line(&log.lines[1]);
    let prev = sha256_hex(log.lines[2].as_bytes());
    let after = repeated.with("note.added", json!({"kind": "x"}), json!({"prev": prev, "seq": 3, "id": "n"}));
    assert_eq!(errors(&after), [], "a repeated line is not counted");
    let tail = |log: &Log| {
        let feed = |reducer: &mut Reducer, lines: &[String]| {
            let text = Log { lines: lines.to_vec() }.text();
            let mut reader = Reader::new(text.as_bytes());
            while let Some(Item::Event(event, line)) = reader.next().expect("memory can be read") {
                reducer.apply(&event, Some(&line));
            }
        };
        let (mut before, cursor) = (Reducer::new(), Cursor { seq: 2, sha256: [0; 32] });
        feed(&mut before, &log.lines[..3]);
        let (mut reducer, _) = Reducer::restore(&before.snapshot(cursor)).expect("it was just written");
        feed(&mut reducer, &log.lines[3..]);
        reducer.finish().0.indeterminate.iter().map(|reason| reason.code).collect::<Vec<_>>()
    };
    assert_eq!(tail(&linked(&log, 2)), []);
    assert_eq!(tail(&linked(&log, 1)), [Code::PrevMismatch]);
}

/// R-ACT-002, R-REC-001
#[test]
fn nothing_runs_whose_arguments_have_another_digest() {
    let other = super::digest_of(&json!("else"));
    let log = Log::live().prompt("p").answer("r").propose("a", json!({"args_digest": other}));
    assert_eq!(errors(&log), [Code::ArgsMismatch]);
    assert_eq!(log.recovery().verdict, Verdict::Indeterminate);
    let blob =
        |digest: &str| json!({"args": {"$blob": digest, "size": 3, "media": "application/json"}, "args_digest": other});
    let of = |args| errors(&Log::live().prompt("p").answer("r").propose("a", args));
    assert_eq!(of(blob(&other)), []);
    assert_eq!(of(blob(&super::digest_of(&json!("a")))), [Code::ArgsMismatch]);
    assert_eq!(of(json!({"args": {"$omitted": {"reason": "redacted"}}, "args_digest": other})), []);
}

/// R-ENV-007
#[test]
fn nothing_can_be_concluded_from_ids_that_stand_twice_or_have_no_form() {
    let log = || Log::live().prompt("p").answer("r");
    assert_eq!(errors(&log().user("p", json!({}))), [Code::DuplicateId]);
    assert_eq!(errors(&log().with("note.added", json!({"kind": "x"}), json!({"id": "e2"}))), [Code::DuplicateId]);
    assert_eq!(errors(&log().with("branch.moved", json!({"to": "p"}), json!({"id": "p"}))), [Code::DuplicateId]);
    let unread = |id: &str| log().with("note.added", json!({"kind": 1}), json!({"id": id}));
    assert_eq!(errors(&unread("p")), [Code::DuplicateId, Code::BadPayload], "also of what cannot be read");
    assert_eq!(errors(&unread("n").user("n", json!({}))), [Code::BadPayload, Code::DuplicateId]);
    let awaited = log().user("q", json!({"parent": "n"})).with("note.added", json!({"kind": 1}), json!({"id": "n"}));
    assert_eq!(errors(&awaited.user("n", json!({}))), [Code::BadPayload, Code::DuplicateId]);
    let late = log().lease(2).with("note.added", json!({"kind": "x"}), json!({"id": "p", "epoch": 1}));
    assert_eq!(errors(&late), [Code::DuplicateId], "and of what comes too late");
    assert_eq!(errors(&log().user(&"i".repeat(129), json!({}))), [Code::BadEnvelope]);
    assert_eq!(errors(&log().user("", json!({}))), [Code::BadEnvelope]);
    assert!(errors(&log().user(&"i".repeat(128), json!({}))).is_empty());
}

/// R-ENV-009
#[test]
fn any_event_can_be_a_parent() {
    let others = [
        ("config.set", json!({"model": "m"})),
        ("note.added", json!({"kind": "x"})),
        ("x.org.example/kept", json!({})),
        ("observation.recorded", json!({"fact": "idle", "source": "s"})),
    ];
    for (kind, data) in others {
        let log = Log::live().prompt("p").answer("r").with(kind, data, json!({"id": "x"}));
        let (state, found) = log.user("q", json!({"parent": "x"})).reduce();
        assert!(found.is_empty(), "{kind}: {found:?}");
        assert_eq!(state.head.as_deref(), Some("q"), "{kind}");
    }
}

/// R-ENV-012, R-ENV-013, R-ENV-014
#[test]
fn what_cannot_be_understood_makes_the_log_indeterminate_unless_it_is_ignorable() {
    let log = |kind: &str, more| errors(&Log::live().with(kind, json!({}), more));
    assert_eq!(log("lease.flown", json!({})), [Code::UnknownCritical]);
    assert!(log("lease.flown", json!({"ignorable": true})).is_empty());
    assert!(log("x.org.example/thing", json!({})).is_empty());
    assert_eq!(log("x.org.example/thing", json!({"ignorable": false})), [Code::UnknownCritical]);
    assert_eq!(log("action.proposed", json!({"ignorable": true})), [Code::BadPayload]);
    assert_eq!(log("Lease", json!({})), [Code::BadType]);
    assert_eq!(log("x.thing", json!({"ignorable": true})), [Code::BadType]);
}

/// R-ENV-016
#[test]
fn only_notes_follow_the_end() {
    let closed = Log::live().add("log.closed", json!({"how": "complete"}));
    assert!(!closed.clone().add("note.added", json!({"kind": "import"})).codes().contains(&Code::AfterClose));
    assert!(closed.prompt("p").codes().contains(&Code::AfterClose));
}

/// R-STA-007
#[test]
fn faults_of_the_reader_count() {
    let torn = Log::live().text() + "{\"palog\":1,";
    let (state, found) = crate::reduce::reduce(torn.as_bytes()).expect("memory can be read");
    assert!(state.indeterminate.is_empty());
    assert_eq!(found.groups()[0].code, Code::TornTail);
    assert_eq!(errors(&Log::live().line("{}")), [Code::BadEnvelope]);
    assert_eq!(errors(&Log::live().line("{")), [Code::BadJson]);
}

/// R-ENV-009, R-ENV-010
#[test]
fn loops_are_cut_and_missing_parents_told_at_the_end() {
    let missing = Log::live().user("a", json!({"parent": "gone"}));
    assert_eq!(missing.codes(), [Code::MissingParent]);
    assert_eq!(missing.clone().user("gone", json!({})).codes(), []);
    let compaction = missing.with("context.compacted", json!({"window": []}), json!({"id": "gone"}));
    assert_eq!(compaction.codes(), [], "a compaction can be a parent");
    assert_eq!(Log::live().user("a", json!({"parent": "a"})).codes(), [Code::Cycle]);
    let ring = Log::live()
        .user("a", json!({"parent": "c"}))
        .user("b", json!({"parent": "a"}))
        .user("c", json!({"parent": "b"}));
    assert_eq!(ring.codes(), [Code::Cycle]);
    assert!(ring.state().indeterminate.is_empty());
    let two_rings = Log::live()
        .user("a", json!({"parent": "b"}))
        .user("b", json!({"parent": "c"}))
        .user("c", json!({"parent": "d"}))
        .user("d", json!({"parent": "b"}));
    assert_eq!(two_rings.codes(), [Code::Cycle]);
}

#[test]
fn the_head_is_the_newest_event_on_the_path() {
    let head = |log: &Log| log.state().head;
    let log = Log::live();
    assert_eq!(head(&log), None);
    let log = log.prompt("p").answer("r");
    assert_eq!(head(&log).as_deref(), Some("e3"));
    assert_eq!(head(&log.clone().add("note.added", json!({"kind": "import"}))).as_deref(), Some("e3"));
    let back = log.clone().add("branch.moved", json!({"to": "p"}));
    assert_eq!(head(&back).as_deref(), Some("p"));
    assert_eq!(head(&log.clone().add("branch.moved", json!({"to": "root"}))), None);
    let awaiting =
        log.with("message.added", json!({"role": "assistant", "parts": []}), json!({"id": "early", "parent": "late"}));
    assert_eq!(head(&awaiting.clone().user("late", json!({"parent": "p"}))).as_deref(), Some("early"));
    let elsewhere = awaiting.user("other", json!({"parent": "p"}));
    assert_eq!(head(&elsewhere).as_deref(), Some("other"));
    let nested = log_of_two_late_parents();
    assert_eq!(head(&nested).as_deref(), Some("w"), "the newest under the first");
    assert_eq!(
        head(&nested.user("o", json!({"parent": "root"}))).as_deref(),
        Some("x2"),
        "the newest under the second"
    );
    assert_eq!(head(&elsewhere.user("late", json!({"parent": "p"}))).as_deref(), Some("early"), "last written is head");
}

/// `x` and `x2` hang under `o`, which is to come; `w` under `g`, which comes under `x`.
fn log_of_two_late_parents() -> Log {
    Log::live()
        .user("x", json!({"parent": "o"}))
        .user("w", json!({"parent": "g"}))
        .user("x2", json!({"parent": "x"}))
        .user("g", json!({"parent": "x"}))
}

#[test]
fn the_latest_time_is_the_greatest() {
    let at = |log: Log, time: &str| {
        log.with("note.added", json!({"kind": "x"}), json!({"type": "config.set", "time": time}))
    };
    let log = at(at(Log::live(), "2026-01-01T00:00:02Z"), "2026-01-01T00:00:01Z");
    assert_eq!(log.state().latest_time.as_deref(), Some("2026-01-01T00:00:02Z"));
}

/// R-ENV-011
#[test]
fn copies_are_not_counted() {
    let copy = json!({"copy": {"log": "parent", "how": "fork"}});
    let usage = json!({"response": "r", "usage": {"input": 5}});
    let log = Log::live()
        .user("p", copy.clone())
        .add("turn.started", json!({"message": "p"}))
        .with("model.response", usage.clone(), copy)
        .prompt("q")
        .add("model.response", json!({"response": "s", "usage": {"input": 7}}));
    let state = log.state();
    assert_eq!((state.counts.messages, state.counts.prompts, state.counts.responses), (Count(1), Count(1), Count(1)));
    let of = |log: Log, how: &str| log.user("copy", json!({"copy": {"log": "l", "event": "p", "how": how}}));
    let answered = || Log::live().prompt("p").answer("r").add("turn.ended", json!({"how": "complete"}));
    for how in ["replay", "compaction"] {
        assert_eq!(of(answered(), how).pending(), [], "{how}: it stands in this log already");
    }
    assert_eq!(of(answered(), "replay").state().head.as_deref(), Some("e3"));
    assert_eq!(of(answered(), "compaction").state().head.as_deref(), Some("copy"));
    assert_eq!(of(Log::live(), "fork").pending().len(), 1, "a fork goes on from what it took along");
    assert_eq!(of(Log::live(), "inherit").pending(), [], "a child does not answer its parent's prompts");
    let ended = json!({"action": "a", "outcome": "succeeded", "applied": "yes"});
    let fork = || json!({"copy": {"log": "parent", "how": "fork"}});
    let fork = Log::live().with("action.proposed", super::proposal("a", json!({})), fork()).with(
        "action.ended",
        ended,
        fork(),
    );
    assert_eq!(fork.pending(), []);
    assert_eq!(state.usage.input, Some(Count(7)));
}

/// R-STA-001
#[test]
fn the_last_report_on_a_response_counts_once() {
    let report = |log: Log, input: u64| {
        log.add("model.response", json!({"response": "r", "usage": {"input": input, "output": 1}}))
    };
    let log = report(report(Log::live(), 10), 4).stop("r", "end_turn");
    let state = log.state();
    assert_eq!((state.usage.input, state.usage.output, state.usage.reasoning), (Some(Count(4)), Some(Count(1)), None));
    assert_eq!(state.counts.responses, Count(1));
}

/// R-STA-003
#[test]
fn an_observation_changes_nothing_but_what_was_seen() {
    let log = Log::imported(&["usage"]).prompt("p").call("r", "a", "unknown");
    let seen = |log: Log, fact: &str, as_of: &str| {
        log.add("observation.recorded", json!({"fact": fact, "as_of": as_of, "source": "status", "subject": "a"}))
    };
    let before = log.state();
    let after = seen(log, "waiting", "2026-01-01T00:00:00Z");
    let State { actions, approvals, pending, latest_time, .. } = after.state();
    assert_eq!((actions, approvals, pending, latest_time), (before.actions, before.approvals, before.pending, None));
    let later = json!({"time": "2026-01-02T00:00:00Z"});
    let dated = after.clone().with("observation.recorded", json!({"fact": "idle", "source": "status"}), later);
    assert_eq!(dated.state().latest_time, None, "when something was seen says nothing about the session");
    let newest =
        seen(seen(after, "waiting", "2026-01-01T00:00:02Z"), "waiting", "2026-01-01T00:00:01Z").state().observations;
    assert_eq!(newest.len(), 1);
    assert_eq!(newest[0].as_of.as_deref(), Some("2026-01-01T00:00:02Z"));
}

/// R-STA-004
#[test]
fn a_title_that_was_set_stands_before_a_summary_and_a_summary_needs_what_it_is_about() {
    let note = |about: &str, text: &str| json!({"kind": "summary", "about": about, "text": text});
    let log = Log::live().add("note.added", note("p", "early")).add("note.added", note("gone", "foreign"));
    assert_eq!(log.state().title, None);
    let log = log.prompt("p");
    assert_eq!(log.state().title.as_deref(), Some("early"));
    let log = log.add("note.added", note("p", "later"));
    assert_eq!(log.state().title.as_deref(), Some("later"));
    assert_eq!(
        log.add("config.set", json!({"title": "mine"})).add("note.added", note("p", "x")).state().title.as_deref(),
        Some("mine")
    );
}

/// R-STA-005
#[test]
fn a_source_that_is_opened_anew_promises_nothing_about_what_came_before() {
    let log = Log::imported(super::ALL).prompt("p").call("r", "a", "unknown");
    assert_eq!(log.is("a"), ActionState::Proposed);
    assert_eq!(log.clone().source("main", super::ALL).is("a"), ActionState::Proposed, "it goes on recording the same");
    let less = log.source("main", &["usage"]);
    assert_eq!(less.is("a"), ActionState::Unknown);
    assert!(less.state().unseen.contains(&Recorded::ActionStarted));
    assert_eq!(less.source("main", super::ALL).is("a"), ActionState::Unknown, "it may have missed the start");
    let other =
        Log::imported(super::ALL).prompt("p").call("r", "a", "unknown").source("hooks", super::ALL).source("main", &[]);
    assert_eq!(other.is("a"), ActionState::Unknown, "the other source came after the proposal");
}

#[test]
fn the_definition_is_what_was_set_last() {
    let log = Log::live()
        .add("config.set", json!({"model": "m1", "directory": "/w"}))
        .add("config.set", json!({"model": "m2", "branch": "main"}));
    let config = log.state().config;
    assert_eq!(
        (config.model.as_deref(), config.directory.as_deref(), config.branch.as_deref()),
        (Some("m2"), Some("/w"), Some("main"))
    );
}

#[test]
fn an_explicit_link_to_a_child_stands_before_an_inferred_one() {
    let spawned = |action: &str, link: &str| json!({"child": "c", "session": "t", "action": action, "kind": "subagent", "link": link});
    for order in [["inferred", "explicit"], ["explicit", "inferred"]] {
        let log = order.iter().fold(Log::live(), |log, link| log.add("child.spawned", spawned(link, link)));
        let state = log.add("child.ended", json!({"child": "c", "status": "done"})).state();
        assert_eq!(state.children.len(), 1);
        assert_eq!(state.children[0].action.as_deref(), Some("explicit"));
        assert!(state.children[0].ended);
    }
}

#[test]
fn a_state_survives_being_written_and_has_no_bare_numbers() {
    let log = Log::imported(&["usage"])
        .prompt("p")
        .call("r", "a", "unknown")
        .ask("x", "a")
        .add("input.queued", json!({"input": "i", "parts": []}));
    let (state, _) = stepwise(&log.text());
    let text = serde_json::to_string(&state).expect("a state can be written");
    assert_eq!(serde_json::from_str::<State>(&text).expect("and read"), state);
    fn scalars(value: &serde_json::Value) -> bool {
        match value {
            serde_json::Value::Null | serde_json::Value::Number(_) => false,
            serde_json::Value::Bool(_) | serde_json::Value::String(_) => true,
            serde_json::Value::Array(items) => items.iter().all(scalars),
            serde_json::Value::Object(members) => members.values().all(scalars),
        }
    }
    assert!(scalars(&serde_json::from_str(&text).expect("json")), "{text}");
    assert_eq!(get(&state, "a").seq, Count(4));
    assert!(serde_json::from_str::<Count>("\"007\"").is_err());
}
