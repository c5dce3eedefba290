//! What an export loses, said in one scale (spec 07, "Fidelity").

use std::collections::BTreeMap;

use serde::Serialize;

/// How many places of one loss are named.
const PLACES: usize = 20;

macro_rules! lossy_words {
    ($($(#[$meta:meta])* pub enum $name:ident { $($(#[$vm:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[non_exhaustive]
        pub enum $name { $($(#[$vm])* #[serde(rename = $word)] $variant,)* }

        impl $name {
            /// All of them, in their order.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// The word in a report.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }
    )*};
}

lossy_words! {
    /// How much of a fact the other form holds; later ones are worse.
    pub enum Class {
        /// The same fact, in other words that lead back to it.
        Normalized = "normalized",
        /// A part of it.
        Degraded = "degraded",
        /// Something that no record says stands in its place, and is marked as such.
        Synthesized = "synthesized",
        /// Nothing of it.
        Omitted = "omitted",
        /// Nothing of it, since nobody but its provider can read it.
        Opaque = "opaque",
    }

    /// What a loss is about.
    pub enum Field {
        /// The id of the session.
        SessionId = "session.id",
        /// The log that this one goes on from, whose messages it does not hold.
        SessionParent = "session.parent",
        /// When something happened.
        Time = "time",
        /// Who speaks in a message.
        MessageRole = "message.role",
        /// What a message is for.
        MessagePurpose = "message.purpose",
        /// What one program tells its model of itself and of its surroundings.
        MessageReminder = "message.reminder",
        /// Messages that the model never sees.
        MessageUnseen = "message.unseen",
        /// A message that was cut off.
        MessagePartial = "message.partial",
        /// A message whose content was replaced: only the new content is carried.
        MessageRevised = "message.revised",
        /// Text, or structured data, that is not at hand.
        PartText = "part.text",
        /// Pictures.
        PartImage = "part.image",
        /// Files.
        PartFile = "part.file",
        /// Structured data.
        PartJson = "part.json",
        /// Parts that nobody here understands.
        PartOpaque = "part.opaque",
        /// What the model thought, in words.
        ReasoningText = "reasoning.text",
        /// What the model thought, in a form that its provider alone can read.
        ReasoningOpaque = "reasoning.opaque",
        /// The id of a call.
        ActionId = "action.id",
        /// The name of a tool.
        ActionName = "action.name",
        /// The arguments of a call.
        ActionArgs = "action.args",
        /// Which kind of call it is for its provider.
        ActionForm = "action.form",
        /// What a call can do to the world, and whether it asks or begets.
        ActionEffect = "action.effect",
        /// What became of a call.
        ActionState = "action.state",
        /// Calls of which the log does not tell what became of them, or tells that they wait.
        ActionOpen = "action.open",
        /// Calls that lie on a branch that was left, or were never given a place among the messages.
        ActionAside = "action.aside",
        /// What came of a call beside what the model was told.
        ActionOutput = "action.output",
        /// Whether the model was told that a call failed.
        ResultError = "result.error",
        /// Results of calls that are not in the log.
        ResultOrphan = "result.orphan",
        /// The place of a result among the messages.
        ResultPlace = "result.place",
        /// Further results of a call that has one.
        ResultAgain = "result.again",
        /// The vendor's id of a response.
        ResponseId = "response.id",
        /// Which model gave a response.
        ResponseModel = "response.model",
        /// Token counts.
        ResponseUsage = "response.usage",
        /// Why a response stopped.
        ResponseStop = "response.stop",
        /// How a turn ended.
        TurnEnd = "turn.end",
        /// What a compaction left to the model.
        CompactionWindow = "compaction.window",
        /// A compaction whose summary its provider alone can read.
        CompactionOpaque = "compaction.opaque",
        /// Results whose content was taken out of the context.
        CompactionPruned = "compaction.pruned",
        /// Messages on branches that were left.
        Branch = "branch",
        /// Input that waits.
        InputQueued = "input.queued",
        /// Requests for approval.
        Approval = "approval",
        /// What has to be answered or gone on with.
        Pending = "pending",
        /// What may be done now.
        Verdict = "verdict",
        /// Standing leave to act.
        Grant = "grant",
        /// The mode that says what the agent may do unasked.
        ConfigPermission = "config.permission_mode",
        /// The title of the session.
        ConfigTitle = "config.title",
        /// The instructions of the agent.
        ConfigInstructions = "config.instructions",
        /// The model.
        ConfigModel = "config.model",
        /// The directory that the agent works in.
        ConfigDirectory = "config.directory",
        /// The branch of the version control system.
        ConfigBranch = "config.branch",
        /// Other members of the definition.
        ConfigOther = "config.other",
        /// The logs of children.
        Child = "child",
        /// Tasks, plans, checkpoints and resources.
        Work = "work",
        /// What was seen beside the session.
        Observation = "observation",
        /// Records of the first vendor that have no form in a log.
        Record = "record",
    }
}

/// Where something was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossPlace {
    /// The event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
}

/// One kind of loss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Loss {
    /// What it is about.
    pub field: Field,
    /// How much is lost.
    pub class: Class,
    /// How often.
    pub count: u64,
    /// Whether going on without it can do harm: something is done twice, or a person is not asked.
    pub critical: bool,
    /// Why.
    pub reason: &'static str,
    /// Where; of many, the first ones.
    pub places: Vec<LossPlace>,
}

/// The report of an export (`schemas/v1/loss.schema.json`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossReport {
    /// Id of the log.
    pub log: String,
    /// The format of the session that the log was made from; absent = the log was written live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The format that was written.
    pub to: &'static str,
    /// Id of the session that was written.
    pub session: String,
    /// Whether what was written is byte for byte what the log was made from.
    pub identical: bool,
    /// The losses, by field.
    pub losses: Vec<Loss>,
}

/// Collects the losses of an export.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    found: BTreeMap<(Field, Class, &'static str), Loss>,
}

impl Losses {
    /// Declares a loss at an event, or at an action.
    pub fn declare(
        &mut self,
        field: Field,
        class: Class,
        reason: &'static str,
        event: Option<&str>,
        action: Option<&str>,
    ) {
        self.add(field, class, reason, false, 1, event, action);
    }

    /// Declares a loss without which going on can do harm.
    pub fn critical(
        &mut self,
        field: Field,
        class: Class,
        reason: &'static str,
        event: Option<&str>,
        action: Option<&str>,
    ) {
        self.add(field, class, reason, true, 1, event, action);
    }

    /// Declares `count` losses that have no single place; none if it is 0.
    pub fn count(&mut self, field: Field, class: Class, reason: &'static str, count: u64) {
        if count > 0 {
            self.add(field, class, reason, false, count, None, None);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the members of one entry")]
    fn add(
        &mut self,
        field: Field,
        class: Class,
        reason: &'static str,
        critical: bool,
        count: u64,
        event: Option<&str>,
        action: Option<&str>,
    ) {
        let loss = self.found.entry((field, class, reason)).or_insert_with(|| Loss {
            field,
            class,
            count: 0,
            critical,
            reason,
            places: Vec::new(),
        });
        loss.count += count;
        loss.critical |= critical;
        if (event.is_some() || action.is_some()) && loss.places.len() < PLACES {
            loss.places.push(LossPlace { event: event.map(str::to_owned), action: action.map(str::to_owned) });
        }
    }

    /// The losses, by field.
    #[must_use]
    pub fn into_vec(self) -> Vec<Loss> {
        self.found.into_values().collect()
    }
}

impl LossReport {
    /// The losses that are of `class` or worse.
    pub fn worse(&self, class: Class) -> impl Iterator<Item = &Loss> {
        self.losses.iter().filter(move |loss| loss.class >= class)
    }

    /// The losses without which going on can do harm.
    pub fn critical(&self) -> impl Iterator<Item = &Loss> {
        self.losses.iter().filter(|loss| loss.critical)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_one_kind_are_counted_and_named_up_to_a_limit() {
        let mut losses = Losses::default();
        for n in 0..50 {
            losses.declare(Field::ReasoningOpaque, Class::Opaque, "why", Some(&format!("e{n}")), None);
        }
        losses.critical(Field::ActionAside, Class::Omitted, "why", None, Some("a"));
        losses.count(Field::Record, Class::Omitted, "why", 0);
        losses.count(Field::Record, Class::Omitted, "why", 3);
        let found = losses.into_vec();
        assert_eq!(found.iter().map(|l| l.count).collect::<Vec<_>>(), [50, 1, 3]);
        assert_eq!((found[0].places.len(), found[2].places.len()), (PLACES, 0));
        let report =
            LossReport { log: "l".into(), from: None, to: "x", session: "s".into(), identical: false, losses: found };
        assert_eq!(report.critical().count(), 1);
        assert_eq!(report.worse(Class::Opaque).count(), 1);
        assert_eq!(report.worse(Class::Degraded).count(), 3);
    }
}
