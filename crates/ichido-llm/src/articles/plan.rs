//! The estimate before a run of `ichido judge`.
//!
//! Guarantee: the estimate asks nothing and costs nothing; it follows from the settings and what is stored.
// Spec: B9.

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use ichido_core::plan::{
    Assumption, Assumptions, BatchPlan, Estimate, PlannedPace, Proposal, Tuning, TuningLimits, estimate,
    propose,
};
use serde_json::{Value, json};

use crate::judge::{JudgePause, KnownJudgements, Settings, limits};
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
    /// The maximum number of answers to one article that may be billed, after the first.
    answers_again: u64,
    /// The time between two calls that was learned from refusals.
    learned_spacing: Option<Duration>,
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
    /// The time between two calls that earlier runs learned from refusals.
    pub learned_spacing: Option<Duration>,
    /// The price of the model, if it is known.
    pub price: Option<Price>,
}

impl Plan {
    /// Estimates a run.
    pub fn new(articles: usize, known: KnownJudgements, settings: &Settings, inputs: &PlanInputs) -> Self {
        let PlanInputs { latency, max_output_tokens, pause, learned_spacing, price, .. } = *inputs;
        let waits: Vec<Duration> = settings.retry.waits().collect();
        let items = u64::try_from(known.missing).unwrap_or(u64::MAX);
        let parallel = at_a_time(settings.parallel, items);
        let starts_slowly = limits::PARALLEL_FEW < settings.parallel.get();
        let start = settings.pace.rate_start.filter(|_| starts_slowly);
        let start = start.map(|rate| PlannedPace { spacing: rate.spacing(), is_rising: true });
        let pace = learned(learned_spacing).or(start);
        let batch = BatchPlan { items, parallel, interval: settings.interval, latency, waits: &waits, pace };
        let assumptions = Assumptions::DEFAULT;
        // How much later it ends on a bad day.
        let paused = after(pause, Estimate::default()).bad_day;
        let fits = |within: Duration| {
            let left = within.saturating_sub(paused);
            (within, propose(&batch, &assumptions.bad_day, &TuningLimits::DEFAULT, left))
        };
        let retries = u64::try_from(waits.len()).unwrap_or(u64::MAX);
        Self {
            articles,
            known,
            parallel,
            interval: settings.interval,
            latency,
            takes: after(pause, estimate(&batch, &assumptions)),
            deadline: inputs.deadline.map(fits),
            waits,
            max_output_tokens,
            answers_again: retries.saturating_add(u64::from(settings.answer_retries)).saturating_add(1),
            learned_spacing,
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
            pace: learned(self.learned_spacing),
        };
        estimate(&batch, &Assumptions::DEFAULT)
    }

    /// Returns the tokens in and out, and their cost, if each article is asked once.
    fn once(&self) -> (u64, u64, Option<f64>) {
        let missing = u64::try_from(self.known.missing).unwrap_or(u64::MAX);
        self.priced(self.known.tokens, missing.saturating_mul(u64::from(self.max_output_tokens)))
    }

    /// Returns the same if each article needs all its retries, and its first answer is cut off. All later ones may then
    /// have twice as many tokens, and a call without an answer may be billed.
    fn at_most(&self) -> (u64, u64, Option<f64>) {
        let (input, output, _) = self.once();
        let again = self.answers_again;
        let output = output.saturating_mul(again.saturating_mul(2).saturating_add(1));
        self.priced(input.saturating_mul(again.saturating_add(1)), output)
    }

    fn priced(&self, input: u64, output: u64) -> (u64, u64, Option<f64>) {
        const MILLION: f64 = 1e6;
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let cost = |price: Price| (input as f64 * price.input + output as f64 * price.output) / MILLION;
        (input, output, self.price.map(cost))
    }

    /// Renders the plan for people.
    pub fn render(&self) -> String {
        let KnownJudgements { answered, missing, lost, .. } = self.known;
        let duplicates = match self.articles.saturating_sub(answered).saturating_sub(missing) {
            0 => String::new(),
            count => format!(", {}", counted(count, "duplicate")),
        };
        let mut text = format!(
            "{}: {answered} already judged, {missing} to judge{duplicates}\n",
            counted(self.articles, "article")
        );
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
            _ = writeln!(text, "{pause}; the times include it");
        }
        if let Some(spacing) = self.learned_spacing {
            let spacing = format_duration(spacing);
            _ = writeln!(
                text,
                "at most one call every {spacing}, because the provider refused more; --resume forgets that"
            );
        }
        let Estimate { best, likely, bad_day } = self.takes;
        for (name, takes, assumption) in [
            ("best", best, Assumption::BEST),
            ("likely", likely, Assumption::LIKELY),
            ("bad day", bad_day, Assumption::BAD_DAY),
        ] {
            _ = writeln!(text, "  {name:<7} {:>7}  {}", format_duration(takes), self.assumed(&assumption));
        }
        for ((input, output, cost), when) in
            [(self.once(), "if each is asked once"), (self.at_most(), "with all retries")]
        {
            let cost = cost.map_or_else(String::new, |cost| format!(": {cost:.2}"));
            _ = writeln!(text, "about {input} tokens in, at most {output} out {when}{cost}");
        }
        if 0 < lost {
            _ = writeln!(
                text,
                "{lost} calls of earlier runs had no response; they may have been billed and are repeated"
            );
        }
        if let Some((within, proposal)) = &self.deadline {
            _ = writeln!(text, "{}", deadline(*within, proposal, self.pause.as_ref()));
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
        let ((tokens, once, cost), (max_in, max_out, max_cost)) = (self.once(), self.at_most());
        json!({
            "articles": self.articles,
            "judged_before": self.known.answered,
            "to_ask": self.known.missing,
            "seconds": { "best": best.as_secs_f64(), "likely": likely.as_secs_f64(), "bad_day": bad_day.as_secs_f64() },
            "tokens": { "in": tokens, "out": once, "max_in": max_in, "max_out": max_out },
            "cost": cost,
            "max_cost": max_cost,
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

/// Returns the estimate of a batch that starts after a pause.
fn after(pause: Option<JudgePause>, takes: Estimate) -> Estimate {
    pause.map_or(takes, |pause| pause.delays(takes))
}

fn learned(spacing: Option<Duration>) -> Option<PlannedPace> {
    spacing.map(|spacing| PlannedPace { spacing, is_rising: false })
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

fn deadline(within: Duration, proposal: &Proposal, pause: Option<&JudgePause>) -> String {
    let is_paused_beyond = pause.is_some_and(|pause| within <= pause.left);
    let within = format_duration(within);
    match proposal {
        _ if is_paused_beyond => {
            format!("the pause ends after the deadline of {within}; pass a longer --deadline")
        }
        Proposal::AsItIs => format!("a bad day fits into {within}"),
        Proposal::Change(tuning) => {
            format!("a bad day does not fit into {within}, but does with {}", flags(tuning))
        }
        Proposal::FewerItems { items: 0, .. } => {
            format!(
                "{within} is not enough for one article on a bad day, with any settings; pass a longer --deadline"
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
        Proposal::AsItIs | Proposal::FewerItems { items: 0, .. } => return None,
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
        learned_spacing: None,
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
            assert!(text.contains("pass a longer --deadline"), "{text}");
            assert_eq!(plan(&Settings::DEFAULT, inputs).to_json()["deadline"]["proposal"], Value::Null);
        }
    }

    #[test]
    fn plan_includes_the_pace_of_the_provider() {
        let fast = Settings { interval: Duration::ZERO, ..parallel(1_000) };
        let inputs = PlanInputs { latency: Duration::from_millis(100), ..INPUTS };
        // 20, 40, 80, 160 and 320 in five seconds, and 380 of 640 in the sixth.
        assert_eq!(plan_of(1_000, &fast, inputs).takes.best, Duration::from_micros(5_593_750));
        let inputs = PlanInputs { learned_spacing: Some(Duration::from_secs(10)), ..INPUTS };
        let plan = plan(&Settings::DEFAULT, inputs);
        assert_eq!(plan.takes.best, Duration::from_mins(20));
        assert!(plan.render().contains("at most one call every 10s, because the provider refused more"));
        assert_eq!(plan.of(60, None).best, Duration::from_mins(10));
    }

    #[test]
    fn duplicates_are_counted_and_planned_once() {
        let prompt = |user: &str| crate::models::Prompt {
            system: None,
            user: user.to_owned(),
            max_tokens: 50,
            form: None,
        };
        let known = KnownJudgements::unasked(&["a", "b", "a", "a", "b"].map(prompt));
        let text = Plan::new(5, known, &Settings::DEFAULT, &INPUTS).render();
        assert!(
            text.starts_with("5 articles: 0 already judged, 2 to judge, 3 duplicates\n2 at a time"),
            "{text}"
        );
    }

    #[test]
    fn long_times_do_not_touch_their_names() {
        let text = plan_of(100_000, &parallel(1), INPUTS).render();
        assert!(text.lines().any(|line| line.starts_with("  bad day 3")), "{text}");
    }

    #[test]
    fn plan_includes_a_pause_that_has_not_ended() {
        let (until, left) = (Timestamp::from_secs(1_763_552_520), Duration::from_mins(40));
        let pause = JudgePause { until, left, requested: None };
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
        let pause =
            JudgePause { left: Duration::from_hours(1), requested: Some(Duration::from_hours(2)), ..pause };
        let inputs = PlanInputs { pause: Some(pause), ..inputs };
        let text = self::plan(&Settings::DEFAULT, inputs).render();
        for line in ["  likely   1h 09m", "  bad day  2h 17m", "the pause ends after the deadline of 45m 00s"]
        {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[test]
    fn price_adds_the_cost_with_and_without_all_retries() {
        let price = Price { input: 3.0, output: 15.0 };
        let plan = plan(&Settings::DEFAULT, PlanInputs { price: Some(price), ..INPUTS });
        // One answer of 200 tokens is cut off. Four retries and two for unusable answers follow, so seven may have 400.
        let lines = "about 84000 tokens in, at most 24000 out if each is asked once: 0.61\n\
                     about 672000 tokens in, at most 360000 out with all retries: 7.42\n";
        assert!(plan.render().ends_with(lines), "{}", plan.render());
        let json = plan.to_json();
        assert_eq!((&json["cost"], &json["max_cost"]), (&json!(0.612), &json!(7.416)));
        assert_eq!(
            json["tokens"],
            json!({ "in": 84_000, "out": 24_000, "max_in": 672_000, "max_out": 360_000 })
        );
    }
}
