//! Reads a log while somebody writes it (spec 01, "Cursors and copies").

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::cursor::Cursor;
use crate::diagnostic::{Code, Diagnostic, Place, Severity};
use crate::disk::{Identity, is_unlinked};
use crate::reader::{Item, Line, Reader, ResumeError, parse, too_long};
use crate::writer::LINE_HARD_LIMIT;

/// Size of a read; more where a line is longer.
const CHUNK: u64 = 1 << 20;

/// How long [`Follow::wait`] sleeps between two looks: at first, and at most.
const NAP: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// Follows a log file as it grows: every whole line once, in order, and never a torn one.
///
/// It takes no lock and needs none. Before it reads on it makes sure that the line it read last is still there, and refuses
/// where the log was cut, replaced or rewritten (R-BYT-020).
#[derive(Debug)]
pub struct Follow {
    path: PathBuf,
    file: File,
    /// Whole lines; the first `at` bytes are done with.
    buffer: Vec<u8>,
    at: usize,
    /// Offset and number of the next line.
    offset: u64,
    number: u64,
    /// Length of the file when the last line was last seen in its place.
    seen: u64,
    last: Option<Last>,
    too_long: Option<Diagnostic>,
}

/// The event that was handed out last.
#[derive(Debug, Clone, Copy)]
struct Last {
    cursor: Cursor,
    offset: u64,
    len: usize,
}

impl Follow {
    /// Follows the log at `path` from its beginning.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let file = File::open(&path)?;
        Ok(Follow { path, file, buffer: Vec::new(), at: 0, offset: 0, number: 1, seen: 0, last: None, too_long: None })
    }

    /// Follows the log at `path` from behind the line that `cursor` names.
    ///
    /// # Errors
    /// When it cannot be read, or that line is another one or is not there: the log diverged.
    pub fn after(path: impl Into<PathBuf>, cursor: &Cursor) -> Result<Self, ResumeError> {
        let mut follow = Follow::open(path)?;
        let (number, offset, len) = Reader::new(&follow.file).pass(cursor)?;
        follow.last = Some(Last { cursor: *cursor, offset, len });
        follow.number = number + 1;
        follow.offset = offset + len as u64 + 1;
        Ok(follow)
    }

    /// The event that was handed out last: where to go on after a restart.
    #[must_use]
    pub fn cursor(&self) -> Option<Cursor> {
        self.last.map(|last| last.cursor)
    }

    /// The next event or fault, or `None` where no further whole line is there yet.
    ///
    /// # Errors
    /// When the log cannot be read, or diverged.
    #[expect(clippy::should_implement_trait, reason = "an item borrows from the reader, which an iterator cannot say")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, ResumeError> {
        if !self.is_ready()? {
            return Ok(None);
        }
        if let Some(fault) = self.too_long.take() {
            return Ok(Some(Item::Fault(fault)));
        }
        let rest = &self.buffer[self.at..];
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = Line { bytes: &rest[..len], offset: self.offset, number: self.number };
        self.at += len + 1;
        self.offset += len as u64 + 1;
        self.number += 1;
        Ok(Some(match parse(line) {
            Ok(event) => {
                self.last = Some(Last { cursor: Cursor::of(event.seq, line.bytes), offset: line.offset, len });
                Item::Event(event, line)
            }
            Err(diagnostic) => Item::Fault(diagnostic),
        }))
    }

    /// Waits until [`Follow::next`] has something, at most for `timeout`; `false`: it has not. It looks every few
    /// milliseconds: what tells of changes differs between platforms and fails on network file systems.
    ///
    /// # Errors
    /// When the log cannot be read, or diverged.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, ResumeError> {
        let (start, mut nap) = (Instant::now(), NAP.0);
        while !self.is_ready()? {
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(nap.min(left));
            nap = (nap * 2).min(NAP.1);
        }
        Ok(true)
    }

    /// Whether there is something to hand out; reads on if need be.
    fn is_ready(&mut self) -> Result<bool, ResumeError> {
        if self.too_long.is_some() || self.at < self.buffer.len() {
            return Ok(true);
        }
        self.buffer.clear();
        self.at = 0;
        let available = self.look()?.saturating_sub(self.offset);
        match self.fill(available) {
            // The file was cut since: the next look tells.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                self.buffer.clear();
                Ok(false)
            }
            filled => Ok(filled?),
        }
    }

    /// Length of the file, once it is certain that it still is the log whose lines were handed out.
    fn look(&mut self) -> Result<u64, ResumeError> {
        let meta = self.file.metadata()?;
        let len = meta.len();
        let diverged = |why: String| {
            let place = Place { offset: Some(self.offset), ..Place::default() };
            let diagnostic = Diagnostic::new(Code::Diverged, Severity::Error, place).because(why).rule("R-BYT-020");
            Err(ResumeError::Diverged(Box::new(diagnostic)))
        };
        if len < self.offset {
            return diverged(format!("the log was cut from {} to {len} bytes", self.offset));
        }
        if len == self.seen {
            // Nothing new here; so perhaps the log of that name is another file by now. One that was moved is followed.
            return match std::fs::metadata(&self.path) {
                Ok(now) if Identity::of(&now) != Identity::of(&meta) => {
                    diverged("another file took the log's place".into())
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound && is_unlinked(&meta) => Err(e.into()),
                _ => Ok(len),
            };
        }
        if let Some(last) = self.last {
            let mut bytes = vec![0; last.len + 1];
            let read = read_at(&self.file, last.offset, &mut bytes);
            let same = bytes.pop() == Some(b'\n') && Cursor::of(last.cursor.seq, &bytes) == last.cursor;
            match read {
                Ok(()) if same => {}
                Err(e) if e.kind() != io::ErrorKind::UnexpectedEof => return Err(e.into()),
                _ => return diverged(format!("the line at seq {} is not the one that was read", last.cursor.seq)),
            }
        }
        self.seen = len;
        Ok(len)
    }

    /// Fills the buffer with whole lines of the `available` bytes; `false`: there is none.
    fn fill(&mut self, available: u64) -> io::Result<bool> {
        const LONGEST: u64 = LINE_HARD_LIMIT as u64 + 1;
        let mut want = CHUNK;
        loop {
            let part = want.min(available).min(LONGEST);
            self.buffer.resize(part as usize, 0);
            read_at(&self.file, self.offset, &mut self.buffer)?;
            if part == available {
                self.settle()?;
            }
            let whole = memchr::memrchr(b'\n', &self.buffer).map_or(0, |at| at + 1);
            self.buffer.truncate(whole);
            if whole > 0 || part == available {
                return Ok(whole > 0);
            }
            if part == LONGEST {
                return self.pass_over(available);
            }
            want *= 4;
        }
    }

    /// Reads the buffer again until it stays the same. A writer that repairs a torn tail writes over it, and one read in that
    /// moment could give the beginning of the old bytes and the end of the new ones.
    fn settle(&mut self) -> io::Result<()> {
        let mut again = vec![0; self.buffer.len()];
        loop {
            read_at(&self.file, self.offset, &mut again)?;
            if again == self.buffer {
                return Ok(());
            }
            std::mem::swap(&mut again, &mut self.buffer);
        }
    }

    /// Passes over a line that is longer than readers accept; `false`: its end is not there yet.
    fn pass_over(&mut self, available: u64) -> io::Result<bool> {
        let mut chunk = vec![0; CHUNK as usize];
        let mut len = 0;
        while len < available {
            let part = &mut chunk[..CHUNK.min(available - len) as usize];
            read_at(&self.file, self.offset + len, part)?;
            let Some(at) = memchr::memchr(b'\n', part) else {
                len += part.len() as u64;
                continue;
            };
            len += at as u64;
            let place =
                Place { line: Some(self.number), offset: Some(self.offset), length: Some(len), ..Place::default() };
            self.too_long = Some(too_long(place, len));
            self.offset += len + 1;
            self.number += 1;
            return Ok(true);
        }
        Ok(false)
    }
}

fn read_at(mut file: &File, offset: u64, into: &mut [u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(into)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn line(seq: u64, text: &str) -> String {
        format!(
            r#"{{"palog":1,"log":"l","seq":{seq},"id":"e{seq}","type":"x.org.example/y","time":null,"actor":{{"kind":"user"}},"data":{{"t":"{text}"}}}}"#
        )
    }

    fn seqs(follow: &mut Follow) -> Vec<u64> {
        let mut seqs = Vec::new();
        while let Some(item) = follow.next().expect("no divergence") {
            let Item::Event(event, _) = item else { panic!("{item:?}") };
            seqs.push(event.seq);
        }
        seqs
    }

    struct Scene {
        _folder: tempfile::TempDir,
        path: PathBuf,
        file: File,
    }

    impl Scene {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("a.palog.jsonl");
            let file = File::options().append(true).create(true).open(&path).expect("a file");
            Scene { _folder: folder, path, file }
        }

        fn write(&mut self, text: &str) {
            self.file.write_all(text.as_bytes()).expect("write");
        }
    }

    #[test]
    fn whole_lines_come_once_and_torn_ones_never() {
        let mut scene = Scene::new();
        let mut follow = Follow::open(&scene.path).expect("open");
        assert!(seqs(&mut follow).is_empty());
        scene.write(&(line(0, "a") + "\n" + &line(1, "b")));
        assert_eq!(seqs(&mut follow), [0]);
        assert!(seqs(&mut follow).is_empty());
        scene.write("\n");
        assert_eq!(seqs(&mut follow), [1]);
        let cursor = follow.cursor().expect("a cursor");
        assert_eq!(cursor, Cursor::of(1, line(1, "b").as_bytes()));
        scene.write(&(line(2, &"long".repeat(1 << 20)) + "\n" + &line(3, "c") + "\n"));
        let mut later = Follow::after(&scene.path, &cursor).expect("after");
        for follow in [&mut follow, &mut later] {
            assert_eq!(seqs(follow), [2, 3]);
            assert_eq!((follow.number, follow.offset), (5, scene.file.metadata().expect("meta").len()));
        }
    }

    #[test]
    fn a_line_over_the_limit_is_passed_over() {
        let mut scene = Scene::new();
        let mut follow = Follow::open(&scene.path).expect("open");
        scene.write(&(line(0, "a") + "\n" + &"x".repeat(LINE_HARD_LIMIT + 5)));
        assert_eq!(seqs(&mut follow), [0]);
        scene.write(&("yyy\n".to_owned() + &line(1, "b") + "\n"));
        let Ok(Some(Item::Fault(fault))) = follow.next() else { panic!("a fault") };
        assert_eq!((fault.code, fault.place.length), (Code::LineTooLong, Some(LINE_HARD_LIMIT as u64 + 8)));
        assert_eq!(seqs(&mut follow), [1]);
    }

    #[test]
    fn the_longest_line_is_read() {
        let mut scene = Scene::new();
        let mut follow = Follow::open(&scene.path).expect("open");
        let longest = line(0, &"x".repeat(LINE_HARD_LIMIT - line(0, "").len()));
        assert_eq!(longest.len(), LINE_HARD_LIMIT);
        scene.write(&(longest + "\n" + &line(1, "b") + "\n"));
        assert_eq!(seqs(&mut follow), [0, 1]);
    }

    #[test]
    fn a_log_that_is_cut_replaced_or_rewritten_diverged() {
        type Damage = fn(&mut Scene);
        let damages: [Damage; 4] = [
            |scene| scene.file.set_len(3).expect("cut"),
            |scene| {
                scene.file.set_len(0).expect("cut");
                scene.write(&format!("{}\n{}\n{}\n", line(0, "a"), line(1, "B"), line(2, "c")));
            },
            |scene| {
                let other = scene.path.with_extension("other");
                std::fs::copy(&scene.path, &other).expect("copy");
                std::fs::rename(&other, &scene.path).expect("replace");
            },
            |scene| {
                scene.file.set_len(line(0, "a").len() as u64 + 1).expect("cut");
            },
        ];
        for damage in damages {
            let mut scene = Scene::new();
            scene.write(&format!("{}\n{}\n", line(0, "a"), line(1, "b")));
            let mut follow = Follow::open(&scene.path).expect("open");
            assert_eq!(seqs(&mut follow), [0, 1]);
            damage(&mut scene);
            let Err(ResumeError::Diverged(diagnostic)) = follow.next() else { panic!("it diverged") };
            assert_eq!(diagnostic.code, Code::Diverged);
        }
    }

    #[test]
    fn a_log_that_was_moved_is_followed() {
        let mut scene = Scene::new();
        let mut follow = Follow::open(&scene.path).expect("open");
        std::fs::rename(&scene.path, scene.path.with_extension("moved")).expect("move");
        assert!(seqs(&mut follow).is_empty());
        scene.write(&(line(0, "a") + "\n"));
        assert_eq!(seqs(&mut follow), [0]);
    }

    #[test]
    fn waiting_ends_with_a_line_or_in_time() {
        let mut scene = Scene::new();
        let mut follow = Follow::open(&scene.path).expect("open");
        assert!(!follow.wait(Duration::from_millis(5)).expect("wait"));
        std::thread::scope(|scope| {
            scope.spawn(|| scene.write(&(line(0, "a") + "\n")));
            assert!(follow.wait(Duration::from_secs(60)).expect("wait"));
        });
        assert_eq!(seqs(&mut follow), [0]);
    }
}
