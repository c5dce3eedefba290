//! What of the given logs is new to a dataset, and where it goes.

use std::collections::BTreeMap;
use std::io;

use palog::blob::sha256_hex;

use crate::error::Error;
use crate::input::{Input, Look, Refusal, Trouble, What};
use crate::known::{Known, KnownLog};
use crate::table::SCHEMA_VERSION;

/// What a dataset's files are parted by (spec/parquet.md, "Partitions").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Partitions {
    /// By the vendor of the log.
    pub vendor: bool,
    /// By the month of the log's first time, in UTC.
    pub month: bool,
}

impl Partitions {
    /// The option as files carry it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match (self.vendor, self.month) {
            (false, false) => "none",
            (true, false) => "vendor",
            (false, true) => "month",
            (true, true) => "vendor,month",
        }
    }

    /// The directory of a log within a table: empty, or `vendor=…/month=…/`.
    fn directory(self, look: &Look) -> String {
        let mut directory = String::new();
        if self.vendor {
            directory += &format!("vendor={}/", value(look.head.vendor.as_deref()));
        }
        if self.month {
            directory += &format!("month={}/", value(look.head.month.as_deref()));
        }
        directory
    }
}

/// A value as Hive and what follows it write it in a path.
fn value(text: Option<&str>) -> String {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return "__HIVE_DEFAULT_PARTITION__".into() };
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => out.push(char::from(byte)),
            other => out += &format!("%{other:02X}"),
        }
    }
    out
}

/// A log that is written.
#[derive(Debug)]
pub(crate) struct Planned {
    /// Its place among the inputs.
    pub(crate) input: usize,
    pub(crate) look: Look,
    /// Its place among the partitions.
    pub(crate) partition: usize,
}

/// A partition that rows are added to.
#[derive(Debug)]
pub(crate) struct Partition {
    /// Its directory within a table, with a slash behind it; empty = the table's own.
    pub(crate) directory: String,
    /// The name of its new files, without the ending: it follows from what is in them.
    pub(crate) part: String,
}

/// What is to be done.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The logs to write, those of one partition beside each other.
    pub(crate) logs: Vec<Planned>,
    pub(crate) partitions: Vec<Partition>,
    /// Ids of logs whose rows are replaced.
    pub(crate) replaced: Vec<String>,
    pub(crate) unchanged: u64,
    pub(crate) troubles: Vec<Trouble>,
}

impl Plan {
    /// Compares the inputs with what is there. The order of the inputs changes nothing.
    pub(crate) fn of(inputs: &[Input], known: &Known, partitions: Partitions) -> Result<Plan, Error> {
        let mut plan = Plan::default();
        let mut by_log = BTreeMap::<String, Vec<(usize, Look)>>::new();
        for (at, input) in inputs.iter().enumerate() {
            let read = |e: io::Error| Error::Read(io::Error::new(e.kind(), format!("{}: {e}", input.name)));
            match input.look().map_err(read)? {
                Some(look) => by_log.entry(look.head.log.clone()).or_default().push((at, look)),
                None => plan.refuse(input, Refusal::NoLog),
            }
        }
        let mut directories = BTreeMap::<String, Vec<(usize, Look)>>::new();
        for (log, mut copies) in by_log {
            copies.sort_by_key(|(at, look)| (std::cmp::Reverse(look.bytes), *at));
            let (longest, shorter) = (copies.remove(0), copies);
            let mut agree = true;
            for (_, look) in &shorter {
                agree &= goes_on(&inputs[longest.0], longest.1.bytes, look.bytes, &look.last_line_sha256)?;
            }
            if !agree {
                for (at, _) in &shorter {
                    let other = inputs[longest.0].name.clone();
                    plan.refuse(&inputs[*at], Refusal::Diverged { other, log: log.clone() });
                }
                let other = inputs[shorter[0].0].name.clone();
                plan.refuse(&inputs[longest.0], Refusal::Diverged { other, log });
                continue;
            }
            plan.unchanged += shorter.len() as u64;
            let (at, look) = longest;
            if let Some(old) = known.logs.get(&log) {
                if old.is(&look) {
                    plan.unchanged += 1;
                    continue;
                }
                let replaces = goes_on(&inputs[at], look.bytes, old.bytes, &old.last_line_sha256)?;
                if !(replaces || old.derived && look.head.derived) {
                    let other = "the dataset".into();
                    plan.refuse(&inputs[at], Refusal::Diverged { other, log });
                    continue;
                }
                plan.replaced.push(log);
            }
            directories.entry(partitions.directory(&look)).or_default().push((at, look));
        }
        for (directory, logs) in directories {
            let partition = plan.partitions.len();
            let part = part(&logs);
            plan.partitions.push(Partition { directory, part });
            plan.logs.extend(logs.into_iter().map(|(input, look)| Planned { input, look, partition }));
        }
        Ok(plan)
    }

    fn refuse(&mut self, input: &Input, refusal: Refusal) {
        self.troubles.push(Trouble { input: input.name.clone(), what: What::Refused(refusal) });
    }
}

/// The name of new files, from what is in them.
fn part(logs: &[(usize, Look)]) -> String {
    let mut content = format!("palog.schema {SCHEMA_VERSION}\n");
    for (_, look) in logs {
        content += &format!("{} {} {} {}\n", look.head.log, look.bytes, look.last_line_sha256, look.torn_tail.len());
    }
    format!("part-{}", &sha256_hex(content.as_bytes())[..16])
}

/// Whether the first `bytes` bytes of a log end in the line that has this digest.
fn goes_on(input: &Input, of: u64, bytes: u64, last_line_sha256: &str) -> Result<bool, Error> {
    if of < bytes {
        return Ok(false);
    }
    input.ends_in(bytes, last_line_sha256).map_err(Error::Read)
}

impl KnownLog {
    /// Whether the log is what it was.
    fn is(&self, look: &Look) -> bool {
        self.bytes == look.bytes && self.last_line_sha256 == look.last_line_sha256 && self.torn_tail == look.torn_tail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_partitions_cannot_leave_their_directory() {
        assert_eq!(value(Some("claude-code")), "claude-code");
        assert_eq!(value(Some("a/../b c=ü")), "a%2F..%2Fb%20c%3D%C3%BC");
        assert_eq!((value(None), value(Some(""))), (value(None), value(None)));
    }
}
