//! JSON Schemas (2020-12) of everything that this crate writes as JSON, made from its types (spec 07, "Schemas").
//!
//! They are committed as `schemas/v1/*.schema.json`, with those of what the command line adds; a test compares them with
//! the types.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::envelope::{Event, MAJOR};
use crate::project::{Context, chat, openai};
use crate::recover::Environment;
use crate::reduce::SnapshotOf;
use crate::state::State;

/// Every schema with the name of its file.
///
/// Unknown members are allowed everywhere, and so are events of unknown types: a minor version may add both.
#[must_use]
pub fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("event.schema.json", event()),
        ("context.schema.json", written::<Context>()),
        ("context-openai-responses.schema.json", written::<openai::Context>()),
        ("context-openai-chat.schema.json", written::<chat::Context>()),
        ("state.schema.json", written::<State>()),
        ("snapshot.schema.json", written::<SnapshotOf<'_>>()),
        ("environment.schema.json", written::<Environment>()),
    ]
}

/// The schema of a document that is only written.
#[must_use]
pub fn written<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    tidy(generator.into_root_schema_for::<T>().to_value())
}

/// The same of a document that holds events: those of `definition`, by their members `type` and `data`.
#[must_use]
pub fn written_with_events<T: JsonSchema>(definition: &str) -> Value {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let payloads = payloads(&mut generator);
    let mut schema = tidy(generator.into_root_schema_for::<T>().to_value());
    if let Some(Value::Object(event)) = schema.pointer_mut(&format!("/$defs/{definition}")) {
        event.insert("allOf".into(), payloads.into());
    }
    schema
}

/// The schema of one line of a log: the envelope, and the payload that its type asks for.
fn event() -> Value {
    let mut generator = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let payloads = payloads(&mut generator);
    let mut schema = tidy(generator.into_root_schema_for::<Event<'static>>().to_value());
    let Value::Object(root) = &mut schema else { return schema };
    if let Some(Value::Object(members)) = root.get_mut("properties") {
        narrow(members, "palog", json!({"const": MAJOR}));
        narrow(members, "id", json!({"minLength": 1, "maxLength": 128}));
        let core = r"([a-wyz0-9_][a-z0-9_]*|x[a-z0-9_]+)\.[a-z0-9_]+";
        let vendor = r"x(\.[A-Za-z0-9-]+){2,}/.+";
        narrow(members, "type", json!({"pattern": format!("^({core}|{vendor})$")}));
        narrow(members, "prev", json!({"pattern": "^[0-9a-f]{64}$"}));
        members.insert(
            "time".into(),
            json!({
                "description": "When it happened; `null` = the source had no time.",
                "anyOf": [{"$ref": "#/$defs/Time"}, {"type": "null"}]
            }),
        );
    }
    root.insert("allOf".into(), payloads.into());
    schema
}

/// For each type of this version: if the event is of this type, its payload has this form.
fn payloads(generator: &mut SchemaGenerator) -> Vec<Value> {
    let payloads = crate::events::payload_schemas(generator);
    let rule = |(name, form): (&str, schemars::Schema)| {
        json!({
            "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
            "then": {"properties": {"data": form.to_value()}}
        })
    };
    payloads.into_iter().map(rule).collect()
}

/// Adds `keywords` to the schema of a member.
fn narrow(members: &mut Map<String, Value>, member: &str, keywords: Value) {
    if let (Some(Value::Object(schema)), Value::Object(keywords)) = (members.get_mut(member), keywords) {
        schema.extend(keywords);
    }
}

/// Makes of what the Rust types say what the wire says: an optional member is absent and never `null` (spec 02), a choice
/// by member names allows one of them, and descriptions are plain text.
fn tidy(mut schema: Value) -> Value {
    match &mut schema {
        Value::Array(items) => items.iter_mut().for_each(|item| *item = tidy(item.take())),
        Value::Object(map) => {
            map.values_mut().for_each(|value| *value = tidy(value.take()));
            let required = map.get("required").cloned().unwrap_or_default();
            let is_required = |name: &str| required.as_array().is_some_and(|r| r.iter().any(|n| n == name));
            if let Some(Value::Object(members)) = map.get_mut("properties") {
                let optional = members.iter_mut().filter(|(name, _)| !is_required(name));
                optional.for_each(|(_, member)| without_null(member));
            }
            let is_record = |choice: &Value| choice.get("properties").is_some();
            if map.get("anyOf").and_then(Value::as_array).is_some_and(|choices| choices.iter().all(is_record)) {
                let choices = map.remove("anyOf").unwrap_or_default();
                map.insert("oneOf".into(), choices);
            }
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = text.replace('\n', " ").replace("[`", "`").replace("`]", "`");
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    schema
}

/// Takes `null` out of what a member can be.
fn without_null(member: &mut Value) {
    let Value::Object(map) = member else { return };
    map.retain(|keyword, value| keyword != "default" || !value.is_null());
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|t| t != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            map.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
        choices.retain(|c| *c != json!({"type": "null"}));
        if let [Value::Object(only)] = &choices[..] {
            let only = only.clone();
            map.remove("anyOf");
            map.extend(only);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::path::Path;

    use super::*;
    use crate::events::Data;
    use crate::project::{At, context};

    /// A payload of each type, and a change that makes it malformed.
    const SAMPLES: &[(&str, &str, [&str; 2])] = &[
        (
            "log.opened",
            r#"{"spec":"1.0-draft","session":"s","agent":{"name":"claude-code","version":"2.1.197"},"owner":"o","records":["action.proposed","lease"],"derived":{"mapping":"claude-code/1"},"parent":{"log":"p","mode":"fork","workspace":"copy"},"env":{"os":"linux"}}"#,
            [r#""mode":"fork""#, r#""mode":"sideways""#],
        ),
        ("log.closed", r#"{"how":"complete","reason":"done"}"#, ["complete", "finished"]),
        (
            "source.opened",
            r#"{"source":"transcript","vendor":"claude-code","version":"2.1.197","locator":"a.jsonl","records":["usage"],"kept":true,"order":"source"}"#,
            [r#""kept":true,"#, ""],
        ),
        ("source.changed", r#"{"source":"transcript","how":"truncated","at":512}"#, [r#"truncated"#, r#"shorter"#]),
        (
            "observation.recorded",
            r#"{"fact":"waiting","subject":"c1","as_of":"2026-11-29T12:08:59.866Z","source":"status/1","detail":{"status":"waiting"}}"#,
            ["59.866Z", "59.866"],
        ),
        (
            "config.set",
            r#"{"model":"m","tools":["Bash"],"skills":[],"directory":"/tmp/proj/demo"}"#,
            [r#""m""#, "null"],
        ),
        ("turn.started", r#"{"turn":"t","message":"m"}"#, [r#""t""#, "null"]),
        ("turn.ended", r#"{"turn":"t","how":"interrupted"}"#, [r#""how":"interrupted""#, r#""reason":"x""#]),
        (
            "input.queued",
            r#"{"input":"i","parts":[{"type":"text","text":"later"}]}"#,
            [r#""text":"later""#, r#""note":"later""#],
        ),
        ("input.ended", r#"{"input":"i","outcome":"taken","message":"m"}"#, ["taken", "eaten"]),
        (
            "message.added",
            r#"{"role":"assistant","response":"r","partial":true,"purpose":"prompt","in_context":true,"parts":[{"type":"text","text":{"$blob":"sha256:00","size":1,"media":"text/plain"}},{"type":"reasoning","text":"Hm.","opaque":{"provider":"anthropic","kind":"signature","value":"c2ln"}},{"type":"image","media":"image/png","data":"iVBO"},{"type":"file","name":"a","data":"b"},{"type":"json","value":null},{"type":"action","action":"c1"},{"type":"result","action":"c0","parts":[{"type":"text","text":{"$omitted":{"reason":"truncated","bytes":9}}}],"is_error":true,"final":true},{"type":"opaque","provider":"anthropic","value":{"type":"x"}}]}"#,
            [r#","final":true"#, ""],
        ),
        ("model.requested", r#"{"model":"m","request":"q"}"#, [r#""m""#, "1"]),
        (
            "model.response",
            r#"{"response":"r","model":"m","usage":{"input":1,"output":2},"cost":{"usd":0.1},"stop":"end_turn"}"#,
            [r#""input":1"#, r#""input":-1"#],
        ),
        (
            "action.proposed",
            r#"{"action":"c1","name":"Bash","args":{"command":"ls"},"args_digest":"sha256:0","kind":"tool","effect":{"class":"write_local"}}"#,
            ["write_local", "write_everywhere"],
        ),
        ("action.started", r#"{"action":"c1","attempt":2}"#, [r#""attempt":2"#, r#""attempt":"2""#]),
        (
            "action.ended",
            r#"{"action":"c1","outcome":"succeeded","applied":"yes","output":[{"type":"text","text":"ok"}],"receipt":{"id":1}}"#,
            [r#","applied":"yes""#, ""],
        ),
        (
            "action.reconciled",
            r#"{"action":"c1","outcome":"not_applied","basis":"human","next_check":"2026-11-29T12:08:59Z"}"#,
            ["2026-11-29", "2026-13-29"],
        ),
        (
            "approval.requested",
            r#"{"approval":"a1","kind":"permission","action":"c1","options":["yes"],"join":"exact"}"#,
            ["permission", "leave"],
        ),
        (
            "approval.ended",
            r#"{"action":"c1","outcome":"granted","scope":"once","args":{"command":"ls -l"}}"#,
            ["once", "twice"],
        ),
        (
            "grant.added",
            r#"{"grant":"g1","names":["Bash"],"class":"write_local","target":"npm test","approval":"a1","task":"t1","policy_revision":"p7","expires":"2026-11-29T12:08:59Z"}"#,
            [r#"write_local"#, r#"write_everywhere"#],
        ),
        ("grant.revoked", r#"{"grant":"g1","reason":"over"}"#, [r#""grant":"g1","#, r#""#]),
        (
            "context.compacted",
            r#"{"trigger":"auto","window":[{"event":"e1"},{"event":"e2","parts":[]},{"message":{"role":"user","parts":[]}}],"tokens_before":9}"#,
            [r#"{"event":"e1"}"#, r#"{"event":"e1","message":{"role":"user","parts":[]}}"#],
        ),
        (
            "message.revised",
            r#"{"message":"e5","parts":[{"type":"text","text":"shorter"}],"removed":false}"#,
            [r#""removed":false"#, r#""removed":"no""#],
        ),
        ("branch.moved", r#"{"to":"root"}"#, [r#""root""#, "null"]),
        (
            "child.spawned",
            r#"{"child":"l","session":"s","action":"c1","kind":"subagent","link":"explicit"}"#,
            ["subagent", "pet"],
        ),
        ("child.ended", r#"{"child":"l","status":"completed","output":"ok"}"#, [r#""child":"l""#, r#""child":7"#]),
        (
            "redaction.applied",
            r#"{"events":["e5"],"blobs":["sha256:0"],"sources":["transcript"],"reason":"on request"}"#,
            [r#"["e5"]"#, r#""e5""#],
        ),
        (
            "note.added",
            r#"{"kind":"source_end","source":"transcript","at":0,"len":10,"digest":"sha256:0","records":1,"terminated":true}"#,
            [r#""at":0"#, r#""at":0.5"#],
        ),
        ("lease.acquired", r#"{"epoch":3,"holder":"w1","ttl":60}"#, [r#""epoch":3"#, r#""epoch":-3"#]),
        ("lease.renewed", r#"{"epoch":3,"holder":"w1","ttl":60}"#, [r#""ttl":60"#, r#""ttl":"60""#]),
        ("lease.released", r#"{"epoch":3,"holder":"w1","reason":"done"}"#, [r#""epoch":3,"#, r#""#]),
        (
            "task.opened",
            r#"{"task":"t1","goal":"Ship it.","acceptance":["tests pass"],"owner":"o","budget":{"usd":5}}"#,
            [r#""goal":"Ship it.","#, r#""#],
        ),
        ("task.closed", r#"{"task":"t1","how":"cancelled","reason":"not needed"}"#, [r#"cancelled"#, r#"dropped"#]),
        (
            "attempt.started",
            r#"{"attempt":"at1","task":"t1","worker":"w1","epoch":3,"plan_revision":2,"from_checkpoint":"c1"}"#,
            [r#""worker":"w1","#, r#""#],
        ),
        ("attempt.ended", r#"{"attempt":"at1","how":"lost","reason":"host gone"}"#, [r#"lost"#, r#"gone"#]),
        (
            "plan.revised",
            r#"{"task":"t1","revision":2,"steps":[{"step":"s1"},{"step":"s2","title":"Deploy.","needs":["s1"]}],"reason":"new facts"}"#,
            [r#""step":"s2""#, r#""name":"s2""#],
        ),
        (
            "step.changed",
            r#"{"task":"t1","step":"s1","status":"done","artifact":"a1","verified":true}"#,
            [r#""done""#, r#""finished""#],
        ),
        (
            "command.issued",
            r#"{"command":"c1","task":"t1","operation":"replan","expected_plan_revision":2,"scope":"rest","issued_by":"u","approval":"ap1","input":"Yes."}"#,
            [r#"replan"#, r#"rethink"#],
        ),
        ("command.ended", r#"{"command":"c1","outcome":"rejected","reason":"stale"}"#, [r#"rejected"#, r#"ignored"#]),
        (
            "checkpoint.created",
            r#"{"checkpoint":"k1","at":7,"task":"t1","attempt":"at1","plan_revision":2,"policy_revision":"p7","manifest_digest":"sha256:0","workspace":"e6","lease":{"epoch":3,"expires":"2026-11-29T12:08:59Z"},"steps":[{"step":"s1","digest":"sha256:0","verified":true}],"pending":{"step":"s2","digest":"sha256:1","idempotency_key":"k","approval":"ap1"},"effects":[{"action":"call_1","state":"succeeded"}],"state_digest":"sha256:2"}"#,
            [r#""succeeded""#, r#""fine""#],
        ),
        ("checkpoint.restored", r#"{"checkpoint":"k1"}"#, [r#""k1""#, r#"null"#]),
        (
            "workspace.recorded",
            r#"{"vcs":"git","revision":"4f2a","dirty":true,"diff":"--- a","digest":"sha256:0","files":[{"path":"a.txt","digest":"sha256:1"},{"path":"b.txt"}]}"#,
            [r#""path":"b.txt""#, r#""name":"b.txt""#],
        ),
        (
            "artifact.recorded",
            r#"{"artifact":"a1","digest":"sha256:0","locator":"dist/app","verified":true,"action":"call_1"}"#,
            [r#""digest":"sha256:0","#, r#""#],
        ),
        (
            "resource.acquired",
            r#"{"resource":"r1","kind":"lock","locator":"deploy/staging","task":"t1"}"#,
            [r#""kind":"lock","#, r#""#],
        ),
        ("resource.released", r#"{"resource":"r1","reason":"done"}"#, [r#""r1""#, r#"1"#]),
    ];

    fn line(seq: usize, kind: &str, data: &str) -> String {
        format!(
            r#"{{"palog":1,"log":"l","seq":{seq},"id":"e{seq}","type":"{kind}","time":null,"actor":{{"kind":"harness"}},"src":[{{"source":"transcript","at":0,"len":9,"how":"exact"}}],"data":{data}}}"#
        )
    }

    fn json(text: &str) -> Value {
        serde_json::from_str(text).expect("JSON")
    }

    fn validator(name: &str) -> jsonschema::Validator {
        let (_, schema) = all().into_iter().find(|(n, _)| *n == name).expect("a schema of that name");
        jsonschema::validator_for(&schema).expect("a schema")
    }

    #[test]
    fn the_committed_schemas_are_those_of_the_types() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/v1");
        for (name, schema) in all() {
            let committed = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
            assert!(
                committed == format!("{schema:#}\n"),
                "schemas/v1/{name} is out of date: cargo run -p palog-cli --features schema -- schema --write schemas/v1"
            );
        }
    }

    #[test]
    fn the_schemas_are_schemas() {
        for (name, schema) in all() {
            assert!(jsonschema::meta::validate(&schema).is_ok(), "{name}");
            assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
        }
    }

    #[test]
    fn every_type_has_a_sample_that_fits_and_a_change_that_does_not() {
        let names: Vec<&str> = SAMPLES.iter().map(|(kind, ..)| *kind).collect();
        assert_eq!(names, Data::NAMES);
        let validator = validator("event.schema.json");
        for (seq, (kind, data, [from, to])) in SAMPLES.iter().enumerate() {
            let good = line(seq, kind, data);
            let errors: Vec<String> = validator.iter_errors(&json(&good)).map(|e| e.to_string()).collect();
            assert!(errors.is_empty() && Data::parse(kind, data).is_ok(), "{good}: {errors:?}");
            let bad = data.replacen(from, to, 1);
            assert_ne!(bad, *data, "{kind}");
            assert!(!validator.is_valid(&json(&line(seq, kind, &bad))), "the schema takes {kind} {bad}");
            assert!(Data::parse(kind, &bad).is_err(), "the reader takes {kind} {bad}");
        }
    }

    #[test]
    fn the_schema_and_the_reader_agree_on_the_envelope() {
        let validator = validator("event.schema.json");
        let base = line(3, "turn.started", r#"{"later":1}"#);
        let with = |from: &str, to: &str| base.replacen(from, to, 1);
        let good = [
            base.clone(),
            with("turn.started", "x.org.example/thing"),
            with("turn.started", "some.day"),
            with(
                r#""time":null"#,
                r#""time":"2026-11-29T12:08:59.866Z","later":true,"recorded":"2026-11-29T12:09:00Z""#,
            ),
        ];
        for line in good {
            assert!(validator.is_valid(&json(&line)) && Event::parse(&line).is_ok(), "{line}");
        }
        let bad = [
            with(r#""time":null,"#, ""),
            with(r#""time":null"#, r#""time":null,"epoch":null"#),
            with(r#""time":null"#, r#""time":"yesterday""#),
            with("harness", "ghost"),
            with(r#""seq":3"#, r#""seq":-1"#),
            with(r#""how":"exact""#, r#""how":"roughly""#),
        ];
        for line in bad {
            assert!(!validator.is_valid(&json(&line)), "the schema takes {line}");
            assert!(Event::parse(&line).is_err(), "the reader takes {line}");
        }
        for line in
            [with(r#""palog":1"#, r#""palog":2"#), with("turn.started", "Started"), with("turn.started", "x.thing")]
        {
            assert!(!validator.is_valid(&json(&line)), "the schema takes {line}");
        }
    }

    /// R-STA-011
    #[test]
    fn a_snapshot_fits_its_schema() {
        let mut reducer = crate::reduce::Reducer::new();
        for (seq, (kind, data, _)) in SAMPLES.iter().enumerate() {
            reducer.apply(&Event::parse(&line(seq, kind, data)).expect("an event"), None);
        }
        let snapshot = json(&reducer.snapshot(crate::cursor::Cursor::of(7, b"{}")));
        let validator = validator("snapshot.schema.json");
        let errors: Vec<String> = validator.iter_errors(&snapshot).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        let mut bad = snapshot;
        bad["reducer"]["state"]["tasks"] = json!(1);
        assert!(!validator.is_valid(&bad));
    }

    #[test]
    fn a_context_fits_its_schema() {
        let log: String =
            SAMPLES.iter().enumerate().map(|(seq, (kind, data, _))| line(seq, kind, data) + "\n").collect();
        let at = At::Seq(SAMPLES.iter().position(|(kind, ..)| *kind == "action.proposed").expect("a place") as u64);
        let context =
            serde_json::to_value(context(Cursor::new(log), at, None).expect("a context")).expect("it serialises");
        let validator = validator("context.schema.json");
        assert!(validator.is_valid(&context), "{context:#}");
        for list in ["messages", "unresolved", "omitted"] {
            assert_ne!(context[list], json!([]), "{list}");
            let mut bad = context.clone();
            bad[list][0] = json!({});
            assert!(!validator.is_valid(&bad), "{list}");
        }
        let mut bad = context;
        bad["messages"][0]["role"] = json!("tool");
        assert!(!validator.is_valid(&bad));
    }
}
