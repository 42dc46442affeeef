//! The description of the API, made from the code (`OpenAPI` 3.1).

use axum::response::Response;
use http::StatusCode;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::answer::with_type;
use super::{
    alerts, batch, destinations, events, health, letters, messages, operations, queues, records, replace,
    search, steps,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Ichido",
        description = "State-changing work that happens once in effect. Every error is a problem (RFC 9457) with a code that has a page in docs/errors.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    paths(
        messages::accept,
        batch::accept_batch,
        search::list,
        messages::show,
        messages::events,
        messages::request_bytes,
        steps::requeue,
        steps::cancel,
        steps::discard,
        steps::decide,
        replace::replace,
        letters::list,
        letters::show,
        operations::begin,
        operations::list,
        operations::show,
        operations::stop,
        queues::list,
        queues::pause,
        queues::resume,
        queues::nodes,
        destinations::list,
        destinations::set_pace,
        destinations::resume,
        records::show,
        records::unknown,
        records::decide,
        alerts::list,
        events::listen,
        health::livez,
        health::readyz,
        health::metrics,
    ),
    modifiers(&Bearer),
    security(("bearer" = []), ())
)]
struct Description;

/// Tokens, where there are any.
struct Bearer;

impl Modify for Bearer {
    fn modify(&self, description: &mut utoipa::openapi::OpenApi) {
        let components = description.components.get_or_insert_with(Default::default);
        components.add_security_scheme("bearer", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    }
}

/// The description, as it is checked in.
fn text() -> String {
    let text = Description::openapi().to_pretty_json();
    let text =
        text.unwrap_or_else(|_| unreachable!("the description has names for keys, and is written to memory"));
    format!("{text}\n")
}

pub(super) async fn show() -> Response {
    with_type(StatusCode::OK, "application/json", text())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_description_that_is_checked_in_is_that_of_the_code() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        if std::env::var_os("ICHIDO_BLESS").is_some() {
            std::fs::write(&file, text()).expect("it can be written");
        }
        let kept = std::fs::read_to_string(&file).expect("docs/openapi.json is there");
        assert!(
            kept == text(),
            "docs/openapi.json is out of date; write it by ICHIDO_BLESS=1 cargo test -p ichido-cli openapi"
        );
    }
}
