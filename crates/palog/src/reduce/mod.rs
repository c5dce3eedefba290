//! The reducer: from events to the state of the agent (spec 04).
//!
//! It is pure and deterministic: no clock, no input or output, no randomness (R-STA-006). It is total: what is wrong with a
//! log becomes a diagnostic, and where nothing can be concluded any more, a reason in the state (R-STA-007).
//!
//! Memory grows with calls, inputs and turns, with about 32 bytes for each event, 8 for each line and 80 for each response;
//! texts are not kept.

mod actions;
mod attempt;
mod family;
mod inputs;
mod ownership;
mod path;
mod settle;
mod snapshot;
mod sources;
#[cfg(test)]
pub(crate) mod tests;
mod turns;
mod work;
mod world;

use std::collections::HashMap;
use std::io::{self, Read};

use actions::{Actions, Mention};
use family::Family;
pub use family::reduce_with_parent;
use inputs::Inputs;
use ownership::Ownership;
use path::{Adoption, GroupId, Node, Path, Placement};
pub(crate) use path::{Key, KeyHasher, KeyMap};
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
pub(crate) use snapshot::SnapshotOf;
pub use snapshot::{SnapshotError, is_snapshot};
use sources::Sources;
use turns::{At, Conversation};
use work::Work;
use world::World;

use crate::diagnostic::{Code, Diagnostic, Diagnostics, Place, Severity};
use crate::envelope::{ActorKind, CopyHow, Event, MAJOR, Time};
use crate::events::{
    ConfigSet, Data, Kind, LogOpened, MessageAdded, NoteAdded, ObservationRecorded, Part, Recorded, Role,
    SourceChanged, SourceOpened, TurnEnd,
};
pub(crate) use crate::order::Finding;
use crate::order::Order;
use crate::reader::{Item, Line, Reader};
use crate::state::{Agent, Child, Count, EventRef, Observation, Parent, Reason, State, Totals};

/// Reduces a whole stream (spec 04).
///
/// # Errors
/// When the stream cannot be read. Whatever stands in it is no error.
pub fn reduce(input: impl Read) -> io::Result<(State, Diagnostics)> {
    let mut reader = Reader::new(input);
    let mut reducer = Reducer::new();
    while let Some(item) = reader.next()? {
        match item {
            Item::Event(event, line) => reducer.apply(&event, Some(&line)),
            Item::Fault(fault) => reducer.fault(fault),
        }
    }
    Ok(reducer.finish())
}

/// Where something is told of: a record of a source, or a line of the log.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Origin {
    /// Place of the source's name among [`Reducer::source_names`].
    source: Option<u32>,
    line: u64,
    offset: u64,
    length: u64,
}

/// What the copy mark of an event means here (R-ENV-011).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copied {
    /// It is none.
    No,
    /// The event stands in this log already.
    Again { on_path: bool },
    /// History of another log: a fork took it along, or it is the context of a child.
    Inherited { context_only: bool },
}

/// Reduces a log event by event (spec 04).
#[derive(Debug, Serialize, Deserialize)]
pub struct Reducer {
    state: State,
    #[serde(skip)]
    diagnostics: Diagnostics,
    order: Order,
    path: Path,
    actions: Actions,
    conversation: Conversation,
    inputs: Inputs,
    /// Messages that count as prompts.
    prompts: u64,
    #[serde(with = "snapshot::pairs")]
    child_by_id: HashMap<Box<str>, usize>,
    #[serde(with = "snapshot::pairs")]
    observation_by_name: HashMap<(Box<str>, Box<str>), usize>,
    sources: Sources,
    source_names: Vec<String>,
    #[serde(with = "snapshot::pairs")]
    source_by_name: HashMap<Box<str>, u32>,
    title: Option<String>,
    /// Titles with the event that each is about.
    summaries: Vec<(Option<Key>, String)>,
    #[serde(with = "snapshot::time")]
    latest: Option<Time<'static>>,
    /// Parents that were not there when they were named: key, name, who names them, where.
    missing: Vec<(Key, String, String, Origin)>,
    ownership: Ownership,
    work: Work,
    world: World,
    family: Family,
    /// How many events the parent's log had that this one goes on from.
    base: u64,
    /// What was found wrong with the event at hand.
    #[serde(skip)]
    told: Vec<Finding>,
    settled: bool,
}

/// Tells of events about what the log does not have (R-WRK-007).
#[derive(Debug)]
struct Unknown<'r>(&'r mut Vec<Finding>);

impl Unknown<'_> {
    fn tell(&mut self, what: &str, id: &str) {
        let why = format!("the {what} {id:?} is not in the log");
        self.0.push(Finding { code: Code::UnknownSubject, severity: Severity::Warning, rule: "R-WRK-007", why });
    }
}

/// A text that is kept.
fn named(text: &Option<crate::json::Str<'_>>) -> Option<String> {
    text.as_ref().map(ToString::to_string)
}

/// Whether something is of the session that it happened in, and goes along with no copy (R-FAM-002).
fn stays_behind(data: &Data<'_>) -> bool {
    matches!(
        data,
        Data::LeaseAcquired(_)
            | Data::LeaseRenewed(_)
            | Data::LeaseReleased(_)
            | Data::GrantAdded(_)
            | Data::GrantRevoked(_)
            | Data::AttemptStarted(_)
            | Data::AttemptEnded(_)
            | Data::CommandIssued(_)
            | Data::CommandEnded(_)
            | Data::ResourceAcquired(_)
            | Data::ResourceReleased(_)
    )
}

impl Default for Reducer {
    fn default() -> Self {
        Self::new()
    }
}

impl Reducer {
    /// Starts before the first event.
    #[must_use]
    pub fn new() -> Self {
        Reducer {
            state: State::default(),
            diagnostics: Diagnostics::default(),
            order: Order::default(),
            path: Path::default(),
            actions: Actions::default(),
            conversation: Conversation::new(),
            inputs: Inputs::default(),
            prompts: 0,
            child_by_id: HashMap::new(),
            observation_by_name: HashMap::new(),
            sources: Sources::default(),
            source_names: Vec::new(),
            source_by_name: HashMap::new(),
            title: None,
            summaries: Vec::new(),
            latest: None,
            missing: Vec::new(),
            ownership: Ownership::default(),
            work: Work::default(),
            world: World::default(),
            family: Family::default(),
            base: 0,
            told: Vec::new(),
            settled: false,
        }
    }

    /// Takes in something that stands where an event should: an error makes the state indeterminate (R-REC-001).
    pub fn fault(&mut self, fault: Diagnostic) {
        self.find(fault, None);
    }

    fn find(&mut self, found: Diagnostic, event: Option<&Event<'_>>) {
        self.settled = false;
        if found.severity == Severity::Error && self.state.indeterminate.iter().all(|r| r.code != found.code) {
            let event = event.map(|event| EventRef { event: event.id.to_string(), seq: Count(event.seq) });
            self.state.indeterminate.push(Reason { code: found.code, why: found.why.clone(), event });
        }
        self.diagnostics.push(found);
    }

    /// Takes in the next event; `line` is the line that holds it, where there is one.
    pub fn apply(&mut self, event: &Event<'_>, line: Option<&Line<'_>>) {
        self.apply_read(event, event.data().as_ref(), line);
    }

    /// Takes in the next event, whose payload was read already: `data` is what [`Event::data`] returned.
    pub fn apply_read(
        &mut self,
        event: &Event<'_>,
        data: Result<&Data<'_>, &serde_json::Error>,
        line: Option<&Line<'_>>,
    ) {
        let admitted = self.order.admit(event, line);
        for finding in std::mem::take(&mut self.order.findings) {
            self.report(finding, event, line);
        }
        if !admitted {
            return;
        }
        self.settled = false;
        self.state.counts.events.0 += 1;
        if event.palog != MAJOR {
            self.error(Code::UnsupportedVersion, "R-ENV-001", format!("major version {}", event.palog), event, line);
        }
        let unread = Data::Other("".into(), event.data.borrowed());
        if let Err(late) = self.is_current(event, data.unwrap_or(&unread)) {
            self.pass(event, line);
            return self.report(late, event, line);
        }
        match event.kind() {
            Kind::Unknown(name) | Kind::Vendor(name) if !event.is_ignorable() => {
                let why = format!("{name} must be understood and is not known");
                self.error(Code::UnknownCritical, "R-ENV-012", why, event, line);
            }
            Kind::Malformed(name) => self.error(Code::BadType, "R-ENV-014", format!("{name:?}"), event, line),
            Kind::Core(_) | Kind::Unknown(_) | Kind::Vendor(_) => {}
        }
        match data {
            Ok(data) => self.take(event, line, data),
            Err(e) => {
                self.pass(event, line);
                self.error(Code::BadPayload, "R-ENV-013", format!("{}: {e}", event.kind), event, line);
            }
        }
    }

    /// Token counts of the events so far: the same as in [`Reducer::state`], without the cost of a whole state.
    #[must_use]
    pub fn usage(&self) -> Totals {
        self.conversation.totals()
    }

    /// The state after the events so far.
    pub fn state(&mut self) -> &State {
        if !self.settled {
            self.settle();
            self.settled = true;
        }
        &self.state
    }

    /// Ends the log: adds what can only be said at its end.
    #[must_use]
    pub fn finish(mut self) -> (State, Diagnostics) {
        if self.state.log.is_none() {
            let nothing = Diagnostic::new(Code::NotOpened, Severity::Error, Place::default());
            self.fault(nothing.rule("R-ENV-003").because("the log holds no event"));
        }
        self.state();
        self.report_the_end();
        (self.state, self.diagnostics)
    }

    fn error(&mut self, code: Code, rule: &'static str, why: String, event: &Event<'_>, line: Option<&Line<'_>>) {
        self.report(Finding { code, severity: Severity::Error, rule, why }, event, line);
    }

    fn report(&mut self, finding: Finding, event: &Event<'_>, line: Option<&Line<'_>>) {
        let mut place = line.map_or_else(Place::default, Line::place);
        place.record = Some(event.id.to_string());
        let found = Diagnostic::new(finding.code, finding.severity, place).rule(finding.rule).because(finding.why);
        self.find(found, Some(event));
    }

    /// Reports what is wrong with what an event says, where its source says it.
    fn report_at(&mut self, finding: Finding, event: &Event<'_>, origin: Origin) {
        let place = Place { record: Some(event.id.to_string()), ..self.place_of(origin) };
        let found = Diagnostic::new(finding.code, finding.severity, place).rule(finding.rule).because(finding.why);
        self.find(found, Some(event));
    }

    /// Takes in an event that is in its place and well-formed.
    fn take(&mut self, event: &Event<'_>, line: Option<&Line<'_>>, data: &Data<'_>) {
        let copied = self.copied(event);
        let origin = self.origin(event, line);
        let placement = self.place(event, data, copied, origin);
        if !matches!(data, Data::ObservationRecorded(_) | Data::NoteAdded(_))
            && let Some(time) = event.time.as_ref().filter(|t| self.latest.as_ref().is_none_or(|latest| latest < *t))
        {
            self.latest = Some(time.clone().into_owned());
        }
        if let Data::ActionProposed(proposed) = data {
            self.told.extend(Finding::of_args(proposed));
        }
        if !matches!(copied, Copied::Again { .. }) {
            self.dispatch(event, data, copied, origin, placement);
        }
        let found = self.actions.findings.drain(..).chain(self.told.drain(..)).collect::<Vec<_>>();
        for finding in found {
            self.report_at(finding, event, origin);
        }
        if let Some(group) = placement.awaited_by {
            self.conversation.arrive(&event.id, group);
            self.adopt_group(group, self.base + event.seq);
        }
    }

    /// What hangs in `group` belongs to the newest turn (R-TRN-010).
    fn adopt_group(&mut self, group: GroupId, seq: u64) {
        self.path.adopt(group, Adoption { seq, turn: self.conversation.current() });
    }

    fn copied(&self, event: &Event<'_>) -> Copied {
        let Some(copy) = &event.copy else { return Copied::No };
        let here = copy.log.as_deref().is_none_or(|log| log == &*event.log);
        match copy.how {
            CopyHow::Replay if here => Copied::Again { on_path: false },
            CopyHow::Compaction if here => Copied::Again { on_path: true },
            CopyHow::Replay | CopyHow::Compaction | CopyHow::Fork => Copied::Inherited { context_only: false },
            CopyHow::Inherit => Copied::Inherited { context_only: true },
        }
    }

    fn place(&mut self, event: &Event<'_>, data: &Data<'_>, copied: Copied, origin: Origin) -> Placement {
        let node = match data {
            _ if copied == (Copied::Again { on_path: false }) => Node::Still,
            Data::MessageAdded(_) => Node::On,
            Data::ContextCompacted(_) => Node::Window,
            Data::BranchMoved(moved) => Node::Moves(&moved.to),
            Data::MessageRevised(_) => Node::Aside,
            Data::LogOpened(_)
            | Data::LogClosed(_)
            | Data::SourceOpened(_)
            | Data::SourceChanged(_)
            | Data::ObservationRecorded(_)
            | Data::ConfigSet(_)
            | Data::GrantAdded(_)
            | Data::GrantRevoked(_)
            | Data::RedactionApplied(_)
            | Data::NoteAdded(_)
            | Data::LeaseAcquired(_)
            | Data::LeaseRenewed(_)
            | Data::LeaseReleased(_)
            | Data::TaskOpened(_)
            | Data::TaskClosed(_)
            | Data::AttemptStarted(_)
            | Data::AttemptEnded(_)
            | Data::PlanRevised(_)
            | Data::StepChanged(_)
            | Data::CommandIssued(_)
            | Data::CommandEnded(_)
            | Data::CheckpointCreated(_)
            | Data::CheckpointRestored(_)
            | Data::WorkspaceRecorded(_)
            | Data::ArtifactRecorded(_)
            | Data::ResourceAcquired(_)
            | Data::ResourceReleased(_)
            | Data::Kept(..)
            | Data::Other(..) => Node::Off,
            Data::TurnStarted(_)
            | Data::TurnEnded(_)
            | Data::InputQueued(_)
            | Data::InputEnded(_)
            | Data::ModelRequested(_)
            | Data::ModelResponse(_)
            | Data::ActionProposed(_)
            | Data::ActionStarted(_)
            | Data::ActionEnded(_)
            | Data::ActionReconciled(_)
            | Data::ApprovalRequested(_)
            | Data::ApprovalEnded(_)
            | Data::ChildSpawned(_)
            | Data::ChildEnded(_) => Node::Beside,
        };
        let placement = self.path.place(event, self.base + event.seq, node);
        if placement.cycle {
            let why = format!(
                "the parent {:?} comes after the event on the path",
                event.parent.as_deref().unwrap_or_default()
            );
            let finding = Finding { code: Code::Cycle, severity: Severity::Warning, rule: "R-ENV-010", why };
            self.report_at(finding, event, origin);
        }
        if placement.duplicate {
            self.duplicate(event, origin);
        }
        if let (true, Some(parent)) = (placement.begins, event.parent.as_deref()) {
            self.missing.push((Key::of(parent), parent.to_owned(), event.id.to_string(), origin));
        }
        placement
    }

    /// Takes in an event that has no effect: its id is taken all the same.
    fn pass(&mut self, event: &Event<'_>, line: Option<&Line<'_>>) {
        if !self.path.pass(&event.id, self.base + event.seq) {
            let origin = self.origin(event, line);
            self.duplicate(event, origin);
        }
    }

    fn duplicate(&mut self, event: &Event<'_>, origin: Origin) {
        let why = format!("the id {:?} stands twice", event.id);
        let finding = Finding { code: Code::DuplicateId, severity: Severity::Error, rule: "R-ENV-007", why };
        self.report_at(finding, event, origin);
    }

    fn dispatch(&mut self, event: &Event<'_>, data: &Data<'_>, copied: Copied, origin: Origin, placement: Placement) {
        let inherited = matches!(copied, Copied::Inherited { .. });
        if inherited && stays_behind(data) {
            return;
        }
        let order = self.base + event.seq;
        let at = At {
            seq: order,
            group: placement.group,
            copied: inherited,
            context_only: copied == (Copied::Inherited { context_only: true }),
        };
        let source = event.src.first().map(|src| &*src.source);
        let mention = Mention {
            event: &event.id,
            seq: event.seq,
            order,
            cause: &event.cause,
            source,
            origin,
            inherited,
            turn: self.conversation.current(),
            task: None,
            grant: None,
            group: placement.group,
            starts_recorded: false,
            ends_recorded: false,
        };
        match data {
            Data::LogOpened(data) => self.open(data, event),
            Data::LogClosed(data) => self.state.closed = Some(data.how),
            Data::SourceOpened(data) => self.open_source(data, event),
            Data::ObservationRecorded(data) => self.observe(data, event),
            Data::ConfigSet(data) => self.configure(data),
            Data::TurnStarted(data) => self.start_turn(data, at),
            Data::TurnEnded(data) => {
                self.conversation.end(data, order);
                if data.how != TurnEnd::Error {
                    self.inputs.pass(&mut self.state);
                }
            }
            Data::InputQueued(data) => {
                let typed = event.actor.kind == ActorKind::User && !inherited;
                self.inputs.queue(&mut self.state, data, event, origin, typed, !at.context_only);
            }
            Data::InputEnded(data) => self.inputs.end(&mut self.state, data, origin),
            Data::MessageAdded(data) => self.message(data, event, at, &mention),
            Data::ModelResponse(data) => self.conversation.model_response(data, &event.id, at),
            Data::ActionProposed(data) => {
                let starts_recorded = self.records(Recorded::ActionStarted, None, order);
                let task = self.work.current(&self.state).map(str::to_owned);
                let mention = Mention { starts_recorded, task: task.as_deref(), ..mention };
                self.actions.propose(&mut self.state, data, &mention);
                self.conversation.proposed();
            }
            Data::ActionStarted(data) => self.actions.start(&mut self.state, &data.action, data.attempt, &mention),
            Data::ActionEnded(data) => self.actions.end(&mut self.state, data, &mention),
            Data::ActionReconciled(data) => self.actions.reconcile(&mut self.state, data, &mention),
            Data::ApprovalRequested(data) => {
                let ends_recorded = self.records(Recorded::ApprovalEnded, source, order);
                self.actions.request(&mut self.state, data, &Mention { ends_recorded, ..mention });
            }
            Data::ApprovalEnded(data) => {
                let grant = self.ownership.behind(&self.state, event).map(str::to_owned);
                self.actions.answer(&mut self.state, data, &Mention { grant: grant.as_deref(), ..mention });
            }
            Data::ContextCompacted(_) => self.state.counts.compactions.0 += u64::from(!inherited),
            Data::ChildSpawned(data) => {
                let child = self.child(&data.child);
                child.session = Some(data.session.to_string());
                child.kind = Some(data.kind);
                // A record that names both stands before what was concluded.
                if child.action.is_none() || data.link < child.link {
                    child.action = data.action.as_ref().map(ToString::to_string);
                    child.link = data.link;
                }
            }
            Data::ChildEnded(data) => {
                let child = self.child(&data.child);
                child.ended = true;
                child.status = data.status.as_ref().map(ToString::to_string);
            }
            Data::NoteAdded(data) => self.note(data),
            Data::SourceChanged(data) => self.change_source(data, order),
            Data::GrantAdded(_)
            | Data::GrantRevoked(_)
            | Data::LeaseAcquired(_)
            | Data::LeaseRenewed(_)
            | Data::LeaseReleased(_) => self.dispatch_ownership(event, data),
            Data::TaskOpened(_)
            | Data::TaskClosed(_)
            | Data::AttemptStarted(_)
            | Data::AttemptEnded(_)
            | Data::PlanRevised(_)
            | Data::StepChanged(_)
            | Data::CommandIssued(_)
            | Data::CommandEnded(_) => self.dispatch_work(event, data, &mention),
            Data::CheckpointCreated(_)
            | Data::CheckpointRestored(_)
            | Data::WorkspaceRecorded(_)
            | Data::ArtifactRecorded(_)
            | Data::ResourceAcquired(_)
            | Data::ResourceReleased(_) => self.dispatch_world(event, data),
            Data::ModelRequested(_)
            | Data::MessageRevised(_)
            | Data::BranchMoved(_)
            | Data::RedactionApplied(_)
            | Data::Kept(..)
            | Data::Other(..) => {}
        }
        self.watch_family(event, data, inherited);
    }

    fn open(&mut self, data: &LogOpened<'_>, event: &Event<'_>) {
        let text = |s: &crate::json::Str<'_>| s.to_string();
        self.state.log = Some(event.log.to_string());
        self.state.session = Some(text(&data.session));
        self.state.spec = Some(text(&data.spec));
        self.state.agent = Some(Agent { name: text(&data.agent.name), version: data.agent.version.as_ref().map(text) });
        self.state.mapping = data.derived.as_ref().map(|d| text(&d.mapping));
        self.state.records = data.records.clone().unwrap_or_default();
        self.sources.written(&self.state.records);
        self.state.parent = data.parent.as_ref().map(|parent| Parent {
            log: text(&parent.log),
            session: parent.session.as_ref().map(text),
            event: parent.event.as_ref().map(text),
            action: parent.action.as_ref().map(text),
            mode: parent.mode,
            workspace: parent.workspace,
            at_hand: false,
            handed_over: None,
        });
        self.conversation.opened(self.state.records.contains(&Recorded::TurnEnded));
        self.join_family(event.epoch);
    }

    fn open_source(&mut self, data: &SourceOpened<'_>, event: &Event<'_>) {
        if self.sources.open(&mut self.state, data, event, self.base + event.seq) {
            let Reducer { sources, state, actions, .. } = self;
            actions.redeclare(state, sources, Some(&data.source));
        }
        if self.conversation.current() == 0 && self.state.counts.messages == Count(0) {
            let ends = self.records(Recorded::TurnEnded, None, self.base + event.seq);
            self.conversation.opened(ends);
        }
    }

    /// `source.changed` (R-STA-009).
    fn change_source(&mut self, data: &SourceChanged<'_>, order: u64) {
        if !self.state.sources.contains_key(&*data.source) {
            Unknown(&mut self.told).tell("source", &data.source);
        }
        if self.sources.change(&mut self.state, data, order) {
            let Reducer { sources, state, actions, .. } = self;
            actions.redeclare(state, sources, Some(&data.source));
            if !self.records(Recorded::TurnEnded, None, order.saturating_sub(1)) {
                self.conversation.suspend();
            }
        }
    }

    fn records(&self, kind: Recorded, source: Option<&str>, seq: u64) -> bool {
        self.sources.record(kind, source, seq)
    }

    fn observe(&mut self, data: &ObservationRecorded<'_>, event: &Event<'_>) {
        let name = ((*data.source).into(), (*data.fact).into());
        let observation = Observation {
            fact: data.fact.to_string(),
            subject: data.subject.as_ref().map(ToString::to_string),
            as_of: data.as_of.as_ref().map(|t| t.as_str().to_owned()),
            source: data.source.to_string(),
            recorded: Some(EventRef { event: event.id.to_string(), seq: Count(event.seq) }),
        };
        let observations = &mut self.state.observations;
        let at = *self.observation_by_name.entry(name).or_insert_with(|| {
            observations.push(observation.clone());
            observations.len() - 1
        });
        let time = |o: &Observation| o.as_of.clone().and_then(Time::parse);
        if time(&observation) >= time(&observations[at]) {
            observations[at] = observation;
        }
    }

    fn configure(&mut self, data: &ConfigSet<'_>) {
        let config = &mut self.state.config;
        for (member, new) in [
            (&mut config.model, &data.model),
            (&mut config.permission_mode, &data.permission_mode),
            (&mut config.mode, &data.mode),
            (&mut config.client_version, &data.client_version),
            (&mut config.directory, &data.directory),
            (&mut config.branch, &data.branch),
            (&mut config.policy_revision, &data.policy_revision),
            (&mut config.manifest_digest, &data.manifest_digest),
            (&mut self.title, &data.title),
        ] {
            if let Some(new) = new {
                *member = Some(new.to_string());
            }
        }
    }

    fn start_turn(&mut self, data: &crate::events::TurnStarted<'_>, at: At) {
        let message = data.message.as_deref();
        let ends_recorded = self.records(Recorded::TurnEnded, None, at.seq);
        self.conversation.start(data.turn.as_deref(), message, at.seq, ends_recorded, at.context_only);
        self.inputs.pass(&mut self.state);
        if let Some(group) = self.conversation.hangs_under(message) {
            self.adopt_group(group, at.seq);
        }
    }

    fn message(&mut self, data: &MessageAdded<'_>, event: &Event<'_>, at: At, mention: &Mention<'_>) {
        self.state.counts.messages.0 += u64::from(!at.copied);
        for part in &data.parts {
            match part {
                Part::Result { action, r#final, .. } => self.actions.tell(action, *r#final, mention.origin),
                // Where starts leave no trace, a call may have run as soon as the model has made it (R-ACT-015).
                Part::Action { action } if !self.records(Recorded::ActionStarted, None, at.seq) => {
                    self.actions.mention(&mut self.state, action, mention);
                }
                _ => {}
            }
        }
        let purpose = data.purpose.as_deref();
        if data.role == Role::Assistant {
            self.conversation.model_message(data, at);
            return;
        }
        let visible = data.in_context != Some(false);
        let results = visible && data.parts.iter().any(|p| matches!(p, Part::Result { .. }));
        let speaks = match purpose {
            None => data.role == Role::User,
            // A steer may reach the model as a message of the system: it is a person's all the same.
            Some("prompt" | "steer") => matches!(data.role, Role::User | Role::System | Role::Developer),
            Some(_) => false,
        };
        let typed = speaks && event.actor.kind == ActorKind::User && !results;
        let prompts = visible && speaks && matches!(event.actor.kind, ActorKind::User | ActorKind::Agent);
        self.prompts += u64::from(typed && !at.copied);
        let harness = event.actor.kind == ActorKind::Harness;
        self.conversation.other_message(&event.id, at, prompts, results, harness);
        if purpose == Some("summary") {
            self.inputs.pass(&mut self.state);
        }
    }

    fn child(&mut self, id: &str) -> &mut Child {
        let children = &mut self.state.children;
        let at = *self.child_by_id.entry(id.into()).or_insert_with(|| {
            children.push(Child {
                child: id.to_owned(),
                session: None,
                action: None,
                kind: None,
                link: crate::events::ChildLink::None,
                ended: false,
                status: None,
            });
            children.len() - 1
        });
        &mut children[at]
    }

    fn note(&mut self, data: &NoteAdded<'_>) {
        match &*data.kind {
            "summary" => {}
            "torn" | "fragment" | "hole" | "unread" => return self.conversation.unreadable(),
            _ => return,
        }
        let Some(title) = data.text.as_ref().and_then(|t| t.text()) else { return };
        let about = data.about.as_deref().map(Key::of);
        if about.is_none() {
            self.summaries.clear();
        } else if self.summaries.last().is_some_and(|(last, _)| *last == about) {
            self.summaries.pop();
        }
        self.summaries.push((about, title.into_owned()));
    }

    fn origin(&mut self, event: &Event<'_>, line: Option<&Line<'_>>) -> Origin {
        if let Some(src) = event.src.first()
            && let (Some(offset), Some(length)) = (src.at, src.len)
        {
            let known = self.source_by_name.get(&*src.source).copied();
            let at = known.unwrap_or_else(|| {
                let at = u32::try_from(self.source_names.len()).unwrap_or(u32::MAX);
                self.source_names.push(src.source.to_string());
                self.source_by_name.insert((*src.source).into(), at);
                at
            });
            return Origin { source: Some(at), line: 0, offset, length };
        }
        line.map_or_else(Origin::default, |line| Origin {
            source: None,
            line: line.number,
            offset: line.offset,
            length: line.bytes.len() as u64,
        })
    }

    /// The place of an origin: in the source's file where it is known, else in the log.
    fn place_of(&self, origin: Origin) -> Place {
        let source = origin.source.and_then(|at| self.source_names.get(at as usize));
        let input = source.map(|name| self.state.sources.get(name).map_or_else(|| name.clone(), |s| s.locator.clone()));
        Place {
            input,
            line: (origin.line > 0).then_some(origin.line),
            offset: Some(origin.offset),
            length: Some(origin.length),
            ..Place::default()
        }
    }
}
