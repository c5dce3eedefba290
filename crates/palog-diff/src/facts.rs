//! What a log says, as lists of facts that can be compared: one list for each field.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Seek};

use palog::blob::{BlobStore, sha256_hex};
use palog::envelope::ActorKind;
use palog::events::{Data, Part, Role};
use palog::json::{Raw, Value};
use palog::project::{self, At, Content};
use palog::reader::{Item, Reader};
use palog::recover::{Context, recover};
use palog_adapter::export::{ExportError, Field, Picture, View, message};

/// One fact.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    /// What it says, in one form for equal facts.
    pub(crate) says: String,
    /// What it is an attribute of; it is compared only where the other log has that as well.
    pub(crate) of: Option<String>,
    /// The event that tells of it.
    pub(crate) event: Option<String>,
}

/// The facts of a log, by field.
pub(crate) type Facts = BTreeMap<Field, Vec<Fact>>;

/// Reads the facts of `log`, whose blobs lie in `blobs`.
pub(crate) fn facts(mut log: &File, blobs: Option<&BlobStore>) -> Result<Facts, ExportError> {
    log.rewind().map_err(ExportError::Read)?;
    let mut view = View::open(log, blobs)?;
    let mut all = Collector::default();
    for step in 0..view.steps.len() {
        all.step(&mut view, step).map_err(ExportError::Read)?;
    }
    all.session(&view);
    all.records(log).map_err(ExportError::Read)?;
    if all.compacted {
        all.context(log, blobs)?;
    }
    Ok(all.facts)
}

#[derive(Default)]
struct Collector {
    facts: Facts,
    /// How often each content came.
    seen: HashMap<String, u32>,
    /// Number of each call on the path.
    calls: HashMap<String, usize>,
    told: HashMap<String, usize>,
    reminders: Vec<String>,
    compacted: bool,
}

impl Collector {
    fn add(&mut self, field: Field, says: impl Into<String>, event: &str) {
        let fact = Fact { says: says.into(), of: None, event: Some(event.to_owned()) };
        self.facts.entry(field).or_default().push(fact);
    }

    /// An attribute of something that is compared by itself.
    fn attribute(&mut self, field: Field, of: &str, says: impl Into<String>, event: Option<&str>) {
        let says = format!("{of}: {}", says.into());
        let fact = Fact { says, of: Some(of.to_owned()), event: event.map(str::to_owned) };
        self.facts.entry(field).or_default().push(fact);
    }

    fn step(&mut self, view: &mut View<'_, &File>, step: usize) -> io::Result<()> {
        let Ok(entry) = view.entry(step) else { return Ok(()) };
        let event = entry.event()?;
        let id = event.id.to_string();
        if let Data::ContextCompacted(_) = event.data()? {
            self.compacted = true;
            return Ok(());
        }
        let time = event.time.as_ref().map_or("none", |t| t.as_str()).to_owned();
        let actor = event.actor.kind;
        let (role, purpose, unseen, partial, parts) = message(&entry, |_, message, parts| {
            let parts: Vec<Raw<'static>> = parts.iter().map(Raw::of).collect();
            let purpose = message.purpose.as_ref().map(ToString::to_string);
            (message.role, purpose, message.in_context == Some(false), message.partial == Some(true), parts)
        })?;
        let parts: Vec<Part<'_>> =
            parts.iter().map(|part| serde_json::from_str(part.get())).collect::<Result<_, _>>()?;
        let removed = entry.revision()?.is_some_and(|r| r.removed == Some(true));
        if unseen || removed {
            let field = if unseen { Field::MessageUnseen } else { Field::MessageRevised };
            self.add(field, sha256_hex(Raw::of(&parts).get().as_bytes()), &id);
            return Ok(());
        }
        let purpose = purpose.unwrap_or_default();
        if purpose == "reminder" && actor == ActorKind::Harness {
            for part in &parts {
                let text = content(&mut view.content, part)?.1;
                self.add(Field::MessageReminder, text.clone(), &id);
                self.reminders.push(text);
            }
            return Ok(());
        }
        // What a compaction left is compared as what the model sees.
        if purpose == "summary" && role != Role::Assistant {
            return Ok(());
        }
        if purpose == "no_result" {
            for part in &parts {
                let text = content(&mut view.content, part)?.1;
                self.add(Field::ActionOpen, text.clone(), &id);
                self.reminders.push(text);
            }
            return Ok(());
        }
        if partial {
            self.add(Field::MessagePartial, "cut off", &id);
        }
        for part in &parts {
            match part {
                Part::Action { action } if role == Role::Assistant => self.call(view, action, &id, &time)?,
                Part::Result { action, parts, is_error, r#final } => {
                    let told = Told { action, parts, is_error: *is_error, last: *r#final };
                    self.result(&mut view.content, &told, &id, &time)?;
                }
                Part::Reasoning { text, opaque } => {
                    if let Some(text) = text {
                        let says = value(&mut view.content, text)?;
                        self.add(Field::ReasoningText, says, &id);
                    }
                    if let Some(opaque) = opaque {
                        let says = value(&mut view.content, &opaque.value)?;
                        self.add(Field::ReasoningOpaque, format!("{} {says}", opaque.provider), &id);
                    }
                }
                part => {
                    let of = self.content(&mut view.content, part, &id)?;
                    let side = match role {
                        Role::Assistant => "assistant",
                        Role::User | Role::Tool => "user",
                        _ => "system",
                    };
                    self.attribute(Field::MessageRole, &of, side, Some(&id));
                    let said = if purpose.is_empty() && side == "user" { "prompt" } else { &purpose };
                    self.attribute(Field::MessagePurpose, &of, format!("{said} {actor:?}"), Some(&id));
                    self.attribute(Field::Time, &of, &time, Some(&id));
                }
            }
        }
        Ok(())
    }

    /// A part with content of its own. Returns the name by which its attributes are compared.
    fn content(&mut self, at: &mut Content<'_>, part: &Part<'_>, event: &str) -> io::Result<String> {
        let (field, says) = content(at, part)?;
        let digest = sha256_hex(says.as_bytes());
        let seen = self.seen.entry(digest.clone()).or_default();
        *seen += 1;
        let of = format!("{}.{seen}", &digest[..12]);
        self.add(field, says, event);
        Ok(of)
    }

    fn call(&mut self, view: &mut View<'_, &File>, action: &str, event: &str, time: &str) -> io::Result<()> {
        let number = self.calls.len() + 1;
        self.calls.insert(action.to_owned(), number);
        let of = format!("call {number}");
        let proposed = view.proposal(action, |p, ext| {
            let form = ext.map(|ext| ext.get().to_owned()).unwrap_or_default();
            (p.name.to_string(), p.args.clone().into_owned(), form)
        });
        let (name, args, form) = proposed.map_err(io::Error::other)?.unwrap_or_else(|| {
            let none = palog::json::Omission { reason: palog::json::OmittedReason::Unavailable, bytes: None };
            (String::new(), Value::Omitted(palog::json::Omitted { omitted: none }), String::new())
        });
        self.add(Field::ActionName, name, event);
        let args = view.content.json(&args)?.map_or_else(|r| format!("({r})"), |args| args.get().to_owned());
        self.attribute(Field::ActionArgs, &of, args, Some(event));
        self.attribute(Field::ActionId, &of, project::call_id(action), Some(event));
        self.attribute(Field::ActionForm, &of, form, Some(event));
        self.attribute(Field::Time, &of, time, Some(event));
        if let Some(known) = view.state.action(action) {
            self.attribute(Field::ActionEffect, &of, format!("{} {}", known.class, known.kind), Some(event));
            let doubt = known.doubt.map(|d| d.word()).unwrap_or_default();
            let says = format!("{} {doubt} applied {} told {}", known.state, known.applied, known.told);
            let passed = if known.passed_over { " passed over" } else { "" };
            self.attribute(Field::ActionState, &of, says + passed, Some(event));
        }
        Ok(())
    }

    fn result(&mut self, at: &mut Content<'_>, told: &Told<'_, '_>, event: &str, time: &str) -> io::Result<()> {
        let Some(number) = self.calls.get(told.action).copied() else {
            self.add(Field::ResultOrphan, told.action, event);
            return Ok(());
        };
        let again = self.told.entry(told.action.to_owned()).or_default();
        *again += 1;
        if *again > 1 {
            let again = format!("call {number} again");
            self.add(Field::ResultAgain, again, event);
            return Ok(());
        }
        let of = format!("call {number}");
        for part in told.parts {
            self.content(at, part, event)?;
        }
        self.attribute(Field::ResultError, &of, format!("{}", told.is_error == Some(true)), Some(event));
        self.attribute(Field::ResultPlace, &of, format!("after {} calls", self.calls.len()), Some(event));
        self.attribute(Field::ActionState, &of, format!("told for good: {}", told.last), Some(event));
        self.attribute(Field::Time, &format!("result of {of}"), time, Some(event));
        Ok(())
    }

    /// Records that are kept as they stand.
    fn records(&mut self, mut log: &File) -> io::Result<()> {
        log.rewind()?;
        let mut reader = Reader::new(io::BufReader::new(log));
        while let Some(item) = reader.next()? {
            let Item::Event(event, _) = item else { continue };
            if event.kind.starts_with("x.") {
                let says = format!("{} {}", event.kind, sha256_hex(event.data.get().as_bytes()));
                self.add(Field::Record, says, &event.id);
            }
        }
        Ok(())
    }

    /// What holds for the session as a whole.
    fn session(&mut self, view: &View<'_, &File>) {
        let state = &view.state;
        let mut set = |field, name: &str, value: Option<&String>| {
            if let Some(value) = value {
                let fact = Fact { says: format!("{name}: {value}"), of: None, event: None };
                self.facts.entry(field).or_default().push(fact);
            }
        };
        set(Field::SessionId, "session", state.session.as_ref());
        set(Field::SessionParent, "goes on from", view.elsewhere().map(str::to_owned).as_ref());
        set(Field::ConfigTitle, "title", state.title.as_ref());
        set(Field::ConfigModel, "model", state.config.model.as_ref());
        set(Field::ConfigPermission, "permission mode", state.config.permission_mode.as_ref());
        set(Field::ConfigPermission, "mode", state.config.mode.as_ref());
        set(Field::ConfigOther, "client", state.config.client_version.as_ref());
        set(Field::ConfigDirectory, "directory", state.config.directory.as_ref());
        set(Field::ConfigBranch, "branch", state.config.branch.as_ref());
        for (field, count) in [
            (Field::Observation, view.counts.observations),
            (Field::Work, view.counts.work),
            (Field::ConfigOther, view.counts.tools),
            (Field::ConfigInstructions, view.counts.instructions),
            (Field::ActionOutput, view.outputs.len() as u64),
            (Field::Branch, view.counts.messages - view.steps.iter().filter(|s| s.role.is_some()).count() as u64),
        ] {
            if count > 0 {
                set(field, "kept beside the path", Some(&count.to_string()));
            }
        }
        for response in &view.responses {
            let mut tell = |field, value: Option<String>| {
                if let Some(value) = value {
                    let fact = Fact { says: value, of: None, event: None };
                    self.facts.entry(field).or_default().push(fact);
                }
            };
            tell(Field::ResponseId, response.id.clone());
            tell(Field::ResponseModel, response.model.clone());
            tell(Field::ResponseStop, response.stop.clone());
            tell(Field::ResponseUsage, response.usage.as_ref().map(|usage| Raw::of(usage).get().to_owned()));
        }
        let mut list = |field, says: String, event: Option<String>| {
            self.facts.entry(field).or_default().push(Fact { says, of: None, event });
        };
        for end in &view.ends {
            list(Field::TurnEnd, format!("{:?}", end.how), Some(end.event.clone()));
        }
        for action in state.actions.iter().filter(|a| !self.calls.contains_key(&a.action)) {
            let name = action.name.clone().unwrap_or_default();
            list(Field::ActionAside, format!("{name} {}", action.state), None);
        }
        for approval in &state.approvals {
            let says = format!("{} {} passed over: {}", approval.kind, approval.status, approval.passed_over);
            list(Field::Approval, says, approval.requested.as_ref().map(|r| r.event.clone()));
        }
        for input in state.inputs.iter().filter(|input| input.pending) {
            list(Field::InputQueued, format!("{}", input.status), input.queued.as_ref().map(|q| q.event.clone()));
        }
        for pending in &state.pending {
            list(Field::Pending, format!("{}", pending.kind), Some(pending.event.clone()));
        }
        for child in &state.children {
            list(Field::Child, child.session.clone().unwrap_or_default(), None);
        }
        for grant in &state.grants {
            list(Field::Grant, grant.grant.clone(), None);
        }
        let recovery = recover(state, &Context::new());
        list(Field::Verdict, format!("{}", recovery.verdict), None);
    }

    /// What the model sees, block by block, without what the client tells of itself.
    fn context(&mut self, log: &File, blobs: Option<&BlobStore>) -> Result<(), ExportError> {
        #[derive(serde::Deserialize)]
        #[serde(bound(deserialize = "'de: 'a"))]
        struct Block<'a> {
            r#type: &'a str,
            text: Option<Raw<'a>>,
            name: Option<String>,
            content: Option<Raw<'a>>,
        }
        let context = project::context(log, At::Head, blobs)?;
        for message in &context.messages {
            for block in &message.content {
                let Ok(block) = serde_json::from_str::<Block<'_>>(block.get()) else { continue };
                let says = match block.r#type {
                    "text" => block.text.as_ref().and_then(Raw::text).unwrap_or_default().into_owned(),
                    "tool_use" => format!("call of {}", block.name.unwrap_or_default()),
                    "tool_result" => format!("result {}", block.content.as_ref().map(Raw::get).unwrap_or_default()),
                    _ => continue,
                };
                if !self.reminders.contains(&says) {
                    self.facts.entry(Field::CompactionWindow).or_default().push(Fact { says, of: None, event: None });
                }
            }
        }
        Ok(())
    }
}

/// A result.
struct Told<'t, 'p> {
    action: &'t str,
    parts: &'t [Part<'p>],
    is_error: Option<bool>,
    last: bool,
}

/// What a part with content says, and which field it belongs to.
fn content(at: &mut Content<'_>, part: &Part<'_>) -> io::Result<(Field, String)> {
    Ok(match part {
        Part::Text { text } => (Field::PartText, value(at, text)?),
        Part::Json { value: json } => (Field::PartJson, value(at, json)?),
        Part::Image { media, data } => {
            let says = match Picture::of(at, data)? {
                Ok(Picture::Base64(base64)) => sha256_hex(base64.as_bytes()),
                Ok(Picture::Address(url)) => url,
                Err(reason) => format!("({reason})"),
            };
            (Field::PartImage, format!("{media} {says}"))
        }
        Part::File { name, media, data } => {
            let says = sha256_hex(value(at, data)?.as_bytes());
            let word = |word: &Option<palog::json::Str<'_>>| word.as_deref().unwrap_or_default().to_owned();
            (Field::PartFile, format!("{} {} {says}", word(name), word(media)))
        }
        Part::Opaque(opaque) => {
            let says = sha256_hex(value(at, &opaque.value)?.as_bytes());
            (Field::PartOpaque, format!("{} {} {says}", opaque.provider, opaque.kind.as_deref().unwrap_or_default()))
        }
        other => (Field::PartOpaque, Raw::of(other).get().to_owned()),
    })
}

/// A value as text, or why it is not at hand.
fn value(at: &mut Content<'_>, value: &Value<'_>) -> io::Result<String> {
    Ok(match at.json(value)? {
        Ok(json) => json.text().map_or_else(|| json.get().to_owned(), std::borrow::Cow::into_owned),
        Err(reason) => format!("({reason})"),
    })
}
