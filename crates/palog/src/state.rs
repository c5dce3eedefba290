//! The state that events reduce to (spec 04). Every scalar is a string or a boolean, so that no implementation trips over
//! numbers; what is absent is left out, never null.

mod digest;
mod held;

use std::collections::BTreeMap;

pub use held::*;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::diagnostic::Code;
use crate::events::{
    ActionKind, Applied, ApprovalKind, ChildKind, ChildLink, EffectClass, ForkWorkspace, Join, LogEnd, ParentMode,
    Reconciled, Recorded, Scope,
};
use crate::wire::{wire, words};

/// A counter; on the wire a string of decimal digits (spec 04, "State").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Count(pub u64);

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        let number = text.parse().ok().filter(|n: &u64| n.to_string() == text);
        number.map(Count).ok_or_else(|| serde::de::Error::custom("a counter is a string of decimal digits"))
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Count {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Count".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^(0|[1-9][0-9]*)$"})
    }
}

words! {
    /// The state of an action (spec 04, "Actions").
    pub enum ActionState {
        /// It was proposed, and certainly not started.
        Proposed = "proposed",
        /// A request for it is open.
        Awaiting = "awaiting",
        /// All its requests were granted, and it was certainly not started.
        Approved = "approved",
        /// A request expired or was withdrawn: it never runs unless it is asked for anew.
        Lapsed = "lapsed",
        /// A person or a policy refused it.
        Denied = "denied",
        /// It was started, or the model was told that it goes on.
        Running = "running",
        /// It did what it was asked to.
        Succeeded = "succeeded",
        /// It ended in an error, or was refused before it was dispatched.
        Failed = "failed",
        /// It was stopped.
        Cancelled = "cancelled",
        /// None of these can be said.
        Unknown = "unknown",
    }

    /// Why an action is unknown (spec 04, "Actions").
    pub enum Doubt {
        /// Nothing says what became of it, and silence proves nothing.
        NoEnd = "no_end",
        /// It was asked about, and the answer would have left no trace.
        Asked = "asked",
        /// It was granted, and its start would have left no trace.
        Granted = "granted",
        /// Its end says that the effect cannot be known.
        EndUnknown = "end_unknown",
        /// Its ends, or an end and a reconciliation, contradict each other.
        EndsDisagree = "ends_disagree",
        /// An earlier attempt was never settled.
        EarlierAttempt = "earlier_attempt",
        /// A look-up found it under way.
        InProgress = "in_progress",
        /// A look-up could not tell.
        Unsettled = "unsettled",
        /// A person accepted that it cannot be known.
        Accepted = "accepted",
    }

    /// What the model was told of an action (spec 04, "Actions").
    pub enum Told {
        /// A final result: also a refusal or an error.
        Result = "result",
        /// That it goes on.
        Partial = "partial",
        /// Nothing.
        Nothing = "none",
    }

    /// The state of a request for approval (spec 04, "Approvals").
    pub enum ApprovalStatus {
        /// It waits for its end, which would have been recorded.
        Open = "open",
        /// It was made; whether it was answered would have left no trace.
        Asked = "asked",
        /// Leave was given.
        Granted = "granted",
        /// Leave was refused.
        Denied = "denied",
        /// The question was answered.
        Answered = "answered",
        /// It expired or was withdrawn.
        Lapsed = "lapsed",
        /// Its action went on without a recorded answer, or needed none.
        Settled = "settled",
    }

    /// The state of an input (spec 04, "Inputs").
    pub enum InputStatus {
        /// It waits.
        Queued = "queued",
        /// It was taken; no message is known to hold it.
        Taken = "taken",
        /// A message holds it.
        Delivered = "delivered",
        /// It was withdrawn.
        Dropped = "dropped",
    }

    /// What is pending (spec 04, "Pending").
    pub enum PendingKind {
        /// The model asked for a call that the log does not hold.
        Call = "call",
        /// A prompt has no answer, or an unfinished one.
        Prompt = "prompt",
        /// An input was accepted and not yet given to the model.
        QueuedInput = "queued_input",
        /// An ended action that the model was not told of, or a result that it has not answered.
        Result = "result",
    }
}

wire! {
    /// An event, by its id and its place.
    pub struct EventRef {
        /// Its id.
        event: String,
        /// Its seq.
        seq: Count,
    }

    /// The program that ran the session.
    pub struct Agent {
        /// Its name.
        name: String,
        /// Its version.
        version?: String,
    }

    /// The log that this one came out of.
    pub struct Parent {
        /// Its id.
        log: String,
        /// Its native session id.
        session?: String,
        /// The last event of the parent that this log goes on from.
        event?: String,
        /// The action of the parent that made this log.
        action?: String,
        /// What this log is to its parent.
        mode: ParentMode,
        /// What a fork works in.
        workspace?: ForkWorkspace,
        /// Whether its state was at hand.
        at_hand: bool,
        /// Whether a continuation took the session over; absent = that cannot be said, or it is none.
        handed_over?: bool,
    }

    /// A source of events.
    pub struct Source {
        /// The program that wrote it.
        vendor: String,
        /// The version of that program.
        version?: String,
        /// Where it was found.
        locator: String,
        /// What its producer writes durably.
        records: Vec<Recorded>,
        /// Whether its bytes are kept beside the log.
        kept: bool,
        /// Since when it is open.
        opened: EventRef,
    }

    /// The definition that the agent ran under last, as far as it was recorded.
    #[derive(Default)]
    pub struct Config {
        /// Model.
        model?: String,
        /// Permission mode, in the vendor's word.
        permission_mode?: String,
        /// Other mode of the client, in the vendor's word.
        mode?: String,
        /// Version of the client.
        client_version?: String,
        /// Working directory.
        directory?: String,
        /// Branch of the version control system.
        branch?: String,
        /// Revision of the policy.
        policy_revision?: String,
        /// Digest of the manifest.
        manifest_digest?: String,
    }

    /// How many there are of each; copies count as events only.
    #[derive(Default)]
    pub struct Counts {
        /// Events.
        events: Count,
        /// Messages.
        messages: Count,
        /// Inputs that a person or the calling program gave: prompts, steers, and queued inputs that no message holds.
        prompts: Count,
        /// Distinct responses of the model.
        responses: Count,
        /// Compactions.
        compactions: Count,
        /// Children.
        children: Count,
    }

    /// Token counts over all responses, each once; absent = no response has such a count.
    #[derive(Default)]
    pub struct Totals {
        /// Input tokens.
        input?: Count,
        /// Output tokens.
        output?: Count,
        /// Input tokens that came from a cache.
        cache_read?: Count,
        /// Input tokens that were written to a cache.
        cache_write?: Count,
        /// Output tokens that were spent on reasoning.
        reasoning?: Count,
    }

    /// The turns.
    #[derive(Default)]
    pub struct Turns {
        /// How many were started; also the number of the newest one, 0 being what comes before the first.
        count: Count,
        /// Whether the newest one has neither an answer nor an end.
        open: bool,
        /// Number of the newest turn that was answered.
        answered?: Count,
    }

    /// An action.
    pub struct Action {
        /// Its id.
        action: String,
        /// Name of the tool; absent = it was never proposed.
        name?: String,
        /// What it is.
        kind: ActionKind,
        /// What it can do.
        class: EffectClass,
        /// Its state.
        state: ActionState,
        /// Why it is unknown; absent = it is not.
        doubt?: Doubt,
        /// Whether the effect took place.
        applied: Applied,
        /// What the model was told of it.
        told: Told,
        /// The task that it belongs to.
        task?: String,
        /// Number of the turn that it belongs to.
        turn: Count,
        /// Whether it was left open and a later turn went on without it.
        passed_over: bool,
        /// Whether its proposal is a copy from another log.
        inherited: bool,
        /// Whether its start would have been recorded.
        starts_recorded: bool,
        /// Number of the newest attempt.
        attempt: Count,
        /// Digest of the arguments that it was proposed with.
        args_digest?: String,
        /// Key under which the target acts at most once.
        idempotency_key?: String,
        /// The action whose effect this one undoes.
        compensates?: String,
        /// What the newest reconciliation found.
        reconciled?: Reconciled,
        /// When to look again.
        next_check?: String,
        /// Its proposal.
        proposed?: EventRef,
        /// The first end of its newest attempt.
        ended?: EventRef,
        /// Where it is first mentioned.
        seq: Count,
    }

    /// A request for approval, or the end of one that was never recorded.
    pub struct Approval {
        /// Id of the request.
        approval: String,
        /// The action that it is about.
        action?: String,
        /// What it is about.
        kind: ApprovalKind,
        /// Its state.
        status: ApprovalStatus,
        /// How far the grant reaches.
        scope?: Scope,
        /// The standing grant that decided.
        grant?: String,
        /// How surely it belongs to the action.
        join: Join,
        /// Number of the attempt that it is about.
        attempt: Count,
        /// Whether it is a copy from another log.
        inherited: bool,
        /// Whether its action, or a later turn, went on without it.
        passed_over: bool,
        /// Digest of the arguments that leave is asked for.
        args_digest?: String,
        /// When it lapses.
        expires?: String,
        /// The request.
        requested?: EventRef,
        /// Its end.
        ended?: EventRef,
    }

    /// An input.
    pub struct Input {
        /// Its id.
        input: String,
        /// Its state.
        status: InputStatus,
        /// Whether it still has to be given to the model.
        pending: bool,
        /// The message that holds it.
        message?: String,
        /// Where it was queued; absent = only its end is in the log.
        queued?: EventRef,
    }

    /// A child.
    pub struct Child {
        /// Id of its log.
        child: String,
        /// Its native session id.
        session?: String,
        /// The action that made it.
        action?: String,
        /// What kind of child it is.
        kind?: ChildKind,
        /// How surely it belongs to the action.
        link: ChildLink,
        /// Whether its end is recorded.
        ended: bool,
        /// How it ended, in the source's words.
        status?: String,
    }

    /// What somebody saw; in the state the newest of each source and fact.
    pub struct Observation {
        /// What was seen.
        fact: String,
        /// The action, child or session that it is about; absent = that of the log.
        subject?: String,
        /// When it was seen to be so.
        as_of?: String,
        /// Who saw it.
        source: String,
        /// Where it is recorded; absent = it comes from outside the log.
        recorded?: EventRef,
    }

    /// Something that has to be answered, delivered or gone on with.
    pub struct Pending {
        /// What it is.
        kind: PendingKind,
        /// The event that tells of it.
        event: String,
        /// The action, where an end was not delivered.
        action?: String,
        /// The input.
        input?: String,
        /// Number of its turn; of an input, of the newest one.
        turn: Count,
    }

    /// Why nothing can be concluded from the log.
    pub struct Reason {
        /// What is wrong; the first finding of each code is given.
        code: Code,
        /// The particulars.
        why?: String,
        /// The event that it was found at; absent = the line holds none.
        event?: EventRef,
    }

    /// What a log says about its agent (spec 04). A pure function of the log's events; see [`crate::reduce`].
    #[derive(Default)]
    pub struct State {
        /// Id of the log.
        log?: String,
        /// Native id of the session.
        session?: String,
        /// The program that ran it.
        agent?: Agent,
        /// The vendor of the first source.
        vendor?: String,
        /// Version of the specification that the log was opened under.
        spec?: String,
        /// Name and revision of the mapping that derived the log.
        mapping?: String,
        /// The log that this one came out of.
        parent?: Parent,
        /// How the log was closed.
        closed?: LogEnd,
        /// Why nothing can be concluded; empty = something can.
        indeterminate: Vec<Reason>,
        /// What a live writer records durably.
        records: Vec<Recorded>,
        /// The sources that are open, by name.
        sources: BTreeMap<String, Source>,
        /// Kinds of facts whose absence proves nothing, since neither the writer nor an open source records them.
        unseen: Vec<Recorded>,
        /// The definition.
        config: Config,
        /// Title of the session.
        title?: String,
        /// The newest event on the path; absent = nothing is on it.
        head?: String,
        /// The greatest time of any event but notes and observations.
        latest_time?: String,
        /// How many there are of each.
        counts: Counts,
        /// Token counts.
        usage: Totals,
        /// The greatest epoch; absent = there is none.
        epoch?: Count,
        /// The lease that stands; absent = none does.
        lease?: Lease,
        /// The turns.
        turns: Turns,
        /// The actions, in the order of their first mention.
        actions: Vec<Action>,
        /// The requests for approval, in the order of their first mention.
        approvals: Vec<Approval>,
        /// The inputs, in the order of their first mention.
        inputs: Vec<Input>,
        /// The children, in the order of their first mention.
        children: Vec<Child>,
        /// The newest observation of each source and fact.
        observations: Vec<Observation>,
        /// What has to be answered, delivered or gone on with.
        pending: Vec<Pending>,
        /// Standing grants, in the order of their first mention.
        grants: Vec<Grant>,
        /// The tasks, in the order of their first mention.
        tasks: Vec<Task>,
        /// The attempts at them, in the order of their first mention.
        attempts: Vec<TaskAttempt>,
        /// The commands, in the order in which they were issued.
        commands: Vec<Command>,
        /// The workspace, as it was recorded last.
        workspace?: Workspace,
        /// The artifacts, in the order of their first mention.
        artifacts: Vec<Artifact>,
        /// The resources, in the order of their first mention.
        resources: Vec<Resource>,
        /// The checkpoints, in the order of the log.
        checkpoints: Vec<Checkpoint>,
        /// The events that came under an epoch that was over.
        void: Vec<Void>,
    }
}

impl EventRef {
    /// The reference to an event.
    #[must_use]
    pub fn of(event: &crate::envelope::Event<'_>) -> Self {
        EventRef { event: event.id.to_string(), seq: Count(event.seq) }
    }
}

impl State {
    /// The action with this id.
    #[must_use]
    pub fn action(&self, id: &str) -> Option<&Action> {
        self.actions.iter().find(|a| a.action == id)
    }

    /// The task with this id.
    #[must_use]
    pub fn task(&self, id: &str) -> Option<&Task> {
        self.tasks.iter().find(|t| t.task == id)
    }

    /// Whether the writer or an open source records facts of `kind`.
    #[must_use]
    pub fn declares(&self, kind: Recorded) -> bool {
        self.records.contains(&kind) || self.sources.values().any(|s| s.records.contains(&kind))
    }
}

impl Action {
    /// Whether it changes nothing in the world.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        matches!(self.class, EffectClass::Pure | EffectClass::ReadLocal | EffectClass::ReadRemote)
    }

    /// Whether it is settled: it ended with a known effect, or was refused.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        matches!(
            self.state,
            ActionState::Succeeded | ActionState::Failed | ActionState::Cancelled | ActionState::Denied
        )
    }

    /// Whether the model proposed it and waits to be told what became of it.
    #[must_use]
    pub fn is_call(&self) -> bool {
        self.proposed.is_some() && matches!(self.kind, ActionKind::Tool | ActionKind::Question | ActionKind::Spawn)
    }
}
