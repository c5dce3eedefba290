//! Writes the committed JSON Schemas, `schemas/v1/*.schema.json`, anew from the types.

use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/v1");
    fs::create_dir_all(&folder)?;
    for (name, schema) in palog::schema::all() {
        fs::write(folder.join(name), format!("{schema:#}\n"))?;
    }
    Ok(())
}
