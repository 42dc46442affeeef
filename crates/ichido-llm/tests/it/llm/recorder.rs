//! Records the metrics of calls to models, for tests to read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use metrics::{Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

/// Counters by name.
#[derive(Clone, Default)]
pub(crate) struct RecordedCounters(Arc<Mutex<BTreeMap<String, u64>>>);

struct RecordedCounter(RecordedCounters, String);

impl CounterFn for RecordedCounter {
    fn increment(&self, value: u64) {
        *self.0.0.lock().expect("no panic while locked").entry(self.1.clone()).or_default() += value;
    }

    fn absolute(&self, _: u64) {
        panic!("nothing here is set");
    }
}

impl Recorder for RecordedCounters {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::new(RecordedCounter(self.clone(), key.name().to_owned())))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

impl RecordedCounters {
    pub(crate) fn get(&self, name: &str) -> u64 {
        self.0
            .lock()
            .expect("no panic while locked")
            .get(&format!("ichido_llm_{name}_total"))
            .copied()
            .unwrap_or_default()
    }
}
