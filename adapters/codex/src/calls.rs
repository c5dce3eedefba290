//! The calls of one rollout: their names, what became of them, and whether the model was told.
//!
//! An id can be used again. What a record says of it is then said of the use that the record's turn tells, or of the only one
//! that is still open; where that leaves several, it is said of none.

use std::collections::{BTreeMap, HashMap, HashSet};

use palog::diagnostic::Place;
use palog_adapter::Span;

/// One use of a call id.
#[derive(Debug)]
pub(crate) struct Call {
    /// Name of the tool; `None` where the call itself was not read.
    pub(crate) name: Option<Box<str>>,
    /// Its namespace, where the item has one.
    pub(crate) namespace: Option<Box<str>>,
    /// The client's turn.
    turn: Option<Box<str>>,
    /// How often the id had been used.
    number: u32,
    /// How many prompts had come.
    prompts: u32,
    /// The model was given something.
    told: bool,
    /// A record said how it ended, or that it was refused.
    pub(crate) ended: bool,
    /// The call was copied from another session.
    copied: bool,
    span: Span,
}

/// The uses of one id.
#[derive(Debug, Default)]
struct Uses {
    all: Vec<Call>,
    /// How many of them have not ended, and of how many the model was not told.
    running: usize,
    untold: usize,
    /// Once there are several: how many there are in each turn, and the last of these.
    turns: BTreeMap<Box<str>, (usize, usize)>,
}

impl Uses {
    fn add(&mut self, call: Call) {
        let mut count = |at: usize, call: &Call| {
            if let Some(turn) = &call.turn {
                let (uses, last) = self.turns.entry(turn.clone()).or_default();
                (*uses, *last) = (*uses + 1, at);
            }
        };
        if let [first] = self.all.as_slice() {
            count(0, first);
        }
        if !self.all.is_empty() {
            count(self.all.len(), &call);
        }
        self.running += usize::from(!call.ended);
        self.untold += usize::from(!call.told);
        self.all.push(call);
    }

    /// The use that a record of `turn` is about. `open` says how many can still be meant.
    fn meant(&self, turn: Option<&str>, open: usize, is_open: impl Fn(&Call) -> bool) -> Option<usize> {
        let newest = self.all.len().checked_sub(1)?;
        match turn.map(|turn| self.turns.get(turn)) {
            _ if newest == 0 => Some(newest),
            Some(Some((1, only))) => Some(*only),
            // No use is of this turn, and others are of known ones.
            Some(None) if !self.turns.is_empty() => None,
            _ => (open == 0 || open == 1 && is_open(&self.all[newest])).then_some(newest),
        }
    }
}

/// All calls, by the vendor's ids.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    by_id: HashMap<String, Uses>,
    /// Names of actions that end like those of ids that were used again.
    numbered: HashSet<String>,
    prompts: u32,
    /// The newest prompt with a message of the model behind it.
    spoken: u32,
}

/// The call that an output is about.
#[derive(Debug)]
pub(crate) struct Told<'c> {
    pub(crate) call: &'c Call,
    pub(crate) action: String,
    /// Which use of the id it is.
    pub(crate) at: usize,
    /// No other use of the id can be meant.
    pub(crate) sure: bool,
}

/// The call that an end is about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The call of this action.
    Action(String),
    /// An id that several calls have, and nothing tells which of them is meant.
    Several,
    /// A call that this cannot be the end of.
    Unfit,
    /// An id that no call has.
    Nobody,
}

/// The action that a use of a call id stands for: the id, and `#2`, `#3` … behind it when it is used again.
fn action(id: &str, number: u32) -> String {
    if number == 1 { id.to_owned() } else { format!("{id}#{number}") }
}

/// Whether an id looks like the action of one that was used again.
fn is_numbered(id: &str) -> bool {
    id.rsplit_once('#').is_some_and(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

impl Calls {
    /// Takes a call in and returns its action.
    pub(crate) fn propose(
        &mut self,
        id: &str,
        name: &str,
        namespace: Option<&str>,
        turn: Option<&str>,
        copied: bool,
        span: Span,
    ) -> String {
        let call = Call {
            name: Some(name.into()),
            namespace: namespace.map(Into::into),
            turn: turn.map(Into::into),
            number: 1,
            prompts: self.prompts,
            told: false,
            ended: false,
            copied,
            span,
        };
        self.take(id, call)
    }

    /// Takes in that there was a call, of which only what came of it was read: a later use of the id is another call.
    pub(crate) fn suppose(&mut self, id: &str, turn: Option<&str>, copied: bool, span: Span) -> String {
        let call = Call {
            name: None,
            namespace: None,
            turn: turn.map(Into::into),
            number: 1,
            prompts: self.prompts,
            told: true,
            ended: true,
            copied,
            span,
        };
        self.take(id, call)
    }

    fn take(&mut self, id: &str, mut call: Call) -> String {
        let uses = self.by_id.entry(id.to_owned()).or_default();
        call.number = uses.all.last().map_or(1, |call| call.number + 1);
        let mut name = action(id, call.number);
        // Another id may look like this one used again.
        while is_numbered(&name) && !self.numbered.insert(name.clone()) {
            call.number += 1;
            name = action(id, call.number);
        }
        uses.add(call);
        name
    }

    /// The call that an end is about, which has ended then. `fits` says whether it can be the end of a call; that of
    /// another turn it cannot be.
    pub(crate) fn end(&mut self, id: &str, turn: Option<&str>, fits: impl Fn(&Call) -> bool) -> Ended {
        let Some(uses) = self.by_id.get_mut(id) else { return Ended::Nobody };
        let is_of = |call: &Call| turn.is_none_or(|turn| call.turn.as_deref().is_none_or(|own| own == turn));
        match uses.meant(turn, uses.running, |call| !call.ended) {
            Some(at) if !fits(&uses.all[at]) || !is_of(&uses.all[at]) => Ended::Unfit,
            Some(at) => {
                uses.running -= usize::from(!std::mem::replace(&mut uses.all[at].ended, true));
                Ended::Action(action(id, uses.all[at].number))
            }
            None => Ended::Several,
        }
    }

    /// The call that an output is about. Of several it is taken to be the newest one.
    pub(crate) fn output(&self, id: &str, turn: Option<&str>) -> Option<Told<'_>> {
        let uses = self.by_id.get(id)?;
        let meant = uses.meant(turn, uses.untold, |call| !call.told);
        let at = meant.unwrap_or(uses.all.len() - 1);
        let call = &uses.all[at];
        Some(Told { call, action: action(id, call.number), at, sure: meant.is_some() })
    }

    /// The model was told of a use of an id, and with it, if `ended`, of its end.
    pub(crate) fn told(&mut self, id: &str, at: usize, ended: bool) {
        let Some(uses) = self.by_id.get_mut(id) else { return };
        let call = &mut uses.all[at];
        uses.untold -= usize::from(!std::mem::replace(&mut call.told, true));
        if ended {
            uses.running -= usize::from(!std::mem::replace(&mut call.ended, true));
        }
    }

    /// The action of the newest call with this id.
    pub(crate) fn action(&self, id: &str) -> Option<String> {
        self.by_id.get(id)?.all.last().map(|call| action(id, call.number))
    }

    /// The name of the newest call with this id.
    pub(crate) fn name(&self, id: &str) -> Option<&str> {
        self.by_id.get(id)?.all.last()?.name.as_deref()
    }

    /// A prompt came.
    pub(crate) fn prompted(&mut self) {
        self.prompts += 1;
    }

    /// The model said something.
    pub(crate) fn spoke(&mut self) {
        self.spoken = self.prompts;
    }

    /// Calls of which nothing is known but that they were made, in the order of the source: id, place, and whether the
    /// model went on in a later turn.
    pub(crate) fn silent(&self, input: &str) -> Vec<(Place, bool)> {
        let calls = self.by_id.iter().flat_map(|(id, uses)| uses.all.iter().map(move |call| (id, call)));
        let mut silent: Vec<(&String, &Call)> = calls.filter(|(_, c)| !c.told && !c.ended && !c.copied).collect();
        silent.sort_by_key(|(_, c)| c.span.at);
        let place = |id: &String, c: &Call| Place {
            input: Some(input.to_owned()),
            line: Some(c.span.line),
            offset: Some(c.span.at),
            length: Some(c.span.len),
            call: Some(id.clone()),
            ..Place::default()
        };
        silent.into_iter().map(|(id, c)| (place(id, c), self.spoken > c.prompts)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span { at: 0, len: 1, line: 1 };

    fn propose(calls: &mut Calls, id: &str, turn: Option<&str>) -> String {
        calls.propose(id, "exec_command", None, turn, false, SPAN)
    }

    fn end(calls: &mut Calls, id: &str, turn: Option<&str>) -> String {
        match calls.end(id, turn, |_| true) {
            Ended::Action(action) => action,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn an_end_is_that_of_the_use_that_is_meant() {
        let mut calls = Calls::default();
        assert_eq!(end(&mut calls, "c", None), "Nobody");
        assert_eq!(propose(&mut calls, "c", Some("t1")), "c");
        assert_eq!(end(&mut calls, "c", Some("t9")), "Unfit", "it is that of another turn");
        assert_eq!(calls.end("c", None, |_| false), Ended::Unfit);
        assert_eq!(propose(&mut calls, "c", Some("t2")), "c#2");
        // Without a turn either could be meant; with one that no use has, none.
        assert_eq!([None, Some("t9")].map(|turn| end(&mut calls, "c", turn)), ["Several", "Several"]);
        assert_eq!(end(&mut calls, "c", Some("t1")), "c");
        assert_eq!(end(&mut calls, "c", Some("t1")), "c", "told again, it is the end of the same use");
        assert_eq!(end(&mut calls, "c", None), "c#2");
        propose(&mut calls, "c", Some("t2"));
        assert_eq!(end(&mut calls, "c", Some("t2")), "c#3");
        for _ in 0..2 {
            propose(&mut calls, "c", Some("t2"));
        }
        assert_eq!(end(&mut calls, "c", Some("t2")), "Several");
    }

    #[test]
    fn an_output_of_one_of_several_ends_none() {
        let mut calls = Calls::default();
        for _ in 0..2 {
            propose(&mut calls, "c", None);
        }
        let told = calls.output("c", None).expect("a call");
        assert_eq!((told.action.as_str(), told.sure), ("c#2", false));
        calls.told("c", 1, false);
        let told = calls.output("c", None).expect("a call");
        assert!(!told.sure, "{told:?}");
    }

    #[test]
    fn what_came_of_a_lost_call_is_not_said_of_the_next_one() {
        let mut calls = Calls::default();
        assert_eq!(calls.suppose("c", Some("t1"), false, SPAN), "c");
        assert_eq!(propose(&mut calls, "c", Some("t2")), "c#2");
        assert_eq!(end(&mut calls, "c", Some("t1")), "c");
        assert_eq!(calls.silent("-").len(), 1);
    }

    #[test]
    fn no_two_calls_have_one_name() {
        let mut calls = Calls::default();
        let names: Vec<String> =
            ["c", "c", "c#2", "c#2", "d#2", "d", "d", "d#2"].map(|id| propose(&mut calls, id, None)).into();
        assert_eq!(names, ["c", "c#2", "c#2#2", "c#2#3", "d#2", "d", "d#3", "d#2#2"]);
        let mut sorted = names.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), names.len());
    }
}
