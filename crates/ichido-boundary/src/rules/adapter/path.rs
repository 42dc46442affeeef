//! Rules for paths: which requests an operation matches, and whether another one matches them too.

use super::{Violation, adapters, operations};
use crate::rules::key::SAFE_METHODS;
use crate::{HopChain, Operation};

/// The maximum number of segments in a path.
const MAX_SEGMENTS: usize = 64;

/// Returns what is wrong with a path's pattern; `None` if requests can match it.
pub(super) fn path_problem(path: &str) -> Option<String> {
    let Some(rest) = path.strip_prefix('/') else {
        return Some(format!("`{path}` does not begin with `/`"));
    };
    let segments: Vec<&str> = rest.split('/').collect();
    if MAX_SEGMENTS < segments.len() {
        return Some(format!("the path has more than {MAX_SEGMENTS} segments"));
    }
    // A trailing slash is one empty segment, and makes a different path.
    let (last, inner) = segments.split_last()?;
    let odd = inner.iter().find(|segment| segment.is_empty() || !is_segment(segment));
    let odd = odd.or(Some(last).filter(|last| !last.is_empty() && !is_segment(last)))?;
    Some(match *odd {
        "" => "`//` matches no request".to_owned(),
        odd if odd.starts_with(':') || odd.contains('*') => {
            format!("`{odd}` is not a parameter; write it as `{{id}}`")
        }
        odd => format!("`{odd}` is not a path segment; use a literal such as `orders`, or `{{id}}` for any"),
    })
}

/// Returns whether a segment is a name in braces or a literal that a request can have.
fn is_segment(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"{}?#\"<>\\^`|*".contains(&byte);
    match text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        Some(name) => !name.is_empty() && name.bytes().all(is_word),
        None => !matches!(text, "." | "..") && !text.starts_with(':') && text.bytes().all(is_plain),
    }
}

pub(in crate::rules) fn differ<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let mut found = Vec::new();
    for file in adapters(chain) {
        let all: Vec<_> = operations(file).collect();
        for (index, (pointer, _, operation)) in all.iter().enumerate() {
            let twin = all[..index].iter().find(|(_, _, earlier)| {
                let paths = operation.path.as_deref().zip(earlier.path.as_deref());
                paths.is_some_and(|(one, other)| collide(one, other)) && methods_meet(earlier, operation)
            });
            if let Some((_, name, _)) = twin {
                let what = format!("`{name}` matches the same requests");
                found.push(Violation::new(file, format!("{pointer}/path"), what));
            }
        }
    }
    found
}

/// Returns whether a request could match both paths, and neither is more specific in every segment.
fn collide(one: &str, other: &str) -> bool {
    // Many services ignore a trailing slash.
    let steps = |path: &'_ str| path.trim_end_matches('/').split('/').map(str::to_owned).collect::<Vec<_>>();
    let (one, other) = (steps(one), steps(other));
    let is_name = |step: &str| step.starts_with(['{', ':', '*']);
    let pairs = || one.iter().zip(&other);
    let meet = one.len() == other.len() && pairs().all(|(a, b)| a == b || is_name(a) || is_name(b));
    let is_closer = |(a, b): (&String, &String)| !is_name(a) && is_name(b);
    let (first, second) = (pairs().any(is_closer), pairs().any(|(a, b)| is_closer((b, a))));
    meet && first == second
}

/// Returns whether both have a method in common.
///
/// Without methods, an operation has those that change state.
fn methods_meet(a: &Operation, b: &Operation) -> bool {
    let changes =
        |methods: &Vec<String>| methods.iter().any(|method| !SAFE_METHODS.contains(&method.as_str()));
    match (&a.methods, &b.methods) {
        (Some(a), Some(b)) => a.iter().any(|method| b.contains(method)),
        (None, Some(methods)) | (Some(methods), None) => changes(methods),
        (None, None) => true,
    }
}
