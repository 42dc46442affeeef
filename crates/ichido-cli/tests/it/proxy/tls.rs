//! TLS to the upstream.
// Spec: C2.

use http_for_tests::{Authority, Receiver, ServerAction, with};

use super::client::{ProxyRequest, send};
use super::program::{ProxyProcess, run};
use crate::folder;

async fn secure(authority: &Authority, host: &str) -> Receiver {
    Receiver::start_tls(authority.acceptor(host), |_, _| ServerAction::Answer(with("200 OK", &[], "secret")))
        .await
}

#[tokio::test]
async fn upstream_is_called_over_tls() {
    let (authority, folder) = (Authority::new("ours"), folder::fresh());
    let service = secure(&authority, "localhost").await;
    let roots = folder.write("roots.pem", &authority.pem());
    let url = format!("https://localhost:{}", service.address.port());
    let proxy = ProxyProcess::start_for("gateway", &url, &["--trusted-roots", &roots]);
    let answer = send(proxy.address, &ProxyRequest::post("/orders").key("k").body("x")).await;
    assert_eq!((answer.status(), answer.text()), (200, "secret"));
    let seen = service.seen();
    assert_eq!((seen.len(), seen[0].key()), (1, "k"));
    assert_eq!(seen[0].field("host"), Some(url.trim_start_matches("https://")));
}

#[tokio::test]
async fn untrusted_upstream_gets_no_request() {
    let (authority, other, folder) = (Authority::new("ours"), Authority::new("another"), folder::fresh());
    let (ours, theirs) = (folder.write("a.pem", &authority.pem()), folder.write("b.pem", &other.pem()));
    let service = secure(&authority, "localhost").await;
    let misnamed = secure(&authority, "elsewhere.example").await;
    for (service, roots) in [(&service, &theirs), (&misnamed, &ours)] {
        let url = format!("https://localhost:{}", service.address.port());
        let proxy = ProxyProcess::start_for("gateway", &url, &["--trusted-roots", roots]);
        let refused = send(proxy.address, &ProxyRequest::post("/orders").key("k").body("x")).await;
        assert_eq!((refused.status(), refused.code().as_str()), (502, "upstream_unreachable"));
        assert_eq!(refused.json()["effect"], "not_done");
        assert!(refused.text().contains("its certificate is not trusted"), "{}", refused.text());
        assert_eq!(service.seen().len(), 0);
    }
}

#[test]
fn unusable_roots_are_refused() {
    let folder = folder::fresh();
    let empty = folder.write("empty.pem", "no certificate");
    let start = |upstream: &str, roots: &str| {
        let flags = ["proxy", "--role", "bff", "--upstream", upstream, "--trusted-roots", roots];
        let (code, _, err) = run(&flags);
        assert_eq!(code, Some(2), "{err}");
        err
    };
    for (upstream, roots, what) in [
        ("https://localhost", empty.as_str(), "contains no certificate"),
        ("https://localhost", "no-such-file.pem", "cannot read no-such-file.pem"),
        ("http://localhost", &empty, "only an https:// upstream has a certificate"),
    ] {
        let err = start(upstream, roots);
        assert!(err.contains("--trusted-roots: ") && err.contains(what), "{what} in {err}");
    }
}
