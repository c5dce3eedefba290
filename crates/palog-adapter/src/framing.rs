//! Splits a line into records, also where it is damaged (spec 01, R-BYT-016, R-BYT-017).
//!
//! The order of recovery: take zero bytes off, take the line as one record, take records back to back, find a whole record
//! behind a fragment. No byte is dropped: what is no record is a fragment or a run of zero bytes, with its place.

use std::borrow::Cow;

use serde_json::value::RawValue;

/// How many places within one fragment are tried as the beginning of a record.
const CANDIDATES: usize = 4096;
/// How many pieces of damage within one line are told one by one; what is behind them is told together.
const DAMAGE: usize = 4096;
/// How often a byte may be read while records are looked for, on average.
const READINGS: usize = 64;

/// A piece of a damaged line, by its place within the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A whole record.
    Record {
        /// Offset in bytes.
        at: usize,
        /// Length in bytes.
        len: usize,
    },
    /// Bytes that belong to no whole record.
    Fragment {
        /// Offset in bytes.
        at: usize,
        /// Length in bytes.
        len: usize,
    },
    /// Zero bytes.
    Hole {
        /// Offset in bytes.
        at: usize,
        /// Length in bytes.
        len: usize,
    },
}

/// The text of a record and the places of bytes in it that are no UTF-8. In the text each of these runs is U+FFFD.
#[must_use]
pub fn text(bytes: &[u8]) -> (Cow<'_, str>, Vec<(usize, usize)>) {
    if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
        return (Cow::Borrowed(text), Vec::new());
    }
    (String::from_utf8_lossy(bytes), invalid_runs(bytes))
}

/// Runs of bytes that are no UTF-8, as offset and length.
#[must_use]
pub fn invalid_runs(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    while let Err(error) = std::str::from_utf8(&bytes[at..]) {
        let start = at + error.valid_up_to();
        let len = error.error_len().unwrap_or(bytes.len() - start);
        match runs.last_mut() {
            Some((from, n)) if *from + *n == start => *n += len,
            _ => runs.push((start, len)),
        }
        at = start + len;
    }
    runs
}

/// Splits a line that is not one record. `is_record` says whether the text of an object can be a record of this format: a
/// content block, which is a whole object as well, must not pass for one.
#[must_use]
pub fn recover(line: &[u8], is_record: impl Fn(&str) -> bool) -> Vec<Piece> {
    // Boundaries are looked for in text of the same length, where each byte that is no UTF-8 is a question mark.
    let same_length: Cow<'_, str> = match std::str::from_utf8(line) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            let mut bytes = line.to_vec();
            for (at, len) in invalid_runs(line) {
                bytes[at..at + len].fill(b'?');
            }
            Cow::Owned(String::from_utf8(bytes).unwrap_or_default())
        }
    };
    let line = same_length.as_ref();
    let bytes = line.as_bytes();
    let mut search = Search { line, is_record, hole: None, budget: line.len() * READINGS };
    let (mut pieces, mut damage) = (Vec::new(), 0);
    let mut at = 0;
    while at < line.len() {
        if bytes[at] == 0 && damage < DAMAGE {
            let len = bytes[at..].iter().take_while(|b| **b == 0).count();
            pieces.push(Piece::Hole { at, len });
            damage += 1;
            at += len;
        } else if bytes[at].is_ascii_whitespace() {
            at += 1;
        } else if let Some(end) = search.value_at(at) {
            pieces.push(Piece::Record { at, len: end - at });
            at = end;
        } else {
            let next = search.next_record(at, damage < DAMAGE);
            pieces.push(Piece::Fragment { at, len: bytes[at..next].trim_ascii_end().len() });
            damage += 1;
            at = next;
        }
    }
    pieces
}

/// Looks for records in a damaged line. Whatever stands there, the work grows as the line does.
struct Search<'l, F> {
    line: &'l str,
    is_record: F,
    /// The last hole that was looked for: from where, and where it is.
    hole: Option<(usize, usize)>,
    /// How many bytes may still be read more than once.
    budget: usize,
}

impl<F: Fn(&str) -> bool> Search<'_, F> {
    /// The end of the JSON object or array that begins at `at`. Other values are no records when they are not a line of their own.
    fn value_at(&mut self, at: usize) -> Option<usize> {
        let rest = &self.line[at..];
        if !rest.starts_with(['{', '[']) {
            return (at == 0 && serde_json::from_str::<&RawValue>(rest).is_ok()).then_some(rest.len());
        }
        if self.budget == 0 {
            return None;
        }
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        match values.next() {
            Some(Ok(_)) => Some(at + values.byte_offset()),
            Some(Err(error)) => {
                self.budget = self.budget.saturating_sub(error.column());
                None
            }
            None => None,
        }
    }

    /// Where, behind the beginning of a fragment at `from`, whole records begin and go on to the end of the line, to a run of
    /// zero bytes (if these are told), or to the next fragment; the end of the line if nowhere.
    fn next_record(&mut self, from: usize, holes_are_told: bool) -> usize {
        let end = if holes_are_told { self.hole_behind(from) } else { self.line.len() };
        let line = self.line;
        let starts = memchr::memmem::find_iter(&line.as_bytes()[from + 1..end], b"{\"").map(|n| from + 1 + n);
        for start in starts.take(CANDIDATES) {
            let Some(end) = self.value_at(start) else { continue };
            if (self.is_record)(&line[start..end]) {
                return start;
            }
            self.budget = self.budget.saturating_sub(end - start);
        }
        end
    }

    /// The first zero byte behind `from`, or the end of the line.
    fn hole_behind(&mut self, from: usize) -> usize {
        match self.hole {
            Some((since, at)) if since <= from && from < at => at,
            _ => {
                let at = memchr::memchr(0, &self.line.as_bytes()[from..]).map_or(self.line.len(), |n| from + n);
                self.hole = Some((from, at));
                at
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_record(text: &str) -> bool {
        text.contains("\"uuid\"")
    }

    fn pieces(line: &[u8]) -> Vec<Piece> {
        recover(line, is_record)
    }

    const A: &str = r#"{"uuid":"a","b":[{"type":"text"}]}"#;
    const N: usize = A.len();

    #[test]
    fn records_back_to_back() {
        assert_eq!(
            pieces(format!("{A}{A}").as_bytes()),
            [Piece::Record { at: 0, len: N }, Piece::Record { at: N, len: N }]
        );
    }

    #[test]
    fn a_record_behind_a_fragment_is_found_and_a_block_inside_the_fragment_is_none() {
        let stub = r#"{"uuid":"x","content":[{"type":"text"},{"ty"#;
        let line = format!("{stub}{A}");
        assert_eq!(
            pieces(line.as_bytes()),
            [Piece::Fragment { at: 0, len: stub.len() }, Piece::Record { at: stub.len(), len: N }]
        );
    }

    #[test]
    fn zero_bytes_are_holes_wherever_they_stand() {
        let line = [b"\0\0\0".as_slice(), A.as_bytes(), b"\0"].concat();
        assert_eq!(
            pieces(&line),
            [Piece::Hole { at: 0, len: 3 }, Piece::Record { at: 3, len: N }, Piece::Hole { at: 3 + N, len: 1 }]
        );
        let split = br#"{"uuid":"a","t":"x"#.len();
        let line = [br#"{"uuid":"a","t":"x"#.as_slice(), b"\0\0", br#"y"}"#].concat();
        assert_eq!(
            pieces(&line),
            [
                Piece::Fragment { at: 0, len: split },
                Piece::Hole { at: split, len: 2 },
                Piece::Fragment { at: split + 2, len: 3 }
            ]
        );
    }

    /// The pieces of a line lie behind one another, and between them is white space alone.
    fn covered(line: &[u8]) -> Vec<Piece> {
        let pieces = pieces(line);
        let mut end = 0;
        for piece in &pieces {
            let (Piece::Record { at, len } | Piece::Fragment { at, len } | Piece::Hole { at, len }) = *piece;
            assert!(at >= end && line[end..at].iter().all(u8::is_ascii_whitespace), "{end}..{at}");
            end = at + len;
        }
        assert!(line[end..].iter().all(u8::is_ascii_whitespace), "{end}..");
        pieces
    }

    #[test]
    fn damage_without_end_is_told_together() {
        let holes = [b"\0a".repeat(100_000), A.as_bytes().to_vec(), b"\0a".repeat(100_000)].concat();
        let pieces = covered(&holes);
        assert!(pieces.len() <= DAMAGE + 3, "{}", pieces.len());
        assert!(pieces.contains(&Piece::Record { at: 200_000, len: N }), "a record in it is found");
    }

    #[test]
    fn records_are_found_behind_each_of_many_fragments() {
        let line = format!("x{A}").repeat(3 * DAMAGE);
        let records = covered(line.as_bytes()).iter().filter(|piece| matches!(piece, Piece::Record { .. })).count();
        assert_eq!(records, 3 * DAMAGE);
    }

    #[test]
    fn the_search_for_records_ends() {
        let line = r#"{"a":"#.repeat(1000);
        let is_record = |_: &str| panic!("no whole object stands there");
        let mut search = Search { line: &line, is_record, hole: None, budget: line.len() * READINGS };
        assert_eq!(search.next_record(0, true), line.len());
        assert_eq!(search.budget, 0);
        assert_eq!(covered(line.as_bytes()), [Piece::Fragment { at: 0, len: line.len() }]);
    }

    #[test]
    fn no_record_at_all_is_one_fragment() {
        assert_eq!(pieces(b"not json"), [Piece::Fragment { at: 0, len: 8 }]);
        assert_eq!(pieces(br#"{"uuid":"a""#), [Piece::Fragment { at: 0, len: 11 }]);
    }

    #[test]
    fn bytes_that_are_no_utf8_keep_their_places() {
        let line = [b"{\"uuid\":\"a".as_slice(), b"\xe6\x87", A.as_bytes()].concat();
        assert_eq!(pieces(&line), [Piece::Fragment { at: 0, len: 12 }, Piece::Record { at: 12, len: N }]);
        assert_eq!(invalid_runs(&line), [(10, 2)]);
        let (text, runs) = text(b"{\"a\":\"\xff\"}");
        assert_eq!((text.as_ref(), runs), ("{\"a\":\"\u{fffd}\"}", vec![(6, 1)]));
    }
}
