//! Nothing is lost on the way in: every byte of every file is kept and told, the same files give the same bytes, and a
//! file that grew gives a log that grew.

#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "../../palog-cli/src/reference/import.rs"]
mod import;
#[path = "support/layout.rs"]
mod layout;
#[path = "support/memory.rs"]
mod memory;
#[path = "support/valid.rs"]
mod valid;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use import::imported;
use libtest_mimic::{Arguments, Failed, Trial};
use palog_conformance::{Case, Log, json};
use serde_json::Value;
use sha2::{Digest, Sha256};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    match Case::all(&fixtures::folder()) {
        Ok(cases) => {
            let sources: BTreeSet<PathBuf> = cases
                .iter()
                .filter(|case| !layout::is_of_rows(case))
                .filter_map(|c| Some(c.source()?.path.clone()))
                .collect();
            let transcripts: BTreeSet<PathBuf> =
                sources.iter().flat_map(|source| layout::transcripts(source)).collect();
            for source in sources {
                add(&mut trials, "kept and told", source.clone(), kept_and_told);
                add(&mut trials, "same bytes again", source, same_again);
            }
            transcripts.into_iter().for_each(|path| add(&mut trials, "grows", path, grows));
        }
        Err(why) => trials.push(Trial::test("every case can be loaded", move || Err(Failed::from(why)))),
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn add(trials: &mut Vec<Trial>, what: &str, source: PathBuf, test: fn(&Path) -> Result<(), String>) {
    let name = source.strip_prefix(fixtures::folder()).unwrap_or(&source).display().to_string();
    trials.push(Trial::test(format!("{what}: {name}"), move || test(&source).map_err(Failed::from)));
}

fn scratch() -> Result<tempfile::TempDir, String> {
    tempfile::tempdir().map_err(|e| e.to_string())
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// Imports, and reads every log.
fn logs(source: &Path, into: &Path) -> Result<BTreeMap<String, Log>, String> {
    let report = imported(source, into)?;
    let mut logs = BTreeMap::new();
    for log in report.logs {
        let path = log.path.ok_or("a log without a path")?;
        logs.insert(log.session, Log::read(&path)?);
    }
    Ok(logs)
}

/// Every file lies in the kept sources byte for byte, every record is pointed to, and no byte is silent.
fn kept_and_told(source: &Path) -> Result<(), String> {
    let into = scratch()?;
    let logs = logs(source, into.path())?;
    let owned = layout::owned(source);
    let (found, expected): (Vec<_>, Vec<_>) = (logs.keys().collect(), owned.keys().collect());
    if found != expected {
        return Err(format!("sessions {found:?}, and files of {expected:?}"));
    }
    for (session, files) in &owned {
        let log = &logs[session];
        let digests: BTreeSet<String> = log.sources.values().map(|bytes| sha256(bytes)).collect();
        for (path, bytes) in files {
            if !digests.contains(&sha256(bytes)) {
                return Err(format!("{} is not kept byte for byte", path.display()));
            }
        }
        if log.sources.len() != files.len() {
            return Err(format!("{session}: {} sources are kept, of {} files", log.sources.len(), files.len()));
        }
        for (name, bytes) in &log.sources {
            told(log, name, bytes).map_err(|why| format!("{session}: {name}: {why}"))?;
        }
        message_first(log).map_err(|why| format!("{session}: {why}"))?;
    }
    Ok(())
}

/// The message of a record stands before what else the record says (R-ENV-024).
fn message_first(log: &Log) -> Result<(), String> {
    for record in log.records() {
        // An event that several records tell stands where the last of them does.
        let mut own =
            record.events.iter().map(|n| &log.events[*n]).filter(|event| json::list(event, "/src").len() == 1);
        if let Some(at) = own.clone().position(|event| event["type"] == "message.added")
            && at > 0
        {
            let first = own.next().map(|event| event["type"].to_string()).unwrap_or_default();
            return Err(format!("of the record at {} {first} stands before its message", record.at));
        }
    }
    Ok(())
}

/// Every record of a source is pointed to, ranges do not overlap, and what none covers is white space.
fn told(log: &Log, name: &str, bytes: &[u8]) -> Result<(), String> {
    let records: BTreeSet<(u64, u64)> =
        log.records().iter().filter(|r| r.source == name).map(|r| (r.at, r.len)).collect();
    let damage: BTreeSet<(u64, u64)> = log
        .notes(&["fragment", "torn", "hole"])
        .filter(|(source, _, _)| *source == name)
        .map(|(_, at, len)| (at, len))
        .collect();
    for record in whole_records(name, bytes) {
        if !records.contains(&record) {
            return Err(format!("no event points to the record at {record:?}; ranges: {records:?}"));
        }
    }
    let mut end = 0;
    for (at, len) in records.union(&damage) {
        if *at < end {
            return Err(format!("the range at {at} begins before the one before it ends, at {end}"));
        }
        silent(bytes, end, *at)?;
        end = at + len;
    }
    silent(bytes, end, bytes.len() as u64)
}

/// Where whole records stand, as far as that is plain: a line that is a JSON value, or a document.
fn whole_records(name: &str, bytes: &[u8]) -> Vec<(u64, u64)> {
    let trimmed = |at: usize, line: &[u8]| {
        let lead = line.len() - line.trim_ascii_start().len();
        ((at + lead) as u64, line.trim_ascii().len() as u64)
    };
    if !Log::is_main(name) && !["history", "index"].contains(&name) {
        // A document counts without white space around it; any other file as it is.
        let document = ["status/", "tasks/"].iter().any(|role| name.starts_with(role)) || name.ends_with(".meta.json");
        return if bytes.is_empty() {
            Vec::new()
        } else {
            vec![if document { trimmed(0, bytes) } else { (0, bytes.len() as u64) }]
        };
    }
    let (mut at, mut found) = (0, Vec::new());
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let text = String::from_utf8_lossy(line);
        if json::value(text.trim()).is_ok() {
            found.push(trimmed(at, line));
        }
        at += line.len();
    }
    found
}

/// Nothing but white space stands between these offsets.
fn silent(bytes: &[u8], from: u64, to: u64) -> Result<(), String> {
    let range = usize::try_from(from).unwrap_or(usize::MAX)..usize::try_from(to).unwrap_or(usize::MAX);
    match bytes.get(range) {
        Some(gap) if gap.iter().all(u8::is_ascii_whitespace) => Ok(()),
        Some(gap) => Err(format!("nobody tells of {} bytes at {from}: {:?}", gap.len(), String::from_utf8_lossy(gap))),
        None => Err(format!("a range ends at {to}, behind the end of the source")),
    }
}

/// The same files, at another place and a later time, give the same bytes (R-ENV-023).
fn same_again(source: &Path) -> Result<(), String> {
    let (first, second, elsewhere) = (scratch()?, scratch()?, scratch()?);
    let copy = elsewhere.path().join(source.file_name().unwrap_or_default());
    if source.is_dir() {
        for file in layout::files(source) {
            let to = copy.join(file.strip_prefix(source).unwrap_or(&file));
            fs::create_dir_all(to.parent().unwrap_or(&copy)).map_err(|e| e.to_string())?;
            fs::copy(&file, to).map_err(|e| e.to_string())?;
        }
    } else {
        fs::copy(source, &copy).map_err(|e| e.to_string())?;
    }
    logs(source, first.path())?;
    logs(&copy, second.path())?;
    let all = |folder: &Path| -> Result<BTreeMap<PathBuf, Vec<u8>>, String> {
        let read = |path: PathBuf| {
            let bytes = fs::read(&path).map_err(|e| e.to_string())?;
            Ok((path.strip_prefix(folder).unwrap_or(&path).to_path_buf(), bytes))
        };
        layout::files(folder).into_iter().map(read).collect()
    };
    let (first, second) = (all(first.path())?, all(second.path())?);
    if first.keys().ne(second.keys()) {
        return Err(format!("other files: {:?} and {:?}", first.keys(), second.keys()));
    }
    match first.iter().find(|(path, bytes)| second[*path] != **bytes) {
        None => Ok(()),
        Some((path, _)) => Err(format!("{} has other bytes", path.display())),
    }
}

/// Each prefix of whole records gives a log that is a prefix, but for the closing block (R-EVT-002).
fn grows(transcript: &Path) -> Result<(), String> {
    let whole = fs::read(transcript).map_err(|e| e.to_string())?;
    let folder = scratch()?;
    // The client names a transcript by its session.
    let path = folder.path().join(layout::name_of(transcript, &whole));
    fs::write(&path, &whole).map_err(|e| e.to_string())?;
    let full = log_of(&path)?.ok_or("nothing is known in it")?;
    let mut cuts = BTreeSet::new();
    for record in full.main_records() {
        let end = usize::try_from(record.end()).unwrap_or(usize::MAX);
        cuts.insert(end);
        cuts.extend(whole[end..].starts_with(b"\n").then_some(end + 1));
    }
    if cuts.is_empty() {
        return Err("no record to cut behind".into());
    }
    for cut in cuts {
        fs::write(&path, &whole[..cut]).map_err(|e| e.to_string())?;
        let log = log_of(&path)
            .map_err(|why| format!("cut at {cut}: {why}"))?
            .ok_or_else(|| format!("cut at {cut}: no log"))?;
        let open = before_closing_block(&log);
        if !full.bytes.starts_with(open) {
            let line = open.iter().zip(&full.bytes).take_while(|(a, b)| a == b).filter(|(b, _)| **b == b'\n').count();
            let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().nth(line).unwrap_or_default().to_owned();
            return Err(format!(
                "cut at {cut}, line {}:\n  {}\nbecomes\n  {}",
                line + 1,
                show(open),
                show(&full.bytes)
            ));
        }
        if open.len() == log.bytes.len() || log.main_records().is_empty() {
            return Err(format!("cut at {cut}: the log tells of no record, or of no end"));
        }
    }
    Ok(())
}

fn log_of(path: &Path) -> Result<Option<Log>, String> {
    let Some(bytes) = memory::log_of(path)? else { return Ok(None) };
    valid::check(&bytes, None)?;
    Log::parse(bytes).map(Some)
}

/// The bytes of a log up to the first note that the end of a source, or a torn tail, brought about.
fn before_closing_block(log: &Log) -> &[u8] {
    let closing = |event: &Value| {
        event["type"] == "note.added" && (event["data"]["kind"] == "source_end" || event["data"]["kind"] == "torn")
    };
    let open = log.events.iter().take_while(|event| !closing(event)).count();
    let end = log.bytes.split_inclusive(|b| *b == b'\n').take(open).map(<[u8]>::len).sum();
    &log.bytes[..end]
}
