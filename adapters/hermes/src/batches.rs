//! Rows that repeat others: what a compaction puts in again, and what a branch takes along. And rows that were taken back.
//!
//! No row says that it is a copy. A copy has the role, the content and the calls of an earlier row, and was written in one
//! transaction with the summary, or has the time of what it repeats.

use std::collections::HashMap;

use palog::blob::sha256_hex;
use palog_adapter::ids::{EventId, Ids};

use crate::record::{Content, Record};
use crate::texts;

/// Rows of one transaction have times that differ by microseconds; the client does nothing else so fast.
const TOGETHER: f64 = 0.05;

/// As much of a row as it takes to find what it repeats.
#[derive(Debug)]
pub(crate) struct Sketch {
    /// Stands for role, content and calls.
    same: String,
    time: Option<f64>,
    active: bool,
    compacted: bool,
    summary: bool,
    /// The first event of the row.
    event: EventId,
}

impl Sketch {
    /// Of a record whose events `ids` makes.
    pub(crate) fn of(record: &Record, ids: &Ids) -> Self {
        let content = record.content();
        let summary = texts::is_summary(record, &content);
        let said = match &content {
            Content::Nothing => "",
            // A summary may stand in front of the message that is repeated.
            Content::Text(text) if summary => texts::words_behind(text).unwrap_or(text),
            Content::Text(text) => text,
            Content::Json(json) => json.get(),
        };
        let calls = record.value("tool_calls");
        let call = record.text("tool_call_id").unwrap_or_default();
        let role = record.text("role").unwrap_or_default();
        let parts = [&*role, said, calls.as_ref().map_or("", |calls| calls.get()), &*call];
        let text: String = parts.iter().map(|part| format!("{}:{part}", part.len())).collect();
        Sketch {
            same: sha256_hex(text.as_bytes()),
            time: record.real("timestamp"),
            active: record.flag("active", true),
            compacted: record.flag("compacted", false),
            summary,
            event: record.event(ids, 0),
        }
    }

    fn together(&self, other: &Sketch) -> bool {
        self.time.zip(other.time).is_some_and(|(a, b)| (a - b).abs() < TOGETHER)
    }
}

/// The event that a row repeats.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Repeats {
    /// It is in the same log.
    Here(EventId),
    /// It is in the log of the session that this one came out of.
    There(EventId),
}

/// What a row is among its neighbours.
#[derive(Clone, Debug, Default)]
pub(crate) struct Planned {
    pub(crate) repeats: Option<Repeats>,
    /// The last row of what a compaction wrote: everything that the model sees from here on.
    pub(crate) window: Option<Vec<EventId>>,
    /// The row was taken back.
    pub(crate) undone: bool,
}

/// How a session began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// With nothing.
    Empty,
    /// With a copy of what another session's model saw.
    Branch,
    /// With what a compaction left of another session.
    Compacted,
}

/// Tells what each row is. `before` are the rows of the session that this one came out of.
pub(crate) fn plan(rows: &[Sketch], beginning: Beginning, before: &[Sketch]) -> Vec<Planned> {
    let mut planned = vec![Planned::default(); rows.len()];
    let inherited = match beginning {
        Beginning::Empty => 0,
        Beginning::Branch | Beginning::Compacted => inherit(rows, beginning, before, &mut planned),
    };
    let repeated = compactions(rows, inherited, &mut planned);
    for (at, row) in rows.iter().enumerate() {
        // What was put in again is not taken back: newer clients mark both in the same way.
        planned[at].undone = !row.active && !row.compacted && !repeated[at];
    }
    planned
}

/// Marks the rows at the beginning that another session had, in the order in which it had them. Returns how many there are.
fn inherit(rows: &[Sketch], beginning: Beginning, before: &[Sketch], planned: &mut [Planned]) -> usize {
    let (mut from, mut count) = (0, 0);
    for (at, row) in rows.iter().enumerate() {
        let written_now = |earlier: &Sketch| rows[0].together(row) || earlier.time == row.time;
        let found = before[from..]
            .iter()
            .position(|earlier| earlier.same == row.same && (beginning == Beginning::Branch || written_now(earlier)));
        match found {
            Some(skipped) => {
                planned[at].repeats = Some(Repeats::There(before[from + skipped].event));
                from += skipped + 1;
            }
            None if beginning == Beginning::Compacted && row.summary => {}
            None => break,
        }
        count = at + 1;
    }
    count
}

/// Marks what compactions within the session put in again. Returns which rows are repeated so.
fn compactions(rows: &[Sketch], from: usize, planned: &mut [Planned]) -> Vec<bool> {
    let mut repeated = vec![false; rows.len()];
    let mut by_content: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, row) in rows.iter().enumerate().filter(|(_, row)| !row.active) {
        by_content.entry(&row.same).or_default().push(at);
    }
    let mut next = from;
    while let Some(summary) = (next..rows.len()).find(|at| rows[*at].summary) {
        let is_copy =
            |at: usize, until: usize| {
                let row = &rows[at];
                by_content.get(&*row.same)?.iter().copied().rfind(|earlier| {
                    *earlier < until && (row.together(&rows[summary]) || rows[*earlier].time == row.time)
                })
            };
        let mut first = summary;
        while first > next && is_copy(first - 1, first - 1).is_some() {
            first -= 1;
        }
        let mut end = first;
        while end < rows.len() {
            match is_copy(end, first) {
                Some(earlier) => {
                    planned[end].repeats = Some(Repeats::Here(rows[earlier].event));
                    repeated[earlier] = true;
                }
                None if rows[end].summary => {}
                None => break,
            }
            end += 1;
        }
        let end = end.max(summary + 1);
        planned[end - 1].window = Some(rows[first..end].iter().map(|row| row.event).collect());
        next = end;
    }
    repeated
}

#[cfg(test)]
mod tests {
    use palog_adapter::ids::Native;

    use super::*;
    use crate::FORMAT;

    /// Rows as `TIME FLAGS TEXT`; flags: `a` active, `c` compacted, `s` summary.
    fn rows(session: &str, lines: &[&str]) -> Vec<Sketch> {
        let ids = Ids::new(&FORMAT, session, "store");
        let sketch = |(at, line): (usize, &&str)| {
            let mut words = line.splitn(3, ' ');
            let (time, flags, text) = (words.next()?, words.next()?, words.next()?);
            Some(Sketch {
                same: text.to_owned(),
                time: time.parse().ok(),
                active: flags.contains('a'),
                compacted: flags.contains('c'),
                summary: flags.contains('s'),
                event: ids.event(Native::Offset(at as u64), 0),
            })
        };
        lines.iter().enumerate().filter_map(sketch).collect()
    }

    /// What came out, in words: the row that is repeated, `window` with its length, `undone`.
    fn told(rows: &[Sketch], before: &[Sketch], beginning: Beginning) -> Vec<String> {
        let name = |repeats: &Repeats| match repeats {
            Repeats::Here(event) => rows.iter().position(|row| row.event == *event).map(|at| format!("={at}")),
            Repeats::There(event) => before.iter().position(|row| row.event == *event).map(|at| format!("<{at}")),
        };
        let tell = |planned: &Planned| {
            let window = planned.window.as_ref().map(|window| format!("window{}", window.len()));
            let undone = planned.undone.then(|| "undone".to_owned());
            let words = [window, planned.repeats.as_ref().and_then(name), undone];
            words.into_iter().flatten().collect::<Vec<_>>().join(" ")
        };
        plan(rows, beginning, before).iter().map(tell).collect()
    }

    #[test]
    fn a_compaction_puts_rows_in_again() {
        let rows = rows(
            "s",
            &[
                "1 c q1",
                "2 c a1",
                "3 c q2",
                "4 c a2",
                "5 c go",
                "6 c a3",
                "9.0 a q1",
                "9.000001 as summary",
                "9.000002 a go",
                "9.000003 a a3",
                "12 a go",
                "13 a a4",
            ],
        );
        let told = told(&rows, &[], Beginning::Empty);
        assert_eq!(told[..6], [""; 6]);
        assert_eq!(told[6..], ["=0", "", "=4", "window4 =5", "", ""]);
    }

    #[test]
    fn a_second_compaction_repeats_the_copies_of_the_first() {
        let rows = rows(
            "s",
            &[
                "1 c q1",
                "2 c a1",
                "9.0 c q1",
                "9.1 c other",
                "9.000001 cs first",
                "12 c q2",
                "13 c a2",
                "20.0 a q1",
                "20.000001 as second",
                "20.000002 a q2",
                "20.000003 a a2",
            ],
        );
        assert_eq!(told(&rows, &[], Beginning::Empty)[4..], ["window1", "", "", "=2", "", "=5", "window4 =6"]);
    }

    #[test]
    fn copies_with_the_times_of_what_they_repeat_are_no_undo() {
        // As newer clients write it: the tail is marked like rows that were taken back.
        let rows =
            rows("s", &["1 c q1", "2 c a1", "3 - undone", "4 - q2", "5 - a2", "9 as summary", "4 a q2", "5 a a2"]);
        assert_eq!(told(&rows, &[], Beginning::Empty), ["", "", "undone", "", "", "", "=3", "window3 =4"]);
    }

    #[test]
    fn a_prompt_that_is_typed_again_is_no_copy() {
        let rows = rows("s", &["1 a q1", "2 a a1", "3 - go", "4 - a2", "7 a go", "8 a a3"]);
        assert_eq!(told(&rows, &[], Beginning::Empty), ["", "", "undone", "undone", "", ""]);
    }

    #[test]
    fn a_branch_takes_rows_along() {
        let before = rows("p", &["1 a q1", "2 a a1", "3 - no", "4 a q2", "5 a a2"]);
        let branch = rows("b", &["9 a q1", "9.1 a a1", "9.2 a q2", "9.3 a a2", "12 a q1", "13 a a3"]);
        assert_eq!(told(&branch, &before, Beginning::Branch), ["<0", "<1", "<3", "<4", "", ""]);
    }

    #[test]
    fn a_session_goes_on_with_what_a_compaction_left() {
        let before = rows("p", &["1 a q1", "2 a a1", "3 a go", "4 a a2"]);
        let next = rows("n", &["9 a q1", "9.000001 as summary", "9.000002 a a2", "12 a go"]);
        assert_eq!(told(&next, &before, Beginning::Compacted), ["<0", "", "<3", ""]);
    }
}
