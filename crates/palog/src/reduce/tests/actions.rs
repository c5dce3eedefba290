//! Actions and approvals.

use serde_json::{Value, json};

use super::{Log, digest_of, get};
use crate::diagnostic::{Code, Severity};
use crate::events::{Applied, EffectClass};
use crate::state::{ActionState::*, ApprovalStatus as Status, Told};

/// A call in a log that records everything.
fn live() -> Log {
    Log::live().prompt("p").call("r", "a", "write_local")
}

/// A call in a log of a source that records nothing about it.
fn silent() -> Log {
    Log::imported(&["usage"]).prompt("p").call("r", "a", "write_local")
}

/// R-ACT-001
#[test]
fn the_order_of_the_events_of_an_action_changes_nothing() {
    type Step = (&'static str, Value);
    let propose = || ("action.proposed", super::proposal("a", json!({})));
    let start = || ("action.started", json!({"action": "a"}));
    let end = |applied: &str| ("action.ended", json!({"action": "a", "outcome": "failed", "applied": applied}));
    let ask = || ("approval.requested", json!({"approval": "x", "kind": "permission", "action": "a"}));
    let decide = |outcome: &str| ("approval.ended", json!({"approval": "x", "action": "a", "outcome": outcome}));
    let sets: Vec<Vec<Step>> = vec![
        vec![propose(), ask(), decide("granted"), start()],
        vec![propose(), ask(), decide("denied"), start()],
        vec![propose(), ask(), end("no")],
        vec![propose(), ask(), end("yes"), end("no")],
        vec![propose(), decide("granted"), end("partial"), start()],
        vec![propose(), ask(), decide("expired"), decide("granted")],
    ];
    for set in sets {
        let mut orders = Vec::new();
        permute(&mut set.clone(), 0, &mut orders);
        let judged = |steps: &Vec<Step>| {
            let log = steps.iter().fold(Log::live().prompt("p"), |log, (kind, data)| log.add(kind, data.clone()));
            let state = log.state();
            let a = get(&state, "a");
            (a.state, a.doubt, a.applied, log.approvals())
        };
        let first = judged(&orders[0]);
        for order in &orders {
            assert_eq!(judged(order), first, "{order:?}");
        }
    }
}

fn permute<T: Clone>(steps: &mut Vec<T>, from: usize, into: &mut Vec<Vec<T>>) {
    if from == steps.len() {
        return into.push(steps.clone());
    }
    for at in from..steps.len() {
        steps.swap(from, at);
        permute(steps, from + 1, into);
        steps.swap(from, at);
    }
}

/// R-ACT-002
#[test]
fn a_second_proposal_with_other_arguments_is_told_and_changes_nothing() {
    let same = live().propose("a", json!({}));
    assert!(!same.codes().contains(&Code::ProposedTwice));
    let classes = |one: &str, two: &str| {
        let effect = |class: &str| json!({"effect": {"class": class}});
        get(&Log::live().propose("a", effect(one)).propose("a", effect(two)).state(), "a").class
    };
    assert_eq!(classes("pure", "write_local"), EffectClass::WriteLocal, "the less harmless class counts");
    assert_eq!(classes("write_local", "pure"), EffectClass::WriteLocal);
    let other = live().propose("a", json!({"args": "other", "name": "other"}));
    assert!(other.codes().contains(&Code::ProposedTwice));
    assert_eq!(get(&other.state(), "a").name.as_deref(), Some("tool"));
    assert_eq!(get(&other.state(), "a").args_digest.as_deref(), Some(digest_of(&json!("a")).as_str()));
}

/// R-ACT-003, R-ACT-004
#[test]
fn ends_that_disagree_or_do_not_know_make_an_action_unknown() {
    let disagree = live().end("a", "failed", "no").end("a", "succeeded", "yes");
    assert_eq!(disagree.judged("a"), (Unknown, "ends_disagree".into()));
    assert!(disagree.codes().contains(&Code::EndsDisagree));
    assert_eq!(live().end("a", "failed", "unknown").judged("a"), (Unknown, "end_unknown".into()));
    assert_eq!(live().end("a", "cancelled", "unknown").end("a", "cancelled", "no").judged("a").1, "ends_disagree");
}

/// R-ACT-005
#[test]
fn an_end_decides_whatever_else_is_recorded() {
    for (outcome, applied, state) in
        [("succeeded", "yes", Succeeded), ("failed", "no", Failed), ("cancelled", "partial", Cancelled)]
    {
        let log = live().ask("x", "a").decide("x", "denied").start("a").end("a", outcome, applied);
        assert_eq!(log.is("a"), state);
        assert_eq!(silent().end("a", outcome, applied).is("a"), state);
    }
    let twice = live().end("a", "succeeded", "yes").end("a", "failed", "yes");
    assert_eq!(twice.is("a"), Failed);
    assert!(twice.codes().contains(&Code::EndedTwice));
    let two_sources = |a: &str, b: &str| {
        let end = |outcome: &str| json!({"action": "a", "outcome": outcome, "applied": "yes"});
        let from = |source: &str| json!({"src": [{"source": source, "at": 0, "len": 1}]});
        live().with("action.ended", end(a), from("one")).with("action.ended", end(b), from("two"))
    };
    assert_eq!(two_sources("cancelled", "succeeded").is("a"), Cancelled);
    assert_eq!(two_sources("succeeded", "cancelled").is("a"), Cancelled);
    assert_eq!(two_sources("cancelled", "failed").is("a"), Failed);
    assert!(!two_sources("succeeded", "succeeded").codes().contains(&Code::EndedTwice));
}

/// R-ACT-006
#[test]
fn one_denial_denies() {
    let log = live().ask("x", "a").ask("y", "a").decide("x", "granted").decide("y", "denied");
    assert_eq!(log.is("a"), Denied);
    assert_eq!(get(&log.state(), "a").applied, Applied::No);
    assert_eq!(silent().add("approval.ended", json!({"action": "a", "outcome": "denied"})).is("a"), Denied);
}

/// R-ACT-006, R-ACT-007
#[test]
fn what_was_started_in_spite_of_a_denial_may_have_run() {
    for log in
        [live().ask("x", "a").decide("x", "denied").start("a"), live().start("a").ask("x", "a").decide("x", "denied")]
    {
        assert_eq!((log.is("a"), get(&log.state(), "a").applied), (Running, Applied::Unknown));
    }
    let background = silent().add("approval.ended", json!({"action": "a", "outcome": "denied"})).result("a", false);
    assert_eq!((background.is("a"), get(&background.state(), "a").applied), (Running, Applied::Yes));
}

/// R-ACT-007
#[test]
fn a_start_or_a_result_that_is_not_final_is_running() {
    let started = live().start("a").state();
    assert_eq!((get(&started, "a").state, get(&started, "a").applied), (Running, Applied::Unknown));
    let background = silent().result("a", false).state();
    assert_eq!((get(&background, "a").state, get(&background, "a").applied), (Running, Applied::Yes));
    assert_eq!(get(&background, "a").told, Told::Partial);
    assert_eq!(silent().result("a", false).result("a", true).is("a"), Running);
}

/// R-ACT-008, R-ACT-009
#[test]
fn an_open_request_is_waiting_only_if_its_end_would_be_recorded() {
    assert_eq!(live().ask("x", "a").is("a"), Awaiting);
    let request = || json!({"approval": "x", "kind": "permission", "action": "a"});
    let from = |source: &str| json!({"src": [{"source": source, "at": 0, "len": 1}]});
    let log =
        |records: &[&str]| Log::imported(&["usage"]).source("hooks", records).prompt("p").call("r", "a", "unknown");
    let asked = log(&["approval.requested"]).with("approval.requested", request(), from("hooks"));
    assert_eq!(asked.judged("a"), (Unknown, "asked".into()));
    assert_eq!(asked.approvals(), [("x".to_owned(), Status::Asked)]);
    let open = log(&["approval.requested", "approval.ended"]).with("approval.requested", request(), from("hooks"));
    assert_eq!(open.is("a"), Awaiting);
    assert_eq!(open.approvals(), [("x".to_owned(), Status::Open)]);
    let of_another = log(&["approval.ended"]).with("approval.requested", request(), from("main"));
    assert_eq!(of_another.judged("a"), (Unknown, "asked".into()));
}

/// R-ACT-010
#[test]
fn granted_is_approved_only_where_a_start_would_be_recorded() {
    let both = live().ask("x", "a").ask("y", "a").decide("x", "granted");
    assert_eq!(both.is("a"), Awaiting);
    assert_eq!(both.decide("y", "granted").is("a"), Approved);
    let log =
        Log::imported(&["approval.requested", "approval.ended"]).prompt("p").call("r", "a", "unknown").ask("x", "a");
    assert_eq!(log.is("a"), Awaiting);
    assert_eq!(log.decide("x", "granted").judged("a"), (Unknown, "granted".into()));
}

/// R-ACT-011
#[test]
fn a_lapsed_action_moves_only_by_a_request_that_names_what_lapsed() {
    for end in ["expired", "withdrawn"] {
        let lapsed = live().ask("x", "a").decide("x", end);
        assert_eq!(lapsed.is("a"), Lapsed);
        assert_eq!(lapsed.clone().ask("y", "a").is("a"), Awaiting);
        assert_eq!(
            lapsed.clone().ask("y", "a").decide("y", "granted").is("a"),
            Lapsed,
            "nothing says that it replaces the other"
        );
        let cause = json!({"cause": [format!("e{}", lapsed.lines.len() - 1)]});
        let renewed =
            lapsed.with("approval.requested", json!({"approval": "y", "kind": "permission", "action": "a"}), cause);
        assert_eq!(renewed.is("a"), Awaiting);
        assert_eq!(renewed.decide("y", "granted").is("a"), Approved);
    }
}

/// R-ACT-012, R-ACT-013, R-EVT-012
#[test]
fn silence_says_that_nothing_started_only_where_starts_are_recorded() {
    assert_eq!(live().is("a"), Proposed);
    assert_eq!(silent().judged("a"), (Unknown, "no_end".into()));
    let too_late = silent().source("hooks", super::ALL);
    assert_eq!(too_late.is("a"), Unknown, "the source was not open when the action was proposed");
    assert_eq!(too_late.call("r2", "b", "unknown").is("b"), Proposed);
    assert!(silent().codes().contains(&Code::CallWithoutResult));
}

/// R-ACT-014
#[test]
fn a_call_that_only_asks_is_the_request_and_its_result_the_answer() {
    let log = Log::imported(&["usage"]).prompt("p").call_of(
        "r",
        "q",
        json!({"kind": "question", "effect": {"class": "pure"}}),
    );
    assert_eq!(log.is("q"), Awaiting);
    assert_eq!(log.approvals(), [("q".to_owned(), Status::Open)]);
    let answered = log.clone().result("q", true).end("q", "succeeded", "yes");
    assert_eq!(answered.is("q"), Succeeded);
    assert_eq!(answered.approvals(), [("q".to_owned(), Status::Answered)]);
    let refused = log.clone().add("approval.ended", json!({"action": "q", "outcome": "denied"}));
    assert_eq!((refused.is("q"), refused.approvals()), (Denied, vec![("q".to_owned(), Status::Denied)]));
    let replied = log.clone().add("approval.ended", json!({"action": "q", "outcome": "answered"}));
    assert_eq!(replied.is("q"), Approved, "it acts on nobody, so that its answer is all there is to wait for");
    let stopped = log.end("q", "cancelled", "no");
    assert_eq!(stopped.approvals(), [("q".to_owned(), Status::Lapsed)]);
    let asked = Log::live().prompt("p").call_of("r", "q", json!({"kind": "question"}));
    let asked = asked.add("approval.requested", json!({"approval": "x", "kind": "question", "action": "q"}));
    assert_eq!(asked.approvals(), [("x".to_owned(), Status::Open)], "a recorded question is the call's own");
    assert_eq!(asked.decide("x", "answered").is("q"), Approved);
}

/// R-ACT-015
#[test]
fn what_is_told_of_an_action_that_was_never_proposed_creates_it() {
    let ended = Log::live().end("ghost", "succeeded", "yes");
    assert_eq!((ended.is("ghost"), ended.codes()), (Succeeded, vec![Code::UnproposedAction]));
    let late = Log::live().end("a", "succeeded", "yes").propose("a", json!({}));
    assert!(late.codes().is_empty(), "the proposal came after all");
    let told = Log::live().result("ghost", true);
    assert!(told.state().actions.is_empty());
    assert_eq!(told.codes(), [Code::OrphanResult]);
    assert_eq!(get(&told.end("ghost", "succeeded", "yes").state(), "ghost").told, Told::Result);
}

/// R-ACT-013
#[test]
fn a_call_that_stands_in_a_message_may_have_run_before_its_proposal_is_there() {
    let parts = json!([{"type": "text", "text": "now"}, {"type": "action", "action": "a"}]);
    let said = |log: Log| {
        log.prompt("p").with("message.added", json!({"role": "assistant", "response": "r", "parts": parts}), json!({}))
    };
    let cut = said(Log::imported(&["usage"]));
    assert_eq!(cut.is("a"), Unknown);
    assert_eq!(cut.recovery().verdict, crate::recover::Verdict::NeedsReconcile);
    let proposed = cut.propose("a", json!({"effect": {"class": "read_local"}}));
    assert_eq!(
        (proposed.is("a"), proposed.recovery().verdict),
        (Unknown, crate::recover::Verdict::Ready),
        "it only reads"
    );
    assert!(
        said(Log::live()).state().actions.is_empty(),
        "what is not proposed was not started where starts are recorded"
    );
}

/// R-ACT-016
#[test]
fn a_start_or_an_effect_settles_requests_and_makes_later_ones_void() {
    assert_eq!(live().ask("x", "a").start("a").approvals(), [("x".to_owned(), Status::Settled)]);
    assert_eq!(live().ask("x", "a").end("a", "failed", "yes").approvals(), [("x".to_owned(), Status::Settled)]);
    assert_eq!(live().ask("x", "a").end("a", "failed", "no").approvals(), [("x".to_owned(), Status::Open)]);
    let over = live().ask("x", "a").reconcile("a", "not_applied", "human");
    assert_eq!(over.approvals(), [("x".to_owned(), Status::Settled)], "the new attempt needs a request of its own");
    let (state, found) = live().start("a").ask("x", "a").reduce();
    assert_eq!(get(&state, "a").state, Running);
    assert_eq!(found.count(Severity::Void), 1);
    assert!(state.indeterminate.is_empty());
    let hook = json!({"src": [{"source": "hooks", "at": 0, "len": 1}]});
    let other = live().start("a").with("approval.requested", json!({"kind": "permission", "action": "a"}), hook);
    assert_eq!(other.reduce().1.count(Severity::Void), 0, "another source's request may have come before");
}

/// R-ACT-017, R-ACT-018
#[test]
fn a_reconciliation_settles_an_unknown_if_it_has_a_basis() {
    let unknown = || silent();
    assert_eq!(unknown().reconcile("a", "applied", "looked").is("a"), Succeeded);
    let partial = unknown().reconcile("a", "partial", "looked").state();
    assert_eq!((get(&partial, "a").state, get(&partial, "a").applied), (Failed, Applied::Partial));
    for basis in ["target_fenced", "executor_terminated", "act_deadline_passed", "child_log", "human"] {
        let log = unknown().reconcile("a", "not_applied", basis);
        assert_eq!((log.is("a"), get(&log.state(), "a").attempt.0), (Proposed, 2), "{basis}");
    }
    let background = unknown().result("a", false).reconcile("a", "not_applied", "human");
    assert_eq!(background.is("a"), Proposed, "what the model was told is of the attempt before");
    let looked = unknown().reconcile("a", "not_applied", "looked");
    assert_eq!(looked.judged("a"), (Unknown, "unsettled".into()));
    assert!(looked.codes().contains(&Code::NoBasis));
    assert_eq!(unknown().reconcile("a", "in_progress", "looked").judged("a").1, "in_progress");
    assert_eq!(unknown().reconcile("a", "unknown", "looked").judged("a").1, "unsettled");
    assert_eq!(unknown().reconcile("a", "unknown", "human").judged("a").1, "accepted");
    let disagreed = live().end("a", "failed", "no").end("a", "succeeded", "yes").reconcile("a", "applied", "human");
    assert_eq!(disagreed.is("a"), Succeeded, "it settles what came before it");
}

/// R-ACT-019
#[test]
fn an_end_that_contradicts_a_reconciliation_is_a_conflict() {
    let log = live().start("a").reconcile("a", "not_applied", "executor_terminated").end("a", "succeeded", "yes");
    assert_eq!(log.judged("a"), (Unknown, "ends_disagree".into()));
    let agrees = live().start("a").reconcile("a", "applied", "human").end("a", "succeeded", "yes");
    assert_eq!(agrees.is("a"), Succeeded);
    let late = live().end("a", "failed", "unknown").reconcile("a", "not_applied", "executor_terminated");
    assert_eq!(late.is("a"), Proposed);
    assert_eq!(late.end("a", "succeeded", "yes").is("a"), Unknown, "it acted after all");
    let denies_an_end = live().start("a").end("a", "succeeded", "yes").reconcile("a", "not_applied", "human");
    assert_eq!(denies_an_end.is("a"), Unknown, "an effect that was recorded is not run again");
}

/// R-ACT-020
#[test]
fn an_earlier_attempt_that_nothing_settled_keeps_a_write_unknown() {
    let second = |log: Log| {
        log.start("a")
            .add("action.started", json!({"action": "a", "attempt": 2}))
            .add("action.ended", json!({"action": "a", "attempt": 2, "outcome": "succeeded", "applied": "yes"}))
    };
    assert_eq!(second(live()).judged("a"), (Unknown, "earlier_attempt".into()));
    assert_eq!(second(live().end("a", "failed", "no")).is("a"), Succeeded);
    assert_eq!(second(Log::live().prompt("p").call("r", "a", "read_local")).is("a"), Succeeded);
    let keyed = json!({"effect": {"class": "write_remote", "idempotency_key": "k"}});
    assert_eq!(second(Log::live().prompt("p").call_of("r", "a", keyed)).is("a"), Succeeded);
}

/// R-ACT-021
#[test]
fn copied_actions_are_inherited() {
    let copy = || json!({"copy": {"log": "parent", "event": "e1", "how": "fork"}});
    let log = Log::live().with("action.proposed", super::proposal("a", json!({})), copy());
    let log = log.with("approval.requested", json!({"approval": "x", "kind": "permission", "action": "a"}), copy());
    let state = log.state();
    assert!(get(&state, "a").inherited);
    assert_eq!(state.approvals[0].status, Status::Lapsed, "a fork withdraws what was open");
    assert!(log.recovery().obligations.is_empty());
    let replayed = live().end("a", "succeeded", "yes").result("a", true).answer("r2");
    let before = replayed.state();
    let again = replayed.with(
        "action.proposed",
        super::proposal("a", json!({})),
        json!({"copy": {"event": "e4", "how": "replay"}}),
    );
    assert_eq!(again.state().actions, before.actions);
}

/// R-ACT-022
#[test]
fn one_key_stands_for_one_set_of_arguments() {
    let keyed = |args: &str| json!({"effect": {"idempotency_key": "k"}, "args": args});
    let same = Log::live().propose("a", keyed("1")).propose("b", keyed("1"));
    assert!(same.state().indeterminate.is_empty());
    let other = Log::live().propose("a", keyed("1")).propose("b", keyed("2"));
    assert_eq!(other.state().indeterminate[0].code, Code::KeyConflict);
}

/// R-ACT-023
#[test]
fn what_the_model_was_told_is_kept_apart_from_what_happened() {
    let told = silent().result("a", true).state();
    assert_eq!((get(&told, "a").state, get(&told, "a").told), (Unknown, Told::Result));
    let ended = silent().end("a", "succeeded", "yes").state();
    assert_eq!((get(&ended, "a").state, get(&ended, "a").told), (Succeeded, Told::Nothing));
    let background = silent().result("a", false).end("a", "succeeded", "yes").state();
    assert_eq!((get(&background, "a").state, get(&background, "a").told), (Succeeded, Told::Partial));
}

/// R-ACT-024
#[test]
fn the_end_of_an_approval_joins_the_request_of_another_source() {
    let request = || ("approval.requested", json!({"kind": "permission", "action": "a", "join": "by_content"}));
    let end = || ("approval.ended", json!({"action": "a", "outcome": "granted", "scope": "session"}));
    let log = |first: (&str, Value), one: &str, second: (&str, Value), two: &str| {
        let from = |source: &str| json!({"src": [{"source": source, "at": 0, "len": 1}]});
        let log =
            Log::imported(&["usage"]).source("hooks", &[]).source("otel", &[]).prompt("p").call("r", "a", "unknown");
        log.with(first.0, first.1, from(one)).with(second.0, second.1, from(two))
    };
    for joined in [log(request(), "hooks", end(), "otel"), log(end(), "otel", request(), "hooks")] {
        let approvals = joined.state().approvals;
        assert_eq!(approvals.len(), 1);
        assert_eq!((approvals[0].status, approvals[0].scope), (Status::Granted, Some(crate::events::Scope::Session)));
        assert_eq!(approvals[0].join, crate::events::Join::ByContent);
        assert!(approvals[0].requested.is_some() && approvals[0].ended.is_some());
    }
    let asked_again = log(end(), "hooks", request(), "hooks").approvals();
    assert_eq!(asked_again.iter().map(|(_, s)| *s).collect::<Vec<_>>(), [Status::Granted, Status::Asked]);
}

#[test]
fn one_id_of_two_requests_grants_one_action_only() {
    let log = live().propose("b", json!({})).ask("x", "a").decide("x", "granted").ask("x", "b");
    assert_eq!((log.is("a"), log.is("b")), (Approved, Awaiting));
}
