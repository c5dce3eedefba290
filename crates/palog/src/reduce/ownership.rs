//! Who holds the session, and what may be done without asking (spec 04, "Ownership").

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{Finding, Reducer, Unknown, named};
use crate::envelope::Event;
use crate::events::{Data, GrantAdded, GrantRevoked};
use crate::fence::Fence;
use crate::state::{Count, EventRef, Grant, Lease, State, Void};

/// What is known of leases and grants beside what the state holds.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Ownership {
    pub(super) fence: Fence,
    #[serde(with = "super::snapshot::pairs")]
    grants: HashMap<Box<str>, usize>,
    /// By the event that added it.
    #[serde(with = "super::snapshot::pairs")]
    added_by: HashMap<Box<str>, usize>,
}

impl Ownership {
    /// Takes the lease that an event tells of into the state, and the epoch of the event.
    pub(super) fn hold(&mut self, state: &mut State, event: &Event<'_>, data: &Data<'_>) {
        let at = EventRef::of(event);
        let until = |ttl: Option<u64>| Some(event.time.as_ref()?.plus(ttl?)?.as_str().to_owned());
        match data {
            Data::LeaseAcquired(data) => {
                let (holder, expires) = (data.holder.to_string(), until(data.ttl));
                state.lease = Some(Lease { epoch: Count(data.epoch), holder, expires, acquired: at });
            }
            Data::LeaseRenewed(data) => {
                if let Some(lease) = &mut state.lease {
                    (lease.holder, lease.expires) = (data.holder.to_string(), until(data.ttl));
                }
            }
            _ => {}
        }
    }

    /// Brings epoch and lease of the state up to date.
    pub(super) fn show(&self, state: &mut State) {
        state.epoch = self.fence.epoch().map(Count);
        if !self.fence.has_lease() {
            state.lease = None;
        }
    }

    /// `grant.added`.
    pub(super) fn grant(&mut self, state: &mut State, data: &GrantAdded<'_>, event: &Event<'_>) {
        let at = self.index(state, &data.grant);
        self.added_by.insert((*event.id).into(), at);
        state.grants[at] = Grant {
            grant: data.grant.to_string(),
            names: data.names.as_ref().map(|names| names.iter().map(ToString::to_string).collect()),
            class: data.class,
            target: named(&data.target),
            approval: named(&data.approval),
            task: named(&data.task),
            policy_revision: named(&data.policy_revision),
            expires: data.expires.as_ref().map(|t| t.as_str().to_owned()),
            revoked: state.grants[at].revoked,
            added: Some(EventRef::of(event)),
        };
    }

    /// `grant.revoked` (R-OWN-004).
    pub(super) fn revoke(&mut self, state: &mut State, data: &GrantRevoked<'_>, unknown: &mut Unknown) {
        if !self.grants.contains_key(&*data.grant) {
            unknown.tell("grant", &data.grant);
        }
        let at = self.index(state, &data.grant);
        state.grants[at].revoked = true;
    }

    /// The grant that an approval rests on: its cause is the event that added it (R-EVT-013).
    pub(super) fn behind<'s>(&self, state: &'s State, event: &Event<'_>) -> Option<&'s str> {
        let at = event.cause.iter().find_map(|cause| self.added_by.get(&**cause))?;
        Some(&state.grants[*at].grant)
    }

    fn index(&mut self, state: &mut State, id: &str) -> usize {
        *self.grants.entry(id.into()).or_insert_with(|| {
            state.grants.push(Grant {
                grant: id.to_owned(),
                names: None,
                class: None,
                target: None,
                approval: None,
                task: None,
                policy_revision: None,
                expires: None,
                revoked: false,
                added: None,
            });
            state.grants.len() - 1
        })
    }
}

impl Reducer {
    /// Events about leases and grants.
    pub(super) fn dispatch_ownership(&mut self, event: &Event<'_>, data: &Data<'_>) {
        let Reducer { state, ownership, told, .. } = self;
        match data {
            Data::GrantAdded(data) => ownership.grant(state, data, event),
            Data::GrantRevoked(data) => ownership.revoke(state, data, &mut Unknown(told)),
            _ => ownership.hold(state, event, data),
        }
    }

    /// Whether an event is written under an epoch that counts; one that is not changes nothing (R-OWN-001).
    pub(super) fn is_current(&mut self, event: &Event<'_>, data: &Data<'_>) -> Result<(), Finding> {
        match self.ownership.fence.admit(event, data) {
            Some(finding) if finding.severity == crate::diagnostic::Severity::Void => {
                let action = match data {
                    Data::ActionProposed(d) => Some(&d.action),
                    Data::ActionStarted(d) => Some(&d.action),
                    Data::ActionEnded(d) => Some(&d.action),
                    Data::ActionReconciled(d) => Some(&d.action),
                    Data::ApprovalRequested(d) => d.action.as_ref(),
                    Data::ApprovalEnded(d) => d.action.as_ref(),
                    _ => None,
                };
                let (kind, action) = (event.kind.to_string(), action.map(ToString::to_string));
                self.state.void.push(Void { at: EventRef::of(event), kind, action });
                Err(finding)
            }
            Some(finding) => {
                self.told.push(finding);
                Ok(())
            }
            None => Ok(()),
        }
    }
}
