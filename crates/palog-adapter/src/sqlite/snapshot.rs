//! A private copy of a database and of what lies beside it, at one moment.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use tempfile::TempDir;

/// How often a copy is tried before the database counts as too busy, and the pauses between.
const TRIES: u32 = 8;
const PAUSE: Duration = Duration::from_millis(20);

/// Bytes of the header of a database, and of a write-ahead log.
const HEADER: usize = 100;
const WAL_HEADER: usize = 32;

/// How every database begins.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// A copy of a database in a directory of its own, which goes away with it.
#[derive(Debug)]
pub struct Snapshot {
    folder: TempDir,
    /// What was found while it was taken.
    pub findings: Vec<Diagnostic>,
}

impl Snapshot {
    /// Copies the database at `path` with its write-ahead log or rollback journal. The original is only read.
    ///
    /// The log is copied first, then the database, then the log again. The copy is taken if the second log has the salts of
    /// the first and begins with it, and the change counter of the database stood still: then every page that a checkpoint
    /// moved meanwhile is in the log as well. Otherwise it is tried again.
    ///
    /// # Errors
    /// A diagnostic of the family `store`: the file cannot be read or is no database, there is no room for the copy, or the
    /// database changed all the time.
    pub fn take(path: &Path) -> Result<Snapshot, Box<Diagnostic>> {
        let fail = |code, why: String| Box::new(found(code, Severity::Error, path, why));
        let unreadable = |e: io::Error| fail(Code::Unreadable, e.to_string());
        let folder = TempDir::with_prefix("palog-").map_err(unreadable)?;
        let needed = [path.to_path_buf(), beside(path, "-wal"), beside(path, "-journal")]
            .iter()
            .filter_map(|file| fs::metadata(file).ok())
            .map(|file| file.len())
            .sum::<u64>();
        if let Some(free) = free(folder.path()).filter(|free| *free < needed) {
            return Err(fail(
                Code::StoreNoRoom,
                format!("a copy needs {needed} bytes, and {} has {free} left", folder.path().display()),
            ));
        }
        let mut snapshot = Snapshot { folder, findings: Vec::new() };
        for attempt in 0..TRIES {
            if attempt > 0 {
                thread::sleep(PAUSE * attempt);
            }
            if snapshot.copy(path).map_err(unreadable)? {
                snapshot.judge(path).map_err(unreadable)??;
                return Ok(snapshot);
            }
        }
        Err(fail(Code::StoreBusy, format!("it changed during each of {TRIES} copies")))
    }

    /// The copy of the database.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    /// Copies everything once. Whether the parts fit together.
    fn copy(&self, original: &Path) -> io::Result<bool> {
        let copy = self.path();
        for suffix in ["-wal", "-journal", "-shm"] {
            remove(&beside(&copy, suffix))?;
        }
        let (wal, journal) = (beside(original, "-wal"), beside(original, "-journal"));
        let before = copied(&wal, &beside(&copy, "-wal"))?;
        let journal_before = copied(&journal, &beside(&copy, "-journal"))?;
        let counter = header(original)?;
        fs::copy(original, &copy)?;
        writable(&copy)?;
        if header(original)? != counter || header(&copy)? != counter {
            return Ok(false);
        }
        if journal_before != fs::metadata(&journal).ok().map(|file| file.len()) {
            return Ok(false);
        }
        match (before, fs::metadata(&wal).ok().map(|file| file.len())) {
            (None, None) => Ok(true),
            (Some(before), Some(after)) => Ok(before <= after && begins_with(&wal, &beside(&copy, "-wal"), before)?),
            (None, Some(_)) | (Some(_), None) => Ok(false),
        }
    }

    /// Says what the copy is, and what it cannot show.
    fn judge(&mut self, original: &Path) -> io::Result<Result<(), Box<Diagnostic>>> {
        let (copy, wal) = (self.path(), beside(&self.path(), "-wal"));
        let mut head = Vec::new();
        File::open(&copy)?.take(HEADER as u64).read_to_end(&mut head)?;
        let pages_in_the_wal = fs::metadata(&wal).is_ok_and(|file| file.len() > WAL_HEADER as u64);
        if head.is_empty() && pages_in_the_wal {
            // SQLite would take an empty database for a new one, and drop the log.
            fs::write(&copy, vec![0; page_size(&wal)?])?;
            let why = "it is empty; what its write-ahead log holds was read";
            self.findings.push(found(Code::StoreMalformed, Severity::Error, original, why.into()));
        } else if head.is_empty() {
            let why = "it has no bytes, and no write-ahead log lies beside it";
            return Ok(Err(Box::new(found(Code::StoreNotADatabase, Severity::Error, original, why.into()))));
        } else if !head.starts_with(MAGIC) {
            let why = "it does not begin like a database of SQLite";
            return Ok(Err(Box::new(found(Code::StoreNotADatabase, Severity::Error, original, why.into()))));
        } else if head.get(18) == Some(&2) && !wal.exists() {
            let why = "no write-ahead log lies beside it; what was not moved to the database would be in there";
            self.findings.push(found(Code::StoreWalMissing, Severity::Warning, original, why.into()));
        }
        Ok(Ok(()))
    }
}

/// Something about a store.
pub(super) fn found(code: Code, severity: Severity, path: &Path, why: String) -> Diagnostic {
    let place = Place { input: Some(path.display().to_string()), ..Place::default() };
    Diagnostic::new(code, severity, place).because(why)
}

/// `path` with `suffix` behind its whole name.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Copies a file that may be absent, and tells the length of the copy.
fn copied(from: &Path, to: &Path) -> io::Result<Option<u64>> {
    match fs::copy(from, to) {
        Ok(len) => writable(to).map(|()| Some(len)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A copy of a read-only file is ours.
fn writable(path: &Path) -> io::Result<()> {
    crate::source::make_writable(path)
}

/// The header, which holds the change counter and the size. Short where the file is.
fn header(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEADER as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Whether the file begins with the `len` bytes of `copy`. The salts are among the first of them.
fn begins_with(file: &Path, copy: &Path, len: u64) -> io::Result<bool> {
    let (mut one, mut two) = (File::open(file)?.take(len), File::open(copy)?.take(len));
    let (mut a, mut b) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let n = one.read(&mut a)?;
        if n == 0 {
            return Ok(two.read(&mut b)? == 0);
        }
        if two.read_exact(&mut b[..n]).is_err() || a[..n] != b[..n] {
            return Ok(false);
        }
    }
}

/// The size of a page, as the write-ahead log tells it.
fn page_size(wal: &Path) -> io::Result<usize> {
    let mut bytes = [0; 4];
    let mut file = File::open(wal)?;
    file.seek(SeekFrom::Start(8))?;
    file.read_exact(&mut bytes)?;
    let size = u32::from_be_bytes(bytes);
    Ok(if size.is_power_of_two() && (512..=65536).contains(&size) { size as usize } else { 4096 })
}

/// Bytes that are left where `path` is; `None` where that cannot be told.
fn free(path: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let stat = rustix::fs::statvfs(path).ok()?;
        Some(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}
