//! `expect/expect.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::case::{Expect, Expectation, Input, Preserve, SessionVerdict, check_input};
use crate::compare::{equal, facts, findings, sentences};
use crate::json;
use crate::run::Run;

/// Compares everything that an expectation says.
pub(crate) fn faults(run: &Run<'_>, expect: &Expect, failures: &mut Vec<String>) {
    if !matches!(expect.operation.as_str(), "import" | "validate" | "reduce") && expect.only.is_none() {
        failures.push(format!("nobody runs the operation {}", expect.operation));
    }
    if expect.means("outcome") {
        equal("outcome", &findings::quality(run, &expect.operation), &expect.outcome, failures);
    }
    if expect.means("inputs") {
        inputs(run, &expect.inputs, failures);
    }
    if expect.means("counts") {
        for (what, count) in &expect.counts {
            match counted(run, expect, what) {
                Some(found) => equal(what, &found, count, failures),
                None => failures.push(format!("nobody checks the count {what}")),
            }
        }
    }
    if expect.means("diagnostics") {
        findings::compare(run, &expect.operation, &expect.diagnostics, failures);
    }
    if expect.means("preserve") {
        expect.preserve.iter().for_each(|preserve| preserved(run, preserve, failures));
    }
    if expect.means("verdicts") {
        expect.verdicts.iter().for_each(|expected| verdict(run, expected, failures));
    }
    if expect.means("state") {
        for (what, fact) in &expect.state {
            if let Err(why) = facts::check(run, what, fact) {
                failures.push(format!("state.{what}: {why}"));
            }
        }
    }
    let said = [("must", &expect.must), ("must_not", &expect.must_not)];
    for (member, said) in said.into_iter().filter(|(member, _)| expect.means(member)) {
        for sentence in said.iter().filter(|sentence| !sentences::is_about_an_export(sentence)) {
            if let Err(why) = sentences::check(run, expect, sentence) {
                failures.push(format!("{member} {sentence:?}: {why}"));
            }
        }
    }
}

/// What the report says of an input, by its path.
fn reported<'r>(run: &'r Run<'_>) -> BTreeMap<String, &'r Value> {
    json::list(&run.report, "/inputs")
        .iter()
        .map(|i| (run.relative(json::text(i, "/path").unwrap_or_default()), i))
        .collect()
}

fn inputs(run: &Run<'_>, expected: &[Input], failures: &mut Vec<String>) {
    let reported = reported(run);
    // What lies beside the source is no part of the input.
    let source = run.source.path.to_string_lossy();
    let is_of_it = |input: &&Input| run.source.base.join(&input.path).to_string_lossy().starts_with(&*source);
    let expected: Vec<&Input> = expected.iter().filter(is_of_it).collect();
    let names: BTreeSet<&str> = reported.keys().map(String::as_str).collect();
    equal("inputs", &names, &expected.iter().map(|i| i.path.as_str()).collect(), failures);
    for input in expected {
        let Some(found) = reported.get(&input.path) else { continue };
        let path = &input.path;
        equal(&format!("{path}: format"), &json::text(found, "/format"), &Some(input.format.as_str()), failures);
        for (member, count) in [("lines", input.lines), ("records", input.records), ("fragments", input.fragments)] {
            if count.is_some() {
                equal(&format!("{path}: {member}"), &found[member].as_u64(), &count, failures);
            }
        }
        if let Some(by_type) = &input.by_type {
            let counts = found["by_type"].as_object().into_iter().flatten();
            let found: BTreeMap<String, u64> =
                counts.map(|(name, n)| (name.clone(), n.as_u64().unwrap_or(0))).collect();
            equal(&format!("{path}: by_type"), &found, by_type, failures);
        }
    }
}

/// A total; `None` if nobody counts that.
fn counted(run: &Run<'_>, expect: &Expect, what: &str) -> Option<u64> {
    let reported = reported(run);
    let total = |member: &str, counts: fn(&Input) -> bool| -> u64 {
        let inputs = expect.inputs.iter().filter(|i| counts(i)).filter_map(|i| reported.get(&i.path));
        inputs.filter_map(|found| found[member].as_u64()).sum()
    };
    let of_type = |kind: &str| -> u64 { reported.values().filter_map(|found| found["by_type"][kind].as_u64()).sum() };
    let events = |kind: &str| run.logs.iter().map(|l| l.log.of_type(kind).count() as u64).sum();
    Some(match what {
        "sessions" => run.mains().map(|log| &log.session).collect::<BTreeSet<_>>().len() as u64,
        "conversations" => {
            run.mains().filter(|l| json::text(&l.state, "/parent/mode") != Some("continue")).count() as u64
        }
        "messages" if of_type("message") > 0 => of_type("message"),
        "messages" => run.logs.iter().filter_map(|l| json::count(&l.state, "/counts/messages")).sum(),
        "parts" => of_type("part"),
        "records" => total("records", |i| i.records.is_some()),
        "fragments" => total("fragments", |i| i.fragments.is_some()),
        "tool_calls" => events("action.proposed"),
        "tool_results" => {
            let messages = run.logs.iter().flat_map(|l| l.log.of_type("message.added"));
            messages.flat_map(|event| json::list(event, "/data/parts")).filter(|part| part["type"] == "result").count()
                as u64
        }
        _ => return None,
    })
}

fn preserved(run: &Run<'_>, preserve: &Preserve, failures: &mut Vec<String>) {
    if preserve.what == "the bytes of both source files: digests before and after are equal" {
        let inputs = match &run.source.expectation {
            Expectation::Faults(expect) => expect.inputs.as_slice(),
            Expectation::Truth(_) => &[],
        };
        failures.extend(inputs.iter().filter_map(|input| check_input(&run.source.base, input).err()));
    } else if preserve.text.is_none() && preserve.place.is_none() {
        failures.push(format!("nobody checks that {} is preserved", preserve.what));
    }
    if let Some(text) = &preserve.text {
        let mut found = false;
        for event in run.logs.iter().flat_map(|l| &l.log.events) {
            json::strings(&event["data"], &mut |s| found |= s.contains(text.as_str()));
        }
        // A number is no string, and what the format has no place for stands beside the data.
        let escaped = Value::from(text.as_str()).to_string();
        found |= run.logs.iter().any(|l| String::from_utf8_lossy(&l.log.bytes).contains(escaped.trim_matches('"')));
        if !found {
            failures.push(format!("preserve: {} ({text:?}) is in no event", preserve.what));
        }
    }
    if let Some(place) = &preserve.place {
        let (Some(offset), Some(length)) = (place.offset, place.length) else {
            failures.push(format!("nobody checks that {} is preserved: no offset and length", preserve.what));
            return;
        };
        let original =
            fs::read(run.source.base.join(place.input.as_deref().unwrap_or("input.jsonl"))).unwrap_or_default();
        let (from, to) =
            (usize::try_from(offset).unwrap_or(usize::MAX), usize::try_from(offset + length).unwrap_or(usize::MAX));
        let Some(original) = original.get(from..to) else {
            failures.push(format!("preserve: {} lies outside of the source", preserve.what));
            return;
        };
        let kept = run
            .logs
            .iter()
            .any(|l| l.log.sources.keys().any(|name| l.log.slice(name, offset, length) == Some(original)));
        let pointed = run.logs.iter().any(|l| covers(l, offset, length));
        if !kept || !pointed {
            failures.push(format!("preserve: {}: kept {kept}, told by an event {pointed}", preserve.what));
        }
    }
}

/// Whether an event points to exactly these bytes of the conversation, or to a record around them.
fn covers(imported: &crate::run::Imported, offset: u64, length: u64) -> bool {
    imported.log.records().iter().any(|r| r.at <= offset && offset + length <= r.end())
        || imported.log.notes(&["fragment", "torn", "hole"]).any(|(_, at, len)| (at, len) == (offset, length))
}

fn verdict(run: &Run<'_>, expected: &SessionVerdict, failures: &mut Vec<String>) {
    let imported = match &expected.session {
        _ if expected.input.is_some() => run
            .logs
            .iter()
            .find(|log| log.input == expected.input)
            .ok_or_else(|| format!("no log of {}", expected.input.as_deref().unwrap_or_default())),
        Some(session) => run.session(session).ok_or_else(|| format!("no session {session}")),
        None => run.only(),
    };
    match imported {
        Ok(imported) => {
            equal("verdict", &json::text(&imported.recovery, "/verdict"), &Some(expected.verdict.word()), failures)
        }
        Err(why) => failures.push(format!("verdict: {why}")),
    }
}
