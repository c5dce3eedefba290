//! Lists sessions by their rows, without reading their messages.

use std::io;
use std::path::Path;

use palog::envelope::Time;
use palog_adapter::listing::{Listed, Listing, TimeFrom, TitleFrom};
use palog_adapter::sqlite::Row;

use crate::FORMAT;
use crate::export::{self, Exported};
use crate::family::{Family, Relation};
use crate::paths::{Origin, Session, discover};
use crate::record::Record;
use crate::texts::{self, User};

/// How much of a prompt is taken as the title, in characters.
const TITLE: usize = 200;

/// Lists the sessions at `path`. Subagents are counted with the session that they work for.
///
/// # Errors
/// When `path`, or a directory below it, cannot be read.
pub fn list(path: &Path) -> io::Result<Listing> {
    let found = discover(path)?;
    let mut listing = Listing { unrecognised: found.unrecognised, ..Listing::default() };
    for session in &found.sessions {
        match &session.origin {
            Origin::Unreadable(path, _) => listing.unrecognised.push(path.clone()),
            Origin::Database(database) => {
                let Some(row) = database.session(&session.id).filter(|_| !is_agent(&database.family, session)) else {
                    continue;
                };
                let first = |row: &Row| prompt(&Record::of_row(row.clone()));
                let (mut words, mut last) = (None, None);
                let users = "WHERE session_id = ? AND role = 'user' ORDER BY id";
                let _ = database.store.each("messages", users, &[&session.id], |row| {
                    words = first(&row);
                    if words.is_some() { Err(()) } else { Ok(()) }
                });
                let newest = "WHERE session_id = ? ORDER BY timestamp DESC LIMIT 1";
                let _ = database.store.each("messages", newest, &[&session.id], |row| {
                    last = Record::of_row(row).time("timestamp").ok().flatten();
                    Ok::<(), ()>(())
                });
                listing.sessions.push(listed(session, &Record::of_row(row), &database.family, words, last));
            }
            Origin::Export(file) => {
                let Some(Exported { session: own, messages, .. }) =
                    file.read(&session.id)?.filter(|_| !is_agent(&file.family, session))
                else {
                    continue;
                };
                let records = || messages.iter().enumerate().filter_map(|(at, raw)| export::message(raw, at));
                let words = records().find_map(|record| prompt(&record));
                let last = records().filter_map(|record| record.time("timestamp").ok().flatten()).max();
                listing.sessions.push(listed(session, &own, &file.family, words, last));
            }
        }
    }
    Ok(listing)
}

fn is_agent(family: &Family, session: &Session) -> bool {
    family.get(&session.id).and_then(|kin| family.relation(kin)) == Some(Relation::Agent)
}

/// The words of a prompt.
fn prompt(record: &Record) -> Option<String> {
    let is_prompt = record.text("role").as_deref() == Some("user") && texts::user(record) == User::Prompt;
    let words: String = record.content().text().trim().chars().take(TITLE).collect();
    Some(words).filter(|words| is_prompt && !words.is_empty())
}

fn listed(
    session: &Session,
    own: &Record,
    family: &Family,
    words: Option<String>,
    last: Option<Time<'static>>,
) -> Listed {
    let word = |column: &str| own.word(column).map(|word| word.into_owned());
    let title = word("title");
    let by = match word("title_source").as_deref() {
        Some("user" | "manual") => TitleFrom::User,
        _ => TitleFrom::Client,
    };
    let title_from = if title.is_some() { Some(by) } else { words.as_ref().map(|_| TitleFrom::Prompt) };
    let last = last.or_else(|| own.time("started_at").ok().flatten());
    let agents = family.children(&session.id).into_iter().filter(|(_, relation)| *relation == Relation::Agent);
    Listed {
        vendor: FORMAT.name,
        id: Some(session.id.clone()),
        path: session.path().unwrap_or(Path::new("-")).into(),
        title: title.or(words),
        title_from,
        directory: word("cwd"),
        branch: word("git_branch"),
        last_activity_from: last.as_ref().map(|_| TimeFrom::Record),
        last_activity: last,
        bytes: session.size(),
        subagents: agents.count() as u64,
    }
}
