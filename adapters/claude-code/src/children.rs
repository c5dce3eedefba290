//! Subagents: which call made them, as far as a record, a prompt or nothing tells.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use palog::diagnostic::{Code, Diagnostic, Diagnostics, Place, Severity};
use palog::envelope::{ActorKind, Draft, Src, SrcHow};
use palog::events::{ChildKind, ChildLink, ChildSpawned};
use palog_adapter::ids::{self, Native};
use palog_adapter::source::src;
use palog_adapter::{ImportError, Span};

use crate::FORMAT;
use crate::conversation::Conversation;
use crate::first::First;
use crate::paths::{Role, Sidecar};

/// A subagent's transcript.
pub(crate) struct Child<'s> {
    pub(crate) agent: String,
    pub(crate) locator: String,
    pub(crate) path: String,
    /// The transcript, or the copy of its records.
    pub(crate) bytes: File,
    /// The transcript, where it is a file of its own.
    pub(crate) file: Option<PathBuf>,
    pub(crate) meta: Option<&'s Sidecar>,
    /// Session and action that it was linked to.
    pub(crate) parent: Option<(String, Option<String>)>,
    call: Option<String>,
    depth: u64,
    first: First,
}

/// The members of `agent-<id>.meta.json` that say where an agent comes from.
#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    tool_use_id: Option<String>,
    spawn_depth: Option<u64>,
}

/// The subagents of a session that have no log so far.
pub(crate) struct Children<'s> {
    waiting: Vec<Child<'s>>,
    /// Session and action of each agent that was linked.
    linked: HashMap<String, (String, Option<String>)>,
    root: bool,
    /// Files that are named like transcripts and hold none.
    pub(crate) unrecognised: Vec<&'s Sidecar>,
}

impl<'s> Children<'s> {
    /// The subagents that have files of their own, parents before their children.
    pub(crate) fn of(sidecars: &'s [Sidecar], diagnostics: &mut Diagnostics) -> Self {
        let (mut waiting, mut unrecognised) = (Vec::new(), Vec::new());
        for sidecar in sidecars.iter().filter(|s| s.role == Role::Agent) {
            let Some(agent) = sidecar.agent.clone() else { continue };
            let beside = sidecar.path.with_extension("meta.json");
            let meta = sidecars.iter().find(|s| s.role == Role::AgentMeta && s.path == beside);
            let facts: Meta = meta
                .and_then(|m| std::fs::read(&m.path).ok())
                .and_then(|bytes| serde_json::from_slice(&bytes).ok())
                .unwrap_or_default();
            let opened =
                File::open(&sidecar.path).and_then(|mut bytes| First::peek(&mut bytes).map(|first| (bytes, first)));
            let path = sidecar.path.display().to_string();
            match opened {
                Ok((_, first)) if !first.recognised => {
                    let place = Place { input: Some(path), ..Place::default() };
                    let why = format!("none of its {} lines is a record; it is kept as a file", first.lines);
                    diagnostics.push(Diagnostic::new(Code::NothingRecognised, Severity::Warning, place).because(why));
                    unrecognised.push(sidecar);
                }
                Ok((bytes, first)) => waiting.push(Child {
                    agent,
                    locator: sidecar.locator.clone(),
                    path,
                    bytes,
                    file: Some(sidecar.path.clone()),
                    meta,
                    parent: None,
                    call: facts.tool_use_id,
                    depth: facts.spawn_depth.unwrap_or(1),
                    first,
                }),
                Err(error) => diagnostics.push(
                    Diagnostic::new(Code::Unreadable, Severity::Error, Place { input: Some(path), ..Place::default() })
                        .because(error.to_string()),
                ),
            }
        }
        waiting.sort_by(|a, b| (a.depth, &a.agent).cmp(&(b.depth, &b.agent)));
        Children { waiting, linked: HashMap::new(), root: true, unrecognised }
    }

    /// The next subagent whose log is to be written.
    pub(crate) fn next(&mut self) -> Option<Child<'s>> {
        (!self.waiting.is_empty()).then(|| self.waiting.remove(0))
    }

    /// Links the subagents that a conversation made, at the end of its log. Those inside its own transcript join the others.
    pub(crate) fn adopt(
        &mut self,
        conversation: &mut Conversation,
        bytes: &mut File,
        locator: &str,
        source: &str,
    ) -> Result<(), ImportError> {
        let root = std::mem::take(&mut self.root);
        for (agent, spans) in std::mem::take(&mut conversation.sidechains) {
            let place = conversation.out.input.path.clone();
            let child = inside(agent, &spans, bytes, locator, place)
                .map_err(|error| ImportError::Read { path: conversation.out.input.path.clone().into(), error })?;
            self.waiting.push(child);
        }
        for index in 0..self.waiting.len() {
            if self.waiting[index].parent.is_some() {
                continue;
            }
            let session = conversation.out.log.session().to_owned();
            let child = &self.waiting[index];
            // An agent can stand in several files; it is one child.
            if let Some(parent) = self.linked.get(&child.agent) {
                self.waiting[index].parent = Some(parent.clone());
                continue;
            }
            if let Some(action) = conversation.linked.get(&child.agent) {
                self.waiting[index].parent = Some((session, action.clone()));
                continue;
            }
            let mut link = ChildLink::Explicit;
            let mut action = child.call.as_deref().and_then(|call| conversation.calls.link(call));
            if action.is_none() && root && !self.is_elsewhere(index) {
                action = self.waiting[index].first.prompt.and_then(|prompt| conversation.calls.spawn_by_prompt(prompt));
                link = if action.is_some() { ChildLink::Inferred } else { ChildLink::None };
            } else if action.is_none() {
                continue;
            }
            let child = &mut self.waiting[index];
            let parent = (session.clone(), action.as_ref().map(|a| a.action.clone()));
            self.linked.insert(child.agent.clone(), parent.clone());
            child.parent = Some(parent);
            let code = match link {
                ChildLink::Inferred => Some(Code::LinkInferred),
                ChildLink::None => Some(Code::AgentOrphan),
                _ => None,
            };
            if let Some(code) = code {
                let place = Place {
                    input: Some(child.path.clone()),
                    line: Some(1),
                    offset: Some(0),
                    length: Some(child.first.len),
                    detail: Some(child.agent.clone()),
                    ..Place::default()
                };
                conversation.out.log.diagnostics.push(Diagnostic::new(code, Severity::Warning, place));
            }
            let spawned = ChildSpawned {
                child: ids::log(&FORMAT, &child.agent).into(),
                session: child.agent.clone().into(),
                action: action.as_ref().map(|a| a.action.clone().into()),
                kind: ChildKind::Subagent,
                link,
            };
            let id = conversation.out.log.ids(&format!("agent/{}", child.agent)).event(Native::Own, 2).hex();
            let mut draft = Draft::new(id, ActorKind::Importer, spawned);
            if let (ChildLink::Explicit, Some(meta)) = (link, child.meta.filter(|_| root)) {
                draft.src.push(whole(meta));
            }
            if let Some(call) = &action {
                let how = if link == ChildLink::Explicit { None } else { Some(SrcHow::Synthesized) };
                draft.src.push(src(source, call.span, how));
            }
            conversation.out.log.append(&mut draft)?;
        }
        Ok(())
    }

    /// Whether the call that a subagent names stands in the transcript of another subagent.
    fn is_elsewhere(&self, index: usize) -> bool {
        let Some(call) = &self.waiting[index].call else { return false };
        let others = self.waiting.iter().enumerate().filter(|(i, _)| *i != index).filter_map(|(_, c)| c.file.as_ref());
        let token = format!("\"{call}\"");
        others.into_iter().any(|f| std::fs::read(f).is_ok_and(|b| memchr::memmem::find(&b, token.as_bytes()).is_some()))
    }
}

/// A reference to a small file as a whole.
fn whole(sidecar: &Sidecar) -> Src<'static> {
    let len = std::fs::read(&sidecar.path).map_or(0, |b| b.trim_ascii_end().len() as u64);
    src(&sidecar.source, Span { at: 0, len, line: 1 }, None)
}

/// A subagent whose records stand inside another transcript: they are copied out.
fn inside<'s>(agent: String, spans: &[Span], bytes: &mut File, locator: &str, path: String) -> io::Result<Child<'s>> {
    let mut copy = tempfile::tempfile()?;
    {
        let mut out = io::BufWriter::new(&mut copy);
        for span in spans {
            bytes.seek(SeekFrom::Start(span.at))?;
            io::copy(&mut Read::by_ref(bytes).take(span.len), &mut out)?;
            out.write_all(b"\n")?;
        }
        out.flush()?;
    }
    let first = First::peek(&mut copy)?;
    Ok(Child {
        agent,
        locator: locator.to_owned(),
        path,
        bytes: copy,
        file: None,
        meta: None,
        parent: None,
        call: None,
        depth: 1,
        first,
    })
}
