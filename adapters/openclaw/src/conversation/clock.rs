//! The times of entries: which one counts, and what is odd about them.

use super::*;

use crate::times::{Reading, Spelling, gap, read};

/// A step of more than this is a jump.
const JUMP: i64 = 3_600_000;
/// A step back of less than this is two writers of one moment.
const SKEW: i64 = 1_000;

/// The times of a source so far.
#[derive(Debug, Default)]
pub(super) struct Clock {
    newest: Option<Time<'static>>,
    descending: bool,
    /// The newest record, if it came with a jump that nothing bears out yet.
    jump: Option<(Place, i64)>,
}

impl Conversation {
    /// The time of an entry: its own, else that of its message. Reports spellings that are odd, and times that run
    /// backwards.
    pub(super) fn time_of(&mut self, here: &Here<'_>, entry: &Entry<'_>) -> Option<Time<'static>> {
        let message = entry.message.as_ref().and_then(|m| m.timestamp.as_ref());
        let own = entry.timestamp.as_ref().map(|raw| (raw, read(raw)));
        let inner = message.map(|raw| (raw, read(raw)));
        for (raw, reading) in own.iter().chain(&inner) {
            let is_own = own.as_ref().is_some_and(|(own, _)| std::ptr::eq(*own, *raw));
            let token = raw.get();
            let (code, piece, severity) = match (reading.spelling, is_own) {
                (Spelling::Text, _) | (Spelling::Milliseconds, false) => continue,
                (Spelling::Naive, _) => (Code::NaiveTime, token.trim_matches('"'), Severity::Warning),
                (Spelling::Seconds | Spelling::Milliseconds, _) => (Code::MixedTimes, token, Severity::Info),
                (Spelling::Odd, _) => (Code::BadTime, token, Severity::Warning),
            };
            let mut place = self.place_of(here, piece);
            place.pointer = Some(if is_own { "/timestamp" } else { "/message/timestamp" }.into());
            self.out.log.diagnostics.push(Diagnostic::new(code, severity, place));
        }
        let time = [own, inner].into_iter().flatten().find_map(|(_, Reading { time, .. })| time);
        match &time {
            None if entry.timestamp.is_none() => self.report(here, Code::TimeMissing, Severity::Info),
            None => {}
            Some(time) if !self.is_before_fork(time) => self.tick(here, time),
            Some(_) => {}
        }
        time
    }

    /// Copies in a fork have times of their own.
    fn is_before_fork(&self, time: &Time<'_>) -> bool {
        self.forked.as_ref().is_some_and(|forked| time < forked)
    }

    fn tick(&mut self, here: &Here<'_>, time: &Time<'_>) {
        let step = self.clock.newest.as_ref().and_then(|newest| gap(newest, time)).unwrap_or(0);
        if let Some((place, by)) = self.clock.jump.take()
            && step < -JUMP
        {
            self.jumped(place, by);
        }
        if step < 0 {
            if !std::mem::replace(&mut self.clock.descending, true) {
                let severity = if step <= -SKEW { Severity::Warning } else { Severity::Info };
                self.report(here, Code::TimeBackwards, severity);
            }
            // What was taken back does not count.
            if step < -JUMP {
                self.clock.newest = Some(time.clone().into_owned());
            }
            return;
        }
        self.clock.descending = false;
        self.clock.jump = (step > JUMP).then(|| (self.place(here), step));
        self.clock.newest = Some(time.clone().into_owned());
    }

    fn jumped(&mut self, place: Place, by: i64) {
        let place = Place { detail: Some(format!("about {} h", (by + JUMP / 2) / JUMP)), ..place };
        self.out.warn(Code::TimeJump, place);
    }

    /// A jump at the end stands alone.
    pub(super) fn end_of_time(&mut self) {
        if let Some((place, by)) = self.clock.jump.take() {
            self.jumped(place, by);
        }
    }
}
