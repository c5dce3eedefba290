//! Content beside the log, by its SHA-256 (spec 01, "Blobs").

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::json::{BlobRef, Str};

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

/// A directory of blobs, `NAME.palog.blobs` (spec 01, R-BYT-012).
#[derive(Debug, Clone)]
pub struct BlobStore {
    root: PathBuf,
}

impl BlobStore {
    /// The store that belongs to the log file `log`: `NAME.palog.jsonl` has `NAME.palog.blobs` beside it.
    #[must_use]
    pub fn beside(log: &Path) -> Self {
        BlobStore { root: sibling(log, "blobs") }
    }

    /// Where the content of `digest` (`sha256:…`) lies; `None` if it is no such digest.
    #[must_use]
    pub fn path(&self, digest: &str) -> Option<PathBuf> {
        let hex = digest.strip_prefix("sha256:")?;
        let fits = hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        fits.then(|| self.root.join("sha256").join(&hex[..2]).join(hex))
    }

    /// Stores `bytes` once and refers to them. The file appears whole or not at all.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn put(&self, bytes: &[u8], media: &str, name: Option<&str>) -> io::Result<BlobRef<'static>> {
        let digest = digest(bytes);
        let path = self.path(&digest).ok_or_else(|| io::Error::other("a digest is always well-formed"))?;
        if fs::metadata(&path).is_ok_and(|m| m.len() == bytes.len() as u64) {
            return Ok(reference(digest, bytes.len(), media, name));
        }
        let folder = path.parent().ok_or_else(|| io::Error::other("a blob lies in a folder"))?;
        fs::create_dir_all(folder)?;
        let temporary = folder.join(format!(".{}.{}", &digest[7..], std::process::id()));
        let mut file = fs::File::create(&temporary)?;
        file.write_all(bytes)?;
        file.flush()?;
        fs::rename(&temporary, &path)?;
        Ok(reference(digest, bytes.len(), media, name))
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
}

fn reference(digest: String, size: usize, media: &str, name: Option<&str>) -> BlobRef<'static> {
    BlobRef {
        digest: digest.into(),
        size: size as u64,
        media: Str::from(media).into_owned(),
        name: name.map(|n| Str::from(n).into_owned()),
    }
}

/// The sibling of a log file: `NAME.palog.jsonl` → `NAME.palog.<what>`.
#[must_use]
pub fn sibling(log: &Path, what: &str) -> PathBuf {
    let name = log.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.strip_suffix(".jsonl").unwrap_or(&name);
    let stem = stem.strip_suffix(".palog").unwrap_or(stem);
    log.with_file_name(format!("{stem}.palog.{what}"))
}
