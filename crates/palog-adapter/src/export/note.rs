//! The words that stand in place of a result that the log does not hold.
//!
//! They must not be taken for what a tool said, nor for leave to run the call again: each says who speaks, what is known, and
//! what to do first.

use palog::events::{ApprovalOutcome, Outcome};
use palog::project::Fate;
use palog::state::{Action, ActionState};

/// The note for a call without a result, by what is known of it.
#[must_use]
pub fn note(action: Option<&Action>, fate: Fate) -> String {
    let (known, next) = match action.map(|action| action.state) {
        Some(ActionState::Denied) => ("It was refused and did not run.", DENIED),
        Some(ActionState::Awaiting) => (WAITING, ASK),
        Some(ActionState::Lapsed) => ("Leave was asked for and was never given; it did not run.", ASK),
        Some(ActionState::Proposed | ActionState::Approved) => ("It is recorded as not started.", ASK),
        Some(ActionState::Succeeded) => ("It is recorded as done, and its output was not recorded as a result.", DONE),
        Some(ActionState::Failed) => ("It is recorded as failed, and its output was not recorded as a result.", DONE),
        Some(ActionState::Cancelled) => ("It is recorded as stopped; a part of it may have been done.", FIND_OUT),
        Some(ActionState::Running) => ("It was started. Whether it finished is not known.", FIND_OUT),
        _ if fate.asked || fate.approval == Some(ApprovalOutcome::Granted) => {
            ("Leave was asked for. Whether it then ran is not known.", FIND_OUT)
        }
        _ if matches!(fate.ended, Some((Outcome::Cancelled, _))) => {
            ("It was stopped. What it had done by then is not known.", FIND_OUT)
        }
        _ => ("Whether it ran, and what it did, is not known.", FIND_OUT),
    };
    format!(
        "[No result. This is a note of the program that moved this session, not output of the tool and not a message of the \
         user.] The record of this session holds no result of this call. {known} {next}"
    )
}

const WAITING: &str = "It was waiting for an answer of the user, and no answer is recorded.";
const ASK: &str = "This note gives no leave to run it: ask the user before anything of it is done.";
const DENIED: &str = "This note gives no leave to run it.";
const DONE: &str = "Do not run it again to get its output.";
const FIND_OUT: &str =
    "Do not run it again on the strength of this note: first find out what state it left behind, or ask the user.";
