//! Reads, reduces and encodes pieces on several threads; what comes out is in the order of the input, whatever their number.
//!
//! A worker takes the next piece, parses it, waits until the pieces before are reduced, reduces it, encodes its rows, waits
//! until the pieces before are written, and writes it. So the reducer sees each log from its first line to its last, and
//! two workers are never further apart than a piece.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;

use arrow_array::RecordBatch;
use palog::diagnostic::Diagnostic;

use crate::error::Error;
use crate::events::EventColumns;
use crate::piece::{Piece, Pieces, Source};
use crate::run::{Counted, Ended, Parsed, Run, collect};
use crate::table::Table;

/// Where encoded pieces go.
pub(crate) trait Sink: Send {
    /// A piece of the table `events`, ready to be written.
    type Encoded: Send;

    /// Makes encoders, one for each worker.
    fn encoder(&self) -> Result<Box<dyn Encode<Self::Encoded> + Send>, Error>;

    /// Takes a piece of a partition and the logs that end in it, in the order of the input.
    fn write(
        &mut self,
        partition: usize,
        events: Option<Self::Encoded>,
        ended: Vec<(usize, Ended)>,
    ) -> Result<(), Error>;
}

/// Encodes rows of the table `events`, without a look at other pieces.
pub(crate) trait Encode<T> {
    fn encode(&mut self, batch: RecordBatch) -> Result<T, Error>;
}

/// Lets through one after the other, in the order of their turns.
struct Gate<T> {
    inside: Mutex<(u64, T)>,
    opened: Condvar,
}

impl<T> Gate<T> {
    fn new(inside: T) -> Self {
        Gate { inside: Mutex::new((0, inside)), opened: Condvar::new() }
    }

    /// Does `work` once all turns before have passed; `None` if one of them failed.
    fn pass<R>(&self, turn: u64, work: impl FnOnce(&mut T) -> Result<R, Error>) -> Option<Result<R, Error>> {
        let mut inside = lock(&self.inside);
        while inside.0 < turn {
            inside = self.opened.wait(inside).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        if inside.0 != turn {
            return None;
        }
        let result = work(&mut inside.1);
        inside.0 = if result.is_ok() { turn + 1 } else { u64::MAX };
        self.opened.notify_all();
        Some(result)
    }

    /// Lets nobody through any more.
    fn close(&self) {
        lock(&self.inside).0 = u64::MAX;
        self.opened.notify_all();
    }
}

/// A worker that panicked ends the process' work as a whole: its gates are closed, and the panic is passed on.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The log whose end is not reached, and what was found in the pieces so far, by the place of the source.
type Open = (Option<Run>, Vec<(usize, Diagnostic)>);

/// What the workers share.
struct Shared<'i, S> {
    /// What comes next, and its turn.
    pieces: Mutex<(u64, Pieces<'i>)>,
    reduced: Gate<Open>,
    written: Gate<S>,
    names: &'i [&'i str],
}

/// Closes the gates when a worker ends before its work is done, also by a panic.
struct Guard<'a, 'i, S>(&'a Shared<'i, S>, bool);

impl<S> Drop for Guard<'_, '_, S> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.reduced.close();
            self.0.written.close();
        }
    }
}

/// Puts all sources through; `names` are the ids of their logs, `keep` tells whether the sink wants rows of events. Returns
/// the sink and what is wrong with lines, by the place of the source.
pub(crate) fn run<S: Sink>(
    sources: &[Source<'_>],
    names: &[&str],
    sink: S,
    threads: usize,
) -> Result<(S, Vec<(usize, Diagnostic)>), Error> {
    let encoders = (0..threads.max(1)).map(|_| sink.encoder()).collect::<Result<Vec<_>, _>>()?;
    let shared = Shared {
        pieces: Mutex::new((0, Pieces::new(sources))),
        reduced: Gate::new((None, Vec::new())),
        written: Gate::new(sink),
        names,
    };
    let results: Vec<Result<(), Error>> = thread::scope(|scope| {
        let workers: Vec<_> = encoders.into_iter().map(|encoder| scope.spawn(|| work(&shared, encoder))).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    results.into_iter().collect::<Result<(), Error>>()?;
    let (_, (_, found)) = shared.reduced.inside.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (_, sink) = shared.written.inside.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok((sink, found))
}

fn work<S: Sink>(shared: &Shared<'_, S>, mut encoder: Box<dyn Encode<S::Encoded> + Send>) -> Result<(), Error> {
    let mut guard = Guard(shared, false);
    let (mut piece, mut columns) = (Piece::default(), EventColumns::default());
    loop {
        let turn = {
            let mut pieces = lock(&shared.pieces);
            if !pieces.1.next(&mut piece).map_err(Error::Read)? {
                break;
            }
            pieces.0 += 1;
            pieces.0 - 1
        };
        let parsed = Parsed::of(&piece);
        let payloads = parsed.payloads();
        let mut counted = Counted::new();
        let reduced = shared.reduced.pass(turn, |(open, found)| {
            let mut ended = Vec::new();
            for segment in &piece.segments {
                let mut run = if segment.begins { Run::default() } else { open.take().unwrap_or_default() };
                let mut troubles = Vec::new();
                run.take(&parsed, &payloads, segment.entries.clone(), &mut counted, &mut troubles);
                found.extend(troubles.into_iter().map(|trouble| (segment.log, trouble)));
                if segment.ends {
                    ended.push((segment.log, run.end()));
                } else {
                    *open = Some(run);
                }
            }
            Ok(ended)
        });
        let Some(ended) = reduced else { break };
        let ended = ended?;
        for segment in &piece.segments {
            let log = shared.names[segment.log];
            collect(&mut columns, log, &parsed, &payloads, segment.entries.clone(), &counted);
        }
        drop(payloads);
        drop(parsed);
        let encoded = if columns.len() > 0 {
            let (lines, bytes) = piece.give_lines();
            columns.give_lines(lines);
            let encoded = encoder.encode(Table::Events.batch(columns.take())?)?;
            piece.take_back(bytes);
            Some(encoded)
        } else {
            None
        };
        let Some(written) = shared.written.pass(turn, |sink| sink.write(piece.partition, encoded, ended)) else {
            break;
        };
        written?;
    }
    guard.1 = true;
    Ok(())
}
