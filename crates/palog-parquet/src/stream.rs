//! Writes a table of logs as one Arrow stream.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;

use crate::actions::ActionColumns;
use crate::error::Error;
use crate::export::{Report, collect, sources, told};
use crate::input::Input;
use crate::known::Known;
use crate::piece::MAX_ROWS;
use crate::pipeline::{self, Encode, Sink};
use crate::plan::{Partitions, Plan};
use crate::run::Ended;
use crate::sessions::SessionColumns;
use crate::table::Table;

/// Writes `table` of the logs to `output`, in the form of an Arrow IPC stream, in the order of the ids of the logs.
///
/// # Errors
/// When a log cannot be read or the output cannot be written.
pub fn stream(inputs: &[Input], table: Table, output: impl Write + Send, threads: usize) -> Result<Report, Error> {
    let plan = Plan::of(inputs, &Known::default(), Partitions::default())?;
    let names: Vec<&str> = plan.logs.iter().map(|log| log.look.head.log.as_str()).collect();
    let sink = Batches {
        table,
        plan: &plan,
        writer: StreamWriter::try_new(output, &table.schema())?,
        actions: ActionColumns::default(),
        sessions: SessionColumns::default(),
        rows: [0; 3],
    };
    let (mut sink, found) = pipeline::run(&sources(inputs, &plan.logs), &names, sink, threads)?;
    sink.flush(0)?;
    sink.writer.finish()?;
    sink.writer.get_mut().flush().map_err(Error::Write)?;
    let rows = sink.rows;
    let mut report = Report { added: names.len() as u64, unchanged: plan.unchanged, rows, ..Report::default() };
    let troubles = told(inputs, &plan.logs, found);
    report.troubles = plan.troubles;
    report.troubles.extend(troubles);
    Ok(report)
}

struct Batches<'p, W: Write> {
    table: Table,
    plan: &'p Plan,
    writer: StreamWriter<W>,
    actions: ActionColumns,
    sessions: SessionColumns,
    rows: [u64; 3],
}

impl<W: Write> Batches<'_, W> {
    /// Writes what was collected, once there is more than `least`.
    fn flush(&mut self, least: usize) -> Result<(), Error> {
        let (actions, sessions) = (self.actions.len(), self.sessions.len());
        if self.table == Table::Actions && actions > least {
            self.rows[1] += actions as u64;
            self.writer.write(&self.table.batch(self.actions.take())?)?;
        }
        if self.table == Table::Sessions && sessions > least {
            self.rows[2] += sessions as u64;
            self.writer.write(&self.table.batch(self.sessions.take())?)?;
        }
        Ok(())
    }
}

impl<W: Write + Send> Sink for Batches<'_, W> {
    type Encoded = RecordBatch;

    fn encoder(&self) -> Result<Box<dyn Encode<RecordBatch> + Send>, Error> {
        Ok(Box::new(AsItIs))
    }

    fn write(&mut self, _: usize, events: Option<RecordBatch>, ended: Vec<(usize, Ended)>) -> Result<(), Error> {
        if let (Table::Events, Some(batch)) = (self.table, events) {
            self.rows[0] += batch.num_rows() as u64;
            self.writer.write(&batch)?;
        }
        for (log, ended) in &ended {
            collect(&mut self.actions, &mut self.sessions, &self.plan.logs[*log], ended);
            if self.table == Table::Events {
                (self.actions, self.sessions) = Default::default();
            }
            self.flush(MAX_ROWS)?;
        }
        Ok(())
    }
}

/// A batch is written as it is.
struct AsItIs;

impl Encode<RecordBatch> for AsItIs {
    fn encode(&mut self, batch: RecordBatch) -> Result<RecordBatch, Error> {
        Ok(batch)
    }
}
