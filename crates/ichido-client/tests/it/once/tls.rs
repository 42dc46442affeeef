//! Tests that TLS connects only to servers that the trusted roots vouch for.

use http_for_tests::Authority;
use ichido_client::{ClientSettings, LastResult, Outcome};
use ichido_core::verdict::{Effect, NetworkFault};
use tokio_rustls::TlsAcceptor;

use crate::server::{ServerAction, TestServer, build_client, order, quick};

/// A certificate authority, and a server certificate for this name.
struct TlsFixture {
    roots: String,
    acceptor: TlsAcceptor,
}

fn fixture(name: &str) -> TlsFixture {
    let authority = Authority::new("tests");
    TlsFixture { roots: authority.pem(), acceptor: authority.acceptor(name) }
}

fn settings(server: &TestServer, roots: &str) -> ClientSettings {
    let url = format!("https://{}", server.address);
    ClientSettings { trusted_roots: Some(roots.to_owned()), ..quick(url) }
}

#[tokio::test]
async fn server_with_a_trusted_certificate_is_called() {
    let fixture = fixture("127.0.0.1");
    let acts = [ServerAction::WorkAndReset, ServerAction::Work];
    let server = TestServer::start_tls(fixture.acceptor, move |nth, _| acts[nth].clone()).await;
    let outcome = build_client(settings(&server, &fixture.roots)).send(&order("k1")).await;
    assert!(matches!(outcome, Outcome::Done { attempts: 2, .. }), "{outcome:?}");
    assert_eq!(server.effects("k1"), 1);
}

#[tokio::test]
async fn server_with_an_untrusted_certificate_gets_nothing() {
    let stranger = fixture("127.0.0.1").roots;
    let (ours, misnamed) = (fixture("127.0.0.1"), fixture("ichido.example"));
    for (acceptor, roots) in [(ours.acceptor, &stranger), (misnamed.acceptor, &misnamed.roots)] {
        let server = TestServer::start_tls(acceptor, |_, _| ServerAction::Work).await;
        let outcome = build_client(settings(&server, roots)).send(&order("k1")).await;
        let Outcome::GaveUp { last: LastResult::Error { kind, why }, effect, .. } = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!((kind, effect, server.seen().len()), (NetworkFault::Tls, Effect::NotDone, 0), "{why}");
    }
}

#[test]
fn invalid_roots_are_rejected_with_their_setting() {
    let roots = Some("no certificate".to_owned());
    let settings = ClientSettings { trusted_roots: roots, ..ClientSettings::new("https://ichido.example") };
    let problems = settings.resolve().expect_err("invalid roots");
    assert_eq!(
        problems.to_string(),
        "base_url cannot be called with TLS: contains no certificate; add at least one in PEM format"
    );
}
