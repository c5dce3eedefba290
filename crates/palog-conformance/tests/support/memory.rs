//! Imports without writing anything.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use palog_import::{ImportError, Options, Stream, discover};

/// Bytes that can be had back from whoever was given a handle.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().map_err(|e| io::Error::other(e.to_string()))?.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The transcript of a session, and its log; `None` where no record in it is known.
pub(crate) type Imported = (PathBuf, Option<Vec<u8>>);

/// Every session at `source`.
pub(crate) fn in_memory(source: &Path) -> Result<Vec<Imported>, String> {
    let found = discover(source, None).map_err(|e| e.to_string())?;
    let mut logs = Vec::new();
    for session in &found.sessions {
        let shared = Shared::default();
        let log = match session.import(&mut Stream::new(shared.clone()), &Options::default()) {
            Ok(_) => Some(std::mem::take(&mut *shared.0.lock().map_err(|e| e.to_string())?)),
            Err(ImportError::NothingRecognised { .. }) => None,
            Err(error) => return Err(error.to_string()),
        };
        logs.push((session.path().unwrap_or(source).to_path_buf(), log));
    }
    Ok(logs)
}

/// The log of the one session in a file.
pub(crate) fn log_of(file: &Path) -> Result<Option<Vec<u8>>, String> {
    let mut logs = in_memory(file)?;
    if logs.len() > 1 {
        Err(format!("{} sessions in one file", logs.len()))
    } else {
        Ok(logs.pop().and_then(|(_, log)| log))
    }
}
