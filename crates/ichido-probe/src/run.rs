//! Takes the steps of the rules, within bounds, and records what came back.

use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ichido_core::text::bounded;
use ichido_core::time::Timestamp;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};

use crate::exchange::{EffectCount, Exchange, ProbeRequest, Received, Step};
use crate::kit::{self, Kit};
use crate::patience::PatientSender;
use crate::report::{Report, RuleFinding};
use crate::rules::{ProbeRule, RulePlan, Subject, judge, plan, rules};
use crate::seen::{Doubt, Verdict};
use crate::sender::ProbeSender;
use crate::target::{Counter, Target};

/// How long after a slow request the next step is taken, so that the slow one is in flight.
const IN_FLIGHT_BY_THEN: Duration = Duration::from_millis(300);
/// How long the run waits for a target that does not listen yet.
const STARTS_WITHIN: Duration = Duration::from_secs(10);
/// How long an effect that is missing is given before it is counted again.
const COUNT_AGAIN_AFTER: Duration = Duration::from_millis(250);
/// How often it is counted.
const MAX_COUNTS: usize = 8;
/// How often effects that are too many are counted until two counts agree.
const MAX_EXCESS_COUNTS: usize = 3;
/// Why a counter that never rests says nothing.
const MOVING_COUNTER: &str = "the counter rises though the probe sends nothing: it counts the requests of others; count \
    only the effects of {marker}";
/// How much of a command's output is quoted.
const MAX_PRINTED_CHARS: usize = 60;

/// The bounds of a run.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The maximum number of requests.
    pub max_requests: usize,
    /// The maximum duration of the run.
    pub max_duration: Duration,
    /// The timeout of a request and of a command.
    pub timeout: Duration,
    /// Whether it may connect to other machines.
    pub may_leave: bool,
}

/// Why nothing was tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError(pub String);

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RunError {}

/// A run against one target.
struct Run<'a> {
    target: &'a Target,
    sender: PatientSender,
    bounds: Bounds,
    marker: String,
}

/// Tests a target, one rule after the other.
///
/// It first waits until the target listens, and fails if it does not. `random` names the run; `now` is the time of webhooks' signatures; `progress` gets each rule before its steps.
pub async fn run(
    target: &Target,
    bounds: Bounds,
    random: [u8; 4],
    now: impl Fn() -> Timestamp,
    mut progress: impl FnMut(&'static ProbeRule),
) -> Result<Report, RunError> {
    let mut sender = ProbeSender::new(&target.url, bounds.may_leave, bounds.timeout).map_err(RunError)?;
    let name = kit::run_name(random);
    sender.listens(STARTS_WITHIN.min(bounds.timeout)).await.map_err(RunError)?;
    if target.is_http2 || target.url.is_tls {
        let spoken = sender.negotiate_http2().await;
        spoken.or_else(|why| if target.is_http2 { Err(RunError(why)) } else { Ok(()) })?;
    }
    let is_http2 = sender.is_http2();
    let sender = PatientSender {
        sender,
        profile: target.profile,
        sent: Arc::default(),
        max_requests: bounds.max_requests,
        deadline: Instant::now() + bounds.max_duration,
        may_restart: false,
    };
    let mut run = Run { target, sender, bounds, marker: String::new() };
    run.check_counter(&name, now()).await.map_err(RunError)?;
    let mut findings = Vec::new();
    for rule in rules().filter(|rule| (rule.subject == Subject::Webhook) == target.webhook.is_some()) {
        progress(rule);
        findings.push(match plan(rule, target, &name, now()) {
            Ok(planned) => run.take(rule, planned).await,
            Err(verdict) => RuleFinding::new(rule, verdict, Vec::new(), EffectCount::NotCounted),
        });
    }
    Ok(Report {
        findings,
        profile: target.profile,
        method: target.method.clone(),
        url: shown(target),
        run: name,
        is_http2,
        requests: run.sender.sent.load(Ordering::Relaxed),
    })
}

/// Returns the target's URL without its query, which may hold a secret.
fn shown(target: &Target) -> String {
    target.origin() + target.path.split('?').next().unwrap_or_default()
}

impl Run<'_> {
    /// Counts the effects of nothing, so a wrong counter is found before anything is sent.
    async fn check_counter(&mut self, name: &str, now: Timestamp) -> Result<(), String> {
        let kit = Kit::new(self.target, "counter", name, now);
        self.marker = kit.marker();
        match self.count(kit.count().as_ref()).await {
            None | Some(Ok(_)) => Ok(()),
            Some(Err(why)) => {
                Err(format!("the counter failed, so nothing was sent: {why}; check --count and --at"))
            }
        }
    }

    async fn take(&mut self, rule: &'static ProbeRule, planned: RulePlan) -> RuleFinding {
        let unverified =
            |why, exchanges, effects| RuleFinding::new(rule, Verdict::Unverified(why), exchanges, effects);
        if let Err(why) = self.sender.check_bound(planned.requests()) {
            return unverified(why, Vec::new(), EffectCount::NotCounted);
        }
        self.marker = planned.marker;
        self.sender.may_restart = false;
        let before = self.count(planned.count.as_ref()).await;
        let mut exchanges = Vec::new();
        let taken = self.steps(planned.steps, &mut exchanges).await;
        let mut earlier = None;
        for counts in 1.. {
            let effects = match (&before, self.count(planned.count.as_ref()).await) {
                (None, _) | (_, None) => EffectCount::NotCounted,
                (Some(Ok(before)), Some(Ok(after))) => difference(*before, after),
                (Some(Err(why)), _) => EffectCount::Failed(why.clone()),
                (_, Some(Err(why))) => EffectCount::Failed(why),
            };
            if let Err(why) = &taken {
                return unverified(why.clone(), exchanges, effects);
            }
            let (verdict, doubt) = judge(rule, self.target.profile, &exchanges, &effects);
            let is_stable = earlier.as_ref() == Some(&effects);
            match doubt {
                // The counter may be behind, as one that reads a replica is.
                Doubt::Missing if counts < MAX_COUNTS => (),
                // It may count the requests of others, which do not end with ours.
                Doubt::Excess if !is_stable && counts < MAX_EXCESS_COUNTS => (),
                Doubt::Excess if !is_stable => {
                    return unverified(MOVING_COUNTER.to_owned(), exchanges, effects);
                }
                Doubt::None | Doubt::Missing | Doubt::Excess => {
                    return RuleFinding::new(rule, verdict, exchanges, effects);
                }
            }
            earlier = Some(effects);
            sleep(COUNT_AGAIN_AFTER).await;
        }
        unverified("it was not counted".to_owned(), exchanges, EffectCount::NotCounted)
    }

    fn steps<'s>(
        &'s mut self,
        steps: Vec<Step>,
        exchanges: &'s mut Vec<Exchange>,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 's>> {
        Box::pin(async move {
            for step in steps {
                match step {
                    Step::Send(request) => {
                        let (received, earlier) = self.sender.send(&request).await?;
                        exchanges.push(Exchange { request, received, earlier, is_with_previous: false });
                    }
                    Step::Together(requests) => {
                        self.sender.sent.fetch_add(requests.len(), Ordering::Relaxed);
                        exchanges.extend(self.sender.sender.together(&requests).await);
                    }
                    Step::During(request, inner) => {
                        let (sender, slow) = (self.sender.clone(), request.clone());
                        let task = tokio::spawn(async move { sender.send(&slow).await });
                        sleep(IN_FLIGHT_BY_THEN).await;
                        // A request that has its response by then was not slow.
                        let is_in_flight = !task.is_finished();
                        let mut meanwhile = Vec::new();
                        let taken = self.steps(inner, &mut meanwhile).await;
                        let (received, earlier) = task.await.map_err(|error| error.to_string())??;
                        exchanges.push(Exchange { request, received, earlier, is_with_previous: false });
                        let meanwhile = meanwhile.into_iter();
                        exchanges
                            .extend(meanwhile.map(|one| Exchange { is_with_previous: is_in_flight, ..one }));
                        taken?;
                    }
                    Step::Run(line) => {
                        self.sender.may_restart = true;
                        self.command(&line).await?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Returns the counted effects; `None` if there is no counter.
    async fn count(&mut self, request: Option<&ProbeRequest>) -> Option<Result<u64, String>> {
        match (self.target.counter.as_ref()?, request) {
            (Counter::Get { pointer, .. }, Some(request)) => {
                Some(self.sender.send(request).await.and_then(|(received, _)| match received {
                    Received::Response(response) if response.is_success() => number(&response.body, pointer),
                    Received::Response(response) => Err(format!("it got {}", response.status)),
                    Received::Closed(why) | Received::Nothing(why) | Received::NotConnected(why) => Err(why),
                    Received::Cut => Err("it was cut".to_owned()),
                }))
            }
            (Counter::Command(line), _) => Some(self.command(line).await.and_then(|out| {
                let printed = bounded(out.trim(), MAX_PRINTED_CHARS);
                out.trim().parse().map_err(|_| format!("the command did not print a count: {printed}"))
            })),
            (Counter::Get { .. }, None) => None,
        }
    }

    /// Runs a command of the user to its end; returns what it printed.
    async fn command(&self, line: &str) -> Result<String, String> {
        let mut command = tokio::process::Command::new("sh");
        command.args(["-c", line]).env("PROBE_MARKER", &self.marker).stdin(Stdio::null()).kill_on_drop(true);
        let output = timeout_at(Instant::now() + self.bounds.timeout, command.output()).await;
        let output = output.map_err(|_| format!("the command \"{line}\" did not end in time"))?;
        let output = output.map_err(|error| format!("the command \"{line}\" did not start: {error}"))?;
        if !output.status.success() {
            return Err(format!("the command \"{line}\" failed: {}", output.status));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Returns the effects between two readings of the counter.
fn difference(before: u64, after: u64) -> EffectCount {
    after.checked_sub(before).map_or_else(
        || {
            EffectCount::Failed(format!(
                "it fell from {before} to {after}, so something else removes what it counts; count only the effects of \
                 {{marker}}"
            ))
        },
        EffectCount::Counted,
    )
}

/// Reads the number at a pointer, or the length of a list.
fn number(body: &[u8], pointer: &str) -> Result<u64, String> {
    let value: Value =
        serde_json::from_slice(body).map_err(|error| format!("its response is not JSON: {error}"))?;
    match value.pointer(pointer) {
        Some(Value::Number(number)) => number.as_u64().ok_or_else(|| format!("{number} is not a count")),
        Some(Value::Array(all)) => u64::try_from(all.len()).map_err(|error| error.to_string()),
        Some(_) => Err(format!("--at {pointer} points to neither a number nor a list")),
        None => Err(format!("--at {pointer} points to nothing in its response")),
    }
}
