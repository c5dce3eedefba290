//! Made-up sessions, what they become, and what that adds up to.

mod results;
mod session;
mod unreadable;
