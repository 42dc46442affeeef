//! Decides whether a request without a response may have arrived.
//!
//! Guarantee: a call counts as never sent only if it was not handed to the connector, or if no connection was
//! established. Every other call may have arrived.

use std::error::Error;

use aws_credential_types::provider::error::{CredentialsError, TokenError};
use aws_sdk_bedrockruntime::config::http::HttpResponse;
use aws_sdk_bedrockruntime::error::SdkError;
use hyper_util::client::legacy;
use ichido_core::verdict::NetworkFault;

use crate::words::chain;

/// Why there is no complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallFault {
    /// No credentials were found: a configuration error that no retry fixes.
    NoKeys,
    /// The call is invalid: the SDK could not build a request from it.
    NoRequest,
    /// A network failure, or a failure of the credentials provider.
    Network(NetworkFault),
}

/// Classifies the SDK's error, given whether the call had been handed to the connector.
pub(crate) fn classify<E: Error + 'static>(error: &SdkError<E, HttpResponse>, was_sent: bool) -> CallFault {
    if !was_sent {
        return unsent(error);
    }
    CallFault::Network(match error {
        SdkError::TimeoutError(_) => NetworkFault::Timeout,
        SdkError::ResponseError(_) | SdkError::ServiceError(_) => NetworkFault::ResponseCut,
        SdkError::DispatchFailure(failure) => match failure.as_connector_error() {
            Some(connector) if is_connecting(connector) && failure.is_timeout() => {
                NetworkFault::ConnectTimeout
            }
            // An unresolved name and a failed handshake are of this kind too, and are treated the same.
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
    // The credentials provider failed or was too slow. Nothing was sent, and this says nothing about the model.
    if is_set_up_wrong { CallFault::NoKeys } else { CallFault::Network(NetworkFault::NotSent) }
}
