//! The content of values, wherever it lies, as the APIs of providers take it.

use std::io;

use crate::blob::BlobStore;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, Place, Severity};
use crate::json::{OmittedReason, Raw, Value, lone_surrogates};
use crate::wire::words;

words! {
    /// Why a context lacks something that the model saw (spec 04, "Context").
    pub enum LeftOutReason {
        /// It can be read by another provider only.
        OtherProvider = "other_provider",
        /// It has no form in this API.
        Unsupported = "unsupported",
        /// It lies in a blob that is not at hand.
        BlobUnavailable = "blob_unavailable",
        /// The source held a part only.
        Truncated = "truncated",
        /// It was taken out on purpose.
        Redacted = "redacted",
        /// It is known to exist, and could not be had.
        Unavailable = "unavailable",
        /// Only its provider could read it, and the log does not have it.
        OpaqueProvider = "opaque_provider",
        /// The call has a place among the messages, and was never proposed.
        NotProposed = "not_proposed",
        /// It is the result of a call that the model does not see, and no API takes that.
        NotCalled = "not_called",
        /// A compaction names the event, or the log goes on from it, and the log does not have it.
        NotInLog = "not_in_log",
    }
}

/// Gets the content of values, wherever it lies (spec 02, "Values").
#[derive(Debug, Default)]
pub struct Content<'b> {
    blobs: Option<&'b BlobStore>,
    /// What is wrong with the blobs.
    pub faults: Diagnostics,
}

impl<'b> Content<'b> {
    /// Gets what lies in blobs from `blobs`.
    #[must_use]
    pub fn new(blobs: Option<&'b BlobStore>) -> Self {
        Content { blobs, faults: Diagnostics::default() }
    }

    /// A value as the JSON text of a string, or why it is not there.
    ///
    /// # Errors
    /// When a blob cannot be read.
    pub fn text(&mut self, value: &Value<'_>) -> io::Result<Result<Raw<'static>, LeftOutReason>> {
        Ok(self.json(value)?.map(|json| if json.is_string() { json } else { Raw::string(json.get()) }))
    }

    /// A value as JSON text, with U+FFFD for lone surrogates, which the APIs of providers refuse, or why it is not there.
    ///
    /// # Errors
    /// When a blob cannot be read.
    pub fn json(&mut self, value: &Value<'_>) -> io::Result<Result<Raw<'static>, LeftOutReason>> {
        let blob = match value {
            Value::Inline(raw) => return Ok(Ok(whole_characters(raw.borrowed()))),
            Value::Omitted(_) => None,
            Value::Blob(blob) => Some(blob),
        };
        Ok(self.bytes(value)?.map(|bytes| {
            let text = String::from_utf8_lossy(&bytes);
            let is_json = blob.is_some_and(|b| b.media.starts_with("application/json"));
            let json = is_json.then(|| Raw::parse(&text).ok()).flatten();
            json.map_or_else(|| Raw::string(&text), whole_characters)
        }))
    }

    /// The content of a blob, or the text of a value that lies in no blob; or why it is not there.
    ///
    /// # Errors
    /// When a blob cannot be read.
    pub fn bytes(&mut self, value: &Value<'_>) -> io::Result<Result<Vec<u8>, LeftOutReason>> {
        let blob = match value {
            Value::Inline(raw) => return Ok(Ok(raw.get().as_bytes().to_vec())),
            Value::Omitted(omitted) => return Ok(Err(reason(omitted.omitted.reason))),
            Value::Blob(blob) => blob,
        };
        let Some(store) = self.blobs else { return Ok(Err(LeftOutReason::BlobUnavailable)) };
        let code = match store.get(&blob.digest) {
            Ok(bytes) => return Ok(Ok(bytes)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Code::MissingBlob,
            Err(e) if e.kind() == io::ErrorKind::InvalidData => Code::BlobMismatch,
            Err(e) => return Err(e),
        };
        let place = Place { names: Some(blob.digest.to_string()), ..Place::default() };
        self.faults.push(Diagnostic::new(code, Severity::Warning, place));
        Ok(Err(LeftOutReason::BlobUnavailable))
    }
}

fn reason(reason: OmittedReason) -> LeftOutReason {
    match reason {
        OmittedReason::Truncated => LeftOutReason::Truncated,
        OmittedReason::Redacted => LeftOutReason::Redacted,
        OmittedReason::Unavailable => LeftOutReason::Unavailable,
        OmittedReason::OpaqueProvider => LeftOutReason::OpaqueProvider,
    }
}

/// Whether a blob holds what was a string in the line.
pub(super) fn is_text(media: &str) -> bool {
    media.starts_with("text/plain") || media.starts_with("application/json")
}

/// The same JSON text with `\ufffd` for each lone surrogate; nothing else changes.
fn whole_characters(raw: Raw<'_>) -> Raw<'static> {
    let lone = lone_surrogates(raw.get().as_bytes());
    if lone.is_empty() {
        return raw.into_owned();
    }
    let mut text = raw.get().to_owned();
    for at in lone {
        text.replace_range(at..at + 6, "\\ufffd");
    }
    Raw::parse(&text).map_or_else(|_| Raw::string(&text), Raw::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value<'_> {
        serde_json::from_str(text).expect("a value")
    }

    #[test]
    fn only_strings_with_lone_surrogates_change() {
        let mut content = Content::default();
        let args = r#"{"a":1.0,"a":1e400,"b":"\u00e9 \ud83d\ude00"}"#;
        assert_eq!(content.json(&value(args)).expect("no I/O").expect("there").get(), args);
        let torn = r#"{"a":1.0,"b":"\u00e9 \ud83d \ud83d\ude00"}"#;
        let whole = r#"{"a":1.0,"b":"\u00e9 \ufffd \ud83d\ude00"}"#;
        assert_eq!(content.json(&value(torn)).expect("no I/O").expect("there").get(), whole);
    }

    /// R-BYT-013, R-BYT-014
    #[test]
    fn content_of_blobs_comes_back_as_what_was_moved_there() {
        let folder = std::env::temp_dir().join(format!("palog-content-{}", std::process::id()));
        let store = BlobStore::beside(&folder.join("a.palog.jsonl"));
        let text =
            Value::Blob(store.put("a \"b\"".as_bytes(), "text/plain; charset=utf-8", None).expect("it is written"));
        let json = Value::Blob(store.put(br#"{"a": 1.0}"#, "application/json", None).expect("it is written"));
        let mut content = Content::new(Some(&store));
        assert_eq!(content.text(&text).expect("it reads").expect("there").get(), r#""a \"b\"""#);
        assert_eq!(content.json(&json).expect("it reads").expect("there").get(), r#"{"a": 1.0}"#);
        std::fs::remove_dir_all(&folder).expect("it can be removed");
        assert_eq!(content.text(&text).expect("it reads"), Err(LeftOutReason::BlobUnavailable));
        assert_eq!(content.faults.groups()[0].code, Code::MissingBlob);
        assert_eq!(Content::default().text(&text).expect("no I/O"), Err(LeftOutReason::BlobUnavailable));
    }

    #[test]
    fn a_missing_value_says_why() {
        let redacted = value(r#"{"$omitted":{"reason":"redacted"}}"#);
        assert_eq!(Content::default().text(&redacted).expect("no I/O"), Err(LeftOutReason::Redacted));
    }
}
