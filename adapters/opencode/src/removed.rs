//! What the client recorded of its changes, beside the rows that hold their outcome (`spec/sources/opencode.md`, "Changes").
//!
//! Each change holds a full snapshot. Of a message that was removed since, only they still tell.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use palog_adapter::sqlite::{Row, Store};

use crate::record::{Change, Named, Origin, Record, parse};

/// A message that only changes tell of.
#[derive(Debug, Default)]
pub(crate) struct Removed {
    pub(crate) id: String,
    pub(crate) created: Option<i64>,
    /// The change with its newest snapshot, and those of its parts, by id.
    message: Option<String>,
    parts: BTreeMap<String, String>,
    /// The change that says that it is gone.
    pub(crate) gone: Option<Origin>,
}

/// The changes of one session.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// References to them, by the message that they are about; those about none under no name.
    about: HashMap<String, Vec<Origin>>,
    /// Messages that are gone, and parts that are, by message.
    messages: BTreeMap<String, Removed>,
    parts: BTreeMap<String, BTreeMap<String, Option<String>>>,
}

impl Changes {
    /// Learns what is gone.
    pub(crate) fn gone(&mut self, row: &Row) {
        let change: Change<'_> = row.text("data").and_then(|t| serde_json::from_str(t).ok()).unwrap_or_default();
        let (Some(kind), Some(message)) = (row.text("type"), change.message.as_deref()) else { return };
        if kind.starts_with("message.removed") {
            let gone = Some(Origin::of_change(row));
            self.messages.insert(message.to_owned(), Removed { id: message.to_owned(), gone, ..Removed::default() });
        } else if let Some(part) = change.part_id.as_deref().filter(|_| kind.starts_with("message.part.removed")) {
            self.parts.entry(message.to_owned()).or_default().insert(part.to_owned(), None);
        }
    }

    /// Forgets what came back.
    pub(crate) fn keep_gone(&mut self, store: &Store) {
        let is_there = |table: &str, id: &str| {
            let mut found = false;
            let looked: Result<(), ()> = store.each(table, "WHERE id = ?", &[id], |_| {
                found = true;
                Ok(())
            });
            looked.is_ok() && found
        };
        self.messages.retain(|id, _| !is_there("message", id));
        for parts in self.parts.values_mut() {
            parts.retain(|id, _| !is_there("part", id));
        }
    }

    /// Takes in a change.
    pub(crate) fn take(&mut self, row: &Row) {
        let change: Change<'_> = row.text("data").and_then(|t| serde_json::from_str(t).ok()).unwrap_or_default();
        let (message, part) =
            (change.info.as_ref().and_then(parse::<Named<'_>>), change.part.as_ref().and_then(parse::<Named<'_>>));
        let key = row.key();
        let kind = row.text("type").unwrap_or_default();
        let about = match (kind.starts_with("message."), &message, &part) {
            (true, Some(named), _) => named.id.as_deref(),
            (true, None, Some(named)) => named.message.as_deref(),
            (true, None, None) => change.message.as_deref(),
            (false, ..) => None,
        };
        let about = about.unwrap_or_default().to_owned();
        if let Some(removed) = self.messages.get_mut(&about) {
            if let Some(named) = message.as_ref().filter(|_| part.is_none()) {
                removed.created = named.time.and_then(|t| t.created).or(removed.created);
                removed.message = Some(key.clone());
            } else if let Some(id) = part.as_ref().and_then(|named| named.id.as_deref()) {
                removed.parts.insert(id.to_owned(), key.clone());
            }
        } else if let (Some(parts), Some(id)) =
            (self.parts.get_mut(&about), part.as_ref().and_then(|named| named.id.as_deref()))
            && let Some(newest) = parts.get_mut(id)
        {
            *newest = Some(key);
        }
        self.about.entry(about).or_default().push(Origin::of_change(row));
    }

    /// Changes about a message, or about none; once.
    pub(crate) fn about(&mut self, message: &str) -> Vec<Origin> {
        self.about.remove(message).unwrap_or_default()
    }

    /// The messages that there are changes about, and that were not asked for.
    pub(crate) fn left(&mut self) -> BTreeSet<String> {
        self.about.keys().cloned().collect()
    }

    /// Messages that are gone, in the order of the conversation.
    pub(crate) fn removed(&mut self) -> Vec<Removed> {
        let mut all: Vec<Removed> =
            std::mem::take(&mut self.messages).into_values().filter(|r| r.message.is_some()).collect();
        all.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        all
    }

    /// Parts of a message that are gone, in their order.
    pub(crate) fn removed_parts(&mut self, store: &Store, message: &str) -> Vec<Record<'static>> {
        let parts = self.parts.remove(message).unwrap_or_default();
        parts.into_values().flatten().filter_map(|key| snapshot(store, &key)).collect()
    }
}

impl Removed {
    /// The message as it was last, and its parts.
    pub(crate) fn records(&self, store: &Store) -> Option<(Record<'static>, Vec<Record<'static>>)> {
        let message = snapshot(store, self.message.as_ref()?)?;
        Some((message, self.parts.values().filter_map(|key| snapshot(store, key)).collect()))
    }
}

/// What a change holds of its message or part.
fn snapshot(store: &Store, key: &str) -> Option<Record<'static>> {
    let mut found = None;
    let read: Result<(), ()> = store.each("event", "WHERE id = ?", &[key], |row| {
        found = record(&row);
        Ok(())
    });
    read.ok().and(found)
}

fn record(row: &Row) -> Option<Record<'static>> {
    let change: Change<'_> = serde_json::from_str(row.text("data")?).ok()?;
    let (kind, raw) = match (&change.info, &change.part) {
        (_, Some(part)) => ("part", part),
        (Some(info), None) => ("message", info),
        (None, None) => return None,
    };
    let named: Named<'_> = parse(raw)?;
    Some(Record {
        kind: kind.into(),
        id: named.id.as_deref()?.to_owned(),
        created: named.time.and_then(|t| t.created),
        text: raw.get().to_owned().into(),
        origin: Origin::of(row),
    })
}
