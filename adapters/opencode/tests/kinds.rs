//! What each kind of record becomes: the table `kinds.toml`, the chapter of the specification that shows it, and the importer
//! say the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use palog::blob::sibling;
use palog::events::Data;
use palog_opencode::{Directory, Options, discover, import};
use serde::Deserialize;
use serde_json::Value;

const VENDOR: &str = "x.ai.opencode/";
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
    events: BTreeSet<String>,
    rare: BTreeSet<String>,
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
    let text = fs::read_to_string(root().join("adapters/opencode/kinds.toml")).expect("the table is there");
    toml::from_str::<Table>(&text).expect("the table has its form").kind
}

/// The types of the events that came out, by the kind of their records.
type Outcome = BTreeMap<String, BTreeSet<String>>;

/// The kind of a kept row or file, and what it is referred to by.
fn kind(line: &Value) -> ((String, String), String) {
    let table = line["table"].as_str().unwrap_or_default();
    let row = &line["row"];
    let text = |column: &str| row[column].as_str().map(str::to_owned);
    let position = row["position"].as_i64().map(|n| format!("[{},{n}]", row["session_id"]));
    let key = text("id").or_else(|| text("path")).or(position).or_else(|| text("session_id")).unwrap_or_default();
    let data: Value =
        serde_json::from_str(&text("data").or_else(|| text("content")).unwrap_or_default()).unwrap_or_default();
    let member = match table {
        "message" => data["role"].as_str(),
        "part" => data["type"].as_str(),
        "session_message" => row["type"].as_str(),
        _ => None,
    };
    let name = member.map_or_else(|| table.to_owned(), |member| format!("{table}/{member}"));
    ((table.to_owned(), key), name)
}

/// Imports what lies at `path`.
fn learn(path: &Path, outcome: &mut Outcome) {
    for session in discover(path).expect("the input can be read").sessions {
        let folder = tempfile::tempdir().expect("a folder");
        let report = import(&session, &mut Directory::new(folder.path()), &Options::default()).expect("an import");
        for log in report.logs.iter().filter_map(|log| log.path.as_deref()) {
            let Ok(rows) = fs::read_to_string(sibling(log, "sources").join("store")) else { continue };
            let rows: BTreeMap<_, _> = rows
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).expect("a row"))
                .filter(|line| !line["table"].is_null())
                .map(|line| kind(&line))
                .collect();
            for line in fs::read_to_string(log).expect("a log").lines() {
                let event: Value = serde_json::from_str(line).expect("an event");
                for src in event["src"].as_array().into_iter().flatten() {
                    let own = |member: &str| src[member].as_str().unwrap_or_default().to_owned();
                    let name = rows.get(&(own("table"), own("key"))).expect("what is referred to is kept");
                    let kind = event["type"].as_str().unwrap_or_default().to_owned();
                    outcome.entry(name.clone()).or_default().insert(kind);
                }
            }
        }
    }
}

fn fixtures() -> Outcome {
    let mut outcome = Outcome::new();
    let mut scenarios: Vec<PathBuf> = fs::read_dir(root().join("conformance-fixtures/sources/opencode"))
        .expect("the fixtures are there")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    scenarios.sort();
    scenarios.iter().filter(|path| path.is_dir()).for_each(|scenario| learn(scenario, &mut outcome));
    outcome
}

#[test]
fn the_importer_does_what_the_table_says() {
    let (outcome, mut wrong) = (fixtures(), String::new());
    let table = table();
    for kind in &table {
        for event in kind.events.iter().chain(&kind.rare).filter(|event| !event.starts_with(VENDOR)) {
            assert!(Data::NAMES.contains(&event.as_str()), "{}: {event} is no type", kind.name);
        }
        let expected = match kind.status {
            Status::Mapped => kind.events.clone(),
            Status::Kept => BTreeSet::from([format!("{VENDOR}{}", kind.name)]),
        };
        match outcome.get(&kind.name) {
            Some(found) if *found == expected => {}
            Some(found) => _ = writeln!(wrong, "{}: the table says {expected:?}, and {found:?} came out", kind.name),
            None if kind.seen == "†" => {}
            None => _ = writeln!(wrong, "{}: no recorded session has it", kind.name),
        }
    }
    for name in outcome.keys().filter(|name| table.iter().all(|kind| kind.name != **name)) {
        _ = writeln!(wrong, "{name}: it is not in the table");
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_chapter_shows_the_table() {
    let path = root().join("spec/sources/opencode.md");
    let chapter = fs::read_to_string(&path).expect("the chapter is there");
    let (before, rest) = chapter.split_once(BEGIN).expect("a place for the table");
    let (_, after) = rest.split_once(END).expect("the end of the table");
    let mut shown = String::from(
        "| kind | is | events | seen | not carried; of kept kinds, what it holds |\n|---|---|---|---|---|\n",
    );
    for kind in table() {
        let code = |events: &BTreeSet<String>, mark: &str| -> Vec<String> {
            events.iter().map(|event| format!("`{event}`{mark}")).collect()
        };
        let events = [code(&kind.events, ""), code(&kind.rare, "†")].concat().join(", ");
        let status = format!("{:?}", kind.status).to_lowercase();
        _ = writeln!(shown, "| `{}` | {status} | {events} | {} | {} |", kind.name, kind.seen, kind.note);
    }
    let chapter_now = format!("{before}{BEGIN}{shown}{END}{after}");
    if std::env::var_os("PALOG_UPDATE").is_some() {
        fs::write(&path, &chapter_now).expect("the chapter can be written");
    }
    assert!(chapter == chapter_now || std::env::var_os("PALOG_UPDATE").is_some(), "run with PALOG_UPDATE=1");
}
