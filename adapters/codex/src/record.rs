//! What a record of a rollout looks like, read by key and borrowed from its line (`spec/sources/codex.md`).
//!
//! Members that are not listed stay in the kept source. A member that has another form than here counts as absent, so that
//! one odd member does not hide a call in the same record.

use palog::json::{Raw, Str};
use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::value::RawValue;

/// Types of bare items, as the first clients wrote them without an envelope.
const BARE: &[&str] = &[
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "web_search_call",
];

/// Types of records in an envelope.
pub(crate) const TYPES: &[&str] = &[
    "session_meta",
    "turn_context",
    "world_state",
    "response_item",
    "event_msg",
    "compacted",
    "token_usage_record",
    "retained_context",
    "inter_agent_communication_metadata",
];

/// One line of a rollout.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Line<'a> {
    pub(crate) timestamp: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "number")]
    pub(crate) ordinal: Option<u64>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) r#type: Option<Str<'a>>,
    pub(crate) payload: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) metadata: Option<Metadata>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) record_type: Option<Str<'a>>,
    /// Of a bare header.
    #[serde(default, deserialize_with = "text")]
    pub(crate) id: Option<Str<'a>>,
    /// Of a bare header: there, often `null`.
    pub(crate) instructions: Option<Raw<'a>>,
    /// What an exporter says of the record.
    pub(crate) palog: Option<Raw<'a>>,
}

/// The form that a line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A payload in an envelope.
    Enveloped,
    /// A header without an envelope, as in 2025.
    BareHeader,
    /// An item without an envelope.
    BareItem,
    /// A mark without an envelope.
    BareMark,
    /// It is no record of a rollout.
    None,
}

impl Line<'_> {
    /// Which form the line has.
    pub(crate) fn form(&self) -> Form {
        match (&self.r#type, &self.payload, &self.record_type) {
            (Some(_), Some(payload), _) if payload.get().starts_with('{') => Form::Enveloped,
            (_, _, Some(_)) => Form::BareMark,
            (Some(kind), None, None) if BARE.contains(&&**kind) => Form::BareItem,
            (None, None, None) if self.id.is_some() && (self.timestamp.is_some() || self.instructions.is_some()) => {
                Form::BareHeader
            }
            _ => Form::None,
        }
    }

    /// Whether the line is certainly one of a rollout.
    pub(crate) fn is_known(&self) -> bool {
        match self.form() {
            Form::Enveloped => self.r#type.as_deref().is_some_and(|t| TYPES.contains(&t)),
            // An item alone might be anybody's.
            Form::BareHeader => true,
            Form::BareMark => self.record_type.as_deref() == Some("state"),
            Form::BareItem | Form::None => false,
        }
    }
}

/// Whether an object that was found inside a damaged line can be a record of its own.
pub(crate) fn looks_like_record(text: &str) -> bool {
    serde_json::from_str::<Line<'_>>(text).is_ok_and(|line| match line.form() {
        Form::Enveloped => line.timestamp.is_some(),
        form => form != Form::None && line.is_known(),
    })
}

/// Facts of the client about an item.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Metadata {
    #[serde(default, deserialize_with = "flag")]
    pub(crate) compaction_output: bool,
}

/// `session_meta`.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Meta<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) id: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) cwd: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) cli_version: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) history_mode: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) forked_from_id: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) parent_thread_id: Option<Str<'a>>,
    #[serde(default, deserialize_with = "number")]
    pub(crate) subagent_history_start_ordinal: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) history_base: Option<HistoryBase>,
    pub(crate) source: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) base_instructions: Option<BaseInstructions<'a>>,
    /// Of older clients: a string or `null`.
    #[serde(default)]
    pub(crate) instructions: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) git: Option<Git<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) dynamic_tools: Option<Vec<Tool<'a>>>,
}

/// A tool of the program that started a session.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Tool<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) name: Option<Str<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct BaseInstructions<'a> {
    pub(crate) text: Raw<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Git<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) branch: Option<Str<'a>>,
}

/// The prefix of another file that a history goes on from.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct HistoryBase {
    pub(crate) thread_id: String,
    pub(crate) end_ordinal_exclusive: u64,
    #[serde(default, deserialize_with = "number")]
    pub(crate) end_byte_offset: Option<u64>,
}

/// `turn_context`, and the settings of a thread.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Settings<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) cwd: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) model: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) approval_policy: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) collaboration_mode: Option<Mode<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Mode<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) mode: Option<Str<'a>>,
}

/// An item of the model's context.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Item<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) r#type: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) id: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) role: Option<Str<'a>>,
    pub(crate) content: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) phase: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) call_id: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) name: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text_or_json")]
    pub(crate) namespace: Option<Str<'a>>,
    pub(crate) arguments: Option<Raw<'a>>,
    pub(crate) input: Option<Raw<'a>>,
    pub(crate) action: Option<Raw<'a>>,
    pub(crate) output: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) summary: Option<Vec<Content<'a>>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) internal_chat_message_metadata_passthrough: Option<Passthrough>,
}

impl Item<'_> {
    /// The turn that the client says it belongs to.
    pub(crate) fn turn(&self) -> Option<&str> {
        self.internal_chat_message_metadata_passthrough.as_ref()?.turn_id.as_deref()
    }

    /// What the client says each part of the content is.
    pub(crate) fn kinds(&self) -> &[String] {
        self.internal_chat_message_metadata_passthrough
            .as_ref()
            .map(|p| p.content_item_kinds.as_slice())
            .unwrap_or_default()
    }
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Passthrough {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) turn_id: Option<String>,
    #[serde(default)]
    pub(crate) content_item_kinds: Vec<String>,
}

/// One part of a content.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Content<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) r#type: Option<Str<'a>>,
    pub(crate) text: Option<Raw<'a>>,
    pub(crate) image_url: Option<Raw<'a>>,
}

/// An event for the client's screen.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Event<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) r#type: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) turn_id: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) thread_id: Option<Str<'a>>,
    pub(crate) turn_attribution: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) root_turn_id: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) reason: Option<Str<'a>>,
    pub(crate) error: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) item: Option<Done<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) info: Option<crate::usage::Info>,
    #[serde(default, deserialize_with = "number")]
    pub(crate) num_turns: Option<u64>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) thread_name: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) thread_settings: Option<Settings<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) new_thread_id: Option<Str<'a>>,
}

/// What ran, as the screen shows it: the item of `item_completed`, or the end event of an older client.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Done<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) r#type: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) id: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) call_id: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) status: Option<Str<'a>>,
    #[serde(default, deserialize_with = "signed")]
    pub(crate) exit_code: Option<i64>,
    pub(crate) aggregated_output: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) source: Option<Str<'a>>,
    pub(crate) command: Option<Raw<'a>>,
    pub(crate) cwd: Option<Raw<'a>>,
    pub(crate) stdout: Option<Raw<'a>>,
    pub(crate) stderr: Option<Raw<'a>>,
    pub(crate) changes: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "maybe")]
    pub(crate) success: Option<bool>,
    pub(crate) result: Option<Raw<'a>>,
    pub(crate) content_items: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) tool: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) receiver_thread_ids: Option<Vec<Str<'a>>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) agent_thread_id: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) kind: Option<Str<'a>>,
}

/// `compacted`.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Compacted<'a> {
    pub(crate) message: Option<Raw<'a>>,
    pub(crate) replacement_history: Option<Raw<'a>>,
}

/// `token_usage_record`.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct UsageRecord<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) thread_id: Option<Str<'a>>,
    pub(crate) response_id: Str<'a>,
    pub(crate) usage: crate::usage::Counts,
}

/// `retained_context`.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Retained<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) r#type: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) call_id: Option<Str<'a>>,
    pub(crate) questions: Option<Raw<'a>>,
}

/// The kind of a payload, for reports.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Typed<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) r#type: Option<Str<'a>>,
}

/// The value as `T`, or nothing where it has another form.
pub(crate) fn parse<'r, T: Deserialize<'r>>(raw: &'r Raw<'_>) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// The characters of a JSON string, lone surrogates replaced; `None` where it is no string.
fn characters(raw: &RawValue) -> Option<Str<'_>> {
    let json = raw.get();
    if !json.starts_with('"') {
        return None;
    }
    // Most strings have no escapes, and are borrowed.
    match serde_json::from_str(json) {
        Ok(text) => Some(text),
        Err(_) => Raw::from(raw).text().map(|t| t.into_owned().into()),
    }
}

fn text<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Str<'de>>, D::Error> {
    <&RawValue>::deserialize(d).map(characters)
}

/// A string; of any other value but `null` its JSON.
fn text_or_json<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Str<'de>>, D::Error> {
    let raw = <&'de RawValue>::deserialize(d)?;
    Ok(characters(raw).or_else(|| Some(raw.get().into()).filter(|_| raw.get() != "null")))
}

fn lenient<'de, T: Deserialize<'de>, D: Deserializer<'de>>(d: D) -> Result<Option<T>, D::Error> {
    let raw = <&'de RawValue>::deserialize(d)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

fn number<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    lenient(d)
}

fn signed<'de, D: Deserializer<'de>>(d: D) -> Result<Option<i64>, D::Error> {
    lenient(d)
}

fn maybe<'de, D: Deserializer<'de>>(d: D) -> Result<Option<bool>, D::Error> {
    lenient(d)
}

fn flag<'de, D: Deserializer<'de>>(d: D) -> Result<bool, D::Error> {
    lenient(d).map(|flag| flag == Some(true))
}
