//! The rules of the specification that this crate carries out and that a test of it proves, by their ids (spec 07).

use crate::diagnostic::Code;

/// A rule of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its id, `R-<chapter>-<number>`; never used again for another rule.
    pub id: &'static str,
    /// What it says, as a sentence.
    pub text: &'static str,
}

/// Finds a rule by its id (spec 07).
#[must_use]
pub fn find(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id == id)
}

/// Ids of the rules that a finding of `code` can be about (spec 07, "Diagnostics"). What only importers find is about sources:
/// no rule of the table binds these.
#[must_use]
pub const fn of(code: Code) -> &'static [&'static str] {
    match code {
        Code::InvalidUtf8 => &["R-BYT-001"],
        Code::ByteOrderMark | Code::CarriageReturn => &["R-BYT-002"],
        Code::BadJson => &["R-BYT-003"],
        Code::TornTail => &["R-BYT-005"],
        Code::LineTooLong => &["R-BYT-011"],
        Code::MissingBlob => &["R-BYT-012"],
        Code::BlobMismatch => &["R-BYT-012", "R-BYT-013"],
        Code::Diverged => &["R-BYT-020"],
        Code::Locked => &["R-BYT-022"],
        Code::HeadMoved | Code::StaleEpoch => &["R-BYT-024"],
        Code::ForeignWrite => &["R-BYT-027"],
        Code::UnsupportedVersion => &["R-ENV-001"],
        Code::BadEnvelope => &["R-ENV-001", "R-ENV-002", "R-ENV-007"],
        Code::NotOpened => &["R-ENV-003"],
        Code::OtherLog => &["R-ENV-004"],
        Code::SeqGap | Code::SeqRepeated | Code::SeqConflict => &["R-ENV-005"],
        Code::TimeBackwards => &["R-ENV-006"],
        Code::DuplicateId => &["R-ENV-007"],
        Code::PrevMismatch => &["R-ENV-008"],
        Code::MissingParent | Code::MissingCause => &["R-ENV-009"],
        Code::Cycle => &["R-ENV-010"],
        Code::UnknownCritical | Code::UnknownType => &["R-ENV-012"],
        Code::BadPayload => &["R-ENV-013", "R-BYT-012"],
        Code::BadType => &["R-ENV-014"],
        Code::NewerMinor => &["R-ENV-015"],
        Code::AfterClose | Code::Closed => &["R-ENV-016"],
        Code::ProposedTwice | Code::ArgsMismatch => &["R-ACT-002"],
        Code::SourceNotOpened => &["R-ENV-019"],
        Code::EndsDisagree => &["R-ACT-003"],
        Code::EndedTwice => &["R-ACT-005"],
        Code::CallWithoutResult | Code::ResultLost => &["R-ACT-013"],
        Code::OrphanResult | Code::UnproposedAction => &["R-ACT-015"],
        Code::VoidRequest => &["R-ACT-016"],
        Code::NoBasis => &["R-ACT-018"],
        Code::KeyConflict => &["R-ACT-022"],
        Code::LateWrite => &["R-OWN-001", "R-OWN-002"],
        Code::NoEpoch => &["R-OWN-003"],
        Code::StalePlan => &["R-WRK-002"],
        Code::CommandRepeated => &["R-WRK-004"],
        Code::StaleCommand => &["R-WRK-005"],
        Code::UnknownSubject => &["R-WRK-007"],
        Code::CheckpointMismatch => &["R-WLD-001", "R-WLD-004"],
        Code::ParentMissing => &["R-FAM-001"],
        Code::SharedWorkspace => &["R-FAM-003"],
        Code::UnknownInput | Code::QueuedPrompt => &["R-TRN-009"],
        Code::ConcatenatedRecords
        | Code::CumulativeReemit
        | Code::ForkedByReference
        | Code::LegacyHeader
        | Code::TimeMissing
        | Code::Fragment
        | Code::NulRun
        | Code::LoneSurrogate
        | Code::NumberPrecision
        | Code::SplitPair
        | Code::TimeJump
        | Code::MixedTimes
        | Code::NaiveTime
        | Code::UnknownBlock
        | Code::UnexpectedShape
        | Code::Replay
        | Code::IdReused
        | Code::ProjectShadowed
        | Code::PendingPermission
        | Code::BypassedRecord
        | Code::LinkInferred
        | Code::AgentOrphan
        | Code::UsageSuperseded
        | Code::BadTime
        | Code::ForeignRecord
        | Code::SessionMismatch
        | Code::ForkedPrefix
        | Code::NothingRecognised
        | Code::SessionRepeated
        | Code::NotFollowed
        | Code::LeftBeside
        | Code::Unreadable
        | Code::DuplicateBlob
        | Code::StoreNotADatabase
        | Code::StoreMalformed
        | Code::StoreWalMissing
        | Code::StoreBusy
        | Code::StoreNoRoom
        | Code::StoreVersion
        | Code::ContinuationMissing
        | Code::RowCountMismatch
        | Code::PartialExport => &[],
    }
}

const fn rule(id: &'static str, text: &'static str) -> Rule {
    Rule { id, text }
}

/// Every rule, in the order of the spec.
pub const RULES: &[Rule] = &[
    // bytes
    rule("R-BYT-001", "A log is UTF-8."),
    rule("R-BYT-002", "A log has no byte order mark, and its lines end in a line feed alone."),
    rule("R-BYT-003", "Every line holds exactly one JSON object."),
    rule("R-BYT-004", "An event is in the log when its line feed is."),
    rule("R-BYT-005", "Bytes after the last line feed are not a part of the log; they are reported and never parsed."),
    rule("R-BYT-006", "A writer that takes a log over cuts it after its last line feed before it appends."),
    rule("R-BYT-011", "No line is longer than 16 MiB."),
    rule("R-BYT-012", "A blob that a log refers to lies beside it and has the size that the reference gives."),
    rule("R-BYT-013", "A blob has the bytes that its name says."),
    rule("R-BYT-014", "The media type of a reference to a blob says how the value is had back."),
    rule("R-BYT-018", "A value that is carried does not change."),
    rule("R-BYT-020", "Reading after a cursor gives every later line once, in order."),
    rule("R-BYT-022", "One program at a time writes to a log."),
    rule("R-BYT-023", "A log that a writer takes over is one that it understands."),
    rule("R-BYT-024", "An append can be made conditional on the head and on the epoch."),
    rule(
        "R-BYT-025",
        "Events that are appended as a group get into the log all or none, unless the process ends in mid write: then each line that got in is whole.",
    ),
    rule("R-BYT-026", "A writer says for each append how durable it is when it is acknowledged."),
    rule(
        "R-BYT-027",
        "A writer that finds the log changed by somebody else goes on only behind whole lines in sequence.",
    ),
    // envelope
    rule(
        "R-ENV-001",
        "The first member of every line is the major version, and a reader refuses a major that it does not know.",
    ),
    rule("R-ENV-002", "Every event has the members of the envelope, each in its form."),
    rule("R-ENV-003", "The event with the seq 0 is `log.opened`, and no other event is."),
    rule("R-ENV-004", "All events of a log carry the same log id."),
    rule(
        "R-ENV-005",
        "The seq counts the events from 0 without a gap; a repeated line is ignored, another line in the same place is an error.",
    ),
    rule("R-ENV-006", "Times are evidence: they may run backwards, and nothing is ordered by them."),
    rule("R-ENV-007", "An event id is at most 128 bytes long and unique in its log."),
    rule("R-ENV-008", "Where a line names the digest of the line before, it is that line's."),
    rule("R-ENV-009", "A parent or cause that an event names is an event of the log; a parent may come later."),
    rule("R-ENV-010", "Parents form no loop; a loop is cut where it closes."),
    rule("R-ENV-011", "An event that is a copy counts as history, not as work done here."),
    rule(
        "R-ENV-012",
        "A reader passes over an event that it does not know only if the event is ignorable; otherwise nothing can be concluded from the log.",
    ),
    rule(
        "R-ENV-013",
        "The payload of a known type has the form of that type; a malformed one is an error, never an unknown event.",
    ),
    rule("R-ENV-014", "A type is `family.verb` or `x.<reverse-dns>/<name>`."),
    rule("R-ENV-015", "A newer minor version only adds, so that its logs can be read."),
    rule("R-ENV-016", "Nothing but notes follows `log.closed`."),
    rule("R-ENV-018", "Members that a reader does not know are ignored, and kept where the event is copied."),
    rule(
        "R-ENV-019",
        "An event that comes from native records names them, by a source that is open and a place in it.",
    ),
    rule("R-ENV-020", "An optional member that does not apply is absent, never null."),
    rule(
        "R-ENV-026",
        "A value that begins like one of the three forms and is meant literally is written as a `$literal`.",
    ),
    // events
    rule(
        "R-EVT-009",
        "A window is complete: what it does not list of the path before it, the model does not see any more.",
    ),
    rule(
        "R-EVT-012",
        "The absence of an event means that it did not happen only if its kind is declared, by the writer or by a source that has been open since the action was proposed.",
    ),
    rule("R-EVT-013", "An approval that a standing grant gave names the grant."),
    // actions
    rule(
        "R-ACT-001",
        "The state of an action is a function of the set of its events: the order in which sources are merged changes nothing.",
    ),
    rule("R-ACT-002", "An action is proposed once, with the digest of the bytes of its arguments."),
    rule("R-ACT-003", "Ends of one attempt that disagree on whether the effect took place make the action unknown."),
    rule("R-ACT-004", "An end that says that the effect cannot be known makes the action unknown."),
    rule(
        "R-ACT-005",
        "Otherwise an end decides; of ends that differ in outcome only, failed stands before cancelled before succeeded.",
    ),
    rule("R-ACT-006", "Without an end or a start, one denial denies."),
    rule("R-ACT-007", "Without an end, a start, or a result that says that the action goes on, makes it running."),
    rule("R-ACT-008", "An action is awaiting while a request is open whose end would have been recorded."),
    rule(
        "R-ACT-009",
        "A request whose end would leave no trace proves no waiting: the action is unknown, and the question stays attached.",
    ),
    rule(
        "R-ACT-010",
        "An action is approved when all its requests are granted and its start would have been recorded.",
    ),
    rule("R-ACT-011", "A lapsed action moves again only by a new request that names what lapsed as its cause."),
    rule("R-ACT-012", "An action without any of these is proposed where its start would have been recorded."),
    rule(
        "R-ACT-013",
        "Where no open source records starts, a proposed action without an end is unknown at every prefix.",
    ),
    rule("R-ACT-014", "A call that only asks is itself the request, and its result the answer."),
    rule("R-ACT-015", "An event about an action that was never proposed creates the action, with a warning."),
    rule(
        "R-ACT-016",
        "A start, or an end with any effect, settles the requests of its attempt; a request made after that has no effect.",
    ),
    rule(
        "R-ACT-017",
        "A reconciliation settles what came before it: applied is succeeded, partial is failed, not applied is a new attempt.",
    ),
    rule(
        "R-ACT-018",
        "That an effect did not take place needs a basis: a fenced target, a terminated executor, a passed deadline, the child's log, or a person.",
    ),
    rule("R-ACT-019", "An end that contradicts a reconciliation makes the action unknown."),
    rule("R-ACT-020", "An earlier attempt that nothing settled keeps a write without an idempotency key unknown."),
    rule("R-ACT-021", "A copied action is inherited: this log never runs, reconciles or answers it."),
    rule("R-ACT-022", "One idempotency key never stands for two sets of arguments."),
    rule("R-ACT-023", "What happened and what the model was told are two facts, and neither stands for the other."),
    rule(
        "R-ACT-024",
        "The end of an approval may stand without a request, and joins a request of another source about the same action.",
    ),
    // turns
    rule("R-TRN-001", "An action belongs to the turn that is open when it is proposed."),
    rule(
        "R-TRN-002",
        "A turn is answered by its recorded end where ends are recorded, else by a response whose stop ends the turn, else by a message of the model without a call.",
    ),
    rule("R-TRN-003", "A message of the model answers nothing once its response turns out to hold a call."),
    rule("R-TRN-004", "Errors, cut messages, summaries and messages that the model never sees answer nothing."),
    rule(
        "R-TRN-005",
        "Where starts are not recorded, what an earlier turn left open is passed over once a later turn is answered.",
    ),
    rule("R-TRN-006", "A prompt is pending until its turn is answered or interrupted, or a later turn is answered."),
    rule("R-TRN-007", "A prompt whose answer has begun is not pending while a call of its turn is unresolved."),
    rule("R-TRN-008", "A result is pending until the model was told of it and went on."),
    rule(
        "R-TRN-009",
        "An input is pending until it is dropped or a message holds it, or, once taken, until a later turn, summary or turn end passes it.",
    ),
    rule(
        "R-TRN-010",
        "What hangs under a parent that comes later belongs to the turn that is open when the parent comes.",
    ),
    rule(
        "R-TRN-011",
        "A response beside which something could not be read answers nothing as long as no stop is known.",
    ),
    rule("R-TRN-012", "A call that the model asked for and that the log does not hold is pending."),
    // the state as a whole
    rule("R-STA-001", "Of several reports on one response the last counts, and the response is counted once."),
    rule(
        "R-STA-002",
        "Compactions and moves between branches change what the model sees and leave the control state as it is.",
    ),
    rule("R-STA-003", "An observation changes no state."),
    rule(
        "R-STA-004",
        "A summary note is the title only if the event that it is about is in the log; a title that was set stands before it.",
    ),
    rule("R-STA-005", "A later source of the same name replaces the earlier one, from there on."),
    rule("R-STA-006", "The state is a function of the log alone."),
    rule("R-STA-007", "Every log has a state, whatever is wrong with it."),
    rule("R-STA-008", "The context is the last window on the path, and the messages behind it."),
    rule(
        "R-STA-009",
        "A source that changed declares nothing about the time before, and one that vanished nothing at all.",
    ),
    rule("R-STA-010", "A message that is revised, and content that was redacted, leave the control state as it is."),
    rule("R-STA-011", "A snapshot, and the events after it, give the state of the whole."),
    // ownership
    rule("R-OWN-001", "What is written under an epoch that is over is void."),
    rule("R-OWN-002", "A lease begins under a new epoch, and ends when it is released or a greater epoch comes."),
    rule("R-OWN-003", "An event without an epoch, once there is one, has its effect and is reported."),
    rule("R-OWN-004", "A grant stands until it is revoked."),
    // work
    rule("R-WRK-001", "An action belongs to the task whose attempt is open when it is proposed."),
    rule("R-WRK-002", "The revision of a plan grows; a plan that is not newer than the present one is void."),
    rule("R-WRK-003", "A new revision closes the old steps and lets requests for leave lapse."),
    rule("R-WRK-004", "A command is applied once, however often it is delivered."),
    rule(
        "R-WRK-005",
        "A command that expects another revision of the plan than the present one is stale, and is not applied.",
    ),
    rule("R-WRK-006", "A command has its effect when it ends as applied."),
    rule(
        "R-WRK-007",
        "An event about a source, task, attempt, step, command, grant, resource or checkpoint that the log does not have is reported.",
    ),
    // family
    rule("R-FAM-001", "A fork or a continuation goes on from the state of its parent at the event that it names."),
    rule("R-FAM-002", "A fork fixes its parent's history; a continuation takes the session over as a whole."),
    rule(
        "R-FAM-003",
        "A fork that works in its parent's workspace is indeterminate from a local write of its own until a workspace is recorded.",
    ),
    // the world
    rule("R-WLD-001", "A checkpoint is a fact that is checked against the state, and never replaces it."),
    rule("R-WLD-002", "Of several records of the workspace, or of one artifact, the last one counts."),
    rule("R-WLD-003", "A resource is held until it is released."),
    rule(
        "R-WLD-004",
        "The digest of a state is taken of a text that is made for it alone, and that no later minor version changes.",
    ),
    // recovery
    rule(
        "R-REC-001",
        "A log that is corrupt or holds an unknown critical event is indeterminate, and nothing is done on its strength.",
    ),
    rule("R-REC-002", "A log that was transferred, or is complete with nothing blocking, is closed."),
    rule("R-REC-003", "A session with a live holder is owned: everybody else waits."),
    rule("R-REC-004", "A blocking unknown makes the verdict needs_reconcile."),
    rule(
        "R-REC-005",
        "An open or lapsed approval, an open question, or a decision that only a person can take makes the verdict awaiting_human.",
    ),
    rule("R-REC-006", "Work that can go on makes the verdict ready; otherwise the session is idle."),
    rule(
        "R-REC-007",
        "An action of unknown outcome is reconciled before anything else happens, and never simply run again.",
    ),
    rule("R-REC-008", "A running action without a live holder is treated as unknown."),
    rule("R-REC-009", "An unknown action that only reads is skipped."),
    rule("R-REC-010", "What a later turn passed over does not block."),
    rule("R-REC-011", "While a reconciliation finds the effect under way, recovery waits and submits nothing."),
    rule("R-REC-012", "An unknown that a look-up could not settle is frozen: a person is asked."),
    rule("R-REC-013", "An unknown that a person accepted as such does not block."),
    rule("R-REC-014", "An open request or question is answered before its action goes on."),
    rule("R-REC-015", "A lapsed action runs only after it was asked for anew."),
    rule("R-REC-016", "A proposed or approved action that was not started is run."),
    rule("R-REC-017", "No action is run while one of the same name and arguments is unresolved."),
    rule(
        "R-REC-018",
        "A grant allows a run only if it is about this action and these arguments beyond doubt and was not spent.",
    ),
    rule("R-REC-019", "An ended action that the model was not told of is delivered."),
    rule(
        "R-REC-020",
        "An end that comes after the model was told that the action goes on is delivered without blocking.",
    ),
    rule(
        "R-REC-021",
        "A failed write that left something behind can be compensated by a new action, and does not block.",
    ),
    rule("R-REC-022", "A prompt or a result without an answer is continued by asking the model."),
    rule("R-REC-023", "Queued input is delivered to the model."),
    rule(
        "R-REC-024",
        "An observation of a prompt on the screen is evidence for the one unresolved call while nothing newer is known, and never makes it awaiting.",
    ),
    rule(
        "R-REC-025",
        "Where no source records proposals, a ready or idle session may hide calls that were never written down.",
    ),
    rule("R-REC-026", "Recovery looks at the state, the time and what look-ups have seen, and does nothing itself."),
    rule("R-REC-028", "A lease is live until it is released, a greater epoch comes, or its time is over by the clock."),
    rule("R-REC-029", "Work goes on only where everything that it rests on is as recorded."),
    rule("R-REC-030", "A paused task goes on only when a person says so."),
    rule(
        "R-REC-031",
        "A cancelled task is finished when its attempts ended, its started actions are settled, and its grants and resources are given back.",
    ),
    rule("R-REC-032", "A command that has not ended is applied or rejected before other work goes on."),
    rule("R-REC-033", "A checkpoint that does not agree with the state needs a person."),
    rule("R-REC-034", "A child whose parent is gone is an orphan, and a person is asked about it."),
    rule("R-REC-035", "A step that was being worked on is restarted once nothing else is left to go on with."),
    rule("R-REC-036", "What is held for a task that is closed, or by a log that is, is released."),
    rule("R-REC-037", "What was written under an epoch that is over is evidence for the action that it is about."),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// What carries the rules out, up to its tests, and what proves them.
    const CODE: &[&str] = &[
        include_str!("blob.rs"),
        include_str!("envelope.rs"),
        include_str!("json.rs"),
        include_str!("follow.rs"),
        include_str!("live/log_file.rs"),
        include_str!("live/tail.rs"),
        include_str!("project/anthropic.rs"),
        include_str!("project/content.rs"),
        include_str!("project/context.rs"),
        include_str!("reader.rs"),
        include_str!("reduce/mod.rs"),
        include_str!("reduce/actions.rs"),
        include_str!("fence.rs"),
        include_str!("reduce/family.rs"),
        include_str!("reduce/ownership.rs"),
        include_str!("reduce/path.rs"),
        include_str!("reduce/snapshot.rs"),
        include_str!("reduce/sources.rs"),
        include_str!("reduce/turns.rs"),
        include_str!("reduce/work.rs"),
        include_str!("reduce/world.rs"),
        include_str!("recover.rs"),
        include_str!("recover/admission.rs"),
        include_str!("recover/evidence.rs"),
        include_str!("recover/obligations.rs"),
        include_str!("recover/work.rs"),
        include_str!("validate.rs"),
    ];
    const PROOFS: &[&str] = &[
        include_str!("envelope.rs"),
        include_str!("json.rs"),
        include_str!("live/tests.rs"),
        include_str!("project/anthropic.rs"),
        include_str!("project/content.rs"),
        include_str!("reduce/tests/actions.rs"),
        include_str!("reduce/tests/family.rs"),
        include_str!("reduce/tests/held.rs"),
        include_str!("reduce/tests/work.rs"),
        include_str!("reduce/tests/invariants.rs"),
        include_str!("reduce/tests/log.rs"),
        include_str!("reduce/tests/turns.rs"),
        include_str!("recover/tests.rs"),
        include_str!("recover/tests/work.rs"),
        include_str!("validate/tests.rs"),
    ];

    #[test]
    fn every_rule_has_one_id_and_a_test_that_names_it() {
        for (at, rule) in RULES.iter().enumerate() {
            assert!(RULES[..at].iter().all(|other| other.id != rule.id), "{} stands twice", rule.id);
            assert!(PROOFS.iter().any(|text| text.contains(rule.id)), "no test names {}", rule.id);
            assert_eq!(find(rule.id), Some(rule));
        }
    }

    #[test]
    fn the_rules_of_a_code_are_rules() {
        for code in Code::ALL {
            for id in of(*code) {
                assert!(find(id).is_some(), "{code}: {id} is not in the table");
            }
        }
    }

    #[test]
    fn every_rule_that_the_code_names_is_in_the_table() {
        for text in CODE.iter().chain(PROOFS) {
            for (at, _) in text.match_indices("\"R-") {
                let id = &text[at + 1..at + 10];
                assert!(find(id).is_some(), "{id} is not in the table");
            }
        }
    }
}
