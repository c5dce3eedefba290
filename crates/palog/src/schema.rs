//! JSON Schemas (2020-12) of the wire types, generated from the Rust types (spec 07).
