//! The context as the input of the OpenAI Responses API (spec 04, "Context").

use std::collections::HashSet;
use std::io::{self, Read, Seek};

use base64::Engine as _;
use serde::{Deserialize, Serialize};

use crate::blob::BlobStore;
use crate::diagnostic::Diagnostics;
use crate::events::{Opaque, Part, Role};
use crate::json::{Raw, Str, Value};
use crate::project::content::{Content, LeftOutReason, is_text};
use crate::project::context::{At, ContextError, Reading, Seen};
use crate::project::path::key;
use crate::project::shown::{CLEARED, LeftOut, Path, Unresolved, call_id, word};

/// Opaque parts that are parts of a message; all others are items of their own.
const PARTS: &[&str] =
    &["input_text", "input_image", "input_file", "input_audio", "output_text", "refusal", "encrypted_content"];

/// The member of `ext` under which an importer keeps what the API has beside the content: `type`, `namespace`, `phase`.
const EXT: &str = "com.openai";

/// The context of a model as the input of the OpenAI Responses API: what it saw, with nothing put in (spec 04, "Context").
///
/// Ids and states of items are left out, since the API makes them. Instructions and tools are no part of the input.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Context {
    /// The items, in the order in which the model saw them.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<std::collections::BTreeMap<String, serde_json::Value>>"))]
    pub input: Vec<Raw<'static>>,
    /// Calls that stand in the input without an output.
    pub unresolved: Vec<Unresolved>,
    /// What the model saw and the input lacks.
    pub omitted: Vec<LeftOut>,
    /// Where the input comes from.
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

/// An item of the API.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'i> {
    Message {
        role: &'i str,
        content: Vec<Raw<'static>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'i str>,
    },
    FunctionCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'i str>,
        name: &'i str,
        arguments: Raw<'i>,
        call_id: &'i str,
    },
    FunctionCallOutput {
        call_id: &'i str,
        output: Raw<'i>,
    },
    CustomToolCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'i str>,
        name: &'i str,
        input: Raw<'i>,
        call_id: &'i str,
    },
    CustomToolCallOutput {
        call_id: &'i str,
        output: Raw<'i>,
    },
    LocalShellCall {
        action: Raw<'i>,
        call_id: &'i str,
        status: &'i str,
    },
}

/// A part of a message, or of an output.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'b> {
    InputText {
        text: Raw<'b>,
    },
    OutputText {
        text: Raw<'b>,
    },
    InputImage {
        image_url: Raw<'b>,
    },
    InputFile {
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<&'b str>,
        file_data: Raw<'b>,
    },
}

/// What the API has beside the content of a message or a call.
#[derive(Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Beside<'a> {
    r#type: Option<Str<'a>>,
    namespace: Option<Str<'a>>,
    phase: Option<Str<'a>>,
}

impl<'a> Beside<'a> {
    fn of(ext: Option<&'a Raw<'_>>) -> Self {
        let members =
            ext.and_then(|raw| serde_json::from_str::<std::collections::BTreeMap<Str<'_>, Raw<'_>>>(raw.get()).ok());
        let own = members.and_then(|mut members| members.remove(&Str::from(EXT)));
        own.and_then(|own| serde_json::from_str::<Beside<'_>>(own.get()).ok().map(Beside::into_owned))
            .unwrap_or_default()
    }

    fn into_owned(self) -> Beside<'static> {
        let own = |s: Option<Str<'_>>| s.map(Str::into_owned);
        Beside { r#type: own(self.r#type), namespace: own(self.namespace), phase: own(self.phase) }
    }
}

/// An item, or the place of one that depends on how the call was made.
#[derive(Debug)]
enum Slot {
    Item(Raw<'static>),
    Call { action: String, event: Option<String> },
    Output { action: String, event: Option<String>, output: Raw<'static> },
}

/// Collects items.
#[derive(Debug, Default)]
struct Writer<'b> {
    content: Content<'b>,
    slots: Vec<Slot>,
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
        let mut blocks = Vec::new();
        for part in seen.parts {
            let slot = match part {
                Part::Result { action, parts, .. } => {
                    let output =
                        if seen.pruned.contains(&key(action)) { Raw::string(CLEARED) } else { self.told(seen, parts)? };
                    Some(Slot::Output { action: action.to_string(), event: seen.event.map(str::to_owned), output })
                }
                Part::Action { action } if seen.role == Role::Assistant => {
                    Some(Slot::Call { action: action.to_string(), event: seen.event.map(str::to_owned) })
                }
                Part::Reasoning { opaque, .. } => self.reasoning(seen, opaque.as_ref())?.map(Slot::Item),
                Part::Opaque(opaque) if is_item(opaque) => self.item(seen, opaque)?.map(Slot::Item),
                other => {
                    blocks.extend(self.block(seen, other)?);
                    None
                }
            };
            if slot.is_some() {
                self.say(seen, std::mem::take(&mut blocks));
            }
            self.slots.extend(slot);
        }
        self.say(seen, blocks);
        Ok(())
    }

    /// A message of these parts, if there are any.
    fn say(&mut self, seen: &Seen<'_>, content: Vec<Raw<'static>>) {
        if content.is_empty() {
            return;
        }
        let role = match seen.role {
            Role::System => "system",
            Role::Developer => "developer",
            Role::Assistant => "assistant",
            Role::User | Role::Tool => "user",
        };
        let beside = Beside::of(seen.ext);
        self.slots.push(Slot::Item(Raw::of(&Item::Message { role, content, phase: beside.phase.as_deref() })));
    }

    /// The content of an output: a string where it is one text, else a list.
    fn told(&mut self, seen: &Seen<'_>, parts: &[Part<'_>]) -> io::Result<Raw<'static>> {
        if let [Part::Text { text }] = parts
            && let Ok(text) = self.content.text(text)?
        {
            return Ok(text);
        }
        let mut blocks = Vec::new();
        for part in parts {
            let said = Seen { role: Role::Tool, ..*seen };
            blocks.extend(self.block(&said, part)?);
        }
        Ok(Raw::of(&blocks))
    }

    /// A part of a message; `None` and an entry in the list where it has none.
    fn block(&mut self, seen: &Seen<'_>, part: &Part<'_>) -> io::Result<Option<Raw<'static>>> {
        let text = |text: Raw<'static>| match seen.role {
            Role::Assistant => Raw::of(&Block::OutputText { text }),
            Role::User | Role::System | Role::Developer | Role::Tool => Raw::of(&Block::InputText { text }),
        };
        let block = match part {
            Part::Text { text: value } => self.content.text(value)?.map(text),
            Part::Json { value } => self.content.json(value)?.map(|json| text(Raw::string(json.get()))),
            Part::Image { media, data } => {
                self.url(media, data)?.map(|url| Raw::of(&Block::InputImage { image_url: url }))
            }
            Part::File { name, media, data } => match media.as_deref() {
                Some(media) if media.starts_with("text/") => self.content.text(data)?.map(text),
                Some(media) => {
                    let file = self.url(media, data)?;
                    file.map(|file_data| Raw::of(&Block::InputFile { filename: name.as_deref(), file_data }))
                }
                None => Err(LeftOutReason::Unsupported),
            },
            Part::Opaque(opaque) if opaque.provider.as_str() == "openai" => match self.content.json(&opaque.value)? {
                Ok(json) if json.get().starts_with('{') => Ok(json),
                Ok(_) => Err(LeftOutReason::Unsupported),
                Err(reason) => Err(reason),
            },
            Part::Opaque(_) => Err(LeftOutReason::OtherProvider),
            Part::Reasoning { .. } | Part::Action { .. } | Part::Result { .. } => Err(LeftOutReason::Unsupported),
        };
        Ok(block.map_err(|reason| self.leave_out(seen.event, word(part), None, reason)).ok())
    }

    /// Reasoning goes back as the item that the provider made; its text alone is nothing that the API takes.
    fn reasoning(&mut self, seen: &Seen<'_>, opaque: Option<&Opaque<'_>>) -> io::Result<Option<Raw<'static>>> {
        let own = opaque.filter(|o| o.provider.as_str() == "openai" && o.kind.as_deref() == Some("reasoning"));
        if let Some(own) = own {
            return self.item(seen, own);
        }
        let reason = if opaque.is_some() { LeftOutReason::OtherProvider } else { LeftOutReason::Unsupported };
        self.leave_out(seen.event, "reasoning", None, reason);
        Ok(None)
    }

    /// An item that only the provider understands, as it stands.
    fn item(&mut self, seen: &Seen<'_>, opaque: &Opaque<'_>) -> io::Result<Option<Raw<'static>>> {
        match self.content.json(&opaque.value)? {
            Ok(json) => Ok(Some(without_notes(json))),
            Err(reason) => {
                self.leave_out(seen.event, "opaque", None, reason);
                Ok(None)
            }
        }
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

    /// Looks the calls up, and writes the items.
    fn finish<R: Read + Seek>(mut self, mut reading: Reading<R>) -> Result<Context, ContextError> {
        let slots = std::mem::take(&mut self.slots);
        let told: HashSet<String> = slots
            .iter()
            .filter_map(|slot| match slot {
                Slot::Output { action, .. } => Some(action.clone()),
                Slot::Item(_) | Slot::Call { .. } => None,
            })
            .collect();
        let called: HashSet<String> = slots
            .iter()
            .filter_map(|slot| match slot {
                Slot::Call { action, .. } => Some(action.clone()),
                Slot::Item(_) | Slot::Output { .. } => None,
            })
            .collect();
        let (mut input, mut unresolved) = (Vec::new(), Vec::new());
        for slot in slots {
            match slot {
                Slot::Item(item) => input.push(item),
                Slot::Call { action, event } => {
                    let Some(item) = self.call(&mut reading, event.as_deref(), &action)? else { continue };
                    input.push(item);
                    if !told.contains(&action) {
                        unresolved.push(Unresolved { call: call_id(&action).to_owned(), action, event });
                    }
                }
                Slot::Output { action, event, .. } if !called.contains(&action) => {
                    self.leave_out(event.as_deref(), "result", Some(&action), LeftOutReason::NotCalled);
                }
                Slot::Output { action, output, .. } => {
                    let custom = reading.proposal(&action, |_, ext| {
                        Ok(Beside::of(ext).r#type.as_deref() == Some("custom_tool_call"))
                    })?;
                    let call_id = call_id(&action);
                    input.push(match custom {
                        Some(true) => Raw::of(&Item::CustomToolCallOutput { call_id, output }),
                        Some(false) | None => Raw::of(&Item::FunctionCallOutput { call_id, output }),
                    });
                }
            }
        }
        let mut diagnostics = reading.faults;
        diagnostics.extend(self.content.faults);
        Ok(Context { input, unresolved, omitted: self.omitted, path: self.path, diagnostics })
    }

    /// The item of a call. Arguments that are not at hand stand as the log has them: a reference, or the mark of a value
    /// that is missing.
    fn call<R: Read + Seek>(
        &mut self,
        reading: &mut Reading<R>,
        event: Option<&str>,
        action: &str,
    ) -> io::Result<Option<Raw<'static>>> {
        let item = reading.proposal(action, |proposed, ext| {
            let args = match self.content.json(&proposed.args)? {
                Ok(json) => json,
                Err(reason) => {
                    self.leave_out(event, "action", Some(action), reason);
                    Raw::of(&proposed.args)
                }
            };
            let beside = Beside::of(ext);
            let (call_id, name) = (call_id(action), proposed.name.as_str());
            // The API takes arguments as a string.
            let text = |args: Raw<'static>| if args.is_string() { args } else { Raw::string(args.get()) };
            Ok(match beside.r#type.as_deref() {
                Some("custom_tool_call") => Raw::of(&Item::CustomToolCall {
                    namespace: beside.namespace.as_deref(),
                    name,
                    input: text(args),
                    call_id,
                }),
                Some("local_shell_call") => {
                    Raw::of(&Item::LocalShellCall { action: args, call_id, status: "completed" })
                }
                _ => {
                    let namespace = beside.namespace.as_deref();
                    Raw::of(&Item::FunctionCall { namespace, name, arguments: text(args), call_id })
                }
            })
        })?;
        if item.is_none() {
            self.leave_out(event, "action", Some(action), LeftOutReason::NotProposed);
        }
        Ok(item)
    }
}

fn is_item(opaque: &Opaque<'_>) -> bool {
    opaque.provider.as_str() == "openai" && opaque.kind.as_deref().is_some_and(|kind| !PARTS.contains(&kind))
}

/// The item without the notes that clients keep in it for themselves.
fn without_notes(item: Raw<'static>) -> Raw<'static> {
    if !item.get().contains("\"internal_chat_message_metadata_passthrough\"") {
        return item;
    }
    let Ok(members) = serde_json::from_str::<Members<'_>>(item.get()) else { return item };
    let kept = Members(
        members
            .0
            .into_iter()
            .filter(|(name, _)| name.as_str() != "internal_chat_message_metadata_passthrough")
            .collect(),
    );
    Raw::of(&kept)
}

/// The members of an object, in their order.
struct Members<'a>(Vec<(Str<'a>, Raw<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        d.deserialize_map(Visitor)
    }
}

impl Serialize for Members<'_> {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.0.iter().map(|(name, value)| (name.as_str(), value)))
    }
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
    fn a_conversation_of_another_vendor_becomes_items() {
        let seen = see(&[
            r#"m1 message.added {"role":"user","parts":[{"type":"text","text":"go"}]}"#,
            r#"m2 message.added {"role":"assistant","parts":[{"type":"reasoning","text":"hm"},{"type":"text","text":"I look"},{"type":"action","action":"a"}]}"#,
            r#"p action.proposed {"action":"a","name":"Bash","args":{"command":"ls"},"args_digest":"x"}"#,
            r#"m3 message.added {"role":"tool","parts":[{"type":"result","action":"a","parts":[{"type":"text","text":"a.txt"}],"final":true}]}"#,
        ]);
        assert_eq!(
            seen["input"],
            json!([
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look"}]},
                {"type": "function_call", "name": "Bash", "arguments": "{\"command\":\"ls\"}", "call_id": "a"},
                {"type": "function_call_output", "call_id": "a", "output": "a.txt"},
            ])
        );
        assert_eq!(seen["omitted"][0]["reason"], "unsupported");
        assert_eq!(seen["unresolved"], json!([]));
    }

    #[test]
    fn what_is_in_the_log_that_it_goes_on_from_is_told() {
        let opened = |parent: &str| {
            format!(r#"o log.opened {{"spec":"1.0-draft","session":"s","agent":{{"name":"a"}},"parent":{parent}}}"#)
        };
        let fork = opened(r#"{"log":"l0","at":"28","event":"e7","mode":"fork"}"#);
        let says = r#"m message.added {"role":"user","parts":[{"type":"text","text":"go"}]}"#;
        let window = r#"w context.compacted {"window":[]}"#;
        assert_eq!(see(&[&fork, says])["omitted"], json!([{"event": "e7", "log": "l0", "reason": "not_in_log"}]));
        let unknown = opened(r#"{"log":"l0","at":"28","mode":"fork"}"#);
        assert_eq!(see(&[&unknown, says])["omitted"], json!([{"log": "l0", "reason": "not_in_log"}]));
        // A window is all that the model sees; an agent begins anew; nothing tells that it goes on.
        assert_eq!(see(&[&fork, window, says])["omitted"], json!([]));
        for parent in [r#"{"log":"l0","event":"e7","mode":"spawn"}"#, r#"{"log":"l0","mode":"fork"}"#] {
            assert_eq!(see(&[&opened(parent), says])["omitted"], json!([]), "{parent}");
        }
        // The records of the parent were taken along.
        let copied = events(&[&fork, says]).replace(
            r#""actor":{"kind":"user"},"data":{"role""#,
            r#""actor":{"kind":"user"},"copy":{"log":"l0","how":"fork"},"data":{"role""#,
        );
        for at in [At::Head, At::Seq(0)] {
            assert_eq!(context(Cursor::new(&copied), at, None).expect("a context").omitted, []);
        }
    }

    #[test]
    fn what_the_provider_made_goes_back_as_it_was() {
        let seen = see(&[
            r#"m1 message.added {"role":"assistant","parts":[{"type":"reasoning","opaque":{"provider":"openai","kind":"reasoning","value":{"type":"reasoning","summary":[],"internal_chat_message_metadata_passthrough":{"turn_id":"t"},"encrypted_content":"x"}}}]}"#,
            r#"m2 message.added {"role":"assistant","parts":[{"type":"action","action":"a#2"}]}"#,
            r#"p action.proposed {"action":"a#2","name":"exec_command","args":"{not json","args_digest":"x"}"#,
        ]);
        assert_eq!(
            seen["input"],
            json!([
                {"type": "reasoning", "summary": [], "encrypted_content": "x"},
                {"type": "function_call", "name": "exec_command", "arguments": "{not json", "call_id": "a"},
            ])
        );
        assert_eq!(seen["unresolved"][0]["call"], "a");
    }
}
