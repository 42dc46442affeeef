//! OpenAI's responses.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::action::ProviderFault;
use crate::answer::{AnswerEnd, PlannedAnswer};
use crate::ask::Ask;
use crate::limiter::LimitCounter;
use crate::reply::{HttpReply, bad_gateway};
use crate::wire::{WireFault, Wrong};

/// Builds the response with the model's answer.
pub(crate) fn answer(ask: &Ask, answer: &PlannedAnswer, number: u64, now: SystemTime) -> HttpReply {
    let stop = match (answer.stop, &ask.tool) {
        (AnswerEnd::Length, _) => "length",
        (AnswerEnd::Filtered, _) => "content_filter",
        // A call requested by name ends with `stop`; only one that the model chose ends with `tool_calls`.
        (AnswerEnd::Complete, _) => "stop",
    };
    let (tokens_in, tokens_out) = (ask.tokens_in(), answer.tokens());
    let created = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let reply = HttpReply::json(
        200,
        &json!({
            "id": format!("chatcmpl-{number:024}"),
            "object": "chat.completion",
            "created": created,
            "model": ask.model,
            "choices": [{
                "index": 0,
                "message": message(ask, answer, number),
                "logprobs": null,
                "finish_reason": stop,
            }],
            "usage": {
                "prompt_tokens": tokens_in,
                "completion_tokens": tokens_out,
                "total_tokens": tokens_in.saturating_add(tokens_out),
            },
            "system_fingerprint": "fp_fake",
        }),
    );
    reply.with_text("x-request-id", &request_id(number))
}

fn message(ask: &Ask, answer: &PlannedAnswer, number: u64) -> Value {
    let Some(name) = &ask.tool else {
        return json!({ "role": "assistant", "content": answer.text, "refusal": null, "annotations": [] });
    };
    // Arguments are a string here, so damage to them is passed on unchanged.
    let function = json!({ "name": name, "arguments": answer.text });
    let call = json!({ "id": format!("call_{number:024}"), "type": "function", "function": function });
    json!({ "role": "assistant", "content": null, "refusal": null, "tool_calls": [call] })
}

/// Builds an error of the provider.
pub(crate) fn fail(fault: ProviderFault, number: u64) -> HttpReply {
    let quota = "insufficient_quota";
    let invalid = "invalid_request_error";
    let (status, message, kind, code) = match fault {
        ProviderFault::Throttle => {
            (429, "Rate limit reached for requests", "requests", json!("rate_limit_exceeded"))
        }
        ProviderFault::ThrottleTokens => {
            (429, "Rate limit reached for tokens", "tokens", json!("rate_limit_exceeded"))
        }
        ProviderFault::SpendLimit => (429, "You exceeded your current quota", quota, json!(quota)),
        ProviderFault::Overloaded => (503, "The engine is currently overloaded", "server_error", json!(null)),
        ProviderFault::Unavailable => (503, "Service unavailable", "server_error", json!(null)),
        // As a server that is still loading its model says it: the code is a number.
        ProviderFault::NotReady => (503, "Loading model", "unavailable_error", json!(503)),
        ProviderFault::Internal | ProviderFault::ModelError(_) => {
            (500, "The server had an error", "server_error", json!(null))
        }
        ProviderFault::TimedOut => (408, "Request timed out", "server_error", json!(null)),
        ProviderFault::Denied => {
            (403, "Project has no access to the model", invalid, json!("model_not_found"))
        }
        ProviderFault::Invalid => (400, "The input is too long", invalid, json!("context_length_exceeded")),
        ProviderFault::OutOfTokens => (
            400,
            "Could not finish the message because max_tokens or model output limit was reached.",
            invalid,
            json!(null),
        ),
        ProviderFault::NotFound => (404, "The model does not exist", invalid, json!("model_not_found")),
        ProviderFault::Unknown => (418, "I am a teapot", "teapot", json!("teapot")),
        ProviderFault::BadGateway => return bad_gateway(),
    };
    error(status, message, kind, None, &code, number)
}

/// Builds the error for a request that the provider does not understand.
pub(crate) fn refuse(fault: &WireFault, number: u64) -> HttpReply {
    let location = bracketed(&fault.at);
    let (status, code) = match fault.wrong {
        Wrong::Missing => (400, json!("missing_required_parameter")),
        Wrong::Unknown => (400, json!("unknown_parameter")),
        Wrong::Kind => (400, json!("invalid_type")),
        Wrong::Value => (400, json!("invalid_value")),
        Wrong::Body => (400, json!(null)),
        Wrong::Caller => (401, json!(null)),
    };
    let message = match fault.wrong {
        Wrong::Missing => format!("Missing required parameter: '{location}'."),
        Wrong::Unknown => format!("Unknown parameter: '{location}'."),
        Wrong::Kind | Wrong::Value => format!("Invalid value for '{location}': {}", fault.why),
        Wrong::Body | Wrong::Caller => format!("{location}: {}", fault.why),
    };
    let is_of_body = !matches!(fault.wrong, Wrong::Body | Wrong::Caller);
    error(status, &message, "invalid_request_error", is_of_body.then_some(&location), &code, number)
}

/// Adds what is left of the limits, as headers.
pub(crate) fn counters(mut reply: HttpReply, counters: &[LimitCounter]) -> HttpReply {
    for counter in counters {
        let name = |what: &str| format!("x-ratelimit-{what}-{}", counter.of.word());
        reply = reply
            .with_text(&name("limit"), &counter.limit.to_string())
            .with_text(&name("remaining"), &counter.remaining.to_string())
            .with_text(&name("reset"), &duration(counter.reset));
    }
    reply
}

fn error(
    status: u16,
    message: &str,
    kind: &str,
    param: Option<&String>,
    code: &Value,
    number: u64,
) -> HttpReply {
    let error = json!({ "message": message, "type": kind, "param": param, "code": code });
    HttpReply::json(status, &json!({ "error": error })).with_text("x-request-id", &request_id(number))
}

/// Formats a location as OpenAI does: `messages[0].role`.
fn bracketed(at: &str) -> String {
    let is_index = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    at.split('.').fold(String::new(), |location, part| match (location.is_empty(), is_index(part)) {
        (_, true) => format!("{location}[{part}]"),
        (true, false) => part.to_owned(),
        (false, false) => format!("{location}.{part}"),
    })
}

/// Formats a duration as OpenAI does: `12ms`, `1.5s`, `6m0s`, `1h0m0s`. Rounded up.
fn duration(duration: Duration) -> String {
    let ms = duration.as_nanos().div_ceil(1_000_000);
    let (hours, minutes, rest) = (ms / 3_600_000, ms / 60_000 % 60, ms % 60_000);
    let seconds = match rest % 1000 {
        0 => format!("{}s", rest / 1000),
        part => format!("{}.{}s", rest / 1000, format!("{part:03}").trim_end_matches('0')),
    };
    match (hours, minutes) {
        (0, 0) if rest < 1000 => format!("{rest}ms"),
        (0, 0) => seconds,
        (0, _) => format!("{minutes}m{seconds}"),
        _ => format!("{hours}h{minutes}m{seconds}"),
    }
}

fn request_id(number: u64) -> String {
    format!("req_{number:032}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_openai_writes_them() {
        for (ms, expected) in [
            (0, "0ms"),
            (12, "12ms"),
            (1_000, "1s"),
            (1_500, "1.5s"),
            (360_000, "6m0s"),
            (3_661_020, "1h1m1.02s"),
        ] {
            assert_eq!(duration(Duration::from_millis(ms)), expected);
        }
        assert_eq!(duration(Duration::from_micros(1_001)), "2ms");
    }

    #[test]
    fn locations_are_written_as_openai_writes_them() {
        assert_eq!(bracketed("messages.0.content.12.text"), "messages[0].content[12].text");
    }
}
