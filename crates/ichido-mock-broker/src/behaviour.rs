//! How the broker behaves, and how that changes at run time.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::failure_mode::{FailureMode, Rates};

/// The longest configurable wait.
pub const MAX_WAIT: Duration = Duration::from_hours(1);
/// The same in milliseconds, the smallest accepted unit.
const MAX_COUNT: u64 = 3_600_000;

/// How the broker behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// Whether a repeated key takes effect only once.
    pub deduplicates: bool,
    /// Whether it refuses a fence lower than one that it has seen.
    pub refuses_old_fences: bool,
    /// How long every order waits for its response.
    pub latency: Duration,
    /// How much longer a slow response takes.
    pub slow: Duration,
    /// The value of `Retry-After`.
    pub retry_after: Duration,
    /// How often each failure occurs.
    pub rates: Rates,
    /// Text that a body must contain for its call to fail; empty means any call.
    pub fault_text: String,
}

impl Behaviour {
    /// The defaults of `ichido mock-broker`.
    pub const WELL: Self = Self {
        deduplicates: true,
        refuses_old_fences: false,
        latency: Duration::ZERO,
        slow: Duration::from_secs(2),
        retry_after: Duration::from_secs(1),
        rates: Rates::NONE,
        fault_text: String::new(),
    };

    /// Picks how a call with this body fails, if it does. `dice` is uniform in [0, 1).
    pub fn fault(&self, body: &[u8], dice: f64) -> Option<FailureMode> {
        let text = self.fault_text.as_bytes();
        let may_fail = text.is_empty() || body.windows(text.len()).any(|part| part == text);
        if may_fail { self.rates.draw(dice) } else { None }
    }

    /// Renders the body of `GET /mock/faults`, which `PUT` accepts.
    pub fn to_json(&self) -> Value {
        let faults: Map<String, Value> =
            self.rates.all().map(|(name, rate)| (name.to_owned(), json!(rate))).collect();
        json!({
            "deduplicates": self.deduplicates,
            "refuses_old_fences": self.refuses_old_fences,
            "latency_ms": millis(self.latency),
            "slow_ms": millis(self.slow),
            "retry_after_s": self.retry_after.as_secs(),
            "faults": faults,
            "fault_text": self.fault_text,
        })
    }

    /// Applies the body of a `PUT`, or returns every error.
    ///
    /// Members that are not given stay unchanged. `faults` replaces all rates.
    pub fn changed(&self, body: &[u8]) -> Result<Self, Vec<String>> {
        let Ok(Value::Object(members)) = serde_json::from_slice(body) else {
            return Err(vec![
                "the body must be a JSON object, such as {\"faults\":{\"reset_after\":0.1}}".to_owned(),
            ]);
        };
        let mut changed = self.clone();
        let mut wrong = Vec::new();
        for (name, value) in &members {
            let is_taken = match name.as_str() {
                "deduplicates" => value.as_bool().map(|is| changed.deduplicates = is),
                "refuses_old_fences" => value.as_bool().map(|is| changed.refuses_old_fences = is),
                "latency_ms" => wait(value, Duration::from_millis).map(|wait| changed.latency = wait),
                "slow_ms" => wait(value, Duration::from_millis).map(|wait| changed.slow = wait),
                "fault_text" => value.as_str().map(|text| text.clone_into(&mut changed.fault_text)),
                "retry_after_s" => wait(value, Duration::from_secs).map(|wait| changed.retry_after = wait),
                "faults" => value.as_object().map(|faults| {
                    let given = faults.iter().map(|(name, rate)| (name.as_str(), rate.as_f64()));
                    match Rates::new(given) {
                        Ok(rates) => changed.rates = rates,
                        Err(errors) => wrong.extend(errors.iter().map(ToString::to_string)),
                    }
                }),
                _ => {
                    wrong.push(format!("unknown setting {name:?}; GET /mock/faults shows all settings"));
                    continue;
                }
            };
            if is_taken.is_none() {
                wrong.push(format!(
                    "{name:?} has a value of the wrong type, or above one hour; GET /mock/faults shows the types"
                ));
            }
        }
        if wrong.is_empty() { Ok(changed) } else { Err(wrong) }
    }
}

fn wait(value: &Value, unit: fn(u64) -> Duration) -> Option<Duration> {
    // Check before multiplying: the number can have any size.
    let count = value.as_u64().filter(|count| *count <= MAX_COUNT)?;
    Some(unit(count)).filter(|wait| *wait <= MAX_WAIT)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Behaviour {
        Behaviour {
            deduplicates: true,
            refuses_old_fences: false,
            latency: Duration::ZERO,
            slow: Duration::from_secs(2),
            retry_after: Duration::from_secs(1),
            rates: Rates::default(),
            fault_text: String::new(),
        }
    }

    #[test]
    fn put_accepts_the_output_of_get_and_keeps_absent_members() {
        let json = plain().to_json().to_string();
        assert_eq!(plain().changed(json.as_bytes()), Ok(plain()));
        let changed = plain().changed(br#"{"latency_ms":5,"faults":{"slow":0.5}}"#).expect("it fits");
        assert_eq!((changed.latency, changed.slow), (Duration::from_millis(5), Duration::from_secs(2)));
        let rates = Rates::new([("slow", Some(0.5))]).expect("they fit");
        assert_eq!(changed.rates, rates);
        let again = changed.changed(br#"{"faults":{}}"#).expect("it fits");
        assert_eq!(again.rates, Rates::default(), "rates are replaced, not added to");
    }

    #[test]
    fn faults_apply_only_to_calls_with_the_text() {
        let fails = |text: &str, body: &str| {
            let put = format!(r#"{{"fault_text":"{text}","faults":{{"slow":1}}}}"#);
            plain().changed(put.as_bytes()).expect("it fits").fault(body.as_bytes(), 0.5).is_some()
        };
        assert!(fails("", "") && fails("", "a-12"), "any call");
        assert!(fails("a-1", "[a-12]") && fails("a-1", "a-1"));
        assert!(!fails("a-1", "a-2") && !fails("a-1", "a-") && !fails("a-1", ""));
    }

    #[test]
    fn invalid_settings_report_all_errors_and_change_nothing() {
        let wrong =
            br#"{"latency":5,"slow_ms":-1,"deduplicates":"no","faults":{"x":1},"retry_after_s":3601}"#;
        assert_eq!(plain().changed(wrong).expect_err("five things").len(), 5);
        for body in ["", "[]", "{"] {
            assert_eq!(plain().changed(body.as_bytes()).expect_err("no object").len(), 1, "{body}");
        }
    }
}
