//! The parts of messages.

use palog::diagnostic::{Code, Place};
use palog::events::{Opaque, Part};
use palog::json::{Raw, Value};
use palog::writer::WriteError;
use serde::Deserialize;

use crate::conversation::Conversation;
use crate::record::{Content, Record};

/// A part of a content that is a list.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct ContentPart<'a> {
    r#type: Option<String>,
    text: Option<Raw<'a>>,
    image_url: Option<Raw<'a>>,
}

#[derive(Deserialize)]
struct Address {
    url: String,
}

impl Conversation {
    /// What the model thought.
    pub(crate) fn reasoning(&self, record: &Record) -> Vec<Part<'static>> {
        let text = record.word("reasoning_content").or_else(|| record.word("reasoning"));
        let details = record.value("reasoning_details");
        let mut parts = Vec::new();
        if text.is_some() || details.is_some() {
            let opaque = details.map(|value| Opaque {
                provider: "openai-chat".into(),
                kind: Some("reasoning_details".into()),
                value: value.into(),
            });
            parts.push(Part::Reasoning { text: text.as_deref().map(Value::from), opaque });
        }
        let items = record.value("codex_reasoning_items");
        let items: Vec<Raw<'_>> =
            items.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        parts.extend(items.into_iter().map(|item| Part::Reasoning {
            text: None,
            opaque: Some(Opaque {
                provider: "openai".into(),
                kind: Some("reasoning".into()),
                value: item.into_owned().into(),
            }),
        }));
        parts
    }

    /// What a message says, as the model is given it.
    pub(crate) fn parts(&mut self, record: &Record) -> Result<Vec<Part<'static>>, WriteError> {
        if let Some(sent) = record.word("api_content") {
            return Ok(vec![Part::text(&*sent)]);
        }
        match record.content() {
            Content::Nothing => Ok(Vec::new()),
            Content::Text(text) => Ok(vec![Part::text(&*text)]),
            Content::Json(json) => match serde_json::from_str::<Vec<Raw<'_>>>(json.get()) {
                Ok(list) => list.into_iter().map(|raw| self.part(record, &raw)).collect(),
                Err(_) => Ok(vec![Part::Json { value: json.into() }]),
            },
        }
    }

    fn part(&mut self, record: &Record, raw: &Raw<'_>) -> Result<Part<'static>, WriteError> {
        let part: Option<ContentPart<'_>> = serde_json::from_str(raw.get()).ok();
        let kind = part.as_ref().and_then(|part| part.r#type.clone()).unwrap_or_default();
        match (kind.as_str(), part) {
            ("text" | "input_text" | "output_text", Some(ContentPart { text: Some(text), .. })) if text.is_string() => {
                Ok(Part::Text { text: Value::Inline(text.into_owned()) })
            }
            ("image_url", Some(ContentPart { image_url: Some(address), .. })) => {
                let url = serde_json::from_str::<Address>(address.get()).map(|address| address.url);
                let url = url.unwrap_or_else(|_| address.text().unwrap_or_default().into_owned());
                let data = url.strip_prefix("data:").and_then(|url| url.split_once(";base64,"));
                Ok(match data {
                    Some((media, base64)) => {
                        Part::Image { media: media.to_owned().into(), data: Value::from(base64).into_owned() }
                    }
                    None => Part::Image { media: "image/*".into(), data: Value::from(url.as_str()).into_owned() },
                })
            }
            _ => {
                let place = Place { kind: Some(kind.clone()), ..self.place(record) };
                self.warn(Code::UnknownBlock, place);
                let value = raw.clone().into_owned().into();
                Ok(Part::Opaque(Opaque { provider: "openai-chat".into(), kind: Some(kind.into()), value }))
            }
        }
    }
}
