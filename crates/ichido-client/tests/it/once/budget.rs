//! Tests the retry budget that all calls share, which protects a failing server.

use ichido_client::decision::GiveUpReason;
use ichido_client::{Client, ClientSettings, Outcome};
use ichido_core::retry::BudgetSettings;
use ichido_core::verdict::Effect;

use crate::server::{ServerAction, TestServer, build_client, order, plain, with};

fn with_budget(server: &TestServer, budget: Option<BudgetSettings>) -> Client {
    build_client(ClientSettings { budget, ..server.settings() })
}

async fn gave_up(client: &Client, key: &str) -> (GiveUpReason, Effect, u32) {
    match client.send(&order(key)).await {
        Outcome::GaveUp { why, effect, attempts, .. } => (why, effect, attempts),
        other => panic!("it was not given up: {other:?}"),
    }
}

#[tokio::test]
async fn spent_budget_shared_by_all_calls_stops_retries() {
    let server = TestServer::with_actions(vec![ServerAction::Say(plain("503 Down"))]).await;
    let three = BudgetSettings { capacity: 300, earned_per_success: 20 };
    let client = with_budget(&server, Some(three));
    assert_eq!(gave_up(&client, "k1").await, (GiveUpReason::TriesSpent, Effect::Unknown, 3));
    assert_eq!(gave_up(&client, "k2").await, (GiveUpReason::BudgetSpent, Effect::Unknown, 2));
    assert_eq!(gave_up(&client, "k3").await, (GiveUpReason::BudgetSpent, Effect::Unknown, 1));
    let read = client.read("/").await;
    assert!(
        matches!(read, Ok(Outcome::GaveUp { why: GiveUpReason::BudgetSpent, attempts: 1, .. })),
        "{read:?}"
    );
    assert_eq!(server.seen().len(), 3 + 2 + 1 + 1);
    assert!(GiveUpReason::BudgetSpent.to_string().contains("retry budget is spent"));
}

#[tokio::test]
async fn default_budget_is_ten_retries_and_none_is_unlimited() {
    let server = TestServer::with_actions(vec![ServerAction::Say(plain("503 Down"))]).await;
    let client = server.client();
    for nth in 0..5 {
        assert_eq!(gave_up(&client, &format!("k{nth}")).await.0, GiveUpReason::TriesSpent);
    }
    assert_eq!(gave_up(&client, "k5").await.0, GiveUpReason::BudgetSpent);
    let unlimited = with_budget(&server, None);
    for nth in 6..20 {
        assert_eq!(
            gave_up(&unlimited, &format!("k{nth}")).await,
            (GiveUpReason::TriesSpent, Effect::Unknown, 3)
        );
    }
}

#[tokio::test]
async fn only_success_on_the_first_attempt_earns_budget() {
    let server = TestServer::start(|nth, request| match (request.key(), nth) {
        ("k1" | "k2" | "k4", 0) => ServerAction::Say(plain("503 Busy")),
        _ => ServerAction::Work,
    })
    .await;
    // Two successes earn one retry.
    let client = with_budget(&server, Some(BudgetSettings { capacity: 100, earned_per_success: 50 }));
    assert!(matches!(client.send(&order("k1")).await, Outcome::Done { attempts: 2, .. }), "it was saved up");
    assert_eq!(
        gave_up(&client, "k2").await,
        (GiveUpReason::BudgetSpent, Effect::Unknown, 1),
        "k1 failed first"
    );
    assert!(matches!(client.send(&order("k3")).await, Outcome::Done { attempts: 1, .. }));
    assert!(matches!(client.send(&order("k2")).await, Outcome::Done { attempts: 1, .. }));
    assert!(matches!(client.send(&order("k4")).await, Outcome::Done { attempts: 2, .. }), "two succeeded");
}

#[tokio::test]
async fn polling_an_action_in_flight_costs_no_budget() {
    let processing =
        with("202 Accepted", &[("Idempotency-Status", "processing"), ("Retry-After", "0")], "{}");
    let mut acts = vec![ServerAction::Say(processing); 7];
    acts.push(ServerAction::Work);
    let server = TestServer::with_actions(acts).await;
    let client = with_budget(&server, Some(BudgetSettings { capacity: 0, earned_per_success: 0 }));
    let outcome = client.send(&order("k1")).await;
    assert!(matches!(outcome, Outcome::Done { attempts: 8, .. }), "{outcome:?}");
}
