//! What other files hold of a session: names, rows of databases, messages that wait, locks.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use palog::recover::Verdict;
use rusqlite::Connection;
use serde_json::{Value, json};
use support::{SESSION, begin, end, header, numbered, say, sessions, text};

const CHILD: &str = "019c0000-0000-7000-8000-000000000002";

/// A `CODEX_HOME` with a session that is done. Returns its folder for rollouts.
fn home(folder: &Path) -> PathBuf {
    let rollouts = folder.join("sessions/2026/03/03");
    fs::create_dir_all(&rollouts).expect("folders");
    let lines = [header("paginated"), begin("t1"), say("user", "Go."), say("assistant", "Done."), end("t1")];
    let name = format!("rollout-2026-03-03T10-00-00-{SESSION}.jsonl");
    fs::write(rollouts.join(name), text(&numbered(0, &lines))).expect("it is written");
    rollouts
}

/// A database of the client, with the members that are read and one that is not.
fn database(path: &Path, sql: &str) -> Connection {
    let connection = Connection::open(path).expect("a database");
    connection.execute_batch("pragma journal_mode = wal; pragma wal_autocheckpoint = 0;").expect("a setting");
    connection
        .execute_batch(
            "create table if not exists threads (id text primary key, rollout_path text, archived integer, archived_at integer, name text);
             create table if not exists thread_spawn_edges (parent_thread_id text, child_thread_id text primary key, status text);
             create table if not exists queued_items (id text primary key, thread_id text, payload_json text, queue_order integer);",
        )
        .expect("tables");
    connection.execute_batch(sql).expect("rows");
    connection
}

fn of_type<'e>(events: &'e [Value], kind: &'e str) -> impl Iterator<Item = &'e Value> {
    events.iter().filter(move |event| event["type"] == kind)
}

#[test]
fn what_the_databases_alone_know_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    home(folder.path());
    // An older form of the database is not read, and rows of other threads are not told.
    let _old = database(
        &folder.path().join("state_4.sqlite"),
        &format!("insert into threads values ('{SESSION}', '/x', 0, null, 'Old')"),
    );
    // What was written last is still in the write-ahead log.
    let _open = database(
        &folder.path().join("state_12.sqlite"),
        &format!(
            "insert into threads values ('{SESSION}', '/home/me/x', 1, 1772532000, 'A \"name\"'), ('other', '/y', 0, null, 'Not this');
             insert into thread_spawn_edges values ('{SESSION}', '{CHILD}', 'open');"
        ),
    );
    fs::create_dir(folder.path().join("thread-writer-locks")).expect("a folder");
    for thread in [SESSION, CHILD] {
        fs::write(folder.path().join(format!("thread-writer-locks/{thread}.lock")), "").expect("a lock");
    }
    let made = sessions(folder.path()).remove(0);
    let events = made.events();
    assert_eq!(made.codes(), Vec::<&str>::new());
    assert_eq!(made.state.title.as_deref(), Some("A \"name\""));
    // None of it decides anything.
    assert_eq!(made.verdict, Verdict::Idle);
    let observed: Vec<String> = of_type(&events, "observation.recorded")
        .map(|e| format!("{} {} {}", e["data"]["fact"], e["data"]["as_of"], e["data"]["detail"]))
        .collect();
    assert_eq!(
        observed,
        [r#""writer_lock" null null"#, r#""archived" "2026-03-03T10:00:00Z" null"#, r#""child" null "open""#]
    );
    let spawned: Vec<&Value> = of_type(&events, "child.spawned").map(|e| &e["data"]["session"]).collect();
    assert_eq!(spawned, [CHILD]);
    // The rows are kept, and each event says where it comes from.
    let kept = fs::read_to_string(palog::blob::sibling(&made.path, "sources").join("state")).expect("it is kept");
    assert_eq!(kept.lines().count(), 2);
    assert!(!kept.contains("Not this") && !kept.contains("Old"));
    let row = of_type(&events, "x.com.openai.codex/state/threads").next().expect("the row");
    assert_eq!((&row["src"][0]["table"], &row["src"][0]["key"]), (&json!("threads"), &json!(SESSION)));
    let record = kept.lines().find(|line| line.contains("\"threads\"")).expect("the row");
    assert_eq!(serde_json::from_str::<Value>(record).expect("JSON"), row["data"]["record"]);
    // All of it stands behind the records, so that the log of a rollout alone is the beginning of this one.
    let first = events.iter().position(|e| e["data"]["kind"] == "source_end").expect("the closing block");
    assert!(
        events[..first]
            .iter()
            .all(|e| e["src"].as_array().is_none_or(|src| src.iter().all(|s| s["source"] == "transcript")))
    );
}

#[test]
fn a_message_that_waits_makes_the_session_ready() {
    let folder = tempfile::tempdir().expect("a folder");
    home(folder.path());
    let queued = format!(
        r#"insert into queued_items values ('q1', '{SESSION}', '{{"text":"And then?"}}', 0), ('q2', 'other', '{{}}', 1), ('q3', '{SESSION}', 'no json', 2)"#
    );
    drop(database(&folder.path().join("queue_1.sqlite"), &queued));
    let made = sessions(folder.path()).remove(0);
    assert_eq!(made.verdict, Verdict::Ready);
    let events = made.events();
    let inputs: Vec<String> = of_type(&events, "input.queued").map(|e| e["data"].to_string()).collect();
    assert_eq!(
        inputs,
        [
            r#"{"input":"q1","parts":[{"type":"json","value":{"text":"And then?"}}]}"#,
            r#"{"input":"q3","parts":[{"type":"json","value":"no json"}]}"#,
        ]
    );
    // Also where only what bears on the verdict is read.
    let found = palog_codex::discover(folder.path()).expect("it can be read").sessions.remove(0);
    let report = palog_codex::import(
        &found.alone(),
        &mut palog_codex::Stream::new(std::io::sink()),
        &palog_codex::Options::default(),
    );
    assert!(report.expect("an import").inputs.iter().any(|input| input.format == "codex.queue" && input.records == 2));
}

#[test]
fn names_and_prompts_of_other_threads_are_not_told() {
    let folder = tempfile::tempdir().expect("a folder");
    home(folder.path());
    let index = format!(
        "{{\"id\":\"{SESSION}\",\"thread_name\":\"First\",\"updated_at\":\"x\"}}\n{{\"id\":\"other\",\"thread_name\":\"Not this\"}}\n{{\"id\":\"{SESSION}\",\"thread_name\":\"Last\"}}\n{{\"id\":7}}\n{{\"id\":\"{SESSION}\",\"thread_name\":null}}\n{{\"id\":\"{SESSION}\",\"thr"
    );
    let history = format!(
        "{{\"session_id\":\"{SESSION}\",\"ts\":1,\"text\":\"Go.\"}}\nno json\n{{\"session_id\":\"other\",\"ts\":2,\"text\":\"Not this\"}}\n"
    );
    fs::write(folder.path().join("session_index.jsonl"), index).expect("it is written");
    fs::write(folder.path().join("history.jsonl"), history).expect("it is written");
    let made = sessions(folder.path()).remove(0);
    assert_eq!(made.state.title.as_deref(), Some("Last"));
    let log = String::from_utf8(made.log.clone()).expect("text");
    assert!(!log.contains("Not this") && log.contains("x.com.openai.codex/history"));
    let listed = palog_codex::list(folder.path()).expect("it can be read").sessions.remove(0);
    assert_eq!(listed.title.as_deref(), Some("Last"));
}

#[test]
fn a_damaged_database_is_told_and_stops_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    home(folder.path());
    fs::write(folder.path().join("state_5.sqlite"), "SQLite format 3\0 and no more".repeat(99)).expect("it is written");
    fs::write(folder.path().join("queue_1.sqlite"), "").expect("it is written");
    fs::write(folder.path().join("state_x.sqlite"), "not one of them").expect("it is written");
    let made = sessions(folder.path()).remove(0);
    assert_eq!((made.codes(), made.verdict), (vec!["store.not_a_database", "store.malformed"], Verdict::Idle));
}
