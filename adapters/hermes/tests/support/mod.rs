//! Databases made for a test, and what is imported from them.

#![allow(dead_code, reason = "not every test needs all of it")]

use std::fs;
use std::path::{Path, PathBuf};

use palog::blob::sibling;
use palog::recover::{Context, Verdict, recover};
use palog::reduce::reduce;
use palog::state::State;
use palog_hermes::{Directory, Options, Report, discover};
use serde_json::Value;
use tempfile::TempDir;

/// The tables as a session needs them.
pub(crate) const TABLES: &str = "
    CREATE TABLE sessions(id TEXT PRIMARY KEY, source TEXT, model TEXT, model_config TEXT, parent_session_id TEXT, started_at REAL,
        ended_at REAL, end_reason TEXT, message_count INTEGER, title TEXT, cwd TEXT, rewind_count INTEGER);
    CREATE TABLE messages(id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT, tool_call_id TEXT,
        tool_calls TEXT, tool_name TEXT, effect_disposition TEXT, timestamp REAL, finish_reason TEXT, reasoning TEXT,
        reasoning_content TEXT, reasoning_details TEXT, active INTEGER DEFAULT 1, compacted INTEGER DEFAULT 0, api_content TEXT);
";

/// One log.
pub(crate) struct Imported {
    pub(crate) session: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) events: Vec<Value>,
    pub(crate) rows: Vec<Value>,
    pub(crate) report: Report,
}

impl Imported {
    /// A row that is kept.
    pub(crate) fn row(&self, table: &str, key: &str) -> Option<&Value> {
        let is_it = |row: &&Value| {
            row["table"] == table
                && (row["row"]["id"] == key || row["row"]["id"].as_i64().is_some_and(|id| id.to_string() == key))
        };
        self.rows.iter().find(is_it).map(|row| &row["row"])
    }

    pub(crate) fn state(&self) -> State {
        reduce(self.bytes.as_slice()).expect("bytes in memory").0
    }

    pub(crate) fn verdict(&self) -> Verdict {
        recover(&self.state(), &Context::new()).verdict
    }

    /// The payloads of the events of a type.
    pub(crate) fn of_type(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["type"] == kind).collect()
    }

    /// The codes that were found.
    pub(crate) fn codes(&self) -> Vec<&'static str> {
        self.report.diagnostics.groups().iter().map(|group| group.code.as_str()).collect()
    }
}

/// The sessions at a path.
pub(crate) fn import(path: &Path) -> Vec<Imported> {
    let found = discover(path).expect("the input can be read");
    let each = found.sessions.iter().map(|session| {
        let folder = TempDir::new().expect("a folder");
        let report =
            palog_hermes::import(session, &mut Directory::new(folder.path()), &Options::default()).expect("an import");
        let log: PathBuf = report.logs[0].path.clone().expect("a path");
        let lines = |bytes: &[u8]| -> Vec<Value> {
            let lines = bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty());
            lines.map(|line| serde_json::from_slice(line).expect("JSON")).collect()
        };
        let bytes = fs::read(&log).expect("the log can be read");
        let rows = fs::read(sibling(&log, "sources").join("store")).unwrap_or_default();
        let session = report.logs[0].session.clone();
        Imported { session, events: lines(&bytes), rows: lines(&rows), bytes, report }
    });
    each.collect()
}

/// The sessions of a database that these statements make.
pub(crate) fn stored(statements: &str) -> Vec<Imported> {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("state.db");
    let database = rusqlite::Connection::open(&path).expect("a database");
    database.execute_batch(TABLES).expect("the tables");
    database.execute_batch(statements).expect("sound statements");
    drop(database);
    import(&path)
}
