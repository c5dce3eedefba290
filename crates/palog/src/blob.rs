//! Content beside the log, by its SHA-256 (spec 01, "Blobs").

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::disk::{create_hidden, sync_directory};
use crate::json::{BlobRef, Str};

/// Size of a read or write while content passes through.
const CHUNK: usize = 64 << 10;

/// The SHA-256 of `bytes` as 64 lower-case hexadecimal digits.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Lower-case hexadecimal digits of `bytes`.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(bytes.len() * 2);
    for b in bytes {
        out.push(char::from(DIGITS[usize::from(b >> 4)]));
        out.push(char::from(DIGITS[usize::from(b & 15)]));
    }
    out
}

/// The digest of content in the form of the format: `sha256:` and the digits.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(bytes))
}

/// A directory of blobs, `NAME.palog.blobs` (spec 01, R-BYT-012). Several logs and writers may share one.
///
/// A blob appears under its name whole or not at all, and never changes. Whoever dies while it writes one leaves a file
/// with a hidden name, which no reader looks at and [`BlobStore::list`] shows as left over.
#[derive(Debug, Clone)]
pub struct BlobStore {
    root: PathBuf,
    durable: bool,
}

/// A file in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// What it is.
    pub name: StoredName,
    /// Its length in bytes.
    pub size: u64,
    /// When it was written, where the file system tells.
    pub modified: Option<SystemTime>,
}

/// What a file in a store is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoredName {
    /// The blob of this digest (`sha256:…`).
    Blob(String),
    /// A file that is no blob: what a killed writer left, or something that does not belong here.
    LeftOver(PathBuf),
}

/// What [`BlobStore::verify`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobState {
    /// The blob is there, with the bytes that its name says.
    Whole {
        /// Its length in bytes.
        size: u64,
    },
    /// It has other bytes than its name says.
    Mismatch,
    /// It is not there.
    Missing,
}

impl BlobStore {
    /// The store in the directory `root`, which need not exist yet.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        BlobStore { root: root.into(), durable: false }
    }

    /// The store that belongs to the log file `log`: `NAME.palog.jsonl` has `NAME.palog.blobs` beside it.
    #[must_use]
    pub fn beside(log: &Path) -> Self {
        Self::new(sibling(log, "blobs"))
    }

    /// Makes every blob that is put durable before it is referred to (as [`BlobStore::sync`] does), at the cost of some
    /// system calls each.
    #[must_use]
    pub fn durable(mut self) -> Self {
        self.durable = true;
        self
    }

    /// The directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the content of `digest` (`sha256:…`) lies; `None` if it is no such digest.
    #[must_use]
    pub fn path(&self, digest: &str) -> Option<PathBuf> {
        let hex = digest.strip_prefix("sha256:").filter(|hex| is_hex_digest(hex.as_bytes()))?;
        Some(self.algorithm().join(&hex[..2]).join(hex))
    }

    /// Stores `bytes` once and refers to them. The file appears whole or not at all.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn put(&self, bytes: &[u8], media: &str, name: Option<&str>) -> io::Result<BlobRef<'static>> {
        let digest = digest(bytes);
        let path = self.place_of(&digest)?;
        if !holds(&path, bytes)? {
            let folder = path.parent().unwrap_or(&self.root);
            fs::create_dir_all(folder)?;
            let mut pending = Pending::create(folder)?;
            pending.file.write_all(bytes)?;
            pending.become_blob(&path)?;
        }
        self.stored(digest, bytes.len() as u64, media, name)
    }

    /// Stores all that `content` gives, without ever holding it as a whole, and refers to it.
    ///
    /// # Errors
    /// When the content cannot be read, or the directory cannot be written.
    pub fn put_from(&self, mut content: impl Read, media: &str, name: Option<&str>) -> io::Result<BlobRef<'static>> {
        let folder = self.algorithm();
        fs::create_dir_all(&folder)?;
        let mut pending = Pending::create(&folder)?;
        let (mut hasher, mut size) = (Sha256::new(), 0);
        let mut chunk = vec![0; CHUNK];
        loop {
            let n = match content.read(&mut chunk) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            hasher.update(&chunk[..n]);
            pending.file.write_all(&chunk[..n])?;
            size += n as u64;
        }
        let digest = format!("sha256:{}", hex(&hasher.finalize()));
        let path = self.place_of(&digest)?;
        fs::create_dir_all(path.parent().unwrap_or(&self.root))?;
        pending.become_blob(&path)?;
        self.stored(digest, size, media, name)
    }

    /// Makes the blob `digest` durable: its bytes, its name, and the directories that lead to it.
    ///
    /// # Errors
    /// `NotFound` where the blob is not there; else when the disk refuses.
    pub fn sync(&self, digest: &str) -> io::Result<()> {
        let path = self.path(digest).ok_or(io::ErrorKind::NotFound)?;
        // Windows flushes only through a handle that may write.
        OpenOptions::new().read(true).append(true).open(&path)?.sync_all()?;
        let directories = path.ancestors().skip(1).take_while(|d| d.starts_with(&self.root)).chain(self.root.parent());
        for directory in directories {
            sync_directory(directory)?;
        }
        Ok(())
    }

    /// Whether the blob `digest` is there. Its bytes are not looked at.
    #[must_use]
    pub fn contains(&self, digest: &str) -> bool {
        self.path(digest).is_some_and(|path| path.is_file())
    }

    /// Reads the content of `digest`, and checks it (R-BYT-013).
    ///
    /// # Errors
    /// `NotFound` where it is not there; `InvalidData` where it has other bytes than its name says.
    pub fn get(&self, digest: &str) -> io::Result<Vec<u8>> {
        let path = self.path(digest).ok_or(io::ErrorKind::NotFound)?;
        let bytes = fs::read(path)?;
        if self::digest(&bytes) == digest {
            Ok(bytes)
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidData, "the blob's bytes are not those that its name says"))
        }
    }

    /// Reads the blob `digest` through and compares it with its name, with flat memory (R-BYT-013).
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn verify(&self, digest: &str) -> io::Result<BlobState> {
        let Some(path) = self.path(digest) else { return Ok(BlobState::Missing) };
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(BlobState::Missing),
            Err(e) => return Err(e),
        };
        let (mut hasher, mut size) = (Sha256::new(), 0);
        let mut chunk = vec![0; CHUNK];
        loop {
            match file.read(&mut chunk) {
                Ok(0) => break,
                Ok(n) => {
                    hasher.update(&chunk[..n]);
                    size += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        let same = digest[7..] == hex(&hasher.finalize());
        Ok(if same { BlobState::Whole { size } } else { BlobState::Mismatch })
    }

    /// Everything in the store, in the order of the digests; the names of one folder are held at a time.
    ///
    /// # Errors
    /// When the store is there and cannot be read; each item, when its folder cannot be read.
    pub fn list(&self) -> io::Result<impl Iterator<Item = io::Result<Stored>> + use<>> {
        let algorithm = self.algorithm();
        let folders = match sorted(&algorithm) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            other => other?,
        };
        Ok(folders.into_iter().flat_map(|folder| {
            let files = if folder.is_dir() { sorted(&folder) } else { Ok(vec![folder]) };
            let (files, failure) = match files {
                Ok(files) => (files, None),
                Err(e) => (Vec::new(), Some(Err(e))),
            };
            // A blob being put by another program may be gone from its hidden name by now.
            let entries = files.into_iter().filter_map(|path| match path.symlink_metadata() {
                Err(e) if e.kind() == io::ErrorKind::NotFound => None,
                Err(e) => Some(Err(e)),
                Ok(meta) => {
                    Some(Ok(Stored { name: stored_name(path), size: meta.len(), modified: meta.modified().ok() }))
                }
            });
            entries.chain(failure)
        }))
    }

    /// What no line of `in_use` refers to, in the order of the digests, and what is left over. Nothing is deleted.
    ///
    /// A blob is put before the line that refers to it is written, so what a running writer has just put is listed too:
    /// look at [`Stored::modified`], or ask while no writer runs.
    ///
    /// # Errors
    /// As [`BlobStore::list`].
    pub fn garbage(&self, in_use: &References) -> io::Result<impl Iterator<Item = io::Result<Stored>>> {
        Ok(self.list()?.filter(|item| match item {
            Ok(Stored { name: StoredName::Blob(digest), .. }) => !in_use.contains(digest),
            Ok(Stored { name: StoredName::LeftOver(_), .. }) | Err(_) => true,
        }))
    }

    fn algorithm(&self) -> PathBuf {
        self.root.join("sha256")
    }

    fn place_of(&self, digest: &str) -> io::Result<PathBuf> {
        self.path(digest).ok_or_else(|| io::Error::other("a digest is always well-formed"))
    }

    /// The reference to a blob that is in its place.
    fn stored(&self, digest: String, size: u64, media: &str, name: Option<&str>) -> io::Result<BlobRef<'static>> {
        if self.durable {
            self.sync(&digest)?;
        }
        let (media, name) = (Str::from(media).into_owned(), name.map(|n| Str::from(n).into_owned()));
        Ok(BlobRef { digest: digest.into(), size, media, name })
    }
}

/// The digests that the lines of logs refer to; one that stands there for another reason counts too, so nothing that is
/// needed is ever taken for garbage.
#[derive(Debug, Clone, Default)]
pub struct References {
    digests: HashSet<[u8; 64]>,
}

impl References {
    /// Takes in every run of 64 hexadecimal digits in `line`.
    pub fn add_line(&mut self, line: &[u8]) {
        let runs = line.split(|b| !b.is_ascii_hexdigit());
        self.digests.extend(runs.filter_map(|run| <[u8; 64]>::try_from(run).ok()));
    }

    /// Whether a line refers to `digest` (`sha256:…`).
    #[must_use]
    pub fn contains(&self, digest: &str) -> bool {
        let hex = digest.strip_prefix("sha256:").and_then(|hex| <&[u8; 64]>::try_from(hex.as_bytes()).ok());
        hex.is_some_and(|hex| self.digests.contains(hex))
    }
}

/// A file under a hidden name that no other program uses; it is removed unless it becomes a blob.
struct Pending {
    path: PathBuf,
    file: File,
    done: bool,
}

impl Pending {
    fn create(folder: &Path) -> io::Result<Self> {
        let (path, file) = create_hidden(folder, "put")?;
        Ok(Pending { path, file, done: false })
    }

    fn become_blob(mut self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)?;
        self.done = true;
        Ok(())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.done {
            // Best effort: what cannot be removed stays under its hidden name.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether the file `path` is there and has exactly `bytes`; a blob that lost its bytes in a power loss is put again.
fn holds(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    match fs::metadata(path) {
        Ok(meta) if meta.len() == bytes.len() as u64 => {}
        Ok(_) => return Ok(false),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(e),
    }
    let mut file = File::open(path)?;
    let mut chunk = vec![0; CHUNK.min(bytes.len())];
    for expected in bytes.chunks(CHUNK) {
        let found = &mut chunk[..expected.len()];
        match file.read_exact(found) {
            Ok(()) if found == expected => {}
            Ok(()) => return Ok(false),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}

/// Paths in `folder`, in the order of their names.
fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(folder)?.map(|e| Ok(e?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn stored_name(path: PathBuf) -> StoredName {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    let folder = path.parent().and_then(Path::file_name).and_then(|n| n.to_str()).unwrap_or_default();
    if is_hex_digest(name.as_bytes()) && name.starts_with(folder) && folder.len() == 2 {
        StoredName::Blob(format!("sha256:{name}"))
    } else {
        StoredName::LeftOver(path)
    }
}

fn is_hex_digest(digits: &[u8]) -> bool {
    digits.len() == 64 && digits.iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b))
}

/// The sibling of a log file: `NAME.palog.jsonl` → `NAME.palog.<what>`.
#[must_use]
pub fn sibling(log: &Path, what: &str) -> PathBuf {
    let name = log.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.strip_suffix(".jsonl").unwrap_or(&name);
    let stem = stem.strip_suffix(".palog").unwrap_or(stem);
    log.with_file_name(format!("{stem}.palog.{what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, BlobStore) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = BlobStore::beside(&folder.path().join("a.palog.jsonl"));
        (folder, store)
    }

    fn all(items: impl Iterator<Item = io::Result<Stored>>) -> Vec<StoredName> {
        items.map(|i| i.expect("an item").name).collect()
    }

    #[test]
    fn a_stream_and_its_bytes_are_one_blob() {
        let (_folder, store) = store();
        let content: Vec<u8> = (0..3 * CHUNK as u32 + 7).map(|n| n as u8).collect();
        let streamed = store.put_from(&content[..], "application/octet-stream", Some("n")).expect("put");
        assert_eq!(streamed, store.put(&content, "application/octet-stream", Some("n")).expect("put"));
        assert_eq!(store.get(&streamed.digest).expect("get"), content);
        assert_eq!(store.verify(&streamed.digest).expect("verify"), BlobState::Whole { size: content.len() as u64 });
        assert_eq!(all(store.list().expect("list")), [StoredName::Blob(streamed.digest.to_string())]);
        store.durable().put(b"", "text/plain", None).expect("durable");
    }

    #[test]
    fn a_damaged_blob_is_seen_and_put_again() {
        let (_folder, store) = store();
        let blob = store.put(b"content", "text/plain", None).expect("put");
        let path = store.path(&blob.digest).expect("a path");
        fs::write(&path, b"CONTENT").expect("write");
        assert_eq!(store.verify(&blob.digest).expect("verify"), BlobState::Mismatch);
        assert_eq!(store.get(&blob.digest).expect_err("damaged").kind(), io::ErrorKind::InvalidData);
        store.put(b"content", "text/plain", None).expect("put");
        assert_eq!(store.verify(&blob.digest).expect("verify"), BlobState::Whole { size: 7 });
        fs::remove_file(&path).expect("remove");
        assert_eq!(store.verify(&blob.digest).expect("verify"), BlobState::Missing);
        assert!(!store.contains(&blob.digest));
    }

    #[test]
    fn garbage_is_what_no_line_names() {
        let (_folder, store) = store();
        assert_eq!(all(store.list().expect("no store yet")), []);
        let [kept, dropped] = [&b"kept"[..], b"dropped"].map(|b| store.put(b, "text/plain", None).expect("put").digest);
        let (left_over, _) = create_hidden(&store.algorithm(), "put").expect("a hidden file");
        let mut in_use = References::default();
        in_use.add_line(format!(r#"{{"data":{{"text":{{"$blob":"{kept}"}}}}}}"#).as_bytes());
        let garbage = all(store.garbage(&in_use).expect("garbage"));
        assert_eq!(garbage, [StoredName::LeftOver(left_over), StoredName::Blob(dropped.to_string())]);
    }

    #[test]
    fn what_fails_leaves_nothing_behind() {
        struct Breaks(bool);
        impl Read for Breaks {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                if std::mem::replace(&mut self.0, true) { Err(io::Error::other("broken")) } else { Ok(buffer.len()) }
            }
        }
        let (_folder, store) = store();
        store.put_from(Breaks(false), "text/plain", None).expect_err("the content breaks off");
        assert_eq!(all(store.list().expect("list")), []);
    }

    #[test]
    fn writers_of_one_blob_do_not_disturb_each_other() {
        let (_folder, store) = store();
        let content = vec![7; 1 << 20];
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| store.put(&content, "text/plain", None).expect("put"));
                scope.spawn(|| store.put_from(&content[..], "text/plain", None).expect("put"));
            }
        });
        assert_eq!(all(store.list().expect("list")), [StoredName::Blob(digest(&content))]);
        assert_eq!(store.verify(&digest(&content)).expect("verify"), BlobState::Whole { size: 1 << 20 });
    }
}
