//! The envelope that every event has (spec 02).

use std::time::{SystemTime, UNIX_EPOCH};

use serde::de::{Deserialize, Deserializer, Error as _};

use crate::events::{Data, Kind};
use crate::json::{Raw, Str};
use crate::wire::{wire, words};

/// The major version that this crate reads and writes; the first member of every line (spec 02, R-ENV-001).
pub const MAJOR: u32 = 1;

/// The version of the specification that this crate writes into `log.opened` (spec 02).
pub const SPEC: &str = "1.0-draft";

/// An RFC 3339 time in UTC (`Z`), at most nine digits of fraction; compared only as evidence, never for order (spec 02, R-ENV-006).
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Time<'a>(Str<'a>);

impl<'a> Time<'a> {
    /// Takes `text` if it has the form that the format asks for; `None` otherwise.
    #[must_use]
    pub fn parse(text: impl Into<Str<'a>>) -> Option<Self> {
        let text = text.into();
        let bytes = text.as_bytes();
        let shape = b"0000-00-00T00:00:00";
        if bytes.len() < shape.len() + 1 || *bytes.last()? != b'Z' {
            return None;
        }
        let (head, fraction) = bytes[..bytes.len() - 1].split_at(shape.len());
        let fits = head.iter().zip(shape).all(|(b, s)| if *s == b'0' { b.is_ascii_digit() } else { b == s });
        let fraction_fits = match fraction {
            [] => true,
            [b'.', digits @ ..] => (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit),
            _ => false,
        };
        let two = |at: usize| u32::from(bytes[at] - b'0') * 10 + u32::from(bytes[at + 1] - b'0');
        if !fits || !fraction_fits {
            return None;
        }
        let year = two(0) * 100 + two(2);
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match two(5) {
            4 | 6 | 9 | 11 => 30,
            2 => 28 + u32::from(leap),
            1..=12 => 31,
            _ => return None,
        };
        ((1..=days).contains(&two(8)) && two(11) < 24 && two(14) < 60 && two(17) <= 60).then_some(Time(text))
    }

    /// The time `time`, in microseconds; `None` outside of the years 0000 to 9999.
    #[must_use]
    pub fn of(time: SystemTime) -> Option<Time<'static>> {
        let (seconds, nanos) = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => (i64::try_from(after.as_secs()).ok()?, after.subsec_nanos()),
            Err(before) => {
                let before = before.duration();
                let seconds = i64::try_from(before.as_secs()).ok()?;
                let nanos = before.subsec_nanos();
                if nanos == 0 { (-seconds, 0) } else { (-seconds - 1, 1_000_000_000 - nanos) }
            }
        };
        let (year, month, day) = civil(seconds.div_euclid(DAY));
        let second = seconds.rem_euclid(DAY);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let micros = nanos / 1000;
        (0..=9999).contains(&year).then(|| {
            Time(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z").into())
        })
    }

    /// The time as it stands on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The time this many seconds later; `None` after the year 9999.
    #[must_use]
    pub fn plus(&self, seconds: u64) -> Option<Time<'static>> {
        let text = self.0.as_str();
        let number = |range: std::ops::Range<usize>| text.get(range).and_then(|digits| digits.parse::<i64>().ok());
        let days = days_of(number(0..4)?, number(5..7)?, number(8..10)?);
        let of_day = number(11..13)? * 3600 + number(14..16)? * 60 + number(17..19)?;
        let all = (days * DAY + of_day).checked_add(i64::try_from(seconds).ok()?)?;
        let (year, month, day) = civil(all.div_euclid(DAY));
        let (second, fraction) = (all.rem_euclid(DAY), &text[19..]);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        (year <= 9999)
            .then(|| Time(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}").into()))
    }

    /// Microseconds since 1970-01-01T00:00:00Z; what is finer is cut off. A leap second is the first one of the next minute.
    #[must_use]
    pub fn micros(&self) -> i64 {
        let bytes = self.0.as_bytes();
        let number = |from: usize, to: usize| bytes[from..to].iter().fold(0, |n, b| n * 10 + i64::from(b - b'0'));
        let days = days_of(number(0, 4), number(5, 7), number(8, 10));
        let seconds = days * DAY + number(11, 13) * 3600 + number(14, 16) * 60 + number(17, 19);
        let fraction = bytes[19..].iter().filter(|b| b.is_ascii_digit()).chain(std::iter::repeat(&b'0')).take(6);
        seconds * 1_000_000 + fraction.fold(0, |n, b| n * 10 + i64::from(b - b'0'))
    }

    /// Whole seconds and the fraction without trailing zeros: what two times are compared by.
    fn key(&self) -> (&str, &str) {
        let text = self.0.as_str();
        let (seconds, rest) = text.split_at(19);
        (seconds, rest.trim_end_matches('Z').trim_start_matches('.').trim_end_matches('0'))
    }

    /// Detaches the time from the line that it was read from.
    #[must_use]
    pub fn into_owned(self) -> Time<'static> {
        Time(self.0.into_owned())
    }
}

/// Seconds of a day.
const DAY: i64 = 86_400;

/// Year, month and day of the proleptic Gregorian calendar, from days since 1970-01-01. After Howard Hinnant,
/// <https://howardhinnant.github.io/date_algorithms.html#civil_from_days>: a year that begins in March ends in its leap day.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * march + 2) / 5 + 1, (march + 2) % 12 + 1);
    (era * 400 + year + i64::from(month <= 2), month, day)
}

/// Days since 1970-01-01, from year, month and day: the other way round.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let (year, march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * march + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

impl PartialOrd for Time<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Time<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Time<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = Str::deserialize(d)?;
        Time::parse(text).ok_or_else(|| {
            serde::de::Error::custom("a time that is not RFC 3339 in UTC (Z) with at most nine digits of fraction")
        })
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Time<'_> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Time".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "An RFC 3339 time in UTC, at most nine digits of fraction.",
            "type": "string",
            "pattern": r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d{1,9})?Z$"
        })
    }
}

/// Major and minor of a version of the specification, such as `1.0` or `1.0-draft`.
pub(crate) fn version(spec: &str) -> Option<(u32, u32)> {
    let release = spec.split_once('-').map_or(spec, |(release, _)| release);
    let (major, minor) = release.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

words! {
    /// Who did what an event tells of (spec 02).
    pub enum ActorKind {
        /// The person, or the program that calls the agent in their place.
        User = "user",
        /// The agent, speaking through the harness (a parent agent towards its child).
        Agent = "agent",
        /// The language model.
        Model = "model",
        /// A tool.
        Tool = "tool",
        /// The client program; also for text that it puts in as a turn of the user.
        Harness = "harness",
        /// A rule that decides without a person.
        Policy = "policy",
        /// The program that made this log from another format.
        Importer = "importer",
        /// Whoever runs the system.
        Operator = "operator",
    }

    /// How an event repeats history that happened elsewhere (spec 02).
    pub enum CopyHow {
        /// A fork took its parent's records along.
        Fork = "fork",
        /// The source wrote the record once more.
        Replay = "replay",
        /// A child holds records of its parent.
        Inherit = "inherit",
        /// A compaction put the record in again.
        Compaction = "compaction",
    }

    /// How exactly an event renders its native record (spec 02; one scale with the loss report).
    pub enum SrcHow {
        /// Every fact of the record that the format has a place for, unchanged.
        Exact = "exact",
        /// Changed in form, and reversible.
        Normalized = "normalized",
        /// Something of the record is lost in the event.
        Degraded = "degraded",
        /// The importer concluded it from the record; the record does not say it in so many words.
        Synthesized = "synthesized",
        /// Carried without being understood.
        Opaque = "opaque",
    }
}

wire! {
    /// Who did what an event tells of (spec 02).
    pub struct Actor<'a> {
        /// The kind of actor.
        kind: ActorKind,
        /// Which one, where there are several.
        id?: Str<'a>,
    }

    /// The mark of an event that repeats history that happened elsewhere (spec 02).
    pub struct Copy<'a> {
        /// The log in which it happened; absent = this log.
        log?: Str<'a>,
        /// The event that is repeated.
        event?: Str<'a>,
        /// How the copy came about.
        how: CopyHow,
    }

    /// A native record that an event came from (spec 02). Either `at` and `len`, or `table` and `key`.
    pub struct Src<'a> {
        /// Name of the source, as opened by `source.opened`.
        source: Str<'a>,
        /// Offset of the record in the source, in bytes.
        at?: u64,
        /// Length of the record in bytes, its line ending not counted.
        len?: u64,
        /// Table of a database.
        table?: Str<'a>,
        /// Key of the row.
        key?: Str<'a>,
        /// How exactly the event renders the record; absent = `exact`.
        how?: SrcHow,
    }
}

impl Actor<'_> {
    /// An actor of `kind` without an id.
    #[must_use]
    pub const fn of(kind: ActorKind) -> Actor<'static> {
        Actor { kind, id: None }
    }
}

/// What every event has, in the order of the wire (spec 02). `data` is kept as it stands; [`Event::data`] reads it.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event<'a> {
    /// Major version of the format.
    pub palog: u32,
    /// Id of the log.
    pub log: Str<'a>,
    /// Position in the log: 0, 1, 2 … without gaps. The only order.
    pub seq: u64,
    /// Id of the event, unique in the log, at most 128 bytes.
    pub id: Str<'a>,
    /// Type: `family.verb`, or `x.<reverse-dns>/<name>`.
    #[serde(rename = "type")]
    pub kind: Str<'a>,
    /// When it happened; `None` (on the wire `null`) = the source had no time.
    #[serde(deserialize_with = "required")]
    #[cfg_attr(feature = "schema", schemars(required))]
    pub time: Option<Time<'a>>,
    /// When it was recorded, if that is another time.
    #[serde(default, deserialize_with = "crate::wire::present", skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Time<'a>>,
    /// Who did it.
    pub actor: Actor<'a>,
    /// Fencing token of the writer, once a lease was taken.
    #[serde(default, deserialize_with = "crate::wire::present", skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// The event before this one on the path that the model saw, or `root`; absent = the head.
    #[serde(default, deserialize_with = "crate::wire::present", skip_serializing_if = "Option::is_none")]
    pub parent: Option<Str<'a>>,
    /// The events that this one answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cause: Vec<Str<'a>>,
    /// Set where the event repeats history that happened elsewhere.
    #[serde(default, deserialize_with = "crate::wire::present", skip_serializing_if = "Option::is_none")]
    pub copy: Option<Copy<'a>>,
    /// The native records that it came from.
    #[serde(default, deserialize_with = "located", skip_serializing_if = "Vec::is_empty")]
    pub src: Vec<Src<'a>>,
    /// `true`: a reader that does not know the type may pass over the event.
    #[serde(default, deserialize_with = "crate::wire::present", skip_serializing_if = "Option::is_none")]
    pub ignorable: Option<bool>,
    /// SHA-256 of the bytes of the line before, in hexadecimal.
    #[serde(default, deserialize_with = "crate::wire::present", skip_serializing_if = "Option::is_none")]
    pub prev: Option<Str<'a>>,
    /// Vendor members that are worth having at hand, by reverse DNS name.
    #[serde(default, deserialize_with = "present_object", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<std::collections::BTreeMap<String, serde_json::Value>>"))]
    pub ext: Option<Raw<'a>>,
    /// The payload; its form depends on the type.
    #[serde(deserialize_with = "object")]
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, serde_json::Value>"))]
    pub data: Raw<'a>,
}

/// Reads a member that must be there and may be `null`.
fn required<'de, T: Deserialize<'de>, D: Deserializer<'de>>(d: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(d)
}

/// Reads a member that is an object, whatever stands in it.
fn object<'de: 'a, 'a, D: Deserializer<'de>>(d: D) -> Result<Raw<'a>, D::Error> {
    let raw = Raw::deserialize(d)?;
    if raw.get().starts_with('{') { Ok(raw) } else { Err(D::Error::custom("an object is expected")) }
}

fn present_object<'de: 'a, 'a, D: Deserializer<'de>>(d: D) -> Result<Option<Raw<'a>>, D::Error> {
    object(d).map(Some)
}

/// Reads native records, each of which names its place (R-ENV-019).
fn located<'de: 'a, 'a, D: Deserializer<'de>>(d: D) -> Result<Vec<Src<'a>>, D::Error> {
    let all = Vec::<Src<'a>>::deserialize(d)?;
    let has_place = |src: &Src<'_>| {
        let (bytes, row) = ((src.at.is_some(), src.len.is_some()), (src.table.is_some(), src.key.is_some()));
        matches!((bytes, row), ((true, true), (false, false)) | ((false, false), (true, true)))
    };
    if all.iter().all(has_place) {
        Ok(all)
    } else {
        Err(D::Error::custom("`src` needs `at` and `len`, or `table` and `key`"))
    }
}

impl<'a> Event<'a> {
    /// Reads one line, which must hold one event and nothing else.
    ///
    /// # Errors
    /// When the line is no JSON, or the envelope lacks a member or has one of another form.
    pub fn parse(line: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(line)
    }

    /// What the type says; unknown names are kept apart from malformed payloads.
    #[must_use]
    pub fn kind(&self) -> Kind<'_> {
        Kind::parse(&self.kind)
    }

    /// Reads the payload by its type.
    ///
    /// # Errors
    /// When the payload of a type that this crate knows does not have the form of that type (spec 03).
    pub fn data(&self) -> Result<Data<'_>, serde_json::Error> {
        Data::parse(&self.kind, self.data.get())
    }

    /// Whether a reader that does not know the type may pass over the event: vendor types unless they say otherwise,
    /// core types only if they say so (spec 02, R-ENV-012).
    #[must_use]
    pub fn is_ignorable(&self) -> bool {
        self.ignorable.unwrap_or_else(|| self.kind.starts_with("x."))
    }
}

/// An event before the writer gives it its place: the envelope without `palog`, `log`, `seq` and `prev` (spec 02).
#[derive(Clone, Debug)]
pub struct Draft<'a> {
    /// Id of the event.
    pub id: Str<'a>,
    /// When it happened.
    pub time: Option<Time<'a>>,
    /// When it was recorded, if that is another time.
    pub recorded: Option<Time<'a>>,
    /// Who did it.
    pub actor: Actor<'a>,
    /// Fencing token of the writer.
    pub epoch: Option<u64>,
    /// The event before this one on the path that the model saw.
    pub parent: Option<Str<'a>>,
    /// The events that this one answers.
    pub cause: Vec<Str<'a>>,
    /// Set where the event repeats history that happened elsewhere.
    pub copy: Option<Copy<'a>>,
    /// The native records that it came from.
    pub src: Vec<Src<'a>>,
    /// Whether a reader that does not know the type may pass over it.
    pub ignorable: Option<bool>,
    /// Vendor members.
    pub ext: Option<Raw<'a>>,
    /// The payload, which also gives the type.
    pub data: Data<'a>,
}

impl<'a> Draft<'a> {
    /// A draft with the members that every event has.
    #[must_use]
    pub fn new(id: impl Into<Str<'a>>, actor: ActorKind, data: impl Into<Data<'a>>) -> Self {
        Draft {
            id: id.into(),
            time: None,
            recorded: None,
            actor: Actor::of(actor),
            epoch: None,
            parent: None,
            cause: Vec::new(),
            copy: None,
            src: Vec::new(),
            ignorable: None,
            ext: None,
            data: data.into(),
        }
    }

    /// Sets the time.
    #[must_use]
    pub fn at(mut self, time: Option<Time<'a>>) -> Self {
        self.time = time;
        self
    }

    /// Adds a native record that the event came from.
    #[must_use]
    pub fn from(mut self, src: Src<'a>) -> Self {
        self.src.push(src);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_one_form_and_compare_as_instants() {
        for good in ["2026-11-29T12:08:59Z", "2026-11-29T12:08:59.866Z", "2026-02-28T23:59:60.000000001Z"] {
            assert!(Time::parse(good).is_some(), "{good}");
        }
        for bad in [
            "2026-11-29T12:08:59",
            "2026-11-29T12:08:59+00:00",
            "2026-11-29 12:08:59Z",
            "2026-13-29T12:08:59Z",
            "2026-02-29T12:08:59Z",
            "2026-11-29T12:08:59.Z",
            "2026-11-29T12:08:59.0000000001Z",
            "1795954113672",
            "",
        ] {
            assert!(Time::parse(bad).is_none(), "{bad}");
        }
        let time = |t| Time::parse(t).expect("a time");
        assert!(time("2026-11-29T12:08:59.9Z") < time("2026-11-29T12:09:00Z"));
        assert!(time("2026-11-29T12:08:59.1Z") < time("2026-11-29T12:08:59.11Z"));
        assert_eq!(time("2026-11-29T12:08:59.10Z").cmp(&time("2026-11-29T12:08:59.1Z")), std::cmp::Ordering::Equal);
    }

    /// R-ENV-018
    #[test]
    fn a_system_time_has_the_form_of_the_format() {
        use std::time::Duration;
        let of = |seconds: i64, nanos: u32| {
            let size = Duration::from_secs(seconds.unsigned_abs());
            let whole = if seconds < 0 { UNIX_EPOCH - size } else { UNIX_EPOCH + size };
            Time::of(whole + Duration::from_nanos(nanos.into())).map(|t| t.as_str().to_owned())
        };
        let cases = [
            (0, 0, "1970-01-01T00:00:00.000000Z"),
            (-1, 999_999_999, "1969-12-31T23:59:59.999999Z"),
            (951_782_400, 1_000, "2000-02-29T00:00:00.000001Z"),
            (1_795_954_139, 866_000_000, "2026-11-29T12:08:59.866000Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000000Z"),
            (-62_167_219_200, 0, "0000-01-01T00:00:00.000000Z"),
            (253_402_300_799, 0, "9999-12-31T23:59:59.000000Z"),
        ];
        for (seconds, nanos, want) in cases {
            let text = of(seconds, nanos).expect("a time");
            assert_eq!(text, want);
            assert!(Time::parse(text).is_some());
        }
        assert_eq!((of(253_402_300_800, 0), of(-62_167_219_201, 0)), (None, None));
    }

    /// R-OWN-002
    #[test]
    fn a_time_is_microseconds_since_1970() {
        let micros = |text| Time::parse(text).expect("a time").micros();
        assert_eq!(micros("1970-01-01T00:00:00Z"), 0);
        assert_eq!(micros("2026-11-29T12:08:59.1234567Z"), 1_795_954_139_123_456);
        assert_eq!(micros("1969-12-31T23:59:59.5Z"), -500_000);
        assert_eq!(micros("2016-12-31T23:59:60Z"), micros("2017-01-01T00:00:00Z"));
    }

    #[test]
    fn a_time_can_be_later() {
        let plus = |from, seconds| Time::parse(from).expect("a time").plus(seconds).map(|t| t.as_str().to_owned());
        let is = |text: &str| Some(text.to_owned());
        assert_eq!(plus("2026-11-29T12:08:59Z", 61), is("2026-11-29T12:10:00Z"));
        assert_eq!(plus("2024-02-28T23:59:59.5Z", 1), is("2024-02-29T00:00:00.5Z"));
        assert_eq!(plus("2025-02-28T23:59:59Z", 1), is("2025-03-01T00:00:00Z"));
        assert_eq!(plus("0000-01-01T00:00:00Z", 0), is("0000-01-01T00:00:00Z"));
        assert_eq!(plus("1999-12-31T23:59:60Z", 0), is("2000-01-01T00:00:00Z"));
        assert_eq!((plus("9999-12-31T23:59:59Z", 1), plus("2026-01-01T00:00:00Z", u64::MAX)), (None, None));
    }

    #[test]
    fn versions_of_the_specification_are_major_and_minor() {
        assert_eq!((version("1.0"), version("1.12-draft"), version(SPEC)), (Some((1, 0)), Some((1, 12)), Some((1, 0))));
        assert_eq!((version("1"), version("one.two"), version("")), (None, None, None));
    }

    #[test]
    fn a_line_keeps_what_the_envelope_does_not_know() {
        let line = r#"{"palog":1,"log":"l","seq":0,"id":"e","type":"x.org.example/y","time":null,"actor":{"kind":"user"},"later":1,"data":{"a":1e400,"a":"\ud83d"}}"#;
        let event = Event::parse(line).expect("an event");
        assert_eq!(event.data.get(), r#"{"a":1e400,"a":"\ud83d"}"#);
        assert!(event.is_ignorable());
    }

    /// R-ENV-002, R-ENV-019, R-ENV-025
    #[test]
    fn payloads_are_objects_and_native_records_have_a_place() {
        let parse = |more: &str, data: &str| {
            let line = format!(
                r#"{{"palog":1,"log":"l","seq":0,"id":"e","type":"x.a/b","time":null,"actor":{{"kind":"user"}},{more}"data":{data}}}"#
            );
            Event::parse(&line).map(|_| ()).map_err(|e| e.to_string())
        };
        for bad in ["[]", "null", "1", "\"{}\""] {
            assert!(parse("", bad).expect_err(bad).contains("an object is expected"), "{bad}");
            assert!(parse(&format!(r#""ext":{bad},"#), "{}").is_err(), "{bad}");
        }
        assert_eq!(parse(r#""ext": {"org.example":1},"#, " {}"), Ok(()));
        let src = |place: &str| parse(&format!(r#""src":[{{"source":"s"{place}}}],"#), "{}");
        for good in [r#","at":0,"len":1"#, r#","table":"t","key":"k","how":"degraded""#] {
            assert_eq!(src(good), Ok(()), "{good}");
        }
        for bad in ["", r#","at":0"#, r#","len":1"#, r#","table":"t""#, r#","at":0,"len":1,"table":"t","key":"k""#] {
            assert!(src(bad).expect_err(bad).contains("`at` and `len`"), "{bad}");
        }
    }

    /// R-ENV-020
    #[test]
    fn time_must_be_there_and_optional_members_are_never_null() {
        let base =
            r#"{"palog":1,"log":"l","seq":0,"id":"e","type":"x.a/b","time":null,"actor":{"kind":"user"},"data":{}}"#;
        assert!(Event::parse(base).is_ok());
        assert!(Event::parse(&base.replace(r#""time":null,"#, "")).is_err());
        assert!(Event::parse(&base.replace(r#""data""#, r#""epoch":null,"data""#)).is_err());
    }
}
