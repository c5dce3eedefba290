//! What the clients' own tools can do, and what their results say of a call.

use palog::events::{ActionKind, Applied, EffectClass, Outcome};
use palog::json::{Raw, Str};
use serde::Deserialize;

use crate::record::{lenient, text};

/// The class of what a tool of the client can do; `None` for all others.
pub(crate) fn effect(name: &str) -> Option<EffectClass> {
    Some(match name {
        "read" | "grep" | "find" | "ls" | "memory_search" | "memory_get" | "sessions_list" | "sessions_history"
        | "session_status" | "agents_list" => EffectClass::ReadLocal,
        "web_search" | "web_fetch" => EffectClass::ReadRemote,
        "write" | "edit" | "apply_patch" => EffectClass::WriteLocal,
        "message" => EffectClass::WriteRemote,
        _ => return None,
    })
}

/// What a call is, where it is more than a call.
pub(crate) fn kind(name: &str) -> Option<ActionKind> {
    (name == "sessions_spawn").then_some(ActionKind::Spawn)
}

/// Tools that run commands.
const SHELLS: [&str; 2] = ["bash", "exec"];

/// What a result says of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It ended.
    Ended(Outcome, Applied),
    /// It goes on in the background.
    Background,
    /// A rule refused it.
    Denied,
    /// Nothing can be said.
    Open,
}

/// What the client notes of a result, where a tool's own output does not reach.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
struct Details<'a> {
    #[serde(default, deserialize_with = "text")]
    status: Option<Str<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    exit_code: Option<i64>,
    #[serde(default, deserialize_with = "text")]
    error: Option<Str<'a>>,
}

/// Openings of results of the client's own file tools that come before anything is written.
const NOTHING_WRITTEN: [&str; 5] =
    ["Could not find ", "Could not edit file: ", "File not found: ", "Found ", "No changes made to "];

const GOOD: Verdict = Verdict::Ended(Outcome::Succeeded, Applied::Yes);
const BAD: Verdict = Verdict::Ended(Outcome::Failed, Applied::Yes);
const REFUSED: Verdict = Verdict::Ended(Outcome::Failed, Applied::No);

/// Reads a result: whether it is an error, its text, and what the client noted beside it.
pub(crate) fn verdict(name: &str, is_error: Option<bool>, text: &str, details: Option<&Raw<'_>>) -> Verdict {
    let details: Details<'_> = details.and_then(crate::record::parse).unwrap_or_default();
    let is_shell = SHELLS.contains(&name);
    match is_error {
        None => Verdict::Open,
        Some(false) if is_shell => match (details.status.as_deref(), details.exit_code) {
            (Some("running"), _) => Verdict::Background,
            (_, Some(0)) | (None, None) => GOOD,
            (_, Some(_)) => BAD,
            (Some("completed"), None) => GOOD,
            (Some(_), None) => Verdict::Open,
        },
        Some(false) => GOOD,
        Some(true) => failed(name, is_shell, text, &details),
    }
}

fn failed(name: &str, is_shell: bool, text: &str, details: &Details<'_>) -> Verdict {
    if text == format!("Tool {name} not found") {
        return REFUSED;
    }
    if is_shell {
        // The client puts the code behind all that the command printed.
        if exit_code(text).is_some_and(|code| code != 0) || details.exit_code.is_some_and(|code| code != 0) {
            return BAD;
        }
        if details.error.as_deref().is_some_and(|error| error.starts_with("exec denied: ")) {
            return Verdict::Denied;
        }
        let last = text.rsplit('\n').next().unwrap_or_default();
        if last.starts_with("Command timed out after ") && last.ends_with(" seconds") {
            return Verdict::Ended(Outcome::Cancelled, Applied::Partial);
        }
    }
    let Some(class) = effect(name) else { return Verdict::Open };
    let why = details.error.as_deref().unwrap_or(text);
    match class {
        EffectClass::ReadLocal | EffectClass::ReadRemote => REFUSED,
        EffectClass::WriteLocal if NOTHING_WRITTEN.iter().any(|opening| why.starts_with(opening)) => REFUSED,
        _ => Verdict::Open,
    }
}

/// The exit code in the last line of a result of a shell.
fn exit_code(text: &str) -> Option<i64> {
    text.rsplit('\n').next()?.strip_prefix("Command exited with code ")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_client_writes_is_told_from_what_a_tool_writes() {
        let denied = r#"{"status":"error","tool":"exec","error":"exec denied: Headless runs cannot wait."}"#;
        type Ended<'a> = (&'a str, Option<bool>, &'a str, Option<&'a str>, Verdict);
        let cases: &[Ended<'_>] = &[
            ("bash", Some(false), "x", None, GOOD),
            ("bash", Some(true), "oops\n\n\nCommand exited with code 3", None, BAD),
            ("bash", Some(true), "Command exited with code 3\nCommand aborted", None, Verdict::Open),
            ("bash", Some(true), "Command aborted", None, Verdict::Open),
            (
                "bash",
                Some(true),
                "a\n\nCommand timed out after 5 seconds",
                None,
                Verdict::Ended(Outcome::Cancelled, Applied::Partial),
            ),
            ("exec", Some(false), "x", Some(r#"{"status":"completed","exitCode":0}"#), GOOD),
            ("exec", Some(false), "x", Some(r#"{"status":"completed","exitCode":3}"#), BAD),
            ("exec", Some(false), "x", Some(r#"{"status":"running","pid":1}"#), Verdict::Background),
            ("exec", Some(false), "x", Some(r#"{"status":"approval-pending"}"#), Verdict::Open),
            ("exec", Some(true), "x", Some(denied), Verdict::Denied),
            // The command printed it, the client did not note it.
            ("exec", Some(true), "exec denied: x", Some(r#"{"status":"error"}"#), Verdict::Open),
            ("read", Some(true), "ENOENT", None, REFUSED),
            ("edit", Some(true), "Could not find the exact text in a.txt.", None, REFUSED),
            ("edit", Some(true), "EIO", None, Verdict::Open),
            ("nope", Some(true), "Tool nope not found", None, REFUSED),
            ("deploy", Some(true), "Tool nope not found", None, Verdict::Open),
            ("deploy", Some(true), "exec denied: x", Some(denied), Verdict::Open),
            ("deploy", Some(false), "ok", None, GOOD),
            ("deploy", None, "ok", None, Verdict::Open),
        ];
        for (name, is_error, text, details, want) in cases {
            let details = details.map(|d| Raw::parse(d).expect("JSON"));
            assert_eq!(verdict(name, *is_error, text, details.as_ref()), *want, "{name}: {text}");
        }
    }
}
