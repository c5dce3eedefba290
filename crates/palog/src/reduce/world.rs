//! What stands outside of the log, and checkpoints, which are checked against the state (spec 04, "World").

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::actions::Actions;
use super::work::Work;
use super::{Finding, Reducer, Unknown, named};
use crate::diagnostic::{Code, Severity};
use crate::envelope::Event;
use crate::events::{
    ArtifactRecorded, CheckpointCreated, CheckpointRestored, Data, ResourceAcquired, ResourceReleased, StepStatus,
    WorkspaceRecorded,
};
use crate::state::{ApprovalStatus, Artifact, Checkpoint, EventRef, Resource, State, Workspace};

/// What is known of the world beside what the state holds.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct World {
    #[serde(with = "super::snapshot::pairs")]
    artifacts: HashMap<Box<str>, usize>,
    #[serde(with = "super::snapshot::pairs")]
    resources: HashMap<Box<str>, usize>,
    #[serde(with = "super::snapshot::pairs")]
    checkpoints: HashMap<Box<str>, usize>,
}

impl World {
    /// The artifact with this id.
    pub(super) fn artifact<'s>(&self, state: &'s State, id: &str) -> Option<&'s Artifact> {
        self.artifacts.get(id).map(|at| &state.artifacts[*at])
    }

    /// `workspace.recorded` (R-WLD-002).
    pub(super) fn workspace(state: &mut State, data: &WorkspaceRecorded<'_>, event: &Event<'_>) {
        state.workspace = Some(Workspace {
            vcs: named(&data.vcs),
            revision: named(&data.revision),
            dirty: data.dirty,
            digest: named(&data.digest),
            recorded: EventRef::of(event),
        });
    }

    /// `artifact.recorded` (R-WLD-002).
    pub(super) fn record(&mut self, state: &mut State, data: &ArtifactRecorded<'_>, event: &Event<'_>) {
        let earlier = self.artifact(state, &data.artifact).filter(|earlier| earlier.digest == *data.digest);
        let verified = data.verified.unwrap_or_else(|| earlier.is_some_and(|earlier| earlier.verified));
        let artifact = Artifact {
            artifact: data.artifact.to_string(),
            digest: data.digest.to_string(),
            locator: named(&data.locator),
            verified,
            action: named(&data.action),
            recorded: EventRef::of(event),
        };
        match self.artifacts.get(&*data.artifact) {
            Some(at) => state.artifacts[*at] = artifact,
            None => {
                self.artifacts.insert((*data.artifact).into(), state.artifacts.len());
                state.artifacts.push(artifact);
            }
        }
    }

    /// `resource.acquired` (R-WLD-003).
    pub(super) fn acquire(&mut self, state: &mut State, data: &ResourceAcquired<'_>, event: &Event<'_>) {
        let at = self.resource(state, &data.resource);
        state.resources[at] = Resource {
            resource: data.resource.to_string(),
            kind: Some(data.kind.to_string()),
            locator: named(&data.locator),
            task: named(&data.task),
            held: true,
            acquired: Some(EventRef::of(event)),
        };
    }

    /// `resource.released` (R-WLD-003).
    pub(super) fn release(&mut self, state: &mut State, data: &ResourceReleased<'_>, unknown: &mut Unknown) {
        if !self.resources.contains_key(&*data.resource) {
            unknown.tell("resource", &data.resource);
        }
        let at = self.resource(state, &data.resource);
        state.resources[at].held = false;
    }

    fn resource(&mut self, state: &mut State, id: &str) -> usize {
        *self.resources.entry(id.into()).or_insert_with(|| {
            state.resources.push(Resource {
                resource: id.to_owned(),
                kind: None,
                locator: None,
                task: None,
                held: false,
                acquired: None,
            });
            state.resources.len() - 1
        })
    }

    /// `checkpoint.created`: what of it does not agree is told (R-WLD-001).
    pub(super) fn checkpoint(
        &mut self,
        state: &mut State,
        data: &CheckpointCreated<'_>,
        event: &Event<'_>,
        work: &Work,
        actions: &Actions,
    ) -> Result<(), Finding> {
        let flaws = Check { state, data, work, world: self, actions }.flaws(event.seq);
        let finding = flaws.first().map(|first| Finding {
            code: Code::CheckpointMismatch,
            severity: Severity::Warning,
            rule: "R-WLD-001",
            why: format!("{}: {first}", data.checkpoint),
        });
        self.checkpoints.insert((*data.checkpoint).into(), state.checkpoints.len());
        state.checkpoints.push(Checkpoint {
            checkpoint: data.checkpoint.to_string(),
            task: named(&data.task),
            attempt: named(&data.attempt),
            flaws,
            created: EventRef::of(event),
            restored: None,
        });
        finding.map_or(Ok(()), Err)
    }

    /// `checkpoint.restored`.
    pub(super) fn restore(
        &self,
        state: &mut State,
        data: &CheckpointRestored<'_>,
        event: &Event<'_>,
        unknown: &mut Unknown,
    ) {
        match self.checkpoints.get(&*data.checkpoint) {
            Some(at) => state.checkpoints[*at].restored = Some(EventRef::of(event)),
            None => unknown.tell("checkpoint", &data.checkpoint),
        }
    }

    /// What belongs to a parent stays with it: resources (R-FAM-002).
    pub(super) fn leave(&mut self, state: &mut State) {
        self.resources.clear();
        state.resources.clear();
    }
}

impl Reducer {
    /// Events about what stands outside of the log.
    pub(super) fn dispatch_world(&mut self, event: &Event<'_>, data: &Data<'_>) {
        let Reducer { state, work, world, actions, ownership, told, .. } = self;
        match data {
            Data::WorkspaceRecorded(data) => World::workspace(state, data, event),
            Data::ArtifactRecorded(data) => world.record(state, data, event),
            Data::ResourceAcquired(data) => world.acquire(state, data, event),
            Data::ResourceReleased(data) => world.release(state, data, &mut Unknown(told)),
            Data::CheckpointRestored(data) => world.restore(state, data, event, &mut Unknown(told)),
            Data::CheckpointCreated(data) => {
                ownership.show(state);
                actions.judge_anew(state);
                told.extend(world.checkpoint(state, data, event, work, actions).err());
            }
            _ => {}
        }
    }
}

/// A checkpoint beside the state that it is compared with.
struct Check<'a> {
    state: &'a State,
    data: &'a CheckpointCreated<'a>,
    work: &'a Work,
    world: &'a World,
    actions: &'a Actions,
}

impl Check<'_> {
    fn flaws(&self, seq: u64) -> Vec<String> {
        let (state, data) = (self.state, self.data);
        let mut flaws = Vec::new();
        if data.at >= seq {
            flaws.push(format!("it covers seq {}, which is not before it", data.at));
        }
        self.revisions(&mut flaws);
        if let Some(workspace) = &data.workspace
            && state.workspace.as_ref().is_none_or(|recorded| recorded.recorded.event != **workspace)
        {
            flaws.push("the workspace was recorded elsewhere, or not at all".into());
        }
        self.steps(&mut flaws);
        self.effects(&mut flaws);
        if data.state_digest.as_deref().is_some_and(|stated| stated != state.digest()) {
            flaws.push("the digest of the state is another".into());
        }
        flaws
    }

    fn task(&self) -> Option<usize> {
        self.data.task.as_deref().and_then(|task| self.work.task(task))
    }

    fn revisions(&self, flaws: &mut Vec<String>) {
        let (state, data) = (self.state, self.data);
        let plan = self.task().map(|task| state.tasks[task].plan_revision);
        let mut differs = |what: &str, stated: Option<String>, known: Option<String>| {
            if let Some(stated) = stated.filter(|stated| known.as_ref() != Some(stated)) {
                let known = known.map_or_else(|| "not known".to_owned(), |known| known.clone());
                flaws.push(format!("it names the {what} {stated}, which is {known}"));
            }
        };
        differs("plan", data.plan_revision.map(|n| n.to_string()), plan.map(|n| n.to_string()));
        differs("policy", named(&data.policy_revision), state.config.policy_revision.clone());
        differs("manifest", named(&data.manifest_digest), state.config.manifest_digest.clone());
        let epoch = data.lease.as_ref().map(|lease| lease.epoch.to_string());
        differs("epoch", epoch, state.epoch.map(|n| n.to_string()));
    }

    fn steps(&self, flaws: &mut Vec<String>) {
        let (state, data) = (self.state, self.data);
        let step = |id: &str| self.task().and_then(|task| self.work.step(state, task, id));
        for stated in &data.steps {
            let Some(step) = step(&stated.step).filter(|step| step.status == StepStatus::Done) else {
                flaws.push(format!("the step {} is not done", stated.step));
                continue;
            };
            let artifact = step.artifact.as_deref().and_then(|id| self.world.artifact(state, id));
            if stated.digest.is_some() && artifact.map(|a| a.digest.as_str()) != stated.digest.as_deref() {
                flaws.push(format!("the step {} has another artifact", stated.step));
            }
            if stated.verified == Some(true) && !step.verified && !artifact.is_some_and(|a| a.verified) {
                flaws.push(format!("the step {} was not verified", stated.step));
            }
        }
        let Some(pending) = &data.pending else { return };
        if step(&pending.step).is_none_or(|step| step.status == StepStatus::Done) {
            flaws.push(format!("the step {} is not to be done", pending.step));
        }
        if let Some(id) = &pending.approval {
            let status = self.actions.request_status(state, id);
            if matches!(status, None | Some(ApprovalStatus::Denied | ApprovalStatus::Lapsed)) {
                flaws.push(format!("the request {id} gives no leave"));
            }
        }
    }

    fn effects(&self, flaws: &mut Vec<String>) {
        for stated in &self.data.effects {
            let known = self.actions.known_action(self.state, &stated.action).map(|action| action.state);
            if known != Some(stated.state) {
                let known = known.map_or("not known", |known| known.word());
                flaws.push(format!("{} is {known}, not {}", stated.action, stated.state));
            }
        }
        let stated: HashSet<&str> = self.data.effects.iter().map(|effect| effect.action.as_str()).collect();
        if let Some(left_out) = self.actions.in_doubt(self.state).find(|id| !stated.contains(id)) {
            flaws.push(format!("it leaves out {left_out}, which may have an effect"));
        }
    }
}
