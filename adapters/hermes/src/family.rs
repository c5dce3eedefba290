//! The family of a session: what it came out of, and what came out of it.

use palog::events::ParentMode;
use serde::Deserialize;

use crate::record::Record;

/// What a session is to the one that it came out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// It works for it.
    Agent,
    /// It is a branch of it, or nobody says what it is.
    Branch,
    /// It goes on with what a compaction left of it.
    Continuation,
}

impl Relation {
    /// The same, in the words of a log.
    pub(crate) fn mode(self) -> ParentMode {
        match self {
            Relation::Agent => ParentMode::Spawn,
            Relation::Branch => ParentMode::Fork,
            Relation::Continuation => ParentMode::Continue,
        }
    }
}

/// A session among the others, by its row.
#[derive(Clone, Debug)]
pub(crate) struct Kin {
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) end_reason: Option<String>,
    is_agent: bool,
    is_branch: bool,
    is_fresh: bool,
    pub(crate) started: Option<f64>,
}

/// The marks in `sessions.model_config`.
#[derive(Default, Deserialize)]
struct Marks {
    _branched_from: Option<String>,
    _delegate_from: Option<String>,
    _reset_from: Option<String>,
}

impl Kin {
    /// By the row of the session; `None` if that has no id.
    pub(crate) fn of(record: &Record) -> Option<Self> {
        let marks: Marks =
            record.value("model_config").and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let parent = record.word("parent_session_id").map(|id| id.into_owned());
        Some(Kin {
            id: record.text("id")?.into_owned(),
            end_reason: record.word("end_reason").map(|reason| reason.into_owned()),
            is_agent: marks._delegate_from.is_some() || record.text("source").as_deref() == Some("subagent"),
            is_branch: marks._branched_from.is_some(),
            is_fresh: marks._reset_from.is_some(),
            parent: marks._delegate_from.or(marks._branched_from).or(parent),
            started: record.real("started_at"),
        })
    }
}

/// All sessions of an input.
#[derive(Debug, Default)]
pub(crate) struct Family(Vec<Kin>);

impl Family {
    pub(crate) fn new(all: Vec<Kin>) -> Self {
        Family(all)
    }

    /// The ids of all, in their order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|kin| kin.id.as_str())
    }

    /// The session with this id.
    pub(crate) fn get(&self, id: &str) -> Option<&Kin> {
        self.0.iter().find(|kin| kin.id == id)
    }

    /// What a session is to the one that it came out of. One that came out of a compaction goes on with what that one did.
    pub(crate) fn relation(&self, kin: &Kin) -> Option<Relation> {
        let parent = kin.parent.as_deref().filter(|parent| *parent != kin.id && !kin.is_fresh)?;
        let ended = self.get(parent).and_then(|parent| parent.end_reason.as_deref());
        Some(match ended {
            _ if kin.is_agent => Relation::Agent,
            Some("compression") if !kin.is_branch => Relation::Continuation,
            _ => Relation::Branch,
        })
    }

    /// The sessions that came out of this one, the oldest first, with what each is to it.
    pub(crate) fn children(&self, id: &str) -> Vec<(&Kin, Relation)> {
        let of = self.0.iter().filter(|kin| kin.parent.as_deref() == Some(id));
        let mut children: Vec<_> = of.filter_map(|kin| Some((kin, self.relation(kin)?))).collect();
        children.sort_by(|(a, _), (b, _)| a.started.partial_cmp(&b.started).unwrap_or(std::cmp::Ordering::Equal));
        children
    }

    /// Whether the session goes on in another one.
    pub(crate) fn goes_on(&self, id: &str) -> bool {
        self.children(id).iter().any(|(_, relation)| *relation == Relation::Continuation)
    }
}

/// The call that a subagent comes from: the only one that handed work over, or the only one with its goal.
pub(crate) fn caller<'c>(delegations: &'c [(String, String)], goal: &str) -> Option<(&'c str, bool)> {
    if let [(only, arguments)] = delegations
        && !arguments.contains("\"tasks\"")
    {
        return Some((only, true));
    }
    let goal = serde_json::to_string(goal).ok()?;
    let mut found = delegations.iter().filter(|(_, arguments)| arguments.contains(&goal));
    match (found.next(), found.next()) {
        (Some((action, _)), None) => Some((action, false)),
        _ => None,
    }
}
