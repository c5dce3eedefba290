//! The records that are written: the members that the client needs, and those that keep a record in its place.

use palog::json::Raw;
use palog_adapter::export::Mark;
use serde::Serialize;

/// One line of a transcript, in the order of the client's own members.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line<'a> {
    /// On every record of the tree; `null` at a beginning.
    pub(super) parent_uuid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) logical_parent_uuid: Option<&'a str>,
    pub(super) is_sidechain: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt_id: Option<&'a str>,
    pub(super) r#type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) subtype: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) compact_metadata: Option<Raw<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) microcompact_metadata: Option<Raw<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_meta: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_visible_in_transcript_only: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_compact_summary: bool,
    pub(super) uuid: &'a str,
    pub(super) timestamp: &'a str,
    #[serde(rename = "sourceToolAssistantUUID", skip_serializing_if = "Option::is_none")]
    pub(super) source_tool_assistant_uuid: Option<&'a str>,
    pub(super) cwd: &'a str,
    pub(super) session_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) git_branch: Option<&'a str>,
    #[serde(rename = "palog", skip_serializing_if = "Mark::is_empty")]
    pub(super) mark: Mark,
}

/// A message of the provider's API.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Message<'a> {
    /// Of the user's side.
    User { role: &'static str, content: Raw<'a> },
    /// One block of a message of the model.
    Assistant {
        id: &'a str,
        r#type: &'static str,
        role: &'static str,
        model: &'a str,
        content: [Raw<'a>; 1],
        stop_reason: Option<&'a str>,
        stop_sequence: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
}

/// Token counts in the provider's words: what came from a cache is no part of the input.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Usage {
    pub(super) input_tokens: u64,
    pub(super) cache_creation_input_tokens: u64,
    pub(super) cache_read_input_tokens: u64,
    pub(super) output_tokens: u64,
}

/// A block of a message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'b> {
    Text {
        text: Raw<'b>,
    },
    Thinking {
        thinking: Raw<'b>,
        signature: Raw<'b>,
    },
    RedactedThinking {
        data: Raw<'b>,
    },
    Image {
        source: Source<'b>,
    },
    Document {
        source: Source<'b>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'b str>,
    },
    ToolUse {
        id: &'b str,
        name: &'b str,
        input: Raw<'b>,
    },
    ToolResult {
        tool_use_id: &'b str,
        content: Raw<'b>,
        #[serde(skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
    },
}

/// The content of a picture or a document.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'b> {
    Base64 { media_type: &'b str, data: &'b str },
    Text { media_type: &'b str, data: Raw<'b> },
    Url { url: &'b str },
}
