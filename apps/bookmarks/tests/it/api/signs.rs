//! Metrics of the service.
// SPEC A14, B12.

use http::{Method, StatusCode};

use super::fixture::{ApiFixture, RunningService, look_again};
use crate::both_databases;

impl RunningService {
    /// Returns the metrics by name and labels. Counters are global to the program, whatever else runs in it.
    pub(crate) async fn measured(&self, name: &str, labels: &[&str]) -> f64 {
        let page = self.bare(Method::GET, "/metrics").send().await;
        assert_eq!(page.status, StatusCode::OK);
        let page = String::from_utf8(page.body.to_vec()).unwrap();
        let lines = page
            .lines()
            .filter(|line| line.starts_with(name) && labels.iter().all(|label| line.contains(label)));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    }

    /// Waits until a metric has at least this value.
    pub(crate) async fn until_measured(&self, name: &str, labels: &[&str], least: f64) {
        while self.measured(name, labels).await < least {
            look_again().await;
        }
    }
}

both_databases! {
    #[test]
    async fn health_endpoints_report_live_and_ready(fixture: ApiFixture) {
        let service = fixture.work().await;
        assert_eq!(service.bare(Method::GET, "/livez").send().await.status, StatusCode::OK);
        while service.bare(Method::GET, "/readyz").send().await.status != StatusCode::OK {
            look_again().await;
        }
    }

    /// Requests with a key, detected duplicates, attempts, dead letters.
    // SPEC A14.
    #[test]
    async fn requests_duplicates_attempts_and_dead_letters_are_counted(fixture: ApiFixture) {
        const REQUESTS: &str = "ichido_once_requests_total";
        let service = fixture.work_as(|settings| settings.may_reach = |_| false).await;
        let replayed = ["operation=\"bookmarks.create\"", "result=\"replayed\""];
        let same_content = ["operation=\"bookmarks.create\"", "result=\"same_content\""];
        let keyless = ["operation=\"bookmarks.create\"", "result=\"keyless\""];
        let auto = ["attempt=\"auto\"", "success=\"true\""];
        let manual = ["attempt=\"manual\"", "success=\"true\""];
        let before = [
            service.measured(REQUESTS, &replayed).await,
            service.measured(REQUESTS, &keyless).await,
            service.measured(REQUESTS, &auto).await,
            service.measured(REQUESTS, &manual).await,
            service.measured(REQUESTS, &same_content).await,
        ];
        let id = service.saved("k1", "http://127.0.0.1/").await;
        service.save("k1", "http://127.0.0.1/").header("ichido-attempt", "2; auto").send().await;
        service.save("k1", "http://127.0.0.1/").header("ichido-attempt", "3; manual").send().await;
        service.ask(Method::POST, "/v1/bookmarks").send().await;
        // Another press for the same page, under its own key.
        service.save("k2", "http://127.0.0.1/?utm_source=mail").send().await;
        service.until(&id, "failed").await;
        service.until_measured(REQUESTS, &replayed, before[0] + 2.0).await;
        service.until_measured(REQUESTS, &keyless, before[1] + 1.0).await;
        service.until_measured(REQUESTS, &auto, before[2] + 1.0).await;
        service.until_measured(REQUESTS, &manual, before[3] + 1.0).await;
        service.until_measured(REQUESTS, &same_content, before[4] + 1.0).await;
        service.until_measured("outbox_send_total", &["queue=\"extraction\"", "outcome=\"dead\""], 1.0).await;
        service.until_measured("outbox_messages", &["queue=\"extraction\"", "state=\"dead\""], 1.0).await;
        service.ask(Method::DELETE, &format!("/v1/bookmarks/{id}")).send().await;
        service.until_measured("outbox_dead_letter_resolve_seconds_count", &["queue=\"extraction\""], 1.0).await;
    }

    /// The names and buckets are those of the engine's own programs, so rules and dashboards apply to both.
    #[test]
    async fn the_metrics_page_has_all_engine_metrics(fixture: ApiFixture) {
        let service = fixture.work_as(|settings| settings.may_reach = |_| false).await;
        let id = service.saved("k1", "http://127.0.0.1/").await;
        service.until(&id, "failed").await;
        let extraction = ["queue=\"extraction\""];
        service.until_measured("outbox_retry_count_count{", &extraction, 1.0).await;
        service.until_measured("outbox_retry_count_bucket{", &["queue=\"extraction\"", "le=\"0\""], 1.0).await;
        service.until_measured("outbox_lag_seconds_bucket{", &["queue=\"extraction\"", "le=\"+Inf\""], 1.0).await;
        let page = service.bare(Method::GET, "/metrics").send().await;
        let page = String::from_utf8(page.body.to_vec()).unwrap();
        assert!(page.contains("# TYPE outbox_retry_count histogram\n"), "{page}");
        assert!(!page.contains("\noutbox_retry_count{"), "the histogram has no sample under its bare name");
    }
}
