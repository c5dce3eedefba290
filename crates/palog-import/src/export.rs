//! The way back: logs as sessions of a vendor.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use palog::blob::BlobStore;
use palog_adapter::export::{Destination, ExportError, Kept, LossReport, Losses, View, kept_sources, name_uuid};
use palog_claude_code as claude_code;
use palog_codex as codex;

use crate::Vendor;

/// A log that is exported.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'l> {
    /// The log.
    pub log: &'l File,
    /// Where its blobs lie.
    pub blobs: Option<&'l BlobStore>,
    /// Where its sources are kept.
    pub sources: Option<&'l Path>,
}

/// What an exporter is asked for.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Id of the session that is written; the log gives one unless it is set.
    pub session: Option<String>,
    /// The directory that the session works in; that of the log unless it is set.
    pub directory: Option<String>,
    /// Write the current dialect also where the vendor's own bytes are at hand.
    pub rewrite: bool,
}

/// What was written.
#[derive(Clone, Debug)]
pub struct Exported {
    /// What is lost.
    pub report: LossReport,
    /// The place of the session below the client's directory.
    pub place: String,
    /// Files that belong to it, with their places; only where the vendor's own bytes were written.
    pub beside: Vec<(PathBuf, String)>,
    /// The directory that the session works in, if that is known.
    pub directory: Option<String>,
}

/// Why nothing was written.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refused {
    /// The log, or the output.
    Export(ExportError),
    /// Nothing tells which directory the session works in, and the client finds sessions by it.
    NoDirectory,
    /// There is no exporter to this client.
    NoExporter(Vendor),
}

impl From<ExportError> for Refused {
    fn from(error: ExportError) -> Self {
        Refused::Export(error)
    }
}

impl Vendor {
    /// Writes the session of a log to `out`: the vendor's own bytes where they are kept and the log was not added to, else in
    /// the dialect of the vendor's current client.
    ///
    /// # Errors
    /// When the log cannot be read or says nothing, or the output refuses.
    pub fn export(self, subject: Subject<'_>, wanted: &Wanted, out: &mut dyn Write) -> Result<Exported, Refused> {
        let read = |error| Refused::Export(ExportError::Read(error));
        let start = |mut file: &File| file.rewind().map_err(read);
        start(subject.log)?;
        if let (false, None, Some(place)) = (wanted.rewrite, &wanted.session, subject.sources)
            && let Some(kept) = kept_sources(subject.log, Some(place), self.name()).map_err(read)?
        {
            start(subject.log)?;
            return identical(self, subject, place, &kept, out);
        }
        start(subject.log)?;
        let mut view = View::open(subject.log, subject.blobs)?;
        let log = view.state.log.clone().unwrap_or_default();
        let directory = wanted.directory.clone().or_else(|| view.state.config.directory.clone());
        let destination = Destination {
            session: wanted.session.clone().unwrap_or_else(|| self.session_of(&log, 0)),
            directory: directory.ok_or(Refused::NoDirectory)?,
        };
        let mut losses = Losses::default();
        let place = match self {
            Vendor::ClaudeCode => {
                claude_code::export(&mut view, &destination, out, &mut losses)?;
                claude_code::place(&destination)
            }
            Vendor::Codex => {
                codex::export(&mut view, &destination, out, &mut losses)?;
                codex::place(&destination, view.began.as_deref())
            }
            Vendor::OpenCode | Vendor::Hermes | Vendor::OpenClaw | Vendor::Pi => {
                return Err(Refused::NoExporter(self));
            }
        };
        let report = LossReport {
            log,
            from: view.state.vendor.clone(),
            to: self.name(),
            session: destination.session,
            identical: false,
            losses: losses.into_vec(),
        };
        Ok(Exported { report, place, beside: Vec::new(), directory: Some(destination.directory) })
    }

    /// The id that the session of a log gets with this vendor; `number` tells several of them apart.
    #[must_use]
    pub fn session_of(self, log: &str, number: u32) -> String {
        name_uuid(&[self.name(), log, &number.to_string()])
    }
}

/// Writes what the log was made from.
fn identical(
    vendor: Vendor,
    subject: Subject<'_>,
    place: &Path,
    kept: &Kept,
    out: &mut dyn Write,
) -> Result<Exported, Refused> {
    let read = |error| Refused::Export(ExportError::Read(error));
    let (state, _) = palog::reduce::reduce(io::BufReader::new(subject.log)).map_err(read)?;
    let mut sources = kept.sources.iter().map(|(source, locator)| (place.join(source), locator.clone()));
    let (first, locator) = sources.next().ok_or_else(|| read(io::ErrorKind::NotFound.into()))?;
    copy(&mut File::open(first).map_err(read)?, out)?;
    let report = LossReport {
        log: state.log.unwrap_or_default(),
        from: Some(vendor.name().to_owned()),
        to: vendor.name(),
        session: kept.session.clone(),
        identical: true,
        losses: Vec::new(),
    };
    Ok(Exported { report, place: locator, beside: sources.collect(), directory: state.config.directory })
}

/// Copies, and tells which side failed.
fn copy(from: &mut impl Read, to: &mut dyn Write) -> Result<(), Refused> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer).map_err(ExportError::Read)? {
            0 => return Ok(()),
            n => to.write_all(&buffer[..n]).map_err(ExportError::Write)?,
        }
    }
}
