//! Items of the provider's API, as the client keeps them: parts that it does not know would cost the whole message.

use std::io;

use palog::events::{Opaque, Part, Role};
use palog::json::{Raw, Value};
use palog::project::Content;
use palog_adapter::export::{Class, Field, Losses, Picture};
use serde::{Deserialize, Serialize};

const MISSING: &str = "the content is not at hand";
const FOREIGN: &str = "another provider's, which this one refuses";
const LARGE: &str = "the provider refuses pictures of more than 20 MB";
/// The largest picture that the provider takes, in bytes.
const PICTURE: usize = 20 << 20;
const FORM: &str = "the client drops a message with such a part";

/// An item.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item<'i> {
    Message {
        role: &'i str,
        content: Vec<Raw<'static>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'i str>,
    },
    FunctionCall {
        name: &'i str,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'i str>,
        arguments: Raw<'i>,
        call_id: &'i str,
    },
    FunctionCallOutput {
        call_id: &'i str,
        output: Raw<'i>,
    },
    CustomToolCall {
        name: &'i str,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'i str>,
        input: Raw<'i>,
        call_id: &'i str,
    },
    CustomToolCallOutput {
        call_id: &'i str,
        output: Raw<'i>,
    },
    LocalShellCall {
        action: Raw<'i>,
        call_id: &'i str,
        status: &'i str,
    },
}

/// A part of a message, or of an output.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'b> {
    InputText { text: Raw<'b> },
    OutputText { text: Raw<'b> },
    InputImage { image_url: &'b str },
}

/// What an importer keeps of the API beside the content.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Beside {
    pub(super) r#type: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) phase: Option<String>,
}

impl Beside {
    pub(super) fn of(ext: Option<&Raw<'_>>) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Members {
            #[serde(rename = "com.openai")]
            ours: Beside,
        }
        ext.and_then(|ext| serde_json::from_str::<Members>(ext.get()).ok()).unwrap_or_default().ours
    }
}

/// How a part of the model's side is written.
pub(super) enum Spoken {
    /// As a part of a message.
    Block(Raw<'static>),
    /// As an item of its own.
    Item(Raw<'static>),
    /// On the screen alone: what the model thought.
    Thought(Raw<'static>),
    /// Not at all.
    Nothing,
}

/// The part of a message of the user's side, or of an output; `None` and a loss where it has none.
pub(super) fn block(
    content: &mut Content<'_>,
    role: Role,
    part: &Part<'_>,
    event: &str,
    losses: &mut Losses,
) -> io::Result<Option<Raw<'static>>> {
    let text = |text: Raw<'static>| match role {
        Role::Assistant => Raw::of(&Block::OutputText { text }),
        _ => Raw::of(&Block::InputText { text }),
    };
    let mut missing = |field| losses.declare(field, Class::Omitted, MISSING, Some(event), None);
    Ok(match part {
        Part::Text { text: value } => match content.text(value)? {
            Ok(value) => Some(text(value)),
            Err(_) => {
                missing(Field::PartText);
                None
            }
        },
        Part::Json { value } => match content.json(value)? {
            Ok(json) => {
                let why = "structured data is given as its text";
                losses.declare(Field::PartJson, Class::Degraded, why, Some(event), None);
                Some(text(Raw::string(json.get())))
            }
            Err(_) => {
                missing(Field::PartJson);
                None
            }
        },
        Part::Image { media, data } if role != Role::Assistant => match Picture::of(content, data)? {
            Ok(picture) if picture.size().is_some_and(|size| size > PICTURE) => {
                losses.declare(Field::PartImage, Class::Omitted, LARGE, Some(event), None);
                None
            }
            Ok(Picture::Base64(base64)) => {
                Some(Raw::of(&Block::InputImage { image_url: &format!("data:{media};base64,{base64}") }))
            }
            Ok(Picture::Address(url)) => Some(Raw::of(&Block::InputImage { image_url: &url })),
            Err(_) => {
                missing(Field::PartImage);
                None
            }
        },
        Part::Image { .. } => {
            losses.declare(Field::PartImage, Class::Omitted, FORM, Some(event), None);
            None
        }
        Part::File { media: Some(media), data, .. } if media.starts_with("text/") => match content.text(data)? {
            Ok(value) => {
                let why = "the text of a file is given as text";
                losses.declare(Field::PartFile, Class::Degraded, why, Some(event), None);
                Some(text(value))
            }
            Err(_) => {
                missing(Field::PartFile);
                None
            }
        },
        Part::File { .. } => {
            losses.declare(Field::PartFile, Class::Omitted, FORM, Some(event), None);
            None
        }
        Part::Opaque(opaque) => {
            match &*opaque.provider {
                "openai" => losses.declare(Field::PartOpaque, Class::Omitted, FORM, Some(event), None),
                _ => losses.declare(Field::PartOpaque, Class::Opaque, FOREIGN, Some(event), None),
            }
            None
        }
        _ => None,
    })
}

/// A text of the user's side.
pub(super) fn text(text: Raw<'_>) -> Raw<'static> {
    Raw::of(&Block::InputText { text })
}

/// A part of what the model said.
pub(super) fn spoken(
    content: &mut Content<'_>,
    part: &Part<'_>,
    event: &str,
    losses: &mut Losses,
) -> io::Result<Spoken> {
    match part {
        Part::Reasoning { text, opaque } => reasoning(content, text.as_ref(), opaque.as_ref(), event, losses),
        Part::Opaque(opaque) if is_item(opaque) => match content.json(&opaque.value)? {
            Ok(json) if json.get().starts_with('{') => Ok(Spoken::Item(json)),
            _ => {
                losses.declare(Field::PartOpaque, Class::Omitted, MISSING, Some(event), None);
                Ok(Spoken::Nothing)
            }
        },
        part => Ok(block(content, Role::Assistant, part, event, losses)?.map_or(Spoken::Nothing, Spoken::Block)),
    }
}

/// Whether an opaque part is an item of the provider's own.
pub(super) fn is_item(opaque: &Opaque<'_>) -> bool {
    const PARTS: &[&str] =
        &["input_text", "input_image", "input_file", "input_audio", "output_text", "refusal", "encrypted_content"];
    &*opaque.provider == "openai" && opaque.kind.as_deref().is_some_and(|kind| !PARTS.contains(&kind))
}

/// What the model thought goes back as the item that the provider made; words alone are shown and not sent.
fn reasoning(
    content: &mut Content<'_>,
    text: Option<&Value<'_>>,
    opaque: Option<&Opaque<'_>>,
    event: &str,
    losses: &mut Losses,
) -> io::Result<Spoken> {
    let own = opaque.filter(|o| &*o.provider == "openai" && o.kind.as_deref() == Some("reasoning"));
    if let Some(own) = own
        && let Ok(item) = content.json(&own.value)?
    {
        return Ok(Spoken::Item(item));
    }
    if opaque.is_some() {
        losses.declare(Field::ReasoningOpaque, Class::Opaque, FOREIGN, Some(event), None);
    }
    let Some(text) = text else { return Ok(Spoken::Nothing) };
    match content.text(text)? {
        Ok(text) => {
            let why = "the provider takes reasoning of its own only: the words are shown, and not given to the model";
            losses.declare(Field::ReasoningText, Class::Degraded, why, Some(event), None);
            Ok(Spoken::Thought(text))
        }
        Err(_) => {
            losses.declare(Field::ReasoningText, Class::Omitted, MISSING, Some(event), None);
            Ok(Spoken::Nothing)
        }
    }
}

/// What the model was told of a call: a text where it is one, else a list.
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
        blocks.extend(block(content, Role::Tool, part, event, losses)?);
    }
    Ok(Raw::of(&blocks))
}

/// The call of an action.
pub(super) fn call(beside: &Beside, name: &str, id: &str, args: Raw<'_>) -> Raw<'static> {
    let namespace = beside.namespace.as_deref();
    // The API takes arguments as a string.
    let text = |args: &Raw<'_>| if args.is_string() { args.clone().into_owned() } else { Raw::string(args.get()) };
    match beside.r#type.as_deref() {
        Some("custom_tool_call") => Raw::of(&Item::CustomToolCall { name, namespace, input: text(&args), call_id: id }),
        Some("local_shell_call") => Raw::of(&Item::LocalShellCall { action: args, call_id: id, status: "completed" }),
        _ => Raw::of(&Item::FunctionCall { name, namespace, arguments: text(&args), call_id: id }),
    }
}

/// The output of a call of this form.
pub(super) fn output(beside: &Beside, id: &str, output: Raw<'_>) -> Raw<'static> {
    match beside.r#type.as_deref() {
        Some("custom_tool_call") => Raw::of(&Item::CustomToolCallOutput { call_id: id, output }),
        _ => Raw::of(&Item::FunctionCallOutput { call_id: id, output }),
    }
}
