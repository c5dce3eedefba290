//! What the first and last records of sessions tell, for lists of them.

use std::path::PathBuf;

use palog::envelope::Time;
use serde::Serialize;

/// The sessions at a place.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The sessions, in no particular order.
    pub sessions: Vec<Listed>,
    /// Files whose names say that they hold a session, and whose content does not or cannot be read.
    pub unrecognised: Vec<PathBuf>,
}

/// A session, as far as its first and last records tell.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Listed {
    /// The program that ran it.
    pub vendor: &'static str,
    /// Native id of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Where it lies.
    #[serde(serialize_with = "lossy")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: PathBuf,
    /// Title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where the title comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title_from: Option<TitleFrom>,
    /// Working directory, as it was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Branch of the version control system, as it was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// When something last happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_activity: Option<Time<'static>>,
    /// Where that time comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_activity_from: Option<TimeFrom>,
    /// Size of its main file in bytes.
    pub bytes: u64,
    /// How many subagents have files of their own.
    pub subagents: u64,
}

/// Where a title comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TitleFrom {
    /// A person gave it.
    User,
    /// The client had it made.
    Client,
    /// A summary of the conversation.
    Summary,
    /// The beginning of the first prompt.
    Prompt,
}

/// Where a time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TimeFrom {
    /// The newest record with a time.
    Record,
    /// The file system: when the file was last written to.
    File,
}

#[expect(clippy::ptr_arg, reason = "what serde asks for")]
fn lossy<S: serde::Serializer>(path: &PathBuf, s: S) -> Result<S::Ok, S::Error> {
    path.to_string_lossy().serialize(s)
}
