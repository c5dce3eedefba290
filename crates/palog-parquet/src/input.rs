//! The logs that are exported: which log a file holds, how far it goes, and in which partition it belongs.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Take};
use std::path::{Path, PathBuf};

use palog::blob::sha256_hex;
use palog::diagnostic::Diagnostic;
use palog::envelope::Time;
use palog::events::Data;
use palog::reader::{Item, Reader};

/// How much is read at a time to find the end of a log's last line.
const BACK: u64 = 64 << 10;

/// A log that is to be exported.
#[derive(Debug)]
pub struct Input {
    /// What it is called in messages.
    pub name: String,
    from: From,
}

#[derive(Debug)]
enum From {
    Path(PathBuf),
    File(File),
}

impl Input {
    /// A log in a file, which is opened when it is read.
    pub fn path(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Input { name: path.display().to_string(), from: From::Path(path) }
    }

    /// A log in an open file without a name.
    pub fn file(name: impl Into<String>, file: File) -> Self {
        Input { name: name.into(), from: From::File(file) }
    }

    fn open(&self) -> io::Result<File> {
        match &self.from {
            From::Path(path) => File::open::<&Path>(path),
            From::File(file) => {
                let mut file = file.try_clone()?;
                file.rewind()?;
                Ok(file)
            }
        }
    }

    /// The first `bytes` bytes.
    pub(crate) fn read(&self, bytes: u64) -> io::Result<Take<File>> {
        Ok(self.open()?.take(bytes))
    }

    /// Whether the first `bytes` bytes end in a line feed, and the line before it has this SHA-256.
    pub(crate) fn ends_in(&self, bytes: u64, last_line_sha256: &str) -> io::Result<bool> {
        let tail = last_bytes(&mut self.open()?, bytes)?;
        Ok(tail.torn.is_empty() && sha256_hex(&tail.line) == last_line_sha256)
    }

    /// Looks at the beginning and the end of the log.
    ///
    /// # Errors
    /// When the file cannot be read. `Ok(None)`: no line of it is an event.
    pub(crate) fn look(&self) -> io::Result<Option<Look>> {
        let mut file = self.open()?;
        let end = file.seek(SeekFrom::End(0))?;
        let tail = last_bytes(&mut file, end)?;
        let bytes = end - tail.torn.len() as u64;
        file.rewind()?;
        let Some(head) = head(file.take(bytes))? else { return Ok(None) };
        Ok(Some(Look { head, bytes, last_line_sha256: sha256_hex(&tail.line), torn_tail: tail.torn }))
    }
}

/// What is known of a log before it is read.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) head: Head,
    /// Bytes up to the last line feed.
    pub(crate) bytes: u64,
    pub(crate) last_line_sha256: String,
    pub(crate) torn_tail: Vec<u8>,
}

/// What the first lines of a log say.
#[derive(Debug, Default)]
pub(crate) struct Head {
    pub(crate) log: String,
    /// Whether it was made from another format.
    pub(crate) derived: bool,
    /// The vendor of the first source, else the agent.
    pub(crate) vendor: Option<String>,
    /// `YYYY-MM` of the first event that has a time.
    pub(crate) month: Option<String>,
}

/// Reads up to the first time and the first source.
fn head(log: impl Read) -> io::Result<Option<Head>> {
    let mut reader = Reader::new(log);
    let mut found: Option<Head> = None;
    let mut agent = None;
    while let Some(item) = reader.next()? {
        let Item::Event(event, _) = item else { continue };
        let head = found.get_or_insert_with(|| Head { log: event.log.to_string(), ..Head::default() });
        if head.month.is_none() {
            head.month = event.time.as_ref().map(Time::as_str).and_then(|time| time.get(..7)).map(ToOwned::to_owned);
        }
        match event.data() {
            Ok(Data::LogOpened(opened)) => {
                agent.get_or_insert_with(|| opened.agent.name.to_string());
                head.derived |= opened.derived.is_some();
            }
            Ok(Data::SourceOpened(source)) if head.vendor.is_none() => head.vendor = Some(source.vendor.to_string()),
            _ => {}
        }
        // The sources of an imported log are opened before anything happens.
        if head.month.is_some() {
            break;
        }
    }
    Ok(found.map(|head| Head { vendor: head.vendor.or(agent), ..head }))
}

#[derive(Debug, Default)]
struct Tail {
    /// The last whole line, without its line feed.
    line: Vec<u8>,
    /// What follows it.
    torn: Vec<u8>,
}

/// Reads backwards from `end` until the last whole line is at hand.
fn last_bytes(file: &mut File, end: u64) -> io::Result<Tail> {
    let (mut from, mut buffer) = (end, Vec::new());
    loop {
        let feeds: Vec<usize> =
            buffer.iter().enumerate().rev().filter(|(_, b)| **b == b'\n').map(|(i, _)| i).take(2).collect();
        match (&feeds[..], from) {
            ([last, before], _) => return Ok(split(buffer, before + 1, *last)),
            ([last], 0) => return Ok(split(buffer, 0, *last)),
            ([], 0) => return Ok(Tail { line: Vec::new(), torn: buffer }),
            _ => {}
        }
        let step = from.min(BACK.max(buffer.len() as u64));
        from -= step;
        file.seek(SeekFrom::Start(from))?;
        let mut more = Vec::new();
        file.by_ref().take(step).read_to_end(&mut more)?;
        more.append(&mut buffer);
        buffer = more;
    }
}

fn split(mut buffer: Vec<u8>, from: usize, feed: usize) -> Tail {
    let torn = buffer.split_off(feed + 1);
    buffer.truncate(feed);
    buffer.drain(..from);
    Tail { line: buffer, torn }
}

/// What could not be exported, and why.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// No line of the input is an event.
    NoLog,
    /// Another log of the same id is there: the copies diverged, and neither is newer than the other (R-BYT-020).
    Diverged {
        /// Where the other one is.
        other: String,
        /// The id of both.
        log: String,
    },
}

/// Something that is wrong with an input.
#[derive(Debug)]
pub struct Trouble {
    /// What the input is called.
    pub input: String,
    /// What is wrong.
    pub what: What,
}

/// What is wrong with an input.
#[derive(Debug)]
pub enum What {
    /// It was not exported.
    Refused(Refusal),
    /// A line is no event, and is kept as one that is none.
    Line(Box<Diagnostic>),
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn tail(content: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(content).expect("written");
        let tail = last_bytes(&mut file, content.len() as u64).expect("read");
        (tail.line, tail.torn)
    }

    #[test]
    fn the_last_line_and_what_follows_are_told_apart() {
        assert_eq!(tail(b""), (vec![], vec![]));
        assert_eq!(tail(b"torn"), (vec![], b"torn".to_vec()));
        assert_eq!(tail(b"one\n"), (b"one".to_vec(), vec![]));
        assert_eq!(tail(b"one\ntwo\nto"), (b"two".to_vec(), b"to".to_vec()));
        assert_eq!(tail(b"one\n\n"), (vec![], vec![]));
        let long = vec![b'x'; 3 * usize::try_from(BACK).expect("small") + 5];
        let mut content = b"a\n".to_vec();
        content.extend_from_slice(&long);
        content.extend_from_slice(b"\ntail");
        assert_eq!(tail(&content), (long, b"tail".to_vec()));
    }
}
