//! What a call without an answer says of whether the request arrived.
//!
//! Guarantee: a call counts as never sent only where it was not handed on to be sent, or where no connection came about. Everything else may
//! have arrived.

use std::error::Error;

use aws_credential_types::provider::error::{CredentialsError, TokenError};
use aws_sdk_bedrockruntime::config::http::HttpResponse;
use aws_sdk_bedrockruntime::error::SdkError;
use hyper_util::client::legacy;
use ichido_core::verdict::NetworkFault;

use crate::words::chain;

/// Why there is no whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallFault {
    /// Nobody to sign as: a mistake in the set-up, which no retry mends.
    NoKeys,
    /// The call is wrong as it stands: the SDK could not make a request of it.
    NoRequest,
    /// The network's, or of whoever gives out the keys.
    Network(NetworkFault),
}

/// Reads it from the SDK's error, and from whether the call had been handed on.
pub(crate) fn classify<E: Error + 'static>(error: &SdkError<E, HttpResponse>, was_sent: bool) -> CallFault {
    if !was_sent {
        return unsent(error);
    }
    CallFault::Network(match error {
        SdkError::TimeoutError(_) => NetworkFault::Timeout,
        SdkError::ResponseError(_) | SdkError::ServiceError(_) => NetworkFault::AnswerCut,
        SdkError::DispatchFailure(failure) => match failure.as_connector_error() {
            Some(connector) if is_connecting(connector) && failure.is_timeout() => {
                NetworkFault::ConnectTimeout
            }
            // A name that is not resolved and a handshake that fails are of this kind too, and are judged alike.
            Some(connector) if is_connecting(connector) => NetworkFault::ConnectRefused,
            _ if failure.is_timeout() => NetworkFault::Timeout,
            _ => NetworkFault::Broken,
        },
        _ => NetworkFault::Broken,
    })
}

fn is_connecting(error: &(dyn Error + 'static)) -> bool {
    chain(error).filter_map(|error| error.downcast_ref::<legacy::Error>()).any(legacy::Error::is_connect)
}

fn unsent<E: Error + 'static>(error: &SdkError<E, HttpResponse>) -> CallFault {
    if matches!(error, SdkError::ConstructionFailure(_)) {
        return CallFault::NoRequest;
    }
    let is_set_up_wrong = chain(error).any(|error| {
        matches!(
            error.downcast_ref(),
            Some(CredentialsError::CredentialsNotLoaded(_) | CredentialsError::InvalidConfiguration(_))
        ) || matches!(
            error.downcast_ref(),
            Some(TokenError::TokenNotLoaded(_) | TokenError::InvalidConfiguration(_))
        )
    });
    // Whoever gives out the keys failed or was too slow. Nothing was sent, and it says nothing of how the model fares.
    if is_set_up_wrong { CallFault::NoKeys } else { CallFault::Network(NetworkFault::HeldBack) }
}
