//! The JSON files of older clients, one for each record (`spec/sources/opencode.md`, "Files of older clients"). They are kept
//! like rows: a table for each folder, with the path of the file as the key.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog_adapter::sqlite::{KeptRows, Row};
use palog_adapter::{ImportError, SourceEnd};

use crate::mapper::Mapper;
use crate::record::{Head, Named, Origin, Record};

/// A folder `storage`.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) root: PathBuf,
    /// The file of the session.
    pub(crate) session: PathBuf,
    /// Its path within what was imported.
    pub(crate) locator: String,
}

/// The folder `storage` at a path, if it is there.
pub(crate) fn storage(path: &Path) -> Option<PathBuf> {
    let below = path.join("storage");
    let holds_sessions = |folder: &Path| folder.join("session").is_dir() && folder.join("message").is_dir();
    [path.to_path_buf(), below].into_iter().find(|folder| holds_sessions(folder))
}

/// The files of a folder whose names end in `.json`, by name; none where there is no such folder.
pub(crate) fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "json") && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The files of sessions below a folder `storage`.
pub(crate) fn sessions(storage: &Path) -> io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(storage.join("session"))? {
        let folder = entry?.path();
        if folder.is_dir() {
            all.extend(files(&folder)?);
        }
    }
    all.sort();
    Ok(all)
}

/// The id that a file has by its name.
pub(crate) fn id_of(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

impl Tree {
    /// Writes the messages of the session into its log, and keeps its files in `place`.
    pub(crate) fn write(&self, mapper: &mut Mapper, place: Option<&Path>) -> Result<SourceEnd, ImportError> {
        let session = id_of(&self.session);
        let mut reading = Reading { tree: self, rows: KeptRows::begin(place, &mapper.source)? };
        let mut revert = None;
        if let Some(record) = reading.file(mapper, "session", &self.session)? {
            match record.read::<Head<'_>>() {
                Some(head) => {
                    mapper.session(&record, &head)?;
                    revert = head.revert.map(|revert| (record.origin.clone(), revert));
                }
                None => mapper.odd(&record)?,
            }
        }
        let mut messages = Vec::new();
        for file in self.files(&["message", &session])? {
            messages.extend(reading.file(mapper, "message", &file)?);
        }
        messages.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        for message in &messages {
            let mut parts = Vec::new();
            for file in self.files(&["part", &message.id])? {
                parts.extend(reading.file(mapper, "part", &file)?);
            }
            parts.sort_by(|a, b| a.id.cmp(&b.id));
            mapper.message(message, &parts)?;
        }
        for table in ["todo", "session_diff"] {
            let file = self.root.join(table).join(format!("{session}.json"));
            if file.is_file()
                && let Some(record) = reading.file(mapper, table, &file)?
            {
                mapper.keep(&record, table)?;
            }
        }
        if let Some((origin, revert)) = revert {
            mapper.reverted(&origin, &revert)?;
        }
        mapper.conclude()?;
        reading.rows.finish()
    }

    fn files(&self, below: &[&str]) -> Result<Vec<PathBuf>, ImportError> {
        let folder = below.iter().fold(self.root.clone(), |folder, name| folder.join(name));
        files(&folder).map_err(|error| ImportError::Read { path: folder, error })
    }
}

/// The files of one session while they are read.
struct Reading<'t> {
    tree: &'t Tree,
    rows: KeptRows,
}

impl Reading<'_> {
    /// Reads and keeps a file. One that cannot be read is reported.
    fn file(&mut self, mapper: &mut Mapper, table: &str, file: &Path) -> Result<Option<Record<'static>>, ImportError> {
        let bytes = match fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) => {
                let place = Place { input: Some(file.display().to_string()), ..Place::default() };
                let unreadable = Diagnostic::new(Code::Unreadable, Severity::Error, place).because(error.to_string());
                mapper.log.diagnostics.push(unreadable);
                return Ok(None);
            }
        };
        let path = file.strip_prefix(&self.tree.root).unwrap_or(file).to_string_lossy().into_owned();
        let row = Row::of_file(table, &path, &bytes);
        self.rows.keep(&row)?;
        mapper.input.records += 1;
        *mapper.input.by_type.entry(table.to_owned()).or_default() += 1;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let named: Named<'_> = serde_json::from_str(&text).unwrap_or_default();
        let created = named.time.and_then(|t| t.created);
        let id = named.id.map_or_else(|| id_of(file), |id| id.to_string());
        Ok(Some(Record { kind: table.to_owned().into(), id, created, text: text.into(), origin: Origin::of(&row) }))
    }
}
