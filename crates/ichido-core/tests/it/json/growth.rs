//! Hostile documents: the cost stays proportional to the size.
//!
//! These tests are about growth, not about seconds: a quadratic step would turn each of them from milliseconds into
//! minutes.

use ichido_core::json::{
    CanonicalForm, Document, JsonError, JsonErrorKind, MAX_GROWTH, MAX_LEAVE_OUT, MAX_NUMBER_DIGITS, Unicode,
};

use super::{NFC, canonical, canonical_in, leaving_out};

/// An object of `count` members with the names that `name` returns.
fn object(count: u32, name: impl Fn(u32) -> String) -> String {
    let members: Vec<String> = (0..count).map(|number| format!("\"{}\":{number}", name(number))).collect();
    format!("{{{}}}", members.join(","))
}

/// A number that jumps about as `number` rises, never the same twice.
fn shuffled(number: u32) -> u32 {
    number.wrapping_mul(2_654_435_761)
}

#[test]
fn a_hundred_thousand_members_are_sorted() {
    for text in [
        object(100_000, |number| number.to_string()),
        object(100_000, |number| shuffled(number).to_string()),
        object(100_000, |number| format!("\\u0061{:x}", shuffled(number))),
        object(5_000, |number| format!("{}{:x}", "a".repeat(500), shuffled(number))),
    ] {
        let document = Document::parse(text.as_bytes(), text.len()).unwrap();
        let sorted = document.canonical(&CanonicalForm::default()).unwrap();
        assert!(document.canonical(&NFC).unwrap() == sorted);
    }
}

#[test]
fn many_escapes_in_one_string_are_read_once() {
    let text = format!("\"{}\"", "\\u0041\\n".repeat(100_000));
    assert_eq!(canonical(&text), format!("\"{}\"", "A\\n".repeat(100_000)));
}

#[test]
fn many_combining_marks_are_normalised_once() {
    let text = format!("\"a{}\"", "\u{316}\u{301}".repeat(100_000));
    let expected = format!("\"\u{e1}{}{}\"", "\u{316}".repeat(100_000), "\u{301}".repeat(99_999));
    assert!(canonical_in(&NFC, &text) == expected);
}

#[test]
fn names_are_normalised_once_however_many_are_left_out() {
    let inner = object(50_000, |number| format!("e\u{301}{number}"));
    let pointers: Vec<String> =
        (0..MAX_LEAVE_OUT).map(|number| format!("/e\u{301}/\u{e9}{number}")).collect();
    let pointers: Vec<&str> = pointers.iter().map(String::as_str).collect();
    let form = CanonicalForm { unicode: Unicode::Nfc, ..leaving_out(&pointers) };
    let found = canonical_in(&form, &format!("{{\"\u{e9}\":{inner}}}"));
    assert_eq!(found.matches('\u{e9}').count(), 1 + 50_000 - MAX_LEAVE_OUT);
    assert!(found.contains("\"\u{e9}64\":64") && !found.contains("\"\u{e9}63\":63"));
}

#[test]
fn many_elements_are_stepped_over_once() {
    let text = format!("[{}0]", "0,".repeat(200_000));
    assert_eq!(canonical(&text), text);
    let text = format!("[{}{{}}]", "{},".repeat(100_000));
    assert_eq!(canonical(&text), text);
}

#[test]
fn short_spellings_of_long_numbers_cannot_fill_the_memory() {
    let text = format!("[{}0]", "1e999,".repeat(10_000));
    let refusal = Document::parse(text.as_bytes(), text.len())
        .unwrap()
        .canonical(&CanonicalForm::default())
        .unwrap_err();
    assert_eq!(refusal.fault, JsonErrorKind::GrowsTooLong);
    // It stops soon after the limit, not at the end.
    let numbers_written = (text.len() * MAX_GROWTH + MAX_NUMBER_DIGITS) / MAX_NUMBER_DIGITS;
    assert!(refusal.position <= (numbers_written + 1) * "1e999,".len());
}

#[test]
fn the_bound_on_growth_depends_on_the_bound_on_the_text_alone() {
    let max_bytes = 1_000;
    let canonical = |text: &str| {
        Document::parse(text.as_bytes(), max_bytes).unwrap().canonical(&CanonicalForm::default())
    };
    // Nine numbers of 998 digits, in brackets with eight commas: 8,992 bytes of 9,000.
    let short = format!("[{}1e997]", "1e997,".repeat(8));
    assert_eq!(canonical(&short).unwrap().len(), 8_992);
    let long = format!("[{}1e997]", "1e997,".repeat(9));
    assert!(matches!(canonical(&long), Err(JsonError { fault: JsonErrorKind::GrowsTooLong, .. })));
}

#[test]
fn growth_is_judged_by_the_form_and_not_by_the_spelling() {
    let canonical =
        |text: &str| Document::parse(text.as_bytes(), 1_000).unwrap().canonical(&CanonicalForm::default());
    // The long numbers stay below the limit; what exceeds it is copied, rewritten, or text.
    for last in ["7".repeat(20), format!("{}.0", "7".repeat(20)), format!("\"{}\"", "7".repeat(18))] {
        let text = format!("[{}{last}]", "1e997,".repeat(9));
        assert_eq!(canonical(&text).map_err(|error| error.fault), Err(JsonErrorKind::GrowsTooLong), "{last}");
    }
}

#[test]
fn one_long_number_fits_any_bound() {
    let document = Document::parse(b"1e999", 5).unwrap();
    assert_eq!(document.canonical(&CanonicalForm::default()).unwrap().len(), MAX_NUMBER_DIGITS);
}

#[test]
fn nfc_cannot_outgrow_the_bound() {
    // U+1D160 is the worst case of NFC in UTF-8: four bytes become twelve.
    let text = format!("\"{}\"", "\u{1d160}".repeat(1_000));
    let form = CanonicalForm { unicode: Unicode::Nfc, ..CanonicalForm::default() };
    let canonical = Document::parse(text.as_bytes(), text.len()).unwrap().canonical(&form).unwrap();
    assert_eq!(canonical.len(), 12_002);
}
