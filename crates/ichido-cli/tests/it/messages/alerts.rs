//! Alerts as users see them: sent over real HTTP by a real server, and listed.
// Spec: A15, D8, E5.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use ichido_core::lifecycle::{Failure, StateName};
use ichido_core::verdict::Effect;
use ichido_store::message::{MessageFilter, QueueName};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use super::fixture::{ServerAndStore, objects, run, store};
use crate::dead::fixture::{StoreFixture, both_databases};
use crate::http_message::{HttpMessage, HttpReader, MessageKind};
use crate::serve::program::{POLL_EVERY, ServeProcess};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A receiver of alerts that accepts everything.
struct AlertReceiver {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<HttpMessage>>>,
}

impl AlertReceiver {
    async fn listen(at: SocketAddr) -> Self {
        let listener = TcpListener::bind(at).await.unwrap();
        let (address, requests) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<HttpMessage>>>::default());
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let seen = Arc::clone(&seen);
                tokio::spawn(async move {
                    let (read, mut write) = stream.into_split();
                    let mut reader = HttpReader::new(read);
                    while let Ok(Some(request)) = reader.message(MessageKind::Request).await {
                        seen.lock().unwrap().push(request);
                        write.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
                    }
                });
            }
        });
        Self { address, requests }
    }

    fn all(&self) -> Vec<HttpMessage> {
        self.requests.lock().unwrap().clone()
    }

    async fn until(&self, count: usize) -> Vec<HttpMessage> {
        while self.all().len() < count {
            tokio::time::sleep(POLL_EVERY).await;
        }
        self.all()
    }
}

/// Returns a free port on this machine.
fn free() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Adds receivers to the configuration.
fn add_receivers(fixture: &StoreFixture, ops: SocketAddr, chat: SocketAddr) {
    let file = fixture.folder().join("ichido.toml");
    let before = std::fs::read_to_string(&file).unwrap();
    let receivers = format!(
        r#"
[alerts.to.ops]
destination = "ops"
format = "webhook"
[alerts.to.chat]
destination = "chat"
format = "slack"
[destinations.ops]
kind = "http"
url = "http://{ops}/hook"
signing_secrets = ["file:ops-secret"]
guarantee = "idempotent"
[destinations.chat]
kind = "http"
url = "http://{chat}/services/T0/B0"
guarantee = "idempotent"
"#
    );
    std::fs::write(fixture.folder().join("ops-secret"), SECRET).unwrap();
    std::fs::write(file, before + &receivers).unwrap();
}

/// Returns the rules that a webhook receiver was notified of, in order.
fn rules(requests: &[HttpMessage], kind: &str) -> Vec<String> {
    let events: Vec<Value> =
        requests.iter().map(HttpMessage::json).filter(|event| event["type"] == kind).collect();
    let mut rules: Vec<String> =
        events.iter().map(|event| event["data"]["rule"].as_str().unwrap().to_owned()).collect();
    rules.sort_unstable();
    rules
}

/// Waits until a queue has a message in a state.
async fn until(fixture: &StoreFixture, queue: &str, stage: StateName) {
    let filter =
        MessageFilter { queue: QueueName::parse(queue), status: Some(stage), ..MessageFilter::default() };
    while fixture.store.messages().list(&filter, 1).await.unwrap().is_empty() {
        tokio::time::sleep(POLL_EVERY).await;
    }
}

both_databases! {
    #[test]
    async fn alerts_are_sent_as_signed_webhook_or_text(fixture: StoreFixture) {
        let (ops, chat) = (AlertReceiver::listen(free()).await, AlertReceiver::listen(free()).await);
        add_receivers(&fixture, ops.address, chat.address);
        fixture.dead("orders", 11).await;
        fixture.letters("mail", 2, Failure::InDoubt, Effect::Unknown).await;
        let targets = ServerAndStore::on(fixture);
        // Ten at once are a surge as well.
        let output = ops.until(4).await;
        assert_eq!(rules(&output, "alert.opened"), ["dead_letter", "dead_letters", "dead_surge", "parked"]);
        for request in &output {
            assert_eq!((request.first.as_str(), request.one("content-type")), ("POST /hook HTTP/1.1", Some("application/json")));
            assert!(request.one("webhook-signature").unwrap().starts_with("v1,"), "{request:?}");
            assert!(request.one("idempotency-key").is_some(), "{request:?}");
        }
        let mut texts: Vec<String> =
            chat.until(4).await.iter().map(|request| request.json()["text"].as_str().unwrap().to_owned()).collect();
        texts.sort_unstable();
        let parked = ":rotating_light: queue mail: 2 parked with an unknown effect; a person must decide. Newest: ";
        assert!(texts[0].starts_with(parked), "{texts:?}");
        let died = ":rotating_light: queue orders: 11 dead-lettered within 15m. Newest: ";
        assert!(texts.iter().any(|text| text.starts_with(died) && text.contains(": no such symbol")), "{texts:?}");

        let listed = targets.success_output(&["alerts"]);
        let lines: Vec<&str> = listed.lines().collect();
        assert!(lines.len() == 5 && lines[0].starts_with("OPENED"), "{listed}");
        assert!(listed.contains("firing  dead_letters  queue orders: 11 dead-lettered within 1h (limit: 10)"), "{listed}");
        let objects = targets.json(&["alerts"]);
        let parked = objects.iter().find(|alert| alert["rule"] == "parked").unwrap();
        assert_eq!((&parked["about"], &parked["state"], &parked["unit"]), (&"queue mail".into(), &"firing".into(), &"count".into()));
        assert_eq!((parked["value"].as_f64(), parked["samples"].as_u64()), (Some(2.0), Some(2)));
        // Paged, the list is the same.
        let all = targets.json(&["alerts", "--all"]);
        assert_eq!(all.len(), 4, "{all:?}");
        let first = targets.server.get("/v1/alerts?limit=3").await.json();
        let next = first["next"].as_str().unwrap();
        let rest = targets.server.get(&format!("/v1/alerts?limit=3&cursor={next}")).await.json();
        let paged: Vec<Value> = [&first, &rest].iter().flat_map(|page| page["alerts"].as_array().unwrap().clone()).collect();
        assert_eq!((paged, &rest["next"]), (all, &Value::Null));
        for target in ["/v1/alerts?state=resolved", "/v1/alerts?limit=0", "/v1/alerts?cursor=x", "/v1/alerts?other=1"] {
            let refused = targets.server.get(target).await;
            assert_eq!((refused.status(), refused.code().as_str()), (400, "parameter_invalid"), "{target}");
        }
        assert_eq!((ops.all().len(), chat.all().len()), (4, 4), "each was notified once");
    }

    /// The server is killed after recording the alert and before notifying anybody: the next one notifies, once.
    #[test]
    async fn kill_before_alert_delivery_loses_no_alert(fixture: StoreFixture) {
        let chat = AlertReceiver::listen(free()).await;
        // Nobody listens there yet.
        let away = TcpListener::bind(free()).await.unwrap().local_addr().unwrap();
        add_receivers(&fixture, away, chat.address);
        fixture.dead("orders", 1).await;
        let server = ServeProcess::start(fixture.folder(), &["--store", &fixture.url]);
        until(&fixture, "ichido-alerts.chat", StateName::Sent).await;
        until(&fixture, "ichido-alerts.ops", StateName::Failed).await;
        server.signal("KILL");
        drop(server);
        let firing = objects(&run(store(&fixture, &["alerts", "--json"])).out);
        assert_eq!(firing.len(), 1, "{firing:?}");
        let ops = AlertReceiver::listen(away).await;
        let _next = ServeProcess::start(fixture.folder(), &["--store", &fixture.url]);
        let output = ops.until(1).await;
        assert_eq!(output[0].json()["data"]["id"], firing[0]["id"]);
        assert_eq!(rules(&output, "alert.opened"), ["dead_letter"]);
        assert_eq!(chat.all().len(), 1, "earlier receivers are not notified again");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn empty_alert_list_prints_a_note() {
    let targets = ServerAndStore::on(StoreFixture::on_sqlite().await);
    assert_eq!(targets.success_output(&["alerts"]), "no alerts are firing\n");
    assert_eq!(targets.success_output(&["alerts", "--all"]), "no alerts\n");
    assert_eq!(targets.success_output(&["alerts", "--json"]), "");
}
