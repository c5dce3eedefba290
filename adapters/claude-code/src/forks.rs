//! Forks: a forked session's file begins with copies of its parent's records and does not name the parent. Where both files
//! are at hand, the copies tell (`spec/sources/claude-code.md`, "Forks").

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use palog::reader::{Lines, Next};
use serde::Deserialize;

use crate::conversation::Origin;
use crate::graph::{Key, key};
use palog_adapter::framing;

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
    let (Some(first), Some(last)) = (own.iter().position(is_shared), own.iter().rposition(is_shared)) else {
        return false;
    };
    if !own[first..=last].iter().all(is_shared) {
        return false;
    }
    // Records before the copies that are younger than the copies were written by the fork itself.
    let newest = own[first..=last].iter().filter_map(|s| s.time.as_deref()).max();
    own[..first].iter().filter_map(|s| s.time.as_deref()).any(|t| Some(t) > newest)
}

/// The fork that the file of `own` is of the file of `other`, if it can be told that `other` is the original.
fn of(own: &[Seen], other: &[Seen]) -> Option<HashSet<Key>> {
    let own_ids: HashSet<&str> = own.iter().filter_map(|s| s.uuid.as_deref()).collect();
    let shared: HashSet<&str> =
        other.iter().filter_map(|s| s.uuid.as_deref()).filter(|u| own_ids.contains(u)).collect();
    let told = !shared.is_empty() && copied(own, &shared) && !copied(other, &shared);
    told.then(|| shared.into_iter().map(key).collect())
}

/// A session's place among the forks of its project.
#[derive(Default)]
pub(crate) struct Family {
    /// The session that it was forked from.
    pub(crate) fork: Option<Fork>,
    /// The sessions that were forked from it.
    pub(crate) forks: Vec<String>,
}

/// The family of the session whose transcript is at `path`, among `siblings`: transcripts that begin with the same record.
/// Of several possible originals the one that shares most is taken.
pub(crate) fn family(path: Option<&Path>, siblings: &[PathBuf]) -> Family {
    let (Some(path), false) = (path, siblings.is_empty()) else { return Family::default() };
    // A sibling that cannot be read is reported when its own session is imported.
    let files: Vec<(&Path, Vec<Seen>)> = std::iter::once(path)
        .chain(siblings.iter().map(PathBuf::as_path))
        .filter_map(|p| Some((p, read(p).ok()?)))
        .collect();
    let name = |i: usize| files[i].0.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let original = |own: usize| -> Option<(usize, HashSet<Key>)> {
        let candidates = (0..files.len()).filter(|other| *other != own);
        candidates.filter_map(|other| Some((other, of(&files[own].1, &files[other].1)?))).max_by_key(|(_, s)| s.len())
    };
    if files.first().is_none_or(|(first, _)| *first != path) {
        return Family::default();
    }
    let fork = original(0).map(|(other, shared)| {
        let last = files[0].1.iter().filter_map(|s| s.uuid.clone()).rfind(|u| shared.contains(&key(u)));
        Fork { origin: Origin { session: name(other), shared }, last }
    });
    let forks = (1..files.len()).filter(|own| original(*own).is_some_and(|(other, _)| other == 0)).map(name).collect();
    Family { fork, forks }
}
