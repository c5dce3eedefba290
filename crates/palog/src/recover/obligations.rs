//! What is owed for actions, approvals, and what is pending (spec 05, "Obligations").

use std::collections::{HashMap, HashSet};

use super::evidence::on_screen;
use super::{Call, Context, Decision, Evidence, EvidenceKind, Obligation, Subject, SubjectKind, is_over};
use crate::envelope::Time;
use crate::events::{ActionKind, Applied, EffectClass, Join, Recorded, Scope};
use crate::state::{
    Action, ActionState, Approval, ApprovalStatus, Count, Doubt, Grant, Observation, PendingKind, State, Task,
    TaskStatus, Told, Void,
};

/// What an obligation means for the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// An outcome has to be known first.
    Unknown,
    /// A person has to decide first.
    Person,
    /// It is work that can go on.
    Work,
    /// It can be done whoever works, and nothing waits for it.
    Chore,
    /// Nothing.
    Nothing,
}

#[derive(Debug)]
pub(super) struct Owed {
    pub(super) obligation: Obligation,
    pub(super) holds: Holds,
}

impl Owed {
    pub(super) fn new(kind: SubjectKind, id: &str, decision: Decision, rule: &str, reason: String) -> Self {
        let subject = Subject { kind, id: id.to_owned() };
        let rule = rule.to_owned();
        let obligation =
            Obligation { subject, call: None, decision, blocking: false, reason, rule, evidence: Vec::new() };
        Owed { obligation, holds: Holds::Nothing }
    }

    pub(super) fn about(mut self, action: &Action) -> Self {
        self.obligation.call = Some(Call { action: action.action.clone(), name: action.name.clone() });
        self
    }

    pub(super) fn holding(mut self, holds: Holds, blocking: bool) -> Self {
        (self.holds, self.obligation.blocking) = (holds, blocking);
        self
    }

    pub(super) fn with(mut self, evidence: Vec<Evidence>) -> Self {
        self.obligation.evidence.extend(evidence);
        self
    }
}

pub(super) struct Judge<'s, 'c> {
    pub(super) state: &'s State,
    pub(super) context: &'s Context<'c>,
    pub(super) actions: HashMap<&'s str, &'s Action>,
    /// Unknown and running actions by name and arguments.
    unresolved: HashMap<(&'s str, &'s str), &'s Action>,
    compensated: HashSet<&'s str>,
    /// Ended actions that wait to be delivered.
    undelivered: HashSet<&'s str>,
    pub(super) approvals: HashMap<&'s str, Vec<&'s Approval>>,
    /// The call that a prompt on the screen is about, and who saw it.
    pub(super) on_screen: Option<(&'s str, &'s Observation)>,
    /// Events without effect by the action that they are about.
    pub(super) late: HashMap<&'s str, Vec<&'s Void>>,
    pub(super) tasks: HashMap<&'s str, &'s Task>,
    grants: HashMap<&'s str, &'s Grant>,
    pub(super) owed: Vec<Owed>,
}

impl<'s, 'c: 's> Judge<'s, 'c> {
    pub(super) fn new(state: &'s State, context: &'s Context<'c>) -> Self {
        let mut unresolved = HashMap::new();
        for action in &state.actions {
            let open = matches!(action.state, ActionState::Unknown | ActionState::Running);
            if let (Some(name), Some(digest)) = (&action.name, &action.args_digest)
                && open
                && action.doubt != Some(Doubt::Accepted)
                && !action.only_reads()
            {
                unresolved.insert((name.as_str(), digest.as_str()), action);
            }
        }
        let mut approvals: HashMap<&str, Vec<&Approval>> = HashMap::new();
        for approval in &state.approvals {
            if let Some(action) = &approval.action {
                approvals.entry(action).or_default().push(approval);
            }
        }
        let mut late: HashMap<&str, Vec<&Void>> = HashMap::new();
        for void in &state.void {
            if let Some(action) = &void.action {
                late.entry(action).or_default().push(void);
            }
        }
        Judge {
            late,
            tasks: state.tasks.iter().map(|t| (t.task.as_str(), t)).collect(),
            grants: state.grants.iter().map(|g| (g.grant.as_str(), g)).collect(),
            state,
            context,
            actions: state.actions.iter().map(|a| (a.action.as_str(), a)).collect(),
            unresolved,
            compensated: state.actions.iter().filter_map(|a| a.compensates.as_deref()).collect(),
            undelivered: state.pending.iter().filter_map(|p| p.action.as_deref()).collect(),
            approvals,
            on_screen: on_screen(state, context),
            owed: Vec::new(),
        }
    }

    pub(super) fn take(self, wanted: impl Fn(&Owed) -> bool) -> Vec<Obligation> {
        self.owed.into_iter().filter(wanted).map(|o| o.obligation).collect()
    }

    pub(super) fn owe(
        &mut self,
        action: &Action,
        decision: Decision,
        rule: &str,
        reason: String,
        holds: Holds,
        blocking: bool,
    ) {
        let evidence = self.evidence(action);
        let owed = Owed::new(SubjectKind::Action, &action.action, decision, rule, reason).about(action);
        self.owed.push(owed.holding(holds, blocking).with(evidence));
    }

    pub(super) fn action(&mut self, action: &'s Action) {
        let name = title(action);
        let open = matches!(
            action.state,
            ActionState::Proposed | ActionState::Approved | ActionState::Awaiting | ActionState::Lapsed
        );
        match self.task_of(action) {
            Some(task) if open && task.status == TaskStatus::Cancelled => {
                let reason = format!("{name} was not started, and its task was cancelled.");
                return self.owe(action, Decision::Skip, "R-REC-031", reason, Holds::Nothing, false);
            }
            Some(task) if open && task.replanning => {
                let reason = format!("{name} was not started, and its task is planned anew.");
                return self.owe(action, Decision::Wait, "R-REC-035", reason, Holds::Nothing, false);
            }
            _ => {}
        }
        match action.state {
            ActionState::Unknown => {
                self.unknown(action, "R-REC-007", format!("What became of {name} is not known: {}", doubt(action)))
            }
            ActionState::Running => {
                self.unknown(action, "R-REC-008", format!("{name} was under way, and nobody is known to hold it."));
            }
            ActionState::Lapsed => {
                let reason = format!("A request for {name} lapsed; it runs only if it is asked for anew.");
                self.owe(action, Decision::Ask, "R-REC-015", reason, Holds::Person, !action.passed_over);
            }
            ActionState::Proposed | ActionState::Approved => self.not_started(action),
            ActionState::Succeeded | ActionState::Failed | ActionState::Cancelled | ActionState::Denied => {
                self.ended(action)
            }
            ActionState::Awaiting => {}
        }
    }

    fn unknown(&mut self, action: &'s Action, rule: &str, reason: String) {
        let due = match (&self.context.now, action.next_check.as_deref().and_then(Time::parse)) {
            (Some(now), Some(next)) => *now >= next,
            (None, _) | (_, None) => false,
        };
        let (decision, rule, blocking) = match action.doubt {
            Some(Doubt::Accepted) => (Decision::Skip, "R-REC-013", false),
            _ if action.only_reads() => (Decision::Skip, "R-REC-009", false),
            _ if action.passed_over => (Decision::Reconcile, "R-REC-010", false),
            Some(Doubt::InProgress) if !due => (Decision::Wait, "R-REC-011", true),
            Some(Doubt::Unsettled) => (Decision::Ask, "R-REC-012", true),
            _ => (Decision::Reconcile, rule, true),
        };
        self.owe(action, decision, rule, reason, Holds::Unknown, blocking);
    }

    fn not_started(&mut self, action: &'s Action) {
        let name = title(action);
        if action.kind == ActionKind::Question {
            let reason = format!("{name} was answered, and the model was not told.");
            return self.owe(action, Decision::Deliver, "R-REC-019", reason, Holds::Work, false);
        }
        if action.passed_over {
            let reason = format!("{name} was not started, and a later turn went on without it.");
            return self.owe(action, Decision::Ask, "R-REC-010", reason, Holds::Person, false);
        }
        let key = action.name.as_deref().zip(action.args_digest.as_deref());
        if let Some(same) = key.and_then(|key| self.unresolved.get(&key)) {
            let reason = format!("{name} repeats {}, whose outcome is not known.", title(same));
            let evidence = Evidence {
                kind: EvidenceKind::SameCall,
                text: format!("{} has the same name and arguments.", title(same)),
                event: same.proposed.as_ref().map(|p| p.event.clone()),
            };
            let owed = Owed::new(SubjectKind::Action, &action.action, Decision::Ask, "R-REC-017", reason).about(action);
            self.owed.push(owed.holding(Holds::Person, true).with(vec![evidence]));
            return;
        }
        if let Some(flaw) = self.flaw_of_grants(action) {
            let reason = format!("{name} needs leave anew: {flaw}.");
            return self.owe(action, Decision::Ask, "R-REC-018", reason, Holds::Person, true);
        }
        if action.proposed.is_none() {
            let reason = format!("{name} was not started, and nothing says what it should do.");
            return self.owe(action, Decision::Ask, "R-REC-016", reason, Holds::Person, true);
        }
        let reason = format!("{name} was not started.");
        self.owe(action, Decision::Run, "R-REC-016", reason, Holds::Work, false);
    }

    /// The task that an action belongs to.
    pub(super) fn task_of(&self, action: &Action) -> Option<&'s Task> {
        self.tasks.get(action.task.as_deref()?).copied()
    }

    /// Why the grants of an action do not allow to run it.
    fn flaw_of_grants(&self, action: &Action) -> Option<&'static str> {
        let approvals = self.approvals.get(action.action.as_str())?;
        let granted = |a: &&&Approval| a.status == ApprovalStatus::Granted;
        let (now, before): (Vec<&Approval>, Vec<&Approval>) =
            approvals.iter().filter(granted).partition(|a| a.attempt == action.attempt);
        let lasting = |a: &&Approval| matches!(a.scope, Some(Scope::Session | Scope::Rule));
        if now.iter().any(|a| a.join == Join::Inferred) {
            return Some("that the grant is about it is a guess");
        }
        if now.iter().any(|a| a.args_digest.is_some() && a.args_digest != action.args_digest) {
            return Some("the grant is for other arguments");
        }
        let now_is = self.context.now.as_ref();
        let revoked = |a: &&Approval| {
            let grant = a.grant.as_deref().and_then(|grant| self.grants.get(grant));
            let policy = self.state.config.policy_revision.as_ref();
            let other =
                |grant: &&Grant| policy.zip(grant.policy_revision.as_ref()).is_some_and(|(now, then)| now != then);
            grant.is_some_and(|grant| grant.revoked || other(grant) || is_over(grant.expires.as_deref(), now_is))
        };
        if now.iter().any(revoked) {
            return Some("the standing grant that it rests on is gone");
        }
        if now.iter().any(|a| is_over(a.expires.as_deref(), now_is)) {
            return Some("its grant has expired");
        }
        (now.is_empty() && !before.is_empty() && !before.iter().any(lasting))
            .then_some("its grant was spent by an earlier attempt")
    }

    fn ended(&mut self, action: &'s Action) {
        let name = title(action);
        let left_behind =
            action.state == ActionState::Failed && matches!(action.applied, Applied::Yes | Applied::Partial);
        let writes = matches!(action.class, EffectClass::WriteLocal | EffectClass::WriteRemote);
        if left_behind && writes && !self.compensated.contains(action.action.as_str()) {
            let reason = format!("{name} failed and left something behind.");
            self.owe(action, Decision::Compensate, "R-REC-021", reason, Holds::Nothing, false);
        }
        if !action.is_call() || self.undelivered.contains(action.action.as_str()) {
            return;
        }
        match action.told {
            Told::Result => {}
            Told::Partial => {
                let reason = format!("{name} ended after the model was told that it goes on.");
                self.owe(action, Decision::Deliver, "R-REC-020", reason, Holds::Nothing, false);
            }
            Told::Nothing => {
                let reason = format!("{name} ended, and the turn went on or was stopped without its result.");
                self.owe(action, Decision::Deliver, "R-REC-010", reason, Holds::Nothing, false);
            }
        }
    }

    pub(super) fn approval(&mut self, approval: &'s Approval) {
        if approval.status != ApprovalStatus::Open {
            return;
        }
        let action = approval.action.as_deref().and_then(|id| self.actions.get(id).copied());
        if action.and_then(|a| self.task_of(a)).is_some_and(|t| t.status == TaskStatus::Cancelled || t.replanning) {
            return;
        }
        let about = action.map_or_else(|| format!("the {} {}", approval.kind, approval.approval), title);
        let reason = format!("A person was asked about {about} and has not answered.");
        let mut owed = Owed::new(SubjectKind::Approval, &approval.approval, Decision::Answer, "R-REC-014", reason);
        if let Some(action) = action {
            owed = owed.about(action);
        }
        let expires = approval.expires.as_deref().and_then(Time::parse);
        if let (Some(now), Some(expires)) = (&self.context.now, expires)
            && *now >= expires
        {
            owed = owed.with(vec![Evidence {
                kind: EvidenceKind::Expired,
                text: format!("It was to lapse at {}.", expires.as_str()),
                event: approval.requested.as_ref().map(|r| r.event.clone()),
            }]);
        }
        self.owed.push(owed.holding(Holds::Person, !approval.passed_over));
    }

    /// What a call was that the log does not hold, and whether it ran, nobody knows.
    fn lost_call(&mut self, event: &str, turn: Count) {
        let passed_over =
            !self.state.declares(Recorded::ActionStarted) && self.state.turns.answered.is_some_and(|a| a > turn);
        let rule = if passed_over { "R-REC-010" } else { "R-REC-007" };
        let reason = "The model asked for a call that the log does not hold.".to_owned();
        let owed = Owed::new(SubjectKind::Message, event, Decision::Reconcile, rule, reason);
        self.owed.push(owed.holding(Holds::Unknown, !passed_over));
    }

    pub(super) fn pending(&mut self) {
        let state = self.state;
        for pending in &state.pending {
            let action = pending.action.as_deref().and_then(|id| self.actions.get(id).copied());
            let (kind, id, decision, rule, reason) = match (pending.kind, action, &pending.input) {
                (PendingKind::Call, _, _) => {
                    self.lost_call(&pending.event, pending.turn);
                    continue;
                }
                (PendingKind::Prompt, _, _) => {
                    let reason = "A prompt has no answer.".to_owned();
                    (SubjectKind::Message, &pending.event, Decision::Continue, "R-REC-022", reason)
                }
                (PendingKind::Result, Some(action), _) => {
                    let reason = format!("{} ended, and the model was not told.", title(action));
                    (SubjectKind::Action, &action.action, Decision::Deliver, "R-REC-019", reason)
                }
                (PendingKind::Result, None, _) => {
                    let reason = "The model was told a result and has not gone on.".to_owned();
                    (SubjectKind::Message, &pending.event, Decision::Continue, "R-REC-022", reason)
                }
                (PendingKind::QueuedInput, _, input) => {
                    let reason = "Input waits to be given to the model.".to_owned();
                    let id = input.as_ref().unwrap_or(&pending.event);
                    (SubjectKind::Input, id, Decision::Deliver, "R-REC-023", reason)
                }
            };
            let mut owed = Owed::new(kind, id, decision, rule, reason);
            if let Some(action) = action {
                owed = owed.about(action);
            }
            self.owed.push(owed.holding(Holds::Work, false));
        }
    }
}

/// An action, as a sentence names it.
pub(super) fn title(action: &Action) -> String {
    match &action.name {
        Some(name) => format!("{name} ({})", action.action),
        None => action.action.clone(),
    }
}

fn doubt(action: &Action) -> &'static str {
    match action.doubt {
        Some(Doubt::NoEnd) | None => "no end is recorded, and silence proves nothing.",
        Some(Doubt::Asked) => "a person was asked, and an answer would have left no trace.",
        Some(Doubt::Granted) => "it was granted, and a start would have left no trace.",
        Some(Doubt::EndUnknown) => "its end does not say whether it took effect.",
        Some(Doubt::EndsDisagree) => "what is recorded of its effect contradicts itself.",
        Some(Doubt::EarlierAttempt) => "an earlier attempt was never settled.",
        Some(Doubt::InProgress) => "a look-up found it under way.",
        Some(Doubt::Unsettled) => "a look-up could not tell.",
        Some(Doubt::Accepted) => "a person accepted that.",
    }
}
