//! The client's database: which sessions it holds, and the rows of each (`spec/sources/opencode.md`, "Tables").

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog::events::{ChildKind, ChildLink, ChildSpawned};
use palog_adapter::sqlite::{KeptRows, Row, Store};
use palog_adapter::{ImportError, InputReport, SourceEnd, ids};

use crate::FORMAT;
use crate::mapper::Mapper;
use crate::paths::beside;
use crate::record::{Head, Origin, Record, Revert, Times};
use crate::removed::{Changes, Removed};

/// Tables that are known and that hold no records of one session: of projects and of the client, credentials, counters.
const OTHERS: &[&str] = &[
    "__drizzle_migrations",
    "account",
    "account_state",
    "control_account",
    "credential",
    "data_migration",
    "event_sequence",
    "migration",
    "project",
    "project_directory",
    // It holds a secret.
    "session_share",
    "workspace",
];

/// Tables whose rows are mapped, or kept for what they are.
const KNOWN: &[&str] = &[
    "event",
    "message",
    "part",
    "permission",
    "session",
    "session_context_epoch",
    "session_input",
    "session_message",
    "todo",
];

/// A database of the client, and what all its sessions have in common.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) store: Store,
    pub(crate) path: PathBuf,
    /// Its path within what was imported.
    pub(crate) locator: String,
    counts: OnceCell<BTreeMap<String, u64>>,
}

/// A session as its row tells it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listed {
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) directory: Option<String>,
    pub(crate) created: Option<i64>,
    pub(crate) updated: Option<i64>,
}

impl Database {
    /// Opens the database at `path`; `None` where it is none of the client's.
    pub(crate) fn open(path: &Path, locator: String) -> Result<Option<Self>, Box<Diagnostic>> {
        let store = Store::open(path)?;
        let has = |table: &str, columns: &[&str]| {
            store.table(table).is_some_and(|table| columns.iter().all(|column| table.has(column)))
        };
        let is_own = has("session", &["id", "directory", "slug"])
            && has("message", &["id", "session_id", "data"])
            && has("part", &["id", "message_id", "data"]);
        Ok(is_own.then(|| Database { store, path: path.into(), locator, counts: OnceCell::new() }))
    }

    /// The sessions, the oldest first.
    pub(crate) fn sessions(&self) -> Vec<Listed> {
        let mut all = Vec::new();
        let read: Result<(), ()> = self.store.each("session", "ORDER BY time_created, id", &[], |row| {
            let own = |column: &str| row.text(column).map(str::to_owned);
            all.push(Listed {
                id: own("id").unwrap_or_default(),
                parent: own("parent_id"),
                title: own("title"),
                directory: own("directory"),
                created: row.integer("time_created"),
                updated: row.integer("time_updated"),
            });
            Ok(())
        });
        debug_assert!(read.is_ok(), "nothing here refuses a row");
        all
    }

    fn counts(&self) -> &BTreeMap<String, u64> {
        self.counts.get_or_init(|| {
            let count = |name: &str| self.store.count(name).unwrap_or(0);
            self.store.tables().map(|table| (table.name.clone(), count(&table.name))).collect()
        })
    }

    /// Writes the messages of a session into its log, and keeps its rows in `place`.
    pub(crate) fn write(&self, mapper: &mut Mapper, place: Option<&Path>) -> Result<SourceEnd, ImportError> {
        let session = mapper.log.session().to_owned();
        let mut rows = KeptRows::begin(place, &mapper.source)?;
        rows.schema(&self.store.schema, self.store.user_version, self.store.application_id)?;
        let mut reading = Reading { database: self, session, rows, kept: 0, changes: Changes::default(), revert: None };
        reading.changes()?;
        reading.head(mapper)?;
        reading.messages(mapper)?;
        reading.strays(mapper)?;
        reading.preview(mapper)?;
        reading.others(mapper)?;
        if let Some((origin, revert)) = reading.revert.take() {
            mapper.reverted(&origin, &revert)?;
        }
        mapper.conclude()?;
        reading.children(mapper)?;
        self.findings(mapper);
        let all: u64 = self.counts().values().sum();
        mapper.input.records = all;
        mapper.input.by_type = self.counts().clone();
        mapper.input.foreign = all.saturating_sub(reading.kept);
        reading.rows.finish()
    }

    /// What is wrong with the database, and what in it nobody knows.
    fn findings(&self, mapper: &mut Mapper) {
        for found in self.store.findings() {
            mapper.log.diagnostics.push(found);
        }
        for table in self.store.tables().filter(|t| !OTHERS.contains(&t.name.as_str())) {
            if !KNOWN.contains(&table.name.as_str()) && self.counts().get(&table.name).is_some_and(|n| *n > 0) {
                let place = Place { kind: Some(table.name.clone()), ..self.place() };
                let why = format!("the table {} is not known", table.name);
                mapper.log.diagnostics.push(Diagnostic::new(Code::StoreVersion, Severity::Warning, place).because(why));
            }
        }
    }

    fn place(&self) -> Place {
        Place { input: Some(self.path.display().to_string()), ..Place::default() }
    }

    /// The report of the write-ahead log, which is read with the database.
    pub(crate) fn log_report(&self) -> Option<InputReport> {
        let path = beside(&self.path, "-wal");
        let report = || InputReport {
            path: path.display().to_string(),
            format: "opencode.sqlite-wal".into(),
            ..InputReport::default()
        };
        path.is_file().then(report)
    }

    /// The report of the database before anything was read.
    pub(crate) fn report(&self) -> InputReport {
        InputReport {
            path: self.path.display().to_string(),
            format: "opencode.sqlite".into(),
            ..InputReport::default()
        }
    }
}

/// The rows of one session while they are read.
struct Reading<'d> {
    database: &'d Database,
    session: String,
    rows: KeptRows,
    kept: u64,
    changes: Changes,
    revert: Option<(Origin, Revert)>,
}

impl Reading<'_> {
    fn keep(&mut self, row: &Row) -> Result<(), ImportError> {
        self.kept += 1;
        self.rows.keep(row)
    }

    /// What the client recorded of its changes.
    fn changes(&mut self) -> Result<(), ImportError> {
        let store = &self.database.store;
        let session = self.session.clone();
        let removals =
            "WHERE aggregate_id = ? AND type IN ('message.removed.1', 'message.part.removed.1') ORDER BY seq";
        store.each("event", removals, &[&session], |row| {
            self.changes.gone(&row);
            Ok::<(), ImportError>(())
        })?;
        self.changes.keep_gone(store);
        store.each("event", "WHERE aggregate_id = ? ORDER BY seq", &[&session], |row| {
            self.changes.take(&row);
            self.keep(&row)
        })
    }

    /// The row of the session.
    fn head(&mut self, mapper: &mut Mapper) -> Result<(), ImportError> {
        let session = self.session.clone();
        self.database.store.each("session", "WHERE id = ?", &[&session], |row| {
            let own = |column: &str| row.text(column).map(|text| text.to_owned().into());
            let head = Head {
                id: own("id"),
                parent: own("parent_id"),
                title: own("title"),
                directory: own("directory"),
                version: own("version"),
                revert: row.text("revert").and_then(|text| serde_json::from_str(text).ok()),
                time: Some(Times { created: row.integer("time_created"), ..Times::default() }),
            };
            let record = Record::of_row(&row);
            mapper.session(&record, &head)?;
            mapper.history(&self.changes.about(""))?;
            self.revert = head.revert.map(|revert| (record.origin, revert));
            self.shadowed(mapper, &row);
            self.keep(&row)
        })
    }

    /// The client lists sessions by project. One that was begun before its folder became a project is not listed there.
    fn shadowed(&self, mapper: &mut Mapper, row: &Row) {
        let (Some("global"), Some(directory)) = (row.text("project_id"), row.text("directory")) else { return };
        let mut is_shadowed = false;
        let read: Result<(), ()> = self.database.store.each("project", "", &[], |project| {
            let worktree = project.text("worktree").filter(|w| *w != "/" && project.text("id") != Some("global"));
            is_shadowed |= worktree.is_some_and(|worktree| Path::new(directory).starts_with(worktree));
            Ok(())
        });
        if read.is_ok() && is_shadowed {
            let place = Place { detail: Some("global".into()), ..mapper.place(&Origin::of_change(row)) };
            mapper.report(Code::ProjectShadowed, Severity::Warning, place);
        }
    }

    /// The messages, with those that were removed in their places.
    fn messages(&mut self, mapper: &mut Mapper) -> Result<(), ImportError> {
        let database = self.database;
        let session = self.session.clone();
        let mut removed = self.changes.removed();
        let order = "WHERE session_id = ? ORDER BY time_created, id";
        database.store.each("message", order, &[&session], |row| {
            let message = Record::of_data(&row);
            let is_before = |r: &Removed| (r.created, &r.id) < (message.created, &message.id);
            let split = removed.iter().take_while(|r| is_before(r)).count();
            self.taken_back(mapper, removed.drain(..split))?;
            self.keep(&row)?;
            let mut parts = Vec::new();
            database.store.each("part", "WHERE message_id = ? ORDER BY id", &[&message.id], |row| {
                parts.push(Record::of_data(&row));
                self.keep(&row)
            })?;
            mapper.message(&message, &parts)?;
            mapper.strays(&message.id, &self.changes.removed_parts(&database.store, &message.id))?;
            mapper.history(&self.changes.about(&message.id))?;
            Ok::<(), ImportError>(())
        })?;
        self.taken_back(mapper, removed.drain(..))
    }

    /// Messages that were said and taken back: they stand in the log, and the head goes back to before them.
    fn taken_back(&mut self, mapper: &mut Mapper, removed: impl Iterator<Item = Removed>) -> Result<(), ImportError> {
        let mut first = None;
        for removed in removed {
            let Some((message, parts)) = removed.records(&self.database.store) else { continue };
            mapper.message(&message, &parts)?;
            mapper.history(&self.changes.about(&removed.id))?;
            if let (None, Some(gone)) = (&first, removed.gone) {
                first = Some((gone, removed.id));
            }
        }
        match first {
            Some((origin, id)) => Ok(mapper.back_to_before(&origin, &id, None)?),
            None => Ok(()),
        }
    }

    /// Parts whose messages are not there, and changes of what no row holds.
    fn strays(&mut self, mapper: &mut Mapper) -> Result<(), ImportError> {
        let database = self.database;
        let session = self.session.clone();
        let mut parts: Vec<(String, Record<'static>)> = Vec::new();
        let rest = "WHERE session_id = ? AND message_id NOT IN (SELECT id FROM message) ORDER BY message_id, id";
        database.store.each("part", rest, &[&session], |row| {
            parts.push((row.text("message_id").unwrap_or_default().to_owned(), Record::of_data(&row)));
            self.keep(&row)
        })?;
        for of_one in parts.chunk_by(|(a, _), (b, _)| a == b) {
            let Some((message, first)) = of_one.first() else { continue };
            let place = Place { names: Some(message.clone()), ..mapper.place(&first.origin) };
            mapper.report(Code::MissingParent, Severity::Warning, place);
            let records: Vec<Record<'_>> = of_one.iter().map(|(_, record)| record.clone()).collect();
            mapper.strays(message, &records)?;
            mapper.history(&self.changes.about(message))?;
        }
        for message in self.changes.left() {
            let mut rows = Vec::new();
            for origin in self.changes.about(&message) {
                let Origin::Row { key, .. } = origin else { continue };
                database.store.each("event", "WHERE id = ?", &[&key], |row| {
                    rows.push(Record::of_row(&row));
                    Ok::<(), ImportError>(())
                })?;
            }
            rows.iter().try_for_each(|row| mapper.keep(row, "event"))?;
        }
        Ok(())
    }

    /// What the tables of the preview API hold.
    fn preview(&mut self, mapper: &mut Mapper) -> Result<(), ImportError> {
        let store = &self.database.store;
        let session = self.session.clone();
        let order = "WHERE session_id = ?";
        store.each("session_context_epoch", order, &[&session], |row| {
            mapper.preview_context(&row)?;
            self.keep(&row)
        })?;
        let mut inputs = Vec::new();
        store.each("session_input", "WHERE session_id = ? ORDER BY admitted_seq", &[&session], |row| {
            self.keep(&row)?;
            inputs.push(row);
            Ok::<(), ImportError>(())
        })?;
        let mut inputs = inputs.into_iter().peekable();
        store.each("session_message", "WHERE session_id = ? ORDER BY seq", &[&session], |row| {
            let seq = row.integer("seq");
            while let Some(input) = inputs.next_if(|input| input.integer("admitted_seq") < seq) {
                mapper.preview_input(&input)?;
            }
            mapper.preview_message(&row)?;
            self.keep(&row)
        })?;
        inputs.try_for_each(|input| mapper.preview_input(&input))?;
        Ok(())
    }

    /// Rows that are kept for what they are: the list of things to do, standing permissions of the project, and those of
    /// tables that nobody knows.
    fn others(&mut self, mapper: &mut Mapper) -> Result<(), ImportError> {
        let store = &self.database.store;
        let session = self.session.clone();
        let known = |name: &str| OTHERS.contains(&name) || (KNOWN.contains(&name) && name != "todo");
        let tables: Vec<String> = store
            .tables()
            .filter(|table| table.has("session_id") && !known(&table.name))
            .map(|table| table.name.clone())
            .collect();
        for table in &tables {
            store.each(table, "WHERE session_id = ?", &[&session], |row| {
                mapper.keep(&Record::of_row(&row), table)?;
                self.keep(&row)
            })?;
        }
        let rules = "WHERE project_id = (SELECT project_id FROM session WHERE id = ?)";
        store.each("permission", rules, &[&session], |row| {
            mapper.keep(&Record::of_row(&row), "permission")?;
            self.keep(&row)
        })
    }

    /// Sessions that say that they belong to this one, and that no call told of.
    fn children(&mut self, mapper: &mut Mapper) -> Result<(), ImportError> {
        let session = self.session.clone();
        let mut children = Vec::new();
        let of = "WHERE parent_id = ? ORDER BY time_created, id";
        self.database.store.each("session", of, &[&session], |row| {
            children.extend(row.text("id").map(str::to_owned));
            Ok::<(), ImportError>(())
        })?;
        for child in children.into_iter().filter(|child| !mapper.told_of.contains(child)) {
            let spawned = ChildSpawned {
                child: ids::log(&FORMAT, &child).into(),
                session: child.clone().into(),
                action: None,
                kind: ChildKind::Subagent,
                // Its row names this session.
                link: ChildLink::Explicit,
            };
            mapper.log.about(&format!("child/{child}"), 0, spawned)?;
        }
        Ok(())
    }
}
