//! Properties that hold for every document, checked on random documents.

mod model;
mod spelling;

use ichido_core::json::{CanonicalForm, Document, JsonValue, LeaveOut, Numbers, Unicode};
use proptest::prelude::*;

use super::{DOUBLE, MAX_BYTES, canonical, canonical_in, try_canonical};
use model::{ModelValue, model, name};
use spelling::{Dice, dice};

fn all_forms() -> impl Iterator<Item = CanonicalForm> {
    [Numbers::Exact, Numbers::ExactNoExponent, Numbers::Double].into_iter().flat_map(|numbers| {
        [Unicode::AsWritten, Unicode::Nfc].map(|unicode| CanonicalForm {
            numbers,
            unicode,
            leave_out: LeaveOut::NONE,
        })
    })
}

/// Parses `text`; if it has a canonical form, that form must be its own canonical form.
fn check_fixed_point(text: &[u8]) -> Result<(), TestCaseError> {
    for form in all_forms() {
        if let Ok(once) = try_canonical(text, &form) {
            let again = try_canonical(once.as_bytes(), &form);
            prop_assert_eq!(again, Ok(once), "{:?}", form);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn equal_values_have_equal_bytes(model in model(), mut one in dice(), mut other in dice()) {
        let (one, other) = (model.spell(&mut one), model.spell(&mut other));
        prop_assert_eq!(canonical(&one), canonical(&other), "{} against {}", one, other);
    }

    #[test]
    fn a_changed_value_has_other_bytes(model in model(), mut dice in dice()) {
        let before = canonical(&model.spell(&mut dice));
        let mut changed = model;
        changed.change(&mut dice);
        prop_assert_ne!(before, canonical(&changed.spell(&mut dice)));
    }

    #[test]
    fn bytes_are_equal_exactly_when_values_are(a in model(), b in model(), mut dice in dice()) {
        let equal = canonical(&a.spell(&mut dice)) == canonical(&b.spell(&mut dice));
        prop_assert_eq!(equal, a == b);
    }

    #[test]
    fn the_canonical_form_is_a_fixed_point(model in model(), mut dice in dice()) {
        check_fixed_point(model.spell(&mut dice).as_bytes())?;
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_fixed_point(&bytes)?;
    }

    #[test]
    fn arbitrary_tokens_never_panic(
        tokens in prop::collection::vec(prop::sample::select(TOKENS), 0..40),
    ) {
        check_fixed_point(tokens.concat().as_bytes())?;
    }

    #[test]
    fn damaged_documents_never_panic(model in model(), mut dice in dice(), at: prop::sample::Index, byte: u8) {
        let mut text = model.spell(&mut dice).into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        check_fixed_point(&text)?;
        check_fixed_point(&text[..at])?;
    }

    #[test]
    fn doubles_agree_with_another_implementation(model in model(), mut dice in dice()) {
        let text = model.spell(&mut dice);
        let theirs = serde_json::from_str::<serde_json::Value>(&text)
            .ok()
            .map(|value| serde_json_canonicalizer::to_string(&value).expect("a value has a form"));
        prop_assert_eq!(try_canonical(text.as_bytes(), &DOUBLE).ok(), theirs, "{}", text);
    }

    #[test]
    fn doubles_are_spelled_as_ecmascript_does(digits in "[0-9]{1,20}", exponent in -45_i32..30) {
        let text = format!("{}e{exponent}", digits.parse::<u128>().unwrap());
        let double: f64 = text.parse().unwrap();
        prop_assert_eq!(canonical_in(&DOUBLE, &text), ryu_js::Buffer::new().format(double).to_owned());
    }

    #[test]
    fn members_are_in_the_order_of_their_utf16(
        names in prop::collection::hash_set(name(), 0..30),
        mut dice in dice(),
    ) {
        let model = ModelValue::Object(names.into_iter().map(|name| (name, ModelValue::Null)).collect());
        let text = canonical(&model.spell(&mut dice));
        let document = Document::parse(text.as_bytes(), MAX_BYTES).unwrap();
        let units = document.root().members().map(|(name, _)| name.encode_utf16().collect::<Vec<u16>>());
        prop_assert!(units.is_sorted(), "{}", text);
    }

    #[test]
    fn every_member_is_found_with_its_text(
        members in prop::collection::btree_map(name(), name(), 0..30),
        mut dice in dice(),
    ) {
        let strings = members.iter().map(|(name, text)| (name.clone(), ModelValue::String(text.clone())));
        let text = ModelValue::Object(strings.collect()).spell(&mut dice);
        let document = Document::parse(text.as_bytes(), MAX_BYTES).unwrap();
        for (name, text) in &members {
            prop_assert_eq!(document.root().get(name).and_then(JsonValue::as_str), Some(text.into()));
        }
        prop_assert_eq!(document.root().members().count(), members.len());
    }
}

/// Fragments that form JSON, or nearly.
const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    " ",
    "\n",
    "\"a\":",
    "\"b\":",
    "\"\\u0061\":",
    "\"",
    "\\",
    "\\u",
    "d83d",
    "\\ude00",
    "\"\u{c5}\":",
    "\"A\u{30a}\":",
    "\"x\"",
    "null",
    "true",
    "fals",
    "0",
    "1",
    "-",
    "9",
    ".",
    "e",
    "E+",
    "00",
    "1e999",
    "1e-7",
    "NaN",
    "\u{feff}",
    "\u{0}",
    "é",
];
