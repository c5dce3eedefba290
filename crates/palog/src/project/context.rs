//! The context: which messages the model sees at some point, in the order in which it sees them (spec 04, R-STA-008).
//!
//! What a provider's request looks like is for the modules of the providers.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;

use crate::diagnostic::Diagnostics;
use crate::events::{
    ActionProposed, ContextCompacted, Data, LogOpened, MessageAdded, ParentMode, Part, Role, WindowItem,
};
use crate::json::Raw;
use crate::project::content::LeftOutReason;
use crate::project::path::{Key, NodeKind, NodeRef, PathIndex, key};
use crate::project::scan::{LineAt, payload, scan};
use crate::project::shown::LeftOut;

/// The point of a log that a context is asked for (spec 04, "Context").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At<'a> {
    /// The head of the log.
    Head,
    /// What was the head when the event at this seq was the last one.
    Seq(u64),
    /// Before the event with this id: what the model saw when it produced the response that the event is a part of.
    Before(&'a str),
}

/// Why there is no context.
#[derive(Debug)]
#[non_exhaustive]
pub enum ContextError {
    /// The log, or a blob, cannot be read.
    Io(io::Error),
    /// The log has no event with this id.
    NoSuchEvent(String),
}

impl fmt::Display for ContextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContextError::Io(error) => write!(f, "cannot read the log: {error}"),
            ContextError::NoSuchEvent(id) => write!(f, "the log has no event {id:?}"),
        }
    }
}

impl std::error::Error for ContextError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ContextError::Io(error) => Some(error),
            ContextError::NoSuchEvent(_) => None,
        }
    }
}

impl From<io::Error> for ContextError {
    fn from(error: io::Error) -> Self {
        ContextError::Io(error)
    }
}

/// One message of a context.
#[derive(Debug)]
pub(super) struct Seen<'s> {
    /// Its event; `None` where only a window holds it.
    pub(super) event: Option<&'s str>,
    pub(super) role: Role,
    pub(super) parts: &'s [Part<'s>],
    pub(super) response: Option<&'s str>,
    /// Members of vendors.
    pub(super) ext: Option<&'s Raw<'s>>,
    /// Its place is known by the order of the log only.
    pub(super) inferred: bool,
    /// Actions whose results have lost their content.
    pub(super) pruned: &'s HashSet<Key>,
}

/// What the messages of a window, and of the path behind it, are taken from.
#[derive(Debug, Default)]
struct Compactions {
    /// The payload of the last compaction with a window.
    window: Option<String>,
    /// What was pruned on the whole path.
    pruned: HashSet<Key>,
    /// What was pruned after that window, which holds for content that the window replaced as well.
    pruned_after: HashSet<Key>,
}

/// A log that was read once, and the place in it that a context is asked for.
#[derive(Debug)]
pub(super) struct Reading<R> {
    lines: LineAt<R>,
    index: PathIndex,
    /// Where each action was proposed.
    proposed: HashMap<Key, u64>,
    path: Vec<NodeRef>,
    /// The event before which the context is asked for, and its response.
    before: Option<(String, Option<String>)>,
    /// What the log goes on from, where it does not hold that.
    elsewhere: Option<Elsewhere>,
    pub(super) faults: Diagnostics,
}

/// A prefix of another log that a log goes on from.
#[derive(Debug)]
struct Elsewhere {
    log: String,
    event: Option<String>,
}

impl Elsewhere {
    /// The prefix that `opened` names, if it names one. A fork that took the records of its parent along has copies of them.
    fn of(opened: &LogOpened<'_>) -> Option<Self> {
        let parent = opened.parent.as_ref().filter(|p| p.mode != ParentMode::Spawn)?;
        let named = parent.at.is_some() || parent.event.is_some();
        named.then(|| Elsewhere { log: parent.log.to_string(), event: parent.event.as_ref().map(ToString::to_string) })
    }
}

impl<R: Read + Seek> Reading<R> {
    /// Reads `log` once, up to the point in question.
    pub(super) fn open(mut log: R, at: At<'_>) -> Result<Self, ContextError> {
        let (mut faults, mut index, mut proposed) = (Diagnostics::default(), PathIndex::default(), HashMap::new());
        let mut elsewhere = None;
        log.seek(SeekFrom::Start(0))?;
        scan(&mut log, &mut faults, |event, line, faults| {
            let from = event.copy.as_ref().and_then(|copy| copy.log.as_deref());
            elsewhere.take_if(|prefix: &mut Elsewhere| from == Some(prefix.log.as_str()));
            if matches!(at, At::Seq(last) if event.seq > last) {
                return if elsewhere.is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
            }
            let data = match event.kind.as_str() {
                "log.opened" | "message.added" | "context.compacted" | "branch.moved" | "action.proposed" => {
                    payload(event, line, faults)
                }
                other => Data::Other(other.into(), event.data.borrowed()),
            };
            if let Data::LogOpened(opened) = &data {
                elsewhere = Elsewhere::of(opened);
            }
            if let Data::ActionProposed(action) = &data {
                proposed.entry(key(&action.action)).or_insert(line.offset);
            }
            if let Some(fault) = index.push(event, &data, line.offset) {
                faults.push(fault);
            }
            ControlFlow::Continue(())
        })?;
        if !matches!(at, At::Seq(_)) {
            index.missing().for_each(|fault| faults.push(fault));
        }
        let mut lines = LineAt::new(log)?;
        let (path, before) = match at {
            At::Head | At::Seq(_) => (index.head().map(|head| index.path(head)).unwrap_or_default(), None),
            At::Before(id) => {
                let path = index.path_before(id).ok_or_else(|| ContextError::NoSuchEvent(id.to_owned()))?;
                let own = index.find(id).filter(|n| n.kind == NodeKind::Message);
                let response = match own {
                    Some(node) => {
                        message(&mut lines, node, |_, m, _| m.response.as_deref().map(str::to_owned))?.flatten()
                    }
                    None => None,
                };
                (path, Some((id.to_owned(), response)))
            }
        };
        Ok(Reading { lines, index, proposed, path, before, elsewhere, faults })
    }

    /// Shows every message of the context to `visit`, in the order in which the model sees them. Returns what the log does
    /// not have: events that a window names, and what it goes on from.
    pub(super) fn each(&mut self, mut visit: impl FnMut(&Seen<'_>) -> io::Result<()>) -> io::Result<Vec<LeftOut>> {
        let (compactions, from) = self.compactions()?;
        let (mut named, mut absent) = (HashSet::new(), Vec::new());
        let reason = LeftOutReason::NotInLog;
        if let (None, Some(Elsewhere { log, event })) = (&compactions.window, &self.elsewhere) {
            let (event, log) = (event.clone(), Some(log.clone()));
            absent.push(LeftOut { event, log, part: None, action: None, reason });
        }
        if let Some(text) = &compactions.window {
            let window = serde_json::from_str::<ContextCompacted<'_>>(text)?.window.unwrap_or_default();
            for item in &window {
                match item {
                    WindowItem::Message { message } => visit(&Seen {
                        event: None,
                        role: message.role,
                        parts: &message.parts,
                        response: None,
                        ext: None,
                        inferred: false,
                        pruned: &compactions.pruned_after,
                    })?,
                    WindowItem::Event { event, parts } => {
                        let first = named.insert(key(event));
                        match self.index.find(event) {
                            Some(node) if first && node.kind == NodeKind::Message => {
                                self.show(node, parts.as_deref(), &compactions, None, &mut visit)?;
                            }
                            // An event without a message is nothing that the model saw.
                            Some(_) => {}
                            None if self.index.has(event) => {}
                            None => {
                                let event = Some(event.to_string());
                                absent.push(LeftOut { event, log: None, part: None, action: None, reason });
                            }
                        }
                    }
                }
            }
        }
        for at in from..self.path.len() {
            let node = self.path[at];
            if node.kind == NodeKind::Message {
                self.show(node, None, &compactions, Some(&named), &mut visit)?;
            }
        }
        Ok(absent)
    }

    /// The compactions on the path, and where on the path the messages begin that follow the last window.
    fn compactions(&mut self) -> io::Result<(Compactions, usize)> {
        let (mut found, mut from) = (Compactions::default(), 0);
        for (at, node) in self.path.iter().enumerate().rev().filter(|(_, n)| n.kind == NodeKind::Compaction) {
            let event = self.lines.event(node.locator)?;
            let Ok(Data::ContextCompacted(compaction)) = event.data() else { continue };
            let pruned = compaction.pruned.iter().flatten().map(|action| key(action));
            found.pruned.extend(pruned.clone());
            if found.window.is_none() {
                found.pruned_after.extend(pruned);
                if compaction.window.is_some() {
                    found.window = Some(event.data.get().to_owned());
                    from = at + 1;
                }
            }
        }
        Ok((found, from))
    }

    /// Shows the message of `node`, with `parts` in place of its own, unless the model does not see it here.
    fn show(
        &mut self,
        node: NodeRef,
        parts: Option<&[Part<'_>]>,
        compactions: &Compactions,
        named: Option<&HashSet<Key>>,
        visit: &mut impl FnMut(&Seen<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let before = &self.before;
        let shown = message(&mut self.lines, node, |id, message, ext| {
            let response = message.response.as_deref();
            let own = before.as_ref().is_some_and(|(b, r)| b == id || (r.is_some() && r.as_deref() == response));
            let elsewhere = named.is_some_and(|named| named.contains(&key(id)));
            if own || elsewhere || message.in_context == Some(false) {
                return Ok(());
            }
            visit(&Seen {
                event: Some(id),
                role: message.role,
                parts: parts.unwrap_or(&message.parts),
                response,
                ext,
                inferred: node.inferred,
                pruned: if parts.is_some() { &compactions.pruned_after } else { &compactions.pruned },
            })
        })?;
        shown.unwrap_or(Ok(()))
    }

    /// What was proposed as `action`, with members of vendors, or `None` if nothing was.
    pub(super) fn proposal<T>(
        &mut self,
        action: &str,
        read: impl FnOnce(&ActionProposed<'_>, Option<&Raw<'_>>) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        let Some(offset) = self.proposed.get(&key(action)) else { return Ok(None) };
        let event = self.lines.event(*offset)?;
        match event.data() {
            Ok(Data::ActionProposed(proposed)) => read(&proposed, event.ext.as_ref()).map(Some),
            _ => Ok(None),
        }
    }
}

/// Reads the message of `node` with its id.
fn message<R: Read + Seek, T>(
    lines: &mut LineAt<R>,
    node: NodeRef,
    read: impl FnOnce(&str, &MessageAdded<'_>, Option<&Raw<'_>>) -> T,
) -> io::Result<Option<T>> {
    let event = lines.event(node.locator)?;
    Ok(match event.data() {
        Ok(Data::MessageAdded(message)) => Some(read(&event.id, &message, event.ext.as_ref())),
        _ => None,
    })
}
