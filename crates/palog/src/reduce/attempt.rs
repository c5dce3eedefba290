//! Attempts: what the events of one attempt of an action make of it (spec 04, "Actions").

use serde::{Deserialize, Serialize};

use super::path::Key;
use crate::events::{Applied, Outcome, Reconciled};
use crate::state::{Doubt, EventRef};

/// What can be said of one attempt by its own events.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Attempt {
    pub(super) number: u64,
    /// The sources of its starts.
    pub(super) starts: Vec<Option<Key>>,
    pub(super) ends: Vec<End>,
    pub(super) first_end: Option<EventRef>,
    pub(super) reconciled: Option<Reconciliation>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) outcome: Outcome,
    pub(super) applied: Applied,
    pub(super) seq: u64,
    pub(super) source: Option<Key>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Reconciliation {
    pub(super) outcome: Reconciled,
    pub(super) human: bool,
    pub(super) seq: u64,
}

/// What became of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Open,
    Ended(Outcome, Applied),
    NotApplied,
    Doubtful(Doubt),
}

impl Attempt {
    /// What its ends and its reconciliation make of it (R-ACT-003, R-ACT-004, R-ACT-005, R-ACT-017, R-ACT-019).
    pub(super) fn fate(&self) -> Fate {
        let applied = self.ends.first().map(|e| e.applied);
        let agree = self.ends.iter().all(|e| Some(e.applied) == applied);
        let graver = self.ends.iter().map(|e| e.outcome).max_by_key(|outcome| match outcome {
            Outcome::Succeeded => 0,
            Outcome::Cancelled => 1,
            Outcome::Failed => 2,
        });
        let ended = match (graver, applied) {
            (Some(_), _) if !agree => Fate::Doubtful(Doubt::EndsDisagree),
            (Some(_), Some(Applied::Unknown)) => Fate::Doubtful(Doubt::EndUnknown),
            (Some(outcome), Some(applied)) => Fate::Ended(outcome, applied),
            (None, _) | (_, None) => Fate::Open,
        };
        let Some(reconciliation) = self.reconciled else { return ended };
        let (found, fate) = match reconciliation.outcome {
            Reconciled::Applied => (Applied::Yes, Fate::Ended(Outcome::Succeeded, Applied::Yes)),
            Reconciled::Partial => (Applied::Partial, Fate::Ended(Outcome::Failed, Applied::Partial)),
            Reconciled::NotApplied => (Applied::No, Fate::NotApplied),
            Reconciled::InProgress => return ended.or_doubt(Doubt::InProgress),
            Reconciled::Unknown if reconciliation.human => return ended.or_doubt(Doubt::Accepted),
            Reconciled::Unknown => return ended.or_doubt(Doubt::Unsettled),
        };
        let contradicts =
            |e: &End| e.applied != found && (e.seq > reconciliation.seq || matches!(ended, Fate::Ended(..)));
        match ended {
            _ if self.ends.iter().any(contradicts) => Fate::Doubtful(Doubt::EndsDisagree),
            Fate::Ended(..) => ended,
            Fate::Open | Fate::NotApplied | Fate::Doubtful(_) => fate,
        }
    }

    /// Whether it began to act, so that requests for it have been settled (R-ACT-016).
    pub(super) fn began(&self) -> bool {
        !self.starts.is_empty() || self.ends.iter().any(|e| e.applied != Applied::No)
    }

    /// Whether `source` told that it began; what other sources tell has no order among it.
    pub(super) fn began_by(&self, source: Option<Key>) -> bool {
        self.starts.contains(&source) || self.ends.iter().any(|e| e.applied != Applied::No && e.source == source)
    }
}

impl Fate {
    fn or_doubt(self, doubt: Doubt) -> Self {
        match self {
            Fate::Ended(..) => self,
            Fate::Open | Fate::NotApplied | Fate::Doubtful(_) => Fate::Doubtful(doubt),
        }
    }
}
