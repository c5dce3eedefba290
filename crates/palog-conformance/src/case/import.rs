//! A case about an import: a source, and what has to come out.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{About, Expect, Input, Level, Role, SessionVerdict, Truth, Verdict, names, read};
use crate::implementation::Quality;

/// What is imported, and what has to come out.
#[derive(Clone, Debug)]
pub struct Source {
    /// The format of the source.
    pub format: String,
    /// What is imported: a file or a directory.
    pub path: PathBuf,
    /// What paths in the expectation are below of: the folder of the scenario or of the fault.
    pub base: PathBuf,
    /// What has to come out.
    pub expectation: Expectation,
}

/// What has to come out of an import.
#[derive(Clone, Debug)]
pub enum Expectation {
    /// What a truthful reader says of a genuine file.
    Truth(Truth),
    /// What is made of a damaged or odd file.
    Faults(Box<Expect>),
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

impl Source {
    pub(super) fn load(fixtures: &Path, folder: &Path, manifest: &str) -> Result<(About, Source), String> {
        let manifest: Manifest = toml::from_str(manifest).map_err(|e| format!("case.toml: {e}"))?;
        if manifest.role != Role::Importer {
            return Err(format!("an import tests no {}", manifest.role.word()));
        }
        let path = fixtures.join(&manifest.source);
        if !path.exists() {
            return Err(format!("{} is missing", manifest.source));
        }
        // sources/<topic>/<name>/…
        let base: PathBuf = Path::new(&manifest.source).components().take(3).collect();
        let base = fixtures.join(base);
        let (expectation, stated) = expectation(folder, &manifest.expect)?;
        if let Expectation::Faults(expect) = &expectation {
            expect.inputs.iter().try_for_each(|input| check_input(&base, input))?;
        }
        if manifest.expect.verdicts.values().collect::<Vec<_>>() != stated.values().collect::<Vec<_>>()
            || stated.keys().any(|session| !session.is_empty() && !manifest.expect.verdicts.contains_key(session))
        {
            return Err("case.toml and expect/ state other verdicts".into());
        }
        let Manifest { id, title, rules, role, format, level, source: _, rationale, expect: _ } = manifest;
        Ok((About { id, title, rules, role, level, rationale }, Source { format, path, base, expectation }))
    }
}

/// Reads what is expected, and which verdicts it states.
fn expectation(folder: &Path, manifest: &ManifestExpect) -> Result<(Expectation, BTreeMap<String, Verdict>), String> {
    let files = names(&folder.join("expect"))?;
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
