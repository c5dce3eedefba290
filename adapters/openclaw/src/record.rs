//! What an entry looks like, read by key and borrowed from its text (`spec/sources/pi.md`).
//!
//! Members that are not listed stay in the kept source. A member that has another form than here counts as absent, so that
//! one odd member does not hide a call in the same entry.

use palog::json::{Raw, Str};
use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::value::RawValue;

/// Types of entries that are known and kept without being mapped.
pub(crate) const KEPT: &[&str] =
    &["custom", "label", "mode_change", "reset", "service_tier_change", "session_init", "thinking_level_change"];

/// All types of entries that are known.
const MAPPED: &[&str] =
    &["session", "message", "model_change", "compaction", "branch_summary", "custom_message", "session_info", "title"];

/// The first version of the header whose entries have ids.
const WITH_IDS: u64 = 2;

/// One entry, or the header.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
pub(crate) struct Entry<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) r#type: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) id: Option<Str<'a>>,
    /// `null` at a root; not there in the first version.
    #[serde(default, deserialize_with = "present")]
    pub(crate) parent_id: Option<Raw<'a>>,
    pub(crate) timestamp: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) message: Option<Message<'a>>,
    // The header.
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) version: Option<u64>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) cwd: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) parent_session: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) branched_from: Option<Str<'a>>,
    // Changes of the model and names.
    #[serde(default, deserialize_with = "text")]
    pub(crate) model_id: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) name: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) title: Option<Str<'a>>,
    // Summaries, and texts of extensions.
    pub(crate) summary: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) first_kept_entry_id: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) first_kept_entry_index: Option<usize>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) tokens_before: Option<u64>,
    pub(crate) content: Option<Raw<'a>>,
}

/// The message of an entry.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
pub(crate) struct Message<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) role: Option<Str<'a>>,
    pub(crate) content: Option<Raw<'a>>,
    pub(crate) timestamp: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) api: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) model: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) usage: Option<Usage<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) stop_reason: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) response_id: Option<Str<'a>>,
    pub(crate) error_message: Option<Raw<'a>>,
    // Results.
    #[serde(default, deserialize_with = "text")]
    pub(crate) tool_call_id: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) is_error: Option<bool>,
    pub(crate) details: Option<Raw<'a>>,
    // Commands that the user typed.
    #[serde(default, deserialize_with = "text")]
    pub(crate) command: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) output: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) exit_code: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) cancelled: Option<bool>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) truncated: Option<bool>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) full_output_path: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) exclude_from_context: Option<bool>,
    // Summaries.
    pub(crate) summary: Option<Raw<'a>>,
    // OpenClaw.
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) provenance: Option<Provenance<'a>>,
    #[serde(default, rename = "__openclaw", deserialize_with = "lenient")]
    pub(crate) marks: Option<Marks<'a>>,
}

/// What OpenClaw notes of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
pub(crate) struct Marks<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) run_id: Option<Str<'a>>,
}

/// Who put a message in.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Provenance<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) kind: Option<Str<'a>>,
}

/// Token counts.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
pub(crate) struct Usage<'a> {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) input: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) output: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) cache_read: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) cache_write: Option<u64>,
    pub(crate) cost: Option<Raw<'a>>,
}

/// One block of a content.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
pub(crate) struct Block<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) r#type: Option<Str<'a>>,
    pub(crate) text: Option<Raw<'a>>,
    pub(crate) thinking: Option<Raw<'a>>,
    pub(crate) thinking_signature: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) id: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) name: Option<Str<'a>>,
    pub(crate) arguments: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) data: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) mime_type: Option<Str<'a>>,
}

impl Entry<'_> {
    /// Whether it is the header of a file.
    pub(crate) fn is_header(&self) -> bool {
        self.r#type.as_deref() == Some("session") && self.id.is_some()
    }

    /// Whether the entries below this header have ids.
    pub(crate) fn has_ids(&self) -> bool {
        self.version.is_some_and(|version| version >= WITH_IDS)
    }

    /// Whether the type is one of the family's.
    pub(crate) fn is_known(&self) -> bool {
        self.r#type.as_deref().is_some_and(|t| MAPPED.contains(&t) || KEPT.contains(&t))
    }

    /// The kind of the entry in the words of the client: its type, and behind a slash the role of its message.
    pub(crate) fn kind(&self) -> String {
        let outer = self.r#type.as_deref().unwrap_or_default();
        match self.message.as_ref().and_then(|m| m.role.as_deref()) {
            Some(role) if outer == "message" => format!("message/{role}"),
            _ => outer.to_owned(),
        }
    }
}

/// Whether an object that was found inside a damaged line can be an entry of its own: a block of a content is none.
pub(crate) fn looks_like_record(text: &str) -> bool {
    serde_json::from_str::<Entry<'_>>(text).is_ok_and(|e| e.timestamp.is_some() && e.is_known())
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
    match serde_json::from_str(json) {
        Ok(text) => Some(text),
        Err(_) => Raw::from(raw).text().map(|t| t.into_owned().into()),
    }
}

pub(crate) fn text<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Str<'de>>, D::Error> {
    <&RawValue>::deserialize(d).map(characters)
}

/// The value also where it is `null`.
fn present<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Raw<'de>>, D::Error> {
    <&RawValue>::deserialize(d).map(|raw| Some(raw.into()))
}

pub(crate) fn lenient<'de, T: Deserialize<'de>, D: Deserializer<'de>>(d: D) -> Result<Option<T>, D::Error> {
    let raw = <&'de RawValue>::deserialize(d)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}
