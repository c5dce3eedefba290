//! The log itself, its sources, what was observed, the definition the agent ran under, and notes (spec 03, "Record").

use crate::envelope::Time;
use crate::json::{Raw, Str, Value};
use crate::wire::{wire, words};

words! {
    /// A kind of fact that a source writes durably, or does not (spec 03, "What silence means").
    pub enum Recorded {
        /// A proposed action.
        ActionProposed = "action.proposed",
        /// The start of an action, before it acts.
        ActionStarted = "action.started",
        /// The end of an action.
        ActionEnded = "action.ended",
        /// A question for approval.
        ApprovalRequested = "approval.requested",
        /// The end of such a question.
        ApprovalEnded = "approval.ended",
        /// Input that waits.
        InputQueued = "input.queued",
        /// What became of it.
        InputEnded = "input.ended",
        /// The end of a turn.
        TurnEnded = "turn.ended",
        /// Who holds the session.
        Lease = "lease",
        /// The end of a child.
        ChildEnded = "child.ended",
        /// Token counts.
        Usage = "usage",
        /// The state of the workspace.
        Workspace = "workspace",
    }

    /// How a log ended (spec 03).
    pub enum LogEnd {
        /// Nothing more is to come.
        Complete = "complete",
        /// The writer stopped on purpose in mid work.
        Interrupted = "interrupted",
        /// The session goes on elsewhere, and only there.
        Transferred = "transferred",
    }

    /// What happened to a source (spec 03).
    pub enum SourceChange {
        /// Somebody else went on with it in another place.
        GrownElsewhere = "grown_elsewhere",
        /// Records at its end are gone.
        Truncated = "truncated",
        /// It holds other records than before.
        Rewritten = "rewritten",
        /// It is gone.
        Vanished = "vanished",
        /// Records in its middle are missing.
        Gap = "gap",
    }

    /// What a fork works in (spec 03).
    pub enum ForkWorkspace {
        /// In its parent's workspace.
        Same = "same",
        /// In a copy of it.
        Copy = "copy",
        /// In one that was made from a checkpoint.
        Checkpoint = "checkpoint",
        /// In none.
        None = "none",
    }

    /// What a log is to its parent (spec 03).
    pub enum ParentMode {
        /// Another branch of the same history; the parent may go on.
        Fork = "fork",
        /// The same session, elsewhere or later.
        Continue = "continue",
        /// A child agent.
        Spawn = "spawn",
    }

    /// Whether the order of a source's records is the source's own (spec 03).
    pub enum SourceOrder {
        /// The source orders its records.
        Source = "source",
        /// The importer did.
        Synthesized = "synthesized",
    }
}

wire! {
    /// The program that ran the session.
    pub struct Agent<'a> {
        /// Its name, for example `claude-code`.
        name: Str<'a>,
        /// Its version.
        version?: Str<'a>,
    }

    /// How a log was derived from another format.
    pub struct Derived<'a> {
        /// Name and revision of the mapping, for example `claude-code/1`.
        mapping: Str<'a>,
    }

    /// The log that this one came out of.
    pub struct Parent<'a> {
        /// Its id.
        log: Str<'a>,
        /// Its native session id.
        session?: Str<'a>,
        /// Where in the parent, as the source puts it.
        at?: Str<'a>,
        /// The last event of the parent that this log goes on from.
        event?: Str<'a>,
        /// The action of the parent that made this log.
        action?: Str<'a>,
        /// What this log is to its parent.
        mode: ParentMode,
        /// What a fork works in; absent = nobody said.
        workspace?: ForkWorkspace,
    }

    /// `log.opened`: seq 0 of every log (spec 03).
    pub struct LogOpened<'a> {
        /// Version of the specification.
        spec: Str<'a>,
        /// Native id of the session.
        session: Str<'a>,
        /// The program that ran it.
        agent: Agent<'a>,
        /// Who owns the log.
        owner?: Str<'a>,
        /// What a live writer records durably.
        records?: Vec<Recorded>,
        /// Set where the log was made from another format.
        derived?: Derived<'a>,
        /// The log that this one came out of.
        parent?: Parent<'a>,
        /// The environment at the start.
        env?: Raw<'a>,
    }

    /// `log.closed`: nothing follows but notes (spec 03).
    pub struct LogClosed<'a> {
        /// How it ended.
        how: LogEnd,
        /// In the writer's words.
        reason?: Str<'a>,
    }

    /// `source.opened`: from here on events may come from this source; a later one of the same name replaces it (spec 03).
    pub struct SourceOpened<'a> {
        /// Its name in this log; a role, never a path.
        source: Str<'a>,
        /// The program that wrote it.
        vendor: Str<'a>,
        /// The version of that program.
        version?: Str<'a>,
        /// Where it was found, as a path within what was imported.
        locator: Str<'a>,
        /// What its producer writes durably; the closed list that gives silence its meaning.
        records: Vec<Recorded>,
        /// Whether its bytes are kept beside the log.
        kept: bool,
        /// Whose order the records have.
        order: SourceOrder,
    }

    /// `source.changed`: a source is not any more what it was (spec 03).
    pub struct SourceChanged<'a> {
        /// The source.
        source: Str<'a>,
        /// What happened to it.
        how: SourceChange,
        /// Where it differs from before, in bytes.
        at?: u64,
    }

    /// `observation.recorded`: what somebody saw, which changes no state (spec 03, spec 05 "Observations").
    pub struct ObservationRecorded<'a> {
        /// What was seen: `waiting`, `busy`, `idle`, `owner_alive`, `task`, `output` … (open).
        fact: Str<'a>,
        /// The action, child or session that it is about; absent = that of the log.
        subject?: Str<'a>,
        /// When it was seen to be so.
        as_of?: Time<'a>,
        /// The source that showed it.
        source: Str<'a>,
        /// The source's own words.
        detail?: Value<'a>,
    }

    /// `config.set`: members of the definition that the agent runs under from here on; members that are absent stay (spec 03).
    pub struct ConfigSet<'a> {
        /// Model.
        model?: Str<'a>,
        /// Instructions.
        instructions?: Value<'a>,
        /// Names of the tools on offer.
        tools?: Vec<Str<'a>>,
        /// Names of the skills on offer.
        skills?: Vec<Str<'a>>,
        /// Permission mode, in the vendor's word.
        permission_mode?: Str<'a>,
        /// Other mode of the client, in the vendor's word.
        mode?: Str<'a>,
        /// Version of the client.
        client_version?: Str<'a>,
        /// Working directory.
        directory?: Str<'a>,
        /// Branch of the version control system.
        branch?: Str<'a>,
        /// Title of the session.
        title?: Str<'a>,
        /// Revision of the policy.
        policy_revision?: Str<'a>,
        /// Digest of the manifest.
        manifest_digest?: Str<'a>,
    }

    /// The payload of an `x.` event that keeps a native record which maps to nothing (spec 03, "Vendor types").
    pub struct KeptRecord<'a> {
        /// The record, verbatim.
        record: Value<'a>,
    }

    /// `redaction.applied`: content was taken out (spec 03).
    pub struct RedactionApplied<'a> {
        /// The events whose content was taken out.
        events?: Vec<Str<'a>>,
        /// The blobs that were deleted.
        blobs?: Vec<Str<'a>>,
        /// The kept sources of which something was deleted.
        sources?: Vec<Str<'a>>,
        /// Why, in words that give nothing away.
        reason?: Str<'a>,
    }

    /// `note.added`: record keeping that changes no state but the title (spec 03).
    pub struct NoteAdded<'a> {
        /// What kind of note: `source_end`, `torn`, `fragment`, `summary`, `record` … (open).
        kind: Str<'a>,
        /// In words.
        text?: Value<'a>,
        /// The event that it is about; a `summary` is the session's title once that event is there.
        about?: Str<'a>,
        /// The source that it is about.
        source?: Str<'a>,
        /// Offset in that source, in bytes.
        at?: u64,
        /// Length in bytes.
        len?: u64,
        /// `sha256:` and the digest of what it is about.
        digest?: Str<'a>,
        /// Number of records that it is about.
        records?: u64,
        /// Whether the last record had its line ending.
        terminated?: bool,
        /// Bytes that are no record.
        bytes?: Value<'a>,
    }
}

impl<'a> LogOpened<'a> {
    /// The opening of a log of the native session `session` that `agent` ran, by the version that this crate writes.
    #[must_use]
    pub fn new(session: impl Into<Str<'a>>, agent: impl Into<Str<'a>>) -> Self {
        LogOpened {
            spec: crate::envelope::SPEC.into(),
            session: session.into(),
            agent: Agent { name: agent.into(), version: None },
            owner: None,
            records: None,
            derived: None,
            parent: None,
            env: None,
        }
    }
}
