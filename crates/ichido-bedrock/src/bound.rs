//! Limits the size of a response. The SDK alone reads without a limit.

use aws_sdk_bedrockruntime::config::interceptors::BeforeDeserializationInterceptorContextMut;
use aws_sdk_bedrockruntime::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_bedrockruntime::error::BoxError;
use aws_smithy_types::body::SdkBody;
use http_body_util::Limited;

/// Maximum size of a response, in bytes; reading a longer one fails there. The longest answers of models are about
/// 100,000 tokens.
pub(crate) const MAX_ANSWER_BYTES: usize = 4 << 20;

/// Wraps each response body in the limit before it is read.
#[derive(Debug)]
pub(crate) struct Bound;

impl Intercept for Bound {
    fn name(&self) -> &'static str {
        "IchidoBound"
    }

    fn modify_before_deserialization(
        &self,
        context: &mut BeforeDeserializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let body = context.response_mut().body_mut();
        let unbounded = std::mem::replace(body, SdkBody::taken());
        *body = SdkBody::from_body_1_x(Limited::new(unbounded, MAX_ANSWER_BYTES));
        Ok(())
    }
}
