//! All pairs.

use std::collections::BTreeSet;

use palog_diff::Difference;
use palog_import::{ExportError, Field, Refused, Vendor, Wanted};

use crate::moves::{import, through};
use crate::stores;

/// Moves every session of `from` to `to`.
fn pair(from: Vendor, to: Vendor) {
    let wanted = Wanted { rewrite: true, directory: Some("/tmp/proj/demo".into()), ..Wanted::default() };
    let mut wrong = Vec::new();
    let mut sessions = 0;
    for store in stores(from) {
        let (_folder, logs) = import(&store, from);
        for log in &logs {
            let name = format!(
                "{}/{}",
                store.parent().and_then(|p| p.file_name()).unwrap_or_default().display(),
                log.path.file_name().unwrap_or_default().display()
            );
            let moved = match through(log, to, &wanted) {
                Ok(moved) => moved,
                Err(Refused::Export(ExportError::Empty)) => continue,
                Err(refused) => panic!("{name}: {refused:?}"),
            };
            sessions += 1;
            let declared: BTreeSet<Field> = moved.exported.report.losses.iter().map(|l| l.field).collect();
            // Records that the client needs are no loss.
            let lost = |d: &&Difference| d.field != Field::Record || !d.first.is_empty();
            let measured: BTreeSet<Field> = moved.comparison.differences.iter().filter(lost).map(|d| d.field).collect();
            for difference in moved.comparison.differences.iter().filter(lost) {
                if !declared.contains(&difference.field) {
                    wrong.push(format!("{name}: not declared: {difference:?}"));
                }
            }
            for field in declared.difference(&measured) {
                wrong.push(format!("{name}: never lost: {}", field.word()));
            }
        }
    }
    assert!(sessions >= 25, "{sessions}");
    assert!(wrong.is_empty(), "{} of {sessions} sessions:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn claude_code_to_codex() {
    pair(Vendor::ClaudeCode, Vendor::Codex);
}

#[test]
fn codex_to_claude_code() {
    pair(Vendor::Codex, Vendor::ClaudeCode);
}

#[test]
fn claude_code_anew() {
    pair(Vendor::ClaudeCode, Vendor::ClaudeCode);
}

#[test]
fn codex_anew() {
    pair(Vendor::Codex, Vendor::Codex);
}
