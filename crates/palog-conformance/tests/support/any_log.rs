//! What holds of any bytes at all, read as a log. The tests check it with the logs of the cases, damaged; a fuzzer can do so with
//! anything.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::ops::ControlFlow;

use palog::diagnostic::{Code, Diagnostics, Severity};
use palog::project::{At, context, transcript};
use palog::reader::{Item, Reader};
use palog::recover::{Context, Verdict, recover};
use palog::reduce::{Reducer, reduce};
use palog::state::State;
use palog::validate::{Options, validate};

/// Bytes as a log: everything reads them without a panic, step by step as at once, and validation and reduction find the same
/// errors.
pub(crate) fn read(bytes: &[u8]) {
    let (state, found) = reduce(bytes).expect("memory can be read");
    assert_eq!(
        state.indeterminate.is_empty(),
        found.count(Severity::Error) == 0,
        "errors and nothing else end certainty"
    );
    let recovery = recover(&state, &Context::new());
    assert_eq!(recovery.verdict == Verdict::Indeterminate, !state.indeterminate.is_empty());
    let blocked = recovery.obligations.iter().any(|owed| owed.blocking);
    assert!(!blocked || !matches!(recovery.verdict, Verdict::Ready | Verdict::Idle | Verdict::Closed));

    let validation = validate(bytes, &Options::new()).expect("memory can be read");
    // A log without any event has no beginning, which validation leaves to its caller; the others need more than one event's
    // bytes, or more than its place; or say something of the world, and nothing of the log.
    let apart = [Code::NotOpened, Code::KeyConflict, Code::SharedWorkspace];
    assert_eq!(errors(&validation.diagnostics, &apart), errors(&found, &apart), "validation and reduction differ");

    assert_eq!(stepwise(bytes), state, "step by step is not as at once");
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    assert_eq!(reduce(&bytes[..whole]).expect("memory can be read").0, state, "the tail counts");

    let _ = context(Cursor::new(bytes), At::Head, None).expect("memory can be read");
    transcript(Cursor::new(bytes), |_| ControlFlow::Continue(())).expect("memory can be read");
}

fn errors(found: &Diagnostics, apart: &[Code]) -> BTreeMap<&'static str, u64> {
    let errors =
        found.groups().iter().filter(|group| group.severity == Severity::Error && !apart.contains(&group.code));
    errors.map(|group| (group.code.as_str(), group.count)).collect()
}

fn stepwise(bytes: &[u8]) -> State {
    let (mut reader, mut reducer) = (Reader::new(bytes), Reducer::new());
    while let Some(item) = reader.next().expect("memory can be read") {
        match item {
            Item::Event(event, line) => reducer.apply(&event, Some(&line)),
            Item::Fault(fault) => reducer.fault(fault),
        }
        // Of a long log a state at each event takes too long.
        if bytes.len() < 1 << 16 {
            let _ = reducer.state();
        }
    }
    reducer.finish().0
}
