//! The event types and their payloads (spec 03).

mod action;
mod conversation;
mod ownership;
mod projection;
mod record;
mod work;
mod world;

pub use action::*;
pub use conversation::*;
pub use ownership::*;
pub use projection::*;
pub use record::*;
pub use work::*;
pub use world::*;

use crate::json::{Raw, Value};

/// What the `type` of an event says (spec 03).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind<'a> {
    /// A type of this version of the format, by its wire name.
    Core(&'static str),
    /// A type in the core namespace that this version does not have.
    Unknown(&'a str),
    /// A vendor's type, `x.<reverse-dns>/<name>`.
    Vendor(&'a str),
    /// A name that is neither.
    Malformed(&'a str),
}

impl<'a> Kind<'a> {
    /// Sorts a type name.
    #[must_use]
    pub fn parse(name: &'a str) -> Self {
        if let Some(core) = Data::NAMES.iter().find(|known| **known == name) {
            return Kind::Core(core);
        }
        let word =
            |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if let Some(rest) = name.strip_prefix("x.") {
            let vendor = rest.split_once('/').is_some_and(|(dns, name)| {
                !name.is_empty()
                    && dns.split('.').count() >= 2
                    && dns
                        .split('.')
                        .all(|l| !l.is_empty() && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'))
            });
            return if vendor { Kind::Vendor(name) } else { Kind::Malformed(name) };
        }
        match name.split_once('.') {
            Some((family, verb)) if word(family) && word(verb) => Kind::Unknown(name),
            _ => Kind::Malformed(name),
        }
    }
}

macro_rules! events {
    ($($variant:ident $(<$lt:lifetime>)? = $name:literal,)*) => {
        /// The payload of an event, by its type (spec 03).
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Data<'a> {
            $(#[doc = concat!("`", $name, "`")] $variant($variant $(<$lt>)?),)*
            /// A vendor's record that maps to nothing, under a vendor type.
            Kept(std::borrow::Cow<'a, str>, KeptRecord<'a>),
            /// A type that this crate does not know: name and payload as they stand.
            Other(std::borrow::Cow<'a, str>, Raw<'a>),
        }

        impl<'a> Data<'a> {
            /// Wire names of the types of this version, in the order of the spec.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The wire name of the type.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Data::$variant(_) => $name,)*
                    Data::Kept(name, _) | Data::Other(name, _) => name,
                }
            }

            /// Reads the payload `text` of the type `name`.
            ///
            /// # Errors
            /// When the type is known and the payload does not have its form.
            pub fn parse(name: &'a str, text: &'a str) -> Result<Self, serde_json::Error> {
                match name {
                    $($name => serde_json::from_str(text).map(Data::$variant).and_then(Data::checked),)*
                    _ => Raw::parse(text).map(|raw| Data::Other(name.into(), raw)),
                }
            }
        }

        impl serde::Serialize for Data<'_> {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Data::$variant(data) => data.serialize(s),)*
                    Data::Kept(_, kept) => kept.serialize(s),
                    Data::Other(_, raw) => raw.serialize(s),
                }
            }
        }

        $(impl<'a> From<$variant $(<$lt>)?> for Data<'a> {
            fn from(data: $variant $(<$lt>)?) -> Self {
                Data::$variant(data)
            }
        })*

        /// The JSON Schema of each payload, by the wire name of its type.
        #[cfg(feature = "schema")]
        pub(crate) fn payload_schemas(generator: &mut schemars::SchemaGenerator) -> Vec<(&'static str, schemars::Schema)> {
            vec![$(($name, generator.subschema_for::<$variant>())),*]
        }
    };
}

events! {
    LogOpened<'a> = "log.opened",
    LogClosed<'a> = "log.closed",
    SourceOpened<'a> = "source.opened",
    SourceChanged<'a> = "source.changed",
    ObservationRecorded<'a> = "observation.recorded",
    ConfigSet<'a> = "config.set",
    TurnStarted<'a> = "turn.started",
    TurnEnded<'a> = "turn.ended",
    InputQueued<'a> = "input.queued",
    InputEnded<'a> = "input.ended",
    MessageAdded<'a> = "message.added",
    ModelRequested<'a> = "model.requested",
    ModelResponse<'a> = "model.response",
    ActionProposed<'a> = "action.proposed",
    ActionStarted<'a> = "action.started",
    ActionEnded<'a> = "action.ended",
    ActionReconciled<'a> = "action.reconciled",
    ApprovalRequested<'a> = "approval.requested",
    ApprovalEnded<'a> = "approval.ended",
    GrantAdded<'a> = "grant.added",
    GrantRevoked<'a> = "grant.revoked",
    ContextCompacted<'a> = "context.compacted",
    MessageRevised<'a> = "message.revised",
    BranchMoved<'a> = "branch.moved",
    ChildSpawned<'a> = "child.spawned",
    ChildEnded<'a> = "child.ended",
    RedactionApplied<'a> = "redaction.applied",
    NoteAdded<'a> = "note.added",
    LeaseAcquired<'a> = "lease.acquired",
    LeaseRenewed<'a> = "lease.renewed",
    LeaseReleased<'a> = "lease.released",
    TaskOpened<'a> = "task.opened",
    TaskClosed<'a> = "task.closed",
    AttemptStarted<'a> = "attempt.started",
    AttemptEnded<'a> = "attempt.ended",
    PlanRevised<'a> = "plan.revised",
    StepChanged<'a> = "step.changed",
    CommandIssued<'a> = "command.issued",
    CommandEnded<'a> = "command.ended",
    CheckpointCreated<'a> = "checkpoint.created",
    CheckpointRestored<'a> = "checkpoint.restored",
    WorkspaceRecorded<'a> = "workspace.recorded",
    ArtifactRecorded<'a> = "artifact.recorded",
    ResourceAcquired<'a> = "resource.acquired",
    ResourceReleased<'a> = "resource.released",
}

impl<'a> Data<'a> {
    /// The types that may still change, until a second producer writes them (spec 03).
    pub const EXPERIMENTAL: &'static [&'static str] = &[
        "task.opened",
        "task.closed",
        "attempt.started",
        "attempt.ended",
        "plan.revised",
        "step.changed",
        "command.issued",
        "command.ended",
        "checkpoint.created",
        "checkpoint.restored",
        "resource.acquired",
        "resource.released",
    ];

    /// Refuses what the types alone cannot tell.
    fn checked(self) -> Result<Self, serde_json::Error> {
        match &self {
            Data::ContextCompacted(d) if d.window.is_some() == d.pruned.is_some() => {
                Err(serde::de::Error::custom("either `window` or `pruned` is expected"))
            }
            _ => Ok(self),
        }
    }

    /// Every value in the payload that a writer may move to a blob (spec 01, "Long lines").
    #[must_use]
    pub fn values_mut(&mut self) -> Vec<&mut Value<'a>> {
        let mut found = Vec::new();
        match self {
            Data::ObservationRecorded(d) => found.extend(&mut d.detail),
            Data::ConfigSet(d) => found.extend(&mut d.instructions),
            Data::InputQueued(d) => d.parts.iter_mut().for_each(|p| p.values_mut(&mut found)),
            Data::MessageAdded(d) => d.parts.iter_mut().for_each(|p| p.values_mut(&mut found)),
            Data::ModelResponse(d) => found.extend(&mut d.error),
            Data::ActionProposed(d) => found.push(&mut d.args),
            Data::ActionEnded(d) => {
                d.output.iter_mut().flatten().for_each(|p| p.values_mut(&mut found));
                found.extend(&mut d.receipt);
                found.extend(&mut d.error);
            }
            Data::ActionReconciled(d) => found.extend(&mut d.evidence),
            Data::ApprovalEnded(d) => {
                found.extend(&mut d.args);
                found.extend(&mut d.input);
                found.extend(&mut d.reason);
            }
            Data::ContextCompacted(d) => {
                for item in d.window.iter_mut().flatten() {
                    match item {
                        WindowItem::Event { parts, .. } => {
                            parts.iter_mut().flatten().for_each(|p| p.values_mut(&mut found));
                        }
                        WindowItem::Message { message } => {
                            message.parts.iter_mut().for_each(|p| p.values_mut(&mut found));
                        }
                    }
                }
            }
            Data::MessageRevised(d) => d.parts.iter_mut().flatten().for_each(|p| p.values_mut(&mut found)),
            Data::ChildEnded(d) => found.extend(&mut d.output),
            Data::TaskOpened(d) => {
                found.push(&mut d.goal);
                found.extend(&mut d.acceptance);
            }
            Data::TaskClosed(d) => found.extend(&mut d.reason),
            Data::AttemptEnded(d) => found.extend(&mut d.reason),
            Data::PlanRevised(d) => {
                found.extend(d.steps.iter_mut().filter_map(|step| step.title.as_mut()));
                found.extend(&mut d.reason);
            }
            Data::CommandIssued(d) => found.extend(&mut d.input),
            Data::CommandEnded(d) => found.extend(&mut d.reason),
            Data::WorkspaceRecorded(d) => found.extend(&mut d.diff),
            Data::NoteAdded(d) => {
                found.extend(&mut d.text);
                found.extend(&mut d.bytes);
            }
            Data::Kept(_, d) => found.push(&mut d.record),
            Data::LogOpened(_)
            | Data::LogClosed(_)
            | Data::SourceOpened(_)
            | Data::TurnStarted(_)
            | Data::TurnEnded(_)
            | Data::InputEnded(_)
            | Data::ModelRequested(_)
            | Data::ActionStarted(_)
            | Data::ApprovalRequested(_)
            | Data::BranchMoved(_)
            | Data::ChildSpawned(_)
            | Data::SourceChanged(_)
            | Data::GrantAdded(_)
            | Data::GrantRevoked(_)
            | Data::RedactionApplied(_)
            | Data::LeaseAcquired(_)
            | Data::LeaseRenewed(_)
            | Data::LeaseReleased(_)
            | Data::AttemptStarted(_)
            | Data::StepChanged(_)
            | Data::CheckpointCreated(_)
            | Data::CheckpointRestored(_)
            | Data::ArtifactRecorded(_)
            | Data::ResourceAcquired(_)
            | Data::ResourceReleased(_)
            | Data::Other(..) => {}
        }
        found
    }
}
