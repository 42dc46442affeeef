//! Stored judgements, and the pauses that providers asked for, by model.
//!
//! Guarantee: only what was found and passed to [`delete`] is deleted, and nothing of another topic.
// SPEC B7, D6.

use ichido::worker::Paces;
use ichido_core::settings::ConfigErrors;
use ichido_llm::judge::paced_model;
use ichido_store::Store;
use ichido_store::answer::TopicCount;
use ichido_store::error::StoreError;
use serde::Serialize;

use crate::Error;

/// The start of the topics of judgements; the model's name follows.
const TOPIC: &str = "judge/";
/// How many answers are deleted in one step.
const DELETE_STEP: u32 = 1_000;
/// What `--llm` has before the model's name.
const PROVIDERS: [&str; 3] = ["openai:", "anthropic:", "bedrock:"];

/// What is stored of a model.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct StoredJudgements {
    /// The provider's name of the model.
    pub model: String,
    /// Its judgements.
    pub judgements: u64,
    /// Its paces that are paused.
    #[serde(skip)]
    pub paused: Vec<String>,
}

/// Returns the topic of a model's judgements.
pub fn topic(model: &str) -> String {
    format!("{TOPIC}{model}")
}

/// Finds every model with judgements or a pause; or the named one, with or without its provider.
pub async fn find(store: &Store, model: Option<&str>) -> Result<Vec<StoredJudgements>, Error> {
    let topics = store.answers().topics().await.map_err(|error| failed(&error))?;
    let paces = Paces::new(store.clone()).list().await.map_err(|error| failed(&error))?;
    let now = store.now().await.map_err(|error| failed(&error))?;
    let paused = paces.into_iter().filter(|(_, shared)| now < shared.pace.paused_until);
    let found = by_model(topics, paused.map(|(name, _)| name));
    match model {
        Some(model) => choose(found, model),
        None => Ok(found),
    }
}

/// Deletes the judgements of a model with the record of lost calls, and ends its pauses.
pub async fn delete(store: &Store, found: &StoredJudgements) -> Result<(), Error> {
    let topic = topic(&found.model);
    while 0 < store.answers().delete(&topic, DELETE_STEP).await.map_err(|error| failed(&error))? {}
    for pace in &found.paused {
        Paces::new(store.clone()).resume(pace).await.map_err(|error| failed(&error))?;
    }
    Ok(())
}

fn by_model(topics: Vec<TopicCount>, paused: impl Iterator<Item = String>) -> Vec<StoredJudgements> {
    let read = |TopicCount { topic, answers, .. }: TopicCount| {
        let model = topic.strip_prefix(TOPIC)?.to_owned();
        Some(StoredJudgements { model, judgements: answers, paused: Vec::new() })
    };
    let mut models: Vec<StoredJudgements> = topics.into_iter().filter_map(read).collect();
    for pace in paused {
        let Some(model) = paced_model(&pace).map(str::to_owned) else { continue };
        match models.iter_mut().find(|found| found.model == model) {
            Some(found) => found.paused.push(pace),
            None => models.push(StoredJudgements { model, judgements: 0, paused: vec![pace] }),
        }
    }
    models
}

fn choose(found: Vec<StoredJudgements>, model: &str) -> Result<Vec<StoredJudgements>, Error> {
    let without_provider = PROVIDERS.iter().find_map(|provider| model.strip_prefix(provider));
    let is_named = |found: &StoredJudgements| {
        found.model == model || without_provider.is_some_and(|name| found.model == name)
    };
    if found.iter().any(is_named) {
        return Ok(found.into_iter().filter(is_named).collect());
    }
    let names: Vec<_> = found.iter().map(|found| found.model.as_str()).collect();
    let known = match names.as_slice() {
        [] => "of no model".to_owned(),
        names => format!("of {}", names.join(", ")),
    };
    let what = format!("nothing is stored of {model:?}, only {known}");
    Err(Error::Misconfigured(ConfigErrors::one("--forget", what)))
}

fn failed(error: &StoreError) -> Error {
    Error::Unreachable(format!("cannot read or delete the judgements: {}", error.with_causes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> Vec<StoredJudgements> {
        let count =
            |topic: &str, answers| TopicCount { topic: topic.to_owned(), questions: answers + 2, answers };
        let topics = vec![count("judge/gpt-5-mini", 44), count("judge/claude:v1", 2), count("other", 7)];
        let paused = ["model gpt-5-mini at https://a", "model o3 at https://a", "orders"].map(str::to_owned);
        by_model(topics, paused.into_iter())
    }

    #[test]
    fn models_with_judgements_or_pauses_are_found() {
        let found = found();
        let models: Vec<_> =
            found.iter().map(|found| (found.model.as_str(), found.judgements, found.paused.len())).collect();
        assert_eq!(models, [("gpt-5-mini", 44, 1), ("claude:v1", 2, 0), ("o3", 0, 1)]);
    }

    #[test]
    fn a_model_is_chosen_with_or_without_its_provider() {
        let chosen = |model: &str| choose(found(), model).map(|chosen| chosen[0].model.clone());
        for (named, model) in
            [("gpt-5-mini", "gpt-5-mini"), ("openai:gpt-5-mini", "gpt-5-mini"), ("claude:v1", "claude:v1")]
        {
            assert_eq!(chosen(named).unwrap(), model);
        }
        let Err(Error::Misconfigured(why)) = chosen("gpt-5") else { panic!("it is none of them") };
        assert!(why.to_string().contains("only of gpt-5-mini, claude:v1, o3"), "{why}");
    }
}
