//! The calls of a session, and what became of each (`spec/sources/opencode.md`, "Calls").

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use palog::diagnostic::Place;
use palog::envelope::ActorKind;
use palog::events::{
    self, ActionEnded, ActionProposed, Applied, ApprovalEnded, ApprovalOutcome, ChildKind, ChildLink, ChildSpawned,
    Effect, MessageAdded, Outcome, Role,
};
use palog::json::{Omission, Omitted, OmittedReason, Raw, Value};
use palog::writer::args_digest;
use palog_adapter::ids;

use crate::FORMAT;
use crate::approvals::Answer;
use crate::mapper::{Group, Mapper, Observed, Slot, Told, Written};
use crate::record::{Metadata, Origin, Part, Record, State, parse};
use crate::tools::{self, Verdict};

/// The client that is known to write the metadata of a command before it runs it.
const WRITES_BEFORE_IT_RUNS: &str = "1.18.33";

/// A call, and where it stands.
#[derive(Debug)]
pub(crate) struct Call<'g> {
    /// Its part among those of the message.
    pub(crate) at: usize,
    /// The vendor's id.
    pub(crate) id: String,
    /// Its name in the log.
    pub(crate) action: String,
    pub(crate) tool: &'g str,
    pub(crate) origin: &'g Origin,
    /// When its part was made.
    pub(crate) created: Option<i64>,
    pub(crate) state: &'g State<'g>,
    /// The digest of its arguments.
    digest: String,
}

/// A call of which no end is told.
#[derive(Debug)]
struct Silent {
    id: String,
    place: Place,
    turn: u32,
}

/// All calls.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    uses: HashMap<String, u32>,
    silent: Vec<Silent>,
    /// How many prompts came, and the newest of them that the model answered.
    turn: u32,
    spoken: u32,
}

impl Calls {
    /// Takes a call in. `None` where its arguments never ended: then it was not made.
    pub(crate) fn take<'g>(
        &mut self,
        at: usize,
        record: &'g Record<'g>,
        part: &'g Part<'g>,
        input: &str,
    ) -> Option<Call<'g>> {
        let state = part.state.as_ref()?;
        let status = state.status.as_deref()?;
        if !matches!(status, "running" | "completed" | "error") {
            return None;
        }
        let id = part.call.as_ref().map_or_else(|| record.id.clone(), ToString::to_string);
        let action = self.name(&id);
        let (_, digest) = arguments(state);
        if status == "running" {
            let place = Place { call: Some(id.clone()), ..record.origin.place(input) };
            self.silent.push(Silent { id: action.clone(), place, turn: self.turn });
        }
        let tool = part.tool.as_deref().unwrap_or("unknown");
        Some(Call { at, id, action, tool, origin: &record.origin, created: record.created, state, digest })
    }

    /// The action that the next use of a call id stands for: the id, and `#2`, `#3` … behind it when it is used again.
    pub(crate) fn name(&mut self, id: &str) -> String {
        let uses = self.uses.entry(id.to_owned()).or_default();
        *uses += 1;
        if *uses == 1 { id.to_owned() } else { format!("{id}#{uses}") }
    }

    /// A call of which no end is told.
    pub(crate) fn unended(&mut self, action: &str, place: Place) {
        self.silent.push(Silent { id: action.to_owned(), place, turn: self.turn });
    }

    /// It is known what a call waits for, or that it was refused.
    pub(crate) fn explained(&mut self, action: &str) {
        self.silent.retain(|silent| silent.id != action);
    }

    /// A prompt came.
    pub(crate) fn prompted(&mut self) {
        self.turn += 1;
    }

    /// The model said something.
    pub(crate) fn spoke(&mut self) {
        self.spoken = self.turn;
    }

    /// Calls of which nothing is known but that they were made, and whether the model went on in a later turn.
    pub(crate) fn silent(&self) -> Vec<(Place, bool)> {
        self.silent.iter().map(|s| (s.place.clone(), self.spoken > s.turn)).collect()
    }
}

/// The arguments of a call, and their digest.
fn arguments<'s>(state: &'s State<'_>) -> (Value<'s>, String) {
    match &state.input {
        Some(input) => (Value::Inline(input.borrowed()), args_digest(input)),
        None => (missing(), palog::blob::digest(b"")),
    }
}

/// A value that the source does not hold.
pub(crate) fn missing() -> Value<'static> {
    Value::Omitted(Omitted { omitted: Omission { reason: OmittedReason::Unavailable, bytes: None } })
}

impl Mapper {
    /// The model made a call.
    pub(crate) fn proposed(&mut self, group: &mut Group<'_, '_>, call: &Call<'_>) -> Written {
        group.tell(call.at);
        let (args, digest) = arguments(call.state);
        let started = call.state.time.and_then(|t| t.start);
        let proposed = propose(&call.action, call.tool, args, digest);
        let told = Told::by(call.origin, Slot::First).time(call.created.or(started));
        self.append(told, ActorKind::Model, proposed).map(drop)
    }

    /// What became of a call, and what the model was told.
    pub(crate) fn outcome(
        &mut self,
        group: &mut Group<'_, '_>,
        call: &Call<'_>,
        aborted: bool,
        is_shown: bool,
    ) -> Written {
        let asked = self.asked(group.id(), &call.id, &call.action, &call.digest)?;
        let denied = asked == Some(Answer::No);
        let metadata: Metadata<'_> = call.state.metadata.as_ref().and_then(parse).unwrap_or_default();
        let error = call.state.error.as_ref().and_then(Raw::text).unwrap_or_default();
        let verdict = match call.state.status.as_deref() {
            Some("completed") => tools::completed(call.tool, call.state, aborted),
            Some("error") => tools::failed(call.tool, &error),
            _ => Verdict::Open,
        };
        match verdict {
            Verdict::Ended(outcome, applied) => self.ended(call, outcome, applied, &metadata)?,
            // The answer to the question said so.
            Verdict::DeniedByUser | Verdict::DeniedByPolicy if denied => {}
            Verdict::DeniedByUser => self.denied(call, ActorKind::User, &error)?,
            Verdict::DeniedByPolicy => self.denied(call, ActorKind::Policy, &error)?,
            Verdict::Open => {}
        }
        if matches!(asked, Some(Answer::No | Answer::None)) {
            self.explained(&call.action);
        }
        self.spawned(call, &metadata)?;
        match call.state.status.as_deref() {
            Some("running") => self.observe(call, &metadata),
            _ => self.result(call, &metadata, is_shown)?,
        }
        Ok(())
    }

    fn ended(&mut self, call: &Call<'_>, outcome: Outcome, applied: Applied, metadata: &Metadata<'_>) -> Written {
        let whole = metadata.output_path.as_deref().and_then(|path| self.spilled(path));
        let ended = ActionEnded {
            action: call.action.clone().into(),
            attempt: None,
            outcome,
            applied,
            output: whole.as_deref().map(|text| vec![events::Part::text(text)]),
            receipt: None,
            error: None,
        };
        let told = Told::by(call.origin, Slot::Ended).time(call.state.time.and_then(|t| t.end));
        self.append(told, ActorKind::Tool, ended).map(drop)
    }

    /// The whole of an output that the client cut and wrote to a file.
    fn spilled(&mut self, path: &str) -> Option<String> {
        let file = self.outputs.as_ref()?.join(Path::new(path).file_name()?);
        let text = String::from_utf8(std::fs::read(&file).ok()?).ok()?;
        self.remember_spilled(file);
        Some(text)
    }

    fn remember_spilled(&mut self, file: PathBuf) {
        if !self.spilled.contains(&file) {
            self.spilled.push(file);
        }
    }

    fn denied(&mut self, call: &Call<'_>, by: ActorKind, error: &str) -> Written {
        let feedback = error.split_once(" with the following feedback: ").map(|(_, words)| Value::from(words));
        let ended = ApprovalEnded {
            approval: None,
            action: Some(call.action.clone().into()),
            outcome: ApprovalOutcome::Denied,
            scope: None,
            args: None,
            input: None,
            reason: feedback.map(Value::into_owned),
            join: None,
        };
        let told = Told::by(call.origin, Slot::Denied).time(call.state.time.and_then(|t| t.end));
        self.append(told, by, ended).map(drop)
    }

    /// The session that a call started.
    fn spawned(&mut self, call: &Call<'_>, metadata: &Metadata<'_>) -> Written {
        let Some(child) = metadata.session.as_deref().filter(|_| tools::kind(call.tool).is_some()) else {
            return Ok(());
        };
        if !self.told_of.insert(child.to_owned()) {
            return Ok(());
        }
        let spawned = ChildSpawned {
            child: ids::log(&FORMAT, child).into(),
            session: child.to_owned().into(),
            action: Some(call.action.clone().into()),
            kind: ChildKind::Subagent,
            link: ChildLink::Explicit,
        };
        let told = Told::by(call.origin, Slot::Child).time(call.state.time.and_then(|t| t.start));
        self.append(told, ActorKind::Harness, spawned).map(drop)
    }

    /// What the model was told.
    fn result(&mut self, call: &Call<'_>, metadata: &Metadata<'_>, is_shown: bool) -> Written {
        let failed = call.state.status.as_deref() == Some("error");
        // The client tells the model what an interrupted call had written so far, where it has that.
        let so_far = metadata.output.as_ref().filter(|_| metadata.interrupted == Some(true));
        let text = if failed { so_far.or(call.state.error.as_ref()) } else { call.state.output.as_ref() };
        let mut parts: Vec<events::Part<'_>> = text.map(said).into_iter().collect();
        let attached: Vec<Part<'_>> = call.state.attachments.iter().flatten().filter_map(parse).collect();
        for file in &attached {
            parts.extend(self.file_part(call.origin, file)?);
        }
        self.tell(call, parts, failed, is_shown)?;
        if let Some(time) = call.state.time.and_then(|t| t.compacted) {
            self.compactions.drop_at(&call.action, call.origin, time);
        }
        Ok(())
    }

    fn tell(&mut self, call: &Call<'_>, parts: Vec<events::Part<'_>>, failed: bool, is_shown: bool) -> Written {
        let result = events::Part::Result {
            action: call.action.clone().into(),
            parts,
            is_error: failed.then_some(true),
            r#final: true,
        };
        let added = MessageAdded {
            role: Role::Tool,
            parts: vec![result],
            response: None,
            partial: None,
            purpose: None,
            in_context: (!is_shown).then_some(false),
        };
        let told = Told::by(call.origin, Slot::Result).time(call.state.time.and_then(|t| t.end));
        let id = self.append(told, ActorKind::Tool, added)?;
        if is_shown {
            self.on_path(id);
        }
        Ok(())
    }

    /// What a running call shows. It proves neither an end nor that it never began.
    fn observe(&mut self, call: &Call<'_>, metadata: &Metadata<'_>) {
        let is_command = matches!(call.tool, "bash" | "shell");
        let fact = match (&call.state.metadata, &metadata.output) {
            (Some(_), Some(output)) if is_command && output.is_string() && output.get() != "\"\"" => "output",
            (Some(_), _) if is_command => "command_begun",
            // Clients write the metadata of a command before they run it, as far as that is known.
            (None, _) if call.tool == "bash" && self.is_version(WRITES_BEFORE_IT_RUNS) => "command_not_begun",
            _ => return,
        };
        let detail = metadata.output.as_ref().filter(|_| fact == "output").map(|o| Value::Inline(o.borrowed()));
        self.observed(Observed {
            origin: call.origin.clone(),
            action: call.action.clone(),
            fact,
            time: call.state.time.and_then(|t| t.start),
            detail: detail.map(Value::into_owned),
        });
    }
}

/// A call, as the log tells it.
pub(crate) fn propose<'p>(action: &str, tool: &str, args: Value<'p>, digest: String) -> ActionProposed<'p> {
    ActionProposed {
        action: action.to_owned().into(),
        name: tool.to_owned().into(),
        args,
        args_digest: digest.into(),
        kind: tools::kind(tool),
        effect: tools::effect(tool).map(|class| Effect { class: Some(class), idempotency_key: None, target: None }),
        compensates: None,
    }
}

/// What a result says: a text, or whatever else stands in its place.
pub(crate) fn said<'d>(raw: &'d Raw<'_>) -> events::Part<'d> {
    let value = Value::Inline(raw.borrowed());
    if raw.is_string() { events::Part::Text { text: value } } else { events::Part::Json { value } }
}
