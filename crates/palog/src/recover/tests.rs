//! Verdicts, obligations and evidence.

mod work;

use serde_json::{Value, json};

use super::{Context, Decision, EvidenceKind, Obligation, Recovery, Verdict, recover};
use crate::envelope::Time;
use crate::reduce::tests::{ALL, Log, digest_of};
use crate::state::Observation;

fn silent(class: &str) -> Log {
    Log::imported(&["usage"]).prompt("p").call("r", "a", class)
}

fn live() -> Log {
    Log::live().prompt("p").call("r", "a", "write_remote")
}

/// What is owed for an action, an approval, an input or a message: decision, rule, blocking.
fn owed(recovery: &Recovery, id: &str) -> Vec<(Decision, String, bool)> {
    let of = |o: &&Obligation| o.subject.id == id;
    recovery.obligations.iter().filter(of).map(|o| (o.decision, o.rule.clone(), o.blocking)).collect()
}

fn owes(log: &Log, id: &str, decision: Decision, rule: &str, blocking: bool) {
    assert_eq!(owed(&log.recovery(), id), [(decision, rule.to_owned(), blocking)], "{:#?}", log.recovery());
}

fn verdict(log: &Log, verdict: Verdict, rule: &str) {
    let recovery = log.recovery();
    assert_eq!((recovery.verdict, recovery.rule.as_str()), (verdict, rule), "{recovery:#?}");
}

fn evidence(recovery: &Recovery, kind: EvidenceKind) -> usize {
    recovery.obligations.iter().flat_map(|o| &o.evidence).filter(|e| e.kind == kind).count()
}

fn seen(fact: &str, as_of: &str) -> Observation {
    Observation { fact: fact.into(), subject: None, as_of: Some(as_of.into()), source: "look".into(), recorded: None }
}

/// R-REC-001
#[test]
fn nothing_is_done_on_the_strength_of_a_corrupt_log() {
    let log = silent("pure").add("log.opened", json!({"spec": "1.0", "session": "s", "agent": {"name": "x"}}));
    verdict(&log, Verdict::Indeterminate, "R-REC-001");
    owes(&log, "s", Decision::Ask, "R-REC-001", true);
    assert_eq!(log.recovery().obligations.len(), 1);
    let transferred = log.add("log.closed", json!({"how": "transferred"}));
    assert_eq!(transferred.recovery().verdict, Verdict::Indeterminate);
}

/// R-REC-006, R-TRN-007
#[test]
fn a_read_that_was_cut_off_leaves_its_prompt_unanswered() {
    let log = Log::live().prompt("p").call("r", "a", "read_local").start("a");
    verdict(&log, Verdict::Ready, "R-REC-006");
    assert_eq!(owed(&log.recovery(), "a")[0].0, Decision::Skip);
}

/// R-REC-016
#[test]
fn an_action_that_nobody_proposed_is_not_run() {
    let log = Log::live().prompt("p").start("a").reconcile("a", "not_applied", "target_fenced");
    owes(&log, "a", Decision::Ask, "R-REC-016", true);
    verdict(&log, Verdict::AwaitingHuman, "R-REC-005");
}

/// R-REC-029
#[test]
fn a_continuation_of_a_log_that_is_not_at_hand_goes_on_only_with_a_person() {
    let parent = |mode: &str| json!({"parent": {"log": "k", "mode": mode}});
    let live = |mode: &str| {
        let mut more = parent(mode);
        crate::reduce::tests::merge(&mut more, json!({"records": ALL}));
        Log::opened(more).prompt("p")
    };
    verdict(&live("continue"), Verdict::AwaitingHuman, "R-REC-005");
    owes(&live("continue"), "s", Decision::Ask, "R-REC-029", true);
    verdict(&live("fork"), Verdict::Ready, "R-REC-006");
    let mut imported = parent("continue");
    crate::reduce::tests::merge(&mut imported, json!({"derived": {"mapping": "test/1"}}));
    verdict(&Log::opened(imported).source("main", &["usage"]).prompt("p"), Verdict::Ready, "R-REC-006");
}

/// R-REC-002
#[test]
fn a_log_is_closed_when_it_goes_on_elsewhere_or_nothing_blocks_its_end() {
    let closed = |log: Log, how: &str| log.add("log.closed", json!({"how": how}));
    verdict(&closed(silent("unknown"), "transferred"), Verdict::Closed, "R-REC-002");
    assert!(closed(silent("unknown"), "transferred").recovery().obligations.is_empty());
    verdict(&closed(Log::live().prompt("p"), "complete"), Verdict::Closed, "R-REC-002");
    assert!(
        closed(Log::live().prompt("p"), "complete").recovery().obligations.is_empty(),
        "nobody goes on with a closed log"
    );
    verdict(&closed(silent("unknown"), "complete"), Verdict::NeedsReconcile, "R-REC-004");
    verdict(&closed(Log::live().prompt("p"), "interrupted"), Verdict::Ready, "R-REC-006");
}

/// R-REC-003
#[test]
fn with_a_live_holder_everybody_else_waits() {
    let alive = [seen("owner_alive", "2026-01-01T00:00:00Z")];
    let recovery = recover(&silent("unknown").state(), &Context::new().seen(&alive));
    assert_eq!((recovery.verdict, recovery.rule.as_str()), (Verdict::Owned, "R-REC-003"));
    assert_eq!(owed(&recovery, "s"), [(Decision::Wait, "R-REC-003".to_owned(), true)]);
    let recovery = recover(&Log::live().prompt("p").state(), &Context::new().seen(&alive));
    assert!(recovery.obligations.iter().all(|o| o.decision == Decision::Wait), "its work is the holder's");
    let of = |subject: &str| {
        let seen = Observation { subject: Some(subject.to_owned()), ..seen("owner_alive", "2026-01-01T00:00:00Z") };
        recover(&Log::live().prompt("p").state(), &Context::new().seen(&[seen])).verdict
    };
    assert_eq!([of("s"), of("l"), of("other")], [Verdict::Owned, Verdict::Owned, Verdict::Ready]);
    let file = json!({"fact": "owner_alive", "source": "pid", "as_of": "2026-01-01T00:00:00Z"});
    verdict(&silent("unknown").add("observation.recorded", file), Verdict::NeedsReconcile, "R-REC-004");
}

/// R-REC-004, R-REC-007
#[test]
fn an_unknown_is_reconciled_first() {
    let log = silent("write_remote");
    verdict(&log, Verdict::NeedsReconcile, "R-REC-004");
    owes(&log, "a", Decision::Reconcile, "R-REC-007", true);
    let call = log.recovery().obligations[0].call.clone().expect("it is about a call");
    assert_eq!((call.action.as_str(), call.name.as_deref()), ("a", Some("tool")));
    let queued = log.add("input.queued", json!({"input": "i", "parts": []}));
    verdict(&queued, Verdict::NeedsReconcile, "R-REC-004");
}

/// R-REC-007, R-REC-010
#[test]
fn a_call_that_the_log_does_not_hold_is_reconciled_first() {
    let asked = Log::imported(&["usage"]).prompt("p").says("r").stop("r", "tool_use");
    verdict(&asked, Verdict::NeedsReconcile, "R-REC-004");
    let report = asked.state().pending[0].event.clone();
    owes(&asked, &report, Decision::Reconcile, "R-REC-007", true);
    let later = asked.prompt("q").says("s").stop("s", "end_turn");
    verdict(&later, Verdict::Idle, "R-REC-006");
    owes(&later, &report, Decision::Reconcile, "R-REC-010", false);
    let live = Log::live().prompt("p").says("r").stop("r", "tool_use");
    verdict(&live, Verdict::NeedsReconcile, "R-REC-004");
}

/// R-REC-008
#[test]
fn a_running_action_without_a_holder_is_unknown() {
    owes(&live().start("a"), "a", Decision::Reconcile, "R-REC-008", true);
    verdict(&live().start("a"), Verdict::NeedsReconcile, "R-REC-004");
    owes(
        &silent("unknown").result("a", false).says("r2").stop("r2", "end_turn"),
        "a",
        Decision::Reconcile,
        "R-REC-008",
        true,
    );
}

/// R-REC-009
#[test]
fn an_unknown_that_only_reads_is_skipped() {
    for class in ["pure", "read_local", "read_remote"] {
        owes(&silent(class), "a", Decision::Skip, "R-REC-009", false);
        verdict(&silent(class), Verdict::Ready, "R-REC-006");
    }
    for class in ["unknown", "write_local", "write_remote"] {
        verdict(&silent(class), Verdict::NeedsReconcile, "R-REC-004");
    }
}

/// R-REC-010
#[test]
fn what_a_later_turn_passed_over_does_not_block() {
    let passed = |log: Log| log.prompt("q").answer("s");
    let unknown = passed(silent("unknown"));
    owes(&unknown, "a", Decision::Reconcile, "R-REC-010", false);
    verdict(&unknown, Verdict::Idle, "R-REC-006");
    let question = passed(Log::imported(&["usage"]).prompt("p").call_of("r", "q1", json!({"kind": "question"})));
    owes(&question, "q1", Decision::Answer, "R-REC-014", false);
    verdict(&question, Verdict::Idle, "R-REC-006");
    let lapsed = passed(silent("unknown").ask("x", "a").decide("x", "expired"));
    owes(&lapsed, "a", Decision::Ask, "R-REC-015", false);
    let untold = passed(silent("unknown").end("a", "succeeded", "yes"));
    owes(&untold, "a", Decision::Deliver, "R-REC-010", false);
    verdict(&untold, Verdict::Idle, "R-REC-006");
}

/// R-REC-011, R-REC-012, R-REC-013
#[test]
fn what_a_look_up_found_decides_how_an_unknown_goes_on() {
    let due = |next: Value| {
        let mut data = json!({"action": "a", "outcome": "in_progress", "basis": "looked"});
        crate::reduce::tests::merge(&mut data, next);
        silent("unknown").add("action.reconciled", data)
    };
    owes(&due(json!({})), "a", Decision::Wait, "R-REC-011", true);
    let later = due(json!({"next_check": "2026-01-01T00:00:10Z"})).state();
    let at = |text| recover(&later, &Context::new().at(Time::parse(text).expect("a time")));
    assert_eq!(owed(&at("2026-01-01T00:00:09Z"), "a")[0].0, Decision::Wait);
    assert_eq!(owed(&at("2026-01-01T00:00:10Z"), "a")[0].0, Decision::Reconcile);
    let frozen = silent("unknown").reconcile("a", "unknown", "looked");
    owes(&frozen, "a", Decision::Ask, "R-REC-012", true);
    verdict(&frozen, Verdict::NeedsReconcile, "R-REC-004");
    let accepted = silent("unknown").reconcile("a", "unknown", "human");
    owes(&accepted, "a", Decision::Skip, "R-REC-013", false);
    verdict(&accepted, Verdict::Ready, "R-REC-006");
}

/// R-REC-005, R-REC-014, R-REC-015
#[test]
fn open_and_lapsed_requests_wait_for_a_person() {
    let open = live().ask("x", "a");
    verdict(&open, Verdict::AwaitingHuman, "R-REC-005");
    owes(&open, "x", Decision::Answer, "R-REC-014", true);
    let question = Log::imported(&["usage"]).prompt("p").call_of(
        "r",
        "q",
        json!({"kind": "question", "effect": {"class": "pure"}}),
    );
    verdict(&question, Verdict::AwaitingHuman, "R-REC-005");
    owes(&question, "q", Decision::Answer, "R-REC-014", true);
    let form = Log::live().add("approval.requested", json!({"approval": "f", "kind": "elicitation"}));
    owes(&form, "f", Decision::Answer, "R-REC-014", true);
    let lapsed = open.decide("x", "expired");
    verdict(&lapsed, Verdict::AwaitingHuman, "R-REC-005");
    owes(&lapsed, "a", Decision::Ask, "R-REC-015", true);
    let expiring = json!({"approval": "x", "kind": "permission", "action": "a", "expires": "2026-01-01T00:00:00Z"});
    let state = live().add("approval.requested", expiring).state();
    let recovery = recover(&state, &Context::new().at(Time::parse("2026-01-01T00:00:01Z").expect("a time")));
    assert_eq!(
        (recovery.verdict, evidence(&recovery, EvidenceKind::Expired)),
        (Verdict::AwaitingHuman, 1),
        "only an event ends it"
    );
}

/// R-REC-006
#[test]
fn a_session_with_work_is_ready_and_one_without_is_idle() {
    verdict(&Log::live().prompt("p"), Verdict::Ready, "R-REC-006");
    verdict(
        &Log::live().prompt("p").answer("r").add("turn.ended", json!({"how": "complete"})),
        Verdict::Idle,
        "R-REC-006",
    );
    verdict(&Log::live(), Verdict::Idle, "R-REC-006");
}

/// R-REC-016, R-REC-018
#[test]
fn what_was_not_started_is_run_if_its_grants_allow_it() {
    owes(&live(), "a", Decision::Run, "R-REC-016", false);
    verdict(&live(), Verdict::Ready, "R-REC-006");
    let request = |more: Value| {
        let mut data = json!({"approval": "x", "kind": "permission", "action": "a"});
        crate::reduce::tests::merge(&mut data, more);
        live().add("approval.requested", data).decide("x", "granted")
    };
    owes(&request(json!({})), "a", Decision::Run, "R-REC-016", false);
    owes(
        &request(json!({"join": "by_content", "args_digest": digest_of(&json!("a"))})),
        "a",
        Decision::Run,
        "R-REC-016",
        false,
    );
    owes(&request(json!({"join": "inferred"})), "a", Decision::Ask, "R-REC-018", true);
    owes(&request(json!({"args_digest": digest_of(&json!("b"))})), "a", Decision::Ask, "R-REC-018", true);
    let again = |scope: &str| {
        let grant = json!({"approval": "x", "outcome": "granted", "scope": scope});
        live().ask("x", "a").add("approval.ended", grant).start("a").reconcile(
            "a",
            "not_applied",
            "executor_terminated",
        )
    };
    owes(&again("once"), "a", Decision::Ask, "R-REC-018", true);
    owes(&again("session"), "a", Decision::Run, "R-REC-016", false);
    owes(&again("once").ask("y", "a").decide("y", "granted"), "a", Decision::Run, "R-REC-016", false);
}

/// R-REC-017
#[test]
fn nothing_runs_while_the_same_call_is_unresolved() {
    let same = json!({"args": "a"});
    let log =
        Log::imported(&["usage"]).prompt("p").call("r", "a", "unknown").prompt("q").answer("s").source("ours", ALL);
    let twin = log.clone().prompt("t").call_of("u", "b", same.clone());
    owes(&twin, "b", Decision::Ask, "R-REC-017", true);
    assert_eq!(evidence(&twin.recovery(), EvidenceKind::SameCall), 1);
    verdict(&twin, Verdict::AwaitingHuman, "R-REC-005");
    owes(&log.clone().prompt("t").call_of("u", "b", json!({})), "b", Decision::Run, "R-REC-016", false);
    let reads = |class: &str| json!({"args": "a", "effect": {"class": class}});
    let read = Log::live().prompt("p").call("r", "a", "read_local").start("a");
    owes(&read.call_of("u", "b", reads("read_local")), "b", Decision::Run, "R-REC-016", false);
    let accepted = log.clone().reconcile("a", "unknown", "human").prompt("t").call_of("u", "b", same.clone());
    owes(&accepted, "b", Decision::Run, "R-REC-016", false);
    let settled = log.end("a", "failed", "no").prompt("t").call_of("u", "b", same.clone());
    owes(&settled, "b", Decision::Run, "R-REC-016", false);
    let copied = json!({"copy": {"log": "parent", "how": "fork"}});
    let fork =
        Log::imported(&["usage"]).with("action.proposed", crate::reduce::tests::proposal("a", json!({})), copied);
    owes(&fork.source("ours", ALL).prompt("t").call_of("u", "b", same), "b", Decision::Ask, "R-REC-017", true);
}

/// R-REC-019, R-REC-020
#[test]
fn ends_are_delivered() {
    let ended = live().start("a").end("a", "succeeded", "yes");
    owes(&ended, "a", Decision::Deliver, "R-REC-019", false);
    verdict(&ended, Verdict::Ready, "R-REC-006");
    let denied = live().ask("x", "a").decide("x", "denied");
    owes(&denied, "a", Decision::Deliver, "R-REC-019", false);
    let question = Log::live().prompt("p").call_of("r", "q", json!({"kind": "question"}));
    let question = question.add("approval.requested", json!({"approval": "x", "kind": "question", "action": "q"}));
    owes(&question.decide("x", "answered"), "q", Decision::Deliver, "R-REC-019", false);
    let delivery = Log::live().propose("d", json!({"kind": "delivery"})).end("d", "succeeded", "yes");
    assert_eq!(owed(&delivery.recovery(), "d"), [], "nobody waits to be told of a delivery");
    let background = silent("unknown").result("a", false).answer("s").end("a", "succeeded", "yes");
    owes(&background, "a", Decision::Deliver, "R-REC-020", false);
    verdict(&background, Verdict::Idle, "R-REC-006");
}

/// R-REC-021
#[test]
fn a_failed_write_can_be_compensated_and_blocks_nothing() {
    let failed = |class: &str, applied: &str| silent(class).end("a", "failed", applied).result("a", true).answer("s");
    owes(&failed("write_local", "yes"), "a", Decision::Compensate, "R-REC-021", false);
    owes(&failed("write_remote", "partial"), "a", Decision::Compensate, "R-REC-021", false);
    verdict(&failed("write_remote", "partial"), Verdict::Idle, "R-REC-006");
    for log in [failed("write_local", "no"), failed("unknown", "yes"), failed("read_local", "yes")] {
        assert_eq!(owed(&log.recovery(), "a"), []);
    }
    let undone = failed("write_local", "yes").propose("b", json!({"compensates": "a"})).end("b", "succeeded", "yes");
    assert_eq!(owed(&undone.recovery(), "a"), []);
}

/// R-REC-022, R-REC-023
#[test]
fn prompts_and_results_are_continued_and_inputs_delivered() {
    owes(&Log::live().prompt("p"), "p", Decision::Continue, "R-REC-022", false);
    let told = silent("unknown").result("a", true).end("a", "succeeded", "yes");
    owes(&told, "e6", Decision::Continue, "R-REC-022", false);
    let queued = Log::live().add("input.queued", json!({"input": "i", "parts": []}));
    owes(&queued, "i", Decision::Deliver, "R-REC-023", false);
    verdict(&queued, Verdict::Ready, "R-REC-006");
}

/// R-REC-024
#[test]
fn a_prompt_on_the_screen_is_evidence_for_one_call_while_nothing_is_newer() {
    let at = |time: &str| json!({"time": time});
    let log = || {
        let call = json!({"role": "assistant", "response": "r", "parts": [{"type": "action", "action": "a"}]});
        let log = Log::imported(&["usage"]).prompt("p").with("message.added", call, at("2026-01-01T00:00:05Z"));
        log.with("action.proposed", crate::reduce::tests::proposal("a", json!({})), at("2026-01-01T00:00:05Z"))
    };
    let status = |log: Log, source: &str, fact: &str, as_of: &str| {
        log.add("observation.recorded", json!({"fact": fact, "as_of": as_of, "source": source}))
    };
    let asked = |log: &Log| {
        assert_eq!(log.recovery().verdict, Verdict::NeedsReconcile, "it never makes it awaiting");
        evidence(&log.recovery(), EvidenceKind::ApprovalAsked)
    };
    let waiting = status(log(), "one", "waiting", "2026-01-01T00:00:05.1Z");
    assert_eq!(asked(&waiting), 1);
    assert!(waiting.recovery().obligations[0].evidence[0].text.starts_with("asked, probably waiting"));
    assert_eq!(asked(&status(log(), "one", "waiting", "2026-01-01T00:00:04.9Z")), 0, "it is older than the log");
    for newer in ["busy", "idle", "shell"] {
        assert_eq!(asked(&status(waiting.clone(), "two", newer, "2026-01-01T00:00:06Z")), 0, "{newer}");
        assert_eq!(asked(&status(waiting.clone(), "two", newer, "2026-01-01T00:00:05.05Z")), 1, "an older {newer}");
    }
    assert_eq!(asked(&status(waiting.clone(), "two", "task", "2026-01-01T00:00:06Z")), 1, "that is no status");
    assert_eq!(asked(&waiting.clone().call("r", "b", "unknown")), 0, "it could be about either call");
    let named = json!({"fact": "waiting", "as_of": "2026-01-01T00:00:06Z", "source": "one", "subject": "a"});
    let named = log().add("observation.recorded", named);
    assert_eq!((asked(&named), evidence(&named.recovery(), EvidenceKind::Observed)), (1, 0), "it is told once");
    let seen = [seen("idle", "2026-01-01T00:00:07Z")];
    let recovery = recover(&waiting.state(), &Context::new().seen(&seen));
    assert_eq!(evidence(&recovery, EvidenceKind::ApprovalAsked), 0);
}

/// R-REC-025
#[test]
fn a_session_that_nothing_blocks_may_hide_calls_where_nobody_records_proposals() {
    let kinds = |log: &Log| log.recovery().evidence.iter().map(|e| e.kind).collect::<Vec<_>>();
    assert_eq!(kinds(&Log::imported(&["usage"]).prompt("p")), [EvidenceKind::UnseenCallsPossible]);
    assert_eq!(kinds(&Log::imported(&["action.proposed"]).prompt("p")), []);
    assert_eq!(kinds(&Log::imported(&["usage"]).prompt("p").answer("r")), [EvidenceKind::UnseenCallsPossible]);
    assert_eq!(kinds(&Log::live().prompt("p").answer("r").add("turn.ended", json!({"how": "complete"}))), []);
}

#[test]
fn what_was_asked_or_granted_stays_attached_to_an_unknown() {
    let asked = silent("unknown").ask("x", "a");
    owes(&asked, "a", Decision::Reconcile, "R-REC-007", true);
    assert_eq!(evidence(&asked.recovery(), EvidenceKind::ApprovalAsked), 1);
    let granted = asked.decide("x", "granted");
    owes(&granted, "a", Decision::Reconcile, "R-REC-007", true);
    assert_eq!(evidence(&granted.recovery(), EvidenceKind::ApprovalGranted), 1);
    let keyed = json!({"effect": {"class": "write_remote", "idempotency_key": "k"}});
    let keyed = Log::imported(&["usage"]).prompt("p").call_of("r", "a", keyed);
    assert_eq!(evidence(&keyed.recovery(), EvidenceKind::IdempotencyKey), 1);
    let told = silent("unknown").result("a", true);
    assert_eq!(evidence(&told.recovery(), EvidenceKind::Told), 1);
    let output = json!({"fact": "output", "source": "tmp", "subject": "a"});
    assert_eq!(evidence(&silent("unknown").add("observation.recorded", output).recovery(), EvidenceKind::Observed), 1);
}
