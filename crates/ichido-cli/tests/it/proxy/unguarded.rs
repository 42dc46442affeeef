//! A request outside of all operations reaches the service only if it changes nothing.
// Spec: C2, C11.

use ichido_store::testing::sqlite::fresh_file;
use serde_json::json;

use super::client::{ProxyRequest, send};
use super::program::ProxyProcess;
use super::service::FakeService;
use crate::folder;

#[tokio::test]
async fn state_changing_method_requires_an_operation() {
    let (service, store) = (FakeService::plain().await, fresh_file());
    let flags = ["--store", &store.url, "--identity", "single:me"];
    let operations = ["--operation", "POST /orders", "--operation", "PUT /orders/{id}"];
    let proxy = ProxyProcess::start("adapter", service.address, &[&flags[..], &operations].concat());
    for method in ["PUT", "PATCH", "DELETE", "FOO", "MKCOL", "PROPFIND", "LINK", "POST"] {
        let answer = send(proxy.address, &ProxyRequest::new(method, "/elsewhere").key("k").body("{}")).await;
        assert_eq!((answer.status(), answer.code().as_str()), (404, "operation_not_configured"), "{method}");
    }
    assert_eq!(service.seen().len(), 0);
    for method in ["GET", "OPTIONS"] {
        assert_eq!(
            send(proxy.address, &ProxyRequest::new(method, "/elsewhere")).await.status(),
            200,
            "{method}"
        );
    }
    // A declared operation is guarded.
    for _ in 0..2 {
        let put = ProxyRequest::new("PUT", "/orders/7").key("k").body("{}");
        assert_eq!(send(proxy.address, &put).await.status(), 200);
    }
    assert_eq!(service.seen().len(), 3);
}

/// Rack, Laravel, Express and others can take the method from these.
#[tokio::test]
async fn a_method_cannot_be_overridden() {
    let (service, store, folder) = (FakeService::plain().await, fresh_file(), folder::fresh());
    let search = json!({"methods": ["POST"], "path": "/orders/search", "class": "read", "guarantee": "none"});
    let orders = json!({"path": "/orders"});
    let operations = json!({"orders.create": orders, "orders.search": search, "profiles.update": null});
    let own = folder.boundary("adapter.json", &json!({"operations": operations}));
    // Without lists, every header arrives.
    let receiving = folder.boundary("gateway_to_adapter.json", &json!({"headers": null}));
    let flags =
        ["--store", &store.url, "--identity", "single:me", "--boundary", &own, "--boundary", &receiving];
    let proxy = ProxyProcess::start("adapter", service.address, &flags);
    let mut refused = Vec::new();
    for name in ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"] {
        for request in [
            ProxyRequest::get("/orders/7"),
            ProxyRequest::post("/orders/search").body("{}"),
            ProxyRequest::post("/orders").key("k").body("{}"),
        ] {
            refused.push(request.field(name, "DELETE"));
        }
    }
    for query in ["_method=DELETE", "a=b&%5Fmethod=delete", ".method=PUT"] {
        refused.push(ProxyRequest::get(&format!("/orders/7?{query}")));
        refused.push(ProxyRequest::post(&format!("/orders/search?{query}")).body("{}"));
    }
    for request in refused {
        let answer = send(proxy.address, &request).await;
        assert_eq!((answer.status(), answer.code().as_str()), (400, "method_override"), "{request:?}");
    }
    assert_eq!(service.seen().len(), 0);
    let same = ProxyRequest::get("/orders/7?_method=get").field("X-HTTP-Method-Override", "GET");
    assert_eq!(send(proxy.address, &same).await.status(), 200, "it is the method that it has");
    // Through the ledger it is guarded whatever it says, because the query is compared.
    let guarded = |query: &str| ProxyRequest::post(&format!("/orders{query}")).key("k").body("{}");
    for (query, status) in
        [("?_method=DELETE", 200), ("?_method=DELETE", 200), ("", 409), ("?_method=PUT", 409)]
    {
        assert_eq!(send(proxy.address, &guarded(query)).await.status(), status, "{query}");
    }
    assert_eq!(service.seen().len(), 2);
}
