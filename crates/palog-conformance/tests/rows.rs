//! Nothing of a database, a tree of files, an export or a recording is lost on the way in: every row is kept and told, or counted
//! as nobody's; every byte of a document is kept; the same input gives the same bytes, and what was imported stays as it was.

#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "../../palog-cli/src/reference/import.rs"]
mod import;
#[path = "support/layout.rs"]
#[expect(dead_code, reason = "shared with the tests of files that only grow")]
mod layout;
#[path = "support/valid.rs"]
mod valid;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use import::imported;
use libtest_mimic::{Arguments, Failed, Trial};
use palog_conformance::{Case, Log, json};
use rusqlite::Connection;
use serde_json::Value;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    match Case::all(&fixtures::folder()) {
        Ok(cases) => {
            let of_rows = cases
                .iter()
                .filter(|case| layout::is_of_rows(case))
                .filter_map(|case| Some(case.source()?.path.clone()));
            // A folder of documents that are imported one by one.
            let sources: BTreeSet<PathBuf> = of_rows
                .flat_map(|source| {
                    let documents = layout::files(&source);
                    let one_by_one = source.ends_with("input") && source.is_dir();
                    if one_by_one { documents } else { vec![source] }
                })
                .collect();
            for source in sources {
                add(&mut trials, "kept and told", &source, kept_and_told);
                add(&mut trials, "same bytes again", &source, same_again);
                match source.extension().and_then(|e| e.to_str()) {
                    Some("db") => add(&mut trials, "every row", &source, every_row),
                    Some("sqlite") => add(&mut trials, "every entry", &source, every_entry),
                    _ => {}
                }
            }
        }
        Err(why) => trials.push(Trial::test("every case can be loaded", move || Err(Failed::from(why)))),
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn add(trials: &mut Vec<Trial>, what: &str, source: &Path, test: fn(&Path) -> Result<(), String>) {
    let name = source.strip_prefix(fixtures::folder()).unwrap_or(source).display().to_string();
    let source = source.to_path_buf();
    trials.push(Trial::test(format!("{what}: {name}"), move || test(&source).map_err(Failed::from)));
}

fn scratch() -> Result<tempfile::TempDir, String> {
    tempfile::tempdir().map_err(|e| e.to_string())
}

fn logs(source: &Path, into: &Path) -> Result<Vec<Log>, String> {
    let report = imported(source, into)?;
    report.logs.iter().filter_map(|log| log.path.as_deref()).map(Log::read).collect()
}

/// All files of a folder with what is in them; of a file those beside it.
fn contents(source: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, String> {
    let folder = if source.is_dir() { source } else { source.parent().unwrap_or(source) };
    layout::files(folder).into_iter().map(|p| Ok((p.clone(), fs::read(&p).map_err(|e| e.to_string())?))).collect()
}

/// Every kept record is pointed to, a document is kept byte for byte, and the source is what it was.
fn kept_and_told(source: &Path) -> Result<(), String> {
    let before = contents(source)?;
    let into = scratch()?;
    for log in logs(source, into.path())? {
        let told: BTreeSet<(u64, u64)> = log.main_records().iter().map(|r| (r.at, r.len)).collect();
        for (name, bytes) in log.sources.iter().filter(|(name, _)| Log::is_main(name)) {
            if name == "store" {
                every_row_is_told(&log, bytes)?;
                continue;
            }
            for record in records(name, bytes) {
                if !told.contains(&record) {
                    return Err(format!("{}: nobody tells of {record:?} in {name}", log.id()));
                }
            }
            // An export can hold several sessions, each in a line.
            let is_piece = |file: &[u8]| file.windows(bytes.len().max(1)).any(|piece| piece == bytes);
            if !is_piece(&fs::read(source).map_err(|e| e.to_string())?) {
                return Err(format!("{name} is not the file, byte for byte"));
            }
        }
    }
    if contents(source)? == before { Ok(()) } else { Err("the source has changed".into()) }
}

/// An event points to each kept row by its table and its key.
fn every_row_is_told(log: &Log, bytes: &[u8]) -> Result<(), String> {
    let of = |native: &Value, member: &str| json::text(native, member).unwrap_or_default().to_owned();
    let told: BTreeSet<(String, String)> = log
        .main_records()
        .iter()
        .filter(|record| record.source == "store")
        .map(|record| (of(&record.native, "/table"), of(&record.native, "/key")))
        .collect();
    for row in keys(bytes)? {
        if !told.contains(&row) {
            return Err(format!("{}: nobody tells of the row {row:?}", log.id()));
        }
    }
    Ok(())
}

/// Table and key of each kept row: the columns of the primary key as the kept schema has it, or the row id (spec 02, "Native
/// records").
fn keys(bytes: &[u8]) -> Result<Vec<(String, String)>, String> {
    let text = |e: rusqlite::Error| e.to_string();
    let source = String::from_utf8_lossy(bytes);
    let mut lines = source.lines();
    let db = Connection::open_in_memory().map_err(text)?;
    let mut primary: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut keys = Vec::new();
    let head = lines.next().map(json::value).transpose().map_err(|e| e.to_string())?.unwrap_or_default();
    for statement in json::list(&head, "/schema").iter().filter_map(Value::as_str) {
        // Indexes for searching make tables of their own, which the statements hold as well.
        let _ = db.execute_batch(statement);
    }
    for line in lines {
        let row = json::value(line).map_err(|e| e.to_string())?;
        let table = json::text(&row, "/table").unwrap_or_default().to_owned();
        if !primary.contains_key(&table) {
            let query = "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk";
            let mut statement = db.prepare(query).map_err(text)?;
            let columns = statement.query_map([&table], |row| row.get(0)).map_err(text)?;
            primary.insert(table.clone(), columns.collect::<rusqlite::Result<_>>().map_err(text)?);
        }
        // A tree of files has no tables: its rows are known by their paths.
        let otherwise = || if row["row"]["path"].is_null() { "rowid".to_owned() } else { "path".to_owned() };
        let columns = primary[&table].clone();
        let columns = if columns.is_empty() { vec![otherwise()] } else { columns };
        let values: Vec<Value> = columns.iter().map(|column| row["row"][column.as_str()].clone()).collect();
        keys.push((
            table,
            match values.as_slice() {
                [Value::String(one)] => one.clone(),
                [one] => one.to_string(),
                more => Value::from(more.to_vec()).to_string(),
            },
        ));
    }
    Ok(keys)
}

/// Where the records of a kept source stand: lines, or the pieces of a document.
fn records(name: &str, bytes: &[u8]) -> Vec<(u64, u64)> {
    if name == "export" {
        return pieces(&String::from_utf8_lossy(bytes));
    }
    let (mut at, mut found) = (0, Vec::new());
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let text = String::from_utf8_lossy(line);
        if json::value(text.trim()).is_ok() {
            found.push((at as u64, line.trim_ascii_end().len() as u64));
        }
        at += line.len();
    }
    found
}

/// Each `info` and each part of an export, found by how they stand in it: the client indents by two.
fn pieces(text: &str) -> Vec<(u64, u64)> {
    let Ok(document) = json::value(text) else { return Vec::new() };
    let mut found = Vec::new();
    let mut ids = vec![document["info"]["id"].clone()];
    for message in json::list(&document, "/messages") {
        ids.push(message["info"]["id"].clone());
        ids.extend(json::list(message, "/parts").iter().map(|part| part["id"].clone()));
    }
    for id in ids {
        let Some(at) = text.find(&format!("\"id\": {id}")) else { continue };
        // The object around the id: back to its brace, and forward to the one that closes it.
        let Some(start) = enclosing(text, at) else { continue };
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        if let Some(Ok(_)) = values.next() {
            found.push((start as u64, values.byte_offset() as u64));
        }
    }
    found
}

/// The brace that opens the object in which `at` lies. The client's objects are indented, so it stands in the nearest line before
/// that is indented less.
fn enclosing(text: &str, at: usize) -> Option<usize> {
    let line = text[..at].rfind('\n')? + 1;
    let indent = text[line..].len() - text[line..].trim_start_matches(' ').len();
    let mut end = line - 1;
    loop {
        let start = text[..end].rfind('\n').map_or(0, |n| n + 1);
        let own = &text[start..end];
        if own.len() - own.trim_start_matches(' ').len() < indent && own.ends_with('{') {
            return Some(end - 1);
        }
        end = start.checked_sub(1)?;
    }
}

/// The same input, at another place, gives the same bytes.
fn same_again(source: &Path) -> Result<(), String> {
    let (first, second, elsewhere) = (scratch()?, scratch()?, scratch()?);
    let root = if source.is_dir() { source } else { source.parent().unwrap_or(source) };
    for file in layout::files(root) {
        let to = elsewhere.path().join(file.strip_prefix(root).unwrap_or(&file));
        fs::create_dir_all(to.parent().unwrap_or(elsewhere.path())).map_err(|e| e.to_string())?;
        fs::copy(&file, to).map_err(|e| e.to_string())?;
    }
    let copy = elsewhere.path().join(source.strip_prefix(root).unwrap_or(source));
    logs(source, first.path())?;
    logs(&copy, second.path())?;
    let all = |folder: &Path| -> Result<BTreeMap<PathBuf, Vec<u8>>, String> {
        let found = contents(folder)?;
        Ok(found.into_iter().map(|(p, b)| (p.strip_prefix(folder).unwrap_or(&p).to_path_buf(), b)).collect())
    };
    if all(first.path())? == all(second.path())? { Ok(()) } else { Err("other bytes".into()) }
}

/// Every row of every table is kept in the log of its session, or counted as nobody's there.
fn every_row(source: &Path) -> Result<(), String> {
    let into = scratch()?;
    let report = imported(source, into.path())?;
    let counts = counts(source)?;
    let all: u64 = counts.values().sum();
    let mut kept: BTreeMap<String, u64> = BTreeMap::new();
    for log in &report.logs {
        let path = log.path.as_deref().ok_or("a log without a path")?;
        let own = Log::read(path)?;
        let rows = own.sources.get("store").ok_or("no rows are kept")?;
        for line in String::from_utf8_lossy(rows).lines().skip(1) {
            let row = json::value(line).map_err(|e| e.to_string())?;
            *kept.entry(json::text(&row, "/table").unwrap_or_default().to_owned()).or_default() += 1;
        }
        let input = report
            .inputs
            .iter()
            .filter(|i| i.format.ends_with(".sqlite"))
            .find(|i| i.records - i.foreign == log.records);
        let input = input.ok_or_else(|| format!("no report has {} rows of {}", log.records, log.session))?;
        if (input.records, &input.by_type) != (all, &counts) {
            return Err(format!("the report tells of {:?}, and the database has {counts:?}", input.by_type));
        }
    }
    for (table, rows) in &kept {
        if counts.get(table) != Some(rows) {
            return Err(format!("{rows} rows of {table} are kept, of {:?}", counts.get(table)));
        }
    }
    Ok(())
}

/// Every entry of a database of OpenClaw is kept in the log of its session, and the report tells of all rows, those of secrets
/// and those that follow from others as well.
fn every_entry(source: &Path) -> Result<(), String> {
    let into = scratch()?;
    let report = imported(source, into.path())?;
    let counts = counts(source)?;
    let mut kept: BTreeMap<String, u64> = BTreeMap::new();
    for log in &report.logs {
        let own = Log::read(log.path.as_deref().ok_or("a log without a path")?)?;
        for line in String::from_utf8_lossy(own.sources.get("store").ok_or("no rows are kept")?).lines().skip(1) {
            let row = json::value(line).map_err(|e| e.to_string())?;
            *kept.entry(json::text(&row, "/table").unwrap_or_default().to_owned()).or_default() += 1;
        }
    }
    for table in ["transcript_events", "session_windows"] {
        if kept.get(table) != counts.get(table) {
            return Err(format!("{:?} rows of {table} are kept, of {:?}", kept.get(table), counts.get(table)));
        }
    }
    let all: u64 = counts.values().sum();
    for input in report.inputs.iter().filter(|input| input.format == "openclaw.sqlite") {
        if input.records != all {
            return Err(format!("the report tells of {} rows, and the database has {all}", input.records));
        }
    }
    Ok(())
}

/// How many rows each table has.
fn counts(source: &Path) -> Result<BTreeMap<String, u64>, String> {
    let folder = scratch()?;
    let copy = folder.path().join("copy.db");
    for suffix in ["", "-wal"] {
        let beside = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
        if beside(source).is_file() {
            fs::copy(beside(source), beside(&copy)).map_err(|e| e.to_string())?;
        }
    }
    let db = Connection::open(&copy).map_err(|e| e.to_string())?;
    // Indexes for searching are virtual tables, and the tables that fill them.
    let names = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let mut statement = db.prepare(names).map_err(|e| e.to_string())?;
    let names: Vec<String> =
        statement.query_map((), |row| row.get(0)).and_then(Iterator::collect).map_err(|e| e.to_string())?;
    names
        .into_iter()
        .map(|name| {
            let count = db.query_row(&format!("SELECT count(*) FROM \"{name}\""), (), |row| row.get::<_, i64>(0));
            Ok((name, count.map_err(|e| e.to_string())?.unsigned_abs()))
        })
        .collect()
}
