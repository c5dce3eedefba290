//! Validation: everything that is wrong with a log (spec 01 to 04).
