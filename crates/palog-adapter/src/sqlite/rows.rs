//! Rows as they stand, and as JSON lines that give every value back.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palog::blob::{hex, sha256_hex};
use palog::envelope::{Src, SrcHow};
use rusqlite::types::ValueRef;
use sha2::{Digest, Sha256};

use super::store::Table;
use crate::ids::{EventId, Ids, Native};
use crate::report::ImportError;
use crate::source::SourceEnd;

/// A value of a column, as SQLite holds it.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// Nothing.
    Null,
    /// A whole number.
    Integer(i64),
    /// A floating-point number.
    Real(f64),
    /// Characters.
    Text(String),
    /// Characters that are no UTF-8.
    OddText(Vec<u8>),
    /// Bytes.
    Blob(Vec<u8>),
}

impl From<ValueRef<'_>> for Scalar {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Scalar::Null,
            ValueRef::Integer(n) => Scalar::Integer(n),
            ValueRef::Real(n) => Scalar::Real(n),
            ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Scalar::Text(text.to_owned()),
                Err(_) => Scalar::OddText(bytes.to_vec()),
            },
            ValueRef::Blob(bytes) => Scalar::Blob(bytes.to_vec()),
        }
    }
}

impl Scalar {
    /// Appends the value as JSON. What JSON has no form for is an object of one member: `{"$text":…}` and `{"$blob":…}` hold
    /// base64, `{"$real":…}` an infinity. A number is a real if and only if it has a point or an exponent.
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Scalar::Null => out.extend(b"null"),
            Scalar::Integer(n) => out.extend(n.to_string().as_bytes()),
            Scalar::Real(n) if n.is_finite() => out.extend(format!("{n:?}").as_bytes()),
            Scalar::Real(n) => out.extend(format!("{{\"$real\":\"{n}\"}}").as_bytes()),
            Scalar::Text(text) => string(out, text),
            Scalar::OddText(bytes) => out.extend(format!("{{\"$text\":\"{}\"}}", STANDARD.encode(bytes)).as_bytes()),
            Scalar::Blob(bytes) => out.extend(format!("{{\"$blob\":\"{}\"}}", STANDARD.encode(bytes)).as_bytes()),
        }
    }
}

fn string(out: &mut Vec<u8>, text: &str) {
    // Writing to memory does not fail, and a string has no form that is refused.
    let _ = serde_json::to_writer(&mut *out, text);
}

/// A row of a table.
#[derive(Clone, Debug)]
pub struct Row {
    pub(super) table: Rc<Table>,
    pub(super) values: Vec<Scalar>,
}

impl Row {
    /// A file of a tree that a client keeps like a table, one file a record: the table, the path in it, and the content.
    #[must_use]
    pub fn of_file(table: &str, path: &str, content: &[u8]) -> Row {
        let content = match std::str::from_utf8(content) {
            Ok(text) => Scalar::Text(text.to_owned()),
            Err(_) => Scalar::OddText(content.to_vec()),
        };
        Row { table: Rc::new(Table::of_files(table)), values: vec![Scalar::Text(path.to_owned()), content] }
    }

    /// The name of its table.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.table.name
    }

    /// The value of a column; `None` where the table has no such column.
    #[must_use]
    pub fn get(&self, column: &str) -> Option<&Scalar> {
        let at = self.table.columns.iter().position(|name| name == column)?;
        self.values.get(at)
    }

    /// The characters of a column; `None` where it holds something else, or is not there.
    #[must_use]
    pub fn text(&self, column: &str) -> Option<&str> {
        match self.get(column)? {
            Scalar::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number of a column; `None` where it holds something else, or is not there.
    #[must_use]
    pub fn integer(&self, column: &str) -> Option<i64> {
        match self.get(column)? {
            Scalar::Integer(n) => Some(*n),
            _ => None,
        }
    }

    /// The number of a column, whole or not.
    #[must_use]
    pub fn real(&self, column: &str) -> Option<f64> {
        match self.get(column)? {
            Scalar::Integer(n) => Some(*n as f64),
            Scalar::Real(n) => Some(*n),
            _ => None,
        }
    }

    /// What the row is known by: its primary key, of several columns as a JSON array; the row id where it has none.
    #[must_use]
    pub fn key(&self) -> String {
        let mut parts = self.table.key.iter().filter_map(|at| self.values.get(*at));
        match (parts.next(), self.table.key.len()) {
            (Some(Scalar::Text(text)), 1) => text.clone(),
            (Some(Scalar::Integer(n)), 1) => n.to_string(),
            (Some(first), _) => {
                let mut out = Vec::new();
                for (at, value) in std::iter::once(first).chain(parts).enumerate() {
                    out.push(if at == 0 { b'[' } else { b',' });
                    value.write(&mut out);
                }
                out.push(b']');
                String::from_utf8(out).unwrap_or_default()
            }
            (None, _) => String::new(),
        }
    }

    /// A reference to the row in the source `source`.
    #[must_use]
    pub fn src<'s>(&self, source: &str, how: Option<SrcHow>) -> Src<'s> {
        let (table, key) = (Some(self.table().to_owned().into()), Some(self.key().into()));
        Src { source: source.to_owned().into(), at: None, len: None, table, key, how }
    }

    /// The id of the event number `ordinal` that comes from the row. A row that changed has another one.
    #[must_use]
    pub fn event(&self, ids: &Ids, ordinal: u32) -> EventId {
        ids.event(Native::Row(self.table(), &self.key(), &sha256_hex(&self.line())), ordinal)
    }

    /// The row as one line of JSON, without its line feed: `{"table":…,"row":{COLUMN:VALUE,…}}`.
    #[must_use]
    pub fn line(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend(b"{\"table\":");
        string(out, &self.table.name);
        out.extend(b",\"row\":{");
        for (at, (name, value)) in self.table.columns.iter().zip(&self.values).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            string(out, name);
            out.push(b':');
            value.write(out);
        }
        out.extend(b"}}");
    }
}

/// The rows of one session, kept as JSON lines while they are read.
pub struct KeptRows {
    out: Option<BufWriter<File>>,
    path: String,
    digest: Sha256,
    len: u64,
    records: u64,
    line: Vec<u8>,
}

impl KeptRows {
    /// Keeps rows in the file `source` below `place`; where that is `None` they are only counted.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn begin(place: Option<&Path>, source: &str) -> Result<Self, ImportError> {
        let path = place.map(|place| place.join(source));
        let create = |path: &Path| {
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            File::create_new(path).map(|file| BufWriter::with_capacity(256 << 10, file))
        };
        let shown = path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let out = path.as_deref().map(create).transpose().map_err(|e| refused(&shown, &e))?;
        Ok(KeptRows { out, path: shown, digest: Sha256::new(), len: 0, records: 0, line: Vec::new() })
    }

    /// Keeps the statements that make the tables, so that a database with the rows can be made again:
    /// `{"schema":[STATEMENT,…],"user_version":n,"application_id":n}`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn schema(&mut self, statements: &[String], user_version: i64, application_id: i64) -> Result<(), ImportError> {
        self.line.clear();
        self.line.extend(b"{\"schema\":[");
        for (at, statement) in statements.iter().enumerate() {
            if at > 0 {
                self.line.push(b',');
            }
            string(&mut self.line, statement);
        }
        let rest = format!("],\"user_version\":{user_version},\"application_id\":{application_id}}}");
        self.line.extend(rest.as_bytes());
        self.put()
    }

    /// Keeps a row.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn keep(&mut self, row: &Row) -> Result<(), ImportError> {
        self.line.clear();
        row.write(&mut self.line);
        self.records += 1;
        self.put()
    }

    fn put(&mut self) -> Result<(), ImportError> {
        self.line.push(b'\n');
        self.digest.update(&self.line);
        self.len += self.line.len() as u64;
        match &mut self.out {
            Some(out) => out.write_all(&self.line).map_err(|e| refused(&self.path, &e)),
            None => Ok(()),
        }
    }

    /// Ends keeping.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self) -> Result<SourceEnd, ImportError> {
        if let Some(out) = &mut self.out {
            out.flush().map_err(|e| refused(&self.path, &e))?;
        }
        let digest = format!("sha256:{}", hex(&self.digest.finalize()));
        Ok(SourceEnd { digest, len: self.len, records: self.records, terminated: true })
    }
}

fn refused(path: &str, error: &io::Error) -> ImportError {
    ImportError::Write(io::Error::new(error.kind(), format!("{path}: {error}")).into())
}
