//! Logs to export, and what a dataset holds.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use palog_parquet::Table;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// The conformance fixtures.
pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance-fixtures")
}

/// The directories below `directory`, in the order of their names.
pub(crate) fn directories(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

/// Imports every snapshot of every fixture, each into a directory of its own below `into`, and returns the logs of each.
pub(crate) fn import_all(into: &Path) -> Vec<Vec<PathBuf>> {
    let mut all = Vec::new();
    let fixtures = directories(&fixtures().join("sources")).into_iter().flat_map(|vendor| directories(&vendor));
    for fixture in fixtures {
        let mut snapshots = directories(&fixture);
        if snapshots.is_empty() {
            snapshots.push(fixture);
        }
        for snapshot in snapshots {
            let logs = import(&snapshot, &into.join(all.len().to_string()));
            if !logs.is_empty() {
                all.push(logs);
            }
        }
    }
    all
}

/// Imports the sessions below `path`, and returns their logs.
pub(crate) fn import(path: &Path, into: &Path) -> Vec<PathBuf> {
    let found = palog_import::discover(path, None).expect("a fixture can be read");
    for session in found.sessions {
        let mut target = palog_import::Directory::new(into);
        match session.import(&mut target, &palog_import::Options::default()) {
            Ok(_) => {}
            // Files beside the sessions, such as an empty one that a receiver of traces left.
            Err(palog_import::ImportError::NothingRecognised { .. }) => {}
            // An earlier or later state of the same session.
            Err(palog_import::ImportError::Exists { .. }) => {}
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
    if into.is_dir() { logs_in(into) } else { Vec::new() }
}

/// The logs in a directory.
pub(crate) fn logs_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.to_string_lossy().ends_with(".palog.jsonl")).collect();
    found.sort();
    found
}

/// The files of a table.
pub(crate) fn files(dataset: &Path, table: Table) -> Vec<PathBuf> {
    fn below(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                below(&path, found);
            } else {
                assert!(path.extension().is_some_and(|e| e == "parquet"), "{}", path.display());
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    below(&dataset.join(table.name()), &mut found);
    found.sort();
    found
}

/// All rows of a table.
pub(crate) fn read(dataset: &Path, table: Table) -> Vec<RecordBatch> {
    let open = |path: PathBuf| {
        let reader =
            ParquetRecordBatchReaderBuilder::try_new(File::open(path).expect("a file")).expect("a Parquet file");
        let batches: Vec<_> = reader.build().expect("a reader").map(|batch| batch.expect("a batch")).collect();
        batches
    };
    files(dataset, table).into_iter().flat_map(open).collect()
}

/// The lines of each log, out of the table `events` alone.
pub(crate) fn rebuild(batches: &[RecordBatch]) -> BTreeMap<String, Vec<u8>> {
    let mut lines = BTreeMap::<String, BTreeMap<i64, Vec<u8>>>::new();
    for batch in batches {
        let column = |name: &str| batch.column_by_name(name).expect("a column");
        let (logs, line) = (column("log").as_string::<i32>(), column("line").as_binary::<i32>());
        let numbers = column("line_number").as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let log = lines.entry(logs.value(row).to_owned()).or_default();
            let before = log.insert(numbers.value(row), line.value(row).to_vec());
            assert!(before.is_none(), "line {} stands twice", numbers.value(row));
        }
    }
    let join = |lines: BTreeMap<i64, Vec<u8>>| {
        assert!(lines.keys().copied().eq(1..=i64::try_from(lines.len()).expect("few")), "a line is missing");
        lines
            .into_values()
            .flat_map(|mut line| {
                line.push(b'\n');
                line
            })
            .collect()
    };
    lines.into_iter().map(|(log, lines)| (log, join(lines))).collect()
}

/// The values of a column of strings.
pub(crate) fn strings(batches: &[RecordBatch], name: &str) -> Vec<Option<String>> {
    let values = |batch: &RecordBatch| {
        let column = batch.column_by_name(name).expect("a column").as_string::<i32>().clone();
        column.iter().map(|value| value.map(ToOwned::to_owned)).collect::<Vec<_>>()
    };
    batches.iter().flat_map(values).collect()
}

/// The values of a column of integers.
pub(crate) fn integers(batches: &[RecordBatch], name: &str) -> Vec<Option<i64>> {
    let values = |batch: &RecordBatch| {
        let column = batch.column_by_name(name).expect("a column").as_primitive::<Int64Type>().clone();
        column.iter().collect::<Vec<_>>()
    };
    batches.iter().flat_map(values).collect()
}

/// Rows of all batches.
pub(crate) fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

/// Whether a column is null in a row of the only batch.
pub(crate) fn is_null(batches: &[RecordBatch], name: &str, row: usize) -> bool {
    batches[0].column_by_name(name).expect("a column").is_null(row)
}
