//! Results: what the model was told of a call, and what became of the call (`spec/sources/claude-code.md`, "Results").

use super::*;

/// The longest end of a line.
const LINE_END: u64 = 2;

/// The text by which a result begins.
fn opening(content: Option<&Content<'_>>) -> String {
    match content {
        Some(Content::Text(raw)) => raw.text().unwrap_or_default().into_owned(),
        Some(Content::Blocks(blocks)) => {
            let first = blocks.iter().find_map(|b| b.members.text.as_ref());
            first.and_then(Raw::text).unwrap_or_default().into_owned()
        }
        None => String::new(),
    }
}

/// What a result tells of a call.
struct Told {
    /// The vendor's id of the call.
    call: String,
    action: String,
    /// Name of the tool, if it is known.
    name: Option<String>,
    verdict: Verdict,
}

impl Conversation {
    /// A record with results: the message, then what became of each call.
    pub(super) fn results(&mut self, here: &mut Here<'_>, content: &Content<'_>, parent: Option<String>) -> Written {
        let Content::Blocks(blocks) = content else { return Ok(()) };
        let record = here.record;
        let structured = record.tool_use_result.as_ref();
        let structured_text = structured.and_then(Raw::text);
        let facts: Read<'_, ToolUseResult<'_>> = structured.and_then(|raw| read(raw.get()).ok()).unwrap_or_default();
        let denial = record.tool_denial_kind.as_ref().map(|kind| kind.text().unwrap_or_default());
        let contents: Vec<Option<Content<'_>>> =
            blocks.iter().map(|b| b.members.content.as_ref().map(Content::of_result)).collect();
        let is_result = |b: &Block<'_>| &*b.members.r#type == "tool_result" && b.members.tool_use_id.is_some();
        let results = blocks.iter().filter(|b| is_result(b)).count();
        // The structured result belongs to the one result of the record. Of several, nobody knows to which.
        let telling = facts.is_background() || facts.is_interrupted() != Some(false) || denial.is_some();
        let misread = facts.repeated || structured.is_some_and(is_misspelt) || (results != 1 && telling);
        let facts = if results == 1 { facts.members } else { ToolUseResult::default() };
        let structured_text = structured_text.filter(|_| results == 1);
        let denial = denial.filter(|_| results == 1);
        let mut parts = Vec::with_capacity(blocks.len());
        let mut outcomes = Vec::with_capacity(results);
        for (block, content) in blocks.iter().zip(&contents) {
            let m = &block.members;
            let Some(call) = m.tool_use_id.as_deref().filter(|_| is_result(block)) else {
                parts.push(self.part(here, block)?);
                continue;
            };
            let text = opening(content.as_ref());
            let (name, background, action) = match self.calls.get_mut(call) {
                Some((known, action)) => {
                    known.told = true;
                    (known.name.as_deref().map(str::to_owned), known.background, action)
                }
                None => {
                    let place = Place { call: Some(call.to_owned()), ..self.out.place(here.span) };
                    self.out.warn(Code::OrphanResult, place);
                    (None, false, call.to_owned())
                }
            };
            let verdict = here.mark.end.map(by_mark).unwrap_or_else(|| {
                tools::verdict(
                    name.as_deref(),
                    &text,
                    Facts {
                        is_error: m.marks_error(),
                        misread: misread || block.repeated,
                        background: facts.is_background(),
                        asked_background: background,
                        interrupted: facts.is_interrupted(),
                        status: facts.status.as_deref(),
                        exit: facts.has_exit(),
                        structured: structured_text.as_deref(),
                        denial: denial.as_deref(),
                    },
                )
            });
            parts.push(Part::Result {
                action: action.clone().into(),
                parts: match content {
                    Some(content) => self.parts(here, content)?,
                    None => Vec::new(),
                },
                is_error: m.marks_error().filter(|_| m.is_error.is_some()),
                r#final: verdict != Verdict::Background && !here.mark.background,
            });
            outcomes.push(Told { call: call.to_owned(), action, name, verdict });
        }
        let role = if results == parts.len() { Role::Tool } else { Role::User };
        let added = MessageAdded { role, parts, response: None, partial: None, purpose: None, in_context: None };
        let event = self.emit(here, ActorKind::Tool, parent, added)?;
        let place = Place { record: record.uuid.as_deref().map(str::to_owned), ..self.out.place(here.span) };
        self.calls.result(event, place);
        for told in outcomes {
            self.outcome(here, told, &facts)?;
        }
        Ok(())
    }

    /// What a result says of its call.
    fn outcome(&mut self, here: &mut Here<'_>, told: Told, facts: &ToolUseResult<'_>) -> Written {
        let Told { call, action, name, verdict } = told;
        let denied =
            |actor| (ApprovalEnded { outcome: ApprovalOutcome::Denied, ..ended_approval(action.clone()) }, actor);
        match verdict {
            Verdict::Ended(outcome, applied) => {
                let output = self.output(here, facts)?;
                let ended = ActionEnded {
                    action: action.clone().into(),
                    attempt: None,
                    outcome,
                    applied,
                    output,
                    receipt: None,
                    error: None,
                };
                self.emit(here, ActorKind::Tool, None, ended)?;
            }
            Verdict::DeniedByUser => {
                let (ended, actor) = denied(ActorKind::User);
                self.emit(here, actor, None, ended)?;
            }
            Verdict::DeniedByPolicy => {
                let (ended, actor) = denied(ActorKind::Policy);
                self.emit(here, actor, None, ended)?;
            }
            Verdict::RefusedOrInterrupted => {
                let src = src(&self.out.source, here.span, Some(SrcHow::Synthesized));
                self.undecided.push(Undecided { action: action.clone(), src });
            }
            Verdict::Background | Verdict::Open => {}
        }
        match facts.agent_id.as_deref().map(|id| (id, facts.status.as_deref())) {
            // A server can name any agent.
            Some((agent, status))
                if !self.linked.contains_key(agent) && name.is_some_and(|name| !name.starts_with("mcp__")) =>
            {
                let done = !matches!(verdict, Verdict::Background);
                self.spawned(here, agent, &call, &action, done.then_some(status).flatten())
            }
            _ => Ok(()),
        }
    }

    /// What an exporter knew of the end of a call.
    pub(super) fn ended_by_mark(&mut self, here: &mut Here<'_>, action: String, end: EndMark) -> Written {
        let told = Told { call: String::new(), action, name: None, verdict: by_mark(end) };
        self.outcome(here, told, &ToolUseResult::default())
    }

    /// A result that names the agent which the call started.
    fn spawned(&mut self, here: &mut Here<'_>, agent: &str, call: &str, action: &str, ended: Option<&str>) -> Written {
        self.linked.insert(agent.to_owned(), Some(action.to_owned()));
        if let Some((call, _)) = self.calls.get_mut(call)
            && let Some(spawn) = &mut call.spawn
        {
            spawn.linked = true;
        }
        let child = ids::log(&FORMAT, agent);
        let spawned = ChildSpawned {
            child: child.clone().into(),
            session: agent.to_owned().into(),
            action: Some(action.to_owned().into()),
            kind: ChildKind::Subagent,
            link: ChildLink::Explicit,
        };
        self.emit(here, ActorKind::Harness, None, spawned)?;
        if let Some(status) = ended {
            let ended = ChildEnded { child: child.into(), status: Some(status.to_owned().into()), output: None };
            self.emit(here, ActorKind::Harness, None, ended)?;
        }
        Ok(())
    }

    /// What a call gave back beyond what the model was told: a picture, or output that went to a file.
    fn output<'r>(
        &mut self,
        here: &Here<'_>,
        facts: &'r ToolUseResult<'_>,
    ) -> Result<Option<Vec<Part<'r>>>, WriteError> {
        if let Some(path) = facts.persisted_output_path.as_deref() {
            let name = path.rsplit('/').next().unwrap_or(path);
            let name = format!("tool-results/{name}");
            let omitted = Omission { reason: OmittedReason::Unavailable, bytes: facts.persisted_output_size };
            let data = self.spilled.get(&name).cloned().unwrap_or(Value::Omitted(Omitted { omitted }));
            return Ok(Some(vec![Part::File { name: Some(name.into()), media: Some("text/plain".into()), data }]));
        }
        let Some(file) = &facts.file else { return Ok(None) };
        let (Some(data), Some(media)) = (&file.base64, &file.r#type) else { return Ok(None) };
        let data = self.picture(here, data, media)?;
        Ok(Some(vec![Part::Image { media: media.clone(), data }]))
    }

    /// Concludes what the record before left open: a refusal is one only if the client's note of it follows at once. Anything
    /// between them, also what cannot be read, leaves it open for good.
    pub(super) fn settle_refusals(&mut self, here: &mut Here<'_>) -> Written {
        let record = here.record;
        let follows = std::mem::replace(&mut self.record_end, here.span.at + here.span.len);
        if self.undecided.is_empty() {
            return Ok(());
        }
        if here.span.at > follows + LINE_END || here.odd {
            self.undecided.clear();
            return Ok(());
        }
        let content = record.message.as_ref().and_then(|m| m.content.as_ref());
        let user = record.r#type == *"user";
        if let (true, Some(Content::Blocks(blocks))) = (user, content) {
            // Results of parallel calls come one after the other; the note follows them all.
            if blocks.iter().any(|b| b.members.r#type == *"tool_result") {
                return Ok(());
            }
            let note = matches!(&blocks[..], [b] if b.members.text.as_ref().and_then(Raw::text)
                .is_some_and(|t| t == "[Request interrupted by user for tool use]"));
            if note && record.prompt_source.is_none() && record.interrupted_message_id.is_none() {
                self.refused = std::mem::take(&mut self.undecided);
            }
        }
        self.undecided.clear();
        Ok(())
    }

    /// Writes the refusals that the record at hand confirmed.
    pub(super) fn write_refusals(&mut self, here: &mut Here<'_>) -> Written {
        for refused in std::mem::take(&mut self.refused) {
            let ended = ApprovalEnded { outcome: ApprovalOutcome::Denied, ..ended_approval(refused.action) };
            let sources = vec![refused.src, src(&self.out.source, here.span, Some(SrcHow::Synthesized))];
            self.emit_from(here, ActorKind::User, None, ended, sources)?;
        }
        Ok(())
    }
}

/// What the mark of an exporter says of the end of a call.
fn by_mark(end: EndMark) -> Verdict {
    match end {
        EndMark::Ended { outcome, applied } => Verdict::Ended(outcome, applied),
        EndMark::DeniedByUser => Verdict::DeniedByUser,
        EndMark::DeniedByPolicy => Verdict::DeniedByPolicy,
        EndMark::Open => Verdict::Open,
    }
}

/// The end of an approval for an action, not yet said how.
fn ended_approval<'a>(action: String) -> ApprovalEnded<'a> {
    ApprovalEnded {
        approval: None,
        action: Some(action.into()),
        outcome: ApprovalOutcome::Withdrawn,
        scope: None,
        args: None,
        input: None,
        reason: None,
        join: None,
    }
}
