//! What two sessions say differently, for people.

use std::io::{self, Write};

use palog_diff::{Comparison, Only};

use crate::render::text::{clean_line, count};
use crate::terminal::Style;

/// How many facts of one field are listed for each side.
const LISTED: usize = 10;

/// Prints the differences, field by field.
pub(crate) fn render(out: &mut dyn Write, style: Style, comparison: &Comparison) -> io::Result<()> {
    for difference in &comparison.differences {
        writeln!(out, "{} ({} the same)", style.bold(difference.field.word()), difference.same)?;
        side(out, &style.red("-"), &difference.first)?;
        side(out, &style.green("+"), &difference.second)?;
    }
    let fields = comparison.differences.len() as u64;
    let what = match fields {
        0 => "the same".to_owned(),
        n => format!("{} differ", count(n, "field", "fields")),
    };
    writeln!(out, "{} {what} · {}", style.bold("compared:"), count(comparison.same, "fact in both", "facts in both"))
}

fn side(out: &mut dyn Write, sign: &str, facts: &[Only]) -> io::Result<()> {
    for fact in facts.iter().take(LISTED) {
        writeln!(out, "  {sign} {}", clean_line(&fact.says))?;
    }
    let more = facts.len().saturating_sub(LISTED) as u64;
    if more > 0 {
        writeln!(out, "  {sign} … and {more} more")?;
    }
    Ok(())
}
