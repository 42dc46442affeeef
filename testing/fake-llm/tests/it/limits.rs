//! Limits, as clients see them.

use fake_llm::api::Provider;
use fake_llm::seen::RequestEnd;
use serde_json::{Value, json};

use crate::client::{APIS, request_to, script};

const HOUR_MS: u32 = 3_600_000;

#[tokio::test]
async fn calls_above_the_rate_are_throttled_with_limit_headers() {
    let rate = json!({ "bucket": { "calls": 1, "per_ms": HOUR_MS, "burst": 2 } });
    for api in APIS {
        let fake = fake_llm::start(script(&json!({ "limits": [{ "rate": rate }] })));
        let mut received = vec![];
        for _ in 0..3 {
            received.push(request_to(api, "a").send(fake.address()).await);
        }
        let statuses: Vec<u16> = received.iter().map(|received| received.status).collect();
        assert_eq!(statuses, [200, 200, 429]);
        assert_eq!((fake.seen().all.completed, fake.seen().all.throttled), (2, 1));
        let left =
            |name: &str| received.iter().map(|received| received.header(name).to_owned()).collect::<Vec<_>>();
        match api {
            Provider::Bedrock => assert_eq!(left("retry-after"), ["", "", ""]),
            Provider::Openai => {
                assert_eq!(left("x-ratelimit-limit-requests"), ["2", "2", "2"]);
                assert_eq!(left("x-ratelimit-remaining-requests"), ["1", "0", "0"]);
                assert!(left("x-ratelimit-reset-requests")[0].ends_with('s'));
                assert_eq!(left("retry-after")[..2], ["", ""]);
                let wait_ms: u32 = received[2].header("retry-after-ms").parse().expect("milliseconds");
                let seconds: u32 = received[2].header("retry-after").parse().expect("seconds");
                assert!(wait_ms <= HOUR_MS && seconds == wait_ms.div_ceil(1000), "{wait_ms} {seconds}");
            }
            Provider::Anthropic => {
                assert_eq!(left("anthropic-ratelimit-requests-limit"), ["2", "2", "2"]);
                assert_eq!(left("anthropic-ratelimit-requests-remaining"), ["1", "0", "0"]);
                let reset = &left("anthropic-ratelimit-requests-reset")[0];
                assert!(reset.len() == "2026-11-15T21:15:00Z".len() && reset.ends_with('Z'), "{reset}");
                assert!(received[2].header("retry-after").parse::<u32>().is_ok_and(|wait| wait <= 3600));
            }
        }
    }
}

#[tokio::test]
async fn limit_can_hide_its_retry_after() {
    let rate = json!({ "window": { "calls": 1, "per_ms": HOUR_MS } });
    let fake = fake_llm::start(script(&json!({ "limits": [{ "rate": rate, "hint": false }] })));
    request_to(Provider::Openai, "a").send(fake.address()).await;
    let refused = request_to(Provider::Openai, "a").send(fake.address()).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, ""));
    assert_eq!(refused.header("x-ratelimit-remaining-requests"), "0");
}

#[tokio::test]
async fn a_limit_of_one_region_leaves_the_other_alone() {
    let rate = json!({ "window": { "calls": 1, "per_ms": HOUR_MS } });
    let fake = fake_llm::start(script(&json!({ "limits": [{ "endpoint": "/east", "rate": rate }] })));
    for (endpoint, expected) in [("/east", [200, 429]), ("/west", [200, 200])] {
        for status in expected {
            assert_eq!(
                request_to(Provider::Bedrock, "a").at(endpoint).send(fake.address()).await.status,
                status
            );
        }
    }
}

#[tokio::test]
async fn token_limit_reserves_the_prompt_and_max_tokens() {
    let rate = json!({ "tokens": { "tokens": 250, "per_ms": HOUR_MS } });
    let fake = fake_llm::start(script(&json!({ "limits": [{ "rate": rate }] })));
    // 6 tokens of text and at most 100 of the answer.
    let mut left = vec![];
    for _ in 0..3 {
        let received = request_to(Provider::Anthropic, "a").send(fake.address()).await;
        left.push((received.status, received.header("anthropic-ratelimit-tokens-remaining").to_owned()));
    }
    let refused = request_to(Provider::Openai, "a").with("max_tokens", json!(100)).send(fake.address()).await;
    assert_eq!((refused.status, &refused.body["error"]["type"]), (429, &json!("tokens")));
    assert_eq!(left, [(200, "144".to_owned()), (200, "38".to_owned()), (429, "38".to_owned())]);
}

/// Calls, four at a time and as fast as they return, until this many are completed. Returns their times.
async fn hammered(rate: Value, completed: u64) -> Vec<u64> {
    let fake = fake_llm::start(script(&json!({ "limits": [{ "rate": rate }] })));
    while fake.seen().all.completed < completed {
        let calls =
            [(); 4].map(|()| tokio::spawn(request_to(Provider::Openai, "a").try_send(fake.address())));
        for call in calls {
            call.await.expect("no panic").expect("an answer");
        }
    }
    let seen = fake.seen();
    assert!(0 < seen.all.throttled);
    let let_in = seen.items["a"].calls.iter().filter(|call| call.end == RequestEnd::Completed);
    let mut moments: Vec<u64> = let_in.map(|call| call.came_ms).collect();
    moments.sort_unstable();
    moments
}

#[tokio::test]
async fn no_window_ever_exceeds_its_limit() {
    let moments = hammered(json!({ "window": { "calls": 5, "per_ms": 40 } }), 20).await;
    // Times are in whole milliseconds, rounded down.
    let is_kept = |six: &[u64]| 39 <= six[5] - six[0];
    assert!(moments.windows(6).all(is_kept), "{moments:?}");
}

#[tokio::test]
async fn no_bucket_ever_exceeds_its_limit() {
    let moments = hammered(json!({ "bucket": { "calls": 1, "per_ms": 10, "burst": 3 } }), 15).await;
    for (earlier, from) in moments.iter().enumerate() {
        for (later, to) in moments.iter().enumerate().skip(earlier) {
            let given = (later - earlier + 1) as u64;
            assert!(given <= 3 + (to - from + 1).div_ceil(10), "{earlier} to {later}: {moments:?}");
        }
    }
}
