//! A replay: the same outcome, without anything specific to the first response.
// Spec: A3, C5.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use ichido::once::{Once, Profile};
use ichido_core::digest::Digest;
use ichido_core::ledger::{RecordPhase, StoredBody};
use tokio::sync::mpsc;
use tower::ServiceExt as _;

use super::fixture::{MODES, Mode, OnceFixture, both_databases, keyed, respond, send};
use crate::handler_gate::HandlerGate;

type Frame = hyper::body::Frame<Bytes>;

/// A body of unknown length with frames from the test; it can fail on demand.
struct Fed(mpsc::UnboundedReceiver<Result<Frame, &'static str>>);

impl hyper::body::Body for Fed {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame, &'static str>>> {
        self.0.poll_recv(cx)
    }
}

/// A body of these frames.
fn fed(frames: impl IntoIterator<Item = Result<Frame, &'static str>>) -> Body {
    let (feed, body) = mpsc::unbounded_channel();
    frames.into_iter().for_each(|frame| feed.send(frame).unwrap());
    Body::new(Fed(body))
}

#[expect(clippy::unnecessary_wraps, reason = "beside frames that fail")]
fn data(text: &'static str) -> Result<Frame, &'static str> {
    Ok(Frame::data(Bytes::from_static(text.as_bytes())))
}

/// A service that responds with the result of `make`.
fn answering(
    fixture: &OnceFixture,
    once: Once,
    make: fn() -> Response<Body>,
) -> super::fixture::ProtectedService {
    let handler = fixture.handler(move |run| async move {
        run.order().await;
        make()
    });
    fixture.serve(once, handler)
}

both_databases! {
    #[test]
    async fn replay_equals_first_response_byte_for_byte(fixture: OnceFixture) {
        for mode in MODES {
            let orders = answering(&fixture, fixture.once(mode), || {
                let mut response = respond(StatusCode::CREATED, Bytes::from_static(b"\0\xff\r\n{}"));
                let headers = response.headers_mut();
                for (name, value) in [
                    ("location", "/orders/1"),
                    ("etag", "\"v1\""),
                    ("content-type", "application/x-order"),
                    ("content-encoding", "identity"),
                    ("link", "</a>; rel=\"a,b\""),
                    ("link", "</b>, </c>"),
                    ("vary", "accept"),
                    ("x-empty", ""),
                ] {
                    headers.append(name, value.parse().unwrap());
                }
                headers.append("x-raw", HeaderValue::from_bytes(b"\xe9\xff").unwrap());
                response
            });
            let key = format!("{mode:?}");
            let first = keyed(&key).send(&orders).await;
            let again = keyed(&key).send(&orders).await;
            assert_eq!(first.status(), 201);
            assert_eq!(again.0.status(), first.0.status());
            assert_eq!(again.0.body(), first.0.body());
            let without = |headers: &HeaderMap| {
                let mut headers = headers.clone();
                headers.remove("x-request-id");
                headers.remove("idempotency-replayed");
                headers
            };
            assert_eq!(without(again.0.headers()), without(first.0.headers()));
            assert_eq!(again.0.headers().get_all("link").iter().count(), 2);
            assert!(again.is_replay() && !first.is_replay());
        }
    }

    #[test]
    async fn headers_of_first_response_only_are_not_replayed(fixture: OnceFixture) {
        let orders = answering(&fixture, fixture.once(Mode::Opaque), || {
            let mut response = respond(StatusCode::OK, "done");
            let headers = response.headers_mut();
            for (name, value) in [
                ("set-cookie", "session=1"),
                ("set-cookie", "other=2"),
                ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                ("connection", "keep-alive, X-Hop"),
                ("x-hop", "mine"),
                ("keep-alive", "timeout=5"),
                ("access-control-allow-origin", "https://alice.example"),
                ("x-request-id", "the first one"),
                ("ratelimit-remaining", "1"),
                ("x-ratelimit-limit", "2"),
                ("idempotency-replayed", "true"),
                ("x-kept", "yes"),
            ] {
                headers.append(name, value.parse().unwrap());
            }
            response
        });
        let first = keyed("k1").send(&orders).await;
        assert_eq!(first.0.headers().get_all("set-cookie").iter().count(), 2, "the first caller gets its own");
        assert_eq!(first.field("x-request-id"), Some("the first one"));
        let again = keyed("k1").send(&orders).await;
        let mut names: Vec<&str> = again.0.headers().keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["idempotency-replayed", "x-kept", "x-request-id"]);
        assert_ne!(again.field("x-request-id"), Some("the first one"));
    }

    #[test]
    async fn every_response_has_its_own_request_id(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        let mut ids = std::collections::BTreeSet::new();
        for call in [keyed("k1"), keyed("k1"), keyed("k1").body("other"), keyed("")] {
            let answer = call.field("x-request-id", "the-clients-own").send(&orders).await;
            assert!(ids.insert(answer.field("x-request-id").unwrap().to_owned()), "{ids:?}");
        }
        assert!(!ids.contains("the-clients-own"));
    }

    #[test]
    async fn key_is_echoed_if_configured(fixture: OnceFixture) {
        let quiet = keyed("\"k1\"").send(&fixture.orders(Mode::Opaque)).await;
        assert_eq!(quiet.field("idempotency-key"), None);
        let echoing = fixture.serve(fixture.once(Mode::Opaque).echo_key(true), fixture.ordering());
        for call in [keyed("\"k2\""), keyed("\"k2\""), keyed("\"k2\"").body("other")] {
            let answer = call.send(&echoing).await;
            assert_eq!(answer.field("idempotency-key"), Some("\"k2\""), "byte for byte: {answer:?}");
        }
        assert_eq!(keyed("").send(&echoing).await.field("idempotency-key"), None);
    }

    #[test]
    async fn profile_sets_status_codes(fixture: OnceFixture) {
        for (profile, conflict, in_flight, marker) in [
            (Profile::Ichido, 409, 202, "idempotency-replayed"),
            (Profile::Ietf, 422, 409, "idempotency-replayed"),
            (Profile::Stripe, 400, 409, "idempotent-replayed"),
            (Profile::Acp, 422, 409, "idempotent-replayed"),
        ] {
            let gate = HandlerGate::shut();
            let handler = fixture.created_after(&gate);
            let once = fixture.once(Mode::Opaque).profile(profile).in_flight_wait(Duration::ZERO);
            let orders = fixture.serve(once, handler);
            let key = format!("{profile:?}");
            let first = keyed(&key).start(&orders);
            gate.reached(1).await;
            let answer = keyed(&key).send(&orders).await;
            answer.assert_problem(in_flight, "key_in_flight");
            assert_eq!(answer.field("idempotency-status"), Some("processing"));
            assert_eq!(answer.field("retry-after"), Some("1"));
            gate.open(1);
            first.await.unwrap().assert_first(201, "order 1");
            keyed(&key).body("other").send(&orders).await.assert_problem(conflict, "key_conflict");
            let again = keyed(&key).send(&orders).await;
            assert_eq!((again.text(), again.field(marker)), ("order 1", Some("true")));
        }
    }

    #[test]
    async fn oversized_response_reaches_first_caller_and_is_not_rerun(fixture: OnceFixture) {
        for mode in MODES {
            let once = fixture.once(mode).max_response_bytes(10);
            let whole: fn() -> Response<Body> = || respond(StatusCode::OK, "more than ten bytes");
            let pieces: fn() -> Response<Body> =
                || respond(StatusCode::OK, fed([data("more than "), data("ten "), data("bytes")]));
            for (what, make) in [("whole", whole), ("pieces", pieces)] {
                let key = format!("{mode:?}-{what}");
                let orders = answering(&fixture, once.clone(), make);
                keyed(&key).send(&orders).await.assert_first(200, "more than ten bytes");
                for _ in 0..2 {
                    keyed(&key).send(&orders).await.assert_problem(409, "response_not_stored");
                }
                let phase = fixture.phase(&key).await;
                assert!(matches!(phase, Some(RecordPhase::Settled { kept: StoredBody::WithoutBody, .. })), "{phase:?}");
            }
            let orders = answering(&fixture, once.clone(), || respond(StatusCode::OK, fed([data("exactly "), data("10")])));
            let key = format!("{mode:?}-fits");
            keyed(&key).send(&orders).await.assert_first(200, "exactly 10");
            keyed(&key).send(&orders).await.assert_replay(200, "exactly 10");
        }
        fixture.assert_effects(3 * MODES.len()).await;
    }

    #[test]
    async fn stream_reaches_first_caller_while_running(fixture: OnceFixture) {
        for mode in MODES {
            let key = format!("{mode:?}");
            let (feed, body) = mpsc::unbounded_channel();
            let body = std::sync::Mutex::new(Some(Fed(body)));
            let handler = fixture.handler(move |run| {
                let body = body.lock().unwrap().take().expect("run once");
                async move {
                    run.order().await;
                    respond(StatusCode::OK, Body::new(body))
                }
            });
            let once = fixture.once(mode).response_timeout(Duration::from_millis(1));
            let orders = fixture.serve(once, handler);
            feed.send(data("begun, ")).unwrap();
            let Ok(response) = orders.clone().oneshot(keyed(&key).request()).await;
            let mut body = response.into_body();
            let mut text = Vec::new();
            for more in ["goes on, ", "and on"] {
                text.extend_from_slice(&body.frame().await.unwrap().unwrap().into_data().unwrap());
                feed.send(data(more)).unwrap();
            }
            // It is settled while it still streams.
            keyed(&key).send(&orders).await.assert_problem(409, "response_not_stored");
            drop(feed);
            text.extend_from_slice(&body.collect().await.unwrap().to_bytes());
            assert_eq!(text, b"begun, goes on, and on");
        }
        fixture.assert_effects(MODES.len()).await;
    }

    #[test]
    async fn a_short_body_of_unknown_length_is_kept(fixture: OnceFixture) {
        let orders =
            answering(&fixture, fixture.once(Mode::Opaque), || respond(StatusCode::OK, fed([data("a"), data("b")])));
        keyed("k1").send(&orders).await.assert_first(200, "ab");
        keyed("k1").send(&orders).await.assert_replay(200, "ab");
        let empty = answering(&fixture, fixture.once(Mode::Opaque), || respond(StatusCode::NO_CONTENT, Body::empty()));
        keyed("k2").send(&empty).await.assert_first(204, "");
        keyed("k2").send(&empty).await.assert_replay(204, "");
    }

    #[test]
    async fn a_response_with_trailers_reaches_the_first_caller_whole(fixture: OnceFixture) {
        let orders = answering(&fixture, fixture.once(Mode::Opaque), || {
            let trailers = HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
            respond(StatusCode::OK, fed([data("a"), Ok(Frame::trailers(trailers))]))
        });
        let Ok(response) = orders.clone().oneshot(keyed("k1").request()).await;
        let whole = response.into_body().collect().await.unwrap();
        assert_eq!(whole.trailers().unwrap()["grpc-status"], "0");
        assert_eq!(whole.to_bytes(), "a");
        keyed("k1").send(&orders).await.assert_problem(409, "response_not_stored");
    }

    #[test]
    async fn truncated_response_is_not_an_outcome(fixture: OnceFixture) {
        for mode in MODES {
            let key = format!("{mode:?}");
            let orders =
                answering(&fixture, fixture.once(mode), || respond(StatusCode::OK, fed([data("half"), Err("gone")])));
            let Ok(response) = orders.clone().oneshot(keyed(&key).request()).await;
            let mut body = response.into_body();
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "half");
            assert!(body.frame().await.unwrap().is_err(), "the first caller sees it break off");
            match mode {
                // Rolled back.
                Mode::Transactional | Mode::Claimed => assert_eq!(fixture.phase(&key).await, None),
                Mode::Keyed | Mode::Opaque => assert_eq!(fixture.phase(&key).await, Some(RecordPhase::Unknown)),
            }
        }
        fixture.assert_effects(2).await;
    }

    #[test]
    async fn record_holds_request_and_outcome(fixture: OnceFixture) {
        let orders = answering(&fixture, fixture.once(Mode::Opaque), || {
            let mut response = respond(StatusCode::CREATED, r#"{"b": 1.0, "a": 2}"#);
            response.headers_mut().insert("content-type", "application/json".parse().unwrap());
            response
        });
        let call = keyed("k1").json(r#"{"qty": 1}"#).field("traceparent", "00-7f-01-00");
        call.field("ichido-hops", "bff;t=1").field("ichido-hops", "gateway;t=2").send(&orders).await;
        let record = fixture.record("k1").await.unwrap();
        assert_eq!(record.request_digest, Digest::of_bytes(br#"{"qty":1}"#));
        assert_eq!(record.result_digest, Some(Digest::of_bytes(br#"{"a":2,"b":1}"#)));
        assert_eq!(record.trace.as_deref(), Some("00-7f-01-00"));
        assert_eq!(record.hops.as_deref(), Some("bff;t=1, gateway;t=2"));
        let response = record.response.unwrap();
        assert_eq!((response.status, response.body.as_deref()), (201, Some(br#"{"b": 1.0, "a": 2}"#.as_slice())));
        let RecordPhase::Settled { expiry: ichido_core::ledger::Expiry::At(expires), .. } = record.record.phase else {
            panic!("{record:?}", record = record.record);
        };
        assert_eq!(expires.since(record.completed_at.unwrap()), Duration::from_hours(72), "SPEC A2");
        let long = "h".repeat(3_000);
        keyed("k2").field("ichido-hops", long).field("traceparent", "caf\u{e9}").send(&orders).await;
        let record = fixture.record("k2").await.unwrap();
        assert_eq!((record.hops, record.trace), (None, None), "values over the limit are not stored and stop no request");
    }

    #[test]
    async fn a_read_passes_through_untouched(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        fixture.close_store().await;
        for method in [Method::GET, Method::DELETE, Method::PUT] {
            // A body that never ends would never be complete: the layer does not wait for it.
            let answer = keyed("k1").method(method).send(&orders).await;
            assert_eq!((answer.status(), answer.is_replay()), (201, false));
        }
        let (feed, body) = mpsc::unbounded_channel();
        let streaming = tower::service_fn(|request: Request<ichido::once::Body<Body>>| async move {
            Ok::<_, Infallible>(Response::new(request.into_body()))
        });
        let service = tower::Layer::layer(&fixture.layer(fixture.once(Mode::Opaque)), streaming);
        let request = keyed("k1").method(Method::GET).with(Body::new(Fed(body)));
        let Ok(response) = service.oneshot(request).await;
        let mut body = response.into_body();
        for text in ["one", "two"] {
            feed.send(data(text)).unwrap();
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), text, "frame by frame");
        }
    }

    #[test]
    async fn the_handler_gets_the_request_as_it_was_sent(fixture: OnceFixture) {
        let handler = fixture.handler(|run| async move {
            let (parts, body) = run.request.into_parts();
            let claim = parts.extensions.get::<ichido::once::Claim>().unwrap();
            let text = format!(
                "{} {} {:?} {:?} {}",
                parts.method, parts.uri, parts.headers["x-a"], body, claim.name.key.as_str()
            );
            respond(StatusCode::OK, text)
        });
        let orders = fixture.serve(fixture.once(Mode::Opaque), handler);
        let frames = VecDeque::from([data("10"), data(" "), data("EUR")]);
        let call = keyed("k1").uri("/orders/7?a=b").field("x-a", "1");
        let answer = send(&orders, call.with(fed(frames))).await;
        answer.assert_first(200, r#"POST /orders/7?a=b "1" b"10 EUR" k1"#);
        call.send(&orders).await.assert_replay(200, answer.text());
    }
}
