//! Handles one call, from its request to its response.
//!
//! A call is read and checked, counted, matched by the script, delayed, and answered in the format of its API.

use std::time::Duration;

use http::Method;
use http::request::Parts;
use serde_json::json;

use super::ServerShared;
use crate::action::{ProviderFault, ScriptedAction};
use crate::answer::{PlannedAnswer, judgement};
use crate::api::{Provider, Route, route};
use crate::ask::Ask;
use crate::clock;
use crate::pace::RetryAfter;
use crate::play::{IncomingCall, PlannedStep};
use crate::reply::HttpReply;
use crate::seen::{CallSeen, FormatFault, LastRequest, RequestEnd, ms, shown};
use crate::wire::{WireFault, WireResult, Wrong, fault};
use crate::{anthropic, bedrock, openai};

/// The connection must end without a response.
#[derive(Debug, thiserror::Error)]
#[error("dropped by the script")]
pub(crate) struct Dropped;

/// Handles a call whose request is read.
pub(crate) async fn take(shared: &ServerShared, head: &Parts, body: &[u8]) -> Result<HttpReply, Dropped> {
    let path = head.uri.path();
    let Some(route) = route(path) else {
        let why = "this path does not exist";
        not_understood(shared, path, &WireFault { wrong: Wrong::Value, at: "path".into(), why: why.into() });
        return Ok(HttpReply::json(404, &json!({ "error": { "message": why } })));
    };
    match read(&route, head, body) {
        Ok(ask) => play(shared, &route, head, ask).await,
        Err(fault) => {
            let number = not_understood(shared, path, &fault);
            Ok(match route.api {
                Provider::Bedrock => bedrock::refuse(&fault, number),
                Provider::Openai => openai::refuse(&fault, number),
                Provider::Anthropic => anthropic::refuse(&fault, number),
            })
        }
    }
}

fn read(route: &Route, head: &Parts, body: &[u8]) -> WireResult<Ask> {
    if head.method != Method::POST {
        return fault(Wrong::Value, "method", format!("{} is not POST", head.method));
    }
    match route.api {
        Provider::Bedrock => bedrock::read(&head.headers, route.model.as_deref().unwrap_or_default(), body),
        Provider::Openai => openai::read(&head.headers, body),
        Provider::Anthropic => anthropic::read(&head.headers, body),
    }
}

fn not_understood(shared: &ServerShared, path: &str, fault: &WireFault) -> u64 {
    let mut state = shared.lock();
    state.number += 1;
    let (path, at, why) = (path.to_owned(), fault.at.clone(), fault.why.clone());
    state.seen.not_understood(FormatFault { path, at, why });
    state.number
}

/// Does what the script says with a valid call.
async fn play(shared: &ServerShared, route: &Route, head: &Parts, ask: Ask) -> Result<HttpReply, Dropped> {
    let (item, number, step, arrived, text, reasoning) = {
        let mut state = shared.lock();
        // Inside the lock, so times are in the order in which calls are handled.
        let arrived = shared.now();
        state.number += 1;
        let item = ask.item(state.play.marker());
        state.seen.come(&item, last_request(route, head, &ask));
        let (endpoint, tokens) = (route.endpoint.clone(), ask.tokens_reserved());
        let step =
            state.play.step(&IncomingCall { api: route.api, endpoint, item: item.clone(), tokens }, arrived);
        let text = state.play.answer().map_or_else(|| judgement(&item), str::to_owned);
        let reasoning = state.play.reasoning(ask.is_low_effort);
        (item, state.number, step, arrived, text, reasoning)
    };
    if !step.latency.is_zero() {
        tokio::time::sleep(step.latency).await;
    }
    let end = end(&step.action);
    let reply = reply(route.api, &ask, &step, (&text, reasoning), number);
    let ended = shared.now();
    let call = CallSeen { came_ms: ms(arrived), ended_ms: ms(ended), endpoint: route.endpoint.clone(), end };
    shared.lock().seen.ended(&item, call);
    reply
}

fn last_request(route: &Route, head: &Parts, ask: &Ask) -> LastRequest {
    LastRequest {
        api: route.api,
        endpoint: route.endpoint.clone(),
        model: ask.model.clone(),
        headers: shown(&head.headers),
        max_tokens: ask.max_tokens,
        asked_json: ask.asked_json.clone(),
    }
}

fn end(action: &ScriptedAction) -> RequestEnd {
    match action {
        ScriptedAction::Answer(_) | ScriptedAction::Say(_) => RequestEnd::Completed,
        ScriptedAction::Fail(ProviderFault::Throttle | ProviderFault::ThrottleTokens) => {
            RequestEnd::Throttled
        }
        ScriptedAction::Fail(_) => RequestEnd::Failed,
        ScriptedAction::Drop => RequestEnd::Dropped,
        ScriptedAction::DropCompleted => RequestEnd::DroppedCompleted,
    }
}

fn reply(
    api: Provider,
    ask: &Ask,
    step: &PlannedStep,
    (text, reasoning): (&str, u32),
    number: u64,
) -> Result<HttpReply, Dropped> {
    let answer = match &step.action {
        ScriptedAction::Answer(shape) => PlannedAnswer::shaped(text, *shape),
        ScriptedAction::Say(text) => PlannedAnswer::whole(text.clone()),
        ScriptedAction::Fail(fault) => return Ok(dressed(api, step, fail(api, *fault, number))),
        ScriptedAction::Drop | ScriptedAction::DropCompleted => return Err(Dropped),
    };
    let answer = answer.after_reasoning(reasoning, ask.max_tokens);
    let reply = match api {
        Provider::Bedrock => bedrock::answer(ask, &answer, step.latency, number),
        Provider::Openai => openai::answer(ask, &answer, number, clock::now()),
        Provider::Anthropic => anthropic::answer(ask, &answer, number),
    };
    Ok(dressed(api, step, reply))
}

fn fail(api: Provider, fault: ProviderFault, number: u64) -> HttpReply {
    match api {
        Provider::Bedrock => bedrock::fail(fault, number),
        Provider::Openai => openai::fail(fault, number),
        Provider::Anthropic => anthropic::fail(fault, number),
    }
}

/// Adds the headers about limits, and those of the script.
fn dressed(api: Provider, step: &PlannedStep, reply: HttpReply) -> HttpReply {
    let reply = match api {
        Provider::Bedrock => reply,
        Provider::Openai => openai::counters(reply, &step.counters),
        Provider::Anthropic => anthropic::counters(reply, &step.counters, clock::now()),
    };
    let reply = match (api, step.hint) {
        (Provider::Bedrock, _) | (_, None) => reply,
        (Provider::Openai, Some(wait)) => {
            let wait_ms = wait.as_nanos().div_ceil(1_000_000).to_string();
            reply.with_text("retry-after-ms", &wait_ms).with_text("retry-after", &whole_seconds(wait))
        }
        (Provider::Anthropic, Some(wait)) => reply.with_text("retry-after", &whole_seconds(wait)),
    };
    let reply = match step.retry_after {
        None => reply,
        Some(RetryAfter::Seconds(seconds)) => reply.with_text("retry-after", &seconds.to_string()),
        Some(RetryAfter::Ms(ms)) => reply.with_text("retry-after-ms", &ms.to_string()),
        Some(RetryAfter::DateInSeconds(seconds)) => {
            let then = clock::now() + Duration::from_secs(seconds.into());
            reply.with_text("retry-after", &httpdate::fmt_http_date(then))
        }
    };
    let headers = step.headers.iter().cloned();
    headers.fold(reply, |reply, (name, value)| reply.with(name, value))
}

/// Returns seconds, rounded up: a client that waits this long is not too early.
fn whole_seconds(wait: Duration) -> String {
    wait.as_nanos().div_ceil(1_000_000_000).to_string()
}
