//! What is counted of calls to a model (SPEC B12).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metrics::{Counter, counter, describe_counter};

use crate::models::Usage;

const CALLS: &str = "ichido_llm_calls_total";
const RETRIES: &str = "ichido_llm_retries_total";
const THROTTLED: &str = "ichido_llm_throttled_total";
const UNUSABLE: &str = "ichido_llm_unusable_answers_total";
const FALLBACKS: &str = "ichido_llm_fallbacks_total";
const BILLED_TWICE: &str = "ichido_llm_possibly_billed_twice_total";

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Questions that this batch had to ask, each counted once.
    pub missing: u64,
    /// Questions that were answered already.
    pub known: u64,
    /// Questions that were answered.
    pub answered: u64,
    /// Questions that were not, and never will be by this run.
    pub fallbacks: u64,
    /// Calls made.
    pub calls: u64,
    /// Calls under way.
    pub under_way: u64,
    /// Calls that were made because an earlier one for the same question came to nothing.
    pub retries: u64,
    /// Calls that were refused for coming too fast.
    pub throttled: u64,
    /// Answers that were not what was asked for.
    pub unusable: u64,
    /// Answers that had to be taken out of other words.
    pub mended: u64,
    /// Calls of which nobody knows what came: they may have been billed, and their question is asked once more.
    pub lost: u64,
    /// Tokens of prompts, as the provider counts them.
    pub tokens_in: u64,
    /// Tokens of answers, as the provider counts them.
    pub tokens_out: u64,
    /// How long calls that were answered took, all together.
    pub answering: Duration,
}

impl Counts {
    /// How long a call that is answered takes; `None` before the first.
    pub fn latency(&self) -> Option<Duration> {
        let answers = u32::try_from(self.answered.saturating_add(self.unusable)).unwrap_or(u32::MAX);
        self.answering.checked_div(answers)
    }

    /// What was counted since.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            missing: self.missing - before.missing,
            known: self.known - before.known,
            answered: self.answered - before.answered,
            fallbacks: self.fallbacks - before.fallbacks,
            calls: self.calls - before.calls,
            under_way: self.under_way,
            retries: self.retries - before.retries,
            throttled: self.throttled - before.throttled,
            unusable: self.unusable - before.unusable,
            mended: self.mended - before.mended,
            lost: self.lost - before.lost,
            tokens_in: self.tokens_in - before.tokens_in,
            tokens_out: self.tokens_out - before.tokens_out,
            answering: self.answering.saturating_sub(before.answering),
        }
    }
}

/// One thing that is counted, here and for the page of metrics.
struct Count {
    here: AtomicU64,
    told: Option<Counter>,
}

impl Count {
    fn here() -> Self {
        Self { here: AtomicU64::new(0), told: None }
    }

    fn told(counter: Counter) -> Self {
        Self { here: AtomicU64::new(0), told: Some(counter) }
    }

    fn add(&self, count: u64) {
        self.here.fetch_add(count, Ordering::Relaxed);
        if let Some(told) = &self.told {
            told.increment(count);
        }
    }

    fn get(&self) -> u64 {
        self.here.load(Ordering::Relaxed)
    }
}

pub(crate) struct Counting {
    missing: Count,
    known: Count,
    answered: Count,
    fallbacks: Count,
    calls: Count,
    ended: Count,
    retries: Count,
    throttled: Count,
    unusable: Count,
    mended: Count,
    lost: Count,
    tokens_in: Count,
    tokens_out: Count,
    answering_micros: Count,
}

/// Tells the recorder of metrics, once it is installed, what each metric of calls to models is.
pub fn describe_metrics() {
    for (name, what) in [
        (CALLS, "Calls made to a model"),
        (RETRIES, "Calls made because an earlier one for the same question came to nothing"),
        (THROTTLED, "Calls that a model refused for coming too fast"),
        (UNUSABLE, "Answers of a model that were not what was asked for"),
        (FALLBACKS, "Questions that were given up on"),
        (BILLED_TWICE, "Calls of which nobody knows what came, so that their question may be billed twice"),
    ] {
        describe_counter!(name, what);
    }
}

impl Counting {
    pub(crate) fn of(model: &str) -> Self {
        let of = |name: &'static str| Count::told(counter!(name, "model" => model.to_owned()));
        Self {
            missing: Count::here(),
            known: Count::here(),
            answered: Count::here(),
            fallbacks: of(FALLBACKS),
            calls: of(CALLS),
            ended: Count::here(),
            retries: of(RETRIES),
            throttled: of(THROTTLED),
            unusable: of(UNUSABLE),
            mended: Count::here(),
            lost: of(BILLED_TWICE),
            tokens_in: Count::here(),
            tokens_out: Count::here(),
            answering_micros: Count::here(),
        }
    }

    pub(super) fn batch(&self, missing: usize, known: usize) {
        self.missing.add(missing as u64);
        self.known.add(known as u64);
    }

    pub(crate) fn call(&self, is_first: bool) {
        self.calls.add(1);
        self.retries.add(u64::from(!is_first));
    }

    /// A call has ended, whatever came of it.
    pub(super) fn ended(&self) {
        self.ended.add(1);
    }

    pub(super) fn replied(&self, took: Duration, usage: Option<Usage>) {
        self.answering_micros.add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        let usage = usage.unwrap_or_default();
        self.tokens_in.add(usage.input);
        self.tokens_out.add(usage.output);
    }

    pub(super) fn answered(&self, was_mended: bool) {
        self.answered.add(1);
        self.mended.add(u64::from(was_mended));
    }

    pub(crate) fn unusable(&self) {
        self.unusable.add(1);
    }

    pub(crate) fn throttled(&self) {
        self.throttled.add(1);
    }

    pub(crate) fn lost(&self, count: u32) {
        self.lost.add(u64::from(count));
    }

    pub(super) fn fallback(&self) {
        self.fallbacks.add(1);
    }

    pub(super) fn counts(&self) -> Counts {
        // Those that ended first, so that no fewer have begun.
        let ended = self.ended.get();
        let calls = self.calls.get();
        Counts {
            missing: self.missing.get(),
            known: self.known.get(),
            answered: self.answered.get(),
            fallbacks: self.fallbacks.get(),
            calls,
            under_way: calls.saturating_sub(ended),
            retries: self.retries.get(),
            throttled: self.throttled.get(),
            unusable: self.unusable.get(),
            mended: self.mended.get(),
            lost: self.lost.get(),
            tokens_in: self.tokens_in.get(),
            tokens_out: self.tokens_out.get(),
            answering: Duration::from_micros(self.answering_micros.get()),
        }
    }
}
