//! Subagents: which call made them, as far as a record, a prompt or nothing tells.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

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
    records: Records,
    pub(crate) meta: Option<&'s Sidecar>,
    /// Session and action that it was linked to.
    pub(crate) parent: Option<(String, Option<String>)>,
    call: Option<String>,
    depth: u64,
    first: First,
}

/// Where the records of a subagent stand. No file is held open for each.
enum Records {
    File(PathBuf),
    Inside { transcript: Rc<File>, spans: Vec<Span> },
}

impl Child<'_> {
    /// The transcript, where it is a file of its own.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.records {
            Records::File(path) => Some(path),
            Records::Inside { .. } => None,
        }
    }

    /// The transcript, or a copy of its records.
    pub(crate) fn open(&self) -> io::Result<File> {
        self.records.open()
    }
}

impl Records {
    fn open(&self) -> io::Result<File> {
        let (transcript, spans) = match self {
            Records::File(path) => return File::open(path),
            Records::Inside { transcript, spans } => (transcript, spans),
        };
        let mut copy = tempfile::tempfile()?;
        let mut out = io::BufWriter::new(&mut copy);
        let mut transcript: &File = transcript;
        for span in spans {
            transcript.seek(SeekFrom::Start(span.at))?;
            io::copy(&mut transcript.take(span.len), &mut out)?;
            out.write_all(b"\n")?;
        }
        out.flush()?;
        drop(out);
        Ok(copy)
    }
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
    /// Those whose parent is known.
    ready: VecDeque<Child<'s>>,
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
            let first = File::open(&sidecar.path).and_then(|mut bytes| First::peek(&mut bytes));
            let path = sidecar.path.display().to_string();
            match first {
                Ok(first) if !first.recognised => {
                    let place = Place { input: Some(path), ..Place::default() };
                    let why = format!("none of its {} lines is a record; it is kept as a file", first.lines);
                    diagnostics.push(Diagnostic::new(Code::NothingRecognised, Severity::Warning, place).because(why));
                    unrecognised.push(sidecar);
                }
                Ok(first) => waiting.push(Child {
                    agent,
                    locator: sidecar.locator.clone(),
                    path,
                    records: Records::File(sidecar.path.clone()),
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
        Children { ready: VecDeque::new(), waiting, linked: HashMap::new(), root: true, unrecognised }
    }

    /// The next subagent whose log is to be written.
    pub(crate) fn next(&mut self) -> Option<Child<'s>> {
        self.ready.pop_front().or_else(|| (!self.waiting.is_empty()).then(|| self.waiting.remove(0)))
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
        let unreadable = |path: &str, error| ImportError::Read { path: path.into(), error };
        let place = conversation.out.input.path.clone();
        let transcript = Rc::new(bytes.try_clone().map_err(|error| unreadable(&place, error))?);
        for (agent, spans) in conversation.sidechains.take() {
            let records = Records::Inside { transcript: transcript.clone(), spans };
            let first = records.open().and_then(|mut copy| First::peek(&mut copy));
            self.waiting.push(Child {
                agent,
                locator: locator.to_owned(),
                path: place.clone(),
                records,
                meta: None,
                parent: None,
                call: None,
                depth: 1,
                first: first.map_err(|error| unreadable(&place, error))?,
            });
        }
        let elsewhere = if root { self.calls_in_files() } else { HashMap::new() };
        let session = conversation.out.log.session().to_owned();
        for (number, mut child) in std::mem::take(&mut self.waiting).into_iter().enumerate() {
            // An agent can stand in several files; it is one child.
            child.parent = self
                .linked
                .get(&child.agent)
                .cloned()
                .or_else(|| conversation.linked.get(&child.agent).map(|action| (session.clone(), action.clone())));
            if child.parent.is_some() {
                self.ready.push_back(child);
                continue;
            }
            let mut link = ChildLink::Explicit;
            let mut action = child.call.as_deref().and_then(|call| conversation.calls.link(call));
            let is_elsewhere = || {
                let files = child.call.as_ref().and_then(|call| elsewhere.get(call));
                files.is_some_and(|files| files.iter().any(|file| *file != number))
            };
            if action.is_none() && root && !is_elsewhere() {
                action = child.first.prompt.and_then(|prompt| conversation.calls.spawn_by_prompt(prompt));
                link = if action.is_some() { ChildLink::Inferred } else { ChildLink::None };
            } else if action.is_none() {
                self.waiting.push(child);
                continue;
            }
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
            self.ready.push_back(child);
        }
        Ok(())
    }

    /// Of the calls that subagents name, the numbers of the subagents in whose files each stands.
    fn calls_in_files(&self) -> HashMap<String, Vec<usize>> {
        let mut found: HashMap<String, Vec<usize>> =
            self.waiting.iter().filter_map(|child| Some((child.call.clone()?, Vec::new()))).collect();
        for (number, path) in self.waiting.iter().enumerate().filter_map(|(number, c)| Some((number, c.file()?))) {
            let Ok(file) = File::open(path) else { continue };
            // A call's id stands between two quotes.
            for token in BufReader::new(file).split(b'"').map_while(Result::ok) {
                if let Some(files) = std::str::from_utf8(&token).ok().and_then(|token| found.get_mut(token))
                    && files.last() != Some(&number)
                {
                    files.push(number);
                }
            }
        }
        found
    }
}

/// A reference to a small file as a whole.
fn whole(sidecar: &Sidecar) -> Src<'static> {
    let len = std::fs::read(&sidecar.path).map_or(0, |b| b.trim_ascii_end().len() as u64);
    src(&sidecar.source, Span { at: 0, len, line: 1 }, None)
}
