//! Two processes write one log and are killed at random: no acknowledged event is lost, no line is one that a reader
//! rejects, and no event stands twice. A third process's view, that of a follower, is checked all along.
//!
//! `PALOG_KILLS` sets the number of kills (1000 in CI, fewer by default), `PALOG_SEED` repeats the decisions of a run.

#![expect(clippy::print_stderr, reason = "a run tells its seed and what it met")]

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use palog::blob::{BlobState, BlobStore};
use palog::cursor::Cursor;
use palog::envelope::{ActorKind, Draft};
use palog::events::{Data, LogOpened, MessageAdded, Part, Role};
use palog::follow::Follow;
use palog::live::{Durability, Expect, LogFile, OpenError, draft, new_id};
use palog::reader::{Item, Reader};

/// Set for the processes that write: the folder that they write in.
const FOLDER: &str = "PALOG_TEST_FOLDER";

/// xorshift64*: enough to vary what is done.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) % sides
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn message(text: &str) -> Draft<'static> {
    let (parts, purpose) = (vec![Part::text(text)], None);
    let message = MessageAdded { role: Role::User, parts, response: None, partial: None, purpose, in_context: None };
    draft(ActorKind::User, message)
}

fn log_path(folder: &Path) -> PathBuf {
    folder.join("two.palog.jsonl")
}

/// The writing process. It does nothing unless the test below started it.
#[test]
fn writer() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let mut dice = Dice(number("PALOG_SEED").unwrap_or(1) | 1);
    let acknowledged = folder.join(format!("acknowledged.{}", std::process::id()));
    let mut acknowledged =
        OpenOptions::new().create(true).append(true).open(acknowledged).expect("a file for what was acknowledged");
    loop {
        let mut log = match LogFile::open(log_path(&folder)) {
            Ok(log) => log,
            Err(OpenError::Locked) => {
                std::thread::sleep(Duration::from_micros(200));
                continue;
            }
            Err(error) => panic!("{error} {error:?}"),
        };
        for _ in 0..=dice.roll(6) {
            write(&mut log, &mut dice, &mut acknowledged);
        }
        drop(log);
        std::thread::sleep(Duration::from_micros(dice.roll(500)));
    }
}

/// Appends one event or several, and tells that they are acknowledged once they are.
fn write(log: &mut LogFile, dice: &mut Dice, acknowledged: &mut File) {
    let size = match dice.roll(60) {
        0..4 => 700_000,
        4..8 => 20_000,
        _ => dice.roll(200) as usize,
    };
    let text = "x".repeat(size);
    let count = if dice.roll(4) == 0 { 1 + dice.roll(5) } else { 1 };
    let mut drafts: Vec<_> = (0..count).map(|_| message(&text)).collect();
    if dice.roll(25) == 0 {
        die_in_mid_write(log, &mut drafts[0], dice);
    }
    let durability = if dice.roll(20) == 0 { Durability::Sync } else { Durability::Flush };
    let first = log.next_seq();
    let head = log.append_group(&mut drafts, Expect::head(log.head()), durability).expect("append");
    assert_eq!(head.seq + 1, first + count);
    let lines: String = drafts.iter().zip(first..).map(|(draft, seq)| format!("{seq} {}\n", draft.id)).collect();
    acknowledged.write_all(lines.as_bytes()).expect("tell");
}

/// A kill rarely meets a small write half done, since the kernel copies a page at once. So this writes a part of a line
/// itself, as a kill in mid write leaves it, and dies with the lock held.
fn die_in_mid_write(log: &LogFile, draft: &mut Draft<'_>, dice: &mut Dice) -> ! {
    let mut line = palog::writer::Writer::new(Vec::new(), log.log(), palog::writer::Bulk::Inline);
    line.append(draft).expect("a line");
    let line = line.finish().expect("a line");
    let part = &line[..1 + dice.roll(line.len() as u64 - 1) as usize];
    let mut file = OpenOptions::new().append(true).open(log.path()).expect("the log");
    file.write_all(part).expect("write");
    std::process::abort();
}

fn start(folder: &Path, seed: u64) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "writer", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .env("PALOG_SEED", seed.to_string())
        .stdout(Stdio::null())
        .spawn()
        .expect("a writer")
}

/// Follows the log until `done` and the end; every line comes once, whole, and in order.
fn follow(path: &Path, done: &AtomicBool) -> Vec<Cursor> {
    let mut follow = Follow::open(path).expect("follow");
    let mut cursors = Vec::new();
    loop {
        let last_look = done.load(Ordering::Acquire);
        while let Some(item) = follow.next().expect("the log does not diverge") {
            let Item::Event(event, line) = item else { panic!("a reader rejects a line: {item:?}") };
            assert_eq!(event.seq, cursors.len() as u64);
            cursors.push(Cursor::of(event.seq, line.bytes));
            if cursors.len() % 1000 == 999 {
                let last = follow.cursor().expect("a cursor");
                follow = Follow::after(path, &last).expect("it goes on");
            }
        }
        if last_look {
            return cursors;
        }
        follow.wait(Duration::from_millis(20)).expect("the log does not diverge");
    }
}

#[test]
fn two_writers_killed_at_random_lose_nothing() {
    let kills = number("PALOG_KILLS").unwrap_or(150);
    let seed = number("PALOG_SEED").unwrap_or_else(|| {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |t| t.as_nanos() as u64)
    });
    eprintln!("PALOG_SEED={seed} PALOG_KILLS={kills}");
    let mut dice = Dice(seed | 1);
    let folder = tempfile::tempdir().expect("a folder");
    let path = log_path(folder.path());
    let opening = LogOpened::new("two-writers", "test");
    drop(LogFile::create(&path, new_id(), &mut draft(ActorKind::Harness, opening)).expect("create"));

    let done = AtomicBool::new(false);
    let began = Instant::now();
    let followed = std::thread::scope(|scope| {
        let follower = scope.spawn(|| follow(&path, &done));
        // Whatever happens here, the follower must come to an end.
        let _done = SetOnDrop(&done);
        kill_at_random(folder.path(), kills, &mut dice);
        drop(_done);
        follower.join().expect("the follower")
    });
    eprintln!("killed in {:?}", began.elapsed());
    let torn_at_the_end = LogFile::open(&path).expect("it opens").repaired().is_some();
    let counts = check(folder.path(), &followed, torn_at_the_end);
    eprintln!("{counts}");
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn kill_at_random(folder: &Path, kills: u64, dice: &mut Dice) {
    let mut writers = [start(folder, dice.0), start(folder, !dice.0)];
    for kill in 0..kills {
        std::thread::sleep(Duration::from_micros(3_000 + dice.roll(30_000)));
        let writer = &mut writers[dice.roll(2) as usize];
        // One that died by itself counts as well; a panic does not.
        writer.kill().expect("kill");
        let status = writer.wait().expect("wait");
        assert_eq!(status.code(), None, "a writer failed: {status}");
        *writer = start(folder, dice.0 ^ kill << 32);
    }
    for mut writer in writers {
        writer.kill().expect("kill");
        assert_eq!(writer.wait().expect("wait").code(), None);
    }
}

/// Reads the log from the beginning and compares it with what was acknowledged and with what the follower saw.
fn check(folder: &Path, followed: &[Cursor], torn_at_the_end: bool) -> String {
    let path = log_path(folder);
    let store = BlobStore::beside(&path);
    let mut reader = Reader::new(File::open(&path).expect("the log"));
    let (mut ids, mut cursors, mut torn) = (Vec::new(), Vec::new(), 0);
    while let Some(item) = reader.next().expect("read") {
        let Item::Event(event, line) = item else { panic!("a reader rejects a line: {item:?}") };
        assert_eq!(event.seq, ids.len() as u64, "the seqs have no gap");
        if let Data::NoteAdded(note) = event.data().expect("a payload") {
            let digest = note.digest.expect("the digest of the tail");
            let size = note.len.expect("its length");
            assert_eq!(store.verify(&digest).expect("verify"), BlobState::Whole { size }, "the tail is kept");
            torn += 1;
        }
        ids.push(event.id.to_string());
        cursors.push(Cursor::of(event.seq, line.bytes));
    }
    let distinct: HashSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "no id stands twice");
    assert_eq!(followed, &cursors[..cursors.len() - usize::from(torn_at_the_end)], "the follower saw what is there");

    let mut acknowledged = HashMap::new();
    for entry in fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        if !path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("acknowledged.")) {
            continue;
        }
        let text = fs::read_to_string(path).expect("what was acknowledged");
        // What was told half was acknowledged too, but nobody can say what it was.
        for line in text.split_inclusive('\n').filter_map(|l| l.strip_suffix('\n')) {
            let (seq, id) = line.split_once(' ').expect("a seq and an id");
            let seq: usize = seq.parse().expect("a seq");
            assert_eq!(ids.get(seq).map(String::as_str), Some(id), "the acknowledged event {seq} is lost");
            assert!(acknowledged.insert(seq, id.to_owned()).is_none(), "seq {seq} was acknowledged twice");
        }
    }
    assert!(!acknowledged.is_empty(), "somebody wrote");
    let size = fs::metadata(&path).expect("the log").len();
    format!("{} events in {size} bytes, {} acknowledged, {torn} torn tails repaired", ids.len(), acknowledged.len())
}
