//! The kept sources of a log that goes on: they only grow (spec 01, "Kept sources").

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use palog::blob::hex;
use palog::events::{Data, SourceChange};
use sha2::{Digest, Sha256};

/// How much is compared at once.
const CHUNK: usize = 1 << 20;

/// What became of the sources.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// Sources that have another name in the log, because one of the same name holds other bytes.
    pub(crate) names: BTreeMap<String, String>,
    /// Rows that were added to those that were kept: the digest of all, their bytes, and their number.
    grown: BTreeMap<String, (String, u64, u64)>,
    /// Sources that lack records that they had.
    pub(crate) changed: Vec<(String, SourceChange)>,
    /// Digest of what is kept.
    pub(crate) digest: Vec<u8>,
}

impl Sources {
    /// Takes the sources below `fresh` in below `kept`: what went on takes the place of what it goes on from, rows are added to
    /// rows, and what is another source gets another name.
    pub(crate) fn merge(fresh: &Path, kept: &Path) -> io::Result<Self> {
        let mut sources = Sources::default();
        let mut names = Vec::new();
        if kept.is_dir() && fresh.is_dir() {
            gather(fresh, fresh, &mut names)?;
        }
        names.sort();
        for name in names {
            let (new, old) = (fresh.join(&name), kept.join(&name));
            let source = name.to_string_lossy().replace('\\', "/");
            if !old.exists() {
                fs::create_dir_all(old.parent().unwrap_or(kept))?;
                fs::rename(new, old)?;
            } else if is_rows(&new)? && is_rows(&old)? {
                sources.add_rows(&source, &new, &old)?;
            } else if begins_with(&new, &old)? {
                fs::rename(new, old)?;
            } else if begins_with(&old, &new)? {
                sources.changed.push((source.clone(), SourceChange::Truncated));
            } else {
                sources.rename(&source, &new, kept)?;
            }
            sources.digest.extend(Sha256::digest(source.as_bytes()));
        }
        for (digest, len, _) in sources.grown.values() {
            sources.digest.extend(digest.as_bytes());
            sources.digest.extend(len.to_be_bytes());
        }
        Ok(sources)
    }

    /// Another source of the same name gets a number behind it, unless it was kept before.
    fn rename(&mut self, source: &str, new: &Path, kept: &Path) -> io::Result<()> {
        self.changed.push((source.to_owned(), SourceChange::Rewritten));
        for number in 2_u32.. {
            let name = format!("{source}@{number}");
            let old = kept.join(&name);
            if old.exists() && !begins_with(new, &old)? {
                continue;
            }
            fs::rename(new, old)?;
            self.names.insert(source.to_owned(), name);
            break;
        }
        Ok(())
    }

    /// Adds the rows that are not there yet. A row that changed stands there in each of its forms.
    fn add_rows(&mut self, source: &str, new: &Path, old: &Path) -> io::Result<()> {
        let of = |line: &[u8]| <[u8; 32]>::from(Sha256::digest(line));
        let mut known = HashSet::new();
        let (mut digest, mut len, mut rows) = (Sha256::new(), 0, 0_u64);
        each_line(old, |line| {
            known.insert(of(line));
            digest.update(line);
            len += line.len() as u64;
            rows += u64::from(is_row(line));
            Ok(())
        })?;
        let mut more = Vec::new();
        each_line(new, |line| {
            if is_row(line) && known.insert(of(line)) {
                digest.update(line);
                len += line.len() as u64;
                rows += 1;
                more.extend_from_slice(line);
            }
            Ok(())
        })?;
        if !more.is_empty() {
            let grown = old.with_extension("grown");
            fs::copy(old, &grown)?;
            let mut out = BufWriter::new(File::options().append(true).open(&grown)?);
            out.write_all(&more)?;
            out.flush()?;
            fs::rename(&grown, old)?;
        }
        self.grown.insert(source.to_owned(), (format!("sha256:{}", hex(&digest.finalize())), len, rows));
        Ok(())
    }

    /// The name of a source in the log.
    pub(crate) fn name(&self, source: &str) -> String {
        self.names.get(source).cloned().unwrap_or_else(|| source.to_owned())
    }

    /// Gives the source that a payload is about its name in the log, and its end what is kept now.
    pub(crate) fn rename_in(&self, data: &mut Data<'_>) {
        match data {
            Data::SourceOpened(opened) => opened.source = self.name(&opened.source).into(),
            Data::ObservationRecorded(observed) => observed.source = self.name(&observed.source).into(),
            Data::NoteAdded(note) => {
                if let Some(source) = &mut note.source {
                    *source = self.name(source).into();
                }
                let grown = note.source.as_deref().and_then(|source| self.grown.get(source));
                if let Some((digest, len, rows)) = grown.filter(|_| note.kind.as_str() == "source_end") {
                    (note.digest, note.len) = (Some(digest.clone().into()), Some(*len));
                    note.records = note.records.map(|_| *rows);
                }
            }
            _ => {}
        }
    }
}

fn gather(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            gather(root, &path, found)?;
        } else if let Ok(name) = path.strip_prefix(root) {
            found.push(name.to_path_buf());
        }
    }
    Ok(())
}

/// Whether a kept source holds the rows of a database.
fn is_rows(path: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(path)?.take(10).read_to_end(&mut head)?;
    Ok(head == b"{\"schema\":")
}

fn is_row(line: &[u8]) -> bool {
    line.starts_with(b"{\"table\":")
}

fn each_line(path: &Path, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut input = BufReader::with_capacity(CHUNK, File::open(path)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        take(&line)?;
    }
}

/// Whether `long` begins with all bytes of `short`.
fn begins_with(long: &Path, short: &Path) -> io::Result<bool> {
    let (mut long, mut short) = (File::open(long)?, File::open(short)?);
    if long.metadata()?.len() < short.metadata()?.len() {
        return Ok(false);
    }
    let (mut a, mut b) = (Vec::new(), Vec::new());
    loop {
        b.clear();
        a.clear();
        if (&mut short).take(CHUNK as u64).read_to_end(&mut b)? == 0 {
            return Ok(true);
        }
        (&mut long).take(b.len() as u64).read_to_end(&mut a)?;
        if a != b {
            return Ok(false);
        }
    }
}
