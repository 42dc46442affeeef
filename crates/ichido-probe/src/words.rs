//! Parses what describes a target in one word or line.
//!
//! Guarantee: an error never repeats a value that may be a credential.

use crate::target::Condition;

/// Parses `METHOD /path`.
pub fn parse_method_and_path(text: &str) -> Result<(String, String), String> {
    let parts = text
        .trim()
        .split_once(' ')
        .map(|(method, path)| (method.to_ascii_uppercase(), path.trim().to_owned()));
    let is_path = |path: &str| path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic());
    parts
        .filter(|(_, path)| is_path(path))
        .ok_or_else(|| format!("\"{text}\" is not a method and a path; write it like 'POST /refunds'"))
}

/// Parses `HEADER: VALUE`.
pub fn parse_header(text: &str) -> Result<(String, String), String> {
    // The value may be a credential.
    let wrong = || "is not a header; write it like 'Authorization: Bearer …'".to_owned();
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    let is_name =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    let value = value.trim();
    if !is_name || value.chars().any(char::is_control) {
        return Err(wrong());
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Parses `CONDITION=HEADER: VALUE`.
pub fn parse_provoked(text: &str) -> Result<(Condition, (String, String)), String> {
    let form = || format!("write CONDITION='HEADER: VALUE', with one of: {}", Condition::WORDS.join(", "));
    let (condition, line) = text.split_once('=').ok_or_else(form)?;
    let condition = Condition::parse(condition).ok_or_else(form)?;
    Ok((condition, parse_header(line)?))
}
