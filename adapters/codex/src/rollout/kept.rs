//! Records that are kept as they stand: known ones that say nothing more, and those of no known form
//! (`spec/sources/codex.md`, "Records").

use super::items::missing;
use super::*;

use palog::events::ActionProposed;

use crate::hidden::Hidden;

impl Rollout {
    /// Keeps a record that maps to nothing.
    pub(super) fn keep(&mut self, here: &mut Here<'_>, kind: &str) -> Written {
        self.out.input.kept += 1;
        let Ok(raw) = Raw::parse(here.text) else { return Ok(()) };
        let data = self.out.log.kept(kind, raw);
        self.emit_how(here, ActorKind::Harness, data, Some(SrcHow::Opaque)).map(drop)
    }

    /// Keeps a record of a known type that has another form.
    pub(super) fn odd(&mut self, here: &mut Here<'_>, kind: &str) -> Written {
        self.warn_kind(Code::UnexpectedShape, here.span, kind);
        self.keep(here, kind)?;
        self.hidden(here)
    }

    /// Keeps a record of a type that is not known.
    pub(super) fn unknown(&mut self, here: &mut Here<'_>, kind: &str) -> Written {
        self.warn_kind(Code::UnknownType, here.span, kind);
        self.keep(here, kind)?;
        self.hidden(here)
    }

    /// Tells of the calls in a record that has no known form.
    fn hidden(&mut self, here: &mut Here<'_>) -> Written {
        for Hidden { id, name, r#type } in hidden::calls(here.text) {
            let id = id.unwrap_or_else(|| format!("{type}@{}", here.span.at));
            let name = name.unwrap_or(r#type);
            let turn = self.task.as_ref().and_then(|task| task.id.clone());
            let inherited = self.is_inherited(here);
            let action = self.calls.propose(&id, &name, None, turn.as_deref(), inherited, here.span);
            let proposed = ActionProposed {
                action: action.into(),
                name: name.into(),
                args: missing(),
                args_digest: palog::blob::digest(b"").into(),
                kind: None,
                effect: None,
                compensates: None,
            };
            self.emit_how(here, ActorKind::Model, proposed, Some(SrcHow::Synthesized))?;
        }
        Ok(())
    }

    pub(super) fn warn_kind(&mut self, code: Code, span: Span, kind: &str) {
        let place = Place { kind: Some(kind.to_owned()), ..self.out.place(span) };
        self.out.warn(code, place);
    }

    /// Reports something about a call.
    pub(super) fn warn_call(&mut self, code: Code, here: &Here<'_>, call: &str) {
        let place = Place { call: Some(call.to_owned()), ..self.out.place(here.span) };
        self.out.warn(code, place);
    }
}
