//! The specification and this crate say the same: its examples are read, validated and reduced, its tables are compared with
//! the schemas, the codes and the rules.
//!
//! `PALOG_UPDATE=1 cargo test -p palog --test spec_examples` writes the generated parts anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use palog::diagnostic::{Code, Severity};
use palog::envelope::Event;
use palog::events::{Data, Kind};
use palog::recover::{Context, recover};
use palog::reduce::reduce;
use palog::rules::RULES;
use palog::validate::{Options, validate};
use palog::writer::args_digest;
use serde_json::{Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn updating() -> bool {
    std::env::var_os("PALOG_UPDATE").is_some()
}

/// All chapters, by their names below `spec`.
fn chapters() -> BTreeMap<String, String> {
    let folder = |name: &str| {
        let entries = fs::read_dir(root().join("spec").join(name)).expect("a folder");
        entries.map(|e| e.expect("an entry").path()).filter(|p| p.extension().is_some_and(|e| e == "md"))
    };
    let name = |path: &Path| path.strip_prefix(root().join("spec")).expect("below it").display().to_string();
    folder("").chain(folder("sources")).map(|path| (name(&path), read(&path))).collect()
}

/// A piece of a chapter: blocks are fenced, all other pieces stand between blank lines.
enum Piece {
    Block { info: String, text: String },
    Text(String),
}

fn pieces(chapter: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut lines = chapter.lines();
    let mut text = String::new();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            found.push(Piece::Block { info: info.to_owned(), text: block.join("\n") });
        } else if line.trim().is_empty() {
            found.push(Piece::Text(std::mem::take(&mut text)));
        } else {
            text += line;
            text += "\n";
        }
    }
    found.push(Piece::Text(text));
    found.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
    found
}

/// All blocks: chapter, info string, text.
fn blocks() -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for (chapter, text) in chapters() {
        for piece in pieces(&text) {
            if let Piece::Block { info, text } = piece {
                found.push((chapter.clone(), info, text));
            }
        }
    }
    found
}

fn schema() -> Value {
    serde_json::from_str(&read(&root().join("schemas/v1/event.schema.json"))).expect("a schema")
}

/// Checks one event, and gives back its type.
fn check_event(line: &str, validator: &jsonschema::Validator, at: &str) -> String {
    let event = Event::parse(line).unwrap_or_else(|e| panic!("{at}: {e}"));
    assert!(matches!(event.kind(), Kind::Core(_) | Kind::Vendor(_)), "{at}: {}", event.kind);
    let data = event.data().unwrap_or_else(|e| panic!("{at}: {e}"));
    if let Data::ActionProposed(proposed) = &data {
        let palog::json::Value::Inline(args) = &proposed.args else { panic!("{at}: arguments that can be seen") };
        assert_eq!(proposed.args_digest.as_str(), args_digest(args), "{at}");
    }
    let value: Value = serde_json::from_str(line).expect("JSON");
    let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{at}: {errors:?}");
    event.kind.to_string()
}

#[test]
fn examples_are_what_they_say() {
    let validator = jsonschema::validator_for(&schema()).expect("a schema");
    let mut seen = BTreeSet::new();
    for (chapter, info, text) in blocks() {
        let mut words = info.split(' ');
        let (language, marks): (&str, Vec<&str>) = (words.next().unwrap_or_default(), words.collect());
        match (language, marks.as_slice()) {
            ("abnf", []) => {}
            ("json", ["palog"]) => {
                seen.insert(check_event(&text, &validator, &chapter));
            }
            ("json", [mark]) if mark.starts_with("palog-data=") => {
                let kind = &mark["palog-data=".len()..];
                let line = format!(
                    r#"{{"palog":1,"log":"l","seq":1,"id":"e","type":"{kind}","time":null,"actor":{{"kind":"harness"}},"data":{text}}}"#
                );
                seen.insert(check_event(&line, &validator, &format!("{chapter}, {kind}")));
            }
            ("jsonl", ["palog-log", verdict]) => {
                text.lines().for_each(|line| drop(check_event(line, &validator, &chapter)));
                let log = text + "\n";
                let found = validate(log.as_bytes(), &Options::new()).expect("memory can be read").diagnostics;
                assert!(found.is_empty(), "{chapter}: {:?}", found.groups());
                let (state, found) = reduce(log.as_bytes()).expect("memory can be read");
                assert_eq!(
                    found.count(Severity::Error) + found.count(Severity::Warning),
                    0,
                    "{chapter}: {:?}",
                    found.groups()
                );
                let recovery = recover(&state, &Context::new());
                assert_eq!(format!("verdict={}", recovery.verdict), *verdict, "{chapter}");
            }
            _ => panic!("{chapter}: a block {info:?} that nothing checks"),
        }
    }
    for name in Data::NAMES {
        assert!(seen.contains(*name), "no example of {name}");
    }
}

/// What the overview says of its example cut one event before the start.
#[test]
fn the_example_of_the_overview_can_be_run_before_its_start() {
    let (.., log) = blocks().into_iter().find(|(_, info, _)| info.starts_with("jsonl")).expect("an example");
    let cut: Vec<&str> = log.lines().take(9).collect();
    let (state, _) = reduce((cut.join("\n") + "\n").as_bytes()).expect("memory can be read");
    assert_eq!(state.actions[0].state.word(), "approved");
    let recovery = recover(&state, &Context::new());
    assert_eq!(recovery.obligations.iter().map(|o| o.decision.word()).collect::<Vec<_>>(), ["run"]);
}

/// A table: the cells of its rows, header first.
fn table(text: &str) -> Option<Vec<Vec<String>>> {
    let row = |line: &str| -> Option<Vec<String>> {
        let line = line.replace("| |", "|  |");
        let inner = line.strip_prefix("| ")?.strip_suffix(" |")?;
        Some(inner.split(" | ").map(|cell| cell.trim().to_owned()).collect())
    };
    let mut rows = text.lines().filter(|line| !line.starts_with("|---")).map(row);
    let header = rows.next()??;
    rows.try_fold(vec![header], |mut all, row| {
        all.push(row?);
        Some(all)
    })
}

/// Member tables by what they describe: a type under its heading, or an object under its name in italics.
fn member_tables() -> BTreeMap<String, Vec<Vec<String>>> {
    let mut found = BTreeMap::new();
    for (_, chapter) in chapters() {
        let mut subject = None;
        for piece in pieces(&chapter) {
            let Piece::Text(text) = piece else { continue };
            let line = text.trim();
            if let Some(heading) = line.strip_prefix('#') {
                subject = Some(heading.trim_start_matches('#').trim().to_owned());
            } else if let Some(name) =
                line.strip_prefix('*').and_then(|l| l.strip_suffix('*')).filter(|n| !n.contains(['*', ' ']))
            {
                subject = Some(name.to_owned());
            } else if let (Some(mut rows), Some(name)) = (table(&text), &subject)
                && rows[0] == ["member", "type", "presence", "meaning"]
            {
                rows.remove(0);
                assert!(found.insert(name.clone(), rows).is_none(), "two member tables of {name}");
            }
        }
    }
    found
}

/// How the tables write the type that a schema describes, and the name of the table of an object.
fn type_of(schema: &Value, node: &Value) -> String {
    if let Some(items) = node.get("items") {
        return format!("list of {}", type_of(schema, items));
    }
    if let Some(name) = node["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/")) {
        let target = &schema["$defs"][name];
        let words: Option<Vec<&str>> =
            target["oneOf"].as_array().and_then(|all| all.iter().map(|w| w["const"].as_str()).collect());
        return match (name, words) {
            ("Recorded", _) => "recorded".into(),
            ("WindowItem", _) => "window item".into(),
            (_, Some(words)) => words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(" · "),
            (_, None) => name.to_lowercase(),
        };
    }
    if let Some(choices) = node["anyOf"].as_array() {
        let types: Vec<String> = choices.iter().map(|c| type_of(schema, c)).collect();
        return types.join(" or ");
    }
    match node["type"].as_str() {
        None => "any".into(),
        Some("null") => "`null`".into(),
        Some(other) => other.to_owned(),
    }
}

/// Compares a member table with the object that a schema describes.
fn compare(name: &str, rows: &[Vec<String>], object: &Value, schema: &Value, wrong: &mut Vec<String>) {
    let empty = serde_json::Map::new();
    let members = object["properties"].as_object().unwrap_or(&empty);
    let mut wanted: BTreeMap<String, (String, &str)> = BTreeMap::new();
    for (member, node) in members.iter().filter(|(m, n)| *m != "type" || n.get("const").is_none()) {
        let required = object["required"].as_array().is_some_and(|r| r.iter().any(|r| r == member.as_str()));
        wanted.insert(format!("`{member}`"), (type_of(schema, node), if required { "required" } else { "optional" }));
    }
    let sorted = |words: &str| {
        let mut words: Vec<&str> = words.split(" · ").collect();
        words.sort_unstable();
        words.join(" · ")
    };
    for row in rows {
        let [member, kind, presence, meaning] = row.as_slice() else {
            wrong.push(format!("{name}: a row of {} cells: {row:?}", row.len()));
            continue;
        };
        match wanted.remove(member) {
            Some((want, there)) if sorted(&want) == sorted(kind) && there == presence && !meaning.is_empty() => {}
            other => wrong.push(format!("{name}.{member}: the table says {kind}, {presence}; the schema {other:?}")),
        }
    }
    wrong.extend(wanted.keys().map(|member| format!("{name}.{member} is not in the table")));
}

#[test]
fn member_tables_are_those_of_the_schemas() {
    let (schema, mut tables, mut wrong) = (schema(), member_tables(), Vec::new());
    let mut take = |name: &str, object: &Value, wrong: &mut Vec<String>| match tables.remove(name) {
        Some(rows) => compare(name, &rows, object, &schema, wrong),
        None => wrong.push(format!("no member table of {name}")),
    };
    take("1. Members", &schema, &mut wrong);
    for rule in schema["allOf"].as_array().expect("payloads") {
        let name = rule["if"]["properties"]["type"]["const"].as_str().expect("a type");
        let form = rule["then"]["properties"]["data"]["$ref"]
            .as_str()
            .and_then(|r| r.strip_prefix("#/$defs/"))
            .expect("a form");
        take(name, &schema["$defs"][form], &mut wrong);
    }
    let objects = [
        "Actor",
        "Copy",
        "Src",
        "Agent",
        "Derived",
        "Parent",
        "Usage",
        "Effect",
        "Step",
        "Term",
        "Completed",
        "Intent",
        "Standing",
        "Tracked",
    ];
    for object in objects {
        take(&object.to_lowercase(), &schema["$defs"][object], &mut wrong);
    }
    // The only table of something that is in no schema: what a kept record is kept in.
    let kept = tables.remove("12. Vendor types").map(|rows| rows.concat());
    assert_eq!(
        kept.as_deref().map(|cells| &cells[..3]),
        Some(&["`record`".to_owned(), "value".into(), "required".into()][..])
    );
    wrong.extend(tables.keys().map(|name| format!("a member table of {name}, which no schema has")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_of_parts_is_that_of_the_schema() {
    let (schema, mut wrong) = (schema(), Vec::new());
    let chapter = &chapters()["03-events.md"];
    let all = pieces(chapter);
    let rows = all.iter().find_map(|piece| match piece {
        Piece::Text(text) if text.starts_with("| part |") => table(text),
        _ => None,
    });
    let mut parts: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    let mut part = String::new();
    for mut row in rows.expect("a table of parts").into_iter().skip(1) {
        let first = row.remove(0);
        if !first.is_empty() {
            part = first;
        }
        parts.entry(part.clone()).or_default().push(row);
    }
    for form in schema["$defs"]["Part"]["oneOf"].as_array().expect("parts") {
        let name = format!("`{}`", form["properties"]["type"]["const"].as_str().expect("a type"));
        let mut form = form.clone();
        // A part that is an object of its own has that object's members.
        if let Some(object) = form["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/")).map(str::to_owned) {
            form = schema["$defs"][&object].clone();
        }
        match parts.remove(&name) {
            Some(rows) => compare(&name, &rows, &form, &schema, &mut wrong),
            None => wrong.push(format!("{name} is not in the table")),
        }
    }
    wrong.extend(parts.keys().map(|name| format!("{name} is no part")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_types_of_the_specification_are_those_of_the_code() {
    let chapter = &chapters()["03-events.md"];
    let rows = pieces(chapter).into_iter().find_map(|piece| match piece {
        Piece::Text(text) if text.starts_with("| family | types |") => table(&text),
        _ => None,
    });
    let rows: Vec<Vec<String>> = rows.expect("a table of types").into_iter().skip(1).collect();
    let types = |marked: bool| -> BTreeSet<String> {
        let rows = rows.iter().filter(|row| !marked || row[0].ends_with(", experimental"));
        let names = rows.flat_map(|row| row[1].split(" · ").map(|name| name.trim_matches('`').to_owned()));
        names.filter(|name| !name.starts_with("x.")).collect()
    };
    let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(types(false), all(Data::NAMES));
    assert_eq!(types(true), all(Data::EXPERIMENTAL));
}

#[test]
fn the_list_of_recorded_facts_is_that_of_the_schema() {
    let schema = schema();
    let wanted: Vec<String> = schema["$defs"]["Recorded"]["oneOf"]
        .as_array()
        .expect("words")
        .iter()
        .map(|w| format!("`{}`", w["const"].as_str().expect("a word")))
        .collect();
    assert_eq!(first_column("03-events.md", "recorded"), wanted);
}

/// The first column of the table of `chapter` whose header begins with `header`.
fn first_column(chapter: &str, header: &str) -> Vec<String> {
    let start = format!("| {header} |");
    let found = pieces(&chapters()[chapter]).into_iter().find_map(|piece| match piece {
        Piece::Text(text) if text.starts_with(&start) => table(&text),
        _ => None,
    });
    let rows = found.unwrap_or_else(|| panic!("{chapter} has no table {header}"));
    rows.into_iter().skip(1).map(|row| row[0].clone()).collect()
}

/// Replaces what stands between the marks of a generated part, or compares it.
fn generated(file: &str, mark: &str, wanted: &str) {
    let path = root().join("spec").join(file);
    let text = read(&path);
    let (begin, end) = (format!("<!-- generated: {mark} -->\n"), "<!-- end -->\n");
    let (before, rest) = text.split_once(&begin).expect("a place for it");
    let (shown, after) = rest.split_once(end).expect("the place has an end");
    if updating() {
        fs::write(&path, format!("{before}{begin}{wanted}{end}{after}")).expect("it is written");
    } else {
        assert!(shown == wanted, "{file}: {mark} are out of date; PALOG_UPDATE=1 writes them anew");
    }
}

#[test]
fn the_table_of_codes_is_that_of_the_code() {
    let mut text = String::from("| code | means | what to do |\n|---|---|---|\n");
    for code in Code::ALL {
        writeln!(text, "| `{code}` | {} | {} |", code.meaning(), code.remedy()).expect("a string takes all");
    }
    generated("07-conformance.md", "codes", &text);
    let families: BTreeSet<&str> =
        Code::ALL.iter().filter_map(|code| code.as_str().split_once('.')).map(|(family, _)| family).collect();
    let chapter = &chapters()["07-conformance.md"];
    for family in families {
        assert!(chapter.contains(&format!("`{family}`")), "the family {family} belongs to no phase");
    }
}

/// Where each rule is stated, with its text.
fn rules() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (chapter, text) in chapters() {
        for piece in pieces(&text) {
            let Piece::Text(text) = piece else { continue };
            let text = text.replace('\n', " ");
            if let Some((id, rule)) = text.strip_prefix("**R-").and_then(|rest| rest.split_once("** ")) {
                let earlier = found.insert(format!("R-{id}"), rule.trim().to_owned());
                assert!(earlier.is_none(), "{chapter}: R-{id} is stated twice");
            }
        }
    }
    found
}

/// All rule ids in a text.
fn ids(text: &str) -> BTreeSet<String> {
    let is_id = |id: &str| {
        let (chapter, number) = (id.get(2..5).unwrap_or_default(), id.get(6..9).unwrap_or_default());
        let fits = chapter.bytes().all(|b| b.is_ascii_uppercase()) && number.bytes().all(|b| b.is_ascii_digit());
        fits && chapter.len() == 3 && number.len() == 3 && id.as_bytes()[5] == b'-'
    };
    text.match_indices("R-")
        .filter_map(|(at, _)| text.get(at..at + 9))
        .filter(|id| is_id(id))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_rule_is_stated_once_and_every_must_has_one() {
    let stated = rules();
    for (chapter, text) in chapters() {
        for piece in pieces(&text) {
            let Piece::Text(text) = piece else { continue };
            for id in ids(&text) {
                assert!(stated.contains_key(&id), "{chapter}: {id} is stated nowhere");
            }
            let bound = text.contains("MUST") && !text.contains("BCP 14");
            assert!(!bound || !ids(&text).is_empty(), "{chapter}: without a rule: {text}");
        }
    }
}

#[test]
fn the_rules_of_the_code_are_those_of_the_specification() {
    let stated = rules();
    for rule in RULES {
        let text = stated.get(rule.id).unwrap_or_else(|| panic!("{} is stated nowhere", rule.id));
        assert!(text.starts_with(rule.text), "{}: the code says {:?}, the specification {text:?}", rule.id, rule.text);
    }
}

/// A code that nothing can find is a promise that nobody keeps.
#[test]
fn every_code_is_found_by_something() {
    let named = sources();
    // The tables of all codes find nothing.
    let tables = ["pub const RULES", "fn example(", "json.syntax"];
    let finders: Vec<&String> = named.iter().filter(|text| !tables.iter().any(|table| text.contains(table))).collect();
    for code in Code::ALL {
        let name = format!("Code::{code:?}");
        let is_whole = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric());
        let found = finders.iter().any(|text| text.split(&*name).skip(1).any(is_whole));
        assert!(found, "nothing finds {code} ({name})");
    }
}

/// All source files of the workspace's crates.
fn sources() -> Vec<String> {
    fn below(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                below(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("rules.rs") {
                found.push(read(&path));
            }
        }
    }
    let mut found = Vec::new();
    for crates in ["crates", "adapters"] {
        for entry in fs::read_dir(root().join(crates)).expect("a folder") {
            below(&entry.expect("an entry").path().join("src"), &mut found);
        }
    }
    found
}

/// What the cases say of the rules that they test.
fn case_rules() -> Vec<String> {
    fn gather(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).expect("the cases") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                gather(&path, found);
            } else if path.file_name().is_some_and(|name| name == "case.toml") {
                let case: toml::Table = toml::from_str(&read(&path)).expect("a case");
                let rules = case["rules"].as_array().expect("the rules of a case");
                found.extend(rules.iter().map(|rule| rule.as_str().expect("a rule's id").to_owned()));
            }
        }
    }
    let mut found = Vec::new();
    gather(&root().join("conformance-fixtures/v1"), &mut found);
    found
}

/// The tests of the workspace's crates: what stands in folders and files of that name, and behind `cfg(test)`.
fn tests() -> Vec<String> {
    fn below(folder: &Path, all: bool, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            let named = path.file_stem().is_some_and(|name| name == "tests");
            if path.is_dir() {
                below(&path, all || named, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = read(&path);
                let start = if all || named { Some(0) } else { text.find("#[cfg(test)]") };
                found.extend(start.map(|start| text[start..].to_owned()));
            }
        }
    }
    let mut found = Vec::new();
    for crates in ["crates", "adapters"] {
        for entry in fs::read_dir(root().join(crates)).expect("a folder") {
            let path = entry.expect("an entry").path();
            below(&path.join("src"), false, &mut found);
            below(&path.join("tests"), true, &mut found);
        }
    }
    found
}

/// Rules that bind what neither a log nor a program shows: nothing can test them from outside.
const OUT_OF_SIGHT: [&str; 3] = [
    // What is a secret.
    "R-ENV-021",
    // What was not written.
    "R-EVT-003",
    // When something acted.
    "R-EVT-006",
];

/// A rule that nothing tests is a wish.
#[test]
fn every_rule_is_named_by_a_case_or_a_test() {
    let (cases, tests) = (case_rules(), tests());
    let this = read(&root().join("crates/palog/tests/spec_examples.rs"));
    let named = |id: &str| {
        cases.iter().any(|case| case == id)
            || tests.iter().any(|test| *test != this && test.contains(id))
            || id == "R-CNF-002"
    };
    let wishes: Vec<String> = rules().into_keys().filter(|id| !named(id)).collect();
    assert_eq!(wishes, OUT_OF_SIGHT, "rules that no case and no test names");
}

/// `reserved.toml`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Reserved {
    types: BTreeSet<String>,
    planned_types: Vec<String>,
    codes: BTreeSet<String>,
    rules: BTreeSet<String>,
    rules_without_code: BTreeSet<String>,
    #[serde(default)]
    rules_without_case: BTreeSet<String>,
    members: BTreeMap<String, BTreeSet<String>>,
}

fn list(name: &str, items: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut text = format!("{name} = [");
    let mut width = usize::MAX;
    for item in items {
        let item = format!("\"{}\",", item.as_ref());
        if width.saturating_add(item.len()) > 120 {
            text += "\n    ";
            width = 4;
        } else {
            text.push(' ');
        }
        width += item.len() + 1;
        text += &item;
    }
    text + "\n]\n"
}

/// R-CNF-002
#[test]
fn reserved_names_hold_all_names() {
    let path = root().join("spec/reserved.toml");
    let mut reserved: Reserved = toml::from_str(&read(&path)).expect("a list of names");
    let before = read(&path);
    reserved.types.extend(Data::NAMES.iter().map(|n| (*n).to_owned()));
    reserved.codes.extend(Code::ALL.iter().map(|c| c.as_str().to_owned()));
    let stated = rules();
    reserved.rules.extend(stated.keys().cloned());
    let sources = sources();
    let unnamed = |texts: &[String]| {
        let named = |id: &&String| texts.iter().any(|text| text.contains(id.as_str()));
        stated.keys().filter(|id| !named(id)).cloned().collect()
    };
    (reserved.rules_without_code, reserved.rules_without_case) = (unnamed(&sources), unnamed(&case_rules()));
    let schema = schema();
    let mut objects = vec![("envelope".to_owned(), &schema)];
    for (name, object) in schema["$defs"].as_object().expect("definitions") {
        objects.push((name.clone(), object));
        let parts = object["oneOf"].as_array().into_iter().flatten();
        objects.extend(parts.map(|part| (name.clone(), part)));
    }
    for (name, object) in objects {
        let members = object["properties"].as_object().into_iter().flatten().map(|(member, _)| member.clone());
        let members: Vec<String> = members.collect();
        if !members.is_empty() {
            reserved.members.entry(name).or_default().extend(members);
        }
    }
    for name in &reserved.planned_types {
        assert!(matches!(Kind::parse(name), Kind::Unknown(_)), "{name} is not to come any more");
    }
    let mut text = String::from(
        "# Names that are never used for anything else again. None is ever taken out.\n\
         # PALOG_UPDATE=1 cargo test -p palog --test spec_examples adds those that are new.\n\n\
         # Types of events.\n",
    );
    text += &list("types", &reserved.types);
    text += "\n# Types that are to come. Kept by hand.\n";
    text += &list("planned_types", &reserved.planned_types);
    text += "\n# Diagnostic codes.\n";
    text += &list("codes", &reserved.codes);
    text += "\n# Rules.\n";
    text += &list("rules", &reserved.rules);
    text += "\n# Rules that no code of the reference implementation names yet. This list shrinks.\n";
    text += &list("rules_without_code", &reserved.rules_without_code);
    text += "\n# Rules that no case tests yet. This list shrinks.\n";
    text += &list("rules_without_case", &reserved.rules_without_case);
    text += "\n# Members, by the definition of the schema that has them.\n[members]\n";
    reserved.members.iter().for_each(|(name, members)| text += &list(name, members));
    if updating() {
        fs::write(&path, text).expect("it is written");
    } else {
        assert!(text == before, "spec/reserved.toml lacks names; PALOG_UPDATE=1 adds them");
    }
}

/// Word lists of states and recoveries against the tables that explain them.
#[cfg(feature = "schema")]
#[test]
fn word_tables_are_those_of_the_types() {
    fn words<T: schemars::JsonSchema>() -> Vec<String> {
        let schema = schemars::schema_for!(T).to_value();
        let all = schema["oneOf"].as_array().expect("words").clone();
        all.iter().map(|w| format!("`{}`", w["const"].as_str().expect("a word"))).collect()
    }
    let tables = [
        ("04-reducer.md", "severity", words::<Severity>()),
        ("04-reducer.md", "doubt", words::<palog::state::Doubt>()),
        ("05-recovery.md", "verdict", words::<palog::recover::Verdict>()),
        ("05-recovery.md", "decision", words::<palog::recover::Decision>()),
        ("05-recovery.md", "evidence", words::<palog::recover::EvidenceKind>()),
    ];
    for (chapter, header, wanted) in tables {
        assert_eq!(first_column(chapter, header), wanted, "{chapter}, {header}");
    }
    let chapter = &chapters()["04-reducer.md"];
    for word in words::<palog::state::ActionState>().iter().chain(&words::<palog::state::ApprovalStatus>()) {
        assert!(chapter.contains(word.as_str()), "04 does not have {word}");
    }
    let state = schemars::schema_for!(palog::state::State).to_value();
    let named: BTreeSet<String> = first_column("04-reducer.md", "member")
        .iter()
        .flat_map(|cell| cell.split(", ").map(|m| m.trim_matches('`').to_owned()))
        .collect();
    let members: BTreeSet<String> = state["properties"].as_object().expect("members").keys().cloned().collect();
    assert_eq!(named, members, "members of the state");
}

#[test]
fn examples_show_how_events_are_checked() {
    let validator = jsonschema::validator_for(&schema()).expect("a schema");
    let wrong = json!({"palog": 1, "log": "l", "seq": 0, "id": "e", "type": "log.opened", "time": null, "actor": {"kind": "user"}, "data": {}});
    assert!(!validator.is_valid(&wrong), "a schema that takes anything would prove nothing");
}
