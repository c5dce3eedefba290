//! Where an export goes, and names that another vendor's files can hold.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use palog::envelope::ActorKind;
use palog::events::Data;
use palog::project::ContextError;
use palog::reader::{Item, Reader};
use sha2::{Digest, Sha256};

/// What an exporter is told of the place that it writes for.
#[derive(Clone, Debug)]
pub struct Destination {
    /// Id of the session that is written.
    pub session: String,
    /// The directory that the session works in.
    pub directory: String,
}

/// Why an export stopped. Nothing is left behind.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExportError {
    /// The log cannot be read.
    Read(io::Error),
    /// The output cannot be written.
    Write(io::Error),
    /// Nothing can be concluded from the log, so nothing is made of it.
    Indeterminate(String),
    /// The log has no message on its path.
    Empty,
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExportError::Read(error) => write!(f, "cannot read the log: {error}"),
            ExportError::Write(error) => write!(f, "cannot write the session: {error}"),
            ExportError::Indeterminate(why) => write!(f, "nothing can be concluded from the log: {why}"),
            ExportError::Empty => write!(f, "the log holds no message"),
        }
    }
}

impl std::error::Error for ExportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ExportError::Read(error) | ExportError::Write(error) => Some(error),
            ExportError::Indeterminate(_) | ExportError::Empty => None,
        }
    }
}

impl From<ContextError> for ExportError {
    fn from(error: ContextError) -> Self {
        match error {
            ContextError::Io(error) => ExportError::Read(error),
            other => ExportError::Read(io::Error::other(other.to_string())),
        }
    }
}

/// A UUID (version 8) that stands for `parts`: the same parts always have the same one.
#[must_use]
pub fn name_uuid(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = palog::blob::hex(&bytes);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// The id of an action as an id that any provider takes: letters, digits, `_` and `-`. The second value tells whether it is
/// another one than the vendor's.
#[must_use]
pub fn call_name(action: &str) -> (String, bool) {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !action.is_empty() && action.len() <= 64 && action.chars().all(plain) {
        return (action.to_owned(), false);
    }
    let safe: String = action.chars().take(40).map(|c| if plain(c) { c } else { '_' }).collect();
    (format!("{safe}_{}", &palog::blob::sha256_hex(action.as_bytes())[..12]), true)
}

/// The sources that are kept beside an unmodified log of a vendor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Native id of the session.
    pub session: String,
    /// Name of each source with the place that it was found at, in the order of the log.
    pub sources: Vec<(String, String)>,
}

/// The sources of a log that was made from sessions of `vendor`, if all of them are kept and nothing was added to the log
/// since: then they are the session.
///
/// # Errors
/// When the log cannot be read.
pub fn kept_sources(log: impl io::Read, place: Option<&Path>, vendor: &str) -> io::Result<Option<Kept>> {
    let Some(place) = place else { return Ok(None) };
    let mut reader = Reader::new(log);
    let (mut session, mut sources) = (None, Vec::new());
    while let Some(item) = reader.next()? {
        let Item::Event(event, _) = item else { return Ok(None) };
        if event.actor.kind != ActorKind::Importer && event.src.is_empty() {
            return Ok(None);
        }
        match event.kind.as_str() {
            "log.opened" | "source.opened" => match event.data() {
                Ok(Data::LogOpened(opened)) if opened.agent.name == *vendor && opened.derived.is_some() => {
                    session = Some(opened.session.to_string());
                }
                Ok(Data::SourceOpened(source)) if source.kept && source.vendor == *vendor => {
                    sources.push((source.source.to_string(), source.locator.to_string()));
                }
                _ => return Ok(None),
            },
            // What was taken out is not in the log any more, and must not come back.
            "redaction.applied" | "log.closed" => return Ok(None),
            _ => {}
        }
    }
    let there = |(source, _): &(String, String)| place.join(source).is_file();
    Ok(session.filter(|_| !sources.is_empty() && sources.iter().all(there)).map(|session| Kept { session, sources }))
}

/// The place of the kept sources of the log at `log`.
#[must_use]
pub fn sources_beside(log: &Path) -> PathBuf {
    palog::blob::sibling(log, "sources")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_for_the_same_parts_and_differ_else() {
        let one = name_uuid(&["a", "bc"]);
        assert_eq!(one, name_uuid(&["a", "bc"]));
        assert_ne!(one, name_uuid(&["ab", "c"]));
        assert_eq!((one.len(), &one[14..15]), (36, "8"));
        assert_eq!(call_name("toolu_01-x"), ("toolu_01-x".into(), false));
        let (two, changed) = call_name("toolu_01#2");
        assert!(changed && two.starts_with("toolu_01_2_"), "{two}");
        assert_ne!(call_name("toolu_01:2").0, two);
    }
}
