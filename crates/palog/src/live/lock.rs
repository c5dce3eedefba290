//! One writer at a time (spec 01, "Writing").
//!
//! The lock is an advisory, exclusive one **on the log file itself** wherever locks are advisory (Unix: `flock`):
//!
//! - It belongs to the file, not to a name. Who renames the log, or reaches it by a link or another mount, meets the same
//!   lock; a lock file beside it would let a second writer in. A copy of the log is another file and starts unlocked.
//! - It is gone with the process, however that ends, and nothing lies about afterwards. A lock file has to stay for ever
//!   (who removes it races with who takes it), or its leftovers have to be told from a holder.
//! - NFS (Linux since 2.6.12) turns it into a byte-range lock at the server, and brings the client's cache of that very
//!   file up to date when it is taken. Over SMB locks may be mandatory: a live log does not belong there.
//!
//! What it does not see is a *replaced* file: an editor that saves under the same name. So the name is compared with the
//! open file once the lock is held, and each append finds out whether the file still has a name.
//!
//! On Windows, locks are mandatory and std locks the whole file: readers would be refused. There the lock lies on an
//! empty file beside it, `NAME.palog.lock`, which is never removed.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::error::OpenError;

/// An exclusive lock, held as long as it and the log file are.
#[derive(Debug)]
pub(super) struct Lock {
    #[cfg(not(unix))]
    _beside: File,
}

impl Lock {
    /// Takes the lock of the log `file` at `path`, or fails at once.
    pub(super) fn take(file: &File, path: &Path) -> Result<Self, OpenError> {
        #[cfg(unix)]
        {
            let _ = path;
            try_lock(file)?;
            Ok(Lock {})
        }
        #[cfg(not(unix))]
        {
            let _ = file;
            let path = crate::blob::sibling(path, "lock");
            let beside = File::options().write(true).create(true).truncate(false).open(path)?;
            try_lock(&beside)?;
            Ok(Lock { _beside: beside })
        }
    }
}

fn try_lock(file: &File) -> Result<(), OpenError> {
    file.try_lock().map_err(|e| match e {
        TryLockError::WouldBlock => OpenError::Locked,
        TryLockError::Error(e) => OpenError::Io(e),
    })
}
