//! What is asked of the file system beyond reading and writing: hidden names, durable names, which file it is.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Creates a file `.WHAT.PID.N` in `folder`. The process id alone is not enough: containers that share a volume may have
/// the same ones. So the file must not exist, and the next number is tried if it does.
pub(crate) fn create_hidden(folder: &Path, what: &str) -> io::Result<(PathBuf, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let path = folder.join(format!(".{what}.{}.{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            other => return Ok((path, other?)),
        }
    }
}

/// Makes the names in `directory` durable. Where directories cannot be opened (Windows) the file system sees to it.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    File::open(directory)?.sync_all()
}

/// Which file it is, whatever it is called. Where the platform does not tell (std knows no file index on Windows), its
/// time of creation stands for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity(#[cfg(unix)] (u64, u64), #[cfg(not(unix))] Option<std::time::SystemTime>);

impl Identity {
    pub(crate) fn of(meta: &Metadata) -> Self {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Identity((meta.dev(), meta.ino()))
        }
        #[cfg(not(unix))]
        Identity(meta.created().ok())
    }
}

/// Whether an open file has no name any more: it was deleted, or another file took its name.
pub(crate) fn is_unlinked(meta: &Metadata) -> bool {
    #[cfg(unix)]
    {
        std::os::unix::fs::MetadataExt::nlink(meta) == 0
    }
    #[cfg(not(unix))]
    {
        let _ = meta;
        false
    }
}
