//! Turns, what answers them, and what is pending in them (spec 04, "Turns").

use std::collections::VecDeque;

use super::path::{Adoptions, GroupId, Key, KeyMap};
use crate::events::{MessageAdded, ModelResponse, Part, TurnEnd, TurnEnded, Usage};
use crate::state::{Count, Totals};
use serde::{Deserialize, Serialize};

/// Something that waits for the model, by the event that tells of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Waiting {
    pub(super) seq: u64,
    pub(super) event: Box<str>,
    pub(super) turn: usize,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Turn {
    /// Whether its end would be recorded.
    ends_recorded: bool,
    /// The newest event of the responses that answer it.
    by_model: Option<u64>,
    completed: Option<u64>,
    interrupted: Option<u64>,
    failed: bool,
    /// The newest message of the model in it.
    begun: Option<u64>,
    prompts: Vec<Waiting>,
}

impl Turn {
    /// When it was answered (R-TRN-002).
    fn answered(&self) -> Option<u64> {
        self.completed.max(if self.ends_recorded { self.interrupted } else { self.by_model })
    }

    /// Whether what came at `seq` was answered or broken off since.
    fn is_over_for(&self, seq: u64) -> bool {
        self.answered().max(self.interrupted) >= Some(seq)
    }
}

/// What is known of a response.
#[derive(Debug, Serialize, Deserialize)]
struct Response {
    /// The turn that was open at its first event, and what it hangs under.
    turn: usize,
    group: Option<GroupId>,
    /// Its first and its newest event.
    first: u64,
    newest: u64,
    stop: Stop,
    failed: bool,
    /// It has a message; one with a call.
    message: bool,
    calls: bool,
    /// A call of it, or what became of one, is known.
    called: bool,
    /// The newest message that the model sees, whole.
    whole: Option<u64>,
    /// It may have a call that nobody could read (R-TRN-011).
    unread: bool,
    /// The event that says that it asked for calls, as long as none is known (R-TRN-012).
    asks: Option<Box<str>>,
    usage: [Option<u64>; 5],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Stop {
    Unknown,
    EndsTurn,
    GoesOn,
}

impl Response {
    /// Whether it answers its turn (R-TRN-002, R-TRN-003, R-TRN-004).
    fn answers(&self) -> bool {
        match self.stop {
            _ if self.failed => false,
            Stop::EndsTurn => self.whole.is_some() || !self.message,
            Stop::GoesOn => false,
            Stop::Unknown => self.whole.is_some() && !self.calls && !self.unread,
        }
    }
}

/// The turns of a session.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Conversation {
    /// The first one is what comes before the first `turn.started`.
    turns: Vec<Turn>,
    /// By the vendor's id, the newest turn that has it.
    #[serde(with = "super::snapshot::pairs")]
    by_name: KeyMap<usize>,
    #[serde(with = "super::snapshot::pairs")]
    responses: KeyMap<Response>,
    /// How many of them are no copies.
    pub(super) own_responses: u64,
    /// The response that a message of the model belongs to which names none; it ends with the first message that is not
    /// the model's.
    speaking: Option<Key>,
    /// The response that what cannot be read may belong to: it ends with a message of a person or a tool.
    beside: Option<Key>,
    /// Something that could not be read stands since the last such message.
    unread: bool,
    /// How many responses have no name at all.
    unnamed: u64,
    /// Results that no later response has gone on from, in their order.
    results: VecDeque<Waiting>,
    /// When the model last spoke by what a parent that came late brought along.
    spoke: Option<u64>,
    /// The message that came last of those that others hang under, and these.
    arrived: Option<(Box<str>, GroupId)>,
}

/// Where a message or response stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) seq: u64,
    pub(super) group: Option<GroupId>,
    /// It is a copy: it is not counted.
    pub(super) copied: bool,
    /// It is here as the context of a child only: nothing waits for an answer.
    pub(super) context_only: bool,
}

impl Conversation {
    pub(super) fn new() -> Self {
        Conversation {
            turns: vec![Turn::default()],
            by_name: KeyMap::default(),
            responses: KeyMap::default(),
            own_responses: 0,
            speaking: None,
            beside: None,
            unread: false,
            unnamed: 0,
            results: VecDeque::new(),
            spoke: None,
            arrived: None,
        }
    }

    /// Number of the newest turn.
    pub(super) fn current(&self) -> usize {
        self.turns.len() - 1
    }

    /// What comes before the first turn is one, too; its end is recorded if `recorded`.
    pub(super) fn opened(&mut self, recorded: bool) {
        self.turns[0].ends_recorded = recorded;
    }

    /// A message of the model.
    pub(super) fn model_message(&mut self, data: &MessageAdded<'_>, at: At) {
        let key = data.response.as_deref().map(Key::of).or(self.speaking).unwrap_or_else(|| {
            self.unnamed += 1;
            Key::of(&format!("\0{}", self.unnamed))
        });
        (self.speaking, self.beside) = (Some(key), Some(key));
        let named = data.response.is_some();
        // A summary for a compaction is nothing that the model says to anybody (R-TRN-004).
        let summary = data.purpose.as_deref() == Some("summary");
        let whole = data.in_context != Some(false) && data.partial != Some(true) && !summary;
        let unread = self.unread;
        let response = self.response(key, at, named);
        response.message = true;
        response.newest = at.seq;
        response.calls |= data.parts.iter().any(|p| matches!(p, Part::Action { .. }));
        if response.calls {
            (response.called, response.asks) = (true, None);
        }
        response.unread |= unread || data.parts.iter().any(|p| matches!(p, Part::Opaque(_)));
        if whole {
            response.whole = Some(at.seq);
            let first = response.first;
            while self.results.pop_front_if(|result| result.seq <= first).is_some() {}
        }
    }

    /// A call of the response at hand is known.
    pub(super) fn proposed(&mut self) {
        if let Some(response) = self.beside.and_then(|key| self.responses.get_mut(&key)) {
            (response.called, response.asks) = (true, None);
        }
    }

    /// A message that is not the model's; `prompts`: it wants an answer, `results`: it tells results, `harness`: it is the
    /// client's own.
    pub(super) fn other_message(&mut self, event: &str, at: At, prompts: bool, results: bool, harness: bool) {
        self.speaking = None;
        if results {
            // Whatever it asked for, these are the results.
            self.proposed();
        }
        if results || !harness {
            (self.beside, self.unread) = (None, false);
        }
        if at.context_only {
            return;
        }
        let waiting = Waiting { seq: at.seq, event: event.into(), turn: self.current() };
        if results {
            self.results.push_back(waiting);
        } else if prompts {
            let turn = self.current();
            self.turns[turn].prompts.push(waiting);
        }
    }

    /// Something could not be read: it may be a part of the response beside it (R-TRN-011).
    pub(super) fn unreadable(&mut self) {
        self.unread = true;
        if let Some(response) = self.beside.and_then(|key| self.responses.get_mut(&key)) {
            response.unread = true;
        }
    }

    /// What is known of a response.
    pub(super) fn model_response(&mut self, data: &ModelResponse<'_>, event: &str, at: At) {
        let key = Key::of(&data.response);
        let response = self.response(key, at, true);
        if let Some(stop) = data.stop.as_deref() {
            response.stop = match stop {
                "end_turn" | "stop_sequence" | "max_tokens" | "refusal" => Stop::EndsTurn,
                _ => Stop::GoesOn,
            };
        }
        response.failed = data.error.is_some();
        let asks = data.stop.as_deref() == Some("tool_use") && !response.failed && !response.called && !at.copied;
        response.asks = asks.then(|| event.into());
        if let Some(usage) = data.usage.as_ref().filter(|_| !at.copied) {
            let Usage { input, output, cache_read, cache_write, reasoning } = usage;
            response.usage = [*input, *output, *cache_read, *cache_write, *reasoning];
        }
    }

    fn response(&mut self, key: Key, at: At, named: bool) -> &mut Response {
        let turn = self.turns.len() - 1;
        let own = &mut self.own_responses;
        self.responses.entry(key).or_insert_with(|| {
            *own += u64::from(named && !at.copied);
            Response {
                turn,
                group: at.group,
                first: at.seq,
                newest: at.seq,
                stop: Stop::Unknown,
                failed: false,
                message: false,
                calls: false,
                called: false,
                whole: None,
                unread: false,
                asks: None,
                usage: [None; 5],
            }
        })
    }

    /// Brings the turns up to date with the responses.
    pub(super) fn settle(&mut self, adoptions: &Adoptions) {
        for turn in &mut self.turns {
            (turn.by_model, turn.begun) = (None, None);
        }
        self.spoke = None;
        for response in self.responses.values() {
            let adopted = adoptions.of(response.group, response.first);
            let (seq, number) = adopted.map_or((0, response.turn), |a| (a.seq, a.turn));
            let turn = &mut self.turns[number];
            if response.answers() {
                turn.by_model = turn.by_model.max(Some(response.newest.max(seq)));
            }
            if let Some(whole) = response.whole {
                turn.begun = turn.begun.max(Some(whole.max(seq)));
                self.spoke = self.spoke.max(adopted.map(|a| a.seq));
            }
        }
    }

    /// A turn begins with a message, which may be listed as a prompt of the turn before.
    pub(super) fn start(
        &mut self,
        name: Option<&str>,
        message: Option<&str>,
        seq: u64,
        ends_recorded: bool,
        context_only: bool,
    ) {
        (self.beside, self.unread) = (None, false);
        let mut turn = Turn { ends_recorded, ..Turn::default() };
        let number = self.turns.len();
        self.by_name.extend(name.map(|name| (Key::of(name), number)));
        if let Some(message) = message.filter(|_| !context_only) {
            let before = &mut self.turns[number - 1].prompts;
            let listed = before.iter().rposition(|p| &*p.event == message).map(|at| before.remove(at).seq);
            turn.prompts.push(Waiting { seq: listed.unwrap_or(seq), event: message.into(), turn: number });
        }
        self.turns.push(turn);
    }

    /// What hung under `message`, if that is the one that came last of those that others hang under.
    pub(super) fn hangs_under(&self, message: Option<&str>) -> Option<GroupId> {
        self.arrived.as_ref().filter(|(event, _)| Some(&**event) == message).map(|(_, group)| *group)
    }

    /// A turn ends.
    pub(super) fn end(&mut self, data: &TurnEnded<'_>, seq: u64) {
        let named = data.turn.as_deref().and_then(|name| self.by_name.get(&Key::of(name)).copied());
        let number = named.unwrap_or_else(|| self.current());
        let turn = &mut self.turns[number];
        match data.how {
            TurnEnd::Complete => turn.completed = Some(seq),
            TurnEnd::Interrupted => turn.interrupted = Some(seq),
            TurnEnd::Error => turn.failed = true,
        }
    }

    /// The parent of `group`, `event`, has come.
    pub(super) fn arrive(&mut self, event: &str, group: GroupId) {
        self.arrived = Some((event.into(), group));
    }

    /// The newest turn that is answered.
    pub(super) fn answered(&self) -> Option<usize> {
        self.turns.iter().rposition(|t| t.answered().is_some())
    }

    /// Whether the newest turn has neither an answer nor an end.
    pub(super) fn is_open(&self) -> bool {
        let turn = &self.turns[self.current()];
        self.current() > 0 && turn.answered().is_none() && turn.interrupted.is_none() && !turn.failed
    }

    /// Whether what happened in `turn` at `seq` was broken off by a person since.
    pub(super) fn is_interrupted(&self, turn: usize, seq: u64) -> bool {
        self.turns[turn].interrupted >= Some(seq)
    }

    /// The responses that asked for calls of which none is known (R-TRN-012), by the events that say so, with their turns.
    pub(super) fn lost_calls(&self) -> Vec<(&str, usize)> {
        let mut lost: Vec<_> =
            self.responses.values().filter_map(|r| Some((r.first, r.asks.as_deref()?, r.turn))).collect();
        lost.sort_unstable();
        lost.into_iter().map(|(_, event, turn)| (event, turn)).collect()
    }

    /// Results that the model was told and has not gone on from.
    pub(super) fn pending_results(&self) -> impl Iterator<Item = &Waiting> {
        let answered = self.answered();
        let waits = move |r: &&Waiting| {
            Some(r.seq) > self.spoke && Some(r.turn) >= answered && !self.turns[r.turn].is_over_for(r.seq)
        };
        self.results.iter().filter(waits)
    }

    /// Prompts without an answer, each with whether its answer has begun.
    pub(super) fn pending_prompts(&self) -> impl Iterator<Item = (&Waiting, bool)> {
        let from = self.answered().unwrap_or(0);
        self.turns[from..].iter().flat_map(|turn| {
            turn.prompts.iter().filter(|p| !turn.is_over_for(p.seq)).map(|p| (p, turn.begun >= Some(p.seq)))
        })
    }

    /// What was counted so far was counted in another log.
    pub(super) fn forget_counts(&mut self) {
        self.own_responses = 0;
        self.responses.values_mut().for_each(|response| response.usage = [None; 5]);
    }

    /// A fork only inherits what its parent asked for (R-FAM-002).
    pub(super) fn forget_lost_calls(&mut self) {
        self.responses.values_mut().for_each(|response| response.asks = None);
    }

    /// Whether the end of the newest turn would be recorded cannot be said any more.
    pub(super) fn suspend(&mut self) {
        let current = self.current();
        self.turns[current].ends_recorded = false;
    }

    /// Token counts of all responses, each once.
    pub(super) fn totals(&self) -> Totals {
        let mut totals: [Option<u64>; 5] = [None; 5];
        for response in self.responses.values() {
            for (total, count) in totals.iter_mut().zip(response.usage) {
                *total = count.map(|count| total.unwrap_or(0).saturating_add(count)).or(*total);
            }
        }
        let [input, output, cache_read, cache_write, reasoning] = totals.map(|total| total.map(Count));
        Totals { input, output, cache_read, cache_write, reasoning }
    }
}
