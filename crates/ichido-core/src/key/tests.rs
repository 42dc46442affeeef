use proptest::prelude::*;

use super::*;

fn read_one(value: &[u8]) -> Result<Option<IdempotencyKey>, KeyError> {
    read([("Idempotency-Key", value)])
}

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::parse(text).unwrap()
}

#[test]
fn missing_header_means_no_key() {
    assert_eq!(read::<&str, &str>([]), Ok(None));
    assert_eq!(read([("Content-Type", b"application/json".as_slice())]), Ok(None));
}

#[test]
fn spellings_of_one_key_are_one_key() {
    let spellings: &[(&str, &[u8])] = &[
        ("bare", b"k-1"),
        ("quoted", b"\"k-1\""),
        ("blanks around it", b" \t k-1 \t"),
        ("blanks around the quotes", b"  \"k-1\" "),
        ("an unknown parameter", b"\"k-1\";v=1"),
        ("several parameters", b"\"k-1\"; a; b=?0;c=\"x, y\""),
    ];
    for (name, value) in spellings {
        assert_eq!(read_one(value), Ok(Some(key("k-1"))), "{name}");
    }
}

#[test]
fn escapes_in_quotes_stand_for_the_characters() {
    assert_eq!(read_one(br#""a\"b\\c""#), Ok(Some(key(r#"a"b\c"#))));
    assert_eq!(read_one(br#"a"b\c"#), Ok(Some(key(r#"a"b\c"#))));
}

#[test]
fn both_names_are_one_header_in_any_case() {
    let k = b"k".as_slice();
    for name in ["idempotency-key", "IDEMPOTENCY-KEY", "x-idempotency-key", "X-Idempotency-Key"] {
        assert_eq!(read([(name, k)]), Ok(Some(key("k"))), "{name}");
    }
    assert_eq!(
        read([("X-Idempotency-Key", b"\"k\"".as_slice()), ("Idempotency-Key", k)]),
        Ok(Some(key("k"))),
        "two spellings of the same key agree"
    );
    assert_eq!(
        read([("Idempotency-Key", k), ("X-Idempotency-Key", b"K".as_slice())]),
        Err(KeyError::HeadersDisagree)
    );
}

#[test]
fn names_and_values_may_be_text_or_bytes() {
    assert_eq!(read([("idempotency-key", "k")]), Ok(Some(key("k"))));
    assert_eq!(read([("idempotency-key".to_owned(), b"k".to_vec())]), Ok(Some(key("k"))));
}

#[test]
fn a_second_line_is_refused_even_when_equal() {
    let two = |a: &'static [u8], b: &'static [u8]| read([("Idempotency-Key", a), ("idempotency-key", b)]);
    let refused = Err(KeyError::ManyLines { name: "Idempotency-Key", count: 2 });
    assert_eq!(two(b"k", b"k"), refused);
    assert_eq!(two(b"k", b"l"), refused);
    assert_eq!(two(b"\"foo", b"bar\""), refused, "joined they would be one valid string");
    assert_eq!(two(b"", b"k"), refused);
}

#[test]
fn bad_values_are_refused_with_their_reason() {
    let long = [b'a'; 256];
    let huge = vec![b'a'; 64 * 1024];
    let long_with_space = [b"a ".as_slice(), &long].concat();
    let cases: &[(&str, &[u8], KeyError)] = &[
        ("nothing", b"", KeyError::Empty),
        ("blanks", b" \t ", KeyError::Empty),
        ("empty quotes", b"\"\"", KeyError::Empty),
        ("256 characters", &long, KeyError::TooLong { len: 256 }),
        ("a 64 KiB line", &huge, KeyError::FieldTooLong { len: 64 * 1024 }),
        ("a space", b"a b", KeyError::NotVisible { index: 1 }),
        ("a space in quotes", b"\"a b\"", KeyError::NotVisible { index: 1 }),
        ("a tab inside", b"a\tb", KeyError::NotVisible { index: 1 }),
        ("NUL", b"ab\0", KeyError::NotVisible { index: 2 }),
        ("DEL", b"\x7f", KeyError::NotVisible { index: 0 }),
        ("obs-text", b"a\xe9", KeyError::NotVisible { index: 1 }),
        ("UTF-8", "clé".as_bytes(), KeyError::NotVisible { index: 2 }),
        ("a space before bytes that are not UTF-8", b"a b\xe9", KeyError::NotVisible { index: 1 }),
        ("a space, and too long", &long_with_space, KeyError::NotVisible { index: 1 }),
        ("UTF-8 in quotes", "\"clé\"".as_bytes(), KeyError::NotVisible { index: 2 }),
        ("UTF-8 after an escape", "\"\\\"é\"".as_bytes(), KeyError::NotVisible { index: 1 }),
        ("a control in quotes", b"\"a\x01\"", KeyError::NotVisible { index: 1 }),
        ("UTF-8 after the string", "\"a\"é".as_bytes(), KeyError::BadQuoting),
        ("an unknown escape", br#""a\n""#, KeyError::BadQuoting),
        ("no closing quote", b"\"abc", KeyError::BadQuoting),
        ("only a quote", b"\"", KeyError::BadQuoting),
        ("a list of two", b"\"a\", \"b\"", KeyError::BadQuoting),
        ("a bare list of two", b"a, b", KeyError::NotVisible { index: 2 }),
        ("text after the string", b"\"a\"b", KeyError::BadQuoting),
        ("a broken parameter", b"\"a\";=1", KeyError::BadQuoting),
    ];
    for (name, value, error) in cases {
        assert_eq!(read_one(value), Err(*error), "{name}");
    }
}

/// Any structured-field string is a key in the IETF draft.
#[test]
fn a_quoted_key_may_have_spaces_where_any_string_is_allowed() {
    let read_any = |value: &'static [u8]| read_as([("Idempotency-Key", value)], KeySyntax::AnyString);
    for (value, text) in
        [(b"\"order 4711\"".as_slice(), "order 4711"), (b" \" a \";v=1", " a "), (b"\" \"", " "), (b"k", "k")]
    {
        let found = read_any(value).unwrap().unwrap();
        assert_eq!(found.as_str(), text);
        assert_eq!(IdempotencyKey::parse_as(text, KeySyntax::AnyString), Ok(found.clone()));
        // On the wire it stays one valid value, whose blanks no receiver trims.
        let header = found.to_header_value();
        let again = read_as([("idempotency-key", header.as_bytes())], KeySyntax::AnyString);
        assert_eq!(again, Ok(Some(found)), "{header}");
    }
    assert_ne!(read_any(b"\"a\""), read_any(b"\" a\""), "a space is part of the key");
    for (value, error) in [
        (b"order 4711".as_slice(), KeyError::NotVisible { index: 5 }),
        (b"a, b", KeyError::NotVisible { index: 2 }),
        (b"\"a\tb\"", KeyError::NotVisible { index: 1 }),
        (b"\"a b", KeyError::BadQuoting),
        (b"\"\"", KeyError::Empty),
    ] {
        assert_eq!(read_any(value), Err(error));
    }
}

#[test]
fn a_key_has_1_to_255_characters() {
    for len in [1, 2, 254, 255] {
        let text = "a".repeat(len);
        assert_eq!(read_one(text.as_bytes()), Ok(Some(key(&text))), "{len} bare");
        let quoted = format!("\"{text}\"");
        assert_eq!(read_one(quoted.as_bytes()), Ok(Some(key(&text))), "{len} quoted");
    }
    let quotes = format!("\"{}\"", r#"\""#.repeat(255));
    assert_eq!(read_one(quotes.as_bytes()), Ok(Some(key(&"\"".repeat(255)))), "escapes do not count");
}

#[test]
fn key_characters_have_no_special_meaning() {
    for text in [
        "a:b",
        "a/b",
        "*",
        "%00",
        "'; DROP TABLE ledger; --".replace(' ', "_").as_str(),
        "a,b",
        "42",
        "?1",
        ":YWJj:",
        "@1659578233",
        "../x",
        "k;v=1",
    ] {
        assert_eq!(read_one(text.as_bytes()), Ok(Some(key(text))), "{text}");
    }
    assert_ne!(key("K"), key("k"), "case matters");
}

#[test]
fn the_body_must_repeat_the_same_key() {
    assert_eq!(key("k").agrees_with_body("k"), Ok(()));
    for other in ["K", "", "k ", "\"k\""] {
        assert_eq!(key("k").agrees_with_body(other), Err(KeyError::BodyDisagrees), "{other:?}");
    }
}

#[test]
fn fresh_keys_are_uuid_version_7_in_order_of_time() {
    let at = |secs| IdempotencyKey::fresh(Timestamp::from_secs(secs), [0xff; 10]);
    assert_eq!(at(1_700_000_000).as_str(), "018bcfe5-6800-7fff-bfff-ffffffffffff");
    assert!(at(1_700_000_000) < at(1_700_000_001));
    assert_ne!(at(5), IdempotencyKey::fresh(Timestamp::from_secs(5), [0; 10]));
}

#[test]
fn a_derived_key_is_the_same_for_the_same_content_only() {
    let derived = |parts: &[&[u8]]| IdempotencyKey::derived("bookmark", parts);
    let first = derived(&[b"alice", b"https://example.com/"]);
    assert_eq!(first, derived(&[b"alice", b"https://example.com/"]));
    assert_ne!(first, derived(&[b"alic", b"ehttps://example.com/"]), "a byte moved across the border");
    assert_ne!(first, derived(&[b"bob", b"https://example.com/"]));
    assert_ne!(first, derived(&[b"alice", b"https://example.com/", b""]));
    assert_ne!(first, IdempotencyKey::derived("order", &[b"alice", b"https://example.com/"]));
    let uuid = uuid::Uuid::parse_str(first.as_str()).unwrap();
    assert_eq!(uuid.get_version_num(), 8);
}

#[test]
fn logs_show_the_hash_and_never_the_key() {
    let secret = key("order-4711");
    // printf %s order-4711 | sha256sum | cut -c1-16
    assert_eq!(secret.log_hash(), "173d0ddbff034193");
    let debug = format!("{secret:?}");
    assert!(debug.contains(&secret.log_hash()) && !debug.contains("4711"), "{debug}");
}

#[test]
fn a_hash_reads_back_from_a_log() {
    let hash = key("order-4711").hash();
    assert_eq!(KeyHash::parse("173d0ddbff034193"), Some(hash));
    assert_eq!(KeyHash::parse("173D0DDBFF034193"), Some(hash));
    for text in ["", "173d0ddbff03419", "173d0ddbff0341933", "+73d0ddbff034193", "order-4711------"] {
        assert_eq!(KeyHash::parse(text), None, "{text:?}");
    }
}

proptest! {
    #[test]
    fn reading_never_panics_and_keeps_the_invariant(value in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(Some(key)) = read_one(&value) {
            prop_assert!((1..=255).contains(&key.as_str().len()));
            prop_assert!(key.as_str().bytes().all(|byte| byte.is_ascii_graphic()));
        }
    }

    #[test]
    fn a_key_survives_both_spellings(text in "[!-~]{1,255}") {
        let made = key(&text);
        prop_assert_eq!(read_one(made.to_field_value().as_bytes()), Ok(Some(made.clone())));
        if !text.starts_with('"') {
            prop_assert_eq!(read_one(text.as_bytes()), Ok(Some(made)));
        }
    }
}
