//! The context that a log gives as messages of a chat completion equals what Hermes Agent sent to the model, request by request,
//! live and after it took a session up again.
//!
//! Both sides are brought into one form by exactly these steps: the system message, which is no part of the conversation, and
//! the names that live requests have beside results, are dropped. What the client does to its history beyond that is in
//! [`REPAIRS`], a closed list.

#[path = "support/fixtures.rs"]
mod fixtures;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use palog::blob::BlobStore;
use palog::project::{At, LeftOutReason, chat};
use palog_conformance::{Log, json};
use palog_import::{Directory, Options, discover};
use serde_json::{Value, json};

/// Something that the client does to its history when it makes a request of it.
struct Repair {
    name: &'static str,
    /// Applies it to the messages of the log, and tells how often it did something.
    apply: fn(&mut Vec<Value>, &Request) -> usize,
    /// The requests in which it does something.
    fires: &'static [&'static str],
}

/// Everything that the client does which the log does not hold.
const REPAIRS: &[Repair] = &[
    Repair {
        name: "arguments",
        apply: |messages, _| arguments(messages),
        fires: &[
            "02_tools 10",
            "02_tools 2",
            "02_tools 3",
            "02_tools 4",
            "02_tools 5",
            "02_tools 6",
            "02_tools 7",
            "02_tools 8",
            "02_tools 9",
            "03_reasoning 2",
            "03_reasoning 3",
            "04_delegate 2",
            "04_delegate 4",
            "04_delegate 5",
            "04_delegate 6",
            "05_interrupt 3",
            "05_interrupt 4",
            "09_background 3",
            "11_approval_kill9 2",
            "12_approval_deny 2",
            "12_approval_deny 3",
            "12_approval_deny 4",
            "15_title_cron 2",
            "15_title_cron 3",
            "hooks_approval 2",
            "hooks_approval 3",
            "hooks_approval 4",
            "hooks_approval 5",
            "hooks_approval 6",
            "hooks_approval 7",
            "hooks_approval 8",
            "hooks_granted_kill 2",
        ],
    },
    Repair { name: "stub", apply: stub, fires: &["11_approval_kill9 2", "hooks_granted_kill 2"] },
    Repair { name: "merged_prompts", apply: merged_prompts, fires: &["13_kill_midstream 2"] },
    Repair { name: "image", apply: |messages, request| image(messages, request), fires: &["08_image 2"] },
];

/// How many requests of the conversation were recorded, and how many for other ends.
const RECORDED: (usize, usize) = (66, 3);

/// One request of the client, and where in which log its context is to be had.
struct Request {
    name: String,
    messages: Vec<Value>,
    log: PathBuf,
    /// The last event that it was made of.
    seq: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let (requests, others) = match requests(scratch.path()) {
        Ok((requests, others)) => (Arc::new(requests), others),
        Err(why) => {
            let broken = Trial::test("the recorded requests can be read", move || Err(Failed::from(why)));
            return libtest_mimic::run(&arguments, vec![broken]).exit_code();
        }
    };
    let mut trials = Vec::new();
    for index in 0..requests.len() {
        let all = Arc::clone(&requests);
        let name = requests[index].name.clone();
        trials.push(Trial::test(name, move || {
            all[index].equals(&REPAIRS.iter().collect::<Vec<_>>()).map_err(Failed::from)
        }));
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
    let found = (requests.len(), others);
    trials.push(Trial::test("every recorded request is here", move || {
        if found == RECORDED { Ok(()) } else { Err(Failed::from(format!("{found:?}, and not {RECORDED:?}"))) }
    }));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Reads all recorded requests, imports what the client left behind, and finds the place of each.
fn requests(scratch: &Path) -> Result<(Vec<Request>, usize), String> {
    let sources = fixtures::folder().join("sources/hermes");
    let mut scenarios: Vec<PathBuf> =
        fs::read_dir(&sources).map_err(|e| e.to_string())?.filter_map(|e| Some(e.ok()?.path())).collect();
    scenarios.sort();
    let (mut requests, mut others) = (Vec::new(), 0);
    for folder in scenarios {
        let scenario = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut logs = imported(&folder.join("state.db"), &scratch.join(&scenario))?;
        let text = fs::read_to_string(folder.join("requests.jsonl")).map_err(|e| e.to_string())?;
        for line in text.lines() {
            let recorded = json::value(line).map_err(|e| format!("{scenario}: {e}"))?;
            if recorded["lane"] != "main" {
                others += 1;
                continue;
            }
            let name = format!("{scenario} {}", recorded["n"]);
            let messages = common(json::list(&recorded, "/body/messages").to_vec());
            let last = messages.last().ok_or_else(|| format!("{name}: no message"))?;
            let place = logs.iter_mut().find_map(|(log, from)| {
                let seq = made_of(log, *from, last, &messages[0])?;
                *from = seq;
                Some((log.path.clone(), seq))
            });
            let (log, seq) = place.ok_or_else(|| format!("{name}: no log has its last message"))?;
            requests.push(Request { name, messages, log, seq });
        }
    }
    Ok((requests, others))
}

/// The logs of a database, each with the place up to which requests were found.
fn imported(source: &Path, into: &Path) -> Result<Vec<(Log, u64)>, String> {
    let mut logs = Vec::new();
    for session in discover(source, None).map_err(|e| e.to_string())?.sessions {
        let report = session.import(&mut Directory::new(into), &Options::default()).map_err(|e| e.to_string())?;
        for log in report.logs.iter().filter_map(|log| log.path.as_deref()) {
            logs.push((Log::read(log)?, 0));
        }
    }
    Ok(logs)
}

/// The message event at `from` or behind it that a request ends with; only of a log that begins as the request does.
fn made_of(log: &Log, from: u64, last: &Value, first: &Value) -> Option<u64> {
    let text = |event: &Value| -> String {
        json::list(event, "/data/parts").iter().filter_map(|part| json::text(part, "/text")).collect()
    };
    let opening = log.of_type("message.added").next().map(text)?;
    let begins = json::text(first, "/content")
        .is_some_and(|content| content.contains(opening.lines().next().unwrap_or_default()));
    let sent = json::text(last, "/content").unwrap_or_default();
    let is_last = |event: &&Value| {
        let head = text(event);
        let words = head.lines().next().unwrap_or_default();
        match json::text(last, "/tool_call_id") {
            Some(call) => json::text(event, "/data/parts/0/action") == Some(call) && event["data"]["role"] == "tool",
            None => {
                let same = event["data"]["role"] == last["role"] && !words.is_empty();
                same && (sent.ends_with(&head)
                    || sent.contains(words) && sent.starts_with("[The user attached an image."))
            }
        }
    };
    let own = log.of_type("message.added").filter(|e| e["copy"].is_null() && json::count(e, "/seq") >= Some(from));
    let found = own.filter(|_| begins).find(is_last)?;
    json::count(found, "/seq")
}

impl Request {
    fn context(&self, repairs: &[&Repair]) -> Result<(Vec<Value>, BTreeMap<&'static str, usize>), String> {
        let file = File::open(&self.log).map_err(|e| e.to_string())?;
        let context =
            chat::context(file, At::Seq(self.seq), Some(&BlobStore::beside(&self.log))).map_err(|e| e.to_string())?;
        // The client keeps what the model thought, and does not send it to such a server.
        let is_thought = |part: &Option<String>| part.as_deref() == Some("reasoning");
        if let Some(other) =
            context.omitted.iter().find(|o| !is_thought(&o.part) || o.reason != LeftOutReason::Unsupported)
        {
            return Err(format!("omitted: {other:?}"));
        }
        let messages = context.messages.iter().map(|item| json::value(item.get()).map_err(|e| e.to_string()));
        let mut messages = common(messages.collect::<Result<Vec<_>, _>>()?);
        let fired = repairs.iter().map(|repair| (repair.name, (repair.apply)(&mut messages, self))).collect();
        Ok((messages, fired))
    }

    fn equals(&self, repairs: &[&Repair]) -> Result<(), String> {
        let (found, _) = self.context(repairs)?;
        if found == self.messages {
            return Ok(());
        }
        let expected = &self.messages;
        let at = found.iter().zip(expected).position(|(a, b)| a != b).unwrap_or(found.len().min(expected.len()));
        let show = |side: &[Value]| side.get(at).map_or_else(|| "nothing".into(), Value::to_string);
        Err(format!("message {at}: the client sent\n  {}\nthe log gives\n  {}", show(expected), show(&found)))
    }
}

/// The common form.
fn common(messages: Vec<Value>) -> Vec<Value> {
    let mut messages: Vec<Value> = messages.into_iter().filter(|message| message["role"] != "system").collect();
    for message in messages.iter_mut().filter(|message| message["role"] == "tool") {
        message.as_object_mut().map(|members| members.remove("name"));
    }
    messages
}

/// Arguments are written anew, without blanks and with their members in order.
fn arguments(messages: &mut [Value]) -> usize {
    let mut fired = 0;
    for call in messages.iter_mut().filter_map(|m| m.get_mut("tool_calls")?.as_array_mut()).flatten() {
        let Some(Value::String(arguments)) = call.pointer_mut("/function/arguments") else { continue };
        let Ok(value) = serde_json::from_str::<BTreeMap<String, Value>>(arguments) else { continue };
        let anew = json!(value).to_string();
        fired += usize::from(anew != *arguments);
        *arguments = anew;
    }
    fired
}

/// A call without a result gets one that says so, right behind the message that holds it. The client makes it up each time.
fn stub(messages: &mut Vec<Value>, _: &Request) -> usize {
    let told: BTreeSet<String> =
        messages.iter().filter_map(|m| json::text(m, "/tool_call_id").map(str::to_owned)).collect();
    let (mut out, mut fired) = (Vec::new(), 0);
    for message in messages.drain(..) {
        let calls: Vec<String> = json::list(&message, "/tool_calls")
            .iter()
            .filter_map(|c| json::text(c, "/id").map(str::to_owned))
            .collect();
        out.push(message);
        for call in calls.into_iter().filter(|call| !told.contains(call)) {
            let text = "[Result unavailable — see context summary above]";
            out.push(json!({"role": "tool", "content": text, "tool_call_id": call}));
            fired += 1;
        }
    }
    *messages = out;
    fired
}

/// A prompt without an answer and the next one are one message.
fn merged_prompts(messages: &mut Vec<Value>, _: &Request) -> usize {
    let (mut out, mut fired): (Vec<Value>, usize) = (Vec::new(), 0);
    for message in messages.drain(..) {
        match out.last_mut().filter(|last| last["role"] == "user" && message["role"] == "user") {
            Some(last) => {
                let text = |m: &Value| json::text(m, "/content").unwrap_or_default().to_owned();
                last["content"] = format!("{}\n\n{}", text(last), text(&message)).into();
                fired += 1;
            }
            None => out.push(message),
        }
    }
    *messages = out;
    fired
}

/// A picture becomes a description by another model, which is nowhere written down.
fn image(messages: &mut [Value], request: &Request) -> usize {
    let Some(sent) = request.messages.last().filter(|last| {
        json::text(last, "/content").is_some_and(|content| content.starts_with("[The user attached an image."))
    }) else {
        return 0;
    };
    let is_it =
        |own: &&mut Value| json::text(own, "/content").is_some_and(|text| text.contains("[Image attached at: "));
    match messages.last_mut().filter(is_it) {
        Some(own) => {
            *own = sent.clone();
            1
        }
        None => 0,
    }
}

/// A repair fires in the requests that it names, and in no other.
fn fires(repair: &Repair, requests: &[Request]) -> Result<(), String> {
    let mut found = BTreeSet::new();
    for request in requests {
        if request.context(&[repair])?.1.values().any(|times| *times > 0) {
            found.insert(request.name.as_str());
        }
    }
    let expected: BTreeSet<_> = repair.fires.iter().copied().collect();
    if found.is_empty() || found != expected {
        return Err(format!("it fires in {found:#?}, and should in {expected:#?}"));
    }
    Ok(())
}

/// Without a repair the requests that it fires in differ, and no other.
fn needed(repair: &Repair, requests: &[Request]) -> Result<(), String> {
    let others: Vec<&Repair> = REPAIRS.iter().filter(|other| other.name != repair.name).collect();
    for request in requests {
        let fires = repair.fires.contains(&request.name.as_str());
        let equal = request.equals(&others).is_ok();
        if equal == fires {
            return Err(format!("{}: fires {fires}, and the request is equal without it: {equal}", request.name));
        }
    }
    Ok(())
}
