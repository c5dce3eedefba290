//! The context as the messages of a chat completion, as OpenAI and many others take them (spec 04, "Context").

use std::collections::HashSet;
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

/// Whose opaque parts go back as they are: parts of a content, and `reasoning_details` beside it.
const PROVIDER: &str = "openai-chat";

/// The context of a model as the messages of a chat completion: what it saw, with nothing put in (spec 04, "Context").
///
/// Instructions that the definition holds, and tools, are no part of the messages.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Context {
    /// The messages, in the order in which the model saw them.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<std::collections::BTreeMap<String, serde_json::Value>>"))]
    pub messages: Vec<Raw<'static>>,
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

/// A message of the API.
#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message<'m> {
    System {
        content: Raw<'m>,
    },
    User {
        content: Raw<'m>,
    },
    Assistant {
        content: Raw<'m>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_details: Option<Raw<'m>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Raw<'m>>,
    },
    Tool {
        content: Raw<'m>,
        tool_call_id: &'m str,
    },
}

/// A part of a content.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'b> {
    Text { text: Raw<'b> },
    ImageUrl { image_url: Address<'b> },
    File { file: FileData<'b> },
}

#[derive(Serialize)]
struct Address<'a> {
    url: Raw<'a>,
}

#[derive(Serialize)]
struct FileData<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<&'a str>,
    file_data: Raw<'a>,
}

#[derive(Serialize)]
struct ToolCall<'c> {
    id: &'c str,
    r#type: &'static str,
    function: Function<'c>,
}

#[derive(Serialize)]
struct Function<'f> {
    name: &'f str,
    arguments: Raw<'f>,
}

/// What stands in a content: a text, or any other part.
#[derive(Debug)]
enum Piece {
    Text(Raw<'static>),
    Other(Raw<'static>),
}

/// What the parts of a message have in common.
#[derive(Debug, PartialEq, Eq)]
enum Of {
    /// They are of one response.
    Response(String),
    /// They are of one message of the log, by its number.
    Message(usize),
}

/// A message before its calls are looked up.
#[derive(Debug)]
struct Draft {
    role: Role,
    /// `None`: nothing more goes into it.
    of: Option<Of>,
    pieces: Vec<Piece>,
    reasoning: Option<Raw<'static>>,
    /// Actions with the events that hold them.
    calls: Vec<(String, Option<String>)>,
    /// The action that a result is of, and the event that holds it.
    result: Option<(String, Option<String>)>,
}

/// Collects messages.
#[derive(Debug, Default)]
struct Writer<'b> {
    content: Content<'b>,
    drafts: Vec<Draft>,
    omitted: Vec<LeftOut>,
    path: Path,
    /// How many messages of the log were seen.
    seen: usize,
}

impl Writer<'_> {
    fn take(&mut self, seen: &Seen<'_>) -> io::Result<()> {
        self.seen += 1;
        if let Some(event) = seen.event {
            self.path.events.push(event.to_owned());
            if seen.inferred {
                self.path.inferred.push(event.to_owned());
            }
        }
        for part in seen.parts {
            match part {
                Part::Result { action, parts, .. } => {
                    let pieces = if seen.pruned.contains(&key(action)) {
                        vec![Piece::Text(Raw::string(CLEARED))]
                    } else {
                        self.pieces(seen, parts)?
                    };
                    let result = Some((action.to_string(), seen.event.map(str::to_owned)));
                    let calls = Vec::new();
                    self.drafts.push(Draft { role: Role::Tool, of: None, pieces, reasoning: None, calls, result });
                }
                Part::Action { action } if seen.role == Role::Assistant => {
                    let call = (action.to_string(), seen.event.map(str::to_owned));
                    self.open(seen).calls.push(call);
                }
                Part::Reasoning { opaque, .. } => {
                    if let Some(details) = self.reasoning(seen, opaque.as_ref())? {
                        self.open(seen).reasoning = Some(details);
                    }
                }
                other => {
                    if let Some(piece) = self.piece(seen, other)? {
                        self.open(seen).pieces.push(piece);
                    }
                }
            }
        }
        Ok(())
    }

    /// The message that parts of `seen` go into: parts of one response are one message, and so are those of one event.
    fn open(&mut self, seen: &Seen<'_>) -> &mut Draft {
        let role = if seen.role == Role::Tool { Role::User } else { seen.role };
        let of = match (seen.response, role) {
            (Some(response), Role::Assistant) => Of::Response(response.to_owned()),
            _ => Of::Message(self.seen),
        };
        if self.drafts.last().is_none_or(|last| last.role != role || last.of.as_ref() != Some(&of)) {
            let (pieces, calls) = (Vec::new(), Vec::new());
            self.drafts.push(Draft { role, of: Some(of), pieces, reasoning: None, calls, result: None });
        }
        let last = self.drafts.len() - 1;
        &mut self.drafts[last]
    }

    fn pieces(&mut self, seen: &Seen<'_>, parts: &[Part<'_>]) -> io::Result<Vec<Piece>> {
        let mut pieces = Vec::new();
        for part in parts {
            pieces.extend(self.piece(seen, part)?);
        }
        Ok(pieces)
    }

    /// A part of a content; `None` and an entry in the list where it has no form.
    fn piece(&mut self, seen: &Seen<'_>, part: &Part<'_>) -> io::Result<Option<Piece>> {
        let piece = match part {
            Part::Text { text } => self.content.text(text)?.map(Piece::Text),
            Part::Json { value } => self.content.json(value)?.map(|json| Piece::Text(Raw::string(json.get()))),
            Part::Image { media, data } => {
                self.url(media, data)?.map(|url| Piece::Other(Raw::of(&Block::ImageUrl { image_url: Address { url } })))
            }
            Part::File { name, media, data } => match media.as_deref() {
                Some(media) if media.starts_with("text/") => self.content.text(data)?.map(Piece::Text),
                Some(media) => self.url(media, data)?.map(|file_data| {
                    let file = FileData { filename: name.as_deref(), file_data };
                    Piece::Other(Raw::of(&Block::File { file }))
                }),
                None => Err(LeftOutReason::Unsupported),
            },
            Part::Opaque(opaque) if opaque.provider.as_str() == PROVIDER => match self.content.json(&opaque.value)? {
                Ok(json) if json.get().starts_with('{') => Ok(Piece::Other(json)),
                Ok(_) => Err(LeftOutReason::Unsupported),
                Err(reason) => Err(reason),
            },
            Part::Opaque(_) => Err(LeftOutReason::OtherProvider),
            Part::Reasoning { .. } | Part::Action { .. } | Part::Result { .. } => Err(LeftOutReason::Unsupported),
        };
        Ok(piece.map_err(|reason| self.leave_out(seen.event, word(part), None, reason)).ok())
    }

    /// Reasoning goes back as the details that the provider made; its text alone is nothing that the API takes.
    fn reasoning(&mut self, seen: &Seen<'_>, opaque: Option<&Opaque<'_>>) -> io::Result<Option<Raw<'static>>> {
        let own = opaque.filter(|o| o.provider.as_str() == PROVIDER && o.kind.as_deref() == Some("reasoning_details"));
        let reason = match (own, opaque) {
            (Some(own), _) => match self.content.json(&own.value)? {
                Ok(details) => return Ok(Some(details)),
                Err(reason) => reason,
            },
            (None, Some(_)) => LeftOutReason::OtherProvider,
            (None, None) => LeftOutReason::Unsupported,
        };
        self.leave_out(seen.event, "reasoning", None, reason);
        Ok(None)
    }

    /// The address of an image or a file, or its bytes in one.
    fn url(&mut self, media: &str, data: &Value<'_>) -> io::Result<Result<Raw<'static>, LeftOutReason>> {
        let with = |base64: &str| Raw::string(&format!("data:{media};base64,{base64}"));
        Ok(match data {
            Value::Blob(blob) if !is_text(&blob.media) => {
                self.content.bytes(data)?.map(|bytes| with(&base64::engine::general_purpose::STANDARD.encode(bytes)))
            }
            _ => self.content.text(data)?.map(|raw| {
                let text = raw.text().unwrap_or_default();
                let is_address = ["http://", "https://", "data:"].iter().any(|scheme| text.starts_with(scheme));
                if is_address { Raw::string(&text) } else { with(&text) }
            }),
        })
    }

    fn leave_out(&mut self, event: Option<&str>, part: &str, action: Option<&str>, reason: LeftOutReason) {
        let own = |text: &str| text.to_owned();
        let left_out =
            LeftOut { event: event.map(own), log: None, part: Some(own(part)), action: action.map(own), reason };
        self.omitted.push(left_out);
    }

    /// Looks the calls up, and writes the messages.
    fn finish<R: Read + Seek>(mut self, mut reading: Reading<R>) -> Result<Context, ContextError> {
        let drafts = std::mem::take(&mut self.drafts);
        let told: HashSet<String> = drafts.iter().filter_map(|draft| Some(draft.result.clone()?.0)).collect();
        let called: HashSet<String> =
            drafts.iter().flat_map(|draft| &draft.calls).map(|(action, _)| action.clone()).collect();
        let (mut messages, mut unresolved) = (Vec::new(), Vec::new());
        for Draft { role, pieces, reasoning, calls, result, .. } in drafts {
            let mut tool_calls = Vec::new();
            for (action, event) in calls {
                let Some(call) = self.call(&mut reading, event.as_deref(), &action)? else { continue };
                tool_calls.push(call);
                if !told.contains(&action) {
                    unresolved.push(Unresolved { call: call_id(&action).to_owned(), action, event });
                }
            }
            if let Some((action, event)) = result.as_ref().filter(|(action, _)| !called.contains(action)) {
                self.leave_out(event.as_deref(), "result", Some(action), LeftOutReason::NotCalled);
                continue;
            }
            let content = content(pieces);
            messages.push(match (role, result) {
                (_, Some((action, _))) => Raw::of(&Message::Tool { content, tool_call_id: call_id(&action) }),
                (Role::Assistant, None) => {
                    Raw::of(&Message::Assistant { content, reasoning_details: reasoning, tool_calls })
                }
                (Role::System | Role::Developer, None) => Raw::of(&Message::System { content }),
                (Role::User | Role::Tool, None) => Raw::of(&Message::User { content }),
            });
        }
        let mut diagnostics = reading.faults;
        diagnostics.extend(self.content.faults);
        Ok(Context { messages, unresolved, omitted: self.omitted, path: self.path, diagnostics })
    }

    /// A call. Arguments that are not at hand stand as the log has them: a reference, or the mark of a value that is missing.
    fn call<R: Read + Seek>(
        &mut self,
        reading: &mut Reading<R>,
        event: Option<&str>,
        action: &str,
    ) -> io::Result<Option<Raw<'static>>> {
        let call = reading.proposal(action, |proposed, _| {
            let args = match self.content.json(&proposed.args)? {
                Ok(json) => json,
                Err(reason) => {
                    self.leave_out(event, "action", Some(action), reason);
                    Raw::of(&proposed.args)
                }
            };
            // The API takes arguments as a string.
            let arguments = if args.is_string() { args } else { Raw::string(args.get()) };
            let function = Function { name: proposed.name.as_str(), arguments };
            Ok(Raw::of(&ToolCall { id: call_id(action), r#type: "function", function }))
        })?;
        if call.is_none() {
            self.leave_out(event, "action", Some(action), LeftOutReason::NotProposed);
        }
        Ok(call)
    }
}

/// A content: a string where it is one text or nothing, else a list.
fn content(pieces: Vec<Piece>) -> Raw<'static> {
    if let [Piece::Text(text)] = &pieces[..] {
        return text.clone();
    }
    if pieces.is_empty() {
        return Raw::string("");
    }
    let block = |piece| match piece {
        Piece::Text(text) => Raw::of(&Block::Text { text }),
        Piece::Other(part) => part,
    };
    Raw::of(&pieces.into_iter().map(block).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use serde_json::{Value as Json, json};

    use super::*;
    use crate::project::sample::events;

    fn see(lines: &[&str]) -> Json {
        let context = context(Cursor::new(events(lines)), At::Head, None).expect("a context");
        serde_json::to_value(&context).expect("it serialises")
    }

    #[test]
    fn a_response_is_one_message_and_each_result_another() {
        let seen = see(&[
            r#"m1 message.added {"role":"user","parts":[{"type":"text","text":"go"}]}"#,
            r#"m2 message.added {"role":"assistant","response":"r","parts":[{"type":"reasoning","text":"hm"},{"type":"text","text":"I look"}]}"#,
            r#"m3 message.added {"role":"assistant","response":"r","parts":[{"type":"action","action":"a"},{"type":"action","action":"b#2"}]}"#,
            r#"p action.proposed {"action":"a","name":"Bash","args":{"command": "ls"},"args_digest":"x"}"#,
            r#"q action.proposed {"action":"b#2","name":"Bash","args":"{not json","args_digest":"x"}"#,
            r#"m4 message.added {"role":"tool","parts":[{"type":"result","action":"a","parts":[{"type":"text","text":"a.txt"}],"final":true}]}"#,
            r#"m5 message.added {"role":"assistant","response":"s","parts":[{"type":"text","text":"done"}]}"#,
        ]);
        assert_eq!(
            seen["messages"],
            json!([
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": "I look", "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "Bash", "arguments": "{\"command\": \"ls\"}"}},
                    {"id": "b", "type": "function", "function": {"name": "Bash", "arguments": "{not json"}},
                ]},
                {"role": "tool", "tool_call_id": "a", "content": "a.txt"},
                {"role": "assistant", "content": "done"},
            ])
        );
        assert_eq!(
            (&seen["unresolved"][0]["call"], &seen["omitted"][0]["reason"]),
            (&json!("b"), &json!("unsupported"))
        );
    }

    #[test]
    fn other_parts_make_a_list() {
        let seen = see(&[
            r#"m1 message.added {"role":"user","parts":[{"type":"text","text":"look"},{"type":"image","media":"image/png","data":"iVBORw0KGgo="}]}"#,
            r#"m2 message.added {"role":"assistant","parts":[{"type":"reasoning","opaque":{"provider":"openai-chat","kind":"reasoning_details","value":[{"type":"reasoning.text"}]}},{"type":"text","text":"a"}]}"#,
        ]);
        assert_eq!(
            seen["messages"],
            json!([
                {"role": "user", "content": [
                    {"type": "text", "text": "look"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
                ]},
                {"role": "assistant", "content": "a", "reasoning_details": [{"type": "reasoning.text"}]},
            ])
        );
        assert_eq!(seen["omitted"], json!([]));
    }
}
