//! Lists sessions without reading them: what the first and last records of each rollout tell.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use palog::envelope::Time;
use palog_adapter::listing::{Listed, Listing, TimeFrom, TitleFrom};
use serde::Deserialize;

use crate::FORMAT;
use crate::lineage;
use crate::paths::{Session, discover};
use crate::record::{Form, Item, Line, Meta, parse};
use crate::rollout::typed_prompt;
use crate::sidecars::Role;

/// How much is read at either end of a rollout, in bytes.
const WINDOW: u64 = 256 << 10;
/// How much of a prompt is taken as the title, in characters.
const TITLE: usize = 200;

/// Lists the sessions at `path`. Agents that a session started are counted with it.
///
/// # Errors
/// When `path`, or a directory below it, cannot be read.
pub fn list(path: &Path) -> io::Result<Listing> {
    let found = discover(path)?;
    let unrecognised = |p: &Path| found.unrecognised.iter().any(|u| u == p);
    let agents: std::collections::HashSet<&str> =
        found.sessions.iter().flat_map(|s| &s.offspring).filter(|c| !c.is_fork).map(|c| c.id.as_str()).collect();
    let mut names: HashMap<&Path, HashMap<String, String>> = HashMap::new();
    let mut listing = Listing::default();
    for session in &found.sessions {
        let Some(path) = session.path().filter(|p| !unrecognised(p)) else { continue };
        if session.id().is_some_and(|id| agents.contains(id)) {
            continue;
        }
        let index = session.sidecars.iter().find(|s| s.role == Role::Index);
        let names = index.map(|index| &*names.entry(&index.path).or_insert_with(|| names_in(&index.path)));
        match listed(session, path, names) {
            Ok(listed) => listing.sessions.push(listed),
            Err(_) => listing.unrecognised.push(path.into()),
        }
    }
    listing.unrecognised.extend(found.unrecognised);
    Ok(listing)
}

fn listed(session: &Session, path: &Path, names: Option<&HashMap<String, String>>) -> io::Result<Listed> {
    let meta = fs::metadata(path)?;
    let (mut directory, mut branch, mut prompt) = (None, None, None);
    for line in BufReader::new(lineage::open(path)?.take(WINDOW)).split(b'\n') {
        let line = line?;
        let text = String::from_utf8_lossy(&line);
        let Ok(record) = serde_json::from_str::<Line<'_>>(text.trim()) else { continue };
        let (header, item): (Option<Meta<'_>>, Option<Item<'_>>) = match (record.form(), record.r#type.as_deref()) {
            (Form::Enveloped, Some("session_meta")) => (record.payload.as_ref().and_then(parse), None),
            (Form::Enveloped, Some("response_item")) => (None, record.payload.as_ref().and_then(parse)),
            (Form::BareHeader, _) => (serde_json::from_str(text.trim()).ok(), None),
            (Form::BareItem, _) => (None, serde_json::from_str(text.trim()).ok()),
            _ => (None, None),
        };
        if let Some(header) = header.filter(|_| directory.is_none()) {
            directory = header.cwd.map(|c| c.to_string());
            branch = header.git.and_then(|g| g.branch).map(|b| b.to_string());
        }
        if let Some(text) = item.as_ref().and_then(typed_prompt) {
            prompt = Some(text.trim().chars().take(TITLE).collect::<String>());
            break;
        }
    }
    let name = session.id().and_then(|id| names?.get(id).cloned());
    let title_from = if name.is_some() { Some(TitleFrom::User) } else { prompt.as_ref().map(|_| TitleFrom::Prompt) };
    let recorded = last_time(path, meta.len())?.map(|time| (time, TimeFrom::Record));
    let written = || {
        let time = meta.modified().ok().and_then(|time| jiff::Timestamp::try_from(time).ok())?;
        Some((Time::parse(time.to_string())?, TimeFrom::File))
    };
    let last = recorded.or_else(written);
    Ok(Listed {
        vendor: FORMAT.name,
        id: session.id().map(str::to_owned),
        path: path.into(),
        title: name.or(prompt),
        title_from,
        directory,
        branch,
        last_activity_from: last.as_ref().map(|(_, from)| *from),
        last_activity: last.map(|(time, _)| time),
        bytes: meta.len(),
        subagents: session.offspring.iter().filter(|c| !c.is_fork).count() as u64,
    })
}

/// The time of the last record of a plain file.
fn last_time(path: &Path, len: u64) -> io::Result<Option<Time<'static>>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(len.saturating_sub(WINDOW)))?;
    let mut tail = Vec::new();
    file.take(WINDOW).read_to_end(&mut tail)?;
    let times = tail.rsplit(|b| *b == b'\n').filter_map(|line| {
        let line: Line<'_> = serde_json::from_slice(line).ok()?;
        Time::parse(line.timestamp?.text()?.into_owned())
    });
    let mut times = times;
    Ok(times.next())
}

/// The names in an index, the last one for each thread.
fn names_in(index: &Path) -> HashMap<String, String> {
    #[derive(Deserialize)]
    struct Entry {
        id: String,
        thread_name: String,
    }
    let bytes = fs::read(index).unwrap_or_default();
    let entries = bytes.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice::<Entry>(line).ok());
    entries.map(|e| (e.id, e.thread_name)).collect()
}
