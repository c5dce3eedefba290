//! What the client does when a session is taken up again, as 0.171.0 was seen to do in its requests to the model; and the
//! questions that its model asks.

use palog_adapter::resume::{Choice, Question, Resume, is_safe_word};
use serde::Deserialize;

/// What becomes of a session that is taken up again.
#[must_use]
pub fn resume(session: Option<&str>, directory: Option<&str>) -> Resume {
    let words = session.filter(|s| is_safe_word(s)).zip(directory.filter(|d| is_safe_word(d)));
    Resume {
        command: words.map(|(session, directory)| format!("cd {directory} && codex resume {session}")),
        open_call: "Codex tells the model \"aborted\" for every call without an output, also for one that ran: say what became of it.",
        open_question: "Codex does not ask again when it resumes: say it in the next prompt.",
        open_prompt: "Codex does not send the prompt again by itself: say that it should answer.",
    }
}

/// The questions in the arguments of a call; none where the call asks nothing, or in another form.
#[must_use]
pub fn questions(tool: &str, arguments: &str) -> Vec<Question> {
    #[derive(Deserialize)]
    struct Arguments {
        questions: Vec<Asked>,
    }
    #[derive(Deserialize)]
    struct Asked {
        question: String,
        #[serde(default)]
        options: Vec<Offered>,
    }
    #[derive(Deserialize)]
    struct Offered {
        label: String,
        description: Option<String>,
    }
    if tool != "request_user_input" {
        return Vec::new();
    }
    let Ok(arguments) = serde_json::from_str::<Arguments>(arguments) else { return Vec::new() };
    let choice = |offered: Offered| Choice { label: offered.label, description: offered.description };
    let question = |asked: Asked| Question {
        text: asked.question,
        several: false,
        options: asked.options.into_iter().map(choice).collect(),
    };
    arguments.questions.into_iter().map(question).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_given_only_if_it_can_be_copied() {
        let command = |session, directory| resume(session, directory).command;
        assert_eq!(command(Some("01a2-1"), Some("/tmp/a_b")).as_deref(), Some("cd /tmp/a_b && codex resume 01a2-1"));
        for directory in [None, Some("/tmp/a b"), Some("/tmp/$(id)"), Some("-x"), Some("")] {
            assert_eq!(command(Some("01a2-1"), directory), None, "{directory:?}");
        }
    }

    #[test]
    fn a_question_is_read_with_its_options() {
        let text = r#"{"questions":[{"id":"q1","header":"H","question":"Which?","options":[{"label":"Red","description":"warm"},{"label":"Blue"}]}]}"#;
        let asked = questions("request_user_input", text);
        assert_eq!((asked.len(), asked[0].text.as_str(), asked[0].several), (1, "Which?", false));
        let labels: Vec<_> = asked[0].options.iter().map(|o| (o.label.as_str(), o.description.as_deref())).collect();
        assert_eq!(labels, [("Red", Some("warm")), ("Blue", None)]);
        assert!(questions("exec_command", text).is_empty());
        assert!(questions("request_user_input", r#"{"questions":"?"}"#).is_empty());
    }
}
