//! `palog export`

pub(crate) mod session;
#[cfg(feature = "parquet")]
mod tables;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use palog::reader::{Lines, Next};

use crate::args::{Export, ExportTo};
use crate::choice::logs_in;
use crate::exit::{Exit, Failure};
use crate::input::{self, Content, Opened, is_dash};
use crate::terminal::Terminal;

/// Writes logs in another form.
pub(crate) fn run(terminal: &mut Terminal, args: &Export) -> Result<Exit, Failure> {
    if args.to != ExportTo::Parquet && !args.partition.is_empty() {
        return Err(Failure::new(Exit::Usage, "--partition parts the files of a dataset: it goes with --to parquet"));
    }
    if let Some(vendor) = args.to.vendor() {
        return session::run(terminal, args, vendor);
    }
    let logs = logs(&args.logs)?;
    match args.to {
        ExportTo::ClaudeCode | ExportTo::Codex => Err(Failure::new(Exit::Bug, "no form of a client")),
        ExportTo::Jsonl => jsonl(&logs, &args.output),
        #[cfg(feature = "parquet")]
        ExportTo::Parquet => tables::dataset(terminal, args, logs),
        #[cfg(feature = "parquet")]
        ExportTo::ArrowStream => tables::arrow_stream(terminal, args, logs),
        #[cfg(not(feature = "parquet"))]
        ExportTo::Parquet | ExportTo::ArrowStream => {
            let _ = terminal;
            Err(Failure::new(Exit::Usage, "this palog was built without tables").help("cargo build --features parquet"))
        }
    }
}

/// A log that is exported: where it lies, or what came from a pipe.
enum Log {
    File(PathBuf),
    Stream(Opened),
}

impl Log {
    fn open(&self) -> Result<File, Failure> {
        match self {
            Log::File(path) => File::open(path).map_err(|e| Failure::unreadable(&path.display().to_string(), &e)),
            Log::Stream(opened) => opened.start()?.try_clone().map_err(|e| opened.unreadable(&e)),
        }
    }

    fn name(&self) -> String {
        match self {
            Log::File(path) => path.display().to_string(),
            Log::Stream(opened) => opened.name.clone(),
        }
    }
}

/// The logs that are named, and those that lie in the directories that are named.
fn logs(paths: &[PathBuf]) -> Result<Vec<Log>, Failure> {
    let mut logs = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        if let Some((opened, content)) = input::stream(path)? {
            check(&opened.name, content)?;
            logs.push(Log::Stream(opened));
        } else if path.is_dir() {
            let found = logs_in(path)?;
            if found.is_empty() {
                return Err(Failure::new(Exit::NothingMatched, format!("{name} holds no logs")).help(import(&name)));
            }
            logs.extend(found.into_iter().map(|log| Log::File(log.path)));
        } else {
            check(&name, input::content_of(path)?)?;
            logs.push(Log::File(path.clone()));
        }
    }
    Ok(logs)
}

fn import(name: &str) -> String {
    format!("what a vendor's client wrote is imported first: palog import {name} -o DIR/")
}

/// Refuses what does not begin like a log. A damaged one may begin in another way, if its name says what it is.
fn check(name: &str, content: Content) -> Result<(), Failure> {
    match content {
        Content::Log => Ok(()),
        Content::Other if name.ends_with(input::SUFFIX) => Ok(()),
        Content::Zstd => {
            Err(Failure::new(Exit::Unreadable, format!("{name} is compressed")).help(format!("zstd -d {name}")))
        }
        Content::Empty => Err(Failure::new(Exit::Unreadable, format!("{name} is empty"))),
        Content::Other => Err(Failure::new(Exit::Unreadable, format!("{name} is no log")).help(import(name))),
    }
}

/// Where a stream goes: it is there when it is whole.
enum Destination {
    Stdout(File),
    File(tempfile::NamedTempFile, PathBuf),
}

impl Destination {
    fn of(output: &Path) -> Result<Self, Failure> {
        if is_dash(output) {
            return Ok(Destination::Stdout(stdout()?));
        }
        if output.exists() {
            return Err(Failure::new(Exit::Negative, format!("{} is there already", output.display()))
                .help("choose another place with -o, or move it away"));
        }
        let directory = output.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Destination::File(tempfile::NamedTempFile::new_in(directory)?, output.into()))
    }

    fn file(&self) -> io::Result<File> {
        match self {
            Destination::Stdout(file) => file.try_clone(),
            Destination::File(file, _) => file.as_file().try_clone(),
        }
    }

    fn commit(self) -> Result<(), Failure> {
        if let Destination::File(file, path) = self {
            file.as_file().sync_all()?;
            file.persist_noclobber(&path).map_err(|e| Failure::output(&e.error))?;
        }
        Ok(())
    }
}

/// Standard output as a file that any thread may write to.
#[cfg(unix)]
fn stdout() -> io::Result<File> {
    use std::os::fd::AsFd;
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// Standard output as a file that any thread may write to.
#[cfg(windows)]
fn stdout() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    io::stdout().as_handle().try_clone_to_owned().map(File::from)
}

/// Writes the lines of the logs, each up to its last line feed.
fn jsonl(logs: &[Log], output: &Path) -> Result<Exit, Failure> {
    let destination = Destination::of(output)?;
    let mut out = BufWriter::with_capacity(1 << 20, destination.file()?);
    for log in logs {
        let mut lines = Lines::new(log.open()?).of_any_length();
        // What is behind the last line feed is no part of the log (R-BYT-005); no line is too long here.
        while let Next::Line(line) = lines.next_line().map_err(|e| Failure::unreadable(&log.name(), &e))? {
            out.write_all(line.bytes)?;
            out.write_all(b"\n")?;
        }
    }
    out.flush()?;
    drop(out);
    destination.commit()?;
    Ok(Exit::Ok)
}
