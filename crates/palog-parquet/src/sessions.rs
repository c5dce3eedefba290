//! The table `sessions`: a row for each log.

use palog::recover::Recovery;
use palog::state::{ActionState, Count, State};

use crate::actions::is_unresolved;
use crate::cell::{Bytes, Flag, Int, Micros, Text, table};
use crate::events::int;

table! {
    /// A log.
    SessionRow, SessionColumns {
        /// Id of the log.
        log: Text!,
        /// The vendor of the first source; of a log that was written live, the name of the program.
        vendor: Text?,
        /// Name of the program that ran the session.
        agent: Text?,
        /// Its version.
        agent_version: Text?,
        /// Native id of the session.
        session: Text?,
        /// Version of the specification that the log was opened under.
        spec: Text?,
        /// Name and revision of the mapping that derived the log; null = it was written live.
        mapping: Text?,
        /// Title of the session.
        title: Text?,
        /// Working directory, as it was configured last.
        directory: Text?,
        /// Branch of the version control system, as it was configured last.
        branch: Text?,
        /// Model, as it was configured last.
        model: Text?,
        /// Permission mode, as it was configured last.
        permission_mode: Text?,
        /// Revision of the workspace, as it was recorded last.
        revision: Text?,
        /// Id of the log that this one came out of.
        parent_log: Text?,
        /// The native id of that session.
        parent_session: Text?,
        /// The action of the parent that made this log.
        parent_action: Text?,
        /// What this log is to its parent: `fork`, `continue` or `spawn`.
        parent_mode: Text?,
        /// The least time of its events, without notes and observations.
        first_time: Micros?,
        /// The greatest time of its events, without notes and observations.
        last_time: Micros?,
        /// Microseconds between these two.
        duration_us: Int?,
        /// Lines of the log.
        lines: Int!,
        /// Bytes of these lines, with their line feeds.
        bytes: Int!,
        /// Lines that have a `fault` in `events`.
        faults: Int!,
        /// Events that count: not those that stand twice.
        events: Int!,
        /// Messages, without copies.
        messages: Int!,
        /// Prompts, without copies.
        prompts: Int!,
        /// Turns.
        turns: Int!,
        /// Responses of the model, each once, without copies.
        responses: Int!,
        /// Actions, without inherited ones.
        actions: Int!,
        /// Of these, the ones that are unresolved.
        actions_unresolved: Int!,
        /// Of these, the ones that failed.
        actions_failed: Int!,
        /// Requests for approval, or ends without one, without inherited ones.
        approvals: Int!,
        /// Compactions.
        compactions: Int!,
        /// Children.
        children: Int!,
        /// Input tokens: each response counts once, copies not at all; null = no response has such a count.
        usage_input: Int?,
        /// The same for output tokens.
        usage_output: Int?,
        /// The same for cached input tokens.
        usage_cache_read: Int?,
        /// The same for input tokens that were written to a cache.
        usage_cache_write: Int?,
        /// The same for output tokens for reasoning.
        usage_reasoning: Int?,
        /// The greatest epoch.
        epoch: Int?,
        /// How the log was closed; null = it was not.
        closed: Text?,
        /// The verdict, without a clock, look-ups and the parent's log (spec 05, "Verdict").
        verdict: Text!,
        /// Why, as a sentence.
        verdict_reason: Text!,
        /// The rule that says so.
        verdict_rule: Text!,
        /// How many obligations there are.
        obligations: Int!,
        /// Whether one of them blocks.
        blocked: Flag!,
        /// `seq` of the last line; null = it is no event.
        last_seq: Int?,
        /// SHA-256 of the last line: with `last_seq` a cursor (spec 01).
        last_line_sha256: Text!,
        /// The bytes after the last line feed, which are not a part of the log; null = there are none.
        torn_tail: Bytes?,
    }
}

/// What is known of a log beside its state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent<'v> {
    pub(crate) vendor: Option<&'v str>,
    pub(crate) first_time: Option<i64>,
    pub(crate) last_time: Option<i64>,
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
    pub(crate) faults: u64,
    pub(crate) last_seq: Option<u64>,
    pub(crate) last_line_sha256: &'v str,
    pub(crate) torn_tail: &'v [u8],
}

/// Adds the row of a log.
pub(crate) fn collect(
    columns: &mut SessionColumns,
    log: &str,
    state: &State,
    recovery: &Recovery,
    extent: &Extent<'_>,
) {
    let count = |n: usize| i64::try_from(n).ok();
    let own = || state.actions.iter().filter(|a| !a.inherited);
    let parent = state.parent.as_ref();
    let tokens = |n: Option<Count>| n.and_then(|n| int(n.0));
    columns.push(&SessionRow {
        log: Some(log),
        vendor: extent.vendor,
        agent: state.agent.as_ref().map(|a| a.name.as_str()),
        agent_version: state.agent.as_ref().and_then(|a| a.version.as_deref()),
        session: state.session.as_deref(),
        spec: state.spec.as_deref(),
        mapping: state.mapping.as_deref(),
        title: state.title.as_deref(),
        directory: state.config.directory.as_deref(),
        branch: state.config.branch.as_deref(),
        model: state.config.model.as_deref(),
        permission_mode: state.config.permission_mode.as_deref(),
        revision: state.workspace.as_ref().and_then(|w| w.revision.as_deref()),
        parent_log: parent.map(|p| p.log.as_str()),
        parent_session: parent.and_then(|p| p.session.as_deref()),
        parent_action: parent.and_then(|p| p.action.as_deref()),
        parent_mode: parent.map(|p| p.mode.word()),
        first_time: extent.first_time,
        last_time: extent.last_time,
        duration_us: extent.last_time.zip(extent.first_time).map(|(last, first)| last - first),
        lines: int(extent.lines),
        bytes: int(extent.bytes),
        faults: int(extent.faults),
        events: int(state.counts.events.0),
        messages: int(state.counts.messages.0),
        prompts: int(state.counts.prompts.0),
        turns: int(state.turns.count.0),
        responses: int(state.counts.responses.0),
        actions: count(own().count()),
        actions_unresolved: count(own().filter(|a| is_unresolved(a.state)).count()),
        actions_failed: count(own().filter(|a| a.state == ActionState::Failed).count()),
        approvals: count(state.approvals.iter().filter(|a| !a.inherited).count()),
        compactions: int(state.counts.compactions.0),
        children: int(state.counts.children.0),
        usage_input: tokens(state.usage.input),
        usage_output: tokens(state.usage.output),
        usage_cache_read: tokens(state.usage.cache_read),
        usage_cache_write: tokens(state.usage.cache_write),
        usage_reasoning: tokens(state.usage.reasoning),
        epoch: state.epoch.and_then(|n| int(n.0)),
        closed: state.closed.map(palog::events::LogEnd::word),
        verdict: Some(recovery.verdict.word()),
        verdict_reason: Some(&recovery.reason),
        verdict_rule: Some(&recovery.rule),
        obligations: count(recovery.obligations.len()),
        blocked: Some(recovery.obligations.iter().any(|o| o.blocking)),
        last_seq: extent.last_seq.and_then(int),
        last_line_sha256: Some(extent.last_line_sha256),
        torn_tail: Some(extent.torn_tail).filter(|tail| !tail.is_empty()),
    });
}
