//! What is in a dataset already.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::error::Error;
use crate::plan::Partitions;
use crate::table::{SCHEMA_VERSION, Table};

/// A log in a dataset.
#[derive(Debug)]
pub(crate) struct KnownLog {
    /// The file of `sessions` that holds its row, within the dataset.
    pub(crate) file: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) last_line_sha256: String,
    pub(crate) torn_tail: Vec<u8>,
    /// Whether it was made from another format.
    pub(crate) derived: bool,
}

/// The logs in a dataset.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) logs: BTreeMap<String, KnownLog>,
}

impl Known {
    /// Reads the table `sessions`; a directory that is not there, or is empty, is an empty dataset.
    pub(crate) fn read(root: &Path, partitions: Partitions) -> Result<Known, Error> {
        let mut known = Known::default();
        for file in files(root, Table::Sessions)? {
            let path = root.join(&file);
            let wrong = |why: String| Error::Dataset { path: path.clone(), why };
            let opened = File::open(&path).map_err(|e| wrong(e.to_string()))?;
            let reader = ParquetRecordBatchReaderBuilder::try_new(opened).map_err(|e| wrong(e.to_string()))?;
            let metadata = reader.metadata().file_metadata().key_value_metadata();
            let of = |key: &str| metadata?.iter().find(|pair| pair.key == key)?.value.as_deref();
            if of("palog.schema") != Some(SCHEMA_VERSION) {
                let found = of("palog.schema").unwrap_or("none");
                return Err(wrong(format!("its schema has the version {found}; this program writes {SCHEMA_VERSION}")));
            }
            if of("palog.partitions") != Some(partitions.word()) {
                let found = of("palog.partitions").unwrap_or("none");
                return Err(wrong(format!("the dataset is parted by {found}, not by {}", partitions.word())));
            }
            let columns = ["log", "bytes", "last_line_sha256", "torn_tail", "mapping"];
            let mask = ProjectionMask::columns(reader.parquet_schema(), columns);
            let batches = reader.with_projection(mask).build().map_err(|e| wrong(e.to_string()))?;
            for batch in batches {
                known
                    .take(&batch.map_err(|e| wrong(e.to_string()))?, &file)
                    .ok_or_else(|| wrong("columns are missing".into()))?;
            }
        }
        Ok(known)
    }

    fn take(&mut self, batch: &RecordBatch, file: &Path) -> Option<()> {
        let logs = batch.column_by_name("log")?.as_string_opt::<i32>()?;
        let bytes = batch.column_by_name("bytes")?.as_primitive_opt::<Int64Type>()?;
        let digests = batch.column_by_name("last_line_sha256")?.as_string_opt::<i32>()?;
        let tails = batch.column_by_name("torn_tail")?.as_binary_opt::<i32>()?;
        let mappings = batch.column_by_name("mapping")?;
        for row in 0..batch.num_rows() {
            let log = KnownLog {
                file: file.into(),
                bytes: u64::try_from(bytes.value(row)).ok()?,
                last_line_sha256: digests.value(row).to_owned(),
                torn_tail: if tails.is_null(row) { Vec::new() } else { tails.value(row).to_vec() },
                derived: !mappings.is_null(row),
            };
            self.logs.insert(logs.value(row).to_owned(), log);
        }
        Some(())
    }
}

/// The files of a table, as paths within the dataset, in the order of their names.
pub(crate) fn files(root: &Path, table: Table) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::from(table.name())];
    while let Some(directory) = open.pop() {
        let entries = match fs::read_dir(root.join(&directory)) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(Error::Dataset { path: root.join(&directory), why: e.to_string() }),
        };
        for entry in entries {
            let entry = entry.map_err(|e| Error::Dataset { path: root.join(&directory), why: e.to_string() })?;
            let path = directory.join(entry.file_name());
            if entry.path().is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "parquet") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
