//! Runs the three commands of the proxy guide as written, and compares the responses.

use ichido_store::testing::sqlite::fresh_file;
use serde_json::json;

use super::client::{ProxyRequest, send};
use super::identity::{SECRET, claims, hs256};
use super::program::ProxyProcess;
use super::service::{FakeService, ServiceAction, answer};
use crate::folder;
use crate::http_message::HttpMessage;

const GUIDE: &str = include_str!("../../../../../docs/guides/run-proxies.md");

/// Returns the words of each `ichido proxy` command, in order.
fn commands() -> Vec<Vec<String>> {
    let whole = GUIDE.replace("\\\n", " ");
    let lines = whole.lines().filter(|line| line.starts_with("ichido proxy "));
    lines.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

/// Returns the value of a flag.
fn flag_value<'a>(command: &'a [String], flag: &str) -> &'a str {
    let at = command.iter().position(|word| word == flag).expect("the flag is there");
    &command[at + 1]
}

/// Returns all flags except the addresses, which a test must choose.
fn flags(command: &[String], place: impl Fn(&str) -> String) -> Vec<String> {
    let mut flags = Vec::new();
    for pair in command["ichido proxy".split(' ').count()..].chunks(2) {
        if !["--role", "--listen", "--upstream"].contains(&pair[0].as_str()) {
            flags.extend([pair[0].clone(), place(&pair[1])]);
        }
    }
    flags
}

/// Returns the statuses and bodies of the responses that the guide shows.
fn answers() -> Vec<(u16, &'static str)> {
    let blocks = GUIDE.split("```http\n").skip(1);
    blocks
        .map(|block| {
            let block = block.split("\n```").next().expect("it ends");
            let (head, body) = block.split_once("\n\n").expect("a head and a body");
            let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
            (status.expect("a status"), body)
        })
        .collect()
}

#[tokio::test]
async fn proxy_guide_commands_work() {
    let [adapter, gateway, bff] = &commands()[..] else { panic!("three commands") };
    for (before, behind) in [(bff, gateway), (gateway, adapter)] {
        assert_eq!(flag_value(before, "--upstream"), format!("http://{}", flag_value(behind, "--listen")));
    }
    let (store, folder) = (fresh_file(), folder::fresh());
    let place = |word: &str| match word {
        "sqlite:outcomes.db" => store.url.clone(),
        "jwt.secret" => folder.write("jwt.secret", SECRET),
        word => match word.strip_prefix("boundaries/") {
            Some(name) => folder.boundary(name, &json!({})),
            None => word.to_owned(),
        },
    };
    let service = FakeService::start(|_, before| {
        let kind = [("content-type", "application/json")];
        ServiceAction::Answer(answer("201 Created", &kind, &format!("{{\"order\": {}}}", before + 1)))
    })
    .await;
    let start = |command: &[String], upstream| {
        let flags = flags(command, place);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        ProxyProcess::start(flag_value(command, "--role"), upstream, &flags)
    };
    let adapter = start(adapter, service.address);
    let gateway = start(gateway, adapter.address);
    let bff = start(bff, gateway.address);

    let authorization = format!("Bearer {}", hs256(&claims("customer-7")));
    let order = |body: &str| {
        let order = ProxyRequest::post("/v1/orders").field("authorization", &authorization);
        order.field("content-type", "application/json").body(body)
    };
    let tea = r#"{"item":"tea"}"#;
    let first = send(bff.address, &order(tea).key("order-1")).await;
    let again = send(bff.address, &order(tea).key("order-1")).await;
    let other = send(bff.address, &order(r#"{"item":"coffee"}"#).key("order-1")).await;
    let bare = send(bff.address, &order(tea)).await;
    assert_eq!((first.one("idempotency-replayed"), again.one("idempotency-replayed")), (None, Some("true")));
    let text = |message: &HttpMessage| (message.status(), message.text().to_owned());
    let text: Vec<(u16, String)> = [first, again, other, bare].iter().map(text).collect();
    let shown: Vec<(u16, String)> =
        answers().into_iter().map(|(status, body)| (status, body.to_owned())).collect();
    assert_eq!(text, shown);
}
