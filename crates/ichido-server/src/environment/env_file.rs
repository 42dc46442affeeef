//! The syntax of `.env` files.
//!
//! `NAME=value`, with or without `export` before it; `#` begins a comment at the start of a line or after a space. Text in
//! single quotes is literal; in double quotes, `\n`, `\r`, `\t`, `\"`, `\\` and `\$` are escapes. Quoted text may span lines.
//! `$NAME` is not replaced: a value means the same in every environment.
//!
//! Not the crate `dotenvy`: its errors quote the line, which may be a secret, it does not report the lines of variables, and it
//! replaces `$NAME`.

use std::collections::BTreeMap;

use ichido_core::settings::ConfigErrors;

/// A variable's value, and the line that sets it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) value: String,
    pub(super) line: usize,
}

/// Parses the lines of our variables; the last assignment of a name wins. Adds an error for each of them that is invalid.
///
/// Lines of other programs are skipped, whatever their syntax.
pub(super) fn parse(
    file: &str,
    text: &str,
    is_ours: impl Fn(&str) -> bool,
    faults: &mut ConfigErrors,
) -> BTreeMap<String, Assignment> {
    let mut assignments = BTreeMap::new();
    let (mut rest, mut line) = (text.trim_start_matches('\u{feff}'), 1);
    while !rest.is_empty() {
        let (parsed, after) = next(rest);
        match parsed {
            Ok(Some((name, value))) if is_ours(name) => {
                assignments.insert(name.to_owned(), Assignment { value, line });
            }
            Err(what) if is_ours(name_of(split_line(rest).0)) => faults.add(format!("{file}:{line}"), what),
            Ok(_) | Err(_) => (),
        }
        line += rest[..rest.len() - after.len()].matches('\n').count();
        rest = after;
    }
    assignments
}

/// A name with its value, `None` for a comment or an empty line, or what is wrong.
type Parsed<'a> = Result<Option<(&'a str, String)>, &'static str>;

/// Parses the first line, with the following ones if a quoted value spans them. Returns the text after it.
fn next(text: &str) -> (Parsed<'_>, &str) {
    let (line, after) = split_line(text);
    if line.trim().is_empty() || line.trim_start().starts_with('#') {
        return (Ok(None), after);
    }
    let Some((name, unquoted)) = line.split_once('=') else {
        return (Err("has no `=`; write NAME=value, or begin a comment with #"), after);
    };
    // The value may go on after this line.
    let value = text[name.len() + 1..].trim_start_matches([' ', '\t']);
    let name = name_of(name);
    if !is_name(name) {
        return (Err("has an invalid name before `=`; use letters, digits and underscores"), after);
    }
    let Some(quote) = value.chars().next().filter(|first| ['"', '\''].contains(first)) else {
        return (Ok(Some((name, uncommented(unquoted).trim().to_owned()))), after);
    };
    let Some((value, rest)) = quoted(&value[1..], quote) else {
        return (Err("has a quote that is not closed; add the closing quote"), after);
    };
    let (tail, after) = split_line(rest);
    if tail.trim().is_empty() || tail.trim_start().starts_with('#') {
        return (Ok(Some((name, value))), after);
    }
    (Err("has text after the closing quote; quote the whole value, or escape the quote with \\"), after)
}

/// Returns the text before the first `=`, without `export`.
fn name_of(line: &str) -> &str {
    let name = line.split('=').next().unwrap_or_default().trim();
    let exported = name.strip_prefix("export").filter(|rest| rest.starts_with([' ', '\t']));
    exported.map_or(name, str::trim_start)
}

fn split_line(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap_or((text, ""))
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Removes a comment at the end of an unquoted value.
fn uncommented(value: &str) -> &str {
    let comment = value.match_indices('#').find(|(at, _)| value[..*at].ends_with([' ', '\t']));
    comment.map_or(value, |(at, _)| &value[..at])
}

/// Returns the text up to the closing quote, and the text after it; `None` without a closing quote.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.chars();
    loop {
        match chars.next()? {
            end if end == quote => return Some((value, chars.as_str())),
            '\\' if quote == '"' => match chars.next()? {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                escaped @ ('"' | '\\' | '$') => value.push(escaped),
                other => value.extend(['\\', other]),
            },
            plain => value.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(String, String, usize)> {
        let mut faults = ConfigErrors::default();
        let assignments = parse(".env", text, |_| true, &mut faults);
        assert_eq!(faults, ConfigErrors::default(), "{text}");
        assignments.into_iter().map(|(name, Assignment { value, line })| (name, value, line)).collect()
    }

    fn value(text: &str) -> String {
        let all = parsed(text);
        assert_eq!(all.len(), 1, "{text}");
        all.into_iter().next().map(|(_, value, _)| value).unwrap_or_default()
    }

    #[test]
    fn env_file_takes_comments_export_and_quotes() {
        for (text, expected) in [
            ("A=plain", "plain"),
            ("A=plain\r\n", "plain"),
            ("  export A = spaced out  ", "spaced out"),
            ("export\tA=1", "1"),
            ("A=", ""),
            ("A= # only a comment", ""),
            ("A=value # comment", "value"),
            ("A=a#b", "a#b"),
            ("A=#b", "#b"),
            ("A=a=b", "a=b"),
            ("A=it's", "it's"),
            ("A='single $B \\n \"x\" # kept' # gone", "single $B \\n \"x\" # kept"),
            ("A=\"double\\t\\\"x\\\" \\$B \\\\ \\d # kept\"# gone", "double\t\"x\" $B \\ \\d # kept"),
            ("A=\"one\ntwo\"\n# end", "one\ntwo"),
            ("# A=0\n\n   # B=0\nA=日本", "日本"),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
    }

    #[test]
    fn env_file_reports_lines_and_the_last_assignment_wins() {
        let all = parsed("A=1\n# c\nB='x\ny'\nC=3\nA=4");
        let expected = [("A", "4", 6), ("B", "x\ny", 3), ("C", "3", 5)];
        assert_eq!(all, expected.map(|(name, value, line)| (name.to_owned(), value.to_owned(), line)));
    }

    #[test]
    fn lines_of_other_programs_are_skipped() {
        let text =
            "\u{feff}ICHIDO_A=1\nno variable\nmy.key=1\nB='x' y\nC=\"open\nexport ICHIDO_D=2\nICHIDO_E='x' y";
        let mut faults = ConfigErrors::default();
        let found = parse(".env", text, |name| name.starts_with("ICHIDO_"), &mut faults);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["ICHIDO_A", "ICHIDO_D"]);
        assert_eq!(faults.0.iter().map(|fault| fault.place.as_str()).collect::<Vec<_>>(), [".env:7"]);
    }

    #[test]
    fn invalid_env_file_lines_are_reported_without_their_text() {
        let text = "A=1\nsecret-word\n=secret\n1A=secret\nA B=secret\nA='secret' more\nB=2\nC=\"secret";
        let mut faults = ConfigErrors::default();
        let found = parse(".env", text, |_| true, &mut faults);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["A", "B"]);
        let places: Vec<&str> = faults.0.iter().map(|fault| fault.place.as_str()).collect();
        assert_eq!(places, [".env:2", ".env:3", ".env:4", ".env:5", ".env:6", ".env:8"]);
        assert!(faults.0.iter().all(|fault| fault.what.contains("; ")), "each says how to fix it: {faults}");
        assert!(!faults.to_string().contains("secret"), "{faults}");
    }
}
