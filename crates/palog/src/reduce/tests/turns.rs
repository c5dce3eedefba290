//! Turns and what is pending in them.

use serde_json::{Value, json};

use super::{Log, get};
use crate::diagnostic::Code;
use crate::state::{Count, InputStatus, PendingKind::*};

fn imported() -> Log {
    Log::imported(&["usage"])
}

fn turn_of(log: &Log, action: &str) -> u64 {
    get(&log.state(), action).turn.0
}

fn answered(log: &Log) -> Option<u64> {
    log.state().turns.answered.map(|c| c.0)
}

/// R-TRN-001
#[test]
fn an_action_belongs_to_the_turn_that_is_open_when_it_is_proposed() {
    let log = imported()
        .propose("zero", json!({}))
        .prompt("p")
        .call("r", "one", "unknown")
        .prompt("q")
        .call("s", "two", "unknown");
    assert_eq!(["zero", "one", "two"].map(|a| turn_of(&log, a)), [0, 1, 2]);
    assert_eq!(log.state().turns.count, Count(2));
    assert!(log.state().turns.open);
    assert!(!log.answer("t").state().turns.open);
}

/// R-TRN-002
#[test]
fn a_turn_is_answered_by_its_end_where_ends_are_recorded_else_by_the_model() {
    for (stop, ends) in [
        ("end_turn", true),
        ("stop_sequence", true),
        ("max_tokens", true),
        ("refusal", true),
        ("tool_use", false),
        ("pause_turn", false),
        ("new_word", false),
    ] {
        let log = imported().prompt("p").says("r").stop("r", stop);
        assert_eq!(answered(&log).is_some(), ends, "{stop}");
    }
    assert_eq!(
        answered(&imported().prompt("p").says("r")),
        Some(1),
        "a message without a call, where no stop is known"
    );
    assert_eq!(answered(&imported().prompt("p").add("turn.ended", json!({"how": "complete"}))), Some(1));
    assert_eq!(answered(&imported().prompt("p").add("turn.ended", json!({"how": "interrupted"}))), None);
    let recorded = Log::imported(&["turn.ended"]).prompt("p").answer("r");
    assert_eq!(answered(&recorded), None);
    for (how, ends) in [("complete", true), ("interrupted", true), ("error", false)] {
        assert_eq!(answered(&recorded.clone().add("turn.ended", json!({"how": how}))).is_some(), ends, "{how}");
    }
    let named = imported().user("p", json!({})).add("turn.started", json!({"message": "p", "turn": "t1"})).prompt("q");
    assert_eq!(answered(&named.add("turn.ended", json!({"how": "complete", "turn": "t1"}))), Some(1));
}

/// R-TRN-003
#[test]
fn an_answer_is_taken_back_when_its_response_turns_out_to_hold_a_call() {
    let log = imported().prompt("p").call("r", "a", "unknown").prompt("q").says("s");
    assert_eq!((answered(&log), get(&log.state(), "a").passed_over), (Some(2), true));
    let call = log.clone().call("s", "b", "unknown");
    assert_eq!((answered(&call), get(&call.state(), "a").passed_over), (None, false));
    let stop = log.stop("s", "tool_use");
    assert_eq!(answered(&stop), None);
    let unnamed = |parts: Value| json!({"role": "assistant", "parts": parts});
    let log = imported().prompt("p").add("message.added", unnamed(json!([{"type": "text", "text": "so"}])));
    assert_eq!(answered(&log), Some(1));
    let call = log.clone().add("message.added", unnamed(json!([{"type": "action", "action": "a"}])));
    assert_eq!(answered(&call), None);
    let later = log.result("z", true).add("message.added", unnamed(json!([{"type": "action", "action": "a"}])));
    assert_eq!(answered(&later), Some(1), "a result lies between: that is another response");
    let part =
        imported().prompt("p").says("r").add("message.added", unnamed(json!([{"type": "action", "action": "a"}])));
    assert_eq!(answered(&part), None, "without a name it belongs to the response before it");
}

/// R-TRN-004
#[test]
fn errors_and_what_the_model_never_sees_answer_nothing() {
    let message = |more: Value| {
        let mut data = json!({"role": "assistant", "response": "r", "parts": [{"type": "text", "text": "so"}]});
        super::merge(&mut data, more);
        imported().prompt("p").add("message.added", data)
    };
    assert_eq!(answered(&message(json!({}))), Some(1));
    assert_eq!(answered(&message(json!({"in_context": false})).stop("r", "end_turn")), None);
    assert_eq!(answered(&message(json!({"partial": true}))), None);
    assert_eq!(answered(&message(json!({"purpose": "summary"}))), None);
    let failed =
        message(json!({})).add("model.response", json!({"response": "r", "stop": "end_turn", "error": "overloaded"}));
    assert_eq!(answered(&failed), None);
}

/// R-TRN-011
#[test]
fn what_could_not_be_read_beside_a_response_may_be_a_call_of_it() {
    let unread = |log: Log, kind: &str| log.add("note.added", json!({"kind": kind}));
    let opaque = json!({"type": "opaque", "provider": "x", "value": {}});
    let with_opaque =
        |log: Log| log.add("message.added", json!({"role": "assistant", "response": "r", "parts": [opaque.clone()]}));
    let text = imported().prompt("p").says("r");
    for kind in ["torn", "fragment", "hole", "unread"] {
        assert_eq!(answered(&unread(text.clone(), kind)), None, "{kind}");
        assert_eq!(answered(&unread(text.clone(), kind).stop("r", "end_turn")), Some(1), "{kind}");
    }
    assert_eq!(answered(&unread(text.clone(), "file")), Some(1));
    assert_eq!(answered(&with_opaque(text.clone())), None);
    assert_eq!(answered(&with_opaque(text.clone()).says("s")), Some(1), "a later response answers");
    assert_eq!(answered(&with_opaque(text).stop("r", "end_turn")), Some(1));
    assert_eq!(answered(&unread(imported().prompt("p"), "torn").says("r")), None);
    assert_eq!(answered(&unread(imported(), "torn").prompt("p").says("r")), Some(1));
    assert_eq!(answered(&unread(imported().prompt("p").says("r").prompt("q"), "torn")), Some(1));
}

/// R-TRN-011
#[test]
fn what_the_client_says_does_not_part_a_response_from_what_could_not_be_read() {
    let client = |log: Log| log.add("message.added", json!({"role": "user", "purpose": "reminder", "parts": []}));
    let torn = |log: Log| log.add("note.added", json!({"kind": "torn"}));
    assert_eq!(answered(&client(imported().prompt("p").says("r"))), Some(1));
    assert_eq!(answered(&torn(client(imported().prompt("p").says("r")))), None);
    assert_eq!(answered(&client(torn(imported().prompt("p"))).says("r")), None);
}

/// R-TRN-012
#[test]
fn a_call_that_the_log_does_not_hold_is_pending() {
    let lost = |log: &Log| {
        let pending = log.state().pending;
        pending.iter().filter(|p| p.kind == Call).count()
    };
    let asked = imported().prompt("p").says("r").stop("r", "tool_use");
    assert_eq!(lost(&asked), 1);
    assert_eq!(asked.state().pending.len(), 1, "the call is what holds the prompt up");
    assert_eq!(lost(&asked.clone().stop("r", "end_turn")), 0);
    assert_eq!(lost(&asked.clone().call("r", "a", "unknown")), 0);
    assert_eq!(lost(&imported().prompt("p").call("r", "a", "unknown").stop("r", "tool_use")), 0);
    assert_eq!(lost(&asked.clone().result("a", true)), 0, "its results are here");
    assert_eq!(lost(&asked.clone().says("s").stop("s", "end_turn")), 1);
    assert_eq!(lost(&asked.prompt("q").says("s").stop("s", "end_turn")), 1);
    assert_eq!(lost(&imported().prompt("p").stop("r", "tool_use")), 1, "it has no message");
    assert_eq!(lost(&imported().prompt("p").says("r").stop("r", "pause")), 0);
}

/// R-TRN-005
#[test]
fn what_a_turn_left_open_is_passed_over_once_a_later_one_is_answered() {
    let log = imported().prompt("p").call("r", "a", "unknown").call_of("r", "q", json!({"kind": "question"}));
    let same_turn = log.clone().answer("s");
    assert!(!get(&same_turn.state(), "a").passed_over);
    let asked = log.prompt("p2");
    assert!(!get(&asked.state(), "a").passed_over);
    let passed = asked.answer("s").state();
    assert!(get(&passed, "a").passed_over && get(&passed, "q").passed_over && passed.approvals[0].passed_over);
    let recorded = Log::live()
        .prompt("p")
        .call("r", "a", "unknown")
        .start("a")
        .prompt("p2")
        .add("turn.ended", json!({"how": "complete"}));
    assert!(!get(&recorded.state(), "a").passed_over);
    let lost = imported().prompt("p").call("r", "a", "unknown").prompt("p2").answer("s");
    assert_eq!(lost.codes(), [Code::ResultLost]);
}

/// R-TRN-006
#[test]
fn a_prompt_is_pending_until_it_is_answered() {
    let log = imported().prompt("p");
    let pending = vec![(Prompt, "p".to_owned())];
    assert_eq!(log.pending(), pending);
    assert_eq!(log.clone().add("turn.ended", json!({"how": "error"})).pending(), pending);
    assert_eq!(log.clone().add("turn.ended", json!({"how": "interrupted"})).pending(), []);
    assert_eq!(log.clone().answer("r").pending(), []);
    assert_eq!(log.clone().prompt("q").answer("r").pending(), []);
    assert_eq!(log.clone().prompt("q").pending().len(), 2);
    let steered = log.answer("r").user("s", json!({}));
    assert_eq!(steered.pending(), [(Prompt, "s".to_owned())]);
    assert_eq!(steered.state().turns.answered, Some(Count(1)), "the turn was answered; what came after it was not");
    assert_eq!(steered.answer("r2").pending(), []);
    let note = imported().with(
        "message.added",
        json!({"role": "user", "parts": [], "purpose": "command"}),
        json!({"id": "c"}),
    );
    assert_eq!(note.pending(), []);
    let notified =
        note.with("message.added", json!({"role": "user", "parts": [], "purpose": "notification"}), json!({"id": "n"}));
    assert_eq!(notified.pending(), []);
    assert_eq!(notified.add("turn.started", json!({"message": "n"})).pending(), [(Prompt, "n".to_owned())]);
}

/// R-TRN-007
#[test]
fn a_prompt_whose_answer_has_begun_waits_for_its_calls() {
    let log = imported().prompt("p").call("r", "a", "unknown");
    assert_eq!(log.pending(), []);
    assert_eq!(log.prompt("q").pending(), [(Prompt, "q".to_owned())]);
    let reads = imported().prompt("p").call("r", "a", "read_local");
    assert_eq!(reads.pending(), [(Prompt, "p".to_owned())], "a lost read holds nobody up");
    let accepted = imported().prompt("p").call("r", "a", "unknown").reconcile("a", "unknown", "human");
    assert_eq!(accepted.pending(), [(Prompt, "p".to_owned())]);
    let proposed = Log::live().prompt("p").call("r", "a", "unknown");
    assert_eq!(proposed.pending(), []);
}

/// R-TRN-008
#[test]
fn a_result_is_pending_until_the_model_was_told_and_went_on() {
    let log = imported().prompt("p").call("r", "a", "unknown");
    let ended = log.clone().end("a", "succeeded", "yes");
    assert_eq!(ended.pending(), [(Result, "e6".to_owned())], "ended and not told");
    let told = log.clone().result("a", true).end("a", "succeeded", "yes");
    assert_eq!(told.pending(), [(Result, "e6".to_owned())], "told and not answered");
    assert_eq!(told.clone().call("s", "b", "unknown").pending(), []);
    assert_eq!(
        told.clone().call("r", "b", "unknown").pending().len(),
        1,
        "a later part of the response that made the call is no answer"
    );
    assert_eq!(told.clone().add("turn.ended", json!({"how": "interrupted"})).pending(), []);
    assert_eq!(
        told.add("message.added", json!({"role": "assistant", "response": "s", "partial": true, "parts": []}))
            .pending()
            .len(),
        1
    );
    assert_eq!(ended.prompt("q").answer("s").pending(), []);
    let passed = Log::imported(&["turn.ended"]).prompt("p").call("r", "a", "unknown").result("a", true).prompt("q");
    assert_eq!(passed.add("turn.ended", json!({"how": "complete"})).pending(), []);
    let denied = log.add("approval.ended", json!({"action": "a", "outcome": "denied"}));
    assert_eq!(denied.pending().len(), 1, "the model has to be told of a refusal, too");
    let delivered =
        imported().prompt("p").answer("r").propose("d", json!({"kind": "delivery"})).end("d", "succeeded", "yes");
    assert_eq!(delivered.pending(), [], "nobody waits to be told of a delivery");
}

/// R-TRN-009
#[test]
fn an_input_is_pending_until_it_was_given_to_the_model_or_dropped() {
    let queued = imported().with(
        "input.queued",
        json!({"input": "i", "parts": []}),
        json!({"id": "q", "actor": {"kind": "user"}}),
    );
    let waits = vec![(QueuedInput, "q".to_owned())];
    assert_eq!(queued.pending(), waits);
    assert_eq!(queued.codes(), [Code::QueuedPrompt]);
    let end = |outcome: &str| json!({"input": "i", "outcome": outcome});
    let dropped = queued.clone().add("input.ended", end("dropped"));
    assert_eq!((dropped.pending(), dropped.state().counts.prompts), (vec![], Count(1)));
    let named = queued
        .clone()
        .user("m", json!({}))
        .add("input.ended", json!({"input": "i", "outcome": "taken", "message": "m"}));
    assert_eq!(named.state().inputs[0].status, InputStatus::Delivered);
    assert_eq!((named.pending(), named.state().counts.prompts), (vec![(Prompt, "m".to_owned())], Count(1)));
    let taken = queued.add("input.ended", end("taken"));
    assert_eq!((taken.pending(), taken.state().counts.prompts), (waits.clone(), Count(1)));
    let passes = [
        ("turn.started", json!({})),
        ("turn.ended", json!({"how": "complete"})),
        ("message.added", json!({"role": "user", "purpose": "summary", "parts": []})),
    ];
    for (kind, data) in passes {
        let passed = taken.clone().add(kind, data);
        assert_eq!((passed.pending(), passed.state().counts.prompts), (vec![], Count(0)), "{kind}");
    }
    let failed = taken.clone().add("turn.ended", json!({"how": "error"}));
    assert_eq!(failed.pending(), waits, "an error answers nothing");
    assert_eq!(taken.add("context.compacted", json!({})).pending().len(), 1, "a projection passes nothing");
    assert_eq!(imported().add("input.ended", end("dropped")).codes(), [Code::UnknownInput]);
    let late = imported().add("input.ended", end("dropped")).add("input.queued", json!({"input": "i", "parts": []}));
    assert_eq!(late.pending(), []);
}

/// R-TRN-010
#[test]
fn what_hangs_under_a_parent_that_comes_later_belongs_to_the_turn_open_then() {
    let early = |log: Log| {
        log.with(
            "message.added",
            json!({"role": "assistant", "response": "r2", "parts": [{"type": "text", "text": "so"}]}),
            json!({"parent": "q"}),
        )
        .stop("r2", "end_turn")
        .propose("a", json!({}))
    };
    let log = early(imported().prompt("p"));
    assert_eq!((answered(&log), turn_of(&log, "a")), (Some(1), 1), "until then it stands where the head was");
    let log = log.user("q", json!({"parent": "p"}));
    assert_eq!((answered(&log), log.pending()), (Some(1), vec![]), "its own answer stands before it");
    let log = log.add("turn.started", json!({"message": "q"}));
    assert_eq!((answered(&log), turn_of(&log, "a")), (Some(2), 2));
    assert_eq!(log.pending(), [], "the first prompt is passed over, the second answered");
    let alone = imported().prompt("p").with(
        "message.added",
        json!({"role": "assistant", "response": "r2", "parts": [{"type": "text", "text": "so"}]}),
        json!({"parent": "q"}),
    );
    assert_eq!(alone.prompt("q").pending(), [], "the answer counts as given after its prompt");
    let result = imported().prompt("p").call("r1", "a", "unknown");
    let result = result.with(
        "message.added",
        json!({"role": "assistant", "response": "r2", "parts": [{"type": "action", "action": "b"}]}),
        json!({"parent": "res"}),
    );
    let part = json!({"type": "result", "action": "a", "parts": [], "final": true});
    let result =
        result.with("message.added", json!({"role": "tool", "parts": [part]}), json!({"id": "res", "parent": "e4"}));
    assert_eq!(result.pending(), [], "what went on from the result stands before it");
}

/// R-TRN-010
#[test]
fn what_hangs_under_what_hangs_moves_along() {
    let log = imported()
        .prompt("p")
        .with(
            "message.added",
            json!({"role": "assistant", "response": "r2", "parts": []}),
            json!({"id": "x", "parent": "late"}),
        )
        .propose("a", json!({}))
        .with(
            "message.added",
            json!({"role": "assistant", "response": "r3", "parts": []}),
            json!({"id": "y", "parent": "never"}),
        )
        .propose("b", json!({}))
        .prompt("q");
    assert_eq!(["a", "b"].map(|a| turn_of(&log, a)), [1, 1]);
    let log = log.user("late", json!({"parent": "later"}));
    assert_eq!(["a", "b"].map(|a| turn_of(&log, a)), [2, 2]);
    let log = log.with("action.proposed", super::proposal("c", json!({})), json!({"parent": "y"}));
    let log = log.prompt("s").user("later", json!({"parent": "p"}));
    assert_eq!(["a", "b", "c"].map(|a| turn_of(&log, a)), [3, 3, 3]);
}

/// R-TRN-010
#[test]
fn an_answer_moves_along_and_what_has_found_its_parent_stays() {
    let message =
        |response: &str| json!({"role": "assistant", "response": response, "parts": [{"type": "text", "text": "so"}]});
    let log = imported()
        .prompt("p")
        .with("message.added", message("r2"), json!({"id": "x", "parent": "late"}))
        .with("message.added", message("r3"), json!({"id": "y", "parent": "other"}))
        .propose("b", json!({}));
    let beside = log.clone().user("z", json!({"parent": "p"})).with(
        "action.proposed",
        super::proposal("c", json!({})),
        json!({"parent": "z"}),
    );
    assert_eq!(turn_of(&beside.prompt("q").user("late", json!({"parent": "q"})), "c"), 1, "it does not hang there");
    let found = log.user("other", json!({"parent": "root"})).prompt("q");
    assert_eq!((answered(&found), turn_of(&found, "b")), (Some(1), 1));
    let late = found.user("late", json!({"parent": "later"}));
    assert_eq!((answered(&late), turn_of(&late, "b")), (Some(2), 1));
    assert_eq!(answered(&late.prompt("s").user("later", json!({"parent": "p"}))), Some(3));
}

/// R-STA-002
#[test]
fn compactions_and_moves_leave_the_control_state_alone() {
    let log = imported().prompt("p").call("r", "a", "unknown").prompt("q").answer("s").user("t", json!({}));
    let moved = log.clone().add("context.compacted", json!({"window": []})).add("branch.moved", json!({"to": "p"}));
    let (before, after) = (log.state(), moved.state());
    assert_eq!((before.actions, before.pending, before.turns), (after.actions, after.pending, after.turns));
    assert_eq!(after.counts.compactions, Count(1));
}

#[test]
fn typed_prompts_are_those_of_a_person_or_the_calling_program() {
    let message = |purpose: &str, actor: &str| message_of("user", purpose, actor);
    let count = |log: Log| log.state().counts.prompts.0;
    assert_eq!(count(message_of("system", "steer", "user")), 1);
    assert_eq!(count(message_of("assistant", "prompt", "user")), 0);
    assert_eq!(count(message("prompt", "user")), 1);
    assert_eq!(count(message("steer", "user")), 1);
    assert_eq!(count(message("command", "user")), 0);
    assert_eq!(count(message("prompt", "agent")), 0);
    assert_eq!(count(message("prompt", "harness")), 0);
}

fn message_of(role: &str, purpose: &str, actor: &str) -> Log {
    Log::live().with(
        "message.added",
        json!({"role": role, "purpose": purpose, "parts": []}),
        json!({"actor": {"kind": actor}}),
    )
}
