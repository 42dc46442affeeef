//! The page of one message: a long history, its stored response, and edit and retry.

use std::path::PathBuf;

use ichido_store::facts::QueueFacts;
use ichido_store::message::{ClaimedMessage, ReceiverResponse};

use super::*;
use crate::config::{self, ConfigSources};

impl Fixture {
    pub(super) async fn claim_orders(&self) -> Vec<ClaimedMessage> {
        let options = ClaimOptions {
            node: Uuid::nil(),
            lease: Duration::from_hours(1),
            start_marks: false,
            guarantee: Guarantee::Idempotent,
            max_time_in_flight: Duration::ZERO,
        };
        let queue = QueueName::parse("orders").unwrap();
        self.store.claims().claim(&queue, NonZeroU32::MIN, options).await.unwrap()
    }
}

impl Fixture {
    async fn enqueue_often_tried(&self, key: &str) -> Uuid {
        let (queue, key) = (QueueName::parse("orders").unwrap(), IdempotencyKey::parse(key).unwrap());
        let message = NewMessage::new(queue, "ann", key, b"{}".to_vec());
        let max_attempts = NonZeroU32::new(1_000_000).unwrap();
        self.store.messages().enqueue(NewMessage { max_attempts, ..message }).await.unwrap().id()
    }

    /// Ends an attempt with this effect, or gives the message back without a call.
    async fn attempt(&self, effect: Option<Effect>, code: ErrorCode) {
        let work = self.claim_orders().await.pop().unwrap();
        let (fence, due) = (work.fence, work.claimed_at);
        let event = effect.map_or(Event::GivenBack { fence, due }, |effect| Event::Failed {
            fence,
            failure: Failure::Retry { due },
            effect,
            safety: Safety::Idempotent,
            in_flight_until: due,
        });
        let note = Note { code: effect.map(|_| code), ..Note::default() };
        let _ = self.store.claims().settle(Settlement::new(&work, event, note)).await.unwrap();
        self.store.claims().promote(10).await.unwrap();
    }
}

/// Resolves a configuration of the queue `orders`, whose receiver can be asked by key.
fn configure(setting: &str) -> Config {
    let text =
        format!("[destinations.shop]\nkind = \"mock\"\n[queues.orders]\ndestination = \"shop\"\n{setting}\n");
    let outside = ConfigSources::of_files(PathBuf::new());
    config::resolve("ichido.toml", &text, &outside).unwrap_or_else(|errors| panic!("{errors}"))
}

#[tokio::test]
async fn a_parked_message_says_that_its_receiver_is_asked() {
    for (config, next) in [
        (Some(configure("")), "Next: a worker asks the receiver by key, again every 60 s."),
        (None, "Next: nothing, until a person decides."),
    ] {
        let mut fixture = Fixture::new().await;
        (fixture.access, fixture.pages) = server(&fixture.store, config.as_ref());
        let id = fixture.enqueue("order-1", "{}").await;
        fixture.fail(Effect::Unknown, "no answer").await;
        let page = fixture.get(&format!("/messages/{id}"), None).await;
        assert!(page.text.contains(next), "{next}: {}", page.text);
    }
}

#[tokio::test]
async fn a_parked_message_says_whom_to_ask_and_what_a_decision_does() {
    let fixture = Fixture::new().await;
    fixture.store.queues().key_kind(&QueueName::parse("orders").unwrap(), "own").await.unwrap();
    let facts = QueueFacts {
        guarantee: Guarantee::None,
        requeue: true,
        max_attempts: NonZeroU32::MIN,
        retry_horizon: Duration::from_mins(1),
    };
    let node = Uuid::now_v7();
    fixture.store.nodes().heartbeat(node, "web-1").await.unwrap();
    fixture.store.facts().publish(node, &[(QueueName::parse("orders").unwrap(), facts)]).await.unwrap();
    let id = fixture.enqueue("order-1", "{}").await;
    fixture.fail(Effect::Unknown, "no answer").await;
    let page = fixture.get(&format!("/messages/{id}"), None).await;
    for said in [
        "/destinations/shop\">shop · http://127.0.0.1:9/orders",
        "<dt>Key sent to the receiver</dt><dd><code>order-1</code>",
        "<dt>Unknown since</dt>",
        "Attempt 1: no clear response",
        "This message is sent again.",
        "your decision is recorded as “local”",
        "<h3>Decide</h3>",
    ] {
        assert!(page.text.contains(said), "{said}: {}", page.text);
    }
    assert!(!page.text.contains("<details id=\"do-decide\""), "a form that is open has no toggle");
    let decided =
        fixture.post(&format!("/messages/{id}/decide"), None, "decision=not_done&reason=asked").await;
    assert_eq!(decided.status, StatusCode::SEE_OTHER, "{}", decided.text);
    let work = fixture.claim_orders().await.pop().unwrap();
    let event = Event::Succeeded { fence: work.fence };
    let _ = fixture.store.claims().settle(Settlement::new(&work, event, Note::default())).await.unwrap();
    let page = fixture.get(&format!("/messages/{id}"), None).await;
    for said in [
        "Attempt 1 after the decision: accepted",
        "<dt>Known since</dt>",
        "<dt>Key sent to the receiver</dt>",
    ] {
        assert!(page.text.contains(said), "{said}: {}", page.text);
    }
}

#[tokio::test]
async fn a_dead_message_of_unknown_effect_says_that_its_queue_allows_a_requeue() {
    let fixture = Fixture::new().await;
    let queue = QueueName::parse("orders").unwrap();
    fixture.store.queues().key_kind(&queue, "own").await.unwrap();
    let facts = QueueFacts {
        guarantee: Guarantee::Idempotent,
        requeue: true,
        max_attempts: NonZeroU32::MIN,
        retry_horizon: Duration::from_mins(1),
    };
    let node = Uuid::now_v7();
    fixture.store.nodes().heartbeat(node, "web-1").await.unwrap();
    fixture.store.facts().publish(node, &[(queue.clone(), facts)]).await.unwrap();
    let message = NewMessage::new(queue, "ann", IdempotencyKey::parse("order-1").unwrap(), b"{}".to_vec());
    let message = NewMessage { max_attempts: NonZeroU32::MIN, ..message };
    let id = fixture.store.messages().enqueue(message).await.unwrap().id();
    fixture.attempt(Some(Effect::Unknown), ErrorCode::Broker5xx).await;
    let page = fixture.get(&format!("/messages/{id}"), None).await;
    assert!(page.text.contains("Not known yet"), "{}", page.text);
    assert!(page.text.contains("The settings of this queue allow a requeue"), "{}", page.text);
}

#[tokio::test]
async fn a_message_says_how_often_it_was_sent_again() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue("order-1", "{}").await;
    for _ in 0..3 {
        assert_eq!(fixture.enqueue("order-1", "{}").await, id);
    }
    fixture.store.series().flush().await.unwrap();
    let page = fixture.get(&format!("/messages/{id}"), None).await;
    assert!(page.text.contains("Sent again 3×: nothing new was stored"), "{}", page.text);
}

#[tokio::test]
async fn a_long_history_is_shown_in_pages() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue("order-1", "{}").await;
    let attempts = timeline::PAGE + 10;
    for _ in 0..attempts {
        let work = fixture.claim_orders().await.pop().unwrap();
        let event = Event::GivenBack { fence: work.fence, due: work.claimed_at };
        let _ = fixture.store.claims().settle(Settlement::new(&work, event, Note::default())).await.unwrap();
    }
    let events = |page: &Page| page.text.matches("<li class=").count();
    let newest = fixture.get(&format!("/messages/{id}"), None).await;
    // Its acceptance, earlier entries, and one run.
    assert_eq!(events(&newest), 3, "{}", newest.text);
    assert!(newest.text.contains("Earlier entries") && !newest.text.contains("Newest entries"));
    let earlier = newest.text.split("?before=").nth(1).unwrap().split('#').next().unwrap();
    let oldest = fixture.get(&format!("/messages/{id}?before={earlier}"), None).await;
    assert_eq!(events(&oldest), 2, "{}", oldest.text);
    assert!(!oldest.text.contains("Earlier entries") && oldest.text.contains("Newest entries"));
    assert!(oldest.text.contains("No, not yet"), "the answer is still that of now");
}

/// Returns what the foot of a page says: statements, then rows.
fn cost(page: &Page) -> (u64, u64) {
    let line = page.text.split("<span id=\"cost\"").nth(1).unwrap().split("</span>").next().unwrap();
    let numbers: Vec<u64> = line
        .split('>')
        .next_back()
        .unwrap()
        .split(|c: char| !c.is_ascii_digit() && c != ',')
        .filter_map(|number| number.replace(',', "").parse().ok())
        .collect();
    (numbers[0], numbers[1])
}

/// The answer follows from the event that decided, however many came after it, and that event is looked up.
#[tokio::test]
async fn the_answer_is_right_however_long_the_history() {
    const LATER: u32 = timeline::PAGE + 30;
    let fixture = Fixture::new().await;
    let unknown = fixture.enqueue_often_tried("order-1").await;
    fixture.attempt(Some(Effect::NotDone), ErrorCode::Broker5xx).await;
    fixture.attempt(Some(Effect::Unknown), ErrorCode::NetworkTimeout).await;
    let short = fixture.get(&format!("/messages/{unknown}"), None).await;
    for _ in 0..LATER {
        fixture.attempt(Some(Effect::Unknown), ErrorCode::Broker5xx).await;
    }
    let page = fixture.get(&format!("/messages/{unknown}"), None).await;
    let since = |page: &Page| {
        let value = page.text.split("<dt>Unknown since</dt>").nth(1).map(|rest| rest.split("</dd>").next());
        value.flatten().unwrap_or_else(|| panic!("{}", page.text)).to_owned()
    };
    assert_eq!(since(&page), since(&short));
    for said in ["Attempt 2 got no clear response", "NETWORK_TIMEOUT"] {
        assert!(page.text.contains(said), "{said}: {}", page.text);
    }
    let (few, many) = (cost(&short), cost(&page));
    assert!(many.0 <= few.0 + 1, "{many:?} statements and rows, after {few:?} with a short history");
    assert!(many.1 <= few.1 + u64::from(timeline::PAGE) + 2, "{many:?} rows, after {few:?}");

    let fixture = Fixture::new().await;
    let refused = fixture.enqueue_often_tried("order-2").await;
    fixture.attempt(Some(Effect::NotDone), ErrorCode::Broker5xx).await;
    for _ in 0..LATER {
        fixture.attempt(None, ErrorCode::Broker5xx).await;
    }
    let page = fixture.get(&format!("/messages/{refused}"), None).await;
    assert!(!page.text.contains("No worker ever called"), "a worker called once: {}", page.text);
    assert!(page.text.contains("<dt>Known since</dt>"), "{}", page.text);
}

#[tokio::test]
async fn a_kept_response_is_shown_exactly() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue("order-1", "{}").await;
    let work = fixture.claim_orders().await.pop().unwrap();
    let body = br#"{"order_id":18446744073709551617,"note":"<b>"}"#.to_vec();
    let response = ReceiverResponse {
        content_type: "application/json".to_owned(),
        bytes: body.len(),
        is_whole: true,
        body: Some(body),
    };
    let note = Note { response: Some(response), receipt: Some("r-7".to_owned()), ..Note::default() };
    let event = Event::Succeeded { fence: work.fence };
    let _ = fixture.store.claims().settle(Settlement::new(&work, event, note)).await.unwrap();
    let page = fixture.get(&format!("/messages/{id}"), None).await;
    assert!(page.text.contains("&#34;order_id&#34;: 18446744073709551617"), "{}", page.text);
    assert!(page.text.contains("r-7") && !page.text.contains("<b>"), "{}", page.text);
    for q in ["r-7", "receipt:r-7", "order-1"] {
        let found = fixture.get(&format!("/messages?q={q}"), None).await;
        assert!(found.text.contains(&format!("href=\"/messages/{id}\"")), "{q}: {}", found.text);
    }
}

#[tokio::test]
async fn a_dead_message_is_edited_and_retried_once() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue("order-1", "{\n\"qty\":9007199254740993}").await;
    fixture.fail(Effect::NotDone, "refused").await;
    let page = fixture.get(&format!("/messages/{id}"), None).await;
    let target = format!("/messages/{id}/replace");
    assert!(page.text.contains(&format!("href=\"{target}\"")), "{}", page.text);
    let form = fixture.get(&target, None).await;
    assert!(form.text.contains("{\n&#34;qty&#34;:9007199254740993}</textarea>"), "{}", form.text);
    assert!(form.text.contains("A new message with this request is enqueued"), "{}", form.text);
    let key = form.text.split("name=\"key\" value=\"").nth(1).unwrap().split('"').next().unwrap();

    let edited = |key: &str| {
        format!(
            "request=%7B%0D%0A%22qty%22%3A9007199254740995%7D&key={key}&content_type=text%2Fplain&reason=typo"
        )
    };
    let used = fixture.post(&target, None, &edited("order-1")).await;
    assert_eq!(used.status, StatusCode::CONFLICT, "{}", used.text);
    assert!(
        used.text.contains("Nothing was changed") && used.text.contains("9007199254740995"),
        "{}",
        used.text
    );
    let done = fixture.post(&target, None, &edited(key)).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    let new = done.location().split(['/', '?']).nth(2).unwrap().to_owned();
    let stored = fixture.store.messages().get(new.parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(stored.request, b"{\n\"qty\":9007199254740995}", "a browser's line breaks are undone");
    assert_eq!((stored.replacement_of, stored.content_type.as_str()), (Some(id), "text/plain"));
    let again = fixture.post(&target, None, &edited(key)).await;
    assert_eq!(again.location(), done.location(), "the second press enqueues nothing");
    let page = fixture.get(done.location(), None).await;
    assert!(
        page.text.contains("It replaces the dead message") && page.text.contains(&format!("/messages/{id}"))
    );
    assert_eq!(fixture.get(&target, None).await.status, StatusCode::CONFLICT, "it is closed");
}

#[tokio::test]
async fn a_redacted_value_survives_an_edit_and_is_in_no_command() {
    let config = configure("redact = [\"/card\"]");
    let fixture = Fixture::configured(&config).await;
    let id = fixture.enqueue("order-1", r#"{"card":"4111","qty":1}"#).await;
    fixture.fail(Effect::NotDone, "refused").await;
    let page = fixture.get(&format!("/messages/{id}"), None).await;
    assert!(!page.text.contains("4111") && page.text.contains("Some values are redacted."), "{}", page.text);
    let target = format!("/messages/{id}/replace");
    let form = fixture.get(&target, None).await;
    assert!(
        !form.text.contains("4111") && form.text.contains("A value may stay [redacted]"),
        "{}",
        form.text
    );
    let edited = "request=%7B%22card%22%3A%22%5Bredacted%5D%22%2C%22qty%22%3A2%7D&key=order-2&content_type=application%2Fjson";
    let done = fixture.post(&target, None, edited).await;
    let new = done.location().split(['/', '?']).nth(2).unwrap_or_else(|| panic!("{}", done.text)).to_owned();
    let stored = fixture.store.messages().get(new.parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(stored.request, br#"{"card":"4111","qty":2}"#);
}

#[tokio::test]
async fn bytes_that_a_form_would_change_are_not_edited() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue("order-1", "a\r\nb\n").await;
    fixture.fail(Effect::NotDone, "refused").await;
    let form = fixture.get(&format!("/messages/{id}/replace"), None).await;
    assert!(form.text.contains("cannot be edited here") && !form.text.contains("<textarea"), "{}", form.text);
}

/// A person copies the command from the page, and it must reach the server that the page came from, without showing a token.
#[tokio::test]
async fn a_command_names_the_servers_own_address_and_no_token() {
    let text = |setting: &str| format!("[serve]\n{setting}\n[destinations.shop]\nkind = \"mock\"\n");
    let resolve = |setting: &str| {
        let outside = ConfigSources::of_files(PathBuf::new());
        config::resolve("ichido.toml", &text(setting), &outside).unwrap_or_else(|errors| panic!("{errors}"))
    };
    let proxied = ("x-forwarded-proto", "https");
    for (setting, host, header, expected) in [
        ("", "localhost:4180", None, "http://localhost:4180"),
        ("", "ichido.example", None, "https://ichido.example"),
        ("", "localhost:4180", Some(proxied), "https://localhost:4180"),
        (
            "public_url = \"https://ops.example/queues/\"",
            "localhost:4180",
            None,
            "https://ops.example/queues",
        ),
        (
            "tls = { cert = \"cert.pem\", key = \"key.pem\" }",
            "localhost:4180",
            None,
            "https://localhost:4180",
        ),
    ] {
        let fixture = Fixture::configured(&resolve(setting)).await;
        let id = fixture.enqueue("order-1", "{}").await;
        let large = fixture.enqueue("order-2", &"x".repeat(9 << 10)).await;
        let (_, token) = fixture.add_token("ann", TokenRole::Viewer).await;
        // A session belongs to a host with its port.
        let cookie = fixture.sign_in(&token).await;
        let cookie = if host.ends_with(":4180") { cookie } else { cookie.replace("_4180=", "=") };
        let get = async |target: &str| {
            let mut request = request(Method::GET, target, Some(&cookie), "");
            request.headers_mut().insert(HOST, HeaderValue::from_str(host).unwrap());
            let header =
                header.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            request.headers_mut().extend(header);
            let page = fixture.send(request).await;
            assert_eq!(page.status, StatusCode::OK, "{}", page.text);
            assert!(!page.text.contains(&token), "{target} shows a token");
            page.text
        };
        let post = format!(
            "curl -i &#39;{expected}/v1/queues/orders/messages&#39; -H &#34;Authorization: Bearer $ICHIDO_TOKEN&#34;"
        );
        let page = get(&format!("/messages/{id}")).await;
        assert!(page.contains(&post), "{setting}, {host}: no {post} in {page}");
        let read = format!("curl -s -o request.bin &#39;{expected}/v1/messages/{large}/request&#39; -H");
        let page = get(&format!("/messages/{large}")).await;
        assert!(page.contains(&read), "{setting}, {host}: no {read} in {page}");
    }
    // The overview of a new store shows how to send the first message.
    let fixture = Fixture::configured(&resolve("public_url = \"https://ops.example\"")).await;
    fixture.store.nodes().heartbeat(Uuid::now_v7(), "web-1").await.unwrap();
    let page = fixture.get("/", None).await.text;
    assert!(page.contains("curl -i &#39;https://ops.example/v1/queues/demo/messages&#39; -H"), "{page}");
}
