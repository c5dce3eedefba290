//! A disk that takes only a part of a write: the log is left at its old length, and the writer goes on when there is room.
//!
//! A limit on the size of files does to this process what a full disk does; `sh` sets it, since the limit is not to be had
//! from safe code.
#![cfg(unix)]

use std::path::PathBuf;
use std::process::Command;

use palog::envelope::{ActorKind, Draft};
use palog::events::{LogOpened, MessageAdded, Part, Role};
use palog::live::{AppendError, Durability, Expect, LogFile};
use palog::reader::{Item, Reader};

const LOG: &str = "PALOG_TEST_FULL_DISK";

fn message(id: String, size: usize) -> Draft<'static> {
    let (parts, purpose) = (vec![Part::text("x".repeat(size).as_str())], None);
    let message = MessageAdded { role: Role::User, parts, response: None, partial: None, purpose, in_context: None };
    Draft::new(id, ActorKind::User, message)
}

#[test]
fn a_short_write_is_taken_back() {
    match std::env::var_os(LOG).map(PathBuf::from) {
        Some(path) => write_until_full(path),
        None => start_with_a_limit(),
    }
}

fn start_with_a_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("full.palog.jsonl");
    let this = std::env::current_exe().expect("this program");
    // XFSZ is ignored, so that a write over the limit fails instead of ending the process.
    // What it prints goes through a pipe: the limit holds for a file that takes the output of the tests as well.
    let run = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" --exact a_short_write_is_taken_back --nocapture"])
        .arg(this)
        .env(LOG, &path)
        .output()
        .expect("sh");
    assert!(run.status.success(), "{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    let mut log = LogFile::open(&path).expect("open");
    assert_eq!(log.repaired(), None, "no part of a line was left");
    log.append(&mut message("room again".into(), 100_000), Expect::default(), Durability::Sync).expect("append");
}

fn write_until_full(path: PathBuf) {
    let opening = &mut Draft::new("opened", ActorKind::Harness, LogOpened::new("full", "test"));
    let mut log = LogFile::create(&path, "log", opening).expect("create");
    let mut group: Vec<_> = (0..3).map(|n| message(format!("first {n}"), 5_000)).collect();
    let head = log.append_group(&mut group, Expect::default(), Durability::Sync).expect("there is room");
    let before = std::fs::read(&path).expect("read");
    // Lines of 5 kB into the room for a few: the kernel takes some of them whole, and a part of one.
    let mut group: Vec<_> = (0..30).map(|n| message(format!("second {n}"), 5_000)).collect();
    let refused = log.append_group(&mut group, Expect::head(head), Durability::Flush).expect_err("there is no room");
    assert!(matches!(&refused, AppendError::Io(e) if e.kind() == std::io::ErrorKind::FileTooLarge), "{refused:?}");
    assert_eq!(std::fs::read(&path).expect("read"), before);
    let small = &mut message("small".into(), 10);
    assert_eq!(
        log.append(small, Expect::head(head), Durability::Sync).expect("there is room for little").seq,
        head.seq + 1
    );

    let mut reader = Reader::new(std::fs::File::open(&path).expect("open"));
    for seq in 0..=head.seq + 1 {
        assert!(matches!(reader.next().expect("read"), Some(Item::Event(event, _)) if event.seq == seq));
    }
    assert!(reader.next().expect("read").is_none());
}
