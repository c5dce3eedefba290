//! Findings for people: what, where, an excerpt, and what can be done.
//!
//! A line of a log may be megabytes long, so only the bytes around a finding are read, and nothing of it reaches the terminal
//! as it stands.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use palog::diagnostic::{Diagnostic, Diagnostics, Group, Severity};

use crate::render::text::{clean_line, count, short, thousands};
use crate::terminal::Style;

/// How many findings are printed in all.
const SHOWN: usize = 50;
/// How many findings of one code are printed.
const SHOWN_PER_CODE: usize = 5;
/// Bytes that an excerpt shows before the finding.
const BEFORE: u64 = 24;
/// Bytes that an excerpt shows in all.
const WIDTH: usize = 96;
/// How far back the beginning of a line is looked for; further than any line that readers accept.
const SEARCH: u64 = 32 << 20;

/// Finds the files that findings are about.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    roots: Vec<PathBuf>,
}

impl Sources {
    /// Findings are about `roots`, or about files below them.
    pub(crate) fn new(roots: impl IntoIterator<Item = PathBuf>) -> Self {
        Sources { roots: roots.into_iter().collect() }
    }

    /// The file that a finding calls `input`.
    fn path(&self, input: Option<&str>) -> Option<PathBuf> {
        let Some(input) = input else {
            return match &self.roots[..] {
                [one] if one.is_file() => Some(one.clone()),
                _ => None,
            };
        };
        let named = |root: &&PathBuf| {
            root.is_file() && (Path::new(input) == root.as_path() || root.file_name().is_some_and(|n| n == input))
        };
        let below = self.roots.iter().flat_map(|root| {
            let as_named = Path::new(input).starts_with(root).then(|| PathBuf::from(input));
            as_named.into_iter().chain([root.join(input)])
        });
        self.roots.iter().find(named).cloned().or_else(|| below.into_iter().find(|p| p.is_file()))
    }
}

/// Prints findings, the worst first. Of mere information only the number is told.
pub(crate) fn render(
    out: &mut dyn Write,
    style: Style,
    diagnostics: &Diagnostics,
    sources: &Sources,
) -> io::Result<()> {
    some(out, style, diagnostics.groups().iter().filter(|g| g.severity != Severity::Info).collect(), sources)
}

/// The same with mere information.
pub(crate) fn each(out: &mut dyn Write, style: Style, diagnostics: &Diagnostics, sources: &Sources) -> io::Result<()> {
    some(out, style, diagnostics.groups().iter().collect(), sources)
}

fn some(out: &mut dyn Write, style: Style, mut groups: Vec<&Group>, sources: &Sources) -> io::Result<()> {
    groups.sort_by_key(|g| g.severity);
    let (mut shown, mut left) = (0, 0);
    for group in groups {
        let room = SHOWN_PER_CODE.min(SHOWN - shown).min(group.first.len());
        for diagnostic in &group.first[..room] {
            one(out, style, diagnostic, sources)?;
        }
        shown += room;
        let more = group.count - room as u64;
        if room == 0 {
            left += more;
        } else if more > 0 {
            writeln!(out, "… and {} more of {}\n", thousands(more), group.code)?;
        }
    }
    if left > 0 {
        writeln!(out, "… and {} of other codes", count(left, "more finding", "more findings"))?;
    }
    Ok(())
}

/// The counts of all findings in one line; nothing if there are none.
pub(crate) fn summary(diagnostics: &Diagnostics) -> Option<String> {
    let words = [
        (Severity::Error, "error", "errors"),
        (Severity::Void, "event without effect", "events without effect"),
        (Severity::Warning, "warning", "warnings"),
        (Severity::Info, "remark", "remarks"),
    ];
    let counts = words.iter().map(|(severity, one, many)| (diagnostics.count(*severity), one, many));
    let told: Vec<String> = counts.filter(|(n, ..)| *n > 0).map(|(n, one, many)| count(n, one, many)).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

fn one(out: &mut dyn Write, style: Style, diagnostic: &Diagnostic, sources: &Sources) -> io::Result<()> {
    let label = format!("{}[{}]", diagnostic.severity, diagnostic.code);
    let label = match diagnostic.severity {
        Severity::Error => style.red(&label),
        Severity::Void | Severity::Warning | Severity::Info => style.yellow(&label),
        _ => label,
    };
    writeln!(out, "{label}: {}", diagnostic.code.meaning())?;
    let place = &diagnostic.place;
    let path = sources.path(place.input.as_deref());
    let excerpt = path.as_ref().zip(place.offset).and_then(|(path, offset)| {
        // A file that is gone by now, or a pipe, has no excerpt; the finding stands without it.
        File::open(path).and_then(|mut file| excerpt(&mut file, offset, place.length)).ok()
    });
    let name = place.input.clone().or_else(|| path.map(|p| p.to_string_lossy().into_owned())).unwrap_or_default();
    let mut at = clean_line(&name);
    if let Some(line) = place.line {
        at += &format!(":{line}");
        if let Some(excerpt) = &excerpt {
            at += &format!(":{}", excerpt.column);
        }
    } else if let Some(offset) = place.offset {
        at += &format!(" at byte {offset}");
    }
    let number = place.line.map(|l| l.to_string()).unwrap_or_default();
    let margin = " ".repeat(number.len());
    if !at.is_empty() {
        writeln!(out, "{margin}{} {at}", style.cyan("-->"))?;
    }
    if let Some(excerpt) = &excerpt {
        let bar = style.cyan("|");
        writeln!(out, "{margin} {bar}")?;
        writeln!(out, "{}", format!("{} {bar} {}", style.cyan(&number), excerpt.text).trim_end())?;
        // A mark under all that is shown marks nothing.
        if excerpt.len + 1 < excerpt.text.chars().count() {
            writeln!(out, "{margin} {bar} {}{}", " ".repeat(excerpt.from), "^".repeat(excerpt.len))?;
        }
    }
    if let Some(why) = &diagnostic.why {
        writeln!(out, "{margin} = {}", short(why, 300))?;
    }
    let facts = [
        ("record", &place.record),
        ("names", &place.names),
        ("call", &place.call),
        ("session", &place.session),
        ("type", &place.kind),
        ("detail", &place.detail),
    ];
    let facts: Vec<String> =
        facts.iter().filter_map(|(name, value)| value.as_ref().map(|v| format!("{name} {}", short(v, 120)))).collect();
    if !facts.is_empty() {
        writeln!(out, "{margin} = {}", facts.join(", "))?;
    }
    if let Some(rule) = diagnostic.rule {
        writeln!(out, "{margin} = rule {rule}")?;
    }
    writeln!(out, "{}: {}\n", style.cyan("help"), diagnostic.code.remedy())
}

/// A piece of one line, safe to print.
#[derive(Debug, PartialEq, Eq)]
struct Excerpt {
    /// Column of the finding in its line, in bytes from 1.
    column: u64,
    /// The piece of the line.
    text: String,
    /// Where the mark below it begins.
    from: usize,
    /// Length of the mark.
    len: usize,
}

/// Reads what stands around `offset`, and no more than that.
fn excerpt(file: &mut (impl Read + Seek), offset: u64, length: Option<u64>) -> io::Result<Excerpt> {
    let start = line_start(file, offset)?;
    let mut from = start.max(offset.saturating_sub(BEFORE));
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(WIDTH as u64 + 4).read_to_end(&mut bytes)?;
    // The window may begin inside of a character.
    let inside = if from > start { bytes.iter().take(3).take_while(|b| **b & 0xc0 == 0x80).count() } else { 0 };
    let inside = inside.min(usize::try_from(offset - from).unwrap_or(0));
    bytes.drain(..inside);
    from += inside as u64;
    let cut = bytes.len() > WIDTH;
    bytes.truncate(WIDTH);
    let end = bytes.iter().position(|b| *b == b'\n');
    bytes.truncate(end.unwrap_or(bytes.len()));

    let mark = usize::try_from(offset - from).unwrap_or(0).min(bytes.len());
    let length = length.and_then(|l| usize::try_from(l).ok()).unwrap_or(1).clamp(1, (bytes.len() - mark).max(1));
    let (head, rest) = bytes.split_at(mark);
    let (marked, tail) = rest.split_at(length.min(rest.len()));
    let (head, marked, tail) = (printable(head), printable(marked), printable(tail));
    let lead = if from > start { "…" } else { "" };
    let trail = if cut && end.is_none() { "…" } else { "" };
    Ok(Excerpt {
        column: offset - start + 1,
        from: lead.chars().count() + head.chars().count(),
        len: marked.chars().count().max(1),
        text: format!("{lead}{head}{marked}{tail}{trail}"),
    })
}

/// Where the line that `offset` is in begins.
fn line_start(file: &mut (impl Read + Seek), offset: u64) -> io::Result<u64> {
    const CHUNK: u64 = 64 << 10;
    let limit = offset.saturating_sub(SEARCH);
    let mut end = offset;
    let mut chunk = Vec::new();
    while end > limit {
        let start = end.saturating_sub(CHUNK).max(limit);
        file.seek(SeekFrom::Start(start))?;
        chunk.clear();
        file.take(end - start).read_to_end(&mut chunk)?;
        if let Some(at) = chunk.iter().rposition(|b| *b == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(limit)
}

/// Bytes as one line: what is no printable text is shown by number.
fn printable(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        // Tabs and spaces keep their width, so that the mark below stands right.
        for piece in chunk.valid().split_inclusive(' ') {
            let (word, space) = piece.strip_suffix(' ').map_or((piece, ""), |w| (w, " "));
            out += &clean_line(word);
            out += space;
        }
        for byte in chunk.invalid() {
            out += &format!("\\x{byte:02x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use palog::diagnostic::{Code, Place};
    use std::io::Cursor;

    /// Bytes of a file that counts what is read of it.
    struct Counting(Cursor<Vec<u8>>, u64);

    impl Read for Counting {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let n = self.0.read(into)?;
            self.1 += n as u64;
            Ok(n)
        }
    }

    impl Seek for Counting {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    #[test]
    fn an_excerpt_is_cut_around_its_place() {
        let mut file = Cursor::new(b"first\n{\"key\":\"value\",\"other\":1}\nlast".to_vec());
        let found = excerpt(&mut file, 13, Some(7)).expect("a file in memory");
        assert_eq!(found, Excerpt { column: 8, text: r#"{"key":"value","other":1}"#.into(), from: 7, len: 7 });
    }

    #[test]
    fn a_long_line_is_neither_read_nor_printed_whole() {
        let mut text = vec![b'x'; 5 << 20];
        text[5_000_000] = b'!';
        let mut file = Counting(Cursor::new(text), 0);
        let found = excerpt(&mut file, 5_000_000, Some(5 << 20)).expect("a file in memory");
        assert_eq!(found.column, 5_000_001);
        assert!(found.text.chars().count() < 120, "{}", found.text.len());
        assert!(found.text.starts_with('…') && found.text.ends_with('…'));
        assert_eq!(found.text.chars().nth(found.from), Some('!'));
        assert!(file.1 <= (5 << 20) + 200, "{}", file.1);
    }

    #[test]
    fn an_excerpt_shows_controls_and_foreign_bytes_by_number() {
        let mut file = Cursor::new(b"\x1b[2Jab\xff\0c\n".to_vec());
        let found = excerpt(&mut file, 6, Some(2)).expect("a file in memory");
        assert_eq!(found, Excerpt { column: 7, text: "\\x1b[2Jab\\xff\\x00c".into(), from: 9, len: 8 });
    }

    #[test]
    fn a_place_behind_the_end_is_no_failure() {
        let found = excerpt(&mut Cursor::new(b"ab\n".to_vec()), 10, Some(3)).expect("a file in memory");
        assert_eq!(found.len, 1);
    }

    #[test]
    fn findings_are_capped_and_counted() {
        let mut all = Diagnostics::default();
        for code in Code::ALL.iter().take(14) {
            for n in 0..7 {
                all.push(Diagnostic::new(*code, Severity::Warning, Place { line: Some(n), ..Place::default() }));
            }
        }
        let mut out = Vec::new();
        render(&mut out, Style::default(), &all, &Sources::default()).expect("memory");
        let out = String::from_utf8(out).expect("text");
        assert_eq!(out.matches("warning[").count(), 50);
        assert_eq!(out.matches("… and 2 more of").count(), 10);
        assert!(out.contains("… and 28 more findings of other codes"), "{out}");
    }
}
