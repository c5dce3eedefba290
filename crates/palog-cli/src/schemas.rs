//! The JSON Schemas of all documents, as they are committed (spec 07, "Schemas").

/// A document that has a schema.
#[derive(Debug)]
pub(crate) struct Document {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it is.
    pub(crate) about: &'static str,
    /// Its schema.
    pub(crate) schema: &'static str,
}

macro_rules! documents {
    ($($name:literal: $about:literal,)*) => {
        /// Every document.
        pub(crate) const ALL: &[Document] = &[$(Document {
            name: $name,
            about: $about,
            schema: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/v1/", $name, ".schema.json")),
        }),*];
    };
}

documents! {
    "event": "one line of a log",
    "state": "what a log adds up to: palog state",
    "snapshot": "a state from which palog state goes on: palog state --snapshot",
    "recovery": "what may happen next: palog recover",
    "environment": "what a worker would have: palog recover --env",
    "context": "what the model sees, as messages: palog context --for anthropic",
    "context-openai-responses": "what the model sees, as input: palog context --for openai-responses",
    "context-openai-chat": "what the model sees, as messages of a chat: palog context --for openai-chat",
    "transcript": "a session as people read it: palog show",
    "loss": "what a session lost in another form: palog export",
    "migration": "how a session was moved: palog migrate",
    "diff": "what two sessions say differently: palog diff",
    "report": "what an import wrote, read and found: palog import",
    "export": "what an export to tables wrote and found: palog export",
    "validation": "what is wrong with logs: palog validate",
    "sessions": "the sessions on a machine: palog ls",
    "explanation": "what codes and rules mean: palog explain",
    "conformance": "how cases went: palog conform run",
    "cases": "the cases there are: palog conform list",
}

/// Every schema with the name of its document, made from the types.
#[cfg(any(test, feature = "schema"))]
pub(crate) fn made() -> Vec<(String, serde_json::Value)> {
    use crate::output::{conform, explain, export, ls, migrate, recover, show, validate};
    use palog::schema::{written, written_with_events};

    let of_library = palog::schema::all()
        .into_iter()
        .map(|(file, schema)| (file.trim_end_matches(".schema.json").to_owned(), schema));
    let own = [
        ("recovery", written::<recover::Answer<'_>>()),
        ("transcript", written_with_events::<show::Transcript<'_>>("Entry")),
        ("loss", written::<palog_adapter::export::LossReport>()),
        ("migration", written::<migrate::Migration>()),
        ("diff", written::<palog_diff::Comparison>()),
        ("report", written::<palog_adapter::Report>()),
        ("export", written::<export::Exported>()),
        ("validation", written::<validate::Validation>()),
        ("sessions", written::<ls::Sessions>()),
        ("explanation", written::<explain::Explanation>()),
        ("conformance", written::<conform::Report>()),
        ("cases", written::<conform::Cases>()),
    ];
    of_library.chain(own.map(|(name, schema)| (name.to_owned(), schema))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_committed_schemas_are_those_of_the_types() {
        let made = made();
        for (name, schema) in &made {
            let committed =
                ALL.iter().find(|document| document.name == name).unwrap_or_else(|| panic!("{name} is not listed"));
            assert!(
                committed.schema == format!("{schema:#}\n"),
                "schemas/v1/{name}.schema.json is out of date: cargo run -p palog-cli --features schema -- schema --write schemas/v1"
            );
        }
        let made: BTreeSet<String> = made.into_iter().map(|(name, _)| format!("{name}.schema.json")).collect();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/v1");
        let files = std::fs::read_dir(folder)
            .expect("the schemas")
            .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned());
        assert_eq!(files.collect::<BTreeSet<_>>(), made);
    }

    #[test]
    fn the_schemas_are_schemas() {
        for document in ALL {
            let schema: serde_json::Value = serde_json::from_str(document.schema).expect("JSON");
            assert!(jsonschema::meta::validate(&schema).is_ok(), "{}", document.name);
        }
    }
}
