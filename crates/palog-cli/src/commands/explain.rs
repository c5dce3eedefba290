//! `palog explain`

use palog::diagnostic::{Code, Diagnostics};
use palog::rules::{self, RULES, Rule};

use crate::args::{Explain, Format};
use crate::examples::example;
use crate::exit::{Exit, Failure};
use crate::output::explain::{ExplainedCode, ExplainedRule, Explanation};
use crate::render;
use crate::render::diagnostics::Sources;
use crate::render::text::{clean_line, closest};
use crate::terminal::{Style, Terminal};

/// Explains one code or rule, or lists all.
pub(crate) fn run(terminal: &mut Terminal, args: &Explain) -> Result<Exit, Failure> {
    let explanation = match &args.name {
        None => Explanation {
            codes: Code::ALL.iter().map(|code| explain(*code)).collect::<Result<_, _>>()?,
            rules: RULES.iter().map(state).collect(),
        },
        Some(name) => find(name)?,
    };
    let style = terminal.out_style;
    match args.format {
        Format::Json => terminal.json(&explanation)?,
        Format::Human if args.list => render::explain::list(&mut terminal.out, style, &explanation)?,
        Format::Human => render::explain::one(&mut terminal.out, style, &explanation)?,
    }
    Ok(Exit::Ok)
}

/// What a name stands for.
fn find(name: &str) -> Result<Explanation, Failure> {
    // As it stands in a message: warning[framing.torn_tail]
    let bare = name.rsplit('[').next().unwrap_or(name).trim_end_matches([']', ':', ' ']);
    let (code, rule) = (bare.to_ascii_lowercase(), bare.to_ascii_uppercase());
    if let Some(code) = Code::ALL.iter().find(|c| c.as_str() == code) {
        return Ok(Explanation { codes: vec![explain(*code)?], rules: Vec::new() });
    }
    if let Some(rule) = rules::find(&rule) {
        return Ok(Explanation { codes: Vec::new(), rules: vec![state(rule)] });
    }
    let failure = Failure::new(Exit::NothingMatched, format!("there is no code or rule {:?}", clean_line(name)));
    let like = match rule.starts_with("R-") {
        true => closest(&rule, RULES.iter().map(|r| r.id)),
        false => closest(&code, Code::ALL.iter().map(|c| c.as_str())),
    };
    Err(failure.help(match like {
        Some(like) => format!("did you mean {like}? palog explain --list names all"),
        None => "palog explain --list names all".into(),
    }))
}

fn explain(code: Code) -> Result<ExplainedCode, Failure> {
    let mut message = Vec::new();
    let mut one = Diagnostics::default();
    one.push(example(code));
    render::diagnostics::each(&mut message, Style::default(), &one, &Sources::default())?;
    let example = String::from_utf8_lossy(&message).trim_end().to_owned();
    Ok(ExplainedCode { code, meaning: code.meaning(), remedy: code.remedy(), rules: rules::of(code), example })
}

fn state(rule: &Rule) -> ExplainedRule {
    let codes = Code::ALL.iter().copied().filter(|code| rules::of(*code).contains(&rule.id)).collect();
    ExplainedRule { rule: rule.id, text: rule.text, chapter: chapter(rule.id), codes }
}

/// The chapter that a rule stands in: mostly that of its letters (spec 07, "Rules").
fn chapter(rule: &str) -> Option<&'static str> {
    if matches!(rule, "R-STA-005" | "R-STA-001" | "R-ACT-023" | "R-ACT-002" | "R-STA-004") {
        return Some("spec/03-events.md");
    }
    Some(match rule.get(..5)? {
        "R-BYT" => "spec/01-bytes.md",
        "R-ENV" => "spec/02-envelope.md",
        "R-EVT" => "spec/03-events.md",
        "R-ACT" | "R-TRN" | "R-STA" | "R-OWN" | "R-WRK" | "R-FAM" | "R-WLD" => "spec/04-reducer.md",
        "R-REC" => "spec/05-recovery.md",
        "R-CNF" => "spec/07-conformance.md",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_stands_in_its_chapter() {
        for rule in RULES {
            let chapter = chapter(rule.id).unwrap_or_else(|| panic!("{} has no chapter", rule.id));
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(chapter);
            let text = std::fs::read_to_string(path).expect("the chapter");
            assert!(text.contains(&format!("**{}**", rule.id)), "{chapter} does not state {}", rule.id);
        }
    }

    #[test]
    fn a_name_is_taken_as_it_stands_in_a_message() {
        for name in ["framing.torn_tail", "warning[framing.torn_tail]:", "Framing.Torn_Tail"] {
            assert_eq!(find(name).expect("a code").codes[0].code, Code::TornTail);
        }
        assert_eq!(find("r-act-013").expect("a rule").rules[0].rule, "R-ACT-013");
    }
}
