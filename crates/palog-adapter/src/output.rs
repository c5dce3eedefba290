//! Where logs go: a directory or a stream.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use palog::blob::{BlobStore, sibling};
use palog::writer::Bulk;

use crate::report::{ImportError, Report};

/// What a target is told of the log that it should make room for.
#[derive(Clone, Debug)]
pub struct LogName {
    /// Native id of the session; of a subagent its agent id.
    pub session: String,
    /// Native id of the session that the subagent belongs to.
    pub parent: Option<String>,
}

impl LogName {
    /// The file name: `<session>.palog.jsonl`, of a subagent `<session>.agent-<id>.palog.jsonl`. Characters that are not
    /// safe in file names everywhere become `-`.
    #[must_use]
    pub fn file_name(&self) -> String {
        let safe = |id: &str| -> String {
            let id = id.trim_start_matches('.');
            let id: String = id
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' })
                .take(100)
                .collect();
            if id.is_empty() { "session".into() } else { id }
        };
        match &self.parent {
            Some(parent) => format!("{}.agent-{}.palog.jsonl", safe(parent), safe(&self.session)),
            None => format!("{}.palog.jsonl", safe(&self.session)),
        }
    }
}

/// The places that belong to one log while it is written.
pub struct Output {
    /// Takes the lines.
    pub log: Box<dyn Write>,
    /// Where large values go.
    pub bulk: Bulk,
    /// An empty directory for the kept sources; `None` where they are not kept.
    pub sources: Option<PathBuf>,
}

/// Takes the logs of an import. Until [`Target::commit`] nothing of a session is visible under its final name.
pub trait Target {
    /// Makes room for a log.
    ///
    /// # Errors
    /// When there is a log of that name, or the place cannot be written.
    fn open(&mut self, name: &LogName) -> Result<Output, ImportError>;

    /// Makes all logs that were opened since the last commit visible, and returns their paths in the order of opening.
    ///
    /// # Errors
    /// When the place cannot be written.
    fn commit(&mut self) -> Result<Vec<Option<PathBuf>>, ImportError>;

    /// Removes all logs that were opened since the last commit.
    fn abort(&mut self);
}

/// Imports one session: all its logs become visible, or none does.
///
/// # Errors
/// Those of `import`, and when the logs cannot be made visible.
pub fn all_or_none(
    target: &mut dyn Target,
    import: impl FnOnce(&mut dyn Target) -> Result<Report, ImportError>,
) -> Result<Report, ImportError> {
    let imported = import(target).and_then(|mut report| {
        for (log, path) in report.logs.iter_mut().zip(target.commit()?) {
            log.path = path;
        }
        Ok(report)
    });
    if imported.is_err() {
        target.abort();
    }
    imported
}

/// A log that is being written under a temporary name.
struct Pending {
    log: PathBuf,
    temporary: PathBuf,
    sources: PathBuf,
    temporary_sources: PathBuf,
    blobs: PathBuf,
    had_blobs: bool,
}

/// Writes each log to a file of its own in a directory, with its blobs and sources beside it.
pub struct Directory {
    root: PathBuf,
    file: Option<PathBuf>,
    pending: Vec<Pending>,
}

impl Directory {
    /// Logs go into the directory `root` under the names that their sessions give.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Directory { root: root.into(), file: None, pending: Vec::new() }
    }

    /// The first log goes to the file `path`; the logs of its subagents go beside it.
    #[must_use]
    pub fn file(path: &Path) -> Self {
        let root = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Directory { root: root.into(), file: Some(path.into()), pending: Vec::new() }
    }
}

impl Target for Directory {
    fn open(&mut self, name: &LogName) -> Result<Output, ImportError> {
        let fail = |path: &Path, error| {
            ImportError::Write(io::Error::new(io::Error::kind(&error), format!("{}: {error}", path.display())).into())
        };
        fs::create_dir_all(&self.root).map_err(|e| fail(&self.root, e))?;
        let log = self.file.take().unwrap_or_else(|| self.root.join(name.file_name()));
        let (sources, blobs) = (sibling(&log, "sources"), sibling(&log, "blobs"));
        for path in [&log, &sources] {
            if path.symlink_metadata().is_ok() {
                return Err(ImportError::Exists { path: path.clone() });
            }
        }
        let hidden = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            path.with_file_name(format!(".{name}.{}", std::process::id()))
        };
        let pending = Pending {
            temporary: hidden(&log),
            temporary_sources: hidden(&sources),
            had_blobs: blobs.exists(),
            log,
            sources,
            blobs,
        };
        fs::create_dir_all(&pending.temporary_sources).map_err(|e| fail(&pending.temporary_sources, e))?;
        let file = fs::File::create(&pending.temporary).map_err(|e| fail(&pending.temporary, e))?;
        let output = Output {
            log: Box::new(BufWriter::with_capacity(1 << 20, file)),
            bulk: Bulk::Blobs(BlobStore::beside(&pending.log)),
            sources: Some(pending.temporary_sources.clone()),
        };
        self.pending.push(pending);
        Ok(output)
    }

    fn commit(&mut self) -> Result<Vec<Option<PathBuf>>, ImportError> {
        let mut paths = Vec::new();
        for pending in std::mem::take(&mut self.pending) {
            let empty = fs::read_dir(&pending.temporary_sources).is_ok_and(|mut d| d.next().is_none());
            let moved = if empty {
                fs::remove_dir(&pending.temporary_sources)
            } else {
                fs::rename(&pending.temporary_sources, &pending.sources)
            };
            moved
                .and_then(|()| fs::rename(&pending.temporary, &pending.log))
                .map_err(|e| ImportError::Write(e.into()))?;
            paths.push(Some(pending.log));
        }
        Ok(paths)
    }

    fn abort(&mut self) {
        // Best effort: what cannot be removed stays under its hidden temporary name.
        for pending in std::mem::take(&mut self.pending) {
            let _ = fs::remove_file(&pending.temporary);
            let _ = fs::remove_dir_all(&pending.temporary_sources);
            if !pending.had_blobs {
                let _ = fs::remove_dir_all(&pending.blobs);
            }
        }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        self.abort();
    }
}

/// Writes one log of a session to a stream, since one stream holds one log; the others are made and dropped.
pub struct Stream<W> {
    out: Option<W>,
    wanted: Option<String>,
    opened: usize,
}

impl<W: Write + 'static> Stream<W> {
    /// The log of the session itself goes to `out`.
    pub fn new(out: W) -> Self {
        Stream { out: Some(out), wanted: None, opened: 0 }
    }

    /// The log of the subagent `agent` goes to `out` instead.
    #[must_use]
    pub fn of_agent(mut self, agent: impl Into<String>) -> Self {
        self.wanted = Some(agent.into());
        self
    }
}

impl<W: Write + 'static> Target for Stream<W> {
    fn open(&mut self, name: &LogName) -> Result<Output, ImportError> {
        self.opened += 1;
        let wanted = self.wanted.as_ref().is_none_or(|agent| *agent == name.session);
        let log: Box<dyn Write> = match self.out.take_if(|_| wanted) {
            Some(out) => Box::new(out),
            None => Box::new(io::sink()),
        };
        Ok(Output { log, bulk: Bulk::Inline, sources: None })
    }

    fn commit(&mut self) -> Result<Vec<Option<PathBuf>>, ImportError> {
        Ok(vec![None; std::mem::take(&mut self.opened)])
    }

    fn abort(&mut self) {}
}
