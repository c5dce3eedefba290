//! The rows of one session, and what they are read for (`spec/sources/openclaw.md`, "Rows").

use std::io::Read;

use palog_adapter::sqlite::{Row, Scalar, Store};
use ruzstd::decoding::StreamingDecoder;

use super::StoreSession;
use crate::conversation::prompt_text;
use crate::record::Entry;

/// The longest entry that the client writes, in bytes.
const LONGEST: u64 = 4 << 20;

/// Tables that follow from others of the same database: they are counted, and not kept.
const DERIVED: [&str; 5] = [
    "transcript_event_identities",
    "session_transcript_active_events",
    "session_transcript_index_state",
    "session_transcript_fts_rows",
    "session_transcript_fts_content",
];

/// Words in the names of tables that hold keys, tokens and what lets a device in: they are never copied.
const SECRET: [&str; 12] = [
    "apns",
    "auth_profile",
    "credential",
    "device_",
    "identity_keys",
    "oauth",
    "pairing",
    "push",
    "revision_keys",
    "secret",
    "ssh_fallback",
    "token",
];

/// What becomes of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Kept,
    Derived,
    Secret,
}

/// What becomes of the table of this name.
pub(super) fn use_of(table: &str) -> Use {
    if DERIVED.contains(&table) || table.contains("_fts") || table.starts_with("sqlite_") {
        Use::Derived
    } else if SECRET.iter().any(|word| table.contains(word)) {
        Use::Secret
    } else {
        Use::Kept
    }
}

/// The rows of a table; none where it lacks a column that `rest` names, as an older schema may.
pub(super) fn rows(store: &Store, table: &str, rest: &str, parameters: &[&str]) -> Vec<Row> {
    let mut rows = Vec::new();
    let names = rest.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let mut columns = names.filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()));
    if store.table(table).is_some_and(|known| columns.all(|column| known.has(column))) {
        let _ = store.each(table, rest, parameters, |row| -> Result<(), ()> {
            rows.push(row);
            Ok(())
        });
    }
    rows
}

/// The text of a row's entry, also of one that is compressed.
pub(super) fn entry_text(row: &Row) -> Result<String, String> {
    if let Some(text) = row.text("event_json") {
        return Ok(text.to_owned());
    }
    let Some(Scalar::Blob(bytes)) = row.get("event_zstd") else { return Err("it holds no entry".into()) };
    let mut text = String::new();
    let decoder = StreamingDecoder::new(bytes.as_slice()).map_err(|e| e.to_string())?;
    decoder.take(LONGEST).read_to_string(&mut text).map_err(|e| e.to_string())?;
    let declared = row.integer("event_utf8_bytes");
    if declared.is_some_and(|n| n != text.len() as i64) {
        return Err(format!("it has {} bytes and not {}", text.len(), declared.unwrap_or_default()));
    }
    Ok(text)
}

impl StoreSession {
    /// The first row of a table of the agent's database.
    pub(super) fn first(&self, table: &str, rest: &str, parameters: &[&str]) -> Option<Row> {
        rows(&self.agent.store, table, &format!("{rest} LIMIT 1"), parameters).into_iter().next()
    }

    /// The row of the session's key.
    pub(super) fn node(&self) -> Option<Row> {
        self.first("session_nodes", "WHERE session_key = ? AND current_session_id = ?", &[&self.key, &self.id])
    }

    /// The row of the session itself.
    pub(super) fn window(&self) -> Option<Row> {
        self.first("session_windows", "WHERE session_id = ?", &[&self.id])
    }

    /// The directory and the first prompt.
    pub(super) fn beginning(&self) -> (Option<String>, Option<String>) {
        let (mut directory, mut prompt) = (None, None);
        let order = "WHERE session_id = ? ORDER BY seq LIMIT 50";
        let _ = self.agent.store.each("transcript_events", order, &[&self.id], |row| {
            let text = entry_text(&row).unwrap_or_default();
            let Ok(entry) = serde_json::from_str::<Entry<'_>>(&text) else { return Ok(()) };
            if entry.is_header() {
                directory = entry.cwd.as_ref().map(ToString::to_string);
            }
            prompt = prompt_text(&entry);
            if prompt.is_some() { Err(()) } else { Ok(()) }
        });
        (directory, prompt)
    }

    /// When the newest entry was written, in milliseconds.
    pub(super) fn last_activity(&self) -> Option<i64> {
        let newest = self.first("transcript_events", "WHERE session_id = ? ORDER BY seq DESC", &[&self.id]);
        newest.and_then(|row| row.integer("created_at"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_left_out_and_indexes_are_derived() {
        for table in ["device_auth_tokens", "auth_profile_store", "secret_store_entries", "mcp_oauth_stores"] {
            assert_eq!(use_of(table), Use::Secret, "{table}");
        }
        for table in ["transcript_event_identities", "session_transcript_fts", "memory_fts_data"] {
            assert_eq!(use_of(table), Use::Derived, "{table}");
        }
        for table in ["transcript_events", "operator_approvals", "cron_jobs", "session_nodes"] {
            assert_eq!(use_of(table), Use::Kept, "{table}");
        }
    }
}
