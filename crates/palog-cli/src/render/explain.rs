//! What codes and rules mean, for people.

use std::io::{self, Write};

use palog::rules;

use crate::output::explain::Explanation;
use crate::terminal::Style;

/// Prints one code or rule with all that is known of it.
pub(crate) fn one(out: &mut dyn Write, style: Style, explanation: &Explanation) -> io::Result<()> {
    for code in &explanation.codes {
        writeln!(out, "{}\n\n{}\n", style.bold(code.code.as_str()), code.meaning)?;
        writeln!(out, "{} {}", style.bold("What to do:"), code.remedy)?;
        if !code.rules.is_empty() {
            writeln!(out, "\n{}", style.bold("What it is about:"))?;
        }
        for rule in code.rules {
            let text = rules::find(rule).map(|r| r.text).unwrap_or_default();
            writeln!(out, "  {rule}  {text}")?;
        }
        writeln!(out, "\n{}", style.bold("For example:"))?;
        for line in code.example.lines() {
            writeln!(out, "  {line}")?;
        }
    }
    for rule in &explanation.rules {
        let chapter = rule.chapter.map_or_else(String::new, |c| format!("  ({c})"));
        writeln!(out, "{}{chapter}\n\n{}", style.bold(rule.rule), rule.text)?;
        if !rule.codes.is_empty() {
            writeln!(out, "\n{}", style.bold("Codes that can be about it:"))?;
        }
        for code in &rule.codes {
            writeln!(out, "  {code}  {}", code.meaning())?;
        }
    }
    Ok(())
}

/// Prints all codes and rules, one a line.
pub(crate) fn list(out: &mut dyn Write, style: Style, explanation: &Explanation) -> io::Result<()> {
    let width = explanation.codes.iter().map(|c| c.code.as_str().len()).max().unwrap_or_default();
    writeln!(out, "{}", style.bold("Codes"))?;
    for code in &explanation.codes {
        writeln!(out, "  {:width$}  {}", code.code.as_str(), code.meaning)?;
    }
    writeln!(out, "\n{}", style.bold("Rules"))?;
    for rule in &explanation.rules {
        writeln!(out, "  {}  {}", rule.rule, rule.text)?;
    }
    Ok(())
}
