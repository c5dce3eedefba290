//! Cuts logs into pieces: runs of whole lines that become one row group each.

use std::fs::File;
use std::io::{self, Take};
use std::ops::Range;

use arrow_array::BinaryArray;
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use palog::diagnostic::Diagnostic;
use palog::reader::{Line, Lines, Next};

use crate::input::Input;

/// Most bytes of lines in a piece, but for a line that is longer than that by itself.
const MAX_BYTES: usize = 8 << 20;
/// Most lines in a piece: small lines become large rows.
pub(crate) const MAX_ROWS: usize = 16 << 10;

/// A log to read.
#[derive(Debug)]
pub(crate) struct Source<'i> {
    pub(crate) input: &'i Input,
    /// How much of it.
    pub(crate) bytes: u64,
    /// Which partition it belongs to; those of one stand beside each other.
    pub(crate) partition: usize,
}

/// A run of whole lines of one partition.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) partition: usize,
}

#[derive(Debug)]
enum Entry {
    Line { from: usize, to: usize, offset: u64, number: u64 },
    TooLong(Box<Diagnostic>),
}

/// The lines of one log in a piece.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Its place among the sources.
    pub(crate) log: usize,
    pub(crate) entries: Range<usize>,
    /// Whether the log begins here.
    pub(crate) begins: bool,
    /// Whether it ends here.
    pub(crate) ends: bool,
}

impl Piece {
    /// The lines, or what is wrong with one that is too long.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Result<Line<'_>, &Diagnostic>> {
        self.entries.iter().map(|entry| match entry {
            Entry::Line { from, to, offset, number } => {
                Ok(Line { bytes: &self.bytes[*from..*to], offset: *offset, number: *number })
            }
            Entry::TooLong(diagnostic) => Err(&**diagnostic),
        })
    }

    /// The lines as a column, without a copy: the piece gives its bytes away. They come back by [`Piece::take_back`].
    pub(crate) fn give_lines(&mut self) -> (BinaryArray, Buffer) {
        let lengths = self.entries.iter().map(|entry| match entry {
            Entry::Line { from, to, .. } => to - from,
            Entry::TooLong(_) => 0,
        });
        let offsets = OffsetBuffer::from_lengths(lengths);
        let nulls: NullBuffer = self.entries.iter().map(|entry| matches!(entry, Entry::Line { .. })).collect();
        let bytes = Buffer::from_vec(std::mem::take(&mut self.bytes));
        let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
        (BinaryArray::new(offsets, bytes.clone(), nulls), bytes)
    }

    /// Takes the bytes of the lines back, to read the next ones into, if nobody else holds them.
    pub(crate) fn take_back(&mut self, bytes: Buffer) {
        self.bytes = bytes.into_vec().unwrap_or_default();
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.segments.clear();
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= MAX_BYTES || self.entries.len() >= MAX_ROWS
    }
}

/// Reads logs one after the other.
#[derive(Debug)]
pub(crate) struct Pieces<'i> {
    sources: &'i [Source<'i>],
    /// The log at hand.
    log: usize,
    lines: Option<Lines<Take<File>>>,
}

impl<'i> Pieces<'i> {
    pub(crate) fn new(sources: &'i [Source<'i>]) -> Self {
        Pieces { sources, log: 0, lines: None }
    }

    /// Fills `piece`; `false` at the end of the last log.
    pub(crate) fn next(&mut self, piece: &mut Piece) -> io::Result<bool> {
        piece.clear();
        if let Some(source) = self.sources.get(self.log) {
            piece.partition = source.partition;
        }
        while let Some(source) = self.sources.get(self.log) {
            if piece.is_full() || source.partition != piece.partition {
                break;
            }
            let begins = self.lines.is_none();
            let mut lines = match self.lines.take() {
                Some(lines) => lines,
                None => Lines::new(source.input.read(source.bytes)?),
            };
            let first = piece.entries.len();
            let ends = fill(&mut lines, piece)?;
            piece.segments.push(Segment { log: self.log, entries: first..piece.entries.len(), begins, ends });
            if ends {
                self.log += 1;
            } else {
                self.lines = Some(lines);
            }
        }
        Ok(!piece.segments.is_empty())
    }
}

/// Takes lines until the piece is full; `true` at the end of the log.
fn fill(lines: &mut Lines<Take<File>>, piece: &mut Piece) -> io::Result<bool> {
    while !piece.is_full() {
        match lines.next_line()? {
            Next::Line(line) => {
                let from = piece.bytes.len();
                piece.bytes.extend_from_slice(line.bytes);
                let to = piece.bytes.len();
                piece.entries.push(Entry::Line { from, to, offset: line.offset, number: line.number });
            }
            Next::TooLong(diagnostic) => piece.entries.push(Entry::TooLong(Box::new(diagnostic))),
            Next::TornTail(_) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the log became shorter")),
            Next::End => return Ok(true),
        }
    }
    Ok(false)
}
