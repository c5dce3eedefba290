//! A log as exporters see it: what has to be written, in which order, and what is known beside it.
//!
//! The order is that of the path ([`History`]), with two things settled that every provider insists on: the calls of one
//! response stand together, and each call is answered before the model speaks again. Where the log has no answer there is a
//! [`Cue::Unresolved`]; nothing else is put in.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::rc::Rc;

use palog::blob::BlobStore;
use palog::envelope::{ActorKind, Event, SrcHow};
use palog::events::{ApprovalOutcome, Data, MessageAdded, ModelResponse, Part, Role, TurnEnd, Usage};
use palog::json::Raw;
use palog::project::{self, Content, Entry, Fate, History, NodeKind, NodeRef};
use palog::reader::{Item, Reader};
use palog::reduce::Reducer;
use palog::state::State;

use super::loss::{Class, Field, Losses};
use super::mark::{CallMark, EndMark};
use super::native::{Destination, ExportError};

/// A message or a compaction on the path.
#[derive(Clone, Debug)]
pub struct Step {
    node: NodeRef,
    /// Id of the event.
    pub event: String,
    /// Whose message it is; `None` = a compaction.
    pub role: Option<Role>,
    /// Place of its response among [`View::responses`]; of the model's messages only.
    pub response: Option<usize>,
}

/// What is known of a response of the model.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// The vendor's id; `None` where no record names one.
    pub id: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// The vendor's id of the request.
    pub request: Option<String>,
    /// Token counts.
    pub usage: Option<Usage>,
    /// Why it stopped.
    pub stop: Option<String>,
    /// Whether there are calls in it.
    pub calls: bool,
    /// Whether it is the last one of a turn that the model completed.
    pub completes: bool,
    /// Place of its first message in the log.
    seq: u64,
}

/// The end of a turn.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its event.
    pub event: String,
    /// How.
    pub how: TurnEnd,
    /// In the source's words.
    pub reason: Option<String>,
    seq: u64,
}

/// One thing to write. Steps and parts are given by their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cue {
    /// A message of the user, the harness or the developer.
    Said {
        /// The message.
        step: usize,
    },
    /// A part that stands beside results in their message.
    Beside {
        /// The message.
        step: usize,
        /// The part.
        part: usize,
    },
    /// A part of what the model said.
    Spoken {
        /// The message.
        step: usize,
        /// The part.
        part: usize,
    },
    /// A call of the model.
    Called {
        /// The message.
        step: usize,
        /// The action.
        action: String,
    },
    /// What the model was told of a call.
    Told {
        /// The message.
        step: usize,
        /// The part.
        part: usize,
        /// The action.
        action: String,
        /// The log does not hold the call.
        orphan: bool,
    },
    /// A call that is not answered on the path.
    Unresolved {
        /// The action.
        action: String,
    },
    /// A compaction.
    Compacted {
        /// The event.
        step: usize,
    },
    /// The end of a turn, by its place among [`View::ends`].
    TurnEnded(usize),
}

/// A log that is written in another form.
pub struct View<'b, R> {
    /// The state that it adds up to.
    pub state: State,
    /// Gets what lies in blobs.
    pub content: Content<'b>,
    /// What is on the path.
    pub steps: Vec<Step>,
    /// The responses on the path.
    pub responses: Vec<Response>,
    /// The ends of turns.
    pub ends: Vec<Ended>,
    /// The time of the first event that has one.
    pub began: Option<String>,
    history: History<R>,
    reminders: HashSet<u64>,
    fates: HashMap<String, Fate>,
    denials: HashMap<String, ActorKind>,
    /// The actions that gave back more than the model was told.
    pub outputs: HashSet<String>,
    cache: Option<(usize, Rc<Entry>)>,
    /// What is in the log beside its path.
    pub counts: Counts,
}

/// How many there are of what no exporter carries.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Records of a vendor that are kept as they stand.
    pub records: u64,
    /// Observations.
    pub observations: u64,
    /// Tasks, plans, commands, artifacts, checkpoints and resources.
    pub work: u64,
    /// Lists of tools or skills.
    pub tools: u64,
    /// Instructions of the agent.
    pub instructions: u64,
    /// Messages, on the path or not.
    pub messages: u64,
}

/// What is collected of a log in one reading.
#[derive(Default)]
struct Collected {
    responses: Vec<(u64, Response)>,
    by_id: HashMap<String, usize>,
    ends: Vec<Ended>,
    denials: HashMap<String, ActorKind>,
    outputs: HashSet<String>,
    began: Option<String>,
    counts: Counts,
}

impl Collected {
    fn take(&mut self, event: &Event<'_>) {
        if let (None, Some(time)) = (&self.began, &event.time) {
            self.began = Some(time.as_str().to_owned());
        }
        if event.kind.starts_with("x.") {
            self.counts.records += 1;
            return;
        }
        let Ok(data) = event.data() else { return };
        match &data {
            Data::ModelResponse(response) if event.copy.is_none() => self.response(event.seq, response),
            Data::TurnEnded(end) => self.ends.push(Ended {
                event: event.id.to_string(),
                how: end.how,
                reason: end.reason.as_ref().map(ToString::to_string),
                seq: event.seq,
            }),
            Data::ApprovalEnded(end) if end.outcome == ApprovalOutcome::Denied => {
                if let Some(action) = &end.action {
                    self.denials.insert(action.to_string(), event.actor.kind);
                }
            }
            Data::ActionEnded(end) if end.output.is_some() || end.receipt.is_some() => {
                self.outputs.insert(end.action.to_string());
            }
            Data::ObservationRecorded(_) => self.counts.observations += 1,
            Data::MessageAdded(_) => self.counts.messages += 1,
            Data::ConfigSet(set) => {
                self.counts.tools += u64::from(set.tools.is_some() || set.skills.is_some());
                self.counts.instructions += u64::from(set.instructions.is_some());
            }
            Data::TaskOpened(_)
            | Data::PlanRevised(_)
            | Data::CommandIssued(_)
            | Data::CheckpointCreated(_)
            | Data::ArtifactRecorded(_)
            | Data::ResourceAcquired(_)
            | Data::WorkspaceRecorded(_) => self.counts.work += 1,
            _ => {}
        }
    }

    fn response(&mut self, seq: u64, told: &ModelResponse<'_>) {
        let at = *self.by_id.entry(told.response.to_string()).or_insert_with(|| {
            self.responses.push((seq, Response { id: Some(told.response.to_string()), ..Response::default() }));
            self.responses.len() - 1
        });
        let response = &mut self.responses[at].1;
        let text = |new: &Option<palog::json::Str<'_>>, old: &mut Option<String>| {
            if let Some(new) = new {
                *old = Some(new.to_string());
            }
        };
        text(&told.model, &mut response.model);
        text(&told.request, &mut response.request);
        text(&told.stop, &mut response.stop);
        if let Some(usage) = &told.usage {
            response.usage = Some(usage.clone());
        }
    }
}

impl<'b, R: Read + Seek> View<'b, R> {
    /// Reads `log`, whose blobs lie in `blobs`. Memory grows with the number of messages and calls, not with their content.
    ///
    /// # Errors
    /// When the log cannot be read, nothing can be concluded from it, or it has no message.
    pub fn open(mut log: R, blobs: Option<&'b BlobStore>) -> Result<Self, ExportError> {
        let (state, collected) = read(&mut log).map_err(ExportError::Read)?;
        if let Some(reason) = state.indeterminate.first() {
            let why = reason.why.clone().unwrap_or_else(|| reason.code.as_str().to_owned());
            return Err(ExportError::Indeterminate(why));
        }
        let (mut fates, mut live) = (HashMap::new(), HashSet::new());
        project::transcript(&mut log, |item| {
            if let (Data::TurnEnded(_), true) = (item.data, item.live) {
                live.insert(item.event.id.to_string());
            }
            if let (Data::ActionProposed(proposed), Some(fate)) = (item.data, item.fate) {
                fates.entry(proposed.action.to_string()).or_insert(fate);
            }
            ControlFlow::Continue(())
        })
        .map_err(ExportError::Read)?;
        let history = History::open(log)?;
        let mut view = View {
            state,
            content: Content::new(blobs),
            steps: Vec::new(),
            responses: Vec::new(),
            ends: collected.ends.into_iter().filter(|end| live.contains(&end.event)).collect(),
            reminders: HashSet::new(),
            began: collected.began,
            history,
            fates,
            denials: collected.denials,
            outputs: collected.outputs,
            cache: None,
            counts: collected.counts,
        };
        view.look(collected.responses).map_err(ExportError::Read)?;
        if view.steps.is_empty() {
            return Err(ExportError::Empty);
        }
        Ok(view)
    }

    /// Looks at each step once: whose it is, and to which response it belongs.
    fn look(&mut self, mut known: Vec<(u64, Response)>) -> io::Result<()> {
        let mut by_id: HashMap<String, usize> = HashMap::new();
        let mut anonymous = None;
        for node in self.history.steps() {
            let entry = self.history.read(node)?;
            let Ok(event) = entry.event() else { continue };
            let mut step = Step { node, event: event.id.to_string(), role: None, response: None };
            if let Ok(Data::MessageAdded(message)) = event.data() {
                step.role = Some(message.role);
                if message.purpose.as_deref() == Some("reminder") && event.actor.kind == ActorKind::Harness {
                    self.reminders.extend(message.parts.iter().map(fingerprint));
                }
                let spoken = message.role == Role::Assistant && message.in_context != Some(false);
                let next = self.responses.len();
                step.response = match (&message.response, spoken) {
                    (_, false) => None,
                    (Some(id), true) => Some(*by_id.entry(id.to_string()).or_insert(next)),
                    (None, true) => Some(anonymous.unwrap_or(next)),
                };
                if step.response == Some(next) {
                    let id = message.response.as_ref().map(ToString::to_string);
                    self.responses.push(Response { id, seq: event.seq, ..Response::default() });
                }
                if let Some(response) = step.response.and_then(|at| self.responses.get_mut(at)) {
                    response.calls |= message.parts.iter().any(|part| matches!(part, Part::Action { .. }));
                }
                anonymous = if message.response.is_none() { step.response } else { None };
            } else {
                anonymous = None;
            }
            self.steps.push(step);
        }
        // What names no response belongs to the one that is told of next.
        let starts: Vec<u64> = self.responses.iter().map(|r| r.seq).collect();
        for (at, response) in self.responses.iter_mut().enumerate() {
            let until = starts.get(at + 1).copied().unwrap_or(u64::MAX);
            let told = known.iter_mut().find(|(seq, told)| match &response.id {
                Some(id) => told.id.as_deref() == Some(id),
                None => *seq > response.seq && *seq < until && told.id.is_some(),
            });
            if let Some((_, told)) = told {
                let told = std::mem::take(told);
                let (seq, calls) = (response.seq, response.calls);
                *response = Response { seq, calls, ..told };
            }
        }
        for end in self.ends.iter().filter(|end| end.how == TurnEnd::Complete) {
            let last = self.responses.iter_mut().filter(|r| r.seq < end.seq).max_by_key(|r| r.seq);
            last.into_iter().for_each(|response| response.completes = true);
        }
        Ok(())
    }

    /// What has to be written, in its order.
    ///
    /// # Errors
    /// When the log cannot be read again.
    pub fn cues(&mut self, losses: &mut Losses) -> Result<Vec<Cue>, ExportError> {
        Plan::default().make(self, losses).map_err(ExportError::Read)
    }

    /// The event of a step.
    ///
    /// # Errors
    /// When the log cannot be read again.
    pub fn entry(&mut self, step: usize) -> Result<Rc<Entry>, ExportError> {
        self.read(step).map_err(ExportError::Read)
    }

    fn read(&mut self, step: usize) -> io::Result<Rc<Entry>> {
        if let Some((at, entry)) = &self.cache
            && *at == step
        {
            return Ok(entry.clone());
        }
        let entry = Rc::new(self.history.read(self.steps[step].node)?);
        self.cache = Some((step, entry.clone()));
        Ok(entry)
    }

    /// The place among the steps of the event that a window names.
    #[must_use]
    pub fn step_of(&self, event: &str) -> Option<usize> {
        let node = self.history.find(event)?;
        self.steps.iter().position(|step| step.node == node)
    }

    /// Whether a part of a window is what the first client told its model of itself: a window does not say what its messages
    /// are for.
    #[must_use]
    pub fn is_reminder(&self, role: Role, part: &Part<'_>) -> bool {
        matches!(role, Role::Developer | Role::System) || self.reminders.contains(&fingerprint(part))
    }

    /// What was proposed as `action`, with the members of vendors; `None` if nothing was.
    ///
    /// # Errors
    /// When the log cannot be read again, or `read` fails.
    pub fn proposal<T>(
        &mut self,
        action: &str,
        read: impl FnOnce(&palog::events::ActionProposed<'_>, Option<&Raw<'_>>) -> T,
    ) -> Result<Option<T>, ExportError> {
        self.history.proposal(action, |proposed, ext| Ok(read(proposed, ext))).map_err(ExportError::Read)
    }

    /// What the events tell of an action.
    #[must_use]
    pub fn fate(&self, action: &str) -> Fate {
        self.fates.get(action).copied().unwrap_or_default()
    }

    /// What a mark says of a call.
    #[must_use]
    pub fn call_mark(&self, action: &str) -> CallMark {
        let Some(action) = self.state.action(action) else { return CallMark::default() };
        CallMark { class: Some(action.class), kind: Some(action.kind) }
    }

    /// What a mark says of the end of a call.
    #[must_use]
    pub fn end_mark(&self, action: &str) -> EndMark {
        let fate = self.fate(action);
        match (fate.ended, fate.approval) {
            (Some((outcome, applied)), _) => EndMark::Ended { outcome, applied },
            (None, Some(ApprovalOutcome::Denied)) => match self.denials.get(action) {
                Some(ActorKind::Policy) => EndMark::DeniedByPolicy,
                _ => EndMark::DeniedByUser,
            },
            (None, _) => EndMark::Open,
        }
    }

    /// The log whose messages come before those of this one, where this one does not hold them.
    #[must_use]
    pub fn elsewhere(&self) -> Option<&str> {
        self.history.elsewhere()
    }

    /// Declares what no exporter carries to `destination`.
    pub fn declare_common(&self, destination: &Destination, losses: &mut Losses) {
        let count = self.counts;
        if self.state.config.directory.as_deref() != Some(&destination.directory) {
            let why = "the session goes on in another directory, as it was asked for";
            losses.count(Field::ConfigDirectory, Class::Synthesized, why, 1);
        }
        if self.state.session.as_deref() != Some(&destination.session) {
            let why = "the session gets an id of its own, so that nothing is overwritten";
            losses.count(Field::SessionId, Class::Normalized, why, 1);
        }
        if self.state.config.model.is_some() {
            let why = "which model goes on is chosen when the session is resumed";
            losses.count(Field::ConfigModel, Class::Omitted, why, 1);
        }
        if let Some(parent) = self.history.elsewhere() {
            let why = "the messages before this log's first are in another log, which has to be exported itself";
            losses.critical(Field::SessionParent, Class::Omitted, why, Some(parent), None);
        }
        losses.count(Field::Record, Class::Omitted, RECORD, count.records);
        losses.count(
            Field::Observation,
            Class::Omitted,
            "it was seen beside the session, which has no place for it",
            count.observations,
        );
        losses.count(
            Field::Work,
            Class::Omitted,
            "the client has no place for tasks, plans, artifacts and checkpoints",
            count.work,
        );
        losses.count(Field::ConfigOther, Class::Omitted, "each client offers its own tools and skills", count.tools);
        losses.count(
            Field::ConfigInstructions,
            Class::Omitted,
            "each client gives its model instructions of its own",
            count.instructions,
        );
        let on_path = self.steps.iter().filter(|step| step.role.is_some()).count() as u64;
        losses.count(
            Field::Branch,
            Class::Omitted,
            "only the path that the model saw last is written",
            count.messages.saturating_sub(on_path),
        );
        for input in self.state.inputs.iter().filter(|input| input.pending) {
            let why = "the input waits in a queue that is written to no session: it has to be given anew";
            let event = input.queued.as_ref().map(|q| q.event.as_str());
            losses.critical(Field::InputQueued, Class::Omitted, why, event, None);
        }
        for grant in &self.state.grants {
            losses.declare(
                Field::Grant,
                Class::Omitted,
                "leave that was given to one program is not leave for another",
                None,
                Some(&grant.grant),
            );
        }
        if self.state.config.permission_mode.is_some() || self.state.config.mode.is_some() {
            let why = "what the agent may do unasked is for the user to set anew, in the words of the client";
            losses.count(Field::ConfigPermission, Class::Omitted, why, 1);
        }
        for child in &self.state.children {
            let why = "the child has a log of its own, which is not written with this one";
            losses.declare(Field::Child, Class::Omitted, why, Some(&child.child), child.action.as_deref());
        }
        for action in &self.outputs {
            let why = "the client has no place for what a call gave back beside what the model was told";
            losses.declare(Field::ActionOutput, Class::Omitted, why, None, Some(action));
        }
    }
}

const RECORD: &str = "records of the first vendor that are no part of the conversation stay in the log";

/// Reads a log once for its state and what is known of responses and turns.
fn read(log: &mut (impl Read + Seek)) -> io::Result<(State, Collected)> {
    log.seek(SeekFrom::Start(0))?;
    let mut reader = Reader::new(BufReader::with_capacity(1 << 18, log));
    let (mut reducer, mut collected) = (Reducer::new(), Collected::default());
    while let Some(item) = reader.next()? {
        match item {
            Item::Event(event, line) => {
                collected.take(&event);
                reducer.apply(&event, Some(&line));
            }
            Item::Fault(fault) => reducer.fault(fault),
        }
    }
    let (state, _) = reducer.finish();
    Ok((state, collected))
}

/// Reads the message of an entry, with the parts that it has now.
///
/// # Errors
/// When the entry is no message.
pub fn message<T>(entry: &Entry, read: impl FnOnce(&Event<'_>, &MessageAdded<'_>, &[Part<'_>]) -> T) -> io::Result<T> {
    let event = entry.event()?;
    let data = event.data()?;
    let Data::MessageAdded(message) = &data else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the event is no message"));
    };
    let revision = entry.revision()?;
    let parts = revision.as_ref().and_then(|r| r.parts.as_deref()).unwrap_or(&message.parts);
    Ok(read(&event, message, parts))
}

/// A hash by which parts are compared.
fn fingerprint(part: &Part<'_>) -> u64 {
    let mut hash = DefaultHasher::new();
    Raw::of(part).get().hash(&mut hash);
    hash.finish()
}

/// Makes the cues.
#[derive(Default)]
struct Plan {
    cues: Vec<Cue>,
    /// Calls that are not answered yet, in their order.
    open: VecDeque<String>,
    /// Where the first result of each call stands.
    told: HashMap<String, (usize, usize)>,
    /// Results that were written before their place.
    early: HashSet<String>,
    called: HashSet<String>,
}

/// What a step holds, without content.
enum Held {
    Nothing,
    Message { role: Role, parts: Vec<Piece>, partial: bool },
    Compaction,
}

enum Piece {
    Call(String),
    Result(String),
    Other,
}

impl Plan {
    fn make<R: Read + Seek>(mut self, view: &mut View<'_, R>, losses: &mut Losses) -> io::Result<Vec<Cue>> {
        let mut held = Vec::with_capacity(view.steps.len());
        for step in 0..view.steps.len() {
            let one = hold(view, step, losses)?;
            if let Held::Message { parts, .. } = &one {
                for (part, piece) in parts.iter().enumerate() {
                    if let Piece::Result(action) = piece {
                        self.told.entry(action.clone()).or_insert((step, part));
                    }
                }
            }
            held.push(one);
        }
        let ends: BTreeMap<u64, usize> = view.ends.iter().enumerate().map(|(at, end)| (end.seq, at)).collect();
        let mut seq = 0;
        let mut response = None;
        for (step, held) in held.iter().enumerate() {
            let here = view.steps[step].node.seq;
            if here > seq {
                for (_, end) in ends.range(seq..here) {
                    self.settle(view, losses);
                    self.cues.push(Cue::TurnEnded(*end));
                }
            }
            seq = seq.max(here);
            let event = view.steps[step].event.as_str();
            match held {
                Held::Nothing => {}
                Held::Compaction => {
                    self.settle(view, losses);
                    self.cues.push(Cue::Compacted { step });
                }
                Held::Message { role: Role::Assistant, parts, partial, .. } => {
                    if view.steps[step].response != response {
                        self.settle(view, losses);
                    }
                    response = view.steps[step].response;
                    if *partial {
                        let why = "that the message was cut off cannot be said";
                        losses.declare(Field::MessagePartial, Class::Degraded, why, Some(event), None);
                    }
                    for (part, piece) in parts.iter().enumerate() {
                        match piece {
                            Piece::Call(action) => {
                                self.called.insert(action.clone());
                                self.open.push_back(action.clone());
                                self.cues.push(Cue::Called { step, action: action.clone() });
                            }
                            Piece::Result(action) => self.tell(step, part, action, event, losses),
                            Piece::Other => self.cues.push(Cue::Spoken { step, part }),
                        }
                    }
                }
                Held::Message { parts, .. } if parts.iter().any(|p| matches!(p, Piece::Result(_))) => {
                    for (part, piece) in parts.iter().enumerate() {
                        match piece {
                            Piece::Result(action) => self.tell(step, part, action, event, losses),
                            Piece::Call(_) => {}
                            Piece::Other => {
                                self.settle(view, losses);
                                self.cues.push(Cue::Beside { step, part });
                            }
                        }
                    }
                }
                Held::Message { .. } => {
                    self.settle(view, losses);
                    self.cues.push(Cue::Said { step });
                }
            }
        }
        self.settle(view, losses);
        self.cues.extend(ends.range(seq..).map(|(_, end)| Cue::TurnEnded(*end)));
        aside(view, &self.called, losses);
        Ok(self.cues)
    }

    /// A result, at its place.
    fn tell(&mut self, step: usize, part: usize, action: &str, event: &str, losses: &mut Losses) {
        if self.told.get(action) != Some(&(step, part)) {
            let why = "a call has one result; what the model was told of it later is left out";
            losses.declare(Field::ResultAgain, Class::Omitted, why, Some(event), Some(action));
            return;
        }
        if self.early.contains(action) {
            return;
        }
        self.open.retain(|open| open != action);
        let orphan = !self.called.contains(action);
        self.cues.push(Cue::Told { step, part, action: action.to_owned(), orphan });
    }

    /// Answers the calls that are open, before anything else is said.
    fn settle<R>(&mut self, view: &View<'_, R>, losses: &mut Losses) {
        for action in std::mem::take(&mut self.open) {
            match self.told.get(&action) {
                Some((step, part)) => {
                    let why = "results stand right behind the response with their calls";
                    let event = view.steps[*step].event.as_str();
                    losses.declare(Field::ResultPlace, Class::Normalized, why, Some(event), Some(&action));
                    self.cues.push(Cue::Told { step: *step, part: *part, action: action.clone(), orphan: false });
                    self.early.insert(action);
                }
                None => {
                    let why = "a note that is no result stands where the result would be";
                    losses.declare(Field::ActionOpen, Class::Synthesized, why, None, Some(&action));
                    self.cues.push(Cue::Unresolved { action });
                }
            }
        }
    }
}

/// Declares that what an event says is not all that the source said.
fn damage(event: &Event<'_>, losses: &mut Losses) {
    if event.src.iter().any(|src| src.how == Some(SrcHow::Degraded)) {
        let why = "bytes that are no text were replaced when the session was read; they are kept in the log's source";
        losses.declare(Field::PartText, Class::Degraded, why, Some(&event.id), None);
    }
    if !event.data.lone_surrogates().is_empty() {
        let why = "half characters, which no provider takes, are replaced";
        losses.declare(Field::PartText, Class::Degraded, why, Some(&event.id), None);
    }
}

/// What a step holds.
fn hold<R: Read + Seek>(view: &mut View<'_, R>, step: usize, losses: &mut Losses) -> io::Result<Held> {
    if view.steps[step].node.kind == NodeKind::Compaction {
        return Ok(Held::Compaction);
    }
    let entry = view.read(step)?;
    let id = view.steps[step].event.as_str();
    let revision = entry.revision()?;
    if revision.as_ref().is_some_and(|r| r.removed == Some(true)) {
        let why = "the message was taken out of what the model sees";
        losses.declare(Field::MessageRevised, Class::Omitted, why, Some(id), None);
        return Ok(Held::Nothing);
    }
    if revision.is_some() {
        let why = "the content that the message had before is left out";
        losses.declare(Field::MessageRevised, Class::Degraded, why, Some(id), None);
    }
    damage(&entry.event()?, losses);
    let (held, unseen) = message(&entry, |_, message, parts| {
        let pieces = parts.iter().map(|part| match part {
            Part::Action { action } if message.role == Role::Assistant => Piece::Call(action.to_string()),
            Part::Result { action, .. } => Piece::Result(action.to_string()),
            _ => Piece::Other,
        });
        let held =
            Held::Message { role: message.role, parts: pieces.collect(), partial: message.partial == Some(true) };
        (held, message.in_context == Some(false))
    })?;
    if unseen {
        let why = "the client would show it to the model, which never saw it";
        losses.declare(Field::MessageUnseen, Class::Omitted, why, Some(id), None);
        return Ok(Held::Nothing);
    }
    Ok(held)
}

/// Declares the calls that have no place on the path. One that may have acted, and that nobody will ask about, is critical.
fn aside<R>(view: &View<'_, R>, called: &HashSet<String>, losses: &mut Losses) {
    for action in view.state.actions.iter().filter(|a| !called.contains(&a.action)) {
        let event = action.proposed.as_ref().map(|p| p.event.as_str());
        let asked = view.state.approvals.iter().filter(|a| a.action.as_ref() == Some(&action.action));
        for _ in asked {
            let why = "it is about a call that lies on no branch that is written";
            losses.declare(Field::Approval, Class::Omitted, why, event, Some(&action.action));
        }
        let why = "the call lies on no branch that is written";
        if action.is_settled() || action.passed_over || action.inherited || action.only_reads() {
            losses.declare(Field::ActionAside, Class::Omitted, why, event, Some(&action.action));
        } else {
            losses.critical(Field::ActionAside, Class::Omitted, why, event, Some(&action.action));
        }
    }
}
