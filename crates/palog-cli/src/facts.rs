//! What the page of `palog recover` quotes from a log: the last words on either side, and the calls that it names.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::ControlFlow;

use palog::envelope::ActorKind;
use palog::events::{ActionKind, Data, InputQueued, MessageAdded, Part, Role};
use palog::json::Value;
use palog::project::transcript;
use palog_import::{Question, Vendor};

use crate::input::Opened;
use crate::render::show::missing;
use crate::render::text::short;

/// How much of a text is quoted.
const QUOTED: usize = 300;

/// Something that was said.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) seq: u64,
    pub(crate) event: String,
    pub(crate) time: Option<String>,
    /// One safe line.
    pub(crate) text: String,
}

/// A call, as far as a person needs it to recognise it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// One safe line.
    pub(crate) args: String,
    /// The questions that it puts to a person, where their form is known.
    pub(crate) questions: Vec<Question>,
    pub(crate) time: Option<String>,
}

/// What is quoted.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// The last prompt on the branch that went on.
    pub(crate) prompt: Option<Said>,
    /// The last text of the model on it.
    pub(crate) answer: Option<Said>,
    /// The last error that came in place of an answer.
    pub(crate) error: Option<Said>,
    /// The calls that were asked for.
    pub(crate) calls: HashMap<String, Call>,
    /// Messages and queued inputs that were asked for, by event or input id.
    pub(crate) texts: HashMap<String, Said>,
}

impl Facts {
    /// Reads a log for the last words, for the calls in `calls`, and for the messages and inputs in `texts`. `vendor` is
    /// whose client ran it.
    pub(crate) fn gather(
        log: &Opened,
        vendor: Option<Vendor>,
        calls: &HashSet<&str>,
        texts: &HashSet<&str>,
    ) -> io::Result<Self> {
        let mut facts = Facts::default();
        transcript(log.file(), |item| {
            let event = item.event;
            let said = |text: String| Said {
                seq: event.seq,
                event: event.id.to_string(),
                time: event.time.as_ref().map(|t| t.as_str().to_owned()),
                text,
            };
            match item.data {
                Data::ActionProposed(action) if calls.contains(&*action.action) => {
                    let call = Call {
                        name: short(&action.name, 60),
                        args: quote(&action.args, log),
                        questions: match (&action.kind, &action.args) {
                            (Some(ActionKind::Question), Value::Inline(raw)) => {
                                vendor.map_or_else(Vec::new, |v| v.questions(&action.name, raw.get()))
                            }
                            _ => Vec::new(),
                        },
                        time: event.time.as_ref().map(|t| t.as_str().to_owned()),
                    };
                    facts.calls.entry(action.action.to_string()).or_insert(call);
                }
                Data::MessageAdded(message) => {
                    let words = words(&message.parts, log);
                    if texts.contains(&*event.id) {
                        facts.texts.insert(event.id.to_string(), said(words.clone()));
                    }
                    if item.live && !words.is_empty() {
                        facts.hear(message, event.actor.kind, said(words));
                    }
                }
                Data::InputQueued(InputQueued { input, parts }) if texts.contains(&**input) => {
                    facts.texts.insert(input.to_string(), said(words(parts, log)));
                }
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
        Ok(facts)
    }

    fn hear(&mut self, message: &MessageAdded<'_>, actor: ActorKind, said: Said) {
        let purpose = message.purpose.as_deref().unwrap_or("prompt");
        match message.role {
            // A client may give a steer to the model in another role.
            Role::User | Role::System | Role::Developer
                if matches!(actor, ActorKind::User | ActorKind::Agent) && matches!(purpose, "prompt" | "steer") =>
            {
                self.prompt = Some(said);
            }
            Role::Assistant if purpose == "error" => self.error = Some(said),
            // What a client puts in the model's place is no answer.
            Role::Assistant if message.in_context != Some(false) && actor == ActorKind::Model => {
                self.answer = Some(said)
            }
            _ => {}
        }
    }
}

/// The words in some parts, as one line.
fn words(parts: &[Part<'_>], log: &Opened) -> String {
    let quoted: Vec<String> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(quote(text, log)),
            Part::Image { .. } => Some("(a picture)".into()),
            Part::File { .. } => Some("(a file)".into()),
            _ => None,
        })
        .collect();
    short(&quoted.join(" "), QUOTED)
}

/// A value as one line, wherever it lies.
fn quote(value: &Value<'_>, log: &Opened) -> String {
    match value {
        Value::Inline(raw) => raw.text().map_or_else(|| short(raw.get(), QUOTED), |text| short(&text, QUOTED)),
        Value::Blob(blob) => match log.blobs.as_ref().and_then(|store| store.get(&blob.digest).ok()) {
            Some(bytes) => short(&String::from_utf8_lossy(&bytes), QUOTED),
            None => format!("({} bytes that lie beside the log and cannot be read)", blob.size),
        },
        Value::Omitted(omitted) => missing(omitted),
    }
}
