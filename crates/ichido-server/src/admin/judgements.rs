//! Stored judgements, and the pauses that providers asked for, by model.
//!
//! Guarantee: only what was found and passed to [`delete`] is deleted, and nothing of another topic.
// SPEC B7, D6.

use ichido::worker::Paces;
use ichido_core::pace::Rate;
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
    /// Its paces that are paused, or slowed by refusals.
    #[serde(skip)]
    pub paces: Vec<String>,
    /// Whether one is paused.
    #[serde(skip)]
    pub is_paused: bool,
}

/// Returns the topic of a model's judgements.
pub fn topic(model: &str) -> String {
    format!("{TOPIC}{model}")
}

/// Finds every model with judgements, a pause or a learned pace; or the one that the flag names, with or without its
/// provider.
pub async fn find(store: &Store, model: Option<&str>, flag: &str) -> Result<Vec<StoredJudgements>, Error> {
    let topics = store.answers().topics().await.map_err(|error| failed(&error))?;
    let paces = Paces::new(store.clone()).list().await.map_err(|error| failed(&error))?;
    let now = store.now().await.map_err(|error| failed(&error))?;
    let limited = paces.into_iter().filter_map(|(name, shared)| {
        let is_paused = now < shared.pace.paused_until;
        (is_paused || matches!(shared.pace.rate, Rate::Paced(_))).then_some((name, is_paused))
    });
    let found = by_model(topics, limited);
    match model {
        Some(model) => choose(found, model, flag),
        None => Ok(found),
    }
}

/// Ends the pauses of a model, and forgets the pace that its refusals led to.
pub async fn resume(store: &Store, found: &StoredJudgements) -> Result<(), Error> {
    for pace in &found.paces {
        Paces::new(store.clone()).forget(pace).await.map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// Deletes the judgements of a model with the record of lost calls.
pub async fn delete(store: &Store, found: &StoredJudgements) -> Result<(), Error> {
    let topic = topic(&found.model);
    while 0 < store.answers().delete(&topic, DELETE_STEP).await.map_err(|error| failed(&error))? {}
    Ok(())
}

fn by_model(topics: Vec<TopicCount>, limited: impl Iterator<Item = (String, bool)>) -> Vec<StoredJudgements> {
    let read = |TopicCount { topic, answers, .. }: TopicCount| {
        let model = topic.strip_prefix(TOPIC)?.to_owned();
        Some(StoredJudgements { model, judgements: answers, paces: Vec::new(), is_paused: false })
    };
    let mut models: Vec<StoredJudgements> = topics.into_iter().filter_map(read).collect();
    for (pace, is_paused) in limited {
        let Some(model) = paced_model(&pace).map(str::to_owned) else { continue };
        match models.iter_mut().find(|found| found.model == model) {
            Some(found) => {
                found.paces.push(pace);
                found.is_paused |= is_paused;
            }
            None => models.push(StoredJudgements { model, judgements: 0, paces: vec![pace], is_paused }),
        }
    }
    models
}

fn choose(found: Vec<StoredJudgements>, model: &str, flag: &str) -> Result<Vec<StoredJudgements>, Error> {
    let without_provider = PROVIDERS.iter().find_map(|provider| model.strip_prefix(provider));
    let is_named = |found: &StoredJudgements| {
        found.model == model || without_provider.is_some_and(|name| found.model == name)
    };
    if found.iter().any(is_named) {
        return Ok(found.into_iter().filter(is_named).collect());
    }
    let names: Vec<_> = found.iter().map(|found| found.model.as_str()).collect();
    let what = match names.as_slice() {
        [] => "nothing is stored of any model".to_owned(),
        names => format!("nothing is stored of {model:?}, only of {}", names.join(", ")),
    };
    Err(Error::Misconfigured(ConfigErrors::one(flag, what)))
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
        let limited = [
            ("model gpt-5-mini at https://a", false),
            ("model gpt-5-mini at https://b", true),
            ("model o3 at https://a", false),
            ("orders", true),
        ];
        by_model(topics, limited.into_iter().map(|(pace, is_paused)| (pace.to_owned(), is_paused)))
    }

    #[test]
    fn models_with_judgements_or_pauses_are_found() {
        let found = found();
        let of = |found: &StoredJudgements| {
            (found.model.clone(), found.judgements, found.paces.len(), found.is_paused)
        };
        let expected = [("gpt-5-mini", 44, 2, true), ("claude:v1", 2, 0, false), ("o3", 0, 1, false)];
        assert_eq!(
            found.iter().map(of).collect::<Vec<_>>(),
            expected.map(|(model, judgements, paces, paused)| (model.to_owned(), judgements, paces, paused))
        );
    }

    #[test]
    fn a_model_is_chosen_with_or_without_its_provider() {
        let chosen = |model: &str| choose(found(), model, "--resume").map(|chosen| chosen[0].model.clone());
        for (named, model) in
            [("gpt-5-mini", "gpt-5-mini"), ("openai:gpt-5-mini", "gpt-5-mini"), ("claude:v1", "claude:v1")]
        {
            assert_eq!(chosen(named).unwrap(), model);
        }
        let Err(Error::Misconfigured(why)) = chosen("gpt-5") else { panic!("it is none of them") };
        assert!(why.to_string().contains("only of gpt-5-mini, claude:v1, o3"), "{why}");
        let Err(Error::Misconfigured(why)) = choose(Vec::new(), "o3", "--resume") else {
            panic!("nothing is there")
        };
        assert!(why.to_string().contains("--resume: nothing is stored of any model"), "{why}");
    }
}
