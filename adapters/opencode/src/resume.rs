//! What the client does when a session is taken up again, as 1.18.33 was seen to do in its requests to the model; and the
//! questions that its model asks.

use palog_adapter::resume::{Choice, Question, Resume, is_safe_word};
use serde::Deserialize;

/// What becomes of a session that is taken up again.
#[must_use]
pub fn resume(session: Option<&str>, directory: Option<&str>) -> Resume {
    let words = session.filter(|s| is_safe_word(s)).zip(directory.filter(|d| is_safe_word(d)));
    Resume {
        command: words.map(|(session, directory)| format!("cd {directory} && opencode --session {session}")),
        open_call: "OpenCode tells the model \"[Tool execution was interrupted]\" for every open call, also for one that ran: say what became of it.",
        open_question: "OpenCode does not ask again when it resumes, neither a question nor for leave: say it in the next prompt.",
        open_prompt: "OpenCode does not send the prompt again by itself: say that it should answer.",
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
        #[serde(default)]
        multiple: bool,
    }
    #[derive(Deserialize)]
    struct Offered {
        label: String,
        description: Option<String>,
    }
    if tool != "question" {
        return Vec::new();
    }
    let Ok(arguments) = serde_json::from_str::<Arguments>(arguments) else { return Vec::new() };
    let choice = |offered: Offered| Choice { label: offered.label, description: offered.description };
    let question = |asked: Asked| Question {
        text: asked.question,
        several: asked.multiple,
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
        let safe = command(Some("ses_1"), Some("/home/a_b"));
        assert_eq!(safe.as_deref(), Some("cd /home/a_b && opencode --session ses_1"));
        for directory in [None, Some("/home/a b"), Some("/home/$(id)"), Some("-x"), Some("")] {
            assert_eq!(command(Some("ses_1"), directory), None, "{directory:?}");
        }
    }

    #[test]
    fn a_question_is_read_with_its_options() {
        let text = r#"{"questions":[{"header":"H","question":"Which?","multiple":true,"options":[{"label":"Red","description":"warm"},{"label":"Blue"}]}]}"#;
        let asked = questions("question", text);
        assert_eq!((asked.len(), asked[0].text.as_str(), asked[0].several), (1, "Which?", true));
        let labels: Vec<_> = asked[0].options.iter().map(|o| (o.label.as_str(), o.description.as_deref())).collect();
        assert_eq!(labels, [("Red", Some("warm")), ("Blue", None)]);
        assert!(questions("bash", text).is_empty());
        assert!(questions("question", r#"{"questions":"?"}"#).is_empty());
    }
}
