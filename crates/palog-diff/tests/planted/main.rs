//! Things that another client cannot hold, planted one by one: each is declared, or nothing is written.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use palog::blob::BlobStore;
use palog_import::{
    Class, Directory, Exported, Field, Options, Refused, Subject, Vendor, Wanted, discover, sources_beside,
};
use serde_json::{Value, json};
use tempfile::TempDir;

const BOTH: [Vendor; 2] = [Vendor::ClaudeCode, Vendor::Codex];

/// A log of events that are each a type and a payload.
fn log(events: &[(&str, Value)]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.palog.jsonl");
    let opened = json!({"spec": "1.0-draft", "session": "s", "agent": {"name": "my-agent"}});
    let directory = json!({"directory": "/tmp/proj/demo"});
    let events = [("log.opened", opened), ("config.set", directory)].into_iter().chain(events.iter().cloned());
    let mut text = String::new();
    for (seq, (kind, data)) in events.enumerate() {
        let actor = if data["role"] == "assistant" || kind == "action.proposed" { "model" } else { "user" };
        text += &line(seq, kind, actor, &data);
    }
    fs::write(&path, text).expect("it can be written");
    (folder, path)
}

/// One line, in the order of the format.
fn line(seq: usize, kind: &str, actor: &str, data: &Value) -> String {
    let time = "2026-11-29T12:00:00Z";
    format!(
        r#"{{"palog":1,"log":"l","seq":{seq},"id":"e{seq}","type":"{kind}","time":"{time}","actor":{{"kind":"{actor}"}},"data":{data}}}"#
    ) + "\n"
}

fn says(role: &str, parts: Value) -> (&'static str, Value) {
    ("message.added", json!({"role": role, "parts": parts}))
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(action: &str, args: Value) -> (&'static str, Value) {
    let digest = palog::blob::digest(args.to_string().as_bytes());
    ("action.proposed", json!({"action": action, "name": "Deploy", "args": args, "args_digest": digest}))
}

fn result(action: &str) -> Value {
    json!({"type": "result", "action": action, "parts": [text("done")], "final": true})
}

fn export(path: &Path, to: Vendor) -> Result<(Exported, Vec<Value>), Refused> {
    let file = File::open(path).expect("a log");
    let (blobs, sources) = (BlobStore::beside(path), sources_beside(path));
    let subject = Subject { log: &file, blobs: Some(&blobs), sources: Some(&sources) };
    let mut out = Vec::new();
    let exported = to.export(subject, &Wanted::default(), &mut out)?;
    let lines = String::from_utf8(out).expect("text");
    Ok((exported, lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()))
}

/// What is declared of a field.
fn declared(exported: &Exported, field: Field) -> Vec<(Class, u64, bool)> {
    let losses = exported.report.losses.iter().filter(|loss| loss.field == field);
    losses.map(|loss| (loss.class, loss.count, loss.critical)).collect()
}

/// The session as one text.
fn whole(lines: &[Value]) -> String {
    lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_part_that_nobody_knows() {
    let odd = json!({"type": "opaque", "provider": "org.example", "kind": "hologram", "value": {"secret": "xyzzy"}});
    let (_folder, path) = log(&[says("user", json!([text("look"), odd])), says("assistant", json!([text("I see")]))]);
    for to in BOTH {
        let (exported, lines) = export(&path, to).expect("it can be written");
        assert_eq!(declared(&exported, Field::PartOpaque), [(Class::Opaque, 1, false)], "{to:?}");
        assert!(!whole(&lines).contains("xyzzy") && whole(&lines).contains("look"));
    }
}

#[test]
fn a_result_without_its_call() {
    let (_folder, path) = log(&[says("user", json!([text("go")])), says("tool", json!([result("gone")]))]);
    for to in BOTH {
        let (exported, lines) = export(&path, to).expect("it can be written");
        assert_eq!(declared(&exported, Field::ResultOrphan), [(Class::Omitted, 1, false)], "{to:?}");
        assert!(!whole(&lines).contains("gone"));
    }
}

#[test]
fn reasoning_of_another_provider_is_not_sent() {
    let of = |provider: &str, kind: &str| json!({"type": "reasoning", "text": "hm", "opaque": {"provider": provider, "kind": kind, "value": "c2VjcmV0"}});
    for (to, provider, kind) in [(Vendor::ClaudeCode, "openai", "reasoning"), (Vendor::Codex, "anthropic", "signature")]
    {
        let (_folder, path) =
            log(&[says("user", json!([text("go")])), says("assistant", json!([of(provider, kind), text("ok")]))]);
        let (exported, lines) = export(&path, to).expect("it can be written");
        assert_eq!(declared(&exported, Field::ReasoningOpaque), [(Class::Opaque, 1, false)], "{to:?}");
        assert_eq!(declared(&exported, Field::ReasoningText).len(), 1, "{to:?}");
        assert!(!whole(&lines).contains("c2VjcmV0"));
    }
    // Its own goes back, signature and all.
    let (_folder, path) =
        log(&[says("user", json!([text("go")])), says("assistant", json!([of("anthropic", "signature"), text("ok")]))]);
    let (exported, lines) = export(&path, Vendor::ClaudeCode).expect("it can be written");
    assert_eq!(declared(&exported, Field::ReasoningOpaque), []);
    assert!(
        lines
            .iter()
            .any(|l| l["message"]["content"][0]
                == json!({"type": "thinking", "thinking": "hm", "signature": "c2VjcmV0"}))
    );
}

#[test]
fn an_id_stands_for_one_call() {
    let ask = |action: &str| says("assistant", json!([{"type": "action", "action": action}]));
    let mut events = vec![says("user", json!([text("go")]))];
    for action in ["c", "c#2", "d:e f"] {
        events.extend([ask(action), call(action, json!({"n": action})), says("tool", json!([result(action)]))]);
    }
    let (_folder, path) = log(&events);
    for to in BOTH {
        let (exported, lines) = export(&path, to).expect("it can be written");
        assert_eq!(declared(&exported, Field::ActionId), [(Class::Normalized, 2, false)], "{to:?}");
        let called = |line: &Value| match to {
            Vendor::Codex => line["payload"]["call_id"]
                .as_str()
                .filter(|_| line["payload"]["type"] == "function_call")
                .map(str::to_owned),
            _ => line["message"]["content"][0]["id"].as_str().map(str::to_owned),
        };
        let told = |line: &Value| match to {
            Vendor::Codex => line["payload"]["call_id"]
                .as_str()
                .filter(|_| line["payload"]["type"] == "function_call_output")
                .map(str::to_owned),
            _ => line["message"]["content"][0]["tool_use_id"].as_str().map(str::to_owned),
        };
        let (calls, results): (Vec<_>, Vec<_>) =
            (lines.iter().filter_map(called).collect(), lines.iter().filter_map(told).collect());
        assert_eq!((calls.len(), &calls), (3, &results), "{to:?}");
        let plain = |id: &String| id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        assert!(calls.iter().all(plain) && calls[0] == "c" && calls[1] != "c", "{calls:?}");
    }
}

#[test]
fn parallel_calls_without_results() {
    let asks = json!([text("I deploy"), {"type": "action", "action": "a"}, {"type": "action", "action": "b"}]);
    let events = [
        says("user", json!([text("go")])),
        says("assistant", asks),
        call("a", json!({"to": "x"})),
        call("b", json!({"to": "y"})),
    ];
    let (_folder, path) = log(&events);
    for to in BOTH {
        let (exported, lines) = export(&path, to).expect("it can be written");
        assert_eq!(declared(&exported, Field::ActionOpen), [(Class::Synthesized, 2, false)], "{to:?}");
        let notes: Vec<String> =
            lines.iter().map(Value::to_string).filter(|l| l.contains("[No result. This is a note")).collect();
        assert_eq!(notes.len(), 2, "{to:?}");
        for note in notes {
            assert!(note.contains("\"synthesized\":\"no_result\"") && note.contains("run it"), "{note}");
            assert!(!note.contains("\"is_error\":false"), "{note}");
        }
    }
}

#[test]
fn arguments_that_are_gone_are_a_critical_loss() {
    let asks = json!([{"type": "action", "action": "a"}]);
    let gone = json!({"$omitted": {"reason": "redacted"}});
    let (_folder, path) = log(&[
        says("user", json!([text("go")])),
        says("assistant", asks),
        call("a", gone),
        says("tool", json!([result("a")])),
    ]);
    for to in BOTH {
        let (exported, _) = export(&path, to).expect("it can be written");
        assert_eq!(declared(&exported, Field::ActionArgs), [(Class::Omitted, 1, true)], "{to:?}");
        assert_eq!(exported.report.critical().count(), 1);
    }
}

#[test]
fn a_large_picture() {
    let (_folder, path) = log(&[]);
    let store = BlobStore::beside(&path);
    let blob = store.put(&vec![0u8; 21 << 20], "image/png", None).expect("it can be written");
    let blob = json!({"$blob": blob.digest.as_str(), "size": blob.size, "media": "image/png"});
    let beside = json!({"type": "image", "media": "image/png", "data": blob});
    let data = json!({"role": "user", "parts": [text("look"), beside]});
    let lines = fs::read_to_string(&path).expect("a log") + &line(2, "message.added", "user", &data);
    fs::write(&path, &lines).expect("it can be written");
    for to in BOTH {
        let (exported, lines) = export(&path, to).expect("it can be written");
        assert_eq!(declared(&exported, Field::PartImage), [(Class::Omitted, 1, false)], "{to:?}");
        assert!(whole(&lines).len() < 10_000 && whole(&lines).contains("look"));
    }
}

#[test]
fn a_blob_that_is_gone() {
    let blob = json!({"$blob": format!("sha256:{}", "0".repeat(64)), "size": 9, "media": "text/plain; charset=utf-8"});
    let lost = json!({"type": "text", "text": blob});
    let (_folder, path) = log(&[says("user", json!([text("go"), lost]))]);
    for to in BOTH {
        let (exported, _) = export(&path, to).expect("it can be written");
        assert_eq!(declared(&exported, Field::PartText), [(Class::Omitted, 1, false)], "{to:?}");
    }
}

#[test]
fn half_characters() {
    let (_folder, path) = log(&[says("user", json!([text("XX")]))]);
    let torn = fs::read_to_string(&path).expect("a log").replace("XX", "\\ud83d");
    fs::write(&path, torn).expect("it can be written");
    for to in BOTH {
        let (exported, lines) = export(&path, to).expect("it can be written");
        assert_eq!(declared(&exported, Field::PartText), [(Class::Degraded, 1, false)], "{to:?}");
        assert!(whole(&lines).contains('\u{fffd}'));
    }
}

#[test]
fn input_that_waits_and_leave_that_was_given() {
    let queued = ("input.queued", json!({"input": "i", "parts": [text("and then")]}));
    let grant = ("grant.added", json!({"grant": "g", "tools": ["Deploy"]}));
    let (_folder, path) =
        log(&[says("user", json!([text("go")])), says("assistant", json!([text("ok")])), queued, grant]);
    for to in BOTH {
        let (exported, lines) = export(&path, to).expect("it can be written");
        assert_eq!(declared(&exported, Field::InputQueued), [(Class::Omitted, 1, true)], "{to:?}");
        assert_eq!(declared(&exported, Field::Grant), [(Class::Omitted, 1, false)], "{to:?}");
        assert!(!whole(&lines).contains("and then"));
    }
}

#[test]
fn a_log_that_says_nothing_is_not_written() {
    let critical = ("future.thing", json!({"unknown": true}));
    let (_folder, path) = log(&[says("user", json!([text("go")])), critical]);
    let (_empty, nothing) = log(&[]);
    for to in BOTH {
        assert!(
            matches!(export(&path, to), Err(Refused::Export(palog_import::ExportError::Indeterminate(_)))),
            "{to:?}"
        );
        assert!(matches!(export(&nothing, to), Err(Refused::Export(palog_import::ExportError::Empty))), "{to:?}");
    }
}

/// Imports the one session at `path`.
fn imported(path: &Path) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let sessions = discover(path, None).expect("it can be read").sessions;
    let mut target = Directory::new(folder.path());
    let report = sessions[0].import(&mut target, &Options::default()).expect("it can be imported");
    let log = report.logs[0].path.clone().expect("a path");
    (folder, log)
}

#[test]
fn bytes_that_are_no_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rollout-2026-03-03T10-00-00-019c0000-0000-7000-8000-000000000001.jsonl");
    let mut bytes = fs::read("tests/planted/49-encrypted-reasoning-not-portable.jsonl").expect("the case");
    let at = bytes.windows(5).position(|w| w == b"solve").expect("the prompt");
    bytes[at] = 0xff;
    fs::write(&path, bytes).expect("it can be written");
    let (_folder, log) = imported(&path);
    let (exported, _) = export(&log, Vendor::ClaudeCode).expect("it can be written");
    assert!(declared(&exported, Field::PartText).contains(&(Class::Degraded, 1, false)));
}

/// Case 49: what only the provider can read is kept in the log, replayed nowhere else, and counted.
#[test]
fn encrypted_reasoning_and_an_opaque_summary() {
    let (_folder, log) = imported(Path::new("tests/planted/49-encrypted-reasoning-not-portable.jsonl"));
    let (exported, lines) = export(&log, Vendor::ClaudeCode).expect("it can be written");
    assert_eq!(declared(&exported, Field::ReasoningOpaque), [(Class::Opaque, 3, false)]);
    assert_eq!(declared(&exported, Field::CompactionOpaque), [(Class::Opaque, 1, false)]);
    let all = whole(&lines);
    assert!(!all.contains("gAAAA") && !all.contains("thinking") && !all.contains("compact_boundary"), "{all}");
    let answers: Vec<&str> = lines.iter().filter_map(|l| l["message"]["content"][0]["text"].as_str()).collect();
    assert_eq!(answers, ["42", "still 42"]);
    // The way back holds all of it.
    let (exported, lines) = export(&log, Vendor::Codex).expect("it can be written");
    assert!(exported.report.identical && whole(&lines).contains("gAAAA-demo-ciphertext-3"));
}

/// Case 39: what nobody knows comes back byte for byte.
#[test]
fn records_and_blocks_that_nobody_knows() {
    let path = Path::new("../../conformance-fixtures/sources/faults/39-unknown-record-types/input.jsonl");
    let (_folder, log) = imported(path);
    let file = File::open(&log).expect("a log");
    let sources = sources_beside(&log);
    let subject = Subject { log: &file, blobs: None, sources: Some(&sources) };
    let mut out = Vec::new();
    let exported = Vendor::ClaudeCode.export(subject, &Wanted::default(), &mut out).expect("it can be written");
    assert!(exported.report.identical);
    assert_eq!(out, fs::read(path).expect("the case"));
}
