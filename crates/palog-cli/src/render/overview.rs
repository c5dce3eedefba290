//! The lines that say which session it is.

use std::io::{self, Write};

use palog::cursor::Cursor;
use palog::events::Data;
use palog::reader::Item;
use palog::state::State;
use palog_import::Vendor;
use serde::Serialize;

use crate::exit::Failure;
use crate::input::Opened;
use crate::render::text::{clean_json, clean_line, short};
use crate::terminal::Style;

/// Which session a log is of, as its events say.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct Overview {
    /// Id of the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<String>,
    /// Native id of the session; of a subagent its agent id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    /// The program that ran it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// Version of that program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// Title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    /// Working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) directory: Option<String>,
    /// Branch of the version control system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) branch: Option<String>,
    /// Model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// The session that it came out of: that a subagent works for, or that a fork goes on from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<String>,
    /// Where what was read ends, if it was read to its end and holds an event.
    #[serde(skip)]
    pub(crate) end: Option<End>,
}

/// Where a log ended when it was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// The last event.
    pub(crate) cursor: Cursor,
    /// The bytes up to it.
    pub(crate) events: u64,
    /// All bytes that were read.
    pub(crate) bytes: u64,
}

impl Overview {
    /// Reads a log for it.
    pub(crate) fn read(log: &Opened) -> Result<Self, Failure> {
        let mut overview = Overview::default();
        let mut failure = None;
        let (mut last, mut bytes) = ((0, 0, Vec::new()), 0);
        let mut reader = log.reader()?;
        loop {
            match reader.next() {
                Ok(None) => break,
                Ok(Some(Item::Event(event, line))) => {
                    bytes = line.offset + line.bytes.len() as u64 + 1;
                    (last.0, last.1) = (event.seq, bytes);
                    last.2.clear();
                    last.2.extend_from_slice(line.bytes);
                    overview.log.get_or_insert_with(|| event.log.to_string());
                    if matches!(&*event.kind, "log.opened" | "config.set") {
                        // A malformed payload is told by the projection.
                        if let Ok(data) = event.data() {
                            overview.learn(&data);
                        }
                    }
                }
                Ok(Some(Item::Fault(fault))) => {
                    bytes =
                        bytes.max(fault.place.offset.unwrap_or_default() + fault.place.length.unwrap_or_default() + 1);
                }
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        match failure {
            Some(error) => Err(log.unreadable(&error)),
            None => {
                overview.end = Some(last).filter(|(.., line)| !line.is_empty()).map(|(seq, events, line)| End {
                    cursor: Cursor::of(seq, &line),
                    events,
                    bytes,
                });
                Ok(overview)
            }
        }
    }

    /// Takes it from a state.
    pub(crate) fn of(state: &State) -> Self {
        let agent = state.agent.as_ref();
        let parent = state.parent.as_ref();
        Overview {
            log: state.log.clone(),
            session: state.session.clone(),
            agent: agent.map(|a| a.name.clone()),
            version: state.config.client_version.clone().or_else(|| agent.and_then(|a| a.version.clone())),
            title: state.title.clone(),
            directory: state.config.directory.clone(),
            branch: state.config.branch.clone(),
            model: state.config.model.clone(),
            parent: parent.map(|p| p.session.clone().unwrap_or_else(|| p.log.clone())),
            end: None,
        }
    }

    /// Whose client ran it, if that is one of those that are known.
    pub(crate) fn vendor(&self) -> Option<Vendor> {
        self.agent.as_deref().and_then(Vendor::named)
    }

    fn learn(&mut self, data: &Data<'_>) {
        let own = |text: &palog::json::Str<'_>| Some(text.to_string());
        match data {
            Data::LogOpened(opened) => {
                self.session = own(&opened.session);
                self.agent = own(&opened.agent.name);
                self.version = opened.agent.version.as_ref().and_then(own);
                self.parent =
                    opened.parent.as_ref().and_then(|p| p.session.as_ref().and_then(own).or_else(|| own(&p.log)));
            }
            Data::ConfigSet(config) => {
                let set = |at: &mut Option<String>, text: &Option<palog::json::Str<'_>>| {
                    if let Some(text) = text {
                        *at = Some(text.to_string());
                    }
                };
                set(&mut self.directory, &config.directory);
                set(&mut self.branch, &config.branch);
                set(&mut self.title, &config.title);
                set(&mut self.model, &config.model);
                set(&mut self.version, &config.client_version);
            }
            _ => {}
        }
    }

    /// Prints it.
    pub(crate) fn render(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        let session = self.session.as_deref().map_or_else(|| "(no session)".into(), clean_line);
        writeln!(out, "{}", style.bold(&format!("Session {session}")))?;
        let version = self.version.as_deref().map_or_else(String::new, |v| format!(" {v}"));
        let agent = self.agent.as_deref().map(|agent| format!("{agent}{version}"));
        let branch = self.branch.as_deref().map_or_else(String::new, |b| format!(" (branch {b})"));
        let rows = [
            ("title", self.title.clone()),
            ("directory", self.directory.as_ref().map(|d| format!("{d}{branch}"))),
            ("agent", agent),
            ("model", self.model.clone()),
            ("parent", self.parent.clone()),
        ];
        for (name, value) in rows {
            if let Some(value) = value {
                writeln!(out, "  {name:<10}{}", short(&value, 160))?;
            }
        }
        writeln!(out)
    }

    /// What stands before the items in the JSON of `palog show`.
    pub(crate) fn json_head(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_else(|_| "{}".into());
        let text = clean_json(&text);
        let members = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or_default();
        let comma = if members.is_empty() { "" } else { ",\n  " };
        format!("{{\n  {members}{comma}\"items\": [\n    ")
    }
}
