//! The order of the lines of one log: one log id, one opening event, seqs without gaps, links that hold (spec 02, "Order").

use serde::{Deserialize, Serialize};

use crate::blob::{digest, sha256_hex};
use crate::diagnostic::{Code, Severity};
use crate::envelope::Event;
use crate::events::ActionProposed;
use crate::json::Value;
use crate::reader::Line;

/// Bytes of the longest id of an event (R-ENV-007).
const LONGEST_ID: usize = 128;

/// What is wrong with an event, whatever the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) code: Code,
    pub(crate) severity: Severity,
    pub(crate) rule: &'static str,
    pub(crate) why: String,
}

impl Finding {
    /// That the arguments of an action have another digest than it says (R-ACT-002). Those that were left out have none.
    pub(crate) fn of_args(proposed: &ActionProposed<'_>) -> Option<Self> {
        let digest = match &proposed.args {
            Value::Inline(args) => digest(args.get().as_bytes()),
            Value::Blob(blob) => blob.digest.to_string(),
            Value::Omitted(_) => return None,
        };
        if digest == *proposed.args_digest {
            return None;
        }
        let why = format!("the arguments of {} have the digest {digest}", proposed.action);
        Some(Finding { code: Code::ArgsMismatch, severity: Severity::Error, rule: "R-ACT-002", why })
    }
}

/// Follows the order of a log. It keeps eight bytes for each event, to tell a repeated line from a conflicting one.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Order {
    log: Option<String>,
    next: u64,
    /// Fingerprints of the lines by seq, in runs without gaps: first seq, fingerprints.
    runs: Vec<(u64, Vec<u64>)>,
    closed: bool,
    previous: Previous,
    #[serde(skip)]
    pub(crate) findings: Vec<Finding>,
}

/// The line before, which `prev` names (R-ENV-008).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "Option<String>", from = "Option<String>")]
enum Previous {
    Line(Vec<u8>),
    /// Of a line that was read before this began, its digest alone.
    Digest(String),
    /// The event came without its line.
    Unknown,
}

impl Default for Previous {
    fn default() -> Self {
        Previous::Line(Vec::new())
    }
}

impl From<Previous> for Option<String> {
    fn from(previous: Previous) -> Self {
        match previous {
            Previous::Line(line) => Some(sha256_hex(&line)),
            Previous::Digest(digest) => Some(digest),
            Previous::Unknown => None,
        }
    }
}

impl From<Option<String>> for Previous {
    fn from(digest: Option<String>) -> Self {
        digest.map_or(Previous::Unknown, Previous::Digest)
    }
}

impl Previous {
    fn is_another_than(&self, digest: &str) -> bool {
        match self {
            Previous::Line(line) => sha256_hex(line) != digest,
            Previous::Digest(before) => before != digest,
            Previous::Unknown => false,
        }
    }

    fn become_line(&mut self, line: Option<&[u8]>) {
        match (&mut *self, line) {
            (Previous::Line(before), Some(line)) => {
                before.clear();
                before.extend_from_slice(line);
            }
            (_, Some(line)) => *self = Previous::Line(line.to_vec()),
            (_, None) => *self = Previous::Unknown,
        }
    }
}

impl Order {
    /// Id of the log, once there was an event.
    pub(crate) fn log(&self) -> Option<&str> {
        self.log.as_deref()
    }

    /// The seq that comes next.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Takes the next event in; `false`: it has no effect. What is wrong is added to the findings.
    pub(crate) fn admit(&mut self, event: &Event<'_>, line: Option<&Line<'_>>) -> bool {
        let opens = &*event.kind == "log.opened";
        let first = self.log.is_none();
        match &self.log {
            None => self.log = Some(event.log.to_string()),
            Some(log) if *log != *event.log => {
                self.error(Code::OtherLog, "R-ENV-004", format!("the event is of {:?}, the log is {log:?}", event.log));
                return false;
            }
            Some(_) => {}
        }
        if event.id.is_empty() || event.id.len() > LONGEST_ID {
            let why = format!("an id of {} bytes; 1 to {LONGEST_ID} are allowed", event.id.len());
            self.error(Code::BadEnvelope, "R-ENV-007", why);
        }
        if line.is_some_and(|line| !begins_with_the_version(line.bytes)) {
            self.error(Code::BadEnvelope, "R-ENV-001", "the first member is not `palog`".into());
        }
        let print = line.map_or_else(|| print_of(event), |line| fingerprint(0, line.bytes));
        if event.seq < self.next {
            if self.print_at(event.seq) == Some(print) {
                self.find(Code::SeqRepeated, Severity::Warning, "R-ENV-005", format!("seq {} stands twice", event.seq));
            } else {
                let why = format!(
                    "seq {} comes after seq {}, with other bytes than the first time",
                    event.seq,
                    self.next - 1
                );
                self.error(Code::SeqConflict, "R-ENV-005", why);
            }
            return false;
        }
        if event.seq > self.next {
            let why = format!("seq {} follows, where seq {} should", event.seq, self.next);
            self.error(Code::SeqGap, "R-ENV-005", why);
        }
        match self.runs.last_mut() {
            Some((_, prints)) if event.seq == self.next => prints.push(print),
            _ => self.runs.push((event.seq, vec![print])),
        }
        self.next = event.seq.saturating_add(1);
        if let Some(prev) = event.prev.as_deref().filter(|prev| self.previous.is_another_than(prev)) {
            let why = format!("prev is {prev}, which is not the digest of the line before");
            self.error(Code::PrevMismatch, "R-ENV-008", why);
        }
        self.previous.become_line(line.map(|line| line.bytes));
        if opens != first {
            let why = if first { "the first event is not log.opened" } else { "log.opened stands in mid log" };
            self.error(Code::NotOpened, "R-ENV-003", why.into());
            return first;
        }
        if self.closed && &*event.kind != "note.added" {
            let why = format!("{} follows log.closed", event.kind);
            self.find(Code::AfterClose, Severity::Warning, "R-ENV-016", why);
        }
        self.closed |= &*event.kind == "log.closed";
        true
    }

    fn print_at(&self, seq: u64) -> Option<u64> {
        let at = self.runs.partition_point(|(first, _)| *first <= seq).checked_sub(1)?;
        let (first, prints) = &self.runs[at];
        prints.get(usize::try_from(seq - first).ok()?).copied()
    }

    fn error(&mut self, code: Code, rule: &'static str, why: String) {
        self.find(code, Severity::Error, rule, why);
    }

    fn find(&mut self, code: Code, severity: Severity, rule: &'static str, why: String) {
        self.findings.push(Finding { code, severity, rule, why });
    }
}

fn begins_with_the_version(line: &[u8]) -> bool {
    let inside = line.trim_ascii_start().strip_prefix(b"{").unwrap_or_default();
    inside.trim_ascii_start().starts_with(b"\"palog\"")
}

/// The fingerprint of an event whose line is not at hand.
fn print_of(event: &Event<'_>) -> u64 {
    let parts = [&*event.id, &*event.kind, event.time.as_ref().map_or("", |t| t.as_str()), event.data.get()];
    parts.iter().fold(1, |print, part| fingerprint(print, part.as_bytes()))
}

/// 64 bits that differ where two lines differ by accident. It only tells a repeated line from another one in its place,
/// and neither of the two has any effect.
fn fingerprint(seed: u64, bytes: &[u8]) -> u64 {
    const ODD: [u64; 4] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93, 0xA076_1D64_78BD_642F, 0xE703_7ED1_A0B4_28DB];
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        (product >> 64) as u64 ^ product as u64
    };
    // Four lanes, so that one multiplication need not wait for another.
    let mut lanes = ODD.map(|odd| odd ^ seed ^ bytes.len() as u64);
    let mut take = |words: &[[u8; 8]]| {
        for ((lane, word), odd) in lanes.iter_mut().zip(words).zip(ODD) {
            *lane = fold(*lane ^ u64::from_le_bytes(*word), odd).wrapping_add(odd);
        }
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let (blocks, few) = words.as_chunks::<4>();
    blocks.iter().for_each(|block| take(block));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    take(few);
    take(&[last]);
    lanes.into_iter().fold(0, |print, lane| fold(print ^ lane, ODD[0]).wrapping_add(lane))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_tells_lines_apart_by_any_byte_and_their_length() {
        let line = b"{\"palog\":1,\"log\":\"l\",\"seq\":1}";
        for at in 0..line.len() {
            let mut other = *line;
            other[at] ^= 1;
            assert_ne!(fingerprint(0, line), fingerprint(0, &other), "byte {at}");
        }
        assert_ne!(fingerprint(0, b""), fingerprint(0, b"\0"));
        assert_ne!(fingerprint(0, b"12345678"), fingerprint(0, b"12345678\0"));
    }
}
