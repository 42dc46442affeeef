//! Redirects are not followed: a request with a key and credentials goes only where the configuration says.
// Spec: D9.

use ichido_core::verdict::{Advice, ErrorCode};

use super::tried::{order, resolved, settings, tried};
use http_for_tests::{Receiver, with};

#[tokio::test]
async fn a_redirect_is_not_followed_and_is_dead() {
    let other = Receiver::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    for status in
        ["301 Moved", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"]
    {
        for (location, shown) in
            [(other.url("/stolen?token=secret"), "127.0.0.1"), ("/elsewhere".to_owned(), "another path")]
        {
            let receiver = Receiver::answering(with(status, &[("Location", &location)], "")).await;
            let (verdict, note) = tried(&resolved(&settings(receiver.url("/"))), &order("k")).await;
            let code = verdict.code.map(ErrorCode::as_str);
            assert_eq!((code, verdict.advice), (Some("REDIRECTED"), Advice::GiveUp), "{status}");
            let why = note.excerpt.expect("it says why");
            assert!(why.starts_with(status.split(' ').next().unwrap()), "{why}");
            assert!(why.contains(&format!("the redirect to {shown} is not followed; set `url`")), "{why}");
            assert!(!why.contains("secret"), "a URL may contain a credential: {why}");
            assert_eq!(note.status.map(|number| number.to_string()).as_deref(), status.split(' ').next());
            assert_eq!(receiver.seen().len(), 1, "{status}");
        }
    }
    assert_eq!(other.connections(), 0);
}
