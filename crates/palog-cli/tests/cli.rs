//! Drives the built binary as a user would.

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
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
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
            Some(rest) => rest.split_once(' ').map(|(p, rest)| (format!(r#""parent":"{p}","#), rest)).expect("a parent"),
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
const CALLS: &str = r#"b message.added {"role":"assistant","response":"r1","parts":[{"type":"action","action":"toolu_1"}]}"#;
const BASH: &str = r#"p action.proposed {"action":"toolu_1","name":"Bash","args":{"command":"./deploy.sh staging"},"args_digest":"sha256:6e9a61b3b9b5c1f7a1e0d6cbb26c3c1b1f6e5c8d2e3f40516273849506172839"}"#;
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
    for command in ["import", "validate", "show", "state", "recover", "context"] {
        let help = bench.run(&[command, "--help"]);
        assert_eq!(help.code, 0);
        assert!(help.out.contains("Example"), "{command}");
        all += &format!("\n$ palog {command} --help\n{}", help.out);
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
