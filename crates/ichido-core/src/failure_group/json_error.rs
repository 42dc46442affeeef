//! Finds the messages in an error that is a JSON body.
//!
//! Only members that name an error are read, and never what is below any other member: receivers repeat the request there. The body may
//! be cut off.

/// The names of members that hold an error, in lower case and without `_` and `-`.
const NAMES: [&str; 14] = [
    "code",
    "description",
    "detail",
    "error",
    "errorcode",
    "errordescription",
    "errormessage",
    "errors",
    "fault",
    "message",
    "msg",
    "reason",
    "title",
    "type",
];
/// Maximum depth of a body that is read.
const MAX_DEPTH: usize = 8;

/// An object or a list.
struct Container {
    is_list: bool,
    /// Whether it is an error, or holds some.
    is_error: bool,
}

/// Returns the text before a JSON object with the messages in the object; `None` if there is no message.
pub(super) fn messages(text: &str) -> Option<String> {
    let start = text.find('{').filter(|start| text[start + 1..].trim_start().starts_with('"'))?;
    let (before, mut rest) = text.split_at(start);
    let mut messages = Vec::new();
    // The open objects and lists, and whether the next value is an error. In an object its member's name decides.
    let (mut open, mut is_error) = (Vec::<Container>::new(), true);
    while let Some(char) = rest.chars().next() {
        let after = &rest[char.len_utf8()..];
        rest = match char {
            '"' => {
                let (string, after) = string(after);
                if let Some(value) = after.trim_start().strip_prefix(':') {
                    is_error = open.last().is_some_and(|container| container.is_error) && is_name(&string);
                    value
                } else {
                    messages.extend(is_error.then_some(string).filter(|message| !message.is_empty()));
                    after
                }
            }
            '{' | '[' if open.len() < MAX_DEPTH => {
                open.push(Container { is_list: char == '[', is_error });
                is_error &= char == '[';
                after
            }
            '{' | '[' => break,
            '}' | ']' => {
                open.pop();
                match open.last() {
                    Some(container) => is_error = container.is_error && container.is_list,
                    None => break,
                }
                after
            }
            _ => after,
        };
    }
    (!messages.is_empty()).then(|| format!("{before}{}", messages.join(", ")))
}

/// Returns whether a member of this name holds an error.
fn is_name(name: &str) -> bool {
    let name: String = name.chars().filter(|char| !matches!(char, '_' | '-')).collect();
    NAMES.contains(&name.to_ascii_lowercase().as_str())
}

/// Reads a string after its opening quote. Returns it and what follows it.
fn string(text: &str) -> (String, &str) {
    let mut read = String::new();
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '"' => break,
            '\\' => read.extend(escaped(&mut chars)),
            char => read.push(char),
        }
    }
    (read, chars.as_str())
}

/// Reads an escape after its backslash.
fn escaped(chars: &mut std::str::Chars<'_>) -> Option<char> {
    match chars.next()? {
        'b' | 'f' | 'n' | 'r' | 't' => Some(' '),
        'u' => {
            let digits: String = chars.by_ref().take(4).collect();
            u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)
        }
        char => Some(char),
    }
}
