use http::header::AUTHORIZATION;
use http_body_util::BodyExt as _;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::action::ActionError;
use crate::settings::ClientSettings;

/// The fields that differ between attempts.
const OF_THE_TRY: [HeaderName; 3] = [TRY, HOPS, REQUEST_ID];

/// A request as sent, without the fields that differ between attempts.
#[derive(Debug, PartialEq)]
struct SentRequest {
    method: Method,
    target: String,
    fields: HeaderMap,
    body: Bytes,
}

async fn sent(request: Request<Full<Bytes>>) -> SentRequest {
    let (head, body) = request.into_parts();
    let mut fields = head.headers;
    for name in OF_THE_TRY {
        fields.remove(name);
    }
    let body = body.collect().await.unwrap().to_bytes();
    SentRequest { method: head.method, target: head.uri.to_string(), fields, body }
}

#[test]
fn key_header_has_the_format_of_the_profile() {
    use Profile::{Ichido, Ietf, Stripe};
    let field = |key: &str, profile| key_field(&IdempotencyKey::parse(key).unwrap(), profile).unwrap();
    for (key, profile, expected) in [
        ("k-1", Ichido, "k-1"),
        ("k\"", Ichido, "k\""),
        ("\"k", Ichido, r#""\"k""#),
        ("k-1", Ietf, r#""k-1""#),
        ("\"k\\", Ietf, r#""\"k\\""#),
        ("k-1", Stripe, "k-1"),
        ("\"k", Stripe, "\"k"),
    ] {
        assert_eq!(field(key, profile), expected, "{key} {profile:?}");
        assert!(!format!("{:?}", field(key, profile)).contains('k'), "no log shows it");
    }
}

#[test]
fn client_headers_are_in_every_request_and_never_displayed() {
    let headers = |name, value: &'static str| HeaderMap::from_iter([(name, HeaderValue::from_static(value))]);
    let client = || ClientSettings::new("http://127.0.0.1:1").resolve().unwrap();
    let keyed = client().with_headers(headers(AUTHORIZATION, "Basic s3cret")).unwrap();
    let keyed = keyed.with_headers(headers(USER_AGENT, "another")).unwrap();
    let call = ClientCall::Read("/orders".parse().unwrap());
    let request = call.request(&keyed, 0, Timestamp::from_secs(1), 1).unwrap();
    assert_eq!(request.headers()[AUTHORIZATION], "Basic s3cret");
    assert_eq!(request.headers()[USER_AGENT], AGENT, "the client's own fields win");
    assert!(!format!("{keyed:?}").contains("s3cret"));
    let refused = client().with_headers(headers(HOST, "elsewhere.example")).err();
    assert_eq!(refused, Some(ActionError::ReservedHeader(HOST)));
}

proptest! {
    #[test]
    fn every_attempt_has_the_same_key_and_bytes(
        key in "[!-~]{1,255}",
        body in proptest::collection::vec(any::<u8>(), 0..200),
        profile in select(Profile::ALL.to_vec()),
        attempts in proptest::collection::vec((any::<u32>(), any::<i32>(), any::<u128>()), 1..5),
    ) {
        let client = ClientSettings { profile, ..ClientSettings::new("http://127.0.0.1:1/base") }.resolve().unwrap();
        let key = IdempotencyKey::parse(&key).unwrap();
        let action = Action::new(Method::POST, "/orders?now=1", key.clone(), "text/plain", body.clone()).unwrap();
        let call = ClientCall::Action(&action);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let write = |sent: u32, secs: i32, chance| {
            call.request(&client, sent, Timestamp::from_secs(secs.into()), chance).unwrap()
        };
        let first = runtime.block_on(sent(write(0, 1_800_000_000, 0)));
        prop_assert_eq!(&first.body[..], &body[..]);
        let fields = first.fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let read = ichido_core::key::read(fields);
        if !matches!(profile, Profile::Stripe | Profile::Acp) || !key.as_str().starts_with('"') {
            prop_assert_eq!(read, Ok(Some(key)), "our server reads the key that was meant");
        }
        for (nth, secs, chance) in attempts {
            prop_assert_eq!(&runtime.block_on(sent(write(nth, secs, chance))), &first);
        }
    }
}
