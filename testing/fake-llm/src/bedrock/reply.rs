//! Bedrock's responses.

use std::time::Duration;

use serde_json::{Value, json};

use crate::action::ProviderFault;
use crate::answer::{AnswerEnd, PlannedAnswer};
use crate::ask::Ask;
use crate::reply::{HttpReply, bad_gateway};
use crate::seen::ms;
use crate::wire::{WireFault, Wrong};

/// Builds the response with the model's answer.
pub(crate) fn answer(ask: &Ask, answer: &PlannedAnswer, latency: Duration, number: u64) -> HttpReply {
    let stop = match (answer.stop, &ask.tool) {
        (AnswerEnd::Length, _) => "max_tokens",
        (AnswerEnd::Filtered, _) => "content_filtered",
        (AnswerEnd::Complete, Some(_)) => "tool_use",
        (AnswerEnd::Complete, None) => "end_turn",
    };
    let (tokens_in, tokens_out) = (ask.tokens_in(), answer.tokens());
    let reply = HttpReply::json(
        200,
        &json!({
            "output": { "message": { "role": "assistant", "content": content(ask, answer, number) } },
            "stopReason": stop,
            "usage": {
                "inputTokens": tokens_in,
                "outputTokens": tokens_out,
                "totalTokens": tokens_in.saturating_add(tokens_out),
            },
            "metrics": { "latencyMs": ms(latency) },
        }),
    );
    reply.with_text("x-amzn-requestid", &request_id(number))
}

/// A tool's input is an object. Anything else (truncated, or wrapped in text) is returned as text beside an empty
/// input.
fn content(ask: &Ask, answer: &PlannedAnswer, number: u64) -> Value {
    let text = json!({ "text": answer.text });
    let Some(name) = &ask.tool else { return json!([text]) };
    let input: Option<Value> = serde_json::from_str(&answer.text).ok().filter(Value::is_object);
    let id = format!("tooluse_{number:022}");
    let used = |input| json!({ "toolUse": { "toolUseId": id, "name": name, "input": input } });
    match input {
        Some(input) => json!([used(input)]),
        None => json!([text, used(json!({}))]),
    }
}

/// Builds an error of the provider.
pub(crate) fn fail(fault: ProviderFault, number: u64) -> HttpReply {
    let (status, name, message) = match fault {
        ProviderFault::Throttle => {
            (429, "ThrottlingException", "Too many requests, please wait before trying again.")
        }
        ProviderFault::ThrottleTokens => {
            (429, "ThrottlingException", "Too many tokens, please wait before trying again.")
        }
        ProviderFault::Unavailable => {
            (503, "ServiceUnavailableException", "Bedrock is unable to process your request.")
        }
        ProviderFault::Internal => {
            (500, "InternalServerException", "The system encountered an unexpected error.")
        }
        ProviderFault::TimedOut => {
            (408, "ModelTimeoutException", "Model has timed out in processing the request.")
        }
        ProviderFault::NotReady => (429, "ModelNotReadyException", "Model is not ready for inference."),
        ProviderFault::SpendLimit => {
            (400, "ServiceQuotaExceededException", "Your account has reached its quota.")
        }
        ProviderFault::Denied => (403, "AccessDeniedException", "You don't have access to the model."),
        ProviderFault::Invalid | ProviderFault::OutOfTokens => {
            (400, "ValidationException", "Input is too long for requested model.")
        }
        ProviderFault::NotFound => {
            (404, "ResourceNotFoundException", "Could not resolve the foundation model.")
        }
        ProviderFault::Unknown => (418, "TeapotException", "I am a teapot."),
        ProviderFault::ModelError(status) => {
            let message = "The model returned an error while processing the request.";
            let body = json!({ "message": message, "originalStatusCode": status, "resourceName": "model" });
            return named(424, "ModelErrorException", &body, number);
        }
        // No name is documented for it.
        ProviderFault::Overloaded => return unnamed(529, &json!({ "message": "Overloaded" }), number),
        ProviderFault::BadGateway => return bad_gateway(),
    };
    named(status, name, &json!({ "message": message }), number)
}

/// Builds the error for a request that the provider does not understand.
pub(crate) fn refuse(fault: &WireFault, number: u64) -> HttpReply {
    let (status, name) = match (fault.wrong, fault.at.as_str()) {
        (Wrong::Caller, _) => (403, "InvalidSignatureException"),
        (Wrong::Body, "content-type") => (415, "UnsupportedMediaTypeException"),
        (Wrong::Body | Wrong::Kind, _) => (400, "SerializationException"),
        (Wrong::Missing | Wrong::Unknown | Wrong::Value, _) => (400, "ValidationException"),
    };
    let message = match fault.wrong {
        Wrong::Missing => {
            let constraint = "failed to satisfy constraint: Member must not be null";
            format!("1 validation error detected: Value at '{}' {constraint}", fault.at)
        }
        _ => format!("{}: {}", fault.at, fault.why),
    };
    named(status, name, &json!({ "message": message }), number)
}

/// Puts the name into a header, followed by where it is defined: clients must use the first part.
fn named(status: u16, name: &str, body: &Value, number: u64) -> HttpReply {
    let defined = "http://internal.amazon.com/coral/com.amazon.bedrock/";
    unnamed(status, body, number).with_text("x-amzn-errortype", &format!("{name}:{defined}"))
}

fn unnamed(status: u16, body: &Value, number: u64) -> HttpReply {
    HttpReply::json(status, body).with_text("x-amzn-requestid", &request_id(number))
}

fn request_id(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}
