//! The digest of a state (spec 04, "World").

use std::fmt::Write as _;

use super::State;
use crate::blob::digest;

impl State {
    /// Digest of what is held, `sha256:` and hexadecimal digits: of the epoch, and of the states of actions, approvals, inputs,
    /// tasks and steps. It is what `checkpoint.created` names as `state_digest` (spec 04, R-WLD-004).
    #[must_use]
    pub fn digest(&self) -> String {
        let mut text = String::new();
        let mut line = |items: &[&str]| {
            let items = serde_json::to_string(items).expect("strings are JSON");
            writeln!(text, "{items}").expect("a string takes all");
        };
        if let Some(epoch) = self.epoch {
            line(&["epoch", &epoch.to_string()]);
        }
        for action in &self.actions {
            let attempt = action.attempt.to_string();
            line(&["action", &action.action, &attempt, action.state.word(), action.applied.word()]);
        }
        for approval in &self.approvals {
            line(&["approval", &approval.approval, approval.status.word()]);
        }
        for input in &self.inputs {
            line(&["input", &input.input, input.status.word()]);
        }
        for task in &self.tasks {
            line(&["task", &task.task, task.status.word(), &task.plan_revision.to_string()]);
            for step in &task.steps {
                line(&["step", &step.step, step.status.word()]);
            }
        }
        digest(text.as_bytes())
    }
}
