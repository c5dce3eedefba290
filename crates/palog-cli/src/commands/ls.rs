//! `palog ls`

use std::collections::HashMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use palog::recover::{Context, Verdict, recover};
use palog::reduce::reduce;
use palog_import::{self as vendors, Vendor};

use crate::args::{Format, Ls};
use crate::exit::{Exit, Failure};
use crate::input;
use crate::output::ls::{Session, Sessions};
use crate::progress::Progress;
use crate::render;
use crate::terminal::Terminal;

/// Lists sessions, the newest first.
pub(crate) fn run(terminal: &mut Terminal, args: &Ls) -> Result<Exit, Failure> {
    let named = args.paths.iter().map(|path| (path.clone(), None)).collect();
    let paths: Vec<(PathBuf, Option<Vendor>)> = if args.paths.is_empty() { roots()? } else { named };
    let mut list = Sessions { sessions: Vec::new(), unrecognised: Vec::new() };
    for (path, vendor) in &paths {
        let name = path.display().to_string();
        let found = vendors::list(path, *vendor).map_err(|e| Failure::unreadable(&name, &e))?;
        list.unrecognised.extend(found.unrecognised.iter().map(|path| path.to_string_lossy().into_owned()));
        list.sessions.extend(found.sessions.into_iter().map(|listed| Session { listed, verdict: None, failure: None }));
    }
    if list.sessions.is_empty() {
        let names: Vec<String> = paths.iter().map(|(path, _)| path.display().to_string()).collect();
        return Err(Failure::new(Exit::NothingMatched, format!("{} holds no session that is known", names.join(", "))));
    }
    let key = |session: &Session| session.listed.last_activity.clone();
    let place = |session: &Session| (session.listed.path.clone(), session.listed.id.clone());
    list.sessions.sort_by(|a, b| key(b).cmp(&key(a)).then_with(|| place(a).cmp(&place(b))));
    list.sessions.dedup_by(|a, b| place(a) == place(b));
    if args.recover {
        judge(&paths, &mut list.sessions)?;
    }
    match args.format {
        Format::Json => terminal.json(&list)?,
        Format::Human => {
            let style = terminal.out_style;
            render::ls::render(&mut terminal.out, style, &list.sessions)?;
            terminal.flush()?;
            if let Some(first) = list.unrecognised.first() {
                let more = list.unrecognised.len() - 1;
                let others = if more > 0 { format!(" and {more} more") } else { String::new() };
                terminal.help(&format!("{first}{others}: named like a session, and none by the content"));
            }
        }
    }
    let failed = list.sessions.iter().any(|session| session.failure.is_some());
    Ok(if failed { Exit::Negative } else { Exit::Ok })
}

/// Where the clients keep their files: those places that are there.
fn roots() -> Result<Vec<(PathBuf, Option<Vendor>)>, Failure> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = set("HOME").or_else(|| set("USERPROFILE"));
    let below = |name: &str| home.as_ref().map(|home| home.join(name));
    let place = |variable, folder, vendor| Some((set(variable).or_else(|| below(folder))?, Some(vendor)));
    let data = set("XDG_DATA_HOME").or_else(|| below(".local/share"));
    let places = [
        place("CLAUDE_CONFIG_DIR", ".claude", Vendor::ClaudeCode),
        place("CODEX_HOME", ".codex", Vendor::Codex),
        data.map(|data| (data.join("opencode"), Some(Vendor::OpenCode))),
        place("HERMES_HOME", ".hermes", Vendor::Hermes),
        place("OPENCLAW_STATE_DIR", ".openclaw", Vendor::OpenClaw),
        place("PI_CODING_AGENT_DIR", ".pi/agent", Vendor::Pi),
    ];
    let roots: Vec<_> = places.into_iter().flatten().collect();
    if roots.is_empty() {
        return Err(Failure::new(Exit::Usage, "nothing tells where the home directory is").help("palog ls PATH"));
    }
    let there: Vec<_> = roots.iter().filter(|(root, _)| root.is_dir()).cloned().collect();
    if there.is_empty() {
        let names: Vec<String> = roots.iter().map(|(root, _)| root.display().to_string()).collect();
        let failure = Failure::new(Exit::NothingMatched, format!("{} is not there", names.join(" or ")));
        let help = "sessions lie in $CLAUDE_CONFIG_DIR or ~/.claude, $CODEX_HOME or ~/.codex, $XDG_DATA_HOME/opencode or ~/.local/share/opencode, $HERMES_HOME or ~/.hermes, $OPENCLAW_STATE_DIR or ~/.openclaw, and $PI_CODING_AGENT_DIR or ~/.pi/agent: palog ls PATH looks elsewhere";
        return Err(failure.help(help));
    }
    Ok(there)
}

/// Adds the verdicts. Each session is imported as a whole, without what lies beside it: that bears on no verdict.
fn judge(paths: &[(PathBuf, Option<Vendor>)], sessions: &mut [Session]) -> Result<(), Failure> {
    let mut found: HashMap<PathBuf, Vec<vendors::Session>> = HashMap::new();
    for (path, vendor) in paths {
        let discovery =
            vendors::discover(path, *vendor).map_err(|e| Failure::unreadable(&path.display().to_string(), &e))?;
        for native in discovery.sessions {
            let Some(path) = native.path().map(Path::to_path_buf) else { continue };
            found.entry(path).or_default().push(native);
        }
    }
    let progress = Progress::new(sessions.iter().map(|s| s.listed.bytes).sum());
    for session in sessions {
        // A database holds several sessions.
        let Some(here) = found.get_mut(&session.listed.path).filter(|here| !here.is_empty()) else { continue };
        let own = here.iter().position(|native| native.id() == session.listed.id.as_deref());
        let native = here.swap_remove(own.unwrap_or(0));
        match verdict(native.alone(), &session.listed.path, &progress) {
            Ok(verdict) => session.verdict = Some(verdict),
            Err(failure) => session.failure = failure.message,
        }
    }
    progress.end();
    Ok(())
}

fn verdict(session: vendors::Session, path: &Path, progress: &Progress) -> Result<Verdict, Failure> {
    // An empty transcript is one that nothing was written to yet.
    if fs::metadata(path).is_ok_and(|meta| meta.len() == 0) {
        return Ok(Verdict::Idle);
    }
    let (log, _) = input::scratch_log(&session, None, progress)?;
    let (state, _) = reduce(&log.file).map_err(|e| Failure::unreadable(&path.display().to_string(), &e))?;
    Ok(recover(&state, &Context::new()).verdict)
}
