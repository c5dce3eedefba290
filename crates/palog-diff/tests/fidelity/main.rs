//! Every genuine session, written for every client and read back from what was written alone: what is lost is declared, and
//! what is declared is lost.

mod matrix;
mod moves;

use std::path::{Path, PathBuf};

use palog_import::Vendor;

/// Where the genuine sessions lie.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance-fixtures/sources")
}

/// The genuine stores of a vendor: each has the final sessions of one run.
fn stores(vendor: Vendor) -> Vec<PathBuf> {
    let (folder, store) = match vendor {
        Vendor::ClaudeCode => ("claude-code", "config"),
        Vendor::Codex => ("codex", "home"),
        other => panic!("no genuine sessions of {other:?}"),
    };
    let runs = std::fs::read_dir(fixtures().join(folder)).expect("the fixtures");
    let mut stores: Vec<PathBuf> = runs.map(|run| run.expect("an entry").path().join(store)).collect();
    stores.retain(|store| store.is_dir());
    stores.sort();
    assert!(stores.len() >= 25, "{folder}: {}", stores.len());
    stores
}
