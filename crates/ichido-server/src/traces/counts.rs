//! Metrics of a batch for a collector (OTLP over HTTP, as JSON).
//!
//! Guarantee: a collector that refuses or does not respond costs a batch at most the timeout of one export.
// Spec: B12.

use std::collections::BTreeMap;

use http::Method;
use ichido_client::{Action, Cause, Outcome};
use ichido_core::key::IdempotencyKey;
use ichido_core::settings::ConfigErrors;
use ichido_core::time::Timestamp;
use ichido_http::clock;
use serde_json::{Value, json};
use uuid::Uuid;

use super::json::{attributes, nanos};
use super::settings::{self, Collector, METRICS};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u8 = 2;

/// Sends counts to a collector.
pub struct MetricsExporter {
    collector: Collector,
    began: Timestamp,
}

/// Counts since the start of the process.
pub struct ExportedCounts<'a> {
    /// Attributes of every count.
    pub attributes: BTreeMap<&'a str, String>,
    /// Totals that only grow, by name.
    pub totals: &'a [(&'a str, u64)],
    /// Other values, by name.
    pub gauges: &'a [(&'a str, f64)],
}

impl MetricsExporter {
    /// Finds the collector in OpenTelemetry's standard variables; `None` if there is none.
    pub fn find() -> Result<Option<Self>, ConfigErrors> {
        let collector = settings::resolve(METRICS, None, |name| std::env::var(name))?;
        Ok(collector.map(|collector| Self { collector, began: clock::now() }))
    }

    /// Sends the counts as of now. A failure is logged.
    pub async fn send(&self, counts: &ExportedCounts<'_>) {
        let Collector { client, path, resource } = &self.collector;
        let body = request(counts, resource, self.began, clock::now());
        let key = IdempotencyKey::parse(&Uuid::now_v7().to_string()).ok();
        let action = key.and_then(|key| Action::new(Method::POST, path, key, "application/json", body).ok());
        let Some(action) = action else { return };
        let why = match client.send(&action.started_by(Cause::Auto)).await {
            Outcome::Done { .. } => return,
            Outcome::Refused { answer, .. } => format!("it returned {}", answer.status),
            Outcome::GaveUp { why, .. } => why.to_string(),
        };
        tracing::warn!(why, "failed to export metrics");
    }
}

/// Writes an `ExportMetricsServiceRequest`.
fn request(
    counts: &ExportedCounts<'_>,
    resource: &BTreeMap<String, String>,
    began: Timestamp,
    now: Timestamp,
) -> String {
    let point = |name: &str, value: Value| {
        let mut point = json!({
            "attributes": attributes(&counts.attributes),
            "startTimeUnixNano": nanos(began),
            "timeUnixNano": nanos(now),
        });
        point[name] = value;
        point
    };
    // A 64-bit integer is a string.
    let total = |(name, count): &(&str, u64)| {
        let points = [point("asInt", count.to_string().into())];
        let sum = json!({ "aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points });
        json!({ "name": name, "unit": "1", "sum": sum })
    };
    let gauge = |(name, value): &(&str, f64)| {
        let points = [point("asDouble", (*value).into())];
        json!({ "name": name, "unit": "1", "gauge": { "dataPoints": points } })
    };
    let metrics: Vec<Value> =
        counts.totals.iter().map(total).chain(counts.gauges.iter().map(gauge)).collect();
    let scope = json!({ "name": "ichido", "version": env!("CARGO_PKG_VERSION") });
    let resource = json!({ "attributes": attributes(resource) });
    let scope_metrics = json!({ "scope": scope, "metrics": metrics });
    json!({ "resourceMetrics": [{ "resource": resource, "scopeMetrics": [scope_metrics] }] }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shape of OpenTelemetry's own example, `examples/metrics.json` of opentelemetry-proto.
    #[test]
    fn counts_are_written_as_otlp_json() {
        let counts = ExportedCounts {
            attributes: BTreeMap::from([("model", "m".to_owned())]),
            totals: &[("calls", 7)],
            gauges: &[("ratio", 0.25)],
        };
        let resource = BTreeMap::from([("service.name".to_owned(), "shop".to_owned())]);
        let (began, now) = (Timestamp::from_secs(1), Timestamp::from_secs(3));
        let written: Value = serde_json::from_str(&request(&counts, &resource, began, now)).unwrap();
        let attributes = json!([{ "key": "model", "value": { "stringValue": "m" } }]);
        let point = |name: &str, value: Value| {
            json!([{
                "attributes": attributes,
                "startTimeUnixNano": "1000000000",
                "timeUnixNano": "3000000000",
                name: value,
            }])
        };
        let sum = json!({ "aggregationTemporality": 2, "isMonotonic": true, "dataPoints": point("asInt", "7".into()) });
        let expected = json!({ "resourceMetrics": [{
            "resource": { "attributes": [{ "key": "service.name", "value": { "stringValue": "shop" } }] },
            "scopeMetrics": [{
                "scope": { "name": "ichido", "version": env!("CARGO_PKG_VERSION") },
                "metrics": [
                    { "name": "calls", "unit": "1", "sum": sum },
                    { "name": "ratio", "unit": "1", "gauge": { "dataPoints": point("asDouble", 0.25.into()) } },
                ],
            }],
        }] });
        assert_eq!(written, expected);
    }
}
