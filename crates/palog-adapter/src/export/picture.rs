//! Pictures, as providers take them.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use palog::json::Value;
use palog::project::{Content, LeftOutReason};

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Picture {
    /// Its base64.
    Base64(String),
    /// Its address.
    Address(String),
}

impl Picture {
    /// Its size in bytes; of an address it is not known.
    #[must_use]
    pub fn size(&self) -> Option<usize> {
        match self {
            Picture::Base64(base64) => Some(base64.len() / 4 * 3),
            Picture::Address(_) => None,
        }
    }

    /// The picture in the data of a part, or why it is not at hand.
    ///
    /// # Errors
    /// When its blob cannot be read.
    pub fn of(content: &mut Content<'_>, data: &Value<'_>) -> io::Result<Result<Self, LeftOutReason>> {
        let is_text = |media: &str| media.starts_with("text/plain") || media.starts_with("application/json");
        if let Value::Blob(blob) = data
            && !is_text(&blob.media)
        {
            return Ok(content.bytes(data)?.map(|bytes| Picture::Base64(BASE64.encode(bytes))));
        }
        Ok(content.text(data)?.map(|raw| {
            let text = raw.text().unwrap_or_default().into_owned();
            match text.starts_with("http://") || text.starts_with("https://") {
                true => Picture::Address(text),
                false => Picture::Base64(text),
            }
        }))
    }
}
