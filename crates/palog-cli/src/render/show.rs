//! A transcript for people.

use std::collections::HashMap;
use std::io::{self, Write};

use palog::blob::BlobStore;
use palog::envelope::ActorKind;
use palog::events::{
    ActionKind, Applied, ApprovalEnded, ApprovalKind, ApprovalOutcome, Data, MessageAdded, Outcome, Part, Role,
};
use palog::json::Value;
use palog::project::{Fate, Item, Told};

use crate::render::text::{clean_line, clean_lines, count, short, thousands};
use crate::terminal::Style;

/// How much of a text is shown.
const LINES: usize = 16;
const CHARACTERS: usize = 1200;
/// How much of a call's arguments is shown.
const ARGUMENTS: usize = 160;
/// The largest value beside the log that is fetched to show its beginning, in bytes.
const FETCHED: u64 = 16 << 20;

/// Prints a transcript item by item.
pub(crate) struct Show<'a> {
    pub(crate) style: Style,
    /// Do not cut.
    pub(crate) full: bool,
    /// What became of a call is told when it comes, rather than with the call.
    pub(crate) follows: bool,
    pub(crate) blobs: Option<&'a BlobStore>,
    /// Names of the actions so far.
    names: HashMap<String, String>,
    live: bool,
}

impl<'a> Show<'a> {
    pub(crate) fn new(style: Style, full: bool, blobs: Option<&'a BlobStore>) -> Self {
        Show { style, full, follows: false, blobs, names: HashMap::new(), live: true }
    }

    /// Prints one item.
    pub(crate) fn item(&mut self, out: &mut dyn Write, item: &Item<'_>) -> io::Result<()> {
        self.branch(out, item)?;
        let time = item.event.time.as_ref().map(|t| t.as_str());
        match item.data {
            Data::MessageAdded(message) => self.message(out, time, item.event.actor.kind, message),
            Data::ActionProposed(action) => {
                self.names.insert(action.action.to_string(), action.name.to_string());
                if self.follows {
                    self.head(out, time, &format!("call of {}", clean_line(&action.name)), &action.action)?;
                    self.block(out, &self.value(&action.args), if self.full { usize::MAX } else { ARGUMENTS })?;
                    return writeln!(out);
                }
                let asks = action.kind == Some(ActionKind::Question);
                let (mark, what) = match outcome(item.fate.as_ref()) {
                    (Mark::Open, _) if asks => {
                        (Mark::Open, "PENDING: it asks a person, and the log has no answer".into())
                    }
                    told => told,
                };
                self.head(out, time, &format!("call of {}", clean_line(&action.name)), &action.action)?;
                self.block(out, &self.value(&action.args), if self.full { usize::MAX } else { ARGUMENTS })?;
                let line = format!("{} {what}", mark.sign());
                writeln!(out, "  {}\n", mark.paint(self.style, &line))
            }
            Data::InputQueued(input) => {
                // It stands in full where the model was given it.
                let text = input.parts.iter().find_map(|part| match part {
                    Part::Text { text } => Some(self.value(text)),
                    _ => None,
                });
                let text = text.map_or_else(String::new, |t| {
                    format!(": {}", short(&t, if self.full { usize::MAX / 8 } else { 100 }))
                });
                self.remark(out, time, &format!("input was queued{text}"))
            }
            Data::TurnEnded(end) => {
                let reason = end.reason.as_ref().map_or_else(String::new, |r| format!(": {}", short(r, 200)));
                match end.how {
                    palog::events::TurnEnd::Complete => Ok(()),
                    palog::events::TurnEnd::Interrupted => {
                        self.remark(out, time, &format!("the turn was interrupted{reason}"))
                    }
                    palog::events::TurnEnd::Error => {
                        self.remark(out, time, &format!("the turn broke off with an error{reason}"))
                    }
                    other => self.remark(out, time, &format!("the turn ended: {other}{reason}")),
                }
            }
            Data::ApprovalRequested(request) => {
                let about = request.action.as_deref().map_or_else(String::new, |a| format!(" for {}", self.name(a)));
                let what = match request.kind {
                    ApprovalKind::Permission => "leave was asked",
                    ApprovalKind::Question => "a question was asked",
                    ApprovalKind::Elicitation => "a form was shown",
                    _ => "something was asked",
                };
                self.remark(out, time, &format!("{what}{about}"))
            }
            Data::ActionEnded(end) if self.follows => {
                let what = match (end.applied, end.outcome) {
                    (Applied::Unknown, _) => "ended, and that does not tell whether it took effect".into(),
                    (_, Outcome::Succeeded) => "is done".into(),
                    (applied, Outcome::Cancelled) => format!("was stopped{}", effect(applied)),
                    (applied, _) => format!("failed{}", effect(applied)),
                };
                self.remark(out, time, &format!("{} {what}", self.name(&end.action)))
            }
            Data::ApprovalEnded(end) => self.approval(out, time, end),
            Data::ActionReconciled(found) => {
                let what = format!(
                    "{} was looked up: {} ({})",
                    self.name(&found.action),
                    found.outcome.word().replace('_', " "),
                    clean_line(&found.basis)
                );
                self.remark(out, time, &what)
            }
            Data::ContextCompacted(compacted) => {
                let what = match (&compacted.window, &compacted.pruned) {
                    (Some(_), _) => "from here on the model sees a summary of what came before".to_owned(),
                    (None, Some(pruned)) => format!(
                        "{} lost their content in what the model sees",
                        count(pruned.len() as u64, "result", "results")
                    ),
                    (None, None) => "what the model sees was compacted".to_owned(),
                };
                self.remark(out, time, &what)
            }
            Data::BranchMoved(_) => self.remark(out, time, "the conversation went back to an earlier point"),
            Data::ChildSpawned(child) => {
                let what = format!("{} {} has a log of its own", child.kind, clean_line(&child.session));
                self.remark(out, time, &what)
            }
            Data::ChildEnded(child) => {
                let status = child.status.as_deref().map_or_else(String::new, |s| format!(" ({})", clean_line(s)));
                self.remark(out, time, &format!("a child ended{status}"))
            }
            Data::MessageRevised(revised) if revised.removed == Some(true) => {
                self.remark(out, time, "from here on the model does not see a message any more")
            }
            Data::MessageRevised(_) => self.remark(out, time, "from here on the model sees a message changed"),
            Data::GrantAdded(grant) => {
                let names = grant.names.iter().flatten().map(|name| clean_line(name)).collect::<Vec<_>>().join(", ");
                let names = if names.is_empty() { String::new() } else { format!(" for {names}") };
                self.remark(out, time, &format!("leave was given until it is revoked{names}"))
            }
            Data::GrantRevoked(_) => self.remark(out, time, "leave that was given was revoked"),
            Data::LeaseAcquired(lease) => {
                let what = format!("{} took the session (epoch {})", clean_line(&lease.holder), lease.epoch);
                self.remark(out, time, &what)
            }
            Data::LeaseReleased(lease) => {
                self.remark(out, time, &format!("the session was given up (epoch {})", lease.epoch))
            }
            Data::TaskOpened(task) => {
                let goal = short(&self.value(&task.goal), 200);
                self.remark(out, time, &format!("task {}: {goal}", clean_line(&task.task)))
            }
            Data::TaskClosed(task) => {
                self.remark(out, time, &format!("task {} ended: {}", clean_line(&task.task), task.how))
            }
            Data::PlanRevised(plan) => {
                let steps = count(plan.steps.len() as u64, "step", "steps");
                let what = format!("plan {} of task {}: {steps}", plan.revision, clean_line(&plan.task));
                self.remark(out, time, &what)
            }
            Data::CommandIssued(command) => {
                let operation = command.operation.word().replace('_', " ");
                self.remark(out, time, &format!("command: {operation} task {}", clean_line(&command.task)))
            }
            Data::CommandEnded(command) => {
                self.remark(out, time, &format!("the command {} was {}", clean_line(&command.command), command.outcome))
            }
            Data::RedactionApplied(_) => self.remark(out, time, "content was taken out of the log"),
            Data::NoteAdded(note) if &*note.kind == "fragment" || &*note.kind == "torn" => self.remark(
                out,
                time,
                &format!("{} of the source are no whole record", count(note.len.unwrap_or(0), "byte", "bytes")),
            ),
            // What is left is record keeping, or told with the call that it belongs to.
            _ => Ok(()),
        }
    }

    /// Tells where a branch that was left begins and ends.
    fn branch(&mut self, out: &mut dyn Write, item: &Item<'_>) -> io::Result<()> {
        if item.live == self.live {
            return Ok(());
        }
        self.live = item.live;
        let what =
            if item.live { "back on the branch that went on" } else { "what follows is on a branch that was left" };
        writeln!(out, "{}\n", self.style.yellow(&format!("~~~ {what} ~~~")))
    }

    fn message(
        &self,
        out: &mut dyn Write,
        time: Option<&str>,
        actor: ActorKind,
        message: &MessageAdded<'_>,
    ) -> io::Result<()> {
        // Calls have their own items.
        let parts: Vec<&Part<'_>> = message.parts.iter().filter(|p| !matches!(p, Part::Action { .. })).collect();
        if parts.is_empty() && !message.parts.is_empty() {
            return Ok(());
        }
        if message.role == Role::Tool {
            return parts.into_iter().try_for_each(|part| self.result(out, time, part));
        }
        let purpose = message.purpose.as_deref().unwrap_or_default();
        let who = match (message.role, actor) {
            (Role::Assistant, ActorKind::Model) => "model",
            (Role::Assistant, _) => "client, in the model's place",
            (Role::User | Role::System | Role::Developer, ActorKind::User) => "user",
            (Role::User, ActorKind::Agent) => "parent agent",
            (Role::User, _) => "client, in the user's place",
            (role, _) => role.word(),
        };
        let mut marks: Vec<String> = Vec::new();
        if !matches!(purpose, "" | "prompt") {
            marks.push(purpose.replace('_', " "));
        }
        if message.partial == Some(true) {
            marks.push("cut off".into());
        }
        if message.in_context == Some(false) {
            marks.push("not shown to the model".into());
        }
        self.head(out, time, who, &clean_line(&marks.join(", ")))?;
        parts.into_iter().try_for_each(|part| self.part(out, part))?;
        writeln!(out)
    }

    /// What the model was told of a call.
    fn result(&self, out: &mut dyn Write, time: Option<&str>, part: &Part<'_>) -> io::Result<()> {
        let Part::Result { action, parts, is_error, r#final } = part else { return self.part(out, part) };
        let mark = match (is_error, r#final) {
            (_, false) => ", for now",
            (Some(true), true) => ", an error",
            _ => "",
        };
        self.head(out, time, &format!("result of {}{mark}", self.name(action)), action)?;
        parts.iter().try_for_each(|part| self.part(out, part))?;
        writeln!(out)
    }

    fn part(&self, out: &mut dyn Write, part: &Part<'_>) -> io::Result<()> {
        let limit = if self.full { usize::MAX } else { CHARACTERS };
        match part {
            Part::Text { text } => self.block(out, &self.value(text), limit),
            Part::Reasoning { text: Some(text), .. } => {
                let thought = format!("(thinking) {}", self.value(text));
                self.block(out, &thought, limit)
            }
            Part::Reasoning { text: None, .. } => self.block(out, "(thinking that only the provider can read)", limit),
            Part::Image { media, data } => {
                self.block(out, &format!("(a picture, {}, {})", clean_line(media), size(data)), limit)
            }
            Part::File { name, media, data } => {
                let name = name.as_deref().unwrap_or("without a name");
                let media = media.as_deref().map_or_else(String::new, |m| format!(", {m}"));
                self.block(out, &format!("(a file, {name}{media}, {})", size(data)), limit)
            }
            Part::Json { value } => self.block(out, &self.value(value), limit),
            Part::Action { .. } => Ok(()),
            Part::Result { action, parts, .. } => {
                self.block(out, &format!("(result of {})", self.name(action)), limit)?;
                parts.iter().try_for_each(|part| self.part(out, part))
            }
            Part::Opaque(opaque) => {
                let kind = opaque.kind.as_deref().unwrap_or("something");
                self.block(
                    out,
                    &format!("({kind} that only {} can read, {})", opaque.provider, size(&opaque.value)),
                    limit,
                )
            }
            _ => self.block(out, "(a part of a kind that this version does not know)", limit),
        }
    }

    fn approval(&self, out: &mut dyn Write, time: Option<&str>, end: &ApprovalEnded<'_>) -> io::Result<()> {
        let about = end.action.as_deref().map_or_else(String::new, |a| format!(" for {}", self.name(a)));
        let what = match end.outcome {
            ApprovalOutcome::Granted => "leave was given",
            ApprovalOutcome::Denied => "leave was refused",
            ApprovalOutcome::Answered => "an answer was given",
            ApprovalOutcome::Expired => "nobody answered in time",
            ApprovalOutcome::Withdrawn => "the question was taken back",
            _ => "the question was closed",
        };
        let reason = end.reason.as_ref().map_or_else(String::new, |r| format!(": {}", short(&self.value(r), 200)));
        self.remark(out, time, &format!("{what}{about}{reason}"))
    }

    /// The line that stands over an item: when, who or what, and which.
    fn head(&self, out: &mut dyn Write, time: Option<&str>, what: &str, which: &str) -> io::Result<()> {
        let which = if which.is_empty() { String::new() } else { format!("  {}", self.style.dim(&clean_line(which))) };
        writeln!(out, "{} {}{which}", self.style.dim(&clock(time)), self.style.bold(what))
    }

    fn remark(&self, out: &mut dyn Write, time: Option<&str>, what: &str) -> io::Result<()> {
        writeln!(out, "{} -- {what}\n", self.style.dim(&clock(time)))
    }

    /// A text, indented, safe and cut.
    fn block(&self, out: &mut dyn Write, text: &str, limit: usize) -> io::Result<()> {
        let total = text.chars().count();
        // To cut a few characters off helps nobody.
        let limit = if total <= limit.saturating_add(limit / 4) { total } else { limit };
        let head: String = text.chars().take(limit).collect();
        let clean = clean_lines(&head);
        let lines = if self.full { usize::MAX } else { LINES };
        let mut shown = 0;
        for line in clean.trim_end().lines().take(lines) {
            shown += line.chars().count() + 1;
            writeln!(out, "{}", format!("  {line}").trim_end())?;
        }
        if head.len() < text.len() || clean.trim_end().lines().count() > lines {
            let left = total.saturating_sub(shown.min(limit));
            writeln!(
                out,
                "  {}",
                self.style.dim(&format!("… {} more characters (--full shows them)", thousands(left as u64)))
            )?;
        }
        Ok(())
    }

    fn name(&self, action: &str) -> String {
        self.names.get(action).map_or_else(|| format!("call {}", clean_line(action)), |name| clean_line(name))
    }

    /// The text of a value, wherever it lies.
    fn value(&self, value: &Value<'_>) -> String {
        match value {
            Value::Inline(raw) => raw.text().map_or_else(|| raw.get().to_owned(), std::borrow::Cow::into_owned),
            Value::Blob(blob) => {
                let fetched = self
                    .blobs
                    .filter(|_| self.full || blob.size <= FETCHED)
                    .and_then(|store| store.get(&blob.digest).ok());
                match fetched.map(String::from_utf8) {
                    Some(Ok(text)) => text,
                    _ => format!("(a text beside the log that cannot be shown, {})", bytes(blob.size)),
                }
            }
            Value::Omitted(omitted) => missing(omitted),
        }
    }
}

/// Why a value is not there.
pub(crate) fn missing(omitted: &palog::json::Omitted) -> String {
    use palog::json::OmittedReason;
    let why = match omitted.omitted.reason {
        OmittedReason::Truncated => "cut off by whoever wrote it",
        OmittedReason::Redacted => "taken out on purpose",
        OmittedReason::Unavailable => "not to be had",
        OmittedReason::OpaqueProvider => "readable by its provider only",
        _ => "not there",
    };
    let size = omitted.omitted.bytes.map_or_else(String::new, |n| format!(", {}", bytes(n)));
    format!("({why}{size})")
}

/// How surely an action is known to have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// It did what it should.
    Good,
    /// It did not.
    Bad,
    /// Nobody knows, or somebody has to do something.
    Open,
}

impl Mark {
    fn sign(self) -> &'static str {
        match self {
            Mark::Good => "=>",
            Mark::Bad => "=x",
            Mark::Open => "??",
        }
    }

    fn paint(self, style: Style, text: &str) -> String {
        match self {
            Mark::Good => style.green(text),
            Mark::Bad => style.red(text),
            Mark::Open => style.yellow(text),
        }
    }
}

/// What became of an action, in words.
pub(crate) fn outcome(fate: Option<&Fate>) -> (Mark, String) {
    use palog::events::Reconciled;
    let Some(fate) = fate else { return (Mark::Open, "OUTCOME UNKNOWN: the log does not tell whether it ran".into()) };
    if let Some(found) = fate.reconciled {
        let what = match found {
            Reconciled::Applied => (Mark::Good, "a look-up showed that it took effect"),
            Reconciled::NotApplied => (Mark::Bad, "a look-up showed that it did not take effect"),
            Reconciled::Partial => (Mark::Bad, "a look-up showed that it took effect in part"),
            Reconciled::InProgress => (Mark::Open, "PENDING: a look-up showed that it still runs"),
            _ => (Mark::Open, "OUTCOME UNKNOWN: a look-up could not tell"),
        };
        return (what.0, what.1.into());
    }
    match (fate.ended, fate.approval) {
        (Some((_, Applied::Unknown)), _) => {
            (Mark::Open, "OUTCOME UNKNOWN: its end does not tell whether it took effect".into())
        }
        (Some((Outcome::Succeeded, _)), _) => (Mark::Good, "done".into()),
        (Some((Outcome::Cancelled, applied)), _) => (Mark::Bad, format!("stopped{}", effect(applied))),
        (Some((_, applied)), _) => (Mark::Bad, format!("failed{}", effect(applied))),
        (None, Some(ApprovalOutcome::Denied)) => (Mark::Bad, "refused: it did not run".into()),
        (None, Some(ApprovalOutcome::Expired | ApprovalOutcome::Withdrawn)) => {
            (Mark::Bad, "lapsed: nobody gave leave".into())
        }
        (None, _) if fate.told == Some(Told::Running) => {
            (Mark::Open, "PENDING: it went on in the background, and the log has no end of it".into())
        }
        (None, _) if fate.asked => (Mark::Open, "PENDING: leave was asked, and the log has no answer".into()),
        (None, _) if fate.told.is_some() => (Mark::Good, "the model was given a result".into()),
        (None, _) if fate.started => {
            (Mark::Open, "OUTCOME UNKNOWN: it was started, and the log has no end of it".into())
        }
        (None, _) => (Mark::Open, "OUTCOME UNKNOWN: the log does not tell whether it ran".into()),
    }
}

fn effect(applied: Applied) -> &'static str {
    match applied {
        Applied::No => ", before it ran",
        Applied::Partial => ", with a part of its effect",
        _ => "",
    }
}

/// Day and time of day of a time, to the second.
pub(crate) fn clock(time: Option<&str>) -> String {
    let text = time.and_then(|t| t.get(..19)).map(|t| t.replace('T', " "));
    text.unwrap_or_else(|| "(no time)          ".into())
}

fn size(value: &Value<'_>) -> String {
    match value {
        Value::Inline(raw) => bytes(raw.get().len() as u64),
        Value::Blob(blob) => bytes(blob.size),
        Value::Omitted(omitted) => missing(omitted),
    }
}

/// A number of bytes for people.
pub(crate) fn bytes(n: u64) -> String {
    match n {
        0..=9_999 => count(n, "byte", "bytes"),
        10_000..=9_999_999 => format!("{} kB", thousands(n / 1000)),
        _ => format!("{} MB", thousands(n / 1_000_000)),
    }
}
