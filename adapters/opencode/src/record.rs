//! What records look like, read by key and borrowed from their text (`spec/sources/opencode.md`).
//!
//! Members that are not listed stay in the kept source. A member that has another form than here counts as absent, so that
//! one odd member does not hide a call in the same record.

use std::borrow::Cow;
use std::time::{Duration, UNIX_EPOCH};

use palog::diagnostic::Place;
use palog::envelope::{Src, SrcHow, Time};
use palog::json::{Raw, Str};
use palog_adapter::ids::{EventId, Ids, Native};
use palog_adapter::sqlite::Row;
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Where a record stands, and what its events are known by.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// A row of a table, or a file of a tree that is kept like one. Without a digest it never changes, and its key is its id.
    Row { table: String, key: String, digest: String },
    /// A piece of a file.
    Span { at: u64, len: u64, line: Option<u64>, pointer: Option<String>, id: Option<String> },
}

impl Origin {
    /// The place of a row.
    pub(crate) fn of(row: &Row) -> Self {
        let digest = palog::blob::sha256_hex(&row.line());
        Origin::Row { table: row.table().to_owned(), key: row.key(), digest }
    }

    /// The place of a row that is written once.
    pub(crate) fn of_change(row: &Row) -> Self {
        Origin::Row { table: row.table().to_owned(), key: row.key(), digest: String::new() }
    }

    /// The same place, for an event that says what the others say as well.
    pub(crate) fn with(&self, others: &[Record<'_>]) -> Origin {
        match self {
            Origin::Row { table, key, digest } if !others.is_empty() => {
                let mut all = digest.clone();
                for other in others {
                    if let Origin::Row { digest, .. } = &other.origin {
                        all.push_str(digest);
                    }
                }
                let digest = palog::blob::sha256_hex(all.as_bytes());
                Origin::Row { table: table.clone(), key: key.clone(), digest }
            }
            Origin::Row { .. } | Origin::Span { .. } => self.clone(),
        }
    }

    /// The id of the event number `ordinal` that comes from the record.
    pub(crate) fn event(&self, ids: &Ids, ordinal: u32) -> EventId {
        ids.event(
            match self {
                Origin::Row { key, digest, .. } if digest.is_empty() => Native::Uuid(key),
                Origin::Row { table, key, digest } => Native::Row(table, key, digest),
                Origin::Span { id: Some(id), .. } => Native::Uuid(id),
                Origin::Span { at, .. } => Native::Offset(*at),
            },
            ordinal,
        )
    }

    /// A reference to the record.
    pub(crate) fn src(&self, source: &str, how: Option<SrcHow>) -> Src<'static> {
        let source = source.to_owned().into();
        match self {
            Origin::Row { table, key, .. } => {
                let (table, key) = (Some(table.clone().into()), Some(key.clone().into()));
                Src { source, at: None, len: None, table, key, how }
            }
            Origin::Span { at, len, .. } => Src { source, at: Some(*at), len: Some(*len), table: None, key: None, how },
        }
    }

    /// The place of the record in the input, for a diagnostic.
    pub(crate) fn place(&self, input: &str) -> Place {
        let input = Some(input.to_owned());
        match self {
            Origin::Row { table, key, .. } => {
                Place { input, kind: Some(table.clone()), record: Some(key.clone()), ..Place::default() }
            }
            Origin::Span { at, len, line, pointer, id } => Place {
                input,
                line: *line,
                offset: Some(*at),
                length: Some(*len),
                pointer: pointer.clone(),
                record: id.clone(),
                ..Place::default()
            },
        }
    }
}

/// A record of a session: a row, a file, or a piece of a document.
#[derive(Clone, Debug)]
pub(crate) struct Record<'r> {
    /// `session`, `message`, `part` …
    pub(crate) kind: Cow<'r, str>,
    /// Its native id.
    pub(crate) id: String,
    /// When it was made, in milliseconds, where the store tells that beside its text.
    pub(crate) created: Option<i64>,
    /// Its text: a JSON object.
    pub(crate) text: Cow<'r, str>,
    /// Where it stands.
    pub(crate) origin: Origin,
}

impl Record<'_> {
    /// A row as a record whose text is the row itself.
    pub(crate) fn of_row(row: &Row) -> Record<'static> {
        Record {
            kind: row.table().to_owned().into(),
            id: row.key(),
            created: row.integer("time_created"),
            text: String::from_utf8(row.line()).unwrap_or_default().into(),
            origin: Origin::of(row),
        }
    }

    /// A row as a record whose text stands in a column.
    pub(crate) fn of_data(row: &Row) -> Record<'static> {
        let text = row.text("data").unwrap_or_default().to_owned();
        Record { text: text.into(), ..Record::of_row_without_text(row) }
    }

    fn of_row_without_text(row: &Row) -> Record<'static> {
        Record {
            kind: row.table().to_owned().into(),
            id: row.text("id").unwrap_or_default().to_owned(),
            created: row.integer("time_created"),
            text: "".into(),
            origin: Origin::of(row),
        }
    }

    /// Reads the text.
    pub(crate) fn read<'t, T: Deserialize<'t>>(&'t self) -> Option<T> {
        serde_json::from_str(&self.text).ok()
    }
}

/// Milliseconds since 1970 as a time; `None` outside of the years 0000 to 9999.
pub(crate) fn time(milliseconds: i64) -> Option<Time<'static>> {
    let size = Duration::from_millis(milliseconds.unsigned_abs());
    let time = if milliseconds < 0 { UNIX_EPOCH.checked_sub(size) } else { UNIX_EPOCH.checked_add(size) };
    Time::of(time?)
}

/// A session.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Head<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) id: Option<Str<'a>>,
    #[serde(default, rename = "parentID", deserialize_with = "text")]
    pub(crate) parent: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) title: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) directory: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) version: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) revert: Option<Revert>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) time: Option<Times>,
}

/// What a person took back, and has not gone on from.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Revert {
    #[serde(rename = "messageID")]
    pub(crate) message: String,
    #[serde(default, rename = "partID")]
    pub(crate) part: Option<String>,
}

/// Times, in milliseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Times {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) created: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) updated: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) completed: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) start: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) end: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) compacted: Option<i64>,
}

/// A message without its parts.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Info<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) role: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) time: Option<Times>,
    #[serde(default, rename = "parentID", deserialize_with = "text")]
    pub(crate) parent: Option<Str<'a>>,
    #[serde(default, rename = "modelID", deserialize_with = "text")]
    pub(crate) model: Option<Str<'a>>,
    #[serde(default, rename = "providerID", deserialize_with = "text")]
    pub(crate) provider: Option<Str<'a>>,
    /// Of a message of the user: the model that should answer.
    #[serde(default, rename = "model", deserialize_with = "lenient")]
    pub(crate) chosen: Option<Model<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) agent: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) error: Option<Failure<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) finish: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) tokens: Option<Tokens>,
    pub(crate) cost: Option<Raw<'a>>,
    pub(crate) summary: Option<Raw<'a>>,
}

impl Info<'_> {
    /// Whether it is the answer of a compaction.
    pub(crate) fn is_summary(&self) -> bool {
        self.summary.as_ref().is_some_and(|s| s.get() == "true")
    }

    /// Whether a person broke it off.
    pub(crate) fn is_aborted(&self) -> bool {
        self.error.as_ref().is_some_and(|e| e.name.as_str() == "MessageAbortedError")
    }

    /// The model as the client's command line takes it.
    pub(crate) fn full_model(&self) -> Option<String> {
        let own = self.provider.as_ref().zip(self.model.as_ref());
        let own = own.map(|(provider, model)| format!("{}/{}", provider.as_str(), model.as_str()));
        own.or_else(|| self.chosen.as_ref().and_then(Model::full))
    }
}

/// A model, as a message or a session names it.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Model<'a> {
    #[serde(default, rename = "providerID", deserialize_with = "text")]
    pub(crate) provider: Option<Str<'a>>,
    #[serde(default, rename = "modelID", deserialize_with = "text")]
    pub(crate) model: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) id: Option<Str<'a>>,
}

impl Model<'_> {
    /// The model as the client's command line takes it.
    pub(crate) fn full(&self) -> Option<String> {
        let model = self.model.as_ref().or(self.id.as_ref())?;
        Some(format!("{}/{}", self.provider.as_ref()?.as_str(), model.as_str()))
    }
}

/// What ended a message instead of an answer.
#[derive(Debug, Deserialize, Serialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Failure<'a> {
    pub(crate) name: Str<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Raw<'a>>,
}

impl Failure<'_> {
    /// What it says to people.
    pub(crate) fn message(&self) -> String {
        #[derive(Default, Deserialize)]
        struct Said {
            message: Option<String>,
        }
        let said: Said = self.data.as_ref().and_then(|d| serde_json::from_str(d.get()).ok()).unwrap_or_default();
        said.message.unwrap_or_else(|| self.name.to_string())
    }
}

/// Token counts of a step.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Tokens {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) input: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) output: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) reasoning: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) cache: Option<Cache>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Cache {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) read: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) write: Option<u64>,
}

/// A part of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Part<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) r#type: Option<Str<'a>>,
    pub(crate) text: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) synthetic: Option<bool>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) ignored: Option<bool>,
    pub(crate) metadata: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) tool: Option<Str<'a>>,
    #[serde(default, rename = "callID", deserialize_with = "text")]
    pub(crate) call: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) state: Option<State<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) mime: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) filename: Option<Str<'a>>,
    pub(crate) url: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) snapshot: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) auto: Option<bool>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) tail_start_id: Option<Str<'a>>,
}

impl Part<'_> {
    /// The type of the part.
    pub(crate) fn kind(&self) -> &str {
        self.r#type.as_deref().unwrap_or_default()
    }

    /// Whether it is a text with something in it.
    pub(crate) fn has_text(&self) -> bool {
        self.text.as_ref().is_some_and(|t| t.is_string() && t.get() != "\"\"")
    }
}

/// How a call stands.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct State<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) status: Option<Str<'a>>,
    pub(crate) input: Option<Raw<'a>>,
    pub(crate) output: Option<Raw<'a>>,
    pub(crate) error: Option<Raw<'a>>,
    pub(crate) metadata: Option<Raw<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) time: Option<Times>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) attachments: Option<Vec<Raw<'a>>>,
    /// Of the preview API.
    pub(crate) structured: Option<Raw<'a>>,
    /// Of the preview API.
    pub(crate) content: Option<Raw<'a>>,
}

/// What a tool says of its run.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Metadata<'a> {
    /// `null` says that the command was stopped; absence says nothing.
    #[serde(default, borrow, deserialize_with = "as_it_stands")]
    pub(crate) exit: Option<Raw<'a>>,
    pub(crate) output: Option<Raw<'a>>,
    #[serde(default, rename = "sessionId", deserialize_with = "text")]
    pub(crate) session: Option<Str<'a>>,
    #[serde(default, rename = "outputPath", deserialize_with = "text")]
    pub(crate) output_path: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) interrupted: Option<bool>,
}

/// Reads a member whose `null` means something.
fn as_it_stands<'de: 'a, 'a, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Raw<'a>>, D::Error> {
    Raw::deserialize(d).map(Some)
}

/// A change that the client recorded or sent: a snapshot of what changed.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Change<'a> {
    #[serde(default, rename = "messageID", deserialize_with = "text")]
    pub(crate) message: Option<Str<'a>>,
    #[serde(default, rename = "partID", deserialize_with = "text")]
    pub(crate) part_id: Option<Str<'a>>,
    pub(crate) info: Option<Raw<'a>>,
    pub(crate) part: Option<Raw<'a>>,
}

/// The ids that a snapshot has in itself.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Named<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) id: Option<Str<'a>>,
    #[serde(default, rename = "messageID", deserialize_with = "text")]
    pub(crate) message: Option<Str<'a>>,
    #[serde(default, rename = "sessionID", deserialize_with = "text")]
    pub(crate) session: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) time: Option<Times>,
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

pub(crate) fn text<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Str<'de>>, D::Error> {
    <&RawValue>::deserialize(d).map(characters)
}

pub(crate) fn lenient<'de, T: Deserialize<'de>, D: Deserializer<'de>>(d: D) -> Result<Option<T>, D::Error> {
    let raw = <&'de RawValue>::deserialize(d)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}
