//! Cases 1 to 12: the key and its identity.
// Spec: A1, C1, C3.

use axum::http::HeaderValue;
use ichido::once::{IdentityError, KeyNeed};
use ichido_core::key::{IdempotencyKey, KeySyntax};
use ichido_core::ledger::RecordName;

use super::fixture::{MODES, Mode, OnceFixture, TestResponse, both_databases, keyed, name, name_of, post};

/// Refused because of its key; nothing was done.
async fn assert_refused(fixture: &OnceFixture, answer: &TestResponse, code: &str) {
    answer.assert_problem(400, code);
    fixture.assert_effects(0).await;
}

both_databases! {
    #[test]
    async fn case_01_without_a_key_nothing_is_done(fixture: OnceFixture) {
        for mode in MODES {
            let answer = post().send(&fixture.orders(mode)).await;
            assert_refused(&fixture, &answer, "key_missing").await;
        }
    }

    #[test]
    async fn case_02_empty_key_is_not_a_key(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        for empty in ["", "  ", "\"\"", "\"\";v=1"] {
            let answer = keyed(empty).send(&orders).await;
            assert_refused(&fixture, &answer, "key_invalid").await;
        }
    }

    #[test]
    async fn case_03_a_key_that_is_too_long_never_reaches_the_store(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        keyed(&"k".repeat(255)).send(&orders).await.assert_first(201, "order 1");
        fixture.close_store().await;
        for long in ["k".repeat(256), format!("\"{}\"", "k".repeat(256)), "k".repeat(64 << 10)] {
            keyed(&long).send(&orders).await.assert_problem(400, "key_invalid");
        }
        keyed("k1").send(&orders).await.assert_problem(503, "store_unavailable");
        fixture.assert_effects(1).await;
    }

    #[test]
    async fn case_04_key_must_be_visible_ascii(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        let bad: [&[u8]; 9] = [
            b"a\tb", b"a b", "sch\u{f6}n".as_bytes(), b"\xff\xfe", b"\"a\tb\"", b"\"a\\nb\"", b"\"open", b"\"a\"b", b"\"\\\"",
        ];
        for bad in bad {
            let answer = post().field("idempotency-key", bad).send(&orders).await;
            assert_refused(&fixture, &answer, "key_invalid").await;
        }
    }

    /// Any structured-field string is a key in the IETF draft, a space included.
    #[test]
    async fn quoted_key_with_a_space_is_a_key_in_profile_ietf(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        let answer = keyed("\"order 4711\"").send(&orders).await;
        assert_refused(&fixture, &answer, "key_invalid").await;
        let ietf = fixture.once(Mode::Opaque).profile(ichido::once::Profile::Ietf);
        let orders = fixture.serve(ietf, fixture.ordering());
        keyed("\"order 4711\"").send(&orders).await.assert_first(201, "order 1");
        keyed("\"order 4711\"").send(&orders).await.assert_replay(201, "order 1");
        keyed("\"order  4711\"").send(&orders).await.assert_first(201, "order 2");
        keyed("order 4711").send(&orders).await.assert_problem(400, "key_invalid");
        let key = IdempotencyKey::parse_as("order 4711", KeySyntax::AnyString).unwrap();
        let stored = fixture.store.keys().get(&RecordName { key, ..name("k") }).await.unwrap();
        assert!(stored.is_some(), "under the key as it was sent");
        fixture.assert_effects(2).await;
    }

    #[test]
    async fn case_05_two_lines_are_refused_before_they_are_read(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        for (first, second) in [("\"foo", "bar\""), ("a", "a"), ("a", "b")] {
            let answer = keyed(first).field("idempotency-key", second).send(&orders).await;
            assert_refused(&fixture, &answer, "key_invalid").await;
        }
        let answer = keyed("a").field("x-idempotency-key", "b").send(&orders).await;
        assert_refused(&fixture, &answer, "key_invalid").await;
        keyed("a").field("X-Idempotency-Key", "\"a\"").send(&orders).await.assert_first(201, "order 1");
        let other_name = post().field("x-idempotency-key", "a");
        other_name.send(&orders).await.assert_replay(201, "order 1");
    }

    #[test]
    async fn case_06_list_is_not_a_key(fixture: OnceFixture) {
        let answer = keyed("\"a\", \"b\"").send(&fixture.orders(Mode::Opaque)).await;
        assert_refused(&fixture, &answer, "key_invalid").await;
    }

    #[test]
    async fn case_07_parameters_do_not_count(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        keyed("\"a\";v=1").send(&orders).await.assert_first(201, "order 1");
        keyed("\"a\"").send(&orders).await.assert_replay(201, "order 1");
        keyed("a").send(&orders).await.assert_replay(201, "order 1");
    }

    #[test]
    async fn case_08_a_bare_key_is_the_same_as_its_quoted_form(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        // A token, an integer, a date, a byte sequence, a display string and a boolean: as bare text each is an ordinary key.
        let bare = ["KG5Lx", "42", "@1659578233", ":YWJj:", "%22f%22", "?1"];
        for (index, key) in bare.into_iter().enumerate() {
            let body = format!("order {}", index + 1);
            keyed(key).send(&orders).await.assert_first(201, &body);
            keyed(&format!("\"{key}\"")).send(&orders).await.assert_replay(201, &body);
        }
    }

    #[test]
    async fn case_09_no_character_of_a_key_is_special(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        let odd = ["user", "a:b", "a/b", "*", "%00", "';DROP_TABLE_orders;--", "$1", "{a}", "../../etc", "a%", "a_"];
        for (index, key) in odd.into_iter().enumerate() {
            let body = format!("order {}", index + 1);
            keyed(key).send(&orders).await.assert_first(201, &body);
            keyed(key).send(&orders).await.assert_replay(201, &body);
        }
        fixture.assert_effects(odd.len()).await;
    }

    #[test]
    async fn case_10_keys_that_differ_in_case_are_two_keys(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        keyed("K").send(&orders).await.assert_first(201, "order 1");
        keyed("k").send(&orders).await.assert_first(201, "order 2");
    }

    #[test]
    async fn case_11_one_key_of_two_callers_is_two_actions(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        keyed("1").send(&orders).await.assert_first(201, "order 1");
        keyed("1").user("bob").send(&orders).await.assert_first(201, "order 2");
        keyed("1").user("bob").send(&orders).await.assert_replay(201, "order 2");
        keyed("1").send(&orders).await.assert_replay(201, "order 1");
        // Another body from bob does not meet alice's record either.
        keyed("2").send(&orders).await.assert_first(201, "order 3");
        keyed("2").user("bob").body("99 EUR").send(&orders).await.assert_first(201, "order 4");
    }

    #[test]
    async fn case_12_request_without_identity_is_refused(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        for request in [keyed("k1").without_user(), keyed("k1").field("x-user", "bob"), keyed("k1").user("")] {
            let answer = request.send(&orders).await;
            answer.assert_problem(403, "identity_missing");
            assert!(answer.text().contains("send the header x-user once"), "{}", answer.text());
        }
        let challenge = HeaderValue::from_static("Bearer");
        let unknown = fixture.once(Mode::Opaque).identity(move |_| {
            Err(IdentityError::Unauthenticated { challenge: challenge.clone() })
        });
        let answer = keyed("k1").send(&fixture.serve(unknown, fixture.ordering())).await;
        answer.assert_problem(401, "identity_missing");
        assert_eq!(answer.field("www-authenticate"), Some("Bearer"));
        fixture.assert_effects(0).await;
        assert!(fixture.phase("k1").await.is_none());
    }

    #[test]
    async fn a_caller_keeps_its_keys_when_its_token_changes(fixture: OnceFixture) {
        // The closure derives the identity from the token, never from its bytes.
        let once = fixture.once(Mode::Opaque).identity(|parts| {
            let token = parts.headers["authorization"].to_str().map_err(|_| IdentityError::Forbidden)?;
            token.split('.').next().map(str::to_owned).ok_or(IdentityError::Forbidden)
        });
        let orders = fixture.serve(once, fixture.ordering());
        keyed("k1").field("authorization", "alice.one").send(&orders).await.assert_first(201, "order 1");
        keyed("k1").field("authorization", "alice.two").send(&orders).await.assert_replay(201, "order 1");
        assert!(fixture.store.keys().get(&name("k1")).await.unwrap().is_some());
        assert!(fixture.store.keys().get(&name_of("alice.one", "k1")).await.unwrap().is_none());
    }

    #[test]
    async fn optional_key_protects_requests_that_have_one(fixture: OnceFixture) {
        let orders = fixture.serve(fixture.once(Mode::Opaque).key(KeyNeed::Optional), fixture.ordering());
        for number in 1..=2 {
            let answer = post().send(&orders).await;
            answer.assert_first(201, &format!("order {number}"));
        }
        keyed("k1").send(&orders).await.assert_first(201, "order 3");
        keyed("k1").send(&orders).await.assert_replay(201, "order 3");
        keyed("").send(&orders).await.assert_problem(400, "key_invalid");
    }
}
