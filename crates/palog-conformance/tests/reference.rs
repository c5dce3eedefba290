//! Every case of the set, run with the implementation of this workspace: one test per case.

#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "../../palog-cli/src/reference/import.rs"]
mod import;
#[path = "support/reference.rs"]
mod reference;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use palog_conformance::{Case, run};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let cases = match Case::all(&fixtures::folder()) {
        Ok(cases) => cases,
        // One broken case must not hide behind the others.
        Err(why) => {
            let broken = Trial::test("every case can be loaded", move || Err(Failed::from(why)));
            return libtest_mimic::run(&arguments, vec![broken]).exit_code();
        }
    };
    let trials = cases.into_iter().map(|case| {
        Trial::test(case.id.clone(), move || {
            let outcome = run(&case, &reference::Reference);
            if outcome.failures.is_empty() {
                Ok(())
            } else {
                Err(Failed::from(format!("{}\n  {}", case.title, outcome.failures.join("\n  "))))
            }
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
