//! Recovery: what may happen next, and why (spec 05).
