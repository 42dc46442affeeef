//! Timeouts that a client cannot tell apart from outside, tested with a paused clock.

use http::StatusCode;
use http_body_util::{BodyExt as _, Empty};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::body::Timed;
use super::limits::{BODY_GRACE, CLOSING, MAX_SPARES};
use super::*;

const LIMITS: Limits = Limits {
    max_connections: 1,
    max_peer_connections: None,
    head: Duration::from_mins(1),
    body_idle: Duration::from_hours(1),
    body: Duration::from_hours(1),
    drain: Duration::from_hours(1),
};

/// Reads a request's body to its end.
struct BodyReader;

impl RequestHandler for BodyReader {
    async fn handle(&self, request: Request<Incoming>) -> Response<ResponseBody> {
        let body = Timed::request(request.into_body(), LIMITS.body_idle, LIMITS.body);
        match body.collect().await {
            Ok(_) => status(StatusCode::OK),
            Err(_) => status(StatusCode::REQUEST_TIMEOUT),
        }
    }

    fn is_health(&self, request: &Request<Incoming>) -> bool {
        request.uri().path() == "/livez"
    }

    fn overloaded(&self, _: &Request<Incoming>) -> Response<ResponseBody> {
        status(StatusCode::SERVICE_UNAVAILABLE)
    }
}

fn status(status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(Empty::new().map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    response
}

/// Serves a client that sends these bytes and nothing more. Returns how long its connection lasted.
async fn connection_lifetime(bytes: &[u8]) -> Duration {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("an address");
    let mut client = TcpStream::connect(address).await.expect("we listen");
    let (stream, _) = listener.accept().await.expect("a connection");
    client.write_all(bytes).await.expect("written");
    let (_stop, stopping) = watch::channel(false);
    let began = Instant::now();
    let seat = Seats::new(1, 1).admit(Peer::new(address.ip()));
    let (requests, waiting) = (Arc::new(Permits::new(1, 1)), Arc::new(Permits::new(1, 1)));
    let connection =
        ServerConnection { answers: Arc::new(BodyReader), limits: LIMITS, seat, requests, waiting };
    Arc::new(connection).serve(stream, stopping).await;
    began.elapsed()
}

/// The connection's own timeout would ask it to close and leave half a head the time of [`CLOSING`] to complete.
#[tokio::test(start_paused = true)]
async fn incomplete_head_times_out_in_the_parser() {
    let lifetime = connection_lifetime(b"GET / HTTP/1.1\r\nHost: a\r\n").await;
    assert!(LIMITS.head <= lifetime && lifetime < LIMITS.head + CLOSING, "{lifetime:?}");
}

/// Here the parser has not started, so its timeout does not run.
#[tokio::test(start_paused = true)]
async fn silent_connection_is_closed_by_the_idle_timeout() {
    for bytes in [&b""[..], b"PRI * HT"] {
        let lifetime = connection_lifetime(bytes).await;
        assert!(LIMITS.head <= lifetime && lifetime <= LIMITS.head + CLOSING, "{lifetime:?}");
    }
}

/// Starts a server that ends with the test.
async fn start(limits: Limits) -> SocketAddr {
    start_until(limits, &Stops::default(), std::future::pending()).await.0
}

/// Starts a server that runs until it is asked to stop or `loss` completes.
async fn start_until(
    limits: Limits,
    stops: &Stops,
    loss: impl Future<Output = ()> + Send + 'static,
) -> (SocketAddr, JoinHandle<ServerEnd>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("an address");
    let stops = stops.clone();
    let serving = tokio::spawn(async move {
        serve(listener, Arc::new(BodyReader), limits, &stops, loss, std::future::ready(())).await
    });
    (address, serving)
}

/// Sends these bytes on a new connection.
async fn send(address: SocketAddr, bytes: &str) -> TcpStream {
    let mut client = TcpStream::connect(address).await.expect("somebody listens");
    client.write_all(bytes.as_bytes()).await.expect("written");
    client
}

/// Returns the status of the next response, or `None` if the connection ends without one.
async fn read_status(client: &mut TcpStream) -> Option<u16> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte = client.read_u8().await.ok()?;
        head.push(byte);
    }
    let head = String::from_utf8(head).expect("text");
    head.split(' ').nth(1).and_then(|status| status.parse().ok())
}

const HEALTH: &str = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";
const OTHER: &str = "GET /other HTTP/1.1\r\nHost: a\r\n\r\n";
/// A request whose body never completes, although the server has confirmed that it reads it.
const UNFINISHED: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n";

async fn send_unfinished(address: SocketAddr) -> TcpStream {
    let mut client = send(address, UNFINISHED).await;
    assert_eq!(read_status(&mut client).await, Some(100), "its body is read");
    client
}

#[tokio::test]
async fn idle_connections_in_all_seats_do_not_block_others() {
    let address = start(Limits { max_connections: 4, ..LIMITS }).await;
    let mut idle = Vec::new();
    for _ in 0..4 + MAX_SPARES {
        idle.push(send(address, "GET / HTTP/1.1\r\n").await);
    }
    for request in [HEALTH, OTHER] {
        assert_eq!(read_status(&mut send(address, request).await).await, Some(200), "{request}");
    }
    assert_eq!(read_status(&mut idle[0]).await, None, "the one that was idle for longest is closed");
}

#[tokio::test(start_paused = true)]
async fn health_is_served_when_slow_bodies_fill_all_seats() {
    let address = start(Limits { max_connections: 2, ..LIMITS }).await;
    let mut holders = [send_unfinished(address).await, send_unfinished(address).await];
    let mut kept_alive = send(address, HEALTH).await;
    for _ in 0..3 {
        assert_eq!(read_status(&mut kept_alive).await, Some(200));
        kept_alive.write_all(HEALTH.as_bytes()).await.expect("written");
    }
    // The maximum number of idle connections does not block it either.
    let mut idle = Vec::new();
    for _ in 0..2 * MAX_SPARES {
        idle.push(send(address, "").await);
    }
    assert_eq!(read_status(&mut send(address, HEALTH).await).await, Some(200));
    assert_eq!(
        read_status(&mut send(address, OTHER).await).await,
        Some(503),
        "it waited, and no seat became free"
    );
    // A request in flight keeps its seat until it ends; then the next one gets it.
    let mut waiting = send(address, OTHER).await;
    holders[0].write_all(b"123456789").await.expect("written");
    assert_eq!(read_status(&mut holders[0]).await, Some(200));
    assert_eq!(read_status(&mut waiting).await, Some(200));
}

#[tokio::test(start_paused = true)]
async fn request_on_an_evicted_connection_gets_503() {
    let address = start(LIMITS).await;
    let _holder = send_unfinished(address).await;
    let mut first = send(address, OTHER).await;
    let mut others = Vec::new();
    for _ in 0..MAX_SPARES {
        others.push(send(address, OTHER).await);
    }
    assert_eq!(read_status(&mut first).await, Some(503));
}

#[tokio::test(start_paused = true)]
async fn one_peer_does_not_take_the_seats_of_others() {
    let address = start(Limits { max_connections: 2, max_peer_connections: Some(1), ..LIMITS }).await;
    let _holder = send_unfinished(address).await;
    assert_eq!(read_status(&mut send(address, OTHER).await).await, Some(503));
    let elsewhere = tokio::net::TcpSocket::new_v4().expect("a socket");
    elsewhere.bind("127.0.0.2:0".parse().expect("an address")).expect("the whole net is loopback");
    let mut other = elsewhere.connect(address).await.expect("somebody listens");
    other.write_all(OTHER.as_bytes()).await.expect("written");
    assert_eq!(read_status(&mut other).await, Some(200), "another peer has its own");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_trickles_is_cut_with_408() {
    let address = start(LIMITS).await;
    let began = Instant::now();
    let mut client = send_unfinished(address).await;
    let trickle = async {
        loop {
            sleep(Duration::from_secs(10)).await;
            // After the cut nobody reads it.
            drop(client.write_all(b"1").await);
        }
    };
    let status = tokio::select! {
        status = wait_for_seat(address) => status,
        () = trickle => unreachable!("it has no end"),
    };
    assert_eq!(status, Some(200), "its seat is free again");
    assert!(BODY_GRACE <= began.elapsed(), "{:?}", began.elapsed());
    assert_eq!(read_status(&mut client).await, Some(408));
}

/// Retries until there is a seat.
async fn wait_for_seat(address: SocketAddr) -> Option<u16> {
    loop {
        let status = read_status(&mut send(address, OTHER).await).await;
        if status != Some(503) {
            return status;
        }
    }
}

#[tokio::test]
async fn the_first_request_to_stop_drains_and_the_second_cuts() {
    let stops = Stops::default();
    let (address, serving) = start_until(LIMITS, &stops, std::future::pending()).await;
    let mut holder = send_unfinished(address).await;
    stops.stop();
    holder.write_all(b"123456789").await.expect("written");
    assert_eq!(read_status(&mut holder).await, Some(200), "requests in flight may finish");
    assert_eq!(serving.await.expect("it ends"), ServerEnd::Drained);

    let stops = Stops::default();
    let (address, serving) = start_until(LIMITS, &stops, std::future::pending()).await;
    let _holder = send_unfinished(address).await;
    stops.stop();
    stops.stop();
    assert_eq!(serving.await.expect("it ends"), ServerEnd::Interrupted { connections: 1, at_once: true });
}

#[tokio::test]
async fn a_loss_counts_as_the_first_request_to_stop() {
    let stops = Stops::default();
    let (file, loss) = oneshot::channel::<()>();
    let (address, serving) = start_until(LIMITS, &stops, async { loss.await.unwrap_or(()) }).await;
    let _holder = send_unfinished(address).await;
    file.send(()).expect("it serves");
    stops.first().await;
    stops.stop();
    assert_eq!(serving.await.expect("it ends"), ServerEnd::Interrupted { connections: 1, at_once: true });
}

/// Refuses every request with an empty 400, as a service behind a proxy may.
struct EmptyRefusals;

impl RequestHandler for EmptyRefusals {
    async fn handle(&self, _: Request<Incoming>) -> Response<ResponseBody> {
        status(StatusCode::BAD_REQUEST)
    }

    fn overloaded(&self, _: &Request<Incoming>) -> Response<ResponseBody> {
        status(StatusCode::SERVICE_UNAVAILABLE)
    }

    fn malformed(&self, fault: MalformedRequest) -> Option<Response<Bytes>> {
        Some(Response::new(Bytes::from(format!("{fault:?}"))))
    }
}

/// Only what no handler can have written is the parser's own, on a new connection and on one that was used.
#[tokio::test]
async fn only_the_parsers_own_refusals_get_the_servers_body() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("an address");
    let serving = tokio::spawn(async move {
        let limits = Limits { max_connections: 8, ..LIMITS };
        let (stops, never) = (Stops::default(), std::future::pending());
        serve(listener, Arc::new(EmptyRefusals), limits, &stops, never, std::future::ready(())).await
    });
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(MAX_HEADERS + 1));
    for (bytes, status, body) in [("GET /\r\n\r\n", 400, "Head"), (&many, 431, "HeadTooLarge")] {
        for requests in 0..3 {
            let mut client = TcpStream::connect(address).await.expect("somebody listens");
            for _ in 0..requests {
                client.write_all(OTHER.as_bytes()).await.expect("written");
                assert_eq!(read_status(&mut client).await, Some(400));
            }
            client.write_all(bytes.as_bytes()).await.expect("written");
            assert_eq!(read_status(&mut client).await, Some(status), "after {requests}");
            let mut rest = Vec::new();
            client.read_to_end(&mut rest).await.expect("a body");
            assert_eq!(String::from_utf8_lossy(&rest), body, "after {requests}: nothing came before it");
        }
    }
    serving.abort();
}
