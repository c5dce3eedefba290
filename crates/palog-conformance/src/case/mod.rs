//! A case: an input, and what has to be made of it. A member or a file that is missing, or that nobody knows, is an error.

mod expect;
mod import;
mod log;
mod patch;
mod truth;

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

pub use expect::{Diagnostic, Expect, Input, Place, Preserve, SessionVerdict};
pub(crate) use import::check_input;
pub use import::{Expectation, Source};
pub use log::{Expected, Finding, LogCase, Operation, Phase};
pub use patch::{Patch, PatchError};
pub use truth::{Approval, Call, Child, Family, Session, Tally, Truth, Usage, Work};

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its path below the set.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Ids of the rules that it tests.
    pub rules: Vec<String>,
    /// Who is tested.
    pub role: Role,
    /// The level that it counts for.
    pub level: Level,
    /// What is done, and what has to come out.
    pub task: Task,
}

/// What is done in a case, and what has to come out.
#[derive(Clone, Debug)]
pub enum Task {
    /// A source is imported.
    Import(Source),
    /// A log is read, reduced or recovered.
    Log(Box<LogCase>),
}

/// Who is tested (spec 07, "Roles").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Role {
    /// Reads logs.
    Reader,
    /// Writes logs.
    Writer,
    /// Makes logs from files of another format.
    Importer,
    /// Makes states.
    Reducer,
    /// Makes verdicts and obligations.
    Recoverer,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 5] = [Role::Reader, Role::Writer, Role::Importer, Role::Reducer, Role::Recoverer];

    /// Its name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Role::Reader => "Reader",
            Role::Writer => "Writer",
            Role::Importer => "Importer",
            Role::Reducer => "Reducer",
            Role::Recoverer => "Recoverer",
        }
    }
}

/// What a case counts for (spec 07, "Levels"). A level includes those below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Level {
    /// Bytes.
    L0,
    /// Schema.
    L1,
    /// State.
    L2,
    /// Resumption.
    L3,
    /// Migration.
    L4,
}

impl Level {
    /// Every level.
    pub const ALL: [Level; 5] = [Level::L0, Level::L1, Level::L2, Level::L3, Level::L4];

    /// Its name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Level::L0 => "L0",
            Level::L1 => "L1",
            Level::L2 => "L2",
            Level::L3 => "L3",
            Level::L4 => "L4",
        }
    }
}

/// What a session is, as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing can be concluded.
    Indeterminate,
    /// It is over, or goes on elsewhere.
    Closed,
    /// Somebody holds it.
    Owned,
    /// A call that may have had an effect has no known outcome.
    NeedsReconcile,
    /// A question or an approval is open.
    AwaitingHuman,
    /// There is work that can go on.
    Ready,
    /// There is nothing to do.
    Idle,
}

impl Verdict {
    /// The word on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::Indeterminate => "indeterminate",
            Verdict::Closed => "closed",
            Verdict::Owned => "owned",
            Verdict::NeedsReconcile => "needs_reconcile",
            Verdict::AwaitingHuman => "awaiting_human",
            Verdict::Ready => "ready",
            Verdict::Idle => "idle",
        }
    }
}

/// What every `case.toml` says of its case.
struct About {
    id: String,
    title: String,
    rules: Vec<String>,
    role: Role,
    level: Level,
    rationale: String,
}

impl Case {
    /// Loads every case of the set `v1` below `fixtures`, by id.
    ///
    /// # Errors
    /// When one of them cannot be loaded.
    pub fn all(fixtures: &Path) -> Result<Vec<Case>, String> {
        let set = fixtures.join("v1");
        let mut folders = Vec::new();
        find(&set, &mut folders)?;
        folders.sort();
        folders.iter().map(|folder| Case::load(fixtures, folder)).collect()
    }

    /// Loads the case in `folder`; its source, or the case that it is based on, lies below `fixtures`.
    ///
    /// # Errors
    /// When a file or a member is missing or not known, or the case contradicts itself or its source.
    pub fn load(fixtures: &Path, folder: &Path) -> Result<Case, String> {
        let fail = |why: String| format!("{}: {why}", folder.display());
        let id = folder.strip_prefix(fixtures.join("v1")).map_err(|_| fail("it lies outside of the set".into()))?;
        let operation = id.components().next().map(|first| first.as_os_str().to_string_lossy()).unwrap_or_default();
        let manifest = fs::read_to_string(folder.join("case.toml")).map_err(|e| fail(format!("case.toml: {e}")))?;
        let (about, task) = match &*operation {
            "import" => Source::load(fixtures, folder, &manifest).map(|(about, source)| (about, Task::Import(source))),
            "read" => LogCase::load(fixtures, folder, &manifest, Operation::Read),
            "reduce" => LogCase::load(fixtures, folder, &manifest, Operation::Reduce),
            "recover" => LogCase::load(fixtures, folder, &manifest, Operation::Recover),
            other => Err(format!("nobody does the operation {other:?}")),
        }
        .map_err(fail)?;
        about.check(id).map_err(fail)?;
        let About { id, title, rules, role, level, rationale: _ } = about;
        Ok(Case { id, title, rules, role, level, task })
    }

    /// The source, where the case is about an import.
    #[must_use]
    pub fn source(&self) -> Option<&Source> {
        match &self.task {
            Task::Import(source) => Some(source),
            Task::Log(_) => None,
        }
    }

    /// The log, where the case is about one.
    #[must_use]
    pub fn log(&self) -> Option<&LogCase> {
        match &self.task {
            Task::Import(_) => None,
            Task::Log(log) => Some(log),
        }
    }
}

impl About {
    fn check(&self, id: &Path) -> Result<(), String> {
        if Path::new(&self.id) != id {
            return Err(format!("its id is {}", self.id));
        }
        for (member, value) in [("title", &self.title), ("rationale", &self.rationale)] {
            if value.is_empty() {
                return Err(format!("{member} is empty"));
            }
        }
        match self.rules.iter().find(|rule| !rule.starts_with("R-")) {
            Some(rule) => Err(format!("{rule} is no id of a rule")),
            None => Ok(()),
        }
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
}

/// The names of what lies in a folder.
fn names(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder)
        .and_then(|entries| entries.map(|e| e.map(|e| e.file_name().to_string_lossy().into_owned())).collect());
    let mut names: Vec<String> = entries.map_err(|e| format!("{}: {e}", folder.display()))?;
    names.sort();
    Ok(names)
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    if folder.join("case.toml").exists() {
        found.push(folder.into());
        return Ok(());
    }
    let mut folders = 0;
    for path in names(folder)?.iter().map(|name| folder.join(name)) {
        if path.is_dir() {
            folders += 1;
            find(&path, found)?;
        }
    }
    if folders == 0 {
        return Err(format!("{}: case.toml is missing", folder.display()));
    }
    Ok(())
}
