//! The answer of `palog recover`.

use palog::recover::{Evidence, Obligation, Recovery, Verdict};
use palog::state::State;
use serde::Serialize;

/// What may happen next, and for which session.
#[derive(Serialize)]
pub(crate) struct Answer<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    /// The time that expiry was judged by.
    now: &'a str,
    verdict: Verdict,
    reason: &'a str,
    rule: &'a str,
    obligations: &'a [Obligation],
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
