//! What must hold for any bytes at all: one function for each target. A panic is a finding.

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::ops::ControlFlow;

use palog::diagnostic::{Code, Diagnostics, Severity};
use palog::project::{At, context, transcript};
use palog::reader::{Item, Reader};
use palog::recover::{Context, Verdict, recover};
use palog::reduce::{Reducer, reduce};
use palog::state::State;
use palog::validate::{Options, validate};
use palog_claude_code::{Directory, ImportError, Options as ImportOptions, discover, import};
use palog_conformance::Log;

/// Bytes as a log: everything reads them without a panic, step by step as at once, and validation and reduction find the same
/// errors.
pub fn reader(bytes: &[u8]) {
    let (state, found) = reduce(bytes).expect("memory can be read");
    assert_eq!(state.indeterminate.is_empty(), found.count(Severity::Error) == 0, "errors and nothing else end certainty");
    let recovery = recover(&state, &Context::new());
    assert_eq!(recovery.verdict == Verdict::Indeterminate, !state.indeterminate.is_empty());
    let blocked = recovery.obligations.iter().any(|owed| owed.blocking);
    assert!(!blocked || !matches!(recovery.verdict, Verdict::Ready | Verdict::Idle | Verdict::Closed));

    let validation = validate(bytes, &Options::new()).expect("memory can be read");
    // A log without any event has no beginning, which validation leaves to its caller; the others need more than one event's
    // bytes, or more than its place.
    let apart = [Code::NotOpened, Code::PrevMismatch, Code::ArgsMismatch, Code::KeyConflict];
    assert_eq!(errors(&validation.diagnostics, &apart), errors(&found, &apart), "validation and reduction differ");

    assert_eq!(stepwise(bytes), state, "step by step is not as at once");
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    assert_eq!(reduce(&bytes[..whole]).expect("memory can be read").0, state, "the tail counts");

    let _ = context(Cursor::new(bytes), At::Head, None).expect("memory can be read");
    transcript(Cursor::new(bytes), |_| ControlFlow::Continue(())).expect("memory can be read");
}

fn errors(found: &Diagnostics, apart: &[Code]) -> BTreeMap<&'static str, u64> {
    let errors = found.groups().iter().filter(|group| group.severity == Severity::Error && !apart.contains(&group.code));
    errors.map(|group| (group.code.as_str(), group.count)).collect()
}

fn stepwise(bytes: &[u8]) -> State {
    let (mut reader, mut reducer) = (Reader::new(bytes), Reducer::new());
    while let Some(item) = reader.next().expect("memory can be read") {
        match item {
            Item::Event(event, line) => reducer.apply(&event, Some(&line)),
            Item::Fault(fault) => reducer.fault(fault),
        }
        let _ = reducer.state();
    }
    reducer.finish().0
}

/// Bytes as a transcript of Claude Code: the import does not panic, its log is valid, and every byte is an event's, a note's or
/// white space.
pub fn claude_code(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = folder.path().join("5e550000-0000-4000-8000-000000000001.jsonl");
    fs::write(&file, bytes).expect("a file");
    let into = folder.path().join("into");
    fs::create_dir(&into).expect("a folder");
    for session in &discover(&file).expect("a file can be read").sessions {
        let report = match import(session, &mut Directory::new(&into), &ImportOptions::default()) {
            Ok(report) => report,
            Err(ImportError::NothingRecognised { .. }) => continue,
            Err(error) => panic!("{error}"),
        };
        for path in report.logs.iter().filter_map(|log| log.path.as_deref()) {
            let text = fs::read(path).expect("a log");
            let found = validate(&text[..], &Options::new()).expect("memory can be read").diagnostics;
            assert_eq!((found.count(Severity::Error), found.count(Severity::Void)), (0, 0), "{:?}", found.groups());
            let log = Log::read(path).expect("a log");
            let kept = &log.sources["transcript"];
            assert_eq!(kept, bytes, "the source is not kept");
            accounted(&log, bytes);
        }
    }
}

/// Ranges of records and notes do not overlap, and nothing but white space and a byte order mark stands between them.
fn accounted(log: &Log, bytes: &[u8]) {
    let mut ranges: Vec<(u64, u64)> =
        log.records().iter().filter(|r| r.source == "transcript").map(|r| (r.at, r.len)).collect();
    ranges.extend(log.notes(&["fragment", "torn", "hole"]).filter(|(s, ..)| *s == "transcript").map(|(_, at, len)| (at, len)));
    ranges.sort_unstable();
    ranges.dedup();
    ranges.push((bytes.len() as u64, 0));
    let mut end = 0;
    for (at, len) in ranges {
        assert!(at >= end, "the range at {at} begins before {end}");
        let gap = &bytes[usize::try_from(end).expect("an offset")..usize::try_from(at).expect("an offset")];
        let gap = if end == 0 { gap.strip_prefix(b"\xef\xbb\xbf").unwrap_or(gap) } else { gap };
        assert!(gap.iter().all(u8::is_ascii_whitespace), "nobody tells of {:?} at {end}", String::from_utf8_lossy(gap));
        end = at + len;
    }
}
