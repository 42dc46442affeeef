//! The settings of the function: the same variables as those of `ichido judge`.
// Spec: B5.

use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use ichido_bedrock::BedrockSettings;
use ichido_core::retry::{Retry, Schedule};
use ichido_core::settings::ConfigErrors;
use ichido_llm::judge::Settings;
use ichido_llm::seconds;

use crate::judging::Judging;

/// Timeout of one call.
const CALL_TIMEOUT: Duration = Duration::from_mins(1);

/// The environment, passed in.
type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Reads the environment and makes the model, in Lambda's region and with the function's role.
pub(crate) async fn judging(variable: Variable<'_>) -> Result<Judging, ConfigErrors> {
    let mut faults = ConfigErrors::default();
    let settings = batch(variable, &mut faults);
    let model = BedrockSettings {
        model_id: set(variable, "BEDROCK_MODEL_ID"),
        inference_profile_arn: set(variable, "BEDROCK_INFERENCE_PROFILE_ARN"),
        timeout: CALL_TIMEOUT,
        ..BedrockSettings::new("")
    };
    let model = model.resolve().await.map_err(|found| faults.join(found)).ok();
    let model = faults.or(model)?;
    Ok(Judging { model: Arc::new(model), settings })
}

/// Reads how the model is asked.
pub(crate) fn batch(variable: Variable<'_>, faults: &mut ConfigErrors) -> Settings {
    let parallel = number(variable, "BEDROCK_MAX_PARALLEL", Settings::DEFAULT.parallel, faults);
    let retries: u32 = number(variable, "BEDROCK_MAX_RETRIES", 4, faults);
    let interval = seconds(variable, "BEDROCK_REQUEST_INTERVAL", Duration::from_millis(2_500), faults);
    let base = seconds(variable, "BEDROCK_RETRY_BASE_DELAY", Duration::from_secs(2), faults);
    let cap = seconds(variable, "BEDROCK_MAX_BACKOFF", Duration::from_secs(20), faults);
    let max_attempts = NonZeroU32::MIN.saturating_add(retries);
    let schedule = Schedule::Exponential { base, factor: 2, cap };
    Settings {
        parallel,
        interval,
        retry: Retry { schedule, max_attempts, ..Retry::LLM },
        ..Settings::DEFAULT
    }
}

fn set(variable: Variable<'_>, name: &str) -> Option<String> {
    variable(name).filter(|value| !value.is_empty())
}

fn number<T: FromStr>(variable: Variable<'_>, name: &str, default: T, faults: &mut ConfigErrors) -> T {
    match set(variable, name).map(|text| text.parse()) {
        None => default,
        Some(Ok(number)) => number,
        Some(Err(_)) => {
            faults.add(name, "is not a number in range; fix it, or remove the variable");
            default
        }
    }
}

fn seconds(variable: Variable<'_>, name: &str, default: Duration, faults: &mut ConfigErrors) -> Duration {
    let read =
        set(variable, name).map(|text| seconds::parse(&text).map_err(|why| format!("is invalid: {why}")));
    read.map_or(Some(default), |read| faults.check(name, read)).unwrap_or(default)
}
