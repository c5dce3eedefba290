//! The parts of contents and outputs.

use super::*;

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use palog::events::{Opaque, Part};

use crate::record::Content;

/// Content that only the provider understands.
pub(super) fn openai<'r>(kind: Option<&'r str>, value: Raw<'r>) -> Opaque<'r> {
    Opaque { provider: "openai".into(), kind: kind.map(Str::from), value: value.into() }
}

/// The media type and the base64 of a data URL.
fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

impl Rollout {
    /// The parts of a content: a list, or one text.
    pub(super) fn parts<'d>(
        &mut self,
        here: &Here<'_>,
        content: Option<&'d Raw<'_>>,
    ) -> Result<Vec<Part<'d>>, WriteError> {
        let Some(content) = content else { return Ok(Vec::new()) };
        if content.is_string() {
            return Ok(vec![Part::Text { text: Value::Inline(content.borrowed()) }]);
        }
        match parse::<Vec<Raw<'_>>>(content) {
            Some(list) => list.into_iter().map(|raw| self.part(here, raw)).collect(),
            None => Ok(vec![Part::Opaque(openai(None, content.borrowed()))]),
        }
    }

    /// One part.
    fn part<'d>(&mut self, here: &Here<'_>, raw: Raw<'d>) -> Result<Part<'d>, WriteError> {
        let content: Option<Content<'_>> = parse(&raw);
        let kind = content.as_ref().and_then(|c| c.r#type.as_deref()).unwrap_or_default();
        match (kind, &content) {
            (
                "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text",
                Some(Content { text: Some(text), .. }),
            ) if text.is_string() => Ok(Part::Text { text: Value::Inline(text.clone().into_owned()) }),
            ("input_image", Some(Content { image_url: Some(url), .. })) => {
                let text = url.text().unwrap_or_default();
                match data_url(&text) {
                    Some((media, data)) => {
                        let data = self.picture(here, data, media)?;
                        Ok(Part::Image { media: media.to_owned().into(), data })
                    }
                    None => Ok(Part::Opaque(openai(Some("input_image"), raw.clone()))),
                }
            }
            _ => {
                let known = [
                    "input_text",
                    "output_text",
                    "input_image",
                    "input_file",
                    "input_audio",
                    "refusal",
                    "encrypted_content",
                ];
                if !known.contains(&kind) {
                    self.warn_kind(Code::UnknownBlock, here.span, kind);
                }
                let kind = kind.to_owned();
                Ok(Part::Opaque(Opaque { kind: Some(kind.into()), ..openai(None, raw.clone()) }))
            }
        }
    }

    /// A picture: a blob of its bytes where the target has blobs and the base64 can be made again from them.
    fn picture(&mut self, here: &Here<'_>, data: &str, media: &str) -> Result<Value<'static>, WriteError> {
        let Some(bytes) = BASE64.decode(data).ok() else { return Ok(Value::from(data).into_owned()) };
        if !self.blobs.insert(palog::blob::digest(&bytes)) {
            let place = self.out.place(here.span);
            self.out.info(Code::DuplicateBlob, place);
        }
        Ok(self.out.log.blob(&bytes, media, None)?.unwrap_or_else(|| Value::from(data).into_owned()))
    }
}

/// The first text of a content.
pub(super) fn first_text(content: Option<&Raw<'_>>) -> String {
    let Some(content) = content else { return String::new() };
    if let Some(text) = content.text() {
        return text.into_owned();
    }
    let list: Vec<Content<'_>> = parse(content).unwrap_or_default();
    list.iter().find_map(|c| c.text.as_ref()).and_then(Raw::text).map(Cow::into_owned).unwrap_or_default()
}
