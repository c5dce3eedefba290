//! Token counts: by response where the client writes them so, else by differences of running totals.

use palog::events::Usage;
use serde::Deserialize;

/// Token counts in the vendor's words: cached input is a part of the input, reasoning a part of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Counts {
    input_tokens: Option<u64>,
    cached_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    reasoning_output_tokens: Option<u64>,
    total_tokens: Option<u64>,
}

impl Counts {
    /// The same, as the log has it.
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            input: self.input_tokens,
            output: self.output_tokens,
            cache_read: self.cached_input_tokens,
            cache_write: self.cache_write_input_tokens,
            reasoning: self.reasoning_output_tokens,
        }
    }

    fn zip(&self, other: &Counts, f: impl Fn(u64, u64) -> u64) -> Counts {
        let each = |a: Option<u64>, b: Option<u64>| a.map(|a| f(a, b.unwrap_or(0)));
        Counts {
            input_tokens: each(self.input_tokens, other.input_tokens),
            cached_input_tokens: each(self.cached_input_tokens, other.cached_input_tokens),
            cache_write_input_tokens: each(self.cache_write_input_tokens, other.cache_write_input_tokens),
            output_tokens: each(self.output_tokens, other.output_tokens),
            reasoning_output_tokens: each(self.reasoning_output_tokens, other.reasoning_output_tokens),
            total_tokens: each(self.total_tokens, other.total_tokens),
        }
    }

    fn total(&self) -> u64 {
        self.total_tokens
            .unwrap_or_else(|| self.input_tokens.unwrap_or(0).saturating_add(self.output_tokens.unwrap_or(0)))
    }
}

/// `token_count.info`.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Info {
    pub(crate) total_token_usage: Counts,
    pub(crate) last_token_usage: Option<Counts>,
}

/// What a running total says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// These tokens are new.
    New(Counts),
    /// The total is the one that was told before.
    Again,
    /// It belongs to no response that is not counted already.
    Nothing,
}

/// The running total of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    last: Option<Counts>,
    /// Responses have counts of their own, so totals say nothing new.
    by_response: bool,
    /// The total goes on from one that is not known: what came before it is not of this session.
    goes_on: bool,
}

impl Totals {
    /// A total that goes on from `before`; `None` = from one that is not at hand.
    pub(crate) fn going_on(before: Option<Counts>) -> Self {
        Totals { last: before, by_response: false, goes_on: before.is_none() }
    }

    /// A response has counts of its own.
    pub(crate) fn response(&mut self) {
        self.by_response = true;
    }

    /// Takes in a total. `last_token_usage` is no count (it repeats, and may be an estimate): it is used only to tell where
    /// a total begins that is not the sum of what this session told before.
    pub(crate) fn take(&mut self, info: &Info) -> Counted {
        let total = info.total_token_usage;
        let before = self.last.replace(total);
        let goes_on = std::mem::take(&mut self.goes_on);
        match (before, info.last_token_usage) {
            (Some(before), _) if before == total => Counted::Again,
            _ if self.by_response => Counted::Nothing,
            (None, Some(last)) if goes_on => Counted::New(last),
            (None, _) => Counted::New(total),
            // The client began to count anew.
            (Some(before), Some(last)) if total.total() < before.total() => {
                if last == total {
                    Counted::New(total)
                } else {
                    Counted::Nothing
                }
            }
            (Some(before), None) if total.total() < before.total() => Counted::Nothing,
            (Some(before), _) => Counted::New(total.zip(&before, u64::saturating_sub)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(n: u64) -> Counts {
        Counts { input_tokens: Some(n), total_tokens: Some(n), ..Counts::default() }
    }

    fn info(total: u64, last: u64) -> Info {
        Info { total_token_usage: counts(total), last_token_usage: Some(counts(last)) }
    }

    #[test]
    fn differences_count_and_last_usage_does_not() {
        let mut totals = Totals::default();
        assert_eq!(totals.take(&info(10, 10)), Counted::New(counts(10)));
        assert_eq!(totals.take(&info(10, 99)), Counted::Again);
        assert_eq!(totals.take(&info(30, 5)), Counted::New(counts(20)));
        // After a restart of the client.
        assert_eq!(totals.take(&info(4, 4)), Counted::New(counts(4)));
        assert_eq!(totals.take(&info(3, 1)), Counted::Nothing);
        totals.response();
        assert_eq!(totals.take(&info(40, 5)), Counted::Nothing);
        assert_eq!(Totals::going_on(None).take(&info(100, 7)), Counted::New(counts(7)));
        assert_eq!(Totals::going_on(Some(counts(90))).take(&info(100, 7)), Counted::New(counts(10)));
    }
}
