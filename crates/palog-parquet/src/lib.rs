//! Portable agent logs as tables: a dataset of Parquet files, or an Arrow stream (spec/parquet.md).
//!
//! Three tables: `events` has a row for each line of a log, with the line's exact bytes; `actions` a row for each action,
//! with its whole life; `sessions` a row for each log, with its counts and its verdict. What they say of states is what the
//! reference reducer and recovery say.
//!
//! ```
//! use palog_parquet::{Input, Options, Table, export};
//!
//! let directory = tempfile::tempdir()?;
//! let log = directory.path().join("session.palog.jsonl");
//! let opened = r#"{"palog":1,"log":"l","seq":0,"id":"e0","type":"log.opened","time":null,"actor":{"kind":"harness"},"data":{"spec":"1.0-draft","session":"s","agent":{"name":"a"}}}"#;
//! std::fs::write(&log, format!("{opened}\n"))?;
//!
//! let dataset = directory.path().join("dataset");
//! let report = export(&[Input::path(&log)], &dataset, &Options::default())?;
//! assert_eq!((report.added, report.rows), (1, [1, 0, 1]));
//! assert!(dataset.join(Table::Sessions.name()).is_dir());
//!
//! // Again: there is nothing new.
//! let report = export(&[Input::path(&log)], &dataset, &Options::default())?;
//! assert_eq!((report.added, report.unchanged), (0, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The nouns
//!
//! | | |
//! |---|---|
//! | [`Input`] | a log to export |
//! | [`Table`], [`Column`] | what the tables hold |
//! | [`export`], [`Partitions`] | writes a dataset, or adds to it what is new |
//! | [`stream`] | writes one table as an Arrow stream |
//!
//! # What it does not do
//!
//! - It reads no vendor's format: logs are imported first.
//! - It answers no queries: engines that read Parquet do.
//! - It holds no log in memory: pieces of some megabytes go through two threads.
//!
//! The minimum supported Rust version is 1.95.

mod actions;
mod cell;
mod dataset;
mod error;
mod events;
mod export;
mod input;
mod known;
mod life;
mod piece;
mod pipeline;
mod plan;
mod run;
mod sessions;
mod stream;
mod table;

pub use cell::Column;
pub use error::Error;
pub use export::{Options, Report, export};
pub use input::{Input, Refusal, Trouble, What};
pub use plan::Partitions;
pub use stream::stream;
pub use table::{SCHEMA_VERSION, Table};
