//! Strings: escapes, surrogates, and Normalization Form C.

use ichido_core::json::JsonErrorKind;

use super::{NFC, canonical, canonical_in, refused, refused_in};

#[test]
fn an_escape_equals_the_character_it_stands_for() {
    for (text, expected) in [
        (r#""\u0041""#, r#""A""#),
        (r#""\/""#, r#""/""#),
        (r#""\u00e9""#, r#""é""#),
        (r#""\u00E9""#, r#""é""#),
        (r#""\ud83d\ude00""#, r#""😀""#),
        (r#""\uD83D\uDE00""#, r#""😀""#),
        (r#""\u0022\u005C""#, r#""\"\\""#),
        (r#""\u0008\u0009\u000a\u000C\u000d""#, r#""\b\t\n\f\r""#),
        (r#""\u001F\u000b""#, r#""\u001f\u000b""#),
        (r#""\u0000""#, r#""\u0000""#),
        ("\"\\u007f\"", "\"\u{7f}\""),
        ("\"\\u2028\"", "\"\u{2028}\""),
        ("\"\\uffff\"", "\"\u{ffff}\""),
    ] {
        assert_eq!(canonical(text), expected, "{text}");
        assert_eq!(canonical(expected), expected);
    }
}

#[test]
fn normal_escapes_beside_others_are_kept() {
    assert_eq!(canonical(r#""a\nb\u0041c\u0001d\"""#), r#""a\nbAc\u0001d\"""#);
    assert_eq!(canonical(r#""\u0041\n""#), r#""A\n""#);
}

#[test]
fn control_characters_must_be_escaped() {
    for control in '\0'..' ' {
        for before in 0..10 {
            let text = format!("\"{}{control}{}\"", "x".repeat(before), "y".repeat(9));
            refused(text, 1 + before, JsonErrorKind::ControlCharacter);
        }
    }
}

#[test]
fn string_ends_at_its_quote_at_any_offset() {
    for length in 0..40 {
        for filler in ["x", "é", "茶", "😀", "\u{7f}", "!", "#", "[", "]", "\u{80}"] {
            let text = format!("[\"{}\",1]", filler.repeat(length));
            assert_eq!(canonical(&text), text);
        }
    }
}

#[test]
fn unknown_escapes_are_refused() {
    for text in [
        r#"["\a"]"#,
        r#"["\x41"]"#,
        r#"["\U0041"]"#,
        r#"["\'"]"#,
        "[\"\\\n\"]",
        r#"["\u00g0"]"#,
        r#"["\u+041"]"#,
    ] {
        refused(text, 2, JsonErrorKind::BadEscape);
    }
    refused(r#"["\u12"]"#, 2, JsonErrorKind::BadEscape);
    refused("[\"\\é\"]", 2, JsonErrorKind::BadEscape);
}

#[test]
fn lone_surrogates_are_refused() {
    refused(r#""\ud800""#, 1, JsonErrorKind::LoneSurrogate);
    refused(r#""\udc00""#, 1, JsonErrorKind::LoneSurrogate);
    refused(r#""a\ud83dx""#, 2, JsonErrorKind::LoneSurrogate);
    refused(r#""\ud83d\n""#, 1, JsonErrorKind::LoneSurrogate);
    refused(r#""\ud83d\u0041""#, 1, JsonErrorKind::LoneSurrogate);
    refused(r#""\ud83d\ud83d\ude00""#, 1, JsonErrorKind::LoneSurrogate);
    refused(r#""\ude00\ud83d""#, 1, JsonErrorKind::LoneSurrogate);
    refused(r#"{"\ud800":1}"#, 2, JsonErrorKind::LoneSurrogate);
    refused(r#""\udc00\udc00""#, 1, JsonErrorKind::LoneSurrogate);
    refused(r#""\ud83d\u00zz""#, 7, JsonErrorKind::BadEscape);
    refused(r#""\ude00\u00zz""#, 1, JsonErrorKind::LoneSurrogate);
}

#[test]
fn text_is_kept_as_written_unless_nfc_is_asked_for() {
    let decomposed = "\"A\u{30a}\"";
    assert_eq!(canonical(decomposed), decomposed);
    assert_eq!(canonical_in(&NFC, decomposed), "\"\u{c5}\"");
    assert_eq!(canonical_in(&NFC, r#""A\u030a""#), "\"\u{c5}\"");
    assert_eq!(canonical_in(&NFC, "\"\u{212b}\""), "\"\u{c5}\"");
    assert_eq!(canonical_in(&NFC, r#""plain \n \u0041""#), r#""plain \n A""#);
    // A character that NFC itself takes apart, three times as long in UTF-8.
    assert_eq!(canonical_in(&NFC, "\"\u{1d160}\""), "\"\u{1d158}\u{1d165}\u{1d16e}\"");
}

#[test]
fn nfc_sorts_members_by_normalized_names() {
    // As written U+212B comes last; in NFC it is U+00C5 and comes before U+0160.
    let text = "{\"\u{160}\":1,\"\u{212b}\":2}";
    assert_eq!(canonical(text), text);
    assert_eq!(canonical_in(&NFC, text), "{\"\u{c5}\":2,\"\u{160}\":1}");
}

#[test]
fn nfc_is_refused_when_it_makes_two_members_equal() {
    refused_in(&NFC, r#"{"\u00c5":1,"A\u030a":2}"#, 12, JsonErrorKind::DuplicateAfterNfc);
    let text = "{\"\u{c5}\":1,\"b\":2,\"A\u{30a}\":3}";
    assert!(canonical(text).contains("\"b\":2"));
    refused_in(&NFC, text, 14, JsonErrorKind::DuplicateAfterNfc);
    refused_in(&NFC, "[{\"\u{212b}\":1,\"\\u00c5\":2}]", 10, JsonErrorKind::DuplicateAfterNfc);
}
