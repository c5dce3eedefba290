//! The parts of the state that tell who holds a session, what it works on, and what stands outside of the log (spec 04,
//! "Ownership", "Work", "World").

use crate::events::{AttemptEnd, EffectClass, Operation, StepStatus};
use crate::state::{Count, EventRef};
use crate::wire::{wire, words};

words! {
    /// The state of a task (spec 04, "Work").
    pub enum TaskStatus {
        /// It is being worked on.
        Open = "open",
        /// Nothing new starts.
        Paused = "paused",
        /// It is done.
        Complete = "complete",
        /// It cannot be done.
        Failed = "failed",
        /// It was given up.
        Cancelled = "cancelled",
    }

    /// The state of a command (spec 04, "Work").
    pub enum CommandStatus {
        /// It waits to be applied or rejected.
        Issued = "issued",
        /// It has its effect.
        Applied = "applied",
        /// It has none.
        Rejected = "rejected",
    }
}

wire! {
    /// The lease that stands.
    pub struct Lease {
        /// Its epoch.
        epoch: Count,
        /// Who holds it.
        holder: String,
        /// When it is over; absent = when it is released.
        expires?: String,
        /// Where it was acquired.
        acquired: EventRef,
    }

    /// Leave that stands until it is revoked.
    pub struct Grant {
        /// Its id.
        grant: String,
        /// Names of the tools that it is for; absent = any.
        names?: Vec<String>,
        /// The most that what it is for can do; absent = anything.
        class?: EffectClass,
        /// What it allows to act on; absent = anything.
        target?: String,
        /// The request for approval that it came out of.
        approval?: String,
        /// The task that it was given for; absent = the session.
        task?: String,
        /// Revision of the policy that it was given under.
        policy_revision?: String,
        /// When it lapses.
        expires?: String,
        /// Whether it was revoked.
        revoked: bool,
        /// Where it was added; absent = only its end is in the log.
        added?: EventRef,
    }

    /// An event that has no effect, because the epoch that it was written under was over.
    pub struct Void {
        /// The event.
        at: EventRef,
        /// Its type.
        kind: String,
        /// The action that it is about.
        action?: String,
    }

    /// A step of a plan.
    pub struct Step {
        /// Its id.
        step: String,
        /// Where it stands.
        status: StepStatus,
        /// The steps that have to be done before it.
        needs: Vec<String>,
        /// The artifact that came of it.
        artifact?: String,
        /// Whether what came of it was checked.
        verified: bool,
    }

    /// A task.
    pub struct Task {
        /// Its id.
        task: String,
        /// Its state.
        status: TaskStatus,
        /// Whether a new plan was asked for and has not come.
        replanning: bool,
        /// Revision of its plan; 0 = there is none.
        plan_revision: Count,
        /// The steps of that plan.
        steps: Vec<Step>,
        /// Where it was opened; absent = it never was.
        opened?: EventRef,
    }

    /// The work of one worker on a task.
    pub struct TaskAttempt {
        /// Its id.
        attempt: String,
        /// The task; absent = only its end is in the log.
        task?: String,
        /// Who works.
        worker?: String,
        /// The epoch under which it works.
        epoch?: Count,
        /// Revision of the plan that it works by.
        plan_revision?: Count,
        /// The checkpoint that it goes on from.
        from_checkpoint?: String,
        /// How it ended; absent = it did not.
        ended?: AttemptEnd,
        /// Where it started.
        started?: EventRef,
    }

    /// A command.
    pub struct Command {
        /// Its id.
        command: String,
        /// The task.
        task: String,
        /// What is asked for.
        operation: Operation,
        /// Its state.
        status: CommandStatus,
        /// Whether it expects another plan than the present one; of one that ended, than the one at its end.
        stale: bool,
        /// Revision of the plan that its issuer saw.
        expected_plan_revision?: Count,
        /// The request that it answers.
        approval?: String,
        /// Where it was issued.
        issued: EventRef,
    }

    /// What the workspace was like when it was recorded last.
    pub struct Workspace {
        /// The version control system.
        vcs?: String,
        /// The revision that is checked out.
        revision?: String,
        /// Whether there are changes beside it.
        dirty?: bool,
        /// Digest of the whole.
        digest?: String,
        /// Where it is recorded.
        recorded: EventRef,
    }

    /// Something that the work produced.
    pub struct Artifact {
        /// Its id.
        artifact: String,
        /// Digest of its content.
        digest: String,
        /// Where it is.
        locator?: String,
        /// Whether it was checked.
        verified: bool,
        /// The action that made it.
        action?: String,
        /// Where it is recorded.
        recorded: EventRef,
    }

    /// Something that is, or was, held for the work.
    pub struct Resource {
        /// Its id.
        resource: String,
        /// What it is; absent = only its release is in the log.
        kind?: String,
        /// Where it is.
        locator?: String,
        /// The task that it is held for; absent = the session.
        task?: String,
        /// Whether it is held.
        held: bool,
        /// Where it was acquired.
        acquired?: EventRef,
    }

    /// A checkpoint.
    pub struct Checkpoint {
        /// Its id.
        checkpoint: String,
        /// The task.
        task?: String,
        /// The attempt at it.
        attempt?: String,
        /// What of it did not agree with the state when it was created; empty = it is valid.
        flaws: Vec<String>,
        /// Where it was created.
        created: EventRef,
        /// Where it was restored last.
        restored?: EventRef,
    }
}

impl TaskStatus {
    /// Whether nothing more is to be done for it.
    #[must_use]
    pub fn is_closed(self) -> bool {
        matches!(self, TaskStatus::Complete | TaskStatus::Failed | TaskStatus::Cancelled)
    }
}
