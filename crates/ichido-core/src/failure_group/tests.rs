use super::*;
use crate::time::Timestamp;

/// Errors as receivers, databases and networks write them, and their templates.
const ERRORS: [(&str, &str); 48] = [
    ("no such symbol", "no such symbol"),
    ("", ""),
    ("  two\n\tlines \u{0} here ", "two lines here"),
    ("order 4711 not found", "order # not found"),
    ("timed out after 30s", "timed out after #"),
    ("took 1,234.56 ms (limit 500 ms)", "took # ms (limit # ms)"),
    ("balance -12.50 is below 0", "balance -# is below #"),
    ("ids 1, 2, 3 are unknown", "ids # are unknown"),
    ("expected 3, got 4", "expected #, got #"),
    ("message 0192f0c1-7a3b-7cde-8f00-abcdefabcdef was lost", "message # was lost"),
    ("message DEADBEEF-DEAD-BEEF-DEAD-BEEFDEADBEEF was lost", "message # was lost"),
    ("request 0192f0c17a3b7cde8f00abcdefabcdef failed", "request # failed"),
    ("segfault at 0x7ffd5e8b", "segfault at #"),
    ("commit 9f3c2ab is not on main", "commit # is not on main"),
    ("customer cus_9s6XKzkNRiz8i3 has no card", "customer cus_# has no card"),
    ("charge ch_3MmlLrLkdIwHu7ix0snN0B15 declined", "charge ch_# declined"),
    ("key 01ARZ3NDEKTSV4RRFFQ69G5FAV expired", "key # expired"),
    ("node12 and node7 disagree", "node# and node# disagree"),
    (
        "GET https://api.example.com/v1/orders/4711?token=s3cret: 502",
        "GET https://api.example.com/v#/orders/# #",
    ),
    (
        "POST http://bob:hunter2@broker.internal:8080/orders failed",
        "POST http://broker.internal:#/orders failed",
    ),
    ("GET /orders/42?symbol=ACME (404)", "GET /orders/# (#)"),
    ("connect to 10.0.12.7:5432: refused", "connect to #: refused"),
    ("connect to [2001:db8:85a3::8a2e:370:7334]:443: refused", "connect to [#]:#: refused"),
    ("connect to ::1: refused", "connect to #: refused"),
    ("panicked in face::add", "panicked in face::add"),
    ("closed at 2026-11-18T15:56:00.123+09:00", "closed at #"),
    ("closed at 2026-11-18 15:56:00Z", "closed at # #"),
    ("unknown symbol \"ACME\"", "unknown symbol \"…\""),
    ("unknown symbol 'ACME' in `book`", "unknown symbol \"…\" in \"…\""),
    ("can't read users' data", "can't read users' data"),
    (r#"{"error":"unknown symbol \"ACME\"","code":4711}"#, "unknown symbol \"…\""),
    (r#"{"error":"the text was cut of"#, "the text was cut of"),
    (r#"400 Bad Request: {"error": "order 4711\u3000is closed\n"}"#, "400 Bad Request: order # is closed"),
    (
        r#"402: {"error": {"code": "card_declined", "message": "Your card was declined.", "param": "secret"}}"#,
        "#: card_declined, Your card was declined.",
    ),
    (
        r#"{"errors":[{"errorCode":"E-12","echo":{"title":"secret"},"detail":"no stock"},"closed"],"user":["secret"]}"#,
        "E-#, no stock, closed",
    ),
    (r#"{"request":{"message":"secret"},"id":"secret"}"#, r#"{"…":{"…":"…"},"…":"…"}"#),
    (r#"{"a":[[[[[[[[[{"error":"deep"}]]]]]]]]]}"#, r#"{"…":[[[[[[[[[{"…":"…"}]]]]]]]]]}"#),
    ("mail to bob.smith+x@example.co.jp. bounced", "mail to #. bounced"),
    ("Key (email)=(bob@example.com) already exists.", "Key (email)=(#) already exists."),
    (
        "duplicate key value violates unique constraint \"orders_pkey\"",
        "duplicate key value violates unique constraint \"…\"",
    ),
    ("503 Service Unavailable: try at 12:00", "503 Service Unavailable: try at #"),
    ("503 orders failed", "# orders failed"),
    ("5030 Main Street", "# Main Street"),
    ("注文番号12345は無効です", "注文番号#は無効です"),
    ("注文「東京太郎の口座「A」」が見つかりません(コード４０４)", "注文\"…\"が見つかりません(コード#)"),
    ("残高不足: 口座 A-0012, 残高￥１，２００", "残高不足: 口座 A-#, 残高￥#，#"),
    ("le symbole « ACME » est inconnu", "le symbole \"…\" est inconnu"),
    ("java.lang.IllegalArgumentException: bad side", "java.lang.IllegalArgumentException: bad side"),
];

#[test]
fn templates_keep_the_words_and_drop_the_values() {
    for (error, expected) in ERRORS {
        assert_eq!(template(error), expected, "{error}");
    }
}

#[test]
fn template_of_a_template_is_itself() {
    for (_, expected) in ERRORS {
        assert_eq!(template(expected), expected);
    }
}

#[test]
fn quoted_text_never_reaches_a_template() {
    let quotes = [
        ("\"", "\""),
        ("'", "'"),
        ("`", "`"),
        ("＂", "＂"),
        ("“", "”"),
        ("„", "“"),
        ("‘", "’"),
        ("«", "»"),
        ("「", "」"),
        ("『", "』"),
        ("\\\"", "\\\""),
        ("\"", ""),
        ("「", ""),
        ("'", ""),
    ];
    let around = ["", "a", "5 ", "it's ", "size 5\" ", "値", "x=", "{", "\\"];
    for (open, close) in quotes {
        for before in around {
            for quoted in ["secret", "a secret b", "the \\\" secret", "it's secret", "秘密 secret"] {
                let error = format!("{before} {open}{quoted}{close} and more");
                assert!(!template(&error).contains("secret"), "{error}: {}", template(&error));
            }
        }
    }
}

#[test]
fn templates_are_bounded_and_cut_between_characters() {
    for text in ["あ".repeat(600), "a".repeat(5_000), "a ".repeat(3_000), "1a.b2, ".repeat(2_000)] {
        let template = template(&text);
        assert!(template.len() <= MAX_TEMPLATE_BYTES, "{}", template.len());
    }
    assert_eq!(template(&"あ".repeat(600)).len(), 198);
    let list: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    assert_eq!(template(&list.join(", ")), "#");
}

#[test]
fn fingerprint_never_changes() {
    let of = |code, error| FailureFingerprint::new(code, &template(error)).to_string();
    assert_eq!(of(Some("BAD_REQUEST"), "order 4711 not found"), "e3293d5d01850892");
    assert_eq!(of(Some("BAD_REQUEST"), "order 9 not found"), "e3293d5d01850892");
    assert_eq!(of(None, ""), "8c0f14c24bfbd72f");
    assert_ne!(of(None, "order 1 not found"), of(Some("BAD_REQUEST"), "order 1 not found"));
}

/// Each state, each event, and the state after it.
#[test]
fn state_of_a_group_follows_its_events() {
    use GroupEvent::{Acknowledged, Failed, Resolved};
    use GroupState as S;
    let steps = [
        (S::Open, Failed, S::Open),
        (S::Open, Acknowledged, S::Acknowledged),
        (S::Open, Resolved, S::Resolved),
        (S::Acknowledged, Failed, S::Acknowledged),
        (S::Acknowledged, Acknowledged, S::Acknowledged),
        (S::Acknowledged, Resolved, S::Resolved),
        (S::Resolved, Failed, S::CameBack),
        (S::Resolved, Acknowledged, S::Acknowledged),
        (S::Resolved, Resolved, S::Resolved),
        (S::CameBack, Failed, S::CameBack),
        (S::CameBack, Acknowledged, S::Acknowledged),
        (S::CameBack, Resolved, S::Resolved),
    ];
    for (before, event, after) in steps {
        assert_eq!(before.step(event), after, "{before} {event:?}");
    }
    let order = [S::Open, S::CameBack, S::Acknowledged, S::Resolved].map(S::urgency);
    assert_eq!(order, [2, 2, 1, 0]);
}

#[test]
fn failure_from_before_a_resolution_does_not_bring_a_group_back() {
    let at = Timestamp::from_secs;
    let resolved = GroupStanding::new(at(10)).after(GroupEvent::Resolved, at(20));
    assert_eq!(resolved.after(GroupEvent::Failed, at(15)), resolved);
    assert_eq!(resolved.after(GroupEvent::Failed, at(20)), resolved);
    let back = resolved.after(GroupEvent::Failed, at(21));
    assert_eq!(back, GroupStanding { state: GroupState::CameBack, since: at(21) });
    assert_eq!(back.after(GroupEvent::Failed, at(30)), back, "since when it is back");
}
