//! Text from logs, made safe and short for people: a log must not be able to drive the terminal.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character is shown by its number: controls, and marks that turn or hide what stands around them.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || matches!(c, '\u{e0000}'..='\u{e007f}' | '\u{61c}')
}

fn push_safe(out: &mut String, c: char) {
    if is_unsafe(c) {
        // Writing to a string does not fail.
        let _ = match u32::from(c) {
            code @ 0..=0xff => write!(out, "\\x{code:02x}"),
            code => write!(out, "\\u{{{code:x}}}"),
        };
    } else {
        out.push(c);
    }
}

/// One line: white space becomes one space, unsafe characters are shown by number.
pub(crate) fn clean_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == ' ' || c == '\n' || c == '\r' || c == '\t' {
            if !out.ends_with(' ') {
                out.push(' ');
            }
        } else {
            push_safe(&mut out, c);
        }
    }
    out.trim().to_owned()
}

/// Several lines: line feeds stay, tabs become spaces, other unsafe characters are shown by number.
pub(crate) fn clean_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => out.push('\n'),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\t' => out.push_str("    "),
            c => push_safe(&mut out, c),
        }
    }
    out
}

/// JSON text whose strings hold no unsafe character as it stands. Outside of strings JSON is plain ASCII, and what a string
/// says does not change.
pub(crate) fn clean_json(json: &str) -> Cow<'_, str> {
    let bad = |c: char| !c.is_ascii_whitespace() && is_unsafe(c);
    if !json.contains(bad) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if bad(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// One safe line of at most about `max` characters; what was cut is counted.
pub(crate) fn short(text: &str, max: usize) -> String {
    // What lies far behind the cut need not be cleaned: a text may be megabytes long.
    let head: String = text.chars().take(max * 4 + 64).collect();
    let line = clean_line(&head);
    let total = text.chars().count();
    if line.chars().count() <= max && head.len() == text.len() {
        return line;
    }
    let kept: String = line.chars().take(max).collect();
    let kept = kept.trim_end();
    format!("{kept}… ({} characters)", thousands(total as u64))
}

/// A number with its thousands apart.
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(d);
    }
    out
}

/// The name that was probably meant.
pub(crate) fn closest<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let rated = names.map(|name| {
        // The last part of a name alone says most of it.
        let end = name.rsplit('.').next().unwrap_or(name);
        (strsim::jaro_winkler(wanted, name).max(strsim::jaro_winkler(wanted, end)), name)
    });
    rated.filter(|(like, _)| *like > 0.75).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

/// `1 call`, `2 calls`.
pub(crate) fn count(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", thousands(n), if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_drive_the_terminal() {
        let nasty = "a\x1b[2J\x1b]0;title\x07b\r\u{9b}31m\u{202e}x";
        for safe in [clean_line(nasty), clean_lines(nasty), short(nasty, 100)] {
            assert!(!safe.chars().any(|c| c.is_control() || c == '\u{202e}'), "{safe:?}");
        }
        assert_eq!(clean_line("a\x1b[2Jb"), "a\\x1b[2Jb");
        assert_eq!(clean_lines("a\r\nb\tc"), "a\nb    c");
        assert_eq!(clean_line("  a \n\n b\t"), "a b");
    }

    #[test]
    fn json_says_the_same_and_is_safe() {
        let nasty = "\u{9b}31m\u{202e}\u{7f}\u{e0041}é😀\u{1b}";
        let json = serde_json::to_string_pretty(&[nasty]).expect("json");
        let safe = clean_json(&json);
        assert!(!safe.contains(|c: char| c != '\n' && is_unsafe(c)), "{safe}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&safe).expect("json"), [nasty]);
        assert!(matches!(clean_json("{\n  \"a\": \"é\"\n}"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_cut_says_how_long_the_whole_was() {
        assert_eq!(short("abc", 3), "abc");
        assert_eq!(short("abcd", 3), "abc… (4 characters)");
        assert_eq!(short(&"é".repeat(5000), 2), "éé… (5,000 characters)");
    }

    #[test]
    fn a_wrong_name_finds_the_right_one() {
        let names = ["framing.torn_tail", "framing.fragment", "order.gap"];
        let of = |wanted| closest(wanted, names.into_iter());
        assert_eq!(
            ["framing.torn_tial", "torn_tail", "order.gaps", "zzz"].map(of),
            [Some(names[0]), Some(names[0]), Some(names[2]), None]
        );
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(count(1, "call", "calls"), "1 call");
        assert_eq!(count(2, "call", "calls"), "2 calls");
    }
}
