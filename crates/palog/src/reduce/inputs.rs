//! Inputs: what was accepted and waits to be given to the model (spec 04, "Inputs").

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::Origin;
use crate::envelope::Event;
use crate::events::{InputEnded, InputOutcome, InputQueued};
use crate::state::{Count, EventRef, Input, InputStatus, State};

/// What is known of an input beside what its state holds.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Facts {
    origin: Origin,
    /// It counts as given by a person or the calling program.
    typed: bool,
}

/// All inputs of a log.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Inputs {
    /// Beside the inputs of the state, one for one.
    facts: Vec<Facts>,
    #[serde(with = "super::snapshot::pairs")]
    by_id: HashMap<Box<str>, usize>,
    /// Those that were taken and that no message holds yet.
    taken: Vec<usize>,
}

impl Inputs {
    fn index(&mut self, state: &mut State, id: &str) -> usize {
        if let Some(at) = self.by_id.get(id) {
            return *at;
        }
        let status = InputStatus::Queued;
        state.inputs.push(Input { input: id.to_owned(), status, pending: false, message: None, queued: None });
        self.facts.push(Facts::default());
        self.by_id.insert(id.into(), self.facts.len() - 1);
        self.facts.len() - 1
    }

    /// `input.queued`; `waits`: it has to be given to the model.
    pub(super) fn queue(
        &mut self,
        state: &mut State,
        data: &InputQueued<'_>,
        event: &Event<'_>,
        origin: Origin,
        typed: bool,
        waits: bool,
    ) {
        let at = self.index(state, &data.input);
        self.facts[at] = Facts { origin, typed };
        let input = &mut state.inputs[at];
        input.queued = Some(EventRef { event: event.id.to_string(), seq: Count(event.seq) });
        input.pending = waits && input.status == InputStatus::Queued;
    }

    /// `input.ended` (R-TRN-009).
    pub(super) fn end(&mut self, state: &mut State, data: &InputEnded<'_>, origin: Origin) {
        let at = self.index(state, &data.input);
        let input = &mut state.inputs[at];
        if input.queued.is_none() {
            self.facts[at].origin = origin;
        }
        (input.status, input.pending) = match (data.outcome, &data.message) {
            (_, Some(_)) => (InputStatus::Delivered, false),
            (InputOutcome::Dropped, None) => (InputStatus::Dropped, false),
            (InputOutcome::Taken, None) => (InputStatus::Taken, input.pending),
        };
        if let Some(message) = &data.message {
            input.message = Some(message.to_string());
        }
        if input.pending {
            self.taken.push(at);
        }
    }

    /// What was taken has been given to the model, in whatever form.
    pub(super) fn pass(&mut self, state: &mut State) {
        for at in self.taken.drain(..) {
            state.inputs[at].pending = false;
        }
    }

    /// How many were given by a person or the calling program and are in no message.
    pub(super) fn typed_only(&self, state: &State) -> u64 {
        let alone = |input: &Input| input.pending || matches!(input.status, InputStatus::Queued | InputStatus::Dropped);
        state.inputs.iter().zip(&self.facts).filter(|(input, facts)| facts.typed && alone(input)).count() as u64
    }

    /// Where each is first told of.
    pub(super) fn origins(&self) -> impl Iterator<Item = Origin> {
        self.facts.iter().map(|facts| facts.origin)
    }
}
