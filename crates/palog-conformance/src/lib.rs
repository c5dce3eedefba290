//! Conformance cases of the portable agent log, and what it takes to run them against any implementation.
//!
//! A [`Case`] is data: a source, and what a truthful reader has to make of it (`conformance-fixtures/README.md` says what
//! each member means). An [`Implementation`] is whatever imports, reduces and recovers; it is known by the JSON that it
//! gives and the files that it writes, and by nothing else, so that one which speaks through a pipe fits as well as one
//! that is linked in. [`run`] does the case and compares everything that the case expects.
//!
//! An expectation that nothing here checks is a failure, not a pass.

mod case;
mod compare;
mod implementation;
pub mod json;
mod log;
mod run;

pub use case::{
    Approval, Call, Case, Child, Diagnostic, Expect, Expectation, Family, Input, Level, Place, Preserve, Role, Session,
    SessionVerdict, Tally, Truth, Usage, Verdict, Work,
};
pub use implementation::{Implementation, Import, Quality};
pub use log::{Log, Record};
pub use run::{Imported, Outcome, Run, run};
