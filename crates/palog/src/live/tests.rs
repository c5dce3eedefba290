use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use super::*;
use crate::blob::BlobState;
use crate::diagnostic::Code;
use crate::envelope::{ActorKind, Draft};
use crate::events::{Data, LogClosed, LogEnd, LogOpened, MessageAdded, NoteAdded, Part, Role, TurnStarted};
use crate::json::{BlobRef, Raw, Value};
use crate::reader::{Item, Reader};

struct Scene {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.palog.jsonl");
        Scene { folder, path }
    }

    fn create(&self) -> LogFile {
        LogFile::create(&self.path, "log", &mut opening()).expect("create")
    }

    fn open(&self) -> LogFile {
        LogFile::open(&self.path).expect("open")
    }

    /// A log with `count` events, closed again.
    fn with(count: u64) -> Self {
        let scene = Scene::new();
        let mut log = scene.create();
        for n in 1..count {
            log.append(&mut event(n), Expect::default(), Durability::Buffered).expect("append");
        }
        drop(log);
        scene
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).expect("read")
    }

    fn write(&self, bytes: &[u8]) {
        fs::write(&self.path, bytes).expect("write");
    }

    fn add(&self, bytes: &[u8]) {
        File::options().append(true).open(&self.path).expect("open").write_all(bytes).expect("write");
    }

    /// Seq, id and type of every event; the log must have no fault.
    fn events(&self) -> Vec<(u64, String, String)> {
        let mut reader = Reader::new(File::open(&self.path).expect("open"));
        let mut events = Vec::new();
        while let Some(item) = reader.next().expect("read") {
            let Item::Event(event, _) = item else { panic!("{item:?}") };
            event.data().expect("a payload");
            events.push((event.seq, event.id.to_string(), event.kind.to_string()));
        }
        assert!(events.iter().enumerate().all(|(n, (seq, ..))| n as u64 == *seq));
        events
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("read").map(|e| e.expect("an entry").file_name());
        let mut names: Vec<_> = entries.map(|n| n.into_string().expect("a name")).collect();
        names.sort();
        names
    }

    fn refusal(&self) -> Option<Code> {
        let before = (self.bytes(), self.names());
        let error = LogFile::open(&self.path).expect_err("it is refused");
        assert_eq!((self.bytes(), self.names()), before, "a refusal changes nothing");
        error.code()
    }
}

fn opening() -> Draft<'static> {
    Draft::new("opened", ActorKind::Harness, LogOpened::new("session", "agent"))
}

fn event(n: u64) -> Draft<'static> {
    Draft::new(format!("e{n}"), ActorKind::Harness, TurnStarted { turn: Some(n.to_string().into()), message: None })
}

fn message(id: &'static str, text: &str) -> Draft<'static> {
    let (parts, purpose) = (vec![Part::text(text)], None);
    let message = MessageAdded { role: Role::User, parts, response: None, partial: None, purpose, in_context: None };
    Draft::new(id, ActorKind::User, message)
}

fn note(n: u64) -> Draft<'static> {
    let (text, about, source) = (Some("a note".into()), None, None);
    let (at, len, digest, records, terminated, bytes) = (None, None, None, None, None, None);
    let kind = "test".into();
    let note = NoteAdded { kind, text, about, source, at, len, digest, records, terminated, bytes };
    Draft::new(format!("n{n}"), ActorKind::Harness, note)
}

fn closing() -> Draft<'static> {
    Draft::new("closed", ActorKind::Harness, LogClosed { how: LogEnd::Complete, reason: None })
}

const ANY: Expect = Expect { head: None, epoch: None };

#[test]
fn a_log_is_created_once_and_has_its_opening_from_the_start() {
    let scene = Scene::new();
    let wrong = LogFile::create(&scene.path, "log", &mut event(0)).expect_err("no opening");
    assert_eq!(wrong.code(), Some(Code::NotOpened));
    let mut newer = opening();
    let Data::LogOpened(opened) = &mut newer.data else { panic!("an opening") };
    opened.spec = "1.99".into();
    let newer = LogFile::create(&scene.path, "log", &mut newer).expect_err("not ours to write");
    assert_eq!(newer.code(), Some(Code::NewerMinor));
    let log = scene.create();
    assert_eq!((log.head().seq, log.next_seq(), log.log()), (0, 1, "log"));
    assert_eq!(scene.events(), [(0, "opened".into(), "log.opened".into())]);
    assert_eq!(scene.names(), ["a.palog.jsonl"]);
    let again = LogFile::create(&scene.path, "log", &mut opening()).expect_err("it is there");
    assert!(matches!(again, OpenError::Io(e) if e.kind() == std::io::ErrorKind::AlreadyExists));
    assert_eq!(scene.names(), ["a.palog.jsonl"]);
}

// R-BYT-022.
#[test]
fn one_writes_and_all_can_read() {
    let scene = Scene::new();
    let mut log = scene.create();
    assert!(matches!(LogFile::open(&scene.path), Err(OpenError::Locked)));
    log.append(&mut event(1), ANY, Durability::Flush).expect("append");
    assert_eq!(scene.events().len(), 2);
    drop(log);
    assert_eq!(scene.open().head().seq, 1);
}

#[cfg(unix)]
#[test]
fn the_lock_holds_under_any_name_and_a_copy_is_free() {
    let scene = Scene::new();
    let mut log = scene.create();
    let [link, moved, copy] = ["link", "moved", "copy"].map(|n| scene.folder.path().join(n));
    std::os::unix::fs::symlink(&scene.path, &link).expect("link");
    assert!(matches!(LogFile::open(&link), Err(OpenError::Locked)));
    fs::copy(&scene.path, &copy).expect("copy");
    LogFile::open(&copy).expect("a copy is another file");
    fs::rename(&scene.path, &moved).expect("move");
    assert!(matches!(LogFile::open(&moved), Err(OpenError::Locked)));
    log.append(&mut event(1), ANY, Durability::Sync).expect("it is the same log");
    drop(log);
    assert_eq!(LogFile::open(&moved).expect("open").head().seq, 1);
}

// R-BYT-024.
#[test]
fn an_append_is_refused_where_the_head_is_another() {
    let scene = Scene::new();
    let mut log = scene.create();
    let first = log.head();
    let second = log.append(&mut event(1), Expect::head(first), Durability::Flush).expect("append");
    for stale in [Expect::head(first), Expect::head(0), Expect::head(7), Expect::head(Cursor { seq: 1, ..first })] {
        let refused = log.append(&mut event(2), stale, Durability::Flush).expect_err("refused");
        assert!(matches!(refused, AppendError::HeadMoved { head } if head == second), "{refused:?}");
    }
    drop(log);
    let mut log = scene.open();
    log.append(&mut event(2), Expect::head(second), Durability::Flush).expect("append");
    log.append(&mut event(3), Expect::head(2), Durability::Flush).expect("append");
    assert_eq!(scene.events().len(), 4);
}

/// R-EVT-015
#[test]
fn an_acquisition_is_written_under_its_own_epoch_and_so_is_what_follows() {
    let scene = Scene::new();
    let mut log = scene.create();
    let acquired = |epoch| crate::events::LeaseAcquired { epoch, holder: "w".into(), ttl: None };
    let mut lease = Draft::new("l1", ActorKind::Harness, acquired(4));
    log.append(&mut lease, ANY, Durability::Flush).expect("nobody holds it");
    assert_eq!((lease.epoch, log.epoch()), (Some(4), Some(4)));
    let mut next = event(1);
    log.append(&mut next, ANY, Durability::Flush).expect("the holder goes on");
    assert_eq!(next.epoch, Some(4));
    let refused = log.append(&mut Draft::new("l2", ActorKind::Harness, acquired(3)), ANY, Durability::Flush);
    assert!(matches!(refused.expect_err("stale"), AppendError::StaleEpoch { newest: 4 }));
}

#[test]
fn a_lower_epoch_is_refused_and_the_newest_is_given_on() {
    let scene = Scene::new();
    let mut log = scene.create();
    let mut lease = event(1);
    lease.epoch = Some(3);
    log.append(&mut event(0), ANY, Durability::Flush).expect("there is no epoch yet");
    log.append(&mut lease, ANY, Durability::Flush).expect("a lease");
    drop(log);
    let mut log = scene.open();
    assert_eq!(log.epoch(), Some(3));
    let mut unmarked = event(2);
    log.append(&mut unmarked, ANY, Durability::Flush).expect("append");
    assert_eq!(unmarked.epoch, Some(3));
    let refused = log.append(&mut event(3), ANY.epoch(2), Durability::Flush).expect_err("stale");
    assert!(matches!(refused, AppendError::StaleEpoch { newest: 3 }));
    let mut marked = event(3);
    marked.epoch = Some(2);
    log.append(&mut marked, ANY, Durability::Flush).expect_err("stale");
    log.append(&mut marked, ANY.epoch(4), Durability::Flush).expect_err("stale, whatever the caller holds");
    log.append(&mut event(4), ANY.epoch(4), Durability::Flush).expect("a newer lease");
    log.append(&mut event(5), ANY.epoch(3), Durability::Flush).expect_err("the old one is void now");
    assert_eq!((log.epoch(), log.next_seq()), (Some(4), 5));
}

// R-BYT-025.
#[test]
fn a_group_is_accepted_as_a_whole_or_not_at_all() {
    let scene = Scene::new();
    let mut log = scene.create();
    let head = log.append_group(&mut [event(1), event(2), event(3)], ANY, Durability::Sync).expect("append");
    assert_eq!(head.seq, 3);
    let before = scene.bytes();
    let refused = log.append_group(&mut [event(4), closing(), event(5)], ANY, Durability::Sync);
    assert!(matches!(refused, Err(AppendError::Closed)));
    let refused = log.append_group(&mut [event(4), opening()], ANY, Durability::Sync);
    assert!(matches!(refused, Err(AppendError::OpenedTwice)));
    assert_eq!((scene.bytes(), log.head()), (before, head));
    log.append_group(&mut [event(4), closing(), note(1)], ANY, Durability::Sync).expect("append");
    log.append(&mut note(2), ANY, Durability::Sync).expect("notes may follow");
    log.append(&mut event(6), ANY, Durability::Sync).expect_err("nothing else may");
    let other = Data::Other("x.org.example/kind".into(), Raw::of(&0));
    log.append(&mut Draft::new("other", ActorKind::Harness, other), ANY, Durability::Sync)
        .expect_err("nothing else may");
    assert_eq!(scene.events().len(), 8);
}

// R-BYT-004 and R-BYT-026.
#[test]
fn what_is_buffered_comes_with_a_flush_a_sync_the_end_or_when_it_is_much() {
    let scene = Scene::new();
    let mut log = scene.create();
    log.append(&mut event(1), ANY, Durability::Buffered).expect("append");
    assert_eq!((scene.events().len(), log.head().seq), (1, 1));
    log.flush(Durability::Flush).expect("flush");
    assert_eq!(scene.events().len(), 2);
    log.append(&mut event(2), Expect::head(1), Durability::Buffered).expect("append");
    log.append(&mut event(3), Expect::head(2), Durability::Sync).expect("append");
    assert_eq!(scene.events().len(), 4);
    let text = "x".repeat(1 << 16);
    for id in ["m1", "m2", "m3", "m4", "m5"] {
        log.append(&mut message(id, &text), ANY, Durability::Buffered).expect("append");
    }
    assert_eq!(scene.events().len(), 9);
    log.append(&mut event(9), ANY, Durability::Buffered).expect("append");
    drop(log);
    assert_eq!(scene.events().len(), 10);
}

// R-BYT-010 and R-BYT-012.
#[test]
fn long_values_move_to_blobs_and_a_missing_blob_is_refused() {
    let scene = Scene::new();
    let mut log = scene.create();
    let text = "y".repeat(3 << 20);
    let mut long = message("long", &text);
    log.append(&mut long, ANY, Durability::Sync).expect("append");
    let Data::MessageAdded(MessageAdded { parts, .. }) = &long.data else { panic!("a message") };
    let Part::Text { text: Value::Blob(blob) } = &parts[0] else { panic!("a blob") };
    assert_eq!(log.blobs().get(&blob.digest).expect("get"), text.as_bytes());
    let mut lost = message("lost", "");
    let Data::MessageAdded(data) = &mut lost.data else { panic!("a message") };
    let digest = crate::blob::digest(b"never put");
    let blob = BlobRef { digest: digest.clone().into(), size: 9, media: "text/plain".into(), name: None };
    data.parts = vec![Part::Text { text: Value::Blob(blob) }];
    let refused = log.append(&mut lost, ANY, Durability::Flush).expect_err("refused");
    assert!(matches!(refused, AppendError::BlobMissing { digest: missing } if missing == digest));
    log.blobs().put(b"never put", "text/plain", None).expect("put");
    log.append(&mut lost, ANY, Durability::Sync).expect("append");
    assert_eq!(scene.events().len(), 3);
}

#[test]
fn a_line_over_the_limit_is_refused() {
    let scene = Scene::new();
    let mut log = scene.create();
    let turn = "t".repeat(crate::writer::LINE_HARD_LIMIT);
    let mut long = Draft::new("e", ActorKind::Harness, TurnStarted { turn: Some(turn.into()), message: None });
    let refused = log.append(&mut long, ANY, Durability::Flush).expect_err("refused");
    assert_eq!(refused.code(), Some(Code::LineTooLong));
    log.append(&mut event(1), ANY, Durability::Flush).expect("append");
    assert_eq!(scene.events().len(), 2);
}

// R-BYT-005 and R-BYT-006.
#[test]
fn a_torn_tail_is_kept_and_named_wherever_it_was_cut() {
    let scene = Scene::with(3);
    let whole = scene.bytes();
    let keep = whole[..whole.len() - 1].iter().rposition(|b| *b == b'\n').expect("a line") + 1;
    for end in (keep..whole.len()).step_by(9).chain([whole.len() - 1, whole.len()]) {
        scene.write(&whole[..end]);
        let mut log = scene.open();
        let torn = &whole[keep..end];
        if torn.is_empty() || end == whole.len() {
            assert_eq!(log.repaired(), None);
            continue;
        }
        let repaired = log.repaired().expect("repaired").clone();
        assert_eq!((repaired.at, repaired.len), (keep as u64, torn.len() as u64));
        assert_eq!(log.blobs().get(&repaired.digest).expect("get"), torn);
        log.append(&mut event(9), ANY, Durability::Flush).expect("append");
        let events = scene.events();
        assert_eq!(events[2].2, "note.added");
        assert_eq!(events[3].1, "e9");
        assert_eq!(scene.bytes()[..keep], whole[..keep]);
    }
}

#[test]
fn a_torn_tail_of_any_kind_is_kept() {
    let tails: [Vec<u8>; 4] = [vec![0; 300 << 10], vec![b'x'; 2_000_000], vec![0xff], br#"{"palog":1}"#.to_vec()];
    for tail in tails {
        let scene = Scene::with(3);
        scene.add(&tail);
        let log = scene.open();
        let repaired = log.repaired().expect("repaired");
        assert_eq!(log.blobs().verify(&repaired.digest).expect("verify"), BlobState::Whole { size: tail.len() as u64 });
        assert_eq!(scene.events().len(), 4);
        assert_eq!(log.head().seq, 3);
        drop(log);
        assert_eq!(scene.open().repaired(), None);
    }
}

#[test]
fn a_repair_keeps_links_and_epochs() {
    let scene = Scene::new();
    let mut log = scene.create().linked();
    let mut lease = event(1);
    lease.epoch = Some(3);
    log.append(&mut lease, ANY, Durability::Flush).expect("append");
    drop(log);
    scene.add(b"torn");
    let mut log = scene.open();
    log.append(&mut event(2), ANY, Durability::Flush).expect("append");
    drop(log);
    let text = String::from_utf8(scene.bytes()).expect("text");
    let lines: Vec<_> = text.lines().collect();
    for pair in lines.windows(2) {
        assert!(pair[1].contains(&format!(r#""prev":"{}""#, crate::blob::sha256_hex(pair[0].as_bytes()))));
        assert!(pair[1].contains(r#""epoch":3"#));
    }
    assert_eq!(lines.len(), 4);
}

// R-BYT-023.
#[test]
fn what_must_not_be_appended_to_is_refused() {
    let opened = |spec: &str, palog: u32| {
        format!(
            r#"{{"palog":{palog},"log":"log","seq":0,"id":"o","type":"log.opened","time":null,"actor":{{"kind":"harness"}},"data":{{"spec":"{spec}","session":"s","agent":{{"name":"a"}}}}}}"#
        )
    };
    let line = |log: &str, seq: u64, kind: &str| {
        format!(
            r#"{{"palog":1,"log":"{log}","seq":{seq},"id":"e{seq}","type":"{kind}","time":null,"actor":{{"kind":"harness"}},"data":{{}}}}"#
        )
    };
    let good = opened("1.0", 1);
    let other = r#"{"a":1}"#;
    let turn = |log: &str, seq| line(log, seq, "turn.started");
    let cases: [(Vec<String>, Code); 14] = [
        (vec![opened("1.1", 1)], Code::NewerMinor),
        (vec![opened("1.10-rc", 1), turn("log", 1)], Code::NewerMinor),
        (vec![opened("2.0", 1)], Code::UnsupportedVersion),
        (vec![opened("2.0", 2)], Code::UnsupportedVersion),
        (vec![opened("one", 1)], Code::BadPayload),
        (vec![turn("log", 0)], Code::NotOpened),
        (vec![other.into()], Code::BadEnvelope),
        (vec![good.clone(), "garbage".into()], Code::BadJson),
        (vec![good.clone(), String::new()], Code::BadJson),
        (vec![good.clone(), other.into(), turn("log", 1)], Code::BadEnvelope),
        (vec![good.clone(), turn("log", 2)], Code::SeqGap),
        (vec![good.clone(), turn("log", 1), turn("log", 1).replace("e1", "f1")], Code::SeqConflict),
        (vec![good.clone(), turn("other", 1)], Code::OtherLog),
        (vec![good.clone(), line("log", 1, "log.closed"), line("log", 2, "note.added")], Code::Closed),
    ];
    for (lines, code) in cases {
        let scene = Scene::new();
        let bytes: String = lines.iter().map(|l| format!("{l}\n")).collect();
        scene.write(bytes.as_bytes());
        assert_eq!(scene.refusal(), Some(code), "{lines:?}");
        scene.add(b"torn");
        assert_eq!(scene.refusal(), Some(code), "with a torn tail: {lines:?}");
    }
    for bytes in [&b""[..], b"torn", &good.as_bytes()[..20]] {
        let scene = Scene::new();
        scene.write(bytes);
        assert_eq!(scene.refusal(), Some(Code::NotOpened));
    }
    let scene = Scene::new();
    scene.write(format!("{good}\n{}\n{}\n", turn("log", 1), opened("1.0-draft", 1)).as_bytes());
    assert_eq!(scene.refusal(), Some(Code::SeqConflict), "the opening stands in another place");
    scene.write(format!("{good}\n{1}\n{0}\n{1}\n", turn("log", 2), turn("log", 1)).as_bytes());
    assert_eq!(scene.open().head().seq, 2, "a repeated line is no error");
}

#[test]
fn a_log_closed_long_ago_is_refused() {
    let scene = Scene::new();
    let mut log = scene.create();
    log.append(&mut closing(), ANY, Durability::Flush).expect("append");
    for n in 0..2000 {
        log.append(&mut note(n), ANY, Durability::Buffered).expect("append");
    }
    drop(log);
    assert_eq!(scene.refusal(), Some(Code::Closed));
}

#[test]
fn a_long_log_goes_on_where_it_ended() {
    let scene = Scene::with(5000);
    assert!(scene.bytes().len() > 10 << 16);
    let mut log = scene.open();
    assert_eq!(log.append(&mut event(5000), ANY, Durability::Flush).expect("append").seq, 5000);
    log.append(&mut message("long", &"z".repeat(1_000_000)), ANY, Durability::Flush).expect("append");
    let head = log.head();
    drop(log);
    assert_eq!(scene.open().head(), head);
    assert_eq!(scene.events().len(), 5002);
}

#[test]
fn a_failed_write_leaves_the_log_as_it_was() {
    let scene = Scene::new();
    let mut log = scene.create();
    log.append(&mut event(1), ANY, Durability::Buffered).expect("append");
    let (before, head) = (scene.bytes(), log.head());
    let out = log.break_writes();
    assert!(matches!(log.append(&mut event(2), ANY, Durability::Flush), Err(AppendError::Io(_))));
    assert_eq!((scene.bytes(), log.head()), (before, head));
    log.mend_writes(out);
    log.append(&mut event(3), Expect::head(head), Durability::Sync).expect("append");
    let ids: Vec<_> = scene.events().into_iter().map(|e| e.1).collect();
    assert_eq!(ids, ["opened", "e1", "e3"], "what was buffered before is still written");
}

#[test]
fn a_write_that_cannot_be_taken_back_poisons_the_writer() {
    let scene = Scene::new();
    let mut log = scene.create();
    let out = log.break_writes();
    let file = log.break_repairs();
    assert!(matches!(log.append(&mut event(1), ANY, Durability::Flush), Err(AppendError::Io(_))));
    log.mend_writes(out);
    assert!(matches!(log.append(&mut event(1), ANY, Durability::Flush), Err(AppendError::Poisoned)));
    drop((log, file));
    scene.open().append(&mut event(1), ANY, Durability::Flush).expect("opened again, it goes on");
}

// R-BYT-027.
#[test]
fn whoever_ignores_the_lock_is_noticed() {
    let foreign = |seq: u64| {
        format!(
            r#"{{"palog":1,"log":"log","seq":{seq},"id":"f{seq}","type":"turn.started","time":null,"actor":{{"kind":"harness"}},"data":{{}}}}"#
        )
    };
    let refused = |log: &mut LogFile| {
        let error = log.append(&mut event(1), ANY, Durability::Flush).expect_err("refused");
        assert_eq!(error.code(), Some(Code::ForeignWrite), "{error:?}");
    };
    let scene = Scene::new();
    let mut log = scene.create();
    let head = log.head();
    scene.add(format!("{}\n{}\n", foreign(1), foreign(2)).as_bytes());
    let moved = log.append(&mut event(3), Expect::head(head), Durability::Flush).expect_err("refused");
    assert!(matches!(moved, AppendError::HeadMoved { head } if head == Cursor::of(2, foreign(2).as_bytes())));
    log.append(&mut event(3), ANY, Durability::Flush).expect("it goes on behind what was added");
    assert_eq!(scene.events().len(), 4);
    let whole = scene.bytes();
    scene.add(b"in mid write");
    refused(&mut log);
    scene.write(&whole);
    scene.add(format!("{}\n", foreign(9)).as_bytes());
    refused(&mut log);
    scene.write(&whole[..whole.len() - 1]);
    refused(&mut log);
    scene.write(&whole);
    log.append(&mut event(4), ANY, Durability::Buffered).expect("append");
    scene.add(format!("{}\n", foreign(4)).as_bytes());
    refused(&mut log);
    #[cfg(unix)]
    {
        scene.write(&whole);
        fs::remove_file(&scene.path).expect("remove");
        refused(&mut log);
    }
}

// R-BYT-020.
#[test]
fn a_cursor_goes_on_and_tells_a_log_that_diverged() {
    use crate::reader::ResumeError;
    let scene = Scene::with(4);
    let mut log = scene.open();
    let cursor = log.head();
    log.append_group(&mut [event(4), event(5)], ANY, Durability::Flush).expect("append");
    let after = |cursor: &Cursor| Reader::after(File::open(&scene.path).expect("open"), cursor);
    let mut reader = after(&cursor).expect("after");
    for seq in [4, 5] {
        let Ok(Some(Item::Event(event, line))) = reader.next() else { panic!("an event") };
        assert_eq!((event.seq, line.number), (seq, seq + 1));
    }
    assert!(reader.next().expect("read").is_none());
    assert!(after(&log.head()).expect("after").next().expect("read").is_none());
    for diverged in [Cursor { seq: 2, ..cursor }, Cursor { seq: 99, ..cursor }, Cursor { sha256: [0; 32], ..cursor }] {
        let Err(ResumeError::Diverged(diagnostic)) = after(&diverged) else { panic!("it diverged") };
        assert_eq!((diagnostic.code, diagnostic.rule), (Code::Diverged, Some("R-BYT-020")));
    }
}
