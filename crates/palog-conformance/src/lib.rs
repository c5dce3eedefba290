//! Conformance cases of the portable agent log, and what it takes to run them against any implementation.
//!
//! A [`Case`] is data: a source or a log, and what has to be made of it (`conformance-fixtures/README.md` says what each
//! member means). An [`Implementation`] is whatever imports, reads, reduces and recovers; it is known by the JSON that it
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
    Approval, Call, Case, Child, Diagnostic, Expect, Expectation, Expected, Family, Finding, Input, Level, LogCase,
    Operation, Patch, PatchError, Phase, Place, Preserve, Role, Session, SessionVerdict, Source, Tally, Task, Truth,
    Usage, Verdict, Work,
};
pub use implementation::{Implementation, Import, Quality, World};
pub use log::{Log, Record};
pub use run::{Imported, Outcome, Run, run};
