//! The transcript: the whole conversation in the order of the log, with the branches that were left (spec 04, "Transcript").

use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;

use crate::diagnostic::{Diagnostics, Severity};
use crate::envelope::Event;
use crate::events::{Applied, ApprovalOutcome, Data, Outcome, Part, Reconciled};
use crate::fence::Fence;
use crate::project::path::{Key, PathIndex, key};
use crate::project::scan::{payload, scan};

/// What the events of a log tell of an action, all taken together (spec 04, "Transcript"). Its state, which weighs them,
/// is the reducer's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fate {
    /// An attempt was started.
    pub started: bool,
    /// How the latest attempt ended, and whether its effect took place; `unknown` where its ends disagree on that.
    pub ended: Option<(Outcome, Applied)>,
    /// What the last look-up found.
    pub reconciled: Option<Reconciled>,
    /// How the last request for approval ended; `None` also while one is open.
    pub approval: Option<ApprovalOutcome>,
    /// A request for approval that has no end.
    pub asked: bool,
    /// What the model was told last.
    pub told: Option<Told>,
    /// Number of the attempt that `ended` is about.
    attempt: u64,
}

/// What the model was told of an action (spec 03, "Parts").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Told {
    /// That it goes on in the background.
    Running,
    /// A result.
    Result,
    /// A result, marked as an error.
    Error,
}

impl Fate {
    /// Takes in one event about the action.
    fn learn(&mut self, data: &Data<'_>) {
        match data {
            Data::ActionStarted(_) => self.started = true,
            Data::ActionReconciled(found) => self.reconciled = Some(found.outcome),
            Data::ApprovalRequested(_) => (self.asked, self.approval) = (true, None),
            Data::ApprovalEnded(end) => (self.asked, self.approval) = (false, Some(end.outcome)),
            Data::ActionEnded(end) => {
                let attempt = end.attempt.unwrap_or(1);
                match &mut self.ended {
                    Some((_, applied)) if attempt == self.attempt => {
                        if *applied != end.applied {
                            *applied = Applied::Unknown;
                        }
                    }
                    Some(_) if attempt < self.attempt => {}
                    ended => {
                        *ended = Some((end.outcome, end.applied));
                        self.attempt = attempt;
                    }
                }
            }
            Data::ActionProposed(_) => {}
            other => debug_assert!(action(other).is_none(), "an event about an action tells nothing of it"),
        }
    }

    /// Takes in what the model was told.
    fn hear(&mut self, is_error: Option<bool>, is_final: bool) {
        self.told = Some(match (is_final, is_error) {
            (false, _) => Told::Running,
            (true, Some(true)) => Told::Error,
            (true, _) => Told::Result,
        });
    }
}

/// The action that an event names.
fn action<'d>(data: &'d Data<'_>) -> Option<&'d str> {
    match data {
        Data::ActionProposed(d) => Some(&d.action),
        Data::ActionStarted(d) => Some(&d.action),
        Data::ActionEnded(d) => Some(&d.action),
        Data::ActionReconciled(d) => Some(&d.action),
        Data::ApprovalRequested(d) => d.action.as_deref(),
        Data::ApprovalEnded(d) => d.action.as_deref(),
        _ => None,
    }
}

/// One item of a transcript (spec 04, "Transcript").
#[derive(Debug)]
#[non_exhaustive]
pub struct Item<'a> {
    /// The envelope: time, actor, place.
    pub event: &'a Event<'a>,
    /// The payload.
    pub data: &'a Data<'a>,
    /// Whether it belongs to the path of the head; `false` = to a branch that was left, or to a writer whose epoch was over.
    pub live: bool,
    /// For `action.proposed`: what became of the action in the whole log.
    pub fate: Option<Fate>,
}

impl<'a> Item<'a> {
    /// An item as its event alone shows it, for a log that is still being written: on the path, and of a call nothing but that
    /// it was made. `None` where a transcript shows no such event.
    #[must_use]
    pub fn alone(event: &'a Event<'a>, data: &'a Data<'a>) -> Option<Self> {
        is_shown(data).then_some(Item { event, data, live: true, fate: None })
    }
}

/// Whether a transcript shows events with this payload.
fn is_shown(data: &Data<'_>) -> bool {
    match data {
        Data::MessageAdded(_)
        | Data::InputQueued(_)
        | Data::TurnEnded(_)
        | Data::ActionProposed(_)
        | Data::ActionEnded(_)
        | Data::ActionReconciled(_)
        | Data::ApprovalRequested(_)
        | Data::ApprovalEnded(_)
        | Data::ContextCompacted(_)
        | Data::BranchMoved(_)
        | Data::ChildSpawned(_)
        | Data::ChildEnded(_)
        | Data::MessageRevised(_)
        | Data::GrantAdded(_)
        | Data::GrantRevoked(_)
        | Data::LeaseAcquired(_)
        | Data::LeaseReleased(_)
        | Data::TaskOpened(_)
        | Data::TaskClosed(_)
        | Data::PlanRevised(_)
        | Data::CommandIssued(_)
        | Data::CommandEnded(_)
        | Data::RedactionApplied(_)
        | Data::NoteAdded(_) => true,
        Data::LogOpened(_)
        | Data::LogClosed(_)
        | Data::SourceOpened(_)
        | Data::ObservationRecorded(_)
        | Data::ConfigSet(_)
        | Data::TurnStarted(_)
        | Data::InputEnded(_)
        | Data::ModelRequested(_)
        | Data::ModelResponse(_)
        | Data::ActionStarted(_)
        | Data::SourceChanged(_)
        | Data::LeaseRenewed(_)
        | Data::AttemptStarted(_)
        | Data::AttemptEnded(_)
        | Data::StepChanged(_)
        | Data::CheckpointCreated(_)
        | Data::CheckpointRestored(_)
        | Data::WorkspaceRecorded(_)
        | Data::ArtifactRecorded(_)
        | Data::ResourceAcquired(_)
        | Data::ResourceReleased(_)
        | Data::Kept(..)
        | Data::Other(..) => false,
    }
}

/// Shows the conversation in `log` to `visit`, item by item in the order of the log, until there is no more or `visit`
/// breaks off (spec 04, "Transcript").
///
/// The log is read twice, each time from its start; what is held in memory is the index of the path and a few bytes for
/// each action. Returns what is wrong with the log.
///
/// # Errors
/// When the log cannot be read.
pub fn transcript<R: Read + Seek>(
    mut log: R,
    mut visit: impl FnMut(&Item<'_>) -> ControlFlow<()>,
) -> io::Result<Diagnostics> {
    let (mut faults, mut index) = (Diagnostics::default(), PathIndex::default());
    let (mut fates, mut requests) = (HashMap::<Key, Fate>::new(), HashMap::<Key, Key>::new());
    let (mut fence, mut void) = (Fence::default(), HashSet::new());
    log.seek(SeekFrom::Start(0))?;
    scan(&mut log, &mut faults, |event, line, faults| {
        let data = payload(event, line, faults);
        if fence.admit(event, &data).is_some_and(|found| found.severity == Severity::Void) {
            index.pass(event);
            void.insert(event.seq);
            return ControlFlow::Continue(());
        }
        if let Some(fault) = index.push(event, &data, line.offset) {
            faults.push(fault);
        }
        let mut about = action(&data).map(key);
        match (&data, about) {
            (Data::ApprovalRequested(asked), Some(action)) => {
                requests.insert(key(asked.approval.as_deref().unwrap_or(&event.id)), action);
            }
            (Data::ApprovalEnded(end), None) => {
                about = end.approval.as_deref().and_then(|a| requests.get(&key(a)).copied())
            }
            _ => {}
        }
        if let Some(action) = about {
            fates.entry(action).or_default().learn(&data);
        }
        if let Data::MessageAdded(message) = &data {
            for part in &message.parts {
                if let Part::Result { action, is_error, r#final, .. } = part {
                    fates.entry(key(action)).or_default().hear(*is_error, *r#final);
                }
            }
        }
        ControlFlow::Continue(())
    })?;
    index.missing().for_each(|fault| faults.push(fault));

    let live = index.live();
    log.seek(SeekFrom::Start(0))?;
    let mut last = None;
    scan(&mut log, &mut Diagnostics::default(), |event, line, told| {
        if last.is_some_and(|last| event.seq <= last) {
            return ControlFlow::Continue(());
        }
        last = Some(event.seq);
        let data = payload(event, line, told);
        if !is_shown(&data) {
            return ControlFlow::Continue(());
        }
        let fate = match &data {
            Data::ActionProposed(proposed) => Some(fates.get(&key(&proposed.action)).copied().unwrap_or_default()),
            _ => None,
        };
        let live = live.has(&event.id) && !void.contains(&event.seq);
        visit(&Item { event, data: &data, live, fate })
    })?;
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::diagnostic::Code;
    use crate::project::sample::events;

    const LOG: &[&str] = &[
        r#"u message.added {"role":"user","purpose":"prompt","parts":[{"type":"text","text":"go"}]}"#,
        r#"t turn.started {"message":"u"}"#,
        r#"a message.added {"role":"assistant","response":"r","parts":[{"type":"action","action":"c1"},{"type":"action","action":"c2"}]}"#,
        r#"p1 action.proposed {"action":"c1","name":"Bash","args":{},"args_digest":"sha256:0"}"#,
        r#"p2 action.proposed {"action":"c2","name":"Bash","args":{},"args_digest":"sha256:0"}"#,
        r#"q approval.requested {"kind":"permission","action":"c2"}"#,
        r#"m message.added {"role":"tool","parts":[{"type":"result","action":"c1","parts":[],"is_error":true,"final":true}]}"#,
        r#"e action.ended {"action":"c1","outcome":"failed","applied":"yes"}"#,
        r#"e2 action.ended {"action":"c1","outcome":"failed","applied":"no"}"#,
        r#"k x.org.example/thing {"record":1}"#,
        r#"v ^u message.added {"role":"user","parts":[]}"#,
    ];

    fn shown(log: &str) -> Vec<(String, bool, Option<Fate>)> {
        let mut items = Vec::new();
        transcript(Cursor::new(log), |item| {
            items.push((item.event.id.to_string(), item.live, item.fate));
            ControlFlow::Continue(())
        })
        .expect("it reads");
        items
    }

    #[test]
    fn everything_is_shown_in_order_with_dead_branches_marked() {
        let items = shown(&events(LOG));
        let told: Vec<(&str, bool)> = items.iter().map(|(id, live, _)| (id.as_str(), *live)).collect();
        let want = [
            ("u", true),
            ("a", false),
            ("p1", false),
            ("p2", false),
            ("q", false),
            ("m", false),
            ("e", false),
            ("e2", false),
            ("v", true),
        ];
        assert_eq!(told, want);
    }

    #[test]
    fn an_action_carries_what_became_of_it_later() {
        let items = shown(&events(LOG));
        let fate = |id| items.iter().find(|i| i.0 == id).and_then(|i| i.2).expect("a fate");
        let one = fate("p1");
        assert_eq!((one.ended, one.told), (Some((Outcome::Failed, Applied::Unknown)), Some(Told::Error)));
        let two = fate("p2");
        assert_eq!((two.asked, two.approval, two.ended, two.told), (true, None, None, None));
        let denied = events(&[LOG, &[r#"d approval.ended {"approval":"q","outcome":"denied"}"#]].concat());
        let denied = shown(&denied).into_iter().find(|i| i.0 == "p2").and_then(|i| i.2).expect("a fate");
        assert_eq!((denied.asked, denied.approval), (false, Some(ApprovalOutcome::Denied)));
        assert!(items.iter().all(|i| i.2.is_some() == i.0.starts_with('p')));
    }

    #[test]
    fn the_visitor_can_break_off() {
        let mut count = 0;
        let log = events(LOG);
        transcript(Cursor::new(&log), |_| {
            count += 1;
            if count == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .expect("it reads");
        assert_eq!(count, 2);
    }

    #[test]
    fn a_malformed_payload_is_told_once_and_not_shown() {
        let log = events(&[LOG[0], r#"b message.added {"role":"user"}"#, LOG[2]]);
        let mut ids = Vec::new();
        let faults = transcript(Cursor::new(&log), |item| {
            ids.push(item.event.id.to_string());
            ControlFlow::Continue(())
        })
        .expect("it reads");
        assert_eq!(ids, ["u", "a"]);
        let told: Vec<_> = faults.groups().iter().map(|g| (g.code, g.count)).collect();
        assert_eq!(told, [(Code::BadPayload, 1)]);
    }
}
