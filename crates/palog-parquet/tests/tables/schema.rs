//! The schema is what spec/parquet.md says, and what was committed.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use palog_parquet::{SCHEMA_VERSION, Table};

/// The text between the marks of a table in spec/parquet.md.
fn documented(table: Table) -> String {
    let mut text = "| column | type | null | holds |\n|---|---|---|---|\n".to_owned();
    for column in table.columns() {
        let null = if column.nullable { "may" } else { "never" };
        let doc = column.doc.replace('|', "\\|");
        writeln!(text, "| `{}` | {} | {null} | {doc} |", column.name, column.kind).expect("memory");
    }
    text
}

#[test]
fn the_specification_lists_the_columns() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/parquet.md");
    let committed = fs::read_to_string(&path).expect("spec/parquet.md");
    let mut text = committed.clone();
    for table in Table::ALL {
        let [begin, end] = ["begin", "end"].map(|mark| format!("<!-- {mark} {} -->\n", table.name()));
        let from = text.find(&begin).expect("the begin of a table") + begin.len();
        let to = text.find(&end).expect("the end of a table");
        text.replace_range(from..to, &documented(table));
    }
    if std::env::var_os("PALOG_UPDATE").is_some() {
        fs::write(&path, &text).expect("written");
    }
    assert!(text == committed, "spec/parquet.md is not what the code says; PALOG_UPDATE=1 writes it anew");
    assert!(text.contains(&format!("The version of the schema is `{SCHEMA_VERSION}`.")));
}

/// The types in Arrow, name by name. A change of a column is a new version of the schema.
#[test]
fn the_schema_is_the_committed_one() {
    let mut text = format!("palog.schema {SCHEMA_VERSION}\n");
    for table in Table::ALL {
        writeln!(text, "\n{}", table.name()).expect("memory");
        for field in table.schema().fields() {
            let null = if field.is_nullable() { "" } else { " not null" };
            writeln!(text, "  {}: {}{null}", field.name(), field.data_type()).expect("memory");
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables/schema.txt");
    if std::env::var_os("PALOG_UPDATE").is_some() {
        fs::write(&path, &text).expect("written");
    }
    assert_eq!(text, fs::read_to_string(&path).unwrap_or_default(), "PALOG_UPDATE=1 writes it anew");
}
