//! Tests the guide's code against failing servers.
//!
//! The code is that of the example and of this file.

use std::path::PathBuf;

use ichido_client::Token;
use ichido_client::decision::GiveUpReason;
use ichido_core::ledger::Profile;
use ichido_core::retry::BudgetSettings;

use crate::server::{self, NO_KEY, ServerAction, TestServer, plain, with};

// The example's own functions, as if they were written here.
include!("../../examples/retrying_client/order.rs");

const GUIDE: &str = include_str!("../../../../docs/guides/retrying-client.md");
const PROGRAM: &str = include_str!("../../examples/retrying_client/order.rs");
const REST: &str = include_str!("guide.rs");

// What the guide shows of other servers.

fn careful(url: &str) -> Result<Client, ClientConfigErrors> {
    let budget = BudgetSettings { capacity: 500, earned_per_success: 10 };
    ClientSettings { budget: Some(budget), ..ClientSettings::new(url) }.resolve()
}

fn payments(url: &str, token: Token) -> Result<Client, ClientConfigErrors> {
    let settings = ClientSettings::new(url);
    ClientSettings { profile: Profile::Stripe, token: Some(token), ..settings }.resolve()
}

async fn subscribe(client: &Client) -> Result<Outcome, ActionError> {
    let action = Action::without_key(Method::POST, "/subscribers", "application/json", r#"{"name":"Ann"}"#)?;
    Ok(client.send(&action).await)
}

/// Returns the code blocks of one kind, in order.
fn blocks(kind: &str) -> Vec<&'static str> {
    let fence = format!("```{kind}\n");
    let parts = GUIDE.split(fence.as_str()).skip(1);
    parts.map(|block| block.split("\n```").next().expect("it ends")).collect()
}

fn order() -> Order {
    Order { key: new_key().unwrap(), body: "{}".to_owned() }
}

async fn place(client: &Client) -> String {
    describe(&client.send(&order().action().unwrap()).await)
}

fn url(server: &TestServer) -> String {
    format!("http://{}", server.address)
}

#[test]
fn every_block_of_the_guide_is_code_that_runs_here() {
    let blocks = blocks("rust");
    assert_eq!(blocks.len(), 6);
    for block in blocks {
        assert!(PROGRAM.contains(block) || REST.contains(block), "this is in the guide alone:\n{block}");
    }
}

fn no_file_yet() -> PathBuf {
    std::env::temp_dir().join(format!("ichido-guide-{}", new_key().unwrap().as_str()))
}

/// A server that compares bodies, as Ichido does.
#[tokio::test]
async fn program_prints_what_the_guide_shows() {
    let used = with("409 Conflict", &[], r#"{"code":"key_conflict"}"#);
    let server = TestServer::start(move |_, request| {
        let is_other = request.body.windows(4).any(|four| four == b"sell");
        if is_other { ServerAction::Say(used.clone()) } else { ServerAction::Work }
    })
    .await;
    let kept = no_file_yet();
    assert_eq!(run(&url(&server), &kept).await.unwrap().join("\n"), blocks("text")[0]);
    assert!(!kept.exists(), "what was done is forgotten");

    let down = TestServer::with_actions(vec![ServerAction::Say(plain("404 What"))]).await;
    let lines = run(&url(&down), &kept).await.unwrap();
    assert_eq!(lines, ["first press: refused: the server refused the request"]);
    let key = down.seen()[0].key().to_owned();
    run(&url(&server), &kept).await.unwrap();
    assert_eq!(server.effects(&key), 1, "the next run goes on with the same order");
}

#[tokio::test]
async fn lost_response_is_learned_and_the_order_is_done_once() {
    let server = TestServer::with_actions(vec![ServerAction::WorkAndReset, ServerAction::Work]).await;
    let order = order();
    let outcome = client(&url(&server)).unwrap().send(&order.action().unwrap()).await;
    assert_eq!(describe(&outcome), "already done; replayed the first response");
    assert_eq!((server.effects(order.key.as_str()), server.seen().len()), (1, 2));
}

#[tokio::test]
async fn each_outcome_is_described_as_in_the_guide() {
    let server = TestServer::with_actions(vec![ServerAction::Work]).await;
    assert_eq!(place(&server.client()).await, "done on attempt 1");
    let no = with("422 Odd", &[], r#"{"detail":"no such symbol"}"#);
    let server = TestServer::with_actions(vec![ServerAction::Say(no)]).await;
    assert_eq!(place(&server.client()).await, "refused: no such symbol");
    let used = with("409 Conflict", &[], r#"{"code":"key_conflict"}"#);
    let server = TestServer::with_actions(vec![ServerAction::Say(used)]).await;
    assert_eq!(place(&server.client()).await, "conflict: this key belongs to another order");
    let server = TestServer::with_actions(vec![ServerAction::Say(plain("503 Down"))]).await;
    let unknown = format!("outcome unknown: {}", GiveUpReason::TriesSpent);
    assert_eq!(place(&server.client()).await, unknown);
    let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let nobody = server::build_client(server::quick(format!("http://{}", address.unwrap())));
    assert_eq!(place(&nobody).await, format!("not sent: {}", GiveUpReason::TriesSpent));
}

#[test]
fn order_keeps_its_key_and_bytes_between_runs() {
    let kept = no_file_yet();
    let first = Order::pressed(&kept, "{\n}").unwrap();
    let again = Order::pressed(&kept, "another").unwrap();
    std::fs::remove_file(&kept).unwrap();
    assert!(first.key == again.key && again.body == "{\n}");
    let new = Order::pressed(&kept, "another").unwrap();
    std::fs::remove_file(&kept).unwrap();
    assert!(new.key != first.key && new.body == "another");
}

#[tokio::test]
async fn a_budget_of_five_is_spent_after_five() {
    let server =
        TestServer::with_actions(vec![ServerAction::Say(with("503 Down", &[("Retry-After", "0")], ""))])
            .await;
    let careful = careful(&url(&server)).unwrap();
    let (a, b, c, d) = tokio::join!(place(&careful), place(&careful), place(&careful), place(&careful));
    let spent =
        [a, b, c, d].iter().filter(|told| told.ends_with(&GiveUpReason::BudgetSpent.to_string())).count();
    assert_eq!(spent, 3, "one of them had the last");
    assert_eq!(server.seen().len(), 4 + 5, "four orders, and five retries among them");
}

#[tokio::test]
async fn payment_in_flight_is_polled() {
    let in_use = r#"{"error":{"code":"idempotency_key_in_use"}}"#;
    let server = TestServer::with_actions(vec![
        ServerAction::Say(with("409 Conflict", &[], in_use)),
        ServerAction::Work,
    ])
    .await;
    let payments = payments(&url(&server), Token::parse("sk_test").unwrap()).unwrap();
    assert_eq!(place(&payments).await, "done on attempt 2");
    assert_eq!(server.seen()[0].field("authorization"), Some("Bearer sk_test"));
}

#[tokio::test]
async fn a_subscriber_is_not_signed_up_twice() {
    let server = TestServer::with_actions(vec![ServerAction::WorkAndReset, ServerAction::Work]).await;
    let outcome = subscribe(&server.client()).await.unwrap();
    assert!(matches!(outcome, Outcome::GaveUp { why: GiveUpReason::NoKey, .. }), "{outcome:?}");
    assert_eq!((server.effects(NO_KEY), server.seen().len()), (1, 1));
    assert!(blocks("text").contains(&GiveUpReason::NoKey.to_string().as_str()), "{}", GiveUpReason::NoKey);
}
