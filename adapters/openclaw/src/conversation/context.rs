//! What changes what the model sees: compactions, and summaries of branches that were left.

use super::messages::plain;
use super::*;

use palog::events::{ContextCompacted, Part, Role, WindowItem};

/// What stands around a summary in what the model sees.
type Wrapper = (&'static str, &'static str);

/// Around the summary of a compaction.
pub(super) const COMPACTED: Wrapper = (
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n",
    "\n</summary>",
);

/// Around the summary of a branch.
const BRANCH: Wrapper =
    ("The following is a summary of a branch that this conversation came back from:\n\n<summary>\n", "</summary>");

impl Conversation {
    /// From here on the model sees the summary, what was kept, and what follows.
    pub(super) fn compaction(&mut self, here: &mut Here<'_>, entry: &Entry<'_>) -> Written {
        let named = entry.first_kept_entry_id.as_deref().and_then(|id| self.tree.find(id));
        // The first version counts entries, the header with them.
        let counted = entry.first_kept_entry_index.and_then(|at| self.tree.by_index.get(at).copied().flatten());
        let kept = self.tree.kept(named.or(counted), self.tree.last());
        for call in self.tree.split(&kept) {
            let place = Place { call: Some(call.to_owned()), ..self.place(here) };
            self.out.log.diagnostics.push(Diagnostic::new(Code::SplitPair, Severity::Warning, place));
        }
        let window: Vec<EventId> = kept.into_iter().map(|n| self.tree.event(n)).collect();
        let summary = self.summary(here, COMPACTED, entry.summary.as_ref())?;
        let item = |event: EventId| WindowItem::Event { event: event.hex().into(), parts: None };
        let compacted = ContextCompacted {
            trigger: None,
            window: Some(std::iter::once(summary).chain(window).map(item).collect()),
            pruned: None,
            tokens_before: entry.tokens_before,
            tokens_after: None,
        };
        let event = self.emit(here, ActorKind::Harness, compacted)?;
        self.step(here, Step::Window(event));
        Ok(())
    }

    /// What stands in place of a branch that the conversation came back from.
    pub(super) fn branch_summary(&mut self, here: &mut Here<'_>, summary: Option<&Raw<'_>>) -> Written {
        self.summary(here, BRANCH, summary).map(drop)
    }

    /// A summary, in the words in which the model is told of it.
    pub(super) fn summary(
        &mut self,
        here: &mut Here<'_>,
        (before, after): Wrapper,
        summary: Option<&Raw<'_>>,
    ) -> Result<EventId, WriteError> {
        self.step(here, Step::Message);
        let text = summary.and_then(Raw::text).unwrap_or_default();
        let parts = vec![Part::text(format!("{before}{text}{after}").as_str())];
        let added = plain(Role::User, parts, Some("summary"));
        self.emit_how(here, ActorKind::Harness, added, Some(SrcHow::Normalized))
    }
}
