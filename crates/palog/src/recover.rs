//! Recovery: what may happen next, and why (spec 05).
//!
//! A state says what a log knows. Recovery is the only place where the world outside comes in: the time, and what a
//! look-up has seen (R-REC-026). It decides nothing on silence: see [`crate::state::Doubt`].

mod admission;
mod evidence;
mod obligations;
#[cfg(test)]
mod tests;
mod work;

pub use admission::{Environment, WorkspaceNow};
use obligations::{Holds, Judge, Owed};

use crate::envelope::Time;
use crate::events::{LogEnd, Recorded};
use crate::state::{Observation, State};
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
        /// Run the action, or apply the command.
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
        /// Begin the step of the plan again.
        RestartStep = "restart_step",
        /// Give back, or revoke, what is held.
        Release = "release",
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
        /// A child.
        Child = "child",
        /// A task.
        Task = "task",
        /// An attempt at a task.
        Attempt = "attempt",
        /// A step of a plan.
        Step = "step",
        /// A command.
        Command = "command",
        /// A checkpoint.
        Checkpoint = "checkpoint",
        /// A standing grant.
        Grant = "grant",
        /// A resource.
        Resource = "resource",
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
        /// An event about it came under an epoch that was over, and has no effect.
        LateWrite = "late_write",
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
    /// What look-ups have just seen. `owner_alive` of this session here is a live holder; in the log it is only a file that
    /// says so.
    pub observations: &'c [Observation],
    /// What a worker would have; what it does not name is not compared.
    pub environment: Option<&'c Environment>,
    /// The state of the parent's log, where it is at hand.
    pub parent: Option<&'c State>,
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

    /// Sets what a worker would have.
    #[must_use]
    pub fn within(mut self, environment: &'c Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Sets the state of the parent's log.
    #[must_use]
    pub fn child_of(mut self, parent: &'c State) -> Self {
        self.parent = Some(parent);
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
    judge.commands_and_tasks();
    state.actions.iter().filter(|a| !a.inherited).for_each(|action| judge.action(action));
    state.approvals.iter().filter(|a| !a.inherited).for_each(|approval| judge.approval(approval));
    judge.children(session);
    judge.pending();
    judge.steps();
    judge.held();

    let blocked = judge.owed.iter().any(|o| o.obligation.blocking);
    if state.closed == Some(LogEnd::Complete) && !blocked {
        let reason = "The log is complete and nothing blocks.".to_owned();
        return answer(Verdict::Closed, reason, "R-REC-002", judge.take(|o| o.holds != Holds::Work));
    }
    if let Some(reason) = holder(state, context) {
        let mut wait = Owed::new(SubjectKind::Session, session, Decision::Wait, "R-REC-003", reason.clone());
        wait.obligation.blocking = true;
        let mut obligations = judge.take(|o| o.holds != Holds::Work);
        obligations.insert(0, wait.obligation);
        return answer(Verdict::Owned, reason, "R-REC-003", obligations);
    }
    let works = judge.admit(session);
    let held_by = |holds: Holds| judge.owed.iter().find(|o| o.holds == holds && o.obligation.blocking);
    let takes = |owed: &Owed| works.allow(owed);
    if let Some(first) = held_by(Holds::Unknown) {
        let reason = first.obligation.reason.clone();
        return answer(Verdict::NeedsReconcile, reason, "R-REC-004", judge.take(takes));
    }
    if let Some(first) = held_by(Holds::Person) {
        let reason = first.obligation.reason.clone();
        return answer(Verdict::AwaitingHuman, reason, "R-REC-005", judge.take(takes));
    }
    let goes_on = |o: &&Owed| matches!(o.holds, Holds::Work | Holds::Chore);
    let (verdict, reason) = match judge.owed.iter().filter(|o| takes(o)).find(goes_on) {
        Some(first) => (Verdict::Ready, first.obligation.reason.clone()),
        None => (Verdict::Idle, "Nothing waits for anybody.".into()),
    };
    let mut recovery = answer(verdict, reason, "R-REC-006", judge.take(takes));
    if !state.declares(Recorded::ActionProposed) {
        let text = "No source writes a call down before it acts, so there may have been more calls than the log holds.";
        let kind = EvidenceKind::UnseenCallsPossible;
        recovery.evidence.push(Evidence { kind, text: text.into(), event: None });
    }
    recovery
}

/// Who else holds the session at the moment, and how that is known (R-REC-003, R-REC-028).
fn holder(state: &State, context: &Context<'_>) -> Option<String> {
    let is_of_this = |subject: &String| [&state.session, &state.log].contains(&&Some(subject.clone()));
    let alive = |o: &&Observation| o.fact == "owner_alive" && o.subject.as_ref().is_none_or(is_of_this);
    if let Some(owner) = context.observations.iter().find(alive) {
        return Some(format!("A look-up ({}) shows that its holder is alive.", owner.source));
    }
    let lease = state.lease.as_ref()?;
    let own = context.environment.and_then(|e| e.epoch) == Some(lease.epoch.0);
    if own || is_over(lease.expires.as_deref(), context.now.as_ref()) {
        return None;
    }
    let until = lease.expires.as_ref().map_or_else(|| "it is released".to_owned(), Clone::clone);
    Some(format!("{} holds the session under the epoch {} until {until}.", lease.holder, lease.epoch))
}

/// Whether the time of something has come.
fn is_over(expires: Option<&str>, now: Option<&Time<'_>>) -> bool {
    expires.and_then(Time::parse).zip(now).is_some_and(|(expires, now)| *now >= expires)
}

fn answer(verdict: Verdict, reason: String, rule: &str, obligations: Vec<Obligation>) -> Recovery {
    Recovery { verdict, reason, rule: rule.to_owned(), obligations, evidence: Vec::new() }
}
