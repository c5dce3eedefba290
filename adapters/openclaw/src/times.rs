//! Times, in all spellings that files of the family have: with `Z`, with another offset, without a zone, and as numbers of
//! milliseconds or seconds.

use jiff::Timestamp;
use palog::envelope::Time;
use palog::json::Raw;

/// Numbers below this are seconds: as milliseconds they would be before 1973.
const MILLISECONDS: f64 = 1e11;

/// How a time is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// RFC 3339.
    Text,
    /// A date and a time without a zone: nobody knows when that was.
    Naive,
    /// A number of milliseconds since 1970.
    Milliseconds,
    /// A number of seconds since 1970.
    Seconds,
    /// None of these.
    Odd,
}

/// A time as a source has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reading {
    pub(crate) spelling: Spelling,
    /// The time in UTC, with as many digits as the source has.
    pub(crate) time: Option<Time<'static>>,
}

/// Reads a time.
pub(crate) fn read(raw: &Raw<'_>) -> Reading {
    let Some(text) = raw.text() else {
        let Ok(number) = raw.get().parse::<f64>() else { return Reading { spelling: Spelling::Odd, time: None } };
        let spelling = if number < MILLISECONDS { Spelling::Seconds } else { Spelling::Milliseconds };
        let milliseconds = if spelling == Spelling::Seconds { number * 1000.0 } else { number };
        return Reading { spelling, time: of_milliseconds(milliseconds.round() as i64) };
    };
    if let Some(time) = Time::parse(text.clone().into_owned()) {
        return Reading { spelling: Spelling::Text, time: Some(time) };
    }
    let time = text.parse::<Timestamp>().ok().and_then(|time| {
        let digits = text.split_once('.').map_or(0, |(_, f)| f.bytes().take_while(u8::is_ascii_digit).count());
        Time::parse(format!("{time:.digits$}", digits = digits.min(9)))
    });
    let spelling = match time {
        Some(_) => Spelling::Text,
        None if text.parse::<jiff::civil::DateTime>().is_ok() => Spelling::Naive,
        None => Spelling::Odd,
    };
    Reading { spelling, time }
}

/// The time that is so many milliseconds behind 1970.
pub(crate) fn of_milliseconds(milliseconds: i64) -> Option<Time<'static>> {
    Time::parse(format!("{:.3}", Timestamp::from_millisecond(milliseconds).ok()?))
}

/// By how many milliseconds `later` is behind `earlier`.
pub(crate) fn gap(earlier: &Time<'_>, later: &Time<'_>) -> Option<i64> {
    let milliseconds = |time: &Time<'_>| Some(time.as_str().parse::<Timestamp>().ok()?.as_millisecond());
    Some(milliseconds(later)? - milliseconds(earlier)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_spellings_of_one_moment() {
        let of = |json: &str| {
            let reading = read(&Raw::parse(json).expect("JSON"));
            (reading.spelling, reading.time.map(|t| t.as_str().to_owned()))
        };
        let time = |text: &str| Some(text.to_owned());
        assert_eq!(of("\"2026-03-03T10:00:00.000Z\""), (Spelling::Text, time("2026-03-03T10:00:00.000Z")));
        assert_eq!(of("\"2026-03-03T12:00:00.000+02:00\""), (Spelling::Text, time("2026-03-03T10:00:00.000Z")));
        assert_eq!(of("\"2026-03-03T10:00:02Z\""), (Spelling::Text, time("2026-03-03T10:00:02Z")));
        assert_eq!(of("\"2026-03-03 10:00:03\""), (Spelling::Naive, None));
        assert_eq!(of("1772532001000"), (Spelling::Milliseconds, time("2026-03-03T10:00:01.000Z")));
        assert_eq!(of("1772532002"), (Spelling::Seconds, time("2026-03-03T10:00:02.000Z")));
        assert_eq!(of("1772532003.5"), (Spelling::Seconds, time("2026-03-03T10:00:03.500Z")));
        for odd in ["\"soon\"", "true", "\"\"", "1e300"] {
            assert_eq!(of(odd).1, None, "{odd}");
        }
    }
}
