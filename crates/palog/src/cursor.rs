//! A place in a log that tells whether the log is still the same (spec 01, "Cursors and copies").

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::blob::hex;

/// A line of a log: its seq and the SHA-256 of its bytes. Written `SEQ:SHA256` (spec 01, R-BYT-020).
///
/// Whoever reads on after a cursor gets every later line once; where another line stands in that place, the log diverged
/// and nothing is read.
///
/// ```
/// use palog::cursor::Cursor;
///
/// let cursor = Cursor::of(41, b"{}");
/// assert_eq!(cursor.to_string().parse(), Ok(cursor));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// Place of the line in the log.
    pub seq: u64,
    /// SHA-256 of its bytes, without the line feed.
    pub sha256: [u8; 32],
}

impl Cursor {
    /// The cursor of the line `bytes` (without the line feed) at `seq`.
    #[must_use]
    pub fn of(seq: u64, bytes: &[u8]) -> Self {
        Cursor { seq, sha256: Sha256::digest(bytes).into() }
    }

    /// The digest in 64 lower-case hexadecimal digits, as `prev` carries it.
    #[must_use]
    pub fn sha256_hex(&self) -> String {
        hex(&self.sha256)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.sha256_hex())
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not `SEQ:SHA256`: decimal digits without leading zeros, a colon, 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotACursor;

impl fmt::Display for NotACursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a cursor is SEQ:SHA256, decimal digits and 64 lower-case hexadecimal digits")
    }
}

impl std::error::Error for NotACursor {}

impl FromStr for Cursor {
    type Err = NotACursor;

    fn from_str(text: &str) -> Result<Self, NotACursor> {
        let (seq, digits) = text.split_once(':').ok_or(NotACursor)?;
        let plain = seq.bytes().all(|b| b.is_ascii_digit()) && (seq == "0" || !seq.starts_with('0'));
        let seq = seq.parse().ok().filter(|_| plain).ok_or(NotACursor)?;
        let digits: &[u8; 64] = digits.as_bytes().try_into().map_err(|_| NotACursor)?;
        let mut sha256 = [0; 32];
        for (byte, pair) in sha256.iter_mut().zip(digits.as_chunks::<2>().0) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Ok(Cursor { seq, sha256 })
    }
}

fn nibble(digit: u8) -> Result<u8, NotACursor> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(NotACursor),
    }
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Cursor {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cursor".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A line of a log: its seq and the SHA-256 of its bytes.",
            "type": "string",
            "pattern": "^(0|[1-9][0-9]*):[0-9a-f]{64}$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_has_one_spelling() {
        let text = "41:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        let cursor: Cursor = text.parse().expect("a cursor");
        assert_eq!(cursor, Cursor::of(41, b"test"));
        assert_eq!(cursor.to_string(), text);
        let (seq, digits) = text.split_at(2);
        for bad in [
            "",
            "41",
            ":",
            &format!("0{text}"),
            &format!("+{text}"),
            &format!("-{text}"),
            &format!("{seq}{}", digits.to_uppercase()),
            &format!("{text}0"),
            &text[..text.len() - 1],
            &format!("18446744073709551616{digits}"),
        ] {
            assert_eq!(bad.parse::<Cursor>(), Err(NotACursor), "{bad}");
        }
        assert!(format!("{}{digits}", u64::MAX).parse::<Cursor>().is_ok());
        assert!(format!("0{digits}").parse::<Cursor>().is_ok());
    }
}
