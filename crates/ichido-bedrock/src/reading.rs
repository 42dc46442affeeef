//! Reads a response: an answer, or why there is none.
// SPEC B1.

use aws_sdk_bedrockruntime::config::http::HttpResponse as SdkResponse;
use aws_sdk_bedrockruntime::error::{ProvideErrorMetadata as _, SdkError};
use aws_sdk_bedrockruntime::operation::RequestId as _;
use aws_sdk_bedrockruntime::operation::converse::{ConverseError, ConverseOutput};
use aws_sdk_bedrockruntime::types::{self, ContentBlock, StopReason, TokenUsage};
use ichido_core::time::Timestamp;
use ichido_core::verdict::{
    Advice, AttemptResponse, Echo, Effect, ErrorCode, HttpResponse, Verdict, VerdictTable,
};
use ichido_llm::models::{CallError, FinishReason, Prompt, Reply, Usage};

use crate::call_fault::{self, CallFault};
use crate::words;

/// The header field that names an error.
const ERROR_NAME: &str = "x-amzn-errortype";

/// Returns the model's reply, or an error if it stopped without a usable answer.
pub(crate) fn reply(output: ConverseOutput) -> Result<Reply, CallError> {
    let id = output.request_id().map(str::to_owned);
    let Some(finish_reason) = finish_reason(&output.stop_reason) else {
        let why = format!("the model stopped without a usable answer: {:?}", output.stop_reason.as_str());
        return Err(unusable(with_id(why, id.as_deref())));
    };
    let text = match output.output {
        Some(types::ConverseOutput::Message(message)) => text(message.content),
        _ => return Err(unusable(with_id("the response has no message".to_owned(), id.as_deref()))),
    };
    Ok(Reply { text, finish_reason, id, usage: output.usage.as_ref().map(usage) })
}

/// Maps the stop reason. `None` if the output is broken or the reason is unknown, which proves nothing.
fn finish_reason(reason: &StopReason) -> Option<FinishReason> {
    match reason {
        StopReason::EndTurn | StopReason::StopSequence => Some(FinishReason::Whole),
        StopReason::MaxTokens | StopReason::ModelContextWindowExceeded => Some(FinishReason::CutOff),
        StopReason::ContentFiltered | StopReason::GuardrailIntervened => Some(FinishReason::Declined),
        _ => None,
    }
}

/// Returns the text without the reasoning.
fn text(content: Vec<ContentBlock>) -> String {
    content
        .into_iter()
        .filter_map(|block| if let ContentBlock::Text(text) = block { Some(text) } else { None })
        .collect()
}

fn usage(counted: &TokenUsage) -> Usage {
    // Tokens read from or written to a cache are not included in this input count.
    let cached = [counted.cache_read_input_tokens, counted.cache_write_input_tokens];
    let tokens = |count: i32| u64::try_from(count).unwrap_or(0);
    let input = tokens(counted.input_tokens) + cached.into_iter().flatten().map(tokens).sum::<u64>();
    Usage { input, output: tokens(counted.output_tokens) }
}

/// Returns why there is no answer. Its verdict is never a success.
pub(crate) fn call_error(
    error: &SdkError<ConverseError, SdkResponse>,
    was_sent: bool,
    prompt: &Prompt,
    now: Timestamp,
) -> CallError {
    // The body is in memory only if it was read to its end.
    let whole = error.raw_response().and_then(|raw| Some((raw, raw.body().bytes()?)));
    let Some((raw, body)) = whole else {
        return unanswered(error, was_sent, now);
    };
    match error {
        SdkError::ServiceError(service) if !raw.status().is_success() => {
            refused(service.err(), raw, body, prompt, now)
        }
        // The SDK also reports a service error for a successful response that it cannot read.
        _ => {
            let why = "the response is not from the Converse API; check the endpoint's URL".to_owned();
            let status = Some(raw.status().as_u16());
            CallError { status, ..unusable(with_id(why, error.request_id())) }
        }
    }
}

fn unusable(why: String) -> CallError {
    let verdict = VerdictTable::llm().judge(&AttemptResponse::UnusableAnswer, Timestamp::EPOCH);
    CallError { verdict, status: None, name: None, why }
}

/// Handles a response that refuses the call.
fn refused(
    error: &ConverseError,
    raw: &SdkResponse,
    body: &[u8],
    prompt: &Prompt,
    now: Timestamp,
) -> CallError {
    let status = raw.status().as_u16();
    let message = error.message().unwrap_or("no message");
    let fields: Vec<(&str, &[u8])> =
        raw.headers().iter().map(|(name, value)| (name, value.as_bytes())).collect();
    let answer = HttpResponse { status, headers: &fields, body, echo: Echo::Absent };
    let verdict = if is_of_the_day(error) {
        VerdictTable::llm().judge(&AttemptResponse::Named("ServiceQuotaExceededException"), now)
    } else if let Some(status) = status_of_model(error) {
        // The model's own status replaces the error name, which is the same for all of them.
        let headers: Vec<_> =
            fields.iter().copied().filter(|(name, _)| !name.eq_ignore_ascii_case(ERROR_NAME)).collect();
        let answer = HttpResponse { status, headers: &headers, body: b"", ..answer };
        VerdictTable::llm().judge(&AttemptResponse::Http(answer), now)
    } else {
        VerdictTable::llm().judge(&AttemptResponse::Http(answer), now)
    };
    let name = error.code().map(|name| words::of_provider(name, prompt));
    let said = words::of_provider(message, prompt);
    let why = match &name {
        Some(name) => format!("{name}: {said}"),
        None => format!("status {status}: {said}"),
    };
    CallError { verdict, status: Some(status), name, why: with_id(why, error.meta().request_id()) }
}

/// Returns whether the daily token quota is spent. It is reported as throttling, but no retry within a batch helps.
fn is_of_the_day(error: &ConverseError) -> bool {
    error.is_throttling_exception() && error.message().is_some_and(|message| message.contains("per day"))
}

/// Returns the status of the model itself, if the model failed. A success status is ignored.
fn status_of_model(error: &ConverseError) -> Option<u16> {
    let ConverseError::ModelErrorException(error) = error else {
        return None;
    };
    error
        .original_status_code
        .and_then(|status| u16::try_from(status).ok())
        .filter(|status| (400..600).contains(status))
}

/// Handles a call without a complete response, or one that was not made.
fn unanswered(error: &SdkError<ConverseError, SdkResponse>, was_sent: bool, now: Timestamp) -> CallError {
    let not_done = |code| Verdict::declared(Some(code), Effect::NotDone, Advice::GiveUp, None, None);
    let (verdict, what) = match call_fault::classify(error, was_sent) {
        CallFault::NoKeys => (
            not_done(ErrorCode::Unauthorized),
            "not sent: no AWS credentials found; set them in the environment or in a profile",
        ),
        CallFault::NoRequest => (not_done(ErrorCode::BadRequest), "not sent: the request cannot be built"),
        CallFault::Network(fault) => {
            let what = if fault.may_have_arrived() { "may have been sent" } else { "not sent" };
            (VerdictTable::llm().judge(&AttemptResponse::Network(fault), now), what)
        }
    };
    let why = format!("{what}: {}", words::of_chain(error));
    let status = error.raw_response().map(|raw| raw.status().as_u16());
    CallError { verdict, status, name: None, why: with_id(why, error.request_id()) }
}

/// Appends the request id, for support requests to AWS.
fn with_id(why: String, id: Option<&str>) -> String {
    match id {
        Some(id) => {
            format!("{why} (request {})", id.chars().take(words::MAX_WORDS_CHARS).collect::<String>())
        }
        None => why,
    }
}
