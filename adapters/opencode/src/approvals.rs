//! Questions for leave, and their answers, as the client's event stream tells them. No table holds them.

use palog::envelope::ActorKind;
use palog::events::{ApprovalEnded, ApprovalKind, ApprovalOutcome, ApprovalRequested, Scope};
use palog::json::{Raw, Str};
use palog::writer::WriteError;
use serde::Deserialize;

use crate::mapper::{ByCall, Mapper, Slot, Told, Written};
use crate::record::{Origin, text};

/// A question for leave.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) id: String,
    /// What is asked for, as the client tells it.
    pub(crate) options: Raw<'static>,
    pub(crate) origin: Origin,
    /// The word of the answer, and its record.
    pub(crate) reply: Option<(String, Origin)>,
}

/// What came of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
    /// It is open.
    None,
}

/// All questions, by message and call.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    pub(crate) by_call: ByCall<Vec<Asked>>,
    /// Those that name no call.
    pub(crate) others: Vec<Asked>,
}

/// `permission.asked`.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Question<'a> {
    pub(crate) id: Str<'a>,
    pub(crate) permission: Option<Raw<'a>>,
    pub(crate) patterns: Option<Raw<'a>>,
    pub(crate) always: Option<Raw<'a>>,
    pub(crate) metadata: Option<Raw<'a>>,
    pub(crate) tool: Option<About<'a>>,
}

/// The call that a question is about.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct About<'a> {
    #[serde(rename = "messageID")]
    pub(crate) message: Str<'a>,
    #[serde(rename = "callID")]
    pub(crate) call: Str<'a>,
}

/// `permission.replied`.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Reply<'a> {
    #[serde(default, rename = "requestID", deserialize_with = "text")]
    pub(crate) request: Option<Str<'a>>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) reply: Option<Str<'a>>,
}

impl Question<'_> {
    /// What is asked for.
    pub(crate) fn options(&self) -> Raw<'static> {
        let members = [
            ("permission", &self.permission),
            ("patterns", &self.patterns),
            ("always", &self.always),
            ("metadata", &self.metadata),
        ];
        let present: Vec<String> =
            members.iter().filter_map(|(name, value)| Some(format!("\"{name}\":{}", value.as_ref()?.get()))).collect();
        let text = format!("{{{}}}", present.join(","));
        Raw::parse(&text).map(Raw::into_owned).unwrap_or_else(|_| Raw::of(&()))
    }
}

impl Approvals {
    /// The question with this id.
    pub(crate) fn find(&mut self, id: &str) -> Option<&mut Asked> {
        self.by_call.values_mut().flatten().chain(&mut self.others).find(|asked| asked.id == id)
    }

    /// Questions that nobody answered, with the calls that they name.
    pub(crate) fn open(&self) -> impl Iterator<Item = (&Asked, Option<&str>)> {
        let named = self.by_call.iter().flat_map(|((_, call), all)| all.iter().map(move |a| (a, Some(call.as_str()))));
        named.chain(self.others.iter().map(|asked| (asked, None))).filter(|(asked, _)| asked.reply.is_none())
    }
}

impl Mapper {
    /// The questions about a call. Returns the answer to the last one.
    pub(crate) fn asked(
        &mut self,
        message: &str,
        call: &str,
        action: &str,
        digest: &str,
    ) -> Result<Option<Answer>, WriteError> {
        let key = (message.to_owned(), call.to_owned());
        let mut last = None;
        for asked in self.approvals.by_call.remove(&key).unwrap_or_default() {
            self.question(&asked, Some((action, digest)))?;
            last = Some(match asked.reply.as_ref().map(|(word, _)| word.as_str()) {
                None => Answer::None,
                Some("reject") => Answer::No,
                Some(_) => Answer::Yes,
            });
        }
        Ok(last)
    }

    /// Questions about nothing that is known.
    pub(crate) fn other_questions(&mut self) -> Written {
        let all: Vec<Asked> = self.approvals.by_call.drain().flat_map(|(_, asked)| asked).collect();
        let mut all: Vec<Asked> = all.into_iter().chain(std::mem::take(&mut self.approvals.others)).collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all.iter().try_for_each(|asked| self.question(asked, None))
    }

    fn question(&mut self, asked: &Asked, about: Option<(&str, &str)>) -> Written {
        let requested = ApprovalRequested {
            approval: Some(asked.id.clone().into()),
            kind: ApprovalKind::Permission,
            action: about.map(|(action, _)| action.to_owned().into()),
            args_digest: about.map(|(_, digest)| digest.to_owned().into()),
            options: Some(asked.options.borrowed()),
            expires: None,
            join: None,
        };
        self.append(Told::by(&asked.origin, Slot::First), ActorKind::Harness, requested)?;
        let Some((word, origin)) = &asked.reply else { return Ok(()) };
        let (outcome, scope) = match word.as_str() {
            "once" => (ApprovalOutcome::Granted, Some(Scope::Once)),
            // It is forgotten with the process.
            "always" => (ApprovalOutcome::Granted, Some(Scope::Session)),
            "reject" => (ApprovalOutcome::Denied, None),
            _ => return Ok(()),
        };
        let ended = ApprovalEnded {
            approval: Some(asked.id.clone().into()),
            action: about.map(|(action, _)| action.to_owned().into()),
            outcome,
            scope,
            args: None,
            input: None,
            reason: None,
            join: None,
        };
        self.append(Told::by(origin, Slot::First), ActorKind::User, ended).map(drop)
    }
}
