//! An operator retries many jobs after fixing the cause.
// SPEC E4.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fake_llm::action::{ProviderFault, ScriptedAction};
use fake_llm::script::{Script, ScriptRule};
use ichido::store::message::MessageFilter;
use serde_json::json;

use super::fixture::ApiFixture;
use super::models::{asks, playing, say};
use super::pages::{Pages, http_response, story};
use super::program::run;
use crate::both_databases;

both_databases! {
    /// The key to the model was wrong all night; after it is fixed, nobody retries each link by hand.
    #[test]
    async fn retry_failed_requeues_all_retryable_jobs(fixture: ApiFixture) {
        let fake = playing(vec![ScriptRule::new(ScriptedAction::Fail(ProviderFault::Denied))]);
        let service = fixture.work_as(asks(&fake)).await;
        let pages = Pages::start(|path, _| if path == "/gone" { http_response("410 Gone", "", b"") } else { story() }).await;
        let mut refused = Vec::new();
        for key in ["k1", "k2", "k3"] {
            refused.push(service.saved(key, &pages.url(&format!("/{key}"))).await);
        }
        let gone = service.saved("k4", &pages.url("/gone")).await;
        for id in refused.iter().chain([&gone]) {
            service.until(id, "failed").await;
        }

        fake.script(Script { rules: vec![say("A fox.")], ..Script::default() });
        let counted = run(&fixture.url, &["retry-failed", "--dry-run"]).await;
        let stdout = String::from_utf8(counted.stdout).unwrap();
        assert!(counted.status.success() && stdout.contains("would requeue 3 of 4 failed jobs"), "{stdout}");
        assert_eq!(service.number("SELECT count(*) FROM failed_jobs").await, 4, "nothing was changed");
        let done = run(&fixture.url, &["retry-failed"]).await;
        let stdout = String::from_utf8(done.stdout).unwrap();
        assert!(done.status.success() && stdout.contains("requeued 3 of 4 failed jobs"), "{stdout}");
        for id in &refused {
            let bookmark = service.until(id, "done").await;
            assert_eq!((&bookmark["summary"], &bookmark["attempt"]), (&json!("A fox."), &json!(1)), "its attempts start again at 1");
        }
        assert_eq!(service.bookmark(&gone).await["state"], "failed");
        assert_eq!(pages.requests("/k1"), 1, "the page is not read again");

        let messages = service.store().messages().list(&MessageFilter::default(), 10).await.unwrap();
        let summarising = messages.iter().find(|message| message.queue.as_str() == "llm_processing").unwrap();
        let steps = service.store().messages().transitions(summarising.id).await.unwrap();
        let kinds: Vec<&str> = steps.iter().map(|step| step.kind.as_str()).collect();
        assert_eq!(kinds, ["claimed", "failed", "requeued", "claimed", "succeeded"], "its history is kept");
        assert_eq!(steps[2].actor.as_deref(), Some("bookmarks retry-failed"));
        let again = run(&fixture.url, &["retry-failed"]).await;
        assert!(String::from_utf8(again.stdout).unwrap().contains("requeued 0 of 1 failed jobs"));
    }

    #[test]
    async fn retry_failed_with_a_code_requeues_only_those_jobs(fixture: ApiFixture) {
        let fake = playing(vec![ScriptRule::new(ScriptedAction::Fail(ProviderFault::Denied))]);
        let service = fixture.work_as(asks(&fake)).await;
        let is_back = Arc::new(AtomicBool::new(false));
        let back = Arc::clone(&is_back);
        let pages = Pages::start(move |path, _| {
            if path == "/gone" && !back.load(Ordering::SeqCst) { http_response("404 Not Found", "", b"") } else { story() }
        })
        .await;
        let gone = service.saved("k1", &pages.url("/gone")).await;
        let refused = service.saved("k2", &pages.url("/")).await;
        for id in [&gone, &refused] {
            service.until(id, "failed").await;
        }
        is_back.store(true, Ordering::SeqCst);
        fake.script(Script { rules: vec![say("A fox.")], ..Script::default() });
        let retried = service.app.retry_failed(Some("page_not_found"), false).await.unwrap();
        assert_eq!((retried.put_back, retried.left), (1, 1));
        service.until(&gone, "done").await;
        assert_eq!(service.bookmark(&refused).await["errorCode"], "model_refused");

        let unknown = service.app.retry_failed(Some("page_gone"), false).await.unwrap_err().to_string();
        assert!(unknown.starts_with("unknown error code \"page_gone\"; use one of page_unreachable, "), "{unknown}");
    }
}
