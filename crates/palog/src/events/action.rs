//! Actions and approvals (spec 03, "Action", "Approval").

use crate::envelope::Time;
use crate::events::Part;
use crate::json::{Raw, Str, Value};
use crate::wire::{wire, words};

words! {
    /// What an action is, apart from its name (spec 03).
    pub enum ActionKind {
        /// A tool call.
        Tool = "tool",
        /// A call that only asks a person; its result is the answer.
        Question = "question",
        /// A call that starts a child agent.
        Spawn = "spawn",
        /// An outbound delivery.
        Delivery = "delivery",
        /// A background job.
        Job = "job",
    }

    /// What an action can do to the world (spec 03). Ordered from harmless to unknown.
    pub enum EffectClass {
        /// Nothing outside the agent.
        Pure = "pure",
        /// Reads the workspace.
        ReadLocal = "read_local",
        /// Reads elsewhere.
        ReadRemote = "read_remote",
        /// Changes the workspace.
        WriteLocal = "write_local",
        /// Changes something elsewhere.
        WriteRemote = "write_remote",
        /// Nobody said.
        Unknown = "unknown",
    }

    /// How an action ended (spec 03).
    pub enum Outcome {
        /// It did what it was asked to.
        Succeeded = "succeeded",
        /// It ended in an error, or was refused before it was dispatched.
        Failed = "failed",
        /// It was stopped.
        Cancelled = "cancelled",
    }

    /// Whether the effect took place (spec 03).
    pub enum Applied {
        /// It did not.
        No = "no",
        /// It did, in part.
        Partial = "partial",
        /// It did.
        Yes = "yes",
        /// That cannot be said.
        Unknown = "unknown",
    }

    /// What a reconciliation found (spec 03).
    pub enum Reconciled {
        /// The effect took place.
        Applied = "applied",
        /// It did not, and will not.
        NotApplied = "not_applied",
        /// It did, in part.
        Partial = "partial",
        /// It is still under way.
        InProgress = "in_progress",
        /// That cannot be said.
        Unknown = "unknown",
    }

    /// What a request for approval is about (spec 03).
    pub enum ApprovalKind {
        /// Leave to act.
        Permission = "permission",
        /// A question.
        Question = "question",
        /// A form that a tool asks to have filled in.
        Elicitation = "elicitation",
    }

    /// How a request for approval ended (spec 03).
    pub enum ApprovalOutcome {
        /// Leave was given.
        Granted = "granted",
        /// Leave was refused.
        Denied = "denied",
        /// The question was answered.
        Answered = "answered",
        /// Nobody answered in time.
        Expired = "expired",
        /// The asker took it back.
        Withdrawn = "withdrawn",
    }

    /// How far a grant reaches (spec 03).
    pub enum Scope {
        /// This action only.
        Once = "once",
        /// The rest of the session.
        Session = "session",
        /// A standing rule.
        Rule = "rule",
    }

    /// How surely two records of different sources are about the same thing (spec 03).
    pub enum Join {
        /// They name the same id.
        Exact = "exact",
        /// Their content is the same.
        ByContent = "by_content",
        /// It is a guess.
        Inferred = "inferred",
    }
}

wire! {
    /// What an action can do to the world (spec 03).
    pub struct Effect<'a> {
        /// The class; absent = unknown.
        class?: EffectClass,
        /// A key under which the target acts at most once.
        idempotency_key?: Str<'a>,
        /// What it acts on.
        target?: Str<'a>,
    }

    /// `action.proposed` (spec 03).
    pub struct ActionProposed<'a> {
        /// The vendor's call id; on reuse with `#2`, `#3` … behind it.
        action: Str<'a>,
        /// Name of the tool.
        name: Str<'a>,
        /// The arguments, verbatim.
        args: Value<'a>,
        /// `sha256:` and the digest of the bytes of `args` as proposed.
        args_digest: Str<'a>,
        /// What the action is; absent = `tool`.
        kind?: ActionKind,
        /// What it can do; absent = unknown.
        effect?: Effect<'a>,
        /// The action whose effect this one undoes.
        compensates?: Str<'a>,
    }

    /// `action.started`: written before it acts (spec 03).
    pub struct ActionStarted<'a> {
        /// The action.
        action: Str<'a>,
        /// Number of the attempt; absent = 1.
        attempt?: u64,
        /// Digest of the arguments that it was started with.
        args_digest?: Str<'a>,
    }

    /// `action.ended`: what became of the effect (spec 03).
    pub struct ActionEnded<'a> {
        /// The action.
        action: Str<'a>,
        /// Number of the attempt; absent = 1.
        attempt?: u64,
        /// How it ended.
        outcome: Outcome,
        /// Whether the effect took place.
        applied: Applied,
        /// What it gave back, where that is more than the model was told.
        output?: Vec<Part<'a>>,
        /// What the target gave as proof.
        receipt?: Value<'a>,
        /// The error.
        error?: Value<'a>,
    }

    /// `action.reconciled`: what a look-up found of an unknown action (spec 03).
    pub struct ActionReconciled<'a> {
        /// The action.
        action: Str<'a>,
        /// Number of the attempt; absent = 1.
        attempt?: u64,
        /// What was found.
        outcome: Reconciled,
        /// Why that can be said: `target_fenced`, `executor_terminated`, `act_deadline_passed`, `child_log`, `human` … (open).
        basis: Str<'a>,
        /// What shows it.
        evidence?: Value<'a>,
        /// When to look again.
        next_check?: Time<'a>,
    }

    /// `approval.requested` (spec 03).
    pub struct ApprovalRequested<'a> {
        /// Id of the request; absent = the id of the event.
        approval?: Str<'a>,
        /// What it is about.
        kind: ApprovalKind,
        /// The action that waits for it.
        action?: Str<'a>,
        /// Digest of the arguments that leave is asked for.
        args_digest?: Str<'a>,
        /// What can be answered.
        options?: Raw<'a>,
        /// When it lapses.
        expires?: Time<'a>,
        /// How surely it belongs to the action; absent = `exact`.
        join?: Join,
    }

    /// `approval.ended` (spec 03). It may stand without a request.
    pub struct ApprovalEnded<'a> {
        /// The request.
        approval?: Str<'a>,
        /// The action.
        action?: Str<'a>,
        /// How it ended.
        outcome: ApprovalOutcome,
        /// How far a grant reaches.
        scope?: Scope,
        /// Arguments that were changed with the grant.
        args?: Value<'a>,
        /// What was answered.
        input?: Value<'a>,
        /// Why.
        reason?: Value<'a>,
        /// How surely it belongs to the action; absent = `exact`.
        join?: Join,
    }
}
