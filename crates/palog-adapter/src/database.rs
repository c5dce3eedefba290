//! Databases of SQLite, read without touching them: what is opened is a private copy (spec 01, "Kept sources").

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

/// How often a database is copied anew that changes meanwhile.
const TRIES: u32 = 3;

/// A copy of a database, with what its write-ahead log holds.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    /// Removed with it.
    _folder: tempfile::TempDir,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its key, as text.
    pub key: String,
    /// All of it as the text of a JSON object, in the order of the columns. Bytes are `{"base64": …}`.
    pub json: String,
}

impl Database {
    /// Copies a database together with its write-ahead log, and opens the copy.
    ///
    /// # Errors
    /// When it cannot be read, changes all the time, or is no database.
    pub fn open(path: &Path) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let copy = folder.path().join("copy.sqlite");
        let log = |path: &Path| PathBuf::from(format!("{}-wal", path.display()));
        let mut tries = 0;
        loop {
            let before = (state(path)?, state(&log(path)).ok());
            fs::copy(path, &copy)?;
            if before.1.is_some() {
                fs::copy(log(path), log(&copy))?;
            }
            if (state(path)?, state(&log(path)).ok()) == before {
                break;
            }
            tries += 1;
            if tries == TRIES {
                return Err(io::Error::other("it changes while it is read"));
            }
        }
        for file in [&copy, &log(&copy)] {
            if file.exists() {
                crate::source::make_writable(file)?;
            }
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&copy, flags).map_err(damaged)?;
        let database = Database { connection, _folder: folder };
        database.connection.query_row("select count(*) from sqlite_master", [], |_| Ok(())).map_err(damaged)?;
        Ok(database)
    }

    /// All rows of a table in the order of `key`, which names them; none where there is no such table or column.
    ///
    /// # Errors
    /// When the database is damaged.
    pub fn rows(&self, table: &str, key: &str) -> io::Result<Vec<Row>> {
        if self.connection.prepare(&format!("select \"{key}\" from \"{table}\"")).is_err() {
            return Ok(Vec::new());
        }
        let mut query =
            self.connection.prepare(&format!("select * from \"{table}\" order by \"{key}\"")).map_err(damaged)?;
        let columns: Vec<String> = query.column_names().into_iter().map(str::to_owned).collect();
        let Some(at) = columns.iter().position(|column| column == key) else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        let mut rows = query.query([]).map_err(damaged)?;
        while let Some(row) = rows.next().map_err(damaged)? {
            let mut json = String::from("{");
            for (n, column) in columns.iter().enumerate() {
                let comma = if n == 0 { "" } else { "," };
                let _ = write!(json, "{comma}{}:{}", quoted(column), value(row.get_ref(n).map_err(damaged)?));
            }
            json.push('}');
            let key = match row.get_ref(at).map_err(damaged)? {
                ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                other => value(other),
            };
            all.push(Row { key, json });
        }
        Ok(all)
    }
}

/// What tells that a file was changed.
fn state(path: &Path) -> io::Result<(u64, Option<SystemTime>)> {
    let meta = File::open(path)?.metadata()?;
    Ok((meta.len(), meta.modified().ok()))
}

fn damaged(why: rusqlite::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_string())
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn value(value: ValueRef<'_>) -> String {
    let bytes = |bytes: &[u8]| format!("{{\"base64\":{}}}", quoted(&BASE64.encode(bytes)));
    match value {
        ValueRef::Null => "null".into(),
        ValueRef::Integer(n) => n.to_string(),
        ValueRef::Real(n) => serde_json::Value::from(n).to_string(),
        ValueRef::Text(text) => std::str::from_utf8(text).map_or_else(|_| bytes(text), quoted),
        ValueRef::Blob(blob) => bytes(blob),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_with_what_the_log_holds_and_nothing_is_touched() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.sqlite");
        let writer = Connection::open(&path).expect("a database");
        let setup = "pragma journal_mode = wal; pragma wal_autocheckpoint = 0;
            create table t (id text primary key, n integer, r real, b blob, x text);
            insert into t values ('k2', 1, 1.5, x'00ff', cast(x'ff' as text)), ('k1', null, null, null, 'a \"b\"');";
        writer.execute_batch(setup).expect("rows");
        let files = || {
            let mut all: Vec<_> = fs::read_dir(folder.path())
                .expect("a folder")
                .map(|e| e.expect("an entry").path())
                .filter(|path| !path.to_string_lossy().ends_with("-shm"))
                .map(|path| (path.clone(), fs::read(path).expect("bytes")))
                .collect();
            all.sort();
            all
        };
        let before = files();
        assert!(before.iter().any(|(path, bytes)| path.to_string_lossy().ends_with("-wal") && !bytes.is_empty()));
        let database = Database::open(&path).expect("it opens");
        let rows: Vec<String> =
            database.rows("t", "id").expect("rows").into_iter().map(|r| r.key + " " + &r.json).collect();
        assert_eq!(
            rows,
            [
                r#"k1 {"id":"k1","n":null,"r":null,"b":null,"x":"a \"b\""}"#,
                r#"k2 {"id":"k2","n":1,"r":1.5,"b":{"base64":"AP8="},"x":{"base64":"/w=="}}"#,
            ]
        );
        assert_eq!(database.rows("nothing", "id").expect("no rows"), []);
        assert_eq!(database.rows("t", "nothing").expect("no rows"), []);
        assert_eq!(files(), before);
    }

    #[test]
    fn what_is_no_database_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.sqlite");
        fs::write(&path, "no database, and long enough to be looked at as one".repeat(100)).expect("it is written");
        assert!(Database::open(&path).is_err());
        assert!(Database::open(&folder.path().join("none.sqlite")).is_err());
    }
}
