//! The history: every message on the path of the head from its beginning, with the compactions between them (spec 04, "The
//! path").
//!
//! A context shows what the model sees now; the history is what a client keeps that can show both.

use std::io::{self, Read, Seek};

use crate::diagnostic::Diagnostics;
use crate::envelope::Event;
use crate::events::{ActionProposed, Data, MessageRevised, Part};
use crate::json::Raw;
use crate::project::context::{At, ContextError, Reading};
use crate::project::path::{NodeKind, NodeRef};

/// An event of the history, detached from the log.
#[derive(Clone, Debug)]
pub struct Entry {
    line: String,
    revision: Option<String>,
}

impl Entry {
    /// The event.
    ///
    /// # Errors
    /// Never for an entry that [`History::read`] returned.
    pub fn event(&self) -> Result<Event<'_>, serde_json::Error> {
        Event::parse(&self.line)
    }

    /// What stands in place of the parts of the message since it was revised last; `None` = its own parts stand.
    ///
    /// # Errors
    /// When the revision has another form.
    pub fn revision(&self) -> Result<Option<MessageRevised<'_>>, serde_json::Error> {
        self.revision.as_deref().map(serde_json::from_str).transpose()
    }
}

/// The messages and compactions on the path of the head of a log, each read when it is asked for.
#[derive(Debug)]
pub struct History<R> {
    reading: Reading<R>,
}

impl<R: Read + Seek> History<R> {
    /// Reads `log` once for its path. Memory is that of a [`PathIndex`](crate::project::PathIndex).
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn open(log: R) -> Result<Self, ContextError> {
        Ok(History { reading: Reading::open(log, At::Head)? })
    }

    /// The messages and compactions, in the order of the path.
    #[must_use]
    pub fn steps(&self) -> Vec<NodeRef> {
        let is_step = |n: &&NodeRef| matches!(n.kind, NodeKind::Message | NodeKind::Compaction);
        self.reading.path.iter().filter(is_step).copied().collect()
    }

    /// The message or compaction with this id, wherever it lies.
    #[must_use]
    pub fn find(&self, event: &str) -> Option<NodeRef> {
        self.reading.index.find(event)
    }

    /// Reads the event of `node`.
    ///
    /// # Errors
    /// When the log cannot be read again, or was changed meanwhile.
    pub fn read(&mut self, node: NodeRef) -> io::Result<Entry> {
        let revision = match node.kind {
            NodeKind::Message => self.reading.revision(node, None)?,
            NodeKind::Compaction | NodeKind::Move | NodeKind::Other => None,
        };
        let line = self.reading.lines.text(node.locator)?.to_owned();
        Ok(Entry { line, revision })
    }

    /// What was proposed as `action`, with the members of vendors; `None` if nothing was.
    ///
    /// # Errors
    /// When the log cannot be read again, or `read` fails.
    pub fn proposal<T>(
        &mut self,
        action: &str,
        read: impl FnOnce(&ActionProposed<'_>, Option<&Raw<'_>>) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        self.reading.proposal(action, read)
    }

    /// The log whose messages come before those of this one, where this one does not hold them.
    #[must_use]
    pub fn elsewhere(&self) -> Option<&str> {
        self.reading.elsewhere.as_ref().map(|elsewhere| elsewhere.log.as_str())
    }

    /// What is wrong with the log.
    #[must_use]
    pub fn faults(&self) -> &Diagnostics {
        &self.reading.faults
    }
}

/// The actions whose results stand in `parts`.
fn results<'p>(parts: &'p [Part<'_>]) -> impl Iterator<Item = &'p str> {
    parts.iter().filter_map(|part| match part {
        Part::Result { action, .. } => Some(action.as_str()),
        _ => None,
    })
}

impl<R: Read + Seek> History<R> {
    /// The actions that the model was told of on the path.
    ///
    /// # Errors
    /// When the log cannot be read again.
    pub fn told(&mut self) -> io::Result<std::collections::HashSet<String>> {
        let mut told = std::collections::HashSet::new();
        for node in self.steps() {
            let entry = self.read(node)?;
            let Ok(event) = entry.event() else { continue };
            if let Ok(Data::MessageAdded(message)) = event.data() {
                told.extend(results(&message.parts).map(str::to_owned));
            }
        }
        Ok(told)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::project::sample::events;

    #[test]
    fn the_history_goes_on_over_compactions_and_leaves_branches_out() {
        let log = events(&[
            r#"a message.added {"role":"user","parts":[{"type":"text","text":"one"}]}"#,
            r#"b message.added {"role":"assistant","parts":[{"type":"text","text":"left"}]}"#,
            r#"c ^a message.added {"role":"assistant","parts":[{"type":"text","text":"two"},{"type":"action","action":"x"}]}"#,
            r#"p action.proposed {"action":"x","name":"t","args":{},"args_digest":"d"}"#,
            r#"d message.added {"role":"tool","parts":[{"type":"result","action":"x","parts":[],"final":true}]}"#,
            r#"w context.compacted {"window":[]}"#,
            r#"v message.revised {"message":"a","parts":[{"type":"text","text":"other"}]}"#,
        ]);
        let mut history = History::open(Cursor::new(log)).expect("a log");
        let steps = history.steps();
        let entries: Vec<Entry> = steps.iter().map(|n| history.read(*n).expect("it reads")).collect();
        let ids: Vec<String> = entries.iter().map(|e| e.event().expect("an event").id.to_string()).collect();
        assert_eq!(ids, ["a", "c", "d", "w"]);
        assert!(entries[0].revision().expect("it parses").is_some_and(|r| r.parts.is_some()));
        assert!(entries[1].revision().expect("it parses").is_none());
        assert_eq!(history.told().expect("it reads").into_iter().collect::<Vec<_>>(), ["x"]);
        let name = history.proposal("x", |p, _| Ok(p.name.to_string())).expect("it reads");
        assert_eq!(name.as_deref(), Some("t"));
        assert!(history.find("b").is_some() && history.elsewhere().is_none());
    }
}
