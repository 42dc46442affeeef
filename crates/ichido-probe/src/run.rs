//! Takes the steps of the rules, within bounds, and records what came back.

use std::pin::Pin;
use std::process::Stdio;
use std::time::Duration;

use ichido_core::ledger::Profile;
use ichido_core::time::Timestamp;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};

use crate::exchange::{EffectCount, Exchange, ProbeRequest, Received, Step};
use crate::kit;
use crate::report::{Report, RuleFinding};
use crate::rules::{ProbeRule, RulePlan, Subject, judge, plan, rules};
use crate::seen::{Verdict, is_in_flight};
use crate::sender::ProbeSender;
use crate::target::{Counter, Target};

/// How long after a slow request the next step is taken, so that the slow one is in flight.
const IN_FLIGHT_BY_THEN: Duration = Duration::from_millis(300);
/// How long a request in flight is given before it is sent again.
const POLL_EVERY: Duration = Duration::from_millis(250);
/// How often it is sent again.
const MAX_POLLS: usize = 60;

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
    sender: ProbeSender,
    bounds: Bounds,
    deadline: Instant,
    sent: usize,
    marker: String,
    has_run_command: bool,
}

/// Tests a target, one rule after the other.
///
/// `random` names the run; `now` is the time of webhooks' signatures; `progress` gets each rule before its steps.
pub async fn run(
    target: &Target,
    bounds: Bounds,
    random: [u8; 4],
    now: impl Fn() -> Timestamp,
    mut progress: impl FnMut(&'static ProbeRule),
) -> Result<Report, RunError> {
    let sender = ProbeSender::new(&target.url, bounds.may_leave, bounds.timeout).map_err(RunError)?;
    let name = kit::run_name(random);
    let deadline = Instant::now() + bounds.max_duration;
    let mut run =
        Run { target, sender, bounds, deadline, sent: 0, marker: String::new(), has_run_command: false };
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
        requests: run.sent,
    })
}

/// Returns the target's URL without its query, which may hold a secret.
fn shown(target: &Target) -> String {
    target.origin() + target.path.split('?').next().unwrap_or_default()
}

impl Run<'_> {
    async fn take(&mut self, rule: &'static ProbeRule, planned: RulePlan) -> RuleFinding {
        let left = self.bounds.max_requests.saturating_sub(self.sent);
        if left < planned.requests() || self.deadline <= Instant::now() {
            let why = "the bound of the run was reached; raise --max-requests or --max-time";
            return RuleFinding::new(
                rule,
                Verdict::Unverified(why.to_owned()),
                Vec::new(),
                EffectCount::NotCounted,
            );
        }
        self.marker = planned.marker;
        self.has_run_command = false;
        let before = self.count(planned.count.as_ref()).await;
        let mut exchanges = Vec::new();
        let taken = self.steps(planned.steps, &mut exchanges).await;
        let effects = match (before, self.count(planned.count.as_ref()).await) {
            (None, _) | (_, None) => EffectCount::NotCounted,
            (Some(Ok(before)), Some(Ok(after))) => EffectCount::Counted(after - before),
            (Some(Err(why)), _) | (_, Some(Err(why))) => EffectCount::Failed(why),
        };
        let verdict = match taken {
            Ok(()) => judge(rule, self.target.profile, &exchanges, &effects),
            Err(why) => Verdict::Unverified(why),
        };
        RuleFinding::new(rule, verdict, exchanges, effects)
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
                        let received = self.polled(&request).await?;
                        exchanges.push(Exchange { request, received, is_with_previous: false });
                    }
                    Step::Together(requests) => {
                        self.sent += requests.len();
                        exchanges.extend(self.sender.together(&requests).await);
                    }
                    Step::During(request, inner) => {
                        self.sent += 1;
                        let (sender, slow) = (self.sender.clone(), request.clone());
                        let task = tokio::spawn(async move { sender.send(&slow, false).await });
                        sleep(IN_FLIGHT_BY_THEN).await;
                        let mut meanwhile = Vec::new();
                        let taken = self.steps(inner, &mut meanwhile).await;
                        let received = task.await.map_err(|error| error.to_string())?;
                        exchanges.push(Exchange { request, received, is_with_previous: false });
                        exchanges.extend(
                            meanwhile.into_iter().map(|one| Exchange { is_with_previous: true, ..one }),
                        );
                        taken?;
                    }
                    Step::Run(line) => {
                        self.has_run_command = true;
                        self.command(&line).await?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Sends a request, and a polled one again while it is in flight.
    async fn polled(&mut self, request: &ProbeRequest) -> Result<Received, String> {
        let profile: Profile = self.target.profile;
        for _ in 0..MAX_POLLS {
            if self.bounds.max_requests <= self.sent || self.deadline <= Instant::now() {
                return Err("the bound of the run was reached; raise --max-requests or --max-time".to_owned());
            }
            self.sent += 1;
            let received = self.sender.send(request, self.has_run_command).await;
            let is_in_flight = matches!(&received, Received::Response(one) if is_in_flight(profile, one));
            // In some profiles a conflict has the same status, and no later response differs.
            if !request.is_polled || !is_in_flight {
                return Ok(received);
            }
            sleep(POLL_EVERY).await;
        }
        Ok(Received::Nothing(format!("it was in flight {MAX_POLLS} times")))
    }

    /// Returns the counted effects; `None` if there is no counter.
    async fn count(&mut self, request: Option<&ProbeRequest>) -> Option<Result<i64, String>> {
        match (self.target.counter.as_ref()?, request) {
            (Counter::Get { pointer, .. }, Some(request)) => {
                self.sent += 1;
                Some(match self.sender.send(request, self.has_run_command).await {
                    Received::Response(response) if response.is_success() => number(&response.body, pointer),
                    Received::Response(response) => Err(format!("it got {}", response.status)),
                    Received::Nothing(why) | Received::NotConnected(why) => Err(why),
                    Received::Cut => Err("it was cut".to_owned()),
                })
            }
            (Counter::Command(line), _) => Some(self.command(line).await.and_then(|out| {
                out.trim().parse().map_err(|_| format!("the command did not print a number: {}", out.trim()))
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

/// Reads the number at a pointer, or the length of a list.
fn number(body: &[u8], pointer: &str) -> Result<i64, String> {
    let value: Value =
        serde_json::from_slice(body).map_err(|error| format!("its response is not JSON: {error}"))?;
    match value.pointer(pointer) {
        Some(Value::Number(number)) => number.as_i64().ok_or_else(|| format!("{number} is not a count")),
        Some(Value::Array(all)) => i64::try_from(all.len()).map_err(|error| error.to_string()),
        Some(_) => Err(format!("--at {pointer} points to neither a number nor a list")),
        None => Err(format!("--at {pointer} points to nothing in its response")),
    }
}
