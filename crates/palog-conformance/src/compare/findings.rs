//! Diagnostics: each that is expected is there, in its place, and no other that is worse than information.

use std::fs;

use serde_json::Value;

use crate::case::{Diagnostic, Place};
use crate::implementation::Quality;
use crate::json;
use crate::run::Run;

/// What was found of one code and severity, over the import and, where the operation asks for it, the reduction.
#[derive(Debug)]
struct Found<'r> {
    code: &'r str,
    severity: &'r str,
    count: u64,
    at: Vec<&'r Value>,
}

/// Whether an operation ends with reducing what was imported.
fn reduces(operation: &str) -> bool {
    matches!(operation, "validate" | "reduce")
}

/// The union of what the import and the reduction found: what both tell of one place is one finding.
fn union<'r>(run: &'r Run<'_>, operation: &str) -> Vec<Found<'r>> {
    let reduced = run.logs.iter().filter(|_| reduces(operation)).flat_map(|log| &log.diagnostics);
    let mut all: Vec<Found<'r>> = Vec::new();
    for finding in json::list(&run.report, "/diagnostics").iter().chain(reduced) {
        let (code, severity) = (word(finding, "code"), word(finding, "severity"));
        let (count, at) = (json::count(finding, "/count").unwrap_or(0), json::list(finding, "/at"));
        let known = match all.iter().position(|f| (f.code, f.severity) == (code, severity)) {
            Some(known) => known,
            None => {
                all.push(Found { code, severity, count: 0, at: Vec::new() });
                all.len() - 1
            }
        };
        let known = &mut all[known];
        let new: Vec<&Value> =
            at.iter().filter(|place| !known.at.iter().any(|other| same(run, other, place))).collect();
        known.count += count - (at.len() - new.len()).min(usize::try_from(count).unwrap_or(usize::MAX)) as u64;
        known.at.extend(new);
    }
    all
}

fn word<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}

/// Whether two places are the same bytes of the same input.
fn same(run: &Run<'_>, a: &Value, b: &Value) -> bool {
    let input = |place: &Value| place["input"].as_str().map(|path| run.relative(path));
    let place = |v: &Value| (json::count(v, "/offset"), json::count(v, "/length"));
    place(a).0.is_some() && place(a) == place(b) && input(a) == input(b)
}

/// Compares the diagnostics.
pub(super) fn compare(run: &Run<'_>, operation: &str, expected: &[Diagnostic], failures: &mut Vec<String>) {
    let found = union(run, operation);
    for diagnostic in expected {
        let Diagnostic { code, severity, count, at } = diagnostic;
        let Some(own) = found.iter().find(|f| f.code == code && f.severity == severity) else {
            failures.push(format!("diagnostics: no {severity} {code}"));
            continue;
        };
        if own.count != *count {
            failures.push(format!("diagnostics: {code} {count} times, found {} times", own.count));
        }
        let mut left = own.at.clone();
        for place in at {
            match left.iter().position(|reported| fits(run, place, reported)) {
                Some(index) => _ = left.remove(index),
                None => failures.push(format!("diagnostics: {code} is not told at {place:?}, but at {left:?}")),
            }
        }
    }
    for other in &found {
        let is_expected = expected.iter().any(|d| d.code == other.code && d.severity == other.severity);
        if other.severity != "info" && !is_expected {
            failures.push(format!(
                "diagnostics: {} {} {} times, which nobody expects: {:?}",
                other.severity, other.code, other.count, other.at
            ));
        }
    }
}

/// Whether the place that is reported has every member of the place that is expected. A line that is not told follows from
/// the offset.
fn fits(run: &Run<'_>, expected: &Place, reported: &Value) -> bool {
    let Place { input, line, offset, length, pointer, record, names, call, session, r#type, detail } = expected;
    let text = |member: &str, want: &Option<String>| want.is_none() || reported[member].as_str() == want.as_deref();
    let number = |member: &str, want: &Option<u64>| want.is_none() || reported[member].as_u64() == *want;
    let in_input = input.is_none() || reported["input"].as_str().map(|path| run.relative(path)) == *input;
    let on_line = match reported["line"].as_u64().or_else(|| line_of(run, reported)) {
        Some(told) => line.is_none_or(|line| line == told),
        None => line.is_none(),
    };
    in_input
        && on_line
        && number("offset", offset)
        && number("length", length)
        && text("pointer", pointer)
        && text("record", record)
        && text("names", names)
        && text("call", call)
        && text("session", session)
        && text("type", r#type)
        && text("detail", detail)
}

/// The line, from 1, in which the offset of a place lies.
fn line_of(run: &Run<'_>, place: &Value) -> Option<u64> {
    let bytes = fs::read(run.source.base.join(run.relative(place["input"].as_str()?))).ok()?;
    let before = bytes.get(..usize::try_from(place["offset"].as_u64()?).ok()?)?;
    Some(before.iter().filter(|b| **b == b'\n').count() as u64 + 1)
}

/// How the operation went: the import as it says itself, the reduction by what it found.
pub(super) fn quality(run: &Run<'_>, operation: &str) -> Quality {
    let of = |severity: &str| match severity {
        "error" => Quality::Partial,
        "void" | "warning" => Quality::Diagnosed,
        _ => Quality::Clean,
    };
    let reduced = run.logs.iter().filter(|_| reduces(operation)).flat_map(|log| &log.diagnostics);
    reduced.map(|finding| of(word(finding, "severity"))).max().unwrap_or(Quality::Clean).max(run.outcome)
}

/// The places that are reported under a code.
pub(super) fn places<'r>(run: &'r Run<'_>, operation: &str, code: &str) -> Vec<&'r Value> {
    union(run, operation).into_iter().filter(|f| f.code == code).flat_map(|f| f.at).collect()
}
