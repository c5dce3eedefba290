//! Exports logs to a dataset of Parquet files.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::file::writer::SerializedFileWriter;

use crate::actions::{self, ActionColumns};
use crate::dataset::Dataset;
use crate::error::Error;
use crate::input::{Input, Trouble, What};
use crate::piece::{MAX_ROWS, Source};
use crate::pipeline::{self, Encode, Sink};
use crate::plan::{Partitions, Plan, Planned};
use crate::run::Ended;
use crate::sessions::{self, Extent, SessionColumns};
use crate::table::Table;

/// A file of `events` is ended after the row group that makes it larger than this, in bytes.
const PART_BYTES: usize = 512 << 20;

/// How logs are exported.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// What the files are parted by.
    pub partitions: Partitions,
    /// How many threads work.
    pub threads: usize,
}

impl Default for Options {
    /// No partitions, two threads.
    fn default() -> Self {
        Options { partitions: Partitions::default(), threads: 2 }
    }
}

/// What an export did.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Logs that were not there.
    pub added: u64,
    /// Logs whose rows were replaced.
    pub replaced: u64,
    /// Logs that were there as they are.
    pub unchanged: u64,
    /// Rows that were written to `events`, `actions` and `sessions`.
    pub rows: [u64; 3],
    /// What was refused, and lines that are no events.
    pub troubles: Vec<Trouble>,
}

/// Exports logs to the dataset in the directory `root`, which is made if it is not there (spec/parquet.md).
///
/// # Errors
/// When a log or the dataset cannot be read, or the output cannot be written; the dataset is as it was then. A log that is
/// refused is no error: the report tells it.
pub fn export(inputs: &[Input], root: &Path, options: &Options) -> Result<Report, Error> {
    let (dataset, known) = Dataset::open(root, options.partitions)?;
    let plan = Plan::of(inputs, &known, options.partitions)?;
    let replaced = plan.replaced.len() as u64;
    let mut report =
        Report { added: plan.logs.len() as u64 - replaced, replaced, unchanged: plan.unchanged, ..Report::default() };
    let mut troubles = Vec::new();
    if !plan.logs.is_empty() {
        let names: Vec<&str> = plan.logs.iter().map(|log| log.look.head.log.as_str()).collect();
        let parts = Parts { dataset: &dataset, plan: &plan, open: None, new: Vec::new(), rows: [0; 3] };
        let (mut parts, found) = pipeline::run(&sources(inputs, &plan.logs), &names, parts, options.threads)?;
        parts.close()?;
        troubles = told(inputs, &plan.logs, found);
        let (new, rows) = (parts.new, parts.rows);
        report.rows = rows;
        dataset.commit(new, &names.iter().copied().collect::<BTreeSet<_>>(), &plan.replaced, &known)?;
    }
    report.troubles = plan.troubles;
    report.troubles.extend(troubles);
    Ok(report)
}

/// The logs, as what is read.
pub(crate) fn sources<'i>(inputs: &'i [Input], logs: &[Planned]) -> Vec<Source<'i>> {
    let source = |log: &Planned| Source { input: &inputs[log.input], bytes: log.look.bytes, partition: log.partition };
    logs.iter().map(source).collect()
}

/// What was found in lines, with the names of their logs.
pub(crate) fn told(
    inputs: &[Input],
    logs: &[Planned],
    found: Vec<(usize, palog::diagnostic::Diagnostic)>,
) -> Vec<Trouble> {
    let trouble = |(log, found): (usize, _)| Trouble {
        input: inputs[logs[log].input].name.clone(),
        what: What::Line(Box::new(found)),
    };
    found.into_iter().map(trouble).collect()
}

/// Adds the rows of a log to the tables `actions` and `sessions`.
pub(crate) fn collect(actions: &mut ActionColumns, sessions: &mut SessionColumns, log: &Planned, ended: &Ended) {
    let name = &log.look.head.log;
    actions::collect(actions, name, &ended.state, &ended.lives);
    let extent = Extent {
        vendor: log.look.head.vendor.as_deref(),
        first_time: ended.lives.first,
        last_time: ended.lives.last,
        lines: ended.lines,
        bytes: log.look.bytes,
        faults: ended.faults,
        last_seq: ended.last_seq,
        last_line_sha256: &log.look.last_line_sha256,
        torn_tail: &log.look.torn_tail,
    };
    sessions::collect(sessions, name, &ended.state, &ended.recovery, &extent);
}

/// The new files of a dataset, one partition after the other.
struct Parts<'p> {
    dataset: &'p Dataset,
    plan: &'p Plan,
    open: Option<Open>,
    new: Vec<PathBuf>,
    rows: [u64; 3],
}

/// The files of the partition at hand.
struct Open {
    partition: usize,
    /// How many files of `events` were begun.
    begun: usize,
    events: Option<SerializedFileWriter<File>>,
    actions: ArrowWriter<File>,
    sessions: ArrowWriter<File>,
    actions_rows: ActionColumns,
    sessions_rows: SessionColumns,
}

impl Parts<'_> {
    fn file(&mut self, table: Table, partition: usize, number: Option<usize>) -> Result<File, Error> {
        let partition = &self.plan.partitions[partition];
        let number = number.map_or_else(String::new, |n| format!("-{n:04}"));
        let name = format!("{}/{}{}{number}.parquet", table.name(), partition.directory, partition.part);
        let path = PathBuf::from(name);
        let file = self.dataset.create(&path)?;
        self.new.push(path);
        Ok(file)
    }

    fn writer(&mut self, table: Table, partition: usize, number: Option<usize>) -> Result<ArrowWriter<File>, Error> {
        let file = self.file(table, partition, number)?;
        let properties = table.properties(self.plan_partitions())?;
        Ok(ArrowWriter::try_new(file, table.schema(), Some(properties))?)
    }

    fn plan_partitions(&self) -> &'static str {
        self.dataset.partitions().word()
    }

    fn turn_to(&mut self, partition: usize) -> Result<&mut Open, Error> {
        if self.open.as_ref().is_none_or(|open| open.partition != partition) {
            self.close()?;
            let actions = self.writer(Table::Actions, partition, None)?;
            let sessions = self.writer(Table::Sessions, partition, None)?;
            let (actions_rows, sessions_rows) = Default::default();
            self.open =
                Some(Open { partition, begun: 0, events: None, actions, sessions, actions_rows, sessions_rows });
        }
        self.open.as_mut().ok_or_else(|| Error::Encode("no partition is open".into()))
    }

    /// Ends the files of the partition at hand.
    fn close(&mut self) -> Result<(), Error> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        open.flush(&mut self.rows, 0)?;
        open.end_events()?;
        for mut writer in [open.actions, open.sessions] {
            writer.finish()?;
            writer.inner().sync_all().map_err(Error::Write)?;
        }
        Ok(())
    }
}

impl Open {
    /// Writes what was collected, once there is more than `least`.
    fn flush(&mut self, rows: &mut [u64; 3], least: usize) -> Result<(), Error> {
        if self.actions_rows.len() > least {
            rows[1] += self.actions_rows.len() as u64;
            self.actions.write(&Table::Actions.batch(self.actions_rows.take())?)?;
        }
        if self.sessions_rows.len() > least {
            rows[2] += self.sessions_rows.len() as u64;
            self.sessions.write(&Table::Sessions.batch(self.sessions_rows.take())?)?;
        }
        Ok(())
    }

    fn end_events(&mut self) -> Result<(), Error> {
        if let Some(mut events) = self.events.take() {
            events.finish()?;
            events.inner().sync_all().map_err(Error::Write)?;
        }
        Ok(())
    }
}

/// A row group of `events` and the number of its rows.
type RowGroup = (u64, Vec<ArrowColumnChunk>);

impl Sink for Parts<'_> {
    type Encoded = RowGroup;

    fn encoder(&self) -> Result<Box<dyn Encode<RowGroup> + Send>, Error> {
        let properties = Table::Events.properties(self.plan_partitions())?;
        let writer = ArrowWriter::try_new(std::io::sink(), Table::Events.schema(), Some(properties))?;
        let (_, factory) = writer.into_serialized_writer()?;
        Ok(Box::new(RowGroups(factory)))
    }

    fn write(&mut self, partition: usize, events: Option<RowGroup>, ended: Vec<(usize, Ended)>) -> Result<(), Error> {
        self.turn_to(partition)?;
        if let Some((rows, chunks)) = events {
            self.rows[0] += rows;
            let begun = self.open.as_ref().filter(|open| open.events.is_none()).map(|open| open.begun);
            if let Some(number) = begun {
                let (writer, _) = self.writer(Table::Events, partition, Some(number))?.into_serialized_writer()?;
                let open = self.turn_to(partition)?;
                (open.events, open.begun) = (Some(writer), number + 1);
            }
            let open = self.turn_to(partition)?;
            if let Some(writer) = &mut open.events {
                let mut group = writer.next_row_group()?;
                for chunk in chunks {
                    chunk.append_to_row_group(&mut group)?;
                }
                group.close()?;
                if writer.bytes_written() > PART_BYTES {
                    open.end_events()?;
                }
            }
        }
        let mut rows = self.rows;
        let plan = self.plan;
        let open = self.turn_to(partition)?;
        for (log, ended) in &ended {
            collect(&mut open.actions_rows, &mut open.sessions_rows, &plan.logs[*log], ended);
            open.flush(&mut rows, MAX_ROWS)?;
        }
        self.rows = rows;
        Ok(())
    }
}

/// Encodes batches as row groups.
struct RowGroups(ArrowRowGroupWriterFactory);

impl Encode<RowGroup> for RowGroups {
    fn encode(&mut self, batch: RecordBatch) -> Result<RowGroup, Error> {
        let mut writers = self.0.create_column_writers(0)?.into_iter();
        let mut chunks = Vec::new();
        for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
            for leaf in compute_leaves(field, array)? {
                let mut writer = writers.next().ok_or_else(|| Error::Encode("a column has no writer".into()))?;
                writer.write(&leaf)?;
                chunks.push(writer.close()?);
            }
        }
        Ok((batch.num_rows() as u64, chunks))
    }
}
