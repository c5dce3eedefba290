//! What each kind of record becomes: the table `kinds.toml`, the chapter of the specification that shows it, and the importer
//! say the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use palog::blob::sibling;
use palog::events::Data;
use palog::reader::{Item, Reader};
use palog_claude_code::{Directory, Options, discover, import};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

const VENDOR: &str = "x.com.anthropic.claude-code/";
const SESSION: &str = "5e550000-0000-4000-8000-000000000001";
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
    named: bool,
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
    let text = fs::read_to_string(root().join("adapters/claude-code/kinds.toml")).expect("the table is there");
    toml::from_str::<Table>(&text).expect("the table has its form").kind
}

/// The kind of a record, by its own members. A generic JSON tree would refuse lone surrogates.
fn kind(record: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Record<'a> {
        r#type: String,
        subtype: Option<String>,
        #[serde(borrow)]
        attachment: Option<&'a RawValue>,
        data: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Inner {
        r#type: String,
    }
    let record: Record<'_> = serde_json::from_str(record).ok()?;
    let inner = |raw: Option<&RawValue>| serde_json::from_str::<Inner>(raw?.get()).ok().map(|inner| inner.r#type);
    let sub = match &*record.r#type {
        "system" => record.subtype,
        "attachment" => inner(record.attachment),
        "progress" => inner(record.data),
        _ => None,
    };
    Some(sub.map_or_else(|| record.r#type.clone(), |sub| format!("{}/{sub}", record.r#type)))
}

/// The types of the events that came out, by the kind of their records.
#[derive(Default)]
struct Outcome {
    types: BTreeMap<String, BTreeSet<String>>,
}

impl Outcome {
    /// Imports what lies at `path`.
    fn learn(&mut self, path: &Path) {
        let found = discover(path).expect("the input can be read");
        // Some faults are those of other formats.
        for session in
            found.sessions.iter().filter(|s| s.path().is_none_or(|p| !found.unrecognised.iter().any(|u| u == p)))
        {
            let folder = tempfile::tempdir().expect("a folder");
            let mut target = Directory::new(folder.path());
            let report = import(session, &mut target, &Options::default()).expect("an import");
            report.logs.iter().filter_map(|log| log.path.as_deref()).for_each(|log| self.learn_log(log));
        }
    }

    fn learn_log(&mut self, log: &Path) {
        let sources = sibling(log, "sources");
        let bytes = fs::read(log).expect("the log can be read");
        let mut reader = Reader::new(bytes.as_slice());
        while let Some(item) = reader.next().expect("bytes in memory") {
            let Item::Event(event, _) = item else { panic!("{}: a line is no event", log.display()) };
            let data = event.data().expect("a payload");
            let replayed = event.copy.as_ref().is_some_and(|c| c.how.word() == "replay");
            if replayed || applies_to_every_kind(&event.kind, &data) {
                continue;
            }
            for src in &event.src {
                let name = src.source.as_str();
                let is_transcript = name == "transcript" || name.starts_with("agent/");
                let (true, Some(at), Some(len)) = (is_transcript, src.at, src.len) else { continue };
                let source = fs::read(sources.join(name)).expect("the source is kept");
                let record = String::from_utf8_lossy(&source[at as usize..(at + len) as usize]);
                let kind = kind(&record).expect("an event comes from a record");
                self.types.entry(kind).or_default().insert(event.kind.to_string());
            }
        }
    }
}

/// The definition that every record of the tree carries, marks of records that say nothing here, and a value that is no record.
fn applies_to_every_kind(name: &str, data: &Data<'_>) -> bool {
    match data {
        Data::NoteAdded(note) => matches!(note.kind.as_str(), "sidechain" | "unread"),
        Data::ConfigSet(set) => {
            let own =
                set.mode.is_some() || set.permission_mode.is_some() || set.title.is_some() || set.skills.is_some();
            !own && (set.client_version.is_some() || set.directory.is_some() || set.branch.is_some())
        }
        _ => name == format!("{VENDOR}unexpected"),
    }
}

/// Every input among the fixtures.
fn fixtures(outcome: &mut Outcome) {
    let sources = root().join("conformance-fixtures/sources");
    for scenario in entries(&sources.join("claude-code")) {
        for input in entries(&scenario) {
            if input.join("projects").is_dir() || input.ends_with("session.jsonl") {
                outcome.learn(&input);
            }
        }
    }
    for fault in entries(&sources.join("faults")) {
        entries(&fault).iter().for_each(|input| outcome.learn(input));
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = match fs::read_dir(folder) {
        Ok(entries) => entries.map(|e| e.expect("an entry").path()).collect(),
        Err(_) => Vec::new(),
    };
    all.sort();
    all
}

/// One minimal record of a kind. It hangs under `u3`.
fn minimal(number: usize, kind: &str) -> Value {
    let (main, sub) = kind.split_once('/').unwrap_or((kind, ""));
    let mut record = json!({"type": main, "sessionId": SESSION});
    if !sub.is_empty() {
        record["uuid"] = json!(format!("k{number}"));
        record["parentUuid"] = json!("u3");
    }
    match main {
        "system" => record["subtype"] = json!(sub),
        "attachment" => record["attachment"] = json!({"type": sub}),
        "progress" => record["data"] = json!({"type": sub}),
        _ => {}
    }
    match kind {
        "last-prompt" => record["leafUuid"] = json!("u2"),
        "ai-title" => record["aiTitle"] = json!("A title"),
        "custom-title" => record["customTitle"] = json!("A title"),
        "summary" => record["summary"] = json!("A summary"),
        "mode" => record["mode"] = json!("normal"),
        "permission-mode" => record["permissionMode"] = json!("plan"),
        "system/local_command" => record["content"] = json!("<local-command-stdout>done</local-command-stdout>"),
        "system/microcompact_boundary" => record["microcompactMetadata"] = json!({"compactedToolIds": ["c1"]}),
        "attachment/skill_listing" => record["attachment"]["names"] = json!(["a"]),
        "attachment/queued_command" => {
            let text =
                "<task-notification>\n<tool-use-id>c1</tool-use-id>\n<status>completed</status>\n</task-notification>";
            record["attachment"]["prompt"] = json!(text);
            record["attachment"]["origin"] = json!({"kind": "task-notification"});
        }
        _ => {}
    }
    record
}

/// A made-up session with one minimal record of each of these kinds, and what they need around them.
fn made_up<'k>(outcome: &mut Outcome, kinds: impl Iterator<Item = &'k str>) {
    let user = |uuid: &str, parent: Option<&str>, content: Value| json!({"type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": SESSION, "message": {"role": "user", "content": content}});
    let model = |uuid: &str, parent: &str, id: &str, block: Value| {
        json!({"type": "assistant", "uuid": uuid, "parentUuid": parent, "sessionId": SESSION,
            "message": {"id": id, "role": "assistant", "model": "m", "content": [block]}})
    };
    let queue = |operation: &str| json!({"type": "queue-operation", "operation": operation, "sessionId": SESSION});
    let enqueue = |text: &str| {
        let mut record = queue("enqueue");
        record["content"] = json!(text);
        record
    };
    let mut running =
        user("r1", Some("a1"), json!([{"type": "tool_result", "tool_use_id": "c1", "content": "It runs."}]));
    running["toolUseResult"] = json!({"backgroundTaskId": "b1"});
    let mut lines = vec![
        user("u1", None, json!("Go.")),
        model("a1", "u1", "m1", json!({"type": "tool_use", "id": "c1", "name": "Bash", "input": {}})),
        running,
        enqueue("Faster."),
        queue("dequeue"),
        user("u2", Some("r1"), json!("Faster.")),
        // Another branch, so that a leaf can move the head.
        user("u3", Some("u1"), json!("Another way.")),
        enqueue("Stop."),
    ];
    lines.extend(kinds.enumerate().map(|(number, kind)| minimal(number, kind)));
    lines.push(queue("remove"));
    lines.push(model("a9", "u2", "m9", json!({"type": "text", "text": "Done."})));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(format!("{SESSION}.jsonl"));
    fs::write(&path, lines.iter().fold(String::new(), |text, line| text + &line.to_string() + "\n"))
        .expect("it is written");
    outcome.learn(&path);
}

#[test]
fn records_become_what_the_table_says() {
    let kinds = table();
    let mut outcome = Outcome::default();
    fixtures(&mut outcome);
    let genuine: BTreeSet<String> = outcome.types.keys().cloned().collect();
    made_up(
        &mut outcome,
        kinds.iter().map(|k| k.name.as_str()).filter(|k| !matches!(*k, "user" | "assistant" | "queue-operation")),
    );
    let mut wrong = Vec::new();
    for kind in &kinds {
        let Some(types) = outcome.types.get(&kind.name) else {
            wrong.push(format!("{}: no record of this kind was imported", kind.name));
            continue;
        };
        let kept_as = format!("{VENDOR}{}", kind.name);
        let (kept, mapped): (BTreeSet<&str>, BTreeSet<&str>) =
            types.iter().map(String::as_str).partition(|t| t.starts_with("x."));
        let allowed: BTreeSet<&str> = kind.events.iter().map(String::as_str).collect();
        if mapped != allowed {
            wrong.push(format!("{}: {mapped:?} came out, the table says {allowed:?}", kind.name));
        }
        let may_be_kept = kind.status == Status::Kept || kind.also.is_some();
        if kept.iter().any(|t| *t != kept_as) || kept.is_empty() == may_be_kept {
            wrong.push(format!(
                "{}: {kept:?} came out, the table says {:?}, also {:?}",
                kind.name, kind.status, kind.also
            ));
        }
    }
    for kind in genuine.iter().filter(|genuine| kinds.iter().all(|k| k.name != **genuine)) {
        let types: Vec<&str> = outcome.types[kind].iter().map(String::as_str).collect();
        if types != [format!("{VENDOR}{kind}")] {
            wrong.push(format!("{kind}: not in the table, and {types:?} came out"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_is_in_order() {
    let kinds = table();
    for (at, kind) in kinds.iter().enumerate() {
        assert!(kinds[..at].iter().all(|other| other.name != kind.name), "{} stands twice", kind.name);
        assert_eq!(kind.events.is_empty(), kind.status == Status::Kept, "{}", kind.name);
        assert!(kind.status == Status::Mapped || (kind.also.is_none() && !kind.note.is_empty()), "{}", kind.name);
        assert!(!kind.seen.is_empty(), "{}", kind.name);
        for event in &kind.events {
            assert!(Data::NAMES.contains(&event.as_str()), "{}: {event}", kind.name);
        }
    }
}

/// The table as the specification shows it.
fn rendered(kinds: &[Kind]) -> String {
    let mut text = String::from(
        "| kind | is | events | seen | not carried; of kept kinds, what it holds |\n|---|---|---|---|---|\n",
    );
    for kind in kinds {
        let is = match (kind.status, &kind.also) {
            (Status::Kept, _) => "kept".into(),
            (Status::Mapped, None) => "mapped".into(),
            (Status::Mapped, Some(also)) => format!("mapped; kept if {also}"),
        };
        let events: Vec<String> = kind.events.iter().map(|e| format!("`{e}`")).collect();
        let seen = match &*kind.seen {
            "third-party" => "† test material of other tools".into(),
            ours if ours.contains("2.1.197") => ours.to_owned(),
            others => format!("† {others}"),
        };
        writeln!(text, "| `{}` | {is} | {} | {seen} | {} |", kind.name, events.join(", "), kind.note)
            .expect("a string takes all");
    }
    text
}

#[test]
fn the_specification_shows_the_table() {
    let path = root().join("spec/sources/claude-code.md");
    let text = fs::read_to_string(&path).expect("the chapter is there");
    let kinds = table();
    let wanted = rendered(&kinds);
    let (before, rest) = text.split_once(BEGIN).expect("the chapter has a place for the table");
    let (shown, after) = rest.split_once(END).expect("the place has an end");
    if std::env::var_os("PALOG_UPDATE").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{wanted}{END}{after}")).expect("it is written");
        return;
    }
    assert!(shown == wanted, "the table is out of date: PALOG_UPDATE=1 cargo test -p palog-claude-code --test kinds");
    for kind in kinds.iter().filter(|k| k.named) {
        assert!(
            shown.contains(&format!("| `{}` |", kind.name)),
            "{} is written by the client and not shown",
            kind.name
        );
    }
}
