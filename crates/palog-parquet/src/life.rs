//! What the reducer does not keep and the table `actions` needs: when things happened, and which model asked for them.

use std::collections::HashMap;

use palog::envelope::{Event, Time};
use palog::events::{Data, Part};

/// Of an action.
#[derive(Debug, Default)]
pub(crate) struct Life {
    /// Seq and time of the events about it that its state can refer to.
    times: Vec<(u64, i64)>,
    /// Starts: attempt and time.
    starts: Vec<(u64, Option<i64>)>,
    /// The response that holds its place.
    pub(crate) response: Option<Box<str>>,
    /// The model that was configured when it was proposed, by its place in [`Lives::models`].
    configured: Option<usize>,
    /// When the model was told of it last.
    pub(crate) told: Option<i64>,
    /// Whether it was told that it failed.
    pub(crate) is_error: Option<bool>,
}

impl Life {
    /// When the event at `seq` happened, which is about this action.
    pub(crate) fn time_of(&self, seq: u64) -> Option<i64> {
        self.times.iter().find(|(at, _)| *at == seq).map(|(_, time)| *time)
    }

    /// When this attempt was started.
    pub(crate) fn started(&self, attempt: u64) -> Option<i64> {
        self.starts.iter().find(|(number, _)| *number == attempt).and_then(|(_, time)| *time)
    }
}

/// Of all actions of a log. Memory grows with actions and responses.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    actions: HashMap<Box<str>, Life>,
    /// The models that were named.
    models: Vec<Box<str>>,
    configured: Option<usize>,
    by_response: HashMap<Box<str>, usize>,
    /// Seq and time of what is told of requests for approval.
    approvals: HashMap<u64, i64>,
    /// Least and greatest time.
    pub(crate) first: Option<i64>,
    pub(crate) last: Option<i64>,
}

impl Lives {
    pub(crate) fn of(&self, action: &str) -> Option<&Life> {
        self.actions.get(action)
    }

    /// The model of a response.
    pub(crate) fn model_of(&self, response: &str) -> Option<&str> {
        self.by_response.get(response).map(|model| &*self.models[*model])
    }

    /// The model that was configured when an action was proposed.
    pub(crate) fn configured(&self, life: &Life) -> Option<&str> {
        life.configured.map(|model| &*self.models[model])
    }

    /// When the request for approval, or its end, at `seq` happened.
    pub(crate) fn approval_at(&self, seq: u64) -> Option<i64> {
        self.approvals.get(&seq).copied()
    }

    /// Takes in an event.
    pub(crate) fn take(&mut self, event: &Event<'_>, data: &Data<'_>) {
        let time = event.time.as_ref().map(Time::micros);
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
                if let Some(model) = &d.model {
                    let model = self.model(model);
                    self.by_response.insert((*d.response).into(), model);
                }
            }
            Data::MessageAdded(d) => {
                for part in &d.parts {
                    match part {
                        Part::Action { action } => {
                            if let Some(response) = &d.response {
                                self.life(action).response.get_or_insert_with(|| (**response).into());
                            }
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
                life.at(event.seq, time);
            }
            Data::ActionStarted(d) => self.life(&d.action).starts.push((d.attempt.unwrap_or(1), time)),
            Data::ActionEnded(d) => self.life(&d.action).at(event.seq, time),
            Data::ApprovalRequested(_) | Data::ApprovalEnded(_) => {
                self.approvals.extend(time.map(|time| (event.seq, time)));
            }
            _ => {}
        }
    }

    fn life(&mut self, action: &str) -> &mut Life {
        if !self.actions.contains_key(action) {
            self.actions.insert(action.into(), Life::default());
        }
        self.actions.entry(action.into()).or_default()
    }

    fn model(&mut self, name: &str) -> usize {
        // A session knows a handful of models.
        self.models.iter().position(|known| **known == *name).unwrap_or_else(|| {
            self.models.push(name.into());
            self.models.len() - 1
        })
    }
}

impl Life {
    fn at(&mut self, seq: u64, time: Option<i64>) {
        self.times.extend(time.map(|time| (seq, time)));
    }
}
