//! The description of the API (`OpenAPI` 3.1), made from the routes themselves.
//!
//! Guarantee: every route is in it, and nothing else; each operation has a name of its own, and says how it refuses.

use std::sync::Arc;

use axum::routing::{MethodRouter, get};
use http::StatusCode;
use utoipa::OpenApi as _;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder, ServerBuilder};

use super::answer::with_type;
use super::api::{Api, is_public};
use super::show::ProblemDetails;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Ichido",
        description = "State-changing work that happens once in effect. Every error is a problem (RFC 9457) with a code that has a page in docs/errors.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    components(schemas(ProblemDetails)),
    security(("bearer" = []), ())
)]
struct Description;

/// What every operation that is not public may answer, unless it says otherwise itself.
const REFUSALS: [(&str, &str); 2] = [
    ("4XX", "It was refused, and nothing was changed; `code` says why, and has a page in docs/errors"),
    ("503", "It cannot be answered now; ask again after `Retry-After`"),
];

/// The description without its routes.
pub(super) fn head() -> OpenApi {
    let mut head = Description::openapi();
    head.servers = Some(vec![ServerBuilder::new().url("/").build()]);
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    head.components.get_or_insert_with(Default::default).add_security_scheme("bearer", bearer);
    head
}

/// The page that shows a description.
pub(super) fn page(description: OpenApi) -> MethodRouter<Arc<Api>> {
    let text = text(description);
    get(async move || with_type(StatusCode::OK, "application/json", text))
}

/// A description, as it is checked in.
fn text(mut description: OpenApi) -> String {
    let paths = description.paths.paths.iter_mut();
    for (_, item) in paths.filter(|(path, _)| !is_public(path)) {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch];
        operations.into_iter().flatten().for_each(add_refusals);
    }
    let text = description.to_pretty_json();
    let text =
        text.unwrap_or_else(|_| unreachable!("the description has names for keys, and is written to memory"));
    format!("{text}\n")
}

fn add_refusals(operation: &mut Operation) {
    for (status, means) in REFUSALS {
        let refusal = || RefOr::T(refusal(means));
        operation.responses.responses.entry(status.to_owned()).or_insert_with(refusal);
    }
}

fn refusal(means: &str) -> Response {
    let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("ProblemDetails"))).build();
    ResponseBuilder::new().description(means).content("application/problem+json", problem).build()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::api::served;
    use super::*;

    #[test]
    fn the_description_that_is_checked_in_is_that_of_the_code() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        if std::env::var_os("ICHIDO_BLESS").is_some() {
            std::fs::write(&file, text(served().into_openapi())).expect("it can be written");
        }
        let kept = std::fs::read_to_string(&file).expect("docs/openapi.json is there");
        assert!(
            kept == text(served().into_openapi()),
            "docs/openapi.json is out of date; write it by ICHIDO_BLESS=1 cargo test -p ichido-cli openapi"
        );
    }
}
