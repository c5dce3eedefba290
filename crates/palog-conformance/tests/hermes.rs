//! Databases of Hermes Agent: every row is kept or counted, the rows that are kept make the tables again, the files stay as they
//! are, a log beside the database makes no difference, and whatever rows are missing at the end, nothing that may have run is
//! taken for done or not begun.

#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "../../palog-cli/src/reference/import.rs"]
mod import;
#[path = "support/valid.rs"]
mod valid;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use import::imported;
use libtest_mimic::{Arguments, Failed, Trial};
use palog::recover::{Context, Verdict, recover};
use palog::reduce::reduce;
use palog_conformance::{Case, Expectation, Log, Source, json};
use rusqlite::types::Value as Column;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

/// Tools that change nothing, whatever becomes of them.
const READING: &[&str] = &["read_file", "search_files", "session_search", "skill_view", "skills_list", "todo"];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    let cases = match Case::all(&fixtures::folder()) {
        Ok(cases) => cases,
        Err(why) => {
            let broken = Trial::test("every case can be loaded", move || Err(Failed::from(why)));
            return libtest_mimic::run(&arguments, vec![broken]).exit_code();
        }
    };
    let databases: BTreeSet<PathBuf> = cases
        .iter()
        .filter_map(Case::source)
        .filter(|source| source.format == "hermes" && source.path.extension().is_some_and(|e| e == "db"))
        .map(|source| source.path.clone())
        .collect();
    for path in &databases {
        add(&mut trials, "rows", path, accounted);
        add(&mut trials, "log beside", path, same_with_a_log);
        add(&mut trials, "cut", path, cut);
    }
    trials
        .push(Trial::test("the small reader finds what the truths know", move || knows(&cases).map_err(Failed::from)));
    let count = databases.len();
    trials.push(Trial::test("the databases are here", move || {
        if count == 25 { Ok(()) } else { Err(Failed::from(format!("{count} databases"))) }
    }));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn add(trials: &mut Vec<Trial>, what: &str, path: &Path, test: fn(&Path) -> Result<(), String>) {
    let name = path.strip_prefix(fixtures::folder()).unwrap_or(path).display().to_string();
    let path = path.to_path_buf();
    trials.push(Trial::test(format!("{what}: {name}"), move || test(&path).map_err(Failed::from)));
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

fn logs(source: &Path, into: &Path) -> Result<(BTreeMap<String, Log>, Value), String> {
    let report = imported(source, into)?;
    let told = serde_json::to_value(&report).map_err(text)?;
    let mut logs = BTreeMap::new();
    for log in report.logs {
        logs.insert(log.session, Log::read(&log.path.ok_or("a log without a path")?)?);
    }
    Ok((logs, told))
}

/// Every table with the rows in it, each as one text.
fn tables(path: &Path) -> Result<BTreeMap<String, BTreeSet<String>>, String> {
    let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(text)?;
    let list =
        "SELECT name FROM pragma_table_list WHERE type = 'table' AND schema = 'main' AND name NOT LIKE 'sqlite%'";
    let names: Vec<String> = collect(&database, list, |row| row.get(0))?;
    let mut tables = BTreeMap::new();
    for name in names {
        let columns: Vec<String> =
            collect(&database, &format!("SELECT name FROM pragma_table_info('{name}')"), |row| row.get(0))?;
        let rows = collect(&database, &format!("SELECT * FROM \"{name}\""), |row| {
            let values =
                columns.iter().enumerate().map(|(at, column)| Ok(format!("{column}={:?}", row.get::<_, Column>(at)?)));
            Ok(values.collect::<rusqlite::Result<Vec<_>>>()?.join(" "))
        })?;
        tables.insert(name, rows.into_iter().collect());
    }
    Ok(tables)
}

fn collect<T>(
    database: &Connection,
    query: &str,
    read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, String> {
    let mut statement = database.prepare(query).map_err(text)?;
    let rows = statement.query_map((), read).map_err(text)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(text)
}

/// A database with the rows that are kept of a session.
fn again(source: &[u8], path: &Path) -> Result<(), String> {
    let database = Connection::open(path).map_err(text)?;
    // Rows of other sessions that these point to are not kept here.
    database.execute_batch("PRAGMA foreign_keys=OFF").map_err(text)?;
    let mut lines = source.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    let head: Value = serde_json::from_slice(lines.next().ok_or("no schema")?).map_err(text)?;
    for statement in json::list(&head, "/schema").iter().filter_map(Value::as_str) {
        // Indexes for searching make tables of their own, which the statements hold as well.
        let _ = database.execute_batch(statement);
    }
    let triggers: Vec<String> =
        collect(&database, "SELECT name FROM sqlite_schema WHERE type = 'trigger'", |row| row.get(0))?;
    triggers.iter().try_for_each(|name| database.execute_batch(&format!("DROP TRIGGER {name}")).map_err(text))?;
    for line in lines {
        let line: Value = serde_json::from_slice(line).map_err(text)?;
        let row = line["row"].as_object().ok_or("no row")?;
        let columns: Vec<String> = row.keys().map(|column| format!("\"{column}\"")).collect();
        let values = row.values().map(|value| match value {
            Value::Null => Column::Null,
            Value::Number(n) if n.is_i64() => Column::Integer(n.as_i64().unwrap_or_default()),
            Value::Number(n) => Column::Real(n.as_f64().unwrap_or_default()),
            other => Column::Text(other.as_str().unwrap_or_default().to_owned()),
        });
        let marks = vec!["?"; columns.len()].join(",");
        let table = json::text(&line, "/table").unwrap_or_default();
        let insert = format!("INSERT INTO \"{table}\" ({}) VALUES ({marks})", columns.join(","));
        database.execute(&insert, rusqlite::params_from_iter(values)).map_err(text)?;
    }
    Ok(())
}

/// Every row is kept in the log of its session, or counted as nobody's; kept rows are those of the database; every one is told
/// of by an event; and nothing is written beside the database.
fn accounted(path: &Path) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let (home, into) = (folder.path().join("home"), folder.path().join("logs"));
    fs::create_dir(&home).map_err(text)?;
    let copy = home.join("state.db");
    fs::copy(path, &copy).map_err(text)?;
    let (logs, report) = logs(&copy, &into)?;
    let files: Vec<_> = fs::read_dir(&home).map_err(text)?.map(|entry| entry.map(|e| e.file_name())).collect();
    if files.len() != 1 || fs::read(&copy).map_err(text)? != fs::read(path).map_err(text)? {
        return Err(format!("the folder of the database changed: {files:?}"));
    }
    let original = tables(path)?;
    let total: usize =
        original.iter().filter(|(name, _)| !name.starts_with("messages_fts")).map(|(_, rows)| rows.len()).sum();
    let sessions = original["sessions"].len();
    if logs.len() != sessions {
        return Err(format!("{} logs of {sessions} sessions", logs.len()));
    }
    let mut kept: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (session, log) in &logs {
        let source = log.sources.get("store").ok_or("nothing is kept")?;
        let made = folder.path().join(format!("{session}.db"));
        again(source, &made)?;
        let own = tables(&made)?;
        let lines = source.iter().filter(|b| **b == b'\n').count() - 1;
        let pointed = log.main_records().len();
        let input = json::list(&report, "/inputs").iter().find(|input| {
            json::count(input, "/records").unwrap_or(0) - json::count(input, "/foreign").unwrap_or(0) == lines as u64
        });
        if input.is_none_or(|input| json::count(input, "/records") != Some(total as u64)) || pointed != lines {
            return Err(format!("{session}: {lines} rows are kept, {pointed} are told of: {:?}", report["inputs"]));
        }
        for (name, rows) in own.into_iter().filter(|(name, _)| !name.starts_with("messages_fts")) {
            for row in rows {
                if !original.get(&name).is_some_and(|rows| rows.contains(&row)) {
                    return Err(format!("{session}: no such row of {name}: {row}"));
                }
                if !kept.entry(name.clone()).or_default().insert(row.clone()) {
                    return Err(format!("{session}: another session has this row of {name}: {row}"));
                }
            }
        }
    }
    for name in ["sessions", "messages", "session_model_usage", "async_delegations"] {
        let rows = original.get(name).cloned().unwrap_or_default();
        if rows != kept.get(name).cloned().unwrap_or_default() {
            return Err(format!("not every row of {name} is kept"));
        }
    }
    Ok(())
}

/// Rows that only the write-ahead log holds are read as those in the database are.
fn same_with_a_log(path: &Path) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let open = folder.path().join("open.db");
    fs::copy(path, &open).map_err(text)?;
    let database = Connection::open(&open).map_err(text)?;
    database.execute_batch("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0").map_err(text)?;
    let last: i64 = database.query_row("SELECT max(id) FROM messages", (), |row| row.get(0)).map_err(text)?;
    database
        .execute_batch(&format!(
            "CREATE TEMP TABLE t AS SELECT * FROM messages WHERE id = {last}; DELETE FROM messages WHERE id = {last}; INSERT INTO messages SELECT * FROM t"
        ))
        .map_err(text)?;
    let (with, without) = (folder.path().join("with/state.db"), folder.path().join("without/state.db"));
    for copy in [&with, &without] {
        fs::create_dir_all(copy.parent().unwrap_or(copy)).map_err(text)?;
    }
    let log = folder.path().join("open.db-wal");
    if fs::metadata(&log).map_err(text)?.len() == 0 {
        return Err("the log is empty".into());
    }
    fs::copy(&open, &with).map_err(text)?;
    fs::copy(&log, with.with_file_name("state.db-wal")).map_err(text)?;
    database.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").map_err(text)?;
    fs::copy(&open, &without).map_err(text)?;
    fs::write(without.with_file_name("state.db-wal"), b"").map_err(text)?;
    let (one, _) = logs(&with, &folder.path().join("one"))?;
    let (other, _) = logs(&without, &folder.path().join("other"))?;
    match one.iter().zip(&other).find(|((_, a), (_, b))| a.bytes != b.bytes || a.sources != b.sources) {
        None if one.len() == other.len() => Ok(()),
        None => Err("other sessions".into()),
        Some(((session, _), _)) => Err(format!("{session} has other bytes")),
    }
}

/// The calls of each session that may have run, or may still run, and that hold it.
fn may_have_run(path: &Path) -> Result<BTreeMap<String, BTreeSet<String>>, String> {
    struct Message {
        session: String,
        role: String,
        content: String,
        call: String,
        calls: Vec<(String, String)>,
        finish: String,
    }
    let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(text)?;
    let messages = collect(
        &database,
        "SELECT session_id, role, content, tool_call_id, tool_calls, finish_reason FROM messages ORDER BY id",
        |row| {
            let word = |at| Ok::<_, rusqlite::Error>(row.get::<_, Option<String>>(at)?.unwrap_or_default());
            let list: Value = serde_json::from_str(&word(4)?).unwrap_or_default();
            let call = |call: &Value| {
                let word = |pointer| json::text(call, pointer).unwrap_or_default().to_owned();
                (word("/id"), word("/function/name"))
            };
            let calls = json::list(&list, "").iter().map(call).collect();
            Ok(Message {
                session: word(0)?,
                role: word(1)?,
                content: word(2)?,
                call: word(3)?,
                calls,
                finish: word(5)?,
            })
        },
    )?;
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for session in collect(&database, "SELECT id FROM sessions", |row| row.get::<_, String>(0))? {
        let own: Vec<&Message> = messages.iter().filter(|m| m.session == session).collect();
        let mut open = BTreeSet::new();
        for (at, message) in own.iter().enumerate() {
            let later = &own[at + 1..];
            let prompt = later.iter().position(|m| m.role == "user" && !m.content.starts_with("[PRIOR CONTEXT"));
            let answered =
                |m: &&&Message| m.role == "assistant" && m.calls.is_empty() && m.content != "Operation interrupted.";
            let passed_over = prompt.is_some_and(|prompt| later[prompt..].iter().any(|m| answered(&m)));
            for (id, name) in message.calls.iter().filter(|(_, name)| !READING.contains(&name.as_str())) {
                let result = later.iter().find(|m| m.role == "tool" && m.call == *id);
                let tells = result.is_some_and(|m| {
                    m.content.starts_with('{') || m.content.starts_with(&format!("Tool '{name}' does not exist"))
                });
                if !tells && !passed_over {
                    open.insert(id.clone());
                }
            }
            let _ = &message.finish;
        }
        found.insert(session, open);
    }
    Ok(found)
}

/// Behind every row that a session has, what may have run holds it.
fn cut(path: &Path) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let copy = folder.path().join("state.db");
    fs::copy(path, &copy).map_err(text)?;
    let database = Connection::open(&copy).map_err(text)?;
    // What keeps the search index takes part in no test.
    for name in
        collect(&database, "SELECT name FROM sqlite_schema WHERE type = 'trigger'", |row| row.get::<_, String>(0))?
    {
        database.execute_batch(&format!("DROP TRIGGER {name}")).map_err(text)?;
    }
    database
        .execute_batch("PRAGMA journal_mode=DELETE; UPDATE sessions SET ended_at = NULL, end_reason = NULL")
        .map_err(text)?;
    let last: i64 =
        database.query_row("SELECT coalesce(max(id), 0) FROM messages", (), |row| row.get(0)).map_err(text)?;
    for cut in (0..last).rev() {
        database.execute("DELETE FROM messages WHERE id > ?", [cut]).map_err(text)?;
        // Delegations may have ended only later.
        let _ = database.execute_batch("DELETE FROM async_delegations");
        let into = folder.path().join(format!("cut{cut}"));
        let (logs, _) = logs(&copy, &into).map_err(|why| format!("cut behind row {cut}: {why}"))?;
        for (session, held) in may_have_run(&copy)? {
            let log = logs.get(&session).ok_or("no log")?;
            let (state, _) = reduce(log.bytes.as_slice()).map_err(text)?;
            let verdict = recover(&state, &Context::new()).verdict;
            let goes_on = matches!(verdict, Verdict::Ready | Verdict::Idle | Verdict::Closed);
            if goes_on && !held.is_empty() {
                return Err(format!("cut behind row {cut}: {session} is {verdict:?}, and {held:?} may have run"));
            }
        }
    }
    Ok(())
}

/// The small reader agrees with the truths on what holds a session, so that the test above looks for the right calls.
fn knows(cases: &[Case]) -> Result<(), String> {
    let mut holding = 0;
    for case in cases {
        let is_database = |source: &&Source| source.path.extension().is_some_and(|e| e == "db");
        let Some(source) = case.source().filter(|s| s.format == "hermes").filter(is_database) else { continue };
        let Expectation::Truth(truth) = &source.expectation else { continue };
        let found = may_have_run(&source.path)?;
        for session in &truth.sessions {
            let expected: BTreeSet<String> =
                session.calls.iter().filter(|call| call.blocking).map(|call| call.call.clone()).collect();
            if found.get(&session.session) != Some(&expected) {
                return Err(format!("{}: {found:?}, and the truth says {expected:?}", case.id));
            }
            holding += usize::from(!expected.is_empty());
        }
    }
    if holding < 4 { Err(format!("{holding} sessions are held")) } else { Ok(()) }
}
