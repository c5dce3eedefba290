//! Drives the built binary as a user would.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A directory of its own for one test, with a way to run the program in it.
struct Bench {
    directory: tempfile::TempDir,
}

/// What a run gave.
struct Run {
    code: i32,
    out: String,
    err: String,
}

impl Bench {
    fn new() -> Self {
        Bench { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file; directories on the way are made.
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(&path, content).expect("a file");
        path
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a file")
    }

    /// Writes a log made of `events`.
    fn log(&self, name: &str, events: &[&str]) -> PathBuf {
        self.file(name, log(events))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_palog"));
        command.args(args).current_dir(self.directory.path()).env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Run {
        Run::of(self.command(args).output().expect("it runs"))
    }

    /// Runs with `input` on standard input.
    fn pipe(&self, args: &[&str], input: &[u8]) -> Run {
        let mut command = self.command(args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        // Who reads no input closes the pipe: that is told by the exit status.
        let _ = child.stdin.take().expect("a pipe").write_all(input);
        Run::of(child.wait_with_output().expect("it ends"))
    }
}

impl Run {
    fn of(output: Output) -> Self {
        Run {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}\n{}", self.out, self.err))
    }

    /// Everything that the user sees, for a snapshot.
    fn all(&self) -> String {
        format!("exit {}\n--- stdout\n{}--- stderr\n{}", self.code, self.out, self.err)
    }
}

/// A log; each event is `ID [^PARENT] TYPE DATA`. Seconds count up, the actor follows from the type.
fn log(events: &[&str]) -> String {
    let mut out = String::new();
    for (seq, event) in events.iter().enumerate() {
        let (id, rest) = event.split_once(' ').expect("an id");
        let (parent, rest) = match rest.strip_prefix('^') {
            Some(rest) => {
                rest.split_once(' ').map(|(p, rest)| (format!(r#""parent":"{p}","#), rest)).expect("a parent")
            }
            None => (String::new(), rest),
        };
        let (kind, data) = rest.split_once(' ').expect("a type");
        let actor = match kind {
            "message.added" if data.contains(r#""role":"assistant""#) => "model",
            "message.added" if data.contains(r#""role":"tool""#) => "tool",
            "message.added" | "approval.ended" | "input.queued" => "user",
            "action.proposed" | "model.response" => "model",
            "action.ended" => "tool",
            _ => "harness",
        };
        let time = format!("2026-11-29T12:{:02}:{:02}Z", seq / 60, seq % 60);
        out += &format!(
            r#"{{"palog":1,"log":"l1","seq":{seq},"id":"{id}","type":"{kind}","time":"{time}","actor":{{"kind":"{actor}"}},{parent}"data":{data}}}"#
        );
        out.push('\n');
    }
    out
}

const OPENED: &str = r#"o log.opened {"spec":"1.0-draft","session":"5e550000-0000-4000-8000-000000000001","agent":{"name":"claude-code","version":"2.1.197"},"derived":{"mapping":"claude-code/1"}}"#;
const SOURCE: &str = r#"s source.opened {"source":"transcript","vendor":"claude-code","locator":"x.jsonl","records":["usage"],"kept":false,"order":"source"}"#;
const CONFIG: &str = r#"c config.set {"model":"claude-opus-4-8","directory":"/home/me/shop","branch":"main","title":"Fix the checkout"}"#;
const PROMPT: &str = r#"u message.added {"role":"user","purpose":"prompt","parts":[{"type":"text","text":"Deploy the fix to staging, please."}]}"#;
const TURN: &str = r#"t turn.started {"turn":"t1","message":"u"}"#;
const SAYS: &str = r#"a message.added {"role":"assistant","response":"r1","parts":[{"type":"text","text":"I will run the deployment."}]}"#;
const CALLS: &str =
    r#"b message.added {"role":"assistant","response":"r1","parts":[{"type":"action","action":"toolu_1"}]}"#;
const BASH: &str = r#"p action.proposed {"action":"toolu_1","name":"Bash","args":{"command":"./deploy.sh staging"},"args_digest":"sha256:337dd351f62e3d6cdfcd813c053f28bb686c949cb2f2dd65087d757a84f6d351"}"#;
const STOP: &str = r#"r model.response {"response":"r1","model":"claude-opus-4-8","stop":"tool_use","usage":{"input":100,"output":20}}"#;

fn fixtures() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance-fixtures/sources"))
}

macro_rules! snapshot {
    ($name:literal, $text:expr) => {
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!($name, $text);
        });
    };
}

#[test]
fn help_shows_an_example_of_every_command() {
    let bench = Bench::new();
    let mut all = bench.run(&["--help"]).out;
    let commands = [
        "import",
        "validate",
        "show",
        "state",
        "recover",
        "context",
        "ls",
        "explain",
        "schema",
        "conform",
        "conform run",
        "conform list",
        "completions",
        "man",
    ];
    for command in commands {
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = bench.run(&words);
        assert_eq!(help.code, 0);
        assert!(help.out.contains("Example"), "{command}");
        all += &format!("\n$ palog {command} --help\n{}", help.out);
    }
    for command in
        all.split("\nCommands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("the commands").lines()
    {
        let name = command.split_whitespace().next().expect("a name");
        assert!(commands.contains(&name), "{name} is not among the commands whose help is looked at");
    }
    snapshot!("help", all);
}

#[test]
fn a_wrong_command_line_is_told_with_2() {
    let bench = Bench::new();
    for args in [&[][..], &["frobnicate"], &["recover"], &["recover", "x", "--format", "xml"], &["context", "x"]] {
        let run = bench.run(args);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{args:?}");
        assert!(!run.err.is_empty(), "{args:?}");
    }
}

/// A session in which a person was asked, a call failed, one was refused, one went on in the background, and one branch
/// was left.
fn varied() -> Vec<&'static str> {
    vec![
        OPENED,
        SOURCE,
        CONFIG,
        PROMPT,
        TURN,
        SAYS,
        CALLS,
        BASH,
        STOP,
        r#"e action.ended {"action":"toolu_1","outcome":"failed","applied":"yes","error":"exit 3"}"#,
        r#"m message.added {"role":"tool","parts":[{"type":"result","action":"toolu_1","parts":[{"type":"text","text":"exit 3: \u001b[31mno route\u001b[0m to host"}],"is_error":true,"final":true}]}"#,
        r#"a2 message.added {"role":"assistant","response":"r2","parts":[{"type":"reasoning","text":"The host is down."},{"type":"text","text":"Two more tries."},{"type":"action","action":"toolu_2"},{"type":"action","action":"toolu_3"}]}"#,
        r#"p2 action.proposed {"action":"toolu_2","name":"Bash","args":{"command":"ping staging"},"args_digest":"sha256:e79953ba3e333fdab65b64fed66976fd6cdd33819395e92cd4d0f56fb6ec23db"}"#,
        r#"p3 action.proposed {"action":"toolu_3","name":"Bash","args":{"command":"sleep 900"},"args_digest":"sha256:1b669122be2b8c7c21c2d9ea879fdb8e62bb3426ec9e0b5ba4881cb501c5e3f6"}"#,
        r#"d approval.ended {"action":"toolu_2","outcome":"denied","reason":"not from here"}"#,
        r#"m2 message.added {"role":"tool","parts":[{"type":"result","action":"toolu_2","parts":[{"type":"text","text":"The user refused."}],"is_error":true,"final":true}]}"#,
        r#"m3 message.added {"role":"tool","parts":[{"type":"result","action":"toolu_3","parts":[{"type":"text","text":"Running in the background."}],"final":false}]}"#,
        r#"v ^u message.added {"role":"user","purpose":"prompt","parts":[{"type":"text","text":"Forget the deployment. What is in the log?"}]}"#,
        r#"t2 turn.started {"turn":"t2","message":"v"}"#,
        r#"a3 message.added {"role":"assistant","response":"r3","parts":[{"type":"text","text":"Nothing of note."}]}"#,
        r#"r3 model.response {"response":"r3","stop":"end_turn"}"#,
    ]
}

#[test]
fn show_tells_who_said_what_and_what_became_of_each_call() {
    let bench = Bench::new();
    bench.log("varied.palog.jsonl", &varied());
    snapshot!("show", bench.run(&["show", "varied.palog.jsonl"]).all());
}

#[test]
fn nothing_of_a_log_reaches_the_terminal_as_it_stands() {
    let bench = Bench::new();
    let nasty = "\\u001b]0;owned\\u0007\\u001b[2J\\u009b31m\\u202e";
    let events = varied()
        .join("\n")
        .replace("Fix the checkout", nasty)
        .replace("no route", nasty)
        .replace("ping staging", nasty)
        .replace("not from here", nasty);
    let events: Vec<&str> = events.split('\n').collect();
    bench.log("nasty.palog.jsonl", &events);
    for args in [
        &["show", "nasty.palog.jsonl"][..],
        &["show", "nasty.palog.jsonl", "--full"],
        &["context", "nasty.palog.jsonl", "--for", "anthropic", "--at", "12"],
        &["recover", "nasty.palog.jsonl"],
        &["state", "nasty.palog.jsonl"],
        &["state", "nasty.palog.jsonl", "--format", "json"],
        &["show", "nasty.palog.jsonl", "--format", "json"],
    ] {
        let run = bench.run(args);
        assert_eq!(run.code, 0, "{}", run.err);
        assert!(run.out.contains("owned"), "{args:?} shows the text");
        let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!run.out.contains(bad) && !run.err.contains(bad), "{args:?}: {}", run.out);
    }
}

#[test]
fn long_texts_are_cut_with_a_count() {
    let bench = Bench::new();
    let long = "word ".repeat(1000);
    let prompt = PROMPT.replace("Deploy the fix to staging, please.", &long);
    bench.log("long.palog.jsonl", &[OPENED, &prompt]);
    let cut = bench.run(&["show", "long.palog.jsonl"]).out;
    assert!(cut.contains("… 3,800 more characters"), "{cut}");
    let full = bench.run(&["show", "long.palog.jsonl", "--full"]).out;
    assert_eq!(full.matches("word").count(), 1000);
}

#[test]
fn show_as_json_has_every_item() {
    let bench = Bench::new();
    bench.log("varied.palog.jsonl", &varied());
    let json = bench.run(&["show", "varied.palog.jsonl", "--format", "json"]).json();
    assert_eq!(json["session"], "5e550000-0000-4000-8000-000000000001");
    let items = json["items"].as_array().expect("items");
    let of = |id: &str| items.iter().find(|i| i["id"] == id).unwrap_or_else(|| panic!("{id} in {items:?}"));
    assert_eq!(of("p")["fate"]["outcome"], "failed");
    assert_eq!(of("p2")["fate"]["approval"], "denied");
    assert_eq!(of("p3")["fate"]["told"], "partial");
    assert_eq!((&of("u")["live"], &of("a2")["live"]), (&true.into(), &false.into()));
    let empty = bench.pipe(&["show", "-", "--format", "json"], log(&[OPENED]).as_bytes()).json();
    assert_eq!(empty["items"], serde_json::json!([]));
}

#[test]
fn context_is_what_the_model_sees() {
    let bench = Bench::new();
    bench.log("varied.palog.jsonl", &varied());
    let json = bench.run(&["context", "varied.palog.jsonl", "--for", "anthropic", "--format", "json"]).json();
    let texts: Vec<&str> = json["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .flat_map(|m| m["content"].as_array().expect("blocks"))
        .filter_map(|b| b["text"].as_str())
        .collect();
    assert_eq!(
        texts,
        ["Deploy the fix to staging, please.", "Forget the deployment. What is in the log?", "Nothing of note."]
    );
    let at = bench.run(&["context", "varied.palog.jsonl", "--for", "anthropic", "--at", "8"]);
    snapshot!("context", at.all());
}

#[test]
fn a_closed_pipe_is_no_error() {
    let bench = Bench::new();
    let long = "word ".repeat(100_000);
    let prompt = PROMPT.replace("Deploy the fix to staging, please.", &long);
    bench.log("long.palog.jsonl", &[OPENED, &prompt]);
    let mut child = bench
        .command(&["show", "long.palog.jsonl", "--full"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    drop(child.stdout.take());
    let run = Run::of(child.wait_with_output().expect("it ends"));
    assert_eq!((run.code, run.err.as_str()), (0, ""));
}

#[test]
fn an_input_that_cannot_be_read_is_told_with_3() {
    let bench = Bench::new();
    bench.file("text.txt", "hello\n");
    bench.file("empty.jsonl", "");
    bench.file("old.palog.zst", [0x28, 0xb5, 0x2f, 0xfd, 0, 0]);
    bench.file("future.palog.jsonl", log(&[OPENED]).replace(r#""palog":1"#, r#""palog":2"#));
    for name in ["nowhere", "text.txt", "empty.jsonl", "old.palog.zst", "future.palog.jsonl"] {
        let run = bench.run(&["show", name]);
        assert_eq!(run.code, 3, "{name}: {}", run.err);
        assert!(run.err.starts_with("error: ") && run.err.contains(name), "{}", run.err);
    }
    assert_eq!(bench.pipe(&["show", "-"], b"").code, 3);
}

/// A file of the suite.
fn fixture(path: &str) -> String {
    fixtures().join(path).to_string_lossy().into_owned()
}

const PENDING: &str = "claude-code/tui_perm_pending/snap-after-kill";
const PENDING_ID: &str = "ba832ebf-67f7-51c3-84cf-5cf705065f1f";

/// The time that pages are made at.
const NOW: &str = "2026-11-29T15:00:00Z";

/// Paths of this machine have no place in a snapshot.
fn neutral(bench: &Bench, text: &str) -> String {
    let fixtures = fixtures().to_string_lossy().into_owned();
    text.replace(&fixtures, "SOURCES").replace(&*bench.directory.path().to_string_lossy(), "HERE")
}

#[test]
fn import_writes_a_log_with_its_sources_and_reports() {
    let bench = Bench::new();
    let run = bench.run(&["import", &fixture(PENDING), "-o", "logs/", "--format", "json"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let report = run.json();
    let logs = report["logs"].as_array().expect("logs");
    assert_eq!(logs.len(), 1);
    assert_eq!(logs[0]["path"], format!("logs/{PENDING_ID}.palog.jsonl"));
    assert_eq!(
        (&logs[0]["session"], &logs[0]["format"], &logs[0]["records"]),
        (&PENDING_ID.into(), &"claude-code".into(), &8.into())
    );
    assert_eq!(logs[0].get("parent"), None, "members that do not apply are absent");
    let severities = logs[0]["severities"].as_object().expect("severities");
    assert_eq!(severities.keys().collect::<Vec<_>>(), ["error", "info", "void", "warning"]);
    let members: Vec<&String> = report["inputs"][0].as_object().expect("an input").keys().collect();
    assert_eq!(members, ["by_type", "foreign", "format", "fragments", "kept", "lines", "path", "records"]);
    let transcript = fs::read(fixtures().join(format!("{PENDING}/projects/-tmp-proj-demo/{PENDING_ID}.jsonl")))
        .expect("the fixture");
    let kept = fs::read(bench.path(&format!("logs/{PENDING_ID}.palog.sources/transcript"))).expect("the kept source");
    assert_eq!(kept, transcript);
    let events = fs::read_to_string(bench.path(&format!("logs/{PENDING_ID}.palog.jsonl"))).expect("the log");
    assert_eq!(logs[0]["events"], events.lines().count());
}

#[test]
fn import_never_overwrites() {
    let bench = Bench::new();
    let path = format!("logs/{PENDING_ID}.palog.jsonl");
    bench.file(&path, "mine");
    let run = bench.run(&["import", &fixture(PENDING), "-o", "logs"]);
    assert_eq!(run.code, 1);
    assert!(run.err.contains(&path) && run.err.contains("never overwritten"), "{}", run.err);
    assert_eq!(fs::read_to_string(bench.path(&path)).expect("it is there"), "mine");
    assert_eq!(fs::read_dir(bench.path("logs")).expect("a directory").count(), 1, "nothing is left beside it");
}

#[test]
fn import_to_standard_output_reports_on_standard_error() {
    let bench = Bench::new();
    let run = bench.run(&["import", &fixture(PENDING), "--format", "json"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.starts_with(r#"{"palog":1,"#));
    let report: serde_json::Value = serde_json::from_str(&run.err).expect("the report");
    assert_eq!(report["logs"][0].get("path"), None);
    let piped = bench.pipe(&["show", "-"], run.out.as_bytes());
    assert_eq!(piped.code, 0);
    assert!(piped.out.contains("Make the file please."), "{}", piped.out);
    let human = bench.run(&["import", &fixture(PENDING), "-o", "out.palog.jsonl"]);
    snapshot!("import", neutral(&bench, &human.all()));
}

#[test]
fn import_of_a_file_names_what_lies_beside_it() {
    let bench = Bench::new();
    let file = fixture(&format!("{PENDING}/projects/-tmp-proj-demo/{PENDING_ID}.jsonl"));
    let run = bench.run(&["import", &file, "-o", "out/"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let help = run
        .err
        .lines()
        .find(|l| l.starts_with("help: what was named was read alone"))
        .unwrap_or_else(|| panic!("{}", run.err));
    assert!(help.contains("snap-after-kill/sessions"), "{help}");
}

#[test]
fn import_from_standard_input() {
    let bench = Bench::new();
    let file = fixture(&format!("{PENDING}/projects/-tmp-proj-demo/{PENDING_ID}.jsonl"));
    let bytes = fs::read(file).expect("the fixture");
    let run = bench.pipe(&["import", "-", "-o", "out/", "--format", "json"], &bytes);
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!(run.json()["logs"][0]["session"], PENDING_ID);
    assert_eq!(bench.pipe(&["recover", "-", "--format", "json"], &bytes).json()["verdict"], "needs_reconcile");
    // What is a log already is told so.
    let log = fs::read(bench.path(&format!("out/{PENDING_ID}.palog.jsonl"))).expect("the log");
    let again = bench.pipe(&["import", "-", "-o", "out/"], &log);
    assert_eq!(again.code, 2);
    assert!(again.err.contains("is a log of palog already"), "{}", again.err);
}

/// `<(…)` of a shell is such a pipe.
#[cfg(unix)]
#[test]
fn a_pipe_with_a_name_is_read_as_standard_input_is() {
    let bench = Bench::new();
    let transcript = fixture(&format!("{PENDING}/projects/-tmp-proj-demo/{PENDING_ID}.jsonl"));
    let pipe = bench.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let through_pipe = |args: &[&str], bytes: Vec<u8>| {
        let to = pipe.clone();
        let writer = std::thread::spawn(move || fs::write(to, bytes));
        let run = bench.run(args);
        writer.join().expect("it ends").expect("somebody reads");
        run
    };
    let bytes = fs::read(transcript).expect("a fixture");
    let page = through_pipe(&["recover", "pipe", "--format", "json"], bytes.clone());
    assert_eq!(page.json()["verdict"], "needs_reconcile", "{}", page.err);
    let imported = through_pipe(&["import", "pipe", "-o", "out/", "--format", "json"], bytes);
    assert_eq!(imported.code, 0, "{}", imported.err);
    let log = imported.json()["logs"][0]["path"].as_str().expect("a path").to_owned();
    let log = fs::read(bench.path(&log)).expect("a log");
    assert_eq!(
        through_pipe(&["recover", "pipe", "--format", "json"], log.clone()).json()["verdict"],
        "needs_reconcile"
    );
    assert_eq!(through_pipe(&["import", "pipe", "-o", "out/"], log).code, 2, "it is a log already");
    assert_eq!(through_pipe(&["recover", "pipe"], Vec::new()).code, 3, "it is empty");
}

#[test]
fn several_sessions_need_a_directory_or_a_choice() {
    let bench = Bench::new();
    let one = fs::read_to_string(fixtures().join(format!("{PENDING}/projects/-tmp-proj-demo/{PENDING_ID}.jsonl")))
        .expect("the fixture");
    let other = "ba832ebf-0000-4000-8000-000000000000";
    bench.file(&format!("c/projects/p/{PENDING_ID}.jsonl"), &one);
    bench.file(&format!("c/projects/p/{other}.jsonl"), one.replace(PENDING_ID, other));
    for args in [
        &["import", "c"][..],
        &["import", "c", "-o", "x.palog.jsonl"],
        &["show", "c"],
        &["recover", "c"],
        &["show", "c", "--session", "ba832ebf"],
    ] {
        let run = bench.run(args);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{args:?}: {}", run.err);
        assert!(run.err.contains(PENDING_ID) && run.err.contains(other), "{args:?}: {}", run.err);
    }
    let run = bench.run(&["import", "c", "-o", "logs", "--format", "json"]);
    assert_eq!(run.json()["logs"].as_array().expect("logs").len(), 2, "{}", run.err);
    for subject in ["c", "logs"] {
        let chosen = bench.run(&["show", subject, "--session", "ba832ebf-0", "--format", "json"]);
        assert_eq!(chosen.json()["session"], other, "{subject}");
        assert_eq!(bench.run(&["show", subject, "--session", "ffff"]).code, 4);
    }
    assert_eq!(bench.run(&["import", "c", "--session", "ffff", "-o", "more"]).code, 4);
    assert!(!bench.path("more").exists());
}

#[test]
fn a_session_that_fails_does_not_stop_the_others() {
    let bench = Bench::new();
    let one = fs::read(fixtures().join(format!("{PENDING}/projects/-tmp-proj-demo/{PENDING_ID}.jsonl")))
        .expect("the fixture");
    bench.file(&format!("c/projects/p/{PENDING_ID}.jsonl"), &one);
    bench.file("c/projects/p/notes.jsonl", "{\"shopping\":[\"milk\"]}\n");
    let run = bench.run(&["import", "c", "-o", "logs", "--format", "json"]);
    assert_eq!(run.code, 1, "{}", run.err);
    let report = run.json();
    assert_eq!(report["logs"].as_array().expect("logs").len(), 1);
    let finding = &report["diagnostics"]
        .as_array()
        .expect("findings")
        .iter()
        .find(|d| d["code"] == "session.nothing_recognised")
        .expect("told")["at"][0];
    assert_eq!(finding["input"], "projects/p/notes.jsonl");
    assert_eq!(bench.run(&["import", "c/projects/p/notes.jsonl"]).code, 3);
    bench.file("nothing/readme.txt", "");
    assert_eq!(bench.run(&["import", "nothing", "-o", "logs2"]).code, 4);
}

#[test]
fn a_subagent_is_addressed_by_its_id() {
    let bench = Bench::new();
    let config = fixture("claude-code/subagent/config");
    let run = bench.run(&["import", &config, "-o", "logs", "--format", "json"]);
    let report = run.json();
    let agent = report["logs"]
        .as_array()
        .expect("logs")
        .iter()
        .find(|l| l.get("parent").is_some())
        .expect("a subagent")
        .clone();
    let id = agent["session"].as_str().expect("its id");
    for subject in [config.as_str(), "logs"] {
        let shown = bench.run(&["show", subject, "--session", &id[..6], "--format", "json"]);
        assert_eq!(shown.json()["session"], id, "{subject}: {}", shown.err);
    }
    let alone = bench.run(&["import", &config, "--session", id, "-o", "alone", "--format", "json"]);
    assert_eq!(alone.json()["logs"].as_array().expect("logs").len(), 1);
    assert_eq!(
        fs::read_dir(bench.path("alone"))
            .expect("a directory")
            .filter(|e| e.as_ref().expect("an entry").path().extension().is_some_and(|x| x == "jsonl"))
            .count(),
        1
    );
}

#[test]
fn the_page_for_a_call_that_may_have_run() {
    let bench = Bench::new();
    let run = bench.run(&["recover", &fixture(PENDING), "--now", NOW]);
    snapshot!("recover_unknown", run.all());
}

#[test]
fn the_page_for_an_open_question() {
    let bench = Bench::new();
    let run = bench.run(&["recover", &fixture("claude-code/tui_ask_pending/snap-after-kill"), "--now", NOW]);
    snapshot!("recover_question", run.all());
}

#[test]
fn the_page_for_a_session_that_can_go_on() {
    let bench = Bench::new();
    let run = bench.run(&["recover", &fixture("claude-code/kill_midstream/snap-after-kill"), "--now", NOW]);
    snapshot!("recover_ready", run.all());
}

#[test]
fn the_page_for_a_session_with_nothing_open() {
    let bench = Bench::new();
    let run = bench.run(&["recover", &fixture("claude-code/plain_chat/config"), "--now", NOW]);
    snapshot!("recover_idle", run.all());
}

#[test]
fn the_page_for_a_background_command_and_queued_input() {
    let bench = Bench::new();
    let background = bench.run(&["recover", &fixture("claude-code/bg_task_kill/snap-after-kill"), "--now", NOW]);
    let queued = bench.run(&["recover", &fixture("claude-code/tui_queued/snap-queued"), "--now", NOW]);
    snapshot!("recover_background_and_queue", format!("{}\n{}", background.all(), queued.all()));
}

#[test]
fn the_page_for_a_damaged_log_concludes_nothing() {
    let bench = Bench::new();
    let torn = log(&[OPENED, SOURCE, CONFIG, PROMPT, TURN, SAYS])
        .replace(r#"{"palog":1,"log":"l1","seq":3"#, r#"{"palog":1,"log":"l1","seq""#);
    bench.file("damaged.palog.jsonl", torn);
    let run = bench.run(&["recover", "damaged.palog.jsonl", "--now", NOW]);
    snapshot!("recover_damaged", run.all());
}

#[test]
fn a_page_fits_a_screen_for_every_session_of_the_suite() {
    let bench = Bench::new();
    let mut pages = 0;
    for vendor in ["claude-code", "codex"] {
        for path in fs::read_dir(fixtures().join(vendor)).expect("the fixtures").flat_map(|scenario| {
            fs::read_dir(scenario.expect("an entry").path()).expect("a scenario").map(|e| e.expect("an entry").path())
        }) {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let inputs = ["config", "home", "session.jsonl", "after_kill.jsonl"];
            if !(inputs.contains(&&*name) || name.starts_with("snap-")) {
                continue;
            }
            let run = bench.run(&["recover", &path.to_string_lossy(), "--now", NOW]);
            if run.code == 2 {
                assert!(run.err.contains(" sessions"), "{}: {}", path.display(), run.err);
                continue;
            }
            assert_eq!(run.code, 0, "{}: {}", path.display(), run.err);
            assert!(run.out.lines().count() <= 40, "{}: {}", path.display(), run.out);
            assert!(!run.err.contains("error"), "{}: {}", path.display(), run.err);
            pages += 1;
        }
    }
    assert!(pages > 110, "{pages} pages");
}

#[test]
fn recover_as_json_has_the_members_of_its_contract() {
    let bench = Bench::new();
    let json = bench.run(&["recover", &fixture(PENDING), "--now", NOW, "--format", "json"]).json();
    assert_eq!((&json["verdict"], &json["session"]), (&"needs_reconcile".into(), &PENDING_ID.into()));
    let owed = &json["obligations"][0];
    assert_eq!((&owed["decision"], &owed["blocking"]), (&"reconcile".into(), &true.into()));
    assert_eq!(owed["call"]["name"], "Bash");
    for member in ["subject", "reason", "rule", "evidence"] {
        assert!(owed.get(member).is_some(), "{member}");
    }
    let evidence = owed["evidence"].as_array().expect("evidence");
    assert!(evidence.iter().any(|e| e["kind"] == "approval_asked"), "{evidence:?}");
}

#[test]
fn a_look_up_that_shows_a_holder_makes_the_session_owned() {
    let bench = Bench::new();
    bench.file("seen.json", r#"[{"fact":"owner_alive","source":"ps"}]"#);
    let path = fixture("claude-code/plain_chat/config");
    let json = bench.run(&["recover", &path, "--observe", "seen.json", "--format", "json"]).json();
    assert_eq!(json["verdict"], "owned");
    bench.file("wrong.json", r#"{"fact":1}"#);
    assert_eq!(bench.run(&["recover", &path, "--observe", "wrong.json"]).code, 3);
    assert_eq!(bench.run(&["recover", &path, "--now", "yesterday"]).code, 2);
}

#[test]
fn a_snapshot_takes_the_place_of_snapshots_only() {
    let bench = Bench::new();
    bench.log("varied.palog.jsonl", &varied());
    bench.file("notes.txt", "mine");
    let log = bench.read("varied.palog.jsonl");
    for (path, was) in [("varied.palog.jsonl", log.as_str()), ("notes.txt", "mine")] {
        let refused = bench.run(&["state", "varied.palog.jsonl", "--snapshot", path]);
        assert_eq!((refused.code, bench.read(path).as_str()), (1, was), "{}", refused.err);
    }
    assert_eq!(bench.run(&["state", "varied.palog.jsonl", "--at", "3", "--snapshot", "s.json"]).code, 0);
    let first = bench.read("s.json");
    assert_eq!(bench.run(&["state", "varied.palog.jsonl", "--snapshot", "s.json"]).code, 0);
    assert_ne!(bench.read("s.json"), first);
}

#[test]
fn a_state_goes_on_from_a_snapshot() {
    let bench = Bench::new();
    let events = [OPENED, SOURCE, CONFIG, PROMPT, TURN, SAYS, CALLS, BASH, STOP];
    bench.log("half.palog.jsonl", &events[..6]);
    bench.log("whole.palog.jsonl", &events);
    let json = ["--format", "json"];
    let made = bench.run(&["state", "half.palog.jsonl", "--snapshot", "half.json"]);
    assert_eq!((made.code, made.err.as_str()), (0, ""), "{}", made.all());
    let whole = bench.run(&[&["state", "whole.palog.jsonl"], &json[..]].concat());
    let tail = bench.run(&[&["state", "whole.palog.jsonl", "--from-snapshot", "half.json"], &json[..]].concat());
    assert_eq!((tail.code, tail.json()), (0, whole.json()), "{}", tail.all());
    let at =
        bench.run(&[&["state", "whole.palog.jsonl", "--from-snapshot", "half.json", "--at", "2"], &json[..]].concat());
    assert_eq!(at.code, 4, "{}", at.all());
    bench.log("other.palog.jsonl", &[OPENED, SOURCE, CONFIG, PROMPT, TURN, CALLS, BASH]);
    let other = bench.run(&["state", "other.palog.jsonl", "--from-snapshot", "half.json"]);
    assert_eq!(other.code, 1, "{}", other.all());
    assert!(other.err.contains("order.diverged"), "{}", other.err);
    bench.file("none.json", "{}");
    let none = bench.run(&["state", "whole.palog.jsonl", "--from-snapshot", "none.json"]);
    assert_eq!(none.code, 3, "{}", none.all());
    bench.file("empty.palog.jsonl", "");
    assert_ne!(bench.run(&["state", "empty.palog.jsonl", "--snapshot", "e.json"]).code, 0);
    assert!(!bench.path("e.json").exists());
}

#[test]
fn recovery_compares_the_environment_with_what_was_recorded() {
    let bench = Bench::new();
    let opened = r#"o log.opened {"spec":"1.0-draft","session":"s","agent":{"name":"a"},"records":["action.proposed","action.started"]}"#;
    let policy = r#"c config.set {"policy_revision":"p1"}"#;
    let lease = r#"l lease.acquired {"epoch":1,"holder":"worker-1","ttl":60}"#;
    bench.log("live.palog.jsonl", &[opened, policy, PROMPT, TURN, lease]);
    let recover = |more: &[&str]| bench.run(&[&["recover", "live.palog.jsonl", "--format", "json"], more].concat());
    let verdict = |run: &Run| run.json()["verdict"].as_str().expect("a verdict").to_owned();
    assert_eq!(verdict(&recover(&["--now", "2026-11-29T12:00:30Z"])), "owned");
    let late = ["--now", "2026-11-29T13:00:00Z"];
    assert_eq!(verdict(&recover(&late)), "ready");
    bench.file("good.json", r#"{"epoch":1,"policy_revision":"p1"}"#);
    bench.file("bad.json", r#"{"epoch":1,"policy_revision":"p2"}"#);
    bench.file("odd.json", r#"{"polcy_revision":"p2"}"#);
    let within = |file: &str| recover(&["--now", "2026-11-29T12:00:30Z", "--env", file]);
    assert_eq!(verdict(&within("good.json")), "ready", "the lease is the worker's own");
    let refused = within("bad.json");
    assert_eq!(verdict(&refused), "awaiting_human");
    assert_eq!(refused.json()["obligations"][0]["rule"], "R-REC-029");
    assert_eq!(within("odd.json").code, 3, "a name that means nothing is no environment");
}

#[test]
fn a_continuation_is_reduced_and_recovered_with_its_parent() {
    let bench = Bench::new();
    let opened = r#"o log.opened {"spec":"1.0-draft","session":"s","agent":{"name":"a"},"records":["action.proposed","action.started"]}"#;
    let closed = r#"x log.closed {"how":"transferred"}"#;
    let goes_on = r#"n log.opened {"spec":"1.0-draft","session":"s","agent":{"name":"b"},"records":["action.proposed","action.started"],"parent":{"log":"l1","event":"t","mode":"continue"}}"#;
    bench.log("open.palog.jsonl", &[opened, PROMPT, TURN]);
    bench.log("over.palog.jsonl", &[opened, PROMPT, closed]);
    bench.file("next.palog.jsonl", log(&[goes_on]).replace(r#""log":"l1","seq""#, r#""log":"l2","seq""#));
    let over = log(&[&goes_on.replace(r#""event":"t""#, r#""event":"x""#)]);
    bench.file("moved.palog.jsonl", over.replace(r#""log":"l1","seq""#, r#""log":"l2","seq""#));
    let recover = |log: &str, parent: &str| bench.run(&["recover", log, "--parent", parent, "--format", "json"]);
    let refused = recover("next.palog.jsonl", "open.palog.jsonl").json();
    assert_eq!(
        (&refused["verdict"], &refused["obligations"][0]["rule"]),
        (&"awaiting_human".into(), &"R-REC-029".into())
    );
    assert_eq!(recover("moved.palog.jsonl", "over.palog.jsonl").json()["verdict"], "ready");
    assert_eq!(recover("open.palog.jsonl", "over.palog.jsonl").code, 2, "that is not its parent");
    let state = |log: &str, more: &[&str]| bench.run(&[&["state", log, "--format", "json"], more].concat());
    let parent = |more: &[&str]| state("moved.palog.jsonl", more).json()["parent"].clone();
    assert_eq!(parent(&[])["at_hand"], false);
    let beside = parent(&["--parent", "over.palog.jsonl"]);
    assert_eq!((&beside["at_hand"], &beside["handed_over"]), (&true.into(), &true.into()));
    let other = state("next.palog.jsonl", &["--parent", "open.palog.jsonl"]).json();
    assert_eq!((&other["parent"]["handed_over"], &other["pending"][0]["kind"]), (&false.into(), &"prompt".into()));
    assert_eq!(state("open.palog.jsonl", &["--parent", "over.palog.jsonl"]).code, 2, "that is not its parent");
    assert_eq!(state("next.palog.jsonl", &["--parent", "open.palog.jsonl", "--snapshot", "s"]).code, 2);
}

#[test]
fn state_is_that_after_an_event() {
    let bench = Bench::new();
    bench.log("varied.palog.jsonl", &varied());
    let state = |at: &str| bench.run(&["state", "varied.palog.jsonl", "--at", at, "--format", "json"]).json();
    assert_eq!(state("8")["actions"][0]["state"], "unknown");
    assert_eq!(state("9")["actions"][0]["state"], "failed");
    assert_eq!(bench.run(&["state", "varied.palog.jsonl", "--at", "999"]).code, 4);
    snapshot!("state", bench.run(&["state", "varied.palog.jsonl"]).all());
}

#[test]
fn validate_tells_what_is_wrong_and_where() {
    let bench = Bench::new();
    bench.log("good.palog.jsonl", &varied());
    let good = bench.run(&["validate", "good.palog.jsonl", "--format", "json"]);
    assert_eq!((good.code, &good.json()["logs"][0]["valid"]), (0, &true.into()), "{}", good.out);
    let bad =
        log(&varied()).replacen(r#""seq":7"#, r#""seq":8"#, 1).replace(r#""role":"user","purpose""#, r#""purpose""#)
            + "{\"palog\":1,\"lo";
    bench.file("bad.palog.jsonl", bad);
    let run = bench.run(&["validate", "good.palog.jsonl", "bad.palog.jsonl", "--format", "json"]);
    assert_eq!(run.code, 1);
    let json = run.json();
    assert_eq!((&json["logs"][0]["valid"], &json["logs"][1]["valid"]), (&true.into(), &false.into()));
    let finding = json["logs"][1]["diagnostics"]
        .as_array()
        .expect("findings")
        .iter()
        .find(|d| d["code"] == "framing.torn_tail")
        .expect("told")
        .clone();
    assert_eq!(
        (&finding["severity"], &finding["count"], &finding["at"][0]["line"]),
        (&"warning".into(), &1.into(), &22.into())
    );
    snapshot!("validate", bench.run(&["validate", "good.palog.jsonl", "bad.palog.jsonl"]).all());
    let piped = bench.pipe(&["validate", "-"], log(&varied()).as_bytes());
    assert_eq!(piped.code, 0, "{}", piped.err);
    assert_eq!(bench.run(&["validate", "nowhere"]).code, 3);
    assert_eq!(bench.pipe(&["validate", "-"], b"").code, 1);
}

#[test]
fn validate_looks_for_the_values_beside_a_log() {
    let bench = Bench::new();
    let blob = r#"{"$blob":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","size":0,"media":"text/plain"}"#;
    let prompt = PROMPT.replace(r#""Deploy the fix to staging, please.""#, blob);
    bench.log("a.palog.jsonl", &[OPENED, &prompt]);
    let run = bench.run(&["validate", "a.palog.jsonl", "--format", "json"]);
    assert_eq!((run.code, &run.json()["logs"][0]["diagnostics"][0]["code"]), (1, &"blob.missing".into()));
    bench.file("a.palog.blobs/sha256/e3/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "");
    assert_eq!(bench.run(&["validate", "a.palog.jsonl"]).code, 0);
}

#[test]
fn a_session_is_found_by_what_its_records_tell() {
    let bench = Bench::new();
    // No file is named like the session, and the subagent has no file at all.
    let record = |uuid: &str, parent: &str, side: bool, rest: &str| {
        format!(
            r#"{{"parentUuid":{parent},"isSidechain":{side},"uuid":"{uuid}","timestamp":"2026-11-29T12:00:00.000Z","sessionId":"5e550000-0000-4000-8000-000000000007","version":"2.1.5","cwd":"/w",{rest}}}"#
        )
    };
    let lines = [
        record("u1", "null", false, r#""type":"user","message":{"role":"user","content":"Go."}"#),
        record("s1", "null", true, r#""agentId":"abc123","type":"user","message":{"role":"user","content":"Side."}"#),
    ];
    bench.file("odd name.jsonl", lines.join("\n") + "\n");
    for (wanted, prompt) in [("5e55", "Go."), ("abc", "Side.")] {
        let run = bench.run(&["show", "odd name.jsonl", "--session", wanted]);
        assert!(run.out.contains(prompt), "{wanted}: {}{}", run.out, run.err);
    }
    assert_eq!(bench.run(&["show", "odd name.jsonl", "--session", "zzz"]).code, 4);
    bench.log("a.palog.jsonl", &varied());
    assert_eq!(bench.run(&["show", "a.palog.jsonl", "--session", "zzz"]).code, 4);
    assert_eq!(bench.run(&["show", "a.palog.jsonl", "--session", "5e55"]).code, 0);
    assert_eq!(bench.pipe(&["show", "-", "--session", "5e55"], log(&varied()).as_bytes()).code, 2);
}

#[test]
fn large_values_and_sources_lie_where_they_are_asked_to() {
    let bench = Bench::new();
    let text = "x".repeat(2 << 20);
    let record = format!(
        r#"{{"parentUuid":null,"isSidechain":false,"type":"user","message":{{"role":"user","content":"{text}"}},"uuid":"u1","timestamp":"2026-11-29T12:00:00.000Z","sessionId":"5e550000-0000-4000-8000-000000000007","version":"2.1.5","cwd":"/w"}}"#
    );
    bench.file("s.jsonl", record + "\n");
    let beside = |output: &str, more: &[&str]| {
        let run = bench.run(&[&["import", "s.jsonl", "-o", output], more].concat());
        assert_eq!(run.code, 0, "{}", run.err);
        ["palog.jsonl", "palog.blobs", "palog.sources"]
            .map(|what| bench.path(&output.replace("palog.jsonl", what)).exists())
    };
    assert_eq!(beside("a.palog.jsonl", &[]), [true, true, true]);
    assert_eq!(beside("b.palog.jsonl", &["--inline"]), [true, false, true]);
    assert_eq!(beside("c.palog.jsonl", &["--no-sources"]), [true, true, false]);
    // A value beside the log is shown like any other.
    for log in ["a.palog.jsonl", "b.palog.jsonl"] {
        let shown = bench.run(&["show", log]);
        assert!(shown.out.contains("xxxx") && shown.out.contains("… 2,095,952 more characters"), "{}", shown.out);
        assert_eq!(bench.run(&["validate", log]).code, 0);
    }
}

#[test]
fn whatever_is_given_is_no_reason_to_panic() {
    let bench = Bench::new();
    let good = log(&varied());
    let half: String = good.chars().take(good.len() / 2).collect();
    let inputs: [(&str, Vec<u8>); 9] = [
        ("empty lines", b"\n\n\n".to_vec()),
        ("prose", b"# A heading\n\nand text\n".to_vec()),
        ("zeros", vec![0; 4096]),
        ("no utf-8", b"{\"palog\":1,\"log\":\"\xff\xfe\"}\n\xc3".to_vec()),
        ("numbers", b"{\"palog\":1}\n{\"palog\":99999999999999999999}\n{\"palog\":-1}\n".to_vec()),
        ("half a log", half.into_bytes()),
        ("no first line", good.split_once('\n').expect("lines").1.as_bytes().to_vec()),
        ("a log twice", [good.as_bytes(), good.as_bytes()].concat()),
        ("deep", ["[".repeat(100_000), "\n".into()].concat().into_bytes()),
    ];
    for (name, bytes) in inputs {
        bench.file("x.palog.jsonl", &bytes);
        bench.file("y.jsonl", &bytes);
        for command in [
            &["validate"][..],
            &["recover"],
            &["state"],
            &["show"],
            &["context", "--for", "anthropic"],
            &["import", "-o", "out"],
        ] {
            for file in ["x.palog.jsonl", "y.jsonl"] {
                for format in ["human", "json"] {
                    let run = bench.run(&[command, &[file, "--format", format]].concat());
                    assert!((0..=4).contains(&run.code), "{name}: {command:?} {file} {format}: {}{}", run.out, run.err);
                    // A summary of the run, or a reason why there is none.
                    assert!(
                        !run.out.is_empty() || !run.err.is_empty(),
                        "{name}: {command:?} {file} {format} says nothing"
                    );
                }
            }
        }
    }
}

#[test]
fn a_code_and_a_rule_are_explained() {
    let bench = Bench::new();
    let texts = ["framing.torn_tail", "session.nothing_recognised", "R-ACT-013", "R-REC-007"].map(|name| {
        let run = bench.run(&["explain", name]);
        assert_eq!(run.code, 0, "{}", run.err);
        format!("$ palog explain {name}\n{}", run.out)
    });
    snapshot!("explain", texts.join("\n"));
    snapshot!("explain_list", bench.run(&["explain", "--list"]).out);
}

#[test]
fn every_code_and_rule_of_the_list_is_explained() {
    let bench = Bench::new();
    let all = bench.run(&["explain", "--list", "--format", "json"]).json();
    let (codes, rules) = (all["codes"].as_array().expect("codes"), all["rules"].as_array().expect("rules"));
    assert!(codes.len() > 50 && rules.len() > 50);
    for code in codes {
        let one = bench.run(&["explain", code["code"].as_str().expect("a code"), "--format", "json"]).json();
        assert_eq!((&one["codes"][0], &one["rules"]), (code, &serde_json::json!([])));
        let example = code["example"].as_str().expect("an example");
        assert!(example.contains(code["meaning"].as_str().expect("a meaning")) && example.contains("-->"), "{example}");
    }
    for rule in rules {
        let one = bench.run(&["explain", rule["rule"].as_str().expect("a rule"), "--format", "json"]).json();
        assert_eq!((&one["rules"][0], &one["codes"]), (rule, &serde_json::json!([])));
    }
}

#[test]
fn a_wrong_name_is_told_with_4_and_what_was_probably_meant() {
    let bench = Bench::new();
    for (args, meant) in [
        (["explain", "framing.torn_tial"], "framing.torn_tail"),
        (["explain", "torn_tail"], "framing.torn_tail"),
        (["explain", "R-ACT-13"], "R-ACT-013"),
        (["schema", "validate"], "validation"),
    ] {
        let run = bench.run(&args);
        assert_eq!((run.code, run.out.as_str()), (4, ""), "{args:?}");
        assert!(run.err.contains(&format!("did you mean {meant}?")), "{args:?}: {}", run.err);
    }
    assert_eq!(bench.run(&["explain", "\u{1b}[2J"]).err.find('\u{1b}'), None);
    assert_eq!(bench.run(&["man", "frobnicate"]).code, 4);
}

fn schema(name: &str) -> serde_json::Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../schemas/v1/{name}.schema.json"));
    serde_json::from_str(&fs::read_to_string(path).expect("the schema")).expect("JSON")
}

#[test]
fn a_schema_is_printed_as_it_is_committed() {
    let bench = Bench::new();
    let list = bench.run(&["schema", "--list"]);
    assert_eq!((list.code, &list.out), (0, &bench.run(&["schema"]).out));
    let names: Vec<&str> = list.out.lines().map(|line| line.split_whitespace().next().expect("a name")).collect();
    for name in &names {
        assert_eq!(bench.run(&["schema", name]).json(), schema(name));
    }
    snapshot!("schema_list", list.out);
}

/// The schema of what is printed and of nothing else: it refuses members that it does not name. Payloads of events are left as
/// they are, since what is said of them stands in several places of the schema.
fn closed(mut schema: serde_json::Value) -> serde_json::Value {
    match &mut schema {
        serde_json::Value::Array(items) => items.iter_mut().for_each(|item| *item = closed(item.take())),
        serde_json::Value::Object(map) => {
            let conditional = |keyword: &str| matches!(keyword, "if" | "then" | "else" | "allOf");
            map.iter_mut()
                .filter(|(keyword, _)| !conditional(keyword))
                .for_each(|(_, value)| *value = closed(value.take()));
            if map.get("properties").is_some_and(serde_json::Value::is_object)
                && map.get("type") == Some(&"object".into())
            {
                map.entry("additionalProperties").or_insert(false.into());
            }
        }
        _ => {}
    }
    schema
}

/// Whether a value holds `null` anywhere but where a member may be `null`.
fn holds_null(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Null => true,
        serde_json::Value::Array(items) => items.iter().any(holds_null),
        serde_json::Value::Object(map) => map.iter().any(|(name, value)| {
            // An event without a time says so; what a client or a tool wrote is its own.
            let may = name == "time" || matches!(name.as_str(), "data" | "content");
            !may && holds_null(value)
        }),
        _ => false,
    }
}

#[test]
fn what_is_printed_as_json_fits_its_schema() {
    let bench = Bench::new();
    bench.log("varied.palog.jsonl", &varied());
    bench.file(
        "bad.palog.jsonl",
        log(&varied()).replacen(r#""seq":7"#, r#""seq":8"#, 1).replace(r#""role":"user","purpose""#, r#""purpose""#),
    );
    let mut inputs = vec!["varied.palog.jsonl".to_owned(), "bad.palog.jsonl".to_owned()];
    for path in [
        "claude-code/subagent/config",
        "claude-code/compact_manual/config",
        "claude-code/tui_ask_pending/snap-after-kill",
        "claude-code/tui_queued/snap-queued",
        "claude-code/bg_task_kill/snap-after-kill",
        "codex/compaction/home",
        "codex/approval_kill9/after_kill.jsonl",
        PENDING,
    ] {
        inputs.push(fixture(path));
    }
    let sources = fixture("claude-code/subagent/config");
    let faults = fixture("faults/30-sidechain-linkage/input");
    let cases = fixtures().join("../v1").to_string_lossy().into_owned();
    let mut runs: Vec<(&str, Vec<String>)> = Vec::new();
    let words = |args: &[&str]| args.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>();
    for input in &inputs {
        runs.push(("state", words(&["state", input])));
        runs.push(("recovery", words(&["recover", input])));
        runs.push(("transcript", words(&["show", input])));
        runs.push(("context", words(&["context", input, "--for", "anthropic"])));
        runs.push(("context-openai-responses", words(&["context", input, "--for", "openai-responses"])));
    }
    runs.push(("validation", words(&["validate", "varied.palog.jsonl", "bad.palog.jsonl"])));
    runs.push(("report", words(&["import", &sources, "-o", "logs"])));
    runs.push(("report", words(&["import", &faults, "-o", "logs2"])));
    runs.push(("sessions", words(&["ls", &sources, &faults])));
    runs.push(("sessions", words(&["ls", &sources, &faults, "--recover"])));
    runs.push(("explanation", words(&["explain", "--list"])));
    runs.push(("cases", words(&["conform", "list", &cases])));
    runs.push(("conformance", words(&["conform", "run", &cases, "--filter", "*/faults/*"])));
    let mut seen = BTreeSet::from(["event"]);
    for (name, mut args) in runs {
        args.extend(["--format".to_owned(), "json".to_owned()]);
        let run = bench.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(run.code <= 1, "{args:?}: {}", run.err);
        let value = run.json();
        for schema in [schema(name), closed(schema(name))] {
            let validator = jsonschema::validator_for(&schema).expect("a schema");
            let errors: Vec<String> =
                validator.iter_errors(&value).map(|e| format!("{} at {}", e, e.instance_path())).take(3).collect();
            assert!(errors.is_empty(), "{args:?}: {errors:#?}");
        }
        assert!(!holds_null(&value), "{args:?}: {value:#}");
        seen.insert(name);
    }
    // What is a file and no output.
    bench.run(&["state", "varied.palog.jsonl", "--snapshot", "varied.json"]);
    let environment = r#"{"epoch":1,"policy_revision":"p","manifest_digest":"m","tools":[],"workspace":{"revision":"r","dirty":false,"digest":"d"},"resources":[],"checkpoints":[]}"#;
    bench.file("environment.json", environment);
    assert_eq!(bench.run(&["recover", "varied.palog.jsonl", "--env", "environment.json"]).code, 0);
    for (name, file) in [("snapshot", "varied.json"), ("environment", "environment.json")] {
        let value = serde_json::from_str(&fs::read_to_string(bench.path(file)).expect("it is there")).expect("JSON");
        let validator = jsonschema::validator_for(&schema(name)).expect("a schema");
        assert!(validator.is_valid(&value) && !validator.is_valid(&serde_json::json!({"form": 1})), "{name}");
        seen.insert(name);
    }
    let names: Vec<String> =
        bench.run(&["schema"]).out.lines().map(|l| l.split_whitespace().next().expect("a name").to_owned()).collect();
    for name in names {
        assert!(seen.contains(name.as_str()), "nothing is checked against {name}");
    }
    // The schemas do refuse something.
    let more = serde_json::json!({"logs": [{"path": "x", "valid": true, "diagnostics": [], "more": 1}]});
    for (schema, takes) in [(schema("validation"), true), (closed(schema("validation")), false)] {
        assert_eq!(jsonschema::validator_for(&schema).expect("a schema").is_valid(&more), takes);
    }
    for name in [
        "state",
        "recovery",
        "transcript",
        "report",
        "validation",
        "sessions",
        "explanation",
        "conformance",
        "cases",
        "context",
        "context-openai-responses",
    ] {
        assert!(
            !jsonschema::validator_for(&schema(name)).expect("a schema").is_valid(&serde_json::json!({})),
            "{name} takes anything"
        );
    }
}

#[test]
fn sessions_are_listed_the_newest_first() {
    let bench = Bench::new();
    for (scenario, project) in [
        ("subagent/config", "a"),
        ("plain_chat/config", "b"),
        ("tui_perm_pending/snap-after-kill", "c"),
        ("tui_titles/config", "d"),
    ] {
        let from = fixtures().join("claude-code").join(scenario).join("projects/-tmp-proj-demo");
        if from.is_dir() {
            copy(&from, &bench.path(&format!("home/.claude/projects/{project}")));
        }
    }
    bench.file("home/.claude/projects/a/notes.jsonl", "{\"shopping\":[\"milk\"]}\n");
    let run = bench.run(&["ls", "home/.claude"]);
    snapshot!("ls", run.all());
    // The same without a path: in the home directory, or where the client was told to keep its files.
    let home = |variable: &str, path: &str| {
        let mut command = bench.command(&["ls"]);
        command
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove("CODEX_HOME")
            .env("HOME", bench.path("nowhere"))
            .env(variable, bench.path(path));
        Run::of(command.output().expect("it runs"))
    };
    assert_eq!(
        (home("HOME", "home").out, home("CLAUDE_CONFIG_DIR", "home/.claude").out),
        (run.out.clone(), run.out.clone())
    );
    assert_eq!(home("HOME", "nowhere").code, 4);
    let json = bench.run(&["ls", "home/.claude", "--format", "json"]).json();
    let sessions = json["sessions"].as_array().expect("sessions");
    let times: Vec<&str> = sessions.iter().map(|s| s["last_activity"].as_str().expect("a time")).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    let pending = sessions.iter().find(|s| s["id"] == PENDING_ID).expect("it is listed");
    assert_eq!((&pending["title"], &pending["title_from"]), (&"Make the file please.".into(), &"prompt".into()));
    assert_eq!(json["unrecognised"], serde_json::json!(["home/.claude/projects/a/notes.jsonl"]));
    bench.file("empty/readme.txt", "");
    assert_eq!(bench.run(&["ls", "empty"]).code, 4);
    assert_eq!(bench.run(&["ls", "not there"]).code, 3);
}

#[test]
fn the_verdicts_of_a_list_are_those_of_recover() {
    let bench = Bench::new();
    let mut compared = 0;
    for vendor in ["claude-code", "codex"] {
        for path in fs::read_dir(fixtures().join(vendor)).expect("the fixtures").flat_map(|scenario| {
            fs::read_dir(scenario.expect("an entry").path()).expect("a scenario").map(|e| e.expect("an entry").path())
        }) {
            if !path.join("projects").is_dir() && !path.join("sessions").is_dir() {
                continue;
            }
            let path = path.to_string_lossy().into_owned();
            let list = bench.run(&["ls", &path, "--recover", "--format", "json"]);
            assert_eq!(list.code, 0, "{path}: {}", list.err);
            for session in list.json()["sessions"].as_array().expect("sessions") {
                let id = session["id"].as_str().expect("an id");
                let one = bench.run(&["recover", &path, "--session", id, "--format", "json"]).json();
                assert_eq!(session["verdict"], one["verdict"], "{path} {id}");
                let state = bench.run(&["state", &path, "--session", id, "--format", "json"]).json();
                assert_eq!(
                    (&session["directory"], session.get("branch")),
                    (&state["config"]["directory"], state["config"].get("branch")),
                    "{path} {id}"
                );
                if session["title_from"] != "prompt" {
                    assert_eq!(session.get("title"), state.get("title"), "{path} {id}");
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 110, "{compared} sessions");
}

#[test]
fn nothing_of_a_listed_session_reaches_the_terminal_as_it_stands() {
    let bench = Bench::new();
    let nasty = r"\u001b]0;owned\u0007\u001b[2J\u009b31m\u202e";
    let record = format!(
        r#"{{"parentUuid":null,"isSidechain":false,"type":"user","message":{{"role":"user","content":"Go. {nasty}"}},"uuid":"u1","timestamp":"2026-11-29T12:00:00.000Z","sessionId":"5e550000-0000-4000-8000-000000000007","version":"2.1.5","cwd":"/w/{nasty}","gitBranch":"b{nasty}"}}"#
    );
    bench.file("c/projects/p/5e550000-0000-4000-8000-000000000007.jsonl", record + "\n");
    for args in [&["ls", "c"][..], &["ls", "c", "--recover"], &["ls", "c", "--format", "json"]] {
        let run = bench.run(args);
        assert_eq!(run.code, 0, "{}", run.err);
        assert!(
            run.out.contains("owned") && !run.out.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'),
            "{}",
            run.out
        );
    }
}

/// Copies a directory.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry").path();
        let target = to.join(entry.file_name().expect("a name"));
        if entry.is_dir() { copy(&entry, &target) } else { fs::copy(&entry, &target).map(drop).expect("a copy") }
    }
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

const ROLLOUT: &str = "codex/approval_kill9/after_kill.jsonl";
const ROLLOUT_ID: &str = "01a2272d-5959-7310-a185-67b5e35dab48";

#[test]
fn what_a_file_is_its_content_tells() {
    let bench = Bench::new();
    let claude =
        fs::read(fixture(&format!("{PENDING}/projects/-tmp-proj-demo/{PENDING_ID}.jsonl"))).expect("a fixture");
    let codex = fs::read(fixture(ROLLOUT)).expect("a fixture");
    let small = packed(&codex);
    // Names and endings that say something else.
    for (name, bytes, session) in [
        ("a.jsonl", &claude, PENDING_ID),
        ("rollout-2026-11-29T12-00-00-019c0000-0000-7000-8000-000000000001.jsonl", &claude, PENDING_ID),
        (&format!("{PENDING_ID}.jsonl"), &codex, ROLLOUT_ID),
        ("b.txt", &codex, ROLLOUT_ID),
        ("c.jsonl", &small, ROLLOUT_ID),
        ("d.jsonl.zst", &small, ROLLOUT_ID),
        ("e.jsonl.zst", &codex, ROLLOUT_ID),
    ] {
        bench.file(name, bytes);
        let state = bench.run(&["state", name, "--format", "json"]);
        assert_eq!((state.code, &state.json()["session"]), (0, &session.into()), "{name}: {}", state.err);
        let piped = bench.pipe(&["state", "-", "--format", "json"], bytes);
        assert_eq!(piped.json()["session"], session, "{name}: {}", piped.err);
    }
    // A pipe gives a little at a time.
    let mut command = bench.command(&["recover", "-", "--format", "json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    for piece in [&codex[..10], &codex[10..]] {
        pipe.write_all(piece).expect("it reads");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    drop(pipe);
    let slow = Run::of(child.wait_with_output().expect("it ends"));
    assert_eq!(slow.json()["verdict"], "needs_reconcile");
    // A compressed log is the log.
    let plain = log(&varied());
    let other = packed(plain.as_bytes());
    bench.file("f.palog.jsonl", plain.as_bytes());
    bench.file("f.palog.jsonl.zst", &other);
    for command in ["state", "show", "validate"] {
        let own = bench.run(&[command, "f.palog.jsonl", "--format", "json"]);
        assert!(own.code == 0 && own.out.len() > 100, "{command}: {}", own.err);
        for run in [
            bench.run(&[command, "f.palog.jsonl.zst", "--format", "json"]),
            bench.pipe(&[command, "-", "--format", "json"], &other),
        ] {
            let out = run.out.replace("f.palog.jsonl.zst", "f.palog.jsonl");
            let out = out.replace("\"path\": \"-\"", "\"path\": \"f.palog.jsonl\"");
            assert_eq!((run.code, out), (0, own.out.clone()), "{command}");
        }
    }
    // What is compressed and nobody's is told so, and so is what only looks like a session.
    let other = packed(b"{\"a\":1}\n");
    bench.file("g.jsonl.zst", &other);
    for run in [bench.run(&["state", "g.jsonl.zst"]), bench.pipe(&["state", "-"], &other)] {
        assert!(run.code == 3 && run.err.contains("is compressed, and holds neither"), "{}", run.err);
    }
    bench.file("h.palog.jsonl.zst", &packed(plain.as_bytes())[..200]);
    let torn = bench.run(&["state", "h.palog.jsonl.zst"]);
    assert!(torn.code == 3 && torn.err.contains("damaged"), "{}", torn.err);
    for (from, name) in [("codex", "a.jsonl"), ("claude-code", "b.txt")] {
        assert_eq!(bench.run(&["import", name, "--from", from, "-o", "none/"]).code, 3, "{name}");
        assert_eq!(bench.run(&["import", name, "-o", "some/"]).code, 0, "{name}");
    }
    bench.file(
        "home/sessions/2026/rollout-2026-11-29T12-00-00-019c0000-0000-7000-8000-000000000002.jsonl",
        "{\"a\":1}\n",
    );
    let nothing = bench.run(&["import", "home", "-o", "none/"]);
    assert_eq!(nothing.code, 4, "{}", nothing.err);
}

#[test]
fn sessions_of_both_vendors_lie_in_one_tree() {
    let bench = Bench::new();
    copy(&fixtures().join("codex/name_archive/home"), &bench.path("home/.codex"));
    copy(&fixtures().join("claude-code/subagent/config"), &bench.path("home/.claude"));
    let mut command = bench.command(&["ls", "--format", "json"]);
    command.env_remove("CLAUDE_CONFIG_DIR").env_remove("CODEX_HOME").env("HOME", bench.path("home"));
    let list = Run::of(command.output().expect("it runs")).json();
    let sessions = list["sessions"].as_array().expect("sessions");
    let of = |vendor: &str| sessions.iter().filter(|s| s["vendor"] == vendor).count();
    assert_eq!((of("codex"), of("claude-code")), (2, sessions.len() - 2));
    assert!(sessions.len() > 2);
    let titled = sessions.iter().filter(|s| s["vendor"] == "codex" && s["title_from"] == "user").count();
    assert!(titled > 0, "{list:#}");
    // One folder with files of both, and one with both homes.
    for folder in ["home", "mixed"] {
        if folder == "mixed" {
            for (n, session) in sessions.iter().enumerate() {
                let from = session["path"].as_str().expect("a path");
                bench.file(&format!("mixed/{n}.jsonl"), fs::read(from).expect("it is there"));
            }
        }
        let all = bench.run(&["ls", folder, "--format", "json"]).json();
        assert_eq!(all["sessions"].as_array().map(Vec::len), Some(sessions.len()), "{folder}: {all:#}");
        assert_eq!(all["unrecognised"], serde_json::json!([]), "{folder}");
        let into = format!("logs-{folder}");
        let run = bench.run(&["import", folder, "-o", &into, "--format", "json"]);
        assert_eq!(run.code, 0, "{folder}: {}", run.err);
        let formats: BTreeSet<String> =
            run.json()["logs"].as_array().expect("logs").iter().map(|l| l["format"].to_string()).collect();
        assert_eq!(formats.len(), 2, "{formats:?}");
        let only =
            bench.run(&["import", folder, "--from", "codex", "-o", &format!("only-{folder}"), "--format", "json"]);
        let logs = only.json()["logs"].as_array().expect("logs").clone();
        assert!(logs.len() == 2 && logs.iter().all(|log| log["format"] == "codex"), "{}", only.err);
    }
}

#[test]
fn the_page_for_a_command_of_codex_that_was_waiting_or_running() {
    let bench = Bench::new();
    let run = bench.run(&["recover", &fixture(ROLLOUT), "--now", NOW]);
    snapshot!("recover_codex", neutral(&bench, &run.all()));
    let twin =
        bench.run(&["recover", &fixture("codex/otel_grant_kill/session.jsonl"), "--now", NOW, "--format", "json"]);
    assert_eq!(twin.json()["verdict"], "needs_reconcile");
}

/// R-CNF-001: a report says which version is kept.
#[test]
fn cases_are_run_and_counted() {
    let bench = Bench::new();
    let cases = fixtures().join("../v1").to_string_lossy().into_owned();
    let run = bench.run(&["conform", "run", &cases, "--level", "L2", "--filter", "*/faults/*"]);
    snapshot!("conform", run.all());
    let json =
        bench.run(&["conform", "run", &cases, "--filter", "*/faults/0*", "--role", "importer", "--format", "json"]);
    assert_eq!(json.code, 0, "{}", json.err);
    let report = json.json();
    let listed = bench
        .run(&["conform", "list", &format!("{cases}/import/faults"), "--filter", "*/faults/0*", "--format", "json"])
        .json();
    let ids = |of: &serde_json::Value| {
        of["cases"]
            .as_array()
            .expect("cases")
            .iter()
            .map(|c| c["id"].as_str().expect("an id").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&report), ids(&listed));
    assert_eq!(report["roles"][0]["total"], ids(&listed).len());
    let logs = bench.run(&["conform", "run", &cases, "--filter", "*/verdicts/*", "--format", "json"]);
    assert_eq!((logs.code, &logs.json()["roles"][0]["role"]), (0, &"Recoverer".into()), "{}", logs.out);
    for args in [&["--filter", "nothing"][..], &["--role", "Writer"], &["--level", "L1", "--filter", "*claude-code*"]] {
        let none = bench.run(&[&["conform", "run", &cases], args].concat());
        assert_eq!((none.code, none.out.as_str()), (4, ""), "{args:?}: {}", none.err);
    }
    assert_eq!(bench.run(&["conform", "run"]).code, 3, "there are no cases in the working directory");
    assert_eq!(bench.run(&["conform", "run", "."]).code, 4);
    assert_eq!(bench.run(&["conform", "run", &cases, "--level", "L9"]).code, 2);
}

#[test]
fn a_case_that_fails_is_told_with_1() {
    let bench = Bench::new();
    let suite = fixtures().join("..");
    for name in [
        "v1/import/faults/01-concatenated-objects",
        "sources/faults/01-concatenated-objects",
        "v1/import/faults/04-nul-run-midfile",
        "sources/faults/04-nul-run-midfile",
    ] {
        copy(&suite.join(name), &bench.path(&format!("conformance-fixtures/{name}")));
    }
    let expect = bench.path("conformance-fixtures/v1/import/faults/01-concatenated-objects/expect/expect.json");
    let wrong = fs::read_to_string(&expect)
        .expect("the expectation")
        .replace("\"framing.concatenated_records\"", "\"framing.fragment\"");
    fs::write(&expect, wrong).expect("a file");
    let run = bench.run(&["conform", "run"]);
    snapshot!("conform_failed", neutral(&bench, &run.all()));
    let json = bench.run(&["conform", "run", "--format", "json"]);
    assert_eq!(
        (json.code, &json.json()["roles"][0]["passed"], &json.json()["roles"][0]["total"]),
        (1, &1.into(), &2.into())
    );
    fs::remove_dir_all(bench.path("conformance-fixtures/sources/faults/04-nul-run-midfile")).expect("it was there");
    let broken = bench.run(&["conform", "run"]);
    assert_eq!(broken.code, 3, "a prerequisite that is missing is no skip: {}", broken.err);
}

#[test]
fn completions_and_manual_pages_are_made() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let run = bench.run(&["completions", shell]);
        assert!(run.code == 0 && run.out.contains("recover") && run.out.contains("conform"), "{shell}: {}", run.err);
    }
    let page = bench.run(&["man", "recover"]);
    assert!(page.code == 0 && page.out.starts_with(".ie") && page.out.contains("PALOG-RECOVER"), "{}", page.out);
    assert!(bench.run(&["man"]).out.contains("Exit codes"));
    assert_eq!(bench.run(&["man", "conform", "run"]).code, 0);
}

#[test]
fn show_goes_on_after_a_cursor() {
    let bench = Bench::new();
    let events = varied();
    bench.log("a.palog.jsonl", &events[..9]);
    let first = bench.run(&["show", "a.palog.jsonl", "--format", "json"]).json();
    let cursor = first["cursor"].as_str().expect("a cursor").to_owned();
    assert!(cursor.starts_with("8:"), "{cursor}");
    bench.log("a.palog.jsonl", &events);
    let rest = bench.run(&["show", "a.palog.jsonl", "--after", &cursor, "--format", "json"]).json();
    let whole = bench.run(&["show", "a.palog.jsonl", "--format", "json"]).json();
    let ids = |of: &serde_json::Value| {
        of["items"]
            .as_array()
            .expect("items")
            .iter()
            .map(|i| i["id"].as_str().expect("an id").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!([ids(&first), ids(&rest)].concat(), ids(&whole));
    assert_eq!(rest["cursor"], whole["cursor"]);
    let human = bench.run(&["show", "a.palog.jsonl", "--after", &cursor]).out;
    assert!(human.contains("Two more tries.") && !human.contains("Deploy the fix"), "{human}");
    // A log that was changed before that place is another one.
    fs::write(bench.path("a.palog.jsonl"), log(&events).replace("tool_use", "tool-use")).expect("a file");
    let other = bench.run(&["show", "a.palog.jsonl", "--after", &cursor]);
    assert_eq!((other.code, other.out.as_str()), (1, ""));
    assert!(other.err.contains("[order.diverged]"), "{}", other.err);
    assert_eq!(bench.run(&["show", "a.palog.jsonl", "--after", "8"]).code, 2);
}

#[test]
fn a_log_is_followed_until_it_is_closed() {
    let closed = [varied(), vec![r#"x log.closed {"how":"complete"}"#]].concat();
    let lines: Vec<String> = log(&closed).split_inclusive('\n').map(str::to_owned).collect();
    for format in ["human", "json"] {
        let bench = Bench::new();
        let path = bench.file("a.palog.jsonl", lines[..7].concat());
        let child = bench
            .command(&["show", "a.palog.jsonl", "--follow", "--format", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut file = fs::OpenOptions::new().append(true).open(path).expect("the log");
        for line in &lines[7..] {
            // A line comes in two pieces, of which the first is none.
            let (head, tail) = line.split_at(line.len() / 2);
            file.write_all(head.as_bytes()).expect("it is written");
            std::thread::sleep(std::time::Duration::from_millis(3));
            file.write_all(tail.as_bytes()).expect("it is written");
        }
        let run = Run::of(child.wait_with_output().expect("it ends"));
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", run.out);
        if format == "human" {
            assert_eq!(run.out.matches("Two more tries.").count(), 1, "{}", run.out);
            assert!(run.out.contains("Bash failed") || run.out.contains("=x failed"), "{}", run.out);
        } else {
            let whole = bench.run(&["show", "a.palog.jsonl", "--format", "json"]).json();
            let items: Vec<serde_json::Value> =
                run.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
            let ids = |of: &[serde_json::Value]| of.iter().map(|i| i["id"].clone()).collect::<Vec<_>>();
            assert_eq!(ids(&items), ids(whole["items"].as_array().expect("items")));
            let last = items.last().expect("items")["cursor"].as_str().expect("a cursor");
            let rest = bench.run(&["show", "a.palog.jsonl", "--after", last, "--follow", "--format", "json"]);
            assert_eq!((rest.code, rest.out.as_str()), (0, ""), "nothing that is shown follows");
        }
    }
    let bench = Bench::new();
    assert_eq!(bench.run(&["show", &fixture(PENDING), "--follow"]).code, 2, "a vendor's file cannot be followed");
    assert_eq!(bench.pipe(&["show", "-", "--follow"], log(&closed).as_bytes()).code, 2);
}

#[test]
fn examples_of_findings_are_as_bad_as_real_ones() {
    let bench = Bench::new();
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut learn = |findings: &serde_json::Value| {
        for finding in findings.as_array().expect("findings") {
            let text = |member: &str| finding[member].as_str().expect("text").to_owned();
            seen.entry(text("code")).or_default().insert(text("severity"));
        }
    };
    let mut n = 0;
    for topic in ["faults", "claude-code", "codex"] {
        for case in fs::read_dir(fixtures().join(topic)).expect("the fixtures") {
            let case = case.expect("an entry").path().to_string_lossy().into_owned();
            n += 1;
            let run = bench.run(&["import", &case, "-o", &format!("logs/{n}"), "--format", "json"]);
            if run.code <= 1 {
                learn(&run.json()["diagnostics"]);
            }
        }
    }
    let log = log(&varied());
    let bad = [
        log.replacen(r#""seq":7"#, r#""seq":8"#, 1),
        log.replace(r#""role":"user","purpose""#, r#""purpose""#) + "{\"palog\":1,\"lo",
        log.replace(r#""log":"l1","seq":5"#, r#""log":"l2","seq":5"#),
        log.replace("\"id\":\"v\",\"type\":\"message.added\"", "\"id\":\"u\",\"type\":\"quota.exceeded\""),
        log.replace('\n', "\r\n"),
        format!("\u{feff}{log}"),
    ];
    for bytes in bad {
        bench.file("bad.palog.jsonl", bytes);
        learn(&bench.run(&["validate", "bad.palog.jsonl", "--format", "json"]).json()["logs"][0]["diagnostics"]);
    }
    assert!(seen.len() >= 25, "{seen:?}");
    for (code, severities) in seen {
        let explained = bench.run(&["explain", &code, "--format", "json"]).json();
        let example = explained["codes"][0]["example"].as_str().expect("an example").to_owned();
        let severity = example.split('[').next().expect("a severity");
        assert!(severities.contains(severity), "{code}: the example says {severity}, and real ones are {severities:?}");
    }
}
