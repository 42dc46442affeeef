//! A browser's CORS preflight passes the three proxies on the unchanged starting set.

use ichido_store::testing::sqlite::fresh_file;
use serde_json::json;

use super::client::{ProxyRequest, send};
use super::program::ProxyProcess;
use super::service::{FakeService, ServiceAction, answer};
use crate::folder;

const ASKED: [(&str, &str); 3] = [
    ("origin", "https://shop.example"),
    ("access-control-request-method", "POST"),
    ("access-control-request-headers", "content-type,idempotency-key"),
];

#[tokio::test]
async fn preflight_passes_with_the_starting_files() {
    let allowed = [
        ("access-control-allow-origin", "https://shop.example"),
        ("access-control-allow-headers", "content-type,idempotency-key"),
    ];
    let service =
        FakeService::start(move |_, _| ServiceAction::Answer(answer("204 No Content", &allowed, ""))).await;
    let (store, folder) = (fresh_file(), folder::fresh());
    let unchanged = json!({});
    let [to_bff, to_gateway, to_adapter, own] =
        ["browser_to_bff.json", "bff_to_gateway.json", "gateway_to_adapter.json", "adapter.json"]
            .map(|name| folder.boundary(name, &unchanged));
    // The key that verifies a JWT is not part of the files.
    let flags = ["--store", &store.url, "--identity", "single:shop"];
    let flags = [&flags[..], &["--boundary", &to_adapter, "--boundary", &own]].concat();
    let adapter = ProxyProcess::start("adapter", service.address, &flags);
    let gateway = ProxyProcess::start(
        "gateway",
        adapter.address,
        &["--boundary", &to_gateway, "--boundary", &to_adapter],
    );
    let bff =
        ProxyProcess::start("bff", gateway.address, &["--boundary", &to_bff, "--boundary", &to_gateway]);
    let asking = ProxyRequest::new("OPTIONS", "/v1/orders");
    let asking = ASKED.iter().fold(asking, |request, (name, value)| request.field(name, value));
    let text = send(bff.address, &asking).await;
    assert_eq!(text.status(), 204);
    for (name, value) in allowed {
        assert_eq!(text.one(name), Some(value));
    }
    let seen = service.only();
    for (name, value) in ASKED {
        assert_eq!(seen.one(name), Some(value));
    }
}
