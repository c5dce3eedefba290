//! `palog conform`

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use palog::envelope::SPEC;
use palog_conformance::{Case, Level, Role, run as run_case};

use crate::args::{Cases, Conform, Format};
use crate::exit::{Exit, Failure};
use crate::output::conform as output;
use crate::output::conform::{Implementation, LevelScore, Report, RoleScore, RuleScore, Score};
use crate::reference::Reference;
use crate::render;
use crate::terminal::Terminal;

/// The set of cases that this version knows.
const SET: &str = "v1";

/// Runs or lists cases.
pub(crate) fn run(terminal: &mut Terminal, args: &Conform) -> Result<Exit, Failure> {
    match args {
        Conform::Run(wanted) => test(terminal, wanted),
        Conform::List(wanted) => list(terminal, wanted),
    }
}

fn test(terminal: &mut Terminal, wanted: &Cases) -> Result<Exit, Failure> {
    let cases = find(wanted)?;
    let results: Vec<(Case, Vec<String>)> = cases
        .into_iter()
        .map(|case| {
            let failures = run_case(&case, &Reference).failures;
            (case, failures)
        })
        .collect();
    let report = report(results);
    let failed = report.cases.iter().any(|case| !case.passed);
    match wanted.format {
        Format::Json => terminal.json(&report)?,
        Format::Human => {
            let style = terminal.out_style;
            render::conform::report(&mut terminal.out, style, &report)?;
        }
    }
    Ok(if failed { Exit::Negative } else { Exit::Ok })
}

fn list(terminal: &mut Terminal, wanted: &Cases) -> Result<Exit, Failure> {
    let cases = output::Cases { cases: find(wanted)?.into_iter().map(case).collect() };
    match wanted.format {
        Format::Json => terminal.json(&cases)?,
        Format::Human => {
            let style = terminal.out_style;
            render::conform::list(&mut terminal.out, style, &cases)?;
        }
    }
    Ok(Exit::Ok)
}

/// The cases that are wanted, by id.
fn find(wanted: &Cases) -> Result<Vec<Case>, Failure> {
    let directory = &wanted.directory;
    let name = directory.display().to_string();
    let place = directory.canonicalize().map_err(|e| {
        Failure::unreadable(&name, &e)
            .help("run it where the cases are, or name their directory: palog conform run DIR")
    })?;
    let Some((fixtures, below)) = set(&place) else {
        return Err(Failure::new(
            Exit::NothingMatched,
            format!("{name} is no directory of cases: it is not within one called {SET}"),
        ));
    };
    let mut cases = Case::all(&fixtures)
        .map_err(|why| Failure::new(Exit::Unreadable, format!("a case cannot be loaded: {why}")))?;
    cases.retain(|case| {
        Path::new(&case.id).starts_with(&below)
            && wanted.level.is_none_or(|level| case.level <= level)
            && wanted.role.is_none_or(|role| case.role == role)
            && wanted.filter.as_ref().is_none_or(|glob| like(glob.as_bytes(), case.id.as_bytes()))
    });
    if cases.is_empty() {
        let failure = Failure::new(Exit::NothingMatched, format!("{name} holds no such case"));
        return Err(failure.help("palog conform list names those there are"));
    }
    Ok(cases)
}

/// Where the set lies that a directory is, holds or lies in; and where the directory is in it.
fn set(place: &Path) -> Option<(PathBuf, PathBuf)> {
    if place.join(SET).is_dir() {
        return Some((place.into(), PathBuf::new()));
    }
    let root = place.ancestors().find(|p| p.file_name().is_some_and(|name| name == SET))?;
    Some((root.parent()?.into(), place.strip_prefix(root).ok()?.into()))
}

/// Whether a text is like a pattern in which `*` stands for any bytes and `?` for one.
fn like(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where the last star stands, and how far it reaches so far.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, reach)) => {
                    star = Some((at, reach + 1));
                    (p, t) = (at + 1, reach + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

fn case(case: Case) -> output::Case {
    output::Case { id: case.id, title: case.title, role: case.role.word(), level: case.level.word(), rules: case.rules }
}

/// Counts what passed, by role, level and rule.
fn report(results: Vec<(Case, Vec<String>)>) -> Report {
    let mut roles: BTreeMap<Role, BTreeMap<Level, Score>> = BTreeMap::new();
    let mut rules: BTreeMap<String, Score> = BTreeMap::new();
    for (case, failures) in &results {
        roles.entry(case.role).or_default().entry(case.level).or_default().count(failures.is_empty());
        for rule in case.rules.iter().collect::<BTreeSet<_>>() {
            rules.entry(rule.clone()).or_default().count(failures.is_empty());
        }
    }
    let roles = roles.into_iter().map(|(role, levels)| RoleScore {
        role: role.word(),
        level: levels.keys().max().map_or("", |level| level.word()),
        score: levels
            .values()
            .fold(Score::default(), |sum, one| Score { passed: sum.passed + one.passed, total: sum.total + one.total }),
        levels: levels.into_iter().map(|(level, score)| LevelScore { level: level.word(), score }).collect(),
    });
    Report {
        implementation: Implementation { name: "palog", version: env!("CARGO_PKG_VERSION"), spec: SPEC },
        roles: roles.collect(),
        rules: rules.into_iter().map(|(rule, score)| RuleScore { rule, score }).collect(),
        cases: results
            .into_iter()
            .map(|(one, failures)| output::Result { case: case(one), passed: failures.is_empty(), failures })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text) in
            [("*", ""), ("a*c", "abbc"), ("*/faults/*", "import/faults/01"), ("a?c", "abc"), ("**b", "aab"), ("", "")]
        {
            assert!(like(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("a", ""), ("a*c", "abcd"), ("?", "ab"), ("*/x", "x")] {
            assert!(!like(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
    }

    #[test]
    fn failures_show_by_role_level_and_rule() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance-fixtures");
        let all = Case::all(&fixtures).expect("the cases");
        let of = |level| all.iter().find(|case| case.level == level).expect("a case").clone();
        let (mut one, mut two, mut three) = (of(Level::L0), of(Level::L3), of(Level::L3));
        one.rules = vec!["R-BYT-003".into()];
        two.rules = vec!["R-REC-004".into(), "R-REC-004".into()];
        (three.role, three.rules) = (Role::Reducer, vec!["R-REC-004".into()]);
        let report = report(vec![(one, Vec::new()), (two, vec!["no".into()]), (three, Vec::new())]);
        let roles: Vec<_> = report.roles.iter().map(|r| (r.role, r.level, r.score.passed, r.score.total)).collect();
        assert_eq!(roles, [("Importer", "L3", 1, 2), ("Reducer", "L3", 1, 1)]);
        let levels: Vec<_> = report.roles[0].levels.iter().map(|l| (l.level, l.score.passed, l.score.total)).collect();
        assert_eq!(levels, [("L0", 1, 1), ("L3", 0, 1)]);
        let rules: Vec<_> = report.rules.iter().map(|r| (r.rule.as_str(), r.score.passed, r.score.total)).collect();
        assert_eq!(rules, [("R-BYT-003", 1, 1), ("R-REC-004", 1, 2)]);
    }
}
