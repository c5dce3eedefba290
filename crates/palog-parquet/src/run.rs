//! One log on its way into the tables: parsed in any order of pieces, reduced in the order of its lines.

use std::ops::Range;

use palog::diagnostic::{Code, Diagnostic, Severity};
use palog::envelope::Event;
use palog::events::Data;
use palog::reader::{self, Line};
use palog::recover::{Context, Recovery, recover};
use palog::reduce::Reducer;
use palog::state::{Count, State, Totals};

use crate::events::{EventColumns, EventRow, Lifted, int, row};
use crate::life::Lives;
use crate::piece::Piece;

/// The lines of a piece, read.
pub(crate) struct Parsed<'p> {
    lines: Vec<Result<Line<'p>, &'p Diagnostic>>,
    events: Vec<Result<Event<'p>, Diagnostic>>,
}

impl<'p> Parsed<'p> {
    pub(crate) fn of(piece: &'p Piece) -> Self {
        let lines: Vec<_> = piece.lines().collect();
        #[expect(clippy::result_large_err, reason = "an event is larger than a diagnostic")]
        let read = |line: &Result<Line<'p>, &'p Diagnostic>| match line {
            Ok(line) => reader::parse(*line),
            Err(diagnostic) => Err((*diagnostic).clone()),
        };
        Parsed { events: lines.iter().map(read).collect(), lines }
    }

    /// The payloads, beside the events that they borrow from; `None` where there is no event.
    pub(crate) fn payloads(&self) -> Vec<Option<Result<Data<'_>, serde_json::Error>>> {
        self.events.iter().map(|event| event.as_ref().ok().map(Event::data)).collect()
    }
}

/// What a line adds to the token counts of its session, by its place in the piece.
pub(crate) type Counted = Vec<(usize, [Option<i64>; 5])>;

/// A log whose end is not reached.
#[derive(Default)]
pub(crate) struct Run {
    reducer: Reducer,
    lives: Lives,
    lines: u64,
    faults: u64,
    last_seq: Option<u64>,
    usage: Totals,
}

/// A log that was read to its end.
pub(crate) struct Ended {
    pub(crate) state: State,
    pub(crate) recovery: Recovery,
    pub(crate) lives: Lives,
    pub(crate) lines: u64,
    pub(crate) faults: u64,
    pub(crate) last_seq: Option<u64>,
}

impl Run {
    /// Takes in lines of the log, in their order. What is no event goes to `troubles`.
    pub(crate) fn take(
        &mut self,
        parsed: &Parsed<'_>,
        payloads: &[Option<Result<Data<'_>, serde_json::Error>>],
        entries: Range<usize>,
        counted: &mut Counted,
        troubles: &mut Vec<Diagnostic>,
    ) {
        for at in entries {
            self.lines += 1;
            match (&parsed.events[at], &payloads[at], &parsed.lines[at]) {
                (Ok(event), Some(data), Ok(line)) => {
                    self.last_seq = Some(event.seq);
                    self.reducer.apply_read(event, data.as_ref(), Some(line));
                    match data {
                        Ok(data) => {
                            self.lives.take(event, data);
                            if matches!(data, Data::ModelResponse(_)) {
                                counted.extend(self.counted().map(|counted| (at, counted)));
                            }
                        }
                        Err(error) => {
                            self.faults += 1;
                            let found = Diagnostic::new(Code::BadPayload, Severity::Error, line.place());
                            troubles.push(found.because(error.to_string()).rule("R-ENV-013"));
                        }
                    }
                }
                (Err(fault), ..) => {
                    self.last_seq = None;
                    self.faults += 1;
                    self.reducer.fault(fault.clone());
                    troubles.push(fault.clone());
                }
                (Ok(_), ..) => unreachable!("an event stands in a line and has a payload"),
            }
        }
    }

    /// What was added since the last time.
    fn counted(&mut self) -> Option<[Option<i64>; 5]> {
        let now = self.reducer.usage();
        let was = std::mem::replace(&mut self.usage, now.clone());
        let added = |was: Option<Count>, now: Option<Count>| {
            let (from, to) = (was.map_or(Some(0), |n| int(n.0))?, int(now?.0)?);
            (was != now).then_some(to - from)
        };
        let all = [
            added(was.input, now.input),
            added(was.output, now.output),
            added(was.cache_read, now.cache_read),
            added(was.cache_write, now.cache_write),
            added(was.reasoning, now.reasoning),
        ];
        all.iter().any(Option::is_some).then_some(all)
    }

    /// Ends the log.
    pub(crate) fn end(self) -> Ended {
        let (state, _) = self.reducer.finish();
        let recovery = recover(&state, &Context::new());
        let Run { lives, lines, faults, last_seq, .. } = self;
        Ended { state, recovery, lives, lines, faults, last_seq }
    }
}

/// Adds the rows of lines of a log to the table `events`.
pub(crate) fn collect(
    columns: &mut EventColumns,
    log: &str,
    parsed: &Parsed<'_>,
    payloads: &[Option<Result<Data<'_>, serde_json::Error>>],
    entries: Range<usize>,
    counted: &Counted,
) {
    let first = entries.start;
    let mut counted = counted.iter().skip_while(|(at, _)| *at < first).peekable();
    for at in entries {
        let none = Lifted::default();
        let lifted;
        let mut row = match (&parsed.events[at], &payloads[at]) {
            (Ok(event), Some(data)) => {
                let data = data.as_ref().ok();
                lifted = Lifted::of(event, data);
                row(event, data, &lifted)
            }
            (Ok(event), None) => row(event, None, &none),
            (Err(fault), _) => EventRow { fault: Some(fault.code.as_str()), ..EventRow::default() },
        };
        row.log = Some(log);
        match &parsed.lines[at] {
            Ok(line) => {
                (row.line_number, row.offset) = (int(line.number), int(line.offset));
            }
            Err(fault) => {
                (row.line_number, row.offset) = (fault.place.line.and_then(int), fault.place.offset.and_then(int));
            }
        }
        if let Some((_, [input, output, read, write, reasoning])) = counted.next_if(|(place, _)| *place == at) {
            (row.counted_input, row.counted_output, row.counted_reasoning) = (*input, *output, *reasoning);
            (row.counted_cache_read, row.counted_cache_write) = (*read, *write);
        }
        columns.push(&row);
    }
}
