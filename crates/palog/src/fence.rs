//! Epochs: what a holder writes whose time is over has no effect (spec 04, "Ownership").

use serde::{Deserialize, Serialize};

use crate::diagnostic::{Code, Severity};
use crate::envelope::Event;
use crate::events::{Data, Kind};
use crate::order::Finding;

/// The epochs of one log.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Fence {
    /// The greatest that counts.
    epoch: Option<u64>,
    /// The greatest under which a lease was acquired, and the one whose lease stands.
    acquired: Option<u64>,
    standing: Option<u64>,
}

impl Fence {
    /// The greatest epoch.
    pub(crate) fn epoch(&self) -> Option<u64> {
        self.epoch
    }

    /// Whether the lease that was acquired last stands.
    pub(crate) fn has_lease(&self) -> bool {
        self.standing.is_some()
    }

    /// Takes an event in (R-OWN-001, R-OWN-002, R-OWN-003). What is found of the severity void makes it have no effect.
    pub(crate) fn admit(&mut self, event: &Event<'_>, data: &Data<'_>) -> Option<Finding> {
        if event.copy.is_some() {
            return None;
        }
        let void =
            |why: String| Some(Finding { code: Code::LateWrite, severity: Severity::Void, rule: "R-OWN-001", why });
        let newest = self.epoch;
        let over = |epoch: Option<u64>| epoch.zip(newest).is_some_and(|(epoch, newest)| epoch < newest);
        let named = match data {
            Data::LeaseAcquired(lease) => Some(lease.epoch),
            Data::LeaseRenewed(lease) => Some(lease.epoch),
            Data::LeaseReleased(lease) => Some(lease.epoch),
            Data::AttemptStarted(attempt) => attempt.epoch,
            _ => None,
        };
        for epoch in [event.epoch, named] {
            if over(epoch) {
                let (epoch, newest) = (epoch.unwrap_or_default(), newest.unwrap_or_default());
                return void(format!("{} under the epoch {epoch}; the newest is {newest}", event.kind));
            }
        }
        let lease = |why: String| Some(Finding { rule: "R-OWN-002", ..void(why)? });
        match data {
            Data::LeaseAcquired(data) => {
                if self.acquired >= Some(data.epoch) || event.epoch > Some(data.epoch) {
                    return lease(format!("a lease under the epoch {} is not newer than every one before", data.epoch));
                }
                (self.acquired, self.standing) = (Some(data.epoch), Some(data.epoch));
            }
            Data::LeaseRenewed(_) | Data::LeaseReleased(_) if self.standing != named || event.epoch > named => {
                return lease(format!("no lease stands under the epoch {}", named.unwrap_or_default()));
            }
            Data::LeaseReleased(_) => self.standing = None,
            _ => {}
        }
        // Neither what a reader may pass over nor what only the model sees decides about others.
        let counts = event.epoch.is_some()
            && !event.is_ignorable()
            && matches!(event.kind(), Kind::Core(kind) if !["context.compacted", "message.revised", "branch.moved"].contains(&kind));
        self.raise(if counts { event.epoch.max(named) } else { named });
        let silent = event.epoch.is_none() && named.is_none() && event.src.is_empty();
        (silent && newest.is_some()).then(|| Finding {
            code: Code::NoEpoch,
            severity: Severity::Warning,
            rule: "R-OWN-003",
            why: format!("{} carries no epoch; the newest is {}", event.kind, newest.unwrap_or_default()),
        })
    }

    /// There is an epoch like this: a lease under a lower one is over.
    pub(crate) fn raise(&mut self, epoch: Option<u64>) {
        self.epoch = self.epoch.max(epoch);
        self.standing = self.standing.filter(|standing| Some(*standing) >= self.epoch);
    }
}
