//! The context: which messages the model sees at some point, in the order in which it sees them (spec 04, R-STA-008).
//!
//! What a provider's request looks like is for the modules of the providers.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;

use crate::diagnostic::{Diagnostics, Severity};
use crate::events::{
    ActionProposed, ContextCompacted, Data, LogOpened, MessageAdded, MessageRevised, ParentMode, Part, Role, WindowItem,
};
use crate::fence::Fence;
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
    /// The payload of the last compaction with a window, and its seq.
    window: Option<String>,
    since: u64,
    /// What was pruned on the whole path.
    pruned: HashSet<Key>,
    /// What was pruned after that window, which holds for content that the window replaced as well.
    pruned_after: HashSet<Key>,
}

/// A log that was read once, and the place in it that a context is asked for.
#[derive(Debug)]
pub(super) struct Reading<R> {
    pub(super) lines: LineAt<R>,
    pub(super) index: PathIndex,
    /// Where each action was proposed.
    proposed: HashMap<Key, u64>,
    /// Where each message was revised: seq and place.
    revised: HashMap<Key, Vec<(u64, u64)>>,
    /// The events before this one count.
    limit: u64,
    pub(super) path: Vec<NodeRef>,
    /// The event before which the context is asked for, and its response.
    before: Option<(String, Option<String>)>,
    /// What the log goes on from, where it does not hold that.
    pub(super) elsewhere: Option<Elsewhere>,
    pub(super) faults: Diagnostics,
}

/// A prefix of another log that a log goes on from.
#[derive(Debug)]
pub(super) struct Elsewhere {
    pub(super) log: String,
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
        let mut fence = Fence::default();
        let (mut revised, mut limit) = (HashMap::<Key, Vec<(u64, u64)>>::new(), u64::MAX);
        let mut elsewhere = None;
        log.seek(SeekFrom::Start(0))?;
        scan(&mut log, &mut faults, |event, line, faults| {
            let from = event.copy.as_ref().and_then(|copy| copy.log.as_deref());
            elsewhere.take_if(|prefix: &mut Elsewhere| from == Some(prefix.log.as_str()));
            if matches!(at, At::Seq(last) if event.seq > last) {
                return if elsewhere.is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
            }
            let data = match event.kind.as_str() {
                "log.opened" | "message.added" | "message.revised" | "context.compacted" | "branch.moved"
                | "action.proposed" | "lease.acquired" | "lease.released" | "attempt.started" => {
                    payload(event, line, faults)
                }
                other => Data::Other(other.into(), event.data.borrowed()),
            };
            if fence.admit(event, &data).is_some_and(|found| found.severity == Severity::Void) {
                index.pass(event);
                return ControlFlow::Continue(());
            }
            if let Data::LogOpened(opened) = &data {
                elsewhere = Elsewhere::of(opened);
            }
            if let Data::ActionProposed(action) = &data {
                proposed.entry(key(&action.action)).or_insert(line.offset);
            }
            if let Data::MessageRevised(revision) = &data {
                revised.entry(key(&revision.message)).or_default().push((event.seq, line.offset));
            }
            if matches!(at, At::Before(id) if id == event.id.as_str()) {
                limit = limit.min(event.seq);
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
        Ok(Reading { lines, index, proposed, revised, limit, path, before, elsewhere, faults })
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
                    found.since = event.seq;
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
        // A window that replaces the content of a message knows what came before it.
        let later_than = if parts.is_some() { Some(compactions.since) } else { None };
        let text = self.revision(node, later_than)?;
        let revision: Option<MessageRevised<'_>> = text.as_deref().map(serde_json::from_str).transpose()?;
        if revision.as_ref().is_some_and(|r| r.removed == Some(true)) {
            return Ok(());
        }
        let parts = revision.as_ref().and_then(|r| r.parts.as_deref()).or(parts);
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

    /// The payload of the last revision of a message, if it is later than the event with the seq `later_than` (R-STA-010).
    pub(super) fn revision(&mut self, node: NodeRef, later_than: Option<u64>) -> io::Result<Option<String>> {
        if self.revised.is_empty() {
            return Ok(None);
        }
        let key = key(&self.lines.event(node.locator)?.id);
        let revisions = self.revised.get(&key).map(Vec::as_slice).unwrap_or_default().iter();
        let counts = |(seq, _): &&(u64, u64)| *seq < self.limit && later_than.is_none_or(|since| *seq > since);
        let Some(place) = revisions.rev().find(counts).map(|(_, place)| *place) else { return Ok(None) };
        Ok(Some(self.lines.event(place)?.data.get().to_owned()))
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

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use serde_json::{Value, json};

    use super::At;
    use crate::project::context;
    use crate::reduce::tests::Log;

    /// The texts of a context.
    fn texts(log: &Log, at: At<'_>) -> Vec<String> {
        let context = context(Cursor::new(log.text()), at, None).expect("a context");
        let messages = serde_json::to_value(&context).expect("it serialises")["messages"].clone();
        let parts = messages
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|m| m["content"].as_array().cloned().unwrap_or_default());
        parts.filter_map(|part| part["text"].as_str().map(str::to_owned)).collect()
    }

    fn says(log: Log, id: &str, epoch: Option<u64>, text: &str) -> Log {
        let mut more = json!({"id": id});
        if let Some(epoch) = epoch {
            more["epoch"] = json!(epoch);
        }
        log.with("message.added", json!({"role": "user", "parts": [{"type": "text", "text": text}]}), more)
    }

    fn revises(log: Log, message: &str, more: Value) -> Log {
        let mut data = json!({"message": message});
        crate::reduce::tests::merge(&mut data, more);
        log.add("message.revised", data)
    }

    /// R-STA-010
    #[test]
    fn a_revised_message_is_seen_with_its_new_content_from_then_on() {
        let parts = |text: &str| json!({"parts": [{"type": "text", "text": text}]});
        let log = says(says(Log::live(), "a", None, "one"), "b", None, "two");
        let log = revises(revises(log, "a", parts("uno")), "a", parts("eins"));
        assert_eq!(texts(&log, At::Head), ["eins", "two"]);
        assert_eq!(texts(&log, At::Seq(3)), ["uno", "two"]);
        assert_eq!(texts(&log, At::Seq(2)), ["one", "two"]);
        assert_eq!(texts(&log, At::Before("b")), ["one"], "it was revised later");
        let removed = revises(log.clone(), "b", json!({"removed": true}));
        assert_eq!(texts(&removed, At::Head), ["eins"]);
        let window = json!({"window": [{"event": "a", "parts": [{"type": "text", "text": "cut"}]}, {"event": "b"}]});
        let compacted = log.add("context.compacted", window);
        assert_eq!(texts(&compacted, At::Head), ["cut", "two"], "a window knows what came before it");
        assert_eq!(texts(&revises(compacted, "a", parts("neuf")), At::Head), ["neuf", "two"]);
    }

    /// R-OWN-001
    #[test]
    fn what_came_too_late_is_no_part_of_the_context() {
        let log = says(Log::live().lease(2), "a", Some(2), "one");
        let log = says(says(log, "late", Some(1), "too late"), "b", Some(2), "two");
        assert_eq!(texts(&log, At::Head), ["one", "two"]);
    }
}
