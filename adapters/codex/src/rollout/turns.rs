//! Turns: they begin with what begins them, and end where the client says so (`spec/sources/codex.md`, "Turns").

use super::*;

use palog::events::{BranchMoved, TurnEnd, TurnEnded};
use palog_adapter::InputReport;

impl Rollout {
    /// The client begins a turn. What it is for shows in what follows: a compaction and a command of the user are no turns
    /// of the conversation, so the event is written with the first message.
    pub(super) fn task_started(&mut self, here: &mut Here<'_>, event: &Event<'_>, kind: &str) -> Written {
        self.marks_turns = true;
        self.task = Some(Task {
            id: event.turn_id.as_ref().map(ToString::to_string),
            attributed: event.turn_attribution.is_some(),
            attributes: event.root_turn_id.is_some(),
            started: false,
        });
        self.keep(here, kind)
    }

    /// The client ends a turn.
    pub(super) fn task_ended(&mut self, here: &mut Here<'_>, event: &Event<'_>, how: TurnEnd, kind: &str) -> Written {
        let task = self.task.take();
        let began = match (&event.turn_id, &task) {
            (Some(id), _) => self.begun.contains(&**id),
            (None, Some(task)) => task.started,
            (None, None) => !self.marks_turns,
        };
        // The end of an earlier turn does not end the one that is open.
        if let (Some(id), Some(open)) = (event.turn_id.as_deref(), task)
            && open.id.as_deref().is_some_and(|open| open != id)
        {
            self.task = Some(open);
        }
        if !began {
            return self.keep(here, kind);
        }
        #[derive(serde::Deserialize)]
        struct Failure {
            message: String,
        }
        let failure = event.error.as_ref().map(|e| parse::<Failure>(e).map(|f| f.message));
        let (how, actor, reason) = match (how, failure) {
            (TurnEnd::Complete, Some(message)) => (TurnEnd::Error, ActorKind::Harness, message.map(Str::from)),
            (TurnEnd::Interrupted, _) => (how, ActorKind::User, event.reason.clone()),
            _ => (how, ActorKind::Harness, None),
        };
        let ended = TurnEnded { turn: event.turn_id.clone(), how, reason };
        self.emit(here, actor, ended).map(drop)
    }

    /// Whether the client began a turn of which the log does not tell yet.
    pub(super) fn is_due(&self) -> bool {
        self.task.as_ref().is_some_and(|task| !task.started)
    }

    /// Whether a prompt that comes now steers the turn that is open.
    pub(super) fn is_steer(&self) -> bool {
        self.task.as_ref().is_some_and(|task| task.started)
    }

    /// Notes that the log tells of the turn, and returns its id.
    pub(super) fn started<'d>(&mut self) -> Option<Str<'d>> {
        let task = self.task.as_mut()?;
        task.started = true;
        let id = task.id.clone()?;
        self.begun.insert(id.clone());
        Some(id.into())
    }

    /// The last turns are taken out of the context.
    pub(super) fn rolled_back(&mut self, here: &mut Here<'_>, turns: u64, kind: &str) -> Written {
        let turns = usize::try_from(turns).unwrap_or(usize::MAX).min(self.before_prompts.len());
        let Some(at) = self.before_prompts.len().checked_sub(turns).filter(|_| turns > 0) else {
            return self.keep(here, kind);
        };
        let Before { head, prompts, .. } = self.before_prompts[at];
        self.before_prompts.truncate(at);
        self.prompts.truncate(prompts);
        self.move_head(here, head)
    }

    /// What stands before a turn that begins now.
    pub(super) fn before(&self) -> Before {
        Before { head: self.head, placed: self.placed.len(), prompts: self.prompts.len() }
    }

    fn move_head(&mut self, here: &mut Here<'_>, to: Option<EventId>) -> Written {
        let moved = BranchMoved { to: to.map_or_else(|| "root".into(), |id| id.hex().into()) };
        self.emit(here, ActorKind::User, moved)?;
        self.head = to;
        Ok(())
    }

    /// A file that a revert began goes on from what stands before an ordinal.
    pub(super) fn revert(&mut self, here: &mut Here<'_>, end: u64) -> Written {
        self.placed.retain(|(ordinal, _)| *ordinal < end);
        let kept = self.placed.len();
        let gone = self.before_prompts.iter().position(|before| before.placed >= kept);
        if let Some(Before { prompts, .. }) = gone.map(|at| self.before_prompts[at]) {
            self.prompts.truncate(prompts);
        }
        self.before_prompts.truncate(gone.unwrap_or(self.before_prompts.len()));
        let to = self.placed.last().map(|(_, message)| *message);
        self.move_head(here, to)
    }

    /// Goes on with another file of the same thread. Returns what was read of the one before.
    pub(crate) fn go_on(&mut self, source: &str, path: String, base: Option<Base>) -> InputReport {
        self.natives = Natives::default();
        self.headed = false;
        self.task = None;
        self.known.base = base;
        self.known.copies = None;
        source.clone_into(&mut self.out.source);
        self.out.ids = self.out.log.ids(source);
        let format = self.out.input.format.clone();
        std::mem::replace(&mut self.out.input, InputReport { path, format, ..InputReport::default() })
    }
}
