//! A model's judgement of an article.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Article, Profile};
use crate::judge::{JudgedAnswer, Outcome};

/// A model's judgement of an article.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Judgement {
    pub(super) label: String,
    pub(super) confidence: f64,
    pub(super) reason: String,
}

impl Article {
    /// Returns the result as a JSON object: the judgement, or the profile's fallback and its reason.
    pub fn judged(&self, outcome: &Outcome<Judgement>, profile: &Profile, model: &str) -> Value {
        let (title, url) = (self.text("title"), self.text("url"));
        match outcome {
            Outcome::Judged(JudgedAnswer { answer, at, lost, .. }) => json!({
                "line": self.line,
                "title": title,
                "url": url,
                "label": answer.label,
                "confidence": answer.confidence,
                "reason": answer.reason,
                "model": model,
                "at": at.to_string(),
                "fallback": false,
                "possibly_billed": lost,
            }),
            Outcome::Fallback(why) => json!({
                "line": self.line,
                "title": title,
                "url": url,
                "label": profile.fallback,
                "confidence": 0.0,
                "reason": format!("not judged: {why}"),
                "model": model,
                "at": null,
                "fallback": true,
                "fallback_reason": why.as_str(),
            }),
        }
    }
}
