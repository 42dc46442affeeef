//! Takes the steps of the rules, within bounds, and records what came back.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ichido_core::text::bounded;
use ichido_core::time::Timestamp;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::commands::Commands;
use crate::exchange::{EffectCount, Exchange, ProbeRequest, Received, Step};
use crate::kit::{self, Kit};
use crate::patience::PatientSender;
use crate::report::{Report, RuleFinding};
use crate::rules::{ProbeRule, RulePlan, judge, plan, rules_for};
use crate::secrets::Secrets;
use crate::seen::{Doubt, Verdict};
use crate::sender::ProbeSender;
use crate::target::{Counter, Target};
use crate::transcript::transcript;
use crate::unchecked::Unchecked;

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
/// The option of a command that counts.
const COUNT: &str = "count-command";
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

/// What came of a rule's steps.
struct Taken {
    verdict: Verdict,
    effects: EffectCount,
    /// Whether the steps did not come to their end.
    is_unchecked: bool,
}

impl Taken {
    const fn judged(verdict: Verdict, effects: EffectCount) -> Self {
        Self { verdict, effects, is_unchecked: false }
    }

    const fn unchecked(why: String) -> Self {
        Self { verdict: Verdict::Unverified(why), effects: EffectCount::NotCounted, is_unchecked: true }
    }
}

/// A run against one target.
struct Run<'a> {
    target: &'a Target,
    secrets: Secrets,
    sender: PatientSender,
    bounds: Bounds,
    marker: String,
    commands: Commands,
    /// Whether the rule's steps ran a command, so the target may be away.
    ran_command: bool,
}

/// Tests a target, one rule after the other.
///
/// It first waits until the target listens, and fails if it does not. `random` names the run; `now` is the time of webhooks'
/// signatures; `progress` gets each rule before its steps.
pub async fn run(
    target: &Target,
    bounds: Bounds,
    random: [u8; 4],
    now: impl Fn() -> Timestamp,
    progress: impl FnMut(&'static ProbeRule),
) -> Result<Report, RunError> {
    run_until(target, bounds, random, now, progress, std::future::pending()).await
}

/// Tests a target until `stop`. Then the report has what was found so far, and says what was not checked.
///
/// Commands that stop the target are never left half-way: the target is started again first.
pub async fn run_until(
    target: &Target,
    bounds: Bounds,
    random: [u8; 4],
    now: impl Fn() -> Timestamp,
    mut progress: impl FnMut(&'static ProbeRule),
    stop: impl Future<Output = ()>,
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
    let mut run = Run {
        target,
        secrets: Secrets::of(target),
        sender,
        bounds,
        marker: String::new(),
        commands: Commands::new(target, bounds.timeout),
        ran_command: false,
    };
    run.check_counter(&name, now()).await.map_err(|why| RunError(run.secrets.redacted(&why)))?;
    let (findings, unchecked) = run.rules(&name, now, &mut progress, stop).await;
    Ok(Report {
        findings,
        unchecked,
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

    /// Takes all rules, and returns what was not checked.
    async fn rules(
        &mut self,
        name: &str,
        now: impl Fn() -> Timestamp,
        progress: &mut impl FnMut(&'static ProbeRule),
        stop: impl Future<Output = ()>,
    ) -> (Vec<RuleFinding>, Option<Unchecked>) {
        let mut stop = pin!(stop);
        let (mut findings, mut unchecked) = (Vec::new(), Unchecked::default());
        for rule in rules_for(self.target) {
            let planned = match plan(rule, self.target, name, now()) {
                Ok(planned) => planned,
                Err(verdict) => {
                    findings.push(RuleFinding::new(rule, verdict, Vec::new(), EffectCount::NotCounted));
                    continue;
                }
            };
            if let Some(why) = unchecked.ends_run() {
                let why = format!("not checked: {why}");
                findings.push(RuleFinding::new(
                    rule,
                    Verdict::Unverified(why),
                    Vec::new(),
                    EffectCount::NotCounted,
                ));
                unchecked.rules.push(rule.id);
                continue;
            }
            progress(rule);
            let mut exchanges = Vec::new();
            // A stopped rule is dropped at once; what it has begun to do to the target is not.
            let taken = tokio::select! {
                taken = self.take(rule, &planned, &mut exchanges) => taken,
                () = &mut stop => {
                    unchecked.is_stopped = true;
                    Taken::unchecked("the run was stopped".to_owned())
                }
            };
            let restarted = self.restart(&exchanges).await;
            if taken.is_unchecked {
                unchecked.add(rule.id, taken.verdict.why());
            }
            if let Err(why) = restarted {
                unchecked.target_is_away = Some(why);
            }
            findings.push(self.finding(rule, &planned, taken, exchanges));
        }
        let is_complete = unchecked.rules.is_empty() && unchecked.target_is_away.is_none();
        (findings, (!is_complete).then_some(unchecked))
    }

    /// Makes sure that the target runs again after a rule that may have stopped it.
    async fn restart(&mut self, exchanges: &[Exchange]) -> Result<(), String> {
        let marker = self.marker.clone();
        self.commands.finish(&marker).await?;
        let is_away = exchanges.iter().any(|one| matches!(one.received, Received::NotConnected(_)));
        if std::mem::take(&mut self.ran_command) || is_away {
            self.sender.sender.listens(STARTS_WITHIN.min(self.bounds.timeout)).await?;
        }
        Ok(())
    }

    fn finding(
        &self,
        rule: &'static ProbeRule,
        planned: &RulePlan,
        taken: Taken,
        exchanges: Vec<Exchange>,
    ) -> RuleFinding {
        let verdict = taken.verdict.map(|why| self.secrets.redacted(&why));
        let transcript = transcript(self.target, &self.secrets, planned, &exchanges, &taken.effects);
        RuleFinding { transcript, ..RuleFinding::new(rule, verdict, exchanges, taken.effects) }
    }

    async fn take(
        &mut self,
        rule: &'static ProbeRule,
        planned: &RulePlan,
        exchanges: &mut Vec<Exchange>,
    ) -> Taken {
        if let Err(why) = self.sender.check_bound(planned.requests()) {
            return Taken::unchecked(why);
        }
        self.marker.clone_from(&planned.marker);
        self.sender.may_restart = false;
        let before = self.count(planned.count.as_ref()).await;
        let taken = self.steps(planned.steps.clone(), exchanges).await;
        let mut earlier = None;
        for counts in 1.. {
            let effects = match (&before, self.count(planned.count.as_ref()).await) {
                (None, _) | (_, None) => EffectCount::NotCounted,
                (Some(Ok(before)), Some(Ok(after))) => difference(*before, after),
                (Some(Err(why)), _) => EffectCount::Failed(why.clone()),
                (_, Some(Err(why))) => EffectCount::Failed(why),
            };
            if let Err(why) = &taken {
                return Taken { effects, ..Taken::unchecked(why.clone()) };
            }
            let (verdict, doubt) = judge(rule, self.target.profile, exchanges, &effects);
            let is_stable = earlier.as_ref() == Some(&effects);
            match doubt {
                // The counter may be behind, as one that reads a replica is.
                Doubt::Missing if counts < MAX_COUNTS => (),
                // It may count the requests of others, which do not end with ours.
                Doubt::Excess if !is_stable && counts < MAX_EXCESS_COUNTS => (),
                Doubt::Excess if !is_stable => {
                    return Taken::judged(Verdict::Unverified(MOVING_COUNTER.to_owned()), effects);
                }
                Doubt::None | Doubt::Missing | Doubt::Excess => {
                    return Taken::judged(verdict, effects);
                }
            }
            earlier = Some(effects);
            sleep(COUNT_AGAIN_AFTER).await;
        }
        Taken::unchecked("its effects were not counted".to_owned())
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
                    Step::Run(command, line) => {
                        (self.sender.may_restart, self.ran_command) = (true, true);
                        self.commands.run(command.as_str(), &line, &self.marker).await?;
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
            (Counter::Command(line), _) => {
                Some(self.commands.run(COUNT, line, &self.marker).await.and_then(|out| {
                    let printed = bounded(out.trim(), MAX_PRINTED_CHARS);
                    out.trim().parse().map_err(|_| format!("the command did not print a count: {printed}"))
                }))
            }
            (Counter::Get { .. }, None) => None,
        }
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
