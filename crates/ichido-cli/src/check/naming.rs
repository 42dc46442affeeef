//! Finds a rule by its id, also in short form: `ICH-B020`, `b020`, `20`.

use ichido_boundary::{BoundaryRule, rule, rules};
use ichido_core::text::visible;

/// How many rules to suggest for an unknown id.
const MAX_NEAR: usize = 3;

/// Returns the rule, or an error with suggestions.
pub(super) fn find(text: &str) -> Result<&'static BoundaryRule, String> {
    let text = text.trim();
    let number = number(text);
    if let Some(rule) = number.and_then(|number| rule(&format!("ICH-B{number:03}"))) {
        return Ok(rule);
    }
    let near = match number {
        Some(number) => near_number(number),
        None => near_words(text),
    };
    let near: Vec<String> = near.iter().map(|rule| format!("{} ({})", rule.id, rule.title)).collect();
    let near = if near.is_empty() { String::new() } else { format!("similar: {}; ", near.join(", ")) };
    Err(format!("there is no rule \"{}\"; {near}`ichido check --list` lists all rules", visible(text)))
}

/// Returns the number of an id: `ICH-B020` and its shorter forms.
fn number(text: &str) -> Option<u16> {
    let upper = text.to_ascii_uppercase();
    let rest = upper.strip_prefix("ICH-").unwrap_or(&upper);
    let digits = rest.strip_prefix('B').unwrap_or(rest);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

fn near_number(wanted: u16) -> Vec<&'static BoundaryRule> {
    let mut all: Vec<&BoundaryRule> = rules().collect();
    all.sort_by_key(|rule| number(rule.id).unwrap_or(u16::MAX).abs_diff(wanted));
    all.truncate(MAX_NEAR);
    all
}

/// Returns rules whose title contains the word.
fn near_words(text: &str) -> Vec<&'static BoundaryRule> {
    let word = text.to_ascii_lowercase();
    let has = |rule: &&BoundaryRule| !word.is_empty() && rule.title.to_ascii_lowercase().contains(&word);
    rules().filter(has).take(MAX_NEAR).collect()
}
