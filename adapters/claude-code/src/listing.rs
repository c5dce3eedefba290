//! Lists sessions without reading them: what the first and last records of each transcript tell (layout:
//! `spec/sources/claude-code.md`, "Files").
//!
//! The client writes titles again near the end of a transcript, so the newest one is usually found. One that was given long
//! ago can be missed.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use memchr::memmem;
use palog::envelope::Time;
use palog_adapter::listing::{Listed, Listing, TimeFrom, TitleFrom};

use crate::FORMAT;
use crate::conversation::prompt_text;
use crate::members::read;
use crate::paths::{agent_id, entries, is_id, is_transcript, projects, recognises};
use crate::record::Record;

/// How much is read at either end of a transcript, in bytes.
const WINDOW: u64 = 64 << 10;
/// How much is read where that holds no whole record.
const LARGEST: u64 = 2 << 20;
/// How much of a prompt is taken as the title, in characters.
const TITLE: usize = 200;

/// Lists the sessions at `path`: a configuration directory, its `projects`, one project's directory, or one transcript.
///
/// # Errors
/// When `path`, or a directory below it, cannot be read.
pub fn list(path: &Path) -> io::Result<Listing> {
    let mut listing = Listing::default();
    if !fs::metadata(path)?.is_dir() {
        project(vec![path.into()], &mut listing);
        return Ok(listing);
    }
    for directory in projects(path)? {
        project(entries(&directory)?, &mut listing);
    }
    Ok(listing)
}

/// The sessions among the files of one project.
fn project(files: Vec<PathBuf>, listing: &mut Listing) {
    let first = listing.sessions.len();
    // Versions before 2.1 put subagents beside the sessions.
    let mut subagents: HashMap<String, u64> = HashMap::new();
    for path in files.into_iter().filter(|path| is_transcript(path)) {
        let Some(seen) = Seen::read(&path).ok().filter(|seen| seen.recognised) else {
            listing.unrecognised.push(path);
            continue;
        };
        if seen.is_subagent {
            *subagents.entry(seen.session.unwrap_or_default()).or_default() += 1;
            continue;
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        listing.sessions.push(Listed {
            vendor: FORMAT.name,
            id: is_id(&stem).then_some(stem).or(seen.session),
            title_from: seen.title.as_ref().map(|(_, from)| *from),
            title: seen.title.map(|(title, _)| title),
            directory: seen.directory,
            branch: seen.branch,
            last_activity_from: seen.time.as_ref().map(|(_, from)| *from),
            last_activity: seen.time.map(|(time, _)| time),
            bytes: seen.bytes,
            subagents: agents_of(&path),
            path,
        });
    }
    for session in &mut listing.sessions[first..] {
        session.subagents += session.id.as_ref().and_then(|id| subagents.remove(id)).unwrap_or_default();
    }
}

/// How many subagents have their files in the session's folder.
fn agents_of(transcript: &Path) -> u64 {
    let folder = transcript.with_extension("").join("subagents");
    entries(&folder).map_or(0, |files| files.iter().filter(|file| agent_id(file, ".jsonl").is_some()).count() as u64)
}

/// What a look at a transcript shows.
#[derive(Default)]
struct Seen {
    recognised: bool,
    is_subagent: bool,
    session: Option<String>,
    title: Option<(String, TitleFrom)>,
    directory: Option<String>,
    branch: Option<String>,
    time: Option<(Time<'static>, TimeFrom)>,
    bytes: u64,
}

impl Seen {
    fn read(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let meta = file.metadata()?;
        let mut seen = Seen { bytes: meta.len(), ..Seen::default() };
        let (mut head, mut tail);
        let mut window = WINDOW;
        loop {
            head = piece(&mut file, 0, window.min(seen.bytes))?;
            if seen.begin(&head) || window >= seen.bytes.min(LARGEST) {
                break;
            }
            window = LARGEST;
        }
        seen.recognised = recognises(&head) || head.iter().all(u8::is_ascii_whitespace);
        let mut window = WINDOW;
        loop {
            let from = seen.bytes.saturating_sub(window);
            tail = if head.len() as u64 == seen.bytes { head.clone() } else { piece(&mut file, from, window)? };
            // What stands before the first line feed may be half a record.
            let whole = if from == 0 { 0 } else { memchr::memchr(b'\n', &tail).map_or(tail.len(), |at| at + 1) };
            tail.drain(..whole);
            if seen.end(&tail) || window >= seen.bytes.min(LARGEST) {
                break;
            }
            window = LARGEST;
        }
        let set = set_title(&tail).or_else(|| set_title(&head));
        let told = set.or_else(|| summary(&[&tail, &head]));
        seen.title = told.or(seen.title);
        if seen.time.is_none() {
            let written = meta.modified().ok().and_then(|time| jiff::Timestamp::try_from(time).ok());
            seen.time = written.and_then(|time| Time::parse(time.to_string())).map(|time| (time, TimeFrom::File));
        }
        Ok(seen)
    }

    /// Learns from the first records, and says whether there is nothing more to learn from them.
    fn begin(&mut self, head: &[u8]) -> bool {
        let mut in_tree = false;
        for line in head.split(|b| *b == b'\n') {
            let Some(record) = record(line) else { continue };
            if self.session.is_none() {
                self.session = record.session_id.as_deref().filter(|s| !s.is_empty()).map(str::to_owned);
            }
            if record.uuid.is_some() && !in_tree {
                in_tree = true;
                self.is_subagent = record.is_sidechain && record.agent_id.is_some();
            }
            self.place(&record);
            if let Some(prompt) = prompt_text(&record).filter(|p| !p.trim().is_empty()) {
                self.title = Some((cut(&prompt), TitleFrom::Prompt));
                return true;
            }
        }
        false
    }

    /// Learns from the last records, and says whether there was one with a time.
    fn end(&mut self, tail: &[u8]) -> bool {
        for line in lines_back(tail) {
            let Some(record) = record(line) else { continue };
            let raw = record.timestamp.as_ref().and_then(|raw| raw.text());
            let Some(time) = raw.and_then(|text| Time::parse(text.into_owned())) else { continue };
            self.time.get_or_insert((time, TimeFrom::Record));
            if record.uuid.is_some() && record.cwd.is_some() {
                (self.directory, self.branch) = (None, None);
                self.place(&record);
                return true;
            }
        }
        self.time.is_some()
    }

    /// Takes the working directory and the branch.
    fn place(&mut self, record: &Record<'_>) {
        if self.directory.is_none() {
            self.directory = record.cwd.as_deref().map(str::to_owned);
            self.branch = record.git_branch.as_deref().filter(|b| !b.is_empty()).map(str::to_owned);
        }
    }
}

/// The newest title that was set in some lines.
fn set_title(lines: &[u8]) -> Option<(String, TitleFrom)> {
    lines_back(lines).find_map(|line| {
        if memmem::find(line, b"\"customTitle\"").is_none() && memmem::find(line, b"\"aiTitle\"").is_none() {
            return None;
        }
        let record = record(line)?;
        let (title, from) = match &*record.r#type {
            "custom-title" => (record.custom_title?, TitleFrom::User),
            "ai-title" => (record.ai_title?, TitleFrom::Client),
            _ => return None,
        };
        Some((title.to_string(), from)).filter(|(title, _)| !title.trim().is_empty())
    })
}

/// The newest summary that is about a record in the same windows: others are about other sessions.
fn summary(windows: &[&[u8]]) -> Option<(String, TitleFrom)> {
    windows.iter().flat_map(|window| lines_back(window)).find_map(|line| {
        memmem::find(line, b"\"leafUuid\"")?;
        let record = record(line).filter(|record| *record.r#type == *"summary")?;
        let (text, leaf) = (record.summary.as_ref()?.text()?, record.leaf_uuid.as_ref()?);
        let own = format!("\"uuid\":\"{leaf}\"");
        let is_own = windows.iter().any(|window| memmem::find(window, own.as_bytes()).is_some());
        is_own.then(|| (text.into_owned(), TitleFrom::Summary))
    })
}

/// The lines of a window, the last one first.
fn lines_back(window: &[u8]) -> impl Iterator<Item = &[u8]> {
    window.rsplit(|b| *b == b'\n').filter(|line| !line.is_empty())
}

/// A line as a record; `None` where it is none, or only a part of one.
fn record(line: &[u8]) -> Option<Record<'_>> {
    let text = std::str::from_utf8(line.trim_ascii()).ok()?;
    read(text).ok().map(|read| read.members)
}

/// The beginning of a text, as one line.
fn cut(text: &str) -> String {
    // What lies far behind the cut need not be looked at.
    let head: String = text.chars().take(TITLE * 8).collect();
    let line = head.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(TITLE) {
        Some((at, _)) => format!("{}…", line[..at].trim_end()),
        None => line,
    }
}

/// A part of a file.
fn piece(file: &mut File, from: u64, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    file.take(len).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    const SESSION: &str = "5e550000-0000-4000-8000-000000000001";

    fn record_of(uuid: u32, side: bool, rest: &str) -> String {
        format!(
            r#"{{"parentUuid":null,"isSidechain":{side},"uuid":"u{uuid}","timestamp":"2026-11-29T12:00:{:02}.000Z","sessionId":"{SESSION}","cwd":"/w/{uuid}","gitBranch":"b{uuid}",{rest}}}"#,
            uuid % 60
        ) + "\n"
    }

    fn says(uuid: u32, text: &str) -> String {
        record_of(
            uuid,
            false,
            &format!(r#""type":"user","message":{{"role":"user","content":{}}}"#, serde_json::json!(text)),
        )
    }

    fn only(text: &str) -> Listed {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join(format!("{SESSION}.jsonl"));
        fs::write(&path, text).expect("a file");
        let mut listing = list(&path).expect("a listing");
        assert!(listing.unrecognised.is_empty());
        listing.sessions.pop().expect("a session")
    }

    fn title(text: &str) -> Option<(String, TitleFrom)> {
        let listed = only(text);
        listed.title.zip(listed.title_from)
    }

    #[test]
    fn the_first_prompt_is_the_title_of_last_resort() {
        let reminder =
            record_of(1, false, r#""type":"user","isMeta":true,"message":{"role":"user","content":"Mind the gap."}"#);
        let command = says(2, "<command-name>/clear</command-name>");
        let talk = reminder + &command + &says(3, "Fix\n the  shop.") + &says(4, "More.");
        let listed = only(&talk);
        assert_eq!((listed.title.as_deref(), listed.title_from), (Some("Fix the shop."), Some(TitleFrom::Prompt)));
        assert_eq!((listed.directory.as_deref(), listed.branch.as_deref()), (Some("/w/4"), Some("b4")));
        assert_eq!(
            (listed.last_activity.expect("a time").as_str(), listed.last_activity_from),
            ("2026-11-29T12:00:04.000Z", Some(TimeFrom::Record))
        );
        let long = title(&says(1, &"word ".repeat(1000))).expect("a title").0;
        assert_eq!((long.chars().count(), long.ends_with("word…")), (200, true), "{long}");
    }

    #[test]
    fn a_title_that_was_set_stands_before_a_summary_and_a_summary_before_the_prompt() {
        let talk = says(1, "Fix the shop.");
        let ai = r#"{"type":"ai-title","aiTitle":"Shop repairs","sessionId":"s"}"#;
        let custom = r#"{"type":"custom-title","customTitle":"My shop","sessionId":"s"}"#;
        let own = r#"{"type":"summary","summary":"A shop is mended","leafUuid":"u1"}"#;
        let foreign = r#"{"type":"summary","summary":"Something else","leafUuid":"u9"}"#;
        let of = |lines: &[&str]| title(&(talk.clone() + &lines.join("\n") + "\n")).map(|(title, _)| title);
        assert_eq!(of(&[ai, custom]).as_deref(), Some("My shop"));
        assert_eq!(of(&[custom, ai, own]).as_deref(), Some("Shop repairs"), "the newest that was set");
        assert_eq!(of(&[own, foreign]).as_deref(), Some("A shop is mended"));
        assert_eq!(of(&[foreign]).as_deref(), Some("Fix the shop."));
        let quoted = says(2, custom);
        assert_eq!(
            title(&(talk.clone() + &quoted)).expect("a title").0,
            "Fix the shop.",
            "a title that is talked about is none"
        );
    }

    #[test]
    fn only_the_ends_of_a_long_transcript_are_read() {
        let mut text = says(1, "Fix the shop.");
        let early = "{\"type\":\"custom-title\",\"customTitle\":\"Early\",\"sessionId\":\"s\"}\n";
        text += early;
        for uuid in 2..2000 {
            text += &says(uuid, &"blah ".repeat(40));
            if uuid == 1000 {
                text += &early.replace("Early", "Lost in the middle");
            }
        }
        assert_eq!(title(&text), Some(("Early".into(), TitleFrom::User)));
        text += &early.replace("Early", "Late");
        assert_eq!(title(&text), Some(("Late".into(), TitleFrom::User)));
    }

    #[test]
    fn what_was_torn_or_is_very_long_hides_nothing() {
        let long = says(2, &"x".repeat(300_000));
        let listed = only(&(says(1, "Fix the shop.") + &long));
        assert_eq!((listed.title.as_deref(), listed.directory.as_deref()), (Some("Fix the shop."), Some("/w/2")));
        let listed = only(&(says(1, "Fix the shop.") + &says(3, "More.") + &long[..1000]));
        assert_eq!(listed.directory.as_deref(), Some("/w/3"));
        let listed = only(&(long.clone() + &says(3, "More.")));
        assert!(listed.title.expect("a title").starts_with("xxx"));
        let listed = only("");
        assert_eq!((listed.title, listed.last_activity_from), (None, Some(TimeFrom::File)));
    }

    #[test]
    fn subagents_are_counted_wherever_they_lie() {
        let folder = tempfile::tempdir().expect("a directory");
        let at = |name: &str| folder.path().join(name);
        let mut side = String::new();
        write!(
            side,
            "{}",
            record_of(1, true, r#""agentId":"a1","type":"user","message":{"role":"user","content":"Go."}"#)
        )
        .expect("a string");
        fs::create_dir_all(at(&format!("projects/p/{SESSION}/subagents"))).expect("a directory");
        for name in ["agent-a1.jsonl", "agent-a1.meta.json", "agent-a2.jsonl"] {
            fs::write(at(&format!("projects/p/{SESSION}/subagents/{name}")), &side).expect("a file");
        }
        fs::write(at("projects/p/agent-a3.jsonl"), &side).expect("a file");
        fs::write(at(&format!("projects/p/{SESSION}.jsonl")), says(1, "Go.")).expect("a file");
        fs::write(at("projects/p/notes.jsonl"), "{\"shopping\":[]}\n").expect("a file");
        let listing = list(folder.path()).expect("a listing");
        assert_eq!(
            listing.sessions.iter().map(|s| (s.id.as_deref(), s.subagents)).collect::<Vec<_>>(),
            [(Some(SESSION), 3)]
        );
        assert_eq!(listing.unrecognised, [at("projects/p/notes.jsonl")]);
    }
}
