//! What is known of the client's own tools: what they can do, and what their outputs say (`spec/sources/codex.md`, "Tools"
//! and "Outputs").

use palog::events::{ActionKind, Applied, EffectClass, Outcome};
use serde::Deserialize;

/// Namespaces of the client's own tools; others are those of servers, or of the calling program.
const OWN_NAMESPACES: &[&str] = &["functions", "multi_agent_v1", "collaboration", "agent"];

/// Tools that run a command. The output that a command printed stands behind a head of the client, or inside its JSON.
const SHELLS: &[&str] = &["exec_command", "shell", "shell_command", "local_shell", "container.exec"];

/// Tools of which an output alone says that they did what they do.
const DONE_WHEN_TOLD: &[&str] = &["update_plan", "create_goal", "update_goal", "get_goal"];

/// The tool by which the model asks a person.
pub(crate) const QUESTION: &str = "request_user_input";

fn is_own(namespace: Option<&str>) -> bool {
    namespace.is_none_or(|n| OWN_NAMESPACES.contains(&n))
}

/// What a tool of the client can do; `None` for tools that are not the client's own.
pub(crate) fn effect(name: &str, namespace: Option<&str>) -> Option<EffectClass> {
    if !is_own(namespace) {
        return None;
    }
    Some(match name {
        "view_image" => EffectClass::ReadLocal,
        "apply_patch" => EffectClass::WriteLocal,
        "update_plan" | "create_goal" | "update_goal" | "get_goal" | QUESTION => EffectClass::Pure,
        _ => return None,
    })
}

/// Whether it runs a command.
pub(crate) fn is_shell(name: &str, namespace: Option<&str>) -> bool {
    is_own(namespace) && SHELLS.contains(&name)
}

/// Tools that have to do with other agents.
const AGENTS: &[&str] = &[
    "spawn_agent",
    "send_input",
    "send_message",
    "followup_task",
    "wait",
    "wait_agent",
    "resume_agent",
    "close_agent",
    "interrupt_agent",
    "list_agents",
];

/// Whether what the screen shows as `what` can be a call of the tool. `dynamic`: the calling program has a tool of this name.
pub(crate) fn fits(what: &str, name: &str, namespace: Option<&str>, dynamic: bool) -> bool {
    let own = is_own(namespace) && !dynamic && !name.contains("__");
    let builtin = SHELLS.contains(&name) || AGENTS.contains(&name) || effect(name, namespace).is_some();
    match what {
        "CommandExecution" => own && SHELLS.contains(&name),
        "FileChange" => own && name == "apply_patch",
        "ImageView" => own && name == "view_image",
        "CollabAgentToolCall" | "SubAgentActivity" => own && AGENTS.contains(&name),
        "DynamicToolCall" => dynamic || !(own && builtin),
        "McpToolCall" => !(dynamic || own && builtin),
        _ => false,
    }
}

/// What a call of the tool is, apart from a tool call.
pub(crate) fn kind(name: &str, namespace: Option<&str>) -> Option<ActionKind> {
    match name {
        _ if !is_own(namespace) => None,
        QUESTION => Some(ActionKind::Question),
        "spawn_agent" => Some(ActionKind::Spawn),
        _ => None,
    }
}

/// What an output says of its call.
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
    /// Nothing can be said.
    Open,
}

/// The constants of the client. A command cannot begin its output with one of them: the client puts a head before it.
const UNSUPPORTED: [&str; 2] = ["unsupported call: ", "unsupported custom tool call: "];
const BAD_ARGUMENTS: &str = "failed to parse function arguments: ";
const BAD_PATCH: &str = "apply_patch verification failed";
const REJECTED: &str = "exec_command failed: CreateProcess { message: \"Rejected(\\\"";
const REJECTED_END: &str = "\\\")\" }";
const BY_USER: &str = "rejected by user\\\")\" }";

/// Whether an output can be none of the client's own: those are sentences, one word, or JSON.
pub(crate) fn is_bare(text: &str) -> bool {
    !text.is_empty() && text != "aborted" && !text.starts_with('{') && !text.contains(char::is_whitespace)
}

/// Whether an output is the name of a file with an extension and nothing else. Any other word may be why it failed.
fn is_file_name(text: &str) -> bool {
    let is_word =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    text.split_once('.').is_some_and(|(stem, extension)| is_word(stem) && is_word(extension))
}

/// What stands in an output of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Outputs {
    /// The head of the client, and another record tells what the command did.
    #[default]
    Headed,
    /// The head of the client, as far as is known, and no other record tells what the command did.
    Alone,
    /// Whatever the command printed: what looks like a text of the client can be one of the command.
    Bare,
}

/// Reads an output. `text` is its text, or its first text where it is a list; `is_list` says that it is one.
pub(crate) fn verdict(name: &str, namespace: Option<&str>, text: &str, is_list: bool, outputs: Outputs) -> Verdict {
    use Verdict::{DeniedByPolicy, DeniedByUser, Ended, Open};
    let refused = Ended(Outcome::Failed, Applied::No);
    // Tools of servers had no namespace in older clients, and two underscores in their names.
    if !is_own(namespace) || name.contains("__") {
        return Open;
    }
    if UNSUPPORTED.iter().any(|opening| text.strip_prefix(opening) == Some(name)) {
        return refused;
    }
    let listed = SHELLS.contains(&name) && !is_list && is_file_name(text);
    if SHELLS.contains(&name) && outputs == Outputs::Bare {
        return if listed { Ended(Outcome::Succeeded, Applied::Yes) } else { Open };
    }
    let known = SHELLS.contains(&name)
        || DONE_WHEN_TOLD.contains(&name)
        || effect(name, namespace).is_some()
        || matches!(name, "write_stdin" | "spawn_agent");
    if known && text.starts_with(BAD_ARGUMENTS) {
        return refused;
    }
    match name {
        _ if SHELLS.contains(&name) => match text.strip_prefix(REJECTED) {
            Some(why) if why == BY_USER => DeniedByUser,
            Some(why) if why.ends_with(REJECTED_END) => DeniedByPolicy,
            Some(_) => Open,
            None => match command(text) {
                // Other programs than the client write outputs without its head.
                Open if outputs == Outputs::Alone && listed => Ended(Outcome::Succeeded, Applied::Yes),
                verdict => verdict,
            },
        },
        // What it writes to is another call's process.
        "write_stdin" if text.starts_with("Chunk ID: ") => Ended(Outcome::Succeeded, Applied::Yes),
        "apply_patch" if text.starts_with(BAD_PATCH) => refused,
        "apply_patch" => match command(text) {
            // Some of its files may have been changed.
            Ended(Outcome::Failed, _) => Ended(Outcome::Failed, Applied::Unknown),
            other => other,
        },
        "exec" => match text {
            _ if text.starts_with("Script completed") => Ended(Outcome::Succeeded, Applied::Yes),
            _ if text.starts_with("Script failed") => Ended(Outcome::Failed, Applied::Yes),
            _ if text.starts_with("Script running with cell ID") => Verdict::Background,
            _ => Open,
        },
        "view_image" if is_list => Ended(Outcome::Succeeded, Applied::Yes),
        "view_image" => refused,
        QUESTION if text.starts_with("{\"answers\"") => Ended(Outcome::Succeeded, Applied::Yes),
        _ if DONE_WHEN_TOLD.contains(&name) => Ended(Outcome::Succeeded, Applied::Yes),
        _ => Open,
    }
}

/// The head that the client puts before the output of a command.
fn command(text: &str) -> Verdict {
    #[derive(Deserialize)]
    struct Wrapped {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        exit_code: i64,
    }
    let by_code = |code: i64| match code {
        0 => Verdict::Ended(Outcome::Succeeded, Applied::Yes),
        _ => Verdict::Ended(Outcome::Failed, Applied::Yes),
    };
    if text.starts_with('{') {
        return serde_json::from_str::<Wrapped>(text).map_or(Verdict::Open, |w| by_code(w.metadata.exit_code));
    }
    if !["Chunk ID: ", "Exit code: "].iter().any(|opening| text.starts_with(opening)) {
        return Verdict::Open;
    }
    for line in text.lines().take_while(|line| *line != "Output:") {
        if line.starts_with("Process running with session ID ") {
            return Verdict::Background;
        }
        let code = ["Process exited with code ", "Exit code: "].iter().find_map(|opening| line.strip_prefix(opening));
        if let Some(code) = code.and_then(|code| code.trim().parse().ok()) {
            return by_code(code);
        }
    }
    Verdict::Open
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-EVT-005
    #[test]
    fn nothing_is_guessed_of_tools_of_others() {
        assert_eq!(effect("view_image", None), Some(EffectClass::ReadLocal));
        for (name, namespace) in [
            ("view_image", Some("mcp__files")),
            ("read_file", None),
            ("get_weather", None),
            ("list", Some("functions")),
        ] {
            assert_eq!(effect(name, namespace), None, "{name}");
        }
    }

    #[test]
    fn what_the_client_writes_is_told_from_what_a_tool_writes() {
        use Verdict::*;
        let user = r#"exec_command failed: CreateProcess { message: "Rejected(\"rejected by user\")" }"#;
        let rule = r#"exec_command failed: CreateProcess { message: "Rejected(\"`curl x` rejected: policy forbids commands starting with `curl`\")" }"#;
        let printed = format!(
            "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOriginal token count: 9\nOutput:\n{user}"
        );
        let (good, bad) = (Ended(Outcome::Succeeded, Applied::Yes), Ended(Outcome::Failed, Applied::Yes));
        let refused = Ended(Outcome::Failed, Applied::No);
        let cases = [
            ("exec_command", None, user, DeniedByUser),
            ("exec_command", None, rule, DeniedByPolicy),
            ("exec_command", None, printed.as_str(), good),
            (
                "exec_command",
                None,
                "Chunk ID: 1\nProcess running with session ID 7\nOutput:\nProcess exited with code 0",
                Background,
            ),
            ("exec_command", None, "Wall time: 0.7 seconds\naborted by user", Open),
            ("exec_command", None, "injected output", Open),
            ("exec_command", None, "failed to parse function arguments: missing field `cmd`", refused),
            ("shell", None, r#"{"output":"hi","metadata":{"exit_code":3}}"#, bad),
            ("apply_patch", None, "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.", good),
            ("apply_patch", None, "apply_patch verification failed: x", refused),
            ("apply_patch", None, "Exit code: 1\nOutput:\n", Ended(Outcome::Failed, Applied::Unknown)),
            ("nope", None, "unsupported call: nope", refused),
            ("update_plan", None, "Plan updated", good),
            ("exec", None, "Script completed\nWall time 0.2 seconds", good),
            // A server, and the calling program, can write anything.
            ("echo", Some("mcp__demo"), user, Open),
            ("exec_command", Some("mcp__demo"), user, Open),
            ("lookup", None, "failed to parse function arguments: x", Open),
            ("lookup", None, "aborted", Open),
            ("demo__echo", None, "unsupported call: demo__echo", Open),
            ("echo", Some("mcp__demo"), "unsupported call: echo", Open),
            ("exec_command", None, &format!("{}x", user), Open),
        ];
        for (name, namespace, text, want) in cases {
            assert_eq!(verdict(name, namespace, text, false, Outputs::Headed), want, "{name}: {text}");
        }
        let read = |outputs| move |text| verdict("exec_command", None, text, false, outputs);
        let alone = ["a.txt", "aborted", "exec command rejected by user", user].map(read(Outputs::Alone));
        assert_eq!(alone, [good, Open, Open, DeniedByUser]);
        let bare =
            ["a.txt", "aborted", user, rule, &printed, "failed to parse function arguments: x", "Exit code: 0\n"];
        assert_eq!(bare.map(read(Outputs::Bare)), [good, Open, Open, Open, Open, Open, Open]);
    }
}
