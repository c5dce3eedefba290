//! A case about a log: what is read, reduced or recovered, and what has to come out.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::{About, Level, Patch, Role, Task, Verdict, names, read};
use crate::implementation::World;

/// Name of the log in the folder of a case.
const LOG: &str = "input.palog.jsonl";
/// Name of the log of its parent, where that is at hand.
const PARENT: &str = "parent.palog.jsonl";
/// Name of its blobs.
const BLOBS: &str = "input.palog.blobs";

/// A log, what is done with it, and what has to come out.
#[derive(Clone, Debug)]
pub struct LogCase {
    /// What is done.
    pub operation: Operation,
    /// The sentence of the specification that is tested.
    pub quote: String,
    /// The log, or the one that is patched.
    pub input: PathBuf,
    /// The blobs beside `input`, if there are any.
    pub base_blobs: Option<PathBuf>,
    /// The blobs beside the log of the case: its own, or else those of its base.
    pub blobs: Option<PathBuf>,
    /// What is changed of `input`, which passes as it stands.
    pub patches: Vec<Patch>,
    /// The cursor after which the log is read.
    pub after: Option<String>,
    /// What recovery knows beside the log.
    pub world: World,
    /// Seeded faults that fail this case.
    pub kills: Vec<String>,
    /// What is found.
    pub codes: Vec<Finding>,
    /// Whether `expected` compares only those members that are stated.
    pub partial: bool,
    /// What comes out.
    pub expected: Expected,
}

/// What is done with a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// It is read and validated.
    Read,
    /// It is reduced.
    Reduce,
    /// It is recovered.
    Recover,
}

/// What comes out of a log; absent = not compared.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// The events, as read.
    pub events: Option<Value>,
    /// The state.
    pub state: Option<Value>,
    /// What the model sees at the head.
    pub context: Option<Value>,
    /// What may happen next.
    pub recovery: Option<Value>,
}

/// The phase of reading at which a log is wrong (spec 07, "Phases").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Are these lines.
    Bytes,
    /// Is this line JSON.
    Json,
    /// Is this an event.
    Envelope,
    /// Has the payload the form of its type.
    Schema,
    /// Does it stand in its place.
    Order,
    /// Can it have happened.
    Fsm,
}

impl Phase {
    /// The phase of a code, by its family.
    #[must_use]
    pub fn of(code: &str) -> Option<Phase> {
        Some(match code.split('.').next()? {
            "framing" => Phase::Bytes,
            "json" => Phase::Json,
            "version" | "envelope" => Phase::Envelope,
            "schema" | "blob" => Phase::Schema,
            "order" | "id" | "graph" | "source" | "time" => Phase::Order,
            "action" | "approval" | "input" | "tool" | "usage" | "state" | "lease" | "plan" | "command"
            | "checkpoint" | "family" => Phase::Fsm,
            _ => return None,
        })
    }
}

/// What is found.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Its code.
    pub code: String,
    /// How bad it is.
    pub severity: String,
    /// At which phase.
    pub phase: Phase,
    /// How often; absent = once.
    #[serde(default = "once")]
    pub count: u64,
    /// The line of the first, from 1; absent = not compared.
    pub line: Option<u64>,
    /// Its offset in bytes; absent = not compared.
    pub offset: Option<u64>,
}

const fn once() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    id: String,
    title: String,
    rules: Vec<String>,
    quote: String,
    role: Role,
    level: Level,
    rationale: String,
    base: Option<String>,
    #[serde(default)]
    patch: Vec<Patch>,
    after: Option<String>,
    #[serde(default)]
    world: World,
    #[serde(default)]
    kills: Vec<String>,
    expect: ManifestExpect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestExpect {
    codes: Vec<Finding>,
    verdict: Option<Verdict>,
    #[serde(default)]
    partial: bool,
}

impl LogCase {
    pub(super) fn load(
        fixtures: &Path,
        folder: &Path,
        manifest: &str,
        operation: Operation,
    ) -> Result<(About, Task), String> {
        let manifest: Manifest = toml::from_str(manifest).map_err(|e| format!("case.toml: {e}"))?;
        let Manifest { id, title, rules, quote, role, level, rationale, base, patch, after, mut world, kills, expect } =
            manifest;
        world.parent = Some(folder.join(PARENT)).filter(|parent| parent.exists());
        let fits = match operation {
            Operation::Read => role == Role::Reader && level <= Level::L1 && world == World::default(),
            Operation::Reduce => (role, level) == (Role::Reducer, Level::L2) && world == World::default(),
            Operation::Recover => (role, level) == (Role::Recoverer, Level::L3),
        };
        if !fits || (operation != Operation::Read && after.is_some()) {
            return Err("its role, its level, after or world is that of another operation".into());
        }
        if rules.is_empty() || quote.is_empty() {
            return Err("it tests no rule, or quotes none".into());
        }
        for (at, Finding { code, severity, phase, .. }) in expect.codes.iter().enumerate() {
            if Phase::of(code) != Some(*phase) {
                return Err(format!("{code} is not of the phase {phase:?}"));
            }
            if !["error", "void", "warning", "info"].contains(&severity.as_str()) {
                return Err(format!("{severity:?} is no severity"));
            }
            if expect.codes[..at].iter().any(|other| (&other.code, &other.severity) == (code, severity)) {
                return Err(format!("{severity} {code} is expected twice"));
            }
        }
        let known = names(folder)?;
        let mut unknown =
            known.iter().filter(|name| !["case.toml", "expect", LOG, PARENT, BLOBS].contains(&name.as_str()));
        if let Some(name) = unknown.next() {
            return Err(format!("nobody knows the file {name}"));
        }
        let home = match &base {
            None => folder.to_path_buf(),
            Some(base) => fixtures.join("v1").join(base),
        };
        let input = home.join(LOG);
        if base.is_some() == folder.join(LOG).exists() || (base.is_none() && !patch.is_empty()) || !input.exists() {
            return Err(format!("it has neither {LOG} and no patch, nor a base that has it"));
        }
        let expected = expected(folder, operation)?;
        let complete = match operation {
            Operation::Read => expect.verdict.is_none(),
            Operation::Reduce => expect.verdict.is_none() && (expected.state.is_some() || expected.context.is_some()),
            Operation::Recover => {
                let stated = expected.recovery.as_ref().and_then(|recovery| recovery["verdict"].as_str());
                stated.is_some() && stated == expect.verdict.map(Verdict::word)
            }
        };
        if !complete {
            return Err("expect/ lacks what this operation gives, or states another verdict than case.toml".into());
        }
        let blobs = |place: &Path| Some(place.join(BLOBS)).filter(|blobs| blobs.is_dir());
        let (base_blobs, blobs) = (blobs(&home), blobs(folder).or_else(|| blobs(&home)));
        let case = LogCase {
            operation,
            quote,
            input,
            base_blobs,
            blobs,
            patches: patch,
            after,
            world,
            kills,
            codes: expect.codes,
            partial: expect.partial,
            expected,
        };
        case.bytes()?;
        Ok((About { id, title, rules, role, level, rationale }, Task::Log(Box::new(case))))
    }

    /// The log as it stands, before it is patched.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn base(&self) -> Result<Vec<u8>, String> {
        fs::read(&self.input).map_err(|e| format!("{}: {e}", self.input.display()))
    }

    /// The log that the case is about.
    ///
    /// # Errors
    /// When it cannot be read, or a patch does not fit.
    pub fn bytes(&self) -> Result<Vec<u8>, String> {
        let mut patches = self.patches.iter().enumerate();
        patches.try_fold(self.base()?, |log, (n, patch)| patch.apply(&log).map_err(|e| format!("patch {n}: {e}")))
    }

    /// The verdict, where one is expected.
    #[must_use]
    pub fn verdict(&self) -> Option<&str> {
        self.expected.recovery.as_ref()?["verdict"].as_str()
    }
}

/// What lies in `expect/`.
fn expected(folder: &Path, operation: Operation) -> Result<Expected, String> {
    let place = folder.join("expect");
    let mut expected = Expected::default();
    let files: BTreeSet<String> = if place.exists() { names(&place)?.into_iter().collect() } else { BTreeSet::new() };
    for file in files {
        let member = match (file.as_str(), operation) {
            ("events.json", Operation::Read) => &mut expected.events,
            ("state.json", Operation::Reduce | Operation::Recover) => &mut expected.state,
            ("context.json", Operation::Reduce) => &mut expected.context,
            ("recovery.json", Operation::Recover) => &mut expected.recovery,
            _ => return Err(format!("nobody compares expect/{file} here")),
        };
        *member = Some(read(&place.join(&file))?);
    }
    Ok(expected)
}
