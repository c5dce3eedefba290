//! What the first records of a transcript say of it.

use std::fs::File;
use std::io;

use palog_adapter::transcript;

use crate::members::{Read, read};
use crate::record::{Record, looks_like_record};

/// What the first records of a transcript say of it.
#[derive(Default)]
pub(crate) struct First {
    pub(crate) session: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) sidechain: bool,
    /// Hash and length of the first prompt.
    pub(crate) prompt: Option<u64>,
    /// Length of the first record.
    pub(crate) len: u64,
    /// A record of the tree was among them.
    in_tree: bool,
    /// A record of this format was among them; without one the file was read to its end.
    pub(crate) recognised: bool,
    /// Physical lines that were looked at.
    pub(crate) lines: u64,
}

impl First {
    /// Reads the first records, and goes back to the beginning.
    pub(crate) fn peek(bytes: &mut File) -> io::Result<Self> {
        let mut first = First::default();
        first.lines = transcript::peek(bytes, looks_like_record, |text| first.take(text))?;
        Ok(first)
    }

    /// Takes in a record, and says whether all is known.
    fn take(&mut self, text: &str) -> bool {
        let Ok(Read { members: record, .. }) = read::<Record<'_>>(text) else { return false };
        self.recognised |= record.is_recognised();
        if self.len == 0 {
            self.len = text.len() as u64;
        }
        if self.session.is_none() {
            self.session = record.session_id.as_deref().filter(|s| !s.is_empty()).map(str::to_owned);
        }
        if record.uuid.is_some() && !self.in_tree {
            self.in_tree = true;
            self.agent = record.agent_id.as_deref().filter(|s| !s.is_empty()).map(str::to_owned);
            self.sidechain = record.is_sidechain;
            let content = record.message.as_ref().and_then(|m| m.content.as_ref());
            self.prompt = content.and_then(crate::conversation::text_hash);
        }
        self.in_tree && self.session.is_some()
    }
}
