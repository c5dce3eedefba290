//! All pairs, and the page that tells what they lose.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use palog_diff::Difference;
use palog_import::{ExportError, Field, LossReport, Refused, Vendor, Wanted};

use crate::moves::{Moved, import, through};
use crate::{fixtures, stores};

const PAIRS: [(Vendor, Vendor); 4] = [
    (Vendor::ClaudeCode, Vendor::ClaudeCode),
    (Vendor::ClaudeCode, Vendor::Codex),
    (Vendor::Codex, Vendor::ClaudeCode),
    (Vendor::Codex, Vendor::Codex),
];

/// What one pair loses, over all sessions.
#[derive(Default)]
struct Cell {
    sessions: u64,
    facts: u64,
    lost: u64,
    /// By field, class and reason: in how many sessions, and how often.
    losses: BTreeMap<(Field, &'static str, &'static str), (u64, u64)>,
    wrong: Vec<String>,
}

/// The fields in which the two logs differ. Records that the new client needs are no loss.
fn measured(moved: &Moved) -> impl Iterator<Item = &Difference> {
    moved.comparison.differences.iter().filter(|d| d.field != Field::Record || !d.first.is_empty())
}

/// Where declared and measured losses disagree.
fn disagreements(moved: &Moved) -> Vec<String> {
    let declared: BTreeSet<Field> = moved.exported.report.losses.iter().map(|l| l.field).collect();
    let lost: BTreeSet<Field> = measured(moved).map(|d| d.field).collect();
    let undeclared = measured(moved).filter(|d| !declared.contains(&d.field)).map(|d| format!("not declared: {d:?}"));
    let stale = declared.difference(&lost).map(|field| format!("never lost: {}", field.word()));
    undeclared.chain(stale).collect()
}

impl Cell {
    fn add(&mut self, report: &LossReport, moved: &Moved) {
        self.sessions += 1;
        self.facts += moved.comparison.same;
        let facts = measured(moved).filter(|d| d.field != Field::Record);
        self.lost += facts.map(|d| d.first.len() as u64).sum::<u64>();
        for loss in &report.losses {
            let (sessions, count) = self.losses.entry((loss.field, loss.class.word(), loss.reason)).or_default();
            *sessions += 1;
            *count += loss.count;
        }
    }
}

/// Moves every session of `from` to `to`, written anew.
fn pair(from: Vendor, to: Vendor) -> Cell {
    let wanted = Wanted { rewrite: true, directory: Some("/tmp/proj/demo".into()), ..Wanted::default() };
    let mut cell = Cell::default();
    for store in stores(from) {
        let (_folder, logs) = import(&store, from);
        for log in &logs {
            let run = store.strip_prefix(fixtures()).expect("a fixture").display();
            let name = format!("{run} {}", log.path.file_name().expect("a name").display());
            let moved = match through(log, to, &wanted) {
                Ok(moved) => moved,
                Err(Refused::Export(ExportError::Empty)) => continue,
                Err(refused) => panic!("{name}: {refused:?}"),
            };
            cell.wrong.extend(disagreements(&moved).into_iter().map(|wrong| format!("{name}: {wrong}")));
            cell.add(&moved.exported.report, &moved);
        }
    }
    cell
}

/// What a vendor is called.
fn product(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Codex => "Codex",
        _ => "Claude Code",
    }
}

/// The page: one table of all pairs, then one for each.
fn page(cells: &[((Vendor, Vendor), Cell)]) -> String {
    let mut page = String::from(HEAD);
    let tell = "a String takes everything";
    for ((from, to), cell) in cells {
        let (kept, all) = (cell.facts, cell.facts + cell.lost);
        let percent = 1000 * kept / all;
        let (whole, tenth) = (percent / 10, percent % 10);
        let (from, to, sessions) = (product(*from), product(*to), cell.sessions);
        writeln!(page, "| {from} | {to} | {sessions} | {kept} of {all} | {whole}.{tenth} % |").expect(tell);
    }
    for ((from, to), cell) in cells {
        writeln!(page, "\n## {} to {}\n", product(*from), product(*to)).expect(tell);
        page += "| field | class | sessions | times | why |\n|---|---|---|---|---|\n";
        for ((field, class, reason), (sessions, count)) in &cell.losses {
            writeln!(page, "| {} | {class} | {sessions} | {count} | {reason} |", field.word()).expect(tell);
        }
    }
    page
}

const HEAD: &str = "\
# What a move loses

Made by `PALOG_UPDATE=1 cargo test -p palog-diff --test fidelity` from the genuine sessions in `conformance-fixtures/sources`; a
test fails where it is out of date. Each session is imported, written in the dialect of the other client's current version, and
read back from what was written alone. Both logs are then compared field by field (`palog diff`): every difference is in a field
that the export declared lost, and every field that it declared lost differs.

A session that goes back to the client it came from, and was not added to, is no part of this: it gets its own bytes. Here it is
written anew as well, since a log that went on has no bytes of the client's for what is new.

*Facts* are texts, calls, arguments, results, pictures, times, states and the like, each counted once; records of the first client
that are no part of the conversation are not among them. What the real clients make
of the sessions is in `tests/real-clients/results.json`.

| from | to | sessions | facts that arrive | share |
|---|---|---|---|---|
";

/// Least shares of facts that arrive, in per mille: a change that loses more is seen here first.
const FLOORS: [u64; 4] = [890, 740, 710, 770];

#[test]
fn what_is_declared_is_measured_and_told() {
    let cells: Vec<_> = PAIRS.iter().map(|pair_of| (*pair_of, pair(pair_of.0, pair_of.1))).collect();
    for (((from, to), cell), floor) in cells.iter().zip(FLOORS) {
        let wrong = &cell.wrong;
        assert!(wrong.is_empty(), "{from:?} to {to:?}: {}\n{}", wrong.len(), wrong.join("\n"));
        assert!(cell.sessions >= 25, "{from:?} to {to:?}: {} sessions", cell.sessions);
        let share = 1000 * cell.facts / (cell.facts + cell.lost);
        assert!(share >= floor, "{from:?} to {to:?}: {share} per mille");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fidelity.md");
    let page = page(&cells);
    if std::env::var_os("PALOG_UPDATE").is_some() {
        std::fs::write(&path, &page).expect("it can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == page,
        "docs/fidelity.md is out of date: PALOG_UPDATE=1 cargo test -p palog-diff --test fidelity"
    );
}

/// A session that goes back is what it was, byte for byte, with all that lay beside it.
#[test]
fn a_session_that_goes_back_gets_its_own_bytes() {
    for vendor in [Vendor::ClaudeCode, Vendor::Codex] {
        let mut sessions = 0;
        for store in stores(vendor) {
            let (_folder, logs) = import(&store, vendor);
            for log in &logs {
                let moved = through(log, vendor, &Wanted::default()).expect("it can be written");
                assert!(moved.exported.report.identical, "{}", log.path.display());
                let original = std::fs::read(store.join(&moved.exported.place)).expect("the original");
                assert_eq!(moved.bytes, original, "{}", log.path.display());
                for (file, place) in &moved.exported.beside {
                    let original = std::fs::read(store.join(place)).expect("the original");
                    assert_eq!(std::fs::read(file).expect("a kept source"), original, "{place}");
                }
                sessions += 1;
            }
        }
        assert!(sessions >= 25, "{vendor:?}: {sessions}");
    }
}
