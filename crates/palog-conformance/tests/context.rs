//! The context that a log gives equals what the client sent to the model, request by request.
//!
//! Both sides are brought into one form by exactly these steps: messages of the system are dropped; text blocks that are
//! wholly the mark of a removed text are dropped; a string is one text block; neighbours of one role are merged. What the
//! client does to its history beyond that is in [`REPAIRS`], a closed list.

#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "../../palog-cli/src/reference/import.rs"]
mod import;
#[path = "support/reference.rs"]
mod reference;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use palog_conformance::{Implementation, Log, json};
use reference::Reference;
use serde_json::{Value, json};

/// Something that the client does to its history when it makes a request of it.
struct Repair {
    name: &'static str,
    /// Applies it to messages in their common form, and tells how often it did something.
    apply: fn(&mut [Said]) -> usize,
    /// The requests in which it does something.
    fires: &'static [(&'static str, u64)],
}

/// Everything that the client does which the log does not hold.
const REPAIRS: &[Repair] = &[Repair {
    name: "text_join",
    apply: text_join,
    fires: &[
        ("api_error", 4),
        ("api_error", 5),
        ("api_error", 6),
        ("api_error", 7),
        ("api_error", 8),
        ("api_error", 9),
        ("bg_task_kill", 3),
        ("compact_manual", 5),
        ("hooks_denied", 2),
        ("hooks_print", 8),
        ("hooks_print", 9),
        ("hooks_tui_pending", 3),
        ("tui_interrupt", 3),
        ("tui_interrupt", 5),
        ("tui_interrupt", 7),
        ("tui_local_commands", 2),
        ("tui_local_commands", 3),
        ("tui_perm_answers", 5),
        ("tui_perm_answers", 6),
        ("tui_perm_answers", 7),
    ],
}];

/// Where the context of a request is taken from that no response in the transcript names.
#[derive(Clone, Copy)]
enum Unanswered {
    /// It was tried again: the request with this number is the same.
    Again(u64),
    /// What the client wrote in place of an answer: this error message, counted from 0.
    Error(usize),
    /// The client was killed: the head of the log of this snapshot.
    Tail(&'static str),
    /// No turn of the conversation: the client asks for a summary.
    Side,
}

/// Every request without a response in a transcript.
const UNANSWERED: &[(&str, u64, Unanswered)] = &[
    ("api_error", 1, Unanswered::Again(2)),
    ("api_error", 3, Unanswered::Error(0)),
    ("api_error", 5, Unanswered::Error(1)),
    ("api_error", 6, Unanswered::Error(1)),
    ("api_error", 7, Unanswered::Error(1)),
    ("api_error", 8, Unanswered::Again(9)),
    ("compact_manual", 4, Unanswered::Side),
    ("hooks_print", 7, Unanswered::Side),
    ("kill_midstream", 2, Unanswered::Tail("snap-after-kill")),
];

/// How many scenarios have recorded requests, how many requests that are, and how many of them were answered.
const RECORDED: (usize, usize, usize) = (29, 115, 106);

/// A block, and the event that it comes from where that is known.
#[derive(Clone, Debug)]
struct Block {
    value: Value,
    from: Option<String>,
}

/// A message.
#[derive(Clone, Debug)]
struct Said {
    role: String,
    blocks: Vec<Block>,
}

/// One request, and the log and place that its context is taken from.
struct Request {
    scenario: String,
    n: u64,
    messages: Value,
    place: Option<(PathBuf, At)>,
}

#[derive(Clone)]
enum At {
    Before(String),
    Head,
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let requests = match requests(scratch.path()) {
        Ok(requests) => Arc::new(requests),
        Err(why) => {
            let broken = Trial::test("the recorded requests can be read", move || Err(Failed::from(why)));
            return libtest_mimic::run(&arguments, vec![broken]).exit_code();
        }
    };
    let mut trials: Vec<Trial> = Vec::new();
    for index in 0..requests.len() {
        let all = Arc::clone(&requests);
        let request = &requests[index];
        let (name, side) = (request.name(), request.place.is_none());
        let trial =
            Trial::test(name, move || all[index].equals(&REPAIRS.iter().collect::<Vec<_>>()).map_err(Failed::from));
        // Listed, not compared.
        trials.push(trial.with_ignored_flag(side));
    }
    for repair in REPAIRS {
        let all = Arc::clone(&requests);
        trials.push(Trial::test(format!("{} fires where it should", repair.name), move || {
            fires(repair, &all).map_err(Failed::from)
        }));
        let all = Arc::clone(&requests);
        trials.push(Trial::test(format!("without {} requests differ", repair.name), move || {
            needed(repair, &all).map_err(Failed::from)
        }));
    }
    let all = Arc::clone(&requests);
    trials.push(Trial::test("every recorded request is here", move || complete(&all).map_err(Failed::from)));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Reads all recorded requests, imports what the client left behind, and finds the place of each.
fn requests(scratch: &std::path::Path) -> Result<Vec<Request>, String> {
    let sources = fixtures::folder().join("sources/claude-code");
    let mut scenarios: Vec<PathBuf> =
        fs::read_dir(&sources).map_err(|e| e.to_string())?.filter_map(|e| Some(e.ok()?.path())).collect();
    scenarios.sort();
    let mut requests = Vec::new();
    for folder in scenarios.iter().filter(|folder| folder.join("requests.jsonl").exists()) {
        let scenario = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let logs = left_behind(&folder.join("config"), &scratch.join(&scenario))?;
        let text = fs::read_to_string(folder.join("requests.jsonl")).map_err(|e| e.to_string())?;
        for line in text.lines() {
            let recorded = json::value(line).map_err(|e| format!("{scenario}: {e}"))?;
            let n = json::count(&recorded, "/n").ok_or("a request without a number")?;
            let mut places = before_response(&logs, n);
            let known = UNANSWERED.iter().find(|(s, m, _)| *s == scenario && *m == n);
            if let Some((_, _, why)) = known {
                if !places.is_empty() {
                    return Err(format!("{scenario} {n} is answered"));
                }
                match why {
                    Unanswered::Again(later) => places = before_response(&logs, *later),
                    Unanswered::Error(nth) => places = before_error(&logs, *nth),
                    Unanswered::Tail(snapshot) => {
                        let logs =
                            left_behind(&folder.join(snapshot), &scratch.join(format!("{scenario}-{snapshot}")))?;
                        places = logs.into_iter().map(|log| (log.path, At::Head)).collect();
                    }
                    Unanswered::Side => {}
                }
            }
            if places.is_empty() && !matches!(known, Some((_, _, Unanswered::Side))) {
                return Err(format!("{scenario} {n}: no log has its response"));
            }
            let mut add = |place| {
                requests.push(Request { scenario: scenario.clone(), n, messages: recorded["messages"].clone(), place })
            };
            if places.is_empty() {
                add(None);
            }
            places.into_iter().for_each(|place| add(Some(place)));
        }
    }
    Ok(requests)
}

fn left_behind(source: &std::path::Path, into: &std::path::Path) -> Result<Vec<Log>, String> {
    let report = import::imported(source, into)?;
    report.logs.iter().filter_map(|log| log.path.as_deref()).map(Log::read).collect()
}

/// The first message of the response to request `n`, in each log that has it (a fork has its parent's).
fn before_response(logs: &[Log], n: u64) -> Vec<(PathBuf, At)> {
    let response = format!("msg_mock{n:020}");
    let first = |log: &Log| {
        let event = log.of_type("message.added").find(|e| e["data"]["response"] == response.as_str())?;
        Some((log.path.clone(), At::Before(event["id"].as_str()?.to_owned())))
    };
    logs.iter().filter_map(first).collect()
}

fn before_error(logs: &[Log], nth: usize) -> Vec<(PathBuf, At)> {
    let find = |log: &Log| {
        let event = log.of_type("message.added").filter(|e| e["data"]["purpose"] == "error").nth(nth)?;
        Some((log.path.clone(), At::Before(event["id"].as_str()?.to_owned())))
    };
    logs.iter().filter_map(find).collect()
}

impl Request {
    fn name(&self) -> String {
        let log =
            self.place.as_ref().map(|(log, _)| log.file_name().unwrap_or_default().to_string_lossy().into_owned());
        let log = log.map_or_else(|| "side request".into(), |name| name.trim_end_matches(".palog.jsonl").to_owned());
        format!("{} {} ({log})", self.scenario, self.n)
    }

    /// The messages of the log in their common form, and how often the repairs did something.
    fn context(&self, repairs: &[&Repair]) -> Result<(Vec<Said>, usize), String> {
        let Some((path, at)) = &self.place else {
            return Err("a side request has no place in the conversation".into());
        };
        let context = match at {
            At::Before(event) => Reference.context(path, Some(event))?,
            At::Head => Reference.context(path, None)?,
        };
        for member in ["omitted", "unresolved"] {
            let found = json::list(&context, &format!("/{member}"));
            if !found.is_empty() {
                return Err(format!("{member}: {found:?}"));
            }
        }
        let log = Log::read(path)?;
        let mut said = common(owned(&context, &log)?);
        let fired = repairs.iter().map(|repair| (repair.apply)(&mut said)).sum();
        Ok((said, fired))
    }

    fn equals(&self, repairs: &[&Repair]) -> Result<(), String> {
        let (found, _) = self.context(repairs)?;
        let expected = common(plain(&self.messages));
        let form = |said: &[Said]| -> Vec<Value> {
            said.iter()
                .map(|m| json!({"role": m.role, "content": m.blocks.iter().map(|b| &b.value).collect::<Vec<_>>()}))
                .collect()
        };
        let (found, expected) = (form(&found), form(&expected));
        if found == expected {
            return Ok(());
        }
        let at = found.iter().zip(&expected).position(|(a, b)| a != b).unwrap_or(found.len().min(expected.len()));
        let show = |side: &[Value]| side.get(at).map_or_else(|| "nothing".into(), Value::to_string);
        Err(format!("message {at}: the client sent\n  {}\nthe log gives\n  {}", show(&expected), show(&found)))
    }
}

/// The messages of a context. Blocks of users' messages are attributed to their events: results may stand elsewhere than
/// in the log, all others keep their order.
fn owned(context: &Value, log: &Log) -> Result<Vec<Said>, String> {
    let mut owners = Vec::new();
    for id in json::list(context, "/path/events") {
        let event = log.event(id.as_str().unwrap_or_default()).ok_or_else(|| format!("no event {id}"))?;
        if event["data"]["role"] == "user" {
            let parts = json::list(event, "/data/parts").iter().filter(|part| part["type"] != "result");
            owners.extend(parts.map(|_| id.as_str().map(str::to_owned)));
        }
    }
    let mut owners = owners.into_iter();
    let mut said = plain(&context["messages"]);
    for message in said.iter_mut().filter(|m| m.role == "user") {
        for block in message.blocks.iter_mut().filter(|b| b.value["type"] != "tool_result") {
            block.from = owners.next().ok_or("more blocks than parts")?;
        }
    }
    if owners.next().is_some() {
        return Err("more parts than blocks".into());
    }
    Ok(said)
}

fn plain(messages: &Value) -> Vec<Said> {
    let said = |message: &Value| Said {
        role: json::text(message, "/role").unwrap_or_default().into(),
        blocks: blocks(&message["content"]).into_iter().map(|value| Block { value, from: None }).collect(),
    };
    json::list(messages, "").iter().map(said).collect()
}

/// A string is one text block.
fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        other => other.as_array().cloned().unwrap_or_default(),
    }
}

/// The common form.
fn common(messages: Vec<Said>) -> Vec<Said> {
    let mut out: Vec<Said> = Vec::new();
    for mut message in messages.into_iter().filter(|m| m.role != "system") {
        message.blocks.retain(|block| !is_mark(&block.value));
        for block in &mut message.blocks {
            if block.value["type"] == "tool_result" && !block.value["content"].is_null() {
                let mut content = blocks(&block.value["content"]);
                content.retain(|inner| !is_mark(inner));
                block.value["content"] = content.into();
            }
        }
        match out.last_mut() {
            _ if message.blocks.is_empty() => {}
            Some(last) if last.role == message.role => last.blocks.extend(message.blocks),
            _ => out.push(message),
        }
    }
    out
}

/// Whether a block is wholly the mark of a text that was taken out of the recording.
fn is_mark(block: &Value) -> bool {
    let Some(text) = json::text(block, "/text").filter(|_| block["type"] == "text") else { return false };
    let Some(mark) = text.trim().strip_prefix('[').and_then(|t| t.strip_suffix(']')) else { return false };
    !mark.contains(['[', ']'])
        && (mark == "client text elided"
            || mark.starts_with("removed third-party text: ")
            || mark.strip_prefix("client ").is_some_and(|m| m.contains("removed: "))
            || mark.strip_prefix("third-party ").is_some_and(|m| m.contains("removed")))
}

/// Where users' records are merged and text meets text, the client ends the former with a line feed.
fn text_join(messages: &mut [Said]) -> usize {
    let mut fired = 0;
    for message in messages.iter_mut().filter(|m| m.role == "user") {
        for at in 1..message.blocks.len() {
            let (former, latter) = (&message.blocks[at - 1], &message.blocks[at]);
            let text = |block: &Block| block.value["type"] == "text";
            if text(former) && text(latter) && former.from != latter.from {
                let joined = format!("{}\n", json::text(&former.value, "/text").unwrap_or_default());
                message.blocks[at - 1].value["text"] = joined.into();
                fired += 1;
            }
        }
    }
    fired
}

/// A repair fires in the requests that it names, and in no other.
fn fires(repair: &Repair, requests: &[Request]) -> Result<(), String> {
    let mut found = BTreeSet::new();
    for request in requests.iter().filter(|r| r.place.is_some()) {
        if request.context(&[repair])?.1 > 0 {
            found.insert((request.scenario.as_str(), request.n));
        }
    }
    let expected: BTreeSet<_> = repair.fires.iter().copied().collect();
    if found.is_empty() || found != expected {
        return Err(format!("it fires in {found:?}, and should in {expected:?}"));
    }
    Ok(())
}

/// Without a repair the requests that it fires in differ, and no other.
fn needed(repair: &Repair, requests: &[Request]) -> Result<(), String> {
    let others: Vec<&Repair> = REPAIRS.iter().filter(|other| other.name != repair.name).collect();
    for request in requests.iter().filter(|r| r.place.is_some()) {
        let fires = repair.fires.contains(&(request.scenario.as_str(), request.n));
        if request.equals(&others).is_ok() == fires {
            return Err(format!("{}: fires {fires}, and the request is equal without it: {}", request.name(), !fires));
        }
    }
    Ok(())
}

fn complete(requests: &[Request]) -> Result<(), String> {
    let distinct: BTreeSet<(&str, u64)> = requests.iter().map(|r| (r.scenario.as_str(), r.n)).collect();
    let mut by_scenario: BTreeMap<&str, usize> = BTreeMap::new();
    distinct.iter().for_each(|(scenario, _)| *by_scenario.entry(scenario).or_default() += 1);
    let unanswered = UNANSWERED.iter().filter(|(scenario, n, _)| distinct.contains(&(scenario, *n))).count();
    let found = (by_scenario.len(), distinct.len(), distinct.len() - unanswered);
    if found == RECORDED && unanswered == UNANSWERED.len() {
        Ok(())
    } else {
        Err(format!("scenarios, requests and answered ones: {found:?}, and not {RECORDED:?}"))
    }
}
