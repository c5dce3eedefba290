//! The directory of a dataset: how new files and changed ones appear in it, together or not at all.
//!
//! New files are written to a hidden directory in the dataset. A journal names what is to be moved and removed; once it is
//! there, whoever opens the dataset next does what it says, so a run that is killed is either not there or is finished.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::error::Error;
use crate::known::{Known, files};
use crate::plan::Partitions;
use crate::table::Table;

/// Beginning of the names of directories that files are written to; engines pass over names with an underscore.
const STAGING: &str = "_staging-";
/// What is to be moved and removed.
const JOURNAL: &str = "_commit";
/// Held while the directory changes.
const LOCK: &str = "_lock";
/// In a staging directory, held as long as its writer lives.
const ALIVE: &str = "alive";

fn write(error: io::Error) -> Error {
    Error::Write(error)
}

/// A dataset that is changed.
#[derive(Debug)]
pub(crate) struct Dataset {
    root: PathBuf,
    partitions: Partitions,
    staging: tempfile::TempDir,
    _alive: File,
}

impl Dataset {
    /// Opens the dataset, or makes it; finishes what a killed run left behind.
    pub(crate) fn open(root: &Path, partitions: Partitions) -> Result<(Dataset, Known), Error> {
        fs::create_dir_all(root).map_err(write)?;
        let _lock = lock(root)?;
        redo(root)?;
        sweep(root)?;
        let known = Known::read(root, partitions)?;
        let staging = tempfile::Builder::new().prefix(STAGING).tempdir_in(root).map_err(write)?;
        let alive = File::create(staging.path().join(ALIVE)).map_err(write)?;
        alive.lock().map_err(write)?;
        Ok((Dataset { root: root.into(), partitions, staging, _alive: alive }, known))
    }

    /// What its files are parted by.
    pub(crate) fn partitions(&self) -> Partitions {
        self.partitions
    }

    /// A new file, by its path within the dataset.
    pub(crate) fn create(&self, path: &Path) -> Result<File, Error> {
        let path = self.staging.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(write)?;
        File::create_new(path).map_err(write)
    }

    /// Takes in the new files, and takes the rows of `replaced` logs out of the old ones. `logs` were written.
    pub(crate) fn commit(
        self,
        new: Vec<PathBuf>,
        logs: &BTreeSet<&str>,
        replaced: &[String],
        known: &Known,
    ) -> Result<(), Error> {
        let _lock = lock(&self.root)?;
        redo(&self.root)?;
        let now = Known::read(&self.root, self.partitions)?;
        let same = |log: &str| match (known.logs.get(log), now.logs.get(log)) {
            (None, None) => true,
            (Some(was), Some(is)) => was.file == is.file && was.last_line_sha256 == is.last_line_sha256,
            _ => false,
        };
        if let Some(log) = logs.iter().find(|log| !same(log)) {
            return Err(Error::Busy { log: (*log).to_owned() });
        }
        let (mut put, mut remove) = (new, Vec::new());
        let gone: BTreeSet<&str> = replaced.iter().map(String::as_str).collect();
        let sessions: BTreeSet<&Path> =
            gone.iter().filter_map(|log| known.logs.get(*log)).map(|log| log.file.as_path()).collect();
        for table in Table::ALL {
            for file in files(&self.root, table)? {
                if sessions.iter().any(|session| belongs(&file, session)) {
                    match self.without(&file, table, &gone)? {
                        true => put.push(file),
                        false => remove.push(file),
                    }
                }
            }
        }
        let journal = serde_json::json!({
            "staging": self.staging.path().file_name().map(|n| n.to_string_lossy()),
            "remove": remove,
            "put": put,
        });
        let unfinished = self.root.join(JOURNAL).with_extension("new");
        let mut file = File::create(&unfinished).map_err(write)?;
        file.write_all(journal.to_string().as_bytes()).and_then(|()| file.sync_all()).map_err(write)?;
        for path in &put {
            sync_directory(self.staging.path().join(path).parent())?;
        }
        fs::rename(&unfinished, self.root.join(JOURNAL)).map_err(write)?;
        sync_directory(Some(&self.root))?;
        redo(&self.root)
    }

    /// Writes a file anew without the rows of some logs; `false` if no row is left.
    fn without(&self, file: &Path, table: Table, gone: &BTreeSet<&str>) -> Result<bool, Error> {
        let path = self.root.join(file);
        let wrong = |why: String| Error::Dataset { path: path.clone(), why };
        let opened = File::open(&path).map_err(|e| wrong(e.to_string()))?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(opened).map_err(|e| wrong(e.to_string()))?;
        // A row group at a time is as much as the writer of the file held.
        let batches = reader.with_batch_size(1024).build().map_err(|e| wrong(e.to_string()))?;
        let properties = table.properties(self.partitions.word())?;
        let mut writer: Option<ArrowWriter<File>> = None;
        for batch in batches {
            let batch = batch.map_err(|e| wrong(e.to_string()))?;
            let kept = keep(&batch, gone).ok_or_else(|| wrong("the column `log` is missing".into()))??;
            if kept.num_rows() == 0 {
                continue;
            }
            let writer = match &mut writer {
                Some(writer) => writer,
                None => {
                    let file = self.create(file)?;
                    writer.insert(ArrowWriter::try_new(file, table.schema(), Some(properties.clone()))?)
                }
            };
            writer.write(&kept)?;
            if writer.in_progress_size() > 16 << 20 {
                writer.flush()?;
            }
        }
        let Some(mut writer) = writer else { return Ok(false) };
        writer.finish()?;
        writer.inner().sync_all().map_err(write)?;
        Ok(true)
    }
}

/// Whether a file holds rows of the same run and partition as a file of `sessions`.
fn belongs(file: &Path, session: &Path) -> bool {
    let within = |path: &Path| {
        let directory = path.parent()?.components().skip(1).collect::<PathBuf>();
        let stem = path.file_stem()?.to_str()?;
        Some((directory, stem.get(..21)?.to_owned()))
    };
    within(file).is_some_and(|file| within(session).is_some_and(|session| file == session))
}

/// The rows of a batch that are of none of the logs.
fn keep(batch: &RecordBatch, gone: &BTreeSet<&str>) -> Option<Result<RecordBatch, arrow_schema::ArrowError>> {
    let logs = batch.column_by_name("log")?.as_string_opt::<i32>()?;
    let stays: BooleanArray = logs.iter().map(|log| log.map(|log| !gone.contains(log))).collect();
    Some(filter_record_batch(batch, &stays))
}

/// Waits until nobody else changes the directory.
fn lock(root: &Path) -> Result<File, Error> {
    let file = File::options().create(true).append(true).open(root.join(LOCK)).map_err(write)?;
    file.lock().map_err(write)?;
    Ok(file)
}

/// Does what the journal says, if there is one. Doing it again changes nothing.
fn redo(root: &Path) -> Result<(), Error> {
    let path = root.join(JOURNAL);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::Dataset { path, why: e.to_string() }),
    };
    let journal: serde_json::Value =
        serde_json::from_str(&text).map_err(|e| Error::Dataset { path: path.clone(), why: e.to_string() })?;
    let paths = |key: &str| -> Vec<PathBuf> {
        let all = journal[key].as_array().into_iter().flatten();
        all.filter_map(serde_json::Value::as_str).map(PathBuf::from).collect()
    };
    let staging = root.join(journal["staging"].as_str().unwrap_or_default());
    for file in paths("remove") {
        match fs::remove_file(root.join(&file)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(write(e)),
            _ => {}
        }
    }
    for file in paths("put") {
        let to = root.join(&file);
        fs::create_dir_all(to.parent().unwrap_or(root)).map_err(write)?;
        match fs::rename(staging.join(&file), &to) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(write(e)),
            _ => {}
        }
        sync_directory(to.parent())?;
    }
    fs::remove_file(&path).map_err(write)?;
    sync_directory(Some(root))
}

/// Removes what writers left behind that live no more.
fn sweep(root: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(root).map_err(write)? {
        let entry = entry.map_err(write)?;
        if !entry.file_name().to_string_lossy().starts_with(STAGING) {
            continue;
        }
        let dead = match File::open(entry.path().join(ALIVE)) {
            Ok(alive) => match alive.try_lock() {
                Ok(()) => true,
                Err(TryLockError::WouldBlock) => false,
                Err(TryLockError::Error(error)) => return Err(write(error)),
            },
            Err(_) => true,
        };
        if dead {
            fs::remove_dir_all(entry.path()).map_err(write)?;
        }
    }
    Ok(())
}

fn sync_directory(path: Option<&Path>) -> Result<(), Error> {
    path.map_or(Ok(()), |path| File::open(path).and_then(|directory| directory.sync_all())).map_err(write)
}
