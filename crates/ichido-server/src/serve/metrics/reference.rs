//! The reference of metrics in the documentation, written from their descriptions.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;

use ichido_core::sync::lock;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
const HEAD: &str = "\
# Metrics

`ichido serve` serves them at `/metrics`, `ichido worker` at `/metrics` of the address of `--metrics`, and `ichido proxy` at
`/metrics` of the address of `--admin`, in Prometheus' text format. `ichido judge` writes those of its calls (`ichido_llm_…`) to the
file of `--metrics-file`. A program that uses the layer records its counters (`ichido_once_…`) with its own recorder. No label has a
key or an identity.

<!-- Generated from the metrics' descriptions: ICHIDO_BLESS=1 cargo test -p ichido-server reference -->

| metric | type | unit | meaning |
|---|---|---|---|
";

/// A metric's type, unit and meaning.
type Described = (&'static str, Option<Unit>, String);

/// Collects descriptions, by name.
#[derive(Default)]
struct Descriptions(Mutex<BTreeMap<String, Described>>);

impl Descriptions {
    fn add(&self, name: &KeyName, kind: &'static str, unit: Option<Unit>, text: &SharedString) {
        lock(&self.0).insert(name.as_str().to_owned(), (kind, unit, text.to_string()));
    }
}

impl Recorder for Descriptions {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.add(&name, "counter", unit, &text);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.add(&name, "gauge", unit, &text);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.add(&name, "histogram", unit, &text);
    }

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

fn reference() -> String {
    let descriptions = Descriptions::default();
    metrics::with_local_recorder(&descriptions, || {
        ichido::worker::describe_metrics();
        ichido::once::describe_metrics();
        ichido::prometheus::describe_requests();
        ichido_llm::judge::describe_metrics();
        crate::serve::server::describe_metrics();
        crate::traces::describe_metrics();
    });
    let mut text = HEAD.to_owned();
    for (name, (kind, unit, meaning)) in lock(&descriptions.0).iter() {
        let unit = unit.map_or("", |unit| unit.as_str());
        writeln!(text, "| `{name}` | {kind} | {unit} | {meaning}. |").expect("a String takes text");
    }
    text
}

#[test]
fn the_metrics_in_the_documentation_are_those_described() {
    let reference = reference();
    if std::env::var_os("ICHIDO_BLESS").is_some() {
        std::fs::write(FILE, &reference).expect("docs/metrics.md can be written");
    }
    let written = std::fs::read_to_string(FILE).expect("docs/metrics.md");
    assert!(
        written == reference,
        "docs/metrics.md is out of date; write it with ICHIDO_BLESS=1 cargo test -p ichido-server reference"
    );
}
