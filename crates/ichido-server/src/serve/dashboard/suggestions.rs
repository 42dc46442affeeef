//! What the filter box of the page of messages suggests: the names of filters, and the values that are known.
//!
//! Guarantee: every suggestion is a valid filter, or the beginning of one. There are at most [`MAX_QUEUES`] queues and [`MAX_CODES`]
//! codes, and no further statement is made for queues.

use ichido_core::lifecycle::StateName;

use super::super::failure_groups::FailureGroups;
use super::Dashboard;
use super::filter::quoted;
use super::frame_texts::Texts;
use super::marks;
use super::sampler::Sample;
use super::shell::Visitor;

/// Maximum queues that are suggested.
const MAX_QUEUES: usize = 50;
/// Maximum codes that are suggested: those of the failure groups that need a person first.
const MAX_CODES: usize = 20;

/// A suggestion.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Suggestion {
    pub(super) value: String,
    pub(super) about: String,
}

impl Dashboard {
    /// Returns the suggestions for a visitor. The page works without them, so a failure leaves values out.
    pub(super) async fn suggestions(&self, visitor: &Visitor) -> Vec<Suggestion> {
        let sample = self.sampler.get(&self.api).await.ok();
        let target = format!("/v1/failure-groups?limit={MAX_CODES}");
        let groups = match visitor.caller() {
            Ok(caller) => self.read::<FailureGroups>(caller, &target).await.ok(),
            Err(_) => None,
        };
        let groups = groups.into_iter().flat_map(|found| found.failure_groups);
        let mut codes: Vec<String> = groups.filter_map(|group| group.code).collect();
        codes.sort_unstable();
        codes.dedup();
        suggestions(visitor, sample.as_deref(), &codes)
    }
}

fn suggestions(visitor: &Visitor, sample: Option<&Sample>, codes: &[String]) -> Vec<Suggestion> {
    let (t, f) = (visitor.t(), Texts::of(visitor.language));
    let names = names(f).map(|(name, about)| Suggestion { value: name.to_owned(), about: about.to_owned() });
    let value = |name: &str, value: &str, about: &str| Suggestion {
        value: format!("{name}:{}", quoted(value)),
        about: about.to_owned(),
    };
    let queues = sample.map(|sample| sample.queues.as_slice()).unwrap_or_default();
    let queues = queues.iter().take(MAX_QUEUES).map(|queue| value("queue", &queue.name, ""));
    let states = StateName::WORDS.iter().map(|state| value("state", state, marks::state_name(t, state)));
    let codes = codes.iter().map(|code| value("code", code, ""));
    names.into_iter().chain(states).chain(queues).chain(codes).collect()
}

/// The names of filters with their meanings, the most useful first.
fn names(f: &Texts) -> [(&'static str, &'static str); 11] {
    [
        ("queue:", f.about_queue),
        ("state:", f.about_state),
        ("code:", f.about_code),
        ("key:", f.about_key),
        ("receipt:", f.about_receipt),
        ("payload./", f.about_payload),
        ("since:", f.about_since),
        ("before:", f.about_before),
        ("identity:", f.about_identity),
        ("trace:", f.about_trace),
        ("id:", f.about_id),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::filter::{MessageFilterText, NAMES};
    use super::super::language::Language;
    use super::*;

    #[test]
    fn every_name_is_suggested_and_every_value_is_a_filter() {
        let visitor = Visitor::new_for_tests(Language::English);
        let sample = Sample::new_for_tests(Vec::new(), &[], Vec::new(), Vec::new(), 0, 0);
        let codes = ["BROKER_5XX".to_owned()];
        let found = suggestions(&visitor, Some(&sample), &codes);
        for name in NAMES.split(", ") {
            let name = name.strip_suffix('…').map_or_else(|| format!("{name}:"), str::to_owned);
            assert!(found.iter().any(|known| known.value == name), "{name}");
        }
        for Suggestion { value, .. } in &found {
            let text = if value.ends_with('/') { format!("{value}symbol:x") } else { value.clone() };
            assert!(MessageFilterText::parse(&text).is_ok(), "{value}");
        }
        for known in ["state:dead", "code:BROKER_5XX"] {
            assert!(found.iter().any(|suggestion| suggestion.value == known), "{known}");
        }
    }
}
