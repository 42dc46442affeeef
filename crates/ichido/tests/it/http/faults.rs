//! No response, or half of one. A request that was never sent is not done; one that may have arrived is unknown.

use ichido_core::verdict::{Advice, Effect, ErrorCode};
use tokio::net::TcpListener;

use super::tried::{SHORT, order, outcome, resolved, settings, tried};
use http_for_tests::{Receiver, ServerAction};

const NOT_CONNECTED: (Option<&str>, Effect, Advice) =
    (Some("CONNECT_FAILED"), Effect::NotDone, Advice::Retry);
const NOT_SENT: (Option<&str>, Effect, Advice) = (Some("NETWORK_TIMEOUT"), Effect::NotDone, Advice::Retry);
const MAYBE_SENT: (Option<&str>, Effect, Advice) = (Some("NETWORK_TIMEOUT"), Effect::Unknown, Advice::Retry);

#[tokio::test]
async fn refused_connection_means_not_done() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it listens");
    drop(listener);
    let http = resolved(&settings(format!("http://{address}/")));
    let (verdict, note) = tried(&http, &order("k")).await;
    assert_eq!((verdict.code.map(ErrorCode::as_str), verdict.effect, verdict.advice), NOT_CONNECTED);
    let why = note.excerpt.expect("it says why");
    assert!(why.contains(&address.to_string()), "{why}");
}

#[tokio::test]
async fn unresolved_host_means_not_sent() {
    // A name server that is out of reach takes its time.
    let http = resolved(&settings("http://no-such-host.invalid/".to_owned()));
    assert_eq!(outcome(&http, &order("k")).await, NOT_CONNECTED);
}

#[tokio::test]
async fn unfinished_handshake_means_not_sent() {
    // It accepts the connection and then says nothing: the TLS handshake never completes.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it listens");
    let mut settings = settings(format!("https://{address}/"));
    settings.connect_timeout = SHORT;
    let (verdict, note) = tried(&resolved(&settings), &order("k")).await;
    assert_eq!((verdict.code.map(ErrorCode::as_str), verdict.effect, verdict.advice), NOT_SENT);
    assert_eq!(note.excerpt.as_deref(), Some("no connection was established in time"));
    drop(listener);
}

#[tokio::test]
async fn unanswered_request_may_have_arrived() {
    let receiver = Receiver::start(|_, _| ServerAction::Silence).await;
    let mut settings = settings(receiver.url("/"));
    settings.response_timeout = SHORT;
    let (verdict, note) = tried(&resolved(&settings), &order("k")).await;
    assert_eq!((verdict.code.map(ErrorCode::as_str), verdict.effect, verdict.advice), MAYBE_SENT);
    assert_eq!(note.excerpt.as_deref(), Some("no response arrived in time"));
    // It is closed, not left hanging.
    receiver.until_closed(1).await;
    assert_eq!(receiver.seen().len(), 1);
}

#[tokio::test]
async fn connection_closed_after_request_leaves_effect_unknown() {
    for act in [
        ServerAction::Reset,
        ServerAction::AnswerAndClose(String::new()),
        // Not HTTP at all.
        ServerAction::AnswerAndClose("220 mail.example ESMTP\r\n\r\n".to_owned()),
        // A head that does not end.
        ServerAction::AnswerAndClose("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n".to_owned()),
        // A body that does not end, by length and by chunks.
        ServerAction::AnswerAndClose("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf".to_owned()),
        ServerAction::AnswerAndClose(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nha".to_owned(),
        ),
    ] {
        let done = act.clone();
        let receiver = Receiver::start(move |_, _| done.clone()).await;
        let http = resolved(&settings(receiver.url("/")));
        assert_eq!(outcome(&http, &order("k")).await, MAYBE_SENT, "{act:?}");
        assert_eq!(receiver.seen().len(), 1, "{act:?}: no hidden retry");
        assert_eq!(receiver.connections(), 1, "{act:?}");
    }
}

#[tokio::test]
async fn unfinished_response_leaves_effect_unknown() {
    let receiver = Receiver::start(|_, _| {
        ServerAction::AnswerAndHold("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf".to_owned())
    })
    .await;
    let mut settings = settings(receiver.url("/"));
    (settings.connect_timeout, settings.response_timeout, settings.total_timeout) = (SHORT, SHORT, SHORT);
    assert_eq!(outcome(&resolved(&settings), &order("k")).await, MAYBE_SENT);
    receiver.until_closed(1).await;
}

#[tokio::test]
async fn endless_response_head_is_cut_off() {
    let fields = "X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n".repeat(4_000);
    let receiver = Receiver::answering(format!("HTTP/1.1 200 OK\r\n{fields}\r\n")).await;
    let http = resolved(&settings(receiver.url("/")));
    assert_eq!(outcome(&http, &order("k")).await, MAYBE_SENT);
}

#[tokio::test]
async fn unsendable_message_is_invalid_and_not_sent() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\n\r\n").await;
    let http = resolved(&settings(receiver.url("/")));
    let mut call = order("k");
    call.content_type = "text/plain\r\nX-Injected: yes".to_owned();
    assert_eq!(outcome(&http, &call).await, (Some("BAD_REQUEST"), Effect::NotDone, Advice::GiveUp));
    assert_eq!(receiver.connections(), 0);
}
