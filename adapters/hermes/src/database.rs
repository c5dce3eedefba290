//! The database: all sessions in one, and which rows belong to which.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog_adapter::sqlite::{Row, Store, Table};

use crate::family::{Family, Kin};
use crate::record::Record;

/// Versions of the schema that are known.
const VERSIONS: std::ops::RangeInclusive<i64> = 22..=30;

/// Tables whose rows are mapped, in the order in which they are read.
const MAPPED: [&str; 5] = ["sessions", "system_prompts", "messages", "session_model_usage", "async_delegations"];

/// A database of the client.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) path: PathBuf,
    /// Its path within what was imported.
    pub(crate) locator: String,
    pub(crate) store: Store,
    pub(crate) family: Family,
    /// How many rows each table has.
    pub(crate) rows: BTreeMap<String, u64>,
    /// What was found when it was opened.
    pub(crate) findings: Vec<Diagnostic>,
}

/// A row's owner and how rows of a table are found by it.
struct Ours {
    condition: String,
    owner: String,
}

impl Database {
    /// Opens a private copy; `None` if the database is not the client's.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn open(path: &Path, locator: &str) -> Result<Option<Self>, Box<Diagnostic>> {
        let store = Store::open(path)?;
        let has = |table: &str, columns: &[&str]| {
            store.table(table).is_some_and(|table| columns.iter().all(|column| table.has(column)))
        };
        if !has("sessions", &["id", "started_at"]) || !has("messages", &["id", "session_id", "role", "content"]) {
            return Ok(None);
        }
        let rows = store.tables().filter_map(|table| Some((table.name.clone(), store.count(&table.name)?))).collect();
        let mut kin = Vec::new();
        let mut findings = store.findings();
        each(&store, "sessions", "ORDER BY started_at, id", &[], |row| kin.extend(Kin::of(&Record::of_row(row))));
        each(&store, "schema_version", "", &[], |row| {
            if let Some(version) = row.integer("version").filter(|version| !VERSIONS.contains(version)) {
                let place = Place { input: Some(path.display().to_string()), ..Place::default() };
                let why = format!("schema version {version}");
                findings.push(Diagnostic::new(Code::StoreVersion, Severity::Warning, place).because(why));
            }
        });
        let family = Family::new(kin);
        Ok(Some(Database { path: path.into(), locator: locator.into(), store, family, rows, findings }))
    }

    /// The row of a session.
    pub(crate) fn session(&self, id: &str) -> Option<Row> {
        let mut found = None;
        each(&self.store, "sessions", "WHERE id = ?", &[id], |row| found = Some(row));
        found
    }

    /// The rows of a session's messages, in their order: that of their ids, whatever their times are.
    ///
    /// # Errors
    /// Those of `take`.
    pub(crate) fn messages<E>(&self, id: &str, take: impl FnMut(Row) -> Result<(), E>) -> Result<(), E> {
        self.store.each("messages", "WHERE session_id = ? ORDER BY id", &[id], take)
    }

    /// The rows that belong to a session beside its own one and its messages, table by table.
    ///
    /// # Errors
    /// Those of `take`.
    pub(crate) fn beside<E>(&self, session: &Record, mut take: impl FnMut(Row) -> Result<(), E>) -> Result<(), E> {
        let known = MAPPED.iter().filter_map(|name| self.store.table(name));
        let others = self.store.tables().filter(|table| !MAPPED.contains(&&*table.name));
        for table in known.chain(others).filter(|table| table.name != "sessions" && table.name != "messages") {
            let Some(ours) = ours(table, session) else { continue };
            self.store.each(&table.name, &format!("WHERE {}", ours.condition), &[&ours.owner], &mut take)?;
        }
        Ok(())
    }
}

/// How the rows of a table are found that belong to a session.
fn ours(table: &Table, session: &Record) -> Option<Ours> {
    let id = session.text("id")?.into_owned();
    let by = |column: &str, owner: Option<String>| {
        let condition = format!("\"{column}\" = ?");
        owner.filter(|_| table.has(column)).map(|owner| Ours { condition, owner })
    };
    let own = |column: &str| session.word(column).map(|value| value.into_owned());
    if table.name == "system_prompts" {
        return by("hash", own("system_prompt_hash"));
    }
    if table.name == "async_delegations" {
        let parent = table.has("parent_session_id") && table.has("origin_session");
        let condition = "coalesce(parent_session_id, origin_session) = ?".to_owned();
        return parent.then_some(Ours { condition, owner: id });
    }
    by("session_id", Some(id.clone()))
        .or_else(|| by("conversation_id", Some(id.clone())))
        .or_else(|| by("session_key", own("session_key")))
}

/// Reads rows and hands them on.
fn each(store: &Store, table: &str, rest: &str, parameters: &[&str], mut take: impl FnMut(Row)) {
    let never: Result<(), std::convert::Infallible> = store.each(table, rest, parameters, |row| {
        take(row);
        Ok(())
    });
    let Ok(()) = never;
}
