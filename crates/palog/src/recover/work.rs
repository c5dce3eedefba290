//! What is owed for commands, tasks, children, checkpoints and what is held (spec 05, "Tasks and commands").

use std::collections::{HashMap, HashSet};

use super::obligations::{Holds, Judge, Owed};
use super::{Decision, SubjectKind};
use crate::events::{ChildKind, ParentMode, Recorded, StepStatus};
use crate::state::{Action, ActionState, Checkpoint, CommandStatus, State, TaskStatus};

impl<'s, 'c: 's> Judge<'s, 'c> {
    fn add(
        &mut self,
        kind: SubjectKind,
        id: &str,
        decision: Decision,
        rule: &str,
        reason: String,
        weight: (Holds, bool),
    ) {
        self.owed.push(Owed::new(kind, id, decision, rule, reason).holding(weight.0, weight.1));
    }

    /// Commands that wait, and tasks that do not go on (R-REC-030 to R-REC-033).
    pub(super) fn commands_and_tasks(&mut self) {
        let state = self.state;
        for command in state.commands.iter().filter(|c| c.status == CommandStatus::Issued) {
            let about =
                format!("The command {} ({}) for the task {}", command.command, command.operation, command.task);
            let (decision, reason) = match command.stale {
                true => (Decision::Skip, format!("{about} was made for another plan, and is to be rejected.")),
                false => (Decision::Run, format!("{about} was neither applied nor rejected.")),
            };
            let weight = (Holds::Work, false);
            self.add(SubjectKind::Command, &command.command, decision, "R-REC-032", reason, weight);
        }
        for task in &state.tasks {
            if task.status == TaskStatus::Paused {
                let reason = format!("The task {} is paused.", task.task);
                let weight = (Holds::Person, true);
                self.add(SubjectKind::Task, &task.task, Decision::Ask, "R-REC-030", reason, weight);
            }
            if task.replanning && !task.status.is_closed() {
                let reason = format!("The task {} is to be planned anew.", task.task);
                let weight = (Holds::Work, false);
                self.add(SubjectKind::Task, &task.task, Decision::Continue, "R-REC-035", reason, weight);
            }
        }
        for attempt in state.attempts.iter().filter(|attempt| attempt.ended.is_none()) {
            if attempt.task.as_deref().is_some_and(|task| self.is_cancelled(task)) {
                let who = attempt.worker.as_deref().unwrap_or("somebody");
                let reason = format!("{who} may still work on a task that was cancelled.");
                let weight = (Holds::Unknown, true);
                self.add(SubjectKind::Attempt, &attempt.attempt, Decision::Reconcile, "R-REC-031", reason, weight);
            }
        }
        let newest: HashMap<Option<&str>, &Checkpoint> =
            state.checkpoints.iter().map(|c| (c.task.as_deref(), c)).collect();
        for checkpoint in &state.checkpoints {
            let task = checkpoint.task.as_deref();
            let closed = task.and_then(|task| self.tasks.get(task)).is_some_and(|task| task.status.is_closed());
            let is_newest = newest.get(&task).is_some_and(|last| last.created == checkpoint.created);
            if let (Some(flaw), true, false) = (checkpoint.flaws.first(), is_newest, closed) {
                let reason = format!("The checkpoint {} does not agree with the log: {flaw}.", checkpoint.checkpoint);
                let weight = (Holds::Person, true);
                self.add(SubjectKind::Checkpoint, &checkpoint.checkpoint, Decision::Ask, "R-REC-033", reason, weight);
            }
        }
    }

    fn is_cancelled(&self, task: &str) -> bool {
        self.tasks.get(task).is_some_and(|task| task.status == TaskStatus::Cancelled)
    }

    /// Children whose parent is gone, and the session itself if it is such a child (R-REC-034).
    pub(super) fn children(&mut self, session: &str) {
        let state = self.state;
        let recorded = state.declares(Recorded::ChildEnded);
        for child in state.children.iter().filter(|c| !c.ended && c.kind == Some(ChildKind::Subagent)) {
            let action = child.action.as_deref().and_then(|id| self.actions.get(id).copied());
            if let Some((why, passed_over)) = orphaned(state, action) {
                let name = child.session.as_deref().unwrap_or(&child.child);
                let reason = format!("The child {name} is not known to have ended, and {why}.");
                let weight = (Holds::Person, recorded && !passed_over);
                self.add(SubjectKind::Child, &child.child, Decision::Ask, "R-REC-034", reason, weight);
            }
        }
        let Some(mine) = state.parent.as_ref().filter(|parent| parent.mode == ParentMode::Spawn) else { return };
        let Some(parent) = self.context.parent.filter(|parent| parent.log.as_ref() == Some(&mine.log)) else { return };
        let action = mine.action.as_deref().and_then(|id| parent.action(id));
        if let Some((why, passed_over)) = orphaned(parent, action) {
            let reason = format!("This session works for another one, and there {why}.");
            let weight = (Holds::Person, !passed_over);
            self.add(SubjectKind::Session, session, Decision::Ask, "R-REC-034", reason, weight);
        }
    }

    /// Steps that were begun, where nothing else is left to go on with (R-REC-035).
    pub(super) fn steps(&mut self) {
        let state = self.state;
        if self.owed.iter().any(|o| o.holds == Holds::Work) {
            return;
        }
        let doubtful = |a: &&Action| matches!(a.state, ActionState::Unknown | ActionState::Running) && !a.only_reads();
        let in_doubt: HashSet<&str> =
            state.actions.iter().filter(|a| !a.inherited).filter(doubtful).filter_map(|a| a.task.as_deref()).collect();
        for task in state.tasks.iter().filter(|t| t.status == TaskStatus::Open && !in_doubt.contains(t.task.as_str())) {
            for step in task.steps.iter().filter(|step| step.status == StepStatus::Running) {
                let reason = format!("The step {} of the task {} was begun and is not done.", step.step, task.task);
                let weight = (Holds::Work, false);
                self.add(SubjectKind::Step, &step.step, Decision::RestartStep, "R-REC-035", reason, weight);
            }
        }
    }

    /// What is to be given back (R-REC-031, R-REC-036).
    pub(super) fn held(&mut self) {
        let state = self.state;
        for grant in state.grants.iter().filter(|grant| !grant.revoked) {
            if grant.task.as_deref().is_some_and(|task| self.is_cancelled(task)) {
                let reason = format!("The grant {} was given for a task that was cancelled.", grant.grant);
                let weight = (Holds::Chore, false);
                self.add(SubjectKind::Grant, &grant.grant, Decision::Release, "R-REC-031", reason, weight);
            }
        }
        for resource in state.resources.iter().filter(|resource| resource.held) {
            let task = resource.task.as_deref().and_then(|task| self.tasks.get(task)).copied();
            let (rule, why) = match task {
                Some(task) if task.status == TaskStatus::Cancelled => ("R-REC-031", "a task that was cancelled"),
                Some(task) if task.status.is_closed() => ("R-REC-036", "a task that is closed"),
                _ if state.closed.is_some() => ("R-REC-036", "a session that is closed"),
                _ => continue,
            };
            let what = resource.kind.as_deref().unwrap_or("resource");
            let reason = format!("The {what} {} is held for {why}.", resource.resource);
            let weight = (Holds::Chore, false);
            self.add(SubjectKind::Resource, &resource.resource, Decision::Release, rule, reason, weight);
        }
    }
}

/// Why a child of the session, made by `action`, is an orphan, and whether its parent only passed it over.
fn orphaned(parent: &State, action: Option<&Action>) -> Option<(&'static str, bool)> {
    let cancelled = |id: &str| parent.task(id).is_some_and(|task| task.status == TaskStatus::Cancelled);
    if parent.closed.is_some() {
        return Some(("its parent is closed", false));
    }
    if action.and_then(|a| a.task.as_deref()).is_some_and(cancelled) {
        return Some(("its task was cancelled", false));
    }
    action.is_some_and(|a| a.passed_over).then_some(("the call that made it was passed over", true))
}
