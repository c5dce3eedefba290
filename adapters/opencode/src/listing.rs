//! Lists sessions by their own records, without their messages.

use std::fs;
use std::io;
use std::path::Path;

use palog::envelope::Time;
use palog_adapter::listing::{Listed, Listing, TimeFrom, TitleFrom};

use crate::FORMAT;
use crate::export;
use crate::paths::{Home, Session, discover};
use crate::record::{Head, time};

/// Lists the sessions at `path`. Sessions that agents were started in are counted with those that they belong to.
///
/// # Errors
/// When `path`, or a directory below it, cannot be read.
pub fn list(path: &Path) -> io::Result<Listing> {
    let found = discover(path)?;
    let mut listing = Listing::default();
    let children = |id: &str| found.sessions.iter().filter(|s| s.parent.as_deref() == Some(id)).count() as u64;
    for session in found.sessions.iter().filter(|s| s.id.is_some()) {
        let is_here = |id: &String| found.sessions.iter().any(|s| s.id.as_ref() == Some(id));
        if session.parent.as_ref().is_some_and(is_here) {
            continue;
        }
        listing.sessions.extend(listed(session, children(session.id().unwrap_or_default())));
    }
    listing.unrecognised = found.unrecognised;
    Ok(listing)
}

/// What a session says of itself.
#[derive(Default)]
struct Said {
    title: Option<String>,
    directory: Option<String>,
    updated: Option<i64>,
}

impl Said {
    fn by(head: &Head<'_>) -> Self {
        let times = head.time.unwrap_or_default();
        Said {
            title: head.title.as_ref().map(ToString::to_string),
            directory: head.directory.as_ref().map(ToString::to_string),
            updated: times.updated.or(times.created),
        }
    }
}

fn listed(session: &Session, subagents: u64) -> Option<Listed> {
    let path = session.path()?;
    let said = match &session.home {
        Home::Database(database) => {
            let row = database.sessions().into_iter().find(|row| Some(&row.id) == session.id.as_ref());
            row.map(|row| Said { title: row.title, directory: row.directory, updated: row.updated.or(row.created) })
        }
        Home::Tree(tree) => {
            fs::read(&tree.session).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok().map(|h| Said::by(&h)))
        }
        Home::Export(_) => fs::read(path).ok().and_then(|bytes| export::info(&bytes).map(|h| Said::by(&h))),
        Home::Stream(_) => None,
    };
    let said = said.unwrap_or_default();
    let recorded = said.updated.and_then(time).map(|time| (time, TimeFrom::Record));
    let written = || {
        let modified = fs::metadata(path).and_then(|meta| meta.modified()).ok()?;
        Some((Time::of(modified)?, TimeFrom::File))
    };
    let last = recorded.or_else(written);
    Some(Listed {
        vendor: FORMAT.name,
        id: session.id.clone(),
        path: path.into(),
        title_from: said.title.as_ref().map(|_| TitleFrom::Client),
        title: said.title,
        directory: said.directory,
        branch: None,
        last_activity_from: last.as_ref().map(|(_, from)| *from),
        last_activity: last.map(|(time, _)| time),
        bytes: session.size(),
        subagents,
    })
}
