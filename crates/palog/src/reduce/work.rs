//! Tasks, plans and commands (spec 04, "Work").

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::actions::Mention;
use super::world::World;
use super::{Finding, Reducer, Unknown, named};
use crate::diagnostic::{Code, Severity};
use crate::envelope::Event;
use crate::events::{
    ApprovalEnded, ApprovalOutcome, AttemptEnded, AttemptStarted, CommandEnded, CommandIssued, CommandOutcome, Data,
    Operation, PlanRevised, StepChanged, StepStatus, TaskClosed, TaskEnd, TaskOpened,
};
use crate::state::{Command, CommandStatus, Count, EventRef, State, Step, Task, TaskAttempt, TaskStatus};

/// What is known of tasks, attempts and commands beside what the state holds.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Work {
    #[serde(with = "super::snapshot::pairs")]
    tasks: HashMap<Box<str>, usize>,
    #[serde(with = "super::snapshot::pairs")]
    attempts: HashMap<Box<str>, usize>,
    #[serde(with = "super::snapshot::pairs")]
    commands: HashMap<Box<str>, usize>,
    /// Places of the steps of each task's plan.
    steps: Vec<Steps>,
    /// Attempts without an end, and commands without one.
    open_attempts: BTreeSet<usize>,
    open_commands: BTreeSet<usize>,
    /// Beside the commands of the state: the epoch when each was issued.
    epochs: Vec<Option<u64>>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Steps(#[serde(with = "super::snapshot::pairs")] HashMap<Box<str>, usize>);

/// What a command does beyond its task, when it ends as applied (R-WRK-006).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Consequence {
    /// Requests for the actions of this task lapse.
    Withdraw(String),
    /// This request is answered.
    Answer(String),
    /// The epoch is greater than this one.
    Fence(Option<u64>),
}

impl Work {
    /// The task that an action belongs to which is proposed now (R-WRK-001).
    pub(super) fn current<'s>(&self, state: &'s State) -> Option<&'s str> {
        state.attempts[*self.open_attempts.last()?].task.as_deref()
    }

    /// The place of a task.
    pub(super) fn task(&self, id: &str) -> Option<usize> {
        self.tasks.get(id).copied()
    }

    /// A step of the plan of a task.
    pub(super) fn step<'s>(&self, state: &'s State, task: usize, id: &str) -> Option<&'s Step> {
        Some(&state.tasks[task].steps[*self.steps[task].0.get(id)?])
    }

    fn index(&mut self, state: &mut State, id: &str) -> usize {
        if let Some(at) = self.tasks.get(id) {
            return *at;
        }
        state.tasks.push(Task {
            task: id.to_owned(),
            status: TaskStatus::Open,
            replanning: false,
            plan_revision: Count(0),
            steps: Vec::new(),
            opened: None,
        });
        self.steps.push(Steps::default());
        self.tasks.insert(id.into(), state.tasks.len() - 1);
        state.tasks.len() - 1
    }

    /// The task that an event is about; it is there from then on (R-WRK-007).
    fn mention(&mut self, state: &mut State, id: &str, unknown: &mut Unknown) -> usize {
        if !self.tasks.contains_key(id) {
            unknown.tell("task", id);
        }
        self.index(state, id)
    }

    /// `task.opened`.
    pub(super) fn open(&mut self, state: &mut State, data: &TaskOpened<'_>, event: &Event<'_>) {
        let at = self.index(state, &data.task);
        state.tasks[at].opened.get_or_insert_with(|| EventRef::of(event));
    }

    /// `task.closed`; a closed task stays what it is.
    pub(super) fn close(&mut self, state: &mut State, data: &TaskClosed<'_>, unknown: &mut Unknown) {
        let at = self.mention(state, &data.task, unknown);
        let task = &mut state.tasks[at];
        if !task.status.is_closed() {
            task.status = match data.how {
                TaskEnd::Complete => TaskStatus::Complete,
                TaskEnd::Failed => TaskStatus::Failed,
                TaskEnd::Cancelled => TaskStatus::Cancelled,
            };
        }
    }

    /// `attempt.started`.
    pub(super) fn start(
        &mut self,
        state: &mut State,
        data: &AttemptStarted<'_>,
        event: &Event<'_>,
        unknown: &mut Unknown,
    ) {
        self.mention(state, &data.task, unknown);
        let at = self.attempt(state, &data.attempt);
        let ended = state.attempts[at].ended;
        state.attempts[at] = TaskAttempt {
            attempt: data.attempt.to_string(),
            task: Some(data.task.to_string()),
            worker: Some(data.worker.to_string()),
            epoch: data.epoch.map(Count),
            plan_revision: data.plan_revision.map(Count),
            from_checkpoint: named(&data.from_checkpoint),
            ended,
            started: Some(EventRef::of(event)),
        };
        if ended.is_none() {
            self.open_attempts.insert(at);
        }
    }

    /// `attempt.ended`.
    pub(super) fn end(&mut self, state: &mut State, data: &AttemptEnded<'_>, unknown: &mut Unknown) {
        if !self.attempts.contains_key(&*data.attempt) {
            unknown.tell("attempt", &data.attempt);
        }
        let at = self.attempt(state, &data.attempt);
        state.attempts[at].ended.get_or_insert(data.how);
        self.open_attempts.remove(&at);
    }

    fn attempt(&mut self, state: &mut State, id: &str) -> usize {
        *self.attempts.entry(id.into()).or_insert_with(|| {
            state.attempts.push(TaskAttempt {
                attempt: id.to_owned(),
                task: None,
                worker: None,
                epoch: None,
                plan_revision: None,
                from_checkpoint: None,
                ended: None,
                started: None,
            });
            state.attempts.len() - 1
        })
    }

    /// `plan.revised` (R-WRK-002, R-WRK-003).
    pub(super) fn plan(
        &mut self,
        state: &mut State,
        data: &PlanRevised<'_>,
        world: &World,
        unknown: &mut Unknown,
    ) -> Result<(), Finding> {
        let at = self.mention(state, &data.task, unknown);
        let present = state.tasks[at].plan_revision;
        if Count(data.revision) <= present {
            return Err(Finding {
                code: Code::StalePlan,
                severity: Severity::Void,
                rule: "R-WRK-002",
                why: format!("the plan of {} is at revision {present}, and this one is {}", data.task, data.revision),
            });
        }
        let mut places = HashMap::new();
        let mut steps: Vec<Step> = Vec::new();
        for step in &data.steps {
            let earlier = self.step(state, at, &step.step).filter(|earlier| is_proven(state, earlier, world));
            let needs = step.needs.iter().flatten().map(ToString::to_string).collect();
            let fresh = Step {
                step: step.step.to_string(),
                status: earlier.map_or(StepStatus::Pending, |earlier| earlier.status),
                needs,
                artifact: earlier.and_then(|earlier| earlier.artifact.clone()),
                verified: earlier.is_some_and(|earlier| earlier.verified),
            };
            match places.get(&*step.step) {
                Some(place) => steps[*place] = fresh,
                None => {
                    places.insert((*step.step).into(), steps.len());
                    steps.push(fresh);
                }
            }
        }
        for needed in steps.iter().flat_map(|step| &step.needs).filter(|needed| !places.contains_key(needed.as_str())) {
            unknown.tell("step", needed);
        }
        let task = &mut state.tasks[at];
        (task.plan_revision, task.steps, task.replanning) = (Count(data.revision), steps, false);
        self.steps[at].0 = places;
        Ok(())
    }

    /// `step.changed`.
    pub(super) fn change(&mut self, state: &mut State, data: &StepChanged<'_>, unknown: &mut Unknown) {
        let task = self.mention(state, &data.task, unknown);
        let steps = &mut state.tasks[task].steps;
        let at = *self.steps[task].0.entry((*data.step).into()).or_insert_with(|| {
            unknown.tell("step", &data.step);
            steps.push(Step {
                step: data.step.to_string(),
                status: StepStatus::Pending,
                needs: Vec::new(),
                artifact: None,
                verified: false,
            });
            steps.len() - 1
        });
        let step = &mut steps[at];
        step.status = data.status;
        step.verified = data.verified == Some(true);
        if let Some(artifact) = &data.artifact {
            step.artifact = Some(artifact.to_string());
        }
    }

    /// `command.issued` (R-WRK-004).
    pub(super) fn issue(
        &mut self,
        state: &mut State,
        data: &CommandIssued<'_>,
        event: &Event<'_>,
        epoch: Option<u64>,
        unknown: &mut Unknown,
    ) -> Result<(), Finding> {
        if self.commands.contains_key(&*data.command) {
            return Err(repeated(format!("the command {} was issued before", data.command)));
        }
        self.mention(state, &data.task, unknown);
        self.commands.insert((*data.command).into(), state.commands.len());
        self.open_commands.insert(state.commands.len());
        self.epochs.push(epoch);
        state.commands.push(Command {
            command: data.command.to_string(),
            task: data.task.to_string(),
            operation: data.operation,
            status: CommandStatus::Issued,
            stale: false,
            expected_plan_revision: data.expected_plan_revision.map(Count),
            approval: named(&data.approval),
            issued: EventRef::of(event),
        });
        Ok(())
    }

    /// `command.ended` (R-WRK-004, R-WRK-005, R-WRK-006).
    pub(super) fn decide(
        &mut self,
        state: &mut State,
        data: &CommandEnded<'_>,
        unknown: &mut Unknown,
    ) -> Result<Option<Consequence>, Finding> {
        let Some(at) = self.commands.get(&*data.command).copied() else {
            unknown.tell("command", &data.command);
            return Ok(None);
        };
        if !self.open_commands.remove(&at) {
            return Err(repeated(format!("the command {} ended before", data.command)));
        }
        let task = self.index(state, &state.commands[at].task.clone());
        let present = state.tasks[task].plan_revision;
        let command = &mut state.commands[at];
        command.stale = command.expected_plan_revision.is_some_and(|expected| expected != present);
        command.status = match data.outcome {
            CommandOutcome::Applied if !command.stale => CommandStatus::Applied,
            CommandOutcome::Applied | CommandOutcome::Rejected => CommandStatus::Rejected,
        };
        if command.status == CommandStatus::Rejected {
            if data.outcome == CommandOutcome::Rejected {
                return Ok(None);
            }
            let expected = command.expected_plan_revision.unwrap_or_default();
            return Err(Finding {
                code: Code::StaleCommand,
                severity: Severity::Void,
                rule: "R-WRK-005",
                why: format!("{} expects the plan at revision {expected}, which is at {present}", data.command),
            });
        }
        let (operation, approval) = (command.operation, command.approval.clone());
        let task = &mut state.tasks[task];
        let id = task.task.clone();
        if task.status.is_closed() && !matches!(operation, Operation::AnswerQuestion | Operation::TakeOver) {
            return Ok(None);
        }
        match operation {
            Operation::Pause | Operation::SuspendAndReplan => task.status = TaskStatus::Paused,
            Operation::Resume => task.status = TaskStatus::Open,
            Operation::Cancel => task.status = TaskStatus::Cancelled,
            Operation::Replan | Operation::AnswerQuestion | Operation::TakeOver => {}
        }
        task.replanning |= matches!(operation, Operation::Replan | Operation::SuspendAndReplan);
        Ok(match operation {
            Operation::Cancel | Operation::Replan | Operation::SuspendAndReplan => Some(Consequence::Withdraw(id)),
            Operation::AnswerQuestion => approval.map(Consequence::Answer),
            Operation::TakeOver => Some(Consequence::Fence(self.epochs[at])),
            Operation::Pause | Operation::Resume => None,
        })
    }

    /// Tells which waiting commands are stale by now (R-WRK-005).
    pub(super) fn settle(&self, state: &mut State) {
        for at in &self.open_commands {
            let present = self.task(&state.commands[*at].task).map(|task| state.tasks[task].plan_revision);
            let command = &mut state.commands[*at];
            command.stale = command.expected_plan_revision.is_some_and(|expected| Some(expected) != present);
        }
    }

    /// What belongs to a parent stays with it: attempts and commands (R-FAM-002).
    pub(super) fn leave(&mut self, state: &mut State) {
        self.attempts.clear();
        self.commands.clear();
        self.open_attempts.clear();
        self.open_commands.clear();
        self.epochs.clear();
        state.attempts.clear();
        state.commands.clear();
    }
}

impl Reducer {
    /// Events about tasks, attempts, plans and commands.
    pub(super) fn dispatch_work(&mut self, event: &Event<'_>, data: &Data<'_>, mention: &Mention<'_>) {
        let Reducer { state, work, world, actions, ownership, told, .. } = self;
        let (mut findings, mut refused) = (Vec::new(), None);
        let unknown = &mut Unknown(&mut findings);
        match data {
            Data::TaskOpened(data) => work.open(state, data, event),
            Data::TaskClosed(data) => {
                work.close(state, data, unknown);
                if data.how == TaskEnd::Cancelled {
                    actions.withdraw(state, &data.task);
                }
            }
            Data::AttemptStarted(data) => work.start(state, data, event, unknown),
            Data::AttemptEnded(data) => work.end(state, data, unknown),
            Data::PlanRevised(data) => match work.plan(state, data, world, unknown) {
                Ok(()) => actions.withdraw(state, &data.task),
                Err(finding) => refused = Some(finding),
            },
            Data::StepChanged(data) => work.change(state, data, unknown),
            Data::CommandIssued(data) => {
                refused = work.issue(state, data, event, ownership.fence.epoch(), unknown).err();
            }
            Data::CommandEnded(data) => match work.decide(state, data, unknown) {
                Ok(None) => {}
                Ok(Some(Consequence::Withdraw(task))) => actions.withdraw(state, &task),
                Ok(Some(Consequence::Fence(issued))) => {
                    ownership.fence.raise(Some(issued.map_or(0, |epoch| epoch.saturating_add(1))));
                }
                Ok(Some(Consequence::Answer(id))) if actions.request_status(state, &id).is_none() => {
                    unknown.tell("request", &id);
                }
                Ok(Some(Consequence::Answer(id))) => actions.answer(state, &answer_to(id), mention),
                Err(finding) => refused = Some(finding),
            },
            _ => {}
        }
        told.extend(findings);
        told.extend(refused);
    }
}

/// The answer to a question, where a command gives it.
fn answer_to(request: String) -> ApprovalEnded<'static> {
    ApprovalEnded {
        approval: Some(request.into()),
        action: None,
        outcome: ApprovalOutcome::Answered,
        scope: None,
        args: None,
        input: None,
        reason: None,
        join: None,
    }
}

/// Whether a step is done and its outcome was verified.
fn is_proven(state: &State, step: &Step, world: &World) -> bool {
    let artifact = step.artifact.as_deref().and_then(|id| world.artifact(state, id));
    step.status == StepStatus::Done && (step.verified || artifact.is_some_and(|a| a.verified))
}

fn repeated(why: String) -> Finding {
    Finding { code: Code::CommandRepeated, severity: Severity::Warning, rule: "R-WRK-004", why }
}
