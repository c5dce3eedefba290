//! The context as messages of the Anthropic Messages API (spec 04, "Context").

use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Seek};

use base64::Engine as _;
use serde::Serialize;

use crate::blob::BlobStore;
use crate::diagnostic::Diagnostics;
use crate::events::{Opaque, Part, Role};
use crate::json::{Raw, Value};
use crate::project::content::{Content, LeftOutReason, is_text};
use crate::project::context::{At, ContextError, Reading, Seen};
use crate::project::path::key;
use crate::project::shown::{CLEARED, LeftOut, Path, Unresolved, call_id, word};

/// The context of a model as messages of the Anthropic Messages API: what it saw, with nothing put in (spec 04, "Context").
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Context {
    /// The messages. User messages that follow one another are one message, as the API takes them.
    pub messages: Vec<Message>,
    /// Calls that stand in the messages without a result.
    pub unresolved: Vec<Unresolved>,
    /// What the model saw and the messages lack.
    pub omitted: Vec<LeftOut>,
    /// Where the messages come from.
    pub path: Path,
    /// What is wrong with the log.
    #[serde(skip)]
    pub diagnostics: Diagnostics,
}

/// One message of the API.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Message {
    /// `user` or `assistant`; `system` for what the client or the developer put between them.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["user", "assistant", "system"])))]
    pub role: Role,
    /// Its blocks.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<std::collections::BTreeMap<String, serde_json::Value>>"))]
    pub content: Vec<Raw<'static>>,
}

/// Makes the context at `at` from `log` (spec 04, "Context").
///
/// The log is read once from its start; then only the lines that are needed are read again. `blobs` is where its blobs
/// lie; content that is not there is left out, and listed.
///
/// # Errors
/// When the log or a blob cannot be read, or the log lacks the event that `at` names.
pub fn context<R: Read + Seek>(log: R, at: At<'_>, blobs: Option<&BlobStore>) -> Result<Context, ContextError> {
    let mut reading = Reading::open(log, at)?;
    let mut writer = Writer { content: Content::new(blobs), ..Writer::default() };
    let absent = reading.each(|seen| writer.take(seen))?;
    writer.omitted.extend(absent);
    writer.finish(reading)
}

/// A block of the API.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'b> {
    Text {
        text: Raw<'b>,
    },
    Thinking {
        thinking: Raw<'b>,
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<Raw<'b>>,
    },
    RedactedThinking {
        data: Raw<'b>,
    },
    Image {
        source: Source<'b>,
    },
    Document {
        source: Source<'b>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'b str>,
    },
    ToolUse {
        id: &'b str,
        name: &'b str,
        input: Raw<'b>,
    },
    ToolResult {
        tool_use_id: &'b str,
        content: Raw<'b>,
        #[serde(skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
    },
}

/// The content of an image or a document.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'b> {
    Base64 { media_type: &'b str, data: Raw<'b> },
    Text { media_type: &'b str, data: Raw<'b> },
    Url { url: Raw<'b> },
}

/// A block, or the place of a call that is still to be looked up.
#[derive(Debug)]
enum Slot {
    Block(Raw<'static>),
    Call { action: String, event: Option<String> },
}

/// What becomes one message, or a part of one.
#[derive(Debug)]
struct Entry {
    role: Role,
    slots: Vec<Slot>,
    /// The action that the only slot is a result of, and the event that holds it.
    result_of: Option<(String, Option<String>)>,
    /// Results of the calls in the slots.
    results: Vec<Slot>,
}

/// Collects messages.
#[derive(Debug, Default)]
struct Writer<'b> {
    content: Content<'b>,
    entries: Vec<Entry>,
    responses: HashMap<String, usize>,
    omitted: Vec<LeftOut>,
    path: Path,
}

impl Writer<'_> {
    fn take(&mut self, seen: &Seen<'_>) -> io::Result<()> {
        if let Some(event) = seen.event {
            self.path.events.push(event.to_owned());
            if seen.inferred {
                self.path.inferred.push(event.to_owned());
            }
        }
        let mut slots = Vec::new();
        for part in seen.parts {
            match part {
                Part::Result { action, parts, is_error, .. } => {
                    let content =
                        if seen.pruned.contains(&key(action)) { Raw::string(CLEARED) } else { self.told(seen, parts)? };
                    let result = Block::ToolResult { tool_use_id: call_id(action), content, is_error: *is_error };
                    let result = Slot::Block(Raw::of(&result));
                    if !slots.is_empty() {
                        self.place(seen, std::mem::take(&mut slots), None);
                    }
                    self.place(seen, vec![result], Some((action.to_string(), seen.event.map(str::to_owned))));
                }
                Part::Action { action } if seen.role == Role::Assistant => {
                    slots.push(Slot::Call { action: action.to_string(), event: seen.event.map(str::to_owned) });
                }
                other => slots.extend(self.block(seen, other)?.map(Slot::Block)),
            }
        }
        if !slots.is_empty() {
            self.place(seen, slots, None);
        }
        Ok(())
    }

    /// Puts blocks where they belong: assistant blocks of one response are one message.
    fn place(&mut self, seen: &Seen<'_>, slots: Vec<Slot>, result_of: Option<(String, Option<String>)>) {
        let role = match seen.role {
            Role::System | Role::Developer => Role::System,
            Role::Assistant if result_of.is_none() => Role::Assistant,
            Role::Assistant | Role::User | Role::Tool => Role::User,
        };
        if let (Role::Assistant, Some(response)) = (role, seen.response) {
            let next = self.entries.len();
            let at = *self.responses.entry(response.to_owned()).or_insert(next);
            if let Some(entry) = self.entries.get_mut(at) {
                entry.slots.extend(slots);
                return;
            }
        }
        self.entries.push(Entry { role, slots, result_of, results: Vec::new() });
    }

    /// The content of a result: a string where it is one text, else blocks.
    fn told(&mut self, seen: &Seen<'_>, parts: &[Part<'_>]) -> io::Result<Raw<'static>> {
        if let [Part::Text { text }] = parts
            && let Ok(text) = self.content.text(text)?
        {
            return Ok(text);
        }
        let mut blocks = Vec::new();
        for part in parts {
            blocks.extend(self.block(seen, part)?);
        }
        Ok(Raw::of(&blocks))
    }

    /// The block of a part; `None` and an entry in the list where it has none.
    fn block(&mut self, seen: &Seen<'_>, part: &Part<'_>) -> io::Result<Option<Raw<'static>>> {
        let block = match part {
            Part::Text { text } => self.content.text(text)?.map(|text| Raw::of(&Block::Text { text })),
            Part::Json { value } => {
                self.content.json(value)?.map(|json| Raw::of(&Block::Text { text: Raw::string(json.get()) }))
            }
            Part::Reasoning { text, opaque } => return self.reasoning(seen, text.as_ref(), opaque.as_ref()),
            Part::Image { media, data } => self.source(media, data)?.map(|source| Raw::of(&Block::Image { source })),
            Part::File { name, media, data } => match media.as_deref() {
                Some(media) if media == "application/pdf" => self.source(media, data)?.map(|s| (s, name)),
                Some(media) if media.starts_with("text/") => {
                    let text = self.content.text(data)?;
                    text.map(|data| (Source::Text { media_type: "text/plain", data }, name))
                }
                _ => Err(LeftOutReason::Unsupported),
            }
            .map(|(source, name)| Raw::of(&Block::Document { source, title: name.as_deref() })),
            Part::Opaque(opaque) if opaque.provider.as_str() == "anthropic" => {
                match self.content.json(&opaque.value)? {
                    Ok(json) if json.get().starts_with('{') => Ok(json),
                    Ok(_) => Err(LeftOutReason::Unsupported),
                    Err(reason) => Err(reason),
                }
            }
            Part::Opaque(_) => Err(LeftOutReason::OtherProvider),
            Part::Action { .. } | Part::Result { .. } => Err(LeftOutReason::Unsupported),
        };
        Ok(block.map_err(|reason| self.leave_out(seen.event, word(part), None, reason)).ok())
    }

    fn reasoning(
        &mut self,
        seen: &Seen<'_>,
        text: Option<&Value<'_>>,
        opaque: Option<&Opaque<'_>>,
    ) -> io::Result<Option<Raw<'static>>> {
        let mut left_out = None;
        let thinking = text.map(|text| self.content.text(text)).transpose()?.transpose().unwrap_or_else(|reason| {
            left_out = Some(reason);
            None
        });
        let mut signature = None;
        if let Some(opaque) = opaque {
            let kind = (opaque.provider.as_str(), opaque.kind.as_deref());
            match (kind, self.content.text(&opaque.value)?) {
                (("anthropic", Some("redacted_thinking")), Ok(data)) => {
                    return Ok(Some(Raw::of(&Block::RedactedThinking { data })));
                }
                (("anthropic", Some("signature")), Ok(text)) => signature = Some(text),
                (("anthropic", Some("signature" | "redacted_thinking")), Err(reason)) => left_out = Some(reason),
                (("anthropic", _), _) => left_out = Some(LeftOutReason::Unsupported),
                _ => left_out = Some(LeftOutReason::OtherProvider),
            }
        }
        if let Some(reason) = left_out {
            self.leave_out(seen.event, "reasoning", None, reason);
        }
        if thinking.is_none() && signature.is_none() {
            return Ok(None);
        }
        let thinking = thinking.unwrap_or_else(|| Raw::string(""));
        Ok(Some(Raw::of(&Block::Thinking { thinking, signature })))
    }

    /// Where the bytes of an image or a document are to be had.
    fn source<'m>(&mut self, media: &'m str, data: &Value<'_>) -> io::Result<Result<Source<'m>, LeftOutReason>> {
        Ok(match data {
            Value::Blob(blob) if !is_text(&blob.media) => self.content.bytes(data)?.map(|bytes| {
                let data = Raw::string(&base64::engine::general_purpose::STANDARD.encode(bytes));
                Source::Base64 { media_type: media, data }
            }),
            _ => self.content.text(data)?.map(|text| {
                let is_address = ["\"http://", "\"https://"].iter().any(|scheme| text.get().starts_with(scheme));
                if is_address { Source::Url { url: text } } else { Source::Base64 { media_type: media, data: text } }
            }),
        })
    }

    fn leave_out(&mut self, event: Option<&str>, part: &str, action: Option<&str>, reason: LeftOutReason) {
        let own = |text: &str| text.to_owned();
        let left_out =
            LeftOut { event: event.map(own), log: None, part: Some(own(part)), action: action.map(own), reason };
        self.omitted.push(left_out);
    }

    /// Joins results to their calls, looks the calls up, and writes the messages.
    fn finish<R: Read + Seek>(mut self, mut reading: Reading<R>) -> Result<Context, ContextError> {
        let mut entries = std::mem::take(&mut self.entries);
        let (resolved, uncalled) = join(&mut entries);
        for (action, event) in uncalled {
            self.leave_out(event.as_deref(), "result", Some(&action), LeftOutReason::NotCalled);
        }
        let (mut messages, mut unresolved) = (Vec::new(), Vec::new());
        for entry in entries {
            let mut blocks = Vec::new();
            for slot in entry.slots {
                match slot {
                    Slot::Block(block) => blocks.push(block),
                    Slot::Call { action, event } => {
                        let call = call_id(&action).to_owned();
                        let Some(block) = self.call(&mut reading, event.as_deref(), &action, &call)? else { continue };
                        blocks.push(block);
                        if !resolved.contains(&action) {
                            unresolved.push(Unresolved { action, call, event });
                        }
                    }
                }
            }
            say(&mut messages, entry.role, blocks);
            let results = entry.results.into_iter().filter_map(|slot| match slot {
                Slot::Block(block) => Some(block),
                Slot::Call { .. } => None,
            });
            say(&mut messages, Role::User, results.collect());
        }
        let mut diagnostics = reading.faults;
        diagnostics.extend(self.content.faults);
        Ok(Context { messages, unresolved, omitted: self.omitted, path: self.path, diagnostics })
    }

    /// The block of a call. Arguments that are not at hand stand as the log has them: a reference, or the mark of a value
    /// that is missing.
    fn call<R: Read + Seek>(
        &mut self,
        reading: &mut Reading<R>,
        event: Option<&str>,
        action: &str,
        call: &str,
    ) -> io::Result<Option<Raw<'static>>> {
        let block = reading.proposal(action, |proposed, _| {
            let input = match self.content.json(&proposed.args)? {
                Ok(json) => json,
                Err(reason) => {
                    self.leave_out(event, "action", Some(action), reason);
                    Raw::of(&proposed.args)
                }
            };
            Ok(Raw::of(&Block::ToolUse { id: call, name: &proposed.name, input }))
        })?;
        if block.is_none() {
            self.leave_out(event, "action", Some(action), LeftOutReason::NotProposed);
        }
        Ok(block)
    }
}

/// Moves the first result of each call behind the message that holds the call, and takes those out whose call is not among the
/// messages. Returns the actions that have a result, and the results that were taken out, by action and event.
fn join(entries: &mut Vec<Entry>) -> (HashSet<String>, Vec<(String, Option<String>)>) {
    let (mut calls, mut resolved, mut uncalled) = (HashMap::new(), HashSet::new(), Vec::new());
    for (at, entry) in entries.iter().enumerate() {
        for slot in &entry.slots {
            if let Slot::Call { action, .. } = slot {
                calls.entry(action.clone()).or_insert(at);
            }
        }
    }
    for at in 0..entries.len() {
        let Some((action, event)) = entries[at].result_of.clone() else { continue };
        match calls.get(&action) {
            Some(holder) => {
                if resolved.insert(action) {
                    let result = std::mem::take(&mut entries[at].slots);
                    entries[*holder].results.extend(result);
                }
            }
            None => {
                entries[at].slots.clear();
                uncalled.push((action, event));
            }
        }
    }
    entries.retain(|entry| !entry.slots.is_empty());
    (resolved, uncalled)
}

/// Adds a message, or blocks to a user message that is the last one.
fn say(messages: &mut Vec<Message>, role: Role, blocks: Vec<Raw<'static>>) {
    match messages.last_mut() {
        _ if blocks.is_empty() => {}
        Some(last) if role == Role::User && last.role == Role::User => last.content.extend(blocks),
        _ => messages.push(Message { role, content: blocks }),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use serde_json::{Value as Json, json};

    use super::*;
    use crate::project::sample::events;

    /// The context as its document.
    fn see(lines: &[&str], at: At<'_>) -> Json {
        let context = context(Cursor::new(events(lines)), at, None).expect("a context");
        serde_json::to_value(&context).expect("it serialises")
    }

    /// The messages in short: role, and of each block the text, the call or what it is a result of.
    fn short(context: &Json) -> Vec<String> {
        let block = |b: &Json| match b["type"].as_str() {
            Some("text") => b["text"].as_str().unwrap_or_default().to_owned(),
            Some("tool_use") => format!("call {}", b["id"].as_str().unwrap_or_default()),
            Some("tool_result") => {
                format!("{}={}", b["tool_use_id"].as_str().unwrap_or_default(), b["content"].as_str().unwrap_or("[…]"))
            }
            other => format!("<{}>", other.unwrap_or_default()),
        };
        let message = |m: &Json| {
            let blocks: Vec<String> = m["content"].as_array().expect("blocks").iter().map(block).collect();
            format!("{}: {}", m["role"].as_str().expect("a role"), blocks.join(", "))
        };
        context["messages"].as_array().expect("messages").iter().map(message).collect()
    }

    fn user(id: &str, text: &str) -> String {
        format!(r#"{id} message.added {{"role":"user","parts":[{{"type":"text","text":"{text}"}}]}}"#)
    }

    fn say(id: &str, response: &str, text: &str) -> String {
        format!(
            r#"{id} message.added {{"role":"assistant","response":"{response}","parts":[{{"type":"text","text":"{text}"}}]}}"#
        )
    }

    /// A message with a call, and the call itself.
    fn call(id: &str, response: &str, action: &str) -> [String; 2] {
        [
            format!(
                r#"{id} message.added {{"role":"assistant","response":"{response}","parts":[{{"type":"action","action":"{action}"}}]}}"#
            ),
            format!(
                r#"{id}p action.proposed {{"action":"{action}","name":"Bash","args":{{"n":1.0}},"args_digest":"sha256:0"}}"#
            ),
        ]
    }

    fn result(id: &str, action: &str, text: &str) -> String {
        format!(
            r#"{id} message.added {{"role":"tool","parts":[{{"type":"result","action":"{action}","parts":[{{"type":"text","text":"{text}"}}],"final":true}}]}}"#
        )
    }

    fn lines(of: &[String]) -> Vec<&str> {
        of.iter().map(String::as_str).collect()
    }

    /// Two calls of one response, the result of the second one first, and an answer.
    fn parallel() -> Vec<String> {
        let ([a, ap], [b, bp]) = (call("a", "r", "c1"), call("b", "r", "c2"));
        let told = [result("rb", "c2", "two"), result("ra", "c1", "one")];
        [vec![user("u", "go"), say("t", "r", "I go."), a, ap, b, bp], told.to_vec(), vec![say("e", "s", "Done.")]]
            .concat()
    }

    #[test]
    fn parallel_calls_are_one_message_and_their_results_another() {
        let log = parallel();
        let context = see(&lines(&log), At::Head);
        let want = ["user: go", "assistant: I go., call c1, call c2", "user: c2=two, c1=one", "assistant: Done."];
        assert_eq!(short(&context), want);
        assert_eq!(context["path"], json!({"events": ["u", "t", "a", "b", "rb", "ra", "e"]}));
        assert_eq!((&context["unresolved"], &context["omitted"]), (&json!([]), &json!([])));
    }

    #[test]
    fn a_response_is_regrouped_across_results_and_steering() {
        let ([a, ap], [b, bp]) = (call("a", "r", "c1"), call("b", "r", "c2"));
        let log =
            [user("u", "go"), a, ap, result("ra", "c1", "one"), user("q", "wait"), b, bp, result("rb", "c2", "two")];
        let want = ["user: go", "assistant: call c1, call c2", "user: c1=one, c2=two, wait"];
        assert_eq!(short(&see(&lines(&log), At::Head)), want);
    }

    #[test]
    fn a_call_that_comes_before_its_prompt_stands_behind_it() {
        let [a, ap] = call("a ^u", "r", "c1");
        let log = [user("o", "old"), a, ap.replace("a ^up", "p"), user("u", "go"), result("ra", "c1", "one")];
        let want = ["user: old, go", "assistant: call c1", "user: c1=one"];
        assert_eq!(short(&see(&lines(&log), At::Head)), want);
        assert_eq!(short(&see(&lines(&log), At::Seq(1))), ["user: old"], "at 1 the call is not yet proposed");
        let context = see(&lines(&log), At::Seq(1));
        assert_eq!(
            context["omitted"],
            json!([{"event": "a", "part": "action", "action": "c1", "reason": "not_proposed"}])
        );
        assert_eq!(context["path"], json!({"events": ["o", "a"], "inferred": ["a"]}));
    }

    #[test]
    fn a_rewind_leaves_the_dead_branch_out() {
        let log =
            [user("u", "go"), say("a", "r", "One."), user("v", "more"), say("b", "s", "Two."), user("w ^a", "other")];
        assert_eq!(short(&see(&lines(&log), At::Head)), ["user: go", "assistant: One.", "user: other"]);
        assert_eq!(short(&see(&lines(&log), At::Seq(3))).last().map(String::as_str), Some("assistant: Two."));
    }

    #[test]
    fn before_a_response_is_what_the_model_saw_when_it_produced_it() {
        let log = parallel();
        assert_eq!(short(&see(&lines(&log), At::Before("b"))), ["user: go"]);
        let want = ["user: go", "assistant: I go., call c1, call c2", "user: c2=two, c1=one"];
        assert_eq!(short(&see(&lines(&log), At::Before("e"))), want);
        let none = context(Cursor::new(events(&lines(&log))), At::Before("nobody"), None);
        assert!(matches!(none, Err(ContextError::NoSuchEvent(id)) if id == "nobody"));
    }

    #[test]
    fn an_unresolved_call_stays_and_is_told() {
        let log = parallel();
        let context = see(&lines(&log[..7]), At::Head);
        assert_eq!(short(&context), ["user: go", "assistant: I go., call c1, call c2", "user: c2=two"]);
        assert_eq!(context["unresolved"], json!([{"action": "c1", "call": "c1", "event": "a"}]));
    }

    #[test]
    fn a_result_without_its_call_is_left_out() {
        let log = [user("u", "go"), say("a", "r", "One."), result("ra", "lost", "one"), say("b", "s", "Two.")];
        let context = see(&lines(&log), At::Head);
        assert_eq!(short(&context), ["user: go", "assistant: One.", "assistant: Two."]);
        let left_out = json!([{"event": "ra", "part": "result", "action": "lost", "reason": "not_called"}]);
        assert_eq!(context["omitted"], left_out);
    }

    #[test]
    fn a_reused_call_id_is_the_vendors_and_a_second_result_keeps_its_place() {
        let ([a, ap], [b, bp]) = (call("a", "r", "c1"), call("b", "s", "c1#2"));
        let log = [a, ap, result("ra", "c1", "one"), b, bp, result("rb", "c1#2", "two"), result("rc", "c1", "late")];
        let want = ["assistant: call c1", "user: c1=one", "assistant: call c1", "user: c1=two, c1=late"];
        assert_eq!(short(&see(&lines(&log), At::Head)), want);
    }

    /// R-STA-008, R-EVT-009
    #[test]
    fn a_compaction_shows_its_window_and_then_what_follows() {
        let [a, ap] = call("a", "r", "c1");
        let mut log = vec![
            user("u", "go"),
            a,
            ap,
            result("ra", "c1", "one"),
            say("k", "s", "Kept."),
            r#"c context.compacted {"trigger":"manual","window":[{"event":"sum"},{"event":"k"},{"message":{"role":"user","parts":[{"type":"text","text":"note"}]}},{"event":"gone"}]}"#.to_owned(),
            user("sum", "summary"),
            user("v", "on"),
        ];
        let context = see(&lines(&log), At::Head);
        assert_eq!(short(&context), ["user: summary", "assistant: Kept.", "user: note, on"]);
        assert_eq!(context["path"]["events"], json!(["sum", "k", "v"]));
        assert_eq!(context["omitted"], json!([{"event": "gone", "reason": "not_in_log"}]));
        assert_eq!(
            short(&see(&lines(&log), At::Seq(5))),
            ["assistant: Kept.", "user: note"],
            "the summary comes later"
        );
        assert_eq!(short(&see(&lines(&log), At::Before("sum"))), ["assistant: Kept.", "user: note"]);
        assert_eq!(short(&see(&lines(&log), At::Seq(4))).first().map(String::as_str), Some("user: go"));

        // A second compaction replaces the first one, and can take from before it.
        log.extend([
            r#"d context.compacted {"window":[{"event":"sum2"},{"event":"a"},{"event":"ra"},{"event":"v","parts":[{"type":"text","text":"cut"}]}]}"#.to_owned(),
            user("sum2", "summary of all"),
            say("f", "z", "End."),
        ]);
        let all = ["user: summary of all", "assistant: call c1", "user: c1=one, cut"];
        assert_eq!(short(&see(&lines(&log), At::Head)), [&all[..], &["assistant: End."]].concat());
        assert_eq!(short(&see(&lines(&log), At::Seq(7))), ["user: summary", "assistant: Kept.", "user: note, on"]);
        assert_eq!(short(&see(&lines(&log), At::Before("f"))), all);
    }

    #[test]
    fn a_pruned_result_loses_its_content_only() {
        let prune = r#"x context.compacted {"pruned":["c2"]}"#.to_owned();
        let log = [parallel(), vec![prune, user("v", "on")]].concat();
        let want = [
            "user: go",
            "assistant: I go., call c1, call c2",
            "user: c2=[Old tool result content cleared], c1=one",
            "assistant: Done.",
            "user: on",
        ];
        assert_eq!(short(&see(&lines(&log), At::Head)), want);
        assert_eq!(short(&see(&lines(&log), At::Seq(8)))[2], "user: c2=two, c1=one");

        let replaced = r#"y context.compacted {"window":[{"event":"a"},{"event":"b"},{"event":"ra"},{"event":"rb","parts":[{"type":"result","action":"c2","parts":[{"type":"text","text":"cut"}],"final":true}]}]}"#.to_owned();
        let log = [log, vec![replaced]].concat();
        assert_eq!(
            short(&see(&lines(&log), At::Head)),
            ["assistant: call c1, call c2", "user: c1=one, c2=cut"],
            "what a window says stands"
        );
    }

    #[test]
    fn a_missing_parent_and_a_cycle_are_told_and_lose_nothing() {
        let log = [user("u", "go"), say("a ^gone", "r", "One."), user("b ^c", "x"), say("c ^b", "s", "Two.")];
        let context = context(Cursor::new(events(&lines(&log))), At::Head, None).expect("a context");
        let codes: Vec<&str> = context.diagnostics.groups().iter().map(|g| g.code.as_str()).collect();
        assert_eq!(codes, ["graph.cycle", "graph.missing_parent"]);
        assert_eq!(context.path.events, ["u", "a", "c", "b"]);
        assert_eq!(context.path.inferred, ["a", "c"]);
    }

    #[test]
    fn what_the_model_never_sees_is_no_message_and_instructions_keep_their_place() {
        let log = [
            user("u", "go"),
            r#"s message.added {"role":"system","parts":[{"type":"text","text":"Be kind."}]}"#.to_owned(),
            r#"x message.added {"role":"assistant","in_context":false,"parts":[{"type":"text","text":"API error"}]}"#
                .to_owned(),
        ];
        let context = see(&lines(&log), At::Head);
        assert_eq!(short(&context), ["user: go", "system: Be kind."]);
        assert_eq!(context["path"]["events"], json!(["u", "s"]));
    }

    #[test]
    fn values_pass_through_byte_for_byte() {
        let args = r#"{"n":18446744073709551617,"x":1e400,"k":1,"k":2,"t":"\u00e9"}"#;
        let [a, ap] = call("a", "r", "c1");
        let ap = ap.replace(r#"{"n":1.0}"#, args);
        let log = [user("u", r"a\/\u00e9 \ud83d"), a, ap];
        let context = context(Cursor::new(events(&lines(&log))), At::Head, None).expect("a context");
        let text = serde_json::to_string(&context.messages).expect("it serialises");
        let want = format!(
            r#"[{{"role":"user","content":[{{"type":"text","text":"a\/\u00e9 \ufffd"}}]}},{{"role":"assistant","content":[{{"type":"tool_use","id":"c1","name":"Bash","input":{args}}}]}}]"#
        );
        assert_eq!(text, want);
    }

    #[test]
    fn each_kind_of_part_has_its_block() {
        let log = [
            r#"a message.added {"role":"assistant","response":"r","parts":[
                {"type":"reasoning","text":"Hm.","opaque":{"provider":"anthropic","kind":"signature","value":"c2ln"}},
                {"type":"reasoning","opaque":{"provider":"anthropic","kind":"redacted_thinking","value":"ZGF0YQ=="}},
                {"type":"reasoning","opaque":{"provider":"openai","value":"zzz"}},
                {"type":"opaque","provider":"anthropic","kind":"server_tool_use","value":{"type":"server_tool_use","id":"s"}},
                {"type":"opaque","provider":"openai","value":{}},
                {"type":"action","action":"c1"}]}"#
                .replace('\n', ""),
            r#"p action.proposed {"action":"c1","name":"Read","args":{"$omitted":{"reason":"redacted"}},"args_digest":"sha256:0"}"#
                .to_owned(),
            r#"m message.added {"role":"tool","parts":[{"type":"result","action":"c1","is_error":false,"final":true,"parts":[
                {"type":"image","media":"image/png","data":"iVBORw0="},{"type":"json","value":{"a":1.0}}]}]}"#
                .replace('\n', ""),
            r#"u message.added {"role":"user","parts":[
                {"type":"image","media":"image/png","data":"https://example.org/a.png"},
                {"type":"file","name":"a.txt","media":"text/plain","data":"content"},
                {"type":"file","media":"application/zip","data":"UEs="}]}"#
                .replace('\n', ""),
        ];
        let context = see(&lines(&log), At::Head);
        let want = json!([
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "ZGF0YQ=="},
                {"type": "server_tool_use", "id": "s"},
                {"type": "tool_use", "id": "c1", "name": "Read", "input": {"$omitted": {"reason": "redacted"}}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "is_error": false, "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0="}},
                    {"type": "text", "text": r#"{"a":1.0}"#},
                ]},
                {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "content"}, "title": "a.txt"},
            ]},
        ]);
        assert_eq!(context["messages"], want);
        let omitted = json!([
            {"event": "a", "part": "reasoning", "reason": "other_provider"},
            {"event": "a", "part": "opaque", "reason": "other_provider"},
            {"event": "u", "part": "file", "reason": "unsupported"},
            {"event": "a", "part": "action", "action": "c1", "reason": "redacted"},
        ]);
        assert_eq!(context["omitted"], omitted);
    }

    #[test]
    fn pictures_come_out_of_blobs_as_base64() {
        let folder = std::env::temp_dir().join(format!("palog-context-{}", std::process::id()));
        let store = BlobStore::beside(&folder.join("a.palog.jsonl"));
        let blob =
            serde_json::to_string(&store.put(b"\x89PNG", "image/png", None).expect("it is written")).expect("json");
        let line = format!(
            r#"u message.added {{"role":"user","parts":[{{"type":"image","media":"image/png","data":{blob}}}]}}"#
        );
        let context = context(Cursor::new(events(&[&line])), At::Head, Some(&store)).expect("a context");
        std::fs::remove_dir_all(&folder).expect("it can be removed");
        let text = serde_json::to_string(&context.messages[0].content).expect("it serialises");
        assert_eq!(text, r#"[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw=="}}]"#);
    }
}
