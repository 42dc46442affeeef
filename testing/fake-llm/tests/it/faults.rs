//! Each fault, in the format of each provider.

use fake_llm::api::Provider;
use fake_llm::seen::{RequestCounts, RequestEnd};
use fake_llm::{Script, SeenRequests};
use serde_json::{Value, json};

use crate::client::{APIS, request_to, script, until};

/// For each fault: what Bedrock, OpenAI and Anthropic say, with the status.
const SAID: [(&str, [(u16, &str); 3]); 12] = [
    ("throttle", [(429, "ThrottlingException"), (429, "rate_limit_exceeded"), (429, "rate_limit_error")]),
    (
        "throttle_tokens",
        [(429, "ThrottlingException"), (429, "rate_limit_exceeded"), (429, "rate_limit_error")],
    ),
    ("unavailable", [(503, "ServiceUnavailableException"), (503, "server_error"), (503, "api_error")]),
    ("internal", [(500, "InternalServerException"), (500, "server_error"), (500, "api_error")]),
    ("overloaded", [(529, ""), (503, "server_error"), (529, "overloaded_error")]),
    ("timed_out", [(408, "ModelTimeoutException"), (408, "server_error"), (504, "timeout_error")]),
    ("not_ready", [(429, "ModelNotReadyException"), (503, "unavailable_error"), (503, "api_error")]),
    (
        "spend_limit",
        [
            (400, "ServiceQuotaExceededException"),
            (429, "insufficient_quota"),
            (429, "enforced_spend_limit_reached"),
        ],
    ),
    ("denied", [(403, "AccessDeniedException"), (403, "model_not_found"), (403, "permission_error")]),
    (
        "invalid",
        [(400, "ValidationException"), (400, "context_length_exceeded"), (400, "invalid_request_error")],
    ),
    ("not_found", [(404, "ResourceNotFoundException"), (404, "model_not_found"), (404, "not_found_error")]),
    ("unknown", [(418, "TeapotException"), (418, "teapot"), (418, "teapot_error")]),
];

/// Returns the name of an error, from where a client finds it.
fn name(api: Provider, received: &crate::client::ReceivedResponse) -> String {
    let error = &received.body["error"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match api {
        Provider::Bedrock => {
            received.header("x-amzn-errortype").split(':').next().unwrap_or_default().to_owned()
        }
        Provider::Openai if error["code"].is_string() => text(&error["code"]),
        Provider::Anthropic if error["details"].is_object() => text(&error["details"]["error_code"]),
        Provider::Openai | Provider::Anthropic => text(&error["type"]),
    }
}

#[tokio::test]
async fn each_fault_has_the_providers_format_and_is_not_billed() {
    for (fault, reply_text) in SAID {
        let fake = fake_llm::start(script(&json!({ "rules": [{ "do": { "fail": fault } }] })));
        for (api, expected) in APIS.into_iter().zip(reply_text) {
            let received = request_to(api, "a").send(fake.address()).await;
            assert_eq!(
                (received.status, name(api, &received).as_str()),
                expected,
                "{fault}: {}",
                received.text
            );
            let message = if api == Provider::Bedrock {
                &received.body["message"]
            } else {
                &received.body["error"]["message"]
            };
            assert!(message.is_string(), "{fault}: {}", received.text);
            assert_eq!(received.header("retry-after"), "", "{fault}");
        }
        let expected = match fault {
            "throttle" | "throttle_tokens" => {
                RequestCounts { requests: 3, throttled: 3, ..RequestCounts::default() }
            }
            _ => RequestCounts { requests: 3, failed: 3, ..RequestCounts::default() },
        };
        assert_eq!(fake.seen().items["a"].counts, expected, "{fault}");
    }
}

#[tokio::test]
async fn failing_model_reports_its_status_where_the_provider_does() {
    let fake = fake_llm::start(script(&json!({ "rules": [{ "do": { "fail": { "model_error": 429 } } }] })));
    let received = request_to(Provider::Bedrock, "a").send(fake.address()).await;
    assert_eq!((received.status, name(Provider::Bedrock, &received).as_str()), (424, "ModelErrorException"));
    assert_eq!(received.body["originalStatusCode"], 429);
    for api in [Provider::Openai, Provider::Anthropic] {
        assert_eq!(request_to(api, "a").send(fake.address()).await.status, 500);
    }
}

#[tokio::test]
async fn intermediary_errors_are_html() {
    let fake = fake_llm::start(script(&json!({ "rules": [{ "do": { "fail": "bad_gateway" } }] })));
    for api in APIS {
        let received = request_to(api, "a").send(fake.address()).await;
        assert_eq!((received.status, received.header("content-type")), (502, "text/html"));
    }
}

#[tokio::test]
async fn the_first_calls_are_throttled_and_then_the_model_answers() {
    let rules = json!([{ "do": { "fail": "throttle" }, "first_per_item": 2 }]);
    let fake = fake_llm::start(script(&json!({ "rules": rules })));
    for item in ["a", "b"] {
        let mut statuses = vec![];
        for _ in 0..4 {
            statuses.push(request_to(Provider::Bedrock, item).send(fake.address()).await.status);
        }
        assert_eq!(statuses, [429, 429, 200, 200]);
    }
    let seen = fake.seen();
    let each = RequestCounts { requests: 4, completed: 2, throttled: 2, ..RequestCounts::default() };
    assert_eq!((&seen.items["a"].counts, &seen.items["b"].counts), (&each, &each));
    let ends: Vec<RequestEnd> = seen.items["a"].calls.iter().map(|call| call.end).collect();
    assert_eq!(
        ends,
        [RequestEnd::Throttled, RequestEnd::Throttled, RequestEnd::Completed, RequestEnd::Completed]
    );
}

#[tokio::test]
async fn a_dropped_connection_ends_without_an_answer_and_is_billed_when_the_model_was_done() {
    for (action, completed) in [("drop", 0), ("drop_completed", 1)] {
        for api in APIS {
            let fake = fake_llm::start(script(&json!({ "rules": [{ "do": action, "first": 1 }] })));
            let error = request_to(api, "a").try_send(fake.address()).await.expect_err("dropped");
            assert!(error.is_incomplete_message(), "{error:?}");
            let seen = fake.seen();
            assert_eq!((seen.all.dropped, seen.all.completed, seen.all.requests), (1, completed, 1));
            assert_eq!(request_to(api, "a").send(fake.address()).await.status, 200);
        }
    }
}

#[tokio::test]
async fn disconnected_client_is_billed_anyway() {
    let fake = fake_llm::start(script(&json!({ "latency": { "fixed_ms": 200 } })));
    let ended = |count| move |seen: &SeenRequests| seen.all.requests == count && seen.concurrency == 0;
    drop(request_to(Provider::Openai, "left").send_only(fake.address()).await);
    until(&fake, "the call has ended", ended(1)).await;

    // As when its process is killed: the connection is reset in the middle of the model's work.
    let killed = request_to(Provider::Openai, "killed").send_only(fake.address()).await;
    until(&fake, "the call has come", |seen| seen.all.requests == 2).await;
    killed.set_zero_linger().expect("set");
    drop(killed);
    until(&fake, "the call has ended", ended(2)).await;

    let seen = fake.seen();
    assert_eq!((seen.items["left"].counts.completed, seen.items["killed"].counts.completed), (1, 1));
}

#[tokio::test]
async fn slow_call_has_its_latency_and_does_not_block_others() {
    let rules = json!([{ "do": { "answer": "whole" }, "item": "slow", "latency": { "fixed_ms": 500 } }]);
    let fake = fake_llm::start(script(&json!({ "rules": rules, "latency": { "fixed_ms": 1 } })));
    let slow = tokio::spawn(request_to(Provider::Anthropic, "slow").try_send(fake.address()));
    until(&fake, "the slow one has come", |seen| seen.max_concurrency == 1).await;
    request_to(Provider::Anthropic, "quick").send(fake.address()).await;
    slow.await.unwrap().expect("an answer");
    let seen = fake.seen();
    let took = |item: &str| seen.items[item].calls[0].ended_ms - seen.items[item].calls[0].came_ms;
    assert!(500 <= took("slow"), "{}", took("slow"));
    assert!(1 <= took("quick"), "{}", took("quick"));
    assert_eq!(seen.max_concurrency, 2);
}

#[tokio::test]
async fn each_retry_after_format_is_sent() {
    let rule = |retry_after: Value| json!({ "rules": [{ "do": { "fail": "throttle" }, "retry_after": retry_after }] });
    let fake = fake_llm::start(Script::default());
    for api in APIS {
        fake.script(script(&rule(json!({ "seconds": 2 }))));
        assert_eq!(request_to(api, "a").send(fake.address()).await.header("retry-after"), "2");
        fake.script(script(&rule(json!({ "ms": 250 }))));
        assert_eq!(request_to(api, "a").send(fake.address()).await.header("retry-after-ms"), "250");
        fake.script(script(&rule(json!({ "date_in_seconds": 90 }))));
        let received = request_to(api, "a").send(fake.address()).await;
        let date =
            |text: &str| httpdate::parse_http_date(text).unwrap_or_else(|_| panic!("`{text}` is not a date"));
        let ahead =
            date(received.header("retry-after")).duration_since(date(received.header("date"))).unwrap();
        // The response's date is when it was sent, which is later on a busy machine.
        assert!((30..=91).contains(&ahead.as_secs()), "{ahead:?}");
    }
}

#[tokio::test]
async fn script_headers_override_all_others() {
    let headers =
        json!({ "retry-after": "-1", "x-ratelimit-remaining-tokens": "0", "x-should-retry": "false" });
    let rule = json!({ "do": { "fail": "throttle" }, "retry_after": { "seconds": 5 }, "headers": headers });
    let fake = fake_llm::start(script(&json!({ "rules": [rule] })));
    let received = request_to(Provider::Openai, "a").send(fake.address()).await;
    assert_eq!((received.header("retry-after"), received.header("x-should-retry")), ("-1", "false"));
    assert_eq!(received.header("x-ratelimit-remaining-tokens"), "0");
}

#[tokio::test]
async fn one_region_can_fail_while_the_other_answers() {
    let rules = json!([{ "do": { "fail": "throttle" }, "endpoint": "/east" }]);
    let fake = fake_llm::start(script(&json!({ "rules": rules })));
    for api in APIS {
        assert_eq!(request_to(api, "a").at("/east").send(fake.address()).await.status, 429);
        assert_eq!(request_to(api, "a").at("/west").send(fake.address()).await.status, 200);
    }
    let seen = fake.seen();
    assert_eq!((seen.endpoints["/east"].throttled, seen.endpoints["/east"].completed), (3, 0));
    assert_eq!((seen.endpoints["/west"].throttled, seen.endpoints["/west"].completed), (0, 3));
}

#[tokio::test]
async fn a_rule_can_be_for_one_api_alone() {
    let fake =
        fake_llm::start(script(&json!({ "rules": [{ "do": { "fail": "denied" }, "api": "anthropic" }] })));
    assert_eq!(request_to(Provider::Anthropic, "a").send(fake.address()).await.status, 403);
    assert_eq!(request_to(Provider::Openai, "a").send(fake.address()).await.status, 200);
}
