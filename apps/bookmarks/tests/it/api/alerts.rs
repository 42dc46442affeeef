//! Alerts of the service, and the receiver that gets them.
// SPEC A15.

use std::time::Duration;

use bookmarks::{AlertWebhook, Settings};
use http::{Method, StatusCode};
use http_for_tests::Receiver;
use ichido::alert::{AlertRule, AlertSubject};
use ichido::worker::AlertFormat;
use ichido_store::testing::sqlite;
use serde_json::{Value, json};

use super::fixture::{ApiFixture, ApiRequest, RunningService, in_time, look_again};
use super::pages::{Pages, http_response, story};
use super::program::{address_and_token, start_as, stop};
use crate::both_databases;

/// Slightly longer than the interval of the watch.
const A_ROUND: Duration = Duration::from_secs(11);
/// How many checks there are between two steps of time.
const LOOKS_A_STEP: u32 = 40;

/// A local receiver of alerts.
struct AlertInbox(Receiver);

impl AlertInbox {
    async fn start() -> Self {
        Self(Receiver::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await)
    }

    /// Makes the service send its alerts here.
    fn receive(&self, settings: &mut Settings) {
        let webhook = AlertWebhook::new(&self.0.url("/alerts"), AlertFormat::Webhook);
        settings.alert_webhook = Some(webhook.unwrap());
    }

    /// Returns the first alert that `is_wanted`.
    async fn until_received(&self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let seen = self.0.seen().into_iter();
            let mut alerts = seen.map(|request| serde_json::from_slice::<Value>(&request.body).unwrap());
            if let Some(alert) = alerts.find(&is_wanted) {
                return alert;
            }
            look_again().await;
        }
    }

    /// Waits until an alert is open and its notification has arrived.
    async fn until_notified(&self, service: &RunningService, rule: AlertRule, about: AlertSubject) {
        service.until_firing(rule, &about).await;
        let alert = self
            .until_received(|alert| alert["type"] == "alert.opened" && alert["data"]["rule"] == rule.as_str())
            .await;
        assert_eq!(alert["data"]["about"], about.to_string());
    }
}

impl RunningService {
    /// Waits until an alert is open, and moves the clock meanwhile.
    pub(crate) async fn until_firing(&self, rule: AlertRule, about: &AlertSubject) {
        for look in 1_u32.. {
            let firing = self.store().alerts().firing().await.unwrap();
            if firing.iter().any(|alert| alert.rule == rule && alert.about == *about) {
                return;
            }
            if look % LOOKS_A_STEP == 0 {
                self.pass_a_round().await;
            }
            look_again().await;
        }
    }

    /// Lets a watch period pass, and waits until the worker has noticed: several of them at once would end its leases.
    async fn pass_a_round(&self) {
        self.pass(A_ROUND);
        let now = self.store().now().await.unwrap();
        while !self.store().nodes().list().await.unwrap().iter().any(|node| now <= node.seen_at) {
            look_again().await;
        }
    }
}

both_databases! {
    /// More than 10 dead letters an hour.
    // SPEC A15.
    #[test]
    async fn many_dead_letters_open_an_alert(fixture: ApiFixture) {
        let inbox = AlertInbox::start().await;
        let unreachable = |settings: &mut Settings| {
            settings.may_reach = |_| false;
            inbox.receive(settings);
        };
        let service = fixture.work_as(unreachable).await;
        for number in 0..11 {
            service.saved(&format!("k{number}"), &format!("http://127.0.0.1/{number}")).await;
        }
        inbox.until_notified(&service, AlertRule::DeadLetters, AlertSubject::Queue("extraction".to_owned())).await;
        let alerts = service.store().alerts().list(None, 10).await.unwrap();
        assert!(!alerts.iter().any(|alert| alert.rule == AlertRule::DeadLetter), "a single dead letter does not alert");
    }

    /// More than 50 % duplicates.
    // SPEC A15.
    #[test]
    async fn many_duplicates_open_an_alert(fixture: ApiFixture) {
        let inbox = AlertInbox::start().await;
        let service = fixture.start_as(|settings| inbox.receive(settings)).await;
        for _ in 0..110 {
            assert_eq!(service.save("k1", "https://example.com/").send().await.status, StatusCode::CREATED);
        }
        inbox.until_notified(&service, AlertRule::Duplicates, AlertSubject::Operation("bookmarks.create".to_owned())).await;
    }

    /// Every press has its own key; only the URL shows that it is a duplicate.
    // SPEC A7, A14.
    #[test]
    async fn many_presses_for_one_url_open_the_same_alert(fixture: ApiFixture) {
        let service = fixture.start().await;
        for press in 0..110 {
            service.save(&format!("k{press}"), "https://example.com/").send().await;
        }
        assert_eq!(service.count().await, 1);
        service.until_firing(AlertRule::Duplicates, &AlertSubject::Operation("bookmarks.create".to_owned())).await;
    }

    /// More than 5 % of retries failing.
    // SPEC A15.
    #[test]
    async fn many_failing_retries_open_an_alert(fixture: ApiFixture) {
        let inbox = AlertInbox::start().await;
        let service = fixture.work_as(|settings| inbox.receive(settings)).await;
        let pages = Pages::start(|path, _| if path.ends_with('0') { story() } else { http_response("500 Oh", "", b"") }).await;
        for number in 0..24 {
            service.saved(&format!("k{number}"), &pages.url(&format!("/{number}"))).await;
        }
        inbox.until_notified(&service, AlertRule::FailedRetries, AlertSubject::Queue("extraction".to_owned())).await;
    }

    /// A mean delay over 5 minutes until pages are summarised.
    // SPEC A15.
    #[test]
    async fn a_long_delay_opens_an_alert(fixture: ApiFixture) {
        let inbox = AlertInbox::start().await;
        let service = fixture.start_as(|settings| inbox.receive(settings)).await;
        let pages = Pages::start(|_, _| story()).await;
        for number in 0..6 {
            service.saved(&format!("k{number}"), &pages.url(&format!("/{number}"))).await;
        }
        service.pass(Duration::from_mins(10));
        service.go_on().await;
        inbox.until_notified(&service, AlertRule::ProcessingDelay, AlertSubject::Queue("extraction".to_owned())).await;
    }
}

/// The program itself: its flags lead to a message in a chat.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_sends_its_alerts_to_slack() {
    in_time(async {
        let inbox = AlertInbox::start().await;
        let file = sqlite::fresh_file();
        let (child, printed) = start_as(&file.url, |command| {
            command.args(["--alert-webhook", &inbox.0.url("/secret"), "--alert-format", "slack"]);
            command.args(["--max-attempts", "7"])
        })
        .await;
        assert!(printed.iter().any(|line| line == "bookmarks: alerts: sent to the webhook"), "{printed:?}");
        assert!(!printed.iter().any(|line| line.contains("/secret")), "{printed:?}");
        let (address, token) = address_and_token(&printed);
        for number in 0..11 {
            let save = ApiRequest::to(address, "/v1/bookmarks")
                .method(Method::POST)
                .header("authorization", &format!("Bearer {token}"))
                .header("idempotency-key", &format!("k{number}"));
            // It may not read pages on this machine, so each job is dead at once.
            let save = save.json(&json!({ "url": format!("http://127.0.0.1/{number}") })).send().await;
            assert_eq!((save.status, &save.json()["maxAttempts"]), (StatusCode::CREATED, &json!(7)));
        }
        let alert = inbox.until_received(|_| true).await;
        let text = alert["text"].as_str().unwrap();
        assert!(text.starts_with(":rotating_light: queue extraction: "), "{text}");
        stop(child).await;
    })
    .await;
}
