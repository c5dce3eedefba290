//! Token counts. The client counts by session, model and task, and never by response: the sum of what the session's own turns
//! took stands with its last response.

use palog::envelope::{ActorKind, SrcHow};
use palog::events::{ModelResponse, Usage};
use palog::json::Raw;

use crate::conversation::{Conversation, Written};
use crate::record::Record;

/// The counters of a session, or of a row of `session_model_usage`.
const COUNTERS: [&str; 5] =
    ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens"];

/// The columns that tell what it cost.
const COSTS: [&str; 4] = ["estimated_cost_usd", "actual_cost_usd", "cost_status", "cost_source"];

/// Tells of the counts. `session` is the session's row, `by_model` its rows of `session_model_usage`.
pub(crate) fn tell(out: &mut Conversation, session: &Record, by_model: &[Record]) -> Written {
    // Calls for other ends (pictures, summaries) have a task, and count apart.
    let (own, other): (Vec<&Record>, Vec<&Record>) =
        by_model.iter().partition(|row| row.text("task").is_none_or(|task| task.is_empty()));
    for row in other {
        out.keep(row)?;
    }
    let rows: Vec<&Record> = if own.is_empty() { vec![session] } else { own };
    let counted =
        |row: &&Record| COUNTERS.iter().chain(&["api_call_count"]).any(|name| row.integer(name).is_some_and(|n| n > 0));
    if by_model.is_empty() && !rows.iter().any(counted) {
        return Ok(());
    }
    let sum = |name: &str| {
        rows.iter()
            .filter_map(|row| row.integer(name))
            .filter_map(|n| u64::try_from(n).ok())
            .reduce(u64::saturating_add)
    };
    let [input, output, cache_read, cache_write, reasoning] = COUNTERS.map(sum);
    let mut models: Vec<String> =
        rows.iter().filter_map(|row| row.word("model")).map(|model| model.into_owned()).collect();
    models.dedup();
    let cost: serde_json::Map<String, serde_json::Value> = COSTS
        .iter()
        .filter_map(|name| {
            let text = session.word(name).map(|word| word.into_owned().into());
            Some(((*name).to_owned(), text.or_else(|| session.real(name).map(Into::into))?))
        })
        .collect();
    let (response, stop) = out.response.clone().unwrap_or_else(|| ("usage".to_owned(), None));
    let known = ModelResponse {
        response: response.into(),
        model: if let [model] = models.as_slice() { Some(model.clone().into()) } else { None },
        request: None,
        usage: Some(Usage { input, output, cache_read, cache_write, reasoning }),
        cost: (!cost.is_empty()).then(|| Raw::of(&cost)),
        stop: stop.map(Into::into),
        error: None,
    };
    let (first, more) = (rows[0], &rows[1..]);
    // A sum over many responses has no time.
    let mut here = out.here(first, "");
    if std::ptr::eq(first, session) {
        // The session's row made its first event already.
        here = here.after(1);
    }
    out.emit_of(&mut here, more, ActorKind::Model, known, Some(SrcHow::Synthesized)).map(drop)
}
