//! The logs of every released minor have the state and the recovery that they always had; and a reader of 1.0 makes of an
//! invented 1.1 what the specification says (R-ENV-012, R-ENV-015, R-ENV-018).

#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "../../palog-cli/src/reference/import.rs"]
mod import;
#[path = "support/reference.rs"]
mod reference;
#[path = "support/valid.rs"]
mod valid;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use palog::diagnostic::Code;
use palog::reader::{Lines, Next};
use palog_conformance::{Implementation, World, json};
use reference::Reference;
use serde_json::Value;
use sha2::{Digest, Sha256};

fn folder(minor: &str) -> PathBuf {
    fixtures::folder().join("golden").join(minor)
}

/// The logs of a minor version.
fn logs(minor: &str) -> Vec<PathBuf> {
    let names = fs::read_dir(folder(minor)).expect("golden logs").map(|entry| entry.expect("an entry").path());
    let mut logs: Vec<PathBuf> = names.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    logs.sort();
    assert!(!logs.is_empty());
    logs
}

fn beside(log: &Path, what: &str) -> Value {
    let name = log.to_string_lossy().replace("palog.jsonl", what);
    json::value(&fs::read_to_string(&name).unwrap_or_else(|e| panic!("{name}: {e}"))).expect("JSON")
}

/// A document without the members that are for people.
fn plain(mut value: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|name, _| !["why", "reason", "text"].contains(&name.as_str()));
                members.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    value
}

#[test]
fn golden_logs_have_the_state_and_the_recovery_that_they_always_had() {
    for minor in ["1.0", "1.1"] {
        for log in logs(minor) {
            let state = Reference.state(&log).expect("a state")["state"].clone();
            assert_eq!(plain(state), plain(beside(&log, "state.json")), "{}", log.display());
            let recovery = Reference.recovery(&log, &World::default()).expect("a recovery");
            assert_eq!(plain(recovery), plain(beside(&log, "recovery.json")), "{}", log.display());
        }
    }
}

#[test]
fn golden_logs_never_change() {
    for minor in ["1.0", "1.1"] {
        let sums = fs::read_to_string(folder(minor).join("SHA256SUMS")).expect("digests");
        let known: BTreeSet<(String, String)> = sums
            .lines()
            .filter_map(|line| line.split_once("  "))
            .map(|(sum, name)| (name.into(), sum.into()))
            .collect();
        let found = logs(minor).into_iter().map(|log| {
            let sum = Sha256::digest(fs::read(&log).expect("a log")).iter().map(|b| format!("{b:02x}")).collect();
            (log.file_name().unwrap_or_default().to_string_lossy().into_owned(), sum)
        });
        assert_eq!(found.collect::<BTreeSet<_>>(), known);
    }
}

#[test]
fn golden_logs_are_valid() {
    for log in logs("1.0") {
        let late: &[_] = if log.ends_with("work.palog.jsonl") { &[(Code::LateWrite, 1)] } else { &[] };
        valid::check_but(&fs::read(&log).expect("a log"), Some(&log), late)
            .unwrap_or_else(|why| panic!("{}: {why}", log.display()));
    }
}

/// Every type of event of this version stands in a golden log.
#[test]
fn golden_logs_have_every_type() {
    let text: String = logs("1.0").iter().map(|log| fs::read_to_string(log).expect("a log")).collect();
    let missing: Vec<&&str> =
        palog::events::Data::NAMES.iter().filter(|kind| !text.contains(&format!("\"type\":\"{kind}\""))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// A newer minor is read as far as it can be; what has to be understood stops it; and its lines stay as they are.
#[test]
fn an_upgrade_is_a_view() {
    let newer = folder("1.1").join("ignorable.palog.jsonl");
    let text = fs::read_to_string(&newer).expect("a log");
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let older = scratch.path().join("older.palog.jsonl");
    // The same session as 1.0 would have written it.
    let lines = text.lines().filter(|line| !line.contains("weather.reported")).enumerate().map(|(seq, line)| {
        let was = json::value(line).expect("JSON")["seq"].to_string();
        line.replacen(&format!("\"seq\":{was}"), &format!("\"seq\":{seq}"), 1)
            .replace("\"spec\":\"1.1\"", "\"spec\":\"1.0\"")
            .replace(",\"confidence\":\"high\"", "")
            .replace(",\"region\":\"eu\"", "")
    });
    fs::write(&older, lines.flat_map(|line| [line, "\n".into()]).collect::<String>()).expect("a log");
    let view = |log: &Path| {
        let mut state = Reference.state(log).expect("a state")["state"].clone();
        state["spec"] = Value::Null;
        state["counts"]["events"] = Value::Null;
        (
            state.to_string().replace("\"seq\":\"8\"", "\"seq\":\"7\""),
            Reference.recovery(log, &World::default()).expect("a recovery"),
        )
    };
    assert_eq!(view(&newer), view(&older));

    let found = Reference.validate(&newer).expect("a validation");
    let codes: Vec<(&str, &str)> = json::list(&found, "/diagnostics")
        .iter()
        .map(|found| {
            (json::text(found, "/code").unwrap_or_default(), json::text(found, "/severity").unwrap_or_default())
        })
        .collect();
    assert_eq!(codes, [("version.newer_minor", "info"), ("schema.unknown_type", "info")]);

    let critical =
        Reference.recovery(&folder("1.1").join("critical.palog.jsonl"), &World::default()).expect("a recovery");
    assert_eq!(critical["verdict"], "indeterminate");

    let (mut reader, mut copy) = (Lines::new(text.as_bytes()), Vec::new());
    while let Next::Line(line) = reader.next_line().expect("memory can be read") {
        copy.extend_from_slice(line.bytes);
        copy.push(b'\n');
    }
    assert_eq!(copy, text.as_bytes());
}
