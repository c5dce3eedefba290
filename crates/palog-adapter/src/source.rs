//! Sources: where their records stand, and their copies beside the log (spec 01, "Kept sources").

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path};

use palog::blob::hex;
use palog::envelope::{Src, SrcHow};
use palog::events::NoteAdded;
use sha2::{Digest, Sha256};

use crate::report::ImportError;

/// Where a record stands in its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Offset in bytes.
    pub at: u64,
    /// Length in bytes.
    pub len: u64,
    /// Physical line, from 1.
    pub line: u64,
}

/// A reference to a record of the source `source`.
#[must_use]
pub fn src<'s>(source: &str, span: Span, how: Option<SrcHow>) -> Src<'s> {
    Src { source: source.to_owned().into(), at: Some(span.at), len: Some(span.len), table: None, key: None, how }
}

/// An empty note of a kind.
#[must_use]
pub fn note<'n>(kind: &'static str) -> NoteAdded<'n> {
    NoteAdded {
        kind: kind.into(),
        text: None,
        about: None,
        source: None,
        at: None,
        len: None,
        digest: None,
        records: None,
        terminated: None,
        bytes: None,
    }
}

/// An id as a part of the name of a source or of a log: characters that mean something in a path become `-`, and an id that needs
/// that gets a `~` and the beginning of its digest, so that two ids never have one name.
#[must_use]
pub fn name_of(id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !id.is_empty() && id.len() <= 128 && !id.starts_with('.') && id.chars().all(plain) {
        return id.to_owned();
    }
    let safe: String = id.chars().map(|c| if plain(c) { c } else { '-' }).take(64).collect();
    format!("{}~{}", safe.trim_start_matches('.'), &palog::blob::sha256_hex(id.as_bytes())[..24])
}

/// A path within what is imported as a part of the name of a source: bytes that are no text are `%` and two hexadecimal digits, as
/// is `%` itself, so that two paths never have one name. Where that makes a component too long for a file name, it ends in `%~`
/// and the beginning of its digest.
#[must_use]
pub fn path_name(path: &Path) -> String {
    let component = |component: &OsStr| {
        let mut name = String::new();
        for chunk in component.as_encoded_bytes().utf8_chunks() {
            name.push_str(&chunk.valid().replace('%', "%25"));
            for byte in chunk.invalid() {
                name.push_str(&format!("%{byte:02X}"));
            }
        }
        if name.len() > 255 {
            let digest = palog::blob::sha256_hex(component.as_encoded_bytes());
            let end = name.floor_char_boundary(128);
            name.replace_range(end.., &format!("%~{}", &digest[..32]));
        }
        name
    };
    path.iter().map(component).collect::<Vec<_>>().join("/")
}

/// What is known of a source when it was read to its end.
#[derive(Clone, Debug)]
pub struct SourceEnd {
    /// `sha256:` and the digest of its bytes.
    pub digest: String,
    /// Its length in bytes.
    pub len: u64,
    /// Records in it.
    pub records: u64,
    /// Whether the last record had its line ending.
    pub terminated: bool,
}

impl SourceEnd {
    /// The end of a source whose bytes are at hand.
    #[must_use]
    pub fn of(bytes: &[u8], records: u64) -> Self {
        SourceEnd {
            digest: palog::blob::digest(bytes),
            len: bytes.len() as u64,
            records,
            terminated: bytes.ends_with(b"\n"),
        }
    }
}

/// Hashes what is read through it.
#[derive(Debug)]
pub(crate) struct Hashing<R> {
    input: R,
    digest: Sha256,
    len: u64,
}

impl<R: Read> Hashing<R> {
    pub(crate) fn new(input: R) -> Self {
        Hashing { input, digest: Sha256::new(), len: 0 }
    }

    /// The digest and the length of what was read.
    pub(crate) fn finish(self) -> (String, u64) {
        (format!("sha256:{}", hex(&self.digest.finalize())), self.len)
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.input.read(buffer)?;
        self.digest.update(&buffer[..n]);
        self.len += n as u64;
        Ok(n)
    }
}

/// Copies a stream into an unnamed temporary file, so that it can be read more than once.
///
/// # Errors
/// When the stream cannot be read, or the temporary directory has no room.
pub fn spooled(mut input: impl Read) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    io::copy(&mut input, &mut file)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// Copies a source to its place beside the log and opens the copy (R-BYT-015). A `file` is copied by the file system where that can.
///
/// # Errors
/// When the copy cannot be written, or the source cannot be read.
pub fn keep(place: &Path, source: &str, bytes: &mut File, file: Option<&Path>) -> Result<File, ImportError> {
    let path = place.join(source);
    // A name that a record gave must not lead out of the place.
    if Path::new(source).components().any(|c| !matches!(c, Component::Normal(_))) {
        let why = format!("{source:?} is no name for a source");
        return Err(ImportError::Write(io::Error::new(io::ErrorKind::InvalidInput, why).into()));
    }
    let mut copy = || -> io::Result<File> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        match file {
            Some(file) => {
                fs::copy(file, &path)?;
                make_writable(&path)?;
            }
            None => {
                bytes.seek(SeekFrom::Start(0))?;
                let mut out = BufWriter::new(File::create(&path)?);
                io::copy(bytes, &mut out)?;
                out.flush()?;
            }
        }
        File::open(&path)
    };
    copy().map_err(|e| ImportError::Write(io::Error::new(e.kind(), format!("{}: {e}", path.display())).into()))
}

/// A copy of a read-only file is the user's own.
pub(crate) fn make_writable(path: &Path) -> io::Result<()> {
    let mut permissions = fs::metadata(path)?.permissions();
    if permissions.readonly() {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            permissions.set_mode(permissions.mode() | 0o200);
        }
        #[cfg(not(unix))]
        #[expect(clippy::permissions_set_readonly_false, reason = "there is one such bit only")]
        permissions.set_readonly(false);
        fs::set_permissions(path, permissions)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_stays_in_its_place() {
        let place = std::env::temp_dir();
        let mut bytes = spooled(&b"x"[..]).expect("a temporary file");
        for name in ["../palog-escape", "agent/../../palog-escape", "/tmp/palog-escape", ""] {
            assert!(keep(&place, name, &mut bytes, None).is_err(), "{name}");
        }
        assert!(!place.join("../palog-escape").exists());
    }

    #[test]
    fn ids_become_names_that_tell_them_apart() {
        assert_eq!(name_of("ae03de3b0f356c78d"), "ae03de3b0f356c78d");
        assert_ne!(name_of("x y"), name_of("x:y"));
        for id in ["../../etc/passwd", "/", "..", "", "a/b", ".hidden"] {
            let name = name_of(id);
            assert!(!name.contains('/') && !name.starts_with('.') && !name.is_empty(), "{id}: {name}");
            assert_ne!(name_of(&name), name, "no id is called so");
        }
    }

    #[test]
    fn paths_become_names_that_tell_them_apart() {
        assert_eq!(path_name(Path::new("tool-results/a b.txt")), "tool-results/a b.txt");
        assert_eq!(path_name(Path::new("a%b/%")), "a%25b/%25");
        let long = format!("{}.txt", "%".repeat(200));
        let name = path_name(Path::new(&long));
        assert!(name.len() <= 255 && name.contains("%~"), "{name}");
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;
            assert_eq!(path_name(Path::new(OsStr::from_bytes(b"a\xffb"))), "a%FFb");
        }
    }
}
