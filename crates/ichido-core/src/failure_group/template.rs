//! The template of an error: its text without what differs from one message to the next.

use std::net::Ipv6Addr;

use super::json_error;
use super::quotes::without_quoted;

/// The maximum length of a template, in bytes; the rest is cut off and does not distinguish groups.
pub const MAX_TEMPLATE_BYTES: usize = 200;
/// The maximum length of a text that is read, in bytes. The store keeps no more of an error.
const MAX_ERROR_BYTES: usize = 1024;

/// What replaces a number, an id, an address or a time.
const VALUE: char = '#';
/// What joins the parts of one value, such as a date, an IP address or a list of ids.
const JOINTS: [&str; 7] = ["", ", ", ".", ",", ":", "-", "+"];
const MAX_JOINT_BYTES: usize = 2;
/// The minimum length of a hex value with both letters and digits.
const MIN_HEX_CHARS: usize = 6;
/// The lengths of a UUID's parts.
const UUID_PARTS: [usize; 5] = [8, 4, 4, 4, 12];

/// Normalises an error's text: `order 4711: no "ACME"` becomes `order #: no "…"`.
///
/// Of an error with a JSON object, only the messages in it are read: `400: {"error":"no symbol"}` becomes `#: no symbol`.
pub fn template(error: &str) -> String {
    let error = cut(error, MAX_ERROR_BYTES);
    let messages = json_error::messages(error);
    let plain = without_quoted(messages.as_deref().unwrap_or(error));
    let (status, plain) = status(&plain);
    let mut out = status.to_owned();
    for word in plain.split(|char: char| char.is_whitespace() || char.is_control()) {
        if word.is_empty() {
            continue;
        }
        if is_full(&out) {
            break;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        add_word(&mut out, word);
    }
    let end = cut(&out, MAX_TEMPLATE_BYTES).len();
    out.truncate(end);
    out
}

/// Returns the messages in an error with a JSON object, in one line and with their values: `400: {"error":"no symbol"}` becomes
/// `400: no symbol`. `None` if it has no such object.
pub fn flattened(error: &str) -> Option<String> {
    json_error::messages(cut(error, MAX_ERROR_BYTES))
}

/// Splits the status off a response's first line, such as `503 Service Unavailable`: it is not a value.
fn status(text: &str) -> (&str, &str) {
    let digits = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (status, rest) = text.split_at(digits);
    let names_it =
        rest.strip_prefix(' ').is_some_and(|rest| rest.starts_with(|char: char| char.is_ascii_uppercase()));
    let is_error = status.len() == 3 && status.starts_with(['4', '5']);
    if is_error && names_it { (status, rest) } else { ("", text) }
}

/// Adds a word without its values. Text without blanks, such as Japanese, is one word.
fn add_word(out: &mut String, word: &str) {
    let mut rest = word;
    while let Some(char) = rest.chars().next()
        && !is_full(out)
    {
        if let Some(after) = rest.strip_prefix("://") {
            out.push_str("://");
            rest = without_user(after);
        } else if char == '?'
            && let Some(length) = query(rest)
        {
            rest = &rest[length..];
        } else if let Some(length) = address(rest) {
            add_value(out);
            rest = &rest[length..];
        } else if is_part_of_segment(char) {
            let end = rest.find(|char| !is_part_of_segment(char)).unwrap_or(rest.len());
            let (segment, after) = rest.split_at(end);
            add_segment(out, segment);
            rest = after;
        } else {
            out.push(char);
            rest = &rest[char.len_utf8()..];
        }
    }
}

/// Returns whether the rest of a text no longer changes its template, not even by removing a joint.
fn is_full(out: &str) -> bool {
    MAX_TEMPLATE_BYTES + MAX_JOINT_BYTES < out.len()
}

fn is_part_of_segment(char: char) -> bool {
    char.is_ascii_alphanumeric() || char.is_numeric()
}

/// Adds letters and digits: a word as it is, `node12` as `node#`, and any other mix as a value.
fn add_segment(out: &mut String, segment: &str) {
    let letters = segment.find(char::is_numeric).unwrap_or(segment.len());
    let (word, number) = segment.split_at(letters);
    let is_hex = MIN_HEX_CHARS <= segment.len() && segment.chars().all(|char| char.is_ascii_hexdigit());
    if number.is_empty() {
        out.push_str(word);
    } else if !is_hex && number.chars().all(char::is_numeric) {
        out.push_str(word);
        add_value(out);
    } else {
        add_value(out);
    }
}

/// Adds a value, or lengthens the last one: dates, addresses and lists are one value each.
fn add_value(out: &mut String) {
    for joint in JOINTS {
        if let Some(before) = out.strip_suffix(joint)
            && before.ends_with(VALUE)
        {
            out.truncate(before.len());
            return;
        }
    }
    out.push(VALUE);
}

/// Returns the length of a UUID, an email address or an IPv6 address at the beginning of a text.
fn address(text: &str) -> Option<usize> {
    uuid(text).or_else(|| email(text)).or_else(|| ipv6(text))
}

fn uuid(text: &str) -> Option<usize> {
    let mut end = 0;
    for (index, length) in UUID_PARTS.into_iter().enumerate() {
        if 0 < index {
            text[end..].strip_prefix('-')?;
            end += 1;
        }
        let part = text.as_bytes().get(end..end + length)?;
        if !part.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        end += length;
    }
    let is_over = text[end..].chars().next().is_none_or(|next| !next.is_ascii_alphanumeric());
    is_over.then_some(end)
}

fn email(text: &str) -> Option<usize> {
    let of_name = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '%' | '+' | '-');
    let name = text.find(|char| !of_name(char)).filter(|length| 0 < *length)?;
    let domain = text[name..].strip_prefix('@')?;
    let of_domain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-');
    let length = domain.find(|char| !of_domain(char)).unwrap_or(domain.len());
    let length = domain[..length].trim_end_matches(['.', '-']).len();
    (0 < length).then_some(name + 1 + length)
}

/// An address without a digit is more likely a path, such as `face::add`.
fn ipv6(text: &str) -> Option<usize> {
    let of_address = |char: char| char.is_ascii_hexdigit() || matches!(char, ':' | '.');
    let end = text.find(|char| !of_address(char)).unwrap_or(text.len());
    let found = text[..end].trim_end_matches('.');
    // A colon may follow it, as in `::1: refused`.
    let candidates = [found, found.strip_suffix(':').unwrap_or(found)];
    let address = candidates.into_iter().find(|address| address.parse::<Ipv6Addr>().is_ok())?;
    let is_over = text[address.len()..].chars().next().is_none_or(|next| !next.is_ascii_alphanumeric());
    (is_over && address.contains(|char: char| char.is_ascii_digit())).then_some(address.len())
}

/// Returns the length of a URL's query at the beginning of a text. It is removed: it may repeat a request.
fn query(text: &str) -> Option<usize> {
    let is_end =
        |char: char| !char.is_ascii() || matches!(char, '"' | '\'' | '<' | '>' | '(' | ')' | '{' | '}' | ',');
    let end = text.find(is_end).unwrap_or(text.len());
    text[..end].contains('=').then_some(end)
}

/// Removes name and password from the rest of a URL.
fn without_user(url: &str) -> &str {
    let authority = url.find(['/', '?', '#', '(', ')', ',']).unwrap_or(url.len());
    match url[..authority].rfind('@') {
        Some(at) => &url[at + 1..],
        None => url,
    }
}

/// Returns the beginning of a text, cut at a character boundary.
fn cut(text: &str, max_bytes: usize) -> &str {
    let mut end = text.len().min(max_bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
