//! Which session is meant, where there are several.

use std::fs;
use std::path::{Path, PathBuf};

use palog_import::{self as vendors, Session, Stream};

use crate::exit::{Exit, Failure};
use crate::input::{SUFFIX, import_failure};
use crate::render::text::{clean_line, count};

/// How many sessions are listed where one has to be chosen.
const LISTED: usize = 30;

/// A session, or the subagent of one, that can be asked for.
pub(crate) struct Candidate {
    /// Its id; `None` where only the records tell it.
    id: Option<String>,
    /// Which of the sessions that were found it is, or belongs to.
    pub(crate) index: usize,
    /// The id of the subagent, if it is one.
    pub(crate) agent: Option<String>,
    /// Where it is.
    pub(crate) path: PathBuf,
}

/// The sessions and their subagents.
pub(crate) fn candidates(sessions: &[Session]) -> Vec<Candidate> {
    let of = |(index, session): (usize, &Session)| {
        let path = session.path().map(Path::to_path_buf).unwrap_or_default();
        let main = Candidate { id: session.id().map(str::to_owned), index, agent: None, path: path.clone() };
        let agents = session.agents().into_iter().map(|a| Candidate {
            id: Some(a.into()),
            index,
            agent: Some(a.into()),
            path: path.clone(),
        });
        std::iter::once(main).chain(agents).collect::<Vec<_>>()
    };
    sessions.iter().enumerate().flat_map(of).collect()
}

/// The logs that lie directly in a directory.
pub(crate) fn logs_in(directory: &Path) -> Result<Vec<Candidate>, Failure> {
    let name = directory.display().to_string();
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(|e| Failure::unreadable(&name, &e))? {
        let path = entry.map_err(|e| Failure::unreadable(&name, &e))?.path();
        let file = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        if let Some(stem) = file.strip_suffix(SUFFIX).filter(|s| !s.starts_with('.')) {
            let agent = stem.split_once(".agent-").map(|(_, agent)| agent.to_owned());
            paths.push(Candidate { id: Some(agent.clone().unwrap_or_else(|| stem.into())), index: 0, agent, path });
        }
    }
    paths.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(paths)
}

/// The one that is meant: by the beginning of its id, or because there is no other.
pub(crate) fn choose(name: &str, mut all: Vec<Candidate>, wanted: Option<&str>) -> Result<Candidate, Failure> {
    let mains = all.iter().filter(|c| c.agent.is_none()).count();
    let matches = |c: &Candidate| match (wanted, &c.id) {
        (None, _) => c.agent.is_none() || mains == 0,
        (Some(wanted), Some(id)) => id.starts_with(wanted),
        // The records tell it.
        (Some(_), None) => false,
    };
    let mut fitting: Vec<usize> = (0..all.len()).filter(|i| matches(&all[*i])).collect();
    let exact: Vec<usize> = fitting.iter().copied().filter(|i| all[*i].id.as_deref() == wanted).collect();
    if wanted.is_some() && exact.len() == 1 {
        fitting = exact;
    }
    match &fitting[..] {
        [one] => Ok(all.swap_remove(*one)),
        [] => {
            let what = wanted.map_or_else(String::new, |w| format!(" whose id begins with {w}"));
            Err(Failure::new(
                Exit::NothingMatched,
                format!("{name} holds no session{what}:\n{}", list(&all.iter().collect::<Vec<_>>())),
            ))
        }
        several => {
            let several: Vec<&Candidate> = several.iter().map(|i| &all[*i]).collect();
            let n = count(several.len() as u64, "session", "sessions");
            let which = wanted.map_or_else(String::new, |w| format!(" whose id begins with {w}"));
            let hint = match several.iter().find_map(|c| c.id.as_deref()) {
                Some(id) if wanted != Some(id) => {
                    // As short as it is clear, for people who type it.
                    let fits = |start: &str| {
                        all.iter().filter(|c| c.id.as_deref().is_some_and(|i| i.starts_with(start))).count() == 1
                    };
                    let starts = id.char_indices().skip(8).map(|(at, _)| &id[..at]);
                    let start = starts.into_iter().find(|start| fits(start)).unwrap_or(id);
                    format!("say which one with --session, for example --session {start}")
                }
                _ => "give the path of its file instead".into(),
            };
            Err(Failure::new(Exit::Usage, format!("{name} holds {n}{which}:\n{}", list(&several))).help(hint))
        }
    }
}

/// Sessions as a list, the one that was written to last first.
fn list(candidates: &[&Candidate]) -> String {
    let mut rows: Vec<(Option<std::time::SystemTime>, String)> = candidates
        .iter()
        .map(|c| {
            let modified = fs::metadata(&c.path).and_then(|m| m.modified()).ok();
            let when = modified.and_then(|m| jiff::Timestamp::try_from(m).ok());
            let when = when.map_or_else(|| "-".into(), |t| t.strftime("%Y-%m-%d %H:%M UTC").to_string());
            let id = c.id.as_deref().unwrap_or("(id unknown)");
            let what = if c.agent.is_some() { "subagent of " } else { "" };
            (modified, format!("  {}  {when}  {what}{}", clean_line(id), clean_line(&c.path.to_string_lossy())))
        })
        .collect();
    rows.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let more = rows.len().saturating_sub(LISTED);
    let mut lines: Vec<String> = rows.into_iter().take(LISTED).map(|(_, row)| row).collect();
    if more > 0 {
        lines.push(format!("  … and {more} more"));
    }
    lines.join("\n")
}

/// The session, or the subagent of one, that is meant. Where no file is named like it, it may stand inside of a file.
pub(crate) fn choose_session(name: &str, sessions: &[Session], wanted: Option<&str>) -> Result<Candidate, Failure> {
    match (choose(name, candidates(sessions), wanted), sessions) {
        (Err(failure), [only]) if failure.exit == Exit::NothingMatched => choose(name, inside(only)?, wanted),
        (chosen, _) => chosen,
    }
}

/// What the records of a session tell of its id and its subagents, which may have no files of their own.
fn inside(session: &Session) -> Result<Vec<Candidate>, Failure> {
    let mut options = vendors::Options::default();
    options.sources = false;
    let report = session.import(&mut Stream::nowhere(), &options).map_err(|e| import_failure(&e))?;
    let path = session.path().map(Path::to_path_buf).unwrap_or_default();
    let candidate = |log: vendors::LogReport| {
        let agent = log.parent.is_some().then(|| log.session.clone());
        Candidate { id: Some(log.session), index: 0, agent, path: path.clone() }
    };
    Ok(report.logs.into_iter().map(candidate).collect())
}
