//! What is new or different in a source is appended to its log, which then says what a fresh import says.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use palog::blob::BlobStore;
use palog::diagnostic::Severity;
use palog::project::{At, chat};
use palog::recover::{Context, Verdict, recover};
use palog::reduce::reduce;
use palog::validate::{self, validate};
use palog_import::{Additions, Directory, OntoError, Options, discover, onto};
use tempfile::TempDir;

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance-fixtures/sources")
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Imports the first session at `source` into a directory, and returns its log.
fn import(source: &Path, into: &Path) -> PathBuf {
    let session = discover(source, None).expect("it can be read").sessions.remove(0);
    let report = session.import(&mut Directory::new(into), &Options::default()).expect("it is imported");
    report.logs[0].path.clone().expect("a path")
}

/// Appends to `log` what the first session at `source` has.
fn append(source: &Path, log: &Path) -> Additions {
    let session = discover(source, None).expect("it can be read").sessions.remove(0);
    let report = onto(&session, log, &Options::default()).expect("it is appended");
    let beside: Vec<PathBuf> = fs::read_dir(log.parent().expect("a folder"))
        .expect("it can be read")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".onto-")))
        .collect();
    assert_eq!(beside, Vec::<PathBuf>::new(), "nothing is left beside the log");
    report.logs[0].onto.expect("additions")
}

/// What the model sees, what every call came to, and what is to be done.
fn said(log: &Path) -> (Vec<String>, Vec<String>, Verdict) {
    let open = || File::open(log).expect("the log is there");
    let validation = validate(open(), &validate::Options::new()).expect("it can be read");
    assert_eq!(validation.diagnostics.count(Severity::Error), 0, "{:?}", validation.diagnostics.groups());
    let seen = chat::context(open(), At::Head, Some(&BlobStore::beside(log))).expect("a context");
    let messages = seen.messages.iter().map(|message| message.get().to_owned()).collect();
    let (state, _) = reduce(open()).expect("it can be read");
    let calls = state.actions.iter().map(|a| format!("{} {:?} {:?}", a.action, a.state, a.told)).collect();
    (messages, calls, recover(&state, &Context::new()).verdict)
}

/// Each snapshot is taken onto the log of the one before.
fn goes_on(snapshots: &[&str]) {
    let (grown, fresh) = (folder(), folder());
    let log = import(&sources().join(snapshots[0]), grown.path());
    for (n, snapshot) in snapshots.iter().enumerate().skip(1) {
        let source = sources().join(snapshot);
        let before = fs::read(&log).expect("the log");
        let done = append(&source, &log);
        assert!(done.appended > 0, "{snapshot}: nothing is new");
        assert!(fs::read(&log).expect("the log").starts_with(&before), "{snapshot}: what was written stays");
        let anew = import(&source, &fresh.path().join(n.to_string()));
        assert_eq!(said(&log), said(&anew), "{snapshot}");
        assert_eq!(append(&source, &log), Additions::default(), "{snapshot}: a second time nothing is new");
    }
}

#[test]
fn rows_of_opencode_that_changed_are_taken_in() {
    goes_on(&["opencode/permission_pending_kill9/opencode.db", "opencode/permission_pending_resumed/opencode.db"]);
}

#[test]
fn rows_of_openclaw_that_changed_are_taken_in() {
    let state = |name| format!("openclaw/approval_allowed_kill/{name}");
    let (pending, granted) = (state("pending"), state("granted"));
    goes_on(&[&pending, &granted]);
}

#[test]
fn a_transcript_that_grew_is_taken_in() {
    let state = |name| {
        format!("pi/p10_kill_in_bash/{name}.0.2026-11-29T12-31-44-524Z_01a2274a-358b-75b0-a53f-f3c18df6f23f.jsonl")
    };
    goes_on(&[&state("mid"), &state("final")]);
}

#[test]
fn a_message_that_became_another_one_is_revised_and_one_that_is_gone_is_removed() {
    let (place, logs, anew) = (folder(), folder(), folder());
    let store = place.path().join("opencode.db");
    fs::copy(sources().join("opencode/plain/opencode.db"), &store).expect("a copy");
    let log = import(&store, logs.path());
    let (messages, ..) = said(&log);
    let database = rusqlite::Connection::open(&store).expect("a database");
    let changed = "UPDATE part SET data = json_set(data, '$.text', 'Other words.') WHERE id = (
        SELECT p.id FROM part p JOIN message m ON m.id = p.message_id
        WHERE json_extract(m.data, '$.role') = 'user' AND json_extract(p.data, '$.type') = 'text' ORDER BY p.id LIMIT 1)";
    assert_eq!(database.execute(changed, ()).expect("an update"), 1);
    drop(database);
    let done = append(&store, &log);
    assert_eq!((done.revised, done.removed), (1, 0));
    let (revised, ..) = said(&log);
    assert_ne!(revised, messages);
    assert!(revised[0].contains("Other words."), "{revised:?}");
    assert_eq!(said(&log), said(&import(&store, &anew.path().join("1"))));
    assert_eq!(append(&store, &log), Additions::default());

    let database = rusqlite::Connection::open(&store).expect("a database");
    let last = "(SELECT id FROM message ORDER BY time_created DESC, id DESC LIMIT 1)";
    database
        .execute_batch(&format!("DELETE FROM part WHERE message_id = {last}; DELETE FROM message WHERE id = {last}"))
        .expect("a row goes");
    drop(database);
    let done = append(&store, &log);
    assert_eq!(done.removed, 1);
    assert_eq!(said(&log).0, said(&import(&store, &anew.path().join("2"))).0);
    assert_eq!(append(&store, &log), Additions::default());
    let kept = fs::read_to_string(palog::blob::sibling(&log, "sources").join("store")).expect("kept rows");
    assert!(kept.contains("Other words."), "each form of a row is kept");
}

#[test]
fn the_log_of_another_session_is_left_alone() {
    let logs = folder();
    let log = import(&sources().join("opencode/plain/opencode.db"), logs.path());
    let before = fs::read(&log).expect("the log");
    let other =
        discover(&sources().join("opencode/tools/opencode.db"), None).expect("it can be read").sessions.remove(0);
    let refused = onto(&other, &log, &Options::default()).expect_err("another session");
    assert!(matches!(refused, OntoError::OtherSession(_)), "{refused}");
    assert_eq!(fs::read(&log).expect("the log"), before);
}
