//! Runs a case.

mod import;
mod log;

pub use import::{Imported, Run};

use crate::case::{Case, Task};
use crate::implementation::Implementation;

/// What came of a case.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Every difference, as a sentence; none = the case passed.
    pub failures: Vec<String>,
}

/// Runs a case against an implementation and compares everything that the case expects.
#[must_use]
pub fn run(case: &Case, implementation: &dyn Implementation) -> Outcome {
    let outcome = match &case.task {
        Task::Import(source) => import::run(source, implementation),
        Task::Log(log) => log::run(log, implementation),
    };
    outcome.unwrap_or_else(|why| Outcome { failures: vec![why] })
}
