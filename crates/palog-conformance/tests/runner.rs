//! The runner itself can fail: whatever is changed in an expectation turns its case red, what nobody checks does not pass,
//! and a broken case is an error.
#![cfg(unix)]

#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "../../palog-cli/src/reference/import.rs"]
mod import;
#[path = "support/reference.rs"]
mod reference;
#[path = "support/valid.rs"]
mod valid;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use palog_conformance::{Case, Expectation, Implementation, Import, Operation, Task, World, json, run};
use reference::Reference;
use serde_json::{Value, json};

/// Members that are for people, or not compared with what the implementation gives.
const FOR_PEOPLE: &[&str] = &["why", "evidence", "because", "doubt", "really_happened", "title", "what"];

/// Cases in which every compared member of a truth occurs.
const TRUTHS: &[&str] = &[
    "bg_task_kill--snap-after-kill",
    "fork--config",
    "kill_midstream--snap-after-kill",
    "subagent--config",
    "tui_ask_pending--snap-after-kill",
    "tui_perm_answers--config",
    "tui_perm_pending--snap-after-kill",
    "tui_queued--snap-queued",
];

/// A question to the implementation: what, about which log, before which event.
type Question = (&'static str, PathBuf, Option<String>);

/// An implementation that does everything once, and then says the same again.
#[derive(Default)]
struct Remembered {
    imports: Mutex<HashMap<PathBuf, (tempfile::TempDir, Import)>>,
    answers: Mutex<HashMap<Question, Value>>,
}

impl Remembered {
    fn answer(&self, what: &'static str, log: &Path, before: Option<&str>) -> Result<Value, String> {
        let key = (what, log.to_path_buf(), before.map(str::to_owned));
        if let Some(known) = self.answers.lock().map_err(|e| e.to_string())?.get(&key) {
            return Ok(known.clone());
        }
        let answer = match what {
            "state" => Reference.state(log),
            "recovery" => Reference.recovery(log, &World::default()),
            _ => Reference.context(log, before),
        }?;
        self.answers.lock().map_err(|e| e.to_string())?.insert(key, answer.clone());
        Ok(answer)
    }
}

impl Implementation for Remembered {
    fn import(&self, source: &Path, _: &Path) -> Result<Import, String> {
        let mut imports = self.imports.lock().map_err(|e| e.to_string())?;
        if let Some((_, import)) = imports.get(source) {
            return Ok(import.clone());
        }
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let import = Reference.import(source, folder.path())?;
        imports.insert(source.into(), (folder, import.clone()));
        Ok(import)
    }

    fn state(&self, log: &Path) -> Result<Value, String> {
        self.answer("state", log, None)
    }

    fn read(&self, log: &Path, after: Option<&str>) -> Result<Value, String> {
        Reference.read(log, after)
    }

    fn validate(&self, log: &Path) -> Result<Value, String> {
        Reference.validate(log)
    }

    fn recovery(&self, log: &Path, _: &World) -> Result<Value, String> {
        self.answer("recovery", log, None)
    }

    fn context(&self, log: &Path, before: Option<&str>) -> Result<Value, String> {
        self.answer("context", log, before)
    }
}

/// A set of its own, with the case `id` in it, and the sources where they are.
struct Set {
    folder: tempfile::TempDir,
    id: String,
}

impl Set {
    fn of(id: &str) -> Set {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let from = fixtures::folder().join("v1").join(id);
        let to = folder.path().join("v1").join(id);
        fs::create_dir_all(to.join("expect")).expect("a folder");
        fs::copy(from.join("case.toml"), to.join("case.toml")).expect("case.toml");
        for entry in fs::read_dir(from.join("expect")).expect("expect") {
            let entry = entry.expect("an entry");
            fs::copy(entry.path(), to.join("expect").join(entry.file_name())).expect("an expectation");
        }
        let sources = fs::canonicalize(fixtures::folder()).expect("fixtures").join("sources");
        std::os::unix::fs::symlink(sources, folder.path().join("sources")).expect("a link");
        Set { folder, id: id.into() }
    }

    fn case(&self) -> PathBuf {
        self.folder.path().join("v1").join(&self.id)
    }

    fn expectation(&self) -> PathBuf {
        let expect = self.case().join("expect");
        fs::read_dir(expect).expect("expect").next().expect("one file").expect("an entry").path()
    }

    fn read(&self) -> Value {
        json::value(&fs::read_to_string(self.expectation()).expect("an expectation")).expect("JSON")
    }

    fn write(&self, expectation: &Value) {
        fs::write(self.expectation(), expectation.to_string()).expect("an expectation");
    }

    fn edit(&self, file: &str, from: &str, to: &str) {
        let path = self.case().join(file);
        let text = fs::read_to_string(&path).expect("a file");
        assert!(text.contains(from), "{from}");
        fs::write(path, text.replacen(from, to, 1)).expect("a file");
    }

    fn load(&self) -> Result<Case, String> {
        Case::load(self.folder.path(), &self.case())
    }

    /// Whether the case is red, be it by a failure or because it cannot be loaded.
    fn is_red(&self, implementation: &dyn Implementation) -> bool {
        self.load().map_or(true, |case| !run(&case, implementation).failures.is_empty())
    }
}

/// The places of everything in an expectation that is compared: each scalar, and each item of a list.
fn compared(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter().filter(|(name, _)| !FOR_PEOPLE.contains(&name.as_str())) {
                compared(member, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                found.push(format!("{at}/{n}"));
                compared(item, &format!("{at}/{n}"), found);
            }
        }
        _ => found.push(at.into()),
    }
}

/// Changes a scalar, or takes a list's item away.
fn change(value: &mut Value, at: &str) -> bool {
    let changed = match value.pointer(at) {
        Some(Value::Bool(it)) => json!(!it),
        Some(Value::Number(n)) => json!(n.as_u64().unwrap_or(0) + 1),
        Some(Value::String(text)) => json!(format!("{text}x")),
        Some(Value::Null) => json!("x"),
        _ => Value::Null,
    };
    if !changed.is_null() {
        if let Some(place) = value.pointer_mut(at) {
            *place = changed;
        }
        return true;
    }
    let Some((list, n)) = at.rsplit_once('/') else { return false };
    match (value.pointer_mut(list), n.parse::<usize>()) {
        (Some(Value::Array(items)), Ok(n)) => {
            items.remove(n);
            true
        }
        _ => false,
    }
}

/// Changes each compared place of a case's expectation in turn, and returns those that leave the case green.
fn unnoticed(id: &str, exempt: impl Fn(&str, &Value) -> bool) -> Vec<String> {
    let (set, implementation) = (Set::of(id), Remembered::default());
    let original = set.read();
    assert!(!set.is_red(&implementation), "{id} is red as it stands");
    let mut places = Vec::new();
    compared(&original, "", &mut places);
    places.retain(|place| {
        let mut changed = original.clone();
        let tried = !exempt(place, json::at(&original, place)) && change(&mut changed, place);
        set.write(&changed);
        tried && !set.is_red(&implementation)
    });
    places.iter().map(|place| format!("{id}{place}")).collect()
}

#[test]
fn every_change_of_a_truth_is_noticed() {
    // What is as true as something else is not asked for, nor is every denial.
    let exempt =
        |place: &str, _: &Value| ["/also", "/verdict_also", "/approvals/"].iter().any(|part| place.contains(part));
    let unnoticed: Vec<String> =
        TRUTHS.iter().flat_map(|case| unnoticed(&format!("import/claude-code/{case}"), exempt)).collect();
    assert!(unnoticed.is_empty(), "nobody notices {unnoticed:#?}");
}

#[test]
fn every_change_of_an_expectation_is_noticed() {
    let faults = fs::read_dir(fixtures::folder().join("v1/import/faults")).expect("the faults");
    let names = faults.map(|entry| entry.expect("a case").file_name().to_string_lossy().into_owned());
    let unnoticed: Vec<String> = names
        .flat_map(|name| {
            let partly = name.starts_with("39") || name.starts_with("12");
            // The second input lies beside the first one, and is no part of what is imported.
            let beside = name.starts_with("43");
            unnoticed(&format!("import/faults/{name}"), move |place, value| {
                let begins = |parts: &[&str]| parts.iter().any(|part| place.starts_with(part));
                // These are for grouping, compared with the source alone, or not meant in one case.
                begins(&["/kind", "/preserve/"])
                    || (partly && begins(&["/inputs", "/operation", "/must"]))
                    || (beside && begins(&["/inputs/1"]))
                    // An import says nothing of exports.
                    || value.as_str().is_some_and(|sentence| sentence.contains("export"))
                    // Further information is fine, and so are further places of what is expected.
                    || value["severity"] == "info"
                    || (value.is_object() && place.contains("/at/"))
            })
        })
        .collect();
    assert!(unnoticed.is_empty(), "nobody notices {unnoticed:#?}");
}

#[test]
fn what_nobody_checks_does_not_pass() {
    let implementation = Remembered::default();
    let changes: [(&str, Value, &str); 4] = [
        ("/state", json!({"weather": "fine"}), "state.weather: nobody checks"),
        ("/must", json!(["be nice"]), "\"be nice\": nobody checks"),
        ("/counts", json!({"moods": 3}), "nobody checks the count moods"),
        ("/preserve", json!([{"what": "the mood"}]), "nobody checks that the mood"),
    ];
    for (member, value, expected) in changes {
        let set = Set::of("import/faults/01-concatenated-objects");
        let mut expectation = set.read();
        *expectation.pointer_mut(member).expect("a member") = value;
        set.write(&expectation);
        let failures = run(&set.load().expect("a case"), &implementation).failures;
        assert!(failures.iter().any(|failure| failure.contains(expected)), "{failures:?}");
    }
}

#[test]
fn an_open_question_of_a_call_is_missed_where_the_truth_asks_for_it_and_not_where_it_does_not() {
    let implementation = Remembered::default();
    let set = Set::of("import/claude-code/tui_perm_pending--snap-after-kill");
    let truth = set.read();
    assert_eq!(truth["sessions"][0]["approvals"][0]["status"], "asked");
    for status in ["granted", "open", "denied"] {
        let mut other = truth.clone();
        other["sessions"][0]["approvals"][0]["status"] = status.into();
        set.write(&other);
        let failures = run(&set.load().expect("a case"), &implementation).failures;
        assert_eq!(failures.iter().filter(|f| f.contains("approvals:")).count(), 2, "{failures:?}");
    }
}

#[test]
fn what_is_as_true_is_accepted_and_nothing_else() {
    let implementation = Remembered::default();
    let set = Set::of("import/claude-code/tui_ask_pending--config");
    let mut truth = set.read();
    assert_eq!(
        (&truth["sessions"][0]["verdict"], &truth["sessions"][0]["verdict_also"]),
        (&json!("idle"), &json!(["awaiting_human"]))
    );
    assert!(!set.is_red(&implementation));
    truth["sessions"][0]["calls"][0]["state"] = "succeeded".into();
    truth["sessions"][0]["calls"][0]["also"] = json!(["failed"]);
    set.write(&truth);
    assert!(set.is_red(&implementation), "neither succeeded nor failed");
}

#[test]
fn a_broken_case_is_an_error() {
    let id = "import/faults/01-concatenated-objects";
    let broken = |file: &str, from: &str, to: &str| {
        let set = Set::of(id);
        set.edit(file, from, to);
        set.load().expect_err("it is broken")
    };
    assert!(broken("case.toml", "rationale", "reason").contains("reason"));
    assert!(broken("case.toml", "level = \"L0\"\n", "").contains("level"));
    assert!(broken("case.toml", "id = \"import", "id = \"export").contains("its id is"));
    assert!(broken("case.toml", "\"idle\"", "\"ready\"").contains("other verdicts"));
    assert!(broken("case.toml", "\"diagnosed\"", "\"clean\"").contains("other outcomes"));
    assert!(broken("expect/expect.json", "\"bytes\": 1880", "\"bytes\": 1881").contains("another file"));
    assert!(broken("expect/expect.json", "\"counts\"", "\"count\"").contains("count"));
    let set = Set::of(id);
    fs::remove_file(set.expectation()).expect("a file");
    assert!(set.load().expect_err("nothing is expected").contains("exactly one"));
    fs::remove_file(set.case().join("case.toml")).expect("a file");
    assert!(Case::all(set.folder.path()).expect_err("no case").contains("case.toml is missing"));
}

#[test]
fn every_case_expects_something() {
    for case in Case::all(&fixtures::folder()).expect("the set") {
        let expects = match &case.task {
            Task::Import(source) => match &source.expectation {
                Expectation::Truth(truth) => !truth.sessions.is_empty(),
                Expectation::Faults(expect) => !expect.inputs.is_empty() && !expect.counts.is_empty(),
            },
            Task::Log(log) => {
                log.operation == Operation::Read
                    || log.expected.state.is_some()
                    || log.expected.recovery.is_some()
                    || log.expected.context.is_some()
            }
        };
        assert!(expects, "{}", case.id);
    }
}
