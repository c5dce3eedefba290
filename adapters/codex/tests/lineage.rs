//! Histories that go on from somewhere else: reverts, rollbacks, forks by reference and by copy; and files that grow.

mod support;

use std::fs;
use std::path::Path;

use palog::recover::Verdict;
use serde_json::{Value, json};
use support::{SESSION, begin, call, done, end, event, header, line, made, numbered, say, sessions, text};

const CHILD: &str = "019c0000-0000-7000-8000-000000000002";
const REVERT: &str = "019c0000-0000-7000-8000-0000000000f1";

fn name(thread: &str, revert: Option<&str>) -> String {
    let revert = revert.map_or_else(String::new, |id| format!("_{id}"));
    format!("rollout-2026-03-03T10-00-00-{thread}{revert}.jsonl")
}

/// The header of a file that goes on from a prefix.
fn goes_on(id: &str, from: &str, ordinal: u64, byte: usize) -> Value {
    let base = json!({"thread_id": from, "end_ordinal_exclusive": ordinal, "end_byte_offset": byte});
    let mut meta = json!({"id": id, "history_mode": "paginated", "history_base": base});
    if id != from {
        meta["forked_from_id"] = json!(from);
    }
    line("session_meta", meta)
}

/// Two turns: ordinals 0 to 8.
fn two_turns() -> Vec<Value> {
    let lines = [
        header("paginated"),
        begin("t1"),
        say("user", "One."),
        say("assistant", "First."),
        end("t1"),
        begin("t2"),
        say("user", "Two."),
        say("assistant", "Second."),
        end("t2"),
    ];
    numbered(0, &lines)
}

/// Where the records before an ordinal end.
fn behind(lines: &[Value], ordinal: usize) -> usize {
    text(&lines[..ordinal]).len()
}

fn write(folder: &Path, name: &str, lines: &[Value]) {
    fs::write(folder.join(name), text(lines)).expect("it is written");
}

fn one(mut all: Vec<support::Made>, session: &str) -> support::Made {
    let at = all.iter().position(|made| made.state.session.as_deref() == Some(session)).expect("it is there");
    all.swap_remove(at)
}

#[test]
fn a_revert_takes_nothing_from_the_log_and_everything_from_the_context() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut first = two_turns();
    first.extend(numbered(9, &[begin("t3"), say("user", "Three."), call("c", "exec_command")]));
    let second = numbered(
        5,
        &[
            goes_on(SESSION, SESSION, 5, behind(&first, 5)),
            begin("t9"),
            say("user", "Two, anew."),
            say("assistant", "Anew."),
            end("t9"),
        ],
    );
    write(folder.path(), &name(SESSION, None), &first);
    write(folder.path(), &name(SESSION, Some(REVERT)), &second);
    let mut all = sessions(folder.path());
    assert_eq!(all.len(), 1);
    let whole = all.remove(0);
    assert_eq!(whole.context(), ["One.", "First.", "Two, anew.", "Anew."]);
    let log = String::from_utf8(whole.log.clone()).expect("text");
    for said in ["One.", "Second.", "Three.", "Anew."] {
        assert!(log.contains(&format!("\"{said}\"")), "{said}");
    }
    // What was running when it was reverted may have run: a later turn went on without it.
    assert_eq!(whole.actions(), ["c unknown"]);
    assert!(whole.state.actions[0].passed_over);
    assert_eq!(whole.state.turns.count.to_string(), "4");
    // One file alone: it goes on from what is not there, or was not reverted.
    let alone = sessions(&folder.path().join(name(SESSION, Some(REVERT)))).remove(0);
    assert_eq!(alone.context(), ["Two, anew.", "Anew."]);
    assert!(alone.codes().contains(&"graph.missing_parent"), "{:?}", alone.codes());
    let before = sessions(&folder.path().join(name(SESSION, None))).remove(0);
    assert_eq!(before.verdict, Verdict::NeedsReconcile);
    assert!(whole.log.len() > before.log.len());
}

#[test]
fn a_rollback_takes_the_last_turns_out_of_the_context() {
    let back = |turns: u64| {
        let mut lines = two_turns();
        lines.extend(numbered(9, &[event("thread_rolled_back", json!({"num_turns": turns}))]));
        made(text(&lines)).context()
    };
    assert_eq!(back(1), ["One.", "First."]);
    assert!(back(2).is_empty() && back(99).is_empty());
    assert_eq!(back(0), ["One.", "First.", "Two.", "Second."]);
    // An old compaction keeps the prompts that are still there.
    let mut lines = two_turns();
    lines.extend(numbered(
        9,
        &[event("thread_rolled_back", json!({"num_turns": 1})), line("compacted", json!({"message": "Summary."}))],
    ));
    assert_eq!(made(text(&lines)).context(), ["One.", "Summary."]);
}

#[test]
fn a_fork_by_reference_names_the_last_event_of_the_prefix() {
    let folder = tempfile::tempdir().expect("a folder");
    let parent = two_turns();
    let at = behind(&parent, 5);
    let child = |byte: usize, end: u64| {
        numbered(end, &[goes_on(CHILD, SESSION, end, byte), say("user", "Another way."), say("assistant", "Other.")])
    };
    let parent_name = name(SESSION, None);
    write(folder.path(), &parent_name, &parent);
    let event = |folder: &Path| {
        let all = sessions(folder);
        let child = one(sessions(folder), CHILD);
        let told = child.events()[0]["data"]["parent"].clone();
        let of_parent = all.iter().find(|made| made.state.session.as_deref() == Some(SESSION)).map(|made| {
            let event = made.events().into_iter().find(|e| e["id"] == told["event"]);
            event.map(|e| e["data"].to_string()).unwrap_or_default()
        });
        (child, told, of_parent)
    };
    write(folder.path(), &name(CHILD, None), &child(at, 5));
    let (made, told, of_parent) = event(folder.path());
    assert_eq!((&told["mode"], &told["at"]), (&json!("fork"), &json!("5")));
    assert!(of_parent.expect("the parent").contains("\"t1\""));
    // Nothing of the parent is in it, and nothing of it runs.
    assert_eq!((made.context(), made.actions()), (vec!["Another way.".to_owned(), "Other.".to_owned()], Vec::new()));
    assert_eq!(made.codes(), ["session.forked_by_reference"]);
    // The parent was changed: it is told, and the prefix is that of the same numbers.
    write(folder.path(), &name(CHILD, None), &child(at + 7, 5));
    let (made, again, _) = event(folder.path());
    assert_eq!(again["event"], told["event"]);
    let group = &made.report.diagnostics.groups()[0];
    assert_eq!(
        (group.code.as_str(), group.severity),
        ("session.forked_by_reference", palog::diagnostic::Severity::Warning)
    );
    // It is shorter, or not there.
    write(folder.path(), &name(CHILD, None), &child(at, 500));
    let (made, told, _) = event(folder.path());
    assert!(told["event"].is_null() && made.codes().contains(&"graph.missing_parent"));
    fs::remove_file(folder.path().join(&parent_name)).expect("it is there");
    write(folder.path(), &name(CHILD, None), &child(at, 5));
    let (made, told, of_parent) = event(folder.path());
    assert!(of_parent.is_none() && told["event"].is_null() && told["session"] == SESSION);
    assert!(made.codes().contains(&"graph.missing_parent"));
    // The context says that its beginning is elsewhere.
    let context = palog::project::openai::context(std::io::Cursor::new(&made.log), palog::project::At::Head, None);
    let omitted = context.expect("a context").omitted;
    assert_eq!((omitted.len(), omitted[0].log.as_deref()), (1, told["log"].as_str()));
}

#[test]
fn a_fork_of_a_reverted_session_goes_on_from_the_file_that_it_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = two_turns();
    let second = numbered(
        5,
        &[
            goes_on(SESSION, SESSION, 5, behind(&first, 5)),
            begin("t9"),
            say("user", "Two, anew."),
            say("assistant", "Anew."),
        ],
    );
    write(folder.path(), &name(SESSION, None), &first);
    write(folder.path(), &name(SESSION, Some(REVERT)), &second);
    // Ordinal 7 is in both: before the revert "Second.", after it "Two, anew.".
    for (byte, said) in [(behind(&first, 8), "Second."), (text(&second[..3]).len(), "Two, anew."), (1, "Two, anew.")] {
        let child = numbered(8, &[goes_on(CHILD, SESSION, 8, byte), say("user", "Another way.")]);
        write(folder.path(), &name(CHILD, None), &child);
        let all = sessions(folder.path());
        let told = one(sessions(folder.path()), CHILD).events()[0]["data"]["parent"]["event"].clone();
        let parent = one(all, SESSION);
        let last = parent.events().into_iter().find(|e| e["id"] == told).expect("the event");
        assert!(last.to_string().contains(said), "{byte}: {last}");
    }
    // A prefix that ends before the revert is in the first file.
    let child = numbered(5, &[goes_on(CHILD, SESSION, 5, 1), say("user", "Another way.")]);
    write(folder.path(), &name(CHILD, None), &child);
    let told = one(sessions(folder.path()), CHILD).events()[0]["data"]["parent"]["event"].clone();
    let parent = one(sessions(folder.path()), SESSION);
    assert!(parent.events().iter().any(|e| e["id"] == told && e["type"] == "turn.ended"));
}

#[test]
fn a_damaged_parent_gives_the_event_that_its_log_has() {
    let folder = tempfile::tempdir().expect("a folder");
    // Two records on one line, behind a fragment.
    let parent = two_turns();
    let lines: Vec<String> = parent.iter().map(Value::to_string).collect();
    let damaged = format!("{}\n{{\"torn\":\"{}{}\n{}\n", lines[0], lines[1], lines[2], lines[3..].join("\n"));
    fs::write(folder.path().join(name(SESSION, None)), damaged).expect("it is written");
    let child = numbered(3, &[goes_on(CHILD, SESSION, 3, 1), say("user", "Another way.")]);
    write(folder.path(), &name(CHILD, None), &child);
    let told = one(sessions(folder.path()), CHILD).events()[0]["data"]["parent"]["event"].clone();
    let parent = one(sessions(folder.path()), SESSION);
    assert!(parent.events().iter().any(|e| e["id"] == told && e["type"] == "message.added"), "{told}");
}

#[test]
fn of_a_plain_and_a_compressed_file_nothing_is_lost() {
    let packed =
        |bytes: &str| ruzstd::encoding::compress_to_vec(bytes.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    let (whole, half) = (text(&two_turns()), text(&two_turns()[..4]));
    let other = whole.replace("One.", "Uno.");
    let plain = name(SESSION, None);
    for (unpacked, compressed, said, code) in [
        (Some(&whole), Some(packed(&half)), "Second.", None),
        (Some(&whole), Some(packed(&whole)), "Second.", None),
        // The client was stopped while it unpacked.
        (Some(&half), Some(packed(&whole)), "Second.", None),
        (Some(&String::new()), Some(packed(&whole)), "Second.", None),
        (None, Some(packed(&whole)), "Second.", None),
        (Some(&whole), Some(packed(&other)), "Second.", Some("session.left_beside")),
        (Some(&whole), Some(packed(&whole)[..40].to_vec()), "Second.", Some("session.unreadable")),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        if let Some(bytes) = unpacked {
            fs::write(folder.path().join(&plain), bytes).expect("it is written");
        }
        if let Some(bytes) = compressed {
            fs::write(folder.path().join(format!("{plain}.zst")), bytes).expect("it is written");
        }
        let mut all = sessions(folder.path());
        assert_eq!(all.len(), 1);
        let made = all.remove(0);
        assert!(made.context().contains(&said.to_owned()), "{:?}", made.context());
        assert_eq!(
            made.codes().into_iter().filter(|c| c.starts_with("session.")).collect::<Vec<_>>(),
            Vec::from_iter(code)
        );
        // The log is the same, however the file lay there.
        let records = |log: &[u8]| -> Vec<Value> {
            let events = log.split(|b| *b == b'\n').filter_map(|l| serde_json::from_slice::<Value>(l).ok());
            events
                .filter(|e| e["type"] != "note.added" && e["type"] != "source.opened")
                .map(|e| e["id"].clone())
                .collect()
        };
        assert_eq!(records(&made.log), records(&support::made(&whole).log));
    }
}

#[test]
fn a_rollout_that_grows_extends_its_log() {
    let mut lines = two_turns();
    lines.extend(numbered(
        9,
        &[
            begin("t3"),
            say("user", "Three."),
            call("c", "exec_command"),
            call("c", "exec_command"),
            done("CommandExecution", "c", "t3", json!({"exit_code": 0})),
            line("compacted", json!({"message": "", "replacement_history": []})),
            event("thread_rolled_back", json!({"num_turns": 1})),
            line("future", json!({"type": "function_call", "call_id": "f"})),
        ],
    ));
    let events = |lines: &[Value]| -> Vec<Value> {
        let events = made(text(lines)).events();
        // The closing block is written anew.
        let body = events.iter().position(|e| e["data"]["kind"] == "source_end").expect("the end of the source");
        events[..body].to_vec()
    };
    let whole = events(&lines);
    for n in 1..=lines.len() {
        let part = events(&lines[..n]);
        assert_eq!(part, whole[..part.len()], "after {n} records");
    }
}

#[test]
fn token_counts_add_up_to_the_last_total() {
    let count = |total: u64, last: u64| {
        let counts =
            |n: u64| json!({"input_tokens": n, "output_tokens": n / 10, "total_tokens": n.saturating_add(n / 10)});
        event("token_count", json!({"info": {"total_token_usage": counts(total), "last_token_usage": counts(last)}}))
    };
    let usage = |lines: &[Value]| {
        let state = made(text(lines)).state;
        state.usage.input.map(|n| n.to_string()).unwrap_or_default()
    };
    let told = |n: u64| {
        line(
            "token_usage_record",
            json!({"response_id": format!("r{n}"), "thread_id": SESSION, "usage": {"input_tokens": n, "output_tokens": n / 10, "total_tokens": n.saturating_add(n / 10)}}),
        )
    };
    // Totals alone: told again, after an error, with an estimate as the last.
    let totals = [header("legacy"), count(100, 100), count(100, 100), count(250, 150), count(250, 900), count(300, 1)];
    assert_eq!(usage(&totals), "300");
    // A client that counts by response took over.
    assert_eq!(usage(&[header("legacy"), count(100, 100), told(50), count(150, 50), told(20), count(170, 20)]), "170");
    // Counts that no number can hold are no reason to stop.
    let huge = [told(u64::MAX), told(u64::MAX - 1), count(u64::MAX, 1), count(u64::MAX, u64::MAX), count(0, 0)];
    usage(&[&[header("legacy")][..], &huge].concat());
    let odd = [json!(-1), json!(1.5), json!("7"), json!(null), json!([1]), json!(1e300)];
    for n in odd {
        let lines = [
            header("legacy"),
            line("token_usage_record", json!({"response_id": "r", "usage": {"input_tokens": n}})),
            event("token_count", json!({"info": {"total_token_usage": {"input_tokens": n}}})),
        ];
        usage(&lines);
    }
}
