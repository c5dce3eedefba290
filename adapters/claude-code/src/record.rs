//! What a transcript record looks like, read by key and borrowed from its line (`spec/sources/claude-code.md`).
//!
//! Members that are not listed stay in the kept source. A member that has another form than here counts as absent, so that
//! one odd member does not hide a call in the same record.

use std::collections::HashMap;

use palog::json::{Raw, Str};
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny};
use serde_json::value::RawValue;

use crate::members::{LONGEST, Read, has_long, read};

/// One line of a transcript.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
pub(crate) struct Record<'a> {
    #[serde(default, deserialize_with = "text_or_empty")]
    pub(crate) r#type: Str<'a>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) subtype: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) uuid: Option<Str<'a>>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) parent_uuid: Nullable<Str<'a>>,
    #[serde(default, deserialize_with = "lenient_flag")]
    pub(crate) is_sidechain: bool,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) agent_id: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) session_id: Option<Str<'a>>,
    pub(crate) timestamp: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) cwd: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) version: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) git_branch: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient_read")]
    pub(crate) message: Option<Read<'a, Message<'a>>>,
    #[serde(rename = "sourceToolAssistantUUID")]
    pub(crate) source_tool_assistant_uuid: Option<Raw<'a>>,
    pub(crate) tool_use_result: Option<Raw<'a>>,
    pub(crate) tool_denial_kind: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient_flag")]
    pub(crate) is_meta: bool,
    #[serde(default, deserialize_with = "lenient_flag")]
    pub(crate) is_compact_summary: bool,
    #[serde(default, deserialize_with = "lenient_flag")]
    pub(crate) is_api_error_message: bool,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) prompt_id: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) prompt_source: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) permission_mode: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient_read")]
    pub(crate) origin: Option<Read<'a, Origin<'a>>>,
    pub(crate) interrupted_message_id: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) request_id: Option<Str<'a>>,
    pub(crate) error: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient_read")]
    pub(crate) attachment: Option<Read<'a, Attachment<'a>>>,
    pub(crate) content: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) operation: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) leaf_uuid: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient_read")]
    pub(crate) compact_metadata: Option<Read<'a, CompactMetadata<'a>>>,
    #[serde(default, deserialize_with = "lenient_read")]
    pub(crate) microcompact_metadata: Option<Read<'a, MicrocompactMetadata<'a>>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) mode: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) custom_title: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) ai_title: Option<Str<'a>>,
    /// What an exporter says of the record.
    pub(crate) palog: Option<Raw<'a>>,
    pub(crate) summary: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient_read")]
    pub(crate) data: Option<Read<'a, Typed<'a>>>,
}

/// A member that can be absent, `null`, or there: the three mean different things.
#[derive(Clone, Debug, Default)]
pub(crate) enum Nullable<T> {
    #[default]
    Absent,
    Null,
    Some(T),
}

fn nullable<'de, D: Deserializer<'de>>(d: D) -> Result<Nullable<Str<'de>>, D::Error> {
    let raw = <&RawValue>::deserialize(d)?;
    Ok(text(raw).map_or(Nullable::Null, Nullable::Some))
}

/// The characters of a JSON string, lone surrogates replaced; `None` where it is no string, or longer than a word can be.
fn text(raw: &RawValue) -> Option<Str<'_>> {
    let json = raw.get();
    if !json.starts_with('"') || json.len() > LONGEST {
        return None;
    }
    // Most strings have no escapes, and are borrowed.
    match serde_json::from_str(json) {
        Ok(text) => Some(text),
        Err(_) => Raw::from(raw).text().map(|t| t.into_owned().into()),
    }
}

fn lenient_text<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Str<'de>>, D::Error> {
    <&RawValue>::deserialize(d).map(text)
}

fn text_or_empty<'de, D: Deserializer<'de>>(d: D) -> Result<Str<'de>, D::Error> {
    <&RawValue>::deserialize(d).map(|raw| text(raw).unwrap_or_default())
}

fn lenient<'de, T: Deserialize<'de>, D: Deserializer<'de>>(d: D) -> Result<Option<T>, D::Error> {
    let raw = <&'de RawValue>::deserialize(d)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

fn lenient_object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(d: D) -> Result<Option<T>, D::Error> {
    Ok(lenient_read(d)?.map(|read| read.members))
}

fn lenient_read<'de, T: Deserialize<'de>, D: Deserializer<'de>>(d: D) -> Result<Option<Read<'de, T>>, D::Error> {
    let raw = <&'de RawValue>::deserialize(d)?;
    Ok(read(raw.get()).ok())
}

fn lenient_flag<'de, D: Deserializer<'de>>(d: D) -> Result<bool, D::Error> {
    <&RawValue>::deserialize(d).map(|raw| raw.get() == "true")
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Origin<'a> {
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) kind: Option<Str<'a>>,
}

/// An object of which only the type matters.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Typed<'a> {
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) r#type: Option<Str<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Message<'a> {
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) id: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) model: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) content: Option<Content<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) stop_reason: Option<Str<'a>>,
    pub(crate) usage: Option<Raw<'a>>,
}

/// The content of a message or of a tool result: a string or a list of blocks. A block that stands alone is a list of one.
#[derive(Debug)]
pub(crate) enum Content<'a> {
    Text(Raw<'a>),
    Blocks(Vec<Block<'a>>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(d)?;
        Ok(match raw.get().as_bytes().first() {
            Some(b'[') => Content::Blocks(serde_json::from_str(raw.get()).map_err(D::Error::custom)?),
            Some(b'{') => Content::Blocks(vec![Block::of(raw)]),
            _ => Content::Text(raw.into()),
        })
    }
}

impl<'a> Content<'a> {
    /// Reads the content of a result; what has not the form of blocks is taken as one value.
    pub(crate) fn of_result(raw: &'a Raw<'_>) -> Self {
        match serde_json::from_str(raw.get()) {
            Ok(content) => content,
            Err(_) => Content::Text(raw.borrowed()),
        }
    }
}

/// A content block with its members; `raw` is the block as it stands.
#[derive(Debug)]
pub(crate) struct Block<'a> {
    pub(crate) raw: Raw<'a>,
    pub(crate) members: Members<'a>,
    /// See [`Read`].
    pub(crate) repeated: bool,
}

impl<'a> Block<'a> {
    fn of(raw: &'a RawValue) -> Self {
        let Read { members, repeated, .. } = read(raw.get()).unwrap_or_default();
        Block { raw: raw.into(), members, repeated }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Members<'a> {
    #[serde(default, deserialize_with = "text_or_empty")]
    pub(crate) r#type: Str<'a>,
    pub(crate) text: Option<Raw<'a>>,
    pub(crate) thinking: Option<Raw<'a>>,
    pub(crate) signature: Option<Raw<'a>>,
    pub(crate) data: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) id: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) name: Option<Str<'a>>,
    pub(crate) input: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) tool_use_id: Option<Str<'a>>,
    /// Of a result. Read when it is needed: blocks can stand in blocks to any depth.
    pub(crate) content: Option<Raw<'a>>,
    pub(crate) is_error: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient_object")]
    pub(crate) source: Option<Source<'a>>,
}

impl Members<'_> {
    /// Whether a result is marked as an error, which it is not without a mark; `None` = the mark cannot be read.
    pub(crate) fn marks_error(&self) -> Option<bool> {
        match self.is_error.as_ref().map(Raw::get) {
            Some("true") => Some(true),
            Some("false") | None => Some(false),
            Some(_) => None,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Block<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        <&'de RawValue>::deserialize(d).map(Block::of)
    }
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Source<'a> {
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) r#type: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) media_type: Option<Str<'a>>,
    pub(crate) data: Option<Raw<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
pub(crate) struct Attachment<'a> {
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) r#type: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) prompt: Option<Content<'a>>,
    #[serde(default, deserialize_with = "lenient_object")]
    pub(crate) origin: Option<Origin<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) names: Option<Vec<Str<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
pub(crate) struct CompactMetadata<'a> {
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) trigger: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) pre_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) post_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient_object")]
    pub(crate) preserved_messages: Option<PreservedMessages<'a>>,
    #[serde(default, deserialize_with = "lenient_object")]
    pub(crate) preserved_segment: Option<PreservedSegment<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
pub(crate) struct PreservedMessages<'a> {
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) anchor_uuid: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) uuids: Option<Vec<Str<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
pub(crate) struct PreservedSegment<'a> {
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) head_uuid: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) anchor_uuid: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) tail_uuid: Option<Str<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
pub(crate) struct MicrocompactMetadata<'a> {
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) trigger: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) pre_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) compacted_tool_ids: Option<Vec<Str<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Usage {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) cache_creation_input_tokens: Option<u64>,
}

/// The members of `toolUseResult` that say what became of a call.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
pub(crate) struct ToolUseResult<'a> {
    pub(crate) interrupted: Option<Raw<'a>>,
    pub(crate) background_task_id: Option<Raw<'a>>,
    pub(crate) is_async: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) persisted_output_path: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) persisted_output_size: Option<u64>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) status: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) agent_id: Option<Str<'a>>,
    /// How a command ended, by its number.
    pub(crate) exit_code: Option<Raw<'a>>,
    pub(crate) code: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient_object")]
    pub(crate) file: Option<ResultFile<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct ResultFile<'a> {
    pub(crate) base64: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient_text")]
    pub(crate) r#type: Option<Str<'a>>,
}

impl ToolUseResult<'_> {
    /// Whether it says that the call goes on: a task in the background, or an agent that was launched.
    pub(crate) fn is_background(&self) -> bool {
        self.background_task_id.is_some()
            || self.is_async.as_ref().is_some_and(|flag| flag.get() != "false")
            || matches!(self.status.as_deref(), Some("async_launched" | "remote_launched"))
    }

    /// Whether it says that the command was interrupted; `None` = that cannot be read.
    pub(crate) fn is_interrupted(&self) -> Option<bool> {
        match self.interrupted.as_ref().map(Raw::get) {
            Some("true") => Some(true),
            Some("false") | None => Some(false),
            Some(_) => None,
        }
    }

    /// Whether it tells how a command ended, which then has run.
    pub(crate) fn has_exit(&self) -> bool {
        self.exit_code.is_some() || self.code.is_some()
    }
}

/// Whether a structured result has a member of a telling name in another spelling, so that nobody knows what it says.
pub(crate) fn is_misspelt(raw: &Raw<'_>) -> bool {
    const TELLING: [&str; 4] = ["interrupted", "backgroundTaskId", "isAsync", "status"];
    let Ok(members) = serde_json::from_str::<HashMap<Str<'_>, IgnoredAny>>(raw.get()) else { return false };
    let plain = |name: &str| name.replace(['_', '-'], "").to_ascii_lowercase();
    members.keys().any(|name| TELLING.iter().any(|known| **name != **known && plain(name) == plain(known)))
}

/// Members that are words: ids, names, paths.
const WORDS: &[&str] = &[
    "agentId",
    "aiTitle",
    "customTitle",
    "cwd",
    "error",
    "gitBranch",
    "interruptedMessageId",
    "leafUuid",
    "mode",
    "operation",
    "parentUuid",
    "permissionMode",
    "promptId",
    "promptSource",
    "requestId",
    "sessionId",
    "subtype",
    "toolDenialKind",
    "type",
    "uuid",
    "version",
];
const WORDS_OF_A_MESSAGE: &[&str] = &["id", "model", "stop_reason"];
const WORDS_OF_A_BLOCK: &[&str] = &["id", "name", "tool_use_id", "type"];

impl<'a> Record<'a> {
    /// Why what a record becomes does not hold all that it may say.
    pub(crate) fn oddity(record: &Read<'_, Self>) -> Option<&'static str> {
        let message = record.message.as_ref();
        let blocks = match message.and_then(|message| message.content.as_ref()) {
            Some(Content::Blocks(blocks)) => &blocks[..],
            _ => &[],
        };
        if record.repeated || message.is_some_and(|m| m.repeated) || blocks.iter().any(|b| b.repeated) {
            return Some("a member stands twice");
        }
        let long = has_long(record.text, WORDS)
            || message.is_some_and(|m| has_long(m.text, WORDS_OF_A_MESSAGE))
            || blocks.iter().any(|b| has_long(b.raw.get(), WORDS_OF_A_BLOCK))
            || record.attachment.as_ref().is_some_and(|a| has_long(a.text, &["type"]));
        long.then_some("an id or a name is longer than 65536 bytes")
    }

    /// The type as reports name it: with the kind of system record, attachment or progress behind it.
    pub(crate) fn kind(&self) -> String {
        let sub = match &*self.r#type {
            "system" => self.subtype.as_deref(),
            "attachment" => self.attachment.as_ref().and_then(|a| a.r#type.as_deref()),
            "progress" => self.data.as_ref().and_then(|d| d.r#type.as_deref()),
            _ => None,
        };
        match sub {
            Some(sub) => format!("{}/{sub}", self.r#type),
            None => self.r#type.to_string(),
        }
    }

    /// Whether it shows that this is a transcript: it has an id, a session or a leaf, or is a snapshot of the client's file
    /// history, which has none of these.
    pub(crate) fn is_recognised(&self) -> bool {
        let snapshot = matches!(&*self.r#type, "file-history-snapshot" | "file-history-delta");
        self.uuid.is_some() || self.session_id.is_some() || self.leaf_uuid.is_some() || snapshot
    }

    /// Whether it has what only the record of a result has.
    pub(crate) fn has_marks_of_result(&self) -> bool {
        [&self.source_tool_assistant_uuid, &self.tool_use_result, &self.tool_denial_kind].iter().any(|m| m.is_some())
    }

    /// Whether the client marked the record as coming from a background task.
    pub(crate) fn is_notification(&self) -> bool {
        self.origin.as_ref().is_some_and(|o| o.kind.as_deref() == Some("task-notification"))
    }
}

/// Whether the text of an object that was found inside a damaged line can be a record of a transcript.
pub(crate) fn looks_like_record(text: &str) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Probe<'a> {
        #[serde(borrow)]
        r#type: Option<Raw<'a>>,
        uuid: Option<IgnoredAny>,
        session_id: Option<IgnoredAny>,
        leaf_uuid: Option<IgnoredAny>,
        message_id: Option<IgnoredAny>,
    }
    read::<Probe<'_>>(text).is_ok_and(|Read { members: p, .. }| {
        p.r#type.is_some_and(|t| t.is_string())
            && (p.uuid.is_some() || p.session_id.is_some() || p.leaf_uuid.is_some() || p.message_id.is_some())
    })
}
