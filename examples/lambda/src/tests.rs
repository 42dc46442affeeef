//! The function against a server that speaks Lambda's runtime API, and a fake of Bedrock.

use std::sync::Arc;
use std::time::Duration;

use fake_llm::{Fake, Script};
use http_for_tests::{Receiver, ServerAction};
use ichido_bedrock::{BedrockSettings, Credentials, EndpointSettings, Keys};
use ichido_core::settings::ConfigErrors;
use serde_json::{Value, json};

use super::*;

/// Runs one invocation; returns the request that reports its result, with its body.
async fn invoke(event: &str, script: &Value, left: Duration) -> (String, Value) {
    let fake = fake_llm::start(Script::parse(script.to_string().as_bytes()).unwrap());
    let deadline = clock::now().plus(left).as_millis();
    let next = format!(
        "HTTP/1.1 200 OK\r\nLambda-Runtime-Aws-Request-Id: request-7\r\nLambda-Runtime-Deadline-Ms: {deadline}\r\nContent-Length: {}\r\n\r\n{event}",
        event.len()
    );
    let server = Receiver::start(move |_, request| {
        let accepted = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_owned();
        ServerAction::Answer(if request.line.starts_with("GET ") { next.clone() } else { accepted })
    });
    let server = server.await;
    let api = RuntimeApi::new(&server.address.to_string()).unwrap();
    handle_one(&api, &judging(&fake).await).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert_eq!(seen[0].line, "GET /2018-06-01/runtime/invocation/next HTTP/1.1");
    assert_eq!(fake.seen().format_faults, []);
    (seen[1].line.clone(), serde_json::from_slice(&seen[1].body).unwrap())
}

/// A model at the fake, asked quickly.
async fn judging(fake: &Fake) -> Judging {
    let quick = |name: &str| match name {
        "BEDROCK_MAX_PARALLEL" => Some("8".to_owned()),
        "BEDROCK_REQUEST_INTERVAL" => Some("0".to_owned()),
        "BEDROCK_RETRY_BASE_DELAY" | "BEDROCK_MAX_BACKOFF" => Some("0.01".to_owned()),
        _ => None,
    };
    let mut faults = ConfigErrors::default();
    let settings = settings::batch(&quick, &mut faults);
    let model = BedrockSettings {
        endpoints: vec![EndpointSettings { region: "eu-central-1".to_owned(), url: Some(fake.url()) }],
        credentials: Credentials::Given(Keys {
            access_key_id: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: None,
        }),
        ..BedrockSettings::new("anthropic.claude-test")
    };
    let model = faults.or(Some(model.resolve().await.unwrap())).unwrap();
    Judging { model: Arc::new(model), settings }
}

fn articles(count: usize) -> String {
    let article = |number| json!({ "title": format!("item-{number} of many") });
    Value::from((0..count).map(article).collect::<Vec<_>>()).to_string()
}

#[tokio::test]
async fn lambda_returns_one_result_per_article() {
    let script = json!({ "rules": [
        { "do": { "fail": "throttle" }, "item": "1", "first": 2 },
        { "do": { "fail": "invalid" }, "item": "2" },
    ] });
    let (line, results) = invoke(&articles(5), &script, Duration::from_mins(15)).await;
    assert_eq!(line, "POST /2018-06-01/runtime/invocation/request-7/response HTTP/1.1");
    let results = results.as_array().unwrap();
    assert_eq!(results.len(), 5);
    for (number, result) in results.iter().enumerate() {
        assert_eq!(result["title"], format!("item-{number} of many"));
        assert_eq!(result["fallback"], number == 2, "{result}");
    }
    assert_eq!((&results[2]["label"], &results[2]["fallback_reason"]), (&"IGNORE".into(), &"refused".into()));
}

/// One answer takes an hour; the function still responds in time, with the others.
#[tokio::test]
async fn lambda_deadline_leaves_fallbacks_for_the_rest() {
    let slow = json!({ "rules": [{ "do": { "answer": "whole" }, "latency": { "fixed_ms": 3_600_000 }, "item": "3" }] });
    let (line, results) = invoke(&articles(6), &slow, Duration::from_secs(5)).await;
    assert!(line.contains("/invocation/request-7/response "), "{line}");
    let results = results.as_array().unwrap();
    let fallbacks: Vec<&Value> = results.iter().filter(|result| result["fallback"] == true).collect();
    assert_eq!((results.len(), fallbacks.len()), (6, 1), "{results:?}");
    assert_eq!(fallbacks[0]["fallback_reason"], "deadline");
    assert_eq!(fallbacks[0]["title"], "item-3 of many");
}

#[tokio::test]
async fn lambda_refuses_an_event_that_is_not_a_list_of_articles() {
    for (event, why) in [
        ("{\"secret\": 1}", "the event is not a list of articles; send "),
        ("[{\"title\": \"a\"}, {\"author\": \"secret\"}]", "article:2: it has no title, url or description"),
    ] {
        let (line, error) = invoke(event, &json!({}), Duration::from_mins(15)).await;
        assert_eq!(line, "POST /2018-06-01/runtime/invocation/request-7/error HTTP/1.1");
        let message = error["errorMessage"].as_str().unwrap();
        assert!(message.contains(why) && !message.contains("secret"), "{message}");
    }
    let (_, nothing) = invoke("[]", &json!({}), Duration::from_mins(15)).await;
    assert_eq!(nothing, json!([]));
}

#[tokio::test]
async fn lambda_metrics_have_the_retry_ratio() {
    let script = json!({ "rules": [{ "do": { "fail": "throttle" }, "item": "0", "first": 1 }] });
    let fake = fake_llm::start(Script::parse(script.to_string().as_bytes()).unwrap());
    let judged = judging(&fake).await.run(articles(3).as_bytes(), Duration::from_mins(15)).await.unwrap();
    let line = judged.metrics(clock::now());
    let counts = ["calls", "retries", "throttled", "fallbacks", "retry_ratio"].map(|name| line[name].clone());
    assert_eq!(counts, [json!(4), json!(1), json!(1), json!(0), json!(0.25)]);
    for metric in line["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().unwrap() {
        assert!(line[metric["Name"].as_str().unwrap()].is_number(), "{metric}");
    }
}

#[tokio::test]
async fn lambda_reports_invalid_settings_together() {
    let wrong = |name: &str| match name {
        "BEDROCK_MAX_PARALLEL" => Some("0".to_owned()),
        "BEDROCK_MAX_BACKOFF" => Some("-1".to_owned()),
        "BEDROCK_INFERENCE_PROFILE_ARN" => Some("not-an-arn".to_owned()),
        _ => None,
    };
    let faults = settings::judging(&wrong).await.err().map(|faults| faults.to_string()).unwrap();
    for part in ["BEDROCK_MAX_PARALLEL: ", "BEDROCK_MAX_BACKOFF: ", "inference_profile_arn: "] {
        assert!(faults.contains(part), "{part} in {faults}");
    }
}
