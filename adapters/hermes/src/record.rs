//! A record: a row of the database, or what an export made of one. Columns are found by name, whatever the version.

use std::borrow::Cow;
use std::collections::HashMap;

use palog::blob::sha256_hex;
use palog::envelope::{Src, SrcHow, Time};
use palog::json::Raw;
use palog_adapter::ids::{EventId, Ids, Native};
use palog_adapter::sqlite::{Row, Scalar};

/// How the client marks content that is no text.
const JSON_CONTENT: &str = "\0json:";

/// The columns of a record.
#[derive(Debug)]
enum Columns {
    Row(Row),
    Exported(HashMap<String, Raw<'static>>),
}

/// A record of a session.
#[derive(Debug)]
pub(crate) struct Record {
    /// Its table; of an export what stands for it.
    pub(crate) table: String,
    /// What it is known by there.
    pub(crate) key: String,
    digest: String,
    columns: Columns,
}

/// What a message says.
#[derive(Debug)]
pub(crate) enum Content<'r> {
    Nothing,
    Text(Cow<'r, str>),
    /// A list of parts, or an object.
    Json(Raw<'static>),
}

impl Content<'_> {
    /// The text, where there is nothing else.
    pub(crate) fn text(&self) -> &str {
        match self {
            Content::Text(text) => text,
            Content::Nothing | Content::Json(_) => "",
        }
    }
}

impl Record {
    /// A row.
    pub(crate) fn of_row(row: Row) -> Self {
        Record {
            table: row.table().to_owned(),
            key: row.key(),
            digest: sha256_hex(&row.line()),
            columns: Columns::Row(row),
        }
    }

    /// A JSON object that stands for a row; `None` if it is no object.
    pub(crate) fn exported(table: &str, key: String, object: &str) -> Option<Self> {
        let columns: HashMap<String, Raw<'_>> = serde_json::from_str(object).ok()?;
        let columns = columns.into_iter().map(|(name, value)| (name, value.into_owned())).collect();
        let digest = sha256_hex(object.as_bytes());
        Some(Record { table: table.to_owned(), key, digest, columns: Columns::Exported(columns) })
    }

    /// Leaves out members of an export that hold records of their own.
    pub(crate) fn without(mut self, members: &[&str]) -> Self {
        if let Columns::Exported(columns) = &mut self.columns {
            columns.retain(|name, _| !members.contains(&name.as_str()));
        }
        self
    }

    /// The id of the event number `ordinal` that comes from it.
    pub(crate) fn event(&self, ids: &Ids, ordinal: u32) -> EventId {
        ids.event(Native::Row(&self.table, &self.key, &self.digest), ordinal)
    }

    /// A reference to it.
    pub(crate) fn src<'s>(&self, source: &str, how: Option<SrcHow>) -> Src<'s> {
        let (table, key) = (Some(self.table.clone().into()), Some(self.key.clone().into()));
        Src { source: source.to_owned().into(), at: None, len: None, table, key, how }
    }

    /// The record as JSON, for events that keep it.
    pub(crate) fn json(&self) -> Raw<'static> {
        match &self.columns {
            Columns::Row(row) => {
                let line = row.line();
                let text = std::str::from_utf8(&line).unwrap_or("null");
                Raw::parse(text).map(Raw::into_owned).unwrap_or_else(|_| Raw::string(text))
            }
            Columns::Exported(columns) => Raw::of(&columns.iter().collect::<std::collections::BTreeMap<_, _>>()),
        }
    }

    /// The characters of a column; `None` where it holds something else, nothing, or is not there.
    pub(crate) fn text(&self, column: &str) -> Option<Cow<'_, str>> {
        match &self.columns {
            Columns::Row(row) => row.text(column).map(Cow::Borrowed),
            Columns::Exported(columns) => columns.get(column).filter(|raw| raw.is_string())?.text(),
        }
    }

    /// The characters of a column, if there are any.
    pub(crate) fn word(&self, column: &str) -> Option<Cow<'_, str>> {
        self.text(column).filter(|text| !text.is_empty())
    }

    /// The whole number of a column.
    pub(crate) fn integer(&self, column: &str) -> Option<i64> {
        match &self.columns {
            Columns::Row(row) => row.integer(column),
            Columns::Exported(columns) => columns.get(column)?.get().parse().ok(),
        }
    }

    /// The number of a column.
    pub(crate) fn real(&self, column: &str) -> Option<f64> {
        match &self.columns {
            Columns::Row(row) => row.real(column),
            Columns::Exported(columns) => columns.get(column)?.get().parse().ok(),
        }
    }

    /// Whether a flag is set; `unset` where the column is not there or holds nothing.
    pub(crate) fn flag(&self, column: &str, unset: bool) -> bool {
        self.integer(column).map_or(unset, |n| n != 0)
    }

    /// Whether a column holds bytes, or characters that are no UTF-8, where text should be.
    pub(crate) fn is_odd(&self, column: &str) -> bool {
        match &self.columns {
            Columns::Row(row) => matches!(row.get(column), Some(Scalar::OddText(_) | Scalar::Blob(_))),
            Columns::Exported(_) => false,
        }
    }

    /// The JSON of a column: text that is JSON, or in an export the value itself.
    pub(crate) fn value(&self, column: &str) -> Option<Raw<'static>> {
        if let Some(text) = self.text(column) {
            return Raw::parse(&text).ok().map(Raw::into_owned);
        }
        match &self.columns {
            Columns::Row(_) => None,
            Columns::Exported(columns) => columns.get(column).filter(|raw| raw.get() != "null").cloned(),
        }
    }

    /// What a message says.
    pub(crate) fn content(&self) -> Content<'_> {
        if let Some(text) = self.text("content") {
            let marked = text.strip_prefix(JSON_CONTENT).and_then(|json| Raw::parse(json).ok()).map(Raw::into_owned);
            return match marked {
                Some(json) => Content::Json(json),
                None if text.is_empty() => Content::Nothing,
                None => Content::Text(text),
            };
        }
        match self.value("content") {
            Some(json) => Content::Json(json),
            None => Content::Nothing,
        }
    }

    /// The time in a column of seconds; `Err` where it holds something that is none.
    pub(crate) fn time(&self, column: &str) -> Result<Option<Time<'static>>, ()> {
        match self.real(column) {
            Some(seconds) => time_of(seconds).map(Some).ok_or(()),
            None => Ok(None),
        }
    }
}

/// A time of the client, in seconds since 1970 with microseconds.
pub(crate) fn time_of(seconds: f64) -> Option<Time<'static>> {
    // Milliseconds, and anything else that is no such time, lie outside of the years in which there are sessions.
    if !(0.0..1e11).contains(&seconds) {
        return None;
    }
    let whole = std::time::Duration::from_secs(seconds as u64);
    let micros = std::time::Duration::from_micros((seconds.fract() * 1e6).round() as u64);
    Time::of(std::time::UNIX_EPOCH + whole + micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_with_microseconds() {
        let time = |seconds| time_of(seconds).map(|t| t.as_str().to_owned());
        assert_eq!(time(1_795_953_900.896_112_2).as_deref(), Some("2026-11-29T12:05:00.896112Z"));
        assert_eq!(time(1_760_000_000.0).as_deref(), Some("2025-10-09T08:53:20.000000Z"));
        for no in [-1.0, 1_795_953_900_896.0, f64::NAN, f64::INFINITY] {
            assert_eq!(time(no), None, "{no}");
        }
    }

    #[test]
    fn an_export_reads_like_a_row() {
        let text = r#"{"id":3,"content":[{"type":"text"}],"tool_calls":[{"id":"c"}],"active":0,"timestamp":1.5,"tool_name":null,"reasoning_details":"[1]"}"#;
        let record = Record::exported("message", "3".into(), text).expect("an object");
        assert_eq!(
            (record.integer("id"), record.real("timestamp"), record.text("tool_name")),
            (Some(3), Some(1.5), None)
        );
        assert_eq!((record.flag("active", true), record.flag("compacted", false)), (false, false));
        assert_eq!(record.value("tool_calls").expect("a list").get(), r#"[{"id":"c"}]"#);
        assert_eq!(record.value("reasoning_details").expect("a list").get(), "[1]");
        assert!(matches!(record.content(), Content::Json(json) if json.get().starts_with('[')));
    }
}
