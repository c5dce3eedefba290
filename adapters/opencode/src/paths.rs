//! Finds the sessions at a path, by what is in the files (vendor layout: `spec/sources/opencode.md`, "Files").

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use palog::diagnostic::Diagnostic;

use crate::export;
use crate::store::Database;
use crate::stream;
use crate::tree::{self, Tree};

/// How much of a file is looked at to tell what it is, in bytes.
const HEAD: u64 = 256 << 10;

/// How every database begins.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// A file, or what was on standard input.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) path: Option<PathBuf>,
    stdin: Option<Arc<File>>,
}

impl Document {
    /// How the user calls it.
    pub(crate) fn name(&self) -> String {
        self.path.as_ref().map_or_else(|| "-".to_owned(), |p| p.display().to_string())
    }

    /// Its path within what was imported.
    pub(crate) fn locator(&self) -> String {
        let name = self.path.as_ref().and_then(|p| p.file_name());
        name.map_or_else(|| "-".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    pub(crate) fn open(&self) -> io::Result<File> {
        let mut file = match (&self.path, &self.stdin) {
            (Some(path), _) => File::open(path)?,
            (None, Some(stdin)) => stdin.try_clone()?,
            (None, None) => return Err(io::ErrorKind::NotFound.into()),
        };
        if self.path.is_none() {
            file.seek(SeekFrom::Start(0))?;
        }
        Ok(file)
    }
}

/// Where a session lies.
#[derive(Clone, Debug)]
pub(crate) enum Home {
    Database(Rc<Database>),
    Tree(Tree),
    Export(Document),
    Stream(Document),
}

/// A session, and where it lies.
#[derive(Clone, Debug)]
pub struct Session {
    /// Native id.
    pub(crate) id: Option<String>,
    /// Native id of the session whose agent started it.
    pub(crate) parent: Option<String>,
    pub(crate) home: Home,
    /// Where the client keeps the outputs that it cut, if that was imported as well.
    pub(crate) outputs: Option<PathBuf>,
}

impl Session {
    /// Native id of the session.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Path of the file that holds it; `None` for standard input. Sessions of one database have the same.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.home {
            Home::Database(database) => Some(&database.path),
            Home::Tree(tree) => Some(&tree.session),
            Home::Export(file) | Home::Stream(file) => file.path.as_deref(),
        }
    }

    /// The session without what lies beside its records.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.outputs = None;
        self
    }

    /// Size of the file that holds it, in bytes, as the file system tells it now.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.path().and_then(|path| path.metadata().ok()).map_or(0, |meta| meta.len())
    }
}

/// What was found at a path.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    /// The sessions.
    pub sessions: Vec<Session>,
    /// Files of these sessions that are not read.
    pub beside: Vec<PathBuf>,
    /// Files whose names say that they hold sessions, and whose content does not.
    pub unrecognised: Vec<PathBuf>,
}

/// Whether the first bytes of a file are those of an export or of a recorded event stream. What a database holds cannot be told
/// so: [`discover`] opens it.
#[must_use]
pub fn recognises(head: &[u8]) -> bool {
    export::recognises(head) || stream::recognises(head)
}

/// Finds the sessions at `path`: the client's data directory, one that holds it, a database, an export or a recording.
///
/// # Errors
/// When `path`, or a directory below it, cannot be read, or a database cannot be opened.
pub fn discover(path: &Path) -> io::Result<Discovery> {
    let mut found = Discovery::default();
    if fs::metadata(path)?.is_dir() {
        below(path, path, &mut found)?;
    } else {
        file(path, &mut found)?;
    }
    Ok(found)
}

/// A session that came from standard input, which `bytes` holds.
///
/// # Errors
/// When it cannot be read.
pub fn session_from_stdin(bytes: File) -> io::Result<Session> {
    let document = Document { path: None, stdin: Some(Arc::new(bytes)) };
    let mut found = Discovery::default();
    documented(document.clone(), &mut found)?;
    let nothing = || Session { id: None, parent: None, home: Home::Export(document), outputs: None };
    Ok(found.sessions.into_iter().next().unwrap_or_else(nothing))
}

fn file(path: &Path, found: &mut Discovery) -> io::Result<()> {
    let mut head = Vec::new();
    File::open(path)?.take(MAGIC.len() as u64).read_to_end(&mut head)?;
    let has_log = beside(path, "-wal").is_file();
    if head == MAGIC || (head.is_empty() && has_log) {
        return database(path, path.parent().unwrap_or(path), found);
    }
    documented(Document { path: Some(path.into()), stdin: None }, found)
}

/// `NAME-wal` beside `NAME`.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn database(path: &Path, root: &Path, found: &mut Discovery) -> io::Result<()> {
    let locator = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
    let Some(database) = Database::open(path, locator).map_err(|found| unreadable(&found))? else {
        found.unrecognised.push(path.into());
        return Ok(());
    };
    let database = Rc::new(database);
    let outputs = path.parent().map(|folder| folder.join("tool-output")).filter(|f| f.is_dir() && root != path);
    found.sessions.extend(database.sessions().into_iter().map(|session| Session {
        id: Some(session.id),
        parent: session.parent,
        home: Home::Database(Rc::clone(&database)),
        outputs: outputs.clone(),
    }));
    Ok(())
}

/// A database that cannot be read, with what can be done about it.
fn unreadable(found: &Diagnostic) -> io::Error {
    let why = found.why.as_deref().unwrap_or_else(|| found.code.meaning());
    io::Error::other(format!("{why} ({}): {}", found.code, found.code.remedy()))
}

/// An export, or a recording.
fn documented(document: Document, found: &mut Discovery) -> io::Result<()> {
    let mut file = document.open()?;
    let mut head = Vec::new();
    (&mut file).take(HEAD).read_to_end(&mut head)?;
    file.seek(SeekFrom::Start(0))?;
    let session = |id, parent, home| Session { id, parent, home, outputs: None };
    if export::recognises(&head) {
        let (id, parent) = export::head(&head).unzip();
        found.sessions.push(session(id, parent.flatten(), Home::Export(document)));
    } else if stream::recognises(&head) {
        let ids = stream::sessions(&mut file)?;
        let all = ids.into_iter().map(|id| session(Some(id), None, Home::Stream(document.clone())));
        found.sessions.extend(all);
    } else {
        let home = Home::Export(document.clone());
        found.unrecognised.extend(document.path);
        found.sessions.push(session(None, None, home));
    }
    Ok(())
}

/// What lies below a directory: databases by their names, and trees of older clients. A session that was moved from a tree into
/// a database is in the database.
fn below(root: &Path, folder: &Path, found: &mut Discovery) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    let first = found.sessions.len();
    for entry in entries.iter().filter(|entry| is_database_name(&entry.file_name().to_string_lossy())) {
        database(&entry.path(), root, found)?;
    }
    let storage = tree::storage(folder);
    if let Some(storage) = &storage {
        for file in tree::sessions(storage)? {
            let id = tree::id_of(&file);
            if found.sessions[first..].iter().any(|s| s.id.as_ref() == Some(&id)) {
                found.beside.push(file);
                continue;
            }
            let locator = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
            let parent = fs::read(&file).ok().and_then(|bytes| {
                let head: crate::record::Head<'_> = serde_json::from_slice(&bytes).ok()?;
                head.parent.map(|p| p.to_string())
            });
            let tree = Tree { root: storage.clone(), session: file, locator };
            found.sessions.push(Session { id: Some(id), parent, home: Home::Tree(tree), outputs: None });
        }
    }
    for entry in entries {
        let path = entry.path();
        let is_known = storage.as_ref().is_some_and(|s| *s == path || *s == folder) || path.ends_with("tool-output");
        if entry.file_type()?.is_dir() && !is_known {
            below(root, &path, found)?;
        }
    }
    Ok(())
}

/// `opencode.db`, and what builds of other channels call it.
fn is_database_name(name: &str) -> bool {
    name.starts_with("opencode") && name.ends_with(".db")
}
