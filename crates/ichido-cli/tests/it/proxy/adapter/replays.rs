//! What a duplicate gets, and what is refused under its key.

use ichido_store::testing::postgres::fresh_database;
use ichido_store::testing::sqlite::fresh_file;

use super::{adapter, numbering, order};
use crate::proxy::client::{ProxyRequest, send};

#[tokio::test]
async fn replay_returns_first_response_without_calling_service() {
    let database = fresh_database().await;
    let file = fresh_file();
    for url in [&file.url, &database.url] {
        let service = numbering().await;
        let proxy = adapter(&service, url, &[]);
        let first = send(proxy.address, &order("k")).await;
        assert_eq!((first.status(), first.text(), first.one("idempotency-replayed")), (201, "order 0", None));
        let respelled = ProxyRequest::post("/orders?lang=en")
            .key("\"k\"")
            .field("Content-Type", "application/json")
            .body("{ \"qty\": 1.0 }");
        let again = send(proxy.address, &respelled).await;
        assert_eq!(
            (again.status(), again.text(), again.one("idempotency-replayed")),
            (201, "order 0", Some("true"))
        );
        assert_eq!((again.one("location"), again.all("link")), (Some("/orders/1"), vec!["a", "b"]));
        assert_eq!((first.one("set-cookie"), again.one("set-cookie")), (Some("s=1"), None));
        assert_ne!(first.one("x-request-id"), again.one("x-request-id"));
        assert_eq!(service.seen().len(), 1);
    }
}

#[tokio::test]
async fn key_reuse_with_different_request_is_refused() {
    let file = fresh_file();
    let service = numbering().await;
    let proxy = adapter(&service, &file.url, &[]);
    assert_eq!(send(proxy.address, &order("k")).await.status(), 201);
    let json = |target: &str, body: &str| {
        ProxyRequest::post(target).key("k").field("Content-Type", "application/json").body(body)
    };
    for other in [
        json("/orders?lang=en", "{\"qty\": 2}"),
        json("/orders?lang=de", "{\"qty\": 1}"),
        json("/orders", "{\"qty\": 1}"),
    ] {
        let refused = send(proxy.address, &other).await;
        assert_eq!((refused.status(), refused.code().as_str()), (409, "key_conflict"), "{other:?}");
        assert!(!refused.text().contains("order 0"));
    }
    // `order` sends JSON; the same bytes as a text are another request, and a charset is not.
    let typed = |content_type: &str| {
        let request = ProxyRequest::post("/orders?lang=en").key("k").field("Content-Type", content_type);
        request.body("{\"qty\": 1}")
    };
    assert_eq!(send(proxy.address, &typed("text/plain")).await.code(), "key_conflict");
    assert_eq!(send(proxy.address, &typed("application/json; charset=utf-8")).await.status(), 201);
    assert_eq!(service.seen().len(), 1);
    // Another operation is another action: its name is the route's pattern, not the path. Spec: C3.
    assert_eq!(send(proxy.address, &json("/orders/7", "{\"qty\": 1}")).await.status(), 201);
    let same_pattern = send(proxy.address, &json("/orders/8", "{\"qty\": 1}")).await;
    assert_eq!((same_pattern.status(), same_pattern.code().as_str()), (409, "key_conflict"));
    assert_eq!(service.seen().len(), 2);
}

#[tokio::test]
async fn adapter_requires_key_that_matches_the_body() {
    let file = fresh_file();
    let service = numbering().await;
    let proxy = adapter(&service, &file.url, &[]);
    assert_eq!(send(proxy.address, &ProxyRequest::post("/orders").body("x")).await.code(), "key_missing");
    assert_eq!(send(proxy.address, &ProxyRequest::post("/orders").key("a b")).await.code(), "key_invalid");
    let body = "{\"idempotency_key\": \"other\"}";
    let disagrees =
        ProxyRequest::post("/orders").key("k").field("content-type", "application/json").body(body);
    let refused = send(proxy.address, &disagrees).await;
    assert_eq!((refused.status(), refused.code().as_str()), (422, "key_mismatch"));
    assert_eq!(service.seen().len(), 0);
}

#[tokio::test]
async fn request_without_operation_passes_only_if_a_read() {
    let file = fresh_file();
    let service = numbering().await;
    let proxy = adapter(&service, &file.url, &[]);
    let unknown = send(proxy.address, &ProxyRequest::post("/elsewhere").key("k")).await;
    assert_eq!((unknown.status(), unknown.code().as_str()), (404, "operation_not_configured"));
    assert_eq!(service.seen().len(), 0);
    assert_eq!(send(proxy.address, &ProxyRequest::get("/orders")).await.status(), 201);
    assert_eq!(send(proxy.address, &ProxyRequest::get("/orders")).await.status(), 201);
    assert_eq!(service.seen().len(), 2, "reads are not deduplicated (SPEC C11)");
}
