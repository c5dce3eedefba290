//! Recovery: what may happen next, and why (spec 05).
//!
//! A state says what a log knows. Recovery is the only place where the world outside comes in: the time, and what a
//! look-up has seen (R-REC-026). It decides nothing on silence: see [`crate::state::Doubt`].

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use crate::envelope::Time;
use crate::events::{ActionKind, Applied, EffectClass, Join, LogEnd, Recorded, Scope};
use crate::state::{
    Action, ActionState, Approval, ApprovalStatus, Count, Doubt, Observation, PendingKind, State, Told,
};
use crate::wire::{wire, words};

words! {
    /// What can be said of a session as a whole; the first that holds (spec 05, "Verdict").
    pub enum Verdict {
        /// The log is corrupt, or holds something critical that is not known.
        Indeterminate = "indeterminate",
        /// It goes on elsewhere, or is complete with nothing blocking.
        Closed = "closed",
        /// Somebody holds it.
        Owned = "owned",
        /// Something of unknown outcome has to be looked up first.
        NeedsReconcile = "needs_reconcile",
        /// A person has to decide.
        AwaitingHuman = "awaiting_human",
        /// There is work that can go on.
        Ready = "ready",
        /// There is nothing to do.
        Idle = "idle",
    }

    /// What is to be done about something (spec 05, "Obligations").
    pub enum Decision {
        /// Run the action.
        Run = "run",
        /// Ask the model.
        Continue = "continue",
        /// Give the model what it has not been given.
        Deliver = "deliver",
        /// Leave it; tell the model that its outcome is unknown.
        Skip = "skip",
        /// Wait; submit nothing.
        Wait = "wait",
        /// Find out what became of it.
        Reconcile = "reconcile",
        /// Undo what it left behind, by a new action.
        Compensate = "compensate",
        /// Put a question to a person.
        Ask = "ask",
        /// Answer the question that is open.
        Answer = "answer",
    }

    /// What an obligation is about.
    pub enum SubjectKind {
        /// The session as a whole.
        Session = "session",
        /// An action.
        Action = "action",
        /// A request for approval.
        Approval = "approval",
        /// An input.
        Input = "input",
        /// A message.
        Message = "message",
    }

    /// What kind of evidence is given (spec 05, "Evidence"). Evidence never makes an action runnable.
    pub enum EvidenceKind {
        /// A question was put to a person; whether it was answered would have left no trace.
        ApprovalAsked = "approval_asked",
        /// It was granted, which is no proof of a start.
        ApprovalGranted = "approval_granted",
        /// The request has expired by the clock; only an event ends it.
        Expired = "expired",
        /// The target acts at most once under this key.
        IdempotencyKey = "idempotency_key",
        /// The model was told something about it.
        Told = "told",
        /// Another action with the same name and arguments.
        SameCall = "same_call",
        /// Somebody saw something about it.
        Observed = "observed",
        /// Calls may have been made that no source writes down before they act.
        UnseenCallsPossible = "unseen_calls_possible",
    }
}

wire! {
    /// What an obligation is about.
    pub struct Subject {
        /// What kind of thing it is.
        kind: SubjectKind,
        /// Its id: of a message that of its event, of the session the native one.
        id: String,
    }

    /// The call that an obligation is about.
    pub struct Call {
        /// Id of the action.
        action: String,
        /// Name of the tool.
        name?: String,
    }

    /// Something that bears on a decision and does not make it.
    pub struct Evidence {
        /// What kind of evidence it is.
        kind: EvidenceKind,
        /// What it says, as a sentence.
        text: String,
        /// The event that tells of it.
        event?: String,
    }

    /// Something that is owed (spec 05, "Obligations").
    pub struct Obligation {
        /// What it is about.
        subject: Subject,
        /// The call, where it is about one.
        call?: Call,
        /// What is to be done.
        decision: Decision,
        /// Whether it holds the session.
        blocking: bool,
        /// Why, as a sentence.
        reason: String,
        /// The rule of the spec that says so.
        rule: String,
        /// What bears on it.
        evidence: Vec<Evidence>,
    }

    /// What may happen next (spec 05).
    pub struct Recovery {
        /// The verdict.
        verdict: Verdict,
        /// Why, as a sentence.
        reason: String,
        /// The rule of the spec that says so.
        rule: String,
        /// What is owed, in the order of the log: actions, approvals, then what is pending.
        obligations: Vec<Obligation>,
        /// What bears on the verdict as a whole.
        evidence: Vec<Evidence>,
    }
}

/// What comes from outside the log (spec 05, "Inputs").
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Context<'c> {
    /// The time; without one, nothing expires and no look-up is due.
    pub now: Option<Time<'c>>,
    /// What look-ups have just seen. `owner_alive` here is a live holder; in the log it is only a file that says so.
    pub observations: &'c [Observation],
}

impl<'c> Context<'c> {
    /// A context in which nothing is known but the log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time.
    #[must_use]
    pub fn at(mut self, now: Time<'c>) -> Self {
        self.now = Some(now);
        self
    }

    /// Sets what look-ups have just seen.
    #[must_use]
    pub fn seen(mut self, observations: &'c [Observation]) -> Self {
        self.observations = observations;
        self
    }
}

/// Tells what may happen next (spec 05). Pure, as far as `context` is.
#[must_use]
pub fn recover(state: &State, context: &Context<'_>) -> Recovery {
    let session = state.session.as_deref().or(state.log.as_deref()).unwrap_or_default();
    if let Some(reason) = state.indeterminate.first() {
        let why = reason.why.as_deref().unwrap_or_else(|| reason.code.meaning());
        let reason = format!("Nothing can be concluded from the log: {why} ({}).", reason.code);
        let mut owed = Owed::new(SubjectKind::Session, session, Decision::Ask, "R-REC-001", reason.clone());
        owed.obligation.blocking = true;
        return answer(Verdict::Indeterminate, reason, "R-REC-001", vec![owed.obligation]);
    }
    if state.closed == Some(LogEnd::Transferred) {
        let reason = "The session was transferred and goes on elsewhere.".to_owned();
        return answer(Verdict::Closed, reason, "R-REC-002", Vec::new());
    }
    let mut judge = Judge::new(state, context);
    state.actions.iter().filter(|a| !a.inherited).for_each(|action| judge.action(action));
    state.approvals.iter().filter(|a| !a.inherited).for_each(|approval| judge.approval(approval));
    judge.pending();

    let held_by = |holds: Holds| judge.owed.iter().find(|o| o.holds == holds && o.obligation.blocking);
    let blocked = judge.owed.iter().any(|o| o.obligation.blocking);
    let owner = context.observations.iter().find(|o| o.fact == "owner_alive");
    if state.closed == Some(LogEnd::Complete) && !blocked {
        let reason = "The log is complete and nothing blocks.".to_owned();
        return answer(Verdict::Closed, reason, "R-REC-002", judge.take(|o| o.holds != Holds::Work));
    }
    if let Some(owner) = owner {
        let reason = format!("A look-up ({}) shows that its holder is alive.", owner.source);
        let mut wait = Owed::new(SubjectKind::Session, session, Decision::Wait, "R-REC-003", reason.clone());
        wait.obligation.blocking = true;
        let mut obligations = judge.take(|o| o.holds != Holds::Work);
        obligations.insert(0, wait.obligation);
        return answer(Verdict::Owned, reason, "R-REC-003", obligations);
    }
    if let Some(first) = held_by(Holds::Unknown) {
        let reason = first.obligation.reason.clone();
        return answer(Verdict::NeedsReconcile, reason, "R-REC-004", judge.take(|_| true));
    }
    if let Some(first) = held_by(Holds::Person) {
        let reason = first.obligation.reason.clone();
        return answer(Verdict::AwaitingHuman, reason, "R-REC-005", judge.take(|_| true));
    }
    let (verdict, reason) = match judge.owed.iter().find(|o| o.holds == Holds::Work) {
        Some(first) => (Verdict::Ready, first.obligation.reason.clone()),
        None => (Verdict::Idle, "Nothing waits for anybody.".into()),
    };
    let mut recovery = answer(verdict, reason, "R-REC-006", judge.take(|_| true));
    if !state.declares(Recorded::ActionProposed) {
        let text = "No source writes a call down before it acts, so there may have been more calls than the log holds.";
        let kind = EvidenceKind::UnseenCallsPossible;
        recovery.evidence.push(Evidence { kind, text: text.into(), event: None });
    }
    recovery
}

fn answer(verdict: Verdict, reason: String, rule: &str, obligations: Vec<Obligation>) -> Recovery {
    Recovery { verdict, reason, rule: rule.to_owned(), obligations, evidence: Vec::new() }
}

/// What an obligation means for the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// An outcome has to be known first.
    Unknown,
    /// A person has to decide first.
    Person,
    /// It is work that can go on.
    Work,
    /// Nothing.
    Nothing,
}

#[derive(Debug)]
struct Owed {
    obligation: Obligation,
    holds: Holds,
}

impl Owed {
    fn new(kind: SubjectKind, id: &str, decision: Decision, rule: &str, reason: String) -> Self {
        let subject = Subject { kind, id: id.to_owned() };
        let rule = rule.to_owned();
        let obligation =
            Obligation { subject, call: None, decision, blocking: false, reason, rule, evidence: Vec::new() };
        Owed { obligation, holds: Holds::Nothing }
    }

    fn about(mut self, action: &Action) -> Self {
        self.obligation.call = Some(Call { action: action.action.clone(), name: action.name.clone() });
        self
    }

    fn holding(mut self, holds: Holds, blocking: bool) -> Self {
        (self.holds, self.obligation.blocking) = (holds, blocking);
        self
    }

    fn with(mut self, evidence: Vec<Evidence>) -> Self {
        self.obligation.evidence.extend(evidence);
        self
    }
}

struct Judge<'s, 'c> {
    state: &'s State,
    context: &'s Context<'c>,
    actions: HashMap<&'s str, &'s Action>,
    /// Unknown and running actions by name and arguments.
    unresolved: HashMap<(&'s str, &'s str), &'s Action>,
    compensated: HashSet<&'s str>,
    /// Ended actions that wait to be delivered.
    undelivered: HashSet<&'s str>,
    approvals: HashMap<&'s str, Vec<&'s Approval>>,
    /// The call that a prompt on the screen is about, and who saw it.
    on_screen: Option<(&'s str, &'s Observation)>,
    owed: Vec<Owed>,
}

impl<'s, 'c: 's> Judge<'s, 'c> {
    fn new(state: &'s State, context: &'s Context<'c>) -> Self {
        let mut unresolved = HashMap::new();
        for action in &state.actions {
            let open = matches!(action.state, ActionState::Unknown | ActionState::Running);
            if let (Some(name), Some(digest)) = (&action.name, &action.args_digest)
                && open
                && action.doubt != Some(Doubt::Accepted)
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
        Judge {
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

    fn take(self, wanted: impl Fn(&Owed) -> bool) -> Vec<Obligation> {
        self.owed.into_iter().filter(wanted).map(|o| o.obligation).collect()
    }

    fn owe(&mut self, action: &Action, decision: Decision, rule: &str, reason: String, holds: Holds, blocking: bool) {
        let evidence = self.evidence(action);
        let owed = Owed::new(SubjectKind::Action, &action.action, decision, rule, reason).about(action);
        self.owed.push(owed.holding(holds, blocking).with(evidence));
    }

    fn action(&mut self, action: &'s Action) {
        let name = title(action);
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
        let reason = format!("{name} was not started.");
        self.owe(action, Decision::Run, "R-REC-016", reason, Holds::Work, false);
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

    fn approval(&mut self, approval: &'s Approval) {
        if approval.status != ApprovalStatus::Open {
            return;
        }
        let action = approval.action.as_deref().and_then(|id| self.actions.get(id).copied());
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

    fn pending(&mut self) {
        for pending in &self.state.pending {
            let action = pending.action.as_deref().and_then(|id| self.actions.get(id).copied());
            let (kind, id, decision, rule, reason) = match (pending.kind, action, &pending.input) {
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

    /// What bears on an action that is not settled.
    fn evidence(&self, action: &Action) -> Vec<Evidence> {
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
fn on_screen<'s>(state: &'s State, context: &'s Context<'_>) -> Option<(&'s str, &'s Observation)> {
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

/// An action, as a sentence names it.
fn title(action: &Action) -> String {
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
