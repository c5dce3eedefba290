//! Sentences of the client: rows of the role `user` that no person wrote, and what it leaves in place of an answer.

use crate::record::{Content, Record};

/// What a row of the role `user` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// A person's words, or those of the calling program.
    Prompt,
    /// A person's words while the model was at work.
    Steer,
    /// A message of a group that was not meant for the agent.
    Observed,
    /// News of the client that the model answers.
    Notification,
    /// What the client reminds the model of.
    Reminder,
    /// The summary of a compaction.
    Summary,
}

/// How a summary begins. The first one stands in front of a message that the summary was put into.
const SUMMARIES: [&str; 3] = ["[PRIOR CONTEXT — ", "[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:"];
/// How the line begins that ends a summary.
const SUMMARY_END: &str = "--- END OF CONTEXT SUMMARY";
/// How news of a delegation begins; the id of the delegation follows.
const DELEGATION: &str = "[ASYNC DELEGATION ";
/// How news of background processes begins.
const PROCESS: &str = "[IMPORTANT: Background process ";
/// How notes of the client begin. A person's words may stand behind them.
const NOTES: [&str; 2] = ["[System note: ", "[System: "];
const TASK_LIST: &str = "[Your active task list was preserved across context compression]";
const OUT_OF_BAND: &str = "[OUT-OF-BAND USER MESSAGE";
/// What the client writes in place of an answer that was broken off.
const INTERRUPTED: &str = "Operation interrupted";
/// How newer clients mark news in a column.
const NEWS: [&str; 2] = ["async_delegation_complete", "internal_notification"];

/// Tells what a row of the role `user` is.
pub(crate) fn user(record: &Record) -> User {
    let content = record.content();
    let text = content.text();
    let says = |openings: &[&str]| openings.iter().any(|opening| text.starts_with(opening));
    if is_summary(record, &content) {
        return if words_behind(text).is_some() { User::Prompt } else { User::Summary };
    }
    let is_news = record.word("display_kind").is_some_and(|kind| NEWS.contains(&&*kind));
    if is_news || says(&[DELEGATION, PROCESS]) {
        User::Notification
    } else if says(&[TASK_LIST]) {
        User::Reminder
    } else if says(&NOTES) {
        // A note ends with a bracket; what follows is the message that it was put in front of.
        let behind = text.split_once("]\n").map_or("", |(_, behind)| behind.trim());
        if behind.is_empty() { User::Reminder } else { User::Prompt }
    } else if says(&[OUT_OF_BAND]) {
        User::Steer
    } else if record.flag("observed", false) {
        User::Observed
    } else {
        User::Prompt
    }
}

/// Whether a row holds the summary of a compaction.
pub(crate) fn is_summary(record: &Record, content: &Content<'_>) -> bool {
    record.flag("_compressed_summary", false) || SUMMARIES.iter().any(|opening| content.text().starts_with(opening))
}

/// The message that a summary was put in front of.
pub(crate) fn words_behind(summary: &str) -> Option<&str> {
    let (_, end) = summary.split_once(SUMMARY_END)?;
    let (_, behind) = end.split_once('\n')?;
    Some(behind.trim_start_matches('\n')).filter(|behind| !behind.trim().is_empty())
}

/// The delegation that a row of the role `user` brings the result of, and whether all of its tasks were completed.
pub(crate) fn delegation(text: &str) -> Option<(&str, bool)> {
    let head = text.strip_prefix(DELEGATION)?.split_once(']')?.0;
    let (news, id) = head.split_once("COMPLETE — ")?;
    let statuses = text.split("(status=").skip(1);
    let completed = statuses.map(|status| status.starts_with("completed")).collect::<Vec<_>>();
    (news.is_empty() || news == "BATCH ").then(|| (id.trim(), !completed.is_empty() && completed.iter().all(|c| *c)))
}

/// Whether the client wrote this in place of an answer that a person broke off.
pub(crate) fn is_interruption(text: &str) -> bool {
    text.starts_with(INTERRUPTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> User {
        let object = serde_json::json!({ "content": text }).to_string();
        user(&Record::exported("message", "1".into(), &object).expect("an object"))
    }

    #[test]
    fn rows_that_no_person_wrote() {
        for (text, want) in [
            ("Say hello.", User::Prompt),
            ("[notes.txt] is missing", User::Prompt),
            ("[PRIOR CONTEXT — for reference only; not a new message]\nearlier work", User::Summary),
            ("[CONTEXT COMPACTION — REFERENCE ONLY] x\n--- END OF CONTEXT SUMMARY — respond ---", User::Summary),
            (
                "[CONTEXT COMPACTION — REFERENCE ONLY] x\n--- END OF CONTEXT SUMMARY — respond ---\n\nGo on.",
                User::Prompt,
            ),
            ("[ASYNC DELEGATION BATCH COMPLETE — deleg_1]\nA background", User::Notification),
            ("[IMPORTANT: Background process proc_1 completed (exit code 0).", User::Notification),
            ("[System note: Your previous turn was interrupted.]", User::Reminder),
            ("[System note: Your previous turn was interrupted.]\n\nGo on.", User::Prompt),
            ("[OUT-OF-BAND USER MESSAGE — a direct message from the user]\nStop.", User::Steer),
        ] {
            assert_eq!(kind(text), want, "{text}");
        }
    }

    #[test]
    fn news_of_a_delegation_name_it() {
        let done =
            "[ASYNC DELEGATION BATCH COMPLETE — deleg_1]\n--- ✓ TASK 1/1: x  (status=completed, api_calls=2) ---";
        assert_eq!(delegation(done), Some(("deleg_1", true)));
        assert_eq!(delegation(&done.replace("=completed", "=error")), Some(("deleg_1", false)));
        assert_eq!(delegation("[ASYNC DELEGATION TASK FAILED — deleg_1, task 2/3]"), None);
        assert_eq!(delegation("Say hello."), None);
    }
}
