//! Diagnostics: what is wrong, how bad it is, and where (spec 07, "Diagnostics").

use serde::{Deserialize, Serialize};

use crate::wire::words;

words! {
    /// How bad a finding is (spec 04, "Severities").
    pub enum Severity {
        /// Corrupt or illegal: what follows from the log is indeterminate.
        Error = "error",
        /// The event has no effect, and is kept as evidence.
        Void = "void",
        /// Something was repaired, is missing, or needs a look; what could be had was had.
        Warning = "warning",
        /// Worth knowing.
        Info = "info",
    }
}

macro_rules! codes {
    ($($(#[$family:meta])* $variant:ident = $code:literal: $meaning:literal, $remedy:literal;)*) => {
        /// A diagnostic code, `family.what`. A code never changes its meaning (spec 07, "Codes").
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code { $(#[doc = $meaning] $variant,)* }

        impl Code {
            /// Every code, in the order of the spec.
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            /// The code as it is printed.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $code,)* }
            }

            /// What the code means, as a sentence.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$variant => $meaning,)* }
            }

            /// What can be done about it.
            #[must_use]
            pub const fn remedy(self) -> &'static str {
                match self { $(Code::$variant => $remedy,)* }
            }
        }
    };
}

codes! {
    // bytes and lines
    ConcatenatedRecords = "framing.concatenated_records": "More than one whole record stands on a physical line.", "Nothing: each record was taken by itself.";
    Fragment = "framing.fragment": "Bytes belong to no whole record, and do not stand at the end of the file.", "The bytes are kept. If the file can be had from a backup, import that one.";
    InvalidUtf8 = "framing.invalid_utf8": "Bytes are not UTF-8.", "The bytes are kept. Find out which program wrote them.";
    NulRun = "framing.nul_run": "A run of zero bytes stands where records should be, as after a power loss.", "What stood there is gone from this file; look for a backup.";
    TornTail = "framing.torn_tail": "Bytes behind the last line ending are no whole record.", "The writer was stopped in mid write. The bytes are kept and do not count.";
    LineTooLong = "framing.line_too_long": "A line is longer than readers accept.", "Write to a directory, so that large values move to blobs.";
    ByteOrderMark = "framing.byte_order_mark": "The log begins with a byte order mark.", "Remove the three bytes EF BB BF.";
    CarriageReturn = "framing.carriage_return": "A line ends in a carriage return.", "End lines with a line feed alone.";
    // inside one record
    BadJson = "json.syntax": "A line is no JSON.", "Compare with another copy of the log; a log is never edited by hand.";
    LoneSurrogate = "json.lone_surrogate": "A string holds an escaped surrogate without its other half.", "The escape is kept. Projections show U+FFFD in its place.";
    // version and envelope
    UnsupportedVersion = "version.unsupported": "The log is of a major version that this reader does not know.", "Use a newer palog.";
    NewerMinor = "version.newer_minor": "The log is of a newer minor version.", "It can be read. To append to it, use a newer palog.";
    BadEnvelope = "envelope.malformed": "The envelope lacks a member, or has one of another form.", "The program that wrote the line breaks the format; report it there.";
    NotOpened = "envelope.not_opened": "The first event is not `log.opened`, or it stands in another place.", "The beginning of the log is missing, or two logs were joined.";
    OtherLog = "envelope.other_log": "An event is of another log.", "Two logs were mixed; separate them by the member `log`.";
    // order
    SeqGap = "order.gap": "Events are missing between two lines.", "Find the missing lines in another copy of the log.";
    SeqRepeated = "order.repeated_line": "A line stands twice, with the same bytes.", "Nothing: the second one is ignored.";
    SeqConflict = "order.conflict": "Two lines have the same place and other bytes.", "The log diverged. Choose one copy, and make the other a fork.";
    AfterClose = "order.after_close": "Something other than a note follows the end of the log.", "Go on in a new log that continues this one.";
    MissingCause = "graph.missing_cause": "An event names a cause that is not in the log.", "Nothing: the event stands by itself.";
    DuplicateId = "id.duplicate": "Two events have the same id.", "The program that wrote the log breaks the format; report it there.";
    PrevMismatch = "order.prev_mismatch": "A line does not follow the line whose digest it names.", "A line was changed or removed; compare with another copy.";
    Diverged = "order.diverged": "The log is not the one that the cursor was taken from.", "Compare the copies; read from the beginning, or make one of them a fork.";
    // writing
    Locked = "append.locked": "Another program is writing to the log.", "Wait until it has ended, or send it what should be written.";
    Closed = "append.closed": "The log is closed.", "Go on in a new log that continues this one.";
    HeadMoved = "append.head_moved": "The log has grown since the writer looked.", "Read what is new, decide again, and append on the new head.";
    StaleEpoch = "append.stale_epoch": "The writer's lease was taken over.", "Stop: another worker owns the session now.";
    ForeignWrite = "append.foreign_write": "The file was changed by a program that does not hold its lock.", "Find that program; open the log again to go on.";
    // payloads
    BadPayload = "schema.malformed": "The payload does not have the form of its type.", "The program that wrote the line breaks the format; report it there.";
    BadType = "schema.bad_type": "The type is no well-formed name.", "Core types are `family.verb`, vendor types `x.<reverse-dns>/<name>`.";
    UnknownCritical = "schema.unknown_critical": "An event that must be understood is of an unknown type.", "Use a newer palog; until then nothing can be concluded.";
    UnknownType = "schema.unknown_type": "A record or event is of a type that this version does not know.", "It is kept verbatim. A newer palog may know it.";
    UnknownBlock = "schema.unknown_block": "A content block is of a type that this version does not know.", "It is kept verbatim. A newer palog may know it.";
    UnexpectedShape = "schema.unexpected_shape": "A record of a known type does not have the form of that type.", "It is kept verbatim. Report the version of the client that wrote it.";
    LegacyHeader = "schema.legacy_header": "The header is of a form that the client has given up.", "Nothing: it is read here. The client of today may not.";
    MissingBlob = "blob.missing": "A blob is not there.", "Copy the directory `NAME.palog.blobs` together with the log.";
    BlobMismatch = "blob.mismatch": "A blob has other bytes than its name says.", "Restore it from another copy.";
    // identity and graph
    Replay = "id.replay": "A record is repeated under the same id with the same payload.", "Nothing: the first one counts, the copy is kept.";
    IdReused = "id.reused": "Two different records have the same id.", "Both are kept. Report the version of the client that wrote them.";
    BypassedRecord = "graph.bypassed_record": "A walk along parents misses a record that the conversation needs.", "Nothing: the record is on the path here.";
    Cycle = "graph.cycle": "Parents form a loop.", "The loop is cut where it closes; all records are kept.";
    MissingParent = "graph.missing_parent": "A record names a parent that is not in the input.", "The order of the file is followed there, and marked as inferred.";
    // actions
    CallWithoutResult = "tool.call_without_result": "A call has no outcome in the log, and nothing after it needed one.", "Find out whether it ran before anything is repeated.";
    ResultLost = "tool.result_lost": "A call has no outcome in the log, although the conversation went on.", "Find out whether it ran, if that still matters.";
    OrphanResult = "tool.result_without_call": "A result names a call that is not in the log.", "It is kept. The call may stand in another file.";
    EndsDisagree = "action.ends_disagree": "Two ends of one attempt disagree on whether the effect took place.", "Its outcome is unknown; look it up at the target.";
    UnproposedAction = "action.not_proposed": "An action ends, starts or is asked about that was never proposed.", "It is taken as an action without arguments.";
    EndedTwice = "action.ended_twice": "An attempt ends twice, with the same effect.", "Nothing: it ended once.";
    ProposedTwice = "action.proposed_twice": "An action is proposed again, with other arguments.", "The first proposal counts. Report the program that reuses the id.";
    ArgsMismatch = "action.args_mismatch": "The arguments of an action are not those that its digest was taken from.", "The line was changed, or the digest was taken from something else; compare with another copy.";
    KeyConflict = "action.key_conflict": "One idempotency key stands for two sets of arguments.", "Find out which of the two the target acted on.";
    NoBasis = "action.no_basis": "A reconciliation says that nothing happened, without a reason why nothing will.", "Fence the target or end the old executor, then reconcile again.";
    UnknownInput = "input.not_queued": "An input ends that was never queued.", "Nothing: it does not wait.";
    VoidRequest = "approval.void_request": "Leave is asked for an attempt that is settled.", "Nothing: the request has no effect.";
    // ownership, work, world, family
    LateWrite = "lease.late_write": "An event was written under an epoch that was over.", "Nothing: it has no effect. Stop the program that wrote it, and look up what it did.";
    NoEpoch = "lease.no_epoch": "An event carries no epoch, although a lease was taken.", "The program that wrote it cannot be fenced; report it there.";
    StalePlan = "plan.stale_revision": "A plan is not newer than the present one.", "Nothing: it has no effect. Read the present plan, and revise that.";
    CommandRepeated = "command.repeated": "A command is issued or ended a second time.", "Nothing: it counts once.";
    StaleCommand = "command.stale": "A command was to be applied that expects another plan.", "Nothing: it has no effect. Issue it again for the present plan, if it is still wanted.";
    UnknownSubject = "state.unknown_subject": "An event is about something that the log does not have.", "Nothing, if it stands in another log; else report the program that wrote it.";
    CheckpointMismatch = "checkpoint.mismatch": "A checkpoint does not agree with the events before it.", "Do not go on from it. Compare it with the state, and make another one.";
    ParentMissing = "family.parent_missing": "The log goes on from another one, which is not at hand.", "Earlier history is left out. Keep the parent's log together with this one.";
    SharedWorkspace = "family.shared_workspace": "A fork wrote into the workspace of its parent.", "Look at the workspace, and record it.";
    // agents, usage, time, session, state, size
    LinkInferred = "agent.link_inferred": "A child is linked to its call by its prompt only.", "Check the link if it matters.";
    AgentOrphan = "agent.orphan": "A child has no call that made it.", "It is kept as a log of its own.";
    CumulativeReemit = "usage.cumulative_reemit": "A running total of tokens was written again without change.", "Nothing: only differences count.";
    UsageSuperseded = "usage.stream_partial_superseded": "Token counts were replaced by a later record of the same response.", "Nothing: the last record counts.";
    TimeBackwards = "time.backwards": "Time runs backwards in file order.", "Nothing: times are never used for order.";
    TimeMissing = "time.missing": "A record has no time.", "Nothing: times are never made up.";
    BadTime = "time.malformed": "A time is not RFC 3339 in UTC.", "The event has no time; the source keeps the text.";
    ForeignRecord = "session.foreign_record": "A record belongs to another session.", "It is kept, and changes nothing here.";
    SessionMismatch = "session.id_mismatch": "A record carries another session id than its file.", "It is kept in the order of the file.";
    SourceNotOpened = "source.not_opened": "An event names a source that the log does not open.", "The program that wrote the log breaks the format; report it there.";
    ForkedByReference = "session.forked_by_reference": "The history of the session goes on from a prefix in the file of another one.", "Import that file as well: its events are those before the first one here.";
    ForkedPrefix = "session.forked_prefix": "Records are copies from the session that this one was forked from.", "They are marked as copies and counted there only.";
    NothingRecognised = "session.nothing_recognised": "A file that should hold a session holds no record that is known.", "Name the format with --from, or check that it is the right file.";
    SessionRepeated = "session.repeated": "A session stands in more than one file.", "Each file has a log of its own, under the same id. Compare them: one may be an old copy of the other.";
    QueuedPrompt = "state.queued_prompt": "Input is still queued at the end.", "It waits to be given to the model.";
    LeftBeside = "session.left_beside": "Files that belong to the session lie beside the input and were not read.", "Import the directory instead.";
    Unreadable = "session.unreadable": "A file that belongs to the session could not be read.", "Check its permissions and import again.";
    NotFollowed = "session.not_followed": "A link, or something that is no file, lies in a folder of the session and was not read.", "Put the file itself in its place, if it belongs to the session, and import again.";
    DuplicateBlob = "bulk.duplicate_blob": "Large content stands in the source more than once.", "Nothing: it is stored once.";
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Code {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Code".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let codes = Code::ALL
            .iter()
            .map(|code| serde_json::json!({"const": code, "description": code.meaning(), "type": "string"}));
        schemars::json_schema!({"description": "What is wrong, `family.what`.", "oneOf": codes.collect::<Vec<_>>()})
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        let known = Code::ALL.iter().copied().find(|c| c.as_str() == text);
        known.ok_or_else(|| serde::de::Error::custom(format!("unknown diagnostic code {text:?}")))
    }
}

/// Where a finding is: every member is optional, none is `null` on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// The input, as the user named it or as a path within what was imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Offset in bytes from the start of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Length in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Id of the record or event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// The id that it refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<String>,
    /// The call or action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The type of the record, event or block.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "type")]
    pub kind: Option<String>,
    /// Anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What is wrong.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// The rule of the spec that it is about.
    pub rule: Option<&'static str>,
    /// Where it is.
    pub place: Place,
    /// The particulars of this case, in words.
    pub why: Option<String>,
}

impl Diagnostic {
    /// A finding without particulars.
    #[must_use]
    pub fn new(code: Code, severity: Severity, place: Place) -> Self {
        Diagnostic { code, severity, rule: None, place, why: None }
    }

    /// Adds the particulars.
    #[must_use]
    pub fn because(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    /// Names the rule.
    #[must_use]
    pub fn rule(mut self, rule: &'static str) -> Self {
        #[cfg(test)]
        assert!(crate::rules::of(self.code).contains(&rule), "{}: {rule} is not one of its rules", self.code);
        self.rule = Some(rule);
        self
    }
}

/// Findings of one run: all are counted, the first of each code are kept with their places.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    groups: Vec<Group>,
}

/// Findings of one code and severity.
#[derive(Clone, Debug)]
pub struct Group {
    /// The code.
    pub code: Code,
    /// The severity.
    pub severity: Severity,
    /// The rule, where all have the same.
    pub rule: Option<&'static str>,
    /// How many there were.
    pub count: u64,
    /// The first of them, at most [`Diagnostics::KEPT`].
    pub first: Vec<Diagnostic>,
}

impl Diagnostics {
    /// How many findings of one code and severity are kept with their places.
    pub const KEPT: usize = 1000;

    /// Takes a finding in.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let (code, severity) = (diagnostic.code, diagnostic.severity);
        let index = match self.groups.iter().position(|g| (g.code, g.severity) == (code, severity)) {
            Some(index) => index,
            None => {
                self.groups.push(Group { code, severity, rule: diagnostic.rule, count: 0, first: Vec::new() });
                self.groups.len() - 1
            }
        };
        let group = &mut self.groups[index];
        group.count += 1;
        if group.first.len() < Self::KEPT {
            group.first.push(diagnostic);
        }
    }

    /// Takes in all findings of another run.
    pub fn extend(&mut self, other: Diagnostics) {
        for group in other.groups {
            let more = group.count - group.first.len() as u64;
            let key = (group.code, group.severity);
            group.first.into_iter().for_each(|d| self.push(d));
            if let Some(mine) = self.groups.iter_mut().find(|g| (g.code, g.severity) == key) {
                mine.count += more;
            }
        }
    }

    /// The findings by code and severity, in the order in which each was first met.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// How many findings of `severity` there were.
    #[must_use]
    pub fn count(&self, severity: Severity) -> u64 {
        self.groups.iter().filter(|g| g.severity == severity).map(|g| g.count).sum()
    }

    /// Whether there was none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

/// Findings of one code and severity, as they are written (spec 07, "Diagnostics").
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// What is wrong.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// The rule of the specification, where all have the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'static str>,
    /// How many there were.
    pub count: u64,
    /// Where the first of them are.
    pub at: Vec<Place>,
}

impl From<&Group> for Finding {
    /// The particulars of a finding become the `detail` of its place, where it has no other.
    fn from(group: &Group) -> Self {
        let place =
            |d: &Diagnostic| Place { detail: d.place.detail.clone().or_else(|| d.why.clone()), ..d.place.clone() };
        let at = group.first.iter().map(place).collect();
        Finding { code: group.code, severity: group.severity, rule: group.rule, count: group.count, at }
    }
}

/// Written as a list of [`Finding`]s.
impl Serialize for Diagnostics {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(self.groups.iter().map(Finding::from))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Diagnostics {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Findings".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        <Vec<Finding> as schemars::JsonSchema>::json_schema(generator)
    }
}
