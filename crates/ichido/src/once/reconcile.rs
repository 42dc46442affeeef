//! Finding out what came of an action of unknown outcome, by asking (SPEC F2).

use std::pin::Pin;
use std::sync::Arc;

use http::Response;
use ichido_core::ledger::{RecordName, Resolution, ResolveError};
use ichido_store::ledger::{self as stored, KeyResolved};

use super::BoxError;
use super::fields;
use super::settings::Settings;

/// What was found out about an action by asking after it.
#[derive(Clone, Debug)]
pub enum Reconciled {
    /// It took effect. The response is what its requests get from now on; without one they are told that it was done.
    Applied(Option<Response<Vec<u8>>>),
    /// It was refused.
    Refused(Option<Response<Vec<u8>>>),
    /// Nothing was done: the key is free again. Counts only when the first call can no longer be travelling.
    NothingDone,
    /// Whoever was asked does not know either.
    StillUnknown,
}

pub(crate) type ReconcileFuture = Pin<Box<dyn Future<Output = Result<Reconciled, BoxError>> + Send>>;
pub(crate) type ReconcileFn = Arc<dyn Fn(RecordName) -> ReconcileFuture + Send + Sync>;

/// Asks after an action of unknown outcome, where the operation has a way to; answers whether its record has changed.
pub(crate) async fn reconcile_unknown(name: &RecordName, settings: &Settings) -> bool {
    let Some(reconcile) = &settings.reconcile else { return false };
    let (resolution, response) = match reconcile(name.clone()).await {
        Ok(Reconciled::Applied(response)) => (Resolution::Applied, response),
        Ok(Reconciled::Refused(response)) => (Resolution::Refused, response),
        Ok(Reconciled::NothingDone) => (Resolution::NothingDone, None),
        Ok(Reconciled::StillUnknown) => return false,
        Err(error) => {
            tracing::warn!(%error, "an unknown outcome could not be asked after");
            return false;
        }
    };
    let response = response.map(|response| stored::Response {
        status: response.status().as_u16(),
        headers: fields::stored_headers(response.headers()),
        body: Some(response.into_body()),
    });
    match settings.store().keys().resolve(name, resolution, response, &settings.policy).await {
        Ok(KeyResolved::Stands) => {
            tracing::info!(?resolution, "an unknown outcome was found out");
            true
        }
        Ok(KeyResolved::Refused(why)) => {
            tracing::info!(?resolution, %why, "what was found out does not count");
            // Somebody else may have settled it meanwhile; the next look tells.
            why == ResolveError::NotUnknown
        }
        Ok(KeyResolved::Missing) => true,
        Err(error) => {
            tracing::warn!(error = error.in_full(), "what was found out could not be stored");
            false
        }
    }
}
