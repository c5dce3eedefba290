//! The table `actions`: a row for each action, with its whole life.

use std::collections::HashMap;

use palog::state::{Action, ActionState, Approval, State};

use crate::cell::{Flag, Int, Micros, Text, table};
use crate::events::int;
use crate::life::{Life, Lives, Responses};

table! {
    /// An action.
    ActionRow, ActionColumns {
        /// Id of the log.
        log: Text!,
        /// Id of the action in that log.
        action: Text!,
        /// Name of the tool; null = it was never proposed.
        name: Text?,
        /// What it is.
        kind: Text!,
        /// What it can do.
        class: Text!,
        /// Its state at the end of the log (spec 04, "Actions").
        state: Text!,
        /// Why it is unknown.
        doubt: Text?,
        /// Whether the effect took place.
        applied: Text!,
        /// What the model was told of it.
        told: Text!,
        /// Whether it is neither ended nor refused: its state is `proposed`, `awaiting`, `approved`, `running` or `unknown`.
        unresolved: Flag!,
        /// Number of the newest attempt.
        attempt: Int!,
        /// Number of its turn.
        turn: Int!,
        /// Whether it was left open and a later turn went on without it.
        passed_over: Flag!,
        /// Whether its proposal is a copy from another log.
        inherited: Flag!,
        /// The task that it belongs to.
        task: Text?,
        /// The response of the model that asked for it; null = the log does not say.
        response: Text?,
        /// The model of that response, else the one that was configured when the action was proposed.
        model: Text?,
        /// Where that is from: `response` or `config`.
        model_from: Text?,
        /// Digest of the arguments.
        args_digest: Text?,
        /// Key under which the target acts at most once.
        idempotency_key: Text?,
        /// The action whose effect this one undoes.
        compensates: Text?,
        /// What the newest reconciliation found.
        reconciled: Text?,
        /// `seq` of its first mention.
        seq: Int!,
        /// `seq` of its proposal.
        proposed_seq: Int?,
        /// When it was proposed.
        proposed_time: Micros?,
        /// How many requests for approval there are about it, or ends without a request.
        approvals: Int!,
        /// Status of the newest of them (spec 04, "Approvals").
        approval_status: Text?,
        /// How far a grant reaches.
        approval_scope: Text?,
        /// When leave was asked for first.
        asked_time: Micros?,
        /// When the newest of the requests ended.
        answered_time: Micros?,
        /// When its newest attempt was started, where starts are recorded.
        started_time: Micros?,
        /// `seq` of the first end of its newest attempt.
        ended_seq: Int?,
        /// When that was.
        ended_time: Micros?,
        /// When the model was told of it last.
        told_time: Micros?,
        /// Whether the model was told that it failed; null = it was not told either way.
        is_error: Flag?,
    }
}

/// Adds a row for each action of a log.
pub(crate) fn collect(columns: &mut ActionColumns, log: &str, state: &State, lives: &Lives) {
    let none = Life::default();
    let mut approvals = HashMap::<&str, Vec<&Approval>>::new();
    for approval in &state.approvals {
        if let Some(action) = &approval.action {
            approvals.entry(action).or_default().push(approval);
        }
    }
    let responses = lives.responses();
    for action in &state.actions {
        let life = lives.of(&action.action).unwrap_or(&none);
        let about = approvals.get(&*action.action).map_or(&[][..], Vec::as_slice);
        columns.push(&row(log, action, about, life, (lives, &responses)));
    }
}

fn row<'v>(
    log: &'v str,
    action: &'v Action,
    about: &[&'v Approval],
    life: &'v Life,
    (lives, responses): (&'v Lives, &Responses<'v>),
) -> ActionRow<'v> {
    let newest = about.last();
    let response = responses.of(life);
    let by_response = response.and_then(|(_, model)| model);
    let model = by_response.or(lives.configured(life));
    ActionRow {
        log: Some(log),
        action: Some(&action.action),
        name: action.name.as_deref(),
        kind: Some(action.kind.word()),
        class: Some(action.class.word()),
        state: Some(action.state.word()),
        doubt: action.doubt.map(palog::state::Doubt::word),
        applied: Some(action.applied.word()),
        told: Some(action.told.word()),
        unresolved: Some(is_unresolved(action.state)),
        attempt: int(action.attempt.0),
        turn: int(action.turn.0),
        passed_over: Some(action.passed_over),
        inherited: Some(action.inherited),
        task: action.task.as_deref(),
        response: response.map(|(name, _)| name),
        model,
        model_from: model.map(|_| if by_response.is_some() { "response" } else { "config" }),
        args_digest: action.args_digest.as_deref(),
        idempotency_key: action.idempotency_key.as_deref(),
        compensates: action.compensates.as_deref(),
        reconciled: action.reconciled.map(palog::events::Reconciled::word),
        seq: int(action.seq.0),
        proposed_seq: action.proposed.as_ref().and_then(|e| int(e.seq.0)),
        proposed_time: action.proposed.as_ref().and_then(|e| life.time_of(e.seq.0)),
        approvals: i64::try_from(about.len()).ok(),
        approval_status: newest.map(|a| a.status.word()),
        approval_scope: newest.and_then(|a| a.scope).map(palog::events::Scope::word),
        asked_time: about.iter().find_map(|a| lives.approval_at(a.requested.as_ref()?.seq.0)),
        answered_time: newest.and_then(|a| lives.approval_at(a.ended.as_ref()?.seq.0)),
        started_time: life.started(action.attempt.0),
        ended_seq: action.ended.as_ref().and_then(|e| int(e.seq.0)),
        ended_time: action.ended.as_ref().and_then(|e| life.time_of(e.seq.0)),
        told_time: life.told,
        is_error: life.is_error,
    }
}

/// Whether an action is neither ended nor refused.
pub(crate) fn is_unresolved(state: ActionState) -> bool {
    use ActionState::{Approved, Awaiting, Proposed, Running, Unknown};
    matches!(state, Proposed | Awaiting | Approved | Running | Unknown)
}
