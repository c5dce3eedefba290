//! `palog schema`

use std::io::Write;

use crate::args::Schema;
use crate::exit::{Exit, Failure};
use crate::render::text::{clean_line, closest};
use crate::schemas::ALL;
use crate::terminal::Terminal;

/// Prints a schema, or the names of all.
pub(crate) fn run(terminal: &mut Terminal, args: &Schema) -> Result<Exit, Failure> {
    #[cfg(feature = "schema")]
    if let Some(directory) = &args.write {
        std::fs::create_dir_all(directory)?;
        for (name, schema) in crate::schemas::made() {
            std::fs::write(directory.join(format!("{name}.schema.json")), format!("{schema:#}\n"))?;
        }
        return Ok(Exit::Ok);
    }
    let Some(name) = &args.name else {
        let width = ALL.iter().map(|d| d.name.len()).max().unwrap_or_default();
        for document in ALL {
            writeln!(terminal.out, "{:width$}  {}", document.name, document.about)?;
        }
        return Ok(Exit::Ok);
    };
    let wanted = name.trim_end_matches(".schema.json");
    match ALL.iter().find(|d| d.name == wanted) {
        Some(document) => terminal.out.write_all(document.schema.as_bytes())?,
        None => {
            let failure = Failure::new(Exit::NothingMatched, format!("there is no schema {:?}", clean_line(name)));
            return Err(failure.help(match closest(wanted, ALL.iter().map(|d| d.name)) {
                Some(other) => format!("did you mean {other}? palog schema --list names all"),
                None => "palog schema --list names all".into(),
            }));
        }
    }
    Ok(Exit::Ok)
}
