//! What `palog conform` prints: which cases there are, and how they went.

use serde::Serialize;

/// The cases there are.
#[derive(Debug, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct Cases {
    /// The cases, by id.
    pub(crate) cases: Vec<Case>,
}

/// A case.
#[derive(Debug, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct Case {
    /// Its id: its path within the set.
    pub(crate) id: String,
    /// What it shows.
    pub(crate) title: String,
    /// Who is tested.
    pub(crate) role: &'static str,
    /// The level that it counts for.
    pub(crate) level: &'static str,
    /// Ids of the rules that it tests.
    pub(crate) rules: Vec<String>,
}

/// How cases went.
#[derive(Debug, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct Report {
    /// What was tested.
    pub(crate) implementation: Implementation,
    /// By role.
    pub(crate) roles: Vec<RoleScore>,
    /// By rule; only those that a case names.
    pub(crate) rules: Vec<RuleScore>,
    /// Every case that was run, by id.
    pub(crate) cases: Vec<Result>,
}

/// What was tested.
#[derive(Debug, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct Implementation {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its version.
    pub(crate) version: &'static str,
    /// The version of the specification that it keeps.
    pub(crate) spec: &'static str,
}

/// How many cases passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct Score {
    /// How many passed.
    pub(crate) passed: u64,
    /// How many were run.
    pub(crate) total: u64,
}

impl Score {
    /// Counts a case.
    pub(crate) fn count(&mut self, passed: bool) {
        self.passed += u64::from(passed);
        self.total += 1;
    }
}

/// How the cases of a role went.
#[derive(Debug, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct RoleScore {
    /// The role.
    pub(crate) role: &'static str,
    /// The highest level of a case that was run.
    pub(crate) level: &'static str,
    /// All of them.
    #[serde(flatten)]
    pub(crate) score: Score,
    /// By level.
    pub(crate) levels: Vec<LevelScore>,
}

/// How the cases of a level went.
#[derive(Debug, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct LevelScore {
    /// The level.
    pub(crate) level: &'static str,
    /// Its cases.
    #[serde(flatten)]
    pub(crate) score: Score,
}

/// How the cases that name a rule went.
#[derive(Debug, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct RuleScore {
    /// Id of the rule.
    pub(crate) rule: String,
    /// Its cases.
    #[serde(flatten)]
    pub(crate) score: Score,
}

/// How a case went.
#[derive(Debug, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct Result {
    /// The case.
    #[serde(flatten)]
    pub(crate) case: Case,
    /// Whether it passed.
    pub(crate) passed: bool,
    /// Every difference from what is expected, as a sentence.
    pub(crate) failures: Vec<String>,
}
