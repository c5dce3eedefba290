//! Why an export stopped.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why an export stopped. Nothing of it is in the dataset then.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A log cannot be read.
    Read(io::Error),
    /// The output cannot be written.
    Write(io::Error),
    /// A file of the dataset cannot be read, or is none of it.
    Dataset {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Somebody else exported one of the same logs in the meantime.
    Busy {
        /// Id of the log.
        log: String,
    },
    /// Rows cannot be encoded: a fault of this crate.
    Encode(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Read(error) => write!(f, "cannot read a log: {error}"),
            Error::Write(error) => write!(f, "cannot write the output: {error}"),
            Error::Dataset { path, why } => write!(f, "{}: {why}", path.display()),
            Error::Busy { log } => {
                write!(f, "another export wrote the log {log} at the same time; nothing was written")
            }
            Error::Encode(why) => write!(f, "rows cannot be encoded: {why}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Read(error) | Error::Write(error) => Some(error),
            Error::Dataset { .. } | Error::Busy { .. } | Error::Encode(_) => None,
        }
    }
}

impl From<arrow_schema::ArrowError> for Error {
    fn from(error: arrow_schema::ArrowError) -> Self {
        match error {
            arrow_schema::ArrowError::IoError(_, error) => Error::Write(error),
            other => Error::Encode(other.to_string()),
        }
    }
}

impl From<parquet::errors::ParquetError> for Error {
    fn from(error: parquet::errors::ParquetError) -> Self {
        match error {
            parquet::errors::ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(error) => Error::Write(*error),
                Err(other) => Error::Encode(other.to_string()),
            },
            other => Error::Encode(other.to_string()),
        }
    }
}
