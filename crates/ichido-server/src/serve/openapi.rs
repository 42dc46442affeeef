//! The description of the API (`OpenAPI` 3.1), generated from the routes.
//!
//! Guarantee: it contains every route and nothing else; each operation has a name of its own, and says how it refuses.

use std::sync::Arc;

use axum::routing::{MethodRouter, get};
use http::StatusCode;
use utoipa::OpenApi as _;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, OpenApi, Ref, RefOr, Required, ResponseBuilder, Schema, ServerBuilder,
};

use super::api::{ApiState, is_public};
use super::models::ProblemDetails;
use super::operations;
use super::response::with_type;
use super::text;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Ichido",
        description = "Messages with exactly-once effects. Every error is a problem (RFC 9457) whose `type` is the path of a page about it.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    components(schemas(ProblemDetails)),
    security(("bearer" = []), ())
)]
struct Description;

const KEY: &str = "Idempotency-Key";
const OCTETS: &str = "application/octet-stream";
const ACTOR: &str = "Ichido-Actor";
/// Describes a refusal.
const REFUSED: &str = "The request was refused and nothing was changed; `code` says why, and `type` is the path of a page about it";
/// Descriptions of a failed read, change under a key, and other change.
const FAILED_LOOKING: &str = "The server cannot respond now; send the request again after `Retry-After`";
const FAILED_UNDER_KEY: &str = "The outcome may be unknown; send the same request again, with the same key";
const FAILED_ACTING: &str =
    "The outcome may be unknown; check the current state before you send the request again";

/// Returns the description without its routes.
pub(super) fn head() -> OpenApi {
    let mut head = Description::openapi();
    head.servers = Some(vec![ServerBuilder::new().url("/").build()]);
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    let components = head.components.get_or_insert_with(Default::default);
    components.add_security_scheme("bearer", bearer);
    // utoipa does not collect the references of parameters.
    components.schemas.extend(text::schemas());
    head
}

/// Returns the page that shows a description.
pub(super) fn page(description: OpenApi) -> MethodRouter<Arc<ApiState>> {
    let text = text(description);
    get(async move || with_type(StatusCode::OK, "application/json", text))
}

/// Formats a description as it is checked in.
fn text(mut description: OpenApi) -> String {
    for (path, item) in &mut description.paths.paths {
        item.get.iter_mut().for_each(|operation| complete(operation, path, FAILED_LOOKING));
        let changing = [&mut item.put, &mut item.post, &mut item.delete, &mut item.patch];
        for operation in changing.into_iter().flatten() {
            complete(operation, path, FAILED_ACTING);
            // Enqueuing a message is no entry of the audit trail.
            if !path.starts_with("/v1/queues/{queue}/messages") {
                operation.parameters.get_or_insert_default().push(RefOr::T(actor()));
            }
        }
    }
    let schemas = &mut description.components.get_or_insert_default().schemas;
    for (name, keyword, value) in operations::constraints() {
        if let Some(RefOr::T(Schema::Object(object))) = schemas.get_mut(name) {
            object.extensions = Some([(keyword, value)].into_iter().collect());
        }
    }
    let text = description.to_pretty_json();
    let text = text.unwrap_or_else(|_| {
        unreachable!("the description has string keys, and writing to memory does not fail")
    });
    format!("{text}\n")
}

/// Adds what all operations have in common, unless an operation sets it.
///
/// It has the name of its function, the first part of its path as its tag, and may be refused or fail.
fn complete(operation: &mut Operation, path: &str, failed: &str) {
    let words = operation.operation_id.iter().flat_map(|name| name.split('_')).enumerate();
    let name = words.map(|(index, word)| if index == 0 { word.to_owned() } else { capitalized(word) });
    operation.operation_id = Some(name.collect());
    let first = path.trim_start_matches("/v1/").split('/').next().unwrap_or_default();
    operation.tags.get_or_insert_with(|| vec![first.to_owned()]);
    let is_key =
        |parameter: &RefOr<Parameter>| matches!(parameter, RefOr::T(parameter) if parameter.name == KEY);
    let has_key = operation.parameters.iter().flatten().any(is_key);
    let common = [("4XX", REFUSED), ("503", if has_key { FAILED_UNDER_KEY } else { failed })];
    // A message may be empty, and a missing body is an empty one.
    if let Some(RefOr::T(body)) = &mut operation.request_body
        && body.content.contains_key(OCTETS)
    {
        body.required = None;
    }
    let responses = &mut operation.responses.responses;
    for (status, means) in common.into_iter().filter(|_| !is_public(path)) {
        let response = || RefOr::T(ResponseBuilder::new().description(means).build());
        responses.entry(status.to_owned()).or_insert_with(response);
    }
    for (_, response) in responses.iter_mut().filter(|(status, _)| status.starts_with(['4', '5'])) {
        if let RefOr::T(response) = response {
            let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("ProblemDetails"))).build();
            response.content.insert("application/problem+json".to_owned(), RefOr::T(problem));
        }
    }
}

fn actor() -> Parameter {
    let means =
        "Name in the audit trail, of a local user of a server without tokens; a token has its own name";
    ParameterBuilder::new()
        .name(ACTOR)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(means))
        .schema(Some(Ref::from_schema_name("IdentityField")))
        .build()
}

fn capitalized(word: &str) -> String {
    let (first, rest) = word.split_at(1.min(word.len()));
    format!("{}{rest}", first.to_uppercase())
}

#[cfg(test)]
mod tests;
