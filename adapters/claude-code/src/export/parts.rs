//! Parts as blocks of the provider's API.

use std::io;

use palog::events::{Opaque, Part};
use palog::json::{Raw, Value};
use palog::project::{Content, LeftOutReason};
use palog_adapter::export::{Class, Field, Losses, Picture};

use super::record::{Block, Source};

const MISSING: &str = "the content is not at hand";
const FOREIGN: &str = "another provider's, which this one refuses";
const UNSIGNED: &str = "thinking without a signature of the provider is refused by it";
const LARGE: &str = "the provider refuses pictures of more than 5 MB";
/// The largest picture that the provider takes, in bytes.
const PICTURE: usize = 5 << 20;
const FORM: &str = "the provider has no such block";

/// The block of a part of a message; `None` and a loss where it has none.
pub(super) fn block(
    content: &mut Content<'_>,
    part: &Part<'_>,
    event: &str,
    losses: &mut Losses,
) -> io::Result<Option<Raw<'static>>> {
    let mut missing = |field, _reason: LeftOutReason| {
        losses.declare(field, Class::Omitted, MISSING, Some(event), None);
    };
    Ok(match part {
        Part::Text { text } => match content.text(text)? {
            Ok(text) => Some(Raw::of(&Block::Text { text })),
            Err(reason) => {
                missing(Field::PartText, reason);
                None
            }
        },
        Part::Json { value } => match content.json(value)? {
            Ok(json) => {
                let why = "structured data is given as its text";
                losses.declare(Field::PartJson, Class::Degraded, why, Some(event), None);
                Some(Raw::of(&Block::Text { text: Raw::string(json.get()) }))
            }
            Err(reason) => {
                missing(Field::PartJson, reason);
                None
            }
        },
        Part::Image { media, data } => match Picture::of(content, data)? {
            Ok(picture) if picture.size().is_some_and(|size| size > PICTURE) => {
                losses.declare(Field::PartImage, Class::Omitted, LARGE, Some(event), None);
                None
            }
            Ok(Picture::Base64(data)) => {
                Some(Raw::of(&Block::Image { source: Source::Base64 { media_type: media, data: &data } }))
            }
            Ok(Picture::Address(url)) => Some(Raw::of(&Block::Image { source: Source::Url { url: &url } })),
            Err(reason) => {
                missing(Field::PartImage, reason);
                None
            }
        },
        Part::File { name, media, data } => {
            return file(content, name.as_deref(), media.as_deref(), data, event, losses);
        }
        Part::Reasoning { text, opaque } => return reasoning(content, text.as_ref(), opaque.as_ref(), event, losses),
        Part::Opaque(opaque) if &*opaque.provider == "anthropic" => match content.json(&opaque.value)? {
            Ok(json) if json.get().starts_with('{') => Some(json),
            _ => {
                losses.declare(Field::PartOpaque, Class::Omitted, MISSING, Some(event), None);
                None
            }
        },
        Part::Opaque(_) => {
            losses.declare(Field::PartOpaque, Class::Opaque, FOREIGN, Some(event), None);
            None
        }
        _ => None,
    })
}

fn file(
    content: &mut Content<'_>,
    title: Option<&str>,
    media: Option<&str>,
    data: &Value<'_>,
    event: &str,
    losses: &mut Losses,
) -> io::Result<Option<Raw<'static>>> {
    let block = match media {
        Some("application/pdf") => match Picture::of(content, data)? {
            Ok(Picture::Base64(data)) => {
                let source = Source::Base64 { media_type: "application/pdf", data: &data };
                Some(Raw::of(&Block::Document { source, title }))
            }
            Ok(Picture::Address(url)) => Some(Raw::of(&Block::Document { source: Source::Url { url: &url }, title })),
            Err(_) => None,
        },
        Some(media) if media.starts_with("text/") => match content.text(data)? {
            Ok(data) => {
                let source = Source::Text { media_type: "text/plain", data };
                Some(Raw::of(&Block::Document { source, title }))
            }
            Err(_) => None,
        },
        _ => {
            losses.declare(Field::PartFile, Class::Omitted, FORM, Some(event), None);
            return Ok(None);
        }
    };
    if block.is_none() {
        losses.declare(Field::PartFile, Class::Omitted, MISSING, Some(event), None);
    }
    Ok(block)
}

/// Thinking goes back only with what the provider signed it with.
fn reasoning(
    content: &mut Content<'_>,
    text: Option<&Value<'_>>,
    opaque: Option<&Opaque<'_>>,
    event: &str,
    losses: &mut Losses,
) -> io::Result<Option<Raw<'static>>> {
    let own = opaque.filter(|o| &*o.provider == "anthropic");
    if let Some(own) = own
        && let Ok(value) = content.text(&own.value)?
    {
        match own.kind.as_deref() {
            Some("redacted_thinking") => return Ok(Some(Raw::of(&Block::RedactedThinking { data: value }))),
            Some("signature") if value.get() != "\"\"" => {
                let thinking = match text {
                    Some(text) => content.text(text)?.ok(),
                    None => Some(Raw::string("")),
                };
                if let Some(thinking) = thinking {
                    return Ok(Some(Raw::of(&Block::Thinking { thinking, signature: value })));
                }
            }
            _ => {}
        }
    }
    if opaque.is_some() {
        losses.declare(Field::ReasoningOpaque, Class::Opaque, FOREIGN, Some(event), None);
    }
    if text.is_some() {
        losses.declare(Field::ReasoningText, Class::Omitted, UNSIGNED, Some(event), None);
    }
    Ok(None)
}

/// What the model was told of a call: a text where it is one, else blocks.
pub(super) fn told(
    content: &mut Content<'_>,
    parts: &[Part<'_>],
    event: &str,
    losses: &mut Losses,
) -> io::Result<Raw<'static>> {
    if let [Part::Text { text }] = parts
        && let Ok(text) = content.text(text)?
    {
        return Ok(text);
    }
    let mut blocks = Vec::with_capacity(parts.len());
    for part in parts {
        blocks.extend(block(content, part, event, losses)?);
    }
    Ok(Raw::of(&blocks))
}
