//! Charts, and the pages of queues, destinations and models.

use ichido_store::counters::Arrival;

use super::*;

/// Counts some traffic of a queue and of a language model.
async fn count(store: &Store) {
    let counters = store.counters();
    counters.serve("orders", "shop");
    for _ in 0..1_500 {
        counters.message_arrived("orders", Arrival::New);
    }
    counters.claimed("orders", [Duration::from_millis(20)].into_iter());
    counters.executed("orders", 3);
    counters.throttled("orders");
    counters.sent("orders", &[Duration::from_millis(300); 3]);
    counters.dead("orders", None);
    counters.parked("orders");
    counters.model_called("a model", false);
    counters.model_called("a model", true);
    counters.model_throttled("a model");
    counters.model_replied("a model", 12_000, 345);
    counters.model_billed_twice("a model", 1);
    store.series().flush().await.unwrap();
}

fn assert_has(page: &Page, parts: &[&str]) {
    for part in parts {
        assert!(page.text.contains(part), "no {part} in {}", page.text);
    }
}

#[tokio::test]
async fn charts_have_a_name_and_their_numbers_as_a_table() {
    let fixture = Fixture::new().await;
    fixture.enqueue("order-1", "{}").await;
    count(&fixture.store).await;
    let page = fixture.get("/", None).await;
    assert_has(
        &page,
        &[
            "role=\"img\" aria-label=\"Accepted: 1,501; highest bar: 1,501\"",
            "aria-label=\"Became dead + parked: 1 + 1; highest bar: 2\"",
            "aria-label=\"Retried: 0; none\"",
            "<details class=\"numbers\">",
            "<td>1,501</td>",
            "href=\"/dead-letters?state=parked&#38;since_from=",
            "href=\"/?range=1h\" aria-current=\"true\"",
        ],
    );
    let day = fixture.get("/?range=24h", None).await;
    assert_has(
        &day,
        &["href=\"/?range=24h\" aria-current=\"true\"", "Each bar is 30 minutes", "<td>1,501</td>"],
    );
    let unknown = fixture.get("/?range=7d", None).await;
    assert_has(&unknown, &["href=\"/?range=1h\" aria-current=\"true\""]);
}

/// The sentence of an idle store differs from that of a dead one, and so do its charts: bars, or the word that there are none.
#[tokio::test]
async fn nothing_counted_is_said() {
    let fixture = Fixture::new().await;
    let page = fixture.get("/queues/orders", None).await;
    assert_has(
        &page,
        &["Nothing was counted in this time.", "aria-label=\"Sent: 0; none\"", "No worker has this queue"],
    );
    assert_has(&fixture.get("/models", None).await, &["No call to a language model was counted"]);
}

#[tokio::test]
async fn the_page_of_a_queue_says_who_set_its_parallelism() {
    let fixture = Fixture::new().await;
    count(&fixture.store).await;
    let page = fixture.get("/queues/orders", None).await;
    assert_has(
        &page,
        &[
            "(as in the configuration file)",
            "href=\"/messages?q=queue:orders\">Messages of orders</a>",
            "href=\"/dead-letters?queue=orders\">Dead letters of orders</a>",
            "<a href=\"/queues\">Queues</a> › orders",
            "href=\"/messages?q=queue:orders+state:sent\">3</a>",
            "action=\"/queues/orders/parallelism\"",
            "those in flight finish first",
        ],
    );
    let refused = fixture.post("/queues/orders/parallelism", None, "parallelism=many").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_has(&refused, &["Nothing was changed: “many” is not a number"]);
    let refused = fixture.post("/queues/orders/parallelism", None, "parallelism=0").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_has(&refused, &["parallelism must be from 1"]);
    let done = fixture.post("/queues/orders/parallelism", None, "parallelism=7").await;
    assert_eq!((done.status, done.location()), (StatusCode::SEE_OTHER, "/queues/orders?did=parallelism"));
    let page = fixture.get(done.location(), None).await;
    assert_has(
        &page,
        &["The parallelism is set.", "7 (set by local, 0 s ago; the file says 4)", "value=\"7\""],
    );
    fixture.post("/queues/orders/parallelism", None, "parallelism=").await;
    assert_has(&fixture.get("/queues/orders", None).await, &["4 (as in the configuration file)"]);
    assert_eq!(fixture.get("/queues/nowhere", None).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_queue_is_paused_on_its_page() {
    let fixture = Fixture::new().await;
    let done = fixture.post("/queues/orders/pause", None, "").await;
    assert_eq!(done.location(), "/queues/orders?did=pause");
    assert_has(
        &fixture.get(done.location(), None).await,
        &["The queue is paused", "action=\"/queues/orders/resume\""],
    );
}

#[tokio::test]
async fn the_page_of_a_destination_says_who_set_its_pace_and_who_paused_it() {
    let fixture = Fixture::new().await;
    count(&fixture.store).await;
    let list = fixture.get("/destinations", None).await;
    assert_has(&list, &["Calls and 429s are counted over the last 5 minutes."]);
    let idle = Fixture::new().await.get("/destinations", None).await;
    assert_has(&idle, &["data-name=\"Calls\">0</td>"]);
    assert_has(
        &list,
        &[
            "href=\"/destinations/shop\">3</a>",
            "href=\"/queues/orders\">orders</a>",
            "at most 8 calls at the same time",
        ],
    );
    let page = fixture.get("/destinations/shop", None).await;
    assert_has(
        &page,
        &["no limit (as in the configuration file)", "aria-label=\"Throttled (429): 1; highest bar: 1\""],
    );

    let refused = fixture.post("/destinations/shop/pace", None, "rate=fast").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let done = fixture.post("/destinations/shop/pace", None, "rate=2.5").await;
    assert_eq!(done.location(), "/destinations/shop?did=pace");
    let page = fixture.get(done.location(), None).await;
    assert_has(&page, &["at most 2.5 calls a second (set by local, 0 s ago; the file says no limit)"]);

    let done = fixture.post("/destinations/shop/pause", None, "").await;
    assert_eq!(done.location(), "/destinations/shop?did=pause");
    let page = fixture.get(done.location(), None).await;
    assert_has(
        &page,
        &["set by local, 0 s ago; the file says not paused", "action=\"/destinations/shop/resume\""],
    );
    fixture.post("/destinations/shop/resume", None, "").await;
    let page = fixture.get("/destinations/shop", None).await;
    assert_has(&page, &["action=\"/destinations/shop/pause\""]);
    let kinds: Vec<String> = fixture
        .store
        .actions()
        .list(None, 10)
        .await
        .unwrap()
        .into_iter()
        .map(|row| row.action.kind)
        .collect();
    assert_eq!(kinds, ["pause_lifted", "paused", "pace_set"]);
    assert_eq!(fixture.get("/destinations/nowhere", None).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn models_are_shown_with_their_tokens() {
    let fixture = Fixture::new().await;
    count(&fixture.store).await;
    let page = fixture.get("/models", None).await;
    let cells = [
        ("Calls", "2"),
        ("Retried", "1"),
        ("Throttled (429)", "1"),
        ("Possibly billed twice", "1"),
        ("Tokens of prompts", "12,000"),
        ("Tokens of answers", "345"),
    ];
    let cells =
        cells.map(|(name, cell)| format!("<td class=\"number\" data-name=\"{name}\">{cell}</td>")).concat();
    assert_has(
        &page,
        &[
            "<th scope=\"row\">a model</th>",
            &cells,
            "aria-label=\"Possibly billed twice: 1; highest bar: 1\"",
        ],
    );
}

/// A viewer sees these pages without their forms.
#[tokio::test]
async fn a_viewer_sees_no_forms() {
    let fixture = Fixture::new().await;
    let (_, token) = fixture.add_token("ann", TokenRole::Viewer).await;
    let cookie = fixture.sign_in(&token).await;
    for target in ["/queues/orders", "/destinations/shop"] {
        let page = fixture.get(target, Some(&cookie)).await;
        assert_eq!(page.status, StatusCode::OK, "{target}");
        assert!(!page.text.contains(&format!("action=\"{target}")), "{target}");
    }
}

#[tokio::test]
async fn pages_with_charts_have_no_inline_style() {
    let fixture = Fixture::new().await;
    count(&fixture.store).await;
    for target in ["/?range=5m", "/queues/orders", "/destinations", "/destinations/shop", "/models"] {
        let page = fixture.get(target, None).await;
        assert_eq!(page.status, StatusCode::OK, "{target}: {}", page.text);
        assert!(!page.text.contains(" style=") && !page.text.contains("<style"), "{target}");
    }
}
