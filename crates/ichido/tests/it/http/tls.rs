//! TLS: only with servers that the roots vouch for.

use ichido::destination::http::HttpSettings;
use ichido_core::verdict::{Advice, Effect, ErrorCode};
use tokio_rustls::TlsAcceptor;

use super::tried::{order, outcome, resolved, settings, tried};
use http_for_tests::{Authority, Receiver, ServerAction, json};

const NOT_CONNECTED: (Option<&str>, Effect, Advice) =
    (Some("CONNECT_FAILED"), Effect::NotDone, Advice::Retry);
const NOT_SENT: (Option<&str>, Effect, Advice) = (Some("NETWORK_TIMEOUT"), Effect::NotDone, Advice::Retry);

/// An authority, and a server with its certificate for this name.
struct TlsSetup {
    roots: String,
    acceptor: TlsAcceptor,
}

fn world(name: &str) -> TlsSetup {
    let authority = Authority::new("tests");
    TlsSetup { roots: authority.pem(), acceptor: authority.acceptor(name) }
}

async fn start(world: &TlsSetup, act: ServerAction) -> (Receiver, HttpSettings) {
    let receiver = Receiver::start_tls(world.acceptor.clone(), move |_, _| act.clone()).await;
    let url = format!("https://127.0.0.1:{}/orders", receiver.address.port());
    let settings = HttpSettings { trusted_roots: Some(world.roots.clone()), ..settings(url) };
    (receiver, settings)
}

#[tokio::test]
async fn trusted_receiver_is_called_and_connection_reused() {
    let (receiver, settings) = start(&world("127.0.0.1"), ServerAction::Answer(json("200 OK", "{}"))).await;
    let http = resolved(&settings);
    for _ in 0..3 {
        assert_eq!(outcome(&http, &order("k")).await, (None, Effect::Done, Advice::Accept));
    }
    assert_eq!((receiver.seen().len(), receiver.connections()), (3, 1));
}

#[tokio::test]
async fn untrusted_receiver_gets_nothing() {
    // An authority that is not trusted, and a certificate for another name.
    let stranger = HttpSettings { trusted_roots: Some(world("127.0.0.1").roots), ..settings(String::new()) };
    for (world, roots) in [(world("127.0.0.1"), stranger.trusted_roots), (world("broker.example"), None)] {
        let (receiver, settings) = start(&world, ServerAction::Answer(json("200 OK", "{}"))).await;
        let settings = HttpSettings { trusted_roots: roots.or(settings.trusted_roots.clone()), ..settings };
        let (verdict, note) = tried(&resolved(&settings), &order("k")).await;
        assert_eq!((verdict.code.map(ErrorCode::as_str), verdict.effect, verdict.advice), NOT_CONNECTED);
        let why = note.excerpt.expect("it says why");
        assert!(why.starts_with("no TLS connection: invalid peer certificate"), "{why}");
        assert_eq!(receiver.seen().len(), 0);
    }
}

#[tokio::test]
async fn receiver_without_tls_gets_nothing() {
    let receiver =
        Receiver::start(|_, _| ServerAction::AnswerAndClose("HTTP/1.1 400 Bad Request\r\n\r\n".to_owned()))
            .await;
    // It takes the first flight for the start of a head, and waits for more until we have gone.
    let url = format!("https://{}/", receiver.address);
    let mut settings = HttpSettings { trusted_roots: Some(world("127.0.0.1").roots), ..settings(url) };
    settings.connect_timeout = super::tried::SHORT;
    assert_eq!(outcome(&resolved(&settings), &order("k")).await, NOT_SENT);
    assert_eq!(receiver.seen().len(), 0);
}

#[tokio::test]
async fn truncated_response_is_not_complete() {
    // The end of the connection ends the response, and an attacker could cause that; TLS says which end was meant.
    let answer = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it";
    let (_kept, settings) = start(&world("127.0.0.1"), ServerAction::AnswerAndClose(answer.to_owned())).await;
    let said_end = outcome(&resolved(&settings), &order("k")).await;
    assert_eq!(said_end, (None, Effect::Done, Advice::Accept));
    let (_kept, settings) = start(&world("127.0.0.1"), ServerAction::AnswerAndDrop(answer.to_owned())).await;
    let cut = outcome(&resolved(&settings), &order("k")).await;
    assert_eq!(cut, (Some("NETWORK_TIMEOUT"), Effect::Unknown, Advice::Retry));
}
