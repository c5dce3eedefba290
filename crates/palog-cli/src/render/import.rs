//! The report of `palog import` for people.

use std::io::{self, Write};

use palog_import::Report;

use crate::render::diagnostics::summary;
use crate::render::text::{clean_line, count};
use crate::terminal::Style;

/// How many logs are listed.
const LISTED: usize = 20;

/// Prints what was written, read and kept; ends with one line that sums it up.
pub(crate) fn render(out: &mut dyn Write, style: Style, report: &Report) -> io::Result<()> {
    for log in report.logs.iter().take(LISTED) {
        let path = log.path.as_ref().map_or_else(|| "standard output".into(), |p| p.to_string_lossy().into_owned());
        let what = if log.parent.is_some() { "subagent" } else { "session" };
        let sizes = format!("{}, {}", count(log.records, "record", "records"), count(log.events, "event", "events"));
        let sizes = match log.onto {
            Some(done) if done.appended == 0 => "nothing new".to_owned(),
            Some(done) => {
                let revised = if done.revised > 0 { format!(", {} revised", done.revised) } else { String::new() };
                let removed = if done.removed > 0 { format!(", {} removed", done.removed) } else { String::new() };
                format!("{} appended{revised}{removed}", count(done.appended, "event", "events"))
            }
            None => sizes,
        };
        writeln!(out, "{what} {} → {} ({sizes})", clean_line(&log.session), clean_line(&path))?;
    }
    let more = report.logs.len().saturating_sub(LISTED) as u64;
    if more > 0 {
        writeln!(out, "… and {}", count(more, "more log", "more logs"))?;
    }
    let sum = |of: fn(&palog_import::InputReport) -> u64| report.inputs.iter().map(of).sum::<u64>();
    let (records, kept, foreign, fragments) =
        (sum(|i| i.records), sum(|i| i.kept), sum(|i| i.foreign), sum(|i| i.fragments));
    let mut parts = vec![
        count(report.logs.len() as u64, "log", "logs"),
        format!("{} of {}", count(records, "record", "records"), count(report.inputs.len() as u64, "file", "files")),
    ];
    if kept > 0 {
        parts.push(format!("{kept} kept as they stand"));
    }
    if foreign > 0 {
        parts.push(format!("{foreign} of other sessions"));
    }
    if fragments > 0 {
        parts.push(count(fragments, "broken piece kept", "broken pieces kept"));
    }
    parts.extend(summary(&report.diagnostics));
    writeln!(out, "{} {}", style.bold("imported:"), parts.join(" · "))
}
