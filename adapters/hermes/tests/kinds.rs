//! What each kind of record becomes: the table `kinds.toml`, the chapter of the specification that shows it, and the importer
//! say the same.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use palog::events::Data;
use serde::Deserialize;
use support::{Imported, import, stored};

const VENDOR: &str = "x.com.nousresearch.hermes/";
const BEGIN: &str = "<!-- generated: kinds -->\n";
const END: &str = "<!-- end -->\n";

/// `kinds.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    kind: Vec<Kind>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    name: String,
    status: Status,
    events: Vec<String>,
    also: Option<String>,
    seen: String,
    note: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Mapped,
    Kept,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn table() -> Vec<Kind> {
    let text = fs::read_to_string(root().join("adapters/hermes/kinds.toml")).expect("the table is there");
    toml::from_str::<Table>(&text).expect("the table has its form").kind
}

/// The types of the events that came out, by the kind of their rows.
fn learn(outcome: &mut BTreeMap<String, BTreeSet<String>>, imported: &[Imported]) {
    for one in imported {
        for event in &one.events {
            for src in event["src"].as_array().into_iter().flatten() {
                let (Some(table), Some(key)) = (src["table"].as_str(), src["key"].as_str()) else { continue };
                let kind = match one.row(table, key).and_then(|row| row["role"].as_str().map(str::to_owned)) {
                    Some(role) if table == "messages" => format!("messages/{role}"),
                    _ => table.to_owned(),
                };
                let name = event["type"].as_str().unwrap_or_default().to_owned();
                outcome.entry(kind).or_default().insert(name);
            }
        }
    }
}

/// Rows of every kind, in a database of the newest schema.
const EVERYTHING: &str = "
    CREATE TABLE schema_version(version INTEGER); INSERT INTO schema_version VALUES (30);
    CREATE TABLE system_prompts(hash TEXT PRIMARY KEY, prompt TEXT);
    INSERT INTO system_prompts VALUES ('h', 'You are an agent.'), ('n', NULL);
    ALTER TABLE sessions ADD COLUMN input_tokens INTEGER; ALTER TABLE sessions ADD COLUMN system_prompt_hash TEXT; ALTER TABLE sessions ADD COLUMN session_key TEXT;
    CREATE TABLE session_model_usage(session_id TEXT, model TEXT, task TEXT, input_tokens INTEGER, PRIMARY KEY(session_id, model, task));
    CREATE TABLE async_delegations(delegation_id TEXT PRIMARY KEY, origin_session TEXT, parent_session_id TEXT, state TEXT, updated_at REAL, delivery_state TEXT);
    CREATE TABLE compression_locks(session_id TEXT PRIMARY KEY, holder TEXT);
    CREATE TABLE session_turn_leases(conversation_id TEXT PRIMARY KEY, holder TEXT);
    CREATE TABLE gateway_routing(scope TEXT, session_key TEXT, entry_json TEXT, PRIMARY KEY(scope, session_key));
    CREATE TABLE delivery_obligations(obligation_id TEXT PRIMARY KEY, session_key TEXT);
    INSERT INTO sessions(id, source, started_at, system_prompt_hash, session_key, end_reason) VALUES
        ('a', 'cli', 1.0, 'h', 'k', NULL), ('b', 'cli', 1.0, 'n', NULL, 'agent_close'), ('c', 'cli', 1.0, NULL, NULL, NULL);
    UPDATE sessions SET input_tokens = 5 WHERE id = 'b';
    INSERT INTO session_model_usage VALUES ('a', 'm', '', 1), ('a', 'm', 'vision', 1);
    INSERT INTO async_delegations VALUES ('d1', 'a', 'a', 'completed', 2.0, 'delivered'), ('d2', 'a', 'a', 'unknown', 2.0, 'pending');
    INSERT INTO compression_locks VALUES ('a', 'x'); INSERT INTO session_turn_leases VALUES ('a', 'x');
    INSERT INTO gateway_routing VALUES ('', 'k', '{}'); INSERT INTO delivery_obligations VALUES ('o', 'k');
    INSERT INTO messages(session_id, role, content, timestamp, active, compacted) VALUES ('a', 'system', 'x', 1.0, 0, 0), ('a', 'user', 'q', 1.0, 1, 0);
    INSERT INTO messages(session_id, role, content, tool_calls, finish_reason, timestamp, active, compacted) VALUES
        ('a', 'assistant', '', '[{\"id\":\"c1\",\"function\":{\"name\":\"terminal\",\"arguments\":\"{}\"}},{\"id\":\"c2\",\"function\":{\"name\":\"delegate_task\",\"arguments\":\"{}\"}}]', 'tool_calls', 2.0, 1, 0);
    INSERT INTO messages(session_id, role, content, tool_call_id, timestamp, active, compacted) VALUES
        ('a', 'tool', '{\"output\":\"\",\"exit_code\":0,\"approval\":\"… approved by the user.\"}', 'c1', 3.0, 1, 0),
        ('a', 'tool', '{\"status\":\"dispatched\",\"delegation_id\":\"d3\"}', 'c2', 3.0, 0, 0);
    INSERT INTO messages(session_id, role, content, timestamp, active, compacted) VALUES
        ('a', 'user', '[ASYNC DELEGATION COMPLETE — d3]', 4.0, 1, 0), ('a', 'assistant', 'Operation interrupted.', 5.0, 1, 0),
        ('a', 'user', 'undone', 6.0, 0, 0), ('a', 'user', 'again', 7.0, 1, 0), ('a', 'assistant', 'undone', 8.0, 0, 0),
        ('c', 'user', 'old', 1.0, 0, 1), ('c', 'assistant', '[CONTEXT COMPACTION] s', 2.0, 0, 1), ('c', 'user', '[CONTEXT COMPACTION] s', 3.0, 0, 1);
    INSERT INTO messages(session_id, role, content, tool_call_id, timestamp, active, compacted) VALUES
        ('c', 'tool', '{}', 'x', 4.0, 0, 1), ('c', 'user', '[CONTEXT COMPACTION] t', NULL, 9.0, 0, 1), ('c', 'tool', '{}', 'x', 9.0, 0, 1),
        ('c', 'system', 'y', NULL, 10.0, 0, 1), ('c', 'user', '[CONTEXT COMPACTION] u', NULL, 12.0, 1, 0), ('c', 'system', 'y', NULL, 12.0, 1, 0);
";

#[test]
fn the_table_is_complete_and_true() {
    let mut outcome: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let sources = root().join("conformance-fixtures/sources/hermes");
    for scenario in fs::read_dir(sources).expect("the fixtures are there").filter_map(Result::ok) {
        for file in fs::read_dir(scenario.path()).expect("a folder").filter_map(Result::ok) {
            if file.path().extension().is_some_and(|e| e == "db") {
                learn(&mut outcome, &import(&file.path()));
            }
        }
    }
    learn(&mut outcome, &stored(EVERYTHING));
    let table = table();
    let mut wrong = String::new();
    for kind in &table {
        let name = kind.name.split('/').next().unwrap_or_default();
        let own = BTreeSet::from([format!("{VENDOR}{name}")]);
        let mut expected: BTreeSet<String> = kind.events.iter().cloned().collect();
        if kind.status == Status::Kept || kind.also.is_some() {
            expected.extend(own);
        }
        let unknown: Vec<_> = kind.events.iter().filter(|event| !Data::NAMES.contains(&event.as_str())).collect();
        let found = outcome.remove(&kind.name).unwrap_or_default();
        if found != expected || !unknown.is_empty() || (kind.status == Status::Kept && !kind.events.is_empty()) {
            let _ = writeln!(wrong, "{}: the table says {expected:?}, out came {found:?}", kind.name);
        }
    }
    let _ =
        outcome.iter().try_for_each(|(kind, types)| writeln!(wrong, "{kind}: not in the table, out came {types:?}"));
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_specification_shows_the_table() {
    let mut text = String::from(
        "| kind | is | events | seen | not carried; of kept kinds, what it holds |\n|---|---|---|---|---|\n",
    );
    for kind in table() {
        let status = match (kind.status, &kind.also) {
            (Status::Kept, _) => "kept".to_owned(),
            (Status::Mapped, None) => "mapped".to_owned(),
            (Status::Mapped, Some(when)) => format!("mapped; kept if {when}"),
        };
        let events: Vec<String> = kind.events.iter().map(|event| format!("`{event}`")).collect();
        let seen = if kind.seen == "source" { "† source of the client".to_owned() } else { kind.seen };
        let _ = writeln!(text, "| `{}` | {status} | {} | {seen} | {} |", kind.name, events.join(", "), kind.note);
    }
    let path = root().join("spec/sources/hermes.md");
    let chapter = fs::read_to_string(&path).expect("the chapter is there");
    let (head, rest) = chapter.split_once(BEGIN).expect("the beginning of the table is marked");
    let (found, tail) = rest.split_once(END).expect("the end of the table is marked");
    if std::env::var_os("PALOG_UPDATE").is_some() {
        fs::write(&path, format!("{head}{BEGIN}{text}{END}{tail}")).expect("it can be written");
    } else {
        assert_eq!(found, text, "set PALOG_UPDATE=1 to write the table anew");
    }
}
