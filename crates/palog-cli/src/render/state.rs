//! A state for people.

use std::collections::BTreeMap;
use std::io::{self, Write};

use palog::state::{Action, ActionState, Count, State};

use crate::render::text::{clean_line, count, short, thousands};
use crate::terminal::Style;

/// How many of each are listed.
const LISTED: usize = 20;

/// Prints a state: what is open in full, what is settled as counts.
pub(crate) fn render(out: &mut dyn Write, style: Style, state: &State) -> io::Result<()> {
    for reason in &state.indeterminate {
        let why = reason.why.as_deref().unwrap_or_else(|| reason.code.meaning());
        writeln!(out, "{}", style.red(&format!("nothing can be concluded: {} ({})", short(why, 200), reason.code)))?;
    }
    let counts = &state.counts;
    let n = |Count(n): Count, one: &str, many: &str| count(n, one, many);
    let row = |out: &mut dyn Write, name: &str, text: String| writeln!(out, "  {name:<11}{text}");
    row(
        out,
        "counts",
        [
            n(counts.events, "event", "events"),
            n(counts.messages, "message", "messages"),
            n(counts.prompts, "prompt", "prompts"),
            n(counts.responses, "response", "responses"),
            n(counts.compactions, "compaction", "compactions"),
            n(counts.children, "child", "children"),
        ]
        .join(", "),
    )?;
    let answered =
        state.turns.answered.map_or_else(|| "none answered".into(), |t| format!("the newest answered is number {t}"));
    let open = if state.turns.open { "; the newest is open" } else { "" };
    row(out, "turns", format!("{} ({answered}{open})", state.turns.count))?;
    let usage = [
        ("input", state.usage.input),
        ("output", state.usage.output),
        ("cache read", state.usage.cache_read),
        ("cache write", state.usage.cache_write),
        ("reasoning", state.usage.reasoning),
    ];
    let usage: Vec<String> =
        usage.iter().filter_map(|(name, n)| n.map(|Count(n)| format!("{} {name}", thousands(n)))).collect();
    if !usage.is_empty() {
        row(out, "tokens", usage.join(", "))?;
    }
    if let Some(head) = &state.head {
        row(out, "head", clean_line(head))?;
    }
    if let Some(time) = &state.latest_time {
        row(out, "latest", clean_line(time))?;
    }
    if let Some(end) = state.closed {
        row(out, "closed", end.to_string())?;
    }
    section(out, style, "Sources", state.sources.iter(), |(name, source)| {
        let version = source.version.as_deref().map_or_else(String::new, |v| format!(" {v}"));
        format!(
            "{}  {}{}  {}",
            clean_line(name),
            clean_line(&source.vendor),
            clean_line(&version),
            clean_line(&source.locator)
        )
    })?;
    actions(out, style, &state.actions)?;
    section(out, style, "Approvals", state.approvals.iter(), |a| {
        let about = a.action.as_deref().map_or_else(String::new, |a| format!(" for {}", clean_line(a)));
        format!("{}  {}{about}", a.status, a.kind)
    })?;
    section(out, style, "Inputs", state.inputs.iter(), |i| {
        format!("{}{}  {}", i.status, if i.pending { ", pending" } else { "" }, clean_line(&i.input))
    })?;
    section(out, style, "Children", state.children.iter(), |c| {
        let session = c.session.as_deref().unwrap_or(&c.child);
        let by = c.action.as_deref().map_or_else(String::new, |a| format!(", by {}", clean_line(a)));
        format!("{}  {}{by}", if c.ended { "ended" } else { "not known to have ended" }, clean_line(session))
    })?;
    if let Some(lease) = &state.lease {
        let until = lease.expires.as_deref().map_or_else(String::new, |time| format!(" until {}", clean_line(time)));
        row(out, "held by", format!("{} (epoch {}){until}", clean_line(&lease.holder), lease.epoch))?;
    }
    section(out, style, "Tasks", state.tasks.iter(), |t| {
        let done = t.steps.iter().filter(|step| step.status == palog::events::StepStatus::Done).count();
        let plan = format!("plan {}, {done} of {} done", t.plan_revision, count(t.steps.len() as u64, "step", "steps"));
        format!(
            "{}{}  {}  {plan}",
            t.status,
            if t.replanning { ", to be planned anew" } else { "" },
            clean_line(&t.task)
        )
    })?;
    section(out, style, "Commands", state.commands.iter(), |c| {
        let stale = if c.stale { ", for another plan" } else { "" };
        format!("{}{stale}  {}  {}", c.status, c.operation.word().replace('_', " "), clean_line(&c.task))
    })?;
    section(out, style, "Grants", state.grants.iter().filter(|g| !g.revoked), |g| {
        let names = g.names.as_ref().map_or_else(|| "anything".to_owned(), |names| names.join(", "));
        format!("{}  {}", clean_line(&names), clean_line(&g.grant))
    })?;
    section(out, style, "Held", state.resources.iter().filter(|r| r.held), |r| {
        format!("{}  {}", clean_line(r.kind.as_deref().unwrap_or("resource")), clean_line(&r.resource))
    })?;
    section(out, style, "Checkpoints", state.checkpoints.iter(), |c| {
        let flaw = c.flaws.first().map_or_else(|| "valid".to_owned(), |flaw| format!("invalid: {}", short(flaw, 120)));
        format!("{}  {flaw}", clean_line(&c.checkpoint))
    })?;
    section(out, style, "Without effect", state.void.iter(), |v| {
        format!("{}  {}", clean_line(&v.kind), clean_line(&v.at.event))
    })?;
    section(out, style, "Observations", state.observations.iter(), |o| {
        format!(
            "{}  {}  {}",
            clean_line(&o.fact),
            clean_line(o.as_of.as_deref().unwrap_or("(no time)")),
            clean_line(&o.source)
        )
    })?;
    section(out, style, "Pending", state.pending.iter(), |p| {
        let which = p.action.as_ref().or(p.input.as_ref()).unwrap_or(&p.event);
        format!("{}  {}", p.kind.word().replace('_', " "), clean_line(which))
    })
}

fn actions(out: &mut dyn Write, style: Style, all: &[Action]) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    let mut by_state: BTreeMap<ActionState, u64> = BTreeMap::new();
    for action in all {
        *by_state.entry(action.state).or_default() += 1;
    }
    let counts: Vec<String> = by_state.iter().map(|(state, n)| format!("{} {state}", thousands(*n))).collect();
    let unsettled = all.iter().filter(|a| !a.is_settled());
    section(out, style, &format!("Actions: {}", counts.join(", ")), unsettled, |a| {
        let name = a.name.as_deref().unwrap_or("(never proposed)");
        let doubt = a.doubt.map_or_else(String::new, |d| format!(" ({})", d.word().replace('_', " ")));
        let over = if a.passed_over { ", passed over" } else { "" };
        format!("{}{doubt}{over}  {}  {}", a.state, clean_line(name), clean_line(&a.action))
    })
}

fn section<T>(
    out: &mut dyn Write,
    style: Style,
    title: &str,
    items: impl Iterator<Item = T> + Clone,
    line: impl Fn(T) -> String,
) -> io::Result<()> {
    let total = items.clone().count();
    if total == 0 && !title.contains(':') {
        return Ok(());
    }
    writeln!(out, "\n{}", style.bold(title))?;
    for item in items.take(LISTED) {
        writeln!(out, "  {}", line(item))?;
    }
    if total > LISTED {
        writeln!(out, "  … and {} more (--format json has them)", thousands((total - LISTED) as u64))?;
    }
    Ok(())
}
