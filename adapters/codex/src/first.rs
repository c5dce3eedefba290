//! What the header of a rollout says of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use palog::json::{Raw, Str};
use palog_adapter::transcript;

use crate::record::{Form, HistoryBase, Line, Meta, looks_like_record, parse};
use palog_adapter::compressed::{Content, ZSTD};

/// Longest header that is looked for in a file before it is imported, in bytes.
const LONGEST: u64 = 4 << 20;

/// What the header of a rollout says of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct First {
    /// The thread.
    pub(crate) id: Option<String>,
    /// The thread whose agent started this one.
    pub(crate) parent: Option<String>,
    /// The thread that this one was forked from.
    pub(crate) forked_from: Option<String>,
    /// The prefix of another file that it goes on from.
    pub(crate) base: Option<HistoryBase>,
    /// Records below this ordinal are copies of the parent's.
    pub(crate) inherited_below: Option<u64>,
    /// It was started by another agent.
    pub(crate) is_agent: bool,
    /// The paginated dialect, which numbers its lines.
    pub(crate) paginated: bool,
    /// The first record that is known had an ordinal.
    numbered: bool,
    /// The form without an envelope.
    pub(crate) bare: bool,
    /// A record of this format was among those that were looked at.
    pub(crate) recognised: bool,
    /// Physical lines that were looked at.
    pub(crate) lines: u64,
}

impl First {
    /// Reads the first records until the header was found, and goes back to the beginning. `id` is what the file's name
    /// says: with it, the header of another thread, whose records were copied, does not pass for the own one.
    pub(crate) fn peek(bytes: &mut File, id: Option<&str>) -> io::Result<Self> {
        let mut first = First::default();
        let mut seen = false;
        let lines = transcript::peek(bytes, looks_like_record, |text| {
            let found = first.take(text, if seen { id } else { None });
            seen = true;
            found
        })?;
        first.lines = lines;
        // The header is damaged: lines are numbered in one dialect only.
        first.paginated |= first.id.is_none() && first.numbered;
        Ok(first)
    }

    /// Reads the header of a file, as far as its first line has it.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let mut input: Box<dyn BufRead> = Box::new(BufReader::new(File::open(path)?));
        if input.fill_buf()?.starts_with(&ZSTD) {
            input = Box::new(BufReader::new(Content::of(input)));
        }
        let mut line = Vec::new();
        input.take(LONGEST).read_until(b'\n', &mut line)?;
        let mut first = First::default();
        let text = String::from_utf8_lossy(&line);
        first.take(text.trim(), None);
        Ok(first)
    }

    /// Takes in a record, and says whether all is known.
    fn take(&mut self, text: &str, id: Option<&str>) -> bool {
        let Ok(line) = serde_json::from_str::<Line<'_>>(text) else { return false };
        if line.is_known() && !std::mem::replace(&mut self.recognised, true) {
            self.numbered = line.ordinal.is_some();
        }
        let meta: Meta<'_> = match (line.form(), &line.payload) {
            (Form::Enveloped, Some(payload)) if line.r#type.as_deref() == Some("session_meta") => {
                parse(payload).unwrap_or_default()
            }
            (Form::BareHeader, _) => {
                self.bare = true;
                serde_json::from_str(text).unwrap_or_default()
            }
            _ => return false,
        };
        if id.is_some() && meta.id.as_deref() != id {
            return false;
        }
        let owned = |s: &Str<'_>| s.to_string();
        let source: Option<BTreeMap<Str<'_>, Raw<'_>>> = meta.source.as_ref().and_then(parse);
        let is_agent = source.is_some_and(|source| source.keys().any(|name| name.as_str() == "subagent"));
        self.id = meta.id.as_ref().filter(|id| !id.is_empty()).map(owned);
        self.parent = meta.parent_thread_id.as_ref().map(owned);
        self.forked_from = meta.forked_from_id.as_ref().map(owned);
        self.inherited_below = meta.subagent_history_start_ordinal;
        self.is_agent = is_agent || self.parent.is_some();
        self.paginated = meta.history_mode.as_deref() == Some("paginated");
        self.base = meta.history_base;
        true
    }
}
