//! One fault each, on a log that is valid without it.

use serde_json::{Value, json};

use super::{Options, Validation, validate};
use crate::blob::{BlobStore, digest, sha256_hex};
use crate::diagnostic::{Code, Severity};
use crate::reduce::tests::Log;
use crate::writer::LINE_HARD_LIMIT;

fn check(bytes: &[u8]) -> Validation {
    validate(bytes, &Options::new()).expect("memory can be read")
}

/// What is found: code, severity, rule.
fn found(bytes: impl AsRef<[u8]>) -> Vec<(Code, Severity, &'static str)> {
    let groups = check(bytes.as_ref()).diagnostics.groups().to_vec();
    groups.iter().map(|g| (g.code, g.severity, g.rule.unwrap_or("none"))).collect()
}

fn sound() -> Log {
    Log::live().prompt("p").answer("r")
}

#[track_caller]
fn finds(log: &Log, code: Code, severity: Severity, rule: &'static str) {
    assert_eq!(found(log.text()), [(code, severity, rule)]);
}

#[test]
fn a_sound_log_has_nothing_to_say() {
    let text = sound().text();
    let validation = check(text.as_bytes());
    assert!(validation.diagnostics.is_empty() && validation.is_valid());
    assert_eq!((validation.events, validation.bytes), (5, text.len() as u64));
    assert_eq!(validation.log.as_deref(), Some("l"));
    assert!(check(b"").diagnostics.is_empty());
}

/// R-BYT-001, R-BYT-002, R-BYT-003, R-BYT-005, R-BYT-011
#[test]
fn faults_of_the_bytes() {
    let with = |extra: &[u8]| [sound().text().as_bytes(), extra].concat();
    assert_eq!(found(with(b"\xff\n")), [(Code::InvalidUtf8, Severity::Error, "R-BYT-001")]);
    assert_eq!(
        found(["\u{feff}".as_bytes(), b"{}\n"].concat())[0],
        (Code::ByteOrderMark, Severity::Error, "R-BYT-002")
    );
    assert_eq!(found(sound().text().replace('\n', "\r\n"))[0], (Code::CarriageReturn, Severity::Error, "R-BYT-002"));
    assert_eq!(found(with(b"{\n")), [(Code::BadJson, Severity::Error, "R-BYT-003")]);
    assert_eq!(found(with(b"{}{}\n")).len(), 1);
    assert_eq!(found(with(b"{\"palog\":1")), [(Code::TornTail, Severity::Warning, "R-BYT-005")]);
    assert!(check(&with(b"{\"palog\":1")).is_valid());
    let long = [vec![b' '; LINE_HARD_LIMIT + 1], b"\n".to_vec()].concat();
    assert_eq!(found(with(&long))[0].0, Code::LineTooLong, "R-BYT-011");
}

/// R-ENV-001, R-ENV-002
#[test]
fn faults_of_the_envelope() {
    finds(
        &sound().with("note.added", json!({"kind": "x"}), json!({"palog": 2})),
        Code::UnsupportedVersion,
        Severity::Error,
        "R-ENV-001",
    );
    finds(
        &sound().with("note.added", json!({"kind": "x"}), json!({"actor": null})),
        Code::BadEnvelope,
        Severity::Error,
        "R-ENV-002",
    );
    finds(
        &sound().with("note.added", json!({"kind": "x"}), json!({"time": "yesterday"})),
        Code::BadEnvelope,
        Severity::Error,
        "R-ENV-002",
    );
}

/// R-ENV-003, R-ENV-004, R-ENV-005, R-ENV-016
#[test]
fn faults_of_the_order() {
    let note = || json!({"kind": "x"});
    finds(&Log::default().add("note.added", note()), Code::NotOpened, Severity::Error, "R-ENV-003");
    finds(&sound().with("note.added", note(), json!({"log": "m"})), Code::OtherLog, Severity::Error, "R-ENV-004");
    finds(&sound().with("note.added", note(), json!({"seq": 9})), Code::SeqGap, Severity::Error, "R-ENV-005");
    finds(&sound().with("note.added", note(), json!({"seq": 1})), Code::SeqConflict, Severity::Error, "R-ENV-005");
    let repeated = sound().lines[2].clone();
    finds(&sound().line(&repeated), Code::SeqRepeated, Severity::Warning, "R-ENV-005");
    finds(
        &sound().add("log.closed", json!({"how": "complete"})).prompt("q"),
        Code::AfterClose,
        Severity::Warning,
        "R-ENV-016",
    );
}

/// R-ENV-006
#[test]
fn times_that_run_backwards_are_told_once() {
    let at = |log: Log, time: &str| log.with("note.added", json!({"kind": "x"}), json!({"time": time}));
    let log = at(at(at(sound(), "2026-01-01T00:00:02Z"), "2026-01-01T00:00:01Z"), "2026-01-01T00:00:00Z");
    finds(&log, Code::TimeBackwards, Severity::Info, "R-ENV-006");
    assert_eq!(check(log.text().as_bytes()).diagnostics.count(Severity::Info), 1);
}

/// R-ENV-007
#[test]
fn ids_are_short_and_unique() {
    finds(&sound().user("p", json!({})), Code::DuplicateId, Severity::Error, "R-ENV-007");
    finds(&sound().user(&"i".repeat(129), json!({})), Code::BadEnvelope, Severity::Error, "R-ENV-007");
    finds(&sound().user("", json!({})), Code::BadEnvelope, Severity::Error, "R-ENV-007");
    assert_eq!(found(sound().user(&"i".repeat(128), json!({})).text()), []);
}

/// R-ENV-001
#[test]
fn the_version_comes_first() {
    let note = json!({"kind": "x"});
    let note = sound().with("note.added", note, json!({})).lines[5].clone();
    let moved = note.replacen("{\"palog\":1,", "{\"ignorable\":true,\"palog\":1,", 1);
    finds(&sound().line(&moved), Code::BadEnvelope, Severity::Error, "R-ENV-001");
    assert_eq!(found(sound().line(&moved.replace("\"ignorable\":true,", " ")).text()), []);
}

/// R-ENV-019
#[test]
fn native_records_are_of_a_source_that_is_open() {
    let src = |name: &str| json!({"src": [{"source": name, "at": 0, "len": 1}]});
    let log = || Log::imported(&[]);
    assert_eq!(found(log().user("p", src("main")).text()), []);
    finds(&log().user("p", src("other")), Code::SourceNotOpened, Severity::Warning, "R-ENV-019");
}

/// R-ACT-002
#[test]
fn a_digest_is_that_of_the_arguments() {
    let args = r#"{"n":1.0, "n":2}"#;
    let blob = |digest: &str| json!({"$blob": digest, "size": 16, "media": "application/json"});
    let with = |value: &str, digest: &str| {
        let log = sound().propose("a", json!({"args": "ARGS", "args_digest": digest}));
        found(log.text().replace("\"ARGS\"", value))
    };
    let mismatch = [(Code::ArgsMismatch, Severity::Error, "R-ACT-002")];
    let right = digest(args.as_bytes());
    assert_eq!(with(args, &right), []);
    assert_eq!(with(args, &digest(br#"{"n":2}"#)), mismatch);
    assert_eq!(with(&json!({"$literal": "ARGS"}).to_string(), &digest(b"\"ARGS\"")), []);
    assert_eq!(with(&blob(&right).to_string(), &right), []);
    assert_eq!(with(&blob(&digest(b"else")).to_string(), &right), mismatch);
    assert_eq!(with(r#"{"$omitted":{"reason":"redacted"}}"#, &right), []);
}

/// R-ENV-008
#[test]
fn prev_names_the_line_before() {
    let note = json!({"kind": "x"});
    let log = sound();
    let prev = sha256_hex(log.lines[4].as_bytes());
    assert_eq!(found(log.clone().with("note.added", note.clone(), json!({"prev": prev})).text()), []);
    let older = sha256_hex(log.lines[3].as_bytes());
    finds(&log.with("note.added", note, json!({"prev": older})), Code::PrevMismatch, Severity::Error, "R-ENV-008");
}

/// R-ENV-009
#[test]
fn parents_and_causes_are_in_the_log() {
    finds(&sound().user("q", json!({"parent": "gone"})), Code::MissingParent, Severity::Warning, "R-ENV-009");
    finds(&sound().user("q", json!({"cause": ["gone"]})), Code::MissingCause, Severity::Warning, "R-ENV-009");
    let fine = sound().user("q", json!({"parent": "later", "cause": ["p"]})).user("later", json!({"parent": "root"}));
    assert_eq!(found(fine.text()), []);
}

/// R-ENV-012, R-ENV-013, R-ENV-014, R-ENV-015
#[test]
fn faults_of_types_and_payloads() {
    let empty = || json!({});
    finds(&sound().add("lease.flown", empty()), Code::UnknownCritical, Severity::Error, "R-ENV-012");
    finds(
        &sound().with("lease.flown", empty(), json!({"ignorable": true})),
        Code::UnknownType,
        Severity::Info,
        "R-ENV-012",
    );
    assert_eq!(found(sound().add("x.org.example/kept", empty()).text()), []);
    finds(&sound().add("action.ended", json!({"action": "a"})), Code::BadPayload, Severity::Error, "R-ENV-013");
    for both_or_neither in [empty(), json!({"window": [], "pruned": []})] {
        finds(&sound().add("context.compacted", both_or_neither), Code::BadPayload, Severity::Error, "R-ENV-013");
    }
    assert_eq!(found(sound().add("context.compacted", json!({"window": []})).text()), []);
    finds(&sound().add("x.kept", empty()), Code::BadType, Severity::Error, "R-ENV-014");
    let newer = Log::opened(json!({"spec": "1.7"}));
    finds(&newer, Code::NewerMinor, Severity::Info, "R-ENV-015");
}

/// R-BYT-012, R-BYT-013
#[test]
fn blobs_lie_beside_the_log() {
    let folder = std::env::temp_dir().join(format!("palog-validate-{}", std::process::id()));
    let store = BlobStore::beside(&folder.join("log.palog.jsonl"));
    let blob = |digest: &str, size: u64| -> Value { json!({"$blob": digest, "size": size, "media": "text/plain"}) };
    let log = |value: Value| {
        Log::live().add("message.added", json!({"role": "user", "parts": [{"type": "text", "text": value}]}))
    };
    let check = |log: &Log| {
        let options = Options::new().with_blobs(&store);
        let found = validate(log.text().as_bytes(), &options).expect("memory can be read").diagnostics;
        found.groups().iter().map(|g| (g.code, g.rule)).collect::<Vec<_>>()
    };
    let rule = Some("R-BYT-012");
    assert_eq!(check(&log(blob(&digest(b"there"), 5))), [(Code::MissingBlob, rule)]);
    store.put(b"there", "text/plain", None).expect("the temporary folder can be written");
    assert_eq!(check(&log(blob(&digest(b"there"), 5))), []);
    assert_eq!(check(&log(blob(&digest(b"there"), 6))), [(Code::BlobMismatch, rule)]);
    assert_eq!(check(&log(blob("md5:1", 5))), [(Code::BadPayload, rule)]);
    std::fs::write(store.path(&digest(b"there")).expect("a digest"), b"other").expect("the blob can be changed");
    assert_eq!(check(&log(blob(&digest(b"there"), 5))), [(Code::BlobMismatch, Some("R-BYT-013"))]);
    std::fs::remove_dir_all(folder).expect("the temporary folder can be removed");
}

/// R-OWN-001, R-OWN-003
#[test]
fn late_writes_and_missing_epochs_are_reported_and_block_nothing() {
    let late = sound().lease(2).under(1, "note.added", json!({"kind": "x"}));
    finds(&late, Code::LateWrite, Severity::Void, "R-OWN-001");
    assert!(check(late.text().as_bytes()).is_valid());
    for (kind, data) in [("future.kind", json!({})), ("note.added", json!({"kind": 1})), ("no type", json!({}))] {
        finds(&sound().lease(2).under(1, kind, data), Code::LateWrite, Severity::Void, "R-OWN-001");
    }
    finds(&sound().lease(2).add("note.added", json!({"kind": "x"})), Code::NoEpoch, Severity::Warning, "R-OWN-003");
}

/// R-EVT-014
#[test]
fn a_blob_that_was_redacted_is_not_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = BlobStore::beside(&folder.path().join("x.palog.jsonl"));
    let digest = digest(b"gone");
    let note = json!({"kind": "x", "text": {"$blob": &digest, "size": 4, "media": "text/plain"}});
    let log = sound().add("note.added", note.clone());
    let codes = |log: &Log| {
        let found = validate(log.text().as_bytes(), &Options::new().with_blobs(&store)).expect("memory can be read");
        found.diagnostics.groups().iter().map(|g| g.code).collect::<Vec<_>>()
    };
    assert_eq!(codes(&log), [Code::MissingBlob]);
    let redacted = log.add("redaction.applied", json!({"blobs": [&digest]}));
    assert!(codes(&redacted).is_empty());
    assert!(codes(&redacted.add("note.added", note)).is_empty(), "nor is it when it is named again");
    let other = sound().add("redaction.applied", json!({"blobs": ["sha256:0"]}));
    let other =
        other.add("note.added", json!({"kind": "x", "text": {"$blob": &digest, "size": 4, "media": "text/plain"}}));
    assert_eq!(codes(&other), [Code::MissingBlob]);
}
