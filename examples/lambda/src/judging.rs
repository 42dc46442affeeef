//! Judges the articles of one event.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::time::Timestamp;
use ichido_llm::articles::{self, Judgement, Profile};
use ichido_llm::judge::{Counts, Judge, JudgeEnd, Settings, Stop};
use ichido_llm::models::Model;
use serde_json::{Value, json};

/// The part of Lambda's time that is reserved for sending the response.
const RESPOND_WITHIN: Duration = Duration::from_secs(2);

/// The model, and how it is asked.
pub(crate) struct Judging {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) settings: Settings,
}

/// The results of one event.
pub(crate) struct Judged {
    /// One object per article, in order.
    pub(crate) results: Value,
    counts: Counts,
    model: String,
}

impl Judging {
    /// Judges the articles of an event within the time that is left.
    ///
    /// The event is a JSON array of objects, each with `title`, `url` or `description`. Answers live as long as this call; to
    /// keep them for the next one, give the judge a store (`Judge::with_store`).
    pub(crate) async fn run(&self, event: &[u8], left: Duration) -> Result<Judged, String> {
        // Without serde's message, which may repeat the article.
        let items: Vec<Value> = serde_json::from_slice(event)
            .map_err(|_| "the event is not a list of articles; send [{\"title\": …, \"url\": …}, …]")?;
        let name = self.model.name().to_owned();
        if items.is_empty() {
            return Ok(Judged { results: json!([]), counts: Counts::default(), model: name });
        }
        let lines: Vec<String> = items.iter().map(ToString::to_string).collect();
        let lines = lines.join("\n");
        let articles = articles::read(lines.as_bytes(), "article").map_err(|faults| faults.to_string())?;
        let profile = Profile::parse(Profile::DEFAULT).map_err(|error| error.to_string())?;
        let form = profile.form().map_err(|error| error.to_string())?;
        let deadline = Some(left.saturating_sub(RESPOND_WITHIN));
        let settings = Settings { deadline, ..self.settings.clone() };
        let judge = Judge::<Judgement>::new(Arc::clone(&self.model), form, settings)
            .map_err(|error| error.to_string())?;
        let report = judge
            .run(articles::prompts(&articles, &profile, articles::DEFAULT_OUTPUT_TOKENS), &Stop::new())
            .await;
        let report = report.map_err(|error| error.to_string())?;
        match &report.ended {
            JudgeEnd::SetUp { code, why } => eprintln!(
                "cannot call the model: {code}, {why}; check its name, the region and the function's role"
            ),
            JudgeEnd::CutOff { max_tokens } => {
                eprintln!("the model's answers do not fit into {max_tokens} tokens; allow more");
            }
            JudgeEnd::Whole | JudgeEnd::Deadline | JudgeEnd::Stopped => (),
        }
        let results = articles.iter().zip(&report.outcomes);
        let results = results.map(|(article, outcome)| article.judged(outcome, &profile, &name)).collect();
        Ok(Judged { results, counts: report.counts, model: name })
    }
}

impl Judged {
    /// Renders the counts in the embedded metric format of Amazon's logs.
    pub(crate) fn metrics(&self, now: Timestamp) -> Value {
        let Counts { calls, retries, throttled, unusable, fallbacks, lost, .. } = self.counts;
        let names =
            ["calls", "retries", "throttled", "unusable_answers", "fallbacks", "possibly_billed_twice"];
        let mut metrics: Vec<Value> =
            names.iter().map(|name| json!({ "Name": name, "Unit": "Count" })).collect();
        metrics.push(json!({ "Name": "retry_ratio", "Unit": "None" }));
        json!({
            "_aws": {
                "Timestamp": now.as_millis(),
                "CloudWatchMetrics": [{ "Namespace": "Ichido", "Dimensions": [["model"]], "Metrics": metrics }],
            },
            "model": self.model,
            "calls": calls,
            "retries": retries,
            "throttled": throttled,
            "unusable_answers": unusable,
            "fallbacks": fallbacks,
            "possibly_billed_twice": lost,
            "retry_ratio": self.counts.retry_ratio(),
        })
    }
}
