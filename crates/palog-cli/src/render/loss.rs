//! What an export lost, for people.

use std::io::{self, Write};

use palog_import::LossReport;

use crate::render::text::count;
use crate::terminal::Style;

/// Prints the losses as a table, the worst first.
pub(crate) fn render(out: &mut dyn Write, style: Style, report: &LossReport) -> io::Result<()> {
    if report.identical {
        return writeln!(out, "{} the client's own bytes, unchanged", style.bold("losses: none ·"));
    }
    let mut losses: Vec<_> = report.losses.iter().collect();
    losses.sort_by_key(|loss| (!loss.critical, std::cmp::Reverse(loss.class), loss.field));
    let width = losses.iter().map(|loss| loss.field.word().len()).max().unwrap_or(0);
    for loss in &losses {
        let class = format!("{:<11}", loss.class.word());
        let class = if loss.critical { style.red(&class) } else { class };
        writeln!(out, "{class} {:<width$} {:>6}  {}", loss.field.word(), loss.count, style.dim(loss.reason))?;
    }
    let critical = report.critical().count() as u64;
    let more = match critical {
        0 => String::new(),
        n => format!(" · {}", style.red(&count(n, "can do harm", "can do harm"))),
    };
    writeln!(out, "{} {}{more}", style.bold("losses:"), count(losses.len() as u64, "kind", "kinds"))
}
