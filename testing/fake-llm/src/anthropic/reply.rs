//! Anthropic's responses.

use std::time::SystemTime;

use serde_json::{Value, json};

use crate::action::ProviderFault;
use crate::answer::{AnswerEnd, PlannedAnswer};
use crate::ask::Ask;
use crate::clock::rfc_3339;
use crate::limiter::LimitCounter;
use crate::reply::{HttpReply, bad_gateway};
use crate::wire::{WireFault, Wrong};

/// Builds the response with the model's answer.
pub(crate) fn answer(ask: &Ask, answer: &PlannedAnswer, number: u64) -> HttpReply {
    let stop = match (answer.stop, &ask.tool) {
        (AnswerEnd::Length, _) => "max_tokens",
        (AnswerEnd::Filtered, _) => "refusal",
        (AnswerEnd::Complete, Some(_)) => "tool_use",
        (AnswerEnd::Complete, None) => "end_turn",
    };
    let reply = HttpReply::json(
        200,
        &json!({
            "id": format!("msg_{number:024}"),
            "type": "message",
            "role": "assistant",
            "model": ask.model,
            "content": content(ask, answer, number),
            "stop_reason": stop,
            "stop_sequence": null,
            "usage": {
                "input_tokens": ask.tokens_in(),
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": answer.tokens(),
                "service_tier": "standard",
            },
        }),
    );
    reply.with_text("request-id", &request_id(number))
}

/// A tool's input is an object. Anything else (truncated, or wrapped in text) is returned as text beside an empty
/// input.
fn content(ask: &Ask, answer: &PlannedAnswer, number: u64) -> Value {
    let text = json!({ "type": "text", "text": answer.text });
    let Some(name) = &ask.tool else {
        return if answer.text.is_empty() { json!([]) } else { json!([text]) };
    };
    let input: Option<Value> = serde_json::from_str(&answer.text).ok().filter(Value::is_object);
    let id = format!("toolu_{number:024}");
    let used = |input| json!({ "type": "tool_use", "id": id, "name": name, "input": input });
    match input {
        Some(input) => json!([used(input)]),
        None if answer.text.is_empty() => json!([]),
        None => json!([text, used(json!({}))]),
    }
}

/// Builds an error of the provider.
pub(crate) fn fail(fault: ProviderFault, number: u64) -> HttpReply {
    let (status, kind, message) = match fault {
        ProviderFault::Throttle | ProviderFault::ThrottleTokens => {
            (429, "rate_limit_error", "This request would exceed your organization's rate limit")
        }
        ProviderFault::SpendLimit => {
            let details = json!({ "error_code": "enforced_spend_limit_reached" });
            let message = "Your organization has reached its monthly spend limit";
            return error(429, "rate_limit_error", message, Some(details), number);
        }
        ProviderFault::Overloaded => (529, "overloaded_error", "Overloaded"),
        ProviderFault::Unavailable | ProviderFault::NotReady => (503, "api_error", "Service unavailable"),
        ProviderFault::Internal | ProviderFault::ModelError(_) => (500, "api_error", "Internal server error"),
        ProviderFault::TimedOut => (504, "timeout_error", "Request timed out"),
        ProviderFault::Denied => {
            (403, "permission_error", "Your API key does not have permission to use the model")
        }
        ProviderFault::Invalid | ProviderFault::OutOfTokens => {
            (400, "invalid_request_error", "prompt is too long")
        }
        ProviderFault::NotFound => (404, "not_found_error", "There is no such model"),
        ProviderFault::Unknown => (418, "teapot_error", "I am a teapot"),
        ProviderFault::BadGateway => return bad_gateway(),
    };
    error(status, kind, message, None, number)
}

/// Builds the error for a request that the provider does not understand.
pub(crate) fn refuse(fault: &WireFault, number: u64) -> HttpReply {
    let (status, kind) = match fault.wrong {
        Wrong::Caller => (401, "authentication_error"),
        _ => (400, "invalid_request_error"),
    };
    let message = match fault.wrong {
        Wrong::Missing => format!("{}: Field required", fault.at),
        Wrong::Unknown => format!("{}: Extra inputs are not permitted", fault.at),
        _ => format!("{}: {}", fault.at, fault.why),
    };
    error(status, kind, &message, None, number)
}

/// Adds what is left of the limits, as headers.
pub(crate) fn counters(mut reply: HttpReply, counters: &[LimitCounter], now: SystemTime) -> HttpReply {
    for counter in counters {
        let name = |what: &str| format!("anthropic-ratelimit-{}-{what}", counter.of.word());
        reply = reply
            .with_text(&name("limit"), &counter.limit.to_string())
            .with_text(&name("remaining"), &counter.remaining.to_string())
            .with_text(&name("reset"), &rfc_3339(now + counter.reset));
    }
    reply
}

fn error(status: u16, kind: &str, message: &str, details: Option<Value>, number: u64) -> HttpReply {
    let mut error = json!({ "type": kind, "message": message });
    if let Some(details) = details {
        error["details"] = details;
    }
    let id = request_id(number);
    HttpReply::json(status, &json!({ "type": "error", "error": error, "request_id": id }))
        .with_text("request-id", &id)
}

fn request_id(number: u64) -> String {
    format!("req_{number:024}")
}
