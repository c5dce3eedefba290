//! How far an import is: one line on a terminal, by bytes, once it takes long enough to be asked for.

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Nothing is shown before this.
const DELAY: Duration = Duration::from_millis(250);
/// How often the line is drawn anew.
const EVERY: Duration = Duration::from_millis(100);

/// Counts what was done of what there is to do.
#[derive(Clone)]
pub(crate) struct Progress(Rc<RefCell<Inner>>);

struct Inner {
    /// There is somebody to show it to.
    watched: bool,
    started: Instant,
    drawn: Option<Instant>,
    /// Bytes of all sources, and of those that are done.
    total: u64,
    done: u64,
    /// Bytes of the source at hand, and of the log made from it so far: about as far as the source is read.
    size: u64,
    written: u64,
}

impl Progress {
    /// There are `total` bytes to read.
    pub(crate) fn new(total: u64) -> Self {
        let now = Instant::now();
        let watched = io::stderr().is_terminal();
        Progress(Rc::new(RefCell::new(Inner {
            watched,
            started: now,
            drawn: None,
            total,
            done: 0,
            size: 0,
            written: 0,
        })))
    }

    /// Begins a source of `size` bytes; the one before is done.
    pub(crate) fn begin(&self, size: u64) {
        let mut inner = self.0.borrow_mut();
        inner.done += inner.size;
        (inner.size, inner.written) = (size, 0);
    }

    /// Counts what is written to `log`.
    pub(crate) fn count<W: Write>(&self, log: W) -> Counted<W> {
        Counted { log, progress: self.clone() }
    }

    /// Takes the line away.
    pub(crate) fn end(&self) {
        if self.0.borrow_mut().drawn.take().is_some() {
            // A terminal that is gone needs no clean-up.
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Inner {
    fn advance(&mut self, bytes: u64) {
        self.written += bytes;
        if !self.watched {
            return;
        }
        let now = Instant::now();
        let due = self.drawn.map_or(self.started + DELAY, |drawn| drawn + EVERY);
        if now >= due {
            self.drawn = Some(now);
            let done = self.done + self.written.min(self.size);
            // Progress that cannot be shown is no reason to stop.
            let _ = write!(io::stderr(), "\r\x1b[K{}", line(done, self.total, now - self.started));
        }
    }
}

/// `120 of 500 MB, 160 MB/s, 3 s left`
fn line(done: u64, total: u64, took: Duration) -> String {
    const MB: f64 = 1e6;
    #[expect(clippy::cast_precision_loss, reason = "a display")]
    let (done, total) = (done as f64, total as f64);
    let speed = done / took.as_secs_f64().max(1e-3);
    let left = if speed > 0.0 { (total - done).max(0.0) / speed } else { 0.0 };
    format!("reading: {:.0} of {:.0} MB, {:.0} MB/s, {left:.0} s left", done / MB, total / MB, speed / MB)
}

/// A log whose bytes are counted.
pub(crate) struct Counted<W> {
    log: W,
    progress: Progress,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.log.write(bytes)?;
        self.progress.0.borrow_mut().advance(n as u64);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.log.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_how_much_how_fast_and_how_long() {
        let text = line(120_000_000, 600_000_000, Duration::from_secs(1));
        assert_eq!(text, "reading: 120 of 600 MB, 120 MB/s, 4 s left");
        assert_eq!(line(0, 0, Duration::ZERO), "reading: 0 of 0 MB, 0 MB/s, 0 s left");
    }

    #[test]
    fn what_is_written_is_passed_on_and_counted() {
        let progress = Progress::new(10);
        progress.begin(10);
        let mut log = progress.count(Vec::new());
        log.write_all(b"12345").expect("memory");
        assert_eq!((log.log.as_slice(), progress.0.borrow().written), (&b"12345"[..], 5));
    }
}
