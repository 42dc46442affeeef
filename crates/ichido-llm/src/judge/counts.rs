//! Counts calls to a model.
// SPEC B12.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use ichido_core::sync::lock;
use ichido_core::verdict::ErrorCode;
use ichido_store::Store;
use ichido_store::counters::Counters;
use metrics::{Counter, Gauge, counter, describe_counter, describe_gauge, gauge};

use crate::models::{CallReport, Model, Prompt, Usage};

const CALLS: &str = "ichido_llm_calls_total";
const RETRIES: &str = "ichido_llm_retries_total";
const THROTTLED: &str = "ichido_llm_throttled_total";
const UNUSABLE: &str = "ichido_llm_unusable_answers_total";
const FALLBACKS: &str = "ichido_llm_fallbacks_total";
const BILLED_TWICE: &str = "ichido_llm_possibly_billed_twice_total";
/// The name of the gauge for [`Counts::retry_ratio`].
pub const RETRY_RATIO: &str = "ichido_llm_retry_ratio";

/// Counts of a run or of a judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Questions that had to be asked, each counted once.
    pub missing: u64,
    /// Questions that already had an answer.
    pub known: u64,
    /// Questions that were answered.
    pub answered: u64,
    /// Questions that this run gave up on.
    pub fallbacks: u64,
    /// Calls made.
    pub calls: u64,
    /// Calls in flight.
    pub in_flight: u64,
    /// Calls made because an earlier one for the same question failed.
    pub retries: u64,
    /// Calls that the model throttled.
    pub throttled: u64,
    /// Answers that were not in the requested form.
    pub unusable: u64,
    /// Of these, answers that ran out of their tokens.
    pub cut_off: u64,
    /// Answers that had to be extracted from surrounding text.
    pub repaired: u64,
    /// Calls whose outcome is unknown: they may have been billed, and their question is asked again.
    pub lost: u64,
    /// Tokens of prompts, as the provider counts them.
    pub tokens_in: u64,
    /// Tokens of answers, as the provider counts them.
    pub tokens_out: u64,
    /// Total duration of all answered calls.
    pub answering: Duration,
}

impl Counts {
    /// Returns the mean duration of an answered call; `None` before the first.
    pub fn latency(&self) -> Option<Duration> {
        let answers = u32::try_from(self.answered.saturating_add(self.unusable)).unwrap_or(u32::MAX);
        self.answering.checked_div(answers)
    }

    /// Returns the share of the calls that were retries, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "counts of calls are far below 2^52")]
    pub fn retry_ratio(&self) -> f64 {
        self.retries as f64 / self.calls.max(1) as f64
    }

    /// Returns the totals that are exported as counters, by the names of their metrics.
    pub const fn totals(&self) -> [(&'static str, u64); 6] {
        [
            (CALLS, self.calls),
            (RETRIES, self.retries),
            (THROTTLED, self.throttled),
            (UNUSABLE, self.unusable),
            (FALLBACKS, self.fallbacks),
            (BILLED_TWICE, self.lost),
        ]
    }

    /// Returns the difference to earlier counts.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            missing: self.missing - before.missing,
            known: self.known - before.known,
            answered: self.answered - before.answered,
            fallbacks: self.fallbacks - before.fallbacks,
            calls: self.calls - before.calls,
            in_flight: self.in_flight,
            retries: self.retries - before.retries,
            throttled: self.throttled - before.throttled,
            unusable: self.unusable - before.unusable,
            cut_off: self.cut_off - before.cut_off,
            repaired: self.repaired - before.repaired,
            lost: self.lost - before.lost,
            tokens_in: self.tokens_in - before.tokens_in,
            tokens_out: self.tokens_out - before.tokens_out,
            answering: self.answering.saturating_sub(before.answering),
        }
    }
}

/// Counts the calls to one model, for the run's report, for metrics, and for the series of a store.
pub struct CallMetrics {
    model: String,
    /// Its counters; a worker or a run flushes them.
    store: Option<Store>,
    totals: Mutex<Counts>,
    calls: Counter,
    retries: Counter,
    throttled: Counter,
    unusable: Counter,
    fallbacks: Counter,
    billed_twice: Counter,
    retry_ratio: Gauge,
}

/// Describes the metrics of calls to models; call it once the recorder is installed.
pub fn describe_metrics() {
    for (name, what) in [
        (CALLS, "Calls made to a model"),
        (RETRIES, "Calls made because an earlier one for the same question failed"),
        (THROTTLED, "Calls that a model throttled"),
        (UNUSABLE, "Answers of a model that did not have the requested form"),
        (FALLBACKS, "Questions that were abandoned without an answer"),
        (BILLED_TWICE, "Calls with unknown outcome, whose question may be billed twice"),
    ] {
        describe_counter!(name, what);
    }
    describe_gauge!(
        RETRY_RATIO,
        "Share of the calls to a model, since the process started, that were retries"
    );
}

impl CallMetrics {
    /// Exports the counters of a model, from 0; create it once the recorder is installed.
    ///
    /// With a store, the calls are counted in its series too.
    pub fn new(model: &str, store: Option<&Store>) -> Self {
        let counter = |name: &'static str| counter!(name, "model" => model.to_owned());
        Self {
            model: model.to_owned(),
            store: store.cloned(),
            totals: Mutex::default(),
            calls: counter(CALLS),
            retries: counter(RETRIES),
            throttled: counter(THROTTLED),
            unusable: counter(UNUSABLE),
            fallbacks: counter(FALLBACKS),
            billed_twice: counter(BILLED_TWICE),
            retry_ratio: gauge!(RETRY_RATIO, "model" => model.to_owned()),
        }
    }

    /// Adds the counts so far to the series of the store.
    pub(super) async fn flush(&self) {
        let Some(store) = &self.store else { return };
        if let Err(error) = store.series().flush().await {
            tracing::warn!(error = error.with_causes(), "failed to flush counters");
        }
    }

    fn in_series(&self, count: impl FnOnce(&Counters, &str)) {
        if let Some(store) = &self.store {
            count(store.counters(), &self.model);
        }
    }

    fn totals(&self) -> MutexGuard<'_, Counts> {
        lock(&self.totals)
    }

    /// Makes one call, and counts it, whether the model throttled it, and whether it may be billed without an answer.
    ///
    /// A call that is dropped before its end may be billed.
    pub async fn ask(
        &self,
        model: &dyn Model,
        endpoint: usize,
        prompt: &Prompt,
        is_first: bool,
    ) -> CallReport {
        self.call(is_first);
        let mut unresolved = BillingGuard(Some(self));
        let report = model.ask(endpoint, prompt).await;
        unresolved.0 = None;
        self.ended();
        if let Err(error) = &report.outcome {
            if error.verdict.code == Some(ErrorCode::RateLimited) {
                self.throttled();
            }
            self.lost(u32::from(error.may_be_billed()));
        }
        report
    }

    pub(super) fn batch(&self, missing: usize, known: usize) {
        let mut totals = self.totals();
        totals.missing += missing as u64;
        totals.known += known as u64;
    }

    pub(super) fn call(&self, is_first: bool) {
        let mut totals = self.totals();
        totals.calls += 1;
        totals.in_flight += 1;
        totals.retries += u64::from(!is_first);
        self.calls.increment(1);
        self.retries.increment(u64::from(!is_first));
        self.retry_ratio.set(totals.retry_ratio());
        self.in_series(|counters, model| counters.model_called(model, !is_first));
    }

    /// Records that a call has ended, whatever its outcome.
    pub(super) fn ended(&self) {
        self.totals().in_flight -= 1;
    }

    pub(crate) fn replied(&self, took: Duration, usage: Option<Usage>) {
        let mut totals = self.totals();
        totals.answering = totals.answering.saturating_add(took);
        let usage = usage.unwrap_or_default();
        totals.tokens_in = totals.tokens_in.saturating_add(usage.input);
        totals.tokens_out = totals.tokens_out.saturating_add(usage.output);
        self.in_series(|counters, model| counters.model_replied(model, usage.input, usage.output));
    }

    pub(super) fn answered(&self, was_repaired: bool) {
        let mut totals = self.totals();
        totals.answered += 1;
        totals.repaired += u64::from(was_repaired);
    }

    /// Counts an answer that does not have the requested form.
    pub fn unusable(&self) {
        self.totals().unusable += 1;
        self.unusable.increment(1);
    }

    /// Counts an unusable answer that ran out of its tokens.
    pub(super) fn cut_off(&self) {
        self.totals().cut_off += 1;
    }

    pub(super) fn throttled(&self) {
        self.totals().throttled += 1;
        self.throttled.increment(1);
        self.in_series(Counters::model_throttled);
    }

    pub(crate) fn lost(&self, count: u32) {
        self.totals().lost += u64::from(count);
        self.billed_twice.increment(u64::from(count));
        self.in_series(|counters, model| counters.model_billed_twice(model, u64::from(count)));
    }

    /// Counts a question that is abandoned without an answer.
    pub fn fallback(&self) {
        self.totals().fallbacks += 1;
        self.fallbacks.increment(1);
    }

    pub(super) fn counts(&self) -> Counts {
        *self.totals()
    }
}

/// Guards a call in flight: dropped before its end, the call may be billed, and its question is asked again.
struct BillingGuard<'a>(Option<&'a CallMetrics>);

impl Drop for BillingGuard<'_> {
    fn drop(&mut self) {
        if let Some(metrics) = self.0 {
            metrics.ended();
            metrics.lost(1);
        }
    }
}

ichido_core::debug_only! {
    CallMetrics as call_metrics { totals: call_metrics.counts() }
}
