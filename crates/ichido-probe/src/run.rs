//! Takes the steps of the rules, within bounds, and records what came back.

mod control;

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
use crate::kit;
use crate::patience::PatientSender;
use crate::report::{Report, RuleFinding};
use crate::rules::{ProbeRule, RulePlan, judge, plan, rules_for};
use crate::secrets::Secrets;
use crate::seen::{Doubt, Verdict};
use crate::sender::ProbeSender;
use crate::target::{Counter, Target};
use crate::transcript::transcript;
use crate::unchecked::Unchecked;
use control::Later;
pub use control::control;

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
    /// The count before the steps, if they came to their end and their effects were counted.
    before: Option<u64>,
}

impl Taken {
    const fn judged(verdict: Verdict, effects: EffectCount) -> Self {
        Self { verdict, effects, is_unchecked: false, before: None }
    }

    const fn unchecked(why: String) -> Self {
        let verdict = Verdict::Unverified(why);
        Self { verdict, effects: EffectCount::NotCounted, is_unchecked: true, before: None }
    }
}

/// A run against one target.
struct Run<'a> {
    target: &'a Target,
    name: String,
    now: Timestamp,
    secrets: Secrets,
    sender: PatientSender,
    bounds: Bounds,
    marker: String,
    commands: Commands,
    /// Whether the rule's steps ran a command, so the target may be away.
    ran_command: bool,
    /// How many controls of its own it has sent.
    controls: usize,
    /// The count after the last of them.
    counted: Option<u64>,
    /// Whether the counter does not see an accepted request.
    is_blind: bool,
}

/// What a run found.
struct Findings {
    all: Vec<RuleFinding>,
    unchecked: Option<Unchecked>,
    not_tested: Option<String>,
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
        lost: Arc::default(),
        may_restart: false,
    };
    let mut run = Run {
        target,
        name,
        now: now(),
        secrets: Secrets::of(target),
        sender,
        bounds,
        marker: String::new(),
        commands: Commands::new(target, bounds.timeout),
        ran_command: false,
        controls: 0,
        counted: None,
        is_blind: false,
    };
    run.check_counter().await.map_err(|why| RunError(run.secrets.redacted(&why)))?;
    let Findings { all, unchecked, not_tested } = run.rules(now, &mut progress, stop).await;
    Ok(Report {
        findings: all,
        unchecked,
        not_tested,
        profile: target.profile,
        method: target.method.clone(),
        url: shown(target),
        run: run.name,
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
    async fn check_counter(&mut self) -> Result<(), String> {
        let planned = control(self.target, &self.name, self.now);
        self.marker = planned.marker;
        match self.count(planned.count.as_ref()).await {
            None | Some(Ok(_)) => Ok(()),
            Some(Err(why)) => {
                Err(format!("the counter failed, so nothing was sent: {why}; check --count and --at"))
            }
        }
    }

    /// Takes all rules, if the target can be tested, and returns what was not checked.
    async fn rules(
        &mut self,
        now: impl Fn() -> Timestamp,
        progress: &mut impl FnMut(&'static ProbeRule),
        stop: impl Future<Output = ()>,
    ) -> Findings {
        let mut stop = pin!(stop);
        let (mut findings, mut unchecked, mut later) = (Vec::new(), Unchecked::default(), Vec::new());
        let untestable = tokio::select! {
            untestable = self.try_target() => untestable,
            () = &mut stop => {
                unchecked.is_stopped = true;
                None
            }
        };
        if let Some(verdict) = untestable {
            let none = |rule| RuleFinding::new(rule, verdict.clone(), Vec::new(), EffectCount::NotCounted);
            let all = rules_for(self.target).map(none).collect();
            return Findings { all, unchecked: None, not_tested: Some(verdict.why().to_owned()) };
        }
        for rule in rules_for(self.target) {
            self.now = now();
            let planned = match plan(rule, self.target, &self.name, self.now) {
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
            let before = taken.before;
            findings.push(self.finding(rule, &planned, taken, exchanges));
            later.extend(before.map(|before| Later { planned, index: findings.len() - 1, before }));
        }
        if self.is_blind {
            self.doubt_all(&mut findings);
        } else if unchecked.ends_run().is_none() {
            // A stopped one is not delayed: its rules are not checked.
            tokio::select! {
                () = self.count_later(later, &mut findings) => (),
                () = &mut stop => (),
            }
        }
        let is_complete = unchecked.rules.is_empty() && unchecked.target_is_away.is_none();
        Findings { all: findings, unchecked: (!is_complete).then_some(unchecked), not_tested: None }
    }

    /// Takes back what was concluded from a counter that turned out to see nothing.
    fn doubt_all(&self, findings: &mut [RuleFinding]) {
        for finding in findings.iter_mut().filter(|finding| finding.rule.counts_effects) {
            if let Verdict::Pass(why) = &finding.verdict {
                finding.verdict =
                    Verdict::Unverified(format!("{why}; the counter failed: it {}", self.blindness()));
            }
        }
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
        let before = if self.is_blind {
            Some(Err(format!("it {}", self.blindness())))
        } else {
            self.count(planned.count.as_ref()).await
        };
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
                Doubt::Missing if matches!(verdict, Verdict::Fail(_)) && !self.still_counts().await => {
                    let effects = EffectCount::Failed(format!("it {}", self.blindness()));
                    let (verdict, _) = judge(rule, self.target.profile, exchanges, &effects);
                    return Taken::judged(verdict, effects);
                }
                Doubt::None | Doubt::Missing | Doubt::Excess => {
                    let before = before.and_then(Result::ok).filter(|_| rule.counts_effects);
                    return Taken { before, ..Taken::judged(verdict, effects) };
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
        Some(found) if pointer.is_empty() => Err(format!("the response is {}", described(found, ""))),
        Some(found) => Err(format!("--at {pointer} points to {}", described(found, pointer))),
        None => Err(format!(
            "--at {pointer} points to nothing in its response, which is {}",
            described(&value, "")
        )),
    }
}

/// Says what is at a pointer instead of a number or a list, and where one may be.
fn described(value: &Value, pointer: &str) -> String {
    let Value::Object(members) = value else { return "neither a number nor a list".to_owned() };
    let names: Vec<&str> = members.keys().map(String::as_str).collect();
    let names = bounded(&names.join(", "), MAX_PRINTED_CHARS);
    let countable = members.iter().find(|(_, value)| value.is_array() || value.is_u64());
    let hint = countable.map_or_else(String::new, |(name, _)| {
        let name = name.replace('~', "~0").replace('/', "~1");
        format!("; try --at {}", bounded(&format!("{pointer}/{name}"), MAX_PRINTED_CHARS))
    });
    if names.is_empty() { "an empty object".to_owned() } else { format!("an object with: {names}{hint}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_to_no_count_names_one() {
        for (body, pointer, expected) in [
            (r#"{"orders":[]}"#, "", "the response is an object with: orders; try --at /orders"),
            (r#"{"d":{"a":"x","n":2}}"#, "/d", "--at /d points to an object with: a, n; try --at /d/n"),
            (r#"{"n":2}"#, "/m", "which is an object with: n; try --at /n"),
            (r#""x""#, "", "the response is neither a number nor a list"),
        ] {
            let error = number(body.as_bytes(), pointer).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(number(b"[1,2]", ""), Ok(2));
    }
}
