//! JSON for people: indented, with every character of its values as it was stored.
//!
//! Guarantee: only white space between tokens is changed, so a number of any length and an escape in a text are shown and copied exactly. A
//! text that is not JSON is shown as it is.

use serde::de::IgnoredAny;

/// The indent of one level.
const INDENT: &str = "  ";

/// Returns a JSON text with line breaks and indents; `None` if it is not JSON.
pub(super) fn indented(text: &str) -> Option<String> {
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let mut out = String::with_capacity(text.len() * 2);
    let (mut depth, mut in_string, mut is_escaped) = (0, false, false);
    let mut marks = text.chars().peekable();
    while let Some(mark) = marks.next() {
        if in_string {
            out.push(mark);
            in_string = is_escaped || mark != '"';
            is_escaped = !is_escaped && mark == '\\';
            continue;
        }
        match mark {
            '"' => {
                in_string = true;
                out.push(mark);
            }
            '{' | '[' => {
                out.push(mark);
                while marks.next_if(char::is_ascii_whitespace).is_some() {}
                if let Some(end) = marks.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth -= 1;
                break_line(&mut out, depth);
                out.push(mark);
            }
            ',' => {
                out.push(mark);
                break_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            mark if mark.is_ascii_whitespace() => (),
            mark => out.push(mark),
        }
    }
    Some(out)
}

fn break_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n(INDENT, depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_every_character() {
        let text = r#"{"id":9007199254740993, "big":123456789012345678901234567890.10,"e":1E400,
            "text":"a \"{[,:]}\" \\","empty":{ },"list":[ ],"nested":[1,[2, true],null],"u":"\u0041 é <b>"}"#;
        let expected = r#"{
  "id": 9007199254740993,
  "big": 123456789012345678901234567890.10,
  "e": 1E400,
  "text": "a \"{[,:]}\" \\",
  "empty": {},
  "list": [],
  "nested": [
    1,
    [
      2,
      true
    ],
    null
  ],
  "u": "\u0041 é <b>"
}"#;
        assert_eq!(indented(text).as_deref(), Some(expected));
        assert_eq!(indented("18446744073709551617").as_deref(), Some("18446744073709551617"));
    }

    #[test]
    fn other_text_is_not_json() {
        for text in ["", "{", "{\"a\":}", "hello", "[1,]", "{} {}"] {
            assert_eq!(indented(text), None, "{text}");
        }
    }
}
