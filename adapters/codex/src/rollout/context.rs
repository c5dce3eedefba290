//! What changes what the model sees, and answers that the client keeps apart.

use super::items::missing;
use super::parts::openai;
use super::*;

use palog::events::{Applied, CompactionTrigger, ContextCompacted, Outcome, Part, Role, WindowItem, WindowMessage};

use crate::calls::Ended;
use crate::record::Compacted;
use crate::tools;

impl Rollout {
    /// From here on the model sees the window, and what follows.
    pub(super) fn compacted(&mut self, here: &mut Here<'_>, compacted: &Compacted<'_>, kind: &str) -> Written {
        let history = compacted.replacement_history.as_ref().filter(|history| history.get() != "null");
        let items = history.map(parse::<Vec<Raw<'_>>>);
        let mut window = Vec::new();
        match (&items, &compacted.message) {
            (Some(Some(items)), _) => {
                for raw in items {
                    window.push(self.window_item(here, raw)?);
                }
            }
            // Old clients write the summary only: the prompts before it stay.
            (None, Some(text)) if text.is_string() => {
                let prompts = self.prompts.iter().map(|id| WindowItem::Event { event: id.hex().into(), parts: None });
                window.extend(prompts);
                let parts = vec![Part::Text { text: Value::Inline(text.borrowed()) }];
                window.push(WindowItem::Message { message: WindowMessage { role: Role::User, parts } });
            }
            // What the model sees from here on is not told.
            _ => return self.odd(here, kind),
        }
        let trigger = match &self.task {
            Some(task) if task.started => Some(CompactionTrigger::Auto),
            Some(task) if task.attributes && !task.attributed => Some(CompactionTrigger::Manual),
            _ => None,
        };
        let compacted =
            ContextCompacted { trigger, window: Some(window), pruned: None, tokens_before: None, tokens_after: None };
        self.emit(here, ActorKind::Harness, compacted).map(drop)
    }

    /// One item of a window: the message that it is, or what it says.
    fn window_item<'d>(&mut self, here: &Here<'_>, raw: &'d Raw<'_>) -> Result<WindowItem<'d>, WriteError> {
        let message = |role, parts| WindowItem::Message { message: WindowMessage { role, parts } };
        let Some(item) = parse::<Item<'_>>(raw) else {
            return Ok(message(Role::User, vec![Part::Opaque(openai(None, raw.borrowed()))]));
        };
        if let Some(event) = self.remembered(&item, raw.get()) {
            return Ok(WindowItem::Event { event: event.hex().into(), parts: None });
        }
        let kind = item.r#type.as_deref().unwrap_or_default();
        let known = item.call_id.as_deref().and_then(|call| self.calls.action(call));
        Ok(match (kind, known) {
            ("message", _) => {
                let role = match item.role.as_deref() {
                    Some("assistant") => Role::Assistant,
                    Some("developer") => Role::Developer,
                    Some("system") => Role::System,
                    _ => Role::User,
                };
                let parts = self.parts(here, item.content.as_ref())?.into_iter().map(owned).collect();
                message(role, parts)
            }
            ("function_call" | "custom_tool_call" | "local_shell_call", Some(action)) => {
                message(Role::Assistant, vec![Part::Action { action: action.into() }])
            }
            ("function_call_output" | "custom_tool_call_output", Some(action)) => {
                let parts = self.parts(here, item.output.as_ref())?.into_iter().map(owned).collect();
                message(Role::Tool, vec![Part::Result { action: action.into(), parts, is_error: None, r#final: true }])
            }
            ("reasoning", _) => {
                let opaque = Some(openai(Some("reasoning"), raw.borrowed()));
                message(Role::Assistant, vec![Part::Reasoning { text: None, opaque }])
            }
            (other, _) => {
                let opaque =
                    palog::events::Opaque { kind: Some(other.to_owned().into()), ..openai(None, raw.borrowed()) };
                message(Role::Assistant, vec![Part::Opaque(opaque)])
            }
        })
    }

    /// An answer of the user to a question of the model.
    pub(super) fn retained(&mut self, here: &mut Here<'_>, retained: &Retained<'_>, kind: &str) -> Written {
        let call = retained.call_id.as_deref().filter(|_| retained.r#type.as_deref() == Some("verified_answer"));
        let asked = call.filter(|call| self.calls.name(call).is_some_and(|name| name == tools::QUESTION));
        let Some(Ended::Action(action)) = asked.map(|call| self.calls.end(call, None, |_| true)) else {
            return self.keep(here, kind);
        };
        let output = retained.questions.as_ref().map(|q| vec![Part::Json { value: Value::Inline(q.borrowed()) }]);
        self.ended(here, action, Outcome::Succeeded, Applied::Yes, output)
    }
}

/// Detaches a part from the item that it was read from.
fn owned(part: Part<'_>) -> Part<'static> {
    match part {
        Part::Text { text } => Part::Text { text: text.into_owned() },
        Part::Image { media, data } => Part::Image { media: media.into_owned(), data: data.into_owned() },
        Part::Json { value } => Part::Json { value: value.into_owned() },
        Part::Opaque(opaque) => Part::Opaque(palog::events::Opaque {
            provider: opaque.provider.into_owned(),
            kind: opaque.kind.map(Str::into_owned),
            value: opaque.value.into_owned(),
        }),
        Part::File { name, media, data } => {
            Part::File { name: name.map(Str::into_owned), media: media.map(Str::into_owned), data: data.into_owned() }
        }
        Part::Action { action } => Part::Action { action: action.into_owned() },
        _ => Part::Json { value: missing() },
    }
}
