//! Our client at our adapter, in each profile that both support.
// Spec: A8, C5, C6, F1.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use ichido_client::decision::GiveUpReason;
use ichido_client::{Action, Client, ClientSettings, Outcome};
use ichido_core::hops::Hops;
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::Profile;
use ichido_core::verdict::Effect;
use ichido_store::testing::sqlite::fresh_file;

use super::program::ProxyProcess;
use super::service::{FakeService, ReleaseGate, ServiceAction, answer};

const PROFILES: [(Profile, &str); 3] =
    [(Profile::Ichido, "ichido"), (Profile::Ietf, "ietf"), (Profile::Stripe, "stripe")];

fn adapter(service: &FakeService, store: &str, profile: &str) -> ProxyProcess {
    let flags = ["--store", store, "--identity", "single:shop", "--operation", "POST /orders"];
    ProxyProcess::start("adapter", service.address, &[&flags[..], &["--profile", profile]].concat())
}

fn settings(proxy: &ProxyProcess, profile: Profile) -> ClientSettings {
    ClientSettings { profile, ..ClientSettings::new(format!("http://{}", proxy.address)) }
}

fn client(settings: ClientSettings) -> Client {
    settings.resolve().expect("the settings make sense")
}

fn order(body: &'static str) -> Action {
    let key = IdempotencyKey::parse("k").expect("a key");
    Action::new(Method::POST, "/orders", key, "application/json", body).expect("an action")
}

#[tokio::test]
async fn in_flight_action_is_polled_and_takes_effect_once() {
    for (profile, name) in PROFILES {
        let (file, gate) = (fresh_file(), ReleaseGate::default());
        let opened = gate.clone();
        let late = answer("201 Created", &[], "late");
        let service =
            FakeService::start(move |_, _| ServiceAction::AnswerWhen(opened.clone(), late.clone())).await;
        let proxy = adapter(&service, &file.url, name);
        let patient = Arc::new(client(settings(&proxy, profile)));
        let send = || {
            let client = Arc::clone(&patient);
            tokio::spawn(async move { client.send(&order(r#"{"qty":1}"#)).await })
        };
        let first = send();
        service.until_seen(1).await;

        // A client that does not wait reports the response, and does not treat it as an outcome.
        let hasty = client(ClientSettings { max_retry_after: Duration::ZERO, ..settings(&proxy, profile) });
        let text = hasty.send(&order(r#"{"qty":1}"#)).await;
        let Outcome::GaveUp {
            why: GiveUpReason::AskedToWait { .. },
            effect: Effect::Unknown,
            attempts: 1,
            ..
        } = text
        else {
            panic!("{name}: {text:?}");
        };

        let second = send();
        gate.open();
        for (sent, is_replay) in [(first, false), (second, true)] {
            let outcome = sent.await.expect("it ends");
            let Outcome::Done { answer, .. } = outcome else { panic!("{name}: {outcome:?}") };
            assert_eq!((answer.is_replay(), &answer.body[..]), (is_replay, &b"late"[..]), "{name}");
        }
        assert_eq!(service.seen().len(), 1, "{name}");
    }
}

#[tokio::test]
async fn key_conflict_is_reported_in_every_profile() {
    for (profile, name) in PROFILES {
        let file = fresh_file();
        let service = FakeService::start(|_, _| ServiceAction::Answer(answer("201 Created", &[], ""))).await;
        let proxy = adapter(&service, &file.url, name);
        let client = client(settings(&proxy, profile));
        assert!(matches!(client.send(&order(r#"{"qty":1}"#)).await, Outcome::Done { .. }), "{name}");
        let other = client.send(&order(r#"{"qty":2}"#)).await;
        assert!(other.is_key_conflict(), "{name}: {other:?}");
        assert_eq!(service.seen().len(), 1, "{name}");
    }
}

#[tokio::test]
async fn hop_chain_starts_at_the_client() {
    let file = fresh_file();
    let service = FakeService::start(|_, _| ServiceAction::Answer(answer("201 Created", &[], ""))).await;
    let proxy = adapter(&service, &file.url, "ichido");
    let outcome = client(settings(&proxy, Profile::Ichido)).send(&order("{}")).await;
    assert!(matches!(outcome, Outcome::Done { .. }), "{outcome:?}");
    let hops = Hops::read(service.only().all("ichido-hops"));
    let names: Vec<&str> = hops.iter().map(|hop| hop.name.as_str()).collect();
    assert_eq!(names, ["client", "adapter"]);
    let ids: Vec<&str> = hops.iter().map(|hop| hop.request_id.as_str()).collect();
    assert_eq!(ids[0], ids[1], "one id for the one request");
}
