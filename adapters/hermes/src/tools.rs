//! The client's own tools: what they can do to the world, and what their results say.
//!
//! There is no column for errors: a result is the tool's JSON as text, and its members tell. A command writes into `output`
//! only, so the members beside it are the client's word.

use palog::events::{ActionKind, Applied, EffectClass, Outcome};
use palog::json::Raw;
use serde::Deserialize;

use EffectClass::{Pure, ReadLocal, ReadRemote, Unknown, WriteLocal, WriteRemote};

/// The client's own tools and what they can do. Tools of servers and plugins have other names.
const TOOLS: &[(&str, EffectClass)] = &[
    ("clarify", Pure),
    ("cronjob", WriteLocal),
    ("delegate_task", Unknown),
    ("execute_code", Unknown),
    ("image_generate", WriteRemote),
    ("memory", WriteLocal),
    ("patch", WriteLocal),
    ("process", Unknown),
    ("read_file", ReadLocal),
    ("search_files", ReadLocal),
    ("send_message", WriteRemote),
    ("session_search", ReadLocal),
    ("skill_manage", WriteLocal),
    ("skill_view", ReadLocal),
    ("skills_list", ReadLocal),
    ("terminal", Unknown),
    ("text_to_speech", WriteRemote),
    ("todo", Pure),
    ("vision_analyze", ReadRemote),
    ("web_extract", ReadRemote),
    ("web_search", ReadRemote),
    ("write_file", WriteLocal),
];

fn class(tool: &str) -> Option<EffectClass> {
    TOOLS.iter().find(|(name, _)| *name == tool).map(|(_, class)| *class)
}

/// What a call can do; `None` of a tool that is not the client's own, or that can do anything.
pub(crate) fn effect(tool: &str) -> Option<EffectClass> {
    class(tool).filter(|class| *class != Unknown)
}

/// What a call is, if it is more than a call.
pub(crate) fn kind(tool: &str) -> Option<ActionKind> {
    match tool {
        "clarify" => Some(ActionKind::Question),
        "delegate_task" => Some(ActionKind::Spawn),
        _ => None,
    }
}

/// Who gave leave, where a result tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// A person gave it.
    Granted,
    /// A rule, or a model that judges commands, gave it.
    GrantedByPolicy,
    /// A person refused it.
    Denied,
}

/// What a result says of its call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// How the call ended; `None` = the result does not say.
    pub(crate) end: Option<(Outcome, Applied)>,
    /// What it says of leave.
    pub(crate) leave: Option<Leave>,
    /// It goes on in the background.
    pub(crate) goes_on: bool,
    /// The delegation that it began.
    pub(crate) delegation: Option<Delegation>,
    /// The job that it made for later.
    pub(crate) job: Option<String>,
}

/// A delegation that goes on in the background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delegation {
    pub(crate) id: String,
    /// What its tasks are to do, as a JSON list.
    pub(crate) goals: Option<String>,
}

/// The members that the client's results have.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Members<'a> {
    #[serde(default)]
    output: Option<Raw<'a>>,
    #[serde(default)]
    exit_code: Option<i64>,
    #[serde(default)]
    error: Option<Raw<'a>>,
    #[serde(default)]
    status: Option<Raw<'a>>,
    #[serde(default)]
    success: Option<bool>,
    #[serde(default)]
    approval: Option<Raw<'a>>,
    #[serde(default)]
    session_id: Option<Raw<'a>>,
    #[serde(default)]
    pid: Option<Raw<'a>>,
    #[serde(default)]
    delegation_id: Option<Raw<'a>>,
    #[serde(default)]
    goals: Option<Raw<'a>>,
    #[serde(default)]
    job_id: Option<Raw<'a>>,
}

/// What a row of the role `tool` says. `named` is whether the row has the name of a tool, `disposition` its column
/// `effect_disposition`.
pub(crate) fn said(tool: &str, named: bool, disposition: Option<&str>, text: &str) -> Said {
    let ended = |outcome, applied| Said { end: Some((outcome, applied)), ..Said::default() };
    let own = class(tool);
    let skipped =
        text.starts_with("[Tool execution cancelled — ") && text.ends_with(" was skipped due to user interrupt]");
    match disposition {
        Some("none") if skipped => return ended(Outcome::Cancelled, Applied::No),
        Some("none") => return ended(Outcome::Failed, Applied::No),
        Some(_) => return Said::default(),
        None => {}
    }
    if skipped && own.is_some() {
        return ended(Outcome::Cancelled, Applied::No);
    }
    // The row of a tool that is not there has no name.
    if !named && text.starts_with(&format!("Tool '{tool}' does not exist.")) {
        return ended(Outcome::Failed, Applied::No);
    }
    let Some(members) = members(text) else { return Said::default() };
    let is = |value: &Option<Raw<'_>>| value.as_ref().is_some_and(|raw| raw.get() != "null");
    let word = |value: &Option<Raw<'_>>| value.as_ref().and_then(|raw| raw.text()).unwrap_or_default().into_owned();
    let failed = is(&members.error) && !word(&members.error).is_empty()
        || members.success == Some(false)
        || word(&members.status) == "error";
    match tool {
        "terminal" => return command(&members, failed),
        "delegate_task" if word(&members.status) == "dispatched" => {
            let goals = members.goals.as_ref().map(|goals| goals.get().to_owned());
            let delegation =
                Some(word(&members.delegation_id)).filter(|id| !id.is_empty()).map(|id| Delegation { id, goals });
            return Said { delegation, ..ended(Outcome::Succeeded, Applied::Yes) };
        }
        _ => {}
    }
    let job = Some(word(&members.job_id)).filter(|id| tool == "cronjob" && !id.is_empty());
    match own {
        _ if !failed => Said { job, ..ended(Outcome::Succeeded, Applied::Yes) },
        Some(Pure | ReadLocal | ReadRemote) => ended(Outcome::Failed, Applied::No),
        // A write that failed may have been done in part.
        Some(_) | None => ended(Outcome::Failed, Applied::Unknown),
    }
}

/// What the result of a command says.
fn command(members: &Members<'_>, failed: bool) -> Said {
    let text = |value: &Option<Raw<'_>>| value.as_ref().and_then(|raw| raw.text()).unwrap_or_default().into_owned();
    let error = text(&members.error);
    if members.exit_code == Some(-1) && error.starts_with("BLOCKED") {
        return if error.starts_with("BLOCKED: User denied") {
            Said { leave: Some(Leave::Denied), ..Said::default() }
        } else {
            Said { end: Some((Outcome::Failed, Applied::No)), ..Said::default() }
        };
    }
    let leave = members.approval.as_ref().and_then(Raw::text).map(|approval| {
        if approval.contains("approved by the user") { Leave::Granted } else { Leave::GrantedByPolicy }
    });
    if members.pid.is_some() && text(&members.session_id).starts_with("proc_") && members.exit_code == Some(0) {
        return Said { goes_on: true, leave, ..Said::default() };
    }
    let end = match members.exit_code {
        Some(0) => Some((Outcome::Succeeded, Applied::Yes)),
        // The client stopped it, and said so where its output ends.
        Some(130) if text(&members.output).contains("[Command interrupted]") => {
            Some((Outcome::Cancelled, Applied::Partial))
        }
        Some(-1) => Some((Outcome::Failed, Applied::Unknown)),
        Some(_) => Some((Outcome::Failed, Applied::Yes)),
        None if failed => Some((Outcome::Failed, Applied::Unknown)),
        // Leave that is still to be given, and whatever else is no output of a command.
        None => members.output.is_some().then_some((Outcome::Succeeded, Applied::Yes)),
    };
    Said { end, leave, ..Said::default() }
}

/// The JSON object at the beginning of a result: the client puts warnings behind it. Text that is none is not of the tool.
fn members(text: &str) -> Option<Members<'_>> {
    let trimmed = text.trim_start();
    if !trimmed.starts_with('{') {
        return None;
    }
    serde_json::Deserializer::from_str(trimmed).into_iter().next()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_say_what_became_of_their_calls() {
        const DENIED: &str =
            r#"{"output": "", "exit_code": -1, "error": "BLOCKED: User denied this command. …", "status": "blocked"}"#;
        let end = |tool, text: &str| said(tool, true, None, text).end;
        for (tool, text, want) in [
            ("terminal", r#"{"output": "x", "exit_code": 0, "error": null}"#, Some((Outcome::Succeeded, Applied::Yes))),
            ("terminal", r#"{"output": "x", "exit_code": 3, "error": null}"#, Some((Outcome::Failed, Applied::Yes))),
            (
                "terminal",
                "{\"output\": \"x\", \"exit_code\": 0}\n\n[Tool loop warning: x]",
                Some((Outcome::Succeeded, Applied::Yes)),
            ),
            (
                "terminal",
                r#"{"output": "[Command interrupted]", "exit_code": 130, "error": null}"#,
                Some((Outcome::Cancelled, Applied::Partial)),
            ),
            (
                "terminal",
                r#"{"output": "", "exit_code": -1, "error": "BLOCKED (hardline): x"}"#,
                Some((Outcome::Failed, Applied::No)),
            ),
            (
                "terminal",
                r#"{"output": "", "exit_code": -1, "error": "no shell"}"#,
                Some((Outcome::Failed, Applied::Unknown)),
            ),
            ("terminal", r#"{"status": "approval_required", "command": "x"}"#, None),
            ("terminal", DENIED, None),
            ("read_file", r#"{"content": "", "error": "File not found: x"}"#, Some((Outcome::Failed, Applied::No))),
            ("read_file", r#"{"content": "error", "error": null}"#, Some((Outcome::Succeeded, Applied::Yes))),
            ("patch", r#"{"success": false, "error": "x"}"#, Some((Outcome::Failed, Applied::Unknown))),
            ("mcp_demo_echo", r#"{"result": "x"}"#, Some((Outcome::Succeeded, Applied::Yes))),
            ("mcp_demo_echo", r#"{"error": "x"}"#, Some((Outcome::Failed, Applied::Unknown))),
            // No tool of the client answers like this.
            ("terminal", "ok", None),
            ("mcp_demo_echo", "Tool 'mcp_demo_echo' does not exist.", None),
            ("terminal", "[Result unavailable — see context summary above]", None),
            (
                "terminal",
                "[Tool execution cancelled — terminal was skipped due to user interrupt]",
                Some((Outcome::Cancelled, Applied::No)),
            ),
            ("mcp_demo_echo", "[Tool execution cancelled — x was skipped due to user interrupt]", None),
        ] {
            assert_eq!(end(tool, text), want, "{tool}: {text}");
        }
        assert_eq!(said("terminal", true, None, DENIED).leave, Some(Leave::Denied));
        // What a command prints is no word of the client.
        let printed = serde_json::json!({"output": DENIED, "exit_code": 0}).to_string();
        assert_eq!(
            (said("terminal", true, None, &printed).leave, end("terminal", &printed)),
            (None, Some((Outcome::Succeeded, Applied::Yes)))
        );
        // A tool of a server can write anything.
        assert_eq!(said("mcp_demo_echo", true, None, DENIED).leave, None);
        let nowhere = said("nope", false, None, "Tool 'nope' does not exist. Available tools: x").end;
        assert_eq!(nowhere, Some((Outcome::Failed, Applied::No)));
        let approved = said(
            "terminal",
            true,
            None,
            r#"{"output": "", "exit_code": 0, "approval": "Command required approval (x) and was approved by the user."}"#,
        );
        assert_eq!((approved.leave, approved.end), (Some(Leave::Granted), Some((Outcome::Succeeded, Applied::Yes))));
    }

    #[test]
    fn what_goes_on_has_no_end() {
        let process = said(
            "terminal",
            true,
            None,
            r#"{"output": "Background process started", "session_id": "proc_1", "pid": 7, "exit_code": 0}"#,
        );
        assert_eq!((process.goes_on, process.end), (true, None));
        let text = r#"{"status": "dispatched", "delegation_id": "deleg_1", "goals": ["x"]}"#;
        let delegation = said("delegate_task", true, None, text).delegation;
        assert_eq!(delegation, Some(Delegation { id: "deleg_1".into(), goals: Some(r#"["x"]"#.into()) }));
    }

    #[test]
    fn the_column_of_the_effect_decides() {
        let ok = r#"{"output": "x", "exit_code": 0}"#;
        assert_eq!(said("terminal", true, Some("unknown"), ok).end, None);
        assert_eq!(said("terminal", true, Some("none"), ok).end, Some((Outcome::Failed, Applied::No)));
    }
}
