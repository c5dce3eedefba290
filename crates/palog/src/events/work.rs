//! Tasks, who works on them, their plans, and the commands that steer them (spec 03, "Work"). Experimental.

use crate::json::{Raw, Str, Value};
use crate::wire::{wire, words};

words! {
    /// How a task ended (spec 03).
    pub enum TaskEnd {
        /// What it was opened for is done.
        Complete = "complete",
        /// It cannot be done.
        Failed = "failed",
        /// It was given up on command.
        Cancelled = "cancelled",
    }

    /// How an attempt at a task ended (spec 03).
    pub enum AttemptEnd {
        /// The work is done.
        Complete = "complete",
        /// It ended in an error.
        Failed = "failed",
        /// It was stopped.
        Cancelled = "cancelled",
        /// Its worker is gone.
        Lost = "lost",
    }

    /// Where a step of a plan stands (spec 03).
    pub enum StepStatus {
        /// It was not begun.
        Pending = "pending",
        /// It is being worked on.
        Running = "running",
        /// It is done.
        Done = "done",
        /// It ended without what it was for.
        Failed = "failed",
        /// It is not needed any more.
        Skipped = "skipped",
    }

    /// What a command asks for (spec 03).
    pub enum Operation {
        /// Nothing new starts.
        Pause = "pause",
        /// A paused task goes on.
        Resume = "resume",
        /// The task is given up.
        Cancel = "cancel",
        /// The rest of the work is planned anew.
        Replan = "replan",
        /// Both in one.
        SuspendAndReplan = "suspend_and_replan",
        /// An open question is answered.
        AnswerQuestion = "answer_question",
        /// The issuer becomes the holder.
        TakeOver = "take_over",
    }

    /// What became of a command (spec 03).
    pub enum CommandOutcome {
        /// It has its effect from here on.
        Applied = "applied",
        /// It has none.
        Rejected = "rejected",
    }
}

wire! {
    /// Experimental. `task.opened` (spec 03).
    pub struct TaskOpened<'a> {
        /// Id of the task.
        task: Str<'a>,
        /// What is to be reached.
        goal: Value<'a>,
        /// What it is to be judged by.
        acceptance?: Value<'a>,
        /// For whom.
        owner?: Str<'a>,
        /// What it may cost.
        budget?: Raw<'a>,
    }

    /// Experimental. `task.closed` (spec 03).
    pub struct TaskClosed<'a> {
        /// The task.
        task: Str<'a>,
        /// How it ended.
        how: TaskEnd,
        /// Why.
        reason?: Value<'a>,
    }

    /// Experimental. `attempt.started`: a worker takes a task up (spec 03).
    pub struct AttemptStarted<'a> {
        /// Id of the attempt.
        attempt: Str<'a>,
        /// The task.
        task: Str<'a>,
        /// Who works.
        worker: Str<'a>,
        /// The epoch under which it works.
        epoch?: u64,
        /// Revision of the plan that it works by.
        plan_revision?: u64,
        /// The checkpoint that it goes on from.
        from_checkpoint?: Str<'a>,
    }

    /// Experimental. `attempt.ended` (spec 03).
    pub struct AttemptEnded<'a> {
        /// The attempt.
        attempt: Str<'a>,
        /// How it ended.
        how: AttemptEnd,
        /// Why.
        reason?: Value<'a>,
    }

    /// A step of a plan (spec 03).
    pub struct Step<'a> {
        /// Id of the step; one of an earlier revision is the same step.
        step: Str<'a>,
        /// What is to be done.
        title?: Value<'a>,
        /// The steps that have to be done before it.
        needs?: Vec<Str<'a>>,
    }

    /// Experimental. `plan.revised` (spec 03).
    pub struct PlanRevised<'a> {
        /// The task that is planned.
        task: Str<'a>,
        /// The revision: greater than every one before it.
        revision: u64,
        /// All steps, those that are done included.
        steps: Vec<Step<'a>>,
        /// Why.
        reason?: Value<'a>,
    }

    /// Experimental. `step.changed` (spec 03).
    pub struct StepChanged<'a> {
        /// The task.
        task: Str<'a>,
        /// The step.
        step: Str<'a>,
        /// Where it stands.
        status: StepStatus,
        /// The artifact that came of it.
        artifact?: Str<'a>,
        /// Whether what came of it was checked.
        verified?: bool,
    }

    /// Experimental. `command.issued`: somebody steers (spec 03).
    pub struct CommandIssued<'a> {
        /// Id of the command; delivered twice, it has the same one.
        command: Str<'a>,
        /// The task.
        task: Str<'a>,
        /// What is asked for.
        operation: Operation,
        /// Revision of the plan that the issuer saw; 0 = there was none. Absent = the command does not depend on it.
        expected_plan_revision?: u64,
        /// How far it reaches, in the issuer's words.
        scope?: Str<'a>,
        /// Who issued it.
        issued_by?: Str<'a>,
        /// The request that is answered.
        approval?: Str<'a>,
        /// What is asked for, or answered, in detail.
        input?: Value<'a>,
    }

    /// Experimental. `command.ended` (spec 03).
    pub struct CommandEnded<'a> {
        /// The command.
        command: Str<'a>,
        /// What became of it.
        outcome: CommandOutcome,
        /// Why.
        reason?: Value<'a>,
    }
}
