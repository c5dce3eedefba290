//! Wrong implementations: each is the reference with one seeded fault, put into what goes in or what comes out.

use std::fs;
use std::path::Path;

use palog_conformance::{Implementation, Import, World, json};
use serde_json::{Value, json};

use crate::reference::Reference;

/// Every kind of fact that a producer can record.
const ALL: &str = r#"["action.proposed","action.started","action.ended","approval.requested","approval.ended","input.queued","input.ended","turn.ended","lease","child.ended","usage","workspace"]"#;

/// The families of the core types.
const FAMILIES: &[&str] = &[
    "log.",
    "source.",
    "observation.",
    "config.",
    "turn.",
    "input.",
    "message.",
    "model.",
    "action.",
    "approval.",
    "context.",
    "branch.",
    "child.",
    "note.",
    "lease.",
    "grant.",
    "task.",
    "attempt.",
    "plan.",
    "step.",
    "command.",
    "checkpoint.",
    "workspace.",
    "artifact.",
    "resource.",
    "redaction.",
];

/// An implementation with a fault.
pub(crate) struct Fault {
    /// Its name, as cases give it in `kills`.
    pub(crate) name: &'static str,
    seed: Seed,
}

/// Where the fault sits.
enum Seed {
    /// It reads another log than the one that is there.
    Log(fn(Vec<String>) -> Vec<String>),
    /// It reads other bytes than those that are there.
    Bytes(fn(Vec<u8>) -> Vec<u8>),
    /// It answers something else: to what, and how.
    Answer(fn(&str, &mut Value)),
    /// It knows no cursors.
    Cursor,
    /// It looks at nothing but the log.
    World,
    /// Its verdict is always the same.
    Constant(&'static str),
}

/// Every fault.
pub(crate) const FAULTS: &[Fault] = &[
    fault(
        "drops_last_line",
        Seed::Bytes(|bytes| match bytes[..bytes.len().saturating_sub(1)].iter().rposition(|b| *b == b'\n') {
            Some(at) => bytes[..=at].to_vec(),
            None => Vec::new(),
        }),
    ),
    fault(
        "parses_torn_tail",
        Seed::Bytes(|mut bytes| {
            bytes.push(b'\n');
            let doubled = bytes.ends_with(b"\n\n");
            bytes.truncate(bytes.len() - usize::from(doubled));
            bytes
        }),
    ),
    fault(
        "stops_at_a_fault",
        Seed::Bytes(|bytes| {
            let lines = bytes.split_inclusive(|b| *b == b'\n');
            lines
                .take_while(|line| {
                    line.len() <= 1 << 24 && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
                })
                .flatten()
                .copied()
                .collect()
        }),
    ),
    fault("reports_nothing", Seed::Answer(|_, answer| answer["diagnostics"] = json!([]))),
    fault(
        "refuses_everything",
        Seed::Answer(|operation, answer| match operation {
            "read" => answer["events"] = json!([]),
            _ => answer["diagnostics"] = json!([{"code": "json.syntax", "severity": "error", "count": 1, "at": []}]),
        }),
    ),
    fault(
        "reserialises",
        Seed::Answer(|operation, answer| {
            for event in answer["events"].as_array_mut().into_iter().flatten().filter(|_| operation == "read") {
                let read = json::value(event["data"].as_str().unwrap_or_default()).unwrap_or_default();
                event["data"] = read.to_string().into();
            }
        }),
    ),
    fault("ignores_cursors", Seed::Cursor),
    fault("compares_values", Seed::Log(|lines| lines.iter().map(|line| compact(line)).collect())),
    fault(
        "repeated_lines_count",
        Seed::Log(|lines| {
            let fresh = |(n, line): (usize, String)| with_text(&line, "id", &format!("n{n}"));
            renumbered(lines.into_iter().enumerate().map(fresh).collect())
        }),
    ),
    fault(
        "ignores_unknown",
        Seed::Log(|lines| {
            each(lines, |line, kind| {
                if FAMILIES.iter().any(|family| kind.starts_with(family)) {
                    return line;
                }
                line.replace("\"ignorable\":false,", "").replacen("\"data\":", "\"ignorable\":true,\"data\":", 1)
            })
        }),
    ),
    fault(
        "malformed_is_unknown",
        Seed::Answer(|_, answer| {
            let found = answer["diagnostics"].as_array_mut().into_iter().flatten();
            found
                .filter(|found| found["code"] == "schema.malformed")
                .for_each(|found| found["severity"] = "info".into());
            if let Some(reasons) = answer["state"]["indeterminate"].as_array_mut() {
                reasons.retain(|reason| reason["code"] != "schema.malformed");
            }
        }),
    ),
    fault(
        "silence_is_proof",
        Seed::Log(|lines| {
            each(lines, |line, kind| match kind {
                "log.opened" | "source.opened" => match line.split_once("\"records\":[") {
                    Some((before, rest)) => {
                        format!("{before}\"records\":{ALL}{}", rest.split_once(']').map_or("", |(_, after)| after))
                    }
                    None => line.replacen("\"data\":{", &format!("\"data\":{{\"records\":{ALL},"), 1),
                },
                _ => line,
            })
        }),
    ),
    fault(
        "unknown_is_not_run",
        Seed::Answer(|_, answer| {
            actions(answer, |action| {
                if ["unknown", "running"].contains(&action["state"].as_str().unwrap_or_default()) {
                    (action["state"], action["applied"]) = ("proposed".into(), "no".into());
                }
            });
            instead(answer, "needs_reconcile", "ready", &["R-REC-007", "R-REC-008"], "run");
        }),
    ),
    fault("start_is_ignored", Seed::Log(|lines| without(lines, &["action.started"]))),
    fault("reconciliation_is_ignored", Seed::Log(|lines| without(lines, &["action.reconciled"]))),
    fault("compaction_is_ignored", Seed::Log(|lines| without(lines, &["context.compacted"]))),
    fault("closed_is_ignored", Seed::Log(|lines| without(lines, &["log.closed"]))),
    fault(
        "denial_is_ignored",
        Seed::Log(|lines| {
            each(
                lines,
                |line, kind| {
                    if line.contains("\"outcome\":\"denied\"") { passed_over(&line, kind) } else { line }
                },
            )
        }),
    ),
    fault(
        "result_is_an_end",
        Seed::Log(|lines| {
            renumbered(lines.into_iter().enumerate().flat_map(|(n, line)| {
        let event = json::value(&line).unwrap_or_default();
        let part = json::at(&event, "/data/parts/0");
        let end = (part["type"] == "result").then(|| {
            let data = json!({"action": part["action"], "outcome": "succeeded", "applied": "yes"});
            let (log, id) = (&event["log"], format!("end{n}"));
            format!(r#"{{"palog":1,"log":{log},"seq":0,"id":"{id}","type":"action.ended","time":null,"actor":{{"kind":"tool"}},"data":{data}}}"#)
        });
        [line].into_iter().chain(end)
    }).collect())
        }),
    ),
    fault(
        "newest_attempt_alone",
        Seed::Answer(|_, answer| {
            actions(answer, |action| {
                if action["doubt"] == "earlier_attempt" {
                    action["state"] = "succeeded".into();
                }
            })
        }),
    ),
    fault(
        "last_end_wins",
        Seed::Log(|lines| {
            let last = lines.iter().rposition(|line| line.contains("\"type\":\"action.ended\""));
            let keep =
                |(n, line): (usize, String)| if Some(n) == last { line } else { passed_over(&line, "action.ended") };
            lines.into_iter().enumerate().map(keep).collect()
        }),
    ),
    fault(
        "grant_is_a_start",
        Seed::Answer(|_, answer| {
            actions(answer, |action| {
                if action["state"] == "approved" {
                    action["state"] = "running".into();
                }
            })
        }),
    ),
    fault(
        "expires_by_the_clock",
        Seed::Answer(|_, answer| {
            let expires = json::list(answer, "/state/approvals").iter().any(|approval| !approval["expires"].is_null());
            actions(answer, |action| {
                if expires && action["state"] == "awaiting" {
                    action["state"] = "lapsed".into();
                }
            });
        }),
    ),
    fault("looking_is_enough", Seed::Log(|lines| each(lines, |line, _| line.replace("\"looked_up\"", "\"human\"")))),
    fault("copies_count", Seed::Log(|lines| each(lines, |line, _| without_member(&line, "\"copy\":{", "},")))),
    fault(
        "order_not_parent",
        Seed::Log(|lines| {
            without(each(lines, |line, _| without_member(&line, "\"parent\":\"", "\",")), &["branch.moved"])
        }),
    ),
    fault(
        "epochs_are_ignored",
        Seed::Log(|lines| {
            each(lines, |line, _| match line.split_once("\"data\":") {
                Some((envelope, data)) => format!("{}\"data\":{data}", without_member(envelope, "\"epoch\":", ",")),
                None => line,
            })
        }),
    ),
    fault(
        "orders_by_time",
        Seed::Log(|lines| {
            let time =
                |line: &String| json::value(line).ok().and_then(|event| event["time"].as_str().map(str::to_owned));
            let places: Vec<usize> =
                lines.iter().enumerate().filter(|(_, line)| time(line).is_some()).map(|(n, _)| n).collect();
            let mut dated: Vec<String> = lines.iter().filter(|line| time(line).is_some()).cloned().collect();
            dated.sort_by_key(time);
            let mut lines = lines;
            places.into_iter().zip(dated).for_each(|(n, line)| lines[n] = line);
            renumbered(lines)
        }),
    ),
    fault(
        "role_is_the_actor",
        Seed::Log(|lines| {
            each(lines, |line, _| {
                if line.contains("\"role\":\"user\"") {
                    without_member(&line.replace("\"kind\":\"harness\"", "\"kind\":\"user\""), ",\"purpose\":\"", "\"")
                } else {
                    line
                }
            })
        }),
    ),
    fault(
        "counts_every_report",
        Seed::Log(|lines| {
            lines
                .into_iter()
                .enumerate()
                .map(|(n, line)| {
                    if line.contains("\"type\":\"model.response\"") {
                        line.replacen("\"response\":\"", &format!("\"response\":\"{n}-"), 1)
                    } else {
                        line
                    }
                })
                .collect()
        }),
    ),
    fault(
        "a_message_always_answers",
        Seed::Answer(|_, answer| {
            if let Some(turns) = answer["state"]["turns"].as_object_mut() {
                turns.insert("answered".into(), turns["count"].clone());
            }
        }),
    ),
    fault(
        "corrupt_is_ready",
        Seed::Answer(|operation, answer| {
            if operation == "recovery" && answer["verdict"] == "indeterminate" {
                answer["verdict"] = "ready".into();
            }
        }),
    ),
    fault("world_is_ignored", Seed::World),
    fault(
        "same_call_runs",
        Seed::Answer(|_, answer| instead(answer, "awaiting_human", "ready", &["R-REC-017"], "run")),
    ),
    fault(
        "every_grant_is_good",
        Seed::Answer(|_, answer| instead(answer, "awaiting_human", "ready", &["R-REC-018"], "run")),
    ),
    fault(
        "nothing_blocks",
        Seed::Answer(|_, answer| {
            answer["obligations"].as_array_mut().into_iter().flatten().for_each(|owed| owed["blocking"] = false.into());
        }),
    ),
    fault(
        "owes_nothing",
        Seed::Answer(|operation, answer| {
            if operation == "recovery" {
                answer["obligations"] = json!([]);
            }
        }),
    ),
    fault(
        "forgets_the_last_action",
        Seed::Answer(|_, answer| {
            if let Some(actions) = answer["state"]["actions"].as_array_mut() {
                actions.pop();
            }
        }),
    ),
    fault("state_of_an_empty_log", Seed::Bytes(|_| Vec::new())),
    fault("always_indeterminate", Seed::Constant("indeterminate")),
    fault("always_closed", Seed::Constant("closed")),
    fault("always_owned", Seed::Constant("owned")),
    fault("always_needs_reconcile", Seed::Constant("needs_reconcile")),
    fault("always_awaiting_human", Seed::Constant("awaiting_human")),
    fault("always_ready", Seed::Constant("ready")),
    fault("always_idle", Seed::Constant("idle")),
];

const fn fault(name: &'static str, seed: Seed) -> Fault {
    Fault { name, seed }
}

/// The type of the event in a line.
fn kind(line: &str) -> &str {
    line.split_once("\"type\":\"").and_then(|(_, rest)| rest.split_once('"')).map_or("", |(kind, _)| kind)
}

fn each(lines: Vec<String>, change: impl Fn(String, &str) -> String) -> Vec<String> {
    lines.into_iter().map(|line| change(line.clone(), kind(&line))).collect()
}

/// Makes an event one that nobody needs to know.
fn passed_over(line: &str, kind: &str) -> String {
    line.replacen(&format!("\"type\":\"{kind}\""), "\"type\":\"x.org.example/gone\"", 1)
}

fn without(lines: Vec<String>, kinds: &[&str]) -> Vec<String> {
    each(lines, |line, kind| if kinds.contains(&kind) { passed_over(&line, kind) } else { line })
}

/// Takes out what begins with `from` and ends with the next `to`.
fn without_member(line: &str, from: &str, to: &str) -> String {
    let Some((before, rest)) = line.split_once(from) else { return line.to_owned() };
    rest.split_once(to).map_or_else(|| line.to_owned(), |(_, after)| format!("{before}{after}"))
}

/// Replaces the first string that is the value of `member`.
fn with_text(line: &str, member: &str, text: &str) -> String {
    let mark = format!("\"{member}\":\"");
    let Some((before, rest)) = line.split_once(&mark) else { return line.to_owned() };
    rest.split_once('"').map_or_else(|| line.to_owned(), |(_, after)| format!("{before}{mark}{text}\"{after}"))
}

fn renumbered(lines: Vec<String>) -> Vec<String> {
    let renumber = |(n, line): (usize, String)| {
        let Some((before, rest)) = line.split_once("\"seq\":") else { return line };
        format!("{before}\"seq\":{n}{}", rest.trim_start_matches(|c: char| c.is_ascii_digit()))
    };
    lines.into_iter().enumerate().map(renumber).collect()
}

/// Takes spaces out that stand outside of strings.
fn compact(line: &str) -> String {
    let (mut inside, mut escaped) = (false, false);
    line.chars()
        .filter(|c| {
            if inside {
                (inside, escaped) = (escaped || *c != '"', !escaped && *c == '\\');
                return true;
            }
            inside = *c == '"';
            *c != ' '
        })
        .collect()
}

fn actions(answer: &mut Value, change: impl Fn(&mut Value)) {
    answer["state"]["actions"].as_array_mut().into_iter().flatten().for_each(change);
}

/// Decides something else, and gives another verdict.
fn instead(answer: &mut Value, verdict: &str, other: &str, rules: &[&str], decision: &str) {
    let mut changed = false;
    for owed in answer["obligations"].as_array_mut().into_iter().flatten() {
        if rules.iter().any(|rule| owed["rule"] == *rule) {
            (owed["decision"], owed["blocking"], changed) = (decision.into(), false.into(), true);
        }
    }
    if changed && answer["verdict"] == verdict {
        answer["verdict"] = other.into();
    }
}

impl Fault {
    /// Asks the reference, with the fault in what it is asked or what it answers.
    fn ask(&self, operation: &str, log: &Path, ask: impl Fn(&Path) -> Result<Value, String>) -> Result<Value, String> {
        let change = |change: &dyn Fn(Vec<u8>) -> Vec<u8>| {
            let changed = log.with_file_name("changed.palog.jsonl");
            fs::write(&changed, change(fs::read(log).map_err(|e| e.to_string())?)).map_err(|e| e.to_string())?;
            ask(&changed)
        };
        match &self.seed {
            Seed::Bytes(seed) => change(seed),
            Seed::Log(seed) => change(&|bytes| match String::from_utf8(bytes) {
                Ok(text) => seed(text.lines().map(str::to_owned).collect())
                    .iter()
                    .flat_map(|line| [line, "\n"])
                    .collect::<String>()
                    .into_bytes(),
                Err(other) => other.into_bytes(),
            }),
            Seed::Answer(seed) => {
                let mut answer = ask(log)?;
                seed(operation, &mut answer);
                Ok(answer)
            }
            Seed::Constant(verdict) => {
                let mut answer = ask(log)?;
                if operation == "recovery" {
                    answer["verdict"] = (*verdict).into();
                }
                Ok(answer)
            }
            Seed::Cursor | Seed::World => ask(log),
        }
    }
}

impl Implementation for Fault {
    fn import(&self, source: &Path, into: &Path) -> Result<Import, String> {
        Reference.import(source, into)
    }

    fn read(&self, log: &Path, after: Option<&str>) -> Result<Value, String> {
        let after = after.filter(|_| !matches!(self.seed, Seed::Cursor));
        self.ask("read", log, |log| Reference.read(log, after))
    }

    fn validate(&self, log: &Path) -> Result<Value, String> {
        self.ask("validate", log, |log| Reference.validate(log))
    }

    fn state(&self, log: &Path) -> Result<Value, String> {
        self.ask("state", log, |log| Reference.state(log))
    }

    fn recovery(&self, log: &Path, world: &World) -> Result<Value, String> {
        let nothing = World::default();
        let world = if matches!(self.seed, Seed::World) { &nothing } else { world };
        self.ask("recovery", log, |log| Reference.recovery(log, world))
    }

    fn context(&self, log: &Path, before: Option<&str>) -> Result<Value, String> {
        self.ask("context", log, |log| Reference.context(log, before))
    }
}
