//! A model summarises: its answers, and its failures.
// SPEC A10.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use bookmarks::Settings;
use fake_llm::action::{AnswerShape, ProviderFault, ScriptedAction};
use fake_llm::script::{Script, ScriptRule};
use fake_llm::{Fake, start};
use ichido::alert::AlertSubject;
use ichido_llm::models::{OpenAiSettings, ServiceSettings};
use serde_json::{Value, json};
use uuid::Uuid;

use super::fixture::{ApiFixture, look_again};
use super::pages::{Pages, story};
use crate::both_databases;

pub(crate) fn playing(rules: Vec<ScriptRule>) -> Fake {
    start(Script { rules, ..Script::default() })
}

/// Uses a fake provider as the model.
pub(crate) fn asks(fake: &Fake) -> impl FnOnce(&mut Settings) {
    asks_model("a-model", fake)
}

/// The same, under a name.
fn asks_model(name: &str, fake: &Fake) -> impl FnOnce(&mut Settings) {
    let service = ServiceSettings {
        api_key: Some("sk-not-to-be-shown".to_owned()),
        ..ServiceSettings::new(name, format!("{}/v1", fake.url()))
    };
    let model = Arc::new(OpenAiSettings::new(service).resolve().expect("settings"));
    move |settings| settings.model = Some(model)
}

pub(crate) fn say(words: &str) -> ScriptRule {
    ScriptRule::new(ScriptedAction::Say(words.to_owned()))
}

fn first(action: ScriptedAction) -> ScriptRule {
    ScriptRule { first: Some(1), ..ScriptRule::new(action) }
}

both_databases! {
    #[test]
    async fn a_summary_by_a_model_names_the_model_as_author(fixture: ApiFixture) {
        let fake = playing(vec![say("  A fox jumped\nover a dog. ")]);
        let service = fixture.work_as(asks(&fake)).await;
        let pages = Pages::start(|_, _| story()).await;
        let id = service.saved("k1", &pages.url("/")).await;
        let bookmark = service.until(&id, "done").await;
        assert_eq!((&bookmark["summary"], &bookmark["summaryBy"]), (&json!("A fox jumped over a dog."), &json!("model")));
        let seen = fake.seen();
        assert_eq!(seen.format_faults, []);
        assert_eq!(seen.last_request.unwrap().max_tokens, Some(2_048));
    }

    #[test]
    async fn a_long_summary_is_truncated(fixture: ApiFixture) {
        let fake = playing(vec![say(&"word ".repeat(300))]);
        let service = fixture.work_as(asks(&fake)).await;
        let pages = Pages::start(|_, _| story()).await;
        let id = service.saved("k1", &pages.url("/")).await;
        let bookmark = service.until(&id, "done").await;
        assert!(bookmark["summary"].as_str().unwrap().chars().count() <= 400);
    }

    /// A model that reasons gets enough tokens, and is asked to reason little.
    #[test]
    async fn a_reasoning_model_summarises(fixture: ApiFixture) {
        let fake = start(Script { reasoning_tokens: 6_000, ..Script::default() });
        let service = fixture.work_as(asks_model("gpt-5-mini", &fake)).await;
        let pages = Pages::start(|_, _| story()).await;
        let id = service.saved("k1", &pages.url("/")).await;
        assert_eq!(service.until(&id, "done").await["summaryBy"], "model");
        let seen = fake.seen();
        assert_eq!((seen.format_faults, seen.all.requests), (vec![], 1));
    }

    /// It is asked for at once, with twice the tokens; if that is not enough either, a person decides.
    #[test]
    async fn a_summary_that_is_cut_off_is_asked_for_once_more(fixture: ApiFixture) {
        let fake = playing(Vec::new());
        let service = fixture.work_as(asks(&fake)).await;
        let pages = Pages::start(|_, _| story()).await;
        let cut_off = |times| ScriptRule {
            first: Some(times),
            ..ScriptRule::new(ScriptedAction::Answer(AnswerShape::CutOff))
        };
        fake.script(Script { rules: vec![cut_off(1), say("A fox.")], ..Script::default() });
        let id = service.saved("k1", &pages.url("/1")).await;
        let done = service.until(&id, "done").await;
        assert_eq!((&done["summary"], &done["attempt"]), (&json!("A fox."), &json!(1)));
        assert_eq!(fake.seen().last_request.unwrap().max_tokens, Some(4_096));
        let before = fake.seen().all.requests;
        fake.script(Script { rules: vec![cut_off(2), say("A fox.")], ..Script::default() });
        let id = service.saved("k2", &pages.url("/2")).await;
        let failed = service.until(&id, "failed").await;
        assert_eq!((&failed["errorCode"], &failed["canRetry"], &failed["attempt"]), (&json!("model_unusable"), &json!(true), &json!(1)));
        let row = service.row("SELECT error_message FROM failed_jobs").await;
        assert!(format!("{row:?}").contains("the summary does not fit into 4096 tokens"), "{row:?}");
        assert_eq!(fake.seen().all.requests, before + 2, "no attempt of the engine repeats it");
    }

    /// Throttled, down, unusable: each is retried without fetching the page again.
    #[test]
    async fn a_model_that_recovers_is_called_again(fixture: ApiFixture) {
        let fake = playing(Vec::new());
        let service = fixture.work_as(asks(&fake)).await;
        let pages = Pages::start(|_, _| story()).await;
        for (action, code) in [
            (ScriptedAction::Fail(ProviderFault::Throttle), "model_busy"),
            (ScriptedAction::Fail(ProviderFault::Unavailable), "model_unavailable"),
            (ScriptedAction::DropCompleted, "model_unavailable"),
            (ScriptedAction::Answer(AnswerShape::Filtered), "model_unusable"),
            (ScriptedAction::Say(" ".to_owned()), "model_unusable"),
        ] {
            fake.script(Script { rules: vec![first(action.clone()), say("A fox.")], ..Script::default() });
            let path = format!("/{action:?}").replace([' ', '"'], "-");
            let id = service.saved(&path, &pages.url(&path)).await;
            let waiting = service.until(&id, "retrying").await;
            assert_eq!((&waiting["errorCode"], &waiting["jobType"]), (&json!(code), &json!("llm_processing")), "{action:?}");
            assert_eq!((&waiting["title"], &waiting["summary"]), (&json!("The fox"), &Value::Null), "{action:?}");
            service.pass(Duration::from_mins(5));
            let done = service.until(&id, "done").await;
            assert_eq!((&done["summary"], pages.requests(&path)), (&json!("A fox."), 1), "{action:?}");
        }
    }

    /// Calls, retries, throttled calls, unusable answers, abandoned summaries, and calls that may be billed twice.
    // SPEC B12.
    #[test]
    async fn calls_to_the_model_are_counted(fixture: ApiFixture) {
        let fake = playing(vec![
            first(ScriptedAction::Fail(ProviderFault::Throttle)),
            first(ScriptedAction::DropCompleted),
            ScriptRule { first: Some(2), ..ScriptRule::new(ScriptedAction::Answer(AnswerShape::CutOff)) },
        ]);
        // Counters are global to the program, so this case has a model of its own.
        let model = format!("model-{}", Uuid::now_v7());
        let asks = asks_model(&model, &fake);
        let three_attempts = |settings: &mut Settings| {
            asks(settings);
            settings.retry.max_attempts = NonZeroU32::new(3).unwrap();
        };
        let service = fixture.work_as(three_attempts).await;
        let pages = Pages::start(|_, _| story()).await;
        let id = service.saved("k1", &pages.url("/")).await;
        for attempt in 1..3 {
            while service.until(&id, "retrying").await["attempt"] != attempt {
                look_again().await;
            }
            service.pass(Duration::from_mins(10));
        }
        service.until(&id, "failed").await;
        let label = format!("model=\"{model}\"");
        for (counted, times) in [
            ("calls", 4.0),
            ("retries", 3.0),
            ("throttled", 1.0),
            ("unusable_answers", 2.0),
            ("fallbacks", 1.0),
            ("possibly_billed_twice", 1.0),
        ] {
            service.until_measured(&format!("ichido_llm_{counted}_total"), &[&label], times).await;
        }
    }

    /// A request that the model refuses, and a quota that is used up, are not a lack of access, and a person reads which.
    #[test]
    async fn a_refused_request_and_a_spent_quota_have_their_own_words(fixture: ApiFixture) {
        let fake = playing(Vec::new());
        let service = fixture.work_as(asks(&fake)).await;
        let pages = Pages::start(|_, _| story()).await;
        for (fault, code, words) in [
            (ProviderFault::Invalid, "model_request", "The summariser could not accept this page"),
            (ProviderFault::SpendLimit, "model_quota", "The quota of the summariser is used up"),
        ] {
            fake.script(Script { rules: vec![ScriptRule::new(ScriptedAction::Fail(fault))], ..Script::default() });
            let id = service.saved(code, &pages.url(&format!("/{code}"))).await;
            let failed = service.until(&id, "failed").await;
            assert_eq!((&failed["error_code"], &failed["error_message"]), (&json!(code), &json!(words)));
            assert_eq!((&failed["can_retry"], &failed["attempt"]), (&json!(true), &json!(1)), "{code}");
        }
    }

    /// A wrong key is not the fault of the person who saves links: it fails at once, and a retry helps once it is
    /// fixed.
    #[test]
    async fn a_rejected_api_key_fails_at_once_and_is_retryable(fixture: ApiFixture) {
        let fake = playing(vec![first(ScriptedAction::Fail(ProviderFault::Denied)), say("A fox.")]);
        let service = fixture.work_as(asks(&fake)).await;
        let pages = Pages::start(|_, _| story()).await;
        let id = service.saved("k1", &pages.url("/")).await;
        let failed = service.until(&id, "failed").await;
        assert_eq!((&failed["errorCode"], &failed["canRetry"], &failed["attempt"]), (&json!("model_refused"), &json!(true), &json!(1)));
        assert_eq!(service.number("SELECT count(*) FROM failed_jobs WHERE job_type = 'llm_processing' AND retryable").await, 1);
        let row = service.row("SELECT error_message, CAST(payload AS text) FROM failed_jobs").await;
        assert!(!format!("{row:?}").contains("sk-not-to-be-shown"));
        service.until_firing(ichido::alert::AlertRule::DeadLetter, &AlertSubject::Queue("llm_processing".to_owned())).await;
        let again = service.ask(http::Method::POST, &format!("/v1/bookmarks/{id}/reprocess")).send().await;
        assert_eq!(again.status, http::StatusCode::ACCEPTED);
        assert_eq!(service.until(&id, "done").await["summary"], "A fox.");
    }
}
