//! A recording of the client's event stream: JSON lines with `type` and `properties` (`spec/sources/opencode.md`, "Recorded
//! event streams"). Each change is a full snapshot: the newest one of each message and part counts. Questions for leave and
//! their answers stand here only.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use palog::diagnostic::{Code, Place, Severity};
use palog::envelope::{ActorKind, Draft, SrcHow};
use palog::events::{Data, KeptRecord};
use palog::json::{Raw, Str, Value};
use palog::writer::WriteError;
use palog_adapter::source::src;
use palog_adapter::{ImportError, Log, Records, SourceEnd, Span, Taken, Transcript, transcript};
use serde::Deserialize;

use crate::FORMAT;
use crate::approvals::{Approvals, Asked, Question, Reply};
use crate::mapper::Mapper;
use crate::record::{Change, Head, Named, Origin, Record, parse, text};

/// Name of the source.
pub(crate) const SOURCE: &str = "events";

/// The families of events that the client sends.
const FAMILIES: &[&str] = &["message.", "permission.", "question.", "server.", "session.", "todo."];

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Line<'a> {
    #[serde(default, deserialize_with = "text")]
    id: Option<Str<'a>>,
    r#type: Str<'a>,
    properties: Raw<'a>,
}

/// A piece of a text that is being written.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Delta<'a> {
    #[serde(default, deserialize_with = "text")]
    field: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    delta: Option<Str<'a>>,
}

/// The newest snapshot of something.
#[derive(Debug)]
struct Newest {
    at: u64,
    len: u64,
    origin: Origin,
    /// What was written since, of a part.
    since: String,
}

/// A message that the recording tells of.
#[derive(Debug, Default)]
struct Told {
    info: Option<Newest>,
    parts: BTreeMap<String, Newest>,
    /// Its records that newer ones replace, and those that add to a part.
    history: Vec<Origin>,
    gone: Option<Origin>,
}

/// What a recording holds of one session.
struct Index {
    out: Transcript,
    ids: HashSet<String>,
    head: Option<Newest>,
    about_session: Vec<Origin>,
    messages: HashMap<String, Told>,
    approvals: Approvals,
}

/// Whether the first bytes of a file are those of a recording.
pub(crate) fn recognises(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    text.lines().take(50).any(|line| session_of(line).is_some() || is_connected(line))
}

fn is_connected(line: &str) -> bool {
    serde_json::from_str::<Line<'_>>(line).is_ok_and(|line| line.r#type.as_str() == "server.connected")
}

/// The session that an event is about.
fn session_of(line: &str) -> Option<String> {
    let line: Line<'_> = serde_json::from_str(line).ok()?;
    if !FAMILIES.iter().any(|family| line.r#type.starts_with(family)) {
        return None;
    }
    let named: Named<'_> = parse(&line.properties)?;
    let change: Change<'_> = parse(&line.properties)?;
    let own = change.info.as_ref().and_then(parse::<Named<'_>>);
    let of_session = line.r#type.starts_with("session.");
    let id = named.session.or_else(|| own.and_then(|own| if of_session { own.id } else { own.session }));
    id.map(|id| id.to_string())
}

/// The sessions that a recording tells of, in the order in which it first does.
pub(crate) fn sessions(file: &mut File) -> io::Result<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    transcript::peek(file, looks_like_record, |line| {
        if let Some(session) = session_of(line)
            && !found.contains(&session)
        {
            found.push(session);
        }
        false
    })?;
    Ok(found)
}

/// The lines of a recording that are about `session` or about none, where it tells of several.
pub(crate) fn own_lines(file: &mut File, session: &str) -> io::Result<Option<Vec<u8>>> {
    if sessions(file)?.len() < 2 {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    file.seek(SeekFrom::Start(0))?;
    let is_own = |line: &&[u8]| session_of(&String::from_utf8_lossy(line)).is_none_or(|own| own == session);
    Ok(Some(bytes.split_inclusive(|b| *b == b'\n').filter(is_own).flatten().copied().collect()))
}

fn looks_like_record(text: &str) -> bool {
    serde_json::from_str::<Line<'_>>(text).is_ok()
}

impl Records for Index {
    fn transcript(&mut self) -> &mut Transcript {
        &mut self.out
    }

    fn looks_like_record(text: &str) -> bool {
        looks_like_record(text)
    }

    fn take(&mut self, text: &str, exact: bool, span: Span) -> Result<Taken, WriteError> {
        let line: Line<'_> = match serde_json::from_str(text) {
            Ok(line) => line,
            Err(error) => return Ok(Taken::from_error(&error, text)),
        };
        self.out.count(line.r#type.to_string());
        self.out.look_at_text(text, exact, span);
        let id = line.id.as_ref().map(ToString::to_string).filter(|id| self.ids.insert(id.clone()));
        let origin = Origin::Span { at: span.at, len: span.len, line: Some(span.line), pointer: None, id };
        if !self.learn(&line, &origin, span) {
            self.keep(&line, text, &origin, span)?;
        }
        Ok(Taken::Record)
    }
}

impl Index {
    /// Takes in what an event says. Whether it says anything that is mapped.
    fn learn(&mut self, line: &Line<'_>, origin: &Origin, span: Span) -> bool {
        let change: Change<'_> = parse(&line.properties).unwrap_or_default();
        let newest = || Newest { at: span.at, len: span.len, origin: origin.clone(), since: String::new() };
        match line.r#type.as_str() {
            "session.created" | "session.updated" if change.info.is_some() => {
                let older = self.head.replace(newest());
                self.about_session.extend(older.map(|older| older.origin));
                true
            }
            "message.updated" => {
                let Some(id) = change.info.as_ref().and_then(parse::<Named<'_>>).and_then(|n| n.id) else {
                    return false;
                };
                let told = self.messages.entry(id.to_string()).or_default();
                told.history.extend(told.info.replace(newest()).map(|older| older.origin));
                true
            }
            "message.part.updated" => {
                let named: Named<'_> = change.part.as_ref().and_then(parse).unwrap_or_default();
                let (Some(id), Some(message)) = (named.id, named.message) else { return false };
                let told = self.messages.entry(message.to_string()).or_default();
                let older = told.parts.insert(id.to_string(), newest());
                told.history.extend(older.map(|older| older.origin));
                true
            }
            "message.part.delta" => {
                let delta: Delta<'_> = parse(&line.properties).unwrap_or_default();
                let (Some(message), Some(part)) = (change.message, change.part_id) else { return false };
                let told = self.messages.entry(message.to_string()).or_default();
                if let (Some(part), Some("text"), Some(text)) =
                    (told.parts.get_mut(part.as_str()), delta.field.as_deref(), delta.delta)
                {
                    part.since.push_str(&text);
                }
                told.history.push(origin.clone());
                true
            }
            "message.removed" => {
                let Some(message) = change.message else { return false };
                let told = self.messages.entry(message.to_string()).or_default();
                told.history.extend(told.gone.replace(origin.clone()));
                true
            }
            "permission.asked" => self.asked(&line.properties, origin),
            "permission.replied" => {
                let reply: Reply<'_> = parse(&line.properties).unwrap_or_default();
                let (Some(request), Some(word)) = (reply.request, reply.reply) else { return false };
                let Some(asked) = self.approvals.find(&request) else { return false };
                let is_first = asked.reply.is_none();
                asked.reply.get_or_insert((word.to_string(), origin.clone()));
                is_first
            }
            _ => false,
        }
    }

    fn asked(&mut self, properties: &Raw<'_>, origin: &Origin) -> bool {
        let Some(question) = parse::<Question<'_>>(properties) else { return false };
        if self.approvals.find(&question.id).is_some() {
            return false;
        }
        let asked =
            Asked { id: question.id.to_string(), options: question.options(), origin: origin.clone(), reply: None };
        match &question.tool {
            Some(about) => {
                let key = (about.message.to_string(), about.call.to_string());
                self.approvals.by_call.entry(key).or_default().push(asked);
            }
            None => self.approvals.others.push(asked),
        }
        true
    }

    /// Keeps an event that maps to nothing.
    fn keep(&mut self, line: &Line<'_>, text: &str, origin: &Origin, span: Span) -> Result<(), WriteError> {
        self.out.input.kept += 1;
        let Ok(raw) = Raw::parse(text) else { return Ok(()) };
        let name = format!("x.{}/{}", FORMAT.namespace, line.r#type.as_str());
        let data = Data::Kept(name.into(), KeptRecord { record: raw.into() });
        let id = origin.event(&self.out.ids, crate::mapper::Slot::Kept as u32).hex();
        let mut draft = Draft::new(id, ActorKind::Importer, data).from(src(SOURCE, span, Some(SrcHow::Opaque)));
        draft.ignorable = Some(true);
        self.out.log.append(&mut draft)
    }
}

/// Writes a recording into a log. What `bytes` holds is all of one session.
pub(crate) fn write(
    log: Log,
    path: String,
    bytes: &mut File,
    prepare: impl FnOnce(&mut Mapper),
) -> Result<(Mapper, SourceEnd), ImportError> {
    let mut index = Index {
        out: Transcript::new(log, SOURCE.into(), path, "opencode.events"),
        ids: HashSet::new(),
        head: None,
        about_session: Vec::new(),
        messages: HashMap::new(),
        approvals: Approvals::default(),
    };
    let end = transcript::read(&mut index, bytes)?;
    let Index { out, head, about_session, messages, approvals, .. } = index;
    let Transcript { log, input, .. } = out;
    let mut mapper = Mapper::new(log, SOURCE, input);
    prepare(&mut mapper);
    mapper.approvals = approvals;
    let pending: Vec<Place> = mapper
        .approvals
        .open()
        .map(|(asked, call)| Place {
            record: Some(asked.id.clone()),
            call: call.map(str::to_owned),
            ..mapper.place(&asked.origin)
        })
        .collect();
    pending.into_iter().for_each(|place| mapper.report(Code::PendingPermission, Severity::Warning, place));
    let unreadable = |mapper: &Mapper, error| ImportError::Read { path: mapper.input.path.clone().into(), error };
    let mut revert = None;
    if let Some(newest) = &head {
        let record = snapshot(bytes, newest, "session").map_err(|e| unreadable(&mapper, e))?;
        if let Some(head) = record.read::<Head<'_>>() {
            mapper.session(&record, &head)?;
            revert = head.revert.map(|revert| (record.origin.clone(), revert));
        }
        mapper.history(&about_session)?;
    }
    conversation(&mut mapper, bytes, messages)?;
    mapper.other_questions()?;
    if let Some((origin, revert)) = revert {
        mapper.reverted(&origin, &revert)?;
    }
    mapper.conclude()?;
    Ok((mapper, end))
}

/// The messages in their order; those that were taken back as well.
fn conversation(mapper: &mut Mapper, bytes: &mut File, told: HashMap<String, Told>) -> Result<(), ImportError> {
    let path = mapper.input.path.clone();
    let unreadable = |error| ImportError::Read { path: path.clone().into(), error };
    let mut messages = Vec::new();
    for (id, told) in told {
        let info = told.info.as_ref().map(|newest| snapshot(bytes, newest, "message")).transpose();
        messages.push((id, info.map_err(unreadable)?, told));
    }
    let created = |info: &Option<Record<'_>>| info.as_ref().and_then(|info| info.created);
    messages.sort_by(|(a, a_info, _), (b, b_info, _)| {
        (a_info.is_none(), created(a_info), a).cmp(&(b_info.is_none(), created(b_info), b))
    });
    let mut back: Option<(Origin, String)> = None;
    for (id, info, told) in messages {
        if told.gone.is_none()
            && let Some((origin, first)) = back.take()
        {
            mapper.back_to_before(&origin, &first, None)?;
        }
        let mut parts = Vec::new();
        for newest in told.parts.values() {
            parts.push(snapshot(bytes, newest, "part").map_err(unreadable)?);
        }
        match &info {
            Some(info) => mapper.message(info, &parts)?,
            None => mapper.strays(&id, &parts)?,
        }
        mapper.history(&told.history)?;
        if let (Some(gone), None) = (told.gone, &back) {
            back = Some((gone, id));
        }
    }
    match back {
        Some((origin, first)) => Ok(mapper.back_to_before(&origin, &first, None)?),
        None => Ok(()),
    }
}

/// What an event holds of its session, message or part.
fn snapshot(bytes: &mut File, newest: &Newest, kind: &'static str) -> io::Result<Record<'static>> {
    bytes.seek(SeekFrom::Start(newest.at))?;
    let mut line = Vec::new();
    bytes.take(newest.len).read_to_end(&mut line)?;
    let line = String::from_utf8_lossy(&line);
    let parsed: Line<'_> = serde_json::from_str(&line).map_err(io::Error::other)?;
    let change: Change<'_> = parse(&parsed.properties).unwrap_or_default();
    let raw = if kind == "part" { change.part } else { change.info };
    let raw = raw.map_or_else(|| Raw::of(&()), Raw::into_owned);
    let named: Named<'_> = parse(&raw).unwrap_or_default();
    let (id, created) = (named.id.map(|id| id.to_string()).unwrap_or_default(), named.time.and_then(|t| t.created));
    let text = if newest.since.is_empty() { raw.get().to_owned() } else { grown(raw.get(), &newest.since) };
    Ok(Record { kind: kind.into(), id, created, text: text.into(), origin: newest.origin.clone() })
}

/// A part with what was written of it since its newest snapshot.
fn grown(part: &str, since: &str) -> String {
    let mut members: BTreeMap<String, Value<'_>> = BTreeMap::new();
    let Ok(read) = serde_json::from_str::<BTreeMap<String, Raw<'_>>>(part) else { return part.to_owned() };
    for (name, raw) in read {
        members.insert(name, raw.into_owned().into());
    }
    let before = members.get("text").and_then(Value::text).unwrap_or_default().into_owned();
    members.insert("text".into(), Value::from(format!("{before}{since}").as_str()).into_owned());
    serde_json::to_string(&members).unwrap_or_else(|_| part.to_owned())
}

/// Writes lines into an unnamed file.
pub(crate) fn spooled(lines: &[u8]) -> io::Result<File> {
    let mut file = palog_adapter::source::spooled(lines)?;
    file.flush()?;
    Ok(file)
}
