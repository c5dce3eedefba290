//! Findings, as every output holds them.

use palog::diagnostic::{Code, Diagnostics, Place, Severity};
use serde::Serialize;

/// Findings of one code and severity.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    code: Code,
    severity: Severity,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'static str>,
    /// How many there were.
    count: u64,
    /// Where the first of them are.
    at: Vec<Place>,
}

/// The findings of a run. The particulars of a finding are the `detail` of its place, where it has no other.
pub(crate) fn findings(diagnostics: &Diagnostics) -> Vec<Finding> {
    let groups = diagnostics.groups().iter();
    groups
        .map(|group| Finding {
            code: group.code,
            severity: group.severity,
            rule: group.rule,
            count: group.count,
            at: group
                .first
                .iter()
                .map(|d| Place { detail: d.place.detail.clone().or_else(|| d.why.clone()), ..d.place.clone() })
                .collect(),
        })
        .collect()
}
