//! Export to the form of a client.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use palog_import::{ExportError, Exported, LossReport, Refused, Subject, Vendor, Wanted};
use tempfile::NamedTempFile;

use crate::args::{self, Export, Format, Limits};
use crate::exit::{Exit, Failure};
use crate::input::{self, Kept, is_dash};
use crate::render;
use crate::terminal::{Terminal, write_json};

/// Writes a session in the form of another client.
pub(super) fn run(terminal: &mut Terminal, args: &Export, to: Vendor) -> Result<Exit, Failure> {
    let [path] = args.logs.as_slice() else {
        return Err(Failure::new(Exit::Usage, "a client's form holds one session, and several paths are given"));
    };
    let subject = args::Subject { path: path.clone(), session: args.session.clone(), format: args.format };
    let kept = input::open_kept(terminal, &subject, None)?;
    let wanted = Wanted { directory: args.limits.directory.clone(), ..Wanted::default() };
    let to_stdout = is_dash(&args.output);
    let beside = args.output.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = if to_stdout { std::env::temp_dir() } else { beside.into() };
    let (file, exported) = written(&kept, to, &wanted, &place)?;
    let report = &exported.report;
    if let Err(failure) = allowed(report, &args.limits) {
        tell(terminal, args.format, true, report)?;
        return Err(failure);
    }
    if to_stdout {
        let mut file = file.reopen().map_err(|e| Failure::output(&e))?;
        io::copy(&mut file, &mut terminal.out)?;
    } else {
        file.persist_noclobber(&args.output).map_err(|e| taken(&args.output, &e.error))?;
        let losses = args.output.with_added_extension("losses.json");
        let mut text = serde_json::to_vec_pretty(report).map_err(|e| Failure::new(Exit::Bug, e.to_string()))?;
        text.push(b'\n');
        fs::write(&losses, text).map_err(|e| Failure::output(&e))?;
    }
    tell(terminal, args.format, to_stdout, report)?;
    if !exported.beside.is_empty() {
        let names: Vec<&str> = exported.beside.iter().map(|(_, place)| place.as_str()).collect();
        terminal.help(&format!("the client kept more beside the session, which is not written: {}", names.join(", ")));
    }
    Ok(Exit::Ok)
}

/// Prints the report: to standard error, if standard output holds the session.
fn tell(terminal: &mut Terminal, format: Format, to_err: bool, report: &LossReport) -> Result<(), Failure> {
    match (format, to_err) {
        (Format::Json, true) => write_json(&mut terminal.err, report),
        (Format::Json, false) => terminal.json(report),
        (Format::Human, true) => Ok(render::loss::render(&mut terminal.err, terminal.err_style, report)?),
        (Format::Human, false) => Ok(render::loss::render(&mut terminal.out, terminal.out_style, report)?),
    }
}

/// Writes the session to a file that goes away unless it is kept, in the directory `place`.
pub(crate) fn written(
    kept: &Kept,
    to: Vendor,
    wanted: &Wanted,
    place: &Path,
) -> Result<(NamedTempFile, Exported), Failure> {
    let file = NamedTempFile::new_in(place).map_err(|e| Failure::output(&e))?;
    let mut out = io::BufWriter::with_capacity(1 << 18, file);
    let log = &kept.log;
    let subject = Subject { log: log.file(), blobs: log.blobs.as_ref(), sources: kept.sources.as_deref() };
    let exported = to.export(subject, wanted, &mut out).map_err(|e| refused(&log.name, e))?;
    out.flush().map_err(|e| Failure::output(&e))?;
    let file = out.into_inner().map_err(|e| Failure::output(e.error()))?;
    Ok((file, exported))
}

/// Whether what is lost may be.
pub(crate) fn allowed(report: &LossReport, limits: &Limits) -> Result<(), Failure> {
    let critical: Vec<String> =
        report.critical().map(|loss| format!("{}: {}", loss.field.word(), loss.reason)).collect();
    if !critical.is_empty() && !limits.lossy {
        let mut failure =
            Failure::new(Exit::Negative, "nothing was written: going on without what is lost can do harm");
        failure.help.extend(critical);
        return Err(failure.help("--lossy writes it all the same"));
    }
    let class = limits.fail_on.map(crate::args::Class::class);
    match class.and_then(|class| report.worse(class).next().map(|loss| (class, loss))) {
        Some((class, loss)) => {
            let why = format!("nothing was written: {} is {}", loss.field.word(), loss.class.word());
            Err(Failure::new(Exit::Negative, why).help(format!("--fail-on {} was asked for", class.word())))
        }
        None => Ok(()),
    }
}

/// Why nothing was written.
pub(crate) fn refused(name: &str, refused: Refused) -> Failure {
    match refused {
        Refused::NoDirectory => {
            let why = format!("{name}: nothing tells which directory the session works in");
            Failure::new(Exit::Usage, why).help("--directory DIR says so")
        }
        Refused::Export(ExportError::Write(error)) => Failure::output(&error),
        Refused::Export(error @ ExportError::Read(_)) => Failure::new(Exit::Unreadable, format!("{name}: {error}")),
        Refused::Export(error) => {
            Failure::new(Exit::Negative, format!("{name}: {error}")).help(format!("palog validate {name}"))
        }
        _ => Failure::new(Exit::Negative, format!("{name}: it cannot be written")),
    }
}

/// A place that is taken, or cannot be written.
pub(crate) fn taken(path: &Path, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::AlreadyExists {
        return Failure::new(Exit::Negative, format!("{} exists already, and nothing is overwritten", path.display()));
    }
    Failure::new(Exit::Negative, format!("cannot write {}: {error}", path.display()))
}
