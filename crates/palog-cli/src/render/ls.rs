//! The list of sessions for people: one line each.

use std::io::{self, Write};

use palog::recover::Verdict;

use crate::output::ls::Session;
use crate::render::text::{clean_line, count};
use crate::terminal::Style;

/// How much of a directory and of a title is shown, in characters.
const DIRECTORY: usize = 40;
const TITLE: usize = 60;

/// Prints the sessions as they come.
pub(crate) fn render(out: &mut dyn Write, style: Style, sessions: &[Session]) -> io::Result<()> {
    let ids = short_ids(sessions);
    let places: Vec<String> = sessions.iter().map(place).collect();
    let verdicts: Vec<&str> = sessions.iter().map(verdict).collect();
    let widest = |texts: &mut dyn Iterator<Item = &str>| texts.map(|t| t.chars().count()).max().unwrap_or_default();
    // Whose sessions they are is worth a column only if they are not all of one program.
    let mut vendors: Vec<&str> = sessions.iter().map(|s| s.listed.vendor).collect();
    vendors.sort_unstable();
    vendors.dedup();
    let vendor_width = if vendors.len() > 1 { widest(&mut vendors.iter().copied()) } else { 0 };
    let id_width = widest(&mut ids.iter().map(String::as_str));
    let place_width = widest(&mut places.iter().map(String::as_str));
    let verdict_width = widest(&mut verdicts.iter().copied());
    for (((session, id), place), verdict) in sessions.iter().zip(&ids).zip(&places).zip(&verdicts) {
        let listed = &session.listed;
        let when = listed
            .last_activity
            .as_ref()
            .map_or_else(String::new, |time| time.as_str().chars().take(16).collect::<String>().replace('T', " "));
        let judged = match verdict_width {
            0 => String::new(),
            width => format!("{}  ", colour(style, session.verdict, &format!("{verdict:width$}"))),
        };
        let title = listed.title.as_deref().map_or_else(String::new, |title| end_cut(&clean_line(title), TITLE));
        let agents = match listed.subagents {
            0 => String::new(),
            n => style.dim(&format!("  ({})", count(n, "subagent", "subagents"))),
        };
        let id = style.bold(&format!("{id:id_width$}"));
        let vendor = if vendor_width > 0 { format!("{:vendor_width$}  ", listed.vendor) } else { String::new() };
        let line = format!(
            "{when:16}  {vendor}{id}  {:>7}  {judged}{place:place_width$}  {title}{agents}",
            size(listed.bytes)
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Directory and branch.
fn place(session: &Session) -> String {
    let directory = session.listed.directory.as_deref().map_or_else(|| "-".into(), clean_line);
    let skip = directory.chars().count().saturating_sub(DIRECTORY);
    let directory = match skip {
        0 => directory,
        // The end tells more than the beginning.
        _ => format!("…{}", directory.chars().skip(skip + 1).collect::<String>()),
    };
    match session.listed.branch.as_deref().filter(|branch| *branch != "HEAD") {
        Some(branch) => format!("{directory} ({})", end_cut(&clean_line(branch), 24)),
        None => directory,
    }
}

fn end_cut(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(max - 1).collect();
    format!("{}…", kept.trim_end())
}

fn verdict(session: &Session) -> &'static str {
    match (&session.verdict, &session.failure) {
        (Some(verdict), _) => verdict.word(),
        (None, Some(_)) => "unreadable",
        (None, None) => "",
    }
}

fn colour(style: Style, verdict: Option<Verdict>, text: &str) -> String {
    match verdict {
        Some(Verdict::Indeterminate | Verdict::NeedsReconcile) | None => style.red(text),
        Some(Verdict::AwaitingHuman | Verdict::Owned) => style.yellow(text),
        Some(Verdict::Ready) => style.green(text),
        Some(_) => text.to_owned(),
    }
}

/// The beginnings of ids that are enough to tell them apart, and at least eight characters.
fn short_ids(sessions: &[Session]) -> Vec<String> {
    let ids: Vec<String> =
        sessions.iter().map(|s| s.listed.id.as_deref().map_or_else(|| "-".into(), clean_line)).collect();
    let mut sorted: Vec<&str> = ids.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let common = |a: &str, b: &str| a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let needed = |id: &str| {
        let at = sorted.binary_search(&id).unwrap_or_default();
        let neighbours = [at.checked_sub(1).and_then(|before| sorted.get(before)), sorted.get(at + 1)];
        neighbours.into_iter().flatten().map(|other| common(id, other) + 1).max().unwrap_or_default().max(8)
    };
    ids.iter().map(|id| id.chars().take(needed(id)).collect()).collect()
}

/// `950 B`, `12 kB`, `3.4 MB`.
fn size(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a display")]
    let n = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.0} kB", n / 1e3),
        1_000_000..10_000_000 => format!("{:.1} MB", n / 1e6),
        _ => format!("{:.0} MB", n / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_readable() {
        assert_eq!(
            [0, 999, 1_000, 12_345, 3_400_000, 250_000_000].map(size),
            ["0 B", "999 B", "1 kB", "12 kB", "3.4 MB", "250 MB"]
        );
    }
}
