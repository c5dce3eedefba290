//! Imports one session: its rows in a database, or its line in an export.

use std::fs;
use std::path::PathBuf;

use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog::envelope::{ActorKind, CopyHow};
use palog::events::{
    ChildKind, ChildLink, ChildSpawned, ConfigSet, LogClosed, LogEnd, Parent, ParentMode, Recorded, SourceOrder,
};
use palog::json::Value;
use palog_adapter::ids::{self, Ids};
use palog_adapter::sqlite::KeptRows;
use palog_adapter::{ImportError, InputReport, Log, LogName, LogReport, Options, Report, SourceEnd, Target, output};

use crate::batches::{self, Beginning, Planned, Sketch};
use crate::calls::{Calls, calls};
use crate::conversation::{Conversation, Written};
use crate::database::Database;
use crate::export::{self, Export, Exported};
use crate::family::{self, Family, Kin, Relation};
use crate::paths::{Origin, Session};
use crate::record::Record;
use crate::{FORMAT, delegations, sidecars, usage};

/// What the client records durably: only the absence of token counts means that there were none. Calls are written with their
/// response, results may be lost with the process, and neither starts nor approvals are written.
const RECORDS: &[Recorded] = &[Recorded::Usage];

/// Imports one session.
///
/// # Errors
/// When the input cannot be read, or the target refuses. The target is aborted then.
pub fn import(session: &Session, target: &mut dyn Target, options: &Options) -> Result<Report, ImportError> {
    output::all_or_none(target, |target| match &session.origin {
        Origin::Database(database) => from_database(session, database, target, options),
        Origin::Export(export) => from_export(session, export, target, options),
        Origin::Unreadable(path, why) => {
            Err(ImportError::Read { path: path.clone(), error: std::io::Error::other(why.clone()) })
        }
    })
}

/// What is known of a session before its messages are read.
struct Known<'f> {
    kin: &'f Kin,
    family: &'f Family,
    relation: Option<Relation>,
    source: &'static str,
}

/// Where rows of other sessions come from.
trait Others {
    /// Hands on the messages of a session.
    fn messages(&self, session: &str, take: &mut dyn FnMut(Record)) -> Result<(), ImportError>;
}

impl Others for Database {
    fn messages(&self, session: &str, take: &mut dyn FnMut(Record)) -> Result<(), ImportError> {
        self.messages(session, |row| {
            take(Record::of_row(row));
            Ok(())
        })
    }
}

impl Others for Export {
    fn messages(&self, session: &str, take: &mut dyn FnMut(Record)) -> Result<(), ImportError> {
        let found = self.read(session).map_err(|error| ImportError::Read { path: self.path.clone(), error })?;
        let messages = found.map(|found| found.messages).unwrap_or_default();
        messages.iter().enumerate().filter_map(|(at, raw)| export::message(raw, at)).for_each(take);
        Ok(())
    }
}

impl<'f> Known<'f> {
    fn new(family: &'f Family, id: &str, source: &'static str) -> Option<Self> {
        let kin = family.get(id)?;
        Some(Known { kin, family, relation: family.relation(kin), source })
    }

    fn sketches(&self, others: &dyn Others, session: &str) -> Result<Vec<Sketch>, ImportError> {
        let ids = Ids::new(&FORMAT, session, self.source);
        let mut sketches = Vec::new();
        others.messages(session, &mut |record| sketches.push(Sketch::of(&record, &ids)))?;
        Ok(sketches)
    }

    /// What each row of the session is.
    fn plan(&self, others: &dyn Others) -> Result<Vec<Planned>, ImportError> {
        let beginning = match self.relation {
            Some(Relation::Branch) => Beginning::Branch,
            Some(Relation::Continuation) => Beginning::Compacted,
            Some(Relation::Agent) | None => Beginning::Empty,
        };
        let before = match self.kin.parent.as_deref().filter(|_| beginning != Beginning::Empty) {
            Some(parent) => self.sketches(others, parent)?,
            None => Vec::new(),
        };
        Ok(batches::plan(&self.sketches(others, &self.kin.id)?, beginning, &before))
    }

    /// The session that it came out of, and the call that made it.
    fn parent(&self, others: &dyn Others) -> Result<Option<Parent<'static>>, ImportError> {
        let (Some(relation), Some(from)) = (self.relation, self.kin.parent.as_deref()) else { return Ok(None) };
        let mut action = None;
        if relation == Relation::Agent {
            let handed_over = handed_over(others, from)?;
            action = family::caller(&handed_over, &goal(others, &self.kin.id)?).map(|(action, _)| action.to_owned());
        }
        Ok(Some(Parent {
            log: ids::log(&FORMAT, from).into(),
            session: Some(from.to_owned().into()),
            at: None,
            event: None,
            action: action.map(Into::into),
            mode: relation.mode(),
            workspace: None,
        }))
    }

    /// Begins the log. Returns it with its name and the place for its sources.
    fn open(
        &self,
        target: &mut dyn Target,
        others: &dyn Others,
    ) -> Result<(Log, LogName, Option<PathBuf>), ImportError> {
        let parent = self.parent(others)?;
        let by = parent.as_ref().filter(|p| p.mode == ParentMode::Spawn).and_then(|p| p.session.as_ref());
        let name = LogName { session: self.kin.id.clone(), parent: by.map(ToString::to_string) };
        let mut output = target.open(&name)?;
        let place = output.sources.take();
        Ok((Log::open(&FORMAT, &self.kin.id, parent, output)?, name, place))
    }

    /// Why rows at the beginning are copies, and of which log.
    fn origin(&self) -> Option<(String, CopyHow)> {
        let how = match self.relation? {
            Relation::Branch => CopyHow::Fork,
            Relation::Continuation => CopyHow::Compaction,
            Relation::Agent => return None,
        };
        Some((ids::log(&FORMAT, self.kin.parent.as_deref()?), how))
    }
}

/// The calls of a session that handed work over: the action, and its arguments.
fn handed_over(others: &dyn Others, session: &str) -> Result<Vec<(String, String)>, ImportError> {
    let mut all = Calls::default();
    others.messages(session, &mut |record| {
        for made in calls(&record).unwrap_or_default() {
            all.propose(&made.id, &made.name, made.args.get());
        }
    })?;
    Ok(all.delegations)
}

/// What a subagent was asked to do.
fn goal(others: &dyn Others, session: &str) -> Result<String, ImportError> {
    let mut goal = None;
    others.messages(session, &mut |record| {
        if goal.is_none() && record.text("role").as_deref() == Some("user") {
            goal = Some(record.content().text().to_owned());
        }
    })?;
    Ok(goal.unwrap_or_default())
}

fn from_database(
    session: &Session,
    database: &Database,
    target: &mut dyn Target,
    options: &Options,
) -> Result<Report, ImportError> {
    let gone = || ImportError::Read { path: database.path.clone(), error: std::io::ErrorKind::NotFound.into() };
    let known = Known::new(&database.family, &session.id, "store").ok_or_else(gone)?;
    let own = database.session(&session.id).ok_or_else(gone)?;
    let plan = known.plan(database)?;
    let (mut log, name, place) = known.open(target, database)?;
    let place = place.filter(|_| options.sources);
    log.open_source("store", &database.locator, RECORDS, SourceOrder::Source, place.is_some())?;
    database.findings.iter().for_each(|found| log.diagnostics.push(found.clone()));
    let mut kept = KeptRows::begin(place.as_deref(), "store")?;
    let store = &database.store;
    kept.schema(&store.schema, store.user_version, store.application_id)?;
    let path = database.path.display().to_string();
    let input = InputReport { path, format: "hermes.sqlite".into(), ..InputReport::default() };
    let mut out = Conversation::new(log, "store", input);
    out.origin = known.origin();
    out.is_agent = known.relation == Some(Relation::Agent);
    kept.keep(&own)?;
    let own = Record::of_row(own);
    let mut beside = Vec::new();
    database.beside(&own, |row| {
        beside.push(row);
        Ok::<_, ImportError>(())
    })?;
    let (prompts, beside): (Vec<_>, Vec<_>) = beside.into_iter().partition(|row| row.table() == "system_prompts");
    let delegated = beside.iter().filter(|row| row.table() == "async_delegations");
    out.delegations = delegated.filter_map(|row| row.text("delegation_id")).map(str::to_owned).collect();
    configure(&mut out, &own)?;
    for row in prompts {
        kept.keep(&row)?;
        let record = Record::of_row(row);
        out.count(&record);
        match record.text("prompt") {
            Some(prompt) => {
                let set = ConfigSet { instructions: Some(Value::from(&*prompt)), ..EMPTY_CONFIG };
                let mut here = out.here(&record, "created_at");
                out.emit(&mut here, ActorKind::Harness, set, None)?;
            }
            None => out.keep(&record)?,
        }
    }
    let mut planned = plan.iter();
    database.messages(&session.id, |row| -> Result<(), ImportError> {
        kept.keep(&row)?;
        let nothing = Planned::default();
        out.message(Record::of_row(row), planned.next().unwrap_or(&nothing))?;
        Ok(())
    })?;
    out.go_on()?;
    let mut by_model = Vec::new();
    let mut others = Vec::new();
    for row in beside {
        kept.keep(&row)?;
        let record = Record::of_row(row);
        out.count(&record);
        match record.table.as_str() {
            "session_model_usage" => by_model.push(record),
            _ => others.push(record),
        }
    }
    usage::tell(&mut out, &own, &by_model)?;
    for record in &others {
        if record.table == "async_delegations" {
            delegations::tell(&mut out, record)?;
        } else {
            if !KNOWN_TABLES.contains(&record.table.as_str()) {
                let place = Place { kind: Some(record.table.clone()), ..out.place(record) };
                out.log.diagnostics.push(Diagnostic::new(Code::UnknownType, Severity::Info, place));
            }
            out.keep(record)?;
        }
    }
    row_count(&mut out, &own);
    let mut report = Report::default();
    sidecars::write(&mut out, &session.sidecars, place.as_deref(), &mut report)?;
    conclude(&mut out, &known, database, &own)?;
    let end = kept.finish()?;
    out.log.close_source("store", &end)?;
    let records = out.input.records;
    out.input.by_type = database.rows.clone();
    out.input.records = database.rows.values().sum();
    out.input.foreign = out.input.records - records;
    finish(out, name, records, report)
}

fn from_export(
    session: &Session,
    export: &Export,
    target: &mut dyn Target,
    options: &Options,
) -> Result<Report, ImportError> {
    let unreadable = |error| ImportError::Read { path: export.path.clone(), error };
    let gone = || unreadable(std::io::ErrorKind::NotFound.into());
    let known = Known::new(&export.family, &session.id, "export").ok_or_else(gone)?;
    let Exported { bytes, session: own, messages, segments } =
        export.read(&session.id).map_err(unreadable)?.ok_or_else(gone)?;
    let plan = known.plan(export)?;
    let (mut log, name, place) = known.open(target, export)?;
    let place = place.filter(|_| options.sources);
    log.open_source("export", &export.locator, RECORDS, SourceOrder::Source, place.is_some())?;
    if export.ids().next() == Some(session.id.as_str()) {
        export.findings.iter().for_each(|found| log.diagnostics.push(found.clone()));
    }
    if let Some(place) = &place {
        let line = [bytes.as_slice(), b"\n"].concat();
        fs::write(place.join("export"), line).map_err(|e| ImportError::Write(e.into()))?;
    }
    let path = export.path.display().to_string();
    let input = InputReport { path, format: "hermes.export".into(), lines: 1, ..InputReport::default() };
    let mut out = Conversation::new(log, "export", input);
    out.origin = known.origin();
    out.is_agent = known.relation == Some(Relation::Agent);
    configure(&mut out, &own)?;
    let why = "rows that a compaction or an undo left behind, counts by model, and delegations are not in it";
    let partial = Diagnostic::new(Code::PartialExport, Severity::Info, out.place(&own)).because(why);
    out.log.diagnostics.push(partial);
    if segments {
        let place = Place { kind: Some("segments".into()), ..out.place(&own) };
        out.warn(Code::UnknownBlock, place);
    }
    let mut planned = plan.iter();
    for (at, raw) in messages.iter().enumerate() {
        match export::message(raw, at) {
            Some(record) => out.message(record, planned.next().unwrap_or(&Planned::default()))?,
            None => {
                let place = Place { kind: Some("message".into()), ..out.place(&own) };
                out.warn(Code::UnexpectedShape, place);
            }
        }
    }
    out.go_on()?;
    usage::tell(&mut out, &own, &[])?;
    conclude(&mut out, &known, export, &own)?;
    let end = SourceEnd::of(&[bytes.as_slice(), b"\n"].concat(), out.input.records);
    out.log.close_source("export", &end)?;
    let records = out.input.records;
    finish(out, name, records, Report::default())
}

fn finish(out: Conversation, name: LogName, records: u64, mut report: Report) -> Result<Report, ImportError> {
    report.inputs.insert(0, out.input);
    let (diagnostics, events) = out.log.finish()?;
    report.logs.push(LogReport {
        path: None,
        format: FORMAT.name,
        session: name.session,
        parent: name.parent,
        records,
        events,
        onto: None,
        severities: [Severity::Error, Severity::Void, Severity::Warning, Severity::Info]
            .map(|s| (s, diagnostics.count(s)))
            .into(),
    });
    report.diagnostics.extend(diagnostics);
    Ok(report)
}

/// Tables of the client whose rows map to nothing.
const KNOWN_TABLES: &[&str] = &[
    "compression_locks",
    "conversation_generations",
    "delivery_obligations",
    "gateway_heartbeats",
    "gateway_hygiene_state",
    "gateway_routing",
    "session_turn_leases",
];

/// A definition that sets nothing.
const EMPTY_CONFIG: ConfigSet<'static> = ConfigSet {
    model: None,
    instructions: None,
    tools: None,
    skills: None,
    permission_mode: None,
    mode: None,
    client_version: None,
    directory: None,
    branch: None,
    title: None,
    policy_revision: None,
    manifest_digest: None,
};

/// The definition, as the session's row has it.
fn configure(out: &mut Conversation, own: &Record) -> Written {
    out.count(own);
    let word = |column: &str| own.word(column).map(|word| word.into_owned().into());
    let set = ConfigSet {
        model: word("model"),
        instructions: own.word("system_prompt").map(|prompt| Value::from(&*prompt)),
        directory: word("cwd"),
        branch: word("git_branch"),
        title: word("title"),
        ..EMPTY_CONFIG
    };
    let mut here = out.here(own, "started_at");
    out.emit(&mut here, ActorKind::Harness, set, None).map(drop)
}

/// The session's row counts its messages.
fn row_count(out: &mut Conversation, own: &Record) {
    let declared = own.integer("message_count").and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    // Rows that were taken back count, compacted ones do not; a program that makes sessions may count nothing.
    if declared > 0 && !(out.active..=out.present).contains(&declared) {
        let detail = Some(format!("declared {declared}, found {}", out.present));
        let place = Place { session: Some(out.log.session().to_owned()), detail, ..out.place(own) };
        let found = Diagnostic::new(Code::RowCountMismatch, Severity::Warning, place);
        out.log.diagnostics.push(found.because("messages are missing"));
    }
}

/// The children, and how the session ended.
fn conclude(out: &mut Conversation, known: &Known<'_>, others: &dyn Others, own: &Record) -> Result<(), ImportError> {
    let children = known.family.children(&known.kin.id);
    let agents = children.iter().filter(|(_, relation)| *relation == Relation::Agent).count();
    for (child, relation) in children {
        let kind = match relation {
            Relation::Agent => ChildKind::Subagent,
            Relation::Branch => ChildKind::Fork,
            Relation::Continuation => continue,
        };
        let (mut action, mut link) = (None, ChildLink::Explicit);
        if relation == Relation::Agent
            && let Some((caller, only)) = family::caller(&out.calls.delegations, &goal(others, &child.id)?)
        {
            action = Some(caller.to_owned());
            if !(only && agents == 1) {
                link = ChildLink::Inferred;
                let place = Place { session: Some(child.id.clone()), call: action.clone(), ..out.place(own) };
                out.log.diagnostics.push(Diagnostic::new(Code::LinkInferred, Severity::Info, place));
            }
        }
        let spawned = ChildSpawned {
            child: ids::log(&FORMAT, &child.id).into(),
            session: child.id.clone().into(),
            action: action.map(Into::into),
            kind,
            link,
        };
        out.log.about(&format!("child/{}", child.id), 0, spawned)?;
    }
    let reason = known.kin.end_reason.clone();
    let how = match reason.as_deref() {
        Some("agent_close") => LogEnd::Complete,
        Some("compression") if known.family.goes_on(&known.kin.id) => LogEnd::Transferred,
        Some("compression") => {
            let place = out.place(own);
            let found = Diagnostic::new(Code::ContinuationMissing, Severity::Warning, place);
            out.log.diagnostics.push(found.because("closed by a compaction"));
            LogEnd::Interrupted
        }
        // The person left the program, or went on in a branch: the session goes on when it is taken up again.
        _ => return Ok(()),
    };
    let closed = LogClosed { how, reason: reason.map(Into::into) };
    let mut here = out.here(own, "ended_at").after(2);
    out.emit(&mut here, ActorKind::Harness, closed, None)?;
    Ok(())
}
