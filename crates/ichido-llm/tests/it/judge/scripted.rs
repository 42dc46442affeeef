//! A scripted model in memory that records what it was asked and when.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ichido_core::limits::Limits;
use ichido_core::time::Timestamp;
use ichido_core::verdict::{AttemptResponse, Echo, HttpResponse, NetworkFault, VerdictTable};
use ichido_llm::judge::{Judge, JudgeReport, Outcome, Settings};
use ichido_llm::models::{
    AnswerForm, CallError, CallReport, FinishReason, Model, ModelFuture, Prompt, Reply,
};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

pub(crate) const YES: &str = r#"{"label":"YES"}"#;

#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(crate) struct Label {
    pub(crate) label: String,
}

/// The outcome of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScriptedCall {
    Says(&'static str),
    CutOff(&'static str),
    Declines,
    Named(&'static str),
    Status(u16),
    /// Throttled, with a wait in seconds.
    Wait(&'static str),
    /// Unavailable, with a wait in seconds.
    Unavailable(&'static str),
    Breaks(NetworkFault),
}

/// A recorded call.
#[derive(Clone, Debug)]
pub(crate) struct SeenCall {
    pub(crate) at: Duration,
    pub(crate) user: String,
    pub(crate) endpoint: usize,
    pub(crate) max_tokens: u32,
}

pub(crate) struct Scripted {
    name: &'static str,
    began: Instant,
    endpoints: Vec<String>,
    latency: Duration,
    steps: Mutex<HashMap<String, VecDeque<ScriptedCall>>>,
    otherwise: Box<dyn Fn(&SeenCall) -> ScriptedCall + Send + Sync>,
    seen: Mutex<Vec<SeenCall>>,
    in_flight: AtomicUsize,
    max_in_flight: AtomicUsize,
}

impl Scripted {
    /// Creates a model that says yes to everything, after this latency.
    pub(crate) fn after(latency: Duration) -> Self {
        Self {
            name: "scripted-1",
            began: Instant::now(),
            endpoints: vec!["here".to_owned()],
            latency,
            steps: Mutex::default(),
            otherwise: Box::new(|_| ScriptedCall::Says(YES)),
            seen: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            max_in_flight: AtomicUsize::new(0),
        }
    }

    pub(crate) fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    pub(crate) fn at(self, endpoints: &[&str]) -> Self {
        Self { endpoints: endpoints.iter().map(|name| (*name).to_owned()).collect(), ..self }
    }

    /// Scripts the next calls for an item; later ones are like any other.
    pub(crate) fn first(self, item: &str, steps: &[ScriptedCall]) -> Self {
        self.steps.lock().unwrap().insert(item.to_owned(), steps.iter().copied().collect());
        self
    }

    pub(crate) fn otherwise(self, step: impl Fn(&SeenCall) -> ScriptedCall + Send + Sync + 'static) -> Self {
        Self { otherwise: Box::new(step), ..self }
    }

    pub(crate) fn seen(&self) -> Vec<SeenCall> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns when an item was asked.
    pub(crate) fn moments(&self, item: &str) -> Vec<Duration> {
        self.seen().into_iter().filter(|seen| seen.user == item).map(|seen| seen.at).collect()
    }

    pub(crate) const fn began(&self) -> Instant {
        self.began
    }

    pub(crate) fn max_in_flight(&self) -> usize {
        self.max_in_flight.load(Ordering::Relaxed)
    }

    fn step(&self, seen: &SeenCall) -> ScriptedCall {
        let scripted = self.steps.lock().unwrap().get_mut(&seen.user).and_then(VecDeque::pop_front);
        scripted.unwrap_or_else(|| (self.otherwise)(seen))
    }
}

impl Model for Scripted {
    fn name(&self) -> &'static str {
        self.name
    }

    fn endpoints(&self) -> &[String] {
        &self.endpoints
    }

    fn timeout(&self) -> Duration {
        Duration::from_mins(1)
    }

    fn ask<'a>(&'a self, endpoint: usize, prompt: &'a Prompt) -> ModelFuture<'a> {
        Box::pin(async move {
            let (at, user, max_tokens) = (self.began.elapsed(), prompt.user.clone(), prompt.max_tokens);
            let seen = SeenCall { at, user, endpoint, max_tokens };
            self.seen.lock().unwrap().push(seen.clone());
            let step = self.step(&seen);
            let in_flight = self.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
            self.max_in_flight.fetch_max(in_flight, Ordering::Relaxed);
            tokio::time::sleep(self.latency).await;
            self.in_flight.fetch_sub(1, Ordering::Relaxed);
            report(step)
        })
    }
}

fn report(step: ScriptedCall) -> CallReport {
    let answer = |status, headers| {
        AttemptResponse::Http(HttpResponse { status, headers, body: b"", echo: Echo::Absent })
    };
    let says =
        |text: &str, finish_reason| Ok(Reply { text: text.to_owned(), finish_reason, id: None, usage: None });
    let headers;
    let seen = match step {
        ScriptedCall::Says(text) => return report_of(says(text, FinishReason::Whole)),
        ScriptedCall::CutOff(text) => return report_of(says(text, FinishReason::CutOff)),
        ScriptedCall::Declines => return report_of(says("", FinishReason::Declined)),
        ScriptedCall::Named(name) => AttemptResponse::Named(name),
        ScriptedCall::Status(status) => answer(status, &[]),
        ScriptedCall::Wait(seconds) | ScriptedCall::Unavailable(seconds) => {
            headers = [("retry-after", seconds.as_bytes())];
            answer(if matches!(step, ScriptedCall::Wait(_)) { 429 } else { 503 }, &headers)
        }
        ScriptedCall::Breaks(fault) => AttemptResponse::Network(fault),
    };
    let verdict = VerdictTable::llm().judge(&seen, Timestamp::from_secs(1_800_000_000));
    let status = match seen {
        AttemptResponse::Http(answer) => Some(answer.status),
        _ => None,
    };
    report_of(Err(CallError { verdict, status, name: None, why: "as scripted".to_owned() }))
}

fn report_of(outcome: Result<Reply, CallError>) -> CallReport {
    CallReport { outcome, limits: Limits::default() }
}

pub(crate) fn form() -> AnswerForm {
    let schema = json!({
        "type": "object",
        "properties": { "label": { "enum": ["YES", "NO"] } },
        "required": ["label"],
    });
    AnswerForm::new("label", schema).unwrap()
}

pub(crate) fn prompt(user: &str) -> Prompt {
    Prompt { system: Some("Say yes or no.".to_owned()), user: user.to_owned(), max_tokens: 50, form: None }
}

pub(crate) fn prompts<'a>(users: impl IntoIterator<Item = &'a str>) -> Vec<Prompt> {
    users.into_iter().map(prompt).collect()
}

/// `item 0`, `item 1` …
pub(crate) fn numbered(count: usize) -> Vec<Prompt> {
    (0..count).map(|number| prompt(&format!("item {number}"))).collect()
}

pub(crate) fn judge(model: &Arc<Scripted>, settings: Settings) -> Judge<Label> {
    Judge::new(Arc::clone(model) as Arc<dyn Model>, form(), settings).unwrap()
}

pub(crate) fn parallel(count: u32) -> Settings {
    Settings { parallel: NonZeroU32::new(count).unwrap(), ..Settings::DEFAULT }
}

/// Settings without a wait before a first call.
pub(crate) fn at_once(count: u32) -> Settings {
    Settings { interval: Duration::ZERO, ..parallel(count) }
}

/// Returns a word for the outcome of each item.
pub(crate) fn words(report: &JudgeReport<Label>) -> Vec<&str> {
    let word = |outcome: &'_ Outcome<Label>| match outcome {
        Outcome::Judged(_) => "judged",
        Outcome::Fallback(why) => why.as_str(),
    };
    report.outcomes.iter().map(word).collect()
}
