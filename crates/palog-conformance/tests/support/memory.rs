//! Imports without writing anything.

use std::io::{self, Write};
use std::path::Path;
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

/// The log of the first session at `source`; `None` where no record in it is known.
pub(crate) fn in_memory(source: &Path) -> Result<Option<Vec<u8>>, String> {
    log_at(source, |_| true)
}

/// The log of the session at `source` whose path fits; `None` where there is none, or no record in it is known.
pub(crate) fn log_at(source: &Path, fits: impl Fn(&Path) -> bool) -> Result<Option<Vec<u8>>, String> {
    let found = discover(source, None).map_err(|e| e.to_string())?;
    let Some(session) = found.sessions.iter().find(|s| s.path().is_some_and(&fits)) else { return Ok(None) };
    let shared = Shared::default();
    match session.import(&mut Stream::new(shared.clone()), &Options::default()) {
        Ok(_) => Ok(Some(std::mem::take(&mut *shared.0.lock().map_err(|e| e.to_string())?))),
        Err(ImportError::NothingRecognised { .. }) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}
