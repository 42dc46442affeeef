//! Batches: NDJSON in, one result per line out.
//!
//! Guarantee: each line succeeds or fails on its own, and results are in the order of the lines. Lines are enqueued while the
//! rest still arrives, so memory is bounded by a chunk and the results, whatever the size of the batch; the number of concurrent
//! batches is bounded too. If the request is cut off, the enqueued lines stay, and sending the whole batch again enqueues nothing
//! twice.
//!
//! A line is an object: `key`, and either `body`, any JSON value, whose exact text is the message's request (of type
//! `application/json` unless `content_type` says otherwise), or `body_base64` with a `content_type`. `priority`, `delay` and
//! `run_at` are the line's schedule.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt as _;
use ichido_core::json::Document;
use ichido_core::key::IdempotencyKey;
use ichido_core::settings::size;
use ichido_http::clock;
use ichido_http::server::permits::Full;
use ichido_store::error::StoreError;
use ichido_store::message::{Enqueued, NewMessage};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, OneOfBuilder, Schema, SchemaType};
use utoipa::openapi::{Ref, RefOr};
use uuid::Uuid;

use super::api::{ApiState, ServedQueue};
use super::arrivals;
use super::caller::ApiCaller;
use super::hops;
use super::messages::{enqueue_result, existing_result, with_media_types};
use super::models::href;
use super::problem::{Code, Problem};
use super::request::{Anyone, AuthorizedRequest, Segment, body_fault, reject_encoded, too_large};
use super::response::{PermittedBody, with_type};
use super::text;
use crate::accept::{ParsedSubmission, Submission};
use crate::limits::{
    LINES_PER_YIELD, MAX_BATCHES, MAX_BATCHES_PER_TOKEN, MAX_CHUNK_BYTES, MAX_CHUNK_LINES, MAX_LINE_BYTES,
    RequestLimits,
};
use crate::schedule::{self, Schedule};

/// The media types of NDJSON.
const TYPES: [&str; 4] =
    ["application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"];

/// When a permit for a batch may be free again.
const BATCH_RETRY_AFTER: Duration = Duration::from_secs(1);

/// The members of a line, besides its schedule.
const MEMBERS: [&str; 4] = ["key", "body", "body_base64", "content_type"];

/// The schema of a line: the key, and a body as JSON or as bytes.
struct BatchLine;

impl utoipa::PartialSchema for BatchLine {
    fn schema() -> RefOr<Schema> {
        let line = || {
            ObjectBuilder::new()
                .property("key", Ref::from_schema_name("IdempotencyKey"))
                .required("key")
                .property("content_type", Ref::from_schema_name("MediaType"))
                .property("priority", Ref::from_schema_name("Priority"))
                .property("delay", Ref::from_schema_name("Delay"))
                .property("run_at", Ref::from_schema_name("Moment"))
                .additional_properties(Some(AdditionalProperties::FreeForm(false)))
        };
        let any = ObjectBuilder::new()
            .schema_type(SchemaType::AnyValue)
            .description(Some("The request as JSON. Its text is sent unchanged."));
        let json = line()
            .property("body", any)
            .required("body")
            .description(Some("JSON. Its media type is `application/json` by default."));
        let bytes = line()
            .property("body_base64", Ref::from_schema_name("Base64"))
            .required("body_base64")
            .required("content_type")
            .description(Some("Bytes, in base64."));
        OneOfBuilder::new().item(json).item(bytes).description(Some("One message of a batch.")).into()
    }
}

impl ToSchema for BatchLine {
    fn name() -> Cow<'static, str> {
        "Line".into()
    }
}

/// The result of one line.
#[derive(Default, Serialize, ToSchema)]
pub(super) struct LineResult {
    /// Number of the line, from 1.
    line: usize,
    /// 201, or the status that a single request would have got.
    status: u16,
    /// The id of the message with this key.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    href: Option<String>,
    /// Whether the message existed before.
    #[serde(skip_serializing_if = "Option::is_none")]
    replayed: Option<bool>,
    /// Why the message was not enqueued, as a problem code.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl LineResult {
    fn new(line: usize, ended: Result<(Uuid, bool), Problem>) -> Self {
        match ended {
            Ok((id, replayed)) => Self {
                line,
                status: StatusCode::CREATED.as_u16(),
                id: Some(id),
                href: Some(href(id)),
                replayed: Some(replayed),
                ..Self::default()
            },
            Err(problem) => Self {
                line,
                status: problem.status.as_u16(),
                code: Some(problem.code.as_str()),
                detail: Some(problem.detail.into_owned()),
                ..Self::default()
            },
        }
    }
}

/// Enqueues a batch of messages.
///
/// The body has one JSON object per line, and the response has one result per line, in the same order, after all lines were read. A refused
/// line does not stop the others. A line can have a `priority`, and a `delay` or `run_at`, as in a single request. If the body is cut off or too large, the last result says so, and the lines after it were not read.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/messages:batch",
    tag = "messages",
    params(
        ("queue" = text::QueueName, Path, description = "The queue", example = "demo"),
        ("Ichido-Identity" = Option<text::IdentityField>, Header, nullable = false, description = "Identity of the messages, unless the token determines it; `local` by default"),
    ),
    request_body(content = BatchLine, content_type = "application/x-ndjson", description = "One object per line"),
    responses(
        (status = 200, description = "One result per line", body = LineResult, content_type = "application/x-ndjson"),
        (status = 429, description = "The token has too many batches in flight; nothing was read"),
        (status = 503, description = "Too many batches are in flight; nothing was read"),
    )
)]
pub(super) async fn enqueue_batch(
    AuthorizedRequest { api, caller, .. }: AuthorizedRequest<Anyone>,
    Segment(queue): Segment,
    request: Request,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let served = api.queue(&queue, &caller)?;
    let identity = caller.identity(&served.name, &head.headers)?;
    reject_encoded(&head.headers)?;
    check_ndjson(&head.headers)?;
    let permit = api.batches.try_take(caller.token).map_err(batch_refused)?;
    let hops = hops::read(&api, &served.name, &head.headers).await?;
    let mut batch = BatchIntake {
        api: &api,
        caller: &caller,
        queue: served,
        identity,
        hops,
        chunk: Vec::new(),
        bytes: 0,
        results: Vec::new(),
    };
    let mut lines = BodyLines::new(body, api.request_limits);
    let failure = loop {
        match lines.next().await {
            Ok(Some(line)) => {
                batch.push(lines.number, &line).await;
                // Refused lines never wait, and would otherwise block this thread for all others.
                if lines.number.is_multiple_of(LINES_PER_YIELD) {
                    tokio::task::yield_now().await;
                }
            }
            Ok(None) => break None,
            Err(problem) => break Some(problem),
        }
    };
    batch.flush().await;
    if let Some(problem) = failure {
        batch.write_result(lines.number + 1, Err(problem));
    }
    // Results stay in memory until the client reads them.
    Ok(with_type(StatusCode::OK, TYPES[0], PermittedBody::body(batch.results, permit)))
}

/// Refuses a batch of which nothing was read.
fn batch_refused(why: Full) -> Problem {
    let (code, detail) = match why {
        Full::All => (Code::BatchesFull, format!("{MAX_BATCHES} batches are in flight, the maximum")),
        Full::Own => (
            Code::TokenBusy,
            format!("{MAX_BATCHES_PER_TOKEN} batches are in flight with this token, the maximum"),
        ),
    };
    Problem::new(code, format!("{detail}; nothing was enqueued; send the same batch again later"))
        .after(BATCH_RETRY_AFTER)
}

fn check_ndjson(headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    if TYPES.iter().any(|known| essence.eq_ignore_ascii_case(known)) {
        return Ok(());
    }
    let detail = "a batch has one JSON object per line; send it with Content-Type: application/x-ndjson";
    Err(Problem::new(Code::MediaTypeUnsupported, detail))
}

/// A batch that is being received.
struct BatchIntake<'a> {
    api: &'a ApiState,
    caller: &'a ApiCaller,
    queue: &'a ServedQueue,
    identity: String,
    /// The hops of the whole batch.
    hops: Option<String>,
    /// The lines that were read and not enqueued yet, with their numbers.
    chunk: Vec<(usize, ParsedLine)>,
    bytes: usize,
    results: Vec<u8>,
}

/// A line that was read.
enum ParsedLine {
    /// It is enqueued with the others.
    New(Box<NewMessage>),
    /// Its result is known already.
    Decided(Result<(Uuid, bool), Problem>),
}

impl BatchIntake<'_> {
    async fn push(&mut self, number: usize, line: &[u8]) {
        let parsed = self.parse_line(line).await.unwrap_or_else(|problem| ParsedLine::Decided(Err(problem)));
        self.bytes += line.len();
        self.chunk.push((number, parsed));
        if MAX_CHUNK_LINES <= self.chunk.len() || MAX_CHUNK_BYTES <= self.bytes {
            self.flush().await;
        }
    }

    async fn parse_line(&self, line: &[u8]) -> Result<ParsedLine, Problem> {
        let submission = self.submission(line)?;
        let ParsedSubmission { message, schema_error } =
            self.api.parsing.parse(self.caller, submission).await?;
        Ok(match schema_error {
            Some(schema_error) => {
                ParsedLine::Decided(existing_result(self.api, &message, &schema_error).await)
            }
            None => ParsedLine::New(Box::new(message)),
        })
    }

    fn submission(&self, line: &[u8]) -> Result<Submission, Problem> {
        let wrong = |detail: String| Problem::new(Code::LineInvalid, detail);
        let unexpected = || {
            wrong("the line is not a message; write {\"key\":\"…\",\"body\":…}, or body_base64 and content_type, and optionally priority, delay or run_at".to_owned())
        };
        // The strict reader comes first: an ambiguous line is not a message.
        let document = Document::parse(line, MAX_LINE_BYTES)
            .map_err(|error| wrong(format!("the line is not valid JSON: {error}")))?;
        let texts: BTreeMap<Cow<'_, str>, &RawValue> =
            serde_json::from_slice(line).map_err(|_| unexpected())?;
        let is_known = |name: &str| MEMBERS.contains(&name) || schedule::MEMBERS.contains(&name);
        if !texts.keys().all(|name| is_known(name)) {
            return Err(unexpected());
        }
        let text = |name: &str| match document.root().get(name) {
            None => Ok(None),
            Some(value) => value.as_str().map(Some).ok_or_else(|| wrong(format!("{name} is not a string"))),
        };
        let key = IdempotencyKey::parse(&text("key")?.ok_or_else(unexpected)?).map_err(Problem::from_key)?;
        let (body, type_default) = match (texts.get("body"), text("body_base64")?) {
            (Some(body), None) => (body.get().as_bytes().to_vec(), Some("application/json")),
            (None, Some(text)) => {
                let bytes = STANDARD.decode(text.as_bytes());
                (bytes.map_err(|_| wrong("body_base64 is not valid base64".to_owned()))?, None)
            }
            (Some(_), Some(_)) => {
                return Err(wrong("the line has both body and body_base64; remove one".to_owned()));
            }
            (None, None) => return Err(unexpected()),
        };
        if self.api.request_limits.max_body_bytes < body.len() {
            return Err(too_large(self.api.request_limits.max_body_bytes));
        }
        let schedule =
            Schedule::from_line(document.root(), clock::now()).map_err(|error| wrong(error.to_string()))?;
        let content_type = text("content_type")?;
        let content_type = content_type.as_deref().or(type_default);
        let content_type = content_type
            .ok_or_else(|| wrong("the line has body_base64 without content_type; add it".to_owned()))?;
        Ok(Submission {
            queue: self.queue.name.clone(),
            identity: self.identity.clone(),
            key,
            content_type: content_type.to_owned(),
            body,
            hops: self.hops.clone(),
            trace: None,
            max_attempts: self.queue.max_attempts,
            schedule,
            intake: self.queue.intake.clone(),
        })
    }

    /// Enqueues the chunk, each line on its own, and writes the results.
    async fn flush(&mut self) {
        self.bytes = 0;
        let mut messages = Vec::new();
        let mut decided = Vec::new();
        let mut permits = Vec::new();
        for (number, parsed) in std::mem::take(&mut self.chunk) {
            let known = match parsed {
                ParsedLine::Decided(known) => Some(known),
                ParsedLine::New(message) => match self.api.admission.admit(self.queue.name.as_str()) {
                    Ok(permit) => {
                        permits.push(permit);
                        messages.push(*message);
                        None
                    }
                    Err(problem) => Some(Err(problem)),
                },
            };
            decided.push((number, known));
        }
        let types: Vec<String> =
            messages.iter().map(|message| message.request.content_type().to_owned()).collect();
        let mut enqueued = self.api.store.messages().enqueue_all(messages).await.into_iter().zip(types);
        drop(permits);
        for (number, known) in decided {
            let ended = match known {
                Some(known) => known,
                None => match enqueued.next() {
                    Some((enqueued, content_type)) => self.line_result(enqueued, &content_type).await,
                    None => unreachable!("every enqueued message has a result"),
                },
            };
            // A line does not carry its client's attempt number.
            arrivals::count(self.queue.name.as_str(), &HeaderMap::new(), ended.as_ref());
            self.write_result(number, ended);
        }
    }

    /// Returns the result of a line that was enqueued.
    async fn line_result(
        &self,
        enqueued: Result<Enqueued, StoreError>,
        content_type: &str,
    ) -> Result<(Uuid, bool), Problem> {
        let first = match &enqueued {
            Err(StoreError::KeyConflict { id }) => Some(*id),
            Ok(_) | Err(_) => None,
        };
        match (enqueue_result(enqueued), first) {
            (Err(conflict), Some(first)) => {
                Err(with_media_types(self.api, conflict, first, content_type).await)
            }
            (result, _) => result,
        }
    }

    fn write_result(&mut self, number: usize, ended: Result<(Uuid, bool), Problem>) {
        let line = serde_json::to_string(&LineResult::new(number, ended)).unwrap_or_else(|_| {
            unreachable!("a result has string keys, and writing to memory does not fail")
        });
        self.results.extend_from_slice(line.as_bytes());
        self.results.push(b'\n');
    }
}

/// The lines of a body, as they arrive.
struct BodyLines {
    body: Body,
    request_limits: RequestLimits,
    buffer: BytesMut,
    /// How much of the buffer was scanned without finding the end of a line.
    scanned: usize,
    read_bytes: usize,
    is_complete: bool,
    /// How many lines were read so far, including empty ones.
    number: usize,
}

impl BodyLines {
    fn new(body: Body, request_limits: RequestLimits) -> Self {
        Self {
            body,
            request_limits,
            buffer: BytesMut::new(),
            scanned: 0,
            read_bytes: 0,
            is_complete: false,
            number: 0,
        }
    }

    /// Returns the next line that is not empty.
    async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            let Some(line) = self.next_raw().await? else { return Ok(None) };
            let most = self.request_limits.max_batch_lines;
            if most < self.number {
                self.number = most;
                return Err(Problem::new(
                    Code::BatchTooLarge,
                    format!(
                        "the batch has more than {most} lines; the rest was not read; send it in another batch"
                    ),
                ));
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
    }

    async fn next_raw(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            let end = self.buffer[self.scanned..].iter().position(|byte| *byte == b'\n');
            if let Some(end) = end {
                let line = self.buffer.split_to(self.scanned + end + 1).freeze();
                self.scanned = 0;
                self.number += 1;
                return Ok(Some(line));
            }
            self.scanned = self.buffer.len();
            if MAX_LINE_BYTES < self.scanned {
                let detail = format!(
                    "the line is longer than {}; the rest was not read",
                    size::format_in_text(MAX_LINE_BYTES)
                );
                return Err(Problem::new(Code::BatchTooLarge, detail));
            }
            if self.is_complete {
                // The last line needs no line break.
                self.scanned = 0;
                let rest = std::mem::take(&mut self.buffer).freeze();
                self.number += usize::from(!rest.is_empty());
                return Ok(Some(rest).filter(|rest| !rest.is_empty()));
            }
            self.read().await?;
        }
    }

    async fn read(&mut self) -> Result<(), Problem> {
        match self.body.frame().await {
            None => self.is_complete = true,
            Some(Ok(frame)) => {
                let data = frame.into_data().unwrap_or_default();
                self.read_bytes += data.len();
                let most = self.request_limits.max_batch_bytes;
                if most < self.read_bytes {
                    let detail = format!(
                        "the batch is larger than {}; the rest was not read; send it in another batch",
                        size::format_in_text(most)
                    );
                    return Err(Problem::new(Code::BatchTooLarge, detail));
                }
                self.buffer.extend_from_slice(&data);
            }
            Some(Err(error)) => {
                let fault = Problem::from_body(body_fault(error.into()));
                let detail = "the batch was cut off here; the results of the lines before are valid; nothing of the rest was done; send the batch again";
                return Err(Problem::new(fault.code, detail));
            }
        }
        Ok(())
    }
}
