//! What the model sees, for people.

use std::io::{self, Write};

use palog::project::{Context, LeftOut, Unresolved, chat, openai};
use serde_json::Value;

use crate::render::text::{clean_line, clean_lines, count, short, thousands};
use crate::terminal::Style;

/// How much of a text is shown.
const LINES: usize = 16;
const CHARACTERS: usize = 1200;

/// Prints the messages in order, and then what stands in the way of sending them.
pub(crate) fn render(out: &mut dyn Write, style: Style, context: &Context) -> io::Result<()> {
    for message in &context.messages {
        writeln!(out, "{}", style.bold(message.role.word()))?;
        for block in &message.content {
            self::block(out, block.get())?;
        }
        writeln!(out)?;
    }
    let messages = count(context.messages.len() as u64, "message", "messages");
    writeln!(out, "{}", style.dim(&format!("-- {messages}; --format json gives them in full --")))?;
    lacks(out, style, &context.unresolved, &context.omitted)
}

/// Prints the items in order, and then what stands in the way of sending them.
pub(crate) fn render_input(out: &mut dyn Write, style: Style, context: &openai::Context) -> io::Result<()> {
    for item in &context.input {
        let Ok(value) = serde_json::from_str::<Value>(item.get()) else {
            indent(out, item.get())?;
            continue;
        };
        let of = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
        match of("type") {
            "message" => {
                writeln!(out, "{}", style.bold(&clean_line(of("role"))))?;
                for part in value.get("content").and_then(Value::as_array).into_iter().flatten() {
                    indent(out, &brief(part))?;
                }
            }
            call @ ("function_call" | "custom_tool_call" | "local_shell_call") => {
                writeln!(out, "{}", style.bold("assistant"))?;
                let input =
                    ["arguments", "input"].iter().map(|name| of(name)).find(|text| !text.is_empty()).unwrap_or(call);
                indent(out, &format!("(call of {} as {}) {}", of("name"), of("call_id"), short(input, 300)))?;
            }
            "function_call_output" | "custom_tool_call_output" => {
                writeln!(out, "{}", style.bold("tool"))?;
                let output = match value.get("output") {
                    Some(Value::String(text)) => text.clone(),
                    Some(Value::Array(parts)) => parts.iter().map(brief).collect::<Vec<_>>().join("\n"),
                    other => other.map(Value::to_string).unwrap_or_default(),
                };
                indent(out, &format!("(result of {})\n{output}", of("call_id")))?;
            }
            other => indent(out, &format!("({other})"))?,
        }
        writeln!(out)?;
    }
    let items = count(context.input.len() as u64, "item", "items");
    writeln!(out, "{}", style.dim(&format!("-- {items}; --format json gives them in full --")))?;
    lacks(out, style, &context.unresolved, &context.omitted)
}

/// Prints the messages of a chat in order, and then what stands in the way of sending them.
pub(crate) fn render_chat(out: &mut dyn Write, style: Style, context: &chat::Context) -> io::Result<()> {
    for message in &context.messages {
        let Ok(value) = serde_json::from_str::<Value>(message.get()) else {
            indent(out, message.get())?;
            continue;
        };
        let of = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        writeln!(out, "{}", style.bold(&clean_line(of("/role"))))?;
        if let Some(call) = value.get("tool_call_id").and_then(Value::as_str) {
            indent(out, &format!("(result of {call})"))?;
        }
        match value.get("content") {
            Some(Value::Array(parts)) => parts.iter().try_for_each(|part| indent(out, &brief(part)))?,
            _ => indent(out, of("/content"))?,
        }
        for call in value.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            let of = |pointer: &str| call.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let arguments = short(of("/function/arguments"), 300);
            indent(out, &format!("(call of {} as {}) {arguments}", of("/function/name"), of("/id")))?;
        }
        writeln!(out)?;
    }
    let messages = count(context.messages.len() as u64, "message", "messages");
    writeln!(out, "{}", style.dim(&format!("-- {messages}; --format json gives them in full --")))?;
    lacks(out, style, &context.unresolved, &context.omitted)
}

/// What stands in the way of sending a context.
fn lacks(out: &mut dyn Write, style: Style, unresolved: &[Unresolved], omitted: &[LeftOut]) -> io::Result<()> {
    for call in unresolved {
        let line = format!("call {} has no result: the API refuses the messages as they are", clean_line(&call.call));
        writeln!(out, "{}", style.yellow(&line))?;
    }
    for left_out in omitted.iter().take(10) {
        if let Some(log) = &left_out.log {
            let until =
                left_out.event.as_ref().map_or_else(String::new, |event| format!(", up to {}", clean_line(event)));
            let line = format!("what the model saw before is in another log: {}{until}", clean_line(log));
            writeln!(out, "{}", style.yellow(&line))?;
            continue;
        }
        let what = left_out.part.as_deref().unwrap_or("event");
        let which = left_out
            .action
            .as_ref()
            .or(left_out.event.as_ref())
            .map_or_else(String::new, |id| format!(" of {}", clean_line(id)));
        writeln!(
            out,
            "{}",
            style.yellow(&format!("left out: {what}{which} ({})", left_out.reason.word().replace('_', " ")))
        )?;
    }
    let more = omitted.len().saturating_sub(10);
    if more > 0 {
        writeln!(out, "{}", style.yellow(&format!("… and {} more left out", thousands(more as u64))))?;
    }
    Ok(())
}

/// One block of a message.
fn block(out: &mut dyn Write, text: &str) -> io::Result<()> {
    let Ok(block) = serde_json::from_str::<Value>(text) else {
        // Numbers and depths that a generic tree cannot hold.
        return indent(out, text);
    };
    let of = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
    match of("type") {
        "text" => indent(out, of("text")),
        "thinking" => indent(out, &format!("(thinking) {}", of("thinking"))),
        "tool_use" => {
            let input = block.get("input").map(Value::to_string).unwrap_or_default();
            indent(out, &format!("(call of {} as {}) {}", of("name"), of("id"), short(&input, 300)))
        }
        "tool_result" => {
            let error = if block.get("is_error") == Some(&Value::Bool(true)) { ", an error" } else { "" };
            let content = match block.get("content") {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Array(blocks)) => blocks.iter().map(brief).collect::<Vec<_>>().join("\n"),
                other => other.map(Value::to_string).unwrap_or_default(),
            };
            indent(out, &format!("(result of {}{error})\n{content}", of("tool_use_id")))
        }
        other => indent(out, &format!("({other})")),
    }
}

/// A block inside of a result.
fn brief(block: &Value) -> String {
    match block.get("text").and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None => format!("({})", block.get("type").and_then(Value::as_str).unwrap_or("something")),
    }
}

fn indent(out: &mut dyn Write, text: &str) -> io::Result<()> {
    let head: String = text.chars().take(CHARACTERS).collect();
    let clean = clean_lines(&head);
    for line in clean.trim_end().lines().take(LINES) {
        writeln!(out, "{}", format!("  {line}").trim_end())?;
    }
    if head.len() < text.len() || clean.trim_end().lines().count() > LINES {
        writeln!(out, "  … of {} characters", thousands(text.chars().count() as u64))?;
    }
    Ok(())
}
