//! Compares what an implementation made of a case with what the case expects.

mod document;
mod facts;
mod faults;
mod findings;
mod sentences;
mod truth;

pub(crate) use document::{codes, document};
pub(crate) use faults::faults;
pub(crate) use truth::truth;

use std::fmt::Debug;

/// Adds a failure unless both are equal.
fn equal<T: PartialEq + Debug>(what: &str, found: &T, expected: &T, failures: &mut Vec<String>) {
    if found != expected {
        failures.push(format!("{what}: expected {expected:?}, found {found:?}"));
    }
}
