//! Made-up sessions, what they become, and what that adds up to.

mod files;
mod ids;
mod limits;
mod results;
mod session;
mod unreadable;
