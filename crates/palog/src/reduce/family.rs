//! Forks and continuations: logs that go on from the state of another one (spec 04, "Family").

use std::io::{self, Read};

use serde::{Deserialize, Serialize};

use super::{Finding, Inputs, Reducer};
use crate::diagnostic::{Code, Diagnostics, Severity};
use crate::envelope::Event;
use crate::events::{Data, EffectClass, ForkWorkspace, LogEnd, ParentMode};
use crate::order::Order;
use crate::reader::{Item, Reader};
use crate::state::{Counts, EventRef, Reason, State};

/// What is known of a log's parent beside what the state holds.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Family {
    /// The parent's state, until the log is opened.
    #[serde(skip)]
    parent: Option<Box<Reducer>>,
    /// The epoch that a continuation has to exceed.
    parent_epoch: Option<u64>,
    /// Whether the log holds history of its parent.
    copies: bool,
    /// The newest local write of a fork that shares its parent's workspace (R-FAM-003).
    shared_write: Option<EventRef>,
}

/// Reduces a log that goes on from `parent`: of that, the events up to the one that the log names, or all (R-FAM-001). A
/// parent that does not have this event is not the one that is meant.
///
/// # Errors
/// When one of the streams cannot be read. Whatever stands in them is no error.
pub fn reduce_with_parent(parent: impl Read, log: impl Read) -> io::Result<(State, Diagnostics)> {
    let mut reader = Reader::new(log);
    let mut reducer = Reducer::new();
    let mut parent = Some(parent);
    while let Some(item) = reader.next()? {
        match item {
            Item::Event(event, line) => {
                if let Some(parent) = parent.take() {
                    reducer = Reducer::going_on_from(parent, &event)?;
                }
                reducer.apply(&event, Some(&line));
            }
            Item::Fault(fault) => reducer.fault(fault),
        }
    }
    Ok(reducer.finish())
}

/// A reducer that has taken in a log up to the event `last`, or as a whole; `None` if the log does not have it.
fn up_to(log: impl Read, last: Option<&str>) -> io::Result<Option<Reducer>> {
    let mut reader = Reader::new(log);
    let mut reducer = Reducer::new();
    while let Some(item) = reader.next()? {
        match item {
            Item::Event(event, line) => {
                reducer.apply(&event, Some(&line));
                if last == Some(&*event.id) {
                    return Ok(Some(reducer));
                }
            }
            Item::Fault(fault) => reducer.fault(fault),
        }
    }
    Ok(last.is_none().then_some(reducer))
}

impl Reducer {
    /// Starts the log that begins with `first` and goes on from `parent`: of that, the events up to the one that `first` names,
    /// or all, are taken in (R-FAM-001). A parent that does not have this event is left out.
    ///
    /// # Errors
    /// When the parent cannot be read. Whatever stands in it is no error.
    pub fn going_on_from(parent: impl Read, first: &Event<'_>) -> io::Result<Self> {
        let Ok(Data::LogOpened(opened)) = first.data() else { return Ok(Reducer::new()) };
        let last = opened.parent.as_ref().and_then(|parent| parent.event.as_deref());
        Ok(up_to(parent, last)?.map_or_else(Reducer::new, Reducer::after_parent))
    }

    /// Starts a log that goes on from `parent`, which has taken in its own log up to the event that the new one names
    /// (R-FAM-001). A log that turns out to be no fork or continuation of it is reduced by itself.
    #[must_use]
    pub fn after_parent(parent: Reducer) -> Self {
        let mut reducer = Reducer::new();
        reducer.family.parent = Some(Box::new(parent));
        reducer
    }

    /// `log.opened` was taken in: its parent's state is taken over if it is at hand.
    pub(super) fn join_family(&mut self, epoch: Option<u64>) {
        let Some(parent) = self.family.parent.take() else { return };
        let Some(mine) = self.state.parent.as_ref().filter(|mine| parent.state.log.as_ref() == Some(&mine.log)) else {
            return;
        };
        match mine.mode {
            ParentMode::Fork => self.adopt(*parent, true),
            ParentMode::Continue => self.adopt(*parent, false),
            ParentMode::Spawn => {}
        }
        self.ownership.fence.raise(epoch);
    }

    fn adopt(&mut self, mut parent: Reducer, fork: bool) {
        parent.state();
        let (own, own_order) = (std::mem::take(&mut self.state), std::mem::take(&mut self.order));
        let own_sources = std::mem::take(&mut self.sources);
        let closed = parent.state.closed;
        let base = parent.base + parent.order.next();
        let diagnostics = std::mem::take(&mut self.diagnostics);
        *self = Reducer { order: Order::default(), diagnostics, base, told: Vec::new(), settled: false, ..parent };
        self.order = own_order;
        self.path.leave_behind(base);
        self.sources = own_sources;
        let parent_epoch = self.state.epoch.filter(|_| !fork).map(|epoch| epoch.0);
        self.family = Family { parent_epoch, ..Family::default() };
        // What is this log's own replaces what is the parent's; the rest of the state goes on.
        let state = &mut self.state;
        state.counts = Counts { events: own.counts.events, ..Counts::default() };
        (state.log, state.session, state.spec, state.agent) = (own.log, own.session, own.spec, own.agent);
        (state.mapping, state.parent, state.records, state.closed) = (own.mapping, own.parent, own.records, None);
        state.sources.clear();
        state.vendor = None;
        state.void.clear();
        state.children.clear();
        self.child_by_id.clear();
        state.observations.clear();
        self.observation_by_name.clear();
        self.latest = None;
        self.missing.clear();
        self.source_names.clear();
        self.source_by_name.clear();
        self.prompts = 0;
        self.conversation.forget_counts();
        if fork {
            self.conversation.forget_lost_calls();
            state.inputs.clear();
            self.inputs = Inputs::default();
            (state.lease, state.epoch) = (None, None);
            state.grants.clear();
            self.ownership = Default::default();
            self.work.leave(state);
            self.world.leave(state);
        }
        self.actions.adopt(&mut self.state, &self.sources, fork);
        if let Some(parent) = &mut self.state.parent {
            parent.at_hand = true;
            parent.handed_over = (!fork).then_some(closed == Some(LogEnd::Transferred));
        }
    }

    /// Follows local writes in a workspace that is shared with the parent (R-FAM-003), and copies of its history.
    pub(super) fn watch_family(&mut self, event: &Event<'_>, data: &Data<'_>, inherited: bool) {
        let Some(parent) = &self.state.parent else { return };
        self.family.copies |= inherited;
        if parent.workspace != Some(ForkWorkspace::Same) || parent.mode != ParentMode::Fork {
            return;
        }
        let acts = |id: &str, may: bool| {
            let action = self.actions.known_action(&self.state, id)?;
            let writes = matches!(action.class, EffectClass::WriteLocal | EffectClass::Unknown);
            (may && !action.inherited && writes).then_some(())
        };
        let wrote = match data {
            Data::ActionProposed(data) => {
                let silent = self.actions.known_action(&self.state, &data.action).is_some_and(|a| !a.starts_recorded);
                acts(&data.action, silent || self.actions.began(&data.action))
            }
            Data::ActionStarted(data) => acts(&data.action, true),
            Data::ActionEnded(data) => acts(&data.action, data.applied != crate::events::Applied::No),
            Data::WorkspaceRecorded(_) => {
                self.family.shared_write = None;
                None
            }
            _ => None,
        };
        if wrote.is_some() {
            self.family.shared_write = Some(EventRef::of(event));
        }
    }

    /// Brings what the state says of the family up to date.
    pub(super) fn settle_family(&mut self) {
        let shares = |reason: &Reason| reason.code == Code::SharedWorkspace;
        self.state.indeterminate.retain(|reason| !shares(reason));
        if let Some(write) = &self.family.shared_write {
            let why = Some("a local write in the parent's workspace, and none was recorded since".to_owned());
            let event = Some(write.clone());
            self.state.indeterminate.push(Reason { code: Code::SharedWorkspace, why, event });
        }
        let above = self.state.epoch.map(|epoch| epoch.0) > self.family.parent_epoch;
        if let Some(over) = self.state.parent.as_mut().and_then(|parent| parent.handed_over.as_mut()) {
            *over |= above;
        }
    }

    /// What can only be said of the family at the end.
    pub(super) fn report_family(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        if self.family.shared_write.is_some() {
            found.push(Finding {
                code: Code::SharedWorkspace,
                severity: Severity::Error,
                rule: "R-FAM-003",
                why: "the fork wrote into its parent's workspace, which was not recorded since".into(),
            });
        }
        let goes_on = |parent: &&crate::state::Parent| parent.mode != ParentMode::Spawn && !parent.at_hand;
        if let Some(parent) = self.state.parent.as_ref().filter(goes_on).filter(|_| !self.family.copies) {
            found.push(Finding {
                code: Code::ParentMissing,
                severity: Severity::Warning,
                rule: "R-FAM-001",
                why: format!("the log goes on from {}, which is not at hand", parent.log),
            });
        }
        found
    }
}
