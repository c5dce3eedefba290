//! The state that events reduce to (spec 04).
