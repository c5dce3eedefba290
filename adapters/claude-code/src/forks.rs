//! Forks: a forked session's file begins with copies of its parent's records and does not name the parent. Where both files
//! are at hand, the copies tell (`spec/sources/claude-code.md`, "Forks").

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use palog::reader::{Lines, Next};
use serde::Deserialize;

use crate::conversation::Origin;
use crate::framing;
use crate::graph::{Key, key};

/// A fork's parent and the last record that it shares with it.
pub(crate) struct Fork {
    pub(crate) origin: Origin,
    pub(crate) last: Option<String>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Line<'a> {
    uuid: Option<palog::json::Str<'a>>,
    timestamp: Option<palog::json::Str<'a>>,
}

/// One record as far as forks need it.
struct Seen {
    uuid: Option<String>,
    time: Option<String>,
}

fn read(path: &Path) -> std::io::Result<Vec<Seen>> {
    let mut seen = Vec::new();
    let mut lines = Lines::new(File::open(path)?).of_any_length();
    while let Next::Line(line) | Next::TornTail(line) = lines.next_line()? {
        let (text, _) = framing::text(line.bytes);
        if let Ok(line) = serde_json::from_str::<Line<'_>>(&text) {
            let owned = |s: palog::json::Str<'_>| s.as_str().to_owned();
            seen.push(Seen { uuid: line.uuid.map(owned), time: line.timestamp.map(owned) });
        }
    }
    Ok(seen)
}

/// Whether the file of `own` copied the records `shared` from another: the client writes them in one go, before anything
/// of its own, while in the original other records lie between them and before them in time.
fn copied(own: &[Seen], shared: &HashSet<&str>) -> bool {
    let is_shared = |s: &Seen| s.uuid.as_deref().is_some_and(|u| shared.contains(u));
    let (Some(first), Some(last)) = (own.iter().position(is_shared), own.iter().rposition(is_shared)) else { return false };
    if !own[first..=last].iter().all(is_shared) {
        return false;
    }
    // Records before the copies that are younger than the copies were written by the fork itself.
    let newest = own[first..=last].iter().filter_map(|s| s.time.as_deref()).max();
    own[..first].iter().filter_map(|s| s.time.as_deref()).any(|t| Some(t) > newest)
}

/// The session that the transcript at `path` was forked from, if its file is among `siblings` and it can be told which of
/// the two is the original.
pub(crate) fn origin(session: &str, path: Option<&Path>, siblings: &[PathBuf]) -> Option<Fork> {
    let own = read(path.filter(|_| !siblings.is_empty())?).ok()?;
    let own_ids: HashSet<&str> = own.iter().filter_map(|s| s.uuid.as_deref()).collect();
    let mut best: Option<(usize, String, Vec<String>)> = None;
    for sibling in siblings {
        let name = sibling.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let Some(other) = read(sibling).ok().filter(|_| name != session) else { continue };
        let shared: HashSet<&str> = other.iter().filter_map(|s| s.uuid.as_deref()).filter(|u| own_ids.contains(u)).collect();
        if shared.is_empty() || !copied(&own, &shared) || copied(&other, &shared) {
            continue;
        }
        if best.as_ref().is_none_or(|(n, ..)| *n < shared.len()) {
            let in_order = own.iter().filter_map(|s| s.uuid.clone()).filter(|u| shared.contains(u.as_str())).collect();
            best = Some((shared.len(), name, in_order));
        }
    }
    let (_, session, in_order) = best?;
    let shared: HashSet<Key> = in_order.iter().map(|u| key(u)).collect();
    Some(Fork { origin: Origin { session, shared }, last: in_order.last().cloned() })
}
