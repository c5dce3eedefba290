//! What is known of the client's own tools: what they can do, and what their results say (`spec/sources/claude-code.md`,
//! "Tools" and "Results").

use palog::events::{ActionKind, Applied, EffectClass, Outcome};

/// What a tool of the client can do; `None` for tools that are not the client's own (R-EVT-005).
pub(crate) fn effect(name: &str) -> Option<EffectClass> {
    Some(match name {
        "Read" | "Glob" | "Grep" | "LS" | "NotebookRead" | "BashOutput" | "TaskOutput" => EffectClass::ReadLocal,
        "WebFetch" | "WebSearch" => EffectClass::ReadRemote,
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => EffectClass::WriteLocal,
        "TodoRead" | "TodoWrite" | "TaskCreate" | "TaskGet" | "TaskList" | "TaskUpdate" | "ToolSearch"
        | "AskUserQuestion" | "EnterPlanMode" | "ExitPlanMode" => EffectClass::Pure,
        _ => return None,
    })
}

/// What a call of the tool is, apart from a tool call.
pub(crate) fn kind(name: &str) -> Option<ActionKind> {
    match name {
        "AskUserQuestion" | "ExitPlanMode" => Some(ActionKind::Question),
        "Agent" | "Task" => Some(ActionKind::Spawn),
        _ => None,
    }
}

/// Whether a result comes from a server of somebody else, which can write anything into it.
fn is_foreign(name: &str) -> bool {
    effect(name).is_none() && kind(name).is_none() && name != "Bash"
}

/// What a result says of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It ended.
    Ended(Outcome, Applied),
    /// It goes on in the background.
    Background,
    /// A person refused it.
    DeniedByUser,
    /// A rule refused it.
    DeniedByPolicy,
    /// A person refused it or stopped it while it ran: the next record tells.
    RefusedOrInterrupted,
    /// Nothing can be said.
    Open,
}

/// The constants of the client (R-EVT-007). Each stands at the beginning of a place that a tool's own output cannot reach: a Bash
/// command's output follows `Exit code N`, and the structured result of an error is the client's.
const REJECTED: &str = "User rejected tool use";
const DECLINED: &str = "Error: The user doesn't want to proceed with this tool use. The tool use was rejected";
const THE_USER_SAID: &str = "the user said:";
const EXIT_CODE: &str = "Exit code ";
const NOT_DISPATCHED: &str = "<tool_use_error>";
const NO_PERMISSION: &str = "Permission to use ";
const DENIED: &str = " has been denied.";
const BLOCKED: &str = "' was blocked. For security, Claude Code may only ";

/// What is known of a result, apart from its text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts<'a> {
    /// The result is marked as an error.
    pub(crate) is_error: bool,
    /// The structured result is a background task or a launched agent.
    pub(crate) background: bool,
    /// The structured result says that the command was interrupted.
    pub(crate) interrupted: bool,
    /// The structured result, where it is a string.
    pub(crate) structured: Option<&'a str>,
    /// Kind of denial, in newer logs.
    pub(crate) denial: Option<&'a str>,
}

/// Reads a result of the tool `name` with the text `told`.
pub(crate) fn verdict(name: Option<&str>, told: &str, facts: Facts<'_>) -> Verdict {
    use Verdict::{Background, DeniedByPolicy, DeniedByUser, Ended, Open, RefusedOrInterrupted};
    match facts.denial {
        Some("interrupted" | "cancelled") => return Open,
        Some(kind) if kind.starts_with("user") => return DeniedByUser,
        Some(_) => return DeniedByPolicy,
        None => {}
    }
    if facts.background {
        return Background;
    }
    if !facts.is_error {
        return if facts.interrupted {
            Ended(Outcome::Cancelled, Applied::Partial)
        } else {
            Ended(Outcome::Succeeded, Applied::Yes)
        };
    }
    // A call that is not in the log may be anybody's.
    let Some(name) = name else { return Ended(Outcome::Failed, Applied::Unknown) };
    let structured = facts.structured.unwrap_or_default();
    if structured == REJECTED {
        return RefusedOrInterrupted;
    }
    if is_foreign(name) && effect(name).is_none() && !told.starts_with(NOT_DISPATCHED) {
        return Ended(Outcome::Failed, Applied::Yes);
    }
    if told.starts_with(NOT_DISPATCHED) {
        // The client writes the text without its tags into the structured result; a server's own text stays whole there.
        let own = facts.structured.is_some_and(|s| !s.contains(NOT_DISPATCHED)) || !name.starts_with("mcp__");
        return Ended(Outcome::Failed, if own { Applied::No } else { Applied::Yes });
    }
    if structured.starts_with(DECLINED) && structured.contains(THE_USER_SAID) {
        return DeniedByUser;
    }
    if told.starts_with(NO_PERMISSION) && told.contains(DENIED) {
        return DeniedByPolicy;
    }
    if name == "Bash" {
        let outside =
            told.split_once(BLOCKED).is_some_and(|(before, _)| before.contains(" in '") && !before.contains('\n'));
        return match told {
            _ if told.starts_with(EXIT_CODE) => Ended(Outcome::Failed, Applied::Yes),
            _ if outside => DeniedByPolicy,
            _ => Ended(Outcome::Failed, Applied::Unknown),
        };
    }
    match effect(name) {
        Some(EffectClass::Pure | EffectClass::ReadLocal | EffectClass::ReadRemote) => {
            Ended(Outcome::Failed, Applied::No)
        }
        _ => Ended(Outcome::Failed, Applied::Yes),
    }
}

/// What a notification of a background task says of it, by its status word.
pub(crate) fn notification(status: &str) -> Option<(Outcome, Applied)> {
    match status {
        "completed" => Some((Outcome::Succeeded, Applied::Yes)),
        "failed" => Some((Outcome::Failed, Applied::Yes)),
        "killed" | "stopped" => Some((Outcome::Cancelled, Applied::Unknown)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(structured: &'static str) -> Facts<'static> {
        Facts { is_error: true, structured: Some(structured), ..Facts::default() }
    }

    #[test]
    fn what_the_client_writes_is_told_from_what_a_tool_writes() {
        use Verdict::*;
        let declined = "Error: The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\nno";
        let cases = [
            ("Bash", "ok", Facts::default(), Ended(Outcome::Succeeded, Applied::Yes)),
            ("Bash", "Exit code 3", error("Error: Exit code 3"), Ended(Outcome::Failed, Applied::Yes)),
            ("Bash", "x", error(REJECTED), RefusedOrInterrupted),
            ("Bash", &declined[7..], error(declined), DeniedByUser),
            // A command that prints the words has them behind its exit code.
            (
                "Bash",
                "Exit code 1\nPermission to use Bash has been denied.",
                error("Error: Exit code 1\nP"),
                Ended(Outcome::Failed, Applied::Yes),
            ),
            ("Bash", "Permission to use Bash with command curl x has been denied.", error("Error: P"), DeniedByPolicy),
            (
                "Bash",
                "touch in '/x' was blocked. For security, Claude Code may only create",
                error("Error: t"),
                DeniedByPolicy,
            ),
            ("Bash", "something else", error("Error: s"), Ended(Outcome::Failed, Applied::Unknown)),
            ("Read", "File does not exist.", error("Error: F"), Ended(Outcome::Failed, Applied::No)),
            (
                "Nope",
                "<tool_use_error>Error: No such tool available: Nope</tool_use_error>",
                error("Error: No such tool available: Nope"),
                Ended(Outcome::Failed, Applied::No),
            ),
            // A server can write anything.
            ("mcp__a__b", &declined[7..], error(declined), Ended(Outcome::Failed, Applied::Yes)),
            ("mcp__a__b", "Permission to use X has been denied.", error(""), Ended(Outcome::Failed, Applied::Yes)),
            ("mcp__a__b", "<tool_use_error>x", error("<tool_use_error>x"), Ended(Outcome::Failed, Applied::Yes)),
        ];
        for (name, told, facts, want) in cases {
            assert_eq!(verdict(Some(name), told, facts), want, "{name}: {told}");
        }
        let kind =
            |denial| verdict(Some("Bash"), "x", Facts { is_error: true, denial: Some(denial), ..Facts::default() });
        assert_eq!([kind("interrupted"), kind("user-rejected"), kind("hook")], [Open, DeniedByUser, DeniedByPolicy]);
    }
}
