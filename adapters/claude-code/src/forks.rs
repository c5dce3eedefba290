//! Forks: a forked session's file begins with copies of its parent's records and does not name the parent. Where both files
//! are at hand, the copies tell (`spec/sources/claude-code.md`, "Forks").

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

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

/// Transcripts of one project that begin with the same record: forks of one another. They are compared once, for all of them.
#[derive(Debug, Default)]
pub(crate) struct Siblings {
    paths: Vec<PathBuf>,
    originals: OnceLock<Vec<Option<Original>>>,
}

/// What a fork was made from.
#[derive(Debug)]
struct Original {
    /// Its number among the siblings.
    number: usize,
    shared: HashSet<Key>,
    /// The last record that is shared.
    last: Option<String>,
}

/// A session's place among the forks of its project.
#[derive(Default)]
pub(crate) struct Family {
    /// The session that it was forked from.
    pub(crate) fork: Option<Fork>,
    /// The sessions that were forked from it.
    pub(crate) forks: Vec<String>,
}

impl Siblings {
    pub(crate) fn new(paths: Vec<PathBuf>) -> Self {
        Siblings { paths, originals: OnceLock::new() }
    }

    /// The family of the session whose transcript is at `path`.
    pub(crate) fn family(&self, path: Option<&Path>) -> Family {
        let own = path.and_then(|path| self.paths.iter().position(|other| other == path));
        let Some(own) = own.filter(|_| self.paths.len() > 1) else { return Family::default() };
        let originals = self.originals.get_or_init(|| self.compare());
        let name = |number: usize| self.paths[number].file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let fork = originals[own].as_ref().map(|original| Fork {
            origin: Origin { session: name(original.number), shared: original.shared.clone() },
            last: original.last.clone(),
        });
        let of_own = |other: &usize| originals[*other].as_ref().is_some_and(|original| original.number == own);
        Family { fork, forks: (0..self.paths.len()).filter(of_own).map(name).collect() }
    }

    /// The original of each. Of several that are possible the one that shares most is taken.
    fn compare(&self) -> Vec<Option<Original>> {
        // One that cannot be read is reported when its own session is imported.
        let files: Vec<Vec<Seen>> = self.paths.iter().map(|path| read(path).unwrap_or_default()).collect();
        let original = |own: usize| {
            let others = (0..files.len()).filter(|other| *other != own);
            let found = others.filter_map(|other| Some((other, of(&files[own], &files[other])?)));
            let (number, shared) = found.max_by_key(|(_, shared)| shared.len())?;
            let last = files[own].iter().filter_map(|seen| seen.uuid.clone()).rfind(|uuid| shared.contains(&key(uuid)));
            Some(Original { number, shared, last })
        };
        (0..files.len()).map(original).collect()
    }
}
