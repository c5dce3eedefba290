//! Where a session of a database comes from, and which part of its key's time is its own.

use palog::events::{Parent, ParentMode};
use palog::json::Str;
use palog_adapter::ids;
use palog_adapter::sqlite::Row;

use super::StoreSession;
use super::rows::rows;
use crate::FORMAT;

/// Where a session comes from, as its own rows tell it.
pub(super) fn parent(session: &StoreSession) -> Option<Parent<'static>> {
    let of = |from: &str, mode| Parent {
        log: ids::log(&FORMAT, from).into(),
        session: Some(from.to_owned().into()),
        at: None,
        event: None,
        action: None,
        mode,
        workspace: None,
    };
    let (window, node) = (session.window(), session.node());
    let text = |row: &Option<Row>, column: &str| row.as_ref().and_then(|r| r.text(column)).map(str::to_owned);
    if let Some(from) = text(&node, "fork_source_session_id").filter(|from| *from != session.id) {
        let at = text(&node, "fork_source_entry_id").map(Str::from);
        return Some(Parent { at, ..of(&from, ParentMode::Fork) });
    }
    if let Some(by) = text(&window, "spawned_by").or_else(|| text(&node, "spawned_by")) {
        let by = session.first("session_nodes", "WHERE session_key = ?", &[&by])?;
        return Some(of(by.text("current_session_id")?, ParentMode::Spawn));
    }
    let previous = text(&window, "previous_session_id")?;
    match text(&window, "reason").as_deref() {
        Some("fork" | "rewind") => Some(of(&previous, ParentMode::Fork)),
        Some("recovery" | "compaction") => Some(of(&previous, ParentMode::Continue)),
        // After a reset, and so on, nothing of the one before is left.
        _ => None,
    }
}

/// Whether another agent started the session.
pub(super) fn is_spawned(session: &StoreSession) -> bool {
    session.node().is_some_and(|node| node.text("created_via") == Some("spawn"))
}

/// When the session began and the next one of its key did; nothing before the first and behind the last.
pub(super) fn bounds(session: &StoreSession) -> (Option<i64>, Option<i64>) {
    let of_key = "WHERE session_key = ? ORDER BY created_at, session_id";
    let windows = rows(&session.agent.store, "session_windows", of_key, &[&session.key]);
    let windows: Vec<_> =
        windows.iter().map(|row| (row.text("session_id").map(str::to_owned), row.integer("created_at"))).collect();
    let own = windows.iter().position(|(id, _)| id.as_deref() == Some(&session.id));
    let since = own.filter(|at| *at > 0).and_then(|at| windows[at].1);
    (since, own.and_then(|at| windows.get(at + 1)).and_then(|(_, next)| *next))
}
