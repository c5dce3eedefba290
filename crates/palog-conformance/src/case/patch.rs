//! Patches: exactly described changes that turn the log of one case into that of another.

use serde::Deserialize;

/// One change. Lines count from 1, and are those that the changes before it have left.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Patch {
    /// A text that stands exactly once in a line becomes another one.
    Replace {
        /// The line.
        line: usize,
        /// The text.
        replace: String,
        /// What stands in its place.
        with: String,
        /// How often that stands there, one behind the other; absent = once.
        times: Option<usize>,
    },
    /// A text that stands exactly once in a line becomes these bytes.
    Bytes {
        /// The line.
        line: usize,
        /// The text.
        replace: String,
        /// The bytes, in hexadecimal digits.
        bytes: String,
    },
    /// A line goes.
    Drop {
        /// The line.
        drop: usize,
    },
    /// A new line stands before a line; behind the last one, that is the number of lines and one.
    Insert {
        /// The line.
        before: usize,
        /// The new line.
        insert: String,
    },
    /// A line stands once more, before another.
    Copy {
        /// The line before which it stands.
        before: usize,
        /// The line that is copied.
        copy: usize,
    },
    /// The log ends in mid line: everything behind these bytes of it goes.
    Cut {
        /// The line.
        cut: usize,
        /// How many bytes of it stay.
        keep: usize,
    },
    /// Bytes stand at the end, without a line feed.
    End {
        /// The bytes, as text.
        end: String,
    },
}

/// Why a patch does not fit.
pub type PatchError = String;

impl Patch {
    /// Changes the bytes of a log.
    ///
    /// # Errors
    /// When there is no such line, or not exactly one such text in it.
    pub fn apply(&self, log: &[u8]) -> Result<Vec<u8>, PatchError> {
        // Each piece has its line feed; bytes behind the last one are a piece, too.
        let mut lines: Vec<Vec<u8>> = log.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
        let count = lines.len();
        let at = |line: usize| match line.checked_sub(1) {
            Some(index) if index < count => Ok(index),
            _ => Err(format!("there is no line {line}")),
        };
        let behind = |line: usize| if line == count + 1 { Ok(count) } else { at(line) };
        match self {
            Patch::Replace { line, replace, with, times } => {
                let index = at(*line)?;
                lines[index] = replaced(&lines[index], replace, with.repeat(times.unwrap_or(1)).as_bytes())?;
            }
            Patch::Bytes { line, replace, bytes } => {
                let index = at(*line)?;
                lines[index] = replaced(&lines[index], replace, &hex(bytes)?)?;
            }
            Patch::Drop { drop } => _ = lines.remove(at(*drop)?),
            Patch::Insert { before, insert } => lines.insert(behind(*before)?, format!("{insert}\n").into_bytes()),
            Patch::Copy { before, copy } => {
                let line = lines[at(*copy)?].clone();
                lines.insert(behind(*before)?, line);
            }
            Patch::Cut { cut, keep } => {
                let index = at(*cut)?;
                if lines[index].len() <= *keep {
                    return Err(format!("line {cut} has no more than {keep} bytes"));
                }
                lines.truncate(index + 1);
                lines[index].truncate(*keep);
            }
            Patch::End { end } => lines.push(end.clone().into_bytes()),
        }
        Ok(lines.concat())
    }
}

fn replaced(line: &[u8], from: &str, to: &[u8]) -> Result<Vec<u8>, PatchError> {
    let from = from.as_bytes();
    let places: Vec<usize> =
        line.windows(from.len().max(1)).enumerate().filter(|(_, w)| *w == from).map(|(n, _)| n).collect();
    let [at] = places[..] else {
        return Err(format!("{:?} stands {} times in the line", String::from_utf8_lossy(from), places.len()));
    };
    Ok([&line[..at], to, &line[at + from.len()..]].concat())
}

fn hex(digits: &str) -> Result<Vec<u8>, PatchError> {
    let fail = || format!("{digits:?} are no hexadecimal digits");
    if digits.is_empty() || !digits.len().is_multiple_of(2) || !digits.is_ascii() {
        return Err(fail());
    }
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| fail())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(patch: &str) -> Result<String, String> {
        #[derive(Deserialize)]
        struct Document {
            patch: Vec<Patch>,
        }
        let document: Document = toml::from_str(&format!("patch = [{patch}]")).map_err(|e| e.to_string())?;
        let bytes = document.patch.iter().try_fold(b"one\ntwo\n".to_vec(), |log, patch| patch.apply(&log))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    #[test]
    fn each_patch_changes_what_it_says() {
        for (patch, expected) in [
            ("{line = 1, replace = \"n\", with = \"N\"}", "oNe\ntwo\n"),
            ("{line = 1, replace = \"n\", with = \"ab\", times = 3}", "oabababe\ntwo\n"),
            ("{line = 2, replace = \"two\", bytes = \"00\"}", "one\n\0\n"),
            ("{drop = 1}", "two\n"),
            ("{before = 3, insert = \"three\"}", "one\ntwo\nthree\n"),
            ("{before = 1, copy = 2}", "two\none\ntwo\n"),
            ("{cut = 2, keep = 1}", "one\nt"),
            ("{end = \"x\"}", "one\ntwo\nx"),
            ("{drop = 1}, {line = 1, replace = \"w\", with = \"\"}", "to\n"),
        ] {
            assert_eq!(patched(patch).as_deref(), Ok(expected), "{patch}");
        }
    }

    #[test]
    fn a_patch_that_does_not_fit_is_an_error() {
        for patch in [
            "{line = 3, replace = \"n\", with = \"N\"}",
            "{line = 0, replace = \"n\", with = \"N\"}",
            "{line = 1, replace = \"x\", with = \"N\"}",
            "{line = 1, replace = \"\", with = \"N\"}",
            "{line = 1, replace = \"n\", bytes = \"0\"}",
            "{drop = 3}",
            "{before = 4, insert = \"x\"}",
            "{cut = 2, keep = 4}",
            "{drop = 1, line = 2}",
        ] {
            assert!(patched(patch).is_err(), "{patch}");
        }
        let twice = Patch::Replace { line: 1, replace: "o".into(), with: "x".into(), times: None };
        assert!(twice.apply(b"oo\n").is_err());
    }
}
