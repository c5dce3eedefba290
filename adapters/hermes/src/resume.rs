//! What the client does when a session is taken up again, as 0.19.0 was seen to do in its requests to the model; and the
//! questions that its model asks.

use palog_adapter::resume::{Choice, Question, Resume, is_safe_word};
use serde::Deserialize;

/// What becomes of a session that is taken up again.
#[must_use]
pub fn resume(session: Option<&str>, directory: Option<&str>) -> Resume {
    let command = session.filter(|session| is_safe_word(session)).map(|session| format!("hermes --resume {session}"));
    let within = directory.filter(|directory| is_safe_word(directory));
    Resume {
        command: match (command, within) {
            (Some(command), Some(directory)) => Some(format!("cd {directory} && {command}")),
            (command, _) => command.filter(|_| directory.is_none()),
        },
        open_call: "Hermes tells the model \"[Result unavailable — see context summary above]\" for every call without a result, also for one that ran: say what became of it.",
        open_question: "Hermes does not ask again when it resumes: say it in the next prompt.",
        open_prompt: "Hermes puts the prompt in front of the next one by itself: say that it should answer.",
    }
}

/// The questions in the arguments of a call; none where the call asks nothing, or in another form.
#[must_use]
pub fn questions(tool: &str, arguments: &str) -> Vec<Question> {
    #[derive(Deserialize)]
    struct Arguments {
        question: String,
        #[serde(default)]
        choices: Vec<String>,
    }
    if tool != "clarify" {
        return Vec::new();
    }
    let Ok(Arguments { question, choices }) = serde_json::from_str(arguments) else { return Vec::new() };
    let options = choices.into_iter().map(|label| Choice { label, description: None }).collect();
    vec![Question { text: question, options, several: false }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_given_only_if_it_can_be_copied() {
        let command = |session, directory| resume(session, directory).command;
        assert_eq!(
            command(Some("20261129_1"), Some("/tmp/a")).as_deref(),
            Some("cd /tmp/a && hermes --resume 20261129_1")
        );
        assert_eq!(command(Some("20261129_1"), None).as_deref(), Some("hermes --resume 20261129_1"));
        assert_eq!(command(Some("20261129_1"), Some("/tmp/a b")), None);
        assert_eq!(command(Some("x; id"), None), None);
    }

    #[test]
    fn a_question_is_read_with_its_choices() {
        let asked = questions("clarify", r#"{"question":"Which?","choices":["Red","Blue"]}"#);
        let labels: Vec<_> = asked[0].options.iter().map(|o| o.label.as_str()).collect();
        assert_eq!((asked.len(), asked[0].text.as_str(), labels), (1, "Which?", vec!["Red", "Blue"]));
        assert!(questions("terminal", r#"{"question":"?"}"#).is_empty());
    }
}
