//! `palog migrate`

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use palog::envelope::ActorKind;
use palog::events::{LogClosed, LogEnd};
use palog::live::{Durability, Expect, LogFile, draft};
use palog_import::{Vendor, Wanted};

use crate::args::{Format, Migrate};
use crate::commands::export::session::{allowed, taken, written};
use crate::exit::{Exit, Failure};
use crate::input;
use crate::output::migrate::Migration;
use crate::render;
use crate::render::text::clean_line;
use crate::terminal::Terminal;

/// How many sessions of one log are looked at for a free id.
const IDS: u32 = 1000;

/// Moves a session to another client.
pub(crate) fn run(terminal: &mut Terminal, args: &Migrate) -> Result<Exit, Failure> {
    let to = args.to.vendor();
    let home = match &args.into {
        Some(home) => home.clone(),
        None => home_of(to).ok_or_else(|| no_home("--into HOME"))?,
    };
    let logs = match (&args.logs, args.dry_run) {
        (_, true) => None,
        (Some(logs), false) => Some(logs.clone()),
        (None, false) => Some(logs_of_user().ok_or_else(|| no_home("--logs DIR"))?),
    };
    let kept = input::open_kept(terminal, &args.subject, logs.as_deref()).map_err(|failure| again(failure, &logs))?;
    let (state, _) = palog::reduce::reduce(kept.log.start()?).map_err(|e| kept.log.unreadable(&e))?;
    if state.closed == Some(LogEnd::Transferred) {
        let why = format!("{}: the session was moved already, and goes on elsewhere", kept.log.name);
        return Err(Failure::new(Exit::Negative, why).help("palog show tells where: its last event says it"));
    }
    let Some(log) = kept.log.path().map(Path::to_path_buf) else {
        return Err(Failure::new(Exit::Usage, "a stream cannot be closed: give the file of the log"));
    };
    let id = state.log.clone().unwrap_or_default();
    fs::create_dir_all(if args.dry_run { env::temp_dir() } else { home.clone() }).map_err(|e| Failure::output(&e))?;
    let scratch = if args.dry_run { env::temp_dir() } else { home.clone() };

    // The client's own bytes keep their id where that is free; everything else gets one of its own.
    let mut wanted = Wanted { directory: args.limits.directory.clone(), ..Wanted::default() };
    let mut number = 0;
    let (file, exported, path) = loop {
        let (file, exported) = written(&kept, to, &wanted, &scratch)?;
        let path = home.join(&exported.place);
        if path.symlink_metadata().is_err() {
            break (file, exported, path);
        }
        if number == IDS {
            return Err(taken(&path, &std::io::ErrorKind::AlreadyExists.into()));
        }
        wanted.session = Some(to.session_of(&id, number));
        number += 1;
    };
    let mut migration = Migration {
        log: log.display().to_string(),
        path: path.display().to_string(),
        written: false,
        resume: resume(args, to, &exported.report.session, exported.directory.as_deref()),
        report: exported.report,
    };
    let permitted = allowed(&migration.report, &args.limits);
    if permitted.is_err() || args.dry_run {
        tell(terminal, args, &migration)?;
        return permitted.map(|()| Exit::Ok);
    }
    let folder = path.parent().unwrap_or(&home);
    fs::create_dir_all(folder).map_err(|e| Failure::output(&e))?;
    file.persist_noclobber(&path).map_err(|e| taken(&path, &e.error))?;
    let beside = exported.beside.iter().try_for_each(|(file, place)| beside(file, &home.join(place)));
    let closed = beside.and_then(|()| close(&log, &migration));
    if let Err(failure) = closed {
        // The session must not be there twice.
        let _ = fs::remove_file(&path);
        return Err(failure);
    }
    migration.written = true;
    tell(terminal, args, &migration)?;
    Ok(Exit::Ok)
}

/// A file that the client kept beside the session, unless it is there.
fn beside(file: &Path, place: &Path) -> Result<(), Failure> {
    if place.symlink_metadata().is_ok() {
        return Ok(());
    }
    let folder = place.parent().unwrap_or(place);
    fs::create_dir_all(folder).and_then(|()| fs::copy(file, place)).map(drop).map_err(|e| Failure::output(&e))
}

/// Closes the log, so that one session does not run twice.
fn close(log: &Path, migration: &Migration) -> Result<(), Failure> {
    let failed = |why: String| Failure::new(Exit::Negative, format!("{} cannot be closed: {why}", log.display()));
    let mut file = LogFile::open(log).map_err(|e| failed(e.to_string()))?;
    let reason = format!("moved to {}, session {}", migration.report.to, migration.report.session);
    let closed = LogClosed { how: LogEnd::Transferred, reason: Some(reason.into()) };
    let mut event = draft(ActorKind::Operator, closed);
    file.append(&mut event, Expect::default(), Durability::Sync).map(drop).map_err(|e| failed(e.to_string()))
}

/// The command that goes on with the session.
fn resume(args: &Migrate, to: Vendor, session: &str, directory: Option<&str>) -> Option<String> {
    let command = to.resume(Some(session), directory).command?;
    let Some(home) = &args.into else { return Some(command) };
    let home = fs::canonicalize(home).unwrap_or_else(|_| home.clone());
    let home = home.to_str().filter(|home| palog_adapter::resume::is_safe_word(home))?;
    let (before, program) = command.rsplit_once("&& ").map_or(("", command.as_str()), |(b, p)| (b, p));
    let join = if before.is_empty() { "" } else { "&& " };
    Some(format!("{before}{join}{}={home} {program}", variable(to)))
}

/// The variable that names a client's directory.
fn variable(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Codex => "CODEX_HOME",
        _ => "CLAUDE_CONFIG_DIR",
    }
}

fn home_of(vendor: Vendor) -> Option<PathBuf> {
    let folder = match vendor {
        Vendor::Codex => ".codex",
        _ => ".claude",
    };
    set(variable(vendor)).or_else(|| Some(set("HOME").or_else(|| set("USERPROFILE"))?.join(folder)))
}

fn logs_of_user() -> Option<PathBuf> {
    let data = set("XDG_DATA_HOME").or_else(|| Some(set("HOME").or_else(|| set("USERPROFILE"))?.join(".local/share")));
    data.map(|data| data.join("palog"))
}

fn set(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn no_home(help: &str) -> Failure {
    Failure::new(Exit::Usage, "nothing tells where the home directory is").help(help)
}

/// A log that is there already is that of an earlier move, or of an import.
fn again(failure: Failure, logs: &Option<PathBuf>) -> Failure {
    let exists = failure.message.as_deref().is_some_and(|message| message.contains("exists already"));
    match logs {
        Some(logs) if exists => failure.help(format!("palog migrate {} moves the log that is there", logs.display())),
        _ => failure,
    }
}

fn tell(terminal: &mut Terminal, args: &Migrate, migration: &Migration) -> Result<(), Failure> {
    if args.subject.format == Format::Json {
        return terminal.json(migration);
    }
    let style = terminal.out_style;
    render::loss::render(&mut terminal.out, style, &migration.report)?;
    let verb = if migration.written { "written:" } else { "would write:" };
    use std::io::Write;
    writeln!(terminal.out, "{} {}", style.bold(verb), clean_line(&migration.path))?;
    if migration.written {
        writeln!(terminal.out, "{} {} (transferred)", style.bold("closed:"), clean_line(&migration.log))?;
    }
    match &migration.resume {
        Some(command) => writeln!(terminal.out, "{} {command}", style.bold("go on with:"))?,
        None => writeln!(terminal.out, "{} session {}", style.bold("go on with:"), migration.report.session)?,
    }
    Ok(())
}
