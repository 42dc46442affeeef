//! The model's answers.
//!
//! Guarantee: the same item always gets the same judgement, and each shape has the damage that it is named for: a
//! truncated answer is not JSON, and one with prose or a fence around it contains the whole text.

use serde_json::json;

use crate::action::AnswerShape;
use crate::ask::tokens;

const LABELS: [&str; 4] = ["ACT_NOW", "THINK", "FYI", "IGNORE"];

/// The model's answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PlannedAnswer {
    pub(crate) text: String,
    pub(crate) stop: AnswerEnd,
    /// The tokens that the model spent on reasoning.
    reasoning: u32,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerEnd {
    Complete,
    /// The tokens were spent.
    Length,
    /// The provider's filter stopped it.
    Filtered,
}

impl PlannedAnswer {
    /// Creates a complete answer.
    pub(crate) fn whole(text: String) -> Self {
        Self { text, stop: AnswerEnd::Complete, reasoning: 0 }
    }

    /// Creates an answer in this shape.
    pub(crate) fn shaped(text: &str, shape: AnswerShape) -> Self {
        let whole = |text: String| Self::whole(text);
        match shape {
            AnswerShape::Whole => whole(text.to_owned()),
            AnswerShape::CutOff => {
                let half = text.chars().count() / 2;
                Self { stop: AnswerEnd::Length, ..whole(text.chars().take(half).collect()) }
            }
            AnswerShape::Prose => {
                whole(format!("Here is the judgement you asked for:\n\n{text}\n\nI hope this helps!"))
            }
            AnswerShape::Fence => whole(format!("```json\n{text}\n```")),
            AnswerShape::SchemaMiss => whole(json!({ "unasked": true }).to_string()),
            AnswerShape::Filtered => Self { stop: AnswerEnd::Filtered, ..whole(String::new()) },
        }
    }

    /// Lets the model reason first: nothing is left of an answer that then exceeds its maximum.
    pub(crate) fn after_reasoning(self, reasoning: u32, max_tokens: Option<u32>) -> Self {
        let answer = Self { reasoning, ..self };
        match max_tokens {
            Some(max) if 0 < reasoning && max < answer.tokens() => {
                Self { reasoning: max, stop: AnswerEnd::Length, ..Self::whole(String::new()) }
            }
            _ => answer,
        }
    }

    /// Returns the tokens that it counts as, with the reasoning.
    pub(crate) fn tokens(&self) -> u32 {
        tokens(self.text.chars().count()).saturating_add(self.reasoning)
    }
}

/// Returns the judgement of an item.
pub(crate) fn judgement(item: &str) -> String {
    let hash = hash(item);
    let label = LABELS[usize::from(hash.to_le_bytes()[0]) % LABELS.len()];
    let confidence = f64::from(hash.to_le_bytes()[1] % 101) / 100.0;
    json!({ "label": label, "confidence": confidence, "reason": format!("item {item} seems so") }).to_string()
}

/// FNV-1a: the same in every Rust release, which the standard library's hasher need not be.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn same_item_gets_the_same_answer_and_items_differ() {
        assert_eq!(judgement("a"), judgement("a"));
        let labels: std::collections::BTreeSet<String> = (0..100)
            .map(|item| serde_json::from_str::<Value>(&judgement(&item.to_string())).unwrap())
            .inspect(|judged| assert!((0.0..=1.0).contains(&judged["confidence"].as_f64().unwrap())))
            .map(|judged| judged["label"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(labels, LABELS.map(str::to_owned).into());
    }

    #[test]
    fn cut_answer_is_not_json_and_wrapped_answer_contains_it() {
        let text = judgement("a");
        let cut = PlannedAnswer::shaped(&text, AnswerShape::CutOff);
        assert!(serde_json::from_str::<Value>(&cut.text).is_err() && text.starts_with(&cut.text));
        assert_eq!(cut.stop, AnswerEnd::Length);
        for shape in [AnswerShape::Prose, AnswerShape::Fence] {
            let wrapped = PlannedAnswer::shaped(&text, shape).text;
            assert!(serde_json::from_str::<Value>(&wrapped).is_err() && wrapped.contains(&text));
        }
    }
}
