//! What is measured, as a page in Prometheus' text form (SPEC A14, E6).
//!
//! Guarantee: what a worker measures has the same names and buckets in every program that has this page, so that the numbers of several can be
//! added up; and each histogram is whole, which what the exporter writes is not.

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// From a pickup on an idle queue to a whole horizon of retries (SPEC D5), in seconds.
const LAG_BUCKETS: [f64; 15] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0, 600.0, 3_600.0, 86_400.0];
/// From a minute's work to three months, in seconds: a person takes longer than a machine.
const RESOLVE_BUCKETS: [f64; 10] =
    [60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0, 86_400.0, 259_200.0, 604_800.0, 7_776_000.0];
const RETRIES: &str = "outbox_retry_count";
/// Each of the retries of SPEC D5, and what goes beyond.
const RETRY_BUCKETS: [f64; 12] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 12.0, 20.0, 50.0];

/// Begins to measure, once in a program. Have the handle fold what was measured now and then
/// ([`PrometheusHandle::run_upkeep`]), or it takes room while nobody asks.
pub fn begin() -> Result<PrometheusHandle, BuildError> {
    let handle = builder()?.install_recorder()?;
    crate::worker::describe_metrics();
    Ok(handle)
}

/// The page as it stands now.
pub fn page(handle: &PrometheusHandle) -> String {
    whole(&handle.render())
}

fn builder() -> Result<PrometheusBuilder, BuildError> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Full("outbox_lag_seconds".to_owned()), &LAG_BUCKETS)?
        .set_buckets_for_metric(Matcher::Full(RETRIES.to_owned()), &RETRY_BUCKETS)?
        .set_buckets_for_metric(Matcher::Full("outbox_letter_resolve_seconds".to_owned()), &RESOLVE_BUCKETS)
}

/// The exporter takes a name that ends in `_count` for the count of a histogram, and leaves the suffix out that it needs.
fn whole(rendered: &str) -> String {
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
        let text = page(&recorder.handle());
        for part in
            ["_bucket{queue=\"orders\",le=\"1\"} 1", "_sum{queue=\"orders\"} 1", "_count{queue=\"orders\"} 1"]
        {
            assert!(text.contains(&format!("{RETRIES}{part}")), "no {part} in {text}");
        }
        assert!(!text.contains(&format!("{RETRIES}{{")), "{text}");
    }
}
