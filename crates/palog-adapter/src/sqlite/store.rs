//! A database that was copied: its tables, and their rows.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use palog::diagnostic::{Code, Diagnostic, Severity};
use rusqlite::{Connection, OpenFlags, params_from_iter};

use super::rows::{Row, Scalar};
use super::snapshot::{Snapshot, found};

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns. The row id stands behind them under the name `rowid` where the table has no key of its own.
    pub columns: Vec<String>,
    /// Which of them make the primary key.
    pub(super) key: Vec<usize>,
    /// Reads all of them.
    select: String,
}

impl Table {
    /// `columns` with their places in the primary key, from 1; 0 = not a part of it.
    fn new(name: String, mut columns: Vec<(String, u32)>, without_row_id: bool) -> Self {
        if !without_row_id && columns.iter().all(|(_, place)| *place == 0) {
            let free = |name: &&&str| columns.iter().all(|(column, _)| !column.eq_ignore_ascii_case(name));
            columns.extend(["rowid", "_rowid_", "oid"].iter().find(free).map(|name| ((*name).to_owned(), 1)));
        }
        let mut key: Vec<usize> = (0..columns.len()).filter(|at| columns[*at].1 > 0).collect();
        key.sort_by_key(|at| columns[*at].1);
        let list: Vec<String> = columns.iter().map(|(column, _)| quoted(column)).collect();
        let select = format!("SELECT {} FROM {}", list.join(","), quoted(&name));
        Table { name, columns: columns.into_iter().map(|(column, _)| column).collect(), key, select }
    }

    /// Files by their paths, with what is in them.
    pub(super) fn of_files(name: &str) -> Self {
        Table::new(name.to_owned(), vec![("path".to_owned(), 1), ("content".to_owned(), 0)], false)
    }

    /// Whether there is a column of this name.
    #[must_use]
    pub fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|name| name == column)
    }
}

/// The tables and rows of a database.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    /// The copy that is read; it goes away with the store.
    _snapshot: Snapshot,
    original: PathBuf,
    tables: Vec<Rc<Table>>,
    /// The statements that make the tables and indexes, in their order.
    pub schema: Vec<String>,
    /// What the client says of the version of its schema.
    pub user_version: i64,
    /// What the client says of itself.
    pub application_id: i64,
    findings: RefCell<Vec<Diagnostic>>,
}

impl Store {
    /// Opens a private copy of the database at `path`.
    ///
    /// # Errors
    /// A diagnostic of the family `store`, see [`Snapshot::take`]; or that the schema of the database cannot be read.
    pub fn open(path: &Path) -> Result<Store, Box<Diagnostic>> {
        let mut snapshot = Snapshot::take(path)?;
        let findings = std::mem::take(&mut snapshot.findings);
        let malformed =
            |e: rusqlite::Error| Box::new(found(Code::StoreMalformed, Severity::Error, path, e.to_string()));
        // The copy is opened for writing, since SQLite may have to repair it; nothing else writes to it.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(snapshot.path(), flags).map_err(malformed)?;
        // A database is a stranger's input: its views, triggers and functions are not run.
        connection
            .execute_batch("PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0")
            .map_err(malformed)?;
        let number = |name: &str| connection.query_row(&format!("PRAGMA {name}"), (), |row| row.get::<_, i64>(0));
        let (user_version, application_id) =
            (number("user_version").map_err(malformed)?, number("application_id").map_err(malformed)?);
        let (schema, tables) = read_schema(&connection).map_err(malformed)?;
        connection.execute_batch("PRAGMA query_only=ON").map_err(malformed)?;
        Ok(Store {
            connection,
            _snapshot: snapshot,
            original: path.to_path_buf(),
            tables,
            schema,
            user_version,
            application_id,
            findings: RefCell::new(findings),
        })
    }

    /// Every table that holds rows of the client's own, by name. Indexes for searching are not among them.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.iter().map(|table| &**table)
    }

    /// The table of this name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables().find(|table| table.name == name)
    }

    /// Reads rows of `table` one by one. `rest` stands behind the name of the table: a condition and an order, with
    /// `parameters` for its question marks. A table that is not there has no rows; where the database is damaged, reading
    /// ends and that is among the findings.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn each<E>(
        &self,
        table: &str,
        rest: &str,
        parameters: &[&str],
        mut take: impl FnMut(Row) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(table) = self.tables.iter().find(|known| known.name == table) else { return Ok(()) };
        let query = format!("{} {rest}", table.select);
        let mut read = || -> rusqlite::Result<Result<(), E>> {
            let mut statement = self.connection.prepare_cached(&query)?;
            let mut rows = statement.query(params_from_iter(parameters))?;
            while let Some(row) = rows.next()? {
                let values = (0..table.columns.len()).map(|at| row.get_ref(at).map(Scalar::from));
                let row = Row { table: Rc::clone(table), values: values.collect::<rusqlite::Result<_>>()? };
                if let Err(error) = take(row) {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(()))
        };
        read().unwrap_or_else(|error| {
            self.report(&table.name, &error);
            Ok(())
        })
    }

    /// How many rows a table has.
    #[must_use]
    pub fn count(&self, table: &str) -> Option<u64> {
        let table = self.table(table)?;
        let query = format!("SELECT count(*) FROM {}", quoted(&table.name));
        self.connection.query_row(&query, (), |row| row.get::<_, i64>(0)).ok().and_then(|n| n.try_into().ok())
    }

    /// What was found, so far.
    #[must_use]
    pub fn findings(&self) -> Vec<Diagnostic> {
        self.findings.borrow().clone()
    }

    /// A table that cannot be read any further; told once.
    fn report(&self, table: &str, error: &rusqlite::Error) {
        let found = found(Code::StoreMalformed, Severity::Error, &self.original, format!("table {table}: {error}"));
        let mut findings = self.findings.borrow_mut();
        if findings.iter().all(|known| known.why != found.why) {
            findings.push(found);
        }
    }
}

/// The statements that make a database, and its tables by name.
fn read_schema(connection: &Connection) -> rusqlite::Result<(Vec<String>, Vec<Rc<Table>>)> {
    let statements = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid";
    let schema = connection.prepare(statements)?.query_map((), |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    // Shadow tables and virtual ones are indexes that other tables fill.
    let list = "SELECT name, wr FROM pragma_table_list \
                WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@' ORDER BY name";
    let names: Vec<(String, bool)> = connection
        .prepare(list)?
        .query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let tables = names.into_iter().map(|(name, without_row_id)| {
        // Generated columns follow from the others.
        let columns = "SELECT name, pk FROM pragma_table_xinfo(?) WHERE hidden = 0 ORDER BY cid";
        let columns: Vec<(String, u32)> = connection
            .prepare(columns)?
            .query_map([&name], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        Ok(Rc::new(Table::new(name, columns, without_row_id)))
    });
    Ok((schema, tables.collect::<rusqlite::Result<_>>()?))
}

/// A name as SQL takes it, whatever stands in it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
