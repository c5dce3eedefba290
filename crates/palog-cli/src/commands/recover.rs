//! `palog recover`

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use jiff::Timestamp;
use palog::envelope::Time;
use palog::recover::{Context, Environment, recover};
use palog::reduce::{reduce, reduce_with_parent};
use palog::state::Observation;

use crate::args::{Format, Recover};
use crate::exit::{Exit, Failure};
use crate::facts::Facts;
use crate::input;
use crate::output::recover::Answer;
use crate::render::overview::Overview;
use crate::render::recover::Page;
use crate::terminal::Terminal;

/// Tells what may happen next. Whatever the verdict is, that is an answer.
pub(crate) fn run(terminal: &mut Terminal, args: &Recover) -> Result<Exit, Failure> {
    let now = now(args.now.as_deref())?;
    let observations: Vec<Observation> = args.observe.as_deref().map(read_json).transpose()?.unwrap_or_default();
    let environment: Option<Environment> = args.env.as_deref().map(read_json).transpose()?;
    let log = input::open(terminal, &args.subject)?;
    let parent = args.parent.as_deref().map(input::open_log).transpose()?;
    let (state, faults) = match &parent {
        Some(parent) => reduce_with_parent(parent.start()?, log.start()?),
        None => reduce(log.start()?),
    }
    .map_err(|e| log.unreadable(&e))?;
    let parent = match parent {
        Some(parent) => {
            let (of_parent, _) = reduce(parent.start()?).map_err(|e| parent.unreadable(&e))?;
            if state.parent.as_ref().map(|named| &named.log) != of_parent.log.as_ref() {
                return Err(Failure::new(Exit::Usage, format!("{} is not the parent of {}", parent.name, log.name)));
            }
            Some(of_parent)
        }
        None => None,
    };
    input::tell_faults(terminal, &log, &faults)?;
    let text = now.to_string();
    let time = Time::parse(text.as_str()).ok_or_else(|| Failure::new(Exit::Bug, format!("{text} is no time")))?;
    let mut context = Context::new().at(time).seen(&observations);
    if let Some(environment) = &environment {
        context = context.within(environment);
    }
    if let Some(parent) = &parent {
        context = context.child_of(parent);
    }
    let recovery = recover(&state, &context);
    match args.subject.format {
        Format::Json => terminal.json(&Answer::new(&state, &text, &recovery))?,
        Format::Human => {
            let overview = Overview::of(&state);
            let settled = state.actions.iter().rfind(|a| a.is_settled() && !a.inherited);
            let calls: HashSet<&str> = recovery
                .obligations
                .iter()
                .filter_map(|o| o.call.as_ref().map(|c| c.action.as_str()))
                .chain(settled.map(|a| a.action.as_str()))
                .collect();
            let texts: HashSet<&str> = recovery.obligations.iter().map(|o| o.subject.id.as_str()).collect();
            let facts = Facts::gather(&log, overview.vendor(), &calls, &texts).map_err(|e| log.unreadable(&e))?;
            let style = terminal.out_style;
            let actions = state.actions.iter().map(|action| (action.action.as_str(), action)).collect();
            Page { overview: &overview, state: &state, actions, recovery: &recovery, facts: &facts, now, style }
                .render(&mut terminal.out)?;
        }
    }
    Ok(Exit::Ok)
}

/// The time that is meant.
fn now(given: Option<&str>) -> Result<Timestamp, Failure> {
    let Some(text) = given else { return Ok(Timestamp::now()) };
    let wrong = |_| Failure::new(Exit::Usage, format!("--now {text}: not a time")).help("--now 2026-11-29T12:00:00Z");
    text.parse().map_err(wrong)
}

/// A file that holds one JSON value of a known form.
fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|e| Failure::unreadable(&name, &e))?;
    serde_json::from_str(&text)
        .map_err(|e| Failure::new(Exit::Unreadable, format!("{name} does not have the form that is asked for: {e}")))
}
