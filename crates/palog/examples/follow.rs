//! Reads a log and follows it while it grows, from the beginning or from a cursor.
//!
//! ```sh
//! cargo run -p palog --example follow -- /tmp/demo.palog.jsonl [SEQ:SHA256]
//! ```
//!
//! It prints a line for each event, and ends when the log is closed or nothing came for ten seconds. The last line is the
//! cursor to go on from.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use palog::cursor::Cursor;
use palog::follow::Follow;
use palog::reader::Item;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let Some(path) = args.next() else { return Err("usage: follow LOG [SEQ:SHA256]".into()) };
    let after = args.next().map(|text| text.parse()).transpose()?;
    let mut out = std::io::stdout().lock();
    if let Some(cursor) = follow(Path::new(&path), after, Duration::from_secs(10), &mut out)? {
        writeln!(out, "{cursor}")?;
    }
    Ok(())
}

/// Writes a line to `out` for each event behind `after`, until the log is closed or nothing came for `patience`.
pub(crate) fn follow(
    path: &Path,
    after: Option<Cursor>,
    patience: Duration,
    out: &mut impl Write,
) -> Result<Option<Cursor>, Box<dyn Error>> {
    let mut follow = match after {
        Some(cursor) => Follow::after(path, &cursor)?,
        None => Follow::open(path)?,
    };
    while follow.wait(patience)? {
        match follow.next()? {
            Some(Item::Event(event, _)) => {
                let time = event.time.as_ref().map_or("-", |t| t.as_str());
                writeln!(out, "{:>5} {time} {:<8} {}", event.seq, event.actor.kind, event.kind)?;
                out.flush()?;
                if event.kind == *"log.closed" {
                    break;
                }
            }
            // A line that cannot be read is told, and what follows it is read all the same.
            Some(Item::Fault(fault)) => writeln!(out, "      {}: {}", fault.code, fault.code.meaning())?,
            None => {}
        }
    }
    Ok(follow.cursor())
}
