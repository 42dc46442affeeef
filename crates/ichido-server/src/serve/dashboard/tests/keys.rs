//! Keys: looked up, shown with the response that is replayed, and decided.

use ichido_core::fingerprint::Fingerprint;
use ichido_core::ledger::{Class, Policy, PolicyDraft, RecordName, Settled};
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle, StoredResponse};

use super::*;

const BODY: &str = "{ \"id\":9007199254740993, \"note\":\"<b>\" }";
const PAGE: &str = "/keys?key=order-1&operation=orders.create&identity=ann";
/// A stored body as HTML shows it.
const SHOWN_BODY: &str = "{ &#34;id&#34;:9007199254740993, &#34;note&#34;:&#34;&#60;b&#62;&#34; }";

fn name(operation: &str, identity: &str, key: &str) -> RecordName {
    let key = IdempotencyKey::parse(key).unwrap();
    RecordName { operation: operation.to_owned(), identity: identity.to_owned(), key }
}

impl Fixture {
    /// Claims a key and reports its outcome.
    async fn settle_key(&self, name: &RecordName, outcome: KeyOutcome) {
        let claim = KeyClaim {
            name: name.clone(),
            fingerprint: Fingerprint::from_bytes([0; 32]),
            request_digest: Digest::of_bytes(b"order"),
            policy: Arc::new(Policy::build(PolicyDraft::new(Class::ExternalEffect)).unwrap()),
            hops: Some(r#"bff;t=1800000000000;r="7f1c""#.to_owned()),
            trace: None,
        };
        let KeyClaimed::Run { fence, .. } = self.store.keys().claim(claim).await.unwrap() else {
            panic!("the key is free")
        };
        let _ = self.store.keys().settle(KeySettle { name: name.clone(), fence, outcome }).await.unwrap();
    }

    async fn hold(&self, name: &RecordName) {
        self.settle_key(name, KeyOutcome::Hold).await;
    }
}

fn applied(message_id: Option<Uuid>) -> KeyOutcome {
    let headers = vec![
        ("content-type".to_owned(), b"application/json".to_vec()),
        ("x-api-key".to_owned(), b"s3cret".to_vec()),
    ];
    KeyOutcome::Keep {
        settled: Settled::Applied,
        response: StoredResponse { status: 201, headers, body: Some(BODY.as_bytes().to_vec()) },
        result_digest: None,
        message_id,
        ttl: Duration::from_hours(72),
    }
}

#[tokio::test]
async fn a_key_shows_its_response_as_it_is_replayed() {
    let fixture = Fixture::new().await;
    fixture.settle_key(&name("orders.create", "ann", "order-1"), applied(None)).await;
    let page = fixture.get("/keys?key=order-1", None).await;
    assert_eq!(page.status, StatusCode::OK);
    for part in ["Was it done?", "The work ended, and its response is stored.", "HTTP 201", SHOWN_BODY] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    assert!(page.text.contains("x-api-key: [redacted]") && !page.text.contains("s3cret"), "{}", page.text);
    for step in ["Passed bff", "Key claimed by orders.create", "Response stored under the key"] {
        assert!(page.text.contains(step), "{step}: {}", page.text);
    }
    assert!(!page.text.contains("/keys/decide"), "there is nothing to decide");
}

#[tokio::test]
async fn a_viewer_sees_the_outcome_of_a_key_and_no_byte_of_its_response() {
    let fixture = Fixture::new().await;
    fixture.settle_key(&name("orders.create", "ann", "order-1"), applied(None)).await;
    fixture.hold(&name("orders.create", "ann", "order-2")).await;
    let (_, token) = fixture.add_token("ann", TokenRole::Viewer).await;
    let cookie = fixture.sign_in(&token).await;
    let page = fixture.get(PAGE, Some(&cookie)).await;
    assert!(page.text.contains("HTTP 201") && page.text.contains("Only operators see"), "{}", page.text);
    assert!(!page.text.contains("9007199254740993"), "{}", page.text);
    let unknown = fixture.get("/keys?key=order-2", Some(&cookie)).await;
    assert!(unknown.text.contains("Not known yet") && !unknown.text.contains("/keys/decide"));
}

#[tokio::test]
async fn a_key_is_found_by_its_hash_and_under_every_operation() {
    let fixture = Fixture::new().await;
    let one = name("orders.create", "ann", "order-1");
    fixture.settle_key(&one, applied(None)).await;
    let by_hash = fixture.get(&format!("/keys?key={}", one.key.log_hash()), None).await;
    assert!(by_hash.text.contains(SHOWN_BODY), "{}", by_hash.text);

    fixture.hold(&name("refunds.create", "bob", "order-1")).await;
    let message = fixture.enqueue("order-1", "{}").await;
    let page = fixture.get("/keys?key=order-1", None).await;
    for href in [
        "/keys?key=order-1&#38;operation=orders.create&#38;identity=ann",
        "/keys?key=order-1&#38;operation=refunds.create&#38;identity=bob",
        &format!("/messages/{message}"),
    ] {
        assert!(page.text.contains(&format!("href=\"{href}\"")), "{href}: {}", page.text);
    }
    let none = fixture.get("/keys?key=order-9", None).await;
    assert!(none.text.contains("Nothing here has this key"), "{}", none.text);
    let wrong = fixture.get("/keys?key=%C3%A9", None).await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    assert!(wrong.text.contains("This is not a key:"), "{}", wrong.text);
}

#[tokio::test]
async fn parked_messages_are_named_where_no_key_waits() {
    let fixture = Fixture::new().await;
    fixture.enqueue("order-1", "{}").await;
    fixture.fail(Effect::Unknown, "no answer").await;
    let page = fixture.get("/keys", None).await;
    let link = "href=\"/dead-letters?state=parked\">Parked messages that wait for a decision: 1</a>";
    assert!(page.text.contains(link), "{}", page.text);
}

#[tokio::test]
async fn a_key_of_unknown_outcome_is_listed_and_decided() {
    let mut fixture = Fixture::new().await;
    let empty = fixture.get("/keys", None).await;
    assert!(empty.text.contains("No key waits for a decision."), "{}", empty.text);
    assert!(!empty.text.contains("id=\"parked\""), "{}", empty.text);
    for key in ["order-1", "order-2", "order-3"] {
        fixture.hold(&name("orders.create", "ann", key)).await;
    }
    // Its first sample is a moment old.
    (fixture.access, fixture.pages) = server(&fixture.store, None);
    let overview = fixture.get("/", None).await;
    assert!(overview.text.contains("<a class=\"strong\" href=\"/keys\">Requests of unknown outcome: 3"));
    let list = fixture.get("/keys", None).await;
    assert_eq!(list.text.matches("data-row=").count(), 3, "{}", list.text);
    let page = fixture.get(PAGE, None).await;
    for part in ["Not known yet", "Next: a person decides.", "“Not done” can be decided from", "/keys/decide"]
    {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }

    let decide = |key: &str, decision: &str| {
        let form = format!("operation=orders.create&identity=ann&key={key}&decision={decision}");
        let fixture = &fixture;
        async move { fixture.post("/keys/decide", None, &form).await }
    };
    let early = decide("order-2", "not_done").await;
    assert_eq!(early.status, StatusCode::CONFLICT, "{}", early.text);
    assert!(early.text.contains("Nothing was changed: the call may still take effect"), "{}", early.text);
    let none = decide("order-1", "").await;
    assert!(none.status.is_client_error() && none.text.contains("Nothing was changed"), "{}", none.text);

    let done = decide("order-1", "done").await;
    assert_eq!((done.status, done.location()), (StatusCode::SEE_OTHER, &*format!("{PAGE}&did=done")));
    let page = fixture.get(done.location(), None).await;
    assert!(
        page.text.contains("The key is applied") && page.text.contains("local decided that it was done.")
    );
    let gave_up = decide("order-3", "give_up").await;
    let page = fixture.get(gave_up.location(), None).await;
    assert!(
        page.text.contains("Not known yet")
            && page.text.contains("local decided that it cannot be found out.")
    );
    fixture.store.advance_clock(Duration::from_mins(11));
    let released = decide("order-2", "not_done").await;
    let page = fixture.get(released.location(), None).await;
    assert!(page.text.contains("The key is released") && page.text.contains("Nothing here has this key"));
    assert_eq!(decide("order-2", "done").await.status, StatusCode::NOT_FOUND, "there is nothing to decide");
}

#[tokio::test]
async fn a_message_shows_its_key_from_the_first_claim_on() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue("order-1", "{}").await;
    fixture.settle_key(&name("orders.create", "ann", "order-1"), applied(Some(id))).await;
    // The same key, but another action.
    fixture.hold(&name("refunds.create", "ann", "order-1")).await;
    let page = fixture.get(&format!("/messages/{id}"), None).await;
    for step in ["Passed bff", "Key claimed by orders.create", "Accepted: stored durably"] {
        assert!(page.text.contains(step), "{step}: {}", page.text);
    }
    assert!(!page.text.contains("refunds.create"), "{}", page.text);
    let key = fixture.get(PAGE, None).await;
    assert!(
        key.text.contains("Accepted: stored durably"),
        "the message is in the key's timeline: {}",
        key.text
    );
    assert!(key.text.contains(&format!("href=\"/messages/{id}\"")), "{}", key.text);
}
