//! What the model no longer sees: compactions, and results whose content the client drops.

use std::collections::HashMap;

use palog::envelope::ActorKind;
use palog::events::{self, CompactionTrigger, ContextCompacted, Role, WindowItem, WindowMessage};

use crate::mapper::{Group, Mapper, Slot, Told, Written};
use crate::record::{Info, Origin, Part};

/// What the client shows in place of everything before the summary.
const QUESTION: &str = "What did we do so far?";

/// A compaction that was asked for.
#[derive(Debug)]
struct Asked {
    auto: Option<bool>,
    /// The first message that stays as it is.
    tail: Option<String>,
}

/// A result whose content was dropped.
#[derive(Debug)]
pub(crate) struct Pruned {
    pub(crate) action: String,
    pub(crate) origin: Origin,
    pub(crate) time: i64,
}

/// What there is of both.
#[derive(Debug, Default)]
pub(crate) struct Compactions {
    asked: HashMap<String, Asked>,
    pruned: Vec<Pruned>,
}

impl Compactions {
    /// The message `message` asks for a compaction.
    pub(crate) fn asked(&mut self, message: &str, part: &Part<'_>) {
        let tail = part.tail_start_id.as_ref().map(ToString::to_string);
        self.asked.insert(message.to_owned(), Asked { auto: part.auto, tail });
    }

    /// The content of a result is dropped at some time.
    pub(crate) fn drop_at(&mut self, action: &str, origin: &Origin, time: i64) {
        self.pruned.push(Pruned { action: action.to_owned(), origin: origin.clone(), time });
    }

    /// What was dropped before a time, or at all.
    pub(crate) fn dropped_before(&mut self, until: Option<i64>) -> Vec<Pruned> {
        let is_due = |pruned: &Pruned| until.is_none_or(|until| pruned.time < until);
        let (mut due, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.pruned).into_iter().partition(is_due);
        self.pruned = rest;
        due.sort_by_key(|pruned| pruned.time);
        due
    }
}

impl Mapper {
    /// A whole answer to a compaction takes the place of what was before.
    pub(crate) fn compacted(&mut self, group: &mut Group<'_, '_>, info: &Info<'_>) -> Written {
        if !info.is_summary() || info.finish.is_none() || info.error.is_some() {
            return Ok(());
        }
        let Some(request) = info.parent.as_deref() else { return Ok(()) };
        let Some(asked) = self.compactions.asked.remove(request) else { return Ok(()) };
        let known = self.known_messages();
        let (summary, before) = (known.get(group.id()).copied(), known.get(request).copied());
        let tail = asked.tail.as_deref().and_then(|tail| known.get(tail).copied());
        let question = WindowMessage { role: Role::User, parts: vec![events::Part::text(QUESTION)] };
        let mut window = vec![WindowItem::Message { message: question }];
        let tail = tail.zip(before).map(|(from, to)| from..to);
        for at in summary.into_iter().chain(tail.into_iter().flatten()) {
            window.extend(self.events_of(at).map(|id| WindowItem::Event { event: id.hex().into(), parts: None }));
        }
        let data = ContextCompacted {
            trigger: asked.auto.map(|auto| if auto { CompactionTrigger::Auto } else { CompactionTrigger::Manual }),
            window: Some(window),
            pruned: None,
            tokens_before: None,
            tokens_after: None,
        };
        let told = Told::by(group.origin(), Slot::Compaction).time(info.time.and_then(|t| t.completed));
        let id = self.append(told, ActorKind::Harness, data)?;
        self.on_path(id);
        Ok(())
    }
}
