//! Judges the response of an endpoint.
//!
//! Guarantee: the table of models decides the outcome of an attempt. If an endpoint throttles a call without saying for
//! how long, the reset time of its exhausted counter is used.
// SPEC B1.

use http::StatusCode;
use ichido_core::limits::Limits;
use ichido_core::time::Timestamp;
use ichido_core::verdict::{Advice, AttemptResponse, Echo, ErrorCode, HttpResponse, Verdict, VerdictTable};
use ichido_http::client::{FullResponse, NetworkError};
use serde_json::Value;

use super::redact::Redactor;
use crate::models::{CallError, CallReport, FinishReason, Reply};

/// Maximum length of an error name.
const MAX_NAME_BYTES: usize = 64;

pub(super) fn report(
    seen: Result<FullResponse, NetworkError>,
    redactor: &Redactor<'_>,
    read: fn(&Value) -> Option<Reply>,
    now: Timestamp,
) -> CallReport {
    let answered = match seen {
        Ok(answered) => answered,
        Err(NetworkError { kind, why, .. }) => {
            let verdict = VerdictTable::llm().judge(&AttemptResponse::Network(kind), now);
            let call_error = CallError { verdict, status: None, name: None, why };
            return CallReport { outcome: Err(call_error), limits: Limits::default() };
        }
    };
    let fields: Vec<(&str, &[u8])> =
        answered.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let limits = Limits::read(fields.iter().copied(), now);
    let answer =
        HttpResponse { status: answered.status, headers: &fields, body: &answered.body, echo: Echo::Absent };
    let verdict = hinted(VerdictTable::llm().judge(&AttemptResponse::Http(answer), now), &limits, now);
    let outcome = if verdict.advice == Advice::Accept {
        reply(&answered, read).map_err(|why| unusable(answered.status, why, now))
    } else if is_cut_off(&answer) {
        Ok(Reply { text: String::new(), finish_reason: FinishReason::CutOff, id: None, usage: None })
    } else {
        Err(call_error(verdict, &answer, redactor))
    };
    CallReport { outcome, limits }
}

/// Sets the wait: what the endpoint asked for, or else the time until its exhausted counter resets.
fn hinted(mut verdict: Verdict, limits: &Limits, now: Timestamp) -> Verdict {
    if verdict.code == Some(ErrorCode::RateLimited) {
        verdict.hint = verdict.hint.or_else(|| limits.spent_until().map(|reset| reset.since(now)));
    }
    verdict
}

fn reply(answered: &FullResponse, read: fn(&Value) -> Option<Reply>) -> Result<Reply, String> {
    if !answered.is_whole {
        return Err(format!("the response is longer than {} bytes", answered.body.len()));
    }
    let body = serde_json::from_slice(&answered.body).ok();
    body.as_ref().and_then(read).ok_or_else(|| "the response does not have this API's form".to_owned())
}

/// Returns whether a refusal says that the answer ran out of its tokens: OpenAI does so with 400 if all of them went into
/// reasoning.
fn is_cut_off(answer: &HttpResponse<'_>) -> bool {
    const SPENT: &str = "max_tokens or model output limit was reached";
    answer.status == 400 && message(answer.body).is_some_and(|message| message.contains(SPENT))
}

fn unusable(status: u16, why: String, now: Timestamp) -> CallError {
    let verdict = VerdictTable::llm().judge(&AttemptResponse::UnusableAnswer, now);
    CallError { verdict, status: Some(status), name: None, why }
}

fn call_error(verdict: Verdict, answer: &HttpResponse<'_>, redactor: &Redactor<'_>) -> CallError {
    let is_name = |name: &str| {
        name.len() <= MAX_NAME_BYTES
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
    };
    let name = answer
        .error_name()
        .filter(|name| is_name(name) && !redactor.is_leaked_in(name))
        .map(std::borrow::Cow::into_owned);
    let mut why = StatusCode::from_u16(answer.status)
        .map_or_else(|_| answer.status.to_string(), |status| status.to_string());
    // Providers that reject our key tend to show a part of it.
    let words = if answer.status == 401 { None } else { message(answer.body) };
    for part in [name.clone(), words.map(|words| redactor.redacted(&words))].into_iter().flatten() {
        why.push_str(": ");
        why.push_str(&part);
    }
    CallError { verdict, status: Some(answer.status), name, why }
}

/// Returns the provider's error message.
fn message(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let found = ["/error/message", "/message", "/error"]
        .into_iter()
        .find_map(|pointer| body.pointer(pointer)?.as_str());
    found.map(ToOwned::to_owned)
}
