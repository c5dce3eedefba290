//! Compares two portable agent logs by what they say, field by field: messages, calls and results, reasoning, pictures, token
//! counts, what a compaction left, what is open, and what may be done now.
//!
//! Ids of events, offsets and the form of records do not count, and neither does the vendor: two logs of one session that was
//! moved from one client to another differ by what the move lost. The fields are those of
//! [`palog_adapter::export::LossReport`], so that a declared loss can be compared with the measured one.

mod facts;

use std::collections::HashSet;
use std::fs::File;

use palog::blob::BlobStore;
use palog_adapter::export::{ExportError, Field};
use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use facts::{Fact, facts};

/// A log that is compared.
#[derive(Clone, Copy, Debug)]
pub struct Side<'l> {
    /// The log.
    pub log: &'l File,
    /// Where its blobs lie.
    pub blobs: Option<&'l BlobStore>,
}

/// A fact that one log has and the other has not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Only {
    /// What it says; long content is cut.
    pub says: String,
    /// The event that tells of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
}

/// How two logs differ in a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// The field.
    pub field: Field,
    /// How many facts are the same.
    pub same: u64,
    /// What the first log alone says.
    pub first: Vec<Only>,
    /// What the second log alone says.
    pub second: Vec<Only>,
}

/// The comparison of two logs (`schemas/v1/diff.schema.json`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// How many facts both logs have.
    pub same: u64,
    /// The fields in which they differ.
    pub differences: Vec<Difference>,
}

/// The longest text of a fact that is told, in characters.
const TOLD: usize = 200;

/// Compares what two logs say.
///
/// # Errors
/// When one of them cannot be read, or nothing can be concluded from it.
pub fn compare(first: Side<'_>, second: Side<'_>) -> Result<Comparison, ExportError> {
    let mut ours = facts(first.log, first.blobs)?;
    let mut theirs = facts(second.log, second.blobs)?;
    let mut comparison = Comparison { same: 0, differences: Vec::new() };
    for field in Field::ALL.iter().copied() {
        let (a, b) = (ours.remove(&field).unwrap_or_default(), theirs.remove(&field).unwrap_or_default());
        let difference = differ(field, a, b);
        comparison.same += difference.same;
        if !difference.first.is_empty() || !difference.second.is_empty() {
            comparison.differences.push(difference);
        }
    }
    Ok(comparison)
}

fn differ(field: Field, mut a: Vec<Fact>, mut b: Vec<Fact>) -> Difference {
    let names = |facts: &[Fact]| facts.iter().filter_map(|f| f.of.clone()).collect::<HashSet<String>>();
    let (of_a, of_b) = (names(&a), names(&b));
    let both = |fact: &Fact| fact.of.as_ref().is_none_or(|of| of_a.contains(of) && of_b.contains(of));
    a.retain(both);
    b.retain(both);
    let says = |facts: &[Fact]| facts.iter().map(|f| f.says.clone()).collect::<Vec<String>>();
    let mut difference = Difference { field, same: 0, first: Vec::new(), second: Vec::new() };
    for op in capture_diff_slices(Algorithm::Myers, &says(&a), &says(&b)) {
        if let DiffOp::Equal { len, .. } = op {
            difference.same += len as u64;
            continue;
        }
        difference.first.extend(a[op.old_range()].iter().map(only));
        difference.second.extend(b[op.new_range()].iter().map(only));
    }
    difference
}

fn only(fact: &Fact) -> Only {
    let mut says: String = fact.says.chars().take(TOLD).collect();
    if says.len() < fact.says.len() {
        says.push('…');
    }
    Only { says, event: fact.event.clone() }
}
