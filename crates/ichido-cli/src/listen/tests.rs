//! Clocks that no client can tell apart from outside, on a clock that stands still until everybody waits.

use http_body_util::{BodyExt as _, Empty};
use tokio::io::AsyncWriteExt as _;

use super::*;

const LIMITS: Limits = Limits {
    connections_max: 1,
    head: Duration::from_mins(1),
    body_idle: Duration::from_hours(1),
    body: Duration::from_hours(1),
    drain: Duration::from_hours(1),
};

struct Silent;

impl Answers for Silent {
    async fn answer(&self, _: Request<Incoming>) -> Response<AnswerBody> {
        Response::new(Empty::new().map_err(|never| match never {}).boxed_unsync())
    }
}

/// Serves a client that sends these bytes and nothing more; answers how long its connection was kept.
async fn kept_for(bytes: &[u8]) -> Duration {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("an address");
    let mut client = TcpStream::connect(address).await.expect("we listen");
    let (stream, _) = listener.accept().await.expect("a connection");
    client.write_all(bytes).await.expect("written");
    let (_stop, stopping) = watch::channel(false);
    let began = Instant::now();
    serve_connection(stream, Arc::new(Silent), LIMITS, Arc::new(Semaphore::new(1)), stopping).await;
    began.elapsed()
}

/// The clock of the connection would ask it to close, and leave half a head the time of [`CLOSING`] to become a whole one.
#[tokio::test(start_paused = true)]
async fn half_a_head_is_cut_off_by_the_clock_of_the_parser() {
    let kept = kept_for(b"GET / HTTP/1.1\r\nHost: a\r\n").await;
    assert!(LIMITS.head <= kept && kept < LIMITS.head + CLOSING, "{kept:?}");
}

/// Here the parser has not begun, so that its clock does not run.
#[tokio::test(start_paused = true)]
async fn a_connection_of_which_nothing_is_known_is_closed_by_its_own_clock() {
    for bytes in [&b""[..], b"PRI * HT"] {
        let kept = kept_for(bytes).await;
        assert!(LIMITS.head <= kept && kept <= LIMITS.head + CLOSING, "{kept:?}");
    }
}
