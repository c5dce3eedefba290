//! Records that are kept without being mapped: as they stand, as copies, or for the log of a subagent.

use super::*;

/// Records of subagents inside their parent's transcript.
#[derive(Debug, Default)]
pub(crate) struct Sidechains {
    /// Where the records of each agent stand, in order of appearance.
    agents: Vec<(String, Vec<Span>)>,
    by_agent: HashMap<String, usize>,
    by_record: HashMap<Key, usize>,
}

impl Sidechains {
    /// Takes a record in, and says whose it is. A record that names no agent belongs to that of its parent.
    fn add(&mut self, uuid: &str, parent: Option<&str>, agent: Option<&str>, span: Span) -> &str {
        let by_parent = || parent.and_then(|parent| self.by_record.get(&key(parent)).copied());
        let known = match agent {
            Some(agent) => self.by_agent.get(agent).copied(),
            None => by_parent(),
        };
        let index = known.unwrap_or_else(|| {
            let agent = agent.map_or_else(|| format!("sidechain-{uuid}"), str::to_owned);
            self.by_agent.insert(agent.clone(), self.agents.len());
            self.agents.push((agent, Vec::new()));
            self.agents.len() - 1
        });
        self.by_record.insert(key(uuid), index);
        let (agent, spans) = &mut self.agents[index];
        spans.push(span);
        agent
    }

    /// The agents and the places of their records.
    pub(crate) fn take(&mut self) -> Vec<(String, Vec<Span>)> {
        std::mem::take(&mut self.agents)
    }
}

/// Types of which the form is known.
const KINDS: &[&str] = &[
    "ai-title",
    "assistant",
    "attachment",
    "custom-title",
    "mode",
    "permission-mode",
    "progress",
    "queue-operation",
    "summary",
    "system",
    "user",
];

impl Conversation {
    /// Keeps a record that maps to nothing (R-EVT-010).
    pub(super) fn keep(&mut self, here: &mut Here<'_>, kind: &str, digest: u64) -> Written {
        self.out.input.kept += 1;
        let parent = self.link(here, Class::Through, digest);
        self.keep_verbatim(here, kind, parent)
    }

    pub(super) fn keep_verbatim(&mut self, here: &mut Here<'_>, kind: &str, parent: Option<String>) -> Written {
        here.kept = true;
        let Ok(raw) = Raw::parse(here.text) else { return Ok(()) };
        let data = self.out.log.kept(kind, raw);
        let how = if here.exact { SrcHow::Opaque } else { SrcHow::Degraded };
        let src = vec![src(&self.out.source, here.span, Some(how))];
        self.emit_from(here, ActorKind::Harness, parent, data, src).map(drop)
    }

    /// Reports that the record at hand is to be kept as well.
    pub(super) fn odd(&mut self, here: &mut Here<'_>, why: &str) {
        if !std::mem::replace(&mut here.odd, true) {
            let place = Place { kind: Some(here.record.kind()), ..self.out.place(here.span) };
            let odd = Diagnostic::new(Code::UnexpectedShape, Severity::Warning, place).because(why);
            self.out.log.diagnostics.push(odd);
        }
    }

    /// Keeps the record at hand in place of an event that no line has room for.
    pub(super) fn keep_instead(&mut self, here: &mut Here<'_>, event: Draft<'_>) -> Written {
        let Ok(raw) = Raw::parse(here.text) else { return Ok(()) };
        self.odd(here, "what it becomes is longer than a line of the log can be; it is kept as it stands");
        here.kept = true;
        let data = self.out.log.kept(&here.record.kind(), raw);
        let src = vec![src(&self.out.source, here.span, Some(SrcHow::Opaque))];
        let mut kept = Draft { data, src, ignorable: Some(true), ..event };
        self.out.log.append(&mut kept)
    }

    /// Keeps a record of an unknown kind or form, which may be a part of a response (R-TRN-011).
    pub(super) fn unread(&mut self, here: &mut Here<'_>, kind: &str, digest: u64) -> Written {
        let known = KINDS.contains(&&*here.record.r#type);
        let code = if known { Code::UnexpectedShape } else { Code::UnknownType };
        let place = Place { kind: Some(kind.to_owned()), ..self.out.place(here.span) };
        self.out.warn(code, place);
        self.keep(here, kind, digest)?;
        let kept = self.out.ids.event(here.native, 0).hex();
        let data = NoteAdded { about: Some(kept.into()), ..note("unread") };
        self.emit(here, ActorKind::Importer, None, data).map(drop)
    }

    /// Calls in a record of no known kind may have run as any others.
    pub(super) fn calls_of_unknown(&mut self, here: &mut Here<'_>) -> Written {
        let Some((_, content)) = message(here.record) else { return Ok(()) };
        let Content::Blocks(blocks) = content else { return Ok(()) };
        if blocks.iter().all(|block| *block.members.r#type != *"tool_use") {
            return Ok(());
        }
        let (_, calls) = self.model_parts(here, content, self.responses.len() as u32)?;
        for call in calls {
            let src = vec![src(&self.out.source, here.span, Some(SrcHow::Synthesized))];
            self.emit_from(here, ActorKind::Model, None, call, src)?;
        }
        Ok(())
    }

    /// A record that the source wrote once more.
    pub(super) fn replayed(&mut self, here: &mut Here<'_>, first: EventId, kind: &str) -> Written {
        let Ok(raw) = Raw::parse(here.text) else { return Ok(()) };
        let id = self.out.ids.event(here.native, 0).hex();
        let data = self.out.log.kept(kind, raw);
        let mut draft =
            Draft::new(id, ActorKind::Harness, data).from(src(&self.out.source, here.span, Some(SrcHow::Opaque)));
        draft.time = here.time.clone();
        draft.copy = Some(Copy { log: None, event: Some(first.hex().into()), how: CopyHow::Replay });
        draft.ignorable = Some(true);
        self.out.log.append(&mut draft).map(drop)
    }

    /// A record of a subagent inside its parent's transcript: it goes into a log of its own.
    pub(super) fn sidechain(&mut self, here: &mut Here<'_>) -> Written {
        let Some(uuid) = here.record.uuid.as_deref() else { return Ok(()) };
        let parent = match &here.record.parent_uuid {
            Nullable::Some(parent) => Some(parent.as_str()),
            Nullable::Null | Nullable::Absent => None,
        };
        let agent = self.sidechains.add(uuid, parent, here.record.agent_id.as_deref(), here.span);
        let child = ids::log(&FORMAT, agent);
        let about = Value::from(child.as_str());
        let data = NoteAdded { text: Some(about), ..note("sidechain") };
        self.emit(here, ActorKind::Importer, None, data).map(drop)
    }
}
