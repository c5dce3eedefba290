//! `palog state`

use palog::reader::Item;
use palog::reduce::Reducer;

use crate::args::{Format, State};
use crate::exit::{Exit, Failure};
use crate::input;
use crate::render;
use crate::render::overview::Overview;
use crate::terminal::Terminal;

/// Prints the state after all events, or after one of them.
pub(crate) fn run(terminal: &mut Terminal, args: &State) -> Result<Exit, Failure> {
    let log = input::open(terminal, &args.subject)?;
    let mut reducer = Reducer::new();
    let mut reader = log.reader()?;
    let mut reached = args.at.is_none();
    let read = loop {
        match reader.next() {
            Ok(None) => break Ok(()),
            Ok(Some(Item::Fault(fault))) => reducer.fault(fault),
            Ok(Some(Item::Event(event, line))) => {
                if args.at.is_some_and(|at| event.seq > at) {
                    break Ok(());
                }
                reached |= args.at == Some(event.seq);
                reducer.apply(&event, Some(&line));
            }
            Err(error) => break Err(error),
        }
    };
    read.map_err(|e| log.unreadable(&e))?;
    let (state, faults) = reducer.finish();
    input::tell_faults(terminal, &log, &faults)?;
    if let (false, Some(at)) = (reached, args.at) {
        return Err(Failure::new(
            Exit::NothingMatched,
            format!("{} has no event {at}; the last one is {}", log.name, state.counts.events.0.saturating_sub(1)),
        ));
    }
    match args.subject.format {
        Format::Json => terminal.json(&state)?,
        Format::Human => {
            let overview = Overview::of(&state);
            let style = terminal.out_style;
            overview.render(&mut terminal.out, style)?;
            render::state::render(&mut terminal.out, style, &state)?;
        }
    }
    Ok(Exit::Ok)
}
