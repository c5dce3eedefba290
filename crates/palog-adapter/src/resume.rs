//! What a client does when a person takes one of its sessions up again, and what it asks people.

/// What becomes of what was open. Sentences are for people, and end in a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The command that takes the session up again, where all of it is known and safe to copy.
    pub command: Option<String>,
    /// What becomes of a call without a result.
    pub open_call: &'static str,
    /// What becomes of an open question.
    pub open_question: &'static str,
    /// What becomes of a prompt without an answer.
    pub open_prompt: &'static str,
}

/// A question that a model put to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The question.
    pub text: String,
    /// What can be answered; nothing = anything.
    pub options: Vec<Choice>,
    /// Whether several options can be chosen.
    pub several: bool,
}

/// An answer that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What it is called.
    pub label: String,
    /// What it means.
    pub description: Option<String>,
}

/// Whether a word can be copied into a command line as it stands.
#[must_use]
pub fn is_safe_word(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b))
}
