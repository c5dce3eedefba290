//! Made-up sessions, what they become, and what that adds up to.

mod ids;
mod results;
mod session;
mod unreadable;
