//! The log file that a live writer appends to.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use super::error::{AppendError, OpenError};
use super::id::uuid_v7;
use super::lock::Lock;
use super::tail::{Head, Tail, TailError, check_version, read_added};
use super::{At, Durability, Expect, Torn};
use crate::blob::BlobStore;
use crate::cursor::Cursor;
use crate::diagnostic::{Code, Diagnostic, Place, Severity};
use crate::disk::{Identity, create_hidden, is_unlinked, sync_directory};
use crate::encode::Encoder;
use crate::envelope::{ActorKind, Draft, Time};
use crate::events::{Data, NoteAdded};
use crate::json::Value;
use crate::writer::Bulk;

/// Length at which buffered events are handed to the operating system.
const BUFFER: usize = 256 << 10;

/// A log that this process alone may append to, until it is dropped (spec 01, "Writing").
///
/// Readers are never in its way, nor it in theirs.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    /// Reads, repairs and takes back; holds the lock where that lies on the log.
    file: File,
    /// Writes at the end, wherever that is: no event of anybody is ever written over.
    out: File,
    _lock: Lock,
    encoder: Encoder,
    store: BlobStore,
    /// The last event that was accepted, buffered ones included.
    head: Head,
    linked: bool,
    /// Length of what was handed to the operating system.
    end: u64,
    /// Lines that were accepted and not handed over.
    buffer: Vec<u8>,
    /// Blobs that accepted events refer to, and that may not be durable.
    unsynced: BTreeSet<String>,
    repaired: Option<Torn>,
    poisoned: bool,
}

impl LogFile {
    /// Creates the log `log` at `path` with `opening`, whose payload is [`LogOpened`](crate::events::LogOpened), as its first
    /// event. The file appears with that event in it or not at all, locked from the first moment, and is durable when this
    /// returns.
    ///
    /// # Errors
    /// When there is a file of that name ([`OpenError::Io`] with `AlreadyExists`), when `opening` opens nothing or is of a
    /// version that this crate does not write, or when the disk refuses. A process that is killed here may leave a hidden
    /// file `.log.PID.N`.
    pub fn create(
        path: impl Into<PathBuf>,
        log: impl Into<String>,
        opening: &mut Draft<'_>,
    ) -> Result<Self, OpenError> {
        let path = path.into();
        let Data::LogOpened(opened) = &opening.data else {
            let why = "a log begins with log.opened";
            let diagnostic = Diagnostic::new(Code::NotOpened, Severity::Error, Place::default()).because(why);
            return Err(OpenError::Refused(Box::new(diagnostic.rule("R-ENV-003"))));
        };
        check_version(&opened.spec, Place::default())?;
        if path.symlink_metadata().is_ok() {
            return Err(OpenError::Io(io::ErrorKind::AlreadyExists.into()));
        }
        let (encoder, store) = encoder_of(&path, log.into());
        let mut buffer = Vec::with_capacity(8 << 10);
        encoder.encode(&mut buffer, 0, None, opening)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let (hidden, file) = create_hidden(folder, "log")?;
        let begun = begin(&file, &hidden, &path, &buffer);
        // Where the name was moved and not linked it is gone already.
        let _ = fs::remove_file(&hidden);
        let (lock, out) = begun?;
        let head = Head { cursor: Cursor::of(0, &buffer[..buffer.len() - 1]), epoch: opening.epoch, closed: false };
        let end = buffer.len() as u64;
        buffer.clear();
        Ok(LogFile {
            path,
            file,
            out,
            _lock: lock,
            encoder,
            store,
            head,
            linked: false,
            end,
            buffer,
            unsynced: BTreeSet::new(),
            repaired: None,
            poisoned: false,
        })
    }

    /// Opens the log at `path` to go on writing it. It reads the first line and the end, whatever the length of the log.
    ///
    /// A torn tail is cut off. Its bytes are kept in a blob, and a `note.added` of the kind `torn` that names the blob takes
    /// their place ([`LogFile::repaired`]); both are durable when this returns (R-BYT-006). A process that is killed in
    /// mid repair leaves a torn tail again, or a blob that no line names.
    ///
    /// # Errors
    /// - [`OpenError::Locked`] when another writer holds the log; it is not waited for.
    /// - [`OpenError::Refused`] with a [`Code`]: a newer minor or another major version, a closed log, a log that does not
    ///   begin with `log.opened`, and one whose last lines are no events in sequence. The log is then unchanged.
    /// - [`OpenError::Io`] when it is not there, or the disk refuses.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, OpenError> {
        let path = path.into();
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        let lock = Lock::take(&file, &path)?;
        let out = appender(&path, &file)?;
        let tail = Tail::read(&file)?;
        let (encoder, store) = encoder_of(&path, tail.log);
        let mut log = LogFile {
            path,
            file,
            out,
            _lock: lock,
            encoder,
            store,
            head: tail.head,
            linked: tail.linked,
            end: tail.end,
            buffer: Vec::with_capacity(8 << 10),
            unsynced: BTreeSet::new(),
            repaired: None,
            poisoned: false,
        };
        if tail.torn > 0 {
            log.repair(tail.torn)?;
        }
        Ok(log)
    }

    /// Makes every line from here on name the digest of the line before (`prev`). A log that was linked stays so.
    #[must_use]
    pub fn linked(mut self) -> Self {
        self.linked = true;
        self
    }

    /// Id of the log.
    #[must_use]
    pub fn log(&self) -> &str {
        &self.encoder.log
    }

    /// Where the log lay when it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The last event that was accepted.
    #[must_use]
    pub fn head(&self) -> Cursor {
        self.head.cursor
    }

    /// The seq that the next event gets.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.head.cursor.seq + 1
    }

    /// The newest epoch in the log.
    #[must_use]
    pub fn epoch(&self) -> Option<u64> {
        self.head.epoch
    }

    /// The blobs beside the log. What is put there before an event refers to it is made durable together with the event.
    #[must_use]
    pub fn blobs(&self) -> &BlobStore {
        &self.store
    }

    /// The torn tail that was cut off when the log was opened.
    #[must_use]
    pub fn repaired(&self) -> Option<&Torn> {
        self.repaired.as_ref()
    }

    /// Appends one event, if the log is as `expect` says, and returns its cursor once it is as durable as asked for
    /// (R-BYT-004). See [`LogFile::append_group`].
    ///
    /// # Errors
    /// See [`AppendError`].
    pub fn append(
        &mut self,
        draft: &mut Draft<'_>,
        expect: Expect,
        durability: Durability,
    ) -> Result<Cursor, AppendError> {
        self.append_group(std::slice::from_mut(draft), expect, durability)
    }

    /// Appends events in one write and, if asked for, one sync; returns the cursor of the last one.
    ///
    /// All are accepted or none: where the disk refuses, the log is taken back to its old length. A process that is killed
    /// in mid write may leave the first lines of a group, each of them whole, and a torn tail. Values that would make a line
    /// too long move to blobs, and the draft then holds the reference. An event without an epoch gets the one of `expect`,
    /// else the newest one of the log.
    ///
    /// Without drafts it does what `durability` says for the events that were accepted before.
    ///
    /// # Errors
    /// See [`AppendError`]. Nothing was accepted then.
    pub fn append_group(
        &mut self,
        drafts: &mut [Draft<'_>],
        expect: Expect,
        durability: Durability,
    ) -> Result<Cursor, AppendError> {
        if self.poisoned {
            return Err(AppendError::Poisoned);
        }
        let hand_over = durability != Durability::Buffered || self.buffer.len() >= BUFFER;
        if hand_over || expect.head.is_some() {
            self.look()?;
        }
        self.check(drafts, expect)?;
        let (before, buffered) = (self.head, self.buffer.len());
        let mut appended = self.encode(drafts);
        if appended.is_ok() && hand_over {
            appended = self.hand_over(durability);
        }
        if let Err(error) = appended {
            self.buffer.truncate(buffered);
            self.head = before;
            return Err(error);
        }
        Ok(self.head.cursor)
    }

    /// Hands buffered events to the operating system and, with [`Durability::Sync`], has them written to the disk.
    ///
    /// # Errors
    /// See [`AppendError`]. After a failed sync nobody knows what is on the disk, so the writer is poisoned.
    pub fn flush(&mut self, durability: Durability) -> Result<(), AppendError> {
        self.append_group(&mut [], Expect::default(), durability.max(Durability::Flush)).map(drop)
    }

    /// Whether the file is as this writer left it; one system call. Whole lines that somebody else added although the log is
    /// locked are taken in, so that no seq is given twice.
    fn look(&mut self) -> Result<(), AppendError> {
        let meta = self.file.metadata()?;
        let foreign = |why: String| {
            let place = Place { offset: Some(self.end), ..Place::default() };
            AppendError::ForeignWrite(Box::new(
                Diagnostic::new(Code::ForeignWrite, Severity::Error, place).rule("R-BYT-027").because(why),
            ))
        };
        if is_unlinked(&meta) {
            return Err(foreign("the log file was deleted or replaced".into()));
        }
        let len = meta.len();
        if len == self.end {
            return Ok(());
        }
        if len < self.end {
            return Err(foreign(format!("the log was cut from {} to {len} bytes", self.end)));
        }
        if !self.buffer.is_empty() {
            return Err(foreign("another program wrote to the log while events were buffered".into()));
        }
        match read_added(&self.file, &self.encoder.log, self.end, self.head) {
            Ok(Some((head, end))) => {
                (self.head, self.end) = (head, end);
                Ok(())
            }
            Ok(None) => Err(foreign("another program is in mid write".into())),
            Err(TailError::Io(error)) => Err(error.into()),
            Err(TailError::Refused(diagnostic)) => Err(foreign(diagnostic.why.unwrap_or_default())),
        }
    }

    /// Compares the log with what the caller takes for granted, and gives each draft its epoch (R-EVT-015): an acquisition its
    /// own.
    fn check(&self, drafts: &mut [Draft<'_>], expect: Expect) -> Result<(), AppendError> {
        let head = self.head.cursor;
        let moved = match expect.head {
            None => false,
            Some(At::Seq(seq)) => seq != head.seq,
            Some(At::Cursor(cursor)) => cursor != head,
        };
        if moved {
            return Err(AppendError::HeadMoved { head });
        }
        let (mut newest, mut closed) = (self.head.epoch, self.head.closed);
        if let (Some(epoch), Some(newest)) = (expect.epoch, newest)
            && epoch < newest
        {
            return Err(AppendError::StaleEpoch { newest });
        }
        for draft in drafts {
            let acquired = if let Data::LeaseAcquired(lease) = &draft.data { Some(lease.epoch) } else { None };
            draft.epoch = draft.epoch.or(acquired).or(expect.epoch).or(newest);
            if let Some(newest) = newest.filter(|newest| draft.epoch.is_some_and(|epoch| epoch < *newest)) {
                return Err(AppendError::StaleEpoch { newest });
            }
            newest = draft.epoch;
            match draft.data.name() {
                "log.opened" => return Err(AppendError::OpenedTwice),
                "note.added" => {}
                _ if closed => return Err(AppendError::Closed),
                name => closed = name == "log.closed",
            }
        }
        Ok(())
    }

    /// Renders the drafts into the buffer.
    fn encode(&mut self, drafts: &mut [Draft<'_>]) -> Result<(), AppendError> {
        for draft in drafts {
            let (start, seq) = (self.buffer.len(), self.next_seq());
            let prev = self.linked.then(|| self.head.cursor.sha256_hex());
            self.encoder.encode(&mut self.buffer, seq, prev.as_deref(), draft)?;
            self.head = Head {
                cursor: Cursor::of(seq, &self.buffer[start..self.buffer.len() - 1]),
                epoch: draft.epoch,
                closed: self.head.closed || draft.data.name() == "log.closed",
            };
            for value in draft.data.values_mut() {
                if let Value::Blob(blob) = value
                    && !self.unsynced.contains(blob.digest.as_str())
                {
                    if !self.store.contains(&blob.digest) {
                        return Err(AppendError::BlobMissing { digest: blob.digest.to_string() });
                    }
                    self.unsynced.insert(blob.digest.to_string());
                }
            }
        }
        Ok(())
    }

    /// Writes the buffer out, as durably as asked for.
    fn hand_over(&mut self, durability: Durability) -> Result<(), AppendError> {
        let sync = durability == Durability::Sync;
        if sync {
            // A line must not outlive what it refers to.
            while let Some(digest) = self.unsynced.first() {
                self.store.sync(digest)?;
                self.unsynced.pop_first();
            }
        }
        let end = self.end;
        if let Err(error) = self.out.write_all(&self.buffer) {
            self.take_back(end);
            return Err(error.into());
        }
        self.end += self.buffer.len() as u64;
        if sync && let Err(error) = self.out.sync_data() {
            // The kernel may drop what it could not write and report the next sync as done, so there is no second try.
            self.take_back(end);
            self.poisoned = true;
            return Err(error.into());
        }
        self.buffer.clear();
        Ok(())
    }

    /// Brings the file back to its length before a write that failed.
    fn take_back(&mut self, end: u64) {
        self.poisoned |= self.file.set_len(end).is_err();
        self.end = end;
    }

    /// Replaces the torn tail by a note that names it (R-BYT-006).
    ///
    /// The note is written over the tail and the rest is cut then, in this order: who kills the process in between leaves a
    /// note and another torn tail. Cutting first would lose the note.
    fn repair(&mut self, len: u64) -> Result<(), OpenError> {
        let at = self.end;
        let mut file = &self.file;
        file.seek(SeekFrom::Start(at))?;
        let blob = self.store.clone().durable().put_from(file.take(len), "application/octet-stream", None)?;
        let (seq, digest) = (self.next_seq(), blob.digest.to_string());
        // Two repairs at one seq differ in what they cut; none needs a source of randomness.
        let hash: [u8; 32] = Sha256::digest(format!("torn {} {seq} {digest}", self.encoder.log)).into();
        let mut random = [0; 10];
        random.copy_from_slice(&hash[..10]);
        let now = SystemTime::now();
        let mut note =
            Draft::new(uuid_v7(now, random), ActorKind::Harness, torn_note(at, len, &digest)).at(Time::of(now));
        if let Data::NoteAdded(data) = &mut note.data {
            data.bytes = Some(Value::Blob(blob));
        }
        note.epoch = self.head.epoch;
        let prev = self.linked.then(|| self.head.cursor.sha256_hex());
        let mut line = Vec::new();
        self.encoder.encode(&mut line, seq, prev.as_deref(), &mut note)?;
        file.seek(SeekFrom::Start(at))?;
        file.write_all(&line)?;
        self.end += line.len() as u64;
        file.set_len(self.end)?;
        file.sync_data()?;
        self.head.cursor = Cursor::of(seq, &line[..line.len() - 1]);
        self.repaired = Some(Torn { at, len, digest });
        Ok(())
    }
}

#[cfg(test)]
impl LogFile {
    /// Makes every write fail, as a disk that refuses; gives the handle back that does not.
    pub(super) fn break_writes(&mut self) -> File {
        std::mem::replace(&mut self.out, File::open(&self.path).expect("the log"))
    }

    pub(super) fn mend_writes(&mut self, out: File) {
        self.out = out;
    }

    /// Makes it impossible to take a write back.
    pub(super) fn break_repairs(&mut self) -> File {
        std::mem::replace(&mut self.file, File::open(&self.path).expect("the log"))
    }
}

impl Drop for LogFile {
    /// Hands buffered events over, as far as that can be done without a word; [`LogFile::flush`] tells.
    fn drop(&mut self) {
        if !self.buffer.is_empty() {
            let _ = self.flush(Durability::Flush);
        }
    }
}

fn torn_note<'a>(at: u64, len: u64, digest: &str) -> NoteAdded<'a> {
    NoteAdded {
        kind: "torn".into(),
        text: None,
        about: None,
        source: None,
        at: Some(at),
        len: Some(len),
        digest: Some(digest.to_owned().into()),
        records: None,
        terminated: None,
        bytes: None,
    }
}

fn encoder_of(path: &Path, log: String) -> (Encoder, BlobStore) {
    let store = BlobStore::beside(path);
    (Encoder { log, bulk: Bulk::Blobs(store.clone()) }, store)
}

/// Makes `file`, which is called `hidden`, the durable log `path` with the first line in it; its lock and a handle to append.
fn begin(mut file: &File, hidden: &Path, path: &Path, line: &[u8]) -> Result<(Lock, File), OpenError> {
    let lock = Lock::take(file, path)?;
    file.write_all(line)?;
    file.sync_all()?;
    publish(hidden, path)?;
    sync_directory(path.parent().unwrap_or(Path::new("")))?;
    Ok((lock, appender(path, file)?))
}

/// Gives the file `hidden` the name `path`, unless that is taken.
fn publish(hidden: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(hidden, path) {
        // Some file systems have no links; there, two that create the same log at the same moment are not told apart.
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists && path.symlink_metadata().is_err() => {
            fs::rename(hidden, path)
        }
        other => other,
    }
}

/// A second handle on the file, which writes at its end only.
fn appender(path: &Path, file: &File) -> Result<File, OpenError> {
    let out = OpenOptions::new().append(true).open(path)?;
    if Identity::of(&out.metadata()?) == Identity::of(&file.metadata()?) {
        Ok(out)
    } else {
        let why = "the log was replaced by another file while it was opened";
        let diagnostic =
            Diagnostic::new(Code::ForeignWrite, Severity::Error, Place::default()).rule("R-BYT-027").because(why);
        Err(OpenError::Refused(Box::new(diagnostic)))
    }
}
