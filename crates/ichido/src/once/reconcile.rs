//! Looks up the outcome of an action whose effect is unknown.
// Spec: F2.

use std::pin::Pin;
use std::sync::Arc;

use http::Response;
use ichido_core::ledger::{RecordName, Resolution, ResolveError};
use ichido_store::ledger::{self as stored, KeyResolved};

use super::BoxError;
use super::fields;
use super::settings::Settings;

/// What a lookup found about an action.
#[derive(Clone, Debug)]
pub enum ReconciledRequest {
    /// It took effect.
    ///
    /// Later requests receive this response; without one, they learn that it was done.
    Done(Option<Response<Vec<u8>>>),
    /// It was refused.
    Refused(Option<Response<Vec<u8>>>),
    /// Nothing was done: the key is free again.
    ///
    /// Counts only when the first call can no longer be in flight.
    NotDone,
    /// The lookup does not know either.
    Unknown,
}

pub(crate) type ReconcileFuture = Pin<Box<dyn Future<Output = Result<ReconciledRequest, BoxError>> + Send>>;
pub(crate) type ReconcileFn = Arc<dyn Fn(RecordName) -> ReconcileFuture + Send + Sync>;

/// Looks up an unknown outcome if the operation can. Returns whether its record changed.
pub(crate) async fn reconcile_unknown(name: &RecordName, settings: &Settings) -> bool {
    let Some(reconcile) = &settings.reconcile else { return false };
    let (resolution, response) = match reconcile(name.clone()).await {
        Ok(ReconciledRequest::Done(response)) => (Resolution::Applied, response),
        Ok(ReconciledRequest::Refused(response)) => (Resolution::Refused, response),
        Ok(ReconciledRequest::NotDone) => (Resolution::NothingDone, None),
        Ok(ReconciledRequest::Unknown) => return false,
        Err(error) => {
            tracing::warn!(%error, "failed to look up an unknown outcome");
            return false;
        }
    };
    let response = response.map(|response| stored::StoredResponse {
        status: response.status().as_u16(),
        headers: fields::stored_headers(response.headers()),
        body: Some(response.into_body()),
    });
    match settings.store().keys().resolve(name, resolution, response, &settings.policy).await {
        Ok(KeyResolved::Resolved) => {
            tracing::info!(?resolution, "resolved an unknown outcome");
            true
        }
        Ok(KeyResolved::Refused(why)) => {
            tracing::info!(?resolution, %why, "resolution of an unknown outcome was refused");
            // Somebody else may have settled it; the next claim shows.
            why == ResolveError::NotUnknown
        }
        Ok(KeyResolved::Missing) => true,
        Err(error) => {
            tracing::warn!(
                error = error.with_causes(),
                "failed to store the resolution of an unknown outcome"
            );
            false
        }
    }
}
