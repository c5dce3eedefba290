//! Results of calls: what the model was told, and what became of them (`spec/sources/pi.md`, "Calls").

use super::messages::{first_text, plain};
use super::*;

use palog::events::{ActionEnded, ApprovalEnded, ApprovalOutcome, Part, Role};
use palog::json::Value;

use crate::record::Message;
use crate::tools::{self, Verdict};

impl Conversation {
    pub(super) fn result(&mut self, here: &mut Here<'_>, message: &Message<'_>) -> Written {
        let Some(call) = message.tool_call_id.as_deref() else { return self.odd(here) };
        let text = first_text(message.content.as_ref());
        let (verdict, action, of) = match self.calls.get_mut(call) {
            Some((known, action)) => {
                known.told = true;
                let verdict = tools::verdict(&known.name, message.is_error, &text, message.details.as_ref());
                known.ended |= !matches!(verdict, Verdict::Open | Verdict::Background);
                (verdict, action, Some(known.node))
            }
            None => {
                let place = Place { call: Some(call.to_owned()), ..self.place(here) };
                self.out.warn(Code::OrphanResult, place);
                (Verdict::Open, call.to_owned(), None)
            }
        };
        self.step(here, Step::Result { call: call.into(), of });
        let parts = self.parts(here, message.content.as_ref())?;
        let r#final = verdict != Verdict::Background;
        let result = Part::Result { action: action.clone().into(), parts, is_error: message.is_error, r#final };
        self.emit(here, ActorKind::Tool, plain(Role::Tool, vec![result], None))?;
        match verdict {
            Verdict::Ended(outcome, applied) => {
                let told = message.details.as_ref().filter(|d| !matches!(d.get(), "null" | "{}"));
                let output = told.map(|d| vec![Part::Json { value: Value::Inline(d.borrowed()) }]);
                let (attempt, receipt, error) = (None, None, None);
                let ended = ActionEnded { action: action.into(), attempt, outcome, applied, output, receipt, error };
                self.emit(here, ActorKind::Tool, ended).map(drop)
            }
            // The row of the request says it with more right.
            Verdict::Denied if self.known.approvals.has(call) => Ok(()),
            Verdict::Denied => {
                let denied = ApprovalEnded {
                    approval: None,
                    action: Some(action.into()),
                    outcome: ApprovalOutcome::Denied,
                    scope: None,
                    args: None,
                    input: None,
                    reason: Some(Value::from(text.as_str())),
                    join: None,
                };
                self.emit(here, ActorKind::Policy, denied).map(drop)
            }
            Verdict::Background | Verdict::Open => Ok(()),
        }
    }
}
