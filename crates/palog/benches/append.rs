//! How many events a second a live writer appends, against a loop that only writes and syncs the same bytes.
//!
//! ```sh
//! cargo bench -p palog --features live --bench append -- [FOLDER]
//! ```
//!
//! The disk decides on what is synced, so the folder has to lie on the one in question (default: the temporary folder).

#![expect(clippy::print_stdout, reason = "the table is the point")]

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use palog::envelope::{ActorKind, Draft};
use palog::events::{LogOpened, MessageAdded, Part, Role};
use palog::live::{Durability, Expect, LogFile, draft, new_id};

/// Time spent on each row.
const TIME: Duration = Duration::from_secs(2);

fn message(text: &str) -> Draft<'_> {
    let (parts, purpose) = (vec![Part::text(text)], None);
    let message = MessageAdded { role: Role::User, parts, response: None, partial: None, purpose, in_context: None };
    draft(ActorKind::User, message)
}

/// Repeats `step`, which writes `events`, and prints a row.
fn row(name: &str, events: u64, mut step: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<(), Box<dyn Error>> {
    let (start, mut steps) = (Instant::now(), 0);
    while start.elapsed() < TIME {
        step()?;
        steps += 1;
    }
    let each = start.elapsed() / steps;
    let rate = (events * u64::from(steps)) as f64 / start.elapsed().as_secs_f64();
    println!("{name:<34} {rate:>10.0} events/s {:>12.1} µs/step", each.as_secs_f64() * 1e6);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let parent = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    let folder = tempfile::Builder::new().tempdir_in(parent.map_or_else(std::env::temp_dir, Into::into))?;
    let text = "x".repeat(200);
    let line = vec![b'x'; 470];
    let raw = |name: &str| OpenOptions::new().create(true).append(true).open(folder.path().join(name));
    let log = |name: &str| {
        let path = folder.path().join(name);
        LogFile::create(path, new_id(), &mut draft(ActorKind::Harness, LogOpened::new("s", "bench")))
    };
    let append = |name: &str, count: usize, durability: Durability| -> Result<(), Box<dyn Error>> {
        let mut log = log(&format!("{name}.palog.jsonl"))?;
        row(name, count as u64, || {
            let mut drafts: Vec<_> = (0..count).map(|_| message(&text)).collect();
            log.append_group(&mut drafts, Expect::head(log.head()), durability)?;
            Ok(())
        })
    };

    let mut file = raw("write")?;
    row("raw write", 1, || Ok(file.write_all(&line)?))?;
    append("buffered", 1, Durability::Buffered)?;
    append("flush", 1, Durability::Flush)?;
    append("flush, groups of 100", 100, Durability::Flush)?;
    let mut file = raw("sync")?;
    row("raw write + fdatasync", 1, || {
        file.write_all(&line)?;
        Ok(file.sync_data()?)
    })?;
    append("sync", 1, Durability::Sync)?;
    append("sync, groups of 10", 10, Durability::Sync)?;
    append("sync, groups of 100", 100, Durability::Sync)?;
    durable_blob(&mut log("blob.palog.jsonl")?)?;
    reopen(folder.path())
}

fn durable_blob(log: &mut LogFile) -> Result<(), Box<dyn Error>> {
    let mut number = 0;
    row("sync, with a new blob of 1 kB", 1, || {
        number += 1;
        let blob = log.blobs().put(format!("{number:01000}").as_bytes(), "text/plain", None)?;
        let mut event = message("");
        if let palog::events::Data::MessageAdded(message) = &mut event.data {
            message.parts = vec![Part::Text { text: palog::json::Value::Blob(blob) }];
        }
        log.append(&mut event, Expect::default(), Durability::Sync)?;
        Ok(())
    })
}

/// Opens the log that has the most events.
fn reopen(folder: &Path) -> Result<(), Box<dyn Error>> {
    let path = folder.join("flush, groups of 100.palog.jsonl");
    let size = std::fs::metadata(&path)?.len() / 1_000_000;
    row(&format!("open a log of {size} MB"), 1, || {
        LogFile::open(&path)?;
        Ok(())
    })
}
