//! What follows from the facts so far, and what can only be said at the end (spec 04, "What is pending").

use super::{Finding, Reducer, sources, turns};
use crate::diagnostic::{Code, Diagnostic, Place, Severity};
use crate::state::{ActionState, Count, Doubt, Pending, PendingKind, Told};

impl Reducer {
    /// Derives what follows from the facts so far.
    pub(super) fn settle(&mut self) {
        let adoptions = self.path.adoptions();
        self.conversation.settle(&adoptions);
        let answered = self.conversation.answered();
        self.actions.settle(&mut self.state, answered, &adoptions);
        self.ownership.show(&mut self.state);
        self.work.settle(&mut self.state);
        self.settle_family();
        let state = &mut self.state;
        state.unseen = sources::unseen(state);
        let summary = self.summaries.iter().rfind(|(about, _)| about.is_none_or(|about| self.path.has(&about)));
        state.title = self.title.clone().or_else(|| summary.map(|(_, title)| title.clone()));
        state.head = self.path.head().map(str::to_owned);
        state.latest_time = self.latest.as_ref().map(|t| t.as_str().to_owned());
        state.counts.prompts = Count(self.prompts + self.inputs.typed_only(state));
        state.counts.responses = Count(self.conversation.own_responses);
        state.counts.children = Count(state.children.len() as u64);
        state.usage = self.conversation.totals();
        state.turns.count = Count(self.conversation.current() as u64);
        state.turns.open = self.conversation.is_open();
        state.turns.answered = answered.map(|turn| Count(turn as u64));
        self.state.pending = self.pending();
    }

    /// What has to be answered, delivered or gone on with (R-TRN-006 to R-TRN-009).
    fn pending(&self) -> Vec<Pending> {
        let mut pending = Vec::new();
        let mut unresolved: Vec<Count> = Vec::new();
        for (action, since) in self.actions.open(&self.state).filter(|(a, _)| !a.inherited && !a.passed_over) {
            let reads_only = matches!(action.state, ActionState::Unknown | ActionState::Running) && action.only_reads();
            let undelivered = action.is_settled() && action.told == Told::Nothing;
            if !action.is_settled() && !reads_only && action.doubt != Some(Doubt::Accepted) {
                unresolved.push(action.turn);
            }
            let (Some(turn), Some(proposed)) = (usize::try_from(action.turn.0).ok(), &action.proposed) else {
                continue;
            };
            if undelivered && !self.conversation.is_interrupted(turn, since) {
                pending.push(Pending {
                    kind: PendingKind::Result,
                    event: action.ended.as_ref().unwrap_or(proposed).event.clone(),
                    action: Some(action.action.clone()),
                    input: None,
                    turn: action.turn,
                });
            }
        }
        for (event, turn) in self.conversation.lost_calls() {
            let turn = Count(turn as u64);
            unresolved.push(turn);
            pending.push(Pending { kind: PendingKind::Call, event: event.to_owned(), action: None, input: None, turn });
        }
        let of = |kind, waiting: &turns::Waiting| Pending {
            kind,
            event: waiting.event.to_string(),
            action: None,
            input: None,
            turn: Count(waiting.turn as u64),
        };
        pending.extend(self.conversation.pending_results().map(|result| of(PendingKind::Result, result)));
        let goes_on = |turn: Count, pending: &[Pending]| {
            unresolved.contains(&turn) || pending.iter().any(|p| p.kind == PendingKind::Result && p.turn == turn)
        };
        let prompts: Vec<Pending> = self
            .conversation
            .pending_prompts()
            .filter(|(prompt, begun)| !(*begun && goes_on(Count(prompt.turn as u64), &pending)))
            .map(|(prompt, _)| of(PendingKind::Prompt, prompt))
            .collect();
        pending.extend(prompts);
        let newest = Count(self.conversation.current() as u64);
        pending.extend(self.state.inputs.iter().filter(|input| input.pending).filter_map(|input| {
            let event = input.queued.as_ref()?.event.clone();
            Some(Pending {
                kind: PendingKind::QueuedInput,
                event,
                action: None,
                input: Some(input.input.clone()),
                turn: newest,
            })
        }));
        pending
    }

    /// What can only be said at the end: what is missing, lost or still waiting.
    pub(super) fn report_the_end(&mut self) {
        let mut found = Vec::new();
        let warning =
            |code, place, rule, why: String| Diagnostic::new(code, Severity::Warning, place).rule(rule).because(why);
        for (id, origin, action) in self.actions.origins(&self.state) {
            let place = Place { call: Some(id.to_owned()), ..self.place_of(origin) };
            match action {
                None => {
                    let why = format!("the model was told of {id}, which the log does not propose");
                    found.push(warning(Code::OrphanResult, place, "R-ACT-015", why));
                }
                Some(action) if action.proposed.is_none() => {
                    let why = format!("{id} was never proposed");
                    found.push(warning(Code::UnproposedAction, place, "R-ACT-015", why));
                }
                Some(action) => {
                    let silent = matches!(action.doubt, Some(Doubt::NoEnd | Doubt::Asked | Doubt::Granted));
                    if silent && action.told == Told::Nothing && !action.inherited {
                        let name = action.name.as_deref().unwrap_or_default();
                        let why = format!("nothing says what became of {id} ({name})");
                        let code = if action.passed_over { Code::ResultLost } else { Code::CallWithoutResult };
                        found.push(warning(code, place, "R-ACT-013", why));
                    }
                }
            }
        }
        for (key, parent, child, origin) in &self.missing {
            if self.path.awaits(key) {
                let record = Some(child.clone());
                let place = Place { record, names: Some(parent.clone()), ..self.place_of(*origin) };
                let why = "the order of the log is followed there".into();
                found.push(warning(Code::MissingParent, place, "R-ENV-009", why));
            }
        }
        for (input, origin) in self.state.inputs.iter().zip(self.inputs.origins()) {
            let place = Place { record: input.queued.as_ref().map(|q| q.event.clone()), ..self.place_of(origin) };
            if input.queued.is_none() {
                let why = format!("the input {:?} ends and was never queued", input.input);
                found.push(warning(Code::UnknownInput, place, "R-TRN-009", why));
            } else if input.pending {
                let why = format!("the input {:?} waits to be given to the model", input.input);
                found.push(Diagnostic::new(Code::QueuedPrompt, Severity::Info, place).rule("R-TRN-009").because(why));
            }
        }
        for Finding { code, severity, rule, why } in self.report_family() {
            found.push(Diagnostic::new(code, severity, Place::default()).rule(rule).because(why));
        }
        found.into_iter().for_each(|d| self.diagnostics.push(d));
    }
}
