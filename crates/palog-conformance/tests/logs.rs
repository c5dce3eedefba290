//! The cases about logs: each quotes the specification, its log is what it says, and some wrong implementation fails it.

#[path = "support/faults.rs"]
mod faults;
#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "../../palog-cli/src/reference/import.rs"]
mod import;
#[path = "support/reference.rs"]
mod reference;
#[path = "support/valid.rs"]
mod valid;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use faults::{FAULTS, Fault};
use palog_conformance::{Case, LogCase, Operation, run};

fn cases() -> Vec<(Case, LogCase)> {
    let all = Case::all(&fixtures::folder()).expect("the cases");
    all.into_iter().filter_map(|case| Some((case.clone(), case.log()?.clone()))).collect()
}

fn spec(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec").join(file);
    std::fs::read_to_string(path).expect("the specification")
}

/// A text without the line breaks, the targets of links and the marks of emphasis.
fn plain(text: &str) -> String {
    let mut links = text.split("](");
    let first = links.next().unwrap_or_default().to_owned();
    let text = links.fold(first, |text, rest| text + rest.split_once(')').map_or(rest, |(_, rest)| rest));
    text.replace(['[', ']'], "").replace("**", "").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn each_case_quotes_the_specification_and_names_rules_of_it() {
    let text: String = ["01-bytes.md", "02-envelope.md", "03-events.md", "04-reducer.md", "05-recovery.md"]
        .map(|file| plain(&spec(file)))
        .join(" ");
    let reserved: toml::Table = toml::from_str(&spec("reserved.toml")).expect("TOML");
    let rules: BTreeSet<&str> =
        reserved["rules"].as_array().into_iter().flatten().filter_map(|rule| rule.as_str()).collect();
    for (case, log) in cases() {
        assert!(text.contains(&plain(&log.quote)), "{}: the specification does not say {:?}", case.id, log.quote);
        for rule in &case.rules {
            assert!(rules.contains(rule.as_str()), "{}: there is no rule {rule}", case.id);
        }
    }
}

/// Sound logs that do not fit the schema, which sees neither the order of names nor how they are written (spec 07, 6).
const UNSEEN: [&str; 2] = ["read/bytes/keeps-escaped-form", "read/bytes/keeps-literal-blob"];

/// A log that is to be accepted has nothing wrong that its case does not tell, not even in what the case is not about.
#[test]
fn each_log_is_as_sound_as_its_case_says() {
    let mut sound = 0;
    for (case, log) in cases() {
        if log.codes.iter().any(|finding| ["error", "void"].contains(&finding.severity.as_str())) {
            continue;
        }
        if UNSEEN.contains(&case.id.as_str()) {
            continue;
        }
        let bytes = log.bytes().expect("a log");
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        if whole > 1 << 20 {
            continue;
        }
        sound += 1;
        valid::check(&bytes[..whole], None).unwrap_or_else(|why| panic!("{}: {why}", case.id));
    }
    assert!(sound > 200);
}

/// The table of questions in spec 07 names the cases that there are, and each question has one.
#[test]
fn every_question_after_a_crash_has_a_case() {
    let text = spec("07-conformance.md");
    let table = text.split("### Questions after a crash").nth(1).expect("the table");
    let rows: Vec<&str> =
        table.lines().skip_while(|line| !line.starts_with("| 1.")).take_while(|l| l.starts_with('|')).collect();
    assert_eq!(rows.len(), 13);
    let mut named = BTreeSet::new();
    let cases: BTreeMap<String, (Case, LogCase)> =
        cases().into_iter().map(|(case, log)| (case.id.clone(), (case, log))).collect();
    for (row, number) in rows.iter().zip(1..) {
        assert!(row.starts_with(&format!("| {number}. ")), "{row}");
        let cells: Vec<&str> = row.split(" | ").collect();
        let of_row: Vec<&str> = cells[2].split('`').skip(1).step_by(2).collect();
        let mut states = 0;
        for name in of_row {
            assert!(name.starts_with(&format!("{number:02}-")), "{name} in {row}");
            let id = format!("recover/hard-questions/{name}");
            let (_, log) = cases.get(&id).unwrap_or_else(|| panic!("there is no case {id}"));
            assert!(log.verdict().is_some(), "{id} expects no recovery");
            states += usize::from(log.expected.state.is_some());
            named.insert(id);
        }
        assert!(states > 0, "no case expects a state: {row}");
    }
    let left_out: Vec<&String> =
        cases.keys().filter(|id| id.starts_with("recover/hard-questions/") && !named.contains(*id)).collect();
    assert!(left_out.is_empty(), "the table lacks {left_out:?}");
}

/// Every verdict, every phase and every row of the tables has cases.
#[test]
fn the_cases_are_of_all_kinds() {
    let cases = cases();
    let mut verdicts: BTreeMap<&str, u32> = BTreeMap::new();
    cases.iter().filter_map(|(_, log)| log.verdict()).for_each(|verdict| *verdicts.entry(verdict).or_default() += 1);
    assert_eq!(verdicts.len(), 7, "{verdicts:?}");
    assert!(verdicts.values().all(|count| *count >= 2), "{verdicts:?}");
    let phases: BTreeSet<_> = cases.iter().flat_map(|(_, log)| log.codes.iter().map(|finding| finding.phase)).collect();
    assert_eq!(phases.len(), 6, "{phases:?}");
    for operation in [Operation::Read, Operation::Reduce, Operation::Recover] {
        assert!(cases.iter().filter(|(_, log)| log.operation == operation).count() > 50, "{operation:?}");
    }
}

/// A case that no wrong implementation fails is worth nothing, and neither is a fault that no case finds.
#[test]
fn every_case_kills_a_fault_and_every_fault_is_killed() {
    let fails = |case: &Case, fault: &Fault| !run(case, fault).failures.is_empty();
    let mut killed: BTreeMap<&str, u32> = FAULTS.iter().map(|fault| (fault.name, 0)).collect();
    let (mut wrong, cases) = (Vec::new(), cases());
    for (case, log) in &cases {
        for name in &log.kills {
            match FAULTS.iter().find(|fault| fault.name == name) {
                Some(fault) if fails(case, fault) => *killed.entry(fault.name).or_default() += 1,
                Some(_) => wrong.push(format!("{} does not kill {name}", case.id)),
                None => wrong.push(format!("{}: there is no fault {name}", case.id)),
            }
        }
        if log.kills.is_empty() {
            // From the end: the faults in what is owed and decided.
            match FAULTS.iter().rev().find(|fault| fails(case, fault)) {
                Some(fault) => *killed.entry(fault.name).or_default() += 1,
                None => wrong.push(format!("{} kills nothing", case.id)),
            }
        }
    }
    let mut missed: Vec<&Fault> = FAULTS.iter().filter(|fault| killed[fault.name] == 0).collect();
    missed.retain(|fault| !cases.iter().any(|(case, log)| log.operation != Operation::Read && fails(case, fault)));
    let missed: Vec<&str> = missed.iter().map(|fault| fault.name).collect();
    assert!(wrong.is_empty() && missed.is_empty(), "{wrong:#?}\nno case kills {missed:?}\n{killed:?}");
}

/// A planner with one answer to everything is wrong in at least 30 % of the cases that have a verdict.
#[test]
fn constant_answers_fail() {
    let cases = cases();
    let judged: Vec<&Case> = cases.iter().filter(|(_, log)| log.verdict().is_some()).map(|(case, _)| case).collect();
    for fault in FAULTS.iter().filter(|fault| fault.name.starts_with("always_")) {
        let failed = judged.iter().filter(|case| !run(case, fault).failures.is_empty()).count();
        assert!(failed * 10 >= judged.len() * 3, "{} fails {failed} of {}", fault.name, judged.len());
    }
}

/// A set of its own, with copies of some cases.
fn set_of(ids: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for id in ids {
        let (from, to) = (fixtures::folder().join("v1").join(id), folder.path().join("v1").join(id));
        fs::create_dir_all(to.join("expect")).expect("a folder");
        for name in ["case.toml", "input.palog.jsonl"] {
            let _ = fs::copy(from.join(name), to.join(name));
        }
        for entry in fs::read_dir(from.join("expect")).into_iter().flatten() {
            let entry = entry.expect("an entry");
            fs::copy(entry.path(), to.join("expect").join(entry.file_name())).expect("a copy");
        }
    }
    folder
}

fn edit(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).expect("a file");
    assert!(text.contains(from), "{from}");
    fs::write(path, text.replacen(from, to, 1)).expect("a file");
}

#[test]
fn a_broken_case_is_an_error() {
    let (id, base) = ("recover/unknown/in-progress-due", "recover/unknown/in-progress");
    let broken = |change: &dyn Fn(&Path)| {
        let set = set_of(&[id, base]);
        let case = set.path().join("v1").join(id);
        assert!(Case::load(set.path(), &case).is_ok());
        change(&case);
        Case::load(set.path(), &case).expect_err("it is broken")
    };
    let toml = |from: &'static str, to: &'static str| broken(&|case| edit(&case.join("case.toml"), from, to));
    assert!(toml("rationale", "reason").contains("reason"));
    assert!(toml("now =", "later =").contains("later"));
    assert!(toml("role = \"Recoverer\"", "role = \"Reducer\"").contains("another operation"));
    assert!(toml("level = \"L3\"", "level = \"L2\"").contains("another operation"));
    assert!(toml("rules = [\"R-REC-011\", \"R-REC-026\"]", "rules = []").contains("no rule"));
    assert!(toml("base = \"recover/unknown/in-progress\"", "").contains("neither"));
    assert!(toml("base = \"recover/unknown/in-progress\"", "base = \"recover/unknown/nothing\"").contains("neither"));
    assert!(toml("verdict = \"needs_reconcile\"", "verdict = \"idle\"").contains("another verdict"));
    assert!(toml("[world]", "patch = [{ drop = 99 }]\n[world]").contains("no line 99"));
    let code =
        |code: &'static str| broken(&|case| edit(&case.join("case.toml"), "codes = []", &format!("codes = [{code}]")));
    assert!(code("{ code = \"order.gap\", severity = \"error\", phase = \"fsm\" }").contains("phase"));
    assert!(code("{ code = \"order.gap\", severity = \"bad\", phase = \"order\" }").contains("severity"));
    assert!(code("{ code = \"weather.bad\", severity = \"error\", phase = \"order\" }").contains("phase"));
    assert!(broken(&|case| fs::write(case.join("notes.txt"), "").expect("a file")).contains("notes.txt"));
    assert!(broken(&|case| fs::write(case.join("expect/events.json"), "[]").expect("a file")).contains("events.json"));
    assert!(broken(&|case| fs::remove_file(case.join("expect/recovery.json")).expect("a file")).contains("lacks"));
}

/// What a case expects is compared: whatever is changed in it turns the case red.
#[test]
fn every_change_of_an_expectation_is_noticed() {
    let mut changed = 0;
    for (id, file) in [
        ("recover/hard-questions/12-two-sources", "recovery"),
        ("recover/hard-questions/12-two-sources", "state"),
        ("reduce/actions/approval-lapse-before-grant", "state"),
        ("reduce/context/window", "context"),
        ("read/bytes/shortest", "events"),
    ] {
        let set = set_of(&[id]);
        let case = set.path().join("v1").join(id);
        let path = case.join(format!("expect/{file}.json"));
        let original = fs::read_to_string(&path).expect("an expectation");
        let red = || {
            Case::load(set.path(), &case).map_or(true, |case| !run(&case, &reference::Reference).failures.is_empty())
        };
        assert!(!red(), "{id}");
        // Every scalar stands behind a colon, or alone on its line.
        for (at, _) in original.match_indices('\n') {
            let line = original[..at].rsplit('\n').next().unwrap_or_default();
            let value = line.rsplit(": ").next().unwrap_or_default().trim().trim_end_matches(',');
            if value.is_empty() || "[]{}".contains(value) || value.ends_with(['[', '{']) {
                continue;
            }
            let other = if value == "null" { "\"x\"" } else { "null" };
            let start = at - line.len();
            let text = format!("{}{}{}", &original[..start], line.replace(value, other), &original[at..]);
            fs::write(&path, text).expect("an expectation");
            assert!(red(), "{id}: nobody notices {line:?}");
            changed += 1;
        }
    }
    assert!(changed > 20, "{changed}");
}

#[test]
fn a_base_that_does_not_pass_fails_the_case() {
    let (id, base) = ("read/order/gap", "read/bytes/plain");
    let set = set_of(&[id, base]);
    let case = set.path().join("v1").join(id);
    let load = || Case::load(set.path(), &case).expect("a case");
    assert_eq!(run(&load(), &reference::Reference).failures, Vec::<String>::new());
    edit(&set.path().join("v1").join(base).join("input.palog.jsonl"), "\"id\":\"e2\"", "\"id\":\"e1\"");
    let failures = run(&load(), &reference::Reference).failures;
    assert!(failures.iter().any(|why| why.contains("the base does not pass")), "{failures:?}");
}
