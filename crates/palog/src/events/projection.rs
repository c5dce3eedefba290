//! What the model sees from some point on, and the family of a log (spec 03, "Projection", "Family").

use serde::de::{Deserialize, Deserializer, Error};

use crate::events::{Part, Role};
use crate::json::{Str, Value};
use crate::wire::{wire, words};

words! {
    /// What brought a compaction about (spec 03).
    pub enum CompactionTrigger {
        /// A person asked for it.
        Manual = "manual",
        /// The context grew too large.
        Auto = "auto",
    }

    /// How surely a child belongs to the action that is named (spec 03).
    pub enum ChildLink {
        /// A record names both.
        Explicit = "explicit",
        /// It was concluded from content.
        Inferred = "inferred",
        /// Nothing tells.
        None = "none",
    }

    /// What kind of child a log is (spec 03).
    pub enum ChildKind {
        /// An agent that works for this one.
        Subagent = "subagent",
        /// A fork of this session.
        Fork = "fork",
    }
}

/// One item of a compaction's window (spec 03).
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum WindowItem<'a> {
    /// An event of this log, which may come later; with `parts` its content is replaced.
    Event {
        /// The event.
        event: Str<'a>,
        /// What stands in place of its parts.
        #[serde(skip_serializing_if = "Option::is_none")]
        parts: Option<Vec<Part<'a>>>,
    },
    /// A message that is in no event: a summary or an opaque item.
    Message {
        /// The message.
        message: WindowMessage<'a>,
    },
}

wire! {
    /// A message that only a window holds (spec 03).
    pub struct WindowMessage<'a> {
        /// Whose message it is.
        role: Role,
        /// Its content.
        parts: Vec<Part<'a>>,
    }

    /// All members that a window item can have; an item is read into this first.
    pub struct WindowMembers<'a> {
        /// See [`WindowItem`].
        event?: Str<'a>,
        /// See [`WindowItem`].
        parts?: Vec<Part<'a>>,
        /// See [`WindowItem`].
        message?: WindowMessage<'a>,
    }

    /// `context.compacted`: from here on the model sees the window and what follows (spec 03). With `pruned` in place of
    /// `window` it sees what it saw before, without the content of these actions' results.
    pub struct ContextCompacted<'a> {
        /// What brought it about.
        trigger?: CompactionTrigger,
        /// The complete ordered list of what the model sees.
        window?: Vec<WindowItem<'a>>,
        /// Actions whose results lost their content.
        pruned?: Vec<Str<'a>>,
        /// Tokens before, as the source counts them.
        tokens_before?: u64,
        /// Tokens after, as the source counts them.
        tokens_after?: u64,
    }

    /// `message.revised`: the model sees another content from here on, or none (spec 03).
    pub struct MessageRevised<'a> {
        /// The event of the message.
        message: Str<'a>,
        /// What stands in place of its parts.
        parts?: Vec<Part<'a>>,
        /// `true`: the model does not see it any more.
        removed?: bool,
    }

    /// `branch.moved`: the head is another event (spec 03).
    pub struct BranchMoved<'a> {
        /// The new head, or `root`.
        to: Str<'a>,
    }

    /// `child.spawned` (spec 03).
    pub struct ChildSpawned<'a> {
        /// Id of the child's log.
        child: Str<'a>,
        /// Native session id of the child.
        session: Str<'a>,
        /// The action that made it.
        action?: Str<'a>,
        /// What kind of child it is.
        kind: ChildKind,
        /// How surely it belongs to that action.
        link: ChildLink,
    }

    /// `child.ended` (spec 03).
    pub struct ChildEnded<'a> {
        /// Id of the child's log.
        child: Str<'a>,
        /// In the source's words.
        status?: Str<'a>,
        /// What it gave back.
        output?: Value<'a>,
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for WindowItem<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let m = WindowMembers::deserialize(d)?;
        match (m.event, m.message, m.parts) {
            (Some(event), None, parts) => Ok(WindowItem::Event { event, parts }),
            (None, Some(message), None) => Ok(WindowItem::Message { message }),
            _ => Err(D::Error::custom("a window item has either `event` (with or without `parts`) or `message`")),
        }
    }
}
