//! axum support: transaction and claim as handler arguments, and the original path.

use axum::extract::{FromRequestParts, OriginalUri};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{StatusCode, Uri};
use ichido_store::StoreDatabase;

use super::claim::Claim;
use crate::handler_tx::Tx;

/// Returns the URI that the client requested.
///
/// A nested router strips its prefix before the layer sees it.
pub(crate) fn original_uri(parts: &Parts) -> Option<&Uri> {
    parts.extensions.get::<OriginalUri>().map(|original| &original.0)
}

/// The request did not pass a layer that provides this extractor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MissingLayer {
    /// There is no claim.
    #[error("this handler takes a Claim, but no Once layer covers it, or its request had no key")]
    NoClaim,
    /// There is no transaction, or one of another database.
    #[error(
        "this handler takes a Tx, but no Once layer with Effect::Transactional on that database covers it, or \
            its request had no key"
    )]
    NoTransaction,
}

impl IntoResponse for MissingLayer {
    fn into_response(self) -> Response {
        tracing::error!(error = %self, "handler was called without its layer");
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Claim {
    type Rejection = MissingLayer;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, MissingLayer> {
        parts.extensions.get().cloned().ok_or(MissingLayer::NoClaim)
    }
}

impl<S: Send + Sync, DB: StoreDatabase> FromRequestParts<S> for Tx<DB> {
    type Rejection = MissingLayer;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, MissingLayer> {
        parts.extensions.get().cloned().ok_or(MissingLayer::NoTransaction)
    }
}
