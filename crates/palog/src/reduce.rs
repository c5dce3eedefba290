//! The reducer: from events to the state of the agent (spec 04).
