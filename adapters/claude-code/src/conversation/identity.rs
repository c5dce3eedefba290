//! Which records are the same: ids come again, with the same words or with others (R-ENV-017).

use super::*;

/// A record that came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// What it said.
    pub(super) digest: u64,
    /// Its first event.
    pub(super) event: EventId,
}

impl Conversation {
    /// The first record with this id, if it came.
    pub(super) fn seen(&self, uuid: &str) -> Option<Seen> {
        match self.graph.find(uuid) {
            Some(node) => Some(Seen { digest: self.graph.digest(node), event: self.graph.event(node) }),
            None => self.others.get(&key(uuid)).copied(),
        }
    }

    /// The first event of the record with this id, also of one that has not come.
    pub(super) fn event_of(&self, uuid: &str) -> EventId {
        self.seen(uuid).map_or_else(|| self.out.ids.event(Native::Uuid(uuid), 0), |seen| seen.event)
    }

    /// Remembers the record at hand, if it has an id and is not in the graph.
    pub(super) fn remember(&mut self, here: &Here<'_>, digest: u64) {
        let Some(uuid) = here.record.uuid.as_deref().filter(|uuid| self.graph.find(uuid).is_none()) else { return };
        let event = self.out.ids.event(here.native, 0);
        self.others.entry(key(uuid)).or_insert(Seen { digest, event });
    }
}

/// A digest of what a record says, without where and when it was written down: two records of one id are the same if they have
/// the same. Token counts are left out, since they grow while a response comes. Of a record that is only kept, `text` is what it
/// says.
pub(super) fn digest(record: &Record<'_>, text: &str) -> u64 {
    let Record {
        r#type,
        subtype,
        uuid: _,
        parent_uuid: _,
        is_sidechain: _,
        agent_id: _,
        session_id: _,
        timestamp: _,
        cwd: _,
        version: _,
        git_branch: _,
        message,
        source_tool_assistant_uuid: _,
        tool_use_result,
        tool_denial_kind,
        is_meta,
        is_compact_summary,
        is_api_error_message,
        prompt_id: _,
        prompt_source,
        permission_mode,
        origin,
        interrupted_message_id,
        request_id: _,
        error,
        attachment,
        content,
        operation,
        leaf_uuid,
        compact_metadata,
        microcompact_metadata,
        mode,
        custom_title,
        ai_title,
        summary,
        data,
        palog: _,
    } = record;
    let mut hash = DefaultHasher::new();
    if let Some(message) = message {
        let Message { id, model, content, stop_reason, usage: _ } = &message.members;
        (id, model, stop_reason).hash(&mut hash);
        match content {
            Some(Content::Text(raw)) => raw.get().hash(&mut hash),
            Some(Content::Blocks(blocks)) => blocks.iter().for_each(|b| b.raw.get().hash(&mut hash)),
            None => {}
        }
    }
    (r#type, is_meta, is_compact_summary, is_api_error_message).hash(&mut hash);
    [subtype, prompt_source, permission_mode, operation, leaf_uuid, mode, custom_title, ai_title].hash(&mut hash);
    let values = [tool_use_result, tool_denial_kind, interrupted_message_id, error, content, summary];
    values.map(|value| value.as_ref().map(Raw::get)).hash(&mut hash);
    let objects = [
        origin.as_ref().map(|o| o.text),
        attachment.as_ref().map(|a| a.text),
        compact_metadata.as_ref().map(|m| m.text),
        microcompact_metadata.as_ref().map(|m| m.text),
        data.as_ref().map(|d| d.text),
    ];
    objects.hash(&mut hash);
    if !is_mapped(record) {
        text.hash(&mut hash);
    }
    hash.finish()
}

/// Whether all that a record says is in the members that are read.
fn is_mapped(record: &Record<'_>) -> bool {
    matches!(
        (&*record.r#type, record.subtype.as_deref()),
        ("system", Some("compact_boundary" | "microcompact_boundary" | "local_command" | "turn_duration"))
            | ("user" | "assistant" | "attachment" | "queue-operation" | "mode" | "permission-mode", _)
            | ("custom-title" | "ai-title" | "summary", _)
    )
}
