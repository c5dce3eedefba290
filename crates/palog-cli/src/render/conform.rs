//! Conformance cases for people.

use std::io::{self, Write};

use crate::output::conform::{Cases, Report, Score};
use crate::render::text::{clean_lines, count};
use crate::terminal::Style;

/// How many failures of a case are told.
const SHOWN: usize = 10;

/// Prints the failures, what passed by role, level and rule, and one line for each role.
pub(crate) fn report(out: &mut dyn Write, style: Style, report: &Report) -> io::Result<()> {
    for result in report.cases.iter().filter(|result| !result.passed) {
        let case = &result.case;
        writeln!(out, "{} {}  {} {}", style.red("failed"), case.id, case.role, case.level)?;
        writeln!(out, "  {}", clean_lines(&case.title))?;
        for failure in result.failures.iter().take(SHOWN) {
            writeln!(out, "  - {}", clean_lines(failure).trim_end().replace('\n', "\n    "))?;
        }
        let more = result.failures.len().saturating_sub(SHOWN) as u64;
        if more > 0 {
            writeln!(out, "  … and {}", count(more, "more difference", "more differences"))?;
        }
        writeln!(out)?;
    }
    for role in &report.roles {
        writeln!(out, "{}", style.bold(role.role))?;
        for level in &role.levels {
            writeln!(out, "  {}  {}", level.level, score(style, level.score))?;
        }
    }
    if !report.rules.is_empty() {
        writeln!(out, "{}", style.bold("Rules"))?;
    }
    for rule in &report.rules {
        writeln!(out, "  {}  {}", rule.rule, score(style, rule.score))?;
    }
    writeln!(out)?;
    let tested = &report.implementation;
    for role in &report.roles {
        writeln!(out, "{} {} · {} {} · {}", tested.name, tested.spec, role.role, role.level, score(style, role.score))?;
    }
    Ok(())
}

fn score(style: Style, score: Score) -> String {
    let text = format!("{}/{}", score.passed, score.total);
    if score.passed == score.total { style.green(&text) } else { style.red(&text) }
}

/// Prints the cases, one a line.
pub(crate) fn list(out: &mut dyn Write, style: Style, cases: &Cases) -> io::Result<()> {
    let widest = |of: fn(&crate::output::conform::Case) -> usize| cases.cases.iter().map(of).max().unwrap_or_default();
    let (id, role) = (widest(|c| c.id.len()), widest(|c| c.role.len()));
    for case in &cases.cases {
        writeln!(out, "{:id$}  {:role$} {}  {}", case.id, case.role, case.level, style.dim(&clean_lines(&case.title)))?;
    }
    Ok(())
}
