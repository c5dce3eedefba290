//! The parts of messages and of results.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use palog::diagnostic::{Code, Place, Severity};
use palog::events;
use palog::json::{Raw, Value};
use palog::writer::WriteError;

use super::Mapper;
use crate::record::{Origin, Part};

/// The types of parts that the client declares.
pub(super) const KNOWN: &[&str] = &[
    "text",
    "reasoning",
    "tool",
    "file",
    "agent",
    "step-start",
    "step-finish",
    "patch",
    "compaction",
    "subtask",
    "snapshot",
    "retry",
];

/// The media type and the base64 of a data URL.
fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

impl Mapper {
    /// A text.
    pub(super) fn text_part<'d>(part: &'d Part<'_>) -> Option<events::Part<'d>> {
        let text = part.text.as_ref().filter(|_| part.has_text())?;
        Some(events::Part::Text { text: Value::Inline(text.borrowed()) })
    }

    /// A file that the model is shown; `None` for one that it is told of in words.
    pub(crate) fn file_part<'d>(
        &mut self,
        origin: &Origin,
        part: &'d Part<'_>,
    ) -> Result<Option<events::Part<'d>>, WriteError> {
        let (Some(media), Some(url)) = (part.mime.as_deref(), part.url.as_ref().filter(|url| url.is_string())) else {
            return Ok(None);
        };
        if media == "text/plain" || media == "application/x-directory" {
            return Ok(None);
        }
        let data = self.content(origin, url, media, part.filename.as_deref())?;
        let media = media.to_owned().into();
        Ok(Some(if part.mime.as_deref().is_some_and(|m| m.starts_with("image/")) {
            events::Part::Image { media, data }
        } else {
            events::Part::File { name: part.filename.clone(), media: Some(media), data }
        }))
    }

    /// What an address holds: a blob where it holds the bytes itself and the target has blobs, else the address.
    fn content<'d>(
        &mut self,
        origin: &Origin,
        url: &'d Raw<'_>,
        media: &str,
        name: Option<&str>,
    ) -> Result<Value<'d>, WriteError> {
        let text = url.text().unwrap_or_default();
        let bytes = data_url(&text).and_then(|(_, data)| BASE64.decode(data).ok());
        let Some(bytes) = bytes else { return Ok(Value::Inline(url.borrowed())) };
        if !self.blobs.insert(palog::blob::digest(&bytes)) {
            let place = Place { ..self.place(origin) };
            self.report(Code::DuplicateBlob, Severity::Info, place);
        }
        let blob = self.log.blob(&bytes, media, name)?;
        Ok(blob.unwrap_or_else(|| Value::Inline(url.borrowed())))
    }
}
