//! What a model's name says about the request that it takes.
//!
//! Guarantee: a model with an unknown name gets no member that it may refuse.

/// What is known of a model by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelFamily {
    /// OpenAI's reasoning models: `gpt-5` and later, `o1` and later.
    Reasoning,
    /// Models of the same generation that do not take `reasoning_effort`, or not `low`: `gpt-5-chat-latest`,
    /// `gpt-5-pro`, `o1-mini`.
    ReasoningFixed,
    /// OpenAI's open models, on servers of others: `gpt-oss-20b`.
    Open,
    Other,
}

/// Parts of the names of models that refuse `reasoning_effort` of `low`.
const FIXED: [&str; 6] = ["chat", "pro", "search", "preview", "o1-mini", "deep-research"];

impl ModelFamily {
    /// Returns the family of a model: `gpt-5-mini`, or with its provider `openai/gpt-5-mini`.
    pub(super) fn of(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
        if name.starts_with("gpt-oss") {
            return Self::Open;
        }
        let number = |after: &str| -> Option<u32> {
            let digits = after.split(|letter: char| !letter.is_ascii_digit()).next()?;
            digits.parse().ok()
        };
        let gpt = name.strip_prefix("gpt-").and_then(number).is_some_and(|generation| 5 <= generation);
        let o = name.strip_prefix('o').and_then(number).is_some();
        match (gpt || o, FIXED.iter().any(|part| name.contains(part))) {
            (true, false) => Self::Reasoning,
            (true, true) => Self::ReasoningFixed,
            (false, _) => Self::Other,
        }
    }

    /// Returns whether it refuses `max_tokens`.
    pub(super) fn is_limited_by_completion(self) -> bool {
        matches!(self, Self::Reasoning | Self::ReasoningFixed)
    }

    /// Returns whether it takes `reasoning_effort` of `low`.
    pub(super) fn takes_reasoning_effort(self) -> bool {
        matches!(self, Self::Reasoning | Self::Open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_models_are_recognized_by_their_names() {
        for (family, models) in [
            (
                ModelFamily::Reasoning,
                &[
                    "gpt-5",
                    "gpt-5-mini",
                    "gpt-5-nano-2025-08-07",
                    "gpt-5.1",
                    "gpt-5.6-mini",
                    "gpt-10",
                    "o1",
                    "o3-mini",
                    "o4-mini",
                    "openai/gpt-5-mini",
                ] as &[&str],
            ),
            (
                ModelFamily::ReasoningFixed,
                &[
                    "gpt-5-chat-latest",
                    "gpt-5.1-chat-latest",
                    "gpt-5-pro",
                    "o1-mini",
                    "o1-preview",
                    "gpt-5-search-api",
                ],
            ),
            (ModelFamily::Open, &["gpt-oss-20b", "openai/gpt-oss-120b", "gpt-oss:20b"]),
            (
                ModelFamily::Other,
                &[
                    "gpt-4.1",
                    "gpt-4o-mini",
                    "gpt-test",
                    "olmo-2",
                    "mistral-small",
                    "qwen3:8b",
                    "",
                    "gpt-",
                    "o",
                    "phi-5",
                ],
            ),
        ] {
            for model in models {
                assert_eq!(ModelFamily::of(model), family, "{model}");
            }
        }
    }
}
