//! The estimate before a run of `ichido judge`.
//!
//! Guarantee: the estimate asks nothing and costs nothing; it follows from the settings and what is stored.
// Spec: B9.

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::plan::{
    Assumption, Assumptions, BatchPlan, Estimate, Proposal, Retries, Tuning, TuningLimits, estimate, propose,
};
use serde_json::{Value, json};

use super::MAX_ANSWER_TOKENS;
use crate::judge::{KnownJudgements, Settings};
use crate::seconds::format_duration;

/// The estimated time and cost of a run.
#[derive(Debug)]
pub struct Plan {
    /// How many articles there are.
    pub articles: usize,
    known: KnownJudgements,
    parallel: NonZeroU32,
    interval: Duration,
    latency: Duration,
    retries: usize,
    takes: Estimate,
    deadline: Option<(Duration, Proposal)>,
    price: Option<Price>,
}

/// The price of a million tokens, in any currency.
#[derive(Clone, Copy, Debug)]
pub struct Price {
    /// Of tokens in the prompt.
    pub input: f64,
    /// Of tokens in the answer.
    pub output: f64,
}

/// Inputs of the plan besides the settings.
#[derive(Clone, Copy, Debug)]
pub struct PlanInputs {
    /// The maximum duration of the run.
    pub deadline: Option<Duration>,
    /// The duration of a call.
    pub latency: Duration,
    /// The price of the model, if it is known.
    pub price: Option<Price>,
}

impl Plan {
    /// Estimates a run.
    pub fn new(articles: usize, known: KnownJudgements, settings: &Settings, inputs: &PlanInputs) -> Self {
        let PlanInputs { latency, price, .. } = *inputs;
        let waits: Vec<Duration> = settings.retry.waits().collect();
        let items = u64::try_from(known.missing).unwrap_or(u64::MAX);
        let (parallel, interval) = (settings.parallel, settings.interval);
        let batch = BatchPlan { items, parallel, interval, latency, waits: &waits };
        let assumptions = Assumptions::DEFAULT;
        let fits = |within| (within, propose(&batch, &assumptions.worst, &TuningLimits::DEFAULT, within));
        Self {
            articles,
            known,
            parallel,
            interval,
            latency,
            retries: waits.len(),
            takes: estimate(&batch, &assumptions),
            deadline: inputs.deadline.map(fits),
            price,
        }
    }

    fn tokens_out(&self) -> u64 {
        u64::from(MAX_ANSWER_TOKENS).saturating_mul(u64::try_from(self.known.missing).unwrap_or(u64::MAX))
    }

    fn cost(&self) -> Option<f64> {
        const MILLION: f64 = 1e6;
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let cost = |price: Price| {
            (self.known.tokens as f64 * price.input + self.tokens_out() as f64 * price.output) / MILLION
        };
        self.price.map(cost)
    }

    /// Renders the plan for people.
    pub fn render(&self) -> String {
        let KnownJudgements { answered, missing, tokens, lost } = self.known;
        let mut text = format!("{} articles: {answered} already judged, {missing} to judge\n", self.articles);
        if missing == 0 {
            return text;
        }
        _ = writeln!(
            text,
            "{} at a time, {} apart, about {} per call, up to {} retries",
            self.parallel,
            format_duration(self.interval),
            format_duration(self.latency),
            self.retries
        );
        let Estimate { best, likely, worst } = self.takes;
        for (name, takes, assumption) in [
            ("best", best, Assumption::BEST),
            ("likely", likely, Assumption::LIKELY),
            ("worst", worst, Assumption::WORST),
        ] {
            _ = writeln!(text, "  {name:<7}{:>8}  {}", format_duration(takes), self.assumed(&assumption));
        }
        _ = write!(text, "about {tokens} tokens in, at most {} out", self.tokens_out());
        match self.cost() {
            Some(cost) => _ = writeln!(text, ": {cost:.2} at most, without retries"),
            None => text.push('\n'),
        }
        if 0 < lost {
            _ = writeln!(
                text,
                "{lost} calls of earlier runs had no response; they may have been billed and are repeated"
            );
        }
        if let Some((within, proposal)) = &self.deadline {
            _ = writeln!(text, "{}", deadline(*within, proposal));
        }
        text
    }

    fn assumed(&self, assumption: &Assumption) -> String {
        let retries = match assumption.retries {
            Retries::Times(times) => times.min(self.retries),
            Retries::Max => self.retries,
        };
        if assumption.of == 0 || retries == 0 {
            return "no retries".to_owned();
        }
        format!("{} of {} are retried {retries} times", assumption.of, assumption.per)
    }

    /// Renders the plan as JSON. Times are in seconds.
    pub fn to_json(&self) -> Value {
        let Estimate { best, likely, worst } = self.takes;
        json!({
            "articles": self.articles,
            "judged_before": self.known.answered,
            "to_ask": self.known.missing,
            "seconds": { "best": best.as_secs_f64(), "likely": likely.as_secs_f64(), "worst": worst.as_secs_f64() },
            "tokens": { "in": self.known.tokens, "max_out": self.tokens_out() },
            "max_cost": self.cost(),
            "possibly_billed": self.known.lost,
            "deadline": self.deadline.as_ref().map(|(within, proposal)| json!({
                "seconds": within.as_secs_f64(),
                "worst_fits": matches!(proposal, Proposal::AsItIs),
                "proposal": proposed(proposal),
            })),
        })
    }
}

fn deadline(within: Duration, proposal: &Proposal) -> String {
    let within = format_duration(within);
    match proposal {
        Proposal::AsItIs => format!("the worst case fits into {within}"),
        Proposal::Change(tuning) => {
            format!("the worst case does not fit into {within}, but does with {}", flags(tuning))
        }
        Proposal::FewerItems { tuning, items } => format!(
            "the worst case does not fit into {within} with any settings; it does with {} and {items} articles",
            flags(tuning)
        ),
    }
}

fn flags(tuning: &Tuning) -> String {
    let Tuning { parallel, interval, retries } = tuning;
    format!("--parallel {parallel} --interval {} --retries {retries}", interval.as_secs_f64())
}

fn proposed(proposal: &Proposal) -> Option<Value> {
    let (tuning, items) = match proposal {
        Proposal::AsItIs => return None,
        Proposal::Change(tuning) => (tuning, None),
        Proposal::FewerItems { tuning, items } => (tuning, Some(items)),
    };
    Some(json!({
        "parallel": tuning.parallel,
        "interval": tuning.interval.as_secs_f64(),
        "retries": tuning.retries,
        "articles": items,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUTS: PlanInputs = PlanInputs { deadline: None, latency: Duration::from_secs(5), price: None };

    fn plan(settings: &Settings, inputs: PlanInputs) -> Plan {
        let known = KnownJudgements { answered: 0, missing: 120, tokens: 84_000, lost: 0 };
        Plan::new(120, known, settings, &inputs)
    }

    #[test]
    fn plan_matches_the_specified_figures() {
        let text = plan(&Settings::DEFAULT, INPUTS).render();
        for line in ["  best     7m 30s", "  likely   9m 50s", "  worst   17m 30s"] {
            assert!(text.contains(line), "{text}");
        }
        let three = Settings { parallel: NonZeroU32::new(3).unwrap(), ..Settings::DEFAULT };
        assert!(plan(&three, INPUTS).render().contains("  best     5m 00s"));
        let numbers = plan(&Settings::DEFAULT, INPUTS).to_json();
        assert_eq!(numbers["seconds"], json!({ "best": 450.0, "likely": 590.0, "worst": 1050.0 }));
    }

    #[test]
    fn missed_deadline_gets_a_proposal() {
        let within = |minutes| PlanInputs { deadline: Some(Duration::from_mins(minutes)), ..INPUTS };
        let text = plan(&Settings::DEFAULT, within(15)).render();
        assert!(
            text.contains("does not fit into 15m 00s, but does with --parallel 3 --interval 2.5 --retries 4"),
            "{text}"
        );
        assert!(plan(&Settings::DEFAULT, within(20)).render().contains("fits into 20m 00s"));
        assert!(plan(&Settings::DEFAULT, within(1)).render().contains("with any settings"));
    }

    #[test]
    fn price_adds_the_maximum_cost() {
        let price = Price { input: 3.0, output: 15.0 };
        // 84,000 tokens in and 24,000 out.
        let plan = plan(&Settings::DEFAULT, PlanInputs { price: Some(price), ..INPUTS });
        assert!(plan.render().contains(": 0.61 at most"), "{}", plan.render());
        assert_eq!(plan.to_json()["max_cost"], json!(0.612));
    }
}
