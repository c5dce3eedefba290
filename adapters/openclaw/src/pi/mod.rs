//! The sessions of pi, and of clients that write the same files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use palog_adapter::{Format, ImportError, Listing, Options, Report, Target};

use crate::file::{self, FileSession, First, is_entry};
use crate::listing;
use crate::record::Entry;

/// The format of pi's files.
pub const FORMAT: Format = Format { name: "pi", product: "pi", mapping: "pi/1", namespace: "dev.pi" };

/// How much of a file is looked at to tell what it is, in bytes.
const HEAD: u64 = 256 << 10;

/// A session of pi.
#[derive(Clone, Debug)]
pub struct Session(FileSession);

impl Session {
    /// Native id of the session, as far as the header or the name of its file tells it.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.0.id.as_deref()
    }

    /// Path of its file; `None` for standard input.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Size of its file in bytes, as the file system tells it now.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.0.size()
    }
}

/// What was found below a path.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    /// The sessions, by path.
    pub sessions: Vec<Session>,
    /// Files whose names say that they hold a session, and whose content does not.
    pub unrecognised: Vec<PathBuf>,
}

/// Whether the first bytes of a file are those of a session of pi. Judged by content alone.
#[must_use]
pub fn recognises(head: &[u8]) -> bool {
    family(head) == Some(&FORMAT)
}

/// Whose entries the first bytes of a file hold: OpenClaw's by what it adds to them.
pub(crate) fn family(head: &[u8]) -> Option<&'static Format> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split('\n').map(str::trim).filter(|line| !line.is_empty()).peekable();
    let mut found = false;
    while let Some(line) = lines.next() {
        let is_last = lines.peek().is_none();
        match serde_json::from_str::<Entry<'_>>(line) {
            Ok(entry) if is_entry(&entry) => {
                found = true;
                let newer = entry.is_header() && entry.version.is_some_and(|version| version >= 4);
                if newer || ["\"__openclaw\":", "\"customType\":\"openclaw."].iter().any(|m| line.contains(m)) {
                    return Some(&crate::FORMAT);
                }
            }
            // Other tools of the family put a title before the header.
            Ok(entry) if entry.is_known() => {}
            Ok(_) if !found => return None,
            Ok(_) => {}
            // A line may be longer than what was read.
            Err(_) if is_last && !found => {
                let start: String = line.chars().take(200).collect();
                let begins = start.starts_with("{\"type\":\"session\"") && start.contains("\"cwd\":");
                return begins.then_some(&FORMAT);
            }
            Err(_) => {}
        }
    }
    found.then_some(&FORMAT)
}

/// Finds the sessions at `path`: `~/.pi/agent`, a directory above or below it, or one file.
///
/// # Errors
/// When `path`, or a directory below it, cannot be read. Of files only the beginning is read.
pub fn discover(path: &Path) -> io::Result<Discovery> {
    let mut found = Discovery::default();
    let is_file = !fs::metadata(path)?.is_dir();
    let mut parents = Vec::new();
    for file in files_below(path, &|name| name.ends_with(".jsonl"))? {
        let head = head(&file)?;
        let is_legacy_openclaw = file.parent().is_some_and(|folder| folder.join("sessions.json").is_file());
        if !recognises(&head) || (is_legacy_openclaw && !is_file) {
            if is_file {
                found.unrecognised.push(file.clone());
            } else {
                continue;
            }
        }
        let first = First::peek(&mut File::open(&file)?)?;
        found.sessions.push(Session(FileSession::of(&file, path, &first)));
        parents.push(first.parent);
    }
    for (child, parent) in parents.into_iter().enumerate() {
        let (Some(parent), Some(id)) = (parent, found.sessions[child].id().map(str::to_owned)) else { continue };
        let of = found.sessions.iter_mut().find(|s| s.id() == Some(&parent) && parent != id);
        if let Some(session) = of {
            session.0.forks.push(id);
        }
    }
    Ok(found)
}

/// A session that came from standard input, which `bytes` holds.
#[must_use]
pub fn session_from_stdin(bytes: File) -> Session {
    Session(FileSession::of_stdin(bytes))
}

/// Imports one session.
///
/// # Errors
/// When the file cannot be read, the target refuses, or nothing in it is known. The target is aborted then.
pub fn import(session: &Session, target: &mut dyn Target, options: &Options) -> Result<Report, ImportError> {
    file::import(&FORMAT, &session.0, target, options)
}

/// Lists the sessions at `path`.
///
/// # Errors
/// When `path`, or a directory below it, cannot be read.
pub fn list(path: &Path) -> io::Result<Listing> {
    let found = discover(path)?;
    let mut listing = Listing { unrecognised: found.unrecognised, ..Listing::default() };
    for session in &found.sessions {
        let Some(path) = session.path().filter(|p| !listing.unrecognised.iter().any(|u| u == p)) else { continue };
        match listing::listed(&FORMAT, &session.0, path) {
            Ok(listed) => listing.sessions.push(listed),
            Err(_) => listing.unrecognised.push(path.into()),
        }
    }
    Ok(listing)
}

pub use crate::resume::resume_pi as resume;

/// The beginning of a file.
pub(crate) fn head(path: &Path) -> io::Result<Vec<u8>> {
    head_of(File::open(path)?)
}

/// As much of the beginning as it takes to tell what something is.
pub(crate) fn head_of(input: impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    input.take(HEAD).read_to_end(&mut head)?;
    Ok(head)
}

/// The files at and below `path` with such names, by path. Links to directories are not followed.
pub(crate) fn files_below(path: &Path, wanted: &dyn Fn(&str) -> bool) -> io::Result<Vec<PathBuf>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![path.into()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let below = entry.path();
        if entry.file_type()?.is_dir() {
            files.extend(files_below(&below, wanted)?);
        } else if wanted(&entry.file_name().to_string_lossy()) && below.is_file() {
            files.push(below);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_tells_a_session() {
        for yes in [
            r#"{"type":"session","version":3,"id":"a","timestamp":"t","cwd":"/"}"#,
            r#"{"type":"session","id":"a","timestamp":"t","cwd":"/"}"#,
            r#"{"type":"session","version":3,"id":"a","timestamp":"t","cwd":"/","cut"#,
            "damaged {\n{\"type\":\"message\",\"id\":\"b\",\"parentId\":null,\"timestamp\":\"t\",\"message\":{}}\n",
            "{\"type\":\"title\",\"title\":\"x\"}\n{\"type\":\"session\",\"version\":3,\"id\":\"a\",\"timestamp\":\"t\",\"cwd\":\"/\"}",
        ] {
            assert!(recognises(yes.as_bytes()), "{yes}");
        }
        for no in [
            r#"{"type":"user","uuid":"a","parentUuid":null,"sessionId":"b","message":{}}"#,
            r#"{"timestamp":"t","type":"session_meta","payload":{"id":"a"}}"#,
            r#"{"type":"message","id":null,"role":"user"}"#,
            r#"{"type":"session","version":4,"id":"a","timestamp":"t","cwd":"/"}"#,
            "{\"type\":\"session\",\"version\":3,\"id\":\"a\",\"cwd\":\"/\"}\n{\"type\":\"message\",\"id\":\"b\",\"parentId\":null,\"message\":{\"__openclaw\":{}}}",
            "",
        ] {
            assert!(!recognises(no.as_bytes()), "{no}");
        }
    }
}
