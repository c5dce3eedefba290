//! Delegations: work that goes on beside the session, and comes back as news.

use palog::envelope::{ActorKind, SrcHow};
use palog::events::{
    ActionEnded, ActionKind, ActionProposed, ActionStarted, Applied, InputQueued, ObservationRecorded, Outcome, Part,
};
use palog::json::{Raw, Value};
use palog::writer::args_digest;

use crate::conversation::{Conversation, Here, Written, ended};
use crate::record::Record;

impl Conversation {
    /// A delegation ended.
    pub(crate) fn delegation_ended(&mut self, here: &mut Here<'_>, id: &str, completed: bool) -> Written {
        let (outcome, applied) =
            if completed { (Outcome::Succeeded, Applied::Yes) } else { (Outcome::Failed, Applied::Partial) };
        self.emit(here, ActorKind::Agent, ended(id, outcome, applied), None).map(drop)
    }

    /// A delegation goes on beside the session: a job of its own.
    pub(crate) fn delegation_began(&mut self, here: &mut Here<'_>, id: &str, goals: Option<&Raw<'_>>) -> Written {
        if !self.handed_over.insert(id.to_owned()) {
            return Ok(());
        }
        let args = goals.map_or_else(|| Raw::string(""), |goals| goals.clone().into_owned());
        let proposed = ActionProposed {
            action: id.to_owned().into(),
            name: "delegate_task".into(),
            args_digest: args_digest(&args).into(),
            args: Value::Inline(args),
            kind: Some(ActionKind::Job),
            effect: None,
            compensates: None,
        };
        self.emit(here, ActorKind::Harness, proposed, None)?;
        let started = ActionStarted { action: id.to_owned().into(), attempt: None, args_digest: None };
        self.emit(here, ActorKind::Harness, started, None).map(drop)
    }
}

/// A delegation, as its row tells it now.
pub(crate) fn tell(out: &mut Conversation, record: &Record) -> Written {
    let Some(id) = record.text("delegation_id").map(|id| id.into_owned()) else { return out.keep(record) };
    let state = record.word("state").map(|state| state.into_owned()).unwrap_or_default();
    let known = out.handed_over.contains(&id);
    let mut here = out.here(record, "updated_at");
    if !known {
        let task = record.value("task_json");
        out.delegation_began(&mut here, &id, task.as_ref())?;
    }
    let detail: serde_json::Map<String, serde_json::Value> = [
        ("state", Some(state.clone().into())),
        ("delivery_state", record.word("delivery_state").map(|word| word.into_owned().into())),
        ("owner_pid", record.integer("owner_pid").map(Into::into)),
        ("owner_started_at", record.integer("owner_started_at").map(Into::into)),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .collect();
    let seen = ObservationRecorded {
        fact: if state == "running" { "busy".into() } else { "task".into() },
        subject: Some(id.clone().into()),
        as_of: record.time("updated_at").ok().flatten(),
        source: "store".into(),
        detail: Some(Raw::of(&detail).into()),
    };
    out.emit(&mut here, ActorKind::Importer, seen, None)?;
    here.set_time(record.time("completed_at").ok().flatten());
    match state.as_str() {
        "completed" => out.delegation_ended(&mut here, &id, all_completed(record))?,
        "running" => {}
        // Its owner ended before it told how it went, or the client uses a word that is not known.
        _ => {
            let end = ActionEnded {
                error: Some(Value::from(state.as_str())),
                ..ended(&id, Outcome::Failed, Applied::Unknown)
            };
            out.emit(&mut here, ActorKind::Harness, end, None)?;
        }
    }
    let waits = record.text("delivery_state").as_deref() == Some("pending") && state != "running";
    if waits && !out.delivered.contains(&id) {
        let value = record.value("event_json").unwrap_or_else(|| Raw::of(&detail));
        let queued = InputQueued { input: id.into(), parts: vec![Part::Json { value: value.into() }] };
        out.emit(&mut here, ActorKind::Harness, queued, Some(SrcHow::Synthesized))?;
    }
    Ok(())
}

/// Whether all tasks of a delegation were completed, as far as its row tells of them.
fn all_completed(record: &Record) -> bool {
    #[derive(serde::Deserialize)]
    struct Results {
        #[serde(default)]
        results: Vec<Task>,
    }
    #[derive(serde::Deserialize)]
    struct Task {
        status: Option<String>,
    }
    let results: Option<Results> = record.value("result_json").and_then(|raw| serde_json::from_str(raw.get()).ok());
    let completed = |task: &Task| task.status.as_deref().is_none_or(|status| status == "completed");
    results.is_none_or(|results| results.results.iter().all(completed))
}
