//! The answer of `palog recover`.

use palog::recover::{Evidence, Obligation, Recovery, Verdict};
use palog::state::State;
use serde::Serialize;

/// What may happen next, and for which session.
#[derive(Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct Answer<'a> {
    /// Id of the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<&'a str>,
    /// Native id of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    /// The time that expiry was judged by.
    now: &'a str,
    /// The verdict.
    verdict: Verdict,
    /// Why, as a sentence.
    reason: &'a str,
    /// The rule of the specification that says so.
    rule: &'a str,
    /// What is owed, in the order of the log: actions, approvals, then what is pending.
    obligations: &'a [Obligation],
    /// What bears on the verdict as a whole.
    evidence: &'a [Evidence],
}

impl<'a> Answer<'a> {
    /// The answer for the log that `state` is of.
    pub(crate) fn new(state: &'a State, now: &'a str, recovery: &'a Recovery) -> Self {
        Answer {
            log: state.log.as_deref(),
            session: state.session.as_deref(),
            now,
            verdict: recovery.verdict,
            reason: &recovery.reason,
            rule: &recovery.rule,
            obligations: &recovery.obligations,
            evidence: &recovery.evidence,
        }
    }
}
