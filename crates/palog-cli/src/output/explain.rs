//! The answer of `palog explain`.

use palog::diagnostic::Code;
use serde::Serialize;

/// What codes and rules mean.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct Explanation {
    /// The codes that were asked for.
    pub(crate) codes: Vec<ExplainedCode>,
    /// The rules that were asked for.
    pub(crate) rules: Vec<ExplainedRule>,
}

/// What a diagnostic code means.
#[derive(Debug, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct ExplainedCode {
    /// The code.
    pub(crate) code: Code,
    /// What it means, as a sentence.
    pub(crate) meaning: &'static str,
    /// What can be done about it.
    pub(crate) remedy: &'static str,
    /// Ids of the rules that it can be about; none where only importers find it.
    pub(crate) rules: &'static [&'static str],
    /// A message with this code.
    pub(crate) example: String,
}

/// What a rule says.
#[derive(Debug, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct ExplainedRule {
    /// Its id.
    pub(crate) rule: &'static str,
    /// What it says, as a sentence.
    pub(crate) text: &'static str,
    /// The chapter of the specification that it stands in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chapter: Option<&'static str>,
    /// The codes that can be about it.
    pub(crate) codes: Vec<Code>,
}
