//! Records that are kept as they stand: known ones that say nothing more, and those of no known form
//! (`spec/sources/codex.md`, "Records").

use super::items::missing;
use super::*;

use palog::events::{ActionProposed, NoteAdded};
use palog_adapter::source::note;

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
        self.unread(here, kind)
    }

    /// Keeps a record of a type that is not known.
    pub(super) fn unknown(&mut self, here: &mut Here<'_>, kind: &str) -> Written {
        self.warn_kind(Code::UnknownType, here.span, kind);
        self.unread(here, kind)
    }

    /// Keeps a record of no known form, which may be a part of a response (R-TRN-011), and tells of the calls in it.
    fn unread(&mut self, here: &mut Here<'_>, kind: &str) -> Written {
        self.keep(here, kind)?;
        self.hidden(here, kind)?;
        let main = kind.split('/').next().unwrap_or_default();
        // What else the client writes is not what the model says.
        if main == "header" || main != "response_item" && TYPES.contains(&main) {
            return Ok(());
        }
        let kept = self.out.ids.event(here.native, 0).hex();
        let data = NoteAdded { about: Some(kept.into()), ..note("unread") };
        self.emit(here, ActorKind::Importer, data).map(drop)
    }

    /// Tells of the calls in a record that has no known form.
    fn hidden(&mut self, here: &mut Here<'_>, kind: &str) -> Written {
        for Hidden { id, name, r#type } in hidden::calls(here.text) {
            // What the screen is shown of a call is no other call.
            if kind.starts_with("event_msg") && id.as_deref().is_some_and(|id| self.calls.action(id).is_some()) {
                continue;
            }
            let id = id.unwrap_or_else(|| format!("{type}@{}", here.span.at));
            let name = name.unwrap_or(r#type);
            let turn = self.task.as_ref().and_then(|task| task.id.clone());
            let inherited = here.copied;
            let action = self.calls.propose(&id, &name, None, turn.as_deref(), inherited, here.span);
            self.made_up(here, action, name)?;
        }
        Ok(())
    }

    /// Tells that there was a call of which only the name of its tool, or of its record, is known.
    pub(super) fn made_up(&mut self, here: &mut Here<'_>, action: String, name: String) -> Written {
        let proposed = ActionProposed {
            action: action.into(),
            name: name.into(),
            args: missing(),
            args_digest: palog::blob::digest(b"").into(),
            kind: None,
            effect: None,
            compensates: None,
        };
        self.emit_how(here, ActorKind::Model, proposed, Some(SrcHow::Synthesized)).map(drop)
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
