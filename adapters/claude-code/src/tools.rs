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

/// Whether all that the tool writes is its own, so that words of the client at the beginning of an error are the client's. Other
/// tools hand on what a server, an agent or a background command said, or are somebody else's.
fn writes_own_words(name: &str) -> bool {
    let hands_on = matches!(name, "WebFetch" | "WebSearch" | "BashOutput" | "TaskOutput");
    name == "Bash" || (effect(name).is_some() && !hands_on)
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

/// The constants of the client (R-EVT-007). Each stands at the beginning of a place that the own output of the tools that
/// [`writes_own_words`] names cannot reach: a Bash command's output follows `Exit code N`.
const REJECTED: &str = "User rejected tool use";
const DECLINED: &str = "The user doesn't want to proceed with this tool use. The tool use was rejected";
const THE_USER_SAID: &str = "the user said:";
const EXIT_CODE: &str = "Exit code ";
const NOT_DISPATCHED: &str = "<tool_use_error>";
const NO_PERMISSION: &str = "Permission to use ";
const DENIED: &str = " has been denied";
const BLOCKED: &str = "' was blocked. For security, Claude Code may only ";

/// What is known of a result, apart from its text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts<'a> {
    /// Whether the result is marked as an error; `None` = the mark cannot be read.
    pub(crate) is_error: Option<bool>,
    /// A member stands twice, has a name in another spelling, or may belong to another result: nobody knows what is meant.
    pub(crate) misread: bool,
    /// The structured result is a background task or a launched agent.
    pub(crate) background: bool,
    /// The call asked to go on in the background.
    pub(crate) asked_background: bool,
    /// Whether the structured result says that the command was interrupted; `None` = that cannot be read.
    pub(crate) interrupted: Option<bool>,
    /// The status in the structured result.
    pub(crate) status: Option<&'a str>,
    /// The structured result tells how a command ended.
    pub(crate) exit: bool,
    /// The structured result, where it is a string.
    pub(crate) structured: Option<&'a str>,
    /// Kind of denial, in newer logs; empty where it cannot be read.
    pub(crate) denial: Option<&'a str>,
}

/// Reads a result of the tool `name` with the text `told`.
pub(crate) fn verdict(name: Option<&str>, told: &str, facts: Facts<'_>) -> Verdict {
    let ran = facts.exit || [Some(told), facts.structured].into_iter().flatten().any(tells_exit);
    let refused = facts.denial.is_some() || facts.structured == Some(REJECTED);
    match (facts.denial, facts.is_error) {
        _ if facts.misread || (ran && refused) => Verdict::Open,
        (Some("user-rejected"), Some(true)) => Verdict::DeniedByUser,
        (Some("permission-rule"), Some(true)) => Verdict::DeniedByPolicy,
        (Some(_), _) => Verdict::Open,
        (None, _) if facts.background => Verdict::Background,
        (None, None) => Verdict::Open,
        (None, Some(false)) if facts.asked_background || tells_background(told) => Verdict::Background,
        // Of a launched agent that has another status than the known ones, nobody knows whether it is done.
        (None, Some(false)) if spawns(name) && facts.status.is_some_and(|s| s != "completed") => Verdict::Open,
        _ if facts.interrupted.is_none() => Verdict::Open,
        (None, Some(false)) if facts.interrupted == Some(true) => Verdict::Ended(Outcome::Cancelled, Applied::Partial),
        (None, Some(false)) => Verdict::Ended(Outcome::Succeeded, Applied::Yes),
        (None, Some(true)) => error(name, told, facts.structured),
    }
}

fn spawns(name: Option<&str>) -> bool {
    name.and_then(kind) == Some(ActionKind::Spawn)
}

/// Whether a text, or the copy of it, opens with the exit code of a command, which then has run.
fn tells_exit(text: &str) -> bool {
    text.strip_prefix("Error: ").unwrap_or(text).starts_with(EXIT_CODE)
}

/// Whether a result opens with the client's words for what goes on: `Command running in background with ID:`, and the like
/// for one that was put there later; `Async agent launched`.
fn tells_background(told: &str) -> bool {
    let first = told.trim_start().lines().next().unwrap_or_default();
    let command = first
        .split_once(" with ID:")
        .is_some_and(|(before, _)| before.starts_with("Command ") && before.contains("background"));
    command
        || ["Async", "Remote"]
            .iter()
            .any(|how| first.strip_prefix(how).is_some_and(|r| r.starts_with(" agent launched")))
}

/// Reads an error. `copy` is the structured result, where it is a string.
fn error(name: Option<&str>, told: &str, copy: Option<&str>) -> Verdict {
    let failed = |applied| Verdict::Ended(Outcome::Failed, applied);
    // A call that is not in the log, or whose name cannot be read, may be anybody's.
    let Some(name) = name else { return failed(Applied::Unknown) };
    let own = writes_own_words(name);
    if copy == Some(REJECTED) {
        return if own { Verdict::RefusedOrInterrupted } else { Verdict::Open };
    }
    if told.starts_with(NOT_DISPATCHED) {
        // The client writes the text without its tags into the copy; a server's own text stays whole there.
        let by_client = copy.map_or(own, |copy| !copy.contains(NOT_DISPATCHED));
        return failed(if by_client { Applied::No } else { Applied::Unknown });
    }
    let reason = refusal(name, told);
    match (own, reason) {
        (true, Some(Refusal::Policy)) => return Verdict::DeniedByPolicy,
        (true, Some(Refusal::User)) if copy.and_then(|c| c.strip_prefix("Error: ")) == Some(told) => {
            return Verdict::DeniedByUser;
        }
        _ => {}
    }
    match effect(name) {
        Some(EffectClass::Pure | EffectClass::ReadLocal | EffectClass::ReadRemote) => failed(Applied::No),
        // Who wrote the words is not known.
        _ if reason.is_some() => failed(Applied::Unknown),
        _ if name == "Bash" && !told.starts_with(EXIT_CODE) => failed(Applied::Unknown),
        _ => failed(Applied::Yes),
    }
}

/// What an error says in the client's words of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    User,
    Policy,
    /// Another tool's, or not in all of the words.
    Doubtful,
}

fn refusal(name: &str, told: &str) -> Option<Refusal> {
    let first = told.split('\n').next().unwrap_or_default();
    if let Some(rest) = told.strip_prefix(NO_PERMISSION) {
        let of_tool = rest.strip_prefix(name).is_some_and(|rest| {
            rest.starts_with(DENIED) || (name == "Bash" && rest.starts_with(" with command ") && rest.contains(DENIED))
        });
        return Some(if of_tool { Refusal::Policy } else { Refusal::Doubtful });
    }
    if told.starts_with(DECLINED) {
        return Some(if told.contains(THE_USER_SAID) { Refusal::User } else { Refusal::Doubtful });
    }
    let outside = first.split_once(BLOCKED).is_some_and(|(before, _)| before.contains(" in '"));
    outside.then_some(if name == "Bash" { Refusal::Policy } else { Refusal::Doubtful })
}

/// The call and the status word of a notification of a background task. The client writes its members one on a line; behind
/// them stands a summary, which can quote anything.
pub(crate) fn notified(text: &str) -> Option<(&str, &str)> {
    let mut members: Vec<(&str, &str)> = Vec::new();
    for line in text.strip_prefix("<task-notification>\n")?.lines() {
        let member = line.strip_prefix('<').and_then(|line| line.split_once('>')).and_then(|(name, rest)| {
            let value = rest.strip_suffix('>')?.strip_suffix(name)?.strip_suffix("</")?;
            Some((name, value))
        });
        match member.filter(|(name, _)| *name != "summary") {
            Some(member) => members.push(member),
            None => break,
        }
    }
    let only = |name: &str| {
        let mut of_name = members.iter().filter(|(n, _)| *n == name);
        of_name.next().filter(|_| of_name.next().is_none()).map(|(_, value)| *value)
    };
    only("tool-use-id").zip(only("status"))
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
        Facts { is_error: Some(true), interrupted: Some(false), structured: Some(structured), ..Facts::default() }
    }

    /// R-EVT-005
    #[test]
    fn nothing_is_guessed_of_tools_of_others() {
        assert_eq!(effect("Read"), Some(EffectClass::ReadLocal));
        for name in ["mcp__files__Read", "read", "ReadFile", "get_weather", "ListEverything", "Bash"] {
            assert_eq!(effect(name), None, "{name}");
        }
    }

    #[test]
    fn what_the_client_writes_is_told_from_what_a_tool_writes() {
        use Verdict::*;
        let declined = "Error: The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\nno";
        let cases = [
            (
                "Bash",
                "ok",
                Facts { is_error: Some(false), interrupted: Some(false), ..Facts::default() },
                Ended(Outcome::Succeeded, Applied::Yes),
            ),
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
            ("mcp__a__b", &declined[7..], error(declined), Ended(Outcome::Failed, Applied::Unknown)),
            ("mcp__a__b", "Permission to use X has been denied.", error(""), Ended(Outcome::Failed, Applied::Unknown)),
            ("mcp__a__b", "<tool_use_error>x", error("<tool_use_error>x"), Ended(Outcome::Failed, Applied::Unknown)),
        ];
        for (name, told, facts, want) in cases {
            assert_eq!(verdict(Some(name), told, facts), want, "{name}: {told}");
        }
    }
}
