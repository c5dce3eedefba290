//! Databases as clients leave them, and as damage leaves them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use palog::diagnostic::Code;
use rusqlite::Connection;
use rusqlite::types::Value;
use tempfile::TempDir;

use super::{KeptRows, Row, Scalar, Snapshot, Store};
use crate::report::ImportError;

/// A database with a write-ahead log, whose last rows are in the log alone.
struct Scene {
    folder: TempDir,
    /// Held, so that nothing is moved out of the log.
    connection: Connection,
}

impl Scene {
    fn new(statements: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let connection = Connection::open(folder.path().join("a.db")).expect("a database");
        connection.execute_batch("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0").expect("a write-ahead log");
        connection.execute_batch(statements).expect("sound statements");
        Scene { folder, connection }
    }

    fn messages() -> Self {
        Scene::new(
            "CREATE TABLE message(id TEXT PRIMARY KEY, data TEXT); INSERT INTO message VALUES ('m1', '{}'), ('m2', 'two')",
        )
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("a.db")
    }

    /// Every file with its bytes.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = fs::read_dir(self.folder.path()).expect("the folder");
        entries
            .map(|entry| entry.expect("a file").path())
            .map(|path| (path.clone(), fs::read(path).expect("its bytes")))
            .collect()
    }
}

fn rows(store: &Store, table: &str, rest: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let never: Result<(), ()> = store.each(table, rest, &[], |row| {
        rows.push(row);
        Ok(())
    });
    never.expect("nothing refuses");
    rows
}

fn keys(store: &Store, table: &str) -> Vec<String> {
    rows(store, table, "").iter().map(Row::key).collect()
}

fn codes(store: &Store) -> Vec<Code> {
    store.findings().iter().map(|found| found.code).collect()
}

fn refusal(path: &Path) -> Code {
    Store::open(path).expect_err("it is refused").code
}

#[test]
fn rows_of_the_write_ahead_log_are_read_and_the_original_stays_as_it_is() {
    let scene = Scene::messages();
    let before = scene.files();
    let store = Store::open(&scene.path()).expect("a store");
    assert_eq!(keys(&store, "message"), ["m1", "m2"]);
    assert_eq!(codes(&store), []);
    drop(store);
    assert_eq!(scene.files(), before);
}

#[test]
fn a_log_that_was_moved_to_the_database_gives_the_same_rows() {
    let scene = Scene::messages();
    let lines = |store: &Store| rows(store, "message", "ORDER BY id").iter().map(Row::line).collect::<Vec<_>>();
    let with_log = lines(&Store::open(&scene.path()).expect("a store"));
    scene.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("a checkpoint");
    assert_eq!(lines(&Store::open(&scene.path()).expect("a store")), with_log);
}

#[test]
fn a_missing_log_is_told() {
    let scene = Scene::messages();
    let copy = scene.folder.path().join("copy.db");
    fs::copy(scene.path(), &copy).expect("a copy");
    let store = Store::open(&copy).expect("a store");
    assert_eq!(codes(&store), [Code::StoreWalMissing]);
    assert_eq!(keys(&store, "message"), [""; 0]);
}

#[test]
fn an_empty_database_gives_what_its_log_holds() {
    let scene = Scene::messages();
    let empty = scene.folder.path().join("empty.db");
    fs::write(&empty, b"").expect("an empty file");
    assert_eq!(refusal(&empty), Code::StoreNotADatabase);
    fs::copy(scene.folder.path().join("a.db-wal"), scene.folder.path().join("empty.db-wal")).expect("a copy");
    let store = Store::open(&empty).expect("a store");
    assert_eq!(codes(&store), [Code::StoreMalformed]);
    assert_eq!(keys(&store, "message"), ["m1", "m2"]);
    assert_eq!(fs::read(&empty).expect("the file").len(), 0);
}

#[test]
fn what_is_no_database_is_refused() {
    let folder = TempDir::new().expect("a temporary folder");
    assert_eq!(refusal(&folder.path().join("none.db")), Code::Unreadable);
    for bytes in [&b"not a database, whatever its name says"[..], &[0; 4096], b"SQLite format 2\0"] {
        let path = folder.path().join("garbage.db");
        fs::write(&path, bytes).expect("a file");
        assert_eq!(refusal(&path), Code::StoreNotADatabase);
    }
    let short = folder.path().join("short.db");
    fs::write(&short, b"SQLite format 3\0").expect("a file");
    assert_eq!(refusal(&short), Code::StoreMalformed);
}

#[test]
fn a_damaged_page_costs_the_rows_behind_it_and_is_told() {
    let scene = Scene::new(
        "CREATE TABLE big(id INTEGER PRIMARY KEY, data TEXT); CREATE TABLE small(id INTEGER PRIMARY KEY);
         INSERT INTO small VALUES (7);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
         INSERT INTO big SELECT i, hex(zeroblob(400)) FROM n",
    );
    scene.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("a checkpoint");
    let mut bytes = fs::read(scene.path()).expect("the database");
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xAA);
    let damaged = scene.folder.path().join("damaged.db");
    fs::write(&damaged, bytes).expect("a copy");
    fs::write(scene.folder.path().join("damaged.db-wal"), b"").expect("an empty log");
    let store = Store::open(&damaged).expect("a store");
    assert_eq!(keys(&store, "small"), ["7"]);
    let read = keys(&store, "big").len();
    assert!((1..400).contains(&read), "{read}");
    assert_eq!(codes(&store), [Code::StoreMalformed]);
}

#[test]
fn a_transaction_that_was_broken_off_is_rolled_back_in_the_copy() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("a.db");
    let connection = Connection::open(&path).expect("a database");
    connection
        .execute_batch(
            "PRAGMA journal_mode=DELETE; PRAGMA cache_size=2; PRAGMA cache_spill=1;
             CREATE TABLE t(id INTEGER PRIMARY KEY, data TEXT); INSERT INTO t VALUES (1, 'kept');
             BEGIN;
             WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
             INSERT INTO t SELECT i, hex(zeroblob(300)) FROM n",
        )
        .expect("sound statements");
    // As a kill leaves it: the journal is there, and nobody holds the database.
    let killed = TempDir::new().expect("a temporary folder");
    for name in ["a.db", "a.db-journal"] {
        fs::copy(folder.path().join(name), killed.path().join(name)).expect("a copy");
    }
    let store = Store::open(&killed.path().join("a.db")).expect("a store");
    assert_eq!((keys(&store, "t"), codes(&store)), (vec!["1".to_owned()], vec![]));
}

#[test]
fn a_database_that_is_written_all_the_time_is_read_at_one_moment() {
    let scene = Scene::new(
        "CREATE TABLE pair(id INTEGER PRIMARY KEY, a INTEGER, b INTEGER); INSERT INTO pair VALUES (1, 0, 0)",
    );
    let (path, done) = (scene.path(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let writer = Connection::open(&path).expect("a database");
            writer.execute_batch("PRAGMA wal_autocheckpoint=4; PRAGMA synchronous=OFF").expect("pragmas");
            let mut n = 0;
            while !done.load(Ordering::Relaxed) {
                n += 1;
                let both = format!("BEGIN; UPDATE pair SET a = {n}; UPDATE pair SET b = {n}; COMMIT");
                writer.execute_batch(&both).expect("a transaction");
                std::thread::sleep(std::time::Duration::from_micros(300));
            }
        });
        let mut last = 0;
        for _ in 0..40 {
            match Store::open(&path) {
                Ok(store) => {
                    let row = rows(&store, "pair", "").pop().expect("the row");
                    let a = row.integer("a").expect("a number");
                    assert_eq!(row.integer("b"), Some(a));
                    assert!(a >= last, "{a} after {last}");
                    last = a;
                }
                Err(busy) => assert_eq!(busy.code, Code::StoreBusy),
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(rows(&Store::open(&path).expect("a store"), "pair", "")[0].integer("a") > Some(0));
}

#[test]
fn columns_are_found_by_name_and_keys_are_those_of_the_table() {
    let scene = Scene::new(
        "CREATE TABLE two(b TEXT, a INTEGER, extra TEXT, sum INTEGER AS (a + 1), PRIMARY KEY (a, b)) WITHOUT ROWID;
         CREATE TABLE none(x TEXT); CREATE TABLE \"odd \"\"name\"(\"select\" TEXT PRIMARY KEY, rowid TEXT);
         CREATE VIEW v AS SELECT 1; CREATE VIRTUAL TABLE search USING fts5(x);
         INSERT INTO two(b, a, extra) VALUES ('x', 5, NULL); INSERT INTO none VALUES ('first'), ('second');
         INSERT INTO \"odd \"\"name\" VALUES ('k', 'r')",
    );
    let store = Store::open(&scene.path()).expect("a store");
    assert_eq!(store.tables().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["none", "odd \"name", "two"]);
    let two = &rows(&store, "two", "")[0];
    assert_eq!((two.key().as_str(), two.text("b"), two.integer("a")), (r#"[5,"x"]"#, Some("x"), Some(5)));
    assert_eq!((two.get("extra"), two.get("later"), two.get("sum")), (Some(&Scalar::Null), None, None));
    assert_eq!(keys(&store, "none"), ["1", "2"]);
    assert_eq!(keys(&store, "odd \"name"), ["k"]);
    assert_eq!((store.count("none"), store.count("nobody")), (Some(2), None));
    assert_eq!(keys(&store, "nobody"), [""; 0]);
    let of = |name: &str| store.table(name).expect("a table").has("select");
    assert!(of("odd \"name") && !of("none"));
}

#[test]
fn a_refusal_ends_reading() {
    let scene = Scene::messages();
    let store = Store::open(&scene.path()).expect("a store");
    let mut seen = 0;
    let refused = store.each("message", "WHERE id > ? ORDER BY id DESC", &["m0"], |row| {
        seen += 1;
        Err(row.key())
    });
    assert_eq!((refused, seen), (Err("m2".to_owned()), 1));
}

/// Every value that a column can hold comes back.
#[test]
fn a_database_with_the_kept_rows_can_be_made_again() {
    let scene = Scene::new(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, v, w TEXT); CREATE INDEX i ON t(w); PRAGMA user_version=9; PRAGMA application_id=5;
         INSERT INTO t VALUES (1, NULL, 'plain'), (2, 9007199254740993, 'quote \" and \\ and ' || char(10) || char(8232)),
         (3, -9223372036854775808, char(0) || 'after nul'), (4, 1.0, ''), (5, 1e400, 'x'), (6, -1e400, 'x'), (7, 0.1, 'x'),
         (8, 5e-324, 'x'), (9, -0.0, 'x'), (10, x'00ff', 'x'), (11, CAST(x'ff00fe' AS TEXT), 'x'), (12, x'', 'x')",
    );
    let store = Store::open(&scene.path()).expect("a store");
    let place = TempDir::new().expect("a temporary folder");
    let keep = || -> Result<_, ImportError> {
        let mut kept = KeptRows::begin(Some(place.path()), "store/rows")?;
        kept.schema(&store.schema, store.user_version, store.application_id)?;
        store.each("t", "ORDER BY id", &[], |row| kept.keep(&row))?;
        kept.finish()
    };
    let end = keep().expect("kept");
    let bytes = fs::read(place.path().join("store/rows")).expect("the rows");
    assert_eq!((end.records, end.len, end.digest), (12, bytes.len() as u64, palog::blob::digest(&bytes)));

    let again = Connection::open_in_memory().expect("a database");
    let mut lines = bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    let head: serde_json::Value = serde_json::from_slice(lines.next().expect("a schema")).expect("JSON");
    for statement in head["schema"].as_array().expect("statements") {
        again.execute_batch(statement.as_str().expect("a statement")).expect("it runs");
    }
    assert_eq!((&head["user_version"], &head["application_id"]), (&9.into(), &5.into()));
    for line in lines {
        let row: BTreeMap<&str, &serde_json::value::RawValue> =
            serde_json::from_slice::<BTreeMap<&str, &serde_json::value::RawValue>>(line)
                .map(|line| serde_json::from_str(line["row"].get()).expect("a row"))
                .expect("JSON");
        let values: Vec<Value> = ["id", "v", "w"].iter().map(|column| value(row[column].get())).collect();
        // This library binds no text that is no UTF-8; SQL makes it.
        let odd = if row["v"].get().starts_with("{\"$text\"") { "CAST(? AS TEXT)" } else { "?" };
        again
            .execute(&format!("INSERT INTO t VALUES (?, {odd}, ?)"), rusqlite::params_from_iter(values))
            .expect("a row");
    }
    let dump = |database: &Connection| {
        let mut all = database.prepare("SELECT hex(id), printf('%!.20g', CASE typeof(v) WHEN 'real' THEN v END), typeof(v), hex(v), hex(w), typeof(w) FROM t ORDER BY id").expect("a query");
        let rows =
            all.query_map((), |row| (0..6).map(|at| row.get::<_, String>(at)).collect::<rusqlite::Result<Vec<_>>>());
        rows.expect("rows").collect::<rusqlite::Result<Vec<_>>>().expect("values")
    };
    assert_eq!(dump(&again), dump(&scene.connection));
}

/// Reads a kept value.
fn value(json: &str) -> Value {
    use base64::Engine as _;
    let decode = |text: &str| base64::engine::general_purpose::STANDARD.decode(text).expect("base64");
    if json == "null" {
        Value::Null
    } else if let Ok(text) = serde_json::from_str::<String>(json) {
        Value::Text(text)
    } else if let Ok(object) = serde_json::from_str::<BTreeMap<String, String>>(json) {
        let (name, text) = object.first_key_value().expect("one member");
        match name.as_str() {
            "$blob" => Value::Blob(decode(text)),
            "$real" => Value::Real(text.parse().expect("an infinity")),
            "$text" => Value::Blob(decode(text)),
            other => panic!("{other}"),
        }
    } else if json.contains(['.', 'e']) {
        Value::Real(json.parse().expect("a real"))
    } else {
        Value::Integer(json.parse().expect("an integer"))
    }
}

#[test]
fn room_is_asked_for_before_anything_is_copied() {
    let scene = Scene::messages();
    let snapshot = Snapshot::take(&scene.path()).expect("a copy");
    assert!(snapshot.path().exists());
    let path = snapshot.path();
    drop(snapshot);
    assert!(!path.exists(), "the copy goes away");
}
