//! Plays a script.
//!
//! Guarantee: each call uses up at most one rule, the first that matches it, and only if the limits accept it. Nothing
//! here reads a clock.

use std::collections::HashMap;
use std::time::Duration;

use http::{HeaderName, HeaderValue};

use crate::action::{AnswerShape, ProviderFault, ScriptedAction};
use crate::api::Provider;
use crate::limiter::{LimitCounter, Limiter};
use crate::pace::{Rate, RetryAfter};
use crate::script::{Script, ScriptRule};

/// A script and its progress.
#[derive(Debug)]
pub(crate) struct Play {
    script: Script,
    /// How often each rule was used.
    used: Vec<Used>,
    /// The state of each limit.
    limiters: Vec<Limiter>,
    calls: u64,
}

#[derive(Debug, Default)]
struct Used {
    times: u32,
    times_by_item: HashMap<String, u32>,
}

/// The properties of a call that a script can match.
#[derive(Debug)]
pub(crate) struct IncomingCall {
    pub(crate) api: Provider,
    pub(crate) endpoint: String,
    pub(crate) item: String,
    /// The tokens it sends, and the maximum it may receive.
    pub(crate) tokens: u32,
}

/// What to do with a call.
#[derive(Debug)]
pub(crate) struct PlannedStep {
    pub(crate) action: ScriptedAction,
    pub(crate) latency: Duration,
    pub(crate) retry_after: Option<RetryAfter>,
    /// How long until a limit would accept the call.
    pub(crate) hint: Option<Duration>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) counters: Vec<LimitCounter>,
}

impl Play {
    pub(crate) fn new(script: Script) -> Self {
        let used = script.rules.iter().map(|_| Used::default()).collect();
        let limiters = script.limits.iter().map(|limit| Limiter::new(limit.rate)).collect();
        Self { script, used, limiters, calls: 0 }
    }

    /// Returns the marker before an item's word.
    pub(crate) fn marker(&self) -> &str {
        &self.script.marker
    }

    /// Returns what the model says without a rule.
    pub(crate) fn answer(&self) -> Option<&str> {
        self.script.answer.as_deref()
    }

    /// Returns how many tokens the model spends on reasoning.
    pub(crate) fn reasoning(&self, is_low: bool) -> u32 {
        if is_low { self.script.reasoning_tokens / 4 } else { self.script.reasoning_tokens }
    }

    /// Decides what to do with this call; `now` is the time since the server's start.
    pub(crate) fn step(&mut self, call: &IncomingCall, now: Duration) -> PlannedStep {
        self.calls += 1;
        let refused = self.admit(call, now);
        let counters = self.counters(call, now);
        if let Err((fault, hint)) = refused {
            let action = ScriptedAction::Fail(fault);
            return PlannedStep { hint, ..PlannedStep::new(action, Duration::ZERO, counters) };
        }
        let rule = self.use_rule(call);
        let action =
            rule.as_ref().map_or(ScriptedAction::Answer(AnswerShape::Whole), |rule| rule.action.clone());
        let usual = self.script.latency.filter(|_| reaches_the_model(&action));
        let latency = rule.as_ref().and_then(|rule| rule.latency).or(usual);
        let latency = latency.map_or(Duration::ZERO, |latency| latency.of_call(self.calls));
        let (retry_after, headers) = rule.map(|rule| (rule.retry_after, rule.headers)).unwrap_or_default();
        PlannedStep { retry_after, headers, ..PlannedStep::new(action, latency, counters) }
    }

    /// Takes the call's part of each limit, or returns the exceeded limit and, if it sends one, the retry hint.
    fn admit(&mut self, call: &IncomingCall, now: Duration) -> Result<(), (ProviderFault, Option<Duration>)> {
        let mut longest = (Duration::ZERO, None);
        for (limit, limiter) in self.script.limits.iter().zip(&mut self.limiters) {
            let wait = limiter.wait(call.tokens, now);
            if is_of(limit.endpoint.as_deref(), &call.endpoint) && longest.0 < wait {
                longest = (wait, Some(limit));
            }
        }
        if let (wait, Some(limit)) = longest {
            let fault = match limit.rate {
                Rate::Bucket { .. } | Rate::Window { .. } => ProviderFault::Throttle,
                Rate::Tokens { .. } => ProviderFault::ThrottleTokens,
            };
            return Err((fault, limit.hint.then_some(wait)));
        }
        for (limit, limiter) in self.script.limits.iter().zip(&mut self.limiters) {
            if is_of(limit.endpoint.as_deref(), &call.endpoint) {
                limiter.take(call.tokens, now);
            }
        }
        Ok(())
    }

    fn counters(&mut self, call: &IncomingCall, now: Duration) -> Vec<LimitCounter> {
        let limits = self.script.limits.iter().zip(&mut self.limiters);
        let of_call = limits.filter(|(limit, _)| is_of(limit.endpoint.as_deref(), &call.endpoint));
        of_call.map(|(_, limiter)| limiter.counter(now)).collect()
    }

    fn use_rule(&mut self, call: &IncomingCall) -> Option<ScriptRule> {
        let mut rules = self.script.rules.iter().zip(&mut self.used);
        let (rule, used) = rules.find(|(rule, used)| matches(rule, call) && used.is_left(rule, call))?;
        used.times += 1;
        *used.times_by_item.entry(call.item.clone()).or_default() += 1;
        Some(rule.clone())
    }
}

impl Used {
    fn is_left(&self, rule: &ScriptRule, call: &IncomingCall) -> bool {
        let times_by_item = self.times_by_item.get(&call.item).copied().unwrap_or_default();
        rule.first.is_none_or(|first| self.times < first)
            && rule.first_per_item.is_none_or(|first| times_by_item < first)
    }
}

impl PlannedStep {
    fn new(action: ScriptedAction, latency: Duration, counters: Vec<LimitCounter>) -> Self {
        Self { action, latency, retry_after: None, hint: None, headers: vec![], counters }
    }
}

fn matches(rule: &ScriptRule, call: &IncomingCall) -> bool {
    is_of(rule.item.as_deref(), &call.item)
        && is_of(rule.endpoint.as_deref(), &call.endpoint)
        && rule.api.is_none_or(|api| api == call.api)
}

fn is_of(asked: Option<&str>, found: &str) -> bool {
    asked.is_none_or(|asked| asked == found)
}

/// Returns whether the call reaches the model, which takes its time.
fn reaches_the_model(action: &ScriptedAction) -> bool {
    match action {
        ScriptedAction::Answer(_) | ScriptedAction::Say(_) | ScriptedAction::DropCompleted => true,
        ScriptedAction::Fail(_) | ScriptedAction::Drop => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(script: &str) -> Play {
        Play::new(Script::parse(script.as_bytes()).unwrap())
    }

    fn call(endpoint: &str, item: &str) -> IncomingCall {
        IncomingCall {
            api: Provider::Openai,
            endpoint: endpoint.to_owned(),
            item: item.to_owned(),
            tokens: 1,
        }
    }

    fn steps(play: &mut Play, items: &[&str]) -> Vec<bool> {
        let is_answered = |item: &&str| {
            matches!(
                play.step(&call("", item), Duration::ZERO).action,
                ScriptedAction::Answer(AnswerShape::Whole)
            )
        };
        items.iter().map(is_answered).collect()
    }

    #[test]
    fn the_first_calls_are_counted_over_all_or_for_each_item() {
        let mut over_all = play(r#"{"rules": [{"do": {"fail": "throttle"}, "first": 2}]}"#);
        assert_eq!(steps(&mut over_all, &["a", "b", "a", "b"]), [false, false, true, true]);
        let mut each = play(r#"{"rules": [{"do": {"fail": "throttle"}, "first_per_item": 1}]}"#);
        assert_eq!(steps(&mut each, &["a", "b", "a", "b"]), [false, false, true, true]);
        assert_eq!(steps(&mut each, &["c", "c"]), [false, true]);
        let mut one = play(r#"{"rules": [{"do": "drop", "item": "b"}]}"#);
        assert_eq!(steps(&mut one, &["a", "b", "b"]), [true, false, false]);
    }

    #[test]
    fn a_rule_that_is_used_up_leaves_the_call_to_the_next_one() {
        let mut play =
            play(r#"{"rules": [{"do": "drop", "first": 1}, {"do": {"fail": "denied"}, "first": 1}]}"#);
        let done: Vec<ScriptedAction> =
            (0..3).map(|_| play.step(&call("", "a"), Duration::ZERO).action).collect();
        let expected = [
            ScriptedAction::Drop,
            ScriptedAction::Fail(ProviderFault::Denied),
            ScriptedAction::Answer(AnswerShape::Whole),
        ];
        assert_eq!(done, expected);
    }

    #[test]
    fn throttled_call_uses_no_rule_and_gets_retry_after() {
        let mut play = play(
            r#"{"limits": [{"endpoint": "/east", "rate": {"window": {"calls": 1, "per_ms": 100}}}],
                "rules": [{"do": "drop", "first": 2}]}"#,
        );
        let at = |ms| Duration::from_millis(ms);
        assert_eq!(play.step(&call("/east", "a"), at(0)).action, ScriptedAction::Drop);
        let refused = play.step(&call("/east", "a"), at(30));
        assert_eq!(
            (refused.action, refused.hint),
            (ScriptedAction::Fail(ProviderFault::Throttle), Some(at(70)))
        );
        assert_eq!(refused.counters[0].remaining, 0);
        let elsewhere = play.step(&call("/west", "a"), at(30));
        assert_eq!((elsewhere.action, elsewhere.counters.len()), (ScriptedAction::Drop, 0));
    }

    #[test]
    fn only_calls_that_reach_the_model_have_its_latency() {
        let mut play = play(
            r#"{"latency": {"fixed_ms": 50}, "rules": [
                {"do": {"fail": "throttle"}, "first": 1},
                {"do": {"fail": "throttle"}, "latency": {"fixed_ms": 7}, "first": 1}]}"#,
        );
        let latencies: Vec<_> =
            (0..3).map(|_| play.step(&call("", "a"), Duration::ZERO).latency.as_millis()).collect();
        assert_eq!(latencies, [0, 7, 50]);
    }
}
