//! A toy agent that writes its log while it works: a prompt, a response of the model, an action that needs leave, its
//! result, and the end of the turn.
//!
//! ```sh
//! cargo run -p palog --features live --example live_agent -- /tmp/demo.palog.jsonl "Greet the world"
//! cargo run -p palog --example follow -- /tmp/demo.palog.jsonl
//! ```
//!
//! The order is what makes it recoverable. An action is on the disk as *started* before it acts, so that after a crash
//! nobody takes it for one that never ran; its end is on the disk before the model is told of it. What is only talk can be
//! buffered: the next sync takes it along.

use std::error::Error;
use std::path::Path;

use palog::cursor::Cursor;
use palog::envelope::{ActorKind, Draft};
use palog::events::{
    ActionEnded, ActionProposed, ActionStarted, Applied, ApprovalEnded, ApprovalKind, ApprovalOutcome,
    ApprovalRequested, Data, Effect, EffectClass, LogOpened, MessageAdded, ModelResponse, Outcome, Part, Recorded,
    Role, Scope, TurnEnd, TurnEnded, TurnStarted, Usage,
};
use palog::json::Raw;
use palog::live::{AppendError, Durability, Expect, LogFile, draft, new_id};
use palog::writer::args_digest;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(path), Some(prompt)) = (args.next(), args.next()) else {
        return Err("usage: live_agent LOG PROMPT".into());
    };
    run_turn(Path::new(&path), &prompt, |question| question.contains("greeting.txt"))?;
    Ok(())
}

/// Runs one turn of the session at `path`, which is begun if there is none; `allow` is asked before anything is changed.
pub(crate) fn run_turn(path: &Path, prompt: &str, allow: impl Fn(&str) -> bool) -> Result<Cursor, Box<dyn Error>> {
    let mut agent = Agent { log: open(path)? };
    agent.prompt(prompt)?;
    let calls = agent.log.next_seq();
    let (call, response) = (format!("call_{calls}"), format!("resp_{calls}"));
    let args = Raw::of(&["greeting.txt", prompt]);
    agent.propose(&response, &call, &args)?;
    let told = if agent.ask(&call, &args, &allow)? {
        agent.act(path, &call, &args, prompt)?
    } else {
        "The user said no.".into()
    };
    agent.tell_model(&call, &told)?;
    agent.answer(&format!("{response}_2"))
}

/// Goes on with the session, or begins it. What a run that was killed left half written is repaired here.
fn open(path: &Path) -> Result<LogFile, Box<dyn Error>> {
    if path.exists() {
        return Ok(LogFile::open(path)?);
    }
    let mut opened = LogOpened::new("demo", "toy-agent");
    // A promise: where one of these is not in the log, it did not happen.
    opened.records = Some(vec![
        Recorded::ActionProposed,
        Recorded::ActionStarted,
        Recorded::ActionEnded,
        Recorded::ApprovalRequested,
        Recorded::ApprovalEnded,
        Recorded::TurnEnded,
        Recorded::Usage,
    ]);
    Ok(LogFile::create(path, new_id(), &mut draft(ActorKind::Harness, opened))?)
}

struct Agent {
    log: LogFile,
}

impl Agent {
    /// Writes what can be told again if it is lost.
    fn tell<'d>(&mut self, actor: ActorKind, data: impl Into<Data<'d>>) -> Result<Draft<'d>, AppendError> {
        let mut event = draft(actor, data);
        self.log.append(&mut event, Expect::default(), Durability::Buffered)?;
        Ok(event)
    }

    /// Writes what must be known before the next step is taken. It is refused if another event came in between.
    fn commit<'d>(&mut self, actor: ActorKind, data: impl Into<Data<'d>>) -> Result<Cursor, AppendError> {
        let head = self.log.head();
        self.log.append(&mut draft(actor, data), Expect::head(head), Durability::Sync)
    }

    fn prompt(&mut self, text: &str) -> Result<(), AppendError> {
        let message = draft(ActorKind::User, said(Role::User, None, vec![Part::text(text)]));
        let turn = TurnStarted { turn: None, message: Some(message.id.clone()) };
        // One write, one sync: a prompt that was accepted is not lost.
        self.log.append_group(&mut [message, draft(ActorKind::Harness, turn)], Expect::default(), Durability::Sync)?;
        Ok(())
    }

    /// The model wants to write a file.
    fn propose(&mut self, response: &str, call: &str, args: &Raw<'_>) -> Result<(), AppendError> {
        let parts = vec![Part::text("I will write it down."), Part::Action { action: call.to_owned().into() }];
        self.tell(ActorKind::Model, said(Role::Assistant, Some(response), parts))?;
        let effect = Effect { class: Some(EffectClass::WriteLocal), idempotency_key: None, target: None };
        self.tell(
            ActorKind::Model,
            ActionProposed {
                action: call.into(),
                name: "write_file".into(),
                args: args.borrowed().into(),
                args_digest: args_digest(args).into(),
                kind: None,
                effect: Some(effect),
                compensates: None,
            },
        )?;
        self.tell(ActorKind::Model, responded(response, "tool_use", 12))?;
        Ok(())
    }

    /// Asks for leave; question and answer are on the disk before anything is done.
    fn ask(&mut self, call: &str, args: &Raw<'_>, allow: impl Fn(&str) -> bool) -> Result<bool, AppendError> {
        let approval = format!("ask_{call}");
        self.commit(
            ActorKind::Harness,
            ApprovalRequested {
                approval: Some(approval.as_str().into()),
                kind: ApprovalKind::Permission,
                action: Some(call.into()),
                args_digest: Some(args_digest(args).into()),
                options: None,
                expires: None,
                join: None,
            },
        )?;
        let granted = allow(&format!("write_file{}", args.get()));
        self.commit(
            ActorKind::User,
            ApprovalEnded {
                approval: Some(approval.as_str().into()),
                action: Some(call.into()),
                outcome: if granted { ApprovalOutcome::Granted } else { ApprovalOutcome::Denied },
                scope: granted.then_some(Scope::Once),
                args: None,
                input: None,
                reason: None,
                join: None,
            },
        )?;
        Ok(granted)
    }

    /// Acts, between a start and an end that are both on the disk before the next step.
    fn act(&mut self, path: &Path, call: &str, args: &Raw<'_>, text: &str) -> Result<String, AppendError> {
        let digest = args_digest(args).into();
        self.commit(
            ActorKind::Harness,
            ActionStarted { action: call.into(), attempt: None, args_digest: Some(digest) },
        )?;
        let done = std::fs::write(path.with_file_name("greeting.txt"), text);
        let (outcome, applied) = match done {
            Ok(()) => (Outcome::Succeeded, Applied::Yes),
            Err(_) => (Outcome::Failed, Applied::Unknown),
        };
        let told = done.map_or_else(|e| format!("It failed: {e}"), |()| "Written.".into());
        let error = (outcome == Outcome::Failed).then(|| told.as_str().into());
        let ended =
            ActionEnded { action: call.into(), attempt: None, outcome, applied, output: None, receipt: None, error };
        self.commit(ActorKind::Tool, ended)?;
        Ok(told)
    }

    /// What the model is told of the action.
    fn tell_model(&mut self, call: &str, told: &str) -> Result<(), AppendError> {
        let parts = vec![Part::text(told)];
        let result = Part::Result { action: call.into(), parts, is_error: Some(told != "Written."), r#final: true };
        self.tell(ActorKind::Tool, said(Role::Tool, None, vec![result]))?;
        Ok(())
    }

    /// The model has its last word, and the turn ends.
    fn answer(&mut self, response: &str) -> Result<Cursor, Box<dyn Error>> {
        self.tell(ActorKind::Model, said(Role::Assistant, Some(response), vec![Part::text("That is all.")]))?;
        self.tell(ActorKind::Model, responded(response, "end_turn", 5))?;
        Ok(self.commit(ActorKind::Harness, TurnEnded { turn: None, how: TurnEnd::Complete, reason: None })?)
    }
}

fn said<'d>(role: Role, response: Option<&'d str>, parts: Vec<Part<'d>>) -> MessageAdded<'d> {
    MessageAdded { role, parts, response: response.map(Into::into), partial: None, purpose: None, in_context: None }
}

fn responded<'d>(response: &'d str, stop: &'d str, output: u64) -> ModelResponse<'d> {
    let usage = Usage { input: Some(40), output: Some(output), cache_read: None, cache_write: None, reasoning: None };
    ModelResponse {
        response: response.into(),
        model: Some("toy-1".into()),
        request: None,
        usage: Some(usage),
        cost: None,
        stop: Some(stop.into()),
        error: None,
    }
}
