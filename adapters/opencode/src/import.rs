//! Imports one session into a log.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use palog::diagnostic::Severity;
use palog::events::{Parent, ParentMode, Recorded, SourceOrder};
use palog_adapter::source::{keep, name_of};
use palog_adapter::{
    Document, ImportError, InputReport, Log, LogName, LogReport, Options, Report, SourceEnd, Target, ids, output,
};

use crate::mapper::Mapper;
use crate::paths::{Home, Session};
use crate::{FORMAT, export, stream};

/// What tables, files and exports record durably. A call is a row before it acts, but it may be lost with the machine; its end is
/// lost with the process; questions for leave and their answers stand nowhere.
const ROWS: &[Recorded] = &[Recorded::Usage];

/// What a recording of the event stream holds as well.
const EVENTS: &[Recorded] = &[Recorded::ApprovalRequested, Recorded::ApprovalEnded, Recorded::Usage];

/// Name of the source that rows and files are kept in.
const STORE: &str = "store";

/// Imports one session.
///
/// # Errors
/// When a file cannot be read, the target refuses, or nothing in it is known. The target is aborted then.
pub fn import(session: &Session, target: &mut dyn Target, options: &Options) -> Result<Report, ImportError> {
    output::all_or_none(target, |target| import_session(session, target, options))
}

fn import_session(session: &Session, target: &mut dyn Target, options: &Options) -> Result<Report, ImportError> {
    let Some(id) = session.id.clone() else {
        let input = session.path().map_or_else(|| "-".to_owned(), |p| p.display().to_string());
        return Err(ImportError::NothingRecognised { input, product: FORMAT.product, lines: lines(session) });
    };
    let name = LogName { session: id.clone(), parent: session.parent.clone() };
    let mut output = target.open(&name)?;
    let place = output.sources.take().filter(|_| options.sources);
    let parent = session.parent.as_ref().map(|parent| Parent {
        log: ids::log(&FORMAT, parent).into(),
        session: Some(parent.clone().into()),
        at: None,
        event: None,
        action: None,
        mode: ParentMode::Spawn,
        workspace: None,
    });
    let log = Log::open(&FORMAT, &id, parent, output)?;
    let (mut mapper, source, end) = written(session, log, place.as_deref())?;
    mapper.log.close_source(source, &end)?;
    let mut report = Report::default();
    for file in std::mem::take(&mut mapper.spilled) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let source = format!("tool-output/{}", name_of(&name));
        let locator = format!("tool-output/{name}");
        let document =
            Document { source: &source, locator: &locator, path: &file, format: "opencode.tool-output", json: false };
        report.inputs.extend(mapper.log.document(&document, place.as_deref(), |_, _| None)?);
    }
    let Mapper { log, input, .. } = mapper;
    report.inputs.insert(0, input);
    if let Home::Database(database) = &session.home {
        report.inputs.extend(database.log_report());
    }
    let (diagnostics, events) = log.finish()?;
    report.logs.push(LogReport {
        path: None,
        format: FORMAT.name,
        session: id,
        parent: name.parent,
        records: end.records,
        events,
        onto: None,
        severities: [Severity::Error, Severity::Void, Severity::Warning, Severity::Info]
            .map(|s| (s, diagnostics.count(s)))
            .into(),
    });
    report.diagnostics.extend(diagnostics);
    Ok(report)
}

/// Writes what is in the source. Returns its name and how far it was read.
fn written(
    session: &Session,
    mut log: Log,
    place: Option<&Path>,
) -> Result<(Mapper, &'static str, SourceEnd), ImportError> {
    let kept = place.is_some();
    let prepare = |mapper: &mut Mapper| {
        mapper.is_child = session.parent.is_some();
        mapper.outputs.clone_from(&session.outputs);
    };
    match &session.home {
        Home::Database(database) => {
            log.open_source(STORE, &database.locator, ROWS, SourceOrder::Source, kept)?;
            let mut mapper = Mapper::new(log, STORE, database.report());
            prepare(&mut mapper);
            let end = database.write(&mut mapper, place)?;
            Ok((mapper, STORE, end))
        }
        Home::Tree(tree) => {
            log.open_source(STORE, &tree.locator, ROWS, SourceOrder::Source, kept)?;
            let mut mapper = Mapper::new(log, STORE, report(&tree.session.display().to_string(), "opencode.json"));
            prepare(&mut mapper);
            let end = tree.write(&mut mapper, place)?;
            Ok((mapper, STORE, end))
        }
        Home::Export(document) => {
            log.open_source(export::SOURCE, &document.locator(), ROWS, SourceOrder::Source, kept)?;
            let mut file = opened(document, export::SOURCE, place)?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(|error| unreadable(document, error))?;
            let mut mapper = Mapper::new(log, export::SOURCE, report(&document.name(), "opencode.export"));
            prepare(&mut mapper);
            mapper.input.lines = bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()).count() as u64;
            let end = export::write(&mut mapper, &bytes)?;
            Ok((mapper, export::SOURCE, end))
        }
        Home::Stream(document) => {
            log.open_source(stream::SOURCE, &document.locator(), EVENTS, SourceOrder::Synthesized, kept)?;
            let mut original = document.open().map_err(|error| unreadable(document, error))?;
            let own = stream::own_lines(&mut original, session.id().unwrap_or_default());
            let mut file = match own.map_err(|error| unreadable(document, error))? {
                Some(lines) => {
                    let mut own = stream::spooled(&lines).map_err(|error| unreadable(document, error))?;
                    match place {
                        Some(place) => keep(place, stream::SOURCE, &mut own, None)?,
                        None => own,
                    }
                }
                None => opened(document, stream::SOURCE, place)?,
            };
            let (mapper, end) = stream::write(log, document.name(), &mut file, prepare)?;
            Ok((mapper, stream::SOURCE, end))
        }
    }
}

/// Opens a document; where it is kept, its copy.
fn opened(document: &crate::paths::Document, source: &str, place: Option<&Path>) -> Result<File, ImportError> {
    let mut file = document.open().map_err(|error| unreadable(document, error))?;
    match place {
        Some(place) => keep(place, source, &mut file, document.path.as_deref()),
        None => Ok(file),
    }
}

fn unreadable(document: &crate::paths::Document, error: io::Error) -> ImportError {
    ImportError::Read { path: document.name().into(), error }
}

fn report(path: &str, format: &str) -> InputReport {
    InputReport { path: path.to_owned(), format: format.to_owned(), ..InputReport::default() }
}

/// How many lines were looked at in vain.
fn lines(session: &Session) -> u64 {
    let Home::Export(document) = &session.home else { return 0 };
    let mut bytes = Vec::new();
    let read = document.open().and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_or(0, |_| bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()).count() as u64)
}
