//! A log as anybody can read it: JSON lines, and the sources that lie beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::json;

/// A log and its kept sources.
#[derive(Clone, Debug)]
pub struct Log {
    /// Where it lies; empty if it lies nowhere.
    pub path: PathBuf,
    /// The bytes of the log.
    pub bytes: Vec<u8>,
    /// Its events, in order.
    pub events: Vec<Value>,
    /// The kept sources, by name.
    pub sources: BTreeMap<String, Vec<u8>>,
}

/// A record of a source, and the events that point to it.
#[derive(Clone, Debug)]
pub struct Record {
    /// Name of the source.
    pub source: String,
    /// Offset in the source, in bytes.
    pub at: u64,
    /// Length in bytes.
    pub len: u64,
    /// The record as it stands in the kept source; `null` where the source is not kept or the record is no JSON. Of a row of
    /// a database, which has no offset, its table and key.
    pub native: Value,
    /// Places of its events in the log.
    pub events: Vec<usize>,
}

impl Record {
    /// The vendor's id of the record.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        id_of(&self.native)
    }

    /// The offset behind its last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.at + self.len
    }
}

impl Log {
    /// Reads a log.
    ///
    /// # Errors
    /// When a file cannot be read, or a line is no JSON.
    pub fn read(path: &Path) -> Result<Log, String> {
        let fail = |why: String| format!("{}: {why}", path.display());
        let mut log = Log::parse(fs::read(path).map_err(|e| fail(e.to_string()))?).map_err(fail)?;
        let kept = beside(path, "sources");
        if kept.is_dir() {
            gather(&kept, &kept, &mut log.sources).map_err(fail)?;
        }
        log.path = path.into();
        Ok(log)
    }

    /// Takes the bytes of a log, with nothing beside it.
    ///
    /// # Errors
    /// When a line is no JSON.
    pub fn parse(bytes: Vec<u8>) -> Result<Log, String> {
        let text = std::str::from_utf8(&bytes).map_err(|e| e.to_string())?;
        let events =
            text.lines().enumerate().map(|(n, line)| json::value(line).map_err(|e| format!("line {}: {e}", n + 1)));
        let events = events.collect::<Result<Vec<_>, _>>()?;
        Ok(Log { path: PathBuf::new(), events, sources: BTreeMap::new(), bytes })
    }

    /// Id of the log.
    #[must_use]
    pub fn id(&self) -> &str {
        self.events.first().and_then(|event| json::text(event, "/log")).unwrap_or_default()
    }

    /// The event with this id.
    #[must_use]
    pub fn event(&self, id: &str) -> Option<&Value> {
        self.events.iter().find(|event| event["id"] == id)
    }

    /// The events of a type, in order.
    pub fn of_type<'l>(&'l self, kind: &'l str) -> impl Iterator<Item = &'l Value> {
        self.events.iter().filter(move |event| event["type"] == kind)
    }

    /// The sources that hold the conversation: the transcript, those that reverts began, or that of the subagent; rows, an
    /// export, recorded events.
    #[must_use]
    pub fn is_main(source: &str) -> bool {
        matches!(source, "transcript" | "store" | "export" | "events")
            || source.starts_with("revert/")
            || source.starts_with("agent/")
    }

    /// The records that events point to, in the order in which the log first does.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        let mut records: Vec<Record> = Vec::new();
        let mut known: BTreeMap<(String, String, u64, u64), usize> = BTreeMap::new();
        let rows: BTreeMap<&str, Rows> =
            self.sources.iter().map(|(name, bytes)| (name.as_str(), rows(bytes))).collect();
        for (n, event) in self.events.iter().enumerate() {
            for src in json::list(event, "/src") {
                let Some(source) = json::text(src, "/source") else { continue };
                let row = json::text(src, "/table").zip(json::text(src, "/key"));
                let row = row.map(|(table, key)| (table.to_owned(), key.to_owned()));
                let span = json::count(src, "/at").zip(json::count(src, "/len"));
                let kept = row.as_ref().and_then(|row| rows.get(source)?.get(row).copied());
                let Some((at, len)) = span.or(kept).or(row.as_ref().map(|_| (0, 0))) else { continue };
                let name = row.as_ref().map(|(table, key)| format!("{table} {key}")).unwrap_or_default();
                let index = *known.entry((source.to_owned(), name, at, len)).or_insert_with(|| {
                    let slice = self.slice(source, at, len);
                    let mut native =
                        slice.and_then(|b| json::value(&String::from_utf8_lossy(b)).ok()).unwrap_or_default();
                    if let Some((table, key)) = row {
                        native["table"] = table.into();
                        native["key"] = key.into();
                    }
                    records.push(Record { source: source.into(), at, len, native, events: Vec::new() });
                    records.len() - 1
                });
                if records[index].events.last() != Some(&n) {
                    records[index].events.push(n);
                }
            }
        }
        records
    }

    /// The records of the conversation.
    #[must_use]
    pub fn main_records(&self) -> Vec<Record> {
        // What is told of bytes that are no record points to them as well.
        let damage: BTreeSet<(u64, u64)> =
            self.notes(&["fragment", "torn", "hole"]).map(|(_, at, len)| (at, len)).collect();
        let main = |r: &Record| Self::is_main(&r.source) && !damage.contains(&(r.at, r.len));
        self.records().into_iter().filter(main).collect()
    }

    /// Bytes of a kept source.
    #[must_use]
    pub fn slice(&self, source: &str, at: u64, len: u64) -> Option<&[u8]> {
        let (at, len) = (usize::try_from(at).ok()?, usize::try_from(len).ok()?);
        self.sources.get(source)?.get(at..at.checked_add(len)?)
    }

    /// Source, offset and length of what notes of these kinds tell of.
    pub fn notes<'l>(&'l self, kinds: &'l [&str]) -> impl Iterator<Item = (&'l str, u64, u64)> {
        let notes = self.of_type("note.added").map(|event| &event["data"]);
        notes.filter(|note| json::text(note, "/kind").is_some_and(|kind| kinds.contains(&kind))).filter_map(|note| {
            Some((json::text(note, "/source")?, json::count(note, "/at")?, json::count(note, "/len")?))
        })
    }

    /// The native record of an event.
    #[must_use]
    pub fn native(&self, event: &Value) -> Option<Value> {
        let src = json::list(event, "/src").first()?;
        let bytes = self.slice(json::text(src, "/source")?, json::count(src, "/at")?, json::count(src, "/len")?)?;
        json::value(&String::from_utf8_lossy(bytes)).ok()
    }

    /// The vendor's id of the record of an event.
    #[must_use]
    pub fn native_id(&self, event: &Value) -> Option<String> {
        id_of(&self.native(event)?).map(str::to_owned)
    }

    /// The content of a value that stands in the log or in a blob beside it.
    #[must_use]
    pub fn content(&self, value: &Value) -> Option<Vec<u8>> {
        if let Some(digest) = json::text(value, "/$blob") {
            let hex = digest.strip_prefix("sha256:")?;
            return fs::read(beside(&self.path, "blobs").join("sha256").join(hex.get(..2)?).join(hex)).ok();
        }
        value.as_str().map(|text| text.as_bytes().to_vec())
    }
}

/// The vendor's id of a record: its own, that of the item in its envelope, or that of an entry in a tree.
fn id_of(native: &Value) -> Option<&str> {
    let entry = || json::text(native, "/id").filter(|_| native.get("parentId").is_some());
    json::text(native, "/uuid").or_else(|| json::text(native, "/payload/id")).or_else(entry)
}

/// Where rows stand in a kept source, by table and key.
type Rows = BTreeMap<(String, String), (u64, u64)>;

/// The rows of a kept source. What a key is made of is known by the names of columns.
fn rows(bytes: &[u8]) -> Rows {
    let (mut rows, mut at) = (Rows::new(), 0);
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let text = String::from_utf8_lossy(line);
        if let Some(row) = text.starts_with("{\"table\":").then(|| json::value(&text).ok()).flatten() {
            let table = json::text(&row, "/table").unwrap_or_default();
            let own = |column: &str| json::text(&row, column).map(str::to_owned);
            let position = json::count(&row, "/row/position")
                .and_then(|n| Some(format!("[{},{n}]", Value::from(json::text(&row, "/row/session_id")?))));
            let key = own("/row/id").or_else(|| own("/row/path")).or(position).or_else(|| own("/row/session_id"));
            rows.insert((table.to_owned(), key.unwrap_or_default()), (at, line.trim_ascii_end().len() as u64));
        }
        at += line.len() as u64;
    }
    rows
}

/// The vendor's kind of a record in the words of a truth: its type, with that of what an envelope holds behind it; the table
/// of a row; of a piece of an export what it is by its members.
pub(crate) fn kind_of(record: &Record) -> String {
    let native = &record.native;
    match record.source.as_str() {
        "store" => return json::text(native, "/table").unwrap_or("?").to_owned(),
        "export" if !native["table"].is_null() => return json::text(native, "/table").unwrap_or("?").to_owned(),
        "export" if !native["messageID"].is_null() => return "part".into(),
        "export" if !native["role"].is_null() => return "message".into(),
        "export" => return "info".into(),
        _ => {}
    }
    let outer = json::text(native, "/type");
    if let Some(mark) = json::text(native, "/record_type") {
        return format!("record_type:{mark}");
    }
    if let (Some("message"), Some(role)) = (outer, json::text(native, "/message/role")) {
        return format!("message/{role}");
    }
    match (outer, json::text(native, "/payload/type")) {
        (Some(outer), Some(inner)) => format!("{outer}/{inner}"),
        (Some(outer), None) => outer.to_owned(),
        (None, _) if !native["id"].is_null() => "header".into(),
        (None, _) => "?".into(),
    }
}

/// `NAME.palog.<what>` beside `NAME.palog.jsonl`.
fn beside(log: &Path, what: &str) -> PathBuf {
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    log.with_file_name(format!("{}.{what}", name.strip_suffix(".jsonl").unwrap_or(&name)))
}

fn gather(root: &Path, folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) -> Result<(), String> {
    let fail = |e: std::io::Error| format!("{}: {e}", folder.display());
    for entry in fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.is_dir() {
            gather(root, &path, found)?;
        } else {
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            found.insert(name, fs::read(&path).map_err(fail)?);
        }
    }
    Ok(())
}
