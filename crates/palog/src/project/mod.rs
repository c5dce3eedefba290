//! Projections: views of a log that are made anew from its events (spec 04, "Projections").
