//! What bears on a decision and never makes it (spec 05, "Evidence and observations").

use super::obligations::Judge;
use super::{Context, Evidence, EvidenceKind};
use crate::envelope::Time;
use crate::state::{Action, ActionState, ApprovalStatus, Count, Doubt, Observation, State, Told};

impl Judge<'_, '_> {
    /// What bears on an action that is not settled.
    pub(super) fn evidence(&self, action: &Action) -> Vec<Evidence> {
        let mut found = Vec::new();
        if action.is_settled() {
            return found;
        }
        for approval in self.approvals.get(action.action.as_str()).into_iter().flatten() {
            let event = |at: &Option<crate::state::EventRef>| at.as_ref().map(|r| r.event.clone());
            match approval.status {
                ApprovalStatus::Asked => found.push(Evidence {
                    kind: EvidenceKind::ApprovalAsked,
                    text: "A person was asked; an answer would have left no trace.".into(),
                    event: event(&approval.requested),
                }),
                ApprovalStatus::Granted => found.push(Evidence {
                    kind: EvidenceKind::ApprovalGranted,
                    text: "It was granted, which is no proof that it started.".into(),
                    event: event(&approval.ended),
                }),
                ApprovalStatus::Open
                | ApprovalStatus::Denied
                | ApprovalStatus::Answered
                | ApprovalStatus::Lapsed
                | ApprovalStatus::Settled => {}
            }
        }
        if let Some((_, seen)) = self.on_screen.filter(|(id, _)| *id == action.action) {
            found.push(Evidence {
                kind: EvidenceKind::ApprovalAsked,
                text: format!("asked, probably waiting (seen by {})", seen.source),
                event: seen.recorded.as_ref().map(|r| r.event.clone()),
            });
        }
        let about = |o: &&Observation| o.subject.as_deref() == Some(&action.action) && !is_status(&o.fact);
        found.extend(self.state.observations.iter().chain(self.context.observations).filter(about).map(|seen| {
            Evidence {
                kind: EvidenceKind::Observed,
                text: format!("{} was seen by {}.", seen.fact, seen.source),
                event: seen.recorded.as_ref().map(|r| r.event.clone()),
            }
        }));
        if let Some(key) = &action.idempotency_key {
            let text = format!("It was to act under the key {key:?}.");
            found.push(Evidence { kind: EvidenceKind::IdempotencyKey, text, event: None });
        }
        for late in self.late.get(action.action.as_str()).into_iter().flatten() {
            let text = format!("{} came too late to count, under an epoch that was over.", late.kind);
            found.push(Evidence { kind: EvidenceKind::LateWrite, text, event: Some(late.at.event.clone()) });
        }
        if action.told == Told::Result {
            let text = "The model was given a result for it, which proves nothing about its effect.".into();
            found.push(Evidence { kind: EvidenceKind::Told, text, event: None });
        }
        found
    }
}

/// Facts that say what the client shows at the moment; a newer one replaces an older one.
fn is_status(fact: &str) -> bool {
    matches!(fact, "waiting" | "busy" | "idle" | "shell")
}

/// The one unresolved call that a prompt on the screen can be about (R-REC-024).
pub(super) fn on_screen<'s>(state: &'s State, context: &'s Context<'_>) -> Option<(&'s str, &'s Observation)> {
    let dated = |o: &'s Observation| Some((o.as_of.as_deref().and_then(Time::parse)?, o));
    let all = state.observations.iter().chain(context.observations);
    let (as_of, newest) = all.filter(|o| is_status(&o.fact)).filter_map(dated).max_by(|(a, x), (b, y)| {
        let place = |o: &Observation| o.recorded.as_ref().map_or(Count(u64::MAX), |r| r.seq);
        a.cmp(b).then_with(|| place(x).cmp(&place(y)))
    })?;
    let outdated = state.latest_time.as_deref().and_then(Time::parse).is_some_and(|latest| as_of < latest);
    if newest.fact != "waiting" || outdated {
        return None;
    }
    let mut open = state.actions.iter().filter(|a| {
        !a.inherited
            && !a.passed_over
            && !a.is_settled()
            && a.state != ActionState::Lapsed
            && a.doubt != Some(Doubt::Accepted)
    });
    match (open.next(), open.next()) {
        (Some(action), None) if action.state == ActionState::Unknown => Some((&action.action, newest)),
        _ => None,
    }
}
