//! Why a log was not opened, or an event not appended.

use std::fmt;
use std::io;

use crate::cursor::Cursor;
use crate::diagnostic::{Code, Diagnostic};
use crate::writer::WriteError;

/// Why a log was not opened for writing. Nothing of it was changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The file system refused: the log is not there, is there already, or cannot be written.
    Io(io::Error),
    /// Another writer holds the log ([`Code::Locked`]).
    Locked,
    /// The log must not be written by this crate, or is damaged where it would go on.
    Refused(Box<Diagnostic>),
    /// The first event is too long, or its blobs cannot be written.
    Write(WriteError),
}

impl OpenError {
    /// The diagnostic code, where there is one.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            OpenError::Locked => Some(Code::Locked),
            OpenError::Refused(diagnostic) => Some(diagnostic.code),
            OpenError::Write(WriteError::LineTooLong { .. }) => Some(Code::LineTooLong),
            OpenError::Write(WriteError::Io(_)) | OpenError::Io(_) => None,
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Io(error) => write!(f, "cannot open the log: {error}"),
            OpenError::Locked => f.write_str("another program is writing to the log"),
            OpenError::Refused(diagnostic) => {
                write!(
                    f,
                    "cannot append to the log: {}",
                    diagnostic.why.as_deref().unwrap_or(diagnostic.code.meaning())
                )
            }
            OpenError::Write(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Io(error) => Some(error),
            OpenError::Write(error) => Some(error),
            OpenError::Locked | OpenError::Refused(_) => None,
        }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        OpenError::Io(error)
    }
}

impl From<WriteError> for OpenError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Io(error) => OpenError::Io(error),
            WriteError::LineTooLong { .. } => OpenError::Write(error),
        }
    }
}

/// Why events were not appended. The log is as it was before, unless it says [`AppendError::Poisoned`].
#[derive(Debug)]
#[non_exhaustive]
pub enum AppendError {
    /// The disk, or the blob store, refused. What had reached the file was taken back.
    Io(io::Error),
    /// A line would be longer than readers accept.
    LineTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// An event refers to a blob that is not in the store (R-BYT-012).
    BlobMissing {
        /// Its digest, `sha256:…`.
        digest: String,
    },
    /// The log has another head than the caller expected: decide again.
    HeadMoved {
        /// The head.
        head: Cursor,
    },
    /// The epoch is lower than the newest one of the log: somebody else took the lease.
    StaleEpoch {
        /// The newest epoch.
        newest: u64,
    },
    /// Nothing but notes follows `log.closed` (R-ENV-016).
    Closed,
    /// `log.opened` stands at the beginning of a log only (R-ENV-003).
    OpenedTwice,
    /// The file was changed, replaced or deleted although it is locked ([`Code::ForeignWrite`]); what is there now is left alone.
    ForeignWrite(Box<Diagnostic>),
    /// An earlier failure left it open how much of the log is on the disk. Open the log again.
    Poisoned,
}

impl AppendError {
    /// The diagnostic code, where there is one.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            AppendError::LineTooLong { .. } => Some(Code::LineTooLong),
            AppendError::BlobMissing { .. } => Some(Code::MissingBlob),
            AppendError::HeadMoved { .. } => Some(Code::HeadMoved),
            AppendError::StaleEpoch { .. } => Some(Code::StaleEpoch),
            AppendError::Closed => Some(Code::Closed),
            AppendError::OpenedTwice => Some(Code::NotOpened),
            AppendError::ForeignWrite(diagnostic) => Some(diagnostic.code),
            AppendError::Io(_) | AppendError::Poisoned => None,
        }
    }
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AppendError::Io(error) => write!(f, "cannot append to the log: {error}"),
            AppendError::LineTooLong { len } => WriteError::LineTooLong { len: *len }.fmt(f),
            AppendError::BlobMissing { digest } => {
                write!(f, "the event refers to the blob {digest}, which is not there")
            }
            AppendError::HeadMoved { head } => write!(f, "the log has grown: its head is {head}"),
            AppendError::StaleEpoch { newest } => write!(f, "the epoch is stale: the newest one is {newest}"),
            AppendError::Closed => f.write_str("the log is closed"),
            AppendError::OpenedTwice => f.write_str("a log is opened once"),
            AppendError::ForeignWrite(diagnostic) => {
                f.write_str(diagnostic.why.as_deref().unwrap_or(diagnostic.code.meaning()))
            }
            AppendError::Poisoned => {
                f.write_str("an earlier write failed and could not be taken back; open the log again")
            }
        }
    }
}

impl std::error::Error for AppendError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let AppendError::Io(error) = self { Some(error) } else { None }
    }
}

impl From<io::Error> for AppendError {
    fn from(error: io::Error) -> Self {
        AppendError::Io(error)
    }
}

impl From<WriteError> for AppendError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Io(error) => AppendError::Io(error),
            WriteError::LineTooLong { len } => AppendError::LineTooLong { len },
        }
    }
}
