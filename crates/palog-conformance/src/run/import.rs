//! Runs a case about an import.

use std::path::Path;

use serde_json::Value;

use super::Outcome;
use crate::case::{Expectation, Source};
use crate::compare;
use crate::implementation::{Implementation, Import, Quality, World};
use crate::json;
use crate::log::Log;

/// What the implementation made of the source of a case.
pub struct Run<'c> {
    /// The source, and what is expected of it.
    pub source: &'c Source,
    /// What is tested.
    pub implementation: &'c dyn Implementation,
    /// Where the logs are, with room for more files.
    pub folder: &'c Path,
    /// The report of the import.
    pub report: Value,
    /// How the import went.
    pub outcome: Quality,
    /// The logs, in the order of the report.
    pub logs: Vec<Imported>,
}

/// One imported log.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Native id of its session.
    pub session: String,
    /// The file that was imported, where each file of the source was by itself.
    pub input: Option<String>,
    /// Its records, as the report tells it.
    pub records: u64,
    /// The log.
    pub log: Log,
    /// Its state.
    pub state: Value,
    /// What reducing it found.
    pub diagnostics: Vec<Value>,
    /// What may happen next.
    pub recovery: Value,
    /// What the model sees at its head.
    pub context: Value,
}

impl Imported {
    /// Whether it is the log of a subagent.
    #[must_use]
    pub fn is_subagent(&self) -> bool {
        json::text(&self.state, "/parent/mode") == Some("spawn")
    }

    /// The action with this id.
    #[must_use]
    pub fn action(&self, id: &str) -> Option<&Value> {
        json::list(&self.state, "/actions").iter().find(|action| action["action"] == id)
    }

    /// What is owed about the action with this id.
    pub fn obligations<'i>(&'i self, action: &'i str) -> impl Iterator<Item = &'i Value> {
        json::list(&self.recovery, "/obligations").iter().filter(move |owed| {
            let subject = owed["subject"]["kind"] == "action" && owed["subject"]["id"] == action;
            subject || owed["call"]["action"] == action
        })
    }
}

impl Run<'_> {
    /// The logs of sessions of their own.
    pub fn mains(&self) -> impl Iterator<Item = &Imported> {
        self.logs.iter().filter(|log| !log.is_subagent())
    }

    /// The log of the only session; where several files were imported each by itself, of the first one.
    ///
    /// # Errors
    /// When there is none, or another.
    pub fn only(&self) -> Result<&Imported, String> {
        let first = self.logs.first().map(|log| &log.input);
        let mut mains = self.mains().filter(|log| Some(&log.input) == first);
        match (mains.next(), mains.next()) {
            (Some(one), None) => Ok(one),
            _ => Err(format!("{} sessions and not one", self.mains().count())),
        }
    }

    /// The log of a session.
    #[must_use]
    pub fn session(&self, id: &str) -> Option<&Imported> {
        self.logs.iter().find(|log| log.session == id)
    }

    /// The path of an input, or of a place that names one, below the base of the case.
    #[must_use]
    pub fn relative(&self, input: &str) -> String {
        let Source { base, path: source, .. } = self.source;
        let within = if source.is_dir() { source.as_path() } else { source.parent().unwrap_or(source) };
        let path = if Path::new(input).is_absolute() { input.into() } else { within.join(input) };
        path.strip_prefix(base).unwrap_or(&path).to_string_lossy().into_owned()
    }
}

pub(super) fn run(source: &Source, implementation: &dyn Implementation) -> Result<Outcome, String> {
    let folder = tempfile::tempdir().map_err(|e| format!("no temporary directory: {e}"))?;
    let mut logs = Vec::new();
    let (mut report, mut outcome) = (Value::Null, Quality::Clean);
    for (number, input) in inputs(source).into_iter().enumerate() {
        let path = input.as_ref().map_or_else(|| source.path.clone(), |input| source.base.join(input));
        let into = if input.is_some() { folder.path().join(number.to_string()) } else { folder.path().into() };
        let import = implementation.import(&path, &into).map_err(|e| format!("import: {e}"))?;
        read_logs(implementation, &import, &into, input.as_deref(), &mut logs)?;
        outcome = outcome.max(import.outcome);
        join(&mut report, import.report);
    }
    if logs.is_empty() {
        return Err("report: no log".into());
    }
    let run = Run { source, implementation, folder: folder.path(), report, outcome, logs };
    let mut failures = Vec::new();
    match &source.expectation {
        Expectation::Truth(truth) => compare::truth(&run, truth, &mut failures),
        Expectation::Faults(expect) => compare::faults(&run, expect, &mut failures),
    }
    Ok(Outcome { failures })
}

/// What is imported: the source or, where the expectation has a verdict over each of its files, these, each by itself.
fn inputs(source: &Source) -> Vec<Option<String>> {
    match &source.expectation {
        Expectation::Faults(expect) if expect.verdicts.iter().any(|v| v.input.is_some()) => {
            expect.inputs.iter().map(|input| Some(input.path.clone())).collect()
        }
        Expectation::Faults(_) | Expectation::Truth(_) => vec![None],
    }
}

/// Adds the lists of a report to those of another.
fn join(all: &mut Value, report: Value) {
    match (all.as_object_mut(), report) {
        (Some(all), Value::Object(report)) => {
            for (name, value) in report {
                match (all.get_mut(&name).and_then(Value::as_array_mut), value) {
                    (Some(list), Value::Array(more)) => list.extend(more),
                    (_, value) => _ = all.insert(name, value),
                }
            }
        }
        (_, report) => *all = report,
    }
}

/// Reads every log of an import, with what is made of it.
fn read_logs(
    implementation: &dyn Implementation,
    import: &Import,
    into: &Path,
    input: Option<&str>,
    logs: &mut Vec<Imported>,
) -> Result<(), String> {
    for log in json::list(&import.report, "/logs") {
        let path = json::text(log, "/path").ok_or("report: a log without a path")?;
        let path = into.join(path);
        let session = json::text(log, "/session").ok_or("report: a log without a session")?.to_owned();
        let fail = |what: &str, e: String| format!("{session}: {what}: {e}");
        let reduced = implementation.state(&path).map_err(|e| fail("state", e))?;
        let recovery = implementation.recovery(&path, &World::default()).map_err(|e| fail("recovery", e))?;
        let context = implementation.context(&path, None).map_err(|e| fail("context", e))?;
        logs.push(Imported {
            records: json::count(log, "/records").ok_or("report: a log without its records")?,
            log: Log::read(&path)?,
            state: reduced["state"].clone(),
            diagnostics: json::list(&reduced, "/diagnostics").to_vec(),
            recovery,
            context,
            session,
            input: input.map(str::to_owned),
        });
    }
    Ok(())
}
