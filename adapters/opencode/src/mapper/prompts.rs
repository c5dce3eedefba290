//! Messages of the user's side (`spec/sources/opencode.md`, "Messages").

use palog::envelope::ActorKind;
use palog::events::{MessageAdded, Role, TurnStarted};

use super::{Group, Mapper, Slot, Told, Written};
use crate::record::{Info, Part};

/// What a message with the role of the user is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// Words of a person, of a program, or of the agent that this one works for.
    Prompt,
    /// A compaction is asked for.
    Compaction,
    /// The client's own words alone.
    Continuation,
}

fn said(group: &Group<'_, '_>) -> Said {
    let is = |kind: &str| group.each().any(|(_, _, part)| part.kind() == kind);
    let texts = || group.each().filter(|(_, _, part)| part.kind() == "text");
    if is("compaction") {
        Said::Compaction
    } else if texts().count() > 0 && texts().all(|(_, _, part)| part.synthetic == Some(true)) && !is("file") {
        Said::Continuation
    } else {
        Said::Prompt
    }
}

impl Mapper {
    pub(super) fn prompt(&mut self, group: &mut Group<'_, '_>, info: &Info<'_>) -> Written {
        let said = said(group);
        let (mut parts, mut from, mut unsaid) = (Vec::new(), Vec::new(), Vec::new());
        for (at, record, part) in group.each() {
            match part.kind() {
                "text" if part.ignored == Some(true) => unsaid.push((at, part)),
                "text" => {
                    parts.extend(Self::text_part(part));
                    from.push(at);
                }
                "file" => {
                    if let Some(file) = self.file_part(&record.origin, part)? {
                        parts.push(file);
                        from.push(at);
                    }
                }
                "compaction" => {
                    self.compactions.asked(&group.message.id, part);
                    from.push(at);
                }
                _ => {}
            }
        }
        let asker = self.asker();
        let auto = group.each().any(|(_, _, part)| part.auto == Some(true));
        let (actor, purpose) = match said {
            Said::Prompt => (asker, "prompt"),
            Said::Compaction => (if auto { ActorKind::Harness } else { asker }, "command"),
            Said::Continuation => (ActorKind::Harness, "continuation"),
        };
        self.settle(group, info)?;
        let added = MessageAdded {
            role: Role::User,
            parts,
            response: None,
            partial: None,
            purpose: Some(purpose.into()),
            in_context: (said == Said::Compaction).then_some(false),
        };
        let id = self.said(group, &from, actor, added)?;
        if said == Said::Prompt {
            self.begin_turn(&group.message.id);
            let turn = TurnStarted { turn: Some(group.message.id.clone().into()), message: Some(id.hex().into()) };
            let told = Told::by(&group.message.origin, Slot::Turn).time(group.created);
            self.append(told, actor, turn)?;
        }
        self.unsaid(group, Role::User, actor, &unsaid)
    }

    /// Texts that the client shows to people and not to the model.
    pub(super) fn unsaid(
        &mut self,
        group: &mut Group<'_, '_>,
        role: Role,
        actor: ActorKind,
        texts: &[(usize, &Part<'_>)],
    ) -> Written {
        let Some((first, _)) = texts.first() else { return Ok(()) };
        let added = MessageAdded {
            role,
            parts: texts.iter().filter_map(|(_, part)| Self::text_part(part)).collect(),
            response: None,
            partial: None,
            purpose: Some("notification".into()),
            in_context: Some(false),
        };
        let places: Vec<usize> = texts.iter().map(|(at, _)| *at).collect();
        let from = group.records(&places);
        let told = Told::by(&group.parts[*first].origin, Slot::Unsaid).time(group.created).from(from);
        self.append(told, actor, added).map(drop)
    }
}
