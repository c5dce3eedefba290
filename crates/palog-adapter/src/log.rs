//! One log while an importer writes it.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use palog::diagnostic::{Code, Diagnostic, Diagnostics, Place, Severity};
use palog::envelope::{ActorKind, Draft, SPEC, SrcHow};
use palog::events::{
    Agent, Data, Derived, KeptRecord, LogOpened, NoteAdded, Parent, Recorded, SourceOpened, SourceOrder,
};
use palog::json::{Raw, Value};
use palog::writer::{WriteError, Writer};

use crate::Format;
use crate::ids::{self, Ids, Native};
use crate::output::Output;
use crate::report::{ImportError, InputReport};
use crate::source::{SourceEnd, Span, keep, note, src};

/// One log while it is written, with what was found about it.
pub struct Log {
    writer: Writer<Box<dyn Write>>,
    format: &'static Format,
    session: String,
    /// There is another log of this session in the same target.
    pub(crate) again: bool,
    /// What was found.
    pub diagnostics: Diagnostics,
}

impl Log {
    /// Starts the log of a session with its first event.
    ///
    /// # Errors
    /// When the output refuses.
    pub fn open(
        format: &'static Format,
        session: &str,
        parent: Option<Parent<'static>>,
        output: Output,
    ) -> Result<Self, WriteError> {
        let writer = Writer::new(output.log, ids::log(format, session), output.bulk);
        let mut log = Log {
            writer,
            format,
            session: session.to_owned(),
            again: output.again,
            diagnostics: Diagnostics::default(),
        };
        let opened = LogOpened {
            spec: SPEC.into(),
            session: session.to_owned().into(),
            agent: Agent { name: format.name.into(), version: None },
            owner: None,
            records: None,
            derived: Some(Derived { mapping: format.mapping.into() }),
            parent,
            env: None,
        };
        log.about("log", 0, opened)?;
        Ok(log)
    }

    /// The format that the log is made from.
    #[must_use]
    pub fn format(&self) -> &'static Format {
        self.format
    }

    /// Native id of the session.
    #[must_use]
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Makes the ids of the events that come from the source `source`.
    #[must_use]
    pub fn ids(&self, source: &str) -> Ids {
        Ids::new(self.format, &self.session, source)
    }

    /// Appends an event.
    ///
    /// # Errors
    /// When the output refuses, or the line would exceed the limit.
    pub fn append(&mut self, draft: &mut Draft<'_>) -> Result<(), WriteError> {
        self.writer.append(draft).map(drop)
    }

    /// Puts content beside the log; `None` where the target has no place for it.
    ///
    /// # Errors
    /// When the blob store refuses.
    pub fn blob(
        &mut self,
        bytes: &[u8],
        media: &str,
        name: Option<&str>,
    ) -> Result<Option<Value<'static>>, WriteError> {
        Ok(self.writer.blob(bytes, media, name)?.map(Value::Blob))
    }

    /// Appends an event that comes from no record: what the importer says about the source (or part of a session) `about`.
    /// `ordinal` tells several of them apart.
    ///
    /// # Errors
    /// When the output refuses.
    pub fn about<'d>(&mut self, about: &str, ordinal: u32, data: impl Into<Data<'d>>) -> Result<(), WriteError> {
        let id = self.ids(about).event(Native::Own, ordinal).hex();
        self.append(&mut Draft::new(id, ActorKind::Importer, data))
    }

    /// Opens a source.
    ///
    /// # Errors
    /// When the output refuses.
    pub fn open_source(
        &mut self,
        source: &str,
        locator: &str,
        records: &[Recorded],
        order: SourceOrder,
        kept: bool,
    ) -> Result<(), WriteError> {
        let opened = SourceOpened {
            source: source.to_owned().into(),
            vendor: self.format.name.into(),
            version: None,
            locator: locator.to_owned().into(),
            records: records.to_vec(),
            kept,
            order,
        };
        self.about(source, 0, opened)
    }

    /// Says how far a source was read.
    ///
    /// # Errors
    /// When the output refuses.
    pub fn close_source(&mut self, source: &str, end: &SourceEnd) -> Result<(), WriteError> {
        let note = NoteAdded {
            source: Some(source.to_owned().into()),
            len: Some(end.len),
            digest: Some(end.digest.clone().into()),
            records: Some(end.records),
            terminated: Some(end.terminated),
            ..note("source_end")
        };
        self.about(source, 1, note)
    }

    /// The payload that keeps a record of the kind `kind` verbatim.
    #[must_use]
    pub fn kept<'d>(&self, kind: &str, record: Raw<'d>) -> Data<'d> {
        let kind = if kind.is_empty() { "unexpected" } else { kind };
        Data::Kept(format!("x.{}/{kind}", self.format.namespace).into(), KeptRecord { record: record.into() })
    }

    /// Keeps a file that is one record as a source of its own, and tells of it: by what `tell` makes of its JSON, else by a
    /// note. `place` is where sources are kept, if they are.
    ///
    /// # Errors
    /// When the output refuses. A file that cannot be read is reported, not an error.
    pub fn document(
        &mut self,
        file: &Document<'_>,
        place: Option<&Path>,
        tell: impl for<'d> FnOnce(&Self, Raw<'d>) -> Option<Data<'d>>,
    ) -> Result<Option<InputReport>, ImportError> {
        let path = file.path.display().to_string();
        let read = |path: &Path| match place {
            Some(place) => {
                let mut original = fs::File::open(path)?;
                let mut kept = keep(place, file.source, &mut original, Some(path)).map_err(io::Error::other)?;
                let mut bytes = Vec::new();
                io::Read::read_to_end(&mut kept, &mut bytes)?;
                Ok(bytes)
            }
            None => fs::read(path),
        };
        let bytes: Vec<u8> = match read(file.path) {
            Ok(bytes) => bytes,
            Err(error) => {
                let place = Place { input: Some(path), ..Place::default() };
                let unreadable = Diagnostic::new(Code::Unreadable, Severity::Error, place).because(error.to_string());
                self.diagnostics.push(unreadable);
                return Ok(None);
            }
        };
        let mut input = InputReport { path, format: file.format.to_owned(), ..InputReport::default() };
        self.open_source(file.source, file.locator, &[], SourceOrder::Source, place.is_some())?;
        let text = std::str::from_utf8(&bytes).ok().filter(|_| file.json).map(str::trim);
        let raw = text.and_then(|t| Raw::parse(t).ok().map(|raw| (raw, t)));
        let (at, len) = match &raw {
            Some((_, text)) => (bytes.len() - bytes.trim_ascii_start().len(), text.len()),
            None => (0, bytes.len()),
        };
        let span = Span { at: at as u64, len: len as u64, line: 1 };
        let how = raw.is_none().then_some(SrcHow::Opaque);
        if raw.is_none() && file.json && !bytes.is_empty() {
            let place = Place { input: Some(input.path.clone()), ..Place::default() };
            self.diagnostics.push(Diagnostic::new(Code::UnexpectedShape, Severity::Warning, place));
        }
        let told = raw.and_then(|(raw, _)| tell(self, raw));
        let data = told.unwrap_or_else(|| {
            let note = NoteAdded {
                source: Some(file.source.to_owned().into()),
                len: Some(len as u64),
                digest: Some(palog::blob::digest(&bytes).into()),
                ..note("file")
            };
            note.into()
        });
        let id = self.ids(file.source).event(Native::Offset(span.at), 0).hex();
        let mut draft = Draft::new(id, ActorKind::Importer, data);
        if matches!(draft.data, Data::Kept(..)) {
            draft.ignorable = Some(true);
        }
        draft.src.push(src(file.source, span, how));
        self.append(&mut draft)?;
        input.records = u64::from(!bytes.is_empty());
        input.lines = bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()).count() as u64;
        self.close_source(file.source, &SourceEnd::of(&bytes, input.records))?;
        Ok(Some(input))
    }

    /// Ends writing. Returns what was found and the number of events.
    ///
    /// # Errors
    /// When the output refuses.
    pub fn finish(self) -> Result<(Diagnostics, u64), WriteError> {
        let events = self.writer.next_seq();
        self.writer.finish()?;
        Ok((self.diagnostics, events))
    }
}

/// A file that is one record: a JSON document, or content.
#[derive(Clone, Copy, Debug)]
pub struct Document<'f> {
    /// Name of its source.
    pub source: &'f str,
    /// Where it was found, as a path within what was imported.
    pub locator: &'f str,
    /// Where it is.
    pub path: &'f Path,
    /// The name of its format in reports.
    pub format: &'f str,
    /// Whether it should be JSON.
    pub json: bool,
}
