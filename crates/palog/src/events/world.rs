//! What stands outside of the log: checkpoints, the workspace, artifacts, resources (spec 03, "World").

use crate::envelope::Time;
use crate::json::{Str, Value};
use crate::state::ActionState;
use crate::wire::wire;

wire! {
    /// A lease, as a checkpoint states it (spec 03).
    pub struct Term<'a> {
        /// Its epoch.
        epoch: u64,
        /// When it ends.
        expires?: Time<'a>,
    }

    /// A step that is done, as a checkpoint states it (spec 03).
    pub struct Completed<'a> {
        /// The step.
        step: Str<'a>,
        /// Digest of the artifact that came of it.
        digest?: Str<'a>,
        /// Whether that was checked.
        verified?: bool,
    }

    /// What is about to be done, as a checkpoint states it (spec 03).
    pub struct Intent<'a> {
        /// The step.
        step: Str<'a>,
        /// Digest of what is intended.
        digest?: Str<'a>,
        /// The key under which the target will act at most once.
        idempotency_key?: Str<'a>,
        /// The request for approval that it rests on.
        approval?: Str<'a>,
    }

    /// Where an action stands, as a checkpoint states it (spec 03).
    pub struct Standing<'a> {
        /// The action.
        action: Str<'a>,
        /// Its state.
        state: ActionState,
    }

    /// Experimental. `checkpoint.created` (spec 03).
    pub struct CheckpointCreated<'a> {
        /// Id of the checkpoint.
        checkpoint: Str<'a>,
        /// Seq of the last event that it covers.
        at: u64,
        /// The task.
        task?: Str<'a>,
        /// The attempt at it.
        attempt?: Str<'a>,
        /// Revision of the plan.
        plan_revision?: u64,
        /// Revision of the policy.
        policy_revision?: Str<'a>,
        /// Digest of the manifest.
        manifest_digest?: Str<'a>,
        /// The event that records the workspace.
        workspace?: Str<'a>,
        /// The lease that it was made under.
        lease?: Term<'a>,
        /// The steps that are done.
        steps: Vec<Completed<'a>>,
        /// What is about to be done.
        pending?: Intent<'a>,
        /// The actions that may act, and those whose outcome the work rests on.
        effects: Vec<Standing<'a>>,
        /// Digest of the state before it.
        state_digest?: Str<'a>,
    }

    /// Experimental. `checkpoint.restored`: the work goes on from there (spec 03).
    pub struct CheckpointRestored<'a> {
        /// The checkpoint.
        checkpoint: Str<'a>,
    }

    /// A file of a workspace (spec 03).
    pub struct Tracked<'a> {
        /// Its path within the workspace.
        path: Str<'a>,
        /// Digest of its content; absent = it is not there.
        digest?: Str<'a>,
    }

    /// `workspace.recorded`: what the workspace is like (spec 03).
    pub struct WorkspaceRecorded<'a> {
        /// The version control system.
        vcs?: Str<'a>,
        /// The revision that is checked out.
        revision?: Str<'a>,
        /// Whether there are changes beside it.
        dirty?: bool,
        /// These changes.
        diff?: Value<'a>,
        /// Digest of the whole, as its writer takes it.
        digest?: Str<'a>,
        /// Files that matter.
        files?: Vec<Tracked<'a>>,
    }

    /// `artifact.recorded`: something that the work produced (spec 03).
    pub struct ArtifactRecorded<'a> {
        /// Id of the artifact; recorded again, it replaces the earlier one.
        artifact: Str<'a>,
        /// Digest of its content.
        digest: Str<'a>,
        /// Where it is.
        locator?: Str<'a>,
        /// Whether it was checked.
        verified?: bool,
        /// The action that made it.
        action?: Str<'a>,
    }

    /// Experimental. `resource.acquired`: something is held for the work (spec 03).
    pub struct ResourceAcquired<'a> {
        /// Id of the resource.
        resource: Str<'a>,
        /// What it is: `worktree`, `container`, `token`, `lock` … (open).
        kind: Str<'a>,
        /// Where it is.
        locator?: Str<'a>,
        /// The task that it is held for; absent = the session.
        task?: Str<'a>,
    }

    /// Experimental. `resource.released` (spec 03).
    pub struct ResourceReleased<'a> {
        /// The resource.
        resource: Str<'a>,
        /// In the writer's words.
        reason?: Str<'a>,
    }
}
