//! Cases 13 to 15: when two requests are the same.
// Spec: A4, C3, C9, D11.

use std::time::Duration;

use axum::Router;
use axum::http::{HeaderName, Method, StatusCode};
use ichido::once::{Class, Once, SameContent};
use ichido_core::alert::AlertSubject;
use ichido_core::json::{CanonicalForm, LeaveOut, Pointer, Unicode};
use ichido_store::Replayed;

use tower::ServiceExt as _;

use super::fixture::{MODES, Mode, OnceFixture, both_databases, keyed, name, respond};
use crate::handler_gate::HandlerGate;

both_databases! {
    #[test]
    async fn replays_of_a_key_are_counted(fixture: OnceFixture) {
        for (mode, key) in MODES.into_iter().zip(["k1", "k2", "k3", "k4"]) {
            let orders = fixture.orders(mode);
            for _ in 0..4 {
                assert_eq!(keyed(key).send(&orders).await.status(), 201);
            }
            fixture.store.series().flush().await.unwrap();
            let replays = fixture.store.series().replays(&[Replayed::Key(name(key))]).await.unwrap();
            assert_eq!(replays[0].map(|replays| replays.count), Some(3), "{mode:?}");
        }
    }

    #[test]
    async fn case_13_the_same_key_for_another_path_query_or_method_is_refused(fixture: OnceFixture) {
        let once = fixture.once(Mode::Opaque).methods([Method::POST, Method::PATCH, Method::PUT]);
        let orders = fixture.serve(once, fixture.ordering());
        keyed("k1").uri("/orders/7?dry=no").send(&orders).await.assert_first(201, "order 1");
        for other in [
            keyed("k1").uri("/orders/8?dry=no"),
            keyed("k1").uri("/orders/7?dry=yes"),
            keyed("k1").uri("/orders/7"),
            keyed("k1").uri("/orders/7?dry=no").method(Method::PATCH),
            keyed("k1").uri("/orders/7?dry=no").method(Method::PUT),
            keyed("k1").uri("/orders/7?dry=no").field("content-type", "text/csv"),
        ] {
            other.send(&orders).await.assert_problem(409, "key_conflict");
        }
        keyed("k1").uri("/orders/7?dry=no").send(&orders).await.assert_replay(201, "order 1");
        fixture.assert_effects(1).await;
    }

    #[test]
    async fn case_13_the_same_key_under_another_operation_is_another_action(fixture: OnceFixture) {
        let cancel = Once::operation("orders.cancel")
            .class(Class::Mutate)
            .identity_header(HeaderName::from_static("x-user"));
        let cancel = fixture.serve(cancel, fixture.ordering());
        keyed("k1").send(&fixture.orders(Mode::Opaque)).await.assert_first(201, "order 1");
        keyed("k1").send(&cancel).await.assert_first(201, "order 1");
        keyed("k1").send(&cancel).await.assert_replay(201, "order 1");
        fixture.assert_effects(2).await;
    }

    #[test]
    async fn case_13_a_path_is_compared_as_the_client_sent_it(fixture: OnceFixture) {
        // The prefix of a nested router is part of the path, although the inner layer does not see it.
        let inside = Router::new().route_service("/orders", fixture.orders(Mode::Opaque));
        let outside = Router::new().nest("/{shop}", inside);
        let send = async |uri: &str| {
            let Ok(response) = outside.clone().oneshot(keyed("k1").uri(uri).request()).await;
            response.status().as_u16()
        };
        assert_eq!(send("/here/orders").await, 201);
        assert_eq!(send("/there/orders").await, 409, "another shop's order is another request");
        assert_eq!(send("/here/orders").await, 201);
        fixture.assert_effects(1).await;
    }

    #[test]
    async fn an_operation_may_follow_from_the_request(fixture: OnceFixture) {
        let once = Once::operation_by(|parts| {
            let first = parts.uri.path().split('/').nth(1).unwrap_or_default();
            format!("{}.{first}", parts.method).into()
        });
        let once = once.class(Class::Mutate).single_identity("app");
        let api = fixture.serve(once, fixture.ordering());
        keyed("k1").uri("/orders").send(&api).await.assert_first(201, "order 1");
        keyed("k1").uri("/bills").send(&api).await.assert_first(201, "order 2");
        keyed("k1").uri("/orders").send(&api).await.assert_replay(201, "order 1");
        keyed("k1").uri("/orders/2").send(&api).await.assert_problem(409, "key_conflict");
    }

    /// The input of the duplicates alert.
    // Spec: A14, A15.
    #[test]
    async fn requests_and_repeats_are_counted_by_operation(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        keyed("k1").send(&orders).await.assert_first(201, "order 1");
        for _ in 0..3 {
            keyed("k1").send(&orders).await.assert_replay(201, "order 1");
        }
        keyed("k1").body("another").send(&orders).await.assert_problem(409, "key_conflict");
        fixture.store.series().flush().await.unwrap();
        let sums = fixture.store.series().sums(Duration::from_mins(15)).await.unwrap();
        let [(AlertSubject::Operation(_), counted)] = &sums.iter().collect::<Vec<_>>()[..] else { panic!("{sums:?}") };
        assert_eq!((counted.arrived, counted.repeated), (5, 3));
        assert_eq!((counted.accepted(), counted.conflicts, counted.executed), (1, 1, 1));
    }

    /// Another key, the same content: the handler notices and says so.
    // Spec: A7, A14.
    #[test]
    async fn same_content_under_another_key_counts_as_repeated(fixture: OnceFixture) {
        let handler = fixture.handler(|run| async move {
            let mut response = run.created();
            if run.request.uri().path() == "/same" {
                response.extensions_mut().insert(SameContent);
            }
            response
        });
        let orders = fixture.serve(fixture.once(Mode::Opaque), handler);
        keyed("k1").send(&orders).await.assert_first(201, "order 1");
        keyed("k2").uri("/same").send(&orders).await.assert_first(201, "order 2");
        fixture.store.series().flush().await.unwrap();
        let sums = fixture.store.series().sums(Duration::from_mins(15)).await.unwrap();
        let [(AlertSubject::Operation(_), counted)] = &sums.iter().collect::<Vec<_>>()[..] else { panic!("{sums:?}") };
        assert_eq!((counted.arrived, counted.repeated), (2, 1));
        assert_eq!((counted.accepted(), counted.executed), (1, 2));
    }

    #[test]
    async fn case_14_white_space_and_order_do_not_make_another_json(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        keyed("k1").json(r#"{"qty":1,"symbol":"ACME"}"#).send(&orders).await.assert_first(201, "order 1");
        for same in [r#"{"qty":1,"symbol":"ACME"} "#, "{\n\"symbol\": \"ACM\\u0045\", \"qty\": 1.0}"] {
            keyed("k1").json(same).send(&orders).await.assert_replay(201, "order 1");
        }
        let charset = keyed("k1").body(r#"{"qty":1,"symbol":"ACME"}"#);
        let charset = charset.field("content-type", "Application/JSON; charset=utf-8");
        charset.send(&orders).await.assert_replay(201, "order 1");
        // For other types every byte counts.
        keyed("k2").send(&orders).await.assert_first(201, "order 2");
        keyed("k2").body("10 EUR ").send(&orders).await.assert_problem(409, "key_conflict");
    }

    #[test]
    async fn case_15_ambiguous_json_is_refused_and_numbers_are_exact(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        for doubtful in [r#"{"a":1,"a":2}"#, r#""\ud800""#, &deep, "{", "NaN", "[01]", "\u{feff}{}"] {
            let answer = keyed("k1").json(doubtful.to_owned()).send(&orders).await;
            answer.assert_problem(400, "body_invalid");
        }
        assert!(fixture.phase("k1").await.is_none(), "nothing is claimed");
        fixture.assert_effects(0).await;
        keyed("k1").json("9007199254740992").send(&orders).await.assert_first(201, "order 1");
        keyed("k1").json("9007199254740993").send(&orders).await.assert_problem(409, "key_conflict");
        keyed("k1").json("9007199254740992.0").send(&orders).await.assert_replay(201, "order 1");
    }

    #[test]
    async fn same_bytes_under_another_content_type_are_a_conflict(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        let typed = |content_type: &'static str, body: &'static str| {
            keyed("k1").body(body).field("content-type", content_type)
        };
        typed("application/json", "10").send(&orders).await.assert_first(201, "order 1");
        typed("application/json; charset=utf-8", "10.0").send(&orders).await.assert_replay(201, "order 1");
        for other in ["text/plain", "application/merge-patch+json"] {
            typed(other, "10").send(&orders).await.assert_problem(409, "key_conflict");
        }
        keyed("k1").body("10").send(&orders).await.assert_problem(409, "key_conflict");
        fixture.assert_effects(1).await;
    }

    #[test]
    async fn an_encoded_body_counts_by_its_bytes(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        let encoded = |bytes: &'static [u8]| keyed("k1").json(bytes).field("content-encoding", "gzip");
        encoded(b"\x1f\x8b\x00").send(&orders).await.assert_first(201, "order 1");
        encoded(b"\x1f\x8b\x00").send(&orders).await.assert_replay(201, "order 1");
        encoded(b"\x1f\x8b\x01").send(&orders).await.assert_problem(409, "key_conflict");
    }

    #[test]
    async fn bytes_do_not_move_from_one_part_of_a_request_to_the_next(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        let parts = [
            ("/ab", "", "c"),
            ("/a", "", "bc"),
            ("/a?b", "", "c"),
            ("/a?bc", "", ""),
            ("/a", "b", "c"),
        ];
        let call = |(uri, kind, body): (&str, &str, &str)| {
            let call = keyed("k1").uri(uri).body(body.to_owned());
            if kind.is_empty() { call } else { call.field("content-type", kind) }
        };
        for first in parts {
            call(first).send(&orders).await;
            for other in parts.into_iter().filter(|other| *other != first) {
                let answer = call(other).send(&orders).await;
                assert!(answer.status() == 409, "{first:?} was taken for {other:?}");
            }
            fixture.pass(Duration::from_hours(73));
        }
    }

    #[test]
    async fn the_keys_of_header_and_body_must_agree(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        for other in [
            r#"{"idempotency_key":"k2"}"#,
            r#"{"idempotency_key":""}"#,
            r#"{"idempotency_key":7}"#,
            r#"{"idempotency_key":{"a":"k1"}}"#,
        ] {
            keyed("k1").json(other).send(&orders).await.assert_problem(422, "key_mismatch");
        }
        fixture.assert_effects(0).await;
        let escaped = r#"{"idempotency_key":"\u006b1","qty":1}"#;
        keyed("\"k1\"").json(escaped).send(&orders).await.assert_first(201, "order 1");
        keyed("k2").json(r#"{"idempotency_key":null}"#).send(&orders).await.assert_first(201, "order 2");
        keyed("k3").json(r#"[{"idempotency_key":"k9"}]"#).send(&orders).await.assert_first(201, "order 3");
        keyed("k4").body(r#"{"idempotency_key":"k9"}"#).send(&orders).await.assert_first(201, "order 4");
    }

    #[test]
    async fn named_fields_do_not_count(fixture: OnceFixture) {
        let leave_out = LeaveOut::new(vec![Pointer::parse("/trace_id").unwrap()]).unwrap();
        let form = CanonicalForm { leave_out, unicode: Unicode::Nfc, ..CanonicalForm::default() };
        let orders = fixture.serve(fixture.once(Mode::Opaque).json_form(form), fixture.ordering());
        keyed("k1").json(r#"{"qty":1,"trace_id":"a"}"#).send(&orders).await.assert_first(201, "order 1");
        keyed("k1").json(r#"{"qty":1,"trace_id":"b"}"#).send(&orders).await.assert_replay(201, "order 1");
        keyed("k1").json(r#"{"qty":2,"trace_id":"a"}"#).send(&orders).await.assert_problem(409, "key_conflict");
        // A composed letter and its parts.
        keyed("k2").json("\"\u{e9}\"").send(&orders).await.assert_first(201, "order 2");
        keyed("k2").json("\"e\u{301}\"").send(&orders).await.assert_replay(201, "order 2");
    }

    #[test]
    async fn mismatch_is_reported_before_anything_else(fixture: OnceFixture) {
        for mode in MODES {
            let key = format!("{mode:?}");
            let gate = HandlerGate::shut();
            let handler = fixture.created_after(&gate);
            let orders = fixture.serve(fixture.once(mode), handler);
            let first = keyed(&key).start(&orders);
            gate.reached(1).await;
            keyed(&key).body("99 EUR").send(&orders).await.assert_problem(409, "key_conflict");
            gate.open(1);
            first.await.unwrap().assert_first(201, "order 1");
        }
    }

    #[test]
    async fn conflict_reveals_nothing_stored(fixture: OnceFixture) {
        let handler = fixture.handler(|_| async {
            let mut response = respond(StatusCode::ACCEPTED, "the secret answer");
            response.headers_mut().insert("location", "/orders/secret".parse().unwrap());
            response
        });
        let orders = fixture.serve(fixture.once(Mode::Opaque), handler);
        keyed("k1").body("the secret question").send(&orders).await.assert_first(202, "the secret answer");
        let answer = keyed("k1").body("a guess").send(&orders).await;
        answer.assert_problem(409, "key_conflict");
        let shown = format!("{:?} {}", answer.0.headers(), answer.text());
        assert!(!shown.contains("secret"), "{shown}");
        assert!(!answer.text().contains("202"), "{shown}");
        assert_eq!(answer.field("location"), None);
    }
}
