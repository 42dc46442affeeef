//! What the reader refuses, and the byte it points at.

use ichido_core::json::{Document, JsonError, JsonErrorKind, MAX_DEPTH};

use super::{canonical, refused};

#[test]
fn a_text_over_the_bound_is_refused_unread() {
    let refusal = |text: &[u8], max_bytes| Document::parse(text, max_bytes).map(drop);
    assert_eq!(refusal(b"[1,2]", 5), Ok(()));
    let too_large = JsonError { position: 4, fault: JsonErrorKind::TooLarge { max_bytes: 4 } };
    assert_eq!(refusal(b"[1,2]", 4), Err(too_large));
    assert_eq!(refusal(b"\xff\xff\xff\xff\xff", 4), Err(too_large));
}

#[test]
fn a_text_without_a_value_is_refused() {
    refused("", 0, JsonErrorKind::Empty);
    refused(" \t\r\n", 4, JsonErrorKind::Empty);
}

#[test]
fn bytes_that_are_not_utf8_are_refused() {
    refused(b"[\"\xff\"]", 2, JsonErrorKind::NotUtf8);
    refused(b"\"\xc0\x80\"", 1, JsonErrorKind::NotUtf8); // An overlong NUL.
    refused(b"\"\xed\xa0\x80\"", 1, JsonErrorKind::NotUtf8); // A surrogate encoded as if it were a character.
    refused(b"\"\xe2\x82", 1, JsonErrorKind::NotUtf8); // A character cut in half.
    refused(
        "{}".encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<_>>(),
        0,
        JsonErrorKind::ExpectedValue,
    );
}

#[test]
fn a_byte_order_mark_is_refused() {
    refused("\u{feff}{}", 0, JsonErrorKind::ByteOrderMark);
    refused(" \u{feff}{}", 1, JsonErrorKind::ExpectedValue);
    assert_eq!(canonical("\"\u{feff}\""), "\"\u{feff}\"");
}

#[test]
fn content_after_the_value_is_refused() {
    refused("{} {}", 3, JsonErrorKind::TrailingContent);
    refused("1 2", 2, JsonErrorKind::TrailingContent);
    refused("nullx", 4, JsonErrorKind::TrailingContent);
    refused("[]]", 2, JsonErrorKind::TrailingContent);
    refused("{}\0", 2, JsonErrorKind::TrailingContent);
}

#[test]
fn only_four_characters_are_white_space() {
    assert_eq!(canonical(" \t\n\r[ \t\n\r1 \t\n\r, \t\n\r2 \t\n\r] \t\n\r"), "[1,2]");
    for space in ["\u{b}", "\u{c}", "\u{85}", "\u{a0}", "\u{2003}", "\u{2028}", "\0"] {
        refused(format!("{space}1"), 0, JsonErrorKind::ExpectedValue);
    }
}

#[test]
fn a_text_that_ends_early_is_refused_at_its_end() {
    for text in [
        "[",
        "[1",
        "[1,",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "\"",
        "\"a",
        "\"\\",
        "\"\\u",
        "\"\\u12",
        "-",
        "1.",
        "1e",
        "1e+",
        "\"\\ud800\\u",
    ] {
        refused(text, text.len(), JsonErrorKind::UnexpectedEnd);
    }
}

#[test]
fn a_document_cut_anywhere_is_refused() {
    let text = r#"{"a":[1.5e3,"\u00e9\ud83d\ude00",{"b":null}],"c":{"d":true,"e":false}}"#;
    assert!(Document::parse(text.as_bytes(), text.len()).is_ok());
    for end in 0..text.len() {
        assert!(Document::parse(&text.as_bytes()[..end], text.len()).is_err(), "{}", &text[..end]);
    }
}

#[test]
fn broken_structure_is_refused_where_it_breaks() {
    refused("[1 2]", 3, JsonErrorKind::ExpectedCommaOrBracket);
    refused("[1}", 2, JsonErrorKind::ExpectedCommaOrBracket);
    refused("[1,]", 3, JsonErrorKind::ExpectedValue);
    refused("[,1]", 1, JsonErrorKind::ExpectedValue);
    refused("{\"a\":1 \"b\":2}", 7, JsonErrorKind::ExpectedCommaOrBrace);
    refused("{\"a\":1]", 6, JsonErrorKind::ExpectedCommaOrBrace);
    refused("{\"a\":1,}", 7, JsonErrorKind::ExpectedName);
    refused("{a:1}", 1, JsonErrorKind::ExpectedName);
    refused("{'a':1}", 1, JsonErrorKind::ExpectedName);
    refused("{1:1}", 1, JsonErrorKind::ExpectedName);
    refused("{\"a\" 1}", 5, JsonErrorKind::ExpectedColon);
    refused("{\"a\"}", 4, JsonErrorKind::ExpectedColon);
    refused("{\"a\":}", 5, JsonErrorKind::ExpectedValue);
    refused("]", 0, JsonErrorKind::ExpectedValue);
    refused("// no\n1", 0, JsonErrorKind::ExpectedValue);
}

#[test]
fn other_spellings_of_the_literals_are_refused() {
    for text in ["True", "tru", "nul", "nULL", "undefined", "'a'", "None"] {
        refused(text, 0, JsonErrorKind::ExpectedValue);
    }
}

#[test]
fn nesting_beyond_the_bound_is_refused() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(canonical(&nested(MAX_DEPTH)), nested(MAX_DEPTH));
    refused(nested(MAX_DEPTH + 1), MAX_DEPTH, JsonErrorKind::TooDeep);
    refused("[".repeat(500_000), MAX_DEPTH, JsonErrorKind::TooDeep);
    refused("{\"a\":".repeat(10_000), MAX_DEPTH * 5, JsonErrorKind::TooDeep);
    // A scalar at the bottom is not a level.
    let bottom = "[".repeat(MAX_DEPTH) + "1" + &"]".repeat(MAX_DEPTH);
    assert_eq!(canonical(&bottom), bottom);
}

#[test]
fn numbers_outside_the_grammar_are_refused() {
    refused("01", 0, JsonErrorKind::LeadingZero);
    refused("[-01.5]", 2, JsonErrorKind::LeadingZero);
    refused("00", 0, JsonErrorKind::LeadingZero);
    refused(".5", 0, JsonErrorKind::ExpectedDigit);
    refused("[5.]", 3, JsonErrorKind::ExpectedDigit);
    refused("[1.e3]", 3, JsonErrorKind::ExpectedDigit);
    refused("[1e]", 3, JsonErrorKind::ExpectedDigit);
    refused("[1e+-2]", 4, JsonErrorKind::ExpectedDigit);
    refused("[-]", 2, JsonErrorKind::ExpectedDigit);
    refused("[--1]", 2, JsonErrorKind::ExpectedDigit);
    refused("+1", 0, JsonErrorKind::ExpectedValue);
    refused("0x10", 1, JsonErrorKind::TrailingContent);
    refused("1_000", 1, JsonErrorKind::TrailingContent);
}

#[test]
fn nan_and_infinity_are_refused() {
    refused("NaN", 0, JsonErrorKind::NotFinite);
    refused("[Infinity]", 1, JsonErrorKind::NotFinite);
    refused("[1,-Infinity]", 3, JsonErrorKind::NotFinite);
    refused("-NaN", 0, JsonErrorKind::NotFinite);
}

#[test]
fn an_error_says_what_and_where_but_not_the_content() {
    let error = Document::parse(br#"{"secret":1,"secret":2}"#, 100).map(drop).unwrap_err();
    let message = "this member name repeats an earlier one in the same object (at byte 12)";
    assert_eq!(error.to_string(), message);
}
