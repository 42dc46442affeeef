//! What pages say of a state and of hidden text, and which requests they refuse.

use super::*;

impl Fixture {
    fn orders() -> QueueName {
        QueueName::parse("orders").unwrap()
    }

    /// Asks for a page in Japanese.
    async fn get_in_japanese(&self, target: &str) -> Page {
        let mut japanese = request(Method::GET, target, None, "");
        japanese.headers_mut().insert("accept-language", HeaderValue::from_static("ja"));
        self.send(japanese).await
    }
}

/// With `--data-binary`, a body that begins with `@` would send a file of the person who runs the command.
#[tokio::test]
async fn a_command_never_reads_a_file_that_a_request_names() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue("order-1", "@/etc/passwd\nmore").await;
    let page = fixture.get(&format!("/messages/{id}"), None).await;
    assert!(page.text.contains("--data-raw &#39;@/etc/passwd\nmore&#39;"), "{}", page.text);
    assert!(!page.text.contains("--data-binary"), "{}", page.text);
}

#[tokio::test]
async fn the_largest_causes_are_on_the_overview() {
    let fixture = Fixture::new().await;
    let codes = ["one", "two", "three", "four", "five", "six", "seven"];
    for (index, cause) in codes.into_iter().enumerate() {
        // The first has the most letters, and the last failed last.
        for _ in 0..codes.len() - index {
            fixture.enqueue(&Uuid::now_v7().to_string(), "{}").await;
        }
        fixture.fail(Effect::NotDone, cause).await;
    }
    fixture.groups().await;
    fixture.store.nodes().heartbeat(Uuid::now_v7(), "web-1").await.unwrap();
    let page = fixture.get("/", None).await;
    let at = |cause: &str| page.text.find(&format!("orders: BAD_REQUEST {cause}. Open messages:"));
    let shown = codes.map(at);
    assert!(shown[..5].iter().all(Option::is_some) && shown[..5].is_sorted(), "{shown:?}: {}", page.text);
    assert_eq!(shown[5..], [None, None]);
    assert!(page.text.contains("More failure groups: 2"), "{}", page.text);
    assert!(page.text.contains("7 things need you"), "the two that are not listed count too: {}", page.text);
}

#[tokio::test]
async fn a_message_in_a_paused_queue_says_who_paused_it() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue("order-1", "{}").await;
    let target = format!("/messages/{id}");
    let said = "Next: nothing, the queue is paused by ann since 20";
    fixture.store.queues().pause(&Fixture::orders(), true, Some("ann")).await.unwrap();
    let page = fixture.get(&target, None).await;
    assert!(page.text.contains(said), "{}", page.text);
    let japanese = fixture.get_in_japanese(&target).await;
    assert!(japanese.text.contains("次: キューが停止中です(ann が 20"), "{}", japanese.text);
    fixture.store.queues().pause(&Fixture::orders(), false, Some("ann")).await.unwrap();
    assert!(!fixture.get(&target, None).await.text.contains(said));

    fixture.post("/destinations/shop/pause", None, "").await;
    let page = fixture.get(&target, None).await;
    let said = "Next: nothing, the destination shop is paused by local since 20";
    assert!(page.text.contains(said), "{}", page.text);
}

#[tokio::test]
async fn a_notice_is_shown_only_while_it_is_true() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue("order-1", "{}").await;
    for (path, on, off, text) in [
        ("/queues/orders", "pause", "resume", "The queue is paused on all nodes."),
        ("/destinations/shop", "pause", "resume", "The destination is paused on all nodes."),
    ] {
        let done = fixture.post(&format!("{path}/{on}"), None, "").await;
        assert!(fixture.get(done.location(), None).await.text.contains(text), "{path}");
        let resumed = fixture.post(&format!("{path}/{off}"), None, "").await;
        assert!(
            !fixture.get(done.location(), None).await.text.contains(text),
            "{path}: it was resumed since"
        );
        let notice = "role=\"status\">The";
        assert!(fixture.get(resumed.location(), None).await.text.contains(notice), "{path}");
    }
    fixture.fail(Effect::NotDone, "refused").await;
    for did in ["requeue", "cancel", "discard", "decide", "replace"] {
        let page = fixture.get(&format!("/messages/{id}?did={did}"), None).await;
        assert!(!page.text.contains("class=\"notice ok\""), "{did}: {}", page.text);
    }
    let group = fixture.groups().await[0].id;
    for did in ["acknowledge", "resolve"] {
        let page = fixture.get(&format!("/dead-letters/groups/{group}?did={did}"), None).await;
        assert!(!page.text.contains("class=\"notice ok\""), "{did}: {}", page.text);
    }
}

#[tokio::test]
async fn an_operation_with_an_unknown_or_repeated_name_is_refused() {
    let fixture = Fixture::new().await;
    fixture.enqueue("order-1", "{}").await;
    fixture.fail(Effect::NotDone, "refused").await;
    for (query, said) in [
        ("error=x", "names error, which is not known"),
        ("que=orders", "names que, which is not known"),
        ("q=queue:orders", "names q, which is not known"),
        ("queue=orders&queue=mail", "names queue more than once"),
    ] {
        for page in [
            fixture.get(&format!("/operations/new?action=requeue&{query}"), None).await,
            fixture.post("/operations", None, &format!("action=requeue&{query}&confirmed=1&typed=1")).await,
        ] {
            assert_eq!(page.status, StatusCode::BAD_REQUEST, "{query}");
            assert!(page.text.contains(said), "{query}: {}", page.text);
        }
    }
    let known = fixture.get("/operations/new?action=requeue&queue=orders&explain", None).await;
    assert_eq!(known.status, StatusCode::OK, "{}", known.text);
}

#[tokio::test]
async fn text_that_turns_around_is_shown_escaped() {
    const TURNED: &str = "a\u{202e}b";
    let fixture = Fixture::new().await;
    let id = fixture.enqueue("order-1", &format!("{{\"to\":\"{TURNED}\"}}")).await;
    fixture.fail(Effect::NotDone, TURNED).await;
    let group = fixture.groups().await[0].id;
    fixture.post(&format!("/messages/{id}/discard"), None, "reason=a%E2%80%AEb").await;
    for target in [
        format!("/messages/{id}"),
        format!("/dead-letters/groups/{group}"),
        "/dead-letters".to_owned(),
        "/dead-letters?disposition=discarded".to_owned(),
        "/audit".to_owned(),
    ] {
        let page = fixture.get(&target, None).await;
        assert!(!page.text.contains('\u{202e}'), "{target}: {}", page.text);
    }
    let page = fixture.get(&format!("/messages/{id}"), None).await;
    assert!(page.text.contains("&#34;to&#34;: &#34;a\\u{202e}b&#34;"), "{}", page.text);
    let command = "--data-raw $&#39;{&#34;to&#34;:&#34;a\\342\\200\\256b&#34;}&#39;";
    assert!(page.text.contains(command), "the same bytes: {}", page.text);
    assert!(fixture.get("/audit", None).await.text.contains("a\\u{202e}b"));
}

#[tokio::test]
async fn a_count_of_the_navigation_is_known_from_the_first_page_on() {
    let mut fixture = Fixture::new().await;
    fixture.enqueue("order-1", "{}").await;
    fixture.fail(Effect::NotDone, "refused").await;
    // A server that has just started.
    (fixture.access, fixture.pages) = server(&fixture.store, None);
    let page = fixture.get("/audit", None).await;
    assert!(page.text.contains("<b class=\"badge\"><span>1</span></b>"), "{}", page.text);
    // Pages that everybody may see read nothing, so they know none.
    (fixture.access, fixture.pages) = server(&fixture.store, None);
    let help = fixture.get("/help", None).await;
    assert!(!help.text.contains("class=\"badge\""), "{}", help.text);
}

#[tokio::test]
async fn a_count_leads_to_the_rows_that_it_counts() {
    let fixture = Fixture::new().await;
    let closed = fixture.enqueue("order-1", "{}").await;
    fixture.enqueue("order-2", "{}").await;
    fixture.fail(Effect::NotDone, "refused").await;
    fixture.post(&format!("/messages/{closed}/discard"), None, "reason=known").await;
    for (target, href) in [
        ("/queues/orders", "/dead-letters?state=dead&#38;queue=orders"),
        ("/queues", "/dead-letters?state=dead&#38;queue=orders"),
        ("/", "/dead-letters?state=dead"),
    ] {
        let page = fixture.get(target, None).await;
        assert!(page.text.contains(&format!("<a href=\"{href}\">1</a>")), "{target}: {}", page.text);
        let rows = fixture.get(&href.replace("&#38;", "&"), None).await;
        assert_eq!(rows.text.matches("<tr id=\"d-").count(), 1, "{}", rows.text);
    }
}

#[tokio::test]
async fn a_setting_changes_only_by_its_own_field() {
    let fixture = Fixture::new().await;
    fixture.enqueue("order-1", "{}").await;
    let path = "/queues/orders/parallelism";
    assert_eq!(fixture.post(path, None, "parallelism=7").await.status, StatusCode::SEE_OTHER);
    for form in ["", "paralelism=3", "parallelism=3&parallelism=4", "parallelism=3&for=1h"] {
        let refused = fixture.post(path, None, form).await;
        assert!(refused.status.is_client_error(), "{form}");
        let set = fixture.store.queues().parallelisms().await.unwrap();
        assert_eq!(set[0].parallelism.get(), 7, "{form}");
    }
    for (target, form) in [("", "for=-5m"), ("?for=-5m", ""), ("?for=1h", "")] {
        let refused = fixture.post(&format!("/destinations/shop/pause{target}"), None, form).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{target} {form}");
        assert!(refused.text.contains("names for, which is not known"), "{}", refused.text);
    }
    assert!(!fixture.get("/destinations/shop", None).await.text.contains("</svg>paused"));
}

#[tokio::test]
async fn a_second_discard_says_that_its_reason_is_not_recorded() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue("order-1", "{}").await;
    fixture.fail(Effect::NotDone, "refused").await;
    let discard = format!("/messages/{id}/discard");
    assert_eq!(fixture.post(&discard, None, "reason=first").await.status, StatusCode::SEE_OTHER);
    let again = fixture.post(&discard, None, "reason=second").await;
    assert_eq!(again.status, StatusCode::CONFLICT, "{}", again.text);
    assert!(again.text.contains("Your reason is not recorded."), "{}", again.text);
    assert!(!again.text.contains("class=\"notice ok\""), "{}", again.text);
}

#[tokio::test]
async fn a_wrong_value_is_explained_in_the_language_of_the_page() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue("order-1", "{}").await;
    fixture.fail(Effect::NotDone, "refused").await;
    let page = fixture.get("/messages?q=since:-5", None).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
    assert!(page.text.contains("since:-5 is not a time. Write it like since:2026-"), "{}", page.text);
    let page = fixture.get_in_japanese("/messages?q=since:-5").await;
    assert!(page.text.contains("since:-5 は時刻ではありません"), "{}", page.text);
    let mut form = request(Method::POST, &format!("/messages/{id}/discard"), None, "reason=+");
    form.headers_mut().insert("accept-language", HeaderValue::from_static("ja"));
    let page = fixture.send(form).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.text.contains("破棄には理由が必要です"), "{}", page.text);
}

#[tokio::test]
async fn a_digest_of_redacted_values_is_not_shown() {
    let text = "[destinations.shop]\nkind = \"mock\"\n[queues.orders]\ndestination = \"shop\"\nredact = [\"/card\"]\n";
    let config = config::resolve("ichido.toml", text, &ConfigSources::of_files(PathBuf::new())).unwrap();
    let fixture = Fixture::configured(&config).await;
    let id = fixture.enqueue("order-1", r#"{"card":"4111"}"#).await;
    let stored = fixture.store.messages().get(id).await.unwrap().unwrap().request_digest.to_string();
    for target in [format!("/messages/{id}"), "/keys?key=order-1".to_owned()] {
        let page = fixture.get(&target, None).await;
        assert!(page.text.contains("order-1") && !page.text.contains(&stored), "{target}: {}", page.text);
    }
}

#[tokio::test]
async fn a_path_without_a_page_says_so() {
    let fixture = Fixture::new().await;
    let api = Arc::new(in_process::api(fixture.store.clone(), None));
    let (_, pages) = pages_of_server(api, Arc::clone(&fixture.access));
    let fixture = Fixture { pages, ..fixture };
    let page = fixture.get("/mesages", None).await;
    assert_eq!(page.status, StatusCode::NOT_FOUND);
    assert!(page.text.contains("This address has no page."), "{}", page.text);
    let (_, _) = fixture.add_token("ann", TokenRole::Viewer).await;
    let page = fixture.get("/mesages", None).await;
    assert_eq!(page.location(), "/sign-in?next=%2Fmesages", "nobody learns which pages exist");
}

#[tokio::test]
async fn redacted_receipt_confirms_no_guess() {
    let redacting = |pointer: &str| {
        let text = format!(
            "[destinations.shop]\nkind = \"mock\"\n[queues.orders]\ndestination = \"shop\"\nredact = [\"{pointer}\"]\n"
        );
        config::resolve("ichido.toml", &text, &ConfigSources::of_files(PathBuf::new())).unwrap()
    };
    for (pointer, receipt, status, is_found) in [
        ("/receipt", "r-7", StatusCode::BAD_REQUEST, false),
        // The receiver used a hidden value of the request.
        ("/email", "ann@example.com", StatusCode::OK, false),
        ("/email", "r-7", StatusCode::OK, true),
    ] {
        let fixture = Fixture::configured(&redacting(pointer)).await;
        let id = fixture.enqueue("order-1", r#"{"email":"ann@example.com"}"#).await;
        let work = fixture.claim_orders().await.pop().unwrap();
        let note = Note { receipt: Some(receipt.to_owned()), ..Note::default() };
        let event = Event::Succeeded { fence: work.fence };
        let _ = fixture.store.claims().settle(Settlement::new(&work, event, note)).await.unwrap();
        for q in [receipt.to_owned(), format!("receipt:{receipt}")] {
            let page = fixture.get(&format!("/messages?q={q}"), None).await;
            let status = if q == receipt { StatusCode::OK } else { status };
            assert_eq!(page.status, status, "{pointer} {q}: {}", page.text);
            assert_eq!(page.text.contains(&format!("href=\"/messages/{id}\"")), is_found, "{pointer} {q}");
        }
    }
}
