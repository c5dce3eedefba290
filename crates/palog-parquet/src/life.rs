//! What the reducer does not keep and the table `actions` needs: when things happened, and which model asked for them.

use std::collections::HashMap;

use palog::envelope::{Event, Time};
use palog::events::{Data, Part};

/// Of an action.
#[derive(Debug, Default)]
pub(crate) struct Life {
    /// Seq and time of the first event that proposed it.
    proposed: Option<(u64, i64)>,
    /// Seq and time of its ends.
    ends: Vec<(u64, i64)>,
    /// Starts: attempt and time.
    starts: Vec<(u64, Option<i64>)>,
    /// The response that holds its place, by its number.
    response: Option<u32>,
    /// The model that was configured when it was proposed, by its place in [`Lives::models`].
    configured: Option<u32>,
    /// When the model was told of it last.
    pub(crate) told: Option<i64>,
    /// Whether it was told that it failed.
    pub(crate) is_error: Option<bool>,
}

impl Life {
    /// When the event at `seq` happened, which proposed this action or is an end of it.
    pub(crate) fn time_of(&self, seq: u64) -> Option<i64> {
        self.proposed.iter().chain(&self.ends).find(|(at, _)| *at == seq).map(|(_, time)| *time)
    }

    /// When this attempt was started.
    pub(crate) fn started(&self, attempt: u64) -> Option<i64> {
        self.starts.iter().find(|(number, _)| *number == attempt).and_then(|(_, time)| *time)
    }
}

/// A response of the model.
#[derive(Debug, Clone, Copy)]
struct Response {
    number: u32,
    /// Its model, by its place in [`Lives::models`].
    model: Option<u32>,
}

/// Of all actions of a log. Memory grows with actions and responses.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    actions: Vec<Life>,
    by_action: HashMap<Box<str>, u32>,
    /// The models that were named: a session knows a handful.
    models: Vec<Box<str>>,
    configured: Option<u32>,
    responses: HashMap<Box<str>, Response>,
    /// Seq and time of what is told of requests for approval.
    approvals: HashMap<u64, i64>,
    /// Least and greatest time.
    pub(crate) first: Option<i64>,
    pub(crate) last: Option<i64>,
}

/// The responses of a log by their numbers: name and model.
pub(crate) struct Responses<'l>(Vec<Option<(&'l str, Option<&'l str>)>>);

impl<'l> Responses<'l> {
    /// The response that holds the place of an action, and its model.
    pub(crate) fn of(&self, life: &Life) -> Option<(&'l str, Option<&'l str>)> {
        self.0.get(life.response? as usize).copied().flatten()
    }
}

impl Lives {
    pub(crate) fn of(&self, action: &str) -> Option<&Life> {
        self.by_action.get(action).map(|at| &self.actions[*at as usize])
    }

    pub(crate) fn responses(&self) -> Responses<'_> {
        let mut all = vec![None; self.responses.len()];
        for (name, response) in &self.responses {
            all[response.number as usize] = Some((&**name, response.model.map(|model| self.name(model))));
        }
        Responses(all)
    }

    /// The model that was configured when an action was proposed.
    pub(crate) fn configured(&self, life: &Life) -> Option<&str> {
        life.configured.map(|model| self.name(model))
    }

    fn name(&self, model: u32) -> &str {
        &self.models[model as usize]
    }

    /// When the request for approval, or its end, at `seq` happened.
    pub(crate) fn approval_at(&self, seq: u64) -> Option<i64> {
        self.approvals.get(&seq).copied()
    }

    /// Takes in an event.
    pub(crate) fn take(&mut self, event: &Event<'_>, data: &Data<'_>) {
        let time = event.time.as_ref().map(Time::micros);
        let at = time.map(|time| (event.seq, time));
        if let (Some(time), false) = (time, matches!(data, Data::ObservationRecorded(_) | Data::NoteAdded(_))) {
            self.first = Some(self.first.map_or(time, |first| first.min(time)));
            self.last = Some(self.last.map_or(time, |last| last.max(time)));
        }
        match data {
            Data::ConfigSet(d) => {
                if let Some(model) = &d.model {
                    self.configured = Some(self.model(model));
                }
            }
            Data::ModelResponse(d) => {
                let model = d.model.as_ref().map(|model| self.model(model));
                let response = self.response(&d.response);
                response.model = model.or(response.model);
            }
            Data::MessageAdded(d) => {
                for part in &d.parts {
                    match part {
                        Part::Action { action } => {
                            let response = d.response.as_ref().map(|response| self.response(response).number);
                            let life = self.life(action);
                            life.response = life.response.or(response);
                        }
                        Part::Result { action, is_error, .. } => {
                            let life = self.life(action);
                            (life.told, life.is_error) = (time, *is_error);
                        }
                        _ => {}
                    }
                }
            }
            Data::ActionProposed(d) => {
                let configured = self.configured;
                let life = self.life(&d.action);
                life.configured = life.configured.or(configured);
                life.proposed = life.proposed.or(at);
            }
            Data::ActionStarted(d) => self.life(&d.action).starts.push((d.attempt.unwrap_or(1), time)),
            Data::ActionEnded(d) => {
                let ends = &mut self.life(&d.action).ends;
                ends.reserve_exact(1);
                ends.extend(at);
            }
            Data::ApprovalRequested(_) | Data::ApprovalEnded(_) => self.approvals.extend(at),
            _ => {}
        }
    }

    fn life(&mut self, action: &str) -> &mut Life {
        let at = match self.by_action.get(action) {
            Some(at) => *at,
            None => {
                let at = number(self.actions.len());
                self.actions.push(Life::default());
                self.by_action.insert(action.into(), at);
                at
            }
        };
        &mut self.actions[at as usize]
    }

    fn response(&mut self, name: &str) -> &mut Response {
        if !self.responses.contains_key(name) {
            let number = number(self.responses.len());
            self.responses.insert(name.into(), Response { number, model: None });
        }
        self.responses.get_mut(name).expect("it was put in")
    }

    fn model(&mut self, name: &str) -> u32 {
        let known = self.models.iter().position(|known| **known == *name);
        number(known.unwrap_or_else(|| {
            self.models.push(name.into());
            self.models.len() - 1
        }))
    }
}

/// A place in a list that memory can hold.
fn number(at: usize) -> u32 {
    u32::try_from(at).expect("a log has fewer than 2^32 actions and responses: its lines would not fit a disk")
}
