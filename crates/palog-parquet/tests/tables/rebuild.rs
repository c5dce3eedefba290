//! `events` alone gives back the lines of every log, byte for byte; the tables agree with each other and with the reducer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{import_all, integers, read, rebuild, rows, strings};
use palog::envelope::Event;
use palog::recover::{Context, recover};
use palog::reduce::reduce;
use palog_parquet::{Input, Options, Table, export};

/// The id of the log in a file.
fn id(bytes: &[u8]) -> String {
    let line = bytes.split(|b| *b == b'\n').next().expect("a line");
    Event::parse(std::str::from_utf8(line).expect("text")).expect("an event").log.to_string()
}

fn inputs(logs: &[PathBuf]) -> Vec<Input> {
    logs.iter().map(Input::path).collect()
}

/// Compares a dataset with the logs that it was made from.
fn compare(dataset: &Path, logs: &[PathBuf]) {
    let events = read(dataset, Table::Events);
    let originals: BTreeMap<String, Vec<u8>> =
        logs.iter().map(|path| fs::read(path).expect("a log")).map(|bytes| (id(&bytes), bytes)).collect();
    assert_eq!(originals.len(), logs.len());
    assert!(rebuild(&events) == originals, "the lines differ");

    let (sessions, actions) = (read(dataset, Table::Sessions), read(dataset, Table::Actions));
    let ids = strings(&sessions, "log");
    assert_eq!(ids.iter().flatten().cloned().collect::<BTreeSet<_>>(), originals.keys().cloned().collect());
    let of_events = strings(&events, "log");
    let of_actions = strings(&actions, "log");
    let (states, names) = (strings(&actions, "state"), strings(&actions, "action"));
    for (row, log) in ids.iter().flatten().enumerate() {
        let (state, _) = reduce(&originals[log][..]).expect("memory can be read");
        let verdict = recover(&state, &Context::new()).verdict;
        assert_eq!(strings(&sessions, "verdict")[row].as_deref(), Some(verdict.word()), "{log}");
        let expected: Vec<_> = state.actions.iter().map(|a| (a.action.clone(), a.state.word().to_owned())).collect();
        let found: Vec<_> = (0..rows(&actions))
            .filter(|at| of_actions[*at].as_ref() == Some(log))
            .map(|at| (names[at].clone().expect("an id"), states[at].clone().expect("a state")))
            .collect();
        assert_eq!(found, expected, "{log}");
        // Usage is counted once: what the lines add makes up what the session says.
        let usage = &state.usage;
        for (column, total) in [
            ("input", usage.input),
            ("output", usage.output),
            ("cache_read", usage.cache_read),
            ("cache_write", usage.cache_write),
            ("reasoning", usage.reasoning),
        ] {
            let counted = integers(&events, &format!("counted_{column}"));
            let added: Vec<i64> = counted
                .iter()
                .zip(&of_events)
                .filter(|(_, of)| of.as_ref() == Some(log))
                .filter_map(|(n, _)| *n)
                .collect();
            let sum = (!added.is_empty()).then(|| added.iter().sum::<i64>());
            let total = total.map(|n| i64::try_from(n.0).expect("small"));
            assert_eq!(sum, total, "{log} {column}");
            assert_eq!(integers(&sessions, &format!("usage_{column}"))[row], total, "{log} {column}");
        }
    }
}

#[test]
fn every_log_of_the_fixtures_comes_back() {
    let scratch = tempfile::tempdir().expect("a directory");
    let groups = import_all(&scratch.path().join("logs"));
    assert!(groups.len() > 90, "only {} snapshots", groups.len());
    let mut once = BTreeMap::new();
    for (at, logs) in groups.iter().enumerate() {
        let dataset = scratch.path().join(format!("dataset-{at}"));
        let report = export(&inputs(logs), &dataset, &Options::default()).expect("exported");
        assert_eq!((report.added, report.troubles.len()), (logs.len() as u64, 0), "{logs:?}: {:?}", report.troubles);
        compare(&dataset, logs);
        for log in logs {
            once.entry(id(&fs::read(log).expect("a log"))).or_insert_with(|| log.clone());
        }
    }
    // All in one dataset, in partitions and without; the order of the inputs changes nothing.
    let mut logs: Vec<PathBuf> = once.into_values().collect();
    assert!(logs.len() > 90, "only {} logs", logs.len());
    for (vendor, month) in [(false, false), (true, true)] {
        let mut options = Options::default();
        options.partitions = palog_parquet::Partitions { vendor, month };
        let [one, other] = ["one", "other"].map(|name| scratch.path().join(format!("{name}-{vendor}")));
        export(&inputs(&logs), &one, &options).expect("exported");
        compare(&one, &logs);
        logs.reverse();
        options.threads = 1;
        export(&inputs(&logs), &other, &options).expect("exported");
        assert_eq!(content(&one), content(&other));
    }
}

/// The files of a dataset and their bytes.
fn content(dataset: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = Table::ALL.into_iter().flat_map(|table| crate::common::files(dataset, table));
    files
        .map(|path| (path.strip_prefix(dataset).expect("below").to_owned(), fs::read(&path).expect("a file")))
        .collect()
}

#[test]
fn the_golden_logs_of_the_corpus_come_back() {
    fn below(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                below(&path, found);
            } else if fs::read(&path).expect("a file").starts_with(b"{\"palog\":") {
                found.push(path);
            }
        }
    }
    let mut logs = Vec::new();
    below(&crate::common::fixtures().join("golden/1.0"), &mut logs);
    assert_eq!(logs.len(), 7, "{logs:?}");
    for log in &logs {
        let dataset = tempfile::tempdir().expect("a directory");
        export(&[Input::path(log)], dataset.path(), &Options::default()).expect("exported");
        let bytes = fs::read(log).expect("a log");
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let back: Vec<Vec<u8>> = rebuild(&read(dataset.path(), Table::Events)).into_values().collect();
        assert_eq!(back, [bytes[..whole].to_vec()], "{}", log.display());
    }
}
