//! An example of each finding, for `palog explain`: what programs of this workspace say, in a place that is made up.

use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog::rules;

/// The files that the examples are about.
const LOG: &str = "shop.palog.jsonl";
const SOURCE: &str = "projects/-home-me-shop/5e550000-0000-4000-8000-000000000001.jsonl";
const ROLLOUT: &str = "sessions/2026/11/29/rollout-2026-11-29T12-00-00-019c0000-0000-7000-8000-000000000001.jsonl";
const AGENT: &str = "projects/-home-me-shop/5e550000-0000-4000-8000-000000000001/subagents/agent-a1b2c3.jsonl";

/// A finding as it could be.
pub(crate) fn example(code: Code) -> Diagnostic {
    use Severity::{Error, Info, Void, Warning};
    match code {
        // A log.
        Code::TornTail => log(code, Warning, 22, "", "the bytes after the last line feed are not a part of the log"),
        Code::LineTooLong => log(code, Error, 7, "", "a line of 20971520 bytes; readers accept 16777216"),
        Code::ByteOrderMark => log(code, Error, 1, "", "the log begins with a byte order mark"),
        Code::CarriageReturn => log(code, Error, 1, "", "the line ends in a carriage return"),
        Code::BadJson => log(code, Error, 4, "", "expected `:` (byte 28 of the line)"),
        Code::UnsupportedVersion => log(code, Error, 1, "", "major version 2; this reader knows 1"),
        Code::NewerMinor => log(code, Info, 1, "e0", "the log is of version 1.3, this reader of 1.0"),
        Code::BadEnvelope => log(code, Error, 9, "", "missing field `actor` (byte 311 of the line)"),
        Code::NotOpened => log(code, Error, 1, "e4", "the first event is not log.opened"),
        Code::OtherLog => log(code, Error, 12, "f3", "the event is of \"l2\", the log is \"l1\""),
        Code::SeqGap => log(code, Error, 8, "e8", "seq 8 follows, where seq 7 should"),
        Code::SeqRepeated => log(code, Warning, 8, "e6", "seq 6 stands twice"),
        Code::SeqConflict => log(code, Error, 9, "f6", "seq 6 comes after seq 7, with other bytes than the first time"),
        Code::AfterClose => log(code, Warning, 40, "e39", "message.added follows log.closed"),
        Code::MissingCause => named(log(code, Warning, 14, "e13", "no event has the id \"e99\""), "e99"),
        Code::DuplicateId => log(code, Error, 15, "e9", "the id \"e9\" stands twice"),
        Code::PrevMismatch => {
            let why = "prev is 3f1c0d…, which is not the digest of the line before";
            log(code, Error, 21, "e20", why)
        }
        Code::BadPayload => log(code, Error, 4, "e3", "message.added: missing field `role` at line 1 column 90"),
        Code::BadType => log(code, Error, 17, "e16", "\"MessageAdded\""),
        Code::UnknownCritical => log(code, Error, 18, "e17", "quota.exceeded must be understood and is not known"),
        Code::MissingBlob => log(code, Error, 5, "e4", "sha256:e3b0c4…: No such file or directory (os error 2)"),
        Code::BlobMismatch => log(code, Error, 5, "e4", "sha256:e3b0c4… has 12 bytes, not 1048576"),
        Code::Cycle => log(code, Warning, 11, "e10", "the parent \"e12\" comes after the event on the path"),
        Code::EndsDisagree => log(code, Warning, 30, "e29", "one end says yes, another no"),
        Code::UnproposedAction => called(log(code, Warning, 16, "", "toolu_7 was never proposed"), "toolu_7"),
        Code::EndedTwice => log(code, Warning, 31, "e30", "toolu_7 ended already at seq 28"),
        Code::ProposedTwice => log(code, Warning, 33, "e32", "toolu_7 is proposed again with other arguments"),
        Code::ArgsMismatch => log(code, Error, 6, "e5", "the arguments of toolu_7 have the digest sha256:9d5ed6…"),
        Code::SourceNotOpened => log(code, Warning, 7, "e6", "the source \"agent/a1b2c3\" is not open"),
        Code::KeyConflict => log(code, Error, 33, "e32", "the key \"deploy-42\" stands for other arguments already"),
        Code::NoBasis => log(code, Warning, 34, "e33", "\"looked\" does not keep an old executor from acting later"),
        Code::UnknownInput => log(code, Warning, 19, "", "the input \"i3\" ends and was never queued"),
        Code::VoidRequest => log(code, Void, 35, "e34", "Bash was started or ended before it was asked about"),
        Code::LateWrite => log(code, Void, 36, "e35", "action.ended under the epoch 2; the newest is 3"),
        Code::NoEpoch => log(code, Warning, 37, "e36", "action.started carries no epoch; the newest is 3"),
        Code::StalePlan => log(code, Void, 38, "e37", "the plan of t_1 is at revision 3, and this one is 2"),
        Code::CommandRepeated => log(code, Warning, 39, "e38", "the command c_1 was issued before"),
        Code::StaleCommand => log(code, Void, 40, "e39", "c_1 expects the plan at revision 2, which is at 3"),
        Code::UnknownSubject => log(code, Warning, 41, "e40", "the resource \"res_1\" is not in the log"),
        Code::CheckpointMismatch => log(code, Warning, 42, "e41", "k_1: the step deploy is not done"),
        Code::ParentMissing => ruled(file(code, Warning, LOG, "the log goes on from l0, which is not at hand")),
        Code::SharedWorkspace => {
            let why = "the fork wrote into its parent's workspace, which was not recorded since";
            ruled(file(code, Error, LOG, why))
        }
        Code::Diverged => log(code, Error, 24, "", "the line at seq 23 is not the one that was read last"),
        // What is told to a writer.
        Code::Locked => ruled(file(code, Error, LOG, "another writer holds the lock of the file")),
        Code::Closed => ruled(file(code, Error, LOG, "the log is closed; nothing but notes follows")),
        Code::HeadMoved => ruled(file(code, Error, LOG, "the log has grown: its head is at seq 41")),
        Code::StaleEpoch => ruled(file(code, Error, LOG, "the epoch is stale: the newest one is 3")),
        Code::ForeignWrite => ruled(file(code, Error, LOG, "the log was replaced by another file while it was opened")),
        // What is known of calls and inputs at the end of a log or of a source.
        Code::CallWithoutResult | Code::ResultLost | Code::OrphanResult => {
            called(source(code, Warning, 8, None), "toolu_7")
        }
        Code::QueuedPrompt => source(code, Info, 8, None),
        // A source.
        Code::ConcatenatedRecords => source(code, Warning, 2, Some("2 records on one line")),
        Code::Fragment => recorded(source(code, Warning, 2, None)),
        Code::InvalidUtf8 => source(code, Warning, 3, Some("bytes that are not UTF-8")),
        Code::NulRun => source(code, Warning, 2, Some("317 zero bytes")),
        Code::UnexpectedShape => source(code, Warning, 6, Some("invalid type: integer `7`, expected a string")),
        Code::UnknownType => typed(source(code, Warning, 5, None), "zz-future-record"),
        Code::UnknownBlock => typed(source(code, Warning, 6, None), "zz_block"),
        Code::MissingParent => named(recorded(source(code, Warning, 3, None)), "aaaa0000-0000-4000-8000-000000000002"),
        Code::ForeignRecord => named(source(code, Warning, 1, None), "aaaa0000-0000-4000-8000-000000000901"),
        Code::SessionMismatch => {
            let mut found = source(code, Warning, 5, None);
            found.place.session = Some("5e550000-0000-4000-8000-000000000002".into());
            found
        }
        Code::Replay | Code::IdReused | Code::BypassedRecord => recorded(source(code, Warning, 6, None)),
        Code::LoneSurrogate | Code::BadTime => source(code, Warning, 3, None),
        Code::TimeBackwards | Code::UsageSuperseded | Code::ForkedPrefix | Code::DuplicateBlob => {
            source(code, Info, 4, None)
        }
        Code::LegacyHeader => rollout(code, Warning, 1),
        Code::TimeMissing => rollout(code, Info, 2),
        Code::CumulativeReemit => rollout(code, Info, 9),
        Code::ForkedByReference => named(rollout(code, Info, 1), "019c0000-0000-7000-8000-000000000002"),
        Code::LinkInferred | Code::AgentOrphan => {
            let mut found = source(code, Warning, 1, None);
            (found.place.input, found.place.detail) = (Some(AGENT.into()), Some("a1b2c3".into()));
            found
        }
        Code::NothingRecognised => {
            let why = "it is named like a session, and its content is none of one; it was not imported";
            file(code, Error, "projects/-home-me-shop/notes.jsonl", why)
        }
        Code::SessionRepeated => {
            let why =
                "another file of the same session was imported before; the log of this one has a number in its name";
            file(code, Warning, "projects/-home-me-old/5e550000-0000-4000-8000-000000000001.jsonl", why)
        }
        Code::LeftBeside => file(code, Warning, "tasks/5e550000-0000-4000-8000-000000000001/1.json", "it was not read"),
        Code::NotFollowed => {
            let path = "projects/-home-me-shop/5e550000-0000-4000-8000-000000000001/tool-results/b1.txt";
            file(code, Error, path, "it is a link")
        }
        Code::Unreadable => file(code, Error, "history.jsonl", "Permission denied (os error 13)"),
        // A code that is too new to have one.
        _ => Diagnostic::new(code, Error, Place::default()),
    }
}

/// About a log.
fn log(code: Code, severity: Severity, line: u64, record: &str, why: &str) -> Diagnostic {
    let record = (!record.is_empty()).then(|| record.to_owned());
    let found = Diagnostic::new(
        code,
        severity,
        Place { input: Some(LOG.into()), line: Some(line), record, ..Place::default() },
    );
    ruled(found.because(why))
}

/// About a record of a source.
fn source(code: Code, severity: Severity, line: u64, why: Option<&str>) -> Diagnostic {
    let found =
        Diagnostic::new(code, severity, Place { input: Some(SOURCE.into()), line: Some(line), ..Place::default() });
    Diagnostic { why: why.map(str::to_owned), ..found }
}

/// About a record of a rollout.
fn rollout(code: Code, severity: Severity, line: u64) -> Diagnostic {
    let mut found = source(code, severity, line, None);
    found.place.input = Some(ROLLOUT.into());
    found
}

/// About a file as a whole.
fn file(code: Code, severity: Severity, input: &str, why: &str) -> Diagnostic {
    Diagnostic::new(code, severity, Place { input: Some(input.into()), ..Place::default() }).because(why)
}

fn ruled(found: Diagnostic) -> Diagnostic {
    match rules::of(found.code) {
        [first, ..] => found.rule(first),
        [] => found,
    }
}

fn named(mut found: Diagnostic, names: &str) -> Diagnostic {
    found.place.names = Some(names.into());
    found
}

fn called(mut found: Diagnostic, call: &str) -> Diagnostic {
    found.place.call = Some(call.into());
    found
}

fn typed(mut found: Diagnostic, kind: &str) -> Diagnostic {
    found.place.kind = Some(kind.into());
    found
}

fn recorded(mut found: Diagnostic) -> Diagnostic {
    found.place.record = Some("aaaa0000-0000-4000-8000-000000000003".into());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_an_example() {
        for code in Code::ALL {
            let found = example(*code);
            assert_eq!(found.code, *code);
            assert!(found.place.input.is_some(), "{code} has no example");
        }
    }
}
