//! A database while one session is read from it, and the events that its rows become as they stand.

use std::collections::BTreeMap;
use std::path::Path;

use palog::envelope::{ActorKind, Draft, SrcHow};
use palog::events::Data;
use palog::json::Raw;
use palog::writer::WriteError;
use palog_adapter::sqlite::{KeptRows, Row};
use palog_adapter::{ImportError, InputReport, Log, SourceEnd};

use super::Database;
use super::import::{COLD, STORE};
use super::rows::{Use, rows, use_of};
use crate::times::of_milliseconds;

/// A database while one session is read from it.
pub(super) struct Input {
    pub(super) database: Database,
    pub(super) source: &'static str,
    kept: KeptRows,
    /// Rows of this session, by table.
    own: BTreeMap<String, u64>,
    /// Those of them that map to nothing.
    pub(super) unmapped: u64,
}

impl Input {
    pub(super) fn open(database: &Database, source: &'static str, place: Option<&Path>) -> Result<Self, ImportError> {
        let store = &database.store;
        let mut kept = KeptRows::begin(place, source)?;
        kept.schema(&store.schema, store.user_version, store.application_id)?;
        Ok(Input { database: database.clone(), source, kept, own: BTreeMap::new(), unmapped: 0 })
    }

    pub(super) fn keep(&mut self, row: &Row) -> Result<(), ImportError> {
        *self.own.entry(row.table().to_owned()).or_default() += 1;
        self.kept.keep(row)
    }

    /// Rows of a table.
    pub(super) fn rows(&self, table: &str, rest: &str, parameters: &[&str]) -> Vec<Row> {
        rows(&self.database.store, table, rest, parameters)
    }

    /// Ends reading: how far it was read, and what the report says of all rows.
    pub(super) fn finish(self, fragments: u64) -> Result<(SourceEnd, InputReport), ImportError> {
        let mut report = InputReport {
            path: self.database.path.display().to_string(),
            format: if self.source == STORE { "openclaw.sqlite" } else { "openclaw.state.sqlite" }.into(),
            kept: self.unmapped,
            fragments,
            ..InputReport::default()
        };
        for table in self.database.store.tables() {
            let count = self.database.store.count(&table.name).unwrap_or(0);
            let name = match use_of(&table.name) {
                Use::Kept => table.name.clone(),
                Use::Derived => format!("{} (derived)", table.name),
                Use::Secret => format!("{} (left out)", table.name),
            };
            if count > 0 {
                report.records += count;
                report.by_type.insert(name, count);
            }
        }
        report.foreign = report.records - self.own.values().sum::<u64>().min(report.records);
        Ok((self.kept.finish()?, report))
    }
}

/// The row as the payload of an event that keeps it.
pub(super) fn kept(log: &Log, row: &Row) -> Data<'static> {
    log.kept(row.table(), columns(row))
}

/// The columns of a row, as an object.
pub(super) fn columns(row: &Row) -> Raw<'static> {
    #[derive(serde::Deserialize)]
    struct Line<'a> {
        #[serde(borrow)]
        row: &'a serde_json::value::RawValue,
    }
    let line = row.line();
    let columns = serde_json::from_slice::<Line<'_>>(&line).map(|line| Raw::from(line.row).into_owned());
    columns.unwrap_or_else(|_| Raw::of("unreadable"))
}

/// Appends an event that a row tells. `time` is the column with its time in milliseconds.
pub(super) fn tell<'d>(
    log: &mut Log,
    source: &str,
    row: &Row,
    ordinal: u32,
    actor: ActorKind,
    time: &str,
    data: impl Into<Data<'d>>,
) -> Result<(), WriteError> {
    let id = row.event(&log.ids(source), ordinal).hex();
    let mut draft = Draft::new(id, actor, data);
    draft.time = row.integer(time).and_then(of_milliseconds);
    let is_kept = matches!(draft.data, Data::Kept(..));
    draft.src.push(row.src(source, is_kept.then_some(SrcHow::Opaque)));
    // Without what is in an archive nothing can be concluded.
    draft.ignorable = is_kept.then_some(row.table() != COLD);
    log.append(&mut draft)
}
