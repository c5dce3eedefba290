//! Admission: whether everything that work rests on is as recorded (spec 05, "Admission").

use std::collections::HashSet;

use super::obligations::{Holds, Judge, Owed};
use super::{Decision, SubjectKind};
use crate::events::ParentMode;
use crate::wire::wire;

wire! {
    /// A workspace as it is found.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    pub struct WorkspaceNow {
        /// The revision that is checked out.
        revision?: String,
        /// Whether there are changes beside it.
        dirty?: bool,
        /// Digest of the whole, taken as its recorder takes it.
        digest?: String,
    }

    /// What a worker would have; what is absent is not known, and not compared (spec 05, "Admission").
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    pub struct Environment {
        /// The epoch of the worker's lease.
        epoch?: u64,
        /// Revision of the policy that is in force.
        policy_revision?: String,
        /// Digest of the manifest that it would run under.
        manifest_digest?: String,
        /// Names of the tools that it can run.
        tools?: Vec<String>,
        /// The workspace.
        workspace?: WorkspaceNow,
        /// The resources that it holds.
        resources?: Vec<String>,
        /// The checkpoints whose content it has.
        checkpoints?: Vec<String>,
    }
}

/// What of the work may be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Works {
    All,
    /// A command waits: it comes first (R-REC-032).
    Commands,
    /// Something was not admitted (R-REC-029).
    Nothing,
}

impl Works {
    pub(super) fn allow(self, owed: &Owed) -> bool {
        match self {
            Works::All => true,
            Works::Commands => owed.holds != Holds::Work || owed.obligation.subject.kind == SubjectKind::Command,
            Works::Nothing => owed.holds != Holds::Work,
        }
    }
}

impl<'s, 'c: 's> Judge<'s, 'c> {
    /// Looks at what the work rests on, if there is any; what fails is owed first.
    pub(super) fn admit(&mut self, session: &str) -> Works {
        if self.owed.iter().all(|o| o.holds != Holds::Work) {
            return Works::All;
        }
        let mut failed = Vec::new();
        self.fail(&mut failed);
        let admission = |reason| {
            let owed = Owed::new(SubjectKind::Session, session, Decision::Ask, "R-REC-029", reason);
            owed.holding(Holds::Person, true)
        };
        let admitted = failed.is_empty();
        self.owed.splice(0..0, failed.into_iter().map(admission));
        let waits = |o: &Owed| o.holds == Holds::Work && o.obligation.subject.kind == SubjectKind::Command;
        match admitted {
            false => Works::Nothing,
            true if self.owed.iter().any(waits) => Works::Commands,
            true => Works::All,
        }
    }

    fn fail(&self, failed: &mut Vec<String>) {
        let state = self.state;
        let continues = state.parent.as_ref().filter(|parent| parent.mode == ParentMode::Continue);
        match continues.map(|parent| parent.handed_over) {
            Some(Some(false)) => {
                failed.push("The log continues a session that was neither transferred nor taken over.".into());
            }
            // What an importer makes of a source that went on there tells of a hand-over that took place.
            Some(None) if state.mapping.is_none() => {
                failed.push("The log continues another one that is not at hand, and may still be running.".into());
            }
            _ => {}
        }
        let Some(environment) = self.context.environment else { return };
        if let (Some(own), Some(newest)) = (environment.epoch, state.epoch)
            && own < newest.0
        {
            failed.push(format!("The worker's epoch {own} is over: the newest is {newest}."));
        }
        let mut differs = |what: &str, now: &Option<String>, recorded: &Option<String>| {
            if let (Some(now), Some(recorded)) = (now, recorded)
                && now != recorded
            {
                failed.push(format!("The {what} is {now}, and {recorded} was recorded."));
            }
        };
        differs("policy revision", &environment.policy_revision, &state.config.policy_revision);
        differs("manifest", &environment.manifest_digest, &state.config.manifest_digest);
        if let (Some(now), Some(recorded)) = (&environment.workspace, &state.workspace) {
            let dirty = |dirty: Option<bool>| dirty.map(|dirty| if dirty { "dirty" } else { "clean" }.to_owned());
            differs("workspace's revision", &now.revision, &recorded.revision);
            differs("workspace's digest", &now.digest, &recorded.digest);
            differs("workspace", &dirty(now.dirty), &dirty(recorded.dirty));
        }
        let runs = self.owed.iter().filter(|o| o.obligation.decision == Decision::Run);
        let names: HashSet<&str> = runs.filter_map(|o| o.obligation.call.as_ref()?.name.as_deref()).collect();
        let lacks = |names: &Option<Vec<String>>, name: &str| {
            names.as_ref().is_some_and(|names| names.iter().all(|known| known != name))
        };
        let mut missing: Vec<&str> = names.into_iter().filter(|name| lacks(&environment.tools, name)).collect();
        missing.sort_unstable();
        failed.extend(missing.into_iter().map(|name| format!("The tool {name} is not at hand.")));
        for lock in state.resources.iter().filter(|r| r.held && r.kind.as_deref() == Some("lock")) {
            let closed =
                lock.task.as_deref().and_then(|task| self.tasks.get(task)).is_some_and(|t| t.status.is_closed());
            if !closed && lacks(&environment.resources, &lock.resource) {
                failed.push(format!("The lock {} is not held.", lock.resource));
            }
        }
        let restored = state.checkpoints.iter().filter(|c| c.restored.is_some());
        let newest = restored.max_by_key(|c| c.restored.as_ref().map(|at| at.seq)).map(|c| c.checkpoint.as_str());
        let open = state.attempts.iter().filter(|attempt| attempt.ended.is_none());
        let rests_on: HashSet<&str> = open.filter_map(|a| a.from_checkpoint.as_deref()).chain(newest).collect();
        let mut missing: Vec<&str> = rests_on.into_iter().filter(|id| lacks(&environment.checkpoints, id)).collect();
        missing.sort_unstable();
        failed.extend(missing.into_iter().map(|id| format!("The checkpoint {id} is not at hand.")));
    }
}
