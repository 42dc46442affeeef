//! The estimate before a run of `ichido judge`.
//!
//! Guarantee: the estimate asks nothing and costs nothing; it follows from the settings and what is stored.
// Spec: B9.

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use ichido_core::plan::{
    Assumption, Assumptions, BatchPlan, Estimate, Proposal, Tuning, TuningLimits, estimate, propose,
};
use serde_json::{Value, json};

use crate::judge::{JudgePause, KnownJudgements, Settings};
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
    /// The waits before the retries of an article.
    waits: Vec<Duration>,
    takes: Estimate,
    deadline: Option<(Duration, Proposal)>,
    max_output_tokens: u32,
    pause: Option<JudgePause>,
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

impl FromStr for Price {
    type Err = String;

    /// Parses a price such as `3,15` or `0.25,1.25`.
    fn from_str(text: &str) -> Result<Self, String> {
        let number =
            |text: &str| text.trim().parse::<f64>().ok().filter(|number| (0.0..1e6).contains(number));
        let read = text
            .split_once(',')
            .and_then(|(input, output)| Some(Self { input: number(input)?, output: number(output)? }));
        read.ok_or_else(|| {
            "expected two prices per million tokens, input and output, such as 3,15".to_owned()
        })
    }
}

/// Inputs of the plan besides the settings.
#[derive(Clone, Copy, Debug)]
pub struct PlanInputs {
    /// The maximum duration of the run.
    pub deadline: Option<Duration>,
    /// The duration of a call.
    pub latency: Duration,
    /// The maximum number of tokens of an answer.
    pub max_output_tokens: u32,
    /// The pause that the provider asked an earlier run for, if it has not ended.
    pub pause: Option<JudgePause>,
    /// The price of the model, if it is known.
    pub price: Option<Price>,
}

impl Plan {
    /// Estimates a run.
    pub fn new(articles: usize, known: KnownJudgements, settings: &Settings, inputs: &PlanInputs) -> Self {
        let PlanInputs { latency, max_output_tokens, pause, price, .. } = *inputs;
        let waits: Vec<Duration> = settings.retry.waits().collect();
        let items = u64::try_from(known.missing).unwrap_or(u64::MAX);
        let parallel = at_a_time(settings.parallel, items);
        let batch = BatchPlan { items, parallel, interval: settings.interval, latency, waits: &waits };
        let assumptions = Assumptions::DEFAULT;
        let paused = pause.map_or(Duration::ZERO, |pause| pause.left);
        let fits = |within: Duration| {
            let left = within.saturating_sub(paused);
            (within, propose(&batch, &assumptions.bad_day, &TuningLimits::DEFAULT, left))
        };
        Self {
            articles,
            known,
            parallel,
            interval: settings.interval,
            latency,
            takes: estimate(&batch, &assumptions).after(paused),
            deadline: inputs.deadline.map(fits),
            waits,
            max_output_tokens,
            pause,
            price,
        }
    }

    /// Estimates the time for this many articles. Calls take as long as they took so far, if that is known.
    pub fn of(&self, articles: u64, latency: Option<Duration>) -> Estimate {
        let batch = BatchPlan {
            items: articles,
            parallel: self.parallel,
            interval: self.interval,
            latency: latency.unwrap_or(self.latency),
            waits: &self.waits,
        };
        estimate(&batch, &Assumptions::DEFAULT)
    }

    fn tokens_out(&self) -> u64 {
        u64::from(self.max_output_tokens)
            .saturating_mul(u64::try_from(self.known.missing).unwrap_or(u64::MAX))
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
        let mut text =
            format!("{}: {answered} already judged, {missing} to judge\n", counted(self.articles, "article"));
        if missing == 0 {
            return text;
        }
        _ = writeln!(
            text,
            "{} at a time, {} apart, about {} per call, {}",
            self.parallel,
            format_duration(self.interval),
            format_duration(self.latency),
            match self.waits.len() {
                0 => "no retries".to_owned(),
                1 => "up to 1 retry".to_owned(),
                retries => format!("up to {retries} retries"),
            }
        );
        if let Some(pause) = &self.pause {
            _ = writeln!(text, "{pause} by the provider, which the times include");
        }
        let Estimate { best, likely, bad_day } = self.takes;
        for (name, takes, assumption) in [
            ("best", best, Assumption::BEST),
            ("likely", likely, Assumption::LIKELY),
            ("bad day", bad_day, Assumption::BAD_DAY),
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

    /// Describes an assumption about the articles of this batch.
    fn assumed(&self, assumption: &Assumption) -> String {
        let missing = self.known.missing;
        let retried = assumption.retried(u64::try_from(missing).unwrap_or(u64::MAX));
        let times = match assumption.retries(self.waits.len()) {
            0 => return "no retries".to_owned(),
            1 => "once".to_owned(),
            count => format!("{count} times"),
        };
        match retried {
            0 => "no retries".to_owned(),
            1 => format!("1 of {missing} is retried {times}"),
            retried => format!("{retried} of {missing} are retried {times}"),
        }
    }

    /// Renders the plan as JSON. Times are in seconds.
    pub fn to_json(&self) -> Value {
        let Estimate { best, likely, bad_day } = self.takes;
        json!({
            "articles": self.articles,
            "judged_before": self.known.answered,
            "to_ask": self.known.missing,
            "seconds": { "best": best.as_secs_f64(), "likely": likely.as_secs_f64(), "bad_day": bad_day.as_secs_f64() },
            "tokens": { "in": self.known.tokens, "max_out": self.tokens_out() },
            "max_cost": self.cost(),
            "possibly_billed": self.known.lost,
            "paused_until": self.pause.map(|pause| pause.until.to_string()),
            "deadline": self.deadline.as_ref().map(|(within, proposal)| json!({
                "seconds": within.as_secs_f64(),
                "bad_day_fits": matches!(proposal, Proposal::AsItIs),
                "proposal": proposed(proposal),
            })),
        })
    }
}

/// Returns how many are asked at a time: no more than there are.
fn at_a_time(parallel: NonZeroU32, items: u64) -> NonZeroU32 {
    let items = u32::try_from(items).unwrap_or(u32::MAX);
    NonZeroU32::new(items).map_or(parallel, |items| items.min(parallel))
}

/// Formats a count with its noun.
pub(super) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn deadline(within: Duration, proposal: &Proposal) -> String {
    let within = format_duration(within);
    match proposal {
        Proposal::AsItIs => format!("a bad day fits into {within}"),
        Proposal::Change(tuning) => {
            format!("a bad day does not fit into {within}, but does with {}", flags(tuning))
        }
        Proposal::FewerItems { items: 0, .. } => {
            format!(
                "{within} is not enough for one article on a bad day, with any settings; pass a later --deadline"
            )
        }
        Proposal::FewerItems { tuning, items } => format!(
            "a bad day does not fit into {within} with any settings; it does with {} and {}",
            flags(tuning),
            counted(usize::try_from(*items).unwrap_or(usize::MAX), "article")
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
    use ichido_core::retry::Retry;
    use ichido_core::time::Timestamp;

    use super::*;

    const INPUTS: PlanInputs = PlanInputs {
        deadline: None,
        latency: Duration::from_secs(5),
        max_output_tokens: 200,
        pause: None,
        price: None,
    };

    fn plan(settings: &Settings, inputs: PlanInputs) -> Plan {
        plan_of(120, settings, inputs)
    }

    fn plan_of(articles: usize, settings: &Settings, inputs: PlanInputs) -> Plan {
        let known = KnownJudgements { answered: 0, missing: articles, tokens: 84_000, lost: 0 };
        Plan::new(articles, known, settings, &inputs)
    }

    fn parallel(parallel: u32) -> Settings {
        Settings { parallel: NonZeroU32::new(parallel).unwrap(), ..Settings::DEFAULT }
    }

    #[test]
    fn plan_matches_the_specified_figures() {
        let text = plan(&Settings::DEFAULT, INPUTS).render();
        for line in ["  best     7m 30s", "  likely   9m 50s", "  bad day 17m 30s"] {
            assert!(text.contains(line), "{text}");
        }
        assert!(plan(&parallel(3), INPUTS).render().contains("  best     5m 00s"));
        let numbers = plan(&Settings::DEFAULT, INPUTS).to_json();
        assert_eq!(numbers["seconds"], json!({ "best": 450.0, "likely": 590.0, "bad_day": 1050.0 }));
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
    fn plan_speaks_of_the_articles_of_this_batch() {
        let text = plan_of(6, &parallel(200), INPUTS).render();
        for line in ["6 at a time", "1 of 6 is retried 3 times", "1 of 6 is retried 4 times"] {
            assert!(text.contains(line), "{text}");
        }
        let text = plan_of(13, &Settings::DEFAULT, INPUTS).render();
        assert!(
            text.contains("2 of 13 are retried 3 times") && text.contains("3 of 13 are retried 4 times"),
            "{text}"
        );
        let once = Settings {
            retry: Retry { max_attempts: NonZeroU32::new(2).unwrap(), ..Retry::LLM },
            ..parallel(2)
        };
        let text = plan_of(1, &once, INPUTS).render();
        for line in ["1 article: ", "1 at a time", "up to 1 retry\n", "1 of 1 is retried once"] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    /// The waits of retries overlap, so 120 at a time do not take ten minutes for what takes seconds at best.
    #[test]
    fn many_at_a_time_do_not_add_up_their_waits() {
        let plan = plan(&parallel(200), INPUTS);
        assert_eq!((plan.takes.best, plan.takes.bad_day.as_secs()), (Duration::from_millis(7_500), 84));
    }

    #[test]
    fn deadline_that_is_too_short_for_one_article_is_reported() {
        for seconds in [0, 5] {
            let inputs = PlanInputs { deadline: Some(Duration::from_secs(seconds)), ..INPUTS };
            let text = plan(&Settings::DEFAULT, inputs).render();
            assert!(
                text.contains("is not enough for one article") && !text.contains("and 0 articles"),
                "{text}"
            );
        }
    }

    #[test]
    fn plan_includes_a_pause_that_has_not_ended() {
        let pause = JudgePause { until: Timestamp::from_secs(1_763_552_520), left: Duration::from_mins(40) };
        let inputs = PlanInputs { pause: Some(pause), deadline: Some(Duration::from_mins(45)), ..INPUTS };
        let plan = plan(&Settings::DEFAULT, inputs);
        let text = plan.render();
        for line in [
            "paused until 11:42 UTC (40m 00s from now) by the provider",
            "  best    47m 30s",
            "does not fit into 45m 00s",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert_eq!(plan.to_json()["paused_until"], "2025-11-19T11:42:00Z");
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
