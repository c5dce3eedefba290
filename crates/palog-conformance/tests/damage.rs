//! Fixtures that are damaged, in ways that are the same in every run, and what holds of any bytes at all. `PALOG_DAMAGE` says how
//! often each is damaged.

#[path = "support/anything.rs"]
mod anything;
#[path = "support/fixtures.rs"]
mod fixtures;

use palog_import::Vendor;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

/// Files above this size are left out.
const LARGEST: usize = 64 << 10;

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or(0) % sides.max(1)
    }
}

/// What stands in the place of something else.
const PIECES: &[&[u8]] = &[
    b"\n",
    b"\0",
    b"\xff",
    b"\"",
    b"{",
    b"}",
    b"[",
    b"null",
    b"true",
    b"-1",
    b"1e400",
    b"18446744073709551616",
    b"\"\"",
    b"\\ud800",
    b"#2",
    b"\"type\":\"function_call\",",
    b"\"call_id\":\"c\",",
    b"\"uuid\":\"a\",",
    b"\r\n",
    b"\xef\xbb\xbf",
    b"{\"$blob\":1}",
    b"{\"$omitted\":{}}",
];

/// Damages a source once.
fn damage(source: &mut Vec<u8>, dice: &mut Dice) {
    let lines: Vec<(usize, usize)> = {
        let ends = source.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1);
        let mut from = 0;
        ends.map(|to| (std::mem::replace(&mut from, to), to)).collect()
    };
    let line = |dice: &mut Dice| lines.get(dice.roll(lines.len())).copied().unwrap_or((0, 0));
    match dice.roll(8) {
        0 => {
            let at = dice.roll(source.len());
            if let Some(byte) = source.get_mut(at) {
                *byte = byte.wrapping_add(1 + u8::try_from(dice.roll(255)).unwrap_or(0));
            }
        }
        1 => {
            let (from, to) = line(dice);
            source.drain(from..to);
        }
        2 => {
            let ((from, to), (at, _)) = (line(dice), line(dice));
            let copy = source[from..to].to_vec();
            source.splice(at..at, copy);
        }
        3 => {
            let at = dice.roll(source.len());
            let until = (at + dice.roll(200)).min(source.len());
            source.drain(at..until);
        }
        4 => {
            let at = dice.roll(source.len());
            source.splice(at..at, PIECES[dice.roll(PIECES.len())].to_vec());
        }
        5 => {
            // A value in the place of another one.
            let at = dice.roll(source.len());
            if let Some(colon) = source[at..].iter().position(|b| *b == b':').map(|n| at + n + 1) {
                let end = source[colon..].iter().position(|b| b",}\n".contains(b)).map_or(source.len(), |n| colon + n);
                source.splice(colon..end, PIECES[dice.roll(PIECES.len())].to_vec());
            }
        }
        6 => {
            // One id in the place of another one.
            let ids: Vec<usize> = source
                .windows(7)
                .enumerate()
                .filter(|(_, w)| *w == b"\"id\":\"" || w.ends_with(b"_id\":\""))
                .map(|(at, _)| at + 7)
                .collect();
            if let (Some(from), Some(to)) = (ids.get(dice.roll(ids.len())), ids.get(dice.roll(ids.len()))) {
                let len = |at: usize| source[at..].iter().position(|b| *b == b'"').unwrap_or(0);
                let copy = source[*from..*from + len(*from)].to_vec();
                let end = *to + len(*to);
                source.splice(*to..end, copy);
            }
        }
        _ => source.truncate(dice.roll(source.len())),
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the fixtures").map(|e| e.expect("an entry").path()) {
        if entry.is_dir() { files(&entry, found) } else { found.push(entry) }
    }
}

fn damaged(vendor: Vendor, folder: &str) {
    let times = std::env::var("PALOG_DAMAGE").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    let sources = fixtures::folder().join("sources");
    let mut all = Vec::new();
    [folder, "faults"].iter().for_each(|topic| files(&sources.join(topic), &mut all));
    all.sort();
    let mut checked = 0;
    for path in all {
        let bytes = fs::read(&path).expect("it is there");
        if bytes.len() > LARGEST || Vendor::of(&bytes) != Some(vendor) {
            continue;
        }
        for seed in 0..times {
            let mut dice = Dice((seed + 1u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ bytes.len() as u64 | 1);
            let mut source = bytes.clone();
            for _ in 0..=dice.roll(4) {
                damage(&mut source, &mut dice);
            }
            let copy = source.clone();
            if catch_unwind(|| anything::import(&copy, vendor)).is_err() {
                let kept = std::env::temp_dir().join(format!("palog-damage-{}-{seed}.jsonl", vendor.name()));
                fs::write(&kept, source).expect("it is written");
                panic!("{} with the seed {seed}, kept as {}", path.display(), kept.display());
            }
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked} damaged files");
}

#[test]
fn damaged_transcripts_of_claude_code() {
    damaged(Vendor::ClaudeCode, "claude-code");
}

#[test]
fn damaged_rollouts_of_codex() {
    damaged(Vendor::Codex, "codex");
}

#[test]
fn damaged_files_of_pi() {
    damaged(Vendor::Pi, "pi");
}
