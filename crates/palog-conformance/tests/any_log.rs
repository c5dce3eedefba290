//! Every log of the cases, as it is, cut, doubled and damaged: what holds of any bytes at all holds of each.

#[path = "support/any_log.rs"]
mod any_log;
#[path = "support/fixtures.rs"]
mod fixtures;

use std::fs;
use std::path::{Path, PathBuf};

fn logs(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            logs(&path, found);
        } else if path.to_string_lossy().ends_with(".palog.jsonl") {
            found.push(path);
        }
    }
}

#[test]
fn what_holds_of_any_bytes_holds_of_every_log_and_of_what_damage_makes_of_it() {
    let mut paths = Vec::new();
    logs(&fixtures::folder(), &mut paths);
    let mut all: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).expect("a log")).collect();
    all.sort();
    all.dedup();
    assert!(all.len() > 150, "{} logs", all.len());
    for (n, log) in all.iter().enumerate() {
        any_log::read(log);
        any_log::read(&[log.as_slice(), log].concat());
        any_log::read(&[log.as_slice(), &all[(n + 1) % all.len()]].concat());
        for part in 1..6 {
            let at = log.len() * part / 6;
            any_log::read(&[&log[..at], b"\0", &log[at..]].concat());
            any_log::read(&[&log[..at], &log[(at + 40).min(log.len())..]].concat());
        }
    }
}
