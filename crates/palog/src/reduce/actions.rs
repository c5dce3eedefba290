//! Actions and requests for approval: facts in, states out (spec 04, "Actions", "Approvals").

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::attempt::{Attempt, End, Fate, Reconciliation};
use super::path::{Adoptions, GroupId, Key, KeyMap};
use super::sources::Sources;
use super::{Finding, Origin};
use crate::diagnostic::{Code, Severity};
use crate::events::{
    ActionEnded, ActionKind, ActionProposed, ActionReconciled, Applied, ApprovalEnded, ApprovalKind, ApprovalOutcome,
    ApprovalRequested, EffectClass, Join, Outcome, Reconciled, Recorded,
};
use crate::json::Str;
use crate::state::{Action, ActionState, Approval, ApprovalStatus, Count, Doubt, EventRef, State, Told};

/// What is known of an action beside what its state holds.
#[derive(Debug, Serialize, Deserialize)]
struct Facts {
    /// Its place among the actions of the state; `None` = so far only results name it.
    slot: Option<usize>,
    told: Told,
    /// Whether the model was told that it goes on.
    goes_on: bool,
    attempts: Vec<Attempt>,
    approvals: Vec<usize>,
    /// Of these, the ends that no request is known for, and the requests without an end.
    unmade: BTreeSet<usize>,
    unanswered: BTreeSet<usize>,
    origin: Origin,
    /// When it was proposed, or first mentioned.
    since: u64,
}

impl Facts {
    fn attempt(&mut self, number: Option<u64>) -> &mut Attempt {
        let number = number.unwrap_or(1);
        let at = match self.attempts.iter().position(|a| a.number == number) {
            Some(at) => at,
            None => {
                self.attempts.push(Attempt { number, ..Attempt::default() });
                self.attempts.len() - 1
            }
        };
        &mut self.attempts[at]
    }

    fn known_attempt(&self, number: u64) -> Option<&Attempt> {
        self.attempts.iter().find(|a| a.number == number)
    }

    /// Number of the attempt that counts: the newest, or the one that a reconciliation opens.
    fn newest(&self) -> u64 {
        let next = |a: &Attempt| if a.fate() == Fate::NotApplied { a.number.saturating_add(1) } else { a.number };
        self.attempts.iter().map(next).max().unwrap_or(1)
    }
}

/// What is known of a request for approval beside what its state holds.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Request {
    /// Whether there is a request, not only an end.
    made: bool,
    /// Whether its end would be recorded.
    ends_recorded: bool,
    ended: Option<ApprovalOutcome>,
    /// Whether it lapsed with the plan or the task that it was made for (R-WRK-003, R-WRK-006).
    withdrawn: bool,
    /// When it was made.
    since: u64,
    /// The source that tells of it first.
    source: Option<String>,
    /// What it answers, and its own events.
    causes: Vec<Key>,
    events: Vec<Key>,
}

fn name_of(state: &State, facts: &Facts) -> String {
    facts.slot.and_then(|slot| state.actions.get(slot)).map(|a| a.action.clone()).unwrap_or_default()
}

/// The event at hand, as far as actions need it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mention<'e> {
    pub(super) event: &'e str,
    pub(super) seq: u64,
    /// Its place in the order of all events, those of a parent included.
    pub(super) order: u64,
    pub(super) cause: &'e [Str<'e>],
    pub(super) source: Option<&'e str>,
    pub(super) origin: Origin,
    pub(super) inherited: bool,
    pub(super) turn: usize,
    /// The task that is worked on.
    pub(super) task: Option<&'e str>,
    /// The standing grant that an approval rests on.
    pub(super) grant: Option<&'e str>,
    /// What it hangs under.
    pub(super) group: Option<GroupId>,
    /// Whether the start of an action that is proposed here would be recorded.
    pub(super) starts_recorded: bool,
    /// Whether the end of a request that is made here would be recorded.
    pub(super) ends_recorded: bool,
}

impl Mention<'_> {
    fn reference(&self) -> EventRef {
        EventRef { event: self.event.to_owned(), seq: Count(self.seq) }
    }
}

/// All actions and requests of a log.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Actions {
    facts: Vec<Facts>,
    #[serde(with = "super::snapshot::pairs")]
    by_id: HashMap<Box<str>, usize>,
    /// Beside the approvals of the state, one for one.
    requests: Vec<Request>,
    /// By id; one id may be used for several actions, and then stands for as many requests.
    #[serde(with = "super::snapshot::pairs")]
    request_by_id: HashMap<Box<str>, Vec<usize>>,
    /// Digest of the arguments that each idempotency key stands for.
    #[serde(with = "super::snapshot::pairs")]
    keys: HashMap<Box<str>, Box<str>>,
    /// Requests that a new plan of a task, or its end, lets lapse.
    #[serde(with = "super::snapshot::pairs")]
    of_task: HashMap<Box<str>, Vec<usize>>,
    /// What has to be judged again, and what is not settled and told.
    dirty: BTreeSet<usize>,
    open: BTreeSet<usize>,
    /// Those of this log that are unknown or running.
    doubtful: BTreeSet<usize>,
    dirty_requests: BTreeSet<usize>,
    /// Open actions whose start would be recorded, and requests whose end would be, each with when it was made; the requests by
    /// their source.
    declared: BTreeSet<(u64, usize)>,
    waiting: BTreeSet<(Option<String>, u64, usize)>,
    /// Those that were proposed under a parent that was still to come.
    hanging: Vec<(usize, GroupId)>,
    /// What was found wrong with the event at hand.
    #[serde(skip)]
    pub(super) findings: Vec<Finding>,
}

impl Actions {
    fn index(&mut self, id: &str, origin: Origin) -> usize {
        if let Some(at) = self.by_id.get(id) {
            return *at;
        }
        let at = self.facts.len();
        self.facts.push(Facts {
            slot: None,
            told: Told::Nothing,
            goes_on: false,
            attempts: Vec::new(),
            approvals: Vec::new(),
            unmade: BTreeSet::new(),
            unanswered: BTreeSet::new(),
            origin,
            since: 0,
        });
        self.by_id.insert(id.into(), at);
        at
    }

    /// The action that an event is about; it is there from then on (R-ACT-015).
    pub(super) fn mention(&mut self, state: &mut State, id: &str, m: &Mention<'_>) -> usize {
        let at = self.index(id, m.origin);
        self.dirty.insert(at);
        if self.facts[at].slot.is_none() {
            self.facts[at].slot = Some(state.actions.len());
            (self.facts[at].origin, self.facts[at].since) = (m.origin, m.order);
            state.actions.push(Action {
                action: id.to_owned(),
                name: None,
                kind: ActionKind::Tool,
                class: EffectClass::Unknown,
                state: ActionState::Unknown,
                doubt: None,
                applied: Applied::Unknown,
                told: Told::Nothing,
                task: m.task.map(str::to_owned),
                turn: Count(m.turn as u64),
                passed_over: false,
                inherited: m.inherited,
                starts_recorded: m.starts_recorded,
                attempt: Count(1),
                args_digest: None,
                idempotency_key: None,
                compensates: None,
                reconciled: None,
                next_check: None,
                proposed: None,
                ended: None,
                seq: Count(m.seq),
            });
        }
        at
    }

    /// `action.proposed`.
    pub(super) fn propose(&mut self, state: &mut State, data: &ActionProposed<'_>, m: &Mention<'_>) {
        let at = self.mention(state, &data.action, m);
        let Some(action) = self.facts[at].slot.and_then(|slot| state.actions.get_mut(slot)) else { return };
        let effect = data.effect.as_ref();
        let class = effect.and_then(|e| e.class).unwrap_or(EffectClass::Unknown);
        if action.proposed.is_some() {
            action.class = action.class.max(class);
            if action.args_digest.as_deref() != Some(&data.args_digest) {
                self.findings.push(Finding {
                    code: Code::ProposedTwice,
                    severity: Severity::Warning,
                    rule: "R-ACT-002",
                    why: format!("{} is proposed again with other arguments", data.action),
                });
            }
            return;
        }
        self.hanging.extend(m.group.map(|group| (at, group)));
        action.name = Some(data.name.to_string());
        action.kind = data.kind.unwrap_or(ActionKind::Tool);
        action.class = class;
        action.turn = Count(m.turn as u64);
        action.inherited = m.inherited;
        action.starts_recorded = m.starts_recorded;
        action.args_digest = Some(data.args_digest.to_string());
        action.compensates = data.compensates.as_ref().map(ToString::to_string);
        action.idempotency_key = effect.and_then(|e| e.idempotency_key.as_ref()).map(ToString::to_string);
        action.proposed = Some(m.reference());
        action.task = m.task.map(str::to_owned);
        (self.facts[at].origin, self.facts[at].since) = (m.origin, m.order);
        if let Some(key) = &action.idempotency_key {
            let digest = self.keys.entry(key.as_str().into()).or_insert_with(|| (*data.args_digest).into());
            if **digest != *data.args_digest {
                self.findings.push(Finding {
                    code: Code::KeyConflict,
                    severity: Severity::Error,
                    rule: "R-ACT-022",
                    why: format!("the key {key:?} stands for other arguments already"),
                });
            }
        }
        if action.kind == ActionKind::Question {
            self.ask(state, at, &data.action, ApprovalKind::Question, &Mention { ends_recorded: true, ..*m });
        }
    }

    /// `action.started`.
    pub(super) fn start(&mut self, state: &mut State, action: &str, attempt: Option<u64>, m: &Mention<'_>) {
        let at = self.mention(state, action, m);
        self.facts[at].attempt(attempt).starts.push(m.source.map(Key::of));
    }

    /// `action.ended`.
    pub(super) fn end(&mut self, state: &mut State, data: &ActionEnded<'_>, m: &Mention<'_>) {
        let at = self.mention(state, &data.action, m);
        let attempt = self.facts[at].attempt(data.attempt);
        let end = End { outcome: data.outcome, applied: data.applied, seq: m.order, source: m.source.map(Key::of) };
        let (code, rule, why) = match attempt.ends.iter().find(|e| e.applied != end.applied).or(attempt.ends.last()) {
            Some(other) if other.applied != end.applied => {
                (Code::EndsDisagree, "R-ACT-003", format!("one end says {}, another {}", other.applied, end.applied))
            }
            Some(other) if other.source == end.source => {
                (Code::EndedTwice, "R-ACT-005", format!("{} ended already at seq {}", data.action, other.seq))
            }
            _ => (Code::EndedTwice, "", String::new()),
        };
        if !rule.is_empty() {
            self.findings.push(Finding { code, severity: Severity::Warning, rule, why });
        }
        attempt.first_end.get_or_insert_with(|| m.reference());
        attempt.ends.push(end);
    }

    /// `action.reconciled`.
    pub(super) fn reconcile(&mut self, state: &mut State, data: &ActionReconciled<'_>, m: &Mention<'_>) {
        const FIRM: [&str; 5] = ["target_fenced", "executor_terminated", "act_deadline_passed", "child_log", "human"];
        let at = self.mention(state, &data.action, m);
        let mut found = Reconciliation { outcome: data.outcome, human: &*data.basis == "human", seq: m.order };
        if data.outcome == Reconciled::NotApplied && !FIRM.contains(&&*data.basis) {
            found.outcome = Reconciled::Unknown;
            self.findings.push(Finding {
                code: Code::NoBasis,
                severity: Severity::Warning,
                rule: "R-ACT-018",
                why: format!("{:?} does not keep an old executor from acting later", data.basis),
            });
        }
        let attempt = self.facts[at].attempt(data.attempt);
        attempt.reconciled = Some(found);
        if let Some(action) = self.facts[at].slot.and_then(|slot| state.actions.get_mut(slot)) {
            action.reconciled = Some(found.outcome);
            action.next_check = data.next_check.as_ref().map(|t| t.as_str().to_owned());
        }
    }

    /// A `result` part: what the model was told (R-ACT-023).
    pub(super) fn tell(&mut self, action: &str, last: bool, origin: Origin) {
        let at = self.index(action, origin);
        self.dirty.insert(at);
        let facts = &mut self.facts[at];
        facts.goes_on |= !last;
        facts.told = match (last, facts.told) {
            (true, _) | (_, Told::Result) => Told::Result,
            (false, Told::Partial | Told::Nothing) => Told::Partial,
        };
    }

    /// `approval.requested`.
    pub(super) fn request(&mut self, state: &mut State, data: &ApprovalRequested<'_>, m: &Mention<'_>) {
        let id = data.approval.as_deref().unwrap_or(m.event);
        let of = data.action.as_deref().map(|action| self.mention(state, action, m));
        let at = match of {
            Some(of) => {
                let facts = &self.facts[of];
                let source = m.source.map(Key::of);
                if facts.known_attempt(facts.newest()).is_some_and(|attempt| attempt.began_by(source)) {
                    self.findings.push(Finding {
                        code: Code::VoidRequest,
                        severity: Severity::Void,
                        rule: "R-ACT-016",
                        why: format!("{} was started or ended before it was asked about", name_of(state, facts)),
                    });
                }
                self.ask(state, of, id, data.kind, m)
            }
            None => self.approval(state, None, id, data.kind, m),
        };
        let request = &mut self.requests[at];
        self.waiting.remove(&(request.source.clone(), request.since, at));
        request.made = true;
        request.ends_recorded |= m.ends_recorded;
        request.causes = m.cause.iter().map(|c| Key::of(c)).collect();
        request.events.push(Key::of(m.event));
        let approval = &mut state.approvals[at];
        approval.kind = data.kind;
        approval.join = approval.join.max(data.join.unwrap_or(Join::Exact));
        approval.args_digest = data.args_digest.as_ref().map(ToString::to_string);
        approval.expires = data.expires.as_ref().map(|t| t.as_str().to_owned());
        approval.requested = Some(m.reference());
        request.since = m.order;
        self.file(state, at);
    }

    /// Keeps in order which requests wait for an end that would be recorded, and which of an action are unmade or unanswered.
    fn file(&mut self, state: &State, at: usize) {
        let (request, approval) = (&self.requests[at], &state.approvals[at]);
        let asks_itself =
            approval.kind == ApprovalKind::Question && approval.action.as_deref() == Some(&*approval.approval);
        let place = (request.source.clone(), request.since, at);
        if request.made && request.ended.is_none() && request.ends_recorded && !asks_itself {
            self.waiting.insert(place);
        } else {
            self.waiting.remove(&place);
        }
        let Some(of) = state.approvals[at].action.as_deref().and_then(|id| self.by_id.get(id)) else { return };
        let (request, facts) = (&self.requests[at], &mut self.facts[*of]);
        for (list, belongs) in
            [(&mut facts.unmade, !request.made), (&mut facts.unanswered, request.made && request.ended.is_none())]
        {
            if belongs {
                list.insert(at);
            } else {
                list.remove(&at);
            }
        }
    }

    /// The request `id` about an action: it joins the end that another source tells of (R-ACT-024), and a question joins
    /// the call that asks it (R-ACT-014).
    fn ask(&mut self, state: &mut State, of: usize, id: &str, kind: ApprovalKind, m: &Mention<'_>) -> usize {
        let own_id = name_of(state, &self.facts[of]);
        let elsewhere = |at: &usize| self.requests[*at].source.as_deref() != m.source;
        let end_of_another_source = self.facts[of].unmade.iter().copied().find(elsewhere);
        let asks_itself = |at: &usize| {
            let approval = &state.approvals[*at];
            self.requests[*at].made && approval.approval == own_id && approval.action.as_ref() == Some(&own_id)
        };
        let question = Some(&*own_id).filter(|_| kind == ApprovalKind::Question);
        let of_its_name = question.and_then(|id| self.request_by_id.get(id)).into_iter().flatten();
        let joined = of_its_name.copied().filter(asks_itself).chain(end_of_another_source).min();
        let at = match (self.known(state, id, Some(of)), joined) {
            (None, Some(at)) => {
                self.request_by_id.entry(id.into()).or_default().push(at);
                state.approvals[at].approval = id.to_owned();
                at
            }
            (Some(_), _) | (None, None) => self.approval(state, Some(of), id, kind, m),
        };
        self.requests[at].made = true;
        self.requests[at].ends_recorded |= m.ends_recorded;
        if state.approvals[at].requested.is_none() {
            state.approvals[at].requested = Some(m.reference());
            self.requests[at].since = m.order;
        }
        self.file(state, at);
        at
    }

    /// The request or end with this id, if it is about the action `of`, or one of the two is not known to be about any.
    fn known(&self, state: &State, id: &str, of: Option<usize>) -> Option<usize> {
        let about = of.map(|of| name_of(state, &self.facts[of]));
        let fits = |at: &&usize| {
            let action = &state.approvals[**at].action;
            action.is_none() || about.is_none() || *action == about
        };
        self.request_by_id.get(id)?.iter().find(fits).copied()
    }

    /// The request or end with this id, about the action `of`.
    fn approval(
        &mut self,
        state: &mut State,
        of: Option<usize>,
        id: &str,
        kind: ApprovalKind,
        m: &Mention<'_>,
    ) -> usize {
        let action = of.map(|of| name_of(state, &self.facts[of]));
        if let Some(at) = self.known(state, id, of) {
            self.dirty_requests.insert(at);
            if let Some(of) = of.filter(|_| state.approvals[at].action.is_none()) {
                self.facts[of].approvals.push(at);
                state.approvals[at].action = action;
            }
            return at;
        }
        let at = self.requests.len();
        self.requests.push(Request { source: m.source.map(str::to_owned), ..Request::default() });
        self.request_by_id.entry(id.into()).or_default().push(at);
        self.dirty_requests.insert(at);
        if let Some(of) = of {
            self.facts[of].approvals.push(at);
            if let Some(task) = self.facts[of].slot.and_then(|slot| state.actions[slot].task.as_deref()) {
                self.of_task.entry(task.into()).or_default().push(at);
            }
        }
        state.approvals.push(Approval {
            approval: id.to_owned(),
            action,
            kind,
            status: ApprovalStatus::Asked,
            scope: None,
            grant: None,
            join: Join::Exact,
            attempt: Count(of.map_or(1, |of| self.facts[of].newest())),
            inherited: m.inherited,
            passed_over: false,
            args_digest: None,
            expires: None,
            requested: None,
            ended: None,
        });
        at
    }

    /// `approval.ended`.
    pub(super) fn answer(&mut self, state: &mut State, data: &ApprovalEnded<'_>, m: &Mention<'_>) {
        let of = data.action.as_deref().map(|action| self.mention(state, action, m));
        let kind =
            if data.outcome == ApprovalOutcome::Answered { ApprovalKind::Question } else { ApprovalKind::Permission };
        let at = match (data.approval.as_deref(), of) {
            (Some(id), _) => self.approval(state, of, id, kind, m),
            (None, Some(of)) => match self.facts[of].unanswered.first().copied() {
                Some(at) => at,
                None => self.approval(state, Some(of), m.event, kind, m),
            },
            (None, None) => self.approval(state, None, m.event, kind, m),
        };
        // Of several ends of one request the least permissive stands, in whatever order they come.
        let rank = |outcome: ApprovalOutcome| match outcome {
            ApprovalOutcome::Granted | ApprovalOutcome::Answered => 0,
            ApprovalOutcome::Expired | ApprovalOutcome::Withdrawn => 1,
            ApprovalOutcome::Denied => 2,
        };
        let request = &mut self.requests[at];
        request.events.push(Key::of(m.event));
        let approval = &mut state.approvals[at];
        approval.join = approval.join.max(data.join.unwrap_or(Join::Exact));
        if request.ended.is_none_or(|earlier| rank(data.outcome) > rank(earlier)) {
            request.ended = Some(data.outcome);
            approval.scope = data.scope;
            approval.grant = m.grant.map(str::to_owned);
            approval.ended = Some(m.reference());
        }
        self.dirty_requests.insert(at);
        if let Some(action) = &approval.action
            && let Some(of) = self.by_id.get(action.as_str())
        {
            self.dirty.insert(*of);
        }
        self.file(state, at);
    }

    /// Asks anew what is recorded, after a source was replaced or changed (R-STA-005, R-STA-009); `None` = all were.
    pub(super) fn redeclare(&mut self, state: &mut State, sources: &Sources, changed: Option<&str>) {
        self.judge_anew(state);
        let starts = sources.since(Recorded::ActionStarted, None).unwrap_or(u64::MAX);
        let kept = self.declared.split_off(&(starts, 0));
        for (since, at) in std::mem::replace(&mut self.declared, kept) {
            // A late proposal begins anew, under its own number.
            if since == self.facts[at].since
                && let Some(action) = self.facts[at].slot.and_then(|slot| state.actions.get_mut(slot))
            {
                action.starts_recorded = false;
                self.dirty.insert(at);
            }
        }
        let named: Vec<Option<String>> = match changed {
            Some(name) => vec![None, Some(name.to_owned())],
            None => {
                self.waiting.iter().map(|(source, ..)| source.clone()).collect::<BTreeSet<_>>().into_iter().collect()
            }
        };
        for source in named {
            let ends = sources.since(Recorded::ApprovalEnded, source.as_deref()).unwrap_or(u64::MAX);
            let range = (source.clone(), 0, 0)..(source, ends, 0);
            let gone: Vec<_> = self.waiting.range(range).cloned().collect();
            for place in gone {
                let at = place.2;
                self.waiting.remove(&place);
                self.requests[at].ends_recorded = false;
                self.dirty_requests.insert(at);
                let of = state.approvals[at].action.as_deref().and_then(|id| self.by_id.get(id));
                self.dirty.extend(of);
            }
        }
    }

    /// Lets the permissions of a task's actions lapse that have not begun (R-WRK-003, R-WRK-006).
    pub(super) fn withdraw(&mut self, state: &State, task: &str) {
        for at in self.of_task.remove(task).unwrap_or_default() {
            let approval = &state.approvals[at];
            let Some(of) = approval.action.as_deref().and_then(|id| self.by_id.get(id).copied()) else { continue };
            let began = self.facts[of].known_attempt(approval.attempt.0).is_some_and(Attempt::began);
            if approval.kind == ApprovalKind::Permission && !began {
                self.requests[at].withdrawn = true;
                self.dirty.insert(of);
                self.dirty_requests.insert(at);
            }
        }
    }

    /// Takes over the actions of a parent's log: what happened there has no place in this one, a fork only inherits it
    /// (R-FAM-002), and only what is recorded here as well counts as recorded.
    pub(super) fn adopt(&mut self, state: &mut State, sources: &Sources, fork: bool) {
        for (at, facts) in self.facts.iter_mut().enumerate() {
            facts.origin = Origin::default();
            self.dirty.insert(at);
            if let Some(action) = facts.slot.and_then(|slot| state.actions.get_mut(slot)) {
                action.inherited |= fork;
            }
        }
        state.approvals.iter_mut().for_each(|approval| approval.inherited |= fork);
        self.dirty_requests.extend(0..self.requests.len());
        if !fork {
            self.redeclare(state, sources, None);
        }
    }

    /// The action with this id.
    pub(super) fn known_action<'s>(&self, state: &'s State, id: &str) -> Option<&'s Action> {
        state.actions.get(self.facts[*self.by_id.get(id)?].slot?)
    }

    /// Whether an action began to act, as far as anything tells.
    pub(super) fn began(&self, id: &str) -> bool {
        self.by_id.get(id).is_some_and(|at| self.facts[*at].attempts.iter().any(Attempt::began))
    }

    /// What became of the request with this id.
    pub(super) fn request_status(&self, state: &State, id: &str) -> Option<ApprovalStatus> {
        self.request_by_id.get(id)?.last().map(|at| state.approvals[*at].status)
    }

    /// The actions of this log that may have an effect, and nothing says which.
    pub(super) fn in_doubt<'s>(&self, state: &'s State) -> impl Iterator<Item = &'s str> {
        self.doubtful.iter().filter_map(|at| self.facts[*at].slot).map(|slot| state.actions[slot].action.as_str())
    }

    /// Brings the state up to date; `answered` is the newest turn that was.
    pub(super) fn settle(&mut self, state: &mut State, answered: Option<usize>, adoptions: &Adoptions) {
        for (at, group) in &self.hanging {
            let facts = &self.facts[*at];
            let Some(action) = facts.slot.and_then(|slot| state.actions.get_mut(slot)) else { continue };
            if let Some(adopted) = adoptions.of(Some(*group), facts.since) {
                action.turn = Count(adopted.turn as u64);
            }
        }
        self.judge_anew(state);
        for at in &self.open {
            let Some(action) = self.facts[*at].slot.and_then(|slot| state.actions.get_mut(slot)) else { continue };
            let passed = !action.starts_recorded && answered.is_some_and(|turn| action.turn < Count(turn as u64));
            if action.passed_over != passed {
                action.passed_over = passed;
                self.dirty_requests.extend(&self.facts[*at].approvals);
            }
        }
        for at in std::mem::take(&mut self.dirty_requests) {
            self.settle_request(state, at);
        }
    }

    /// Judges the actions and requests that something was told of.
    pub(super) fn judge_anew(&mut self, state: &mut State) {
        for at in std::mem::take(&mut self.dirty) {
            let facts = &self.facts[at];
            let Some(slot) = facts.slot else { continue };
            let (newest, verdict) = (facts.newest(), self.judge(facts, &state.actions[slot], state));
            let action = &mut state.actions[slot];
            (action.state, action.doubt, action.applied) = verdict;
            action.told = facts.told;
            action.attempt = Count(newest);
            action.ended = facts.known_attempt(newest).and_then(|a| a.first_end.clone());
            self.dirty_requests.extend(&facts.approvals);
            if matches!(action.state, ActionState::Unknown | ActionState::Running) && !action.inherited {
                self.doubtful.insert(at);
            } else {
                self.doubtful.remove(&at);
            }
            if action.is_settled() && (action.told == Told::Result || !action.is_call()) {
                action.passed_over = false;
                self.open.remove(&at);
                self.declared.remove(&(facts.since, at));
            } else {
                self.open.insert(at);
                if action.starts_recorded {
                    self.declared.insert((facts.since, at));
                }
            }
        }
        for at in std::mem::take(&mut self.dirty_requests) {
            self.settle_request(state, at);
        }
    }

    /// The actions that are not settled and told, in the order of their first mention by any event, each with when it was
    /// proposed.
    pub(super) fn open<'s>(&'s self, state: &'s State) -> impl Iterator<Item = (&'s Action, u64)> {
        let facts = self.open.iter().map(|at| &self.facts[*at]);
        facts.filter_map(|facts| Some((&state.actions[facts.slot?], facts.since)))
    }

    /// Where each action is first told of, and whether anything but results tells of it.
    pub(super) fn origins<'s>(
        &'s self,
        state: &'s State,
    ) -> impl Iterator<Item = (&'s str, Origin, Option<&'s Action>)> {
        let mut ids: Vec<_> = self.by_id.iter().collect();
        ids.sort_unstable_by_key(|(_, at)| **at);
        ids.into_iter().map(|(id, at)| {
            let facts = &self.facts[*at];
            (&**id, facts.origin, facts.slot.map(|slot| &state.actions[slot]))
        })
    }

    /// The state of an action, from the set of its events (R-ACT-001).
    fn judge(&self, facts: &Facts, action: &Action, state: &State) -> (ActionState, Option<Doubt>, Applied) {
        let unknown = |doubt| (ActionState::Unknown, Some(doubt), Applied::Unknown);
        let newest = facts.newest();
        let harmless = action.only_reads() || action.idempotency_key.is_some();
        let unsettled = |a: &Attempt| match a.fate() {
            Fate::Ended(..) | Fate::NotApplied => false,
            Fate::Open => !a.starts.is_empty() || !action.starts_recorded,
            Fate::Doubtful(_) => true,
        };
        if !harmless && facts.attempts.iter().any(|a| a.number < newest && unsettled(a)) {
            return unknown(Doubt::EarlierAttempt);
        }
        let attempt = facts.known_attempt(newest);
        match attempt.map_or(Fate::Open, Attempt::fate) {
            Fate::Ended(Outcome::Succeeded, applied) => return (ActionState::Succeeded, None, applied),
            Fate::Ended(Outcome::Failed, applied) => return (ActionState::Failed, None, applied),
            Fate::Ended(Outcome::Cancelled, applied) => return (ActionState::Cancelled, None, applied),
            Fate::Doubtful(doubt) => return unknown(doubt),
            Fate::NotApplied | Fate::Open => {}
        }
        let of_attempt = |at: &&usize| state.approvals[**at].attempt == Count(newest);
        let requests: Vec<(usize, Option<ApprovalOutcome>)> =
            facts.approvals.iter().filter(of_attempt).map(|at| (*at, self.outcome(*at, state))).collect();
        let ended =
            |outcomes: &[ApprovalOutcome]| requests.iter().any(|(_, o)| o.is_some_and(|o| outcomes.contains(&o)));
        let lapsed = [ApprovalOutcome::Expired, ApprovalOutcome::Withdrawn];
        if facts.goes_on && newest == 1 {
            return (ActionState::Running, None, Applied::Yes);
        }
        if attempt.is_some_and(|a| !a.starts.is_empty()) {
            return (ActionState::Running, None, Applied::Unknown);
        }
        if ended(&[ApprovalOutcome::Denied]) {
            return (ActionState::Denied, None, Applied::No);
        }
        if requests.iter().any(|(at, o)| o.is_none() && self.requests[*at].ends_recorded) {
            return (ActionState::Awaiting, None, Applied::No);
        }
        if requests.iter().any(|(_, o)| o.is_none()) {
            return unknown(Doubt::Asked);
        }
        if ended(&lapsed) && self.lapses(facts, requests.iter().filter(|(_, o)| o.is_some_and(|o| lapsed.contains(&o))))
        {
            return (ActionState::Lapsed, None, Applied::No);
        }
        let sure = action.starts_recorded || action.kind == ActionKind::Question || newest > 1;
        match (sure, ended(&[ApprovalOutcome::Granted, ApprovalOutcome::Answered])) {
            (true, true) => (ActionState::Approved, None, Applied::No),
            (true, false) => (ActionState::Proposed, None, Applied::No),
            (false, true) => unknown(Doubt::Granted),
            (false, false) => unknown(Doubt::NoEnd),
        }
    }

    /// Whether one of these requests lapsed and no other request of the action names it as its cause (R-ACT-011).
    fn lapses<'r>(
        &self,
        facts: &Facts,
        mut lapsed: impl Iterator<Item = &'r (usize, Option<ApprovalOutcome>)>,
    ) -> bool {
        // Who names an event, and whether several do.
        let mut named: KeyMap<(usize, bool)> = KeyMap::default();
        for by in &facts.approvals {
            for cause in &self.requests[*by].causes {
                named.entry(*cause).and_modify(|(first, several)| *several |= first != by).or_insert((*by, false));
            }
        }
        let replaced = |at: usize| {
            let by_another = |event: &Key| named.get(event).is_some_and(|(by, several)| *by != at || *several);
            self.requests[at].events.iter().any(by_another)
        };
        lapsed.any(|(at, _)| !replaced(*at))
    }

    /// How a request ended; a fork withdraws what it inherits, and a task what lapsed with its plan.
    fn outcome(&self, at: usize, state: &State) -> Option<ApprovalOutcome> {
        match self.requests[at].ended {
            None | Some(ApprovalOutcome::Granted) if self.requests[at].withdrawn => Some(ApprovalOutcome::Withdrawn),
            None if state.approvals[at].inherited => Some(ApprovalOutcome::Withdrawn),
            ended => ended,
        }
    }

    fn settle_request(&self, state: &mut State, at: usize) {
        let outcome = self.outcome(at, state);
        let of = state.approvals[at].action.as_deref().and_then(|id| self.by_id.get(id)).map(|of| &self.facts[*of]);
        let action = of.and_then(|facts| facts.slot).map(|slot| &state.actions[slot]);
        let attempt = state.approvals[at].attempt;
        let began = of.is_some_and(|facts| {
            facts.newest() != attempt.0 || facts.known_attempt(attempt.0).is_some_and(Attempt::began)
        });
        let asks = action.is_some_and(|a| a.kind == ActionKind::Question)
            && state.approvals[at].kind == ApprovalKind::Question;
        let ended = action.filter(|a| asks && a.ended.is_some()).map(|a| a.state);
        let status = match (outcome, ended) {
            (Some(ApprovalOutcome::Granted), _) => ApprovalStatus::Granted,
            (Some(ApprovalOutcome::Denied), _) => ApprovalStatus::Denied,
            (Some(ApprovalOutcome::Answered), _) | (None, Some(ActionState::Succeeded)) => ApprovalStatus::Answered,
            (Some(ApprovalOutcome::Expired | ApprovalOutcome::Withdrawn), _) => ApprovalStatus::Lapsed,
            (None, Some(ActionState::Failed | ActionState::Cancelled)) => ApprovalStatus::Lapsed,
            (None, _) if began => ApprovalStatus::Settled,
            (None, _) if self.requests[at].ends_recorded => ApprovalStatus::Open,
            (None, _) => ApprovalStatus::Asked,
        };
        let passed_over = action.is_some_and(|a| a.passed_over);
        let approval = &mut state.approvals[at];
        (approval.status, approval.passed_over) = (status, passed_over);
    }
}
