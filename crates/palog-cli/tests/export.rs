//! `palog export` to tables and lines, as a user runs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const FIXTURE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../conformance-fixtures/sources/claude-code/tui_perm_pending/snap-after-kill"
);

fn palog(directory: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_palog"));
    command.args(args).current_dir(directory).env("NO_COLOR", "1").stdin(Stdio::null()).output().expect("it runs")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("a code")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// A directory with the logs of a session.
fn bench() -> (tempfile::TempDir, Vec<u8>) {
    let directory = tempfile::tempdir().expect("a directory");
    assert_eq!(code(&palog(directory.path(), &["import", FIXTURE, "-o", "logs/"])), 0);
    let entries = fs::read_dir(directory.path().join("logs")).expect("logs").map(|e| e.expect("an entry").path());
    let mut logs: Vec<_> = entries.filter(|path| path.to_string_lossy().ends_with(".palog.jsonl")).collect();
    logs.sort();
    let lines = logs.iter().flat_map(|path| fs::read(path).expect("a log")).collect();
    (directory, lines)
}

#[test]
fn lines_are_those_of_the_logs() {
    let (bench, lines) = bench();
    let run = palog(bench.path(), &["export", "logs", "--to", "jsonl", "-o", "-"]);
    assert_eq!((code(&run), &run.stdout, text(&run.stderr).as_str()), (0, &lines, ""));
    // To a file, which is not overwritten; a torn tail is no part of a log.
    let torn: Vec<u8> = lines.iter().copied().chain(*b"{\"palog\":1").collect();
    fs::write(bench.path().join("torn.palog.jsonl"), torn).expect("written");
    assert_eq!(code(&palog(bench.path(), &["export", "torn.palog.jsonl", "--to", "jsonl", "-o", "out.jsonl"])), 0);
    assert_eq!(fs::read(bench.path().join("out.jsonl")).expect("the output"), lines);
    let again = palog(bench.path(), &["export", "torn.palog.jsonl", "--to", "jsonl", "-o", "out.jsonl"]);
    assert_eq!((code(&again), text(&again.stderr).contains("out.jsonl is there already")), (1, true));
    // What is no log is not made one.
    let vendor = palog(bench.path(), &["export", FIXTURE, "--to", "jsonl", "-o", "-"]);
    assert_eq!((code(&vendor), text(&vendor.stderr).contains("palog import")), (4, true));
}

#[cfg(feature = "parquet")]
mod tables {
    use super::*;

    #[test]
    fn a_dataset_is_written_once() {
        let (bench, lines) = bench();
        let args = ["export", "logs", "--to", "parquet", "-o", "dataset", "--partition", "vendor,month"];
        let run = palog(bench.path(), &args);
        let events = lines.iter().filter(|b| **b == b'\n').count();
        assert_eq!(code(&run), 0, "{}", text(&run.stderr));
        let said = text(&run.stdout);
        assert!(said.starts_with("exported: 1 log added · rows for "), "{said}");
        assert!(said.contains(&format!("{events} events")), "{said}");
        assert!(bench.path().join("dataset/events/vendor=claude-code/month=2026-11").is_dir());

        let json: Vec<&str> = args.into_iter().chain(["--format", "json"]).collect();
        let again = palog(bench.path(), &json);
        let report: serde_json::Value = serde_json::from_slice(&again.stdout).expect("JSON");
        assert_eq!((&report["added"], &report["unchanged"]), (&0.into(), &1.into()));
        let schema: serde_json::Value =
            serde_json::from_slice(&palog(bench.path(), &["schema", "export"]).stdout).expect("a schema");
        assert!(jsonschema::validator_for(&schema).expect("a schema").is_valid(&report), "{report}");
        let other = palog(bench.path(), &args[..6]);
        assert_eq!((code(&other), text(&other.stderr).contains("parted by vendor,month, not by none")), (3, true));
    }

    #[test]
    fn what_is_damaged_is_told_and_kept() {
        let (bench, lines) = bench();
        let bad: Vec<u8> = lines.iter().copied().chain(*b"not JSON\n").collect();
        fs::write(bench.path().join("bad.palog.jsonl"), bad).expect("written");
        let run = palog(bench.path(), &["export", "bad.palog.jsonl", "--to", "parquet", "-o", "dataset"]);
        assert_eq!((code(&run), text(&run.stderr).contains("json.syntax")), (0, true), "{}", text(&run.stderr));
        // Another log of the same id is refused, and one that is none.
        let changed = text(&lines).replacen("\"seq\":3", "\"seq\": 3", 1);
        fs::write(bench.path().join("live.palog.jsonl"), changed.replace("\"derived\"", "\"derived_not\""))
            .expect("written");
        let refused = palog(bench.path(), &["export", "live.palog.jsonl", "--to", "parquet", "-o", "dataset"]);
        assert_eq!(
            (code(&refused), text(&refused.stderr).contains("order.diverged")),
            (1, true),
            "{}",
            text(&refused.stderr)
        );
        fs::write(bench.path().join("none.palog.jsonl"), "{}\n").expect("written");
        let none = palog(bench.path(), &["export", "none.palog.jsonl", "--to", "parquet", "-o", "dataset"]);
        assert_eq!(code(&none), 3, "{}", text(&none.stderr));
    }

    #[test]
    fn a_stream_has_no_files() {
        let (bench, _) = bench();
        let run = palog(bench.path(), &["export", "logs", "--to", "arrow-stream", "--table", "sessions", "-o", "-"]);
        assert_eq!(code(&run), 0, "{}", text(&run.stderr));
        // A stream begins with a continuation mark and ends with an empty message.
        assert_eq!(
            (&run.stdout[..4], &run.stdout[run.stdout.len() - 8..]),
            (&[0xff; 4][..], &[255, 255, 255, 255, 0, 0, 0, 0][..])
        );
        assert!(text(&run.stderr).contains("1 session"), "{}", text(&run.stderr));
        for wrong in [
            &["export", "logs", "--to", "parquet", "-o", "-"][..],
            &["export", "logs", "--to", "jsonl", "--partition", "vendor", "-o", "-"],
        ] {
            assert_eq!(code(&palog(bench.path(), wrong)), 2);
        }
    }
}
