//! Compares what comes out of a log with what a case expects.

use serde_json::Value;

use crate::case::Finding;
use crate::json;

/// Compares a document: whole, or only those of its members that are stated. `null` stands for a member that is absent.
pub(crate) fn document(what: &str, found: &Value, expected: &Value, partial: bool, failures: &mut Vec<String>) {
    match (found, expected) {
        (Value::Object(own), Value::Object(stated)) => {
            for (name, expected) in stated {
                document(&format!("{what}.{name}"), json::at(found, &pointer(name)), expected, partial, failures);
            }
            for (name, value) in own.iter().filter(|(name, _)| !partial && !stated.contains_key(*name)) {
                failures.push(format!("{what}.{name}: {value} is not expected"));
            }
        }
        (Value::Array(own), Value::Array(stated)) => {
            if own.len() != stated.len() {
                failures.push(format!("{what}: expected {} items, found {}: {found}", stated.len(), own.len()));
            }
            for (n, (found, expected)) in own.iter().zip(stated).enumerate() {
                document(&format!("{what}[{n}]"), found, expected, partial, failures);
            }
        }
        _ if found == expected => {}
        (Value::Null, _) => failures.push(format!("{what}: expected {expected}, found nothing")),
        _ => failures.push(format!("{what}: expected {expected}, found {found}")),
    }
}

fn pointer(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Compares diagnostics: each that is expected is there as often and where it is expected, and no other that is worse than
/// information.
pub(crate) fn codes(found: &[Value], expected: &[Finding], failures: &mut Vec<String>) {
    let word = |value: &Value, member: &str| value[member].as_str().unwrap_or_default().to_owned();
    let is = |own: &Value, finding: &Finding| {
        (word(own, "code"), word(own, "severity")) == (finding.code.clone(), finding.severity.clone())
    };
    for finding in expected {
        let Finding { code, severity, phase: _, count, line, offset } = finding;
        let Some(own) = found.iter().find(|own| is(own, finding)) else {
            failures.push(format!("codes: no {severity} {code}"));
            continue;
        };
        let times = json::count(own, "/count").unwrap_or(0);
        if times != *count {
            failures.push(format!("codes: {severity} {code}: expected {count} times, found {times}"));
        }
        for (member, place) in [("line", line), ("offset", offset)] {
            let first = json::count(own, &format!("/at/0/{member}"));
            if place.is_some() && first != *place {
                failures.push(format!("codes: {code}: expected at {member} {place:?}, found at {first:?}"));
            }
        }
    }
    for own in found.iter().filter(|own| own["severity"] != "info" && !expected.iter().any(|finding| is(own, finding)))
    {
        failures.push(format!("codes: {} {} is not expected: {}", word(own, "severity"), word(own, "code"), own["at"]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn differences(found: &Value, expected: &Value, partial: bool) -> usize {
        let mut failures = Vec::new();
        document("it", found, expected, partial, &mut failures);
        failures.len()
    }

    #[test]
    fn a_part_compares_what_it_states_and_a_whole_compares_everything() {
        let found = json!({"a": "1", "b": {"c": true, "d": "x"}, "e": [{"f": "1", "g": "2"}, "h"]});
        assert_eq!(differences(&found, &found, false), 0);
        let part = json!({"b": {"c": true}, "e": [{"g": "2"}, "h"], "absent": null});
        assert_eq!((differences(&found, &part, true), differences(&found, &part, false)), (0, 3));
        for wrong in [
            json!({"a": "2"}),
            json!({"a": null}),
            json!({"b": {"c": false}}),
            json!({"e": ["h"]}),
            json!({"x": "1"}),
            json!([]),
        ] {
            assert!(differences(&found, &wrong, true) > 0, "{wrong}");
        }
    }

    #[test]
    fn a_finding_has_its_code_its_severity_its_count_and_its_place() {
        let found = [
            json!({"code": "order.gap", "severity": "error", "count": 2, "at": [{"line": 3, "offset": 90}]}),
            json!({"code": "time.backwards", "severity": "info", "count": 1, "at": []}),
        ];
        let expected = |text: &str| -> Vec<Finding> { serde_json::from_str(text).expect("findings") };
        let wrong = |text: &str| {
            let mut failures = Vec::new();
            codes(&found, &expected(text), &mut failures);
            failures.len()
        };
        let one = |more: &str| format!(r#"[{{"code": "order.gap", "severity": "error", "phase": "order"{more}}}]"#);
        assert_eq!(wrong(&one(r#", "count": 2, "line": 3, "offset": 90"#)), 0);
        assert_eq!(wrong(&one(r#", "count": 2"#)), 0);
        assert_eq!(wrong(&one("")), 1);
        assert_eq!(wrong(&one(r#", "count": 2, "line": 4"#)), 1);
        assert_eq!(wrong("[]"), 1);
        assert_eq!(wrong(r#"[{"code": "order.gap", "severity": "void", "phase": "order", "count": 2}]"#), 2);
    }
}
