//! A run exports its metrics to a file.
// Spec: B12.

use serde_json::json;

use super::program::{JudgeFixture, JudgeOutput};
use crate::traces::collector::Collector;

/// Returns a metric of the file; `None` if the file or the metric is missing.
fn metric(fixture: &JudgeFixture, name: &str) -> Option<f64> {
    let text = std::fs::read_to_string(fixture.folder.path().join("judge.prom")).ok()?;
    let line = format!("ichido_llm_{name}{{model=\"gpt-test\"}} ");
    text.lines().find_map(|found| found.strip_prefix(&line)).map(|value| value.parse().unwrap())
}

#[test]
fn metrics_file_has_counts_and_retry_ratio() {
    let script = json!({ "rules": [
        { "do": { "fail": "throttle" }, "item": "0", "first": 2 },
        { "do": "drop_completed", "item": "1", "first": 1 },
        { "do": { "answer": "cut_off" }, "item": "2", "first": 1 },
        { "do": { "fail": "invalid" }, "item": "3" },
    ] });
    let fixture = JudgeFixture::new(8, &script);
    let ran = fixture.judge(&["--metrics-file", "judge.prom", "--json"]);
    let summary = ran.ended_with(1).json()["summary"].clone();
    for (name, member) in [
        ("calls_total", "calls"),
        ("retries_total", "retries"),
        ("throttled_total", "throttled"),
        ("unusable_answers_total", "unusable_answers"),
        ("fallbacks_total", "fallbacks"),
        ("possibly_billed_twice_total", "possibly_billed"),
    ] {
        let counted = summary[member].as_f64();
        assert!(counted.is_some_and(|count| 0.0 < count), "{member}: {summary}");
        assert_eq!(metric(&fixture, name), counted, "{name}");
    }
    let ratio = summary["retries"].as_f64().unwrap() / summary["calls"].as_f64().unwrap();
    assert_eq!(metric(&fixture, "retry_ratio"), Some(ratio));
    let left = std::fs::read_dir(fixture.folder.path()).unwrap();
    let parts = left.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains(".part"));
    assert_eq!(parts.count(), 0, "nothing is left behind");
}

#[test]
fn metrics_file_is_replaced_during_the_run() {
    let fixture = JudgeFixture::new(2, &json!({ "latency": { "fixed_ms": 3_600_000 } }));
    let mut running = fixture.start(&["--metrics-file", "judge.prom"]);
    while metric(&fixture, "calls_total") != Some(2.0) {
        assert!(running.try_wait().unwrap().is_none(), "it waits for its answers");
        std::thread::yield_now();
    }
    running.kill().unwrap();
    running.wait().unwrap();
}

#[test]
fn metrics_file_overwrites_no_other_file_of_the_run() {
    let fixture = JudgeFixture::new(1, &json!({}));
    for file in ["articles.jsonl", "out.jsonl", "no/such/folder/judge.prom"] {
        let ran = JudgeOutput::new(fixture.judging(&["--metrics-file", file]).output().unwrap());
        ran.ended_with(2).says("--metrics-file: ");
    }
    assert_eq!(fixture.requests(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn judge_metrics_reach_a_collector() {
    let script = json!({ "rules": [{ "do": { "fail": "throttle" }, "item": "0", "first": 1 }] });
    let fixture = JudgeFixture::new(3, &script);
    let collector = Collector::start().await;
    let mut command = fixture.judging(&[]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}/otlp", collector.address));
    JudgeOutput::new(command.output().unwrap()).ended_with(0);
    let requests = collector.requests();
    assert!(requests.iter().all(|request| request.first == "POST /otlp/v1/metrics HTTP/1.1"));
    let exported = requests
        .iter()
        .map(|request| request.json()["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].clone());
    let mut exported = exported.filter(|metrics| metrics.to_string().contains("\"asInt\":\"4\""));
    let exported = exported.next_back().expect("the final counts");
    let metric = |name: &str| {
        let all = exported.as_array().unwrap().iter();
        all.clone().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("{name} in {exported}"))
    };
    let calls = &metric("ichido_llm_calls_total")["sum"]["dataPoints"][0];
    assert_eq!((&calls["asInt"], &calls["attributes"][0]["key"]), (&"4".into(), &"model".into()));
    assert_eq!(metric("ichido_llm_retries_total")["sum"]["dataPoints"][0]["asInt"], "1");
    assert_eq!(metric("ichido_llm_retry_ratio")["gauge"]["dataPoints"][0]["asDouble"], 0.25);
}
