//! What the receiver gets: the caller's bytes; identity, key and attempt in header fields.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use ichido::destination::http::HttpSettings;
use sha2::Sha256;

use super::tried::{key, order, resolved, settings, tried};
use http_for_tests::{ReceivedRequest, Receiver, json};

const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

async fn sent(change: impl Fn(&mut HttpSettings)) -> ReceivedRequest {
    let receiver = Receiver::answering(json("200 OK", "{}")).await;
    let mut settings = settings(receiver.url("/v1/orders?dry=1"));
    change(&mut settings);
    tried(&resolved(&settings), &order("k-1")).await;
    receiver.seen().remove(0)
}

#[tokio::test]
async fn key_fence_attempt_message_and_trace_go_with_the_callers_bytes() {
    let request = sent(|settings| {
        settings.headers = vec![("Authorization".to_owned(), "Bearer t0ken".to_owned())];
    })
    .await;
    assert_eq!(request.line, "POST /v1/orders?dry=1 HTTP/1.1");
    assert_eq!(request.body, order("k-1").body);
    for (name, value) in [
        ("Idempotency-Key", "k-1"),
        ("Ichido-Fence", "42"),
        ("Ichido-Attempt", "3"),
        ("Ichido-Message-Id", "01900000-0000-7000-8000-000000000007"),
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("Ichido-Hops", r#"bff;t=1800000000000;r="7f1c""#),
        ("Content-Type", "application/json"),
        ("Authorization", "Bearer t0ken"),
        ("Accept-Encoding", "identity"),
    ] {
        assert_eq!(request.field(name), Some(value), "{name}");
    }
    assert!(request.field("Host").is_some_and(|host| host.starts_with("127.0.0.1:")));
    assert_eq!(request.field("webhook-signature"), None, "there is no secret to sign with");
}

#[tokio::test]
async fn invalid_trace_header_is_omitted() {
    let receiver = Receiver::answering(json("200 OK", "{}")).await;
    let http = resolved(&settings(receiver.url("/")));
    for trace in [None, Some("a\r\nb".to_owned())] {
        tried(&http, &ichido::destination::DeliveryAttempt { trace, ..order("k") }).await;
    }
    assert_eq!(receiver.seen().iter().filter(|request| request.field("traceparent").is_some()).count(), 0);
}

#[tokio::test]
async fn key_starting_with_quote_survives_round_trip() {
    let receiver = Receiver::answering(json("200 OK", "{}")).await;
    let http = resolved(&settings(receiver.url("/")));
    for text in ["plain-7", "\"quoted\"", "back\\slash", "a\"b"] {
        tried(&http, &order(text)).await;
        let request = receiver.seen().pop().expect("it was sent");
        let fields = request.fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        assert_eq!(ichido_core::key::read(fields), Ok(Some(key(text))));
    }
}

/// Computed here again, as a receiver would; the published examples are checked where the signature is made.
fn signature(secret: &str, request: &ReceivedRequest) -> String {
    let secret = STANDARD.decode(secret.trim_start_matches("whsec_")).expect("base64");
    let mut mac = Hmac::<Sha256>::new_from_slice(&secret).expect("any length");
    let id = request.field("webhook-id").expect("an id");
    mac.update(format!("{id}.{}.", request.field("webhook-timestamp").expect("a time")).as_bytes());
    mac.update(&request.body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[tokio::test]
async fn a_call_is_signed_with_every_live_secret() {
    let request = sent(|settings| settings.signing_secrets = vec![OLD.to_owned(), NEW.to_owned()]).await;
    assert_eq!(request.field("webhook-id"), request.field("Ichido-Message-Id"));
    let both = format!("{} {}", signature(OLD, &request), signature(NEW, &request));
    assert_eq!(request.field("webhook-signature"), Some(both.as_str()));
    let time: i64 = request.field("webhook-timestamp").expect("a time").parse().expect("seconds");
    assert!(1_700_000_000 < time && time < 10_000_000_000, "seconds since 1970: {time}");

    let request = sent(|settings| settings.signing_secrets = vec![NEW.to_owned()]).await;
    assert_eq!(request.field("webhook-signature"), Some(signature(NEW, &request).as_str()));
}
