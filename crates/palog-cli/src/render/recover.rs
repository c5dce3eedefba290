//! The page that a person reads after a crash: what happened, what is known, what is not, what waits, and what to do.

use std::collections::HashMap;
use std::io::{self, Write};

use jiff::{SignedDuration, Timestamp};
use palog::events::{ActionKind, ChildKind, ParentMode};
use palog::recover::{Decision, Obligation, Recovery, SubjectKind, Verdict};
use palog::state::{Action, ActionState, Count, Doubt, Parent, State, Told};
use palog_import::{Question, Resume};

use crate::facts::{Facts, Said};
use crate::render::overview::Overview;
use crate::render::show::clock;
use crate::render::text::{clean_line, count, short, thousands};
use crate::terminal::Style;

/// How many of each kind are told one by one.
const LISTED: usize = 5;
/// How much of a call's arguments is quoted, in a list and in a sentence.
const ARGUMENTS: usize = 100;
const MENTIONED: usize = 50;
/// How much of a message is quoted.
const WORDS: usize = 120;
/// How much of a question is quoted, and how many of its options.
const QUESTION: usize = 400;
const OPTIONS: usize = 6;
/// Where sentences are broken.
const WIDTH: usize = 96;

/// What the page is made from.
pub(crate) struct Page<'a> {
    pub(crate) overview: &'a Overview,
    pub(crate) state: &'a State,
    /// The actions of the state, by their ids.
    pub(crate) actions: HashMap<&'a str, &'a Action>,
    pub(crate) recovery: &'a Recovery,
    pub(crate) facts: &'a Facts,
    /// The time that ages are counted to.
    pub(crate) now: Timestamp,
    pub(crate) style: Style,
}

impl Page<'_> {
    /// Prints the page.
    pub(crate) fn render(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.headline())?;
        self.section(out, "What happened", self.happened())?;
        self.section(out, "What is known", self.known())?;
        self.section(out, "What is unknown", self.unknown())?;
        self.section(out, "What waits", self.waits())?;
        self.section(out, "What to do", self.todo())
    }

    fn section(&self, out: &mut dyn Write, title: &str, lines: Vec<String>) -> io::Result<()> {
        writeln!(out, "\n{}", self.style.bold(title))?;
        lines.iter().try_for_each(|line| writeln!(out, "  {line}"))
    }

    /// The answer in one line.
    fn headline(&self) -> String {
        let s = self.style;
        let held = self.blocking().count() as u64;
        let line = match self.recovery.verdict {
            Verdict::Indeterminate => {
                s.red("CANNOT TELL. The log is damaged, or newer than this program: nothing can be concluded from it.")
            }
            Verdict::Closed => s.green("CLOSED. The session is over."),
            Verdict::Owned => s.yellow("IN USE. Somebody holds this session right now."),
            Verdict::NeedsReconcile if held == 0 => s.red(&format!("STOP. {}", clean_line(&self.recovery.reason))),
            Verdict::NeedsReconcile => {
                let calls = count(held, "call", "calls");
                s.red(&format!("STOP. {calls} may have run, and the log does not tell. Look before anything goes on."))
            }
            Verdict::AwaitingHuman => s.yellow("WAITING FOR A PERSON. Nothing goes on before somebody decides."),
            Verdict::Ready => s.green("READY. The session can go on: it is the model's turn."),
            Verdict::Idle if !self.left_open().is_empty() => {
                s.green("IDLE. The agent waits for its next prompt. What it went on without is told below.")
            }
            Verdict::Idle => s.green("IDLE. Nothing is open: the agent waits for its next prompt."),
            _ => s.yellow(&clean_line(&self.recovery.reason)),
        };
        format!("{line}  {}", s.dim(&format!("[{}]", self.recovery.verdict)))
    }

    fn happened(&self) -> Vec<String> {
        let o = self.overview;
        let row = |name: &str, text: &str| format!("{name:<11}{}", short(text, WORDS));
        let mut rows = Vec::new();
        rows.push(row("session", o.session.as_deref().unwrap_or("(not told)")));
        rows.extend(o.title.as_ref().map(|title| row("title", title)));
        if let Some(parent) = &o.parent {
            rows.push(row("parent", parent));
        }
        let branch =
            o.branch.as_deref().filter(|b| *b != "HEAD").map_or_else(String::new, |b| format!(" (branch {b})"));
        rows.push(row(
            "directory",
            &o.directory.as_ref().map_or_else(|| "(not told)".into(), |d| format!("{d}{branch}")),
        ));
        let version = o.version.as_deref().map_or_else(String::new, |v| format!(" {v}"));
        let model = o.model.as_deref().map_or_else(String::new, |m| format!(", {m}"));
        if let Some(agent) = &o.agent {
            rows.push(row("agent", &format!("{agent}{version}{model}")));
        }
        let said = |what: &Said| format!("{}  {}", clock(what.time.as_deref()).trim_end(), what.text);
        let prompt = self.facts.prompt.as_ref();
        rows.push(row("prompt", &prompt.map_or_else(|| "none".into(), said)));
        let behind = |words: &&Said| prompt.is_none_or(|p| self.is_said_to(p, words));
        let answer = self.facts.answer.as_ref().filter(behind);
        rows.push(row("answer", &answer.map_or_else(|| "none yet".into(), said)));
        if let Some(error) = self.facts.error.as_ref().filter(behind).filter(|e| answer.is_none_or(|a| e.seq > a.seq)) {
            rows.push(row("error", &said(error)));
        }
        if let Some(time) = &self.state.latest_time {
            rows.push(row("last event", &format!("{} UTC{}", clock(Some(time)), self.age(time))));
        }
        rows
    }

    /// Whether something was said to the last prompt. An answer may stand before its prompt in the log; so where the prompt
    /// does not wait any more, what is not older than it counts as well.
    fn is_said_to(&self, prompt: &Said, words: &Said) -> bool {
        let waits = self
            .recovery
            .obligations
            .iter()
            .any(|o| o.subject.kind == SubjectKind::Message && o.subject.id == prompt.event);
        words.seq > prompt.seq || (!waits && words.time >= prompt.time)
    }

    /// How long ago something was.
    fn age(&self, time: &str) -> String {
        let Ok(then) = time.parse::<Timestamp>() else { return String::new() };
        let age = self.now.duration_since(then);
        if age < SignedDuration::ZERO {
            return ", which is in the future by this clock".into();
        }
        let (minutes, hours) = (age.as_mins(), age.as_hours());
        let text = match hours {
            0 if minutes == 0 => "less than a minute".into(),
            0 => format!("{minutes} min"),
            1..48 => format!("{hours} h {} min", minutes % 60),
            _ => format!("{} days", hours / 24),
        };
        format!(", {text} ago")
    }

    fn known(&self) -> Vec<String> {
        let counts = &self.state.counts;
        let n = |Count(n): Count, one: &str, many: &str| count(n, one, many);
        let mut lines = Vec::new();
        let talk = format!(
            "{}, {} of the model",
            n(counts.prompts, "prompt", "prompts"),
            n(counts.responses, "response", "responses")
        );
        let words: [(&[ActionState], &str); 9] = [
            (&[ActionState::Succeeded], "done"),
            (&[ActionState::Failed], "failed"),
            (&[ActionState::Cancelled], "stopped"),
            (&[ActionState::Denied], "refused"),
            (&[ActionState::Proposed, ActionState::Approved], "not started"),
            (&[ActionState::Awaiting], "waiting for a person"),
            (&[ActionState::Lapsed], "lapsed"),
            (&[ActionState::Running], "under way when the log ends"),
            (&[ActionState::Unknown], "with an unknown outcome"),
        ];
        let own = || self.state.actions.iter().filter(|a| !a.inherited);
        let told: Vec<String> = words
            .iter()
            .map(|(states, word)| (own().filter(|a| states.contains(&a.state)).count(), word))
            .filter(|(n, _)| *n > 0)
            .map(|(n, word)| format!("{} {word}", thousands(n as u64)))
            .collect();
        let calls = count(own().count() as u64, "call", "calls");
        let talk =
            if self.recovery.verdict == Verdict::Indeterminate { format!("in what can be read: {talk}") } else { talk };
        lines.push(if told.is_empty() {
            format!("{talk}, no calls")
        } else {
            format!("{talk}, {calls}: {}", told.join(", "))
        });
        if let Some(last) = own().rfind(|a| a.is_settled()) {
            let how = match last.state {
                ActionState::Succeeded => "done",
                ActionState::Failed => "failed",
                ActionState::Cancelled => "stopped",
                _ => "refused",
            };
            lines.push(format!("last finished call: {} ({how})", self.call(&last.action, ARGUMENTS)));
        }
        let children = &self.state.children;
        let of = |kind| children.iter().filter(|c| c.kind.unwrap_or(ChildKind::Subagent) == kind).count() as u64;
        let (subagents, forks) = (of(ChildKind::Subagent), of(ChildKind::Fork));
        let kinds = [(subagents, "subagent", "subagents"), (forks, "fork", "forks")];
        let kinds: Vec<String> =
            kinds.into_iter().filter(|k| k.0 > 0).map(|(n, one, many)| count(n, one, many)).collect();
        if !kinds.is_empty() {
            let own = if subagents + forks == 1 { "a log of its own" } else { "logs of their own" };
            lines.push(format!("{} with {own}", kinds.join(", ")));
        }
        let open: Vec<String> =
            children.iter().filter(|c| !c.ended).filter_map(|c| c.session.as_deref()).map(clean_line).collect();
        if !open.is_empty() {
            let more = if open.len() > LISTED { " …" } else { "" };
            lines.push(format!(
                "not known to have ended: {}{more}  (--session ID shows each)",
                open[..open.len().min(LISTED)].join(", ")
            ));
        }
        // A status is what a client shows at a moment; the state has the newest of each source and word.
        let status =
            self.state.observations.iter().filter(|o| matches!(o.fact.as_str(), "waiting" | "busy" | "idle" | "shell"));
        if let Some(seen) = status.max_by(|a, b| a.as_of.cmp(&b.as_of)) {
            let when = clock(seen.as_of.as_deref());
            lines.push(format!(
                "the client's last status was {:?}, {}; a file that is left behind proves nothing",
                clean_line(&seen.fact),
                when.trim_end()
            ));
        }
        lines
    }

    fn unknown(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for reason in self.state.indeterminate.iter().take(LISTED) {
            let line = reason.event.as_ref().map_or_else(String::new, |e| format!(" in event {}", e.seq));
            lines.push(format!(
                "{}{line}: {}",
                reason.code,
                short(reason.why.as_deref().unwrap_or(reason.code.meaning()), WORDS)
            ));
        }
        let doubtful = |o: &&Obligation| {
            self.action(o).is_some_and(|a| matches!(a.state, ActionState::Unknown | ActionState::Running))
        };
        let all: Vec<&Obligation> = self.recovery.obligations.iter().filter(doubtful).collect();
        let (held, other): (Vec<&Obligation>, Vec<&Obligation>) = all.into_iter().partition(|o| o.blocking);
        for (n, owed) in held.iter().take(LISTED).enumerate() {
            let Some(action) = self.action(owed) else { continue };
            let call = self.call(&action.action, ARGUMENTS);
            let when = self.facts.calls.get(&action.action).and_then(|c| c.time.as_deref());
            lines.push(self.style.yellow(&format!("{}. {call}", n + 1)));
            lines.push(format!("   called {}; {}", clock(when).trim_end(), doubt(action)));
            if let Some(child) = self.state.children.iter().find(|c| c.action.as_ref() == Some(&action.action)) {
                let session = child.session.as_deref().unwrap_or(&child.child);
                lines.push(format!("   it is a subagent with a log of its own: --session {}", clean_line(session)));
            }
            for evidence in owed.evidence.iter().take(3) {
                lines.push(format!("   seen: {}", short(&evidence.text, WORDS)));
            }
        }
        if held.len() > LISTED {
            lines.push(format!("… and {} more (--format json lists them)", held.len() - LISTED));
        }
        if !other.is_empty() {
            let calls = count(other.len() as u64, "call has", "calls have");
            lines.push(format!("{calls} no known outcome, and nothing waits for it:"));
            for owed in other.iter().rev().take(3) {
                if let Some(action) = self.action(owed) {
                    lines.push(format!("   {}", self.call(&action.action, ARGUMENTS)));
                }
            }
            if other.len() > 3 {
                lines.push(format!("   … and {} before these", thousands(other.len() as u64 - 3)));
            }
        }
        for evidence in &self.recovery.evidence {
            lines.push(short(&evidence.text, WORDS));
        }
        if lines.is_empty() {
            lines.push(if self.state.actions.is_empty() {
                "Nothing.".into()
            } else {
                "Nothing: no outcome is in doubt.".into()
            });
        }
        lines
    }

    fn waits(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut asked: Vec<String> = Vec::new();
        for owed in &self.recovery.obligations {
            let call = || owed.call.as_ref().map_or_else(String::new, |c| self.call(&c.action, ARGUMENTS));
            let text = |id: &str| {
                self.facts.texts.get(id).map_or_else(String::new, |said| format!(": {}", short(&said.text, WORDS)))
            };
            let over = if owed.blocking || owed.decision != Decision::Answer {
                ""
            } else {
                " (a later turn went on without it)"
            };
            match (owed.subject.kind, owed.decision) {
                (SubjectKind::Approval, _) if self.asks(owed) => match self.questions(owed) {
                    [] => lines.push(format!("a question to a person{over}: {}", call())),
                    questions if asked.is_empty() => {
                        asked.push(format!("a question to a person{over}:"));
                        asked.extend(questions.iter().flat_map(question));
                    }
                    [one, ..] => lines.push(format!("a question to a person{over}: {}", short(&one.text, WORDS))),
                },
                (SubjectKind::Approval, _) => lines.push(format!("leave from a person{over}: {}", call())),
                (SubjectKind::Message, Decision::Reconcile) => {
                    lines.push("what became of a call that the model asked for and the log does not hold".into())
                }
                (SubjectKind::Message, _) if self.is_result(owed) => {
                    lines.push("a result was given to the model, and it has not gone on".into())
                }
                (SubjectKind::Message, _) => {
                    lines.push(format!("a prompt without an answer{}", text(&owed.subject.id)))
                }
                (SubjectKind::Input, _) => lines.push(format!("input in the queue{}", text(&owed.subject.id))),
                (SubjectKind::Action, Decision::Deliver) => {
                    lines.push(format!("a result that the model was not given: {}", call()))
                }
                (SubjectKind::Action, Decision::Run) => lines.push(format!("a call that was not started: {}", call())),
                (SubjectKind::Action, Decision::Ask) if owed.blocking && !self.is_doubtful(owed) => {
                    lines.push(format!("a decision: {}", short(&owed.reason, WORDS)))
                }
                _ => {}
            }
        }
        if self.recovery.verdict == Verdict::NeedsReconcile && lines.is_empty() && asked.is_empty() {
            lines.push("Nothing but what is unknown.".into());
        }
        if lines.is_empty() && asked.is_empty() {
            let none =
                if self.recovery.verdict == Verdict::Indeterminate { "That cannot be told." } else { "Nothing." };
            lines.push(none.into());
        }
        asked.into_iter().chain(cap(lines)).collect()
    }

    fn todo(&self) -> Vec<String> {
        let mut steps: Vec<Step> = Vec::new();
        let verdict = self.recovery.verdict;
        let client = self.client();
        let resume = client.as_ref().and_then(|c| c.command.clone());
        let hint = |of: fn(&Resume) -> &'static str| client.as_ref().map_or("", of);
        if matches!(verdict, Verdict::NeedsReconcile | Verdict::AwaitingHuman | Verdict::Ready) {
            let still = "Make sure that no client still has this session open";
            let command =
                if self.blocking().next().is_some() { ", and that nothing it started still runs" } else { "" };
            steps.push(Step::new(format!("{still}{command}.")));
        }
        for owed in self.recovery.obligations.iter().filter(|o| o.blocking) {
            let call = owed.call.as_ref().map_or_else(|| "this".into(), |c| self.call(&c.action, MENTIONED));
            steps.push(Step::new(match owed.decision {
                Decision::Reconcile if self.action(owed).is_some_and(|a| a.state == ActionState::Running) => {
                    format!("Find out what became of it: {call}. It may still run, or have ended in part; do not run it again before you know.")
                }
                Decision::Reconcile if owed.call.is_none() => {
                    format!("Make sure that it is over: {}", clean_line(&owed.reason))
                }
                Decision::Reconcile => {
                    format!("Find out whether it ran: {call}. Look at what it would have changed, and do not run it again before you know.")
                }
                Decision::Answer if self.asks(owed) => "Answer the question above.".into(),
                Decision::Answer => format!("Decide whether it may run: {call}."),
                Decision::Wait | Decision::Ask => clean_line(&owed.reason),
                other => format!("{other}: {}", clean_line(&owed.reason)),
            }));
        }
        let told = |o: &&Obligation| {
            !o.blocking
                && !matches!(
                    o.subject.kind,
                    SubjectKind::Session
                        | SubjectKind::Action
                        | SubjectKind::Approval
                        | SubjectKind::Input
                        | SubjectKind::Message
                )
        };
        steps.extend(self.recovery.obligations.iter().filter(told).map(|o| Step::new(clean_line(&o.reason))));
        let go_on = |text: &str, hint: &str| Step {
            text: format!("{text} {hint}").trim_end().to_owned(),
            command: resume.clone(),
        };
        let spawned = self.spawned_by();
        let parent = spawned.map(|p| clean_line(p.session.as_deref().unwrap_or(&p.log)));
        match verdict {
            Verdict::Indeterminate => {
                steps = vec![
                    Step::new(
                        "Run `palog validate` on the log to see all that is wrong, and look for another copy of it."
                            .into(),
                    ),
                    Step::new("Until then, take nothing in this log as done, and nothing as not done.".into()),
                ];
            }
            Verdict::NeedsReconcile | Verdict::AwaitingHuman | Verdict::Ready | Verdict::Idle if parent.is_some() => {
                let parent = parent.unwrap_or_default();
                steps.push(Step::new(if steps.is_empty() {
                    format!("Nothing: this is a subagent, and session {parent} tells the rest.")
                } else {
                    format!("This is a subagent: go on in its session, {parent}.")
                }));
            }
            Verdict::Closed => steps.push(Step::new("Nothing.".into())),
            Verdict::Owned => steps.push(Step::new("Leave it alone until its holder is gone.".into())),
            Verdict::NeedsReconcile => steps.push({
                let untold = self.blocking().any(|o| self.action(o).is_some_and(|a| a.told == Told::Nothing));
                let hint = if untold { hint(|c| c.open_call) } else { "" };
                go_on("Then go on, and begin by telling the agent what you found.", hint)
            }),
            Verdict::AwaitingHuman => steps.push(go_on("Go on with the decision.", hint(|c| c.open_question))),
            Verdict::Ready => steps.push(go_on("Go on: it is the model's turn.", hint(|c| c.open_prompt))),
            _ => {
                let left = self.left_open();
                if !left.is_empty() {
                    let first = left.iter().take(3).map(|o| {
                        o.call.as_ref().map_or_else(|| clean_line(&o.reason), |c| self.call(&c.action, MENTIONED))
                    });
                    let first: Vec<String> = first.collect();
                    let more = if left.len() > 3 { " …" } else { "" };
                    let text = format!("If it still matters, find out what became of: {}{more}", first.join("; "));
                    steps.push(Step::new(text));
                }
                let last = if steps.is_empty() { "Nothing. The" } else { "Nothing else: the" };
                steps.push(go_on(&format!("{last} session goes on with the next prompt."), ""));
            }
        }
        let numbered = steps.len() > 1;
        let more = steps.len().saturating_sub(LISTED + 3);
        if more > 0 {
            let last = steps.pop();
            steps.truncate(LISTED + 1);
            steps.push(Step::new(format!("… {} more (--format json lists them)", more + 1)));
            steps.extend(last);
        }
        let lines = steps.iter().enumerate().flat_map(|(n, step)| {
            let number = if numbered { format!("{}. ", n + 1) } else { String::new() };
            let mut lines = wrap(&format!("{number}{}", step.text), WIDTH, number.len());
            lines.extend(step.command.iter().map(|c| format!("{}  {}", " ".repeat(number.len()), self.style.bold(c))));
            lines
        });
        lines.collect()
    }

    /// Calls whose outcome nobody knows, and that hold nothing up.
    fn left_open(&self) -> Vec<&Obligation> {
        let open = |o: &&Obligation| !o.blocking && o.decision == Decision::Reconcile && self.is_doubtful(o);
        self.recovery.obligations.iter().filter(open).collect()
    }

    fn blocking(&self) -> impl Iterator<Item = &Obligation> {
        self.recovery.obligations.iter().filter(|o| o.blocking && self.is_doubtful(o))
    }

    fn is_doubtful(&self, owed: &Obligation) -> bool {
        self.action(owed).is_some_and(|a| matches!(a.state, ActionState::Unknown | ActionState::Running))
    }

    /// Whether an obligation is about a question, rather than about leave to act.
    fn asks(&self, owed: &Obligation) -> bool {
        self.action(owed).is_some_and(|a| a.kind == ActionKind::Question)
    }

    /// The questions of a call, where their form is known.
    /// What the client that ran the session does when it takes it up again; `None` where nothing is known of it. Subagents
    /// are not taken up by themselves.
    fn client(&self) -> Option<Resume> {
        let vendor = self.overview.vendor().filter(|_| self.spawned_by().is_none())?;
        Some(vendor.resume(self.overview.session.as_deref(), self.overview.directory.as_deref()))
    }

    /// Whose subagent it is, if it is one.
    fn spawned_by(&self) -> Option<&Parent> {
        self.state.parent.as_ref().filter(|p| p.mode == ParentMode::Spawn)
    }

    fn questions(&self, owed: &Obligation) -> &[Question] {
        let call = owed.call.as_ref().and_then(|call| self.facts.calls.get(&call.action));
        call.map_or(&[], |call| &call.questions)
    }

    fn is_result(&self, owed: &Obligation) -> bool {
        let id = &owed.subject.id;
        self.state.pending.iter().any(|p| p.kind == palog::state::PendingKind::Result && p.event == *id)
    }

    fn action(&self, owed: &Obligation) -> Option<&Action> {
        owed.call.as_ref().and_then(|call| self.actions.get(call.action.as_str()).copied())
    }

    /// A call as a person recognises it.
    fn call(&self, action: &str, arguments: usize) -> String {
        match self.facts.calls.get(action) {
            Some(call) => format!("{} {}", call.name, short(&call.args, arguments)),
            None => clean_line(action),
        }
    }
}

/// One thing to do.
struct Step {
    text: String,
    /// A command to copy.
    command: Option<String>,
}

impl Step {
    fn new(text: String) -> Self {
        Step { text, command: None }
    }
}

/// A question with its options, as a person reads it.
fn question(asked: &Question) -> Vec<String> {
    let mut lines: Vec<String> = indent(2, wrap(&short(&asked.text, QUESTION), WIDTH - 2, 0)).collect();
    if asked.several {
        lines.push("  (several can be chosen)".into());
    }
    for option in asked.options.iter().take(OPTIONS) {
        let meaning = option.description.as_ref().map_or_else(String::new, |d| format!(": {}", short(d, WORDS)));
        lines.extend(indent(4, wrap(&format!("- {}{meaning}", short(&option.label, WORDS)), WIDTH - 4, 2)));
    }
    let more = asked.options.len().saturating_sub(OPTIONS);
    if more > 0 {
        lines.push(format!("    … and {more} more"));
    }
    lines
}

fn indent(by: usize, lines: Vec<String>) -> impl Iterator<Item = String> {
    lines.into_iter().map(move |line| format!("{:by$}{line}", ""))
}

/// Breaks a line between words; what follows is indented.
fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::replace(&mut line, format!("{}{word}", " ".repeat(indent))));
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.push(line);
    lines
}

/// Why an outcome is not known, in words.
fn doubt(action: &Action) -> &'static str {
    match action.doubt {
        _ if action.state == ActionState::Running => "it was under way, and the log has no end of it",
        Some(Doubt::Asked) => "a person was asked for leave, and an answer would have left no trace",
        Some(Doubt::Granted) => "leave was given, and a start would have left no trace",
        Some(Doubt::EndUnknown) => "its end does not tell whether it took effect",
        Some(Doubt::EndsDisagree) => "what is recorded of its effect contradicts itself",
        Some(Doubt::EarlierAttempt) => "an earlier attempt was never settled",
        Some(Doubt::InProgress) => "a look-up found it still running",
        Some(Doubt::Unsettled) => "a look-up could not tell",
        Some(Doubt::Accepted) => "a person accepted that nobody will know",
        _ => "nothing tells whether it began, or how it ended",
    }
}

/// At most as many as are read.
fn cap(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(LISTED + 2);
    if more > 0 {
        let last = lines.pop();
        lines.truncate(LISTED);
        lines.push(format!("… and {} more (--format json lists them)", more + 1));
        lines.extend(last);
    }
    lines
}
