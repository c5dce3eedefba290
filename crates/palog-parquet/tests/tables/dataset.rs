//! A dataset as it grows: what is there stays, what is new is added, and nothing stands twice.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{files, integers, is_null, read, rebuild, rows, strings};
use arrow_array::cast::AsArray;
use palog_parquet::{Input, Options, Partitions, Refusal, Report, Table, What, export};

fn line(log: &str, seq: u64, kind: &str, time: &str, data: &str) -> String {
    format!(
        r#"{{"palog":1,"log":"{log}","seq":{seq},"id":"{log}-{seq}","type":"{kind}","time":{time},"actor":{{"kind":"harness"}},"data":{data}}}"#
    ) + "\n"
}

fn opened(log: &str, time: &str) -> String {
    line(log, 0, "log.opened", time, r#"{"spec":"1.0-draft","session":"s","agent":{"name":"agent"}}"#)
}

fn message(log: &str, seq: u64, time: &str, text: &str) -> String {
    line(log, seq, "message.added", time, &format!(r#"{{"role":"user","parts":[{{"type":"text","text":"{text}"}}]}}"#))
}

fn write(directory: &Path, name: &str, content: &[u8]) -> Input {
    let path = directory.join(format!("{name}.palog.jsonl"));
    fs::write(&path, content).expect("written");
    Input::path(path)
}

fn run(inputs: &[Input], dataset: &Path) -> Report {
    export(inputs, dataset, &Options::default()).expect("exported")
}

fn scratch() -> (tempfile::TempDir, PathBuf) {
    let scratch = tempfile::tempdir().expect("a directory");
    let dataset = scratch.path().join("dataset");
    (scratch, dataset)
}

#[test]
fn every_byte_of_a_damaged_log_is_kept() {
    let (scratch, dataset) = scratch();
    let mut log = opened("l", "\"2026-11-29T23:59:60.1234567Z\"").into_bytes();
    log.extend_from_slice(b"\n{\"palog\":1,\n\xff\xfe\x00\n  \r\n");
    log.extend_from_slice(message("l", 1, "null", "hi").as_bytes());
    log.extend_from_slice(line("l", 2, "message.added", "null", r#"{"role":"nobody"}"#).as_bytes());
    let whole = log.clone();
    log.extend_from_slice(b"{\"palog\":1,\"torn");
    let report = run(&[write(scratch.path(), "l", &log)], &dataset);

    let events = read(&dataset, Table::Events);
    assert_eq!(rebuild(&events)["l"], whole);
    let faults = strings(&events, "fault");
    let expected = [
        None,
        Some("json.syntax"),
        Some("json.syntax"),
        Some("framing.invalid_utf8"),
        Some("framing.carriage_return"),
        None,
        Some("schema.malformed"),
    ];
    assert_eq!(faults.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
    assert_eq!(report.troubles.len(), 5);
    assert_eq!(integers(&events, "line_number"), (1..=7).map(Some).collect::<Vec<_>>());
    // The payload could not be read; the envelope was.
    assert_eq!(strings(&events, "type")[6].as_deref(), Some("message.added"));
    assert_eq!(strings(&events, "text")[5].as_deref(), Some("hi"));
    assert_eq!(strings(&events, "time_text")[0].as_deref(), Some("2026-11-29T23:59:60.1234567Z"));
    let sessions = read(&dataset, Table::Sessions);
    let tail = sessions[0].column_by_name("torn_tail").expect("a column").as_binary::<i32>().value(0).to_vec();
    assert_eq!(tail, b"{\"palog\":1,\"torn");
    assert_eq!(
        (integers(&sessions, "faults"), strings(&sessions, "verdict")[0].as_deref()),
        (vec![Some(5)], Some("indeterminate"))
    );
}

#[test]
fn a_line_that_no_reader_accepts_is_named() {
    let (scratch, dataset) = scratch();
    let mut log = opened("l", "null").into_bytes();
    log.extend(std::iter::repeat_n(b'x', (16 << 20) + 1));
    log.push(b'\n');
    log.extend_from_slice(message("l", 1, "null", "hi").as_bytes());
    let report = run(&[write(scratch.path(), "l", &log)], &dataset);
    assert_eq!(report.troubles.len(), 1);
    let events = read(&dataset, Table::Events);
    assert_eq!(strings(&events, "fault")[1].as_deref(), Some("framing.line_too_long"));
    assert!(is_null(&events, "line", 1) && !is_null(&events, "line", 2));
    assert_eq!(integers(&events, "line_number"), [Some(1), Some(2), Some(3)]);
}

#[test]
fn a_rerun_adds_what_is_new_and_replaces_what_grew() {
    let (scratch, dataset) = scratch();
    let (a, b) = (opened("a", "null"), opened("b", "null"));
    let inputs =
        |a: &str, b: &str| vec![write(scratch.path(), "a", a.as_bytes()), write(scratch.path(), "b", b.as_bytes())];
    let first = run(&inputs(&a, &b)[..1], &dataset);
    assert_eq!((first.added, first.replaced, first.unchanged), (1, 0, 0));
    let old = files(&dataset, Table::Events);
    let before = fs::read(&old[0]).expect("a file");

    let second = run(&inputs(&a, &b), &dataset);
    assert_eq!((second.added, second.replaced, second.unchanged), (1, 0, 1));
    assert_eq!(fs::read(&old[0]).expect("a file"), before, "what is there is not touched");
    assert_eq!(files(&dataset, Table::Events).len(), 2);

    let grown = a.clone() + &message("a", 1, "null", "more");
    let third = run(&inputs(&grown, &b), &dataset);
    assert_eq!((third.added, third.replaced, third.unchanged), (0, 1, 1));
    let lines = rebuild(&read(&dataset, Table::Events));
    assert_eq!((lines["a"].as_slice(), lines["b"].as_slice()), (grown.as_bytes(), b.as_bytes()));
    assert_eq!(rows(&read(&dataset, Table::Sessions)), 2);
    assert!(!old[0].exists(), "a file without rows is removed");

    // Two logs of one file, of which one grows: the other stays.
    let together = scratch.path().join("together");
    run(&inputs(&a, &b), &together);
    run(&inputs(&grown, &b), &together);
    let lines = rebuild(&read(&together, Table::Events));
    assert_eq!((lines["a"].as_slice(), lines["b"].as_slice()), (grown.as_bytes(), b.as_bytes()));
    assert_eq!(rows(&read(&together, Table::Sessions)), 2);
    let left: Vec<_> =
        fs::read_dir(&together).expect("a directory").map(|e| e.expect("an entry").file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("_staging")), "{left:?}");
}

#[test]
fn copies_that_diverged_are_refused() {
    let (scratch, dataset) = scratch();
    let one = opened("l", "null") + &message("l", 1, "null", "one");
    let other = opened("l", "null") + &message("l", 1, "null", "other");
    run(&[write(scratch.path(), "one", one.as_bytes())], &dataset);
    let report = run(&[write(scratch.path(), "other", other.as_bytes())], &dataset);
    assert!(matches!(&report.troubles[0].what, What::Refused(Refusal::Diverged { log, .. }) if log == "l"));
    assert_eq!(rebuild(&read(&dataset, Table::Events))["l"], one.as_bytes());

    // Side by side: neither is the right one. A copy that is only shorter is no other log.
    let inputs = [write(scratch.path(), "one", one.as_bytes()), write(scratch.path(), "other", other.as_bytes())];
    let both = run(&inputs, &scratch.path().join("both"));
    assert_eq!((both.added, both.troubles.len()), (0, 2));
    let inputs =
        [write(scratch.path(), "a", opened("l", "null").as_bytes()), write(scratch.path(), "b", one.as_bytes())];
    let longer = run(&inputs, &scratch.path().join("longer"));
    assert_eq!((longer.added, longer.unchanged, longer.troubles.len()), (1, 1, 0));
    // What holds no event is no log.
    let none = run(&[write(scratch.path(), "none", b"{}\n")], &scratch.path().join("none"));
    assert!(matches!(none.troubles[0].what, What::Refused(Refusal::NoLog)));
}

#[test]
fn partitions_are_directories() {
    let (scratch, dataset) = scratch();
    let mut options = Options::default();
    options.partitions = Partitions { vendor: true, month: true };
    let inputs = [
        write(scratch.path(), "a", opened("a", "\"2026-11-29T23:59:59Z\"").as_bytes()),
        write(scratch.path(), "b", opened("b", "null").as_bytes()),
    ];
    export(&inputs, &dataset, &options).expect("exported");
    let found: Vec<String> = files(&dataset, Table::Sessions)
        .iter()
        .map(|path| path.parent().expect("a directory").strip_prefix(&dataset).expect("below").display().to_string())
        .collect();
    assert_eq!(
        found,
        ["sessions/vendor=agent/month=2026-11", "sessions/vendor=agent/month=__HIVE_DEFAULT_PARTITION__"]
    );
    // Another option would put the same log into another place.
    let other = export(&inputs, &dataset, &Options::default()).expect_err("another option");
    assert!(other.to_string().contains("parted by vendor,month, not by none"), "{other}");
    // A log whose first time becomes known moves.
    let grown = opened("b", "null") + &message("b", 1, "\"2025-01-01T00:00:00Z\"", "x");
    let report = export(&[write(scratch.path(), "b", grown.as_bytes())], &dataset, &options).expect("exported");
    assert_eq!(report.replaced, 1);
    assert_eq!(rows(&read(&dataset, Table::Sessions)), 2);
    assert_eq!(rebuild(&read(&dataset, Table::Events))["b"], grown.as_bytes());
}

#[test]
fn a_run_that_was_killed_is_finished_or_not_there() {
    let (scratch, dataset) = scratch();
    let (a, b) = (opened("a", "null"), opened("b", "null"));
    run(&[write(scratch.path(), "a", a.as_bytes())], &dataset);
    let other = scratch.path().join("other");
    run(&[write(scratch.path(), "b", b.as_bytes())], &other);

    // Killed before its journal stood: nothing of it is there, and its files go away.
    let dead = dataset.join("_staging-dead/events");
    fs::create_dir_all(&dead).expect("made");
    fs::write(dead.join("part-x.parquet"), b"half").expect("written");
    assert_eq!(run(&[], &dataset).added, 0);
    assert!(!dataset.join("_staging-dead").exists());

    // Killed after that: whoever comes next finishes it.
    let names: Vec<PathBuf> = Table::ALL
        .iter()
        .flat_map(|table| files(&other, *table))
        .map(|path| path.strip_prefix(&other).expect("below").to_owned())
        .collect();
    for name in &names {
        let to = dataset.join("_staging-late").join(name);
        fs::create_dir_all(to.parent().expect("a directory")).expect("made");
        fs::copy(other.join(name), to).expect("copied");
    }
    let quoted: Vec<String> = names.iter().map(|name| format!("{:?}", name.display().to_string())).collect();
    let journal = format!(r#"{{"staging":"_staging-late","remove":[],"put":[{}]}}"#, quoted.join(","));
    fs::write(dataset.join("_commit"), journal).expect("written");
    let report = run(&[write(scratch.path(), "b", b.as_bytes())], &dataset);
    assert_eq!((report.added, report.unchanged), (0, 1));
    assert_eq!(rebuild(&read(&dataset, Table::Events)).len(), 2);
    assert!(!dataset.join("_commit").exists() && !dataset.join("_staging-late").exists());
}

#[test]
fn pieces_and_threads_change_nothing() {
    let (scratch, dataset) = scratch();
    let mut log = opened("long", "null");
    for seq in 1..40_000 {
        log += &message("long", seq, "null", &"x".repeat(usize::try_from(seq % 700).expect("small")));
    }
    let input =
        || [write(scratch.path(), "long", log.as_bytes()), write(scratch.path(), "m", opened("m", "null").as_bytes())];
    run(&input(), &dataset);
    let events = read(&dataset, Table::Events);
    assert!(rebuild(&events)["long"] == log.as_bytes());
    let one = scratch.path().join("one");
    let mut options = Options::default();
    options.threads = 1;
    export(&input(), &one, &options).expect("exported");
    let bytes = |dataset: &Path| fs::read(&files(dataset, Table::Events)[0]).expect("a file");
    assert!(bytes(&one) == bytes(&dataset));
    let file =
        parquet::file::reader::SerializedFileReader::try_from(files(&one, Table::Events)[0].as_path()).expect("a file");
    let metadata = parquet::file::reader::FileReader::metadata(&file);
    assert!(metadata.num_row_groups() > 2, "{} row groups", metadata.num_row_groups());
    let bounded = metadata.row_groups().iter().all(|group| group.num_rows() <= 16 << 10);
    assert!(bounded);
    let seq = Table::Events.columns().iter().position(|column| column.name == "seq").expect("a column");
    assert!(metadata.row_group(1).column(seq).statistics().is_some());
}
