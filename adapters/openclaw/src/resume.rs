//! What the clients do when a session is taken up again, as pi 0.73.1 and OpenClaw 2026.9.6 were seen to do in their requests
//! to the model.

use palog_adapter::resume::{Resume, is_safe_word};

/// What becomes of a session of OpenClaw that is taken up again.
#[must_use]
pub fn resume(session: Option<&str>, _directory: Option<&str>) -> Resume {
    Resume {
        command: session
            .filter(|s| is_safe_word(s))
            .map(|session| format!("openclaw agent --session-id {session} -m \"…\"")),
        open_call: "OpenClaw tells the model of a missing result, or drops the call after a restart of the gateway: say what became of it.",
        open_question: "A restart of the gateway cancels every open request by itself, and asks for none of them again.",
        open_prompt: "The gateway goes on by itself after a restart; without one, say that it should answer.",
    }
}

/// What becomes of a session of pi that is taken up again.
#[must_use]
pub fn resume_pi(session: Option<&str>, directory: Option<&str>) -> Resume {
    let words = session.filter(|s| is_safe_word(s)).zip(directory.filter(|d| is_safe_word(d)));
    Resume {
        command: words.map(|(session, directory)| format!("cd {directory} && pi --session {session}")),
        open_call: "pi tells the model \"No result provided\" for every call without a result, also for one that ran: say what became of it.",
        open_question: "pi asks nobody for leave.",
        open_prompt: "pi does not send the prompt again by itself: say that it should answer.",
    }
}
