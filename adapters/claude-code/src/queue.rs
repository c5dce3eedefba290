//! Input that was typed while the client was busy, and what became of it.
//!
//! The operations that end a wait name no text (R-EVT-004). So a text ends by the message that holds it; without one, only where
//! everything that still waits was taken or withdrawn.

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

#[derive(Debug)]
struct Waiting {
    input: EventId,
    /// Hash of the text, where the source has it.
    text: Option<u64>,
    place: Place,
    /// An operation ended the wait, and no message holds the text so far.
    taken: bool,
}

/// The client's queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Vec<Waiting>,
    dequeued: usize,
    removed: usize,
}

impl Queue {
    /// Takes in a text by its hash.
    pub(crate) fn push(&mut self, input: EventId, text: Option<u64>, place: Place) {
        self.waiting.push(Waiting { input, text, place, taken: false });
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
                let mut open = self.waiting.iter_mut().filter(|w| !w.taken);
                match (open.next(), open.next()) {
                    (Some(only), None) if self.dequeued + self.removed == 1 => {
                        only.taken = true;
                        self.dequeued = 0;
                        Some(only.input)
                    }
                    _ => None,
                }
            }
        }
    }

    /// A message with this text came, by way of `operation`: the input that it holds.
    pub(crate) fn deliver(&mut self, text: u64, operation: Operation) -> Option<EventId> {
        let at = self.waiting.iter().position(|w| w.text == Some(text))?;
        let found = self.waiting.remove(at);
        if !found.taken {
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
        Some(found.input)
    }

    /// The model answered: what was removed before and is in no message was withdrawn. Concluded only where the number of
    /// operations tells which texts they were about.
    pub(crate) fn answered(&mut self) -> Vec<EventId> {
        self.waiting.retain(|w| !w.taken);
        if self.removed == 0 || self.dequeued > 0 || self.removed != self.waiting.len() {
            return Vec::new();
        }
        self.removed = 0;
        self.waiting.drain(..).map(|w| w.input).collect()
    }

    /// What still waits at the end, as far as that can be said.
    pub(crate) fn still_waiting(&self) -> impl Iterator<Item = &Place> {
        let open = self.waiting.iter().filter(|w| !w.taken);
        open.skip(self.dequeued + self.removed).map(|w| &w.place)
    }
}
