//! Metrics as a page in Prometheus' text format.
//!
//! Guarantee: a worker's metrics have the same names and buckets in every program that serves this page, so their numbers
//! can be added. Each histogram is complete, unlike the exporter's own output.
// Spec: A14, E6.

use http::Method;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// From a pickup on an idle queue to a full retry horizon, in seconds.
// Spec: D5.
const LAG_BUCKETS: [f64; 15] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0, 600.0, 3_600.0, 86_400.0];
/// From one minute to three months, in seconds: people take longer than machines.
const RESOLVE_BUCKETS: [f64; 10] =
    [60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0, 86_400.0, 259_200.0, 604_800.0, 7_776_000.0];
const RETRIES: &str = "outbox_retry_count";
/// Each of the scheduled retries, and larger counts.
// Spec: D5.
const RETRY_BUCKETS: [f64; 12] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 12.0, 20.0, 50.0];

/// The number of responses, by method and status.
const REQUESTS: &str = "ichido_http_requests_total";

/// Installs the recorder, once per program.
///
/// Call [`PrometheusHandle::run_upkeep`] periodically, or recorded values accumulate in memory until the page is rendered.
pub fn install() -> Result<PrometheusHandle, BuildError> {
    let handle = builder()?.install_recorder()?;
    crate::worker::describe_metrics();
    crate::once::describe_metrics();
    describe_requests();
    Ok(handle)
}

/// Renders the current page.
pub fn render(handle: &PrometheusHandle) -> String {
    with_count_suffix(&handle.render())
}

/// Describes the count of requests to the installed recorder.
pub fn describe_requests() {
    metrics::describe_counter!(REQUESTS, "Requests with a response");
}

/// Counts a request with its response; `None` if its method is unknown.
pub fn count_request(method: Option<&Method>, status: u16) {
    let method = method.map_or("other", method_label);
    metrics::counter!(REQUESTS, "method" => method, "status" => status.to_string()).increment(1);
}

/// Returns the method as a label; clients may invent any number of methods.
pub fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

fn builder() -> Result<PrometheusBuilder, BuildError> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Full("outbox_lag_seconds".to_owned()), &LAG_BUCKETS)?
        .set_buckets_for_metric(Matcher::Full(RETRIES.to_owned()), &RETRY_BUCKETS)?
        .set_buckets_for_metric(
            Matcher::Full("outbox_dead_letter_resolve_seconds".to_owned()),
            &RESOLVE_BUCKETS,
        )
}

/// Restores the `_count` suffix of a histogram.
///
/// The exporter drops it if the histogram's own name ends in `_count`.
fn with_count_suffix(rendered: &str) -> String {
    let mut text = String::with_capacity(rendered.len());
    for line in rendered.split_inclusive('\n') {
        match line.strip_prefix(RETRIES) {
            Some(rest) if rest.starts_with(['{', ' ']) => {
                text.push_str(RETRIES);
                text.push_str("_count");
                text.push_str(rest);
            }
            _ => text.push_str(line),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_histogram_of_retries_has_its_count_under_its_name() {
        let recorder = builder().unwrap().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            metrics::histogram!(RETRIES, "queue" => "orders").record(1.0);
        });
        let text = render(&recorder.handle());
        for part in
            ["_bucket{queue=\"orders\",le=\"1\"} 1", "_sum{queue=\"orders\"} 1", "_count{queue=\"orders\"} 1"]
        {
            assert!(text.contains(&format!("{RETRIES}{part}")), "no {part} in {text}");
        }
        assert!(!text.contains(&format!("{RETRIES}{{")), "{text}");
    }
}
