//! Cases 4, 16, 17, 18 and 25 over real sockets: behaviour that needs a server and its connections.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::routing::post;
use ichido::once::{Claim, Pool, Tx};
use ichido_core::ledger::RecordPhase;
use sqlx::{Postgres, Sqlite};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::fixture::{MODES, Mode, OnceFixture, ProtectedService, both_databases, keyed};
use crate::handler_gate::HandlerGate;

/// A server with this endpoint; it counts requests that ended, answered or dropped.
struct TestServer {
    address: SocketAddr,
    over: watch::Receiver<usize>,
}

/// Counts when it is dropped.
struct Over(watch::Sender<usize>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count += 1);
    }
}

impl TestServer {
    async fn new(endpoint: ProtectedService) -> Self {
        Self::with(Router::new().route_service("/orders", endpoint)).await
    }

    async fn with(router: Router) -> Self {
        let (count, over) = watch::channel(0);
        let router = router.layer(from_fn(move |request: Request, next: Next| {
            let over = Over(count.clone());
            async move {
                let response = next.run(request).await;
                drop(over);
                response
            }
        }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, over }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes and reads the response until the server closes the connection.
    async fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        read_all(&mut stream).await
    }

    /// Waits until `count` requests have ended.
    async fn over(&self, count: usize) {
        self.over.clone().wait_for(|over| count <= *over).await.unwrap();
    }
}

async fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A server that refuses a body may reset the connection; what it sent before counts.
    drop(stream.read_to_end(&mut bytes).await);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads until the head of a response is complete.
async fn read_head(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    while !text.contains("\r\n\r\n") {
        let byte = stream.read_u8().await.unwrap();
        text.push(char::from(byte));
    }
    text
}

/// A POST with these additional lines.
fn head(lines: &str) -> String {
    format!("POST /orders HTTP/1.1\r\nHost: localhost\r\nX-User: alice\r\nConnection: close\r\n{lines}\r\n")
}

fn whole(key: &str) -> Vec<u8> {
    format!("{}10 EUR", head(&format!("Idempotency-Key: {key}\r\nContent-Length: 6\r\n"))).into_bytes()
}

both_databases! {
    #[test]
    async fn case_04_control_characters_are_refused_on_the_wire(fixture: OnceFixture) {
        let server = TestServer::new(fixture.orders(Mode::Opaque)).await;
        for bad in [b"a\0b".as_slice(), b"a\x7fb", b"a\x01b", b"\"a\tb\"", b"a\xc3\xa9"] {
            let mut request = b"POST /orders HTTP/1.1\r\nHost: localhost\r\nX-User: alice\r\nConnection: close\r\nIdempotency-Key: ".to_vec();
            request.extend_from_slice(bad);
            request.extend_from_slice(b"\r\nContent-Length: 6\r\n\r\n10 EUR");
            let answer = server.exchange(&request).await;
            assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        }
        fixture.assert_effects(0).await;
    }

    #[test]
    async fn case_16_interrupted_upload_leaves_no_claim(fixture: OnceFixture) {
        let server = TestServer::new(fixture.orders(Mode::Opaque)).await;
        for (number, (lines, part)) in [
            ("Content-Length: 600\r\n", "10 EUR"),
            ("Transfer-Encoding: chunked\r\n", "6\r\n10 EUR\r\n"),
            ("Transfer-Encoding: chunked\r\n", "6\r\n10 "),
        ]
        .into_iter()
        .enumerate()
        {
            let mut stream = server.connect().await;
            let request = format!("{}{part}", head(&format!("Idempotency-Key: k1\r\n{lines}")));
            stream.write_all(request.as_bytes()).await.unwrap();
            drop(stream);
            server.over(number + 1).await;
            fixture.keeper.drained().await;
            assert_eq!(fixture.phase("k1").await, None, "{lines}");
        }
        fixture.assert_effects(0).await;
        let answer = server.exchange(&whole("k1")).await;
        assert!(answer.starts_with("HTTP/1.1 201 ") && answer.ends_with("order 1"), "{answer}");
    }

    #[test]
    async fn case_17_oversized_chunked_body_leaves_no_claim(fixture: OnceFixture) {
        let once = fixture.once(Mode::Opaque).max_request_bytes(10);
        let server = TestServer::new(fixture.serve(once, fixture.ordering())).await;
        let chunked = head("Idempotency-Key: k1\r\nTransfer-Encoding: chunked\r\n") + "6\r\n10 EUR\r\n6\r\n99 EUR\r\n0\r\n\r\n";
        let sized = head("Idempotency-Key: k1\r\nContent-Length: 11\r\n") + "12345678901";
        for request in [chunked, sized] {
            let answer = server.exchange(request.as_bytes()).await;
            assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("\"body_too_large\""), "{answer}");
            assert_eq!(fixture.phase("k1").await, None);
        }
        let answer = server.exchange(&whole("k1")).await;
        assert!(answer.starts_with("HTTP/1.1 201 "), "a body within the bound: {answer}");
        fixture.assert_effects(1).await;
    }

    #[test]
    async fn case_18_refusal_by_head_does_not_read_body(fixture: OnceFixture) {
        let once = fixture.once(Mode::Opaque).max_request_bytes(10);
        let server = TestServer::new(fixture.serve(once, fixture.ordering())).await;
        for (lines, status) in [
            ("Content-Length: 6\r\n", 400),
            ("Idempotency-Key: \"open\r\nContent-Length: 6\r\n", 400),
            ("Idempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: 6\r\n", 400),
            ("Idempotency-Key: a\r\nX-User: bob\r\nContent-Length: 6\r\n", 403),
            ("Idempotency-Key: a\r\nContent-Length: 11\r\n", 413),
        ] {
            let request = head(&format!("Expect: 100-continue\r\n{lines}"));
            let answer = server.exchange(request.as_bytes()).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
            assert!(!answer.contains("100 Continue"), "{answer}");
        }
        // If the body is wanted, it is requested.
        let mut stream = server.connect().await;
        let request = head("Expect: 100-continue\r\nIdempotency-Key: k1\r\nContent-Length: 6\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 100 "));
        stream.write_all(b"10 EUR").await.unwrap();
        assert!(read_all(&mut stream).await.starts_with("HTTP/1.1 201 "));
    }

    #[test]
    async fn case_25_a_client_that_hangs_up_does_not_stop_the_handler(fixture: OnceFixture) {
        for mode in MODES {
            let key = format!("{mode:?}");
            let before = fixture.effects().await;
            let gate = HandlerGate::shut();
            let inside = gate.clone();
            let handler = fixture.handler(move |run| {
                let gate = inside.clone();
                async move {
                    gate.pass().await;
                    run.order().await;
                    run.created()
                }
            });
            let endpoint = fixture.serve(fixture.once(mode), handler);
            let server = TestServer::new(endpoint.clone()).await;
            let mut stream = server.connect().await;
            stream.write_all(&whole(&key)).await.unwrap();
            gate.reached(1).await;
            drop(stream);
            // The server has dropped the request before the handler continues.
            server.over(1).await;
            gate.open(1);
            fixture.keeper.drained().await;
            assert!(matches!(fixture.phase(&key).await, Some(RecordPhase::Settled { .. })));
            let again = server.exchange(&whole(&key)).await;
            assert!(again.starts_with("HTTP/1.1 201 ") && again.contains("idempotency-replayed: true"), "{again}");
            fixture.assert_effects(before + 1).await;
        }
    }

    #[test]
    async fn an_axum_handler_takes_its_transaction_and_its_claim_as_arguments(fixture: OnceFixture) {
        const ORDER: &str = "INSERT INTO orders VALUES (1)";
        async fn on_postgres(tx: Tx<Postgres>, claim: Claim, body: String) -> String {
            sqlx::query(ORDER).execute(&mut *tx.lock().await.unwrap()).await.unwrap();
            format!("{} {body}", claim.name.identity)
        }
        async fn on_sqlite(tx: Tx<Sqlite>, claim: Claim, body: String) -> String {
            sqlx::query(ORDER).execute(&mut *tx.lock().await.unwrap()).await.unwrap();
            format!("{} {body}", claim.name.identity)
        }
        let once = fixture.layer(fixture.once(Mode::Transactional));
        let (route, bare) = match fixture.business {
            Pool::Postgres(_) => (post(on_postgres).layer(once), post(on_postgres)),
            Pool::Sqlite(_) => (post(on_sqlite).layer(once), post(on_sqlite)),
        };
        let server = TestServer::with(Router::new().route("/orders", route).route("/bare", bare)).await;
        for _ in 0..2 {
            let answer = server.exchange(&whole("k1")).await;
            assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("alice 10 EUR"), "{answer}");
        }
        fixture.assert_effects(1).await;
        let bare = whole("k1");
        let bare = String::from_utf8(bare).unwrap().replace("/orders", "/bare");
        let answer = server.exchange(bare.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 500 "), "a handler without its layer does nothing: {answer}");
        fixture.assert_effects(1).await;
    }

    #[test]
    async fn stopping_process_waits_for_requests_in_flight(fixture: OnceFixture) {
        let gate = HandlerGate::shut();
        let inside = gate.clone();
        let handler = fixture.handler(move |run| {
            let gate = inside.clone();
            async move {
                gate.pass().await;
                run.order().await;
                run.created()
            }
        });
        let orders = fixture.serve(fixture.once(Mode::Opaque), handler);
        let call = keyed("k1").start(&orders);
        gate.reached(1).await;
        call.abort();
        let mut drained = std::pin::pin!(fixture.keeper.drained());
        let still = tokio::time::timeout(std::time::Duration::from_millis(1), drained.as_mut()).await;
        assert!(still.is_err(), "its client has gone, and it is still in flight");
        assert_eq!(fixture.keeper.in_flight(), 1);
        gate.open(1);
        drained.await;
        fixture.assert_effects(1).await;
    }
}
