//! Where logs go: a directory or a stream.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use palog::blob::{BlobStore, sibling};
use palog::writer::Bulk;

use crate::report::{ImportError, Report};
use crate::source::name_of;

/// What a target is told of the log that it should make room for.
#[derive(Clone, Debug)]
pub struct LogName {
    /// Native id of the session; of a subagent its agent id.
    pub session: String,
    /// Native id of the session that the subagent belongs to.
    pub parent: Option<String>,
}

impl LogName {
    /// The file name: `<session>.palog.jsonl`, of a subagent `<session>.agent-<id>.palog.jsonl`. Ids that are not
    /// safe in file names everywhere are changed ([`name_of`]).
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}.palog.jsonl", self.stem())
    }

    /// The file name of the log number `n` of a session that stands in several files.
    fn numbered(&self, n: u32) -> String {
        format!("{}.{n}.palog.jsonl", self.stem())
    }

    fn stem(&self) -> String {
        match &self.parent {
            Some(parent) => format!("{}.agent-{}", name_of(parent), name_of(&self.session)),
            None => name_of(&self.session),
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
    /// The target has a log of this name already, which it wrote itself: the session stands in more than one file.
    pub again: bool,
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
    /// When the place cannot be written, or was taken meanwhile; then [`Target::abort`] takes back what is visible.
    fn commit(&mut self) -> Result<Vec<Option<PathBuf>>, ImportError>;

    /// Removes all logs that were opened since the last commit that succeeded.
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
    /// What stands under its final name.
    has_sources: bool,
    has_log: bool,
}

impl Pending {
    fn place_sources(&mut self) -> io::Result<()> {
        if fs::read_dir(&self.temporary_sources)?.next().is_none() {
            return fs::remove_dir(&self.temporary_sources);
        }
        if is_there(&self.sources) {
            return Err(taken(&self.sources));
        }
        fs::rename(&self.temporary_sources, &self.sources)?;
        self.has_sources = true;
        Ok(())
    }

    fn place_log(&mut self) -> io::Result<()> {
        match fs::hard_link(&self.temporary, &self.log) {
            Ok(()) => {
                self.has_log = true;
                fs::remove_file(&self.temporary)
            }
            Err(_) if is_there(&self.log) => Err(taken(&self.log)),
            // Some file systems have no links; there, two that write the same log at the same moment are not told apart.
            Err(_) => {
                fs::rename(&self.temporary, &self.log)?;
                self.has_log = true;
                Ok(())
            }
        }
    }

    /// Best effort: what cannot be removed stays.
    fn remove(&self) {
        let _ = fs::remove_file(&self.temporary);
        let _ = fs::remove_dir_all(&self.temporary_sources);
        if self.has_log {
            let _ = fs::remove_file(&self.log);
        }
        if self.has_sources {
            let _ = fs::remove_dir_all(&self.sources);
        }
        if !self.had_blobs {
            let _ = fs::remove_dir_all(&self.blobs);
        }
    }
}

/// Whether something has this name, also a link to nowhere.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn taken(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, format!("{} was made by another program meanwhile", path.display()))
}

/// Writes each log to a file of its own in a directory, with its blobs and sources beside it.
pub struct Directory {
    root: PathBuf,
    file: Option<PathBuf>,
    pending: Vec<Pending>,
    /// The logs that were opened, each with the number that the next one of its name would get.
    own: HashMap<PathBuf, u32>,
}

impl Directory {
    /// Logs go into the directory `root` under the names that their sessions give.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Directory { root: root.into(), file: None, pending: Vec::new(), own: HashMap::new() }
    }

    /// The first log goes to the file `path`; the logs of its subagents go beside it.
    #[must_use]
    pub fn file(path: &Path) -> Self {
        let root = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut directory = Directory::new(root);
        directory.file = Some(path.into());
        directory
    }

    /// The path of a log, and whether there are others of its name.
    fn path_of(&mut self, name: &LogName) -> (PathBuf, bool) {
        let first = self.file.take().unwrap_or_else(|| self.root.join(name.file_name()));
        let Some(mut number) = self.own.get(&first).copied() else { return (first, false) };
        loop {
            let path = self.root.join(name.numbered(number));
            number += 1;
            if !self.own.contains_key(&path) {
                self.own.insert(first, number);
                return (path, true);
            }
        }
    }
}

impl Target for Directory {
    fn open(&mut self, name: &LogName) -> Result<Output, ImportError> {
        let fail = |path: &Path, error| {
            ImportError::Write(io::Error::new(io::Error::kind(&error), format!("{}: {error}", path.display())).into())
        };
        fs::create_dir_all(&self.root).map_err(|e| fail(&self.root, e))?;
        let (log, again) = self.path_of(name);
        let (sources, blobs) = (sibling(&log, "sources"), sibling(&log, "blobs"));
        for path in [&log, &sources] {
            if is_there(path) {
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
            had_blobs: is_there(&blobs),
            log,
            sources,
            blobs,
            has_sources: false,
            has_log: false,
        };
        fs::create_dir_all(&pending.temporary_sources).map_err(|e| fail(&pending.temporary_sources, e))?;
        let file = fs::File::create(&pending.temporary).map_err(|e| fail(&pending.temporary, e))?;
        let output = Output {
            log: Box::new(BufWriter::with_capacity(1 << 20, file)),
            bulk: Bulk::Blobs(BlobStore::beside(&pending.log)),
            sources: Some(pending.temporary_sources.clone()),
            again,
        };
        self.own.insert(pending.log.clone(), 2);
        self.pending.push(pending);
        Ok(output)
    }

    fn commit(&mut self) -> Result<Vec<Option<PathBuf>>, ImportError> {
        let mut placed = self.pending.iter_mut().try_for_each(Pending::place_sources);
        if placed.is_ok() {
            placed = self.pending.iter_mut().try_for_each(Pending::place_log);
        }
        placed.map_err(|e| ImportError::Write(e.into()))?;
        Ok(std::mem::take(&mut self.pending).into_iter().map(|pending| Some(pending.log)).collect())
    }

    fn abort(&mut self) {
        for pending in std::mem::take(&mut self.pending) {
            pending.remove();
            self.own.remove(&pending.log);
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
    overflow: Option<BlobStore>,
    opened: usize,
}

impl Stream<io::Sink> {
    /// All logs are made and dropped: what counts is the report.
    #[must_use]
    pub fn nowhere() -> Self {
        Stream { out: None, wanted: None, overflow: None, opened: 0 }
    }
}

impl<W: Write + 'static> Stream<W> {
    /// The log of the session itself goes to `out`.
    pub fn new(out: W) -> Self {
        Stream { out: Some(out), wanted: None, overflow: None, opened: 0 }
    }

    /// Values that would make a line longer than readers accept go into `store`. Without one, they are refused.
    #[must_use]
    pub fn overflowing_into(mut self, store: BlobStore) -> Self {
        self.overflow = Some(store);
        self
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
        let (log, bulk): (Box<dyn Write>, Bulk) = match self.out.take_if(|_| wanted) {
            Some(out) => (Box::new(out), self.overflow.clone().map_or(Bulk::Inline, Bulk::Overflow)),
            None => (Box::new(io::sink()), Bulk::Discarded),
        };
        Ok(Output { log, bulk, sources: None, again: false })
    }

    fn commit(&mut self) -> Result<Vec<Option<PathBuf>>, ImportError> {
        Ok(vec![None; std::mem::take(&mut self.opened)])
    }

    fn abort(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(session: &str) -> LogName {
        LogName { session: session.into(), parent: None }
    }

    /// Opens logs with something in each of their places.
    fn open(target: &mut Directory, sessions: &[&str]) {
        for session in sessions {
            let mut output = target.open(&name(session)).expect("there is room");
            output.log.write_all(b"{}\n").expect("it can be written");
            fs::write(output.sources.expect("a place").join("transcript"), session).expect("it can be written");
            let Bulk::Blobs(blobs) = output.bulk else { panic!("a place for blobs") };
            blobs.put(session.as_bytes(), "text/plain", None).expect("it can be written");
        }
    }

    fn entries(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn all_logs_of_a_session_become_visible_or_none() {
        let folder = tempfile::tempdir().expect("a folder");
        for taken in ["b.palog.jsonl", "b.palog.sources/x", "c.palog.jsonl", "c.palog.sources/x"] {
            let mut target = Directory::new(folder.path());
            open(&mut target, &["a", "b", "c"]);
            // Somebody else takes the place meanwhile.
            let path = folder.path().join(taken);
            fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
            fs::write(&path, "theirs").expect("it can be written");
            let before = taken.split('/').next().expect("a name").to_owned();
            target.commit().expect_err("the place is taken");
            target.abort();
            assert_eq!(entries(folder.path()), [before], "{taken}");
            assert_eq!(fs::read(&path).expect("it is there"), b"theirs");
            let theirs = folder.path().join(taken.split('/').next().expect("a name"));
            let removed = if theirs.is_dir() { fs::remove_dir_all(&theirs) } else { fs::remove_file(&theirs) };
            removed.expect("it can be removed");
        }
        let mut target = Directory::new(folder.path());
        open(&mut target, &["a", "b", "c"]);
        assert_eq!(target.commit().expect("the places are free").len(), 3);
        assert_eq!(entries(folder.path()).len(), 9);
    }

    #[test]
    fn an_import_that_stops_takes_away_only_what_it_made() {
        let folder = tempfile::tempdir().expect("a folder");
        #[cfg(unix)]
        std::os::unix::fs::symlink("nowhere", folder.path().join("a.palog.blobs")).expect("a link");
        let mut target = Directory::new(folder.path());
        target.open(&name("a")).expect("there is room");
        target.abort();
        #[cfg(unix)]
        assert_eq!(entries(folder.path()), ["a.palog.blobs"]);
    }

    #[test]
    fn logs_of_one_name_are_numbered() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut target = Directory::new(folder.path());
        let again = |target: &mut Directory, session: &str| target.open(&name(session)).expect("there is room").again;
        assert!(!again(&mut target, "a"));
        assert!(again(&mut target, "a"));
        assert!(!again(&mut target, "b"));
        target.commit().expect("the places are free");
        assert!(again(&mut target, "a"));
        target.commit().expect("the places are free");
        let logs: Vec<String> = entries(folder.path()).into_iter().filter(|name| name.ends_with(".jsonl")).collect();
        assert_eq!(logs, ["a.2.palog.jsonl", "a.3.palog.jsonl", "a.palog.jsonl", "b.palog.jsonl"]);
        assert!(matches!(Directory::new(folder.path()).open(&name("a")), Err(ImportError::Exists { .. })));
    }
}
