//! Whatever is cut off: nothing panics, every log reduces, and nothing that may have run is taken for done or not begun.

#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "../../palog-cli/src/reference/import.rs"]
mod import;
#[path = "support/layout.rs"]
mod layout;
#[path = "support/memory.rs"]
mod memory;
#[path = "support/reader.rs"]
mod reader;
#[path = "support/reference.rs"]
mod reference;
#[path = "support/valid.rs"]
mod valid;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use palog::recover::{Context, Verdict, recover};
use palog::reduce::reduce;
use palog_conformance::{Case, Expectation, Implementation, Import, Log, Source, Verdict as Truth, World, run};
use reference::Reference;
use serde_json::{Value, json};

/// Files below this size are cut at every byte.
const SMALL: usize = 4096;
/// At how many places larger files are cut.
const SAMPLED: usize = 400;
/// At how many bytes a log is cut, and each file of a folder.
const SAMPLED_FEW: usize = 40;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    match Case::all(&fixtures::folder()) {
        Ok(cases) => {
            let sources: BTreeSet<PathBuf> = cases
                .iter()
                .filter(|case| !layout::is_of_rows(case))
                .filter_map(|c| Some(c.source()?.path.clone()))
                .collect();
            // Many snapshots hold the same transcript.
            let transcripts: BTreeMap<Vec<u8>, PathBuf> = sources
                .iter()
                .flat_map(|source| layout::transcripts(source))
                .filter_map(|path| Some((fs::read(&path).ok()?, path)))
                .collect();
            for (bytes, path) in transcripts {
                let copy = bytes.clone();
                add(&mut trials, "transcript", &path, move |path| cut_transcript(path, &copy));
                add(&mut trials, "log", &path, move |path| cut_log(path, &bytes));
            }
            for source in sources.iter().filter(|source| source.is_dir()) {
                add(&mut trials, "folder", source, cut_folder);
            }
            let all = cases.clone();
            trials.push(Trial::test("the small reader finds what the truths know", move || {
                knows(&all).map_err(Failed::from)
            }));
            trials
                .push(Trial::test("a planner with one answer fails", move || constants(&cases).map_err(Failed::from)));
        }
        Err(why) => trials.push(Trial::test("every case can be loaded", move || Err(Failed::from(why)))),
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn add(
    trials: &mut Vec<Trial>,
    what: &str,
    path: &Path,
    test: impl FnOnce(&Path) -> Result<(), String> + Send + 'static,
) {
    let name = path.strip_prefix(fixtures::folder()).unwrap_or(path).display().to_string();
    let path = path.to_path_buf();
    trials.push(Trial::test(format!("{what}: {name}"), move || test(&path).map_err(Failed::from)));
}

/// Where to cut: everywhere, or at places that are the same in every run.
fn places(len: usize, sampled: usize) -> BTreeSet<usize> {
    if len < SMALL && sampled == SAMPLED {
        return (0..=len).collect();
    }
    let mut seed = len as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap_or(0) % (len + 1)
    };
    (0..sampled).map(|_| next()).chain([0, len]).collect()
}

/// What a log says, as a whole.
fn verdict(log: &[u8]) -> Result<Verdict, String> {
    let (state, _) = reduce(log).map_err(|e| e.to_string())?;
    Ok(recover(&state, &Context::new()).verdict)
}

/// Nothing goes on while a call may have run.
fn is_safe(verdict: Verdict, may_have_run: &BTreeSet<String>) -> Result<(), String> {
    let goes_on = matches!(verdict, Verdict::Ready | Verdict::Idle | Verdict::Closed);
    if goes_on && !may_have_run.is_empty() {
        Err(format!("{verdict:?}, and {may_have_run:?} may have run"))
    } else {
        Ok(())
    }
}

/// Runs `check` for every place, and names the place where it fails or panics.
fn at_each(places: impl IntoIterator<Item = usize>, check: impl Fn(usize) -> Result<(), String>) -> Result<(), String> {
    for at in places {
        match catch_unwind(AssertUnwindSafe(|| check(at))) {
            Ok(Ok(())) => {}
            Ok(Err(why)) => return Err(format!("cut at {at}: {why}")),
            Err(_) => return Err(format!("cut at {at}: it panics")),
        }
    }
    Ok(())
}

fn scratch() -> Result<tempfile::TempDir, String> {
    tempfile::tempdir().map_err(|e| e.to_string())
}

/// A transcript that is cut at any byte.
fn cut_transcript(transcript: &Path, whole: &[u8]) -> Result<(), String> {
    let folder = scratch()?;
    let path = folder.path().join(layout::name_of(transcript, whole));
    at_each(places(whole.len(), SAMPLED), |at| {
        fs::write(&path, &whole[..at]).map_err(|e| e.to_string())?;
        is_safely_read(&path)
    })
}

/// A log that is cut behind any event, and at bytes between.
fn cut_log(transcript: &Path, whole: &[u8]) -> Result<(), String> {
    let folder = scratch()?;
    let path = folder.path().join(layout::name_of(transcript, whole));
    fs::write(&path, whole).map_err(|e| e.to_string())?;
    let log = Log::parse(memory::log_of(&path)?.ok_or("no log")?)?;
    let ends: Vec<usize> = log.bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
    // How far the events up to each have read the transcript.
    let mut read = vec![0; log.events.len()];
    for record in log.records() {
        let first = record.events.first().copied().unwrap_or(0);
        let end = usize::try_from(record.end()).unwrap_or(0);
        read[first..].iter_mut().for_each(|until: &mut usize| *until = end.max(*until));
    }
    at_each(0..=ends.len(), |events| {
        let cut = events.checked_sub(1).map_or(0, |last| ends[last]);
        let until = events.checked_sub(1).map_or(0, |last| read[last]);
        is_safe(verdict(&log.bytes[..cut])?, &reader::may_have_run(&whole[..until]))
    })?;
    at_each(places(log.bytes.len(), SAMPLED_FEW), |at| {
        let whole_lines = ends.iter().copied().take_while(|end| *end <= at).last().unwrap_or(0);
        let state = |bytes: &[u8]| reduce(bytes).map(|(state, _)| state).map_err(|e| e.to_string());
        if state(&log.bytes[..at])? == state(&log.bytes[..whole_lines])? {
            Ok(())
        } else {
            Err("a torn line changes the state".into())
        }
    })
}

/// Any file of a folder that is cut at any byte: what lies beside the transcript decides nothing.
fn cut_folder(source: &Path) -> Result<(), String> {
    let folder = scratch()?;
    let copy = folder.path().join("copy");
    for file in layout::files(source) {
        let to = copy.join(file.strip_prefix(source).unwrap_or(&file));
        fs::create_dir_all(to.parent().unwrap_or(&copy)).map_err(|e| e.to_string())?;
        fs::copy(&file, to).map_err(|e| e.to_string())?;
    }
    let files: BTreeSet<PathBuf> = layout::owned(&copy).into_values().flatten().map(|(path, _)| path).collect();
    for path in files {
        let whole = fs::read(&path).map_err(|e| e.to_string())?;
        at_each(places(whole.len(), SAMPLED_FEW), |at| {
            fs::write(&path, &whole[..at]).map_err(|e| e.to_string())?;
            is_safely_read(&copy)
        })
        .map_err(|why| format!("{}: {why}", path.strip_prefix(&copy).unwrap_or(&path).display()))?;
        fs::write(&path, &whole).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Imports, and compares the verdict over each session with what its transcript shows.
fn is_safely_read(source: &Path) -> Result<(), String> {
    let imported = memory::in_memory(source)?;
    let is_agent = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("agent-"));
    for path in layout::transcripts(source).iter().filter(|path| source.is_dir() && !is_agent(path)) {
        let is_known = imported.iter().any(|(transcript, _)| transcript == path);
        if !is_known && !reader::may_have_run(&fs::read(path).map_err(|e| e.to_string())?).is_empty() {
            return Err(format!("{} is passed over", path.display()));
        }
    }
    for (transcript, log) in imported {
        let may_have_run = reader::may_have_run(&fs::read(transcript).map_err(|e| e.to_string())?);
        match log {
            Some(log) => {
                valid::check(&log, None)?;
                is_safe(verdict(&log)?, &may_have_run)?;
            }
            None if may_have_run.is_empty() => {}
            None => return Err(format!("no log, and {may_have_run:?} may have run")),
        }
    }
    Ok(())
}

/// The small reader agrees with the truths on what holds a session, so that the tests above look for the right calls.
fn knows(cases: &[Case]) -> Result<(), String> {
    let mut sessions = 0;
    let mut holding = 0;
    for case in cases {
        let Some(Source { expectation: Expectation::Truth(truth), base, format, .. }) = case.source() else { continue };
        // The others have readers of their own (`hermes.rs`).
        if !matches!(format.as_str(), "claude-code" | "codex") {
            continue;
        }
        for session in &truth.sessions {
            let bytes = fs::read(base.join(&session.file)).map_err(|e| format!("{}: {e}", session.file))?;
            let found = reader::may_have_run(&bytes);
            let expected: BTreeSet<String> =
                session.calls.iter().filter(|call| call.blocking).map(|call| call.call.clone()).collect();
            if found != expected {
                return Err(format!("{}: {found:?}, and the truth says {expected:?}", case.id));
            }
            sessions += 1;
            holding += usize::from(!found.is_empty());
        }
    }
    if sessions < 70 || holding < 30 { Err(format!("{holding} of {sessions} sessions are held")) } else { Ok(()) }
}

/// A planner that always gives one answer, and is right in everything else.
struct Constant(Truth);

impl Implementation for Constant {
    fn import(&self, source: &Path, into: &Path) -> Result<Import, String> {
        Reference.import(source, into)
    }

    fn state(&self, log: &Path) -> Result<Value, String> {
        Reference.state(log)
    }

    fn read(&self, log: &Path, after: Option<&str>) -> Result<Value, String> {
        Reference.read(log, after)
    }

    fn validate(&self, log: &Path) -> Result<Value, String> {
        Reference.validate(log)
    }

    fn recovery(&self, log: &Path, world: &World) -> Result<Value, String> {
        let mut recovery = Reference.recovery(log, world)?;
        recovery["verdict"] = json!(self.0.word());
        Ok(recovery)
    }

    fn context(&self, log: &Path, before: Option<&str>) -> Result<Value, String> {
        Reference.context(log, before)
    }
}

/// The greatest share of sessions that one answer may get right, averaged over the verdicts that occur.
const SHARE: f64 = 0.34;

/// Every verdict.
const VERDICTS: [Truth; 7] = [
    Truth::Indeterminate,
    Truth::Closed,
    Truth::Owned,
    Truth::NeedsReconcile,
    Truth::AwaitingHuman,
    Truth::Ready,
    Truth::Idle,
];

/// Counted per verdict, a planner with one answer is right in at most a third; and the runner finds it out.
fn constants(cases: &[Case]) -> Result<(), String> {
    let sessions: Vec<_> = cases
        .iter()
        .filter_map(|case| match &case.source()?.expectation {
            Expectation::Truth(truth) => Some(&truth.sessions),
            Expectation::Faults(_) => None,
        })
        .flatten()
        .collect();
    let occurring: BTreeSet<Truth> = sessions.iter().map(|session| session.verdict).collect();
    if occurring.len() < 4 {
        return Err(format!("only {occurring:?} occur"));
    }
    // A case of one session tells what the runner finds out, where a verdict has one.
    let single = |verdict: &Truth| {
        let is_of = |case: &&Case| matches!(case.source().map(|source| &source.expectation), Some(Expectation::Truth(truth)) if truth.sessions[0].verdict == *verdict && truth.sessions.len() == 1 && truth.sessions[0].verdict_also.is_empty());
        cases.iter().find(is_of)
    };
    let singles: Vec<(Truth, &Case)> =
        occurring.iter().filter_map(|verdict| Some((*verdict, single(verdict)?))).collect();
    if singles.len() < 4 {
        return Err(format!("only {} verdicts have a case of one session", singles.len()));
    }
    for constant in VERDICTS {
        let share = |verdict: &Truth| {
            let own: Vec<_> = sessions.iter().filter(|session| session.verdict == *verdict).collect();
            own.iter().filter(|session| session.accepts(constant.word())).count() as f64 / own.len() as f64
        };
        let average = occurring.iter().map(share).sum::<f64>() / occurring.len() as f64;
        if average > SHARE {
            return Err(format!("always {} is right in {average:.2}", constant.word()));
        }
        // One case of each verdict: the runner passes those in which the constant is true, and no other.
        for (verdict, case) in &singles {
            let failures = run(case, &Constant(constant)).failures;
            let found_out = failures.iter().any(|failure| failure.contains("verdict"));
            if found_out == (constant == *verdict) || failures.len() != usize::from(found_out) {
                return Err(format!("always {} in {}: {failures:?}", constant.word(), case.id));
            }
        }
    }
    Ok(())
}
