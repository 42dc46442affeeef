//! The webhook that alerts are sent to.
// SPEC A15.

use ichido::destination::Destination;
use ichido::destination::http::HttpSettings;
use ichido::retry::Guarantee;
use ichido::settings::ConfigErrors;
use ichido::worker::AlertFormat;

/// A receiver of alerts: the engine delivers them like any message, until they arrive.
#[derive(Clone, Debug)]
pub struct AlertWebhook {
    pub(crate) destination: Destination,
    pub(crate) format: AlertFormat,
}

impl AlertWebhook {
    /// Checks the URL; nothing is called yet.
    pub fn new(url: &str, format: AlertFormat) -> Result<Self, ConfigErrors> {
        // A repeated alert is harmless, and a lost one is not.
        let settings = HttpSettings::new(url, Guarantee::Idempotent);
        Ok(Self { destination: settings.resolve()?.into(), format })
    }
}
