//! One call, from its request to its reply.
//!
//! A call is read and checked, counted, judged by the script, given its time, and answered in the form of its API.

use std::time::Duration;

use http::Method;
use http::request::Parts;
use serde_json::json;

use super::Shared;
use crate::action::{Action, Fault};
use crate::answer::{Answer, judgement};
use crate::api::{Api, Route, route};
use crate::ask::Ask;
use crate::clock;
use crate::pace::RetryAfter;
use crate::play::{Call, Step};
use crate::reply::Reply;
use crate::seen::{CallSeen, End, FormatFault, LastRequest, ms, shown};
use crate::wire::{Read, WireFault, Wrong, fault};
use crate::{anthropic, bedrock, openai};

/// The connection is to end without an answer.
#[derive(Debug, thiserror::Error)]
#[error("dropped, as the script says")]
pub(crate) struct Dropped;

/// Takes a call whose request is read.
pub(crate) async fn take(shared: &Shared, head: &Parts, body: &[u8]) -> Result<Reply, Dropped> {
    let path = head.uri.path();
    let Some(route) = route(path) else {
        let why = "there is no such path";
        not_understood(shared, path, &WireFault { wrong: Wrong::Value, at: "path".into(), why: why.into() });
        return Ok(Reply::json(404, &json!({ "error": { "message": why } })));
    };
    match read(&route, head, body) {
        Ok(ask) => play(shared, &route, head, ask).await,
        Err(fault) => {
            let number = not_understood(shared, path, &fault);
            Ok(match route.api {
                Api::Bedrock => bedrock::refuse(&fault, number),
                Api::Openai => openai::refuse(&fault, number),
                Api::Anthropic => anthropic::refuse(&fault, number),
            })
        }
    }
}

fn read(route: &Route, head: &Parts, body: &[u8]) -> Read<Ask> {
    if head.method != Method::POST {
        return fault(Wrong::Value, "method", format!("{} is not POST", head.method));
    }
    match route.api {
        Api::Bedrock => bedrock::read(&head.headers, route.model.as_deref().unwrap_or_default(), body),
        Api::Openai => openai::read(&head.headers, body),
        Api::Anthropic => anthropic::read(&head.headers, body),
    }
}

fn not_understood(shared: &Shared, path: &str, fault: &WireFault) -> u64 {
    let mut state = shared.lock();
    state.number += 1;
    let (path, at, why) = (path.to_owned(), fault.at.clone(), fault.why.clone());
    state.seen.not_understood(FormatFault { path, at, why });
    state.number
}

/// Does with a well-formed call what the script says.
async fn play(shared: &Shared, route: &Route, head: &Parts, ask: Ask) -> Result<Reply, Dropped> {
    let (item, number, step, came, text) = {
        let mut state = shared.lock();
        // Inside the lock, so that moments are in the order in which calls are judged.
        let came = shared.now();
        state.number += 1;
        let item = ask.item(state.play.marker());
        state.seen.come(&item, last_request(route, head, &ask));
        let (endpoint, tokens) = (route.endpoint.clone(), ask.tokens_reserved());
        let step = state.play.step(&Call { api: route.api, endpoint, item: item.clone(), tokens }, came);
        let text = state.play.answer().map_or_else(|| judgement(&item), str::to_owned);
        (item, state.number, step, came, text)
    };
    if !step.latency.is_zero() {
        tokio::time::sleep(step.latency).await;
    }
    let end = end(&step.action);
    let reply = reply(route.api, &ask, &step, &text, number);
    let ended = shared.now();
    let call = CallSeen { came_ms: ms(came), ended_ms: ms(ended), endpoint: route.endpoint.clone(), end };
    shared.lock().seen.ended(&item, call);
    reply
}

fn last_request(route: &Route, head: &Parts, ask: &Ask) -> LastRequest {
    LastRequest {
        api: route.api,
        endpoint: route.endpoint.clone(),
        model: ask.model.clone(),
        headers: shown(&head.headers),
        tokens_max: ask.tokens_max,
        asked_json: ask.asked_json.clone(),
    }
}

fn end(action: &Action) -> End {
    match action {
        Action::Answer(_) | Action::Say(_) => End::Completed,
        Action::Fail(Fault::Throttle | Fault::ThrottleTokens) => End::Throttled,
        Action::Fail(_) => End::Failed,
        Action::Drop => End::Dropped,
        Action::DropCompleted => End::DroppedCompleted,
    }
}

fn reply(api: Api, ask: &Ask, step: &Step, text: &str, number: u64) -> Result<Reply, Dropped> {
    let answer = match &step.action {
        Action::Answer(shape) => Answer::shaped(text, *shape),
        Action::Say(text) => Answer::whole(text.clone()),
        Action::Fail(fault) => return Ok(dressed(api, step, fail(api, *fault, number))),
        Action::Drop | Action::DropCompleted => return Err(Dropped),
    };
    let reply = match api {
        Api::Bedrock => bedrock::answer(ask, &answer, step.latency, number),
        Api::Openai => openai::answer(ask, &answer, number, clock::now()),
        Api::Anthropic => anthropic::answer(ask, &answer, number),
    };
    Ok(dressed(api, step, reply))
}

fn fail(api: Api, fault: Fault, number: u64) -> Reply {
    match api {
        Api::Bedrock => bedrock::fail(fault, number),
        Api::Openai => openai::fail(fault, number),
        Api::Anthropic => anthropic::fail(fault, number),
    }
}

/// With the headers that tell of limits, and those of the script.
fn dressed(api: Api, step: &Step, reply: Reply) -> Reply {
    let reply = match api {
        Api::Bedrock => reply,
        Api::Openai => openai::counters(reply, &step.counters),
        Api::Anthropic => anthropic::counters(reply, &step.counters, clock::now()),
    };
    let reply = match (api, step.hint) {
        (Api::Bedrock, _) | (_, None) => reply,
        (Api::Openai, Some(wait)) => {
            let wait_ms = wait.as_nanos().div_ceil(1_000_000).to_string();
            reply.with_text("retry-after-ms", &wait_ms).with_text("retry-after", &whole_seconds(wait))
        }
        (Api::Anthropic, Some(wait)) => reply.with_text("retry-after", &whole_seconds(wait)),
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

/// Seconds, rounded up: a client that waits so long is not too early.
fn whole_seconds(wait: Duration) -> String {
    wait.as_nanos().div_ceil(1_000_000_000).to_string()
}
