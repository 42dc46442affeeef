//! Records whether a call was sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_bedrockruntime::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_bedrockruntime::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_bedrockruntime::error::BoxError;

/// Whether a call was handed to the connector. Before that, nothing has left: credentials are looked up and the request
/// is signed first.
#[derive(Debug, Default)]
pub(crate) struct SentFlag(AtomicBool);

impl SentFlag {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Sets the flag just before the SDK hands the request to its connector.
#[derive(Debug)]
pub(crate) struct Watch(pub(crate) Arc<SentFlag>);

impl Intercept for Watch {
    fn name(&self) -> &'static str {
        "IchidoSent"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.0.store(true, Ordering::Relaxed);
        Ok(())
    }
}
