//! What is known of the client's own tools: what they can do, and what an ended call says (`spec/sources/opencode.md`,
//! "Tools").

use palog::events::{ActionKind, Applied, EffectClass, Outcome};

use crate::record::{Metadata, State, parse};

/// What a tool of the client can do; `None` where nobody can say, and for tools that are not the client's own.
pub(crate) fn effect(tool: &str) -> Option<EffectClass> {
    Some(match tool {
        "read" | "glob" | "grep" | "list" => EffectClass::ReadLocal,
        "webfetch" | "websearch" | "codesearch" => EffectClass::ReadRemote,
        "edit" | "write" | "multiedit" | "patch" | "apply_patch" => EffectClass::WriteLocal,
        "todowrite" | "todoread" | "question" | "skill" | "invalid" => EffectClass::Pure,
        _ => return None,
    })
}

/// What a call of the tool is, apart from a tool call.
pub(crate) fn kind(tool: &str) -> Option<ActionKind> {
    match tool {
        "question" => Some(ActionKind::Question),
        "task" | "subagent" => Some(ActionKind::Spawn),
        _ => None,
    }
}

/// What a call that is over says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It ended.
    Ended(Outcome, Applied),
    /// A person refused it.
    DeniedByUser,
    /// A rule refused it.
    DeniedByPolicy,
    /// Nothing can be said.
    Open,
}

/// The constants of the client. None of its own tools opens an error of theirs so.
const REJECTED: &str = "The user rejected permission to use this specific tool call";
const RULED_OUT: &str = "The user has specified a rule which prevents you from using this specific tool call";

/// What the client writes for a call that it lost track of.
const LOST: [&str; 3] = ["Tool execution aborted", "Tool execution interrupted", "[Tool execution was interrupted]"];

/// How tools of the client open an error that they return before they change anything.
const NOT_BEGUN: &[(&str, &str)] = &[
    ("edit", "Error: You must read file "),
    ("edit", "You must read file "),
    ("edit", "File not found: "),
    ("edit", "Could not find oldString in the file"),
    ("edit", "oldString not found in content"),
    ("edit", "No changes to apply: oldString and newString are identical"),
    ("write", "Error: You must read file "),
    ("write", "You must read file "),
    ("apply_patch", "apply_patch verification failed"),
];

/// Whether a tool is one of the client's own. Others can write any text, also the client's.
fn is_own(tool: &str) -> bool {
    effect(tool).is_some() || matches!(tool, "bash" | "shell" | "task" | "subagent")
}

/// What a completed call says. `aborted` says that a person broke its message off.
pub(crate) fn completed(tool: &str, state: &State<'_>, aborted: bool) -> Verdict {
    use Verdict::Ended;
    let metadata: Metadata<'_> = state.metadata.as_ref().and_then(parse).unwrap_or_default();
    match tool {
        // The client puts this tool in place of one that it does not have, or whose arguments it cannot read.
        "invalid" => Ended(Outcome::Failed, Applied::No),
        "bash" | "shell" => {
            let wrote = metadata.output.as_ref().is_some_and(|o| o.is_string() && o.get() != "\"\"");
            match metadata.exit.as_ref().map(palog::json::Raw::get) {
                Some("0") => Ended(Outcome::Succeeded, Applied::Yes),
                Some("null") | None if aborted => {
                    Ended(Outcome::Cancelled, if wrote { Applied::Partial } else { Applied::Unknown })
                }
                // It was stopped: after its time was up, or by a signal.
                Some("null") => Ended(Outcome::Failed, if wrote { Applied::Partial } else { Applied::Unknown }),
                Some(_) => Ended(Outcome::Failed, Applied::Yes),
                None => Ended(Outcome::Succeeded, Applied::Yes),
            }
        }
        "task" | "subagent" => {
            let output = state.output.as_ref().and_then(palog::json::Raw::text).unwrap_or_default();
            let opening = output.strip_prefix("<task ").and_then(|rest| rest.split_once('>')).map(|(tag, _)| tag);
            match opening {
                Some(tag) if tag.contains("state=\"") && !tag.contains("state=\"completed\"") => Verdict::Open,
                _ => Ended(Outcome::Succeeded, Applied::Yes),
            }
        }
        _ => Ended(Outcome::Succeeded, Applied::Yes),
    }
}

/// What an error of a call says.
pub(crate) fn failed(tool: &str, error: &str) -> Verdict {
    use Verdict::Ended;
    if LOST.contains(&error) {
        return Verdict::Open;
    }
    if is_own(tool) && error.starts_with(REJECTED) {
        return Verdict::DeniedByUser;
    }
    if is_own(tool) && error.starts_with(RULED_OUT) {
        return Verdict::DeniedByPolicy;
    }
    let not_begun = NOT_BEGUN.iter().any(|(name, opening)| *name == tool && error.starts_with(opening));
    match effect(tool) {
        _ if not_begun => Ended(Outcome::Failed, Applied::No),
        Some(EffectClass::Pure | EffectClass::ReadLocal) => Ended(Outcome::Failed, Applied::No),
        _ => Ended(Outcome::Failed, Applied::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(json: &str) -> State<'_> {
        serde_json::from_str(json).expect("a state")
    }

    #[test]
    fn a_command_ends_as_its_exit_code_says() {
        let run = |json, aborted| completed("bash", &state(json), aborted);
        let ended = Verdict::Ended;
        assert_eq!(run(r#"{"metadata":{"exit":0}}"#, false), ended(Outcome::Succeeded, Applied::Yes));
        assert_eq!(run(r#"{"metadata":{"exit":7}}"#, false), ended(Outcome::Failed, Applied::Yes));
        let begun = r#"{"metadata":{"exit":null,"output":"x"}}"#;
        assert_eq!(run(begun, true), ended(Outcome::Cancelled, Applied::Partial));
        assert_eq!(run(begun, false), ended(Outcome::Failed, Applied::Partial));
        let silent = r#"{"metadata":{"exit":null,"output":""}}"#;
        assert_eq!(run(silent, true), ended(Outcome::Cancelled, Applied::Unknown));
        assert_eq!(run(silent, false), ended(Outcome::Failed, Applied::Unknown));
    }

    #[test]
    fn a_refusal_is_one_only_of_the_clients_own_tools() {
        let text = "The user rejected permission to use this specific tool call with the following feedback: no";
        assert_eq!(failed("write", text), Verdict::DeniedByUser);
        assert_eq!(failed("server_write", text), Verdict::Ended(Outcome::Failed, Applied::Unknown));
        assert_eq!(failed("bash", "[Tool execution was interrupted]"), Verdict::Open);
        assert_eq!(failed("bash", "anything"), Verdict::Ended(Outcome::Failed, Applied::Unknown));
        assert_eq!(failed("edit", "anything"), Verdict::Ended(Outcome::Failed, Applied::Unknown));
        assert_eq!(failed("read", "File not found: x"), Verdict::Ended(Outcome::Failed, Applied::No));
    }
}
