//! `palog export`, `palog migrate` and `palog diff`, as a user runs them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// What a run gave.
struct Run {
    code: i32,
    out: String,
    err: String,
}

impl Run {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}\n{}", self.out, self.err))
    }
}

fn run(folder: &Path, args: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_palog"));
    command.args(args).current_dir(folder).env("NO_COLOR", "1").env("HOME", folder).env_remove("XDG_DATA_HOME");
    let output = command.env_remove("CODEX_HOME").env_remove("CLAUDE_CONFIG_DIR").output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Run { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance-fixtures/sources").join(name);
    path.display().to_string()
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

const TOOLS: &str = "claude-code/tools_basic/config";
const PICTURES: &str = "claude-code/image_input/config";
const KILLED: &str = "claude-code/tui_perm_pending/snap-after-kill";

#[test]
fn an_export_tells_what_is_lost_and_overwrites_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = ["export", &fixture(TOOLS), "--to", "codex", "-o", "out.jsonl", "--format", "json"];
    let first = run(folder.path(), &args);
    assert_eq!(first.code, 0, "{}", first.err);
    let report = first.json();
    assert_eq!((&report["to"], &report["identical"]), (&"codex".into(), &false.into()));
    let beside = fs::read_to_string(folder.path().join("out.jsonl.losses.json")).expect("the report");
    assert_eq!(serde_json::from_str::<Value>(&beside).expect("JSON"), report);
    let schema: Value = serde_json::from_str(&run(folder.path(), &["schema", "loss"]).out).expect("a schema");
    assert!(jsonschema::is_valid(&schema, &report));
    let written = fs::read(folder.path().join("out.jsonl")).expect("a rollout");
    assert!(written.starts_with(br#"{"timestamp":"2026-11-29T"#));

    fs::write(folder.path().join("out.jsonl"), "mine").expect("it can be written");
    let again = run(folder.path(), &args);
    assert_eq!(again.code, 1);
    assert!(again.err.contains("exists already"), "{}", again.err);
    assert_eq!(fs::read(folder.path().join("out.jsonl")).expect("it is there"), b"mine");
    assert_eq!(files(folder.path()).len(), 2, "nothing is left behind");

    // The same bytes on standard output.
    let piped = run(folder.path(), &["export", &fixture(TOOLS), "--to", "codex", "-o", "-"]);
    assert_eq!(piped.out.as_bytes(), written);
    assert!(piped.err.contains("losses:"), "{}", piped.err);
}

#[test]
fn a_limit_refuses_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    for (class, code) in [("opaque", 0), ("omitted", 1), ("normalized", 1)] {
        let name = format!("{class}.jsonl");
        let args = ["export", &fixture(PICTURES), "--to", "codex", "-o", &name, "--fail-on", class];
        let limited = run(folder.path(), &args);
        assert_eq!(limited.code, code, "{class}: {}", limited.err);
        assert_eq!(folder.path().join(&name).exists(), code == 0, "{class}");
    }
    let queued = r#"{"palog":1,"log":"l","seq":2,"id":"q","type":"input.queued","time":null,"actor":{"kind":"user"},"data":{"input":"i","parts":[{"type":"text","text":"and then"}]}}"#;
    let said = r#"{"palog":1,"log":"l","seq":1,"id":"u","type":"message.added","time":null,"actor":{"kind":"user"},"data":{"role":"user","parts":[{"type":"text","text":"go"}]}}"#;
    let opened = r#"{"palog":1,"log":"l","seq":0,"id":"o","type":"log.opened","time":null,"actor":{"kind":"harness"},"data":{"spec":"1.0-draft","session":"s","agent":{"name":"mine"}}}"#;
    fs::write(folder.path().join("a.palog.jsonl"), format!("{opened}\n{said}\n{queued}\n")).expect("a log");
    let export = |more: &[&str]| {
        run(folder.path(), &[&["export", "a.palog.jsonl", "--to", "claude-code", "-o", "a.jsonl"], more].concat())
    };
    let nowhere = export(&[]);
    assert_eq!(nowhere.code, 2, "nothing tells the directory");
    assert!(nowhere.err.contains("--directory"), "{}", nowhere.err);
    let refused = export(&["--directory", "/w"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("input.queued") && refused.err.contains("--lossy"), "{}", refused.err);
    assert!(!folder.path().join("a.jsonl").exists());
    assert_eq!(export(&["--directory", "/w", "--lossy"]).code, 0);
    assert!(folder.path().join("a.jsonl").exists());
}

#[test]
fn a_session_that_goes_back_is_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let imported = run(folder.path(), &["import", &fixture(TOOLS), "-o", "logs"]);
    assert_eq!(imported.code, 0, "{}", imported.err);
    let back = run(folder.path(), &["export", "logs", "--to", "claude-code", "-o", "back.jsonl"]);
    assert_eq!(back.code, 0, "{}", back.err);
    let original = files(Path::new(&fixture(&format!("{TOOLS}/projects"))));
    assert_eq!(fs::read(folder.path().join("back.jsonl")).ok(), fs::read(&original[0]).ok());
}

#[test]
fn a_move_happens_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = fixture(KILLED);
    let before = files(Path::new(&source));
    let plan =
        run(folder.path(), &["migrate", &source, "--to", "codex", "--into", "home", "--dry-run", "--format", "json"]);
    assert_eq!((plan.code, &plan.json()["written"]), (0, &false.into()), "{}", plan.err);
    assert_eq!(files(folder.path()), Vec::<PathBuf>::new(), "a plan writes nothing");

    let moved = run(folder.path(), &["migrate", &source, "--to", "codex", "--into", "home", "--format", "json"]);
    assert_eq!(moved.code, 0, "{}", moved.err);
    let migration = moved.json();
    assert_eq!(
        (&migration["written"], &migration["report"]["session"]),
        (&true.into(), &plan.json()["report"]["session"])
    );
    let session = migration["report"]["session"].as_str().expect("an id");
    let resume = migration["resume"].as_str().expect("a command");
    assert!(resume.contains("CODEX_HOME=") && resume.ends_with(&format!("codex resume {session}")), "{resume}");
    assert_eq!(files(Path::new(&source)), before);

    // What is open stays open, by the new store alone; the log says that it is over here.
    let verdict = |path: &str| run(folder.path(), &["recover", path, "--format", "json"]).json()["verdict"].clone();
    assert_eq!(verdict("home"), verdict(&source));
    assert_eq!(verdict("home"), "needs_reconcile");
    assert_eq!(verdict(".local/share/palog"), "closed");
    let again = run(folder.path(), &["migrate", ".local/share/palog", "--to", "codex", "--into", "home"]);
    assert_eq!(again.code, 1);
    assert!(again.err.contains("was moved already"), "{}", again.err);
    let anew = run(folder.path(), &["migrate", &source, "--to", "codex", "--into", "home"]);
    assert_eq!(anew.code, 1, "its log is there, and closed");
    assert_eq!(files(&folder.path().join("home")).len(), 1);
}

#[test]
fn a_place_that_is_taken_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = run(
        folder.path(),
        &["migrate", &fixture(KILLED), "--to", "codex", "--into", "home", "--dry-run", "--format", "json"],
    )
    .json();
    let taken = folder.path().join(plan["path"].as_str().expect("a path"));
    fs::create_dir_all(taken.parent().expect("a folder")).expect("it can be made");
    fs::write(&taken, "mine").expect("it can be written");
    let moved =
        run(folder.path(), &["migrate", &fixture(KILLED), "--to", "codex", "--into", "home", "--format", "json"]);
    assert_eq!(moved.code, 0, "{}", moved.err);
    assert_ne!(moved.json()["report"]["session"], plan["report"]["session"]);
    assert_eq!(fs::read(&taken).expect("it is there"), b"mine");
}

#[test]
fn a_comparison_tells_what_differs() {
    let folder = tempfile::tempdir().expect("a folder");
    let same = run(folder.path(), &["diff", &fixture(TOOLS), &fixture(TOOLS), "--format", "json"]);
    assert_eq!((same.code, same.json()["differences"].as_array().map(Vec::len)), (0, Some(0)));
    let other = run(folder.path(), &["diff", &fixture(TOOLS), &fixture(KILLED), "--format", "json"]);
    assert_eq!(other.code, 1, "{}", other.err);
    let differences = other.json()["differences"].as_array().cloned().expect("differences");
    let of = |field: &str| differences.iter().find(|d| d["field"] == field).unwrap_or_else(|| panic!("{field}"));
    assert_eq!(of("verdict")["second"][0]["says"], "needs_reconcile");
    // One of the eleven calls is of a tool that the other session called as well.
    assert_eq!(of("action.name")["first"].as_array().map(Vec::len), Some(10));
    let schema: Value = serde_json::from_str(&run(folder.path(), &["schema", "diff"]).out).expect("a schema");
    assert!(jsonschema::is_valid(&schema, &other.json()));
    let told = run(folder.path(), &["diff", &fixture(TOOLS), &fixture(KILLED)]);
    assert!(told.out.contains("verdict") && told.out.contains("- idle"), "{}", told.out);
}
