//! Sources, and what their silence means (spec 03, "What silence means").

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::envelope::Event;
use crate::events::{Recorded, SourceChange, SourceChanged, SourceOpened};
use crate::state::{Count, EventRef, Source, State};

/// Every kind of fact that a source can declare.
const EVERY: [Recorded; 12] = [
    Recorded::ActionProposed,
    Recorded::ActionStarted,
    Recorded::ActionEnded,
    Recorded::ApprovalRequested,
    Recorded::ApprovalEnded,
    Recorded::InputQueued,
    Recorded::InputEnded,
    Recorded::TurnEnded,
    Recorded::Lease,
    Recorded::ChildEnded,
    Recorded::Usage,
    Recorded::Workspace,
];

/// The kinds of facts that neither the writer nor an open source records.
pub(super) fn unseen(state: &State) -> Vec<Recorded> {
    EVERY.iter().copied().filter(|kind| !state.declares(*kind)).collect()
}

/// What is recorded, by whom and since when.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Sources {
    writer: Vec<Recorded>,
    #[serde(with = "super::snapshot::pairs")]
    by_name: HashMap<Box<str>, (Vec<Recorded>, u64)>,
    /// Since when each kind is recorded, and by how many sources since then.
    since: BTreeMap<Recorded, BTreeMap<u64, u64>>,
}

impl Sources {
    /// A live writer records these.
    pub(super) fn written(&mut self, records: &[Recorded]) {
        self.writer = records.to_vec();
    }

    /// `source.opened`. Whether it replaces a source that recorded more: nothing can be said any more about what that one
    /// would have recorded (R-STA-005).
    pub(super) fn open(&mut self, state: &mut State, data: &SourceOpened<'_>, event: &Event<'_>, order: u64) -> bool {
        let earlier = self.by_name.get(&*data.source);
        let since = earlier
            .filter(|(records, _)| records.iter().all(|kind| data.records.contains(kind)))
            .map(|(_, since)| *since);
        let loses = earlier.is_some() && since.is_none();
        self.declare(&data.source, data.records.clone(), since.unwrap_or(order));
        let source = Source {
            vendor: data.vendor.to_string(),
            version: data.version.as_ref().map(ToString::to_string),
            locator: data.locator.to_string(),
            records: data.records.clone(),
            kept: data.kept,
            opened: EventRef { event: event.id.to_string(), seq: Count(event.seq) },
        };
        state.vendor.get_or_insert_with(|| source.vendor.clone());
        state.sources.insert(data.source.to_string(), source);
        loses
    }

    /// `source.changed`: what it declared says nothing of the time before (R-STA-009). Whether it declared anything.
    pub(super) fn change(&mut self, state: &mut State, data: &SourceChanged<'_>, order: u64) -> bool {
        let Some((records, _)) = self.by_name.get(&*data.source) else { return false };
        let declared = !records.is_empty();
        let left = if data.how == SourceChange::Vanished { Vec::new() } else { records.clone() };
        self.declare(&data.source, left, order);
        if data.how == SourceChange::Vanished
            && let Some(source) = state.sources.get_mut(&*data.source)
        {
            source.records.clear();
        }
        declared
    }

    /// From now on `source` records these, and has done so since `since`.
    fn declare(&mut self, source: &str, records: Vec<Recorded>, since: u64) {
        for kind in &records {
            *self.since.entry(*kind).or_default().entry(since).or_default() += 1;
        }
        let Some((earlier, before)) = self.by_name.insert(source.into(), (records, since)) else { return };
        for kind in earlier {
            let Some(of_kind) = self.since.get_mut(&kind) else { continue };
            match of_kind.get_mut(&before) {
                Some(sources) if *sources > 1 => *sources -= 1,
                _ => drop(of_kind.remove(&before)),
            }
        }
    }

    /// Since when facts of `kind` have been recorded: by `source`, or, where none is named, by the writer or any open source.
    pub(super) fn since(&self, kind: Recorded, source: Option<&str>) -> Option<u64> {
        match source {
            Some(name) => {
                self.by_name.get(name).filter(|(records, _)| records.contains(&kind)).map(|(_, since)| *since)
            }
            None if self.writer.contains(&kind) => Some(0),
            None => self.since.get(&kind)?.first_key_value().map(|(since, _)| *since),
        }
    }

    /// Whether facts of `kind` have been recorded ever since `seq`: by `source`, or, where none is named, by the writer or
    /// any open source.
    pub(super) fn record(&self, kind: Recorded, source: Option<&str>, seq: u64) -> bool {
        self.since(kind, source).is_some_and(|since| since <= seq)
    }
}
