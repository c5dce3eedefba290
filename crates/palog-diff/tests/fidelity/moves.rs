//! One move: a log, what is written of it, and what is read back.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use palog::blob::BlobStore;
use palog_diff::{Comparison, Side, compare};
use palog_import::{Directory, Exported, Options, Refused, Subject, Vendor, Wanted, discover, sources_beside};
use tempfile::TempDir;

/// A log in a directory of its own.
pub(crate) struct Log {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    pub(crate) blobs: BlobStore,
}

impl Log {
    pub(crate) fn open(path: &Path) -> Self {
        Log { path: path.into(), file: File::open(path).expect("a log"), blobs: BlobStore::beside(path) }
    }

    fn side(&self) -> Side<'_> {
        Side { log: &self.file, blobs: Some(&self.blobs) }
    }
}

/// Imports every session at `store`, and returns the logs.
pub(crate) fn import(store: &Path, vendor: Vendor) -> (TempDir, Vec<Log>) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut logs = Vec::new();
    for session in discover(store, Some(vendor)).expect("it can be read").sessions {
        let mut target = Directory::new(folder.path());
        let Ok(report) = session.import(&mut target, &Options::default()) else { continue };
        logs.extend(report.logs.iter().filter_map(|log| log.path.as_deref()).map(Log::open));
    }
    (folder, logs)
}

/// What came of a move.
pub(crate) struct Moved {
    pub(crate) exported: Exported,
    pub(crate) comparison: Comparison,
    pub(crate) bytes: Vec<u8>,
}

/// Writes `log` for `to` into an empty store, and compares what is read back from there.
pub(crate) fn through(log: &Log, to: Vendor, wanted: &Wanted) -> Result<Moved, Refused> {
    let sources = sources_beside(&log.path);
    let subject = Subject { log: &log.file, blobs: Some(&log.blobs), sources: Some(&sources) };
    let mut bytes = Vec::new();
    let exported = to.export(subject, wanted, &mut bytes)?;
    let store = tempfile::tempdir().expect("a folder");
    let write = |place: &str, bytes: &[u8]| {
        let path = store.path().join(place);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        fs::write(path, bytes).expect("it can be written");
    };
    write(&exported.place, &bytes);
    for (file, place) in &exported.beside {
        write(place, &fs::read(file).expect("a kept source"));
    }
    let (_folder, read) = import(store.path(), to);
    let back = read.iter().find(|log| {
        let (state, _) = palog::reduce::reduce(&log.file).expect("it reads");
        state.session.as_deref() == Some(&exported.report.session)
    });
    let back = Log::open(&back.unwrap_or_else(|| panic!("{} is not found", exported.place)).path);
    let comparison = compare(log.side(), back.side()).expect("both say something");
    Ok(Moved { exported, comparison, bytes })
}
