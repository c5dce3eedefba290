//! What changes what the model sees, and what waits for it: compaction, attachments, the queue, leaves and titles.

use super::messages::missing;
use super::*;

impl Conversation {
    /// From here on the model sees the summary, what was preserved, and what follows (R-EVT-009).
    pub(super) fn compaction(&mut self, here: &mut Here<'_>, digest: u64) -> Written {
        let parent = self.link(here, Class::Boundary, digest);
        let meta = here.record.compact_metadata.as_ref();
        let event = |uuid: &str| WindowItem::Event { event: self.event_of(uuid).hex().into(), parts: None };
        let (mut window, mut whole) = (Vec::new(), true);
        if let Some(meta) = meta {
            let messages = meta.preserved_messages.as_ref();
            let segment = meta.preserved_segment.as_ref();
            let anchor =
                messages.and_then(|m| m.anchor_uuid.as_deref()).or(segment.and_then(|s| s.anchor_uuid.as_deref()));
            window.extend(anchor.map(event));
            match messages.and_then(|m| m.uuids.as_ref()) {
                Some(uuids) => window.extend(uuids.iter().map(|uuid| event(uuid))),
                None => {
                    // Older boundaries name the ends of the segment only.
                    let ends = segment.and_then(|s| s.head_uuid.as_deref().zip(s.tail_uuid.as_deref()));
                    let between = ends.map(|(head, tail)| self.graph.between(head, tail, &mut self.budget));
                    whole = between != Some(None);
                    let between = between.flatten().unwrap_or_default();
                    window
                        .extend(between.into_iter().map(|e| WindowItem::Event { event: e.hex().into(), parts: None }));
                }
            }
        }
        let trigger = match meta.and_then(|m| m.trigger.as_deref()) {
            Some("manual") => Some(CompactionTrigger::Manual),
            Some("auto") => Some(CompactionTrigger::Auto),
            _ => None,
        };
        let compacted = ContextCompacted {
            trigger,
            window: Some(window),
            pruned: None,
            tokens_before: meta.and_then(|m| m.pre_tokens),
            tokens_after: meta.and_then(|m| m.post_tokens),
        };
        if whole {
            return self.emit(here, ActorKind::Harness, parent, compacted).map(drop);
        }
        let place = self.out.place(here.span);
        let why = "what was preserved cannot be followed from one of its ends to the other";
        let odd = Diagnostic::new(Code::UnexpectedShape, Severity::Warning, place).because(why);
        self.out.log.diagnostics.push(odd);
        let src = vec![src(&self.out.source, here.span, Some(SrcHow::Degraded))];
        self.emit_from(here, ActorKind::Harness, parent, compacted, src).map(drop)
    }

    /// The content of some results was taken out of the context.
    pub(super) fn microcompaction(&mut self, here: &mut Here<'_>, digest: u64) -> Written {
        let parent = self.link(here, Class::Boundary, digest);
        let Some(meta) = here.record.microcompact_metadata.as_ref() else { return Ok(()) };
        let compacted = ContextCompacted {
            trigger: (meta.trigger.as_deref() == Some("auto")).then_some(CompactionTrigger::Auto),
            window: None,
            pruned: Some(meta.compacted_tool_ids.clone().unwrap_or_default()),
            tokens_before: meta.pre_tokens,
            tokens_after: None,
        };
        self.emit(here, ActorKind::Harness, parent, compacted).map(drop)
    }

    /// Attachments are the client's context for the model. One kind holds what a person typed.
    pub(super) fn attachment(&mut self, here: &mut Here<'_>, kind: &str, digest: u64) -> Written {
        let Some(attachment) = here.record.attachment.as_ref() else { return self.unread(here, kind, digest) };
        match attachment.r#type.as_deref() {
            Some("queued_command") if let Some(prompt) = &attachment.prompt => {
                let notification =
                    attachment.origin.as_ref().is_some_and(|o| o.kind.as_deref() == Some("task-notification"));
                let class = if notification { Class::Client } else { Class::Prompt };
                let parent = self.link(here, class, digest);
                let (purpose, actor) =
                    if notification { ("notification", ActorKind::Harness) } else { ("steer", ActorKind::User) };
                let parts = self.parts(here, prompt)?;
                // The client puts it between the messages, as one of the system.
                let added = MessageAdded {
                    role: Role::System,
                    parts,
                    response: None,
                    partial: None,
                    purpose: Some(purpose.into()),
                    in_context: None,
                };
                let id = self.emit(here, actor, parent, added)?;
                self.delivered(here, prompt, Operation::Remove, id)?;
                if notification {
                    self.notification(here, prompt)?;
                }
                Ok(())
            }
            Some("skill_listing") if let Some(names) = &attachment.names => {
                let parent = self.link(here, Class::Through, digest);
                let set = ConfigSet { skills: Some(names.clone()), ..EMPTY_CONFIG };
                self.emit(here, ActorKind::Harness, parent, set).map(drop)
            }
            Some(_) => self.keep(here, kind, digest),
            None => self.unread(here, kind, digest),
        }
    }

    pub(super) fn queue_operation(&mut self, here: &mut Here<'_>) -> Written {
        let operation = match here.record.operation.as_deref() {
            Some("enqueue") => {
                let content = here.record.content.as_ref();
                let part = match content {
                    Some(text) if text.is_string() => Part::Text { text: Value::Inline(text.borrowed()) },
                    Some(other) => Part::Json { value: Value::Inline(other.borrowed()) },
                    // The client does not write the content of a prompt with a picture here.
                    None => Part::Json { value: missing() },
                };
                let input = self.out.ids.event(here.native, here.ordinal);
                let hash = content.and_then(Raw::text).map(|t| crate::calls::prompt_hash(&t));
                self.queue.push(input, hash, self.out.place(here.span));
                let queued = InputQueued { input: input.hex().into(), parts: vec![part] };
                return self.emit(here, ActorKind::User, None, queued).map(drop);
            }
            Some("dequeue") => Operation::Dequeue,
            Some("remove") => Operation::Remove,
            _ => return self.unread(here, "queue-operation", 0),
        };
        match self.queue.operation(operation) {
            Some(input) => {
                let ended = InputEnded { input: input.hex().into(), outcome: InputOutcome::Taken, message: None };
                self.emit(here, ActorKind::Harness, None, ended).map(drop)
            }
            // The operation names no text: what it ended is told by the message that follows.
            None => self.keep_verbatim(here, "queue-operation", None),
        }
    }

    /// A title, for the session that has the leaf.
    pub(super) fn summary(&mut self, here: &mut Here<'_>) -> Written {
        let Some(text) = here.record.summary.as_ref() else { return Ok(()) };
        let leaf = here.record.leaf_uuid.as_deref();
        if let Some(leaf) = leaf {
            let place = Place { names: Some(leaf.to_owned()), ..self.out.place(here.span) };
            self.summaries.push((key(leaf), place));
        }
        let about = leaf.map(|leaf| self.event_of(leaf).hex().into());
        let data = NoteAdded { text: Some(Value::Inline(text.borrowed())), about, ..note("summary") };
        self.emit(here, ActorKind::Harness, None, data).map(drop)
    }

    /// The leaf that the client resumes from: a move of the head where it is another message.
    pub(super) fn leaf(&mut self, here: &mut Here<'_>, kind: &str) -> Written {
        let Some(leaf) = here.record.leaf_uuid.as_deref() else { return Ok(()) };
        let message = self.graph.find(leaf).and_then(|n| self.graph.message_at(n));
        match message {
            Some(message) if Some(message) != self.graph.head() && !self.graph.is_before_head(message) => {
                self.graph.move_head(message);
                let to = self.graph.event(message).hex();
                self.emit(here, ActorKind::Harness, None, BranchMoved { to: to.into() }).map(drop)
            }
            _ => {
                self.out.input.kept += 1;
                self.keep_verbatim(here, kind, None)
            }
        }
    }

    /// What can be said only when the transcript is over. Nothing of it is written.
    pub(crate) fn conclude(&mut self) {
        for (parent, place) in std::mem::take(&mut self.unseen) {
            if !self.graph.has(parent) {
                self.out.warn(Code::MissingParent, place);
            }
        }
        for (leaf, place) in std::mem::take(&mut self.summaries) {
            if !self.graph.has(leaf) {
                self.out.input.foreign += 1;
                self.out.warn(Code::ForeignRecord, place);
            }
        }
        let path = self.out.input.path.clone();
        for (place, went_on) in self.calls.untold(&path) {
            self.out.warn(if went_on { Code::ResultLost } else { Code::CallWithoutResult }, place);
        }
        let waiting: Vec<Place> = self.queue.still_waiting().cloned().collect();
        for place in waiting {
            self.out.info(Code::QueuedPrompt, place);
        }
    }
}
