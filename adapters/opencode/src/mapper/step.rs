//! Messages of the model: one step each, with its calls and what became of them (`spec/sources/opencode.md`, "Messages").

use std::collections::BTreeMap;

use palog::envelope::ActorKind;
use palog::events::{self, MessageAdded, ModelResponse, Opaque, Role, TurnEnd, TurnEnded, Usage};
use palog::json::{Raw, Value};
use palog::writer::WriteError;
use palog_adapter::ids::EventId;

use super::{Group, Mapper, Slot, Told, Written};
use crate::calls::Call;
use crate::record::{Info, Part, Tokens};

/// The client's word for why a step ended, in the words of a log.
pub(crate) fn stop(finish: &str) -> &str {
    match finish {
        "stop" => "end_turn",
        "length" => "max_tokens",
        "content-filter" => "refusal",
        "tool-calls" => "tool_use",
        other => other,
    }
}

/// Whether the client shows a message that ended in an error to the model: one that a person broke off, if it says something.
fn is_shown(group: &Group<'_, '_>, info: &Info<'_>) -> bool {
    let says = || group.each().any(|(_, _, part)| !matches!(part.kind(), "step-start" | "reasoning"));
    info.error.is_none() || (info.is_aborted() && says())
}

impl Mapper {
    pub(super) fn answer(&mut self, group: &mut Group<'_, '_>, info: &Info<'_>) -> Written {
        self.settle(group, info)?;
        let is_whole = info.time.is_some_and(|t| t.completed.is_some()) && info.error.is_none();
        let is_shown = is_shown(group, info);
        let calls = self.spoken(group, info, is_whole, is_shown)?;
        for call in &calls {
            self.outcome(group, call, info.is_aborted(), is_shown)?;
        }
        self.response(group, info)?;
        if let Some(error) = &info.error {
            let turn = info.parent.as_deref().filter(|turn| self.turns.contains(*turn)).map(str::to_owned);
            if let Some(turn) = turn {
                let how = if info.is_aborted() { TurnEnd::Interrupted } else { TurnEnd::Error };
                let reason = Some(error.message().into());
                let told =
                    Told::by(&group.message.origin, Slot::TurnEnd).time(info.time.and_then(|t| t.completed)).ext(error);
                self.append(told, ActorKind::Harness, TurnEnded { turn: Some(turn.into()), how, reason })?;
                group.begun = true;
            }
        }
        self.compacted(group, info)
    }

    /// What the model said, with the places of its calls. Returns the calls.
    fn spoken<'g>(
        &mut self,
        group: &mut Group<'g, '_>,
        info: &Info<'_>,
        is_whole: bool,
        is_shown: bool,
    ) -> Result<Vec<Call<'g>>, WriteError> {
        let (mut parts, mut from, mut calls, mut unsaid) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut ends_with_call = false;
        for (at, record, part) in group.each() {
            ends_with_call &= !matches!(part.kind(), "text" | "reasoning" | "tool");
            match part.kind() {
                "text" if part.ignored == Some(true) => unsaid.push((at, part)),
                "text" => {
                    parts.extend(Self::text_part(part));
                    from.push(at);
                }
                "reasoning" => {
                    parts.extend(reasoning(part, info));
                    from.push(at);
                }
                "file" => {
                    if let Some(file) = self.file_part(&record.origin, part)? {
                        parts.push(file);
                        from.push(at);
                    }
                }
                "tool" => {
                    if let Some(call) = self.calls.take(at, record, part, &self.input.path) {
                        parts.push(events::Part::Action { action: call.action.clone().into() });
                        calls.push(call);
                        ends_with_call = true;
                    }
                }
                _ => {}
            }
        }
        if !parts.is_empty() {
            self.begin_answer();
            // The client completes a message after its calls. A call that it was handed whole was not cut off.
            let is_whole = is_whole || ends_with_call && info.error.is_none();
            let added = MessageAdded {
                role: Role::Assistant,
                parts,
                response: (!group.message.id.is_empty()).then(|| group.message.id.clone().into()),
                partial: (!is_whole).then_some(true),
                purpose: info.is_summary().then(|| "summary".into()),
                in_context: (!is_shown).then_some(false),
            };
            self.said(group, &from, ActorKind::Model, added)?;
        }
        for call in &calls {
            self.proposed(group, call)?;
        }
        self.unsaid(group, Role::Assistant, ActorKind::Harness, &unsaid)?;
        Ok(calls)
    }

    /// What the model was seen to do in parts that it is not shown any more.
    pub(super) fn unseen(&mut self, group: &mut Group<'_, '_>) -> Written {
        let info = Info::default();
        let calls = self.spoken(group, &info, true, false)?;
        for call in &calls {
            self.outcome(group, call, false, false)?;
        }
        Ok(())
    }

    /// Appends a message that comes from the message at hand and these parts.
    pub(super) fn said(
        &mut self,
        group: &mut Group<'_, '_>,
        parts: &[usize],
        actor: ActorKind,
        added: MessageAdded<'_>,
    ) -> Result<EventId, WriteError> {
        // It is another event when one of its parts has changed, or one came.
        let origin = group.message.origin.with(group.parts);
        let from = group.records(parts);
        let on_path = added.in_context != Some(false);
        let told = Told::by(&origin, group.slot).time(group.created).from(from);
        let id = self.append(told, actor, added)?;
        if on_path {
            self.on_path(id);
        }
        Ok(id)
    }

    /// What is known of the response: the marks of its step, and its tokens.
    fn response(&mut self, group: &mut Group<'_, '_>, info: &Info<'_>) -> Written {
        let steps: Vec<usize> = group
            .each()
            .filter(|(_, _, part)| matches!(part.kind(), "step-start" | "step-finish"))
            .map(|(at, _, _)| at)
            .collect();
        let tokens = info.tokens.unwrap_or_default();
        let counted = [tokens.input, tokens.output].iter().flatten().any(|n| *n > 0);
        if steps.is_empty() && info.finish.is_none() && !counted {
            return Ok(());
        }
        let snapshots: Vec<_> =
            group.each().filter(|(at, _, _)| steps.contains(at)).filter_map(|(_, _, p)| p.snapshot.as_ref()).collect();
        let failure = info.error.as_ref().filter(|_| !info.is_aborted());
        let response = ModelResponse {
            response: group.message.id.clone().into(),
            model: info.full_model().map(Into::into),
            request: None,
            usage: info.tokens.map(|tokens| usage(&tokens)),
            cost: info.cost.as_ref().map(Raw::borrowed),
            stop: info.finish.as_deref().map(|finish| stop(finish).to_owned().into()),
            error: failure.map(|failure| Value::from(failure.message().as_str()).into_owned()),
        };
        let from = group.records(&steps);
        let told = Told::by(&group.message.origin, Slot::Response).time(info.time.and_then(|t| t.completed)).from(from);
        let told = if snapshots.is_empty() { told } else { told.ext(&BTreeMap::from([("snapshots", snapshots)])) };
        self.append(told, ActorKind::Model, response).map(drop)
    }
}

/// Reasoning: its text, and what only the provider can read of it.
fn reasoning<'d>(part: &'d Part<'_>, info: &Info<'_>) -> Option<events::Part<'d>> {
    let text = part.text.as_ref().filter(|_| part.has_text()).map(|text| Value::Inline(text.borrowed()));
    let metadata = part.metadata.as_ref().filter(|m| m.get().starts_with('{') && m.get() != "{}");
    let provider = info.provider.as_ref().map_or_else(|| "unknown".into(), ToString::to_string);
    let opaque = metadata.map(|metadata| Opaque {
        provider: provider.into(),
        kind: Some("metadata".into()),
        value: Value::Inline(metadata.borrowed()),
    });
    (text.is_some() || opaque.is_some()).then_some(events::Part::Reasoning { text, opaque })
}

pub(crate) fn usage(tokens: &Tokens) -> Usage {
    let cache = tokens.cache.unwrap_or_default();
    Usage {
        input: tokens.input,
        output: tokens.output,
        cache_read: cache.read,
        cache_write: cache.write,
        reasoning: tokens.reasoning,
    }
}
