//! The reference implementation, behind the same interface as any other.

use std::fs::File;
use std::path::Path;

use palog::blob::BlobStore;
use palog::diagnostic::{Diagnostics, Severity};
use palog::envelope::Time;
use palog::project::{At, context};
use palog::reader::{Item, Reader, ResumeError};
use palog::recover::{Context, Environment, recover};
use palog::reduce::{reduce, reduce_with_parent};
use palog::state::Observation;
use palog::validate::{Options, validate};
use palog_conformance::{Implementation, Import, Quality, World};
use serde_json::{Value, json};

use super::import::imported;

/// Importer, reducer, recovery and projection of this workspace.
pub(crate) struct Reference;

impl Implementation for Reference {
    fn import(&self, source: &Path, into: &Path) -> Result<Import, String> {
        let report = imported(source, into)?;
        let outcome = quality(&report.diagnostics);
        Ok(Import { report: value(&report)?, outcome })
    }

    fn read(&self, log: &Path, after: Option<&str>) -> Result<Value, String> {
        let file = File::open(log).map_err(|e| e.to_string())?;
        let mut diagnostics = Diagnostics::default();
        let mut reader = match after.map(|cursor| cursor.parse().map_err(|_| format!("{cursor:?} is no cursor"))) {
            None => Reader::new(file),
            Some(cursor) => match Reader::after(file, &cursor?) {
                Ok(reader) => reader,
                Err(ResumeError::Diverged(found)) => {
                    diagnostics.push(*found);
                    return Ok(json!({"events": [], "diagnostics": value(&diagnostics)?}));
                }
                Err(other) => return Err(other.to_string()),
            },
        };
        let mut events = Vec::new();
        while let Some(item) = reader.next().map_err(|e| e.to_string())? {
            match item {
                Item::Event(event, _) => events.push(json!({
                    "seq": event.seq.to_string(), "id": event.id, "type": event.kind, "data": event.data.get()
                })),
                Item::Fault(found) => diagnostics.push(found),
            }
        }
        Ok(json!({"events": events, "diagnostics": value(&diagnostics)?}))
    }

    fn validate(&self, log: &Path) -> Result<Value, String> {
        let file = File::open(log).map_err(|e| e.to_string())?;
        let blobs = BlobStore::beside(log);
        let found = validate(file, &Options::new().with_blobs(&blobs)).map_err(|e| e.to_string())?;
        Ok(json!({"diagnostics": value(&found.diagnostics)?}))
    }

    fn state(&self, log: &Path) -> Result<Value, String> {
        let file = File::open(log).map_err(|e| e.to_string())?;
        let (state, diagnostics) = reduce(file).map_err(|e| e.to_string())?;
        Ok(json!({"state": value(&state)?, "diagnostics": value(&diagnostics)?}))
    }

    fn recovery(&self, log: &Path, world: &World) -> Result<Value, String> {
        let open = |path: &Path| File::open(path).map_err(|e| e.to_string());
        let (state, parent) = match &world.parent {
            None => (reduce(open(log)?).map_err(|e| e.to_string())?.0, None),
            Some(parent) => {
                let state = reduce_with_parent(open(parent)?, open(log)?).map_err(|e| e.to_string())?.0;
                (state, Some(reduce(open(parent)?).map_err(|e| e.to_string())?.0))
            }
        };
        let seen: Vec<Observation> = world.observations.iter().map(read).collect::<Result<_, _>>()?;
        let environment: Option<Environment> = world.environment.as_ref().map(read).transpose()?;
        let mut context = Context::new().seen(&seen);
        if let Some(now) = &world.now {
            context = context.at(Time::parse(now.as_str()).ok_or_else(|| format!("{now:?} is no time"))?);
        }
        if let Some(environment) = &environment {
            context = context.within(environment);
        }
        if let Some(parent) = &parent {
            context = context.child_of(parent);
        }
        value(&recover(&state, &context))
    }

    fn context(&self, log: &Path, before: Option<&str>) -> Result<Value, String> {
        let file = File::open(log).map_err(|e| e.to_string())?;
        let at = before.map_or(At::Head, At::Before);
        let blobs = BlobStore::beside(log);
        value(&context(file, at, Some(&blobs)).map_err(|e| e.to_string())?)
    }
}

fn read<T: serde::de::DeserializeOwned>(from: &Value) -> Result<T, String> {
    serde_json::from_value(from.clone()).map_err(|e| format!("{from}: {e}"))
}

fn value(of: &impl serde::Serialize) -> Result<Value, String> {
    palog_conformance::json::value(&serde_json::to_string(of).map_err(|e| e.to_string())?).map_err(|e| e.to_string())
}

fn quality(diagnostics: &Diagnostics) -> Quality {
    if diagnostics.count(Severity::Error) > 0 {
        Quality::Partial
    } else if diagnostics.count(Severity::Void) + diagnostics.count(Severity::Warning) > 0 {
        Quality::Diagnosed
    } else {
        Quality::Clean
    }
}
