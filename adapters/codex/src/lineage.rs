//! Where the history of a session comes from: a prefix of another file that it refers to, or records that it copied.

use std::collections::HashSet;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use palog_adapter::ids::{EventId, Ids, Native};
use palog_adapter::transcript;

use crate::FORMAT;
use crate::paths::{RolloutFile, TRANSCRIPT};
use crate::record::{Event, Form, HistoryBase, Item, Line, Meta, looks_like_record, parse};
use crate::usage::{Counts, Info};
use palog_adapter::compressed::{Content, ZSTD};

/// Tells what records are known by: the id of an item where it comes first, else the offset.
#[derive(Debug, Default)]
pub(crate) struct Natives {
    seen: HashSet<u64>,
}

impl Natives {
    /// What the record at offset `at` with the item id `id` is known by.
    pub(crate) fn of<'r>(&mut self, id: Option<&'r str>, at: u64) -> Native<'r> {
        match id.filter(|id| !id.is_empty()) {
            Some(id) if self.seen.insert(hash(&id)) => Native::Uuid(id),
            _ => Native::Offset(at),
        }
    }
}

/// A hash that things are compared by within one import.
pub(crate) fn hash(of: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// The id of the item that a line holds.
pub(crate) fn item_id<'r>(line: &'r Line<'_>, item: Option<&'r Item<'_>>) -> Option<&'r str> {
    match line.form() {
        Form::Enveloped if line.r#type.as_deref() == Some("response_item") => item?.id.as_deref(),
        Form::BareItem => line.id.as_deref(),
        _ => None,
    }
}

/// The prefix that a session refers to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prefix {
    /// The last event of it; `None` where it is a prefix of the history that the parent itself goes on from.
    pub(crate) last: Option<EventId>,
    /// The running total of tokens at its end.
    pub(crate) total: Option<Counts>,
    /// Where the last record of it ends, if that is another place than the session says.
    pub(crate) moved: Option<u64>,
}

/// Reads the prefix of another session that `base` names. `None` = its files do not hold that much.
///
/// Of several files, which reverts began, it is in the one where it ends at the place that `base` gives, else in the newest.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn prefix(base: &HistoryBase, files: &[RolloutFile]) -> io::Result<Option<Prefix>> {
    let mut found = None;
    for file in files {
        let Some(prefix) = prefix_in(base, file)? else { continue };
        let exact = prefix.moved.is_none();
        found = Some(prefix);
        if exact {
            break;
        }
    }
    Ok(found)
}

fn prefix_in(base: &HistoryBase, file: &RolloutFile) -> io::Result<Option<Prefix>> {
    let ids = Ids::new(&FORMAT, &base.thread_id, &file.source);
    let mut natives = Natives::default();
    let mut found = Prefix::default();
    let (mut first, mut reached) = (None, None);
    transcript::each(open(&file.path)?, looks_like_record, |text, span| {
        let Ok(line) = serde_json::from_str::<Line<'_>>(text) else { return false };
        let item: Option<Item<'_>> = line.payload.as_ref().and_then(parse);
        let native = natives.of(item_id(&line, item.as_ref()), span.at);
        let Some(ordinal) = line.ordinal else { return false };
        first.get_or_insert(ordinal);
        if ordinal >= base.end_ordinal_exclusive {
            reached = Some(base.end_ordinal_exclusive);
            return true;
        }
        reached = reached.max(Some(ordinal.saturating_add(1)));
        found.last = Some(ids.event(native, 0));
        found.total = total(&line).map(|info| info.total_token_usage).or(found.total);
        // The line feed is counted.
        found.moved = Some(span.at + span.len + 1).filter(|end| base.end_byte_offset.is_some_and(|told| told != *end));
        false
    })?;
    if first.is_some_and(|first| base.end_ordinal_exclusive <= first) {
        // It is in a file before this one, or in what the parent itself goes on from.
        return Ok((file.source == TRANSCRIPT).then(Prefix::default));
    }
    Ok((reached >= Some(base.end_ordinal_exclusive)).then_some(found))
}

fn total(line: &Line<'_>) -> Option<Info> {
    let payload = line.payload.as_ref().filter(|_| line.r#type.as_deref() == Some("event_msg"))?;
    let event: Event<'_> = parse(payload)?;
    event.info.filter(|_| event.r#type.as_deref() == Some("token_count"))
}

/// Whether a rollout shows that its records before `ordinal` are copies: it reaches that ordinal, or the header of the session
/// `from` stands in it.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn shows_copies(child: &mut File, ordinal: u64, from: &str) -> io::Result<bool> {
    let mut shown = false;
    child.seek(SeekFrom::Start(0))?;
    each_line(&mut *child, |text, _| {
        let Ok(line) = serde_json::from_str::<Line<'_>>(text) else { return true };
        let meta = line.payload.as_ref().filter(|_| line.r#type.as_deref() == Some("session_meta"));
        let header = meta.and_then(|raw| parse::<Meta<'_>>(raw)).is_some_and(|meta| meta.id.as_deref() == Some(from));
        shown = header || line.ordinal.is_some_and(|own| own >= ordinal);
        !shown
    })?;
    child.seek(SeekFrom::Start(0))?;
    Ok(shown)
}

/// Up to which offset the records of `child` are those of the session in `parent`, told by what they say.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn copied(child: &mut File, parent: &[RolloutFile]) -> io::Result<u64> {
    let mut originals: Vec<u64> = Vec::new();
    for file in parent {
        each_line(&mut open(&file.path)?, |text, _| {
            originals.extend(digest(text));
            true
        })?;
    }
    let mut originals = originals.into_iter();
    let (mut end, mut is_header) = (0, true);
    child.seek(SeekFrom::Start(0))?;
    each_line(&mut *child, |text, at| {
        let Some(own) = digest(text).filter(|_| !std::mem::take(&mut is_header)) else { return true };
        let is_copy = originals.next() == Some(own);
        if is_copy {
            end = at + text.len() as u64;
        }
        is_copy
    })?;
    child.seek(SeekFrom::Start(0))?;
    Ok(end)
}

/// What a record says, without its time; `None` for records that a copy leaves out.
fn digest(text: &str) -> Option<u64> {
    let Ok(line) = serde_json::from_str::<Line<'_>>(text) else { return Some(hash(text)) };
    let payload = line.payload.as_ref().map(palog::json::Raw::get).unwrap_or_default();
    if payload.starts_with("{\"type\":\"exec_command_") {
        return None;
    }
    Some(hash(&(line.r#type.as_deref(), payload)))
}

/// Opens a rollout; a compressed one as its content.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    let mut input = BufReader::new(File::open(path)?);
    if input.fill_buf()?.starts_with(&ZSTD) {
        return Ok(Box::new(Content::of(input)));
    }
    Ok(Box::new(input))
}

/// Shows each line that is not blank, with its offset, until `take` says that it has enough.
fn each_line(input: &mut dyn Read, mut take: impl FnMut(&str, u64) -> bool) -> io::Result<()> {
    let mut input = BufReader::new(input);
    let (mut line, mut at) = (Vec::new(), 0);
    loop {
        line.clear();
        let len = input.read_until(b'\n', &mut line)?;
        if len == 0 {
            return Ok(());
        }
        let lead = line.len() - line.trim_ascii_start().len();
        let text = String::from_utf8_lossy(line.trim_ascii());
        if !text.is_empty() && !take(&text, at + lead as u64) {
            return Ok(());
        }
        at += len as u64;
    }
}
