//! Renders an event as a line: the one form that every writer writes (spec 01, 02).

use std::io;

use serde::Serialize;

use crate::blob::BlobStore;
use crate::envelope::{Actor, Copy, Draft, MAJOR, Src, Time};
use crate::events::Data;
use crate::json::{BlobRef, Raw, Str, Value};
use crate::writer::{Bulk, LINE_HARD_LIMIT, LINE_SOFT_LIMIT, WriteError};

/// The line of an event, in the order of the wire.
#[derive(Serialize)]
struct Line<'l, 'd> {
    palog: u32,
    log: &'l str,
    seq: u64,
    id: &'l str,
    r#type: &'l str,
    time: Option<&'l Time<'d>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<&'l Time<'d>>,
    actor: &'l Actor<'d>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'l str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    cause: &'l [Str<'d>],
    #[serde(skip_serializing_if = "Option::is_none")]
    copy: Option<&'l Copy<'d>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    src: &'l [Src<'d>],
    #[serde(skip_serializing_if = "Option::is_none")]
    ignorable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prev: Option<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ext: Option<&'l Raw<'d>>,
    data: &'l Data<'d>,
}

/// Shorter values are not worth a blob (R-BYT-010).
const WORTH_MOVING: usize = 256;

/// What the lines of one log have in common, whatever they are written to.
#[derive(Debug)]
pub(crate) struct Encoder {
    pub(crate) log: String,
    pub(crate) bulk: Bulk,
}

impl Encoder {
    /// Adds the line of `draft` to `out`, line feed included, and moves values to blobs until it is short enough. Where
    /// that fails, `out` is as it was.
    pub(crate) fn encode(
        &self,
        out: &mut Vec<u8>,
        seq: u64,
        prev: Option<&str>,
        draft: &mut Draft<'_>,
    ) -> Result<(), WriteError> {
        let start = out.len();
        let done = self.short_line(out, seq, prev, draft);
        if done.is_err() {
            out.truncate(start);
        }
        done
    }

    fn short_line(
        &self,
        out: &mut Vec<u8>,
        seq: u64,
        prev: Option<&str>,
        draft: &mut Draft<'_>,
    ) -> Result<(), WriteError> {
        let start = out.len();
        self.render(out, seq, prev, draft)?;
        let place = match &self.bulk {
            Bulk::Blobs(store) => Some((store, LINE_SOFT_LIMIT)),
            Bulk::Overflow(store) => Some((store, LINE_HARD_LIMIT)),
            Bulk::Inline | Bulk::Discarded => None,
        };
        if let Some((store, limit)) = place {
            while out.len() - start > limit && move_largest(store, draft, out.len() - start - limit)? {
                out.truncate(start);
                self.render(out, seq, prev, draft)?;
            }
        }
        let len = out.len() - start;
        if len > LINE_HARD_LIMIT && !matches!(self.bulk, Bulk::Discarded) {
            return Err(WriteError::LineTooLong { len });
        }
        out.push(b'\n');
        Ok(())
    }

    fn render(&self, out: &mut Vec<u8>, seq: u64, prev: Option<&str>, draft: &Draft<'_>) -> Result<(), WriteError> {
        let line = Line {
            palog: MAJOR,
            log: &self.log,
            seq,
            id: &draft.id,
            r#type: draft.data.name(),
            time: draft.time.as_ref(),
            recorded: draft.recorded.as_ref(),
            actor: &draft.actor,
            epoch: draft.epoch,
            parent: draft.parent.as_deref(),
            cause: &draft.cause,
            copy: draft.copy.as_ref(),
            src: &draft.src,
            ignorable: draft.ignorable,
            prev,
            ext: draft.ext.as_ref(),
            data: &draft.data,
        };
        serde_json::to_writer(out, &line).map_err(|e| WriteError::Io(e.into()))
    }
}

/// Moves the largest values of the draft to blobs until `excess` bytes are saved; `false`: none is left that is worth it
/// (R-BYT-010).
fn move_largest(store: &BlobStore, draft: &mut Draft<'_>, excess: usize) -> io::Result<bool> {
    let mut values = draft.data.values_mut();
    values.retain(|value| value.inline_len() > WORTH_MOVING);
    // Of values of one length, the first one first.
    values.sort_by_key(|value| std::cmp::Reverse(value.inline_len()));
    let (mut saved, mut moved) = (0, false);
    for value in values {
        if saved >= excess {
            break;
        }
        if let Value::Inline(raw) = &*value {
            let blob = to_blob(store, raw)?;
            saved += raw.get().len().saturating_sub(Raw::of(&blob).get().len());
            *value = Value::Blob(blob);
            moved = true;
        }
    }
    Ok(moved)
}

/// Stores a value: the characters of a string (`text/plain`), or the JSON text where the value is no string or holds lone
/// surrogates (`application/json`; spec 01, R-BYT-014).
fn to_blob(store: &BlobStore, raw: &Raw<'_>) -> io::Result<BlobRef<'static>> {
    match raw.text() {
        Some(text) if raw.lone_surrogates().is_empty() && Raw::string(&text).get() == raw.get() => {
            store.put(text.as_bytes(), "text/plain; charset=utf-8", None)
        }
        _ => store.put(raw.get().as_bytes(), "application/json", None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::{ActorKind, Event};
    use crate::events::{MessageAdded, Part, Role};

    /// R-BYT-014
    #[test]
    fn the_media_type_says_how_a_value_is_had_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = BlobStore::beside(&folder.path().join("x.palog.jsonl"));
        for (value, media, bytes) in [
            (r#""a\nb""#, "text/plain; charset=utf-8", "a\nb"),
            // Written in another way than one would write these characters.
            (r#""\u0061""#, "application/json", r#""\u0061""#),
            (r#""\ud800""#, "application/json", r#""\ud800""#),
            (r#"{"n": 1.0}"#, "application/json", r#"{"n": 1.0}"#),
        ] {
            let raw: Raw<'_> = serde_json::from_str(value).expect("JSON");
            let blob = to_blob(&store, &raw).expect("it is stored");
            assert_eq!(&*blob.media, media, "{value}");
            let path = store.path(&blob.digest).expect("a digest");
            assert_eq!(std::fs::read(path).expect("a blob"), bytes.as_bytes(), "{value}");
        }
    }

    /// R-BYT-010
    #[test]
    fn as_many_values_move_as_are_needed_and_the_largest_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let encoder =
            Encoder { log: "l".into(), bulk: Bulk::Blobs(BlobStore::beside(&folder.path().join("x.palog.jsonl"))) };
        let text = |n: usize| "x".repeat(400 + n % 700);
        let parts = (0..3000).map(|n| Part::text(text(n).as_str())).collect();
        let added =
            MessageAdded { role: Role::User, parts, response: None, partial: None, purpose: None, in_context: None };
        let mut draft = Draft::new("e", ActorKind::User, added);
        let mut line = Vec::new();
        encoder.encode(&mut line, 0, None, &mut draft).expect("it can be written");
        assert!((LINE_SOFT_LIMIT - 1100..=LINE_SOFT_LIMIT).contains(&(line.len() - 1)), "{}", line.len());
        let line = std::str::from_utf8(&line).expect("text").trim_end();
        let event = Event::parse(line).expect("an event");
        let Data::MessageAdded(added) = event.data().expect("a payload") else { panic!("a message") };
        let (mut longest, mut shortest) = (0, usize::MAX);
        for (n, part) in added.parts.iter().enumerate() {
            match part {
                Part::Text { text: Value::Inline(raw) } => longest = longest.max(raw.get().len()),
                Part::Text { .. } => shortest = shortest.min(text(n).len() + 2),
                _ => panic!("a text"),
            }
        }
        assert!(longest <= shortest, "{longest} stayed and {shortest} moved");
    }

    /// R-BYT-010, R-BYT-011
    #[test]
    fn a_line_is_as_long_as_its_place_allows() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = || BlobStore::new(folder.path());
        let written = |bulk: Bulk, len: usize| {
            let parts = vec![Part::text("x".repeat(len).as_str())];
            let added = MessageAdded {
                role: Role::User,
                parts,
                response: None,
                partial: None,
                purpose: None,
                in_context: None,
            };
            let mut line = Vec::new();
            let encoder = Encoder { log: "l".into(), bulk };
            let done = encoder.encode(&mut line, 0, None, &mut Draft::new("e", ActorKind::User, added));
            done.map(|()| line.len() > len).map_err(|e| matches!(e, WriteError::LineTooLong { .. }))
        };
        let (middle, large) = (2 << 20, 17 << 20);
        assert_eq!(
            (written(Bulk::Blobs(store()), middle), written(Bulk::Blobs(store()), large)),
            (Ok(false), Ok(false))
        );
        let overflow = || Bulk::Overflow(store());
        assert_eq!((written(overflow(), middle), written(overflow(), large)), (Ok(true), Ok(false)));
        assert_eq!((written(Bulk::Inline, middle), written(Bulk::Inline, large)), (Ok(true), Err(true)));
        assert_eq!((written(Bulk::Discarded, middle), written(Bulk::Discarded, large)), (Ok(true), Ok(true)));
    }
}
