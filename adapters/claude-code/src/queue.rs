//! Input that was typed while the client was busy, and what became of it.
//!
//! The operations that end a wait name no text (R-EVT-004). So a text ends by the message that holds it; without one, only where
//! everything that still waits was taken or withdrawn.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use palog::diagnostic::Place;

use palog_adapter::ids::EventId;

/// What the client noted of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Taken, to be given to the model as a prompt.
    Dequeue,
    /// Taken to be put beside a tool result, or withdrawn.
    Remove,
}

/// The client's queue. Texts are known by their numbers, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: BTreeMap<u64, (EventId, Place)>,
    /// By the hash of the text, where the source has it. A text that does not wait any more may still be here.
    by_text: HashMap<u64, VecDeque<u64>>,
    /// Those of which no operation is known to have ended the wait; of the others no message holds the text so far.
    open: BTreeSet<u64>,
    taken: Vec<u64>,
    next: u64,
    dequeued: usize,
    removed: usize,
}

impl Queue {
    /// Takes in a text by its hash.
    pub(crate) fn push(&mut self, input: EventId, text: Option<u64>, place: Place) {
        let number = self.next;
        self.next += 1;
        self.waiting.insert(number, (input, place));
        self.open.insert(number);
        if let Some(text) = text {
            self.by_text.entry(text).or_default().push_back(number);
        }
    }

    /// Notes an operation. Where one text alone waits, a dequeue can only mean that.
    pub(crate) fn operation(&mut self, operation: Operation) -> Option<EventId> {
        match operation {
            Operation::Remove => {
                self.removed += 1;
                None
            }
            Operation::Dequeue => {
                self.dequeued += 1;
                if self.open.len() != 1 || self.dequeued + self.removed != 1 {
                    return None;
                }
                let only = self.open.pop_first()?;
                self.taken.push(only);
                self.dequeued = 0;
                self.waiting.get(&only).map(|(input, _)| *input)
            }
        }
    }

    /// A message with this text came, by way of `operation`: the input that it holds.
    pub(crate) fn deliver(&mut self, text: u64, operation: Operation) -> Option<EventId> {
        let of_text = self.by_text.get_mut(&text)?;
        let (number, (input, _)) =
            std::iter::from_fn(|| of_text.pop_front()).find_map(|n| Some((n, self.waiting.remove(&n)?)))?;
        if self.open.remove(&number) {
            let (first, second) = match operation {
                Operation::Dequeue => (&mut self.dequeued, &mut self.removed),
                Operation::Remove => (&mut self.removed, &mut self.dequeued),
            };
            if *first > 0 {
                *first -= 1;
            } else {
                *second = second.saturating_sub(1);
            }
        }
        Some(input)
    }

    /// The model answered: what was removed before and is in no message was withdrawn. Concluded only where the number of
    /// operations tells which texts they were about.
    pub(crate) fn answered(&mut self) -> Vec<EventId> {
        for taken in self.taken.drain(..) {
            self.waiting.remove(&taken);
        }
        if self.removed == 0 || self.dequeued > 0 || self.removed != self.waiting.len() {
            return Vec::new();
        }
        self.removed = 0;
        self.open.clear();
        std::mem::take(&mut self.waiting).into_values().map(|(input, _)| input).collect()
    }

    /// What still waits at the end, as far as that can be said.
    pub(crate) fn still_waiting(&self) -> impl Iterator<Item = &Place> {
        let open = self.open.iter().filter_map(|number| self.waiting.get(number));
        open.skip(self.dequeued + self.removed).map(|(_, place)| place)
    }
}
