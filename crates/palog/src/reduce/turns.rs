//! Turns, what answers them, and what is pending in them (spec 04, "Turns").

use std::collections::HashMap;

use super::path::{GroupId, Key, KeyMap};
use crate::events::{MessageAdded, ModelResponse, Part, TurnEnd, TurnEnded, Usage};
use crate::state::{Count, Totals};

/// Something that waits for the model, by the event that tells of it.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) seq: u64,
    pub(super) event: Box<str>,
    pub(super) turn: usize,
}

#[derive(Debug, Default)]
struct Turn {
    /// The vendor's id of the turn.
    name: Option<Key>,
    /// Whether its end would be recorded.
    ends_recorded: bool,
    /// The responses that answer it, and when.
    answers: Vec<(Key, u64)>,
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
        let by_model = self.answers.iter().map(|(_, seq)| *seq).max();
        self.completed.max(if self.ends_recorded { self.interrupted } else { by_model })
    }

    /// Whether what came at `seq` was answered or broken off since.
    fn is_over_for(&self, seq: u64) -> bool {
        self.answered().max(self.interrupted) >= Some(seq)
    }
}

/// What is known of a response. Token counts are capped at 2^32 - 1.
#[derive(Debug)]
struct Response {
    turn: usize,
    /// Its first and its newest event.
    first: u64,
    newest: u64,
    stop: Stop,
    failed: bool,
    /// It has a message; one that the model sees, whole; one with a call.
    message: bool,
    whole: bool,
    calls: bool,
    /// Whether its turn lists it as an answer.
    counted: bool,
    usage: [Option<u32>; 5],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
            Stop::EndsTurn => self.whole || !self.message,
            Stop::GoesOn => false,
            Stop::Unknown => self.whole && !self.calls,
        }
    }
}

/// What hangs under a parent that is still to come.
#[derive(Debug, Default)]
struct Hanging {
    responses: Vec<Key>,
    actions: Vec<usize>,
    /// Groups that hang here until their own parents come, and the one that this group hangs in so.
    inner: Vec<GroupId>,
    outer: Option<GroupId>,
}

/// The turns of a session.
#[derive(Debug)]
pub(super) struct Conversation {
    /// The first one is what comes before the first `turn.started`.
    turns: Vec<Turn>,
    responses: KeyMap<Response>,
    /// How many of them are no copies.
    pub(super) own_responses: u64,
    usage: [Option<u64>; 5],
    /// The response that a message of the model belongs to which names none; it ends with the first message that is not
    /// the model's.
    speaking: Option<Key>,
    /// How many responses have no name at all.
    unnamed: u64,
    /// Results that the model has not gone on from.
    results: Vec<Waiting>,
    hanging: HashMap<GroupId, Hanging>,
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
            responses: KeyMap::default(),
            own_responses: 0,
            usage: [None; 5],
            speaking: None,
            unnamed: 0,
            results: Vec::new(),
            hanging: HashMap::new(),
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
        self.speaking = Some(key);
        let named = data.response.is_some();
        // A summary for a compaction is nothing that the model says to anybody (R-TRN-004).
        let summary = data.purpose.as_deref() == Some("summary");
        let whole = data.in_context != Some(false) && data.partial != Some(true) && !summary;
        let response = self.response(key, at, named);
        response.message = true;
        response.newest = at.seq;
        response.whole |= whole;
        response.calls |= data.parts.iter().any(|p| matches!(p, Part::Action { .. }));
        let (first, turn) = (response.first, response.turn);
        if whole {
            self.turns[turn].begun = Some(at.seq);
            self.results.retain(|result| result.seq > first);
        }
        self.refresh(key);
    }

    /// A message that is not the model's; `prompts`: it wants an answer, `results`: it tells results.
    pub(super) fn other_message(&mut self, event: &str, at: At, prompts: bool, results: bool) {
        self.speaking = None;
        if at.context_only {
            return;
        }
        let waiting = Waiting { seq: at.seq, event: event.into(), turn: self.current() };
        if results {
            self.results.push(waiting);
        } else if prompts {
            let turn = self.current();
            self.turns[turn].prompts.push(waiting);
        }
    }

    /// What is known of a response.
    pub(super) fn model_response(&mut self, data: &ModelResponse<'_>, at: At) {
        let key = Key::of(&data.response);
        let response = self.response(key, at, true);
        if let Some(stop) = data.stop.as_deref() {
            response.stop = match stop {
                "end_turn" | "stop_sequence" | "max_tokens" | "refusal" => Stop::EndsTurn,
                _ => Stop::GoesOn,
            };
        }
        response.failed = data.error.is_some();
        if let Some(usage) = data.usage.as_ref().filter(|_| !at.copied) {
            let Usage { input, output, cache_read, cache_write, reasoning } = usage;
            let new = [input, output, cache_read, cache_write, reasoning]
                .map(|n| n.map(|n| u32::try_from(n).unwrap_or(u32::MAX)));
            let old = std::mem::replace(&mut response.usage, new);
            for ((total, old), new) in self.usage.iter_mut().zip(old).zip(new) {
                if old.is_some() || new.is_some() {
                    let rest = total.unwrap_or(0) - u64::from(old.unwrap_or(0));
                    *total = Some(rest + u64::from(new.unwrap_or(0)));
                }
            }
        }
        self.refresh(key);
    }

    fn response(&mut self, key: Key, at: At, named: bool) -> &mut Response {
        let turn = self.turns.len() - 1;
        let (own, hanging) = (&mut self.own_responses, &mut self.hanging);
        self.responses.entry(key).or_insert_with(|| {
            *own += u64::from(named && !at.copied);
            if let Some(group) = at.group {
                hanging.entry(group).or_default().responses.push(key);
            }
            Response {
                turn,
                first: at.seq,
                newest: at.seq,
                stop: Stop::Unknown,
                failed: false,
                message: false,
                whole: false,
                calls: false,
                counted: false,
                usage: [None; 5],
            }
        })
    }

    /// Makes a response an answer of its turn, or takes the answer back.
    fn refresh(&mut self, key: Key) {
        let Some(response) = self.responses.get_mut(&key) else { return };
        let answers = &mut self.turns[response.turn].answers;
        let listed = if response.counted { answers.iter().rposition(|(k, _)| *k == key) } else { None };
        response.counted = response.answers();
        match (listed, response.counted) {
            (Some(at), true) => answers[at].1 = response.newest,
            (Some(at), false) => {
                answers.remove(at);
            }
            (None, true) => answers.push((key, response.newest)),
            (None, false) => {}
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
        let mut turn = Turn { name: name.map(Key::of), ends_recorded, ..Turn::default() };
        let number = self.turns.len();
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
        let name = data.turn.as_deref().map(Key::of);
        let named = name.and_then(|name| self.turns.iter().rposition(|t| t.name == Some(name)));
        let current = self.current();
        let turn = &mut self.turns[named.unwrap_or(current)];
        match data.how {
            TurnEnd::Complete => turn.completed = Some(seq),
            TurnEnd::Interrupted => turn.interrupted = Some(seq),
            TurnEnd::Error => turn.failed = true,
        }
    }

    /// An action was proposed in `group`.
    pub(super) fn hang(&mut self, action: usize, group: GroupId) {
        self.hanging.entry(group).or_default().actions.push(action);
    }

    /// A group begins, and hangs in another one until its parent comes.
    pub(super) fn begin(&mut self, group: GroupId, outer: Option<GroupId>) {
        self.hanging.entry(group).or_default().outer = outer;
        if let Some(outer) = outer {
            self.hanging.entry(outer).or_default().inner.push(group);
        }
    }

    /// The parent of `group`, `event`, has come: what hangs under it belongs to the newest turn (R-TRN-010), and to the
    /// group that the parent is in. Returns the actions.
    pub(super) fn adopt(&mut self, event: &str, seq: u64, group: GroupId, new_outer: Option<GroupId>) -> Vec<usize> {
        if let Some((_, earlier)) = self.arrived.replace((event.into(), group)).filter(|(_, earlier)| *earlier != group)
        {
            self.hanging.remove(&earlier);
        }
        let old_outer = self.hanging.get_mut(&group).and_then(|hanging| hanging.outer.take());
        if let Some(old) = old_outer.and_then(|outer| self.hanging.get_mut(&outer)) {
            old.inner.retain(|inner| *inner != group);
        }
        let (mut keys, mut actions, mut groups) = (Vec::new(), Vec::new(), vec![group]);
        let mut visited = std::collections::HashSet::new();
        while let Some(group) = groups.pop() {
            // Parents that are still missing can hang in one another.
            if !visited.insert(group) {
                continue;
            }
            let Some(hanging) = self.hanging.get(&group) else { continue };
            keys.extend(&hanging.responses);
            actions.extend(&hanging.actions);
            groups.extend(&hanging.inner);
        }
        let turn = self.current();
        let mut spoke = false;
        for key in &keys {
            let Some(response) = self.responses.get_mut(key) else { continue };
            self.turns[response.turn].answers.retain(|(k, _)| k != key);
            (response.turn, response.counted) = (turn, false);
            response.newest = response.newest.max(seq);
            spoke |= response.whole;
            self.refresh(*key);
        }
        if spoke {
            self.turns[turn].begun = Some(seq);
            self.results.retain(|result| result.seq > seq);
        }
        if let Some(outer) = new_outer.filter(|outer| *outer != group) {
            let inner = self.hanging.get(&group).map(|hanging| hanging.inner.clone()).unwrap_or_default();
            for group in &inner {
                self.hanging.entry(*group).or_default().outer = Some(outer);
            }
            let further = self.hanging.entry(outer).or_default();
            further.responses.extend(keys);
            further.actions.extend(&actions);
            further.inner.extend(inner);
        }
        actions
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

    /// Results that the model was told and has not gone on from.
    pub(super) fn pending_results(&self) -> impl Iterator<Item = &Waiting> {
        let answered = self.answered();
        self.results.iter().filter(move |r| Some(r.turn) >= answered && !self.turns[r.turn].is_over_for(r.seq))
    }

    /// Prompts without an answer, each with whether its answer has begun.
    pub(super) fn pending_prompts(&self) -> impl Iterator<Item = (&Waiting, bool)> {
        let from = self.answered().unwrap_or(0);
        self.turns[from..].iter().flat_map(|turn| {
            turn.prompts.iter().filter(|p| !turn.is_over_for(p.seq)).map(|p| (p, turn.begun >= Some(p.seq)))
        })
    }

    /// Token counts of all responses, each once.
    pub(super) fn totals(&self) -> Totals {
        let [input, output, cache_read, cache_write, reasoning] = self.usage.map(|n| n.map(Count));
        Totals { input, output, cache_read, cache_write, reasoning }
    }
}
