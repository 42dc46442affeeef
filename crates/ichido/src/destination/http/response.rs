//! What a response says: about the effect, about our key, and for the audit trail.
//!
//! Guarantee: the destination's own rules come before the core's table, which has the last word on whether a success is
//! ours. A success that the settings cannot be applied to, because its response cannot be read, is not a success.
// Spec: D7 to D9, D18.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use http::StatusCode;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use ichido_core::digest::{BodyRules, Digest};
use ichido_core::json::{Document, JsonValue, Kind, Pointer};
use ichido_core::key::IdempotencyKey;
use ichido_core::time::Timestamp;
use ichido_core::verdict::{
    Advice, AttemptResponse, Echo, Effect, ErrorCode, HttpResponse, RowMatch, Verdict, VerdictRow,
    VerdictTable,
};
use ichido_http::client::{FullResponse, NetworkError};
use ichido_http::url::HttpUrl;
use ichido_store::message::{Note, ReceiverResponse, limits};

use super::super::DeliveryOutcome;

ichido_core::words! {
    /// The meaning of a response, for a destination's own rules.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ResponseMeaning {
        /// Done by this call.
        Sent = "sent",
        /// Done by an earlier call under this key.
        ///
        /// Counts only if the response carries the key.
        Processed = "processed",
        /// An earlier call under this key is still running: retry.
        InProgress = "in_progress",
        /// Too fast, and not done: retry and slow down.
        RateLimited = "rate_limited",
        /// Not done, and worth a retry.
        NotDone = "not_done",
        /// Failed with an unknown effect: retry if that is safe.
        Failed = "failed",
        /// Invalid, and not done: dead.
        BadRequest = "bad_request",
        /// Not allowed, and not done: dead.
        Unauthorized = "unauthorized",
    }
}

impl ResponseMeaning {
    fn row(self) -> VerdictRow {
        let (code, effect, advice) = match self {
            Self::Sent => (None, Effect::Done, Advice::Accept),
            Self::Processed => (Some(ErrorCode::ConflictProcessed), Effect::Done, Advice::AcceptAsProcessed),
            Self::InProgress => (Some(ErrorCode::InProgress), Effect::Unknown, Advice::Retry),
            Self::RateLimited => (Some(ErrorCode::RateLimited), Effect::NotDone, Advice::Retry),
            Self::NotDone => (Some(ErrorCode::Broker5xx), Effect::NotDone, Advice::Retry),
            Self::Failed => (Some(ErrorCode::Broker5xx), Effect::Unknown, Advice::Retry),
            Self::BadRequest => (Some(ErrorCode::BadRequest), Effect::NotDone, Advice::GiveUp),
            Self::Unauthorized => (Some(ErrorCode::Unauthorized), Effect::NotDone, Advice::GiveUp),
        };
        VerdictRow { when: RowMatch::Anything, code, effect, advice }
    }
}

/// The responses that a rule matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResponsePattern {
    pub(super) status: RangeInclusive<u16>,
    /// A pointer into the response's JSON, and the text that must be there.
    pub(super) at: Option<(Pointer, String)>,
}

impl ResponsePattern {
    pub(super) fn matches(&self, status: u16, document: Option<&Document<'_>>) -> bool {
        let is_there = |(pointer, wanted): &(Pointer, String)| {
            document
                .and_then(|document| document.at(pointer))
                .and_then(scalar_text)
                .is_some_and(|text| text == *wanted)
        };
        self.status.contains(&status) && self.at.as_ref().is_none_or(is_there)
    }
}

/// Returns the text of a string, a number as written, `true` or `false`.
fn scalar_text<'a>(value: JsonValue<'_, 'a>) -> Option<Cow<'a, str>> {
    let truth = |truth| if truth { "true" } else { "false" };
    value
        .as_str()
        .or_else(|| value.as_number_text().map(Cow::Borrowed))
        .or_else(|| value.as_bool().map(|is| Cow::Borrowed(truth(is))))
}

/// Reads a destination's responses.
pub(super) struct ResponseReader {
    /// The destination's own rules; the first match wins.
    rules: Vec<(ResponsePattern, VerdictTable)>,
    table: VerdictTable,
    /// Where a response's JSON echoes our key.
    key_at: Pointer,
    /// Where it has the receiver's own id.
    receipt_at: Option<Pointer>,
}

impl ResponseReader {
    pub(super) fn new(
        rules: Vec<(ResponsePattern, ResponseMeaning)>,
        promises_echo: bool,
        key_at: Pointer,
        receipt_at: Option<Pointer>,
    ) -> Self {
        let table = |own: Vec<VerdictRow>| {
            let mut table = VerdictTable::http();
            table.own_rows = own;
            table.expects_echo = promises_echo;
            table
        };
        let rules =
            rules.into_iter().map(|(pattern, meaning)| (pattern, table(vec![meaning.row()]))).collect();
        Self { rules, table: table(Vec::new()), key_at, receipt_at }
    }

    /// Judges an attempt by its result.
    pub(super) fn judge(
        &self,
        key: &IdempotencyKey,
        result: Result<FullResponse, NetworkError>,
        now: Timestamp,
    ) -> DeliveryOutcome {
        let response = match result {
            Ok(response) => response,
            Err(NetworkError { kind, why, .. }) => {
                return DeliveryOutcome::with_reason(
                    self.table.judge(&AttemptResponse::Network(kind), now),
                    why,
                );
            }
        };
        let document = document(&response);
        let own = self.rules.iter().find(|(pattern, _)| pattern.matches(response.status, document.as_ref()));
        let table = own.map_or(&self.table, |(_, table)| table);
        let fields = fields(&response);
        let echo = self.echo(key, &response, document.as_ref());
        let answer = HttpResponse { status: response.status, headers: &fields, body: &response.body, echo };
        let verdict = table.judge(&AttemptResponse::Http(answer), now);
        if document.is_none()
            && let Some(setting) = self.needs_json(verdict, echo, response.status)
        {
            return unreadable(verdict, setting, &response);
        }
        DeliveryOutcome::Judged { verdict, note: self.note(verdict, &response, document.as_ref()) }
    }

    /// Returns whether a response echoes our key, in a header or in its JSON.
    ///
    /// If they differ, it is not ours.
    pub(super) fn echo(
        &self,
        key: &IdempotencyKey,
        response: &FullResponse,
        document: Option<&Document<'_>>,
    ) -> Echo {
        let in_body = document.and_then(|document| document.at(&self.key_at)).map_or(Echo::Absent, |value| {
            match (value.kind(), value.as_str()) {
                (Kind::Null, _) => Echo::Absent,
                (_, Some(text)) if text == key.as_str() => Echo::Same,
                // A value that is not text is not our key either.
                _ => Echo::Other,
            }
        });
        match (Echo::read(key, fields(response)), in_body) {
            (Echo::Other, _) | (_, Echo::Other) => Echo::Other,
            (Echo::Same, _) | (_, Echo::Same) => Echo::Same,
            (Echo::Absent, Echo::Absent) => Echo::Absent,
        }
    }

    /// Returns the setting that a success depends on, if it reads the response's JSON.
    // Spec: D9.
    fn needs_json(&self, verdict: Verdict, echo: Echo, status: u16) -> Option<&'static str> {
        let is_success = match (verdict.advice, verdict.code) {
            (Advice::Accept, _) => true,
            (_, Some(ErrorCode::KeyNotEchoed)) => echo == Echo::Absent,
            _ => false,
        };
        // 204 and 205 have no content.
        if !is_success || !(200..=299).contains(&status) || matches!(status, 204 | 205) {
            return None;
        }
        let mut earlier =
            self.rules.iter().map(|(pattern, _)| pattern).take_while(|it| !it.matches(status, None));
        if self.promises_echo() && echo == Echo::Absent {
            Some("echoes_key")
        } else if self.receipt_at.is_some() {
            Some("receipt_pointer")
        } else {
            earlier.any(|pattern| pattern.status.contains(&status)).then_some("rules")
        }
    }

    /// Returns whether the destination promises to echo our key.
    pub(super) const fn promises_echo(&self) -> bool {
        self.table.expects_echo
    }

    fn note(&self, verdict: Verdict, response: &FullResponse, document: Option<&Document<'_>>) -> Note {
        let evidence = self.evidence(response, document);
        let is_success = verdict.advice == Advice::Accept;
        Note {
            code: verdict.code,
            // The response to a success is not an error, and an error is not a result.
            excerpt: evidence.excerpt.filter(|_| !is_success),
            response: evidence.response.filter(|_| is_success),
            // The result of the earlier call under this key is unknown; the audit trail records `sha256:from-conflict`.
            result_digest: evidence.result_digest.filter(|_| is_success),
            receipt: evidence
                .receipt
                .filter(|_| matches!(verdict.advice, Advice::Accept | Advice::AcceptAsProcessed)),
            ..evidence
        }
    }

    /// Collects everything in a response for the audit trail.
    pub(super) fn evidence(&self, response: &FullResponse, document: Option<&Document<'_>>) -> Note {
        let receipt =
            self.receipt_at.as_ref().and_then(|pointer| document?.at(pointer)).and_then(scalar_text);
        Note {
            status: Some(response.status),
            result_digest: response.is_whole.then(|| digest(response)),
            receipt: receipt.map(Cow::into_owned),
            excerpt: excerpt(response),
            response: kept(response),
            ..Note::default()
        }
    }
}

/// Parses the response as JSON, whatever its media type says.
pub(super) fn document(response: &FullResponse) -> Option<Document<'_>> {
    if !response.is_whole {
        return None;
    }
    Document::parse(&response.body, response.body.len()).ok()
}

/// Judges a success whose response cannot be read: retried if a repetition is safe, otherwise parked.
// Spec: D9.
fn unreadable(success: Verdict, setting: &str, response: &FullResponse) -> DeliveryOutcome {
    let fault = if response.is_whole { "is not valid JSON" } else { "is larger than max_response_bytes" };
    let start = excerpt(response).unwrap_or_default();
    let why = format!("{}: the response {fault}, and {setting} reads it: {start}", response.status);
    let note = Note { status: Some(response.status), excerpt: Some(why), ..Note::default() };
    DeliveryOutcome::judged(success.unreadable(), note)
}

/// Returns the response to keep, unless it is empty. One that was not read to its end has only a size.
///
/// A receiver may encode its response although it was asked not to; a reader must know how.
// Spec: D18.
fn kept(response: &FullResponse) -> Option<ReceiverResponse> {
    let encoding = response.headers.get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    let encoding = encoding.filter(|encoding| !encoding.eq_ignore_ascii_case("identity"));
    let content_type = match encoding {
        Some(encoding) => format!("{}; content-encoding={encoding}", media_type(response)),
        None => media_type(response).to_owned(),
    };
    let (bytes, is_whole) = (response.body.len(), response.is_whole);
    let body = is_whole.then(|| response.body.to_vec());
    (0 < bytes).then_some(ReceiverResponse { content_type, bytes, is_whole, body })
}

fn media_type(response: &FullResponse) -> &str {
    response.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Digests a result: its canonical form if it is JSON, otherwise its bytes.
// Spec: D10.
fn digest(response: &FullResponse) -> Digest {
    let rules = BodyRules { max_bytes: response.body.len(), ..BodyRules::default() };
    Digest::of_body(media_type(response), &response.body, &rules)
        .unwrap_or_else(|_| Digest::of_bytes(&response.body))
}

/// Explains a redirect, which is not followed.
///
/// Of its address, only the host is shown: a path or query may contain a credential.
// Spec: D9.
fn redirect_text(response: &FullResponse, status: StatusCode) -> String {
    let location = response.headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let url = location.and_then(|location| HttpUrl::parse(location).ok());
    let place = url.as_ref().map_or("another path", |url| url.authority.host());
    format!(
        "{status}: the redirect to {place} is not followed; set `url` to the address that handles requests"
    )
}

/// Returns the start of the response as text.
///
/// A failure starts with its status, which readers want first.
fn excerpt(response: &FullResponse) -> Option<String> {
    let start = &response.body[..response.body.len().min(limits::MAX_EXCERPT_BYTES)];
    let body_text = (!start.is_empty()).then(|| String::from_utf8_lossy(start));
    let status = StatusCode::from_u16(response.status).ok().filter(|status| !status.is_success());
    match (status, body_text) {
        (Some(status), _) if status.is_redirection() => Some(redirect_text(response, status)),
        (Some(status), Some(body_text)) => Some(format!("{status}: {body_text}")),
        (Some(status), None) => Some(status.to_string()),
        (None, body_text) => body_text.map(Cow::into_owned),
    }
}

fn fields(response: &FullResponse) -> Vec<(&str, &[u8])> {
    response.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect()
}
