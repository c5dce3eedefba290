//! Opens rollouts. A compressed one becomes its content: that is what records have places in.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use palog::diagnostic::{Code, Diagnostic, Diagnostics, Place, Severity};
use palog_adapter::source::{keep, spooled};
use palog_adapter::{ImportError, SourceEnd};

use crate::paths::RolloutFile;
use palog_adapter::compressed::{Content, ZSTD};

/// A rollout that is open.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) path: String,
    pub(crate) bytes: File,
    /// Digest and length of the compressed file that it is the content of.
    pub(crate) compressed: Option<SourceEnd>,
    /// What is wrong with its twin.
    pub(crate) found: Diagnostics,
    /// `bytes` is the file itself, and not its content.
    is_file: bool,
}

impl Opened {
    /// Opens a rollout. Of two files, a plain one and a compressed one, the plain one counts, as it does for the client, if it
    /// goes on where the other ends; where it is only the beginning of the other, which is being unpacked, the other counts.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn file(file: &RolloutFile) -> Result<Self, ImportError> {
        let mut opened = Self::at(&file.path)?;
        let Some(twin) = &file.twin else { return Ok(opened) };
        let other = Self::at(twin).and_then(|mut other| {
            let unreadable = |error| ImportError::Read { path: twin.clone(), error };
            let longer = longer(&mut opened.bytes, &mut other.bytes).map_err(unreadable)?;
            Ok((longer, other))
        });
        match other {
            Ok((Longer::First, _)) => {}
            Ok((Longer::Second, other)) => return Ok(other),
            Ok((Longer::Neither, _)) => {
                let why = "the plain file of the same name has other content, and is the one that the client reads";
                opened.found.push(about(twin, Code::LeftBeside, Severity::Warning).because(why));
            }
            Err(error) => {
                opened.found.push(about(twin, Code::Unreadable, Severity::Error).because(error.to_string()));
            }
        }
        Ok(opened)
    }

    /// Opens what was on standard input.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn stdin(bytes: &File) -> Result<Self, ImportError> {
        let unreadable = |error| ImportError::Read { path: "-".into(), error };
        Self::of("-".into(), bytes.try_clone().map_err(unreadable)?, false).map_err(unreadable)
    }

    fn at(path: &Path) -> Result<Self, ImportError> {
        let opened = File::open(path).and_then(|bytes| Self::of(path.display().to_string(), bytes, true));
        opened.map_err(|error| ImportError::Read { path: path.into(), error })
    }

    fn of(path: String, mut bytes: File, is_file: bool) -> io::Result<Self> {
        let mut magic = Vec::new();
        bytes.seek(SeekFrom::Start(0))?;
        Read::by_ref(&mut bytes).take(ZSTD.len() as u64).read_to_end(&mut magic)?;
        bytes.seek(SeekFrom::Start(0))?;
        if magic != ZSTD {
            return Ok(Opened { path, bytes, compressed: None, found: Diagnostics::default(), is_file });
        }
        let mut all = Vec::new();
        bytes.read_to_end(&mut all)?;
        let bytes = spooled(Content::of(all.as_slice()))?;
        Ok(Opened {
            path,
            bytes,
            compressed: Some(SourceEnd::of(&all, 0)),
            found: Diagnostics::default(),
            is_file: false,
        })
    }

    /// Keeps it beside its log. What is read then is the copy, so that a file which grows meanwhile is the same to both.
    ///
    /// # Errors
    /// When the copy cannot be written.
    pub(crate) fn keep(&mut self, file: &RolloutFile, place: Option<&Path>) -> Result<(), ImportError> {
        if let Some(place) = place {
            let path = self.is_file.then_some(file.path.as_path());
            self.bytes = keep(place, &file.source, &mut self.bytes, path)?;
        }
        Ok(())
    }
}

fn about(file: &Path, code: Code, severity: Severity) -> Diagnostic {
    Diagnostic::new(code, severity, Place { input: Some(file.display().to_string()), ..Place::default() })
}

/// Which of two files goes on where the other ends.
#[derive(Debug, PartialEq, Eq)]
enum Longer {
    /// The first one, or both are the same.
    First,
    Second,
    /// They differ.
    Neither,
}

/// Compares two files, and goes back to their beginnings.
fn longer(first: &mut File, second: &mut File) -> io::Result<Longer> {
    first.seek(SeekFrom::Start(0))?;
    second.seek(SeekFrom::Start(0))?;
    let found = {
        let (mut a, mut b) = (BufReader::new(&mut *first), BufReader::new(&mut *second));
        loop {
            let (one, other) = (a.fill_buf()?, b.fill_buf()?);
            let len = one.len().min(other.len());
            if len == 0 {
                break if other.is_empty() { Longer::First } else { Longer::Second };
            }
            if one[..len] != other[..len] {
                break Longer::Neither;
            }
            a.consume(len);
            b.consume(len);
        }
    };
    first.seek(SeekFrom::Start(0))?;
    second.seek(SeekFrom::Start(0))?;
    Ok(found)
}
