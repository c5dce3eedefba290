//! Turns, inputs, messages and their parts, requests to the model and its responses (spec 03, "Conversation").

use serde::de::{Deserialize, Deserializer, Error};

use crate::json::{Raw, Str, Value};
use crate::wire::{wire, words};

words! {
    /// How a turn ended (spec 03).
    pub enum TurnEnd {
        /// The model had its say.
        Complete = "complete",
        /// A person stopped it.
        Interrupted = "interrupted",
        /// It broke off.
        Error = "error",
    }

    /// What became of an input (spec 03).
    pub enum InputOutcome {
        /// It was taken to be given to the model.
        Taken = "taken",
        /// It was withdrawn.
        Dropped = "dropped",
    }

    /// Whose message it is, as the model sees it (spec 03).
    pub enum Role {
        /// The user's side.
        User = "user",
        /// The model's side.
        Assistant = "assistant",
        /// Instructions of the harness.
        System = "system",
        /// Instructions of the developer.
        Developer = "developer",
        /// Results of actions.
        Tool = "tool",
    }
}

wire! {
    /// `turn.started` (spec 03).
    pub struct TurnStarted<'a> {
        /// The vendor's id of the turn.
        turn?: Str<'a>,
        /// The message that started it.
        message?: Str<'a>,
    }

    /// `turn.ended` (spec 03).
    pub struct TurnEnded<'a> {
        /// The vendor's id of the turn.
        turn?: Str<'a>,
        /// How it ended.
        how: TurnEnd,
        /// In the source's words.
        reason?: Str<'a>,
    }

    /// `input.queued`: input that was accepted and waits (spec 03).
    pub struct InputQueued<'a> {
        /// Id of the input in this log.
        input: Str<'a>,
        /// Its content.
        parts: Vec<Part<'a>>,
    }

    /// `input.ended` (spec 03).
    pub struct InputEnded<'a> {
        /// The input.
        input: Str<'a>,
        /// What became of it.
        outcome: InputOutcome,
        /// The message that holds it, once there is one.
        message?: Str<'a>,
    }

    /// `message.added` (spec 03).
    pub struct MessageAdded<'a> {
        /// Whose message it is.
        role: Role,
        /// Its content, in order.
        parts: Vec<Part<'a>>,
        /// The response that it is a part of.
        response?: Str<'a>,
        /// `true`: the message was cut off.
        partial?: bool,
        /// What it is for: `prompt`, `steer`, `command`, `command_output`, `notification`, `summary`, `interruption`,
        /// `continuation`, `error`, `reminder` … (open); absent = what the role says.
        purpose?: Str<'a>,
        /// `false`: the model never sees it.
        in_context?: bool,
    }

    /// `model.requested`: a request went out (spec 03).
    pub struct ModelRequested<'a> {
        /// Model.
        model?: Str<'a>,
        /// The vendor's id of the request.
        request?: Str<'a>,
    }

    /// Token counts, in the provider's own meaning of the words (spec 03).
    pub struct Usage {
        /// Input tokens.
        input?: u64,
        /// Output tokens.
        output?: u64,
        /// Input tokens that came from a cache.
        cache_read?: u64,
        /// Input tokens that were written to a cache.
        cache_write?: u64,
        /// Output tokens that were spent on reasoning.
        reasoning?: u64,
    }

    /// `model.response`: what is known of a response; written when it changes, the last one counts (spec 03).
    pub struct ModelResponse<'a> {
        /// The vendor's id of the response.
        response: Str<'a>,
        /// Model.
        model?: Str<'a>,
        /// The vendor's id of the request.
        request?: Str<'a>,
        /// Token counts.
        usage?: Usage,
        /// Cost as the source gives it.
        cost?: Raw<'a>,
        /// Why it stopped: `end_turn`, `stop_sequence`, `max_tokens`, `refusal` end the turn; `tool_use`, `pause_turn` do
        /// not (open; an unknown word ends nothing).
        stop?: Str<'a>,
        /// The error that came instead of a response.
        error?: Value<'a>,
    }
}

/// A piece of a message, of a result or of an input (spec 03, "Parts").
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum Part<'a> {
    /// Text.
    Text {
        /// The text.
        text: Value<'a>,
    },
    /// What the model thought: readable, opaque to all but its provider, or both.
    Reasoning {
        /// The readable text.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<Value<'a>>,
        /// What only the provider can read.
        #[serde(skip_serializing_if = "Option::is_none")]
        opaque: Option<Opaque<'a>>,
    },
    /// A picture.
    Image {
        /// Media type.
        media: Str<'a>,
        /// A blob with the picture, or a string with its base64 or its address.
        data: Value<'a>,
    },
    /// A file.
    File {
        /// Its name.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<Str<'a>>,
        /// Media type.
        #[serde(skip_serializing_if = "Option::is_none")]
        media: Option<Str<'a>>,
        /// A blob with the content, or a string with its base64 or its text.
        data: Value<'a>,
    },
    /// Structured data.
    Json {
        /// The value.
        value: Value<'a>,
    },
    /// The place of an action among the parts of a message; the action itself is told by `action.proposed`.
    Action {
        /// The action.
        action: Str<'a>,
    },
    /// What the model was told of an action.
    Result {
        /// The action.
        action: Str<'a>,
        /// What it was told.
        parts: Vec<Part<'a>>,
        /// Whether it was told that the action failed; absent = it was not told either way.
        #[serde(skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
        /// `false`: the action goes on in the background.
        r#final: bool,
    },
    /// A part that the importer does not understand, as it stands.
    Opaque(Opaque<'a>),
}

wire! {
    /// Content that only its provider, or nobody here, can read (spec 03, "Parts").
    pub struct Opaque<'a> {
        /// Whose it is.
        provider: Str<'a>,
        /// What the provider calls it.
        kind?: Str<'a>,
        /// The content as it stands.
        value: Value<'a>,
    }

    /// All members that a part can have; a part is read into this first.
    pub struct PartMembers<'a> {
        /// Discriminator.
        r#type: Str<'a>,
        /// See [`Part`].
        text?: Value<'a>,
        /// See [`Part`].
        opaque?: Opaque<'a>,
        /// See [`Part`].
        media?: Str<'a>,
        /// See [`Part`].
        data?: Value<'a>,
        /// See [`Part`].
        name?: Str<'a>,
        /// See [`Part`].
        value?: Value<'a>,
        /// See [`Part`].
        action?: Str<'a>,
        /// See [`Part`].
        parts?: Vec<Part<'a>>,
        /// See [`Part`].
        is_error?: bool,
        /// See [`Part`].
        r#final?: bool,
        /// See [`Opaque`].
        provider?: Str<'a>,
        /// See [`Opaque`].
        kind?: Str<'a>,
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Part<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        fn need<T, E: Error>(member: Option<T>, name: &'static str) -> Result<T, E> {
            member.ok_or_else(|| E::missing_field(name))
        }
        let m = PartMembers::deserialize(d)?;
        Ok(match m.r#type.as_str() {
            "text" => Part::Text { text: need(m.text, "text")? },
            "reasoning" => Part::Reasoning { text: m.text, opaque: m.opaque },
            "image" => Part::Image { media: need(m.media, "media")?, data: need(m.data, "data")? },
            "file" => Part::File { name: m.name, media: m.media, data: need(m.data, "data")? },
            "json" => Part::Json { value: need(m.value, "value")? },
            "action" => Part::Action { action: need(m.action, "action")? },
            "result" => Part::Result {
                action: need(m.action, "action")?,
                parts: need(m.parts, "parts")?,
                is_error: m.is_error,
                r#final: need(m.r#final, "final")?,
            },
            "opaque" => Part::Opaque(Opaque {
                provider: need(m.provider, "provider")?,
                kind: m.kind,
                value: need(m.value, "value")?,
            }),
            other => {
                return Err(D::Error::unknown_variant(
                    other,
                    &["text", "reasoning", "image", "file", "json", "action", "result", "opaque"],
                ));
            }
        })
    }
}

impl<'a> Part<'a> {
    /// A text part.
    pub fn text(text: impl Into<Value<'a>>) -> Self {
        Part::Text { text: text.into() }
    }

    /// Every value in the part that may be moved to a blob.
    pub fn values_mut<'p>(&'p mut self, into: &mut Vec<&'p mut Value<'a>>) {
        match self {
            Part::Text { text: value } | Part::Json { value } => into.push(value),
            Part::Image { data, .. } | Part::File { data, .. } => into.push(data),
            Part::Reasoning { text, opaque } => {
                into.extend(text.as_mut());
                into.extend(opaque.as_mut().map(|o| &mut o.value));
            }
            Part::Result { parts, .. } => parts.iter_mut().for_each(|p| p.values_mut(into)),
            Part::Opaque(opaque) => into.push(&mut opaque.value),
            Part::Action { .. } => {}
        }
    }
}
