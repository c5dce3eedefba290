//! A case: a source, and what has to be made of it. A member or a file that is missing, or that nobody knows, is an error.

mod expect;
mod truth;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

pub use expect::{Diagnostic, Expect, Input, Place, Preserve, SessionVerdict};
pub use truth::{Approval, Call, Child, Family, Session, Tally, Truth, Usage, Work};

use crate::implementation::Quality;

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
    /// The format of the source.
    pub format: String,
    /// What is imported: a file or a directory.
    pub source: PathBuf,
    /// What paths in the expectation are below of: the folder of the scenario or of the fault.
    pub base: PathBuf,
    /// What has to come out.
    pub expectation: Expectation,
}

/// What has to come out of a case.
#[derive(Clone, Debug)]
pub enum Expectation {
    /// What a truthful reader says of a genuine file.
    Truth(Truth),
    /// What is made of a damaged or odd file.
    Faults(Box<Expect>),
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    id: String,
    title: String,
    rules: Vec<String>,
    role: Role,
    format: String,
    level: Level,
    source: String,
    rationale: String,
    #[serde(default)]
    expect: ManifestExpect,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestExpect {
    #[serde(default)]
    verdicts: BTreeMap<String, Verdict>,
    outcome: Option<Quality>,
    only: Option<Vec<String>>,
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

    /// Loads the case in `folder`; its source lies below `fixtures`.
    ///
    /// # Errors
    /// When a file or a member is missing or not known, or the case contradicts itself or its source.
    pub fn load(fixtures: &Path, folder: &Path) -> Result<Case, String> {
        let fail = |why: String| format!("{}: {why}", folder.display());
        let manifest = fs::read_to_string(folder.join("case.toml")).map_err(|e| fail(format!("case.toml: {e}")))?;
        let manifest: Manifest = toml::from_str(&manifest).map_err(|e| fail(format!("case.toml: {e}")))?;
        let id = folder.strip_prefix(fixtures.join("v1")).map_err(|_| fail("it lies outside of the set".into()))?;
        if Path::new(&manifest.id) != id {
            return Err(fail(format!("its id is {}", manifest.id)));
        }
        for (member, value) in [("title", &manifest.title), ("rationale", &manifest.rationale)] {
            if value.is_empty() {
                return Err(fail(format!("{member} is empty")));
            }
        }
        if manifest.role != Role::Importer {
            return Err(fail(format!("nobody runs the role {}", manifest.role.word())));
        }
        if let Some(rule) = manifest.rules.iter().find(|r| !r.starts_with("R-")) {
            return Err(fail(format!("{rule} is no id of a rule")));
        }
        let source = fixtures.join(&manifest.source);
        if !source.exists() {
            return Err(fail(format!("{} is missing", manifest.source)));
        }
        // sources/<topic>/<name>/…
        let base: PathBuf = Path::new(&manifest.source).components().take(3).collect();
        let base = fixtures.join(base);
        let (expectation, stated) = expectation(folder, &manifest.expect).map_err(&fail)?;
        if let Expectation::Faults(expect) = &expectation {
            expect.inputs.iter().try_for_each(|input| check_input(&base, input)).map_err(&fail)?;
        }
        if manifest.expect.verdicts.values().collect::<Vec<_>>() != stated.values().collect::<Vec<_>>()
            || stated.keys().any(|session| !session.is_empty() && !manifest.expect.verdicts.contains_key(session))
        {
            return Err(fail("case.toml and expect/ state other verdicts".into()));
        }
        Ok(Case {
            id: manifest.id,
            title: manifest.title,
            rules: manifest.rules,
            role: manifest.role,
            level: manifest.level,
            format: manifest.format,
            source,
            base,
            expectation,
        })
    }

    /// The verdicts that the case states, by session.
    #[must_use]
    pub fn verdicts(&self) -> Vec<(Option<&str>, Verdict)> {
        match &self.expectation {
            Expectation::Truth(truth) => truth.sessions.iter().map(|s| (Some(s.session.as_str()), s.verdict)).collect(),
            Expectation::Faults(expect) => expect.verdicts.iter().map(|v| (v.session.as_deref(), v.verdict)).collect(),
        }
    }
}

/// Reads what is expected, and which verdicts it states.
fn expectation(folder: &Path, manifest: &ManifestExpect) -> Result<(Expectation, BTreeMap<String, Verdict>), String> {
    let files: Vec<String> = fs::read_dir(folder.join("expect"))
        .and_then(|entries| entries.map(|e| e.map(|e| e.file_name().to_string_lossy().into_owned())).collect())
        .map_err(|e| format!("expect: {e}"))?;
    match files.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["truth.json"] => {
            let truth: Truth = read(&folder.join("expect/truth.json"))?;
            if truth.sessions.is_empty() || manifest.outcome.is_some() || manifest.only.is_some() {
                return Err("a truth has sessions, and neither outcome nor only".into());
            }
            let stated = truth.sessions.iter().map(|s| (s.session.clone(), s.verdict)).collect();
            Ok((Expectation::Truth(truth), stated))
        }
        ["expect.json"] => {
            let mut expect: Expect = read(&folder.join("expect/expect.json"))?;
            if manifest.outcome != Some(expect.outcome) {
                return Err("case.toml and expect.json state other outcomes".into());
            }
            if folder.file_name().is_none_or(|name| name != expect.case.as_str()) {
                return Err(format!("expect.json is of the case {}", expect.case));
            }
            expect.only.clone_from(&manifest.only);
            let key = |v: &SessionVerdict| v.input.clone().or_else(|| v.session.clone()).unwrap_or_default();
            let stated = expect.verdicts.iter().map(|v| (key(v), v.verdict)).collect();
            Ok((Expectation::Faults(Box::new(expect)), stated))
        }
        _ => Err(format!("expect/ holds {files:?} and not exactly one of truth.json and expect.json")),
    }
}

/// The file is the one that the expectation is about.
pub(crate) fn check_input(base: &Path, input: &Input) -> Result<(), String> {
    let bytes = fs::read(base.join(&input.path)).map_err(|e| format!("{}: {e}", input.path))?;
    let digest: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    if bytes.len() as u64 != input.bytes || digest != input.sha256 {
        return Err(format!(
            "{} is another file than the expectation is about: {} bytes, {digest}",
            input.path,
            bytes.len()
        ));
    }
    Ok(())
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    if folder.join("case.toml").exists() {
        found.push(folder.into());
        return Ok(());
    }
    let fail = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut folders = 0;
    for entry in fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
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
