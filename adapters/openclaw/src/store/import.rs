//! Imports one session of a database: its entries, and what other rows tell of it.

use std::collections::HashMap;

use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog::envelope::ActorKind;
use palog::events::{BranchMoved, ConfigSet, ParentMode, Recorded, SourceOrder};
use palog_adapter::ids::{EventId, Native};
use palog_adapter::sqlite::Row;
use palog_adapter::{ImportError, Log, LogName, Options, Report, Target, Transcript, output};

use super::StoreSession;
use super::approvals::{Approvals, STATE};
use super::family::{bounds, is_spawned, parent};
use super::input::{Input, kept, tell};
use super::rows::{Use, entry_text, use_of};
use super::work::Work;
use crate::FORMAT;
use crate::conversation::{At, Conversation, EMPTY_CONFIG, Known};
use crate::file::logged;
use crate::record::Entry;

/// Name of the source that rows of the agent's database are kept in.
pub(super) const STORE: &str = "store";

/// Versions of the schema that are known.
const VERSIONS: std::ops::RangeInclusive<i64> = 4..=23;

/// What the agent's database records durably, as files do.
const STORE_RECORDS: &[Recorded] = &[Recorded::Usage];

/// What the gateway's database records durably: each request before it is asked, and each answer before what it allows
/// begins.
const STATE_RECORDS: &[Recorded] = &[Recorded::ApprovalRequested, Recorded::ApprovalEnded];

/// Entries that were moved out of the database.
pub(super) const COLD: &str = "session_transcript_cold_archives";

/// Columns that hold the key of a session in the gateway's database.
const KEYS: [&str; 4] = ["source_session_key", "session_key", "requester_session_key", "owner_key"];

/// Tables of the gateway's database that are about all sessions at once.
pub(super) const GLOBAL: [&str; 5] = [
    "gateway_boot_lifecycle",
    "gateway_restart_handoff",
    "gateway_restart_intent",
    "gateway_restart_sentinel",
    "state_leases",
];

pub(super) fn import(
    session: &StoreSession,
    target: &mut dyn Target,
    options: &Options,
) -> Result<Report, ImportError> {
    output::all_or_none(target, |target| Importer::open(session, target, options)?.run())
}

struct Importer<'s> {
    session: &'s StoreSession,
    conversation: Conversation,
    store: Input,
    state: Option<Input>,
    /// When the session of the same key before this one ended, and when this one did, in milliseconds.
    since: Option<i64>,
    until: Option<i64>,
    /// Entries that cannot be read.
    damaged: u64,
}

impl<'s> Importer<'s> {
    fn open(session: &'s StoreSession, target: &mut dyn Target, options: &Options) -> Result<Self, ImportError> {
        let parent = parent(session);
        let is_agent = parent.as_ref().is_some_and(|p| p.mode == ParentMode::Spawn) || is_spawned(session);
        let forked = parent.as_ref().filter(|p| p.mode == ParentMode::Fork);
        let forked_from = forked.and_then(|p| p.session.as_ref()).map(ToString::to_string);
        let mut output = target.open(&LogName { session: session.id.clone(), parent: None })?;
        let place = output.sources.take().filter(|_| options.sources);
        let mut log = Log::open(&FORMAT, &session.id, parent, output)?;
        let store = Input::open(&session.agent, STORE, place.as_deref())?;
        let is_kept = place.is_some();
        log.open_source(STORE, &session.agent.locator, STORE_RECORDS, SourceOrder::Source, is_kept)?;
        let state = session.state.as_ref().map(|state| Input::open(state, STATE, place.as_deref())).transpose()?;
        if let Some(state) = &session.state {
            log.open_source(STATE, &state.locator, STATE_RECORDS, SourceOrder::Synthesized, is_kept)?;
        }
        for database in std::iter::once(&session.agent).chain(&session.state) {
            database.store.findings().into_iter().for_each(|found| log.diagnostics.push(found));
        }
        let version = session.agent.store.user_version;
        let path = session.agent.path.display().to_string();
        if !VERSIONS.contains(&version) {
            let place = Place { input: Some(path.clone()), ..Place::default() };
            let why = format!("version {version}; {} to {} are known", VERSIONS.start(), VERSIONS.end());
            log.diagnostics.push(Diagnostic::new(Code::StoreVersion, Severity::Warning, place).because(why));
        }
        let out = Transcript::new(log, STORE.into(), path, "openclaw.store");
        let (since, until) = bounds(session);
        let known = Known { forked_from, is_agent, ..Known::default() };
        let conversation = Conversation::new(out, known);
        Ok(Importer { session, conversation, store, state, since, until, damaged: 0 })
    }

    fn run(mut self) -> Result<Report, ImportError> {
        let approvals = self.approvals()?;
        self.conversation.known.approvals = approvals;
        let mut work = Work::default();
        self.window()?;
        self.gather(&mut work)?;
        self.entries(&mut work)?;
        work.write_until(i64::MAX, &mut self.conversation)?;
        for request in self.conversation.known.approvals.rest() {
            request.write(&mut self.conversation.out.log, None)?;
        }
        self.inputs()?;
        self.others()?;
        self.conversation.conclude();
        let Importer { session, conversation, store, state, damaged, .. } = self;
        let mut log = conversation.out.log;
        let mut report = Report::default();
        let mut records = 0;
        for (input, damaged) in std::iter::once((store, damaged)).chain(state.map(|state| (state, 0))) {
            let source = input.source;
            let (end, input) = input.finish(damaged)?;
            log.close_source(source, &end)?;
            if source == STORE {
                records = end.records;
            }
            report.inputs.push(input);
        }
        let (diagnostics, events) = log.finish()?;
        report.logs.push(logged(&FORMAT, session.id.clone(), records, events, &diagnostics));
        report.diagnostics.extend(diagnostics);
        Ok(report)
    }

    /// Whether something that happened then, under the key of the session, belongs to this one.
    fn is_of_then(&self, time: Option<i64>) -> bool {
        let Some(time) = time else { return self.until.is_none() };
        self.since.is_none_or(|since| since <= time) && self.until.is_none_or(|until| time < until)
    }

    /// The requests for approval of this session.
    fn approvals(&mut self) -> Result<Approvals, ImportError> {
        let mut approvals = Approvals::default();
        let Some(state) = &self.state else { return Ok(approvals) };
        let key = &self.session.key;
        for row in state.rows("operator_approvals", "WHERE source_session_key = ? ORDER BY created_at_ms", &[key]) {
            let is_own = match row.text("source_session_id") {
                Some(id) => id == self.session.id,
                None => self.is_of_then(row.integer("created_at_ms")),
            };
            if is_own {
                if let Some(state) = &mut self.state {
                    state.keep(&row)?;
                }
                approvals.push(row);
            }
        }
        Ok(approvals)
    }

    /// The row of the session, and that of its key.
    fn window(&mut self) -> Result<(), ImportError> {
        let node = self.session.node();
        let mut set = EMPTY_CONFIG;
        if let Some(row) = &node {
            let name = row.text("label").or(row.text("display_name"));
            set = ConfigSet { title: name.map(|n| n.to_owned().into()), ..set };
        }
        for row in self.session.window().iter().chain(&node) {
            self.store.keep(row)?;
            let is_node = row.table() == "session_nodes";
            let model = row.text("model").filter(|_| !is_node);
            let data = match (is_node, model) {
                (true, _) if set != EMPTY_CONFIG => set.clone().into(),
                (false, Some(model)) => ConfigSet { model: Some(model.to_owned().into()), ..EMPTY_CONFIG }.into(),
                _ => {
                    self.store.unmapped += 1;
                    kept(&self.conversation.out.log, row)
                }
            };
            tell(&mut self.conversation.out.log, STORE, row, 0, ActorKind::Harness, "created_at", data)?;
        }
        Ok(())
    }

    /// The entries, in their order; what other rows tell stands before the first entry that is younger.
    fn entries(&mut self, work: &mut Work) -> Result<(), ImportError> {
        let order = "WHERE session_id = ? ORDER BY seq";
        let store = self.session.agent.store.clone();
        let mut events: HashMap<String, EventId> = HashMap::new();
        let ids = self.conversation.out.ids.clone();
        store.each("transcript_events", order, &[&self.session.id], |row| -> Result<(), ImportError> {
            let text = entry_text(&row).unwrap_or_default();
            if let Ok(Entry { id: Some(id), .. }) = serde_json::from_str::<Entry<'_>>(&text) {
                events.entry(id.to_string()).or_insert_with(|| row.event(&ids, 0));
            }
            Ok(())
        })?;
        self.conversation.known.events = Some(events);
        store.each("transcript_events", order, &[&self.session.id], |row| -> Result<(), ImportError> {
            work.write_until(row.integer("created_at").unwrap_or(i64::MIN), &mut self.conversation)?;
            self.store.keep(&row)?;
            self.row(&row)
        })?;
        let tip = "WHERE session_id = ? ORDER BY active_position DESC";
        let tip = self.session.first("session_transcript_active_events", tip, &[&self.session.id]);
        if let Some((row, seq)) = tip.and_then(|row| Some((row.clone(), row.integer("event_seq")?)))
            && let Some(head) = self.conversation.moved_to(usize::try_from(seq).unwrap_or(usize::MAX))
        {
            self.store.keep(&row)?;
            let moved = BranchMoved { to: head.map_or_else(|| "root".into(), |id| id.hex().into()) };
            tell(&mut self.conversation.out.log, STORE, &row, 0, ActorKind::Harness, "", moved)?;
        }
        Ok(())
    }

    /// One entry.
    fn row(&mut self, row: &Row) -> Result<(), ImportError> {
        let text = entry_text(row).and_then(|text| match serde_json::from_str::<Entry<'_>>(&text) {
            Ok(_) => Ok(text),
            Err(error) => Err(error.to_string()),
        });
        match text {
            Ok(text) => {
                let entry = serde_json::from_str::<Entry<'_>>(&text).unwrap_or_default();
                let (table, key, digest) = (row.table(), row.key(), palog::blob::sha256_hex(&row.line()));
                let native = Native::Row(table, &key, &digest);
                self.conversation.entry(&entry, &text, true, At::Row(row), Some(native))?;
            }
            Err(why) => {
                self.damaged += 1;
                let place = Place {
                    input: Some(self.conversation.out.input.path.clone()),
                    detail: Some(format!("{} {}", row.table(), row.key())),
                    ..Place::default()
                };
                let found = Diagnostic::new(Code::UnexpectedShape, Severity::Warning, place).because(why);
                self.conversation.out.log.diagnostics.push(found);
                let data = kept(&self.conversation.out.log, row);
                tell(&mut self.conversation.out.log, STORE, row, 0, ActorKind::Harness, "created_at", data)?;
                self.conversation.skip();
            }
        }
        Ok(())
    }

    /// Deliveries and children, which have a time each.
    fn gather(&mut self, work: &mut Work) -> Result<(), ImportError> {
        let key = self.session.key.clone();
        if key.is_empty() {
            return Ok(());
        }
        for row in self.store.rows("conversation_deliveries", "WHERE source_session_key = ?", &[&key]) {
            if self.is_of_then(row.integer("created_at")) {
                self.store.keep(&row)?;
                work.push("created_at", STORE, row, None);
            }
        }
        let queued = self.of_key("delivery_queue_entries", "session_key", "enqueued_at");
        let runs = self.of_key("subagent_runs", "requester_session_key", "created_at");
        let tasks = self.of_key("task_runs", "requester_session_key", "created_at");
        for (time, row) in [("enqueued_at", queued), ("created_at", runs), ("created_at", tasks)]
            .into_iter()
            .flat_map(|(time, rows)| rows.into_iter().map(move |row| (time, row)))
        {
            let child = row.text("child_session_key").filter(|child| *child != key).map(str::to_owned);
            let child = child.map(|child| self.current(&child).unwrap_or(child));
            if let Some(state) = &mut self.state {
                state.keep(&row)?;
            }
            work.push(time, STATE, row, child);
        }
        for row in self.store.rows(
            "session_nodes",
            "WHERE spawned_by = ? OR fork_source_session_id = ?",
            &[&key, &self.session.id],
        ) {
            let child = row.text("current_session_id").unwrap_or_default().to_owned();
            if child != self.session.id && self.is_of_then(row.integer("created_at")) {
                self.store.keep(&row)?;
                work.push("created_at", STORE, row, Some(child));
            }
        }
        Ok(())
    }

    /// Rows of the gateway's database that name the session's key.
    fn of_key(&self, table: &str, column: &str, time: &str) -> Vec<Row> {
        let Some(state) = &self.state else { return Vec::new() };
        let rows = state.rows(table, &format!("WHERE {column} = ?"), &[&self.session.key]);
        rows.into_iter().filter(|row| self.is_of_then(row.integer(time))).collect()
    }

    /// The session that a key stands for.
    fn current(&self, key: &str) -> Option<String> {
        let node = self.session.first("session_nodes", "WHERE session_key = ?", &[key])?;
        node.text("current_session_id").map(str::to_owned)
    }

    /// Inputs that were accepted and not yet given to the model.
    fn inputs(&mut self) -> Result<(), ImportError> {
        for row in self.store.rows("session_pending_inputs", "WHERE session_id = ? ORDER BY seq", &[&self.session.id]) {
            self.store.keep(&row)?;
            let known = "WHERE session_id = ? AND message_idempotency_key = ?";
            let by_key = row
                .text("idempotency_key")
                .and_then(|key| self.session.first("transcript_event_identities", known, &[&self.session.id, key]));
            let taken = row.text("consumed_event_id").or(by_key.as_ref().and_then(|r| r.text("event_id")));
            let message = taken.map(|id| self.conversation.first_event(id).hex());
            super::work::input(&mut self.conversation.out.log, &row, message)?;
        }
        Ok(())
    }

    /// All other rows that name the session, and what is true of all sessions.
    fn others(&mut self) -> Result<(), ImportError> {
        let told = ["session_nodes", "session_windows", "transcript_events", "session_pending_inputs"];
        let is_current = self.session.node().is_some();
        let mut others = Vec::new();
        for table in self.session.agent.store.tables().filter(|t| use_of(&t.name) == Use::Kept) {
            if told.contains(&table.name.as_str()) {
                continue;
            }
            if table.has("session_id") {
                others.extend(self.store.rows(&table.name, "WHERE session_id = ?", &[&self.session.id]));
            } else if is_current {
                others.extend(self.store.rows(&table.name, "WHERE session_key = ?", &[&self.session.key]));
            }
        }
        for row in others {
            self.store.keep(&row)?;
            self.store.unmapped += 1;
            let log = &mut self.conversation.out.log;
            if row.table() == COLD {
                let place = Place {
                    input: Some(self.conversation.out.input.path.clone()),
                    detail: row.text("archive_name").map(str::to_owned),
                    ..Place::default()
                };
                let why = format!(
                    "{} entries are in an archive, which was not read",
                    row.integer("event_count").unwrap_or(0)
                );
                log.diagnostics.push(Diagnostic::new(Code::Unreadable, Severity::Error, place).because(why));
            }
            let data = kept(log, &row);
            tell(log, STORE, &row, 0, ActorKind::Harness, "created_at", data)?;
        }
        if let Some(node) = self.session.node() {
            super::work::status(&mut self.conversation.out.log, &node)?;
        }
        self.state_rows()
    }

    fn state_rows(&mut self) -> Result<(), ImportError> {
        let Some(state) = &self.state else { return Ok(()) };
        let key = &self.session.key;
        let is_current = self.session.node().is_some();
        let told = ["operator_approvals", "delivery_queue_entries", "subagent_runs", "task_runs"];
        let mut rows: Vec<(Row, bool)> = Vec::new();
        for table in state.database.store.tables().filter(|t| use_of(&t.name) == Use::Kept) {
            let name = table.name.as_str();
            if told.contains(&name) {
                continue;
            }
            if GLOBAL.contains(&name) {
                rows.extend(state.rows(name, "", &[]).into_iter().filter(|_| is_current).map(|row| (row, true)));
            } else if matches!(name, "cron_jobs" | "cron_run_receipts") {
                // Jobs are the agent's: they are told in the log of its main session.
                let agent = key.split(':').nth(1).unwrap_or_default();
                let is_main = is_current && key.ends_with(":main") && key.split(':').count() == 3;
                let own = |row: &Row| row.text("agent_id").is_none_or(|id| id == agent);
                rows.extend(state.rows(name, "", &[]).into_iter().filter(|r| is_main && own(r)).map(|row| (row, true)));
            } else if let Some(column) = KEYS.iter().find(|column| table.has(column)).filter(|_| !key.is_empty()) {
                let of_key = state.rows(name, &format!("WHERE {column} = ?"), &[key]);
                let is_own = |row: &Row| match row.text("session_id") {
                    Some(id) => id == self.session.id,
                    None => self.until.is_none(),
                };
                rows.extend(of_key.into_iter().filter(is_own).map(|row| (row, false)));
            }
        }
        for (row, is_observed) in rows {
            let Some(state) = &mut self.state else { return Ok(()) };
            state.keep(&row)?;
            let log = &mut self.conversation.out.log;
            if is_observed {
                super::work::observe(log, &row)?;
            } else {
                state.unmapped += 1;
                let data = kept(log, &row);
                tell(log, STATE, &row, 0, ActorKind::Harness, "created_at", data)?;
            }
        }
        Ok(())
    }
}
