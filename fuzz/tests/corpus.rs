//! Without a fuzzer: what the targets check holds for every log and every transcript of the fixtures, and for each of them cut,
//! doubled and damaged in a few places. `corpus/` and `artifacts/` are replayed where they are.

use std::fs;
use std::path::{Path, PathBuf};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// Files below `folder` of this size at most, without those that stand twice.
fn inputs(folder: &str, wanted: impl Fn(&str) -> bool) -> Vec<Vec<u8>> {
    let (root, mut found) = (Path::new(env!("CARGO_MANIFEST_DIR")), Vec::new());
    files(&root.join(folder), &mut found);
    let read = |path: PathBuf| wanted(&path.to_string_lossy()).then(|| fs::read(path).expect("a file"));
    let mut all: Vec<Vec<u8>> = found.into_iter().filter_map(read).filter(|bytes| bytes.len() < 1 << 16).collect();
    all.sort();
    all.dedup();
    all
}

fn damaged(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![bytes.to_vec(), [bytes, bytes].concat()];
    for n in 1..8 {
        let at = bytes.len() * n / 8;
        all.push(bytes[..at].to_vec());
        all.push([&bytes[..at], b"\0", &bytes[at..]].concat());
        all.push([&bytes[..at], &bytes[(at + 40).min(bytes.len())..]].concat());
    }
    all
}

fn replay(target: fn(&[u8]), name: &str, seeds: Vec<Vec<u8>>) {
    assert!(seeds.len() > 20, "{} seeds", seeds.len());
    let kept = [format!("corpus/{name}"), format!("artifacts/{name}")].iter().flat_map(|place| inputs(place, |_| true)).collect::<Vec<_>>();
    seeds.iter().flat_map(|seed| damaged(seed)).chain(kept).for_each(|bytes| target(&bytes));
}

#[test]
fn reader() {
    replay(palog_fuzz::reader, "reader", inputs("../conformance-fixtures", |path| path.ends_with(".palog.jsonl")));
}

#[test]
fn claude_code() {
    let transcript = |path: &str| path.ends_with(".jsonl") && !path.contains(".palog.");
    replay(palog_fuzz::claude_code, "claude_code", inputs("../conformance-fixtures/sources", transcript));
}
