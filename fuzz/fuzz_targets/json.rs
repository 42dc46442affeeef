//! Any bytes as JSON: no panic, and every canonical form is a fixed point.
#![no_main]

use ichido_core::json::{Document, CanonicalForm, Numbers, Unicode};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(document) = Document::parse(data, 1 << 16) else { return };
    for numbers in [Numbers::Exact, Numbers::ExactNoExponent, Numbers::Double] {
        for unicode in [Unicode::AsWritten, Unicode::Nfc] {
            let form = CanonicalForm { numbers, unicode, ..CanonicalForm::default() };
            let Ok(once) = document.canonical(&form) else { continue };
            // A number's plain digits may be longer than its exponent form, so the bound of the input is not used.
            let again = Document::parse(&once, usize::MAX).expect("a canonical form is JSON");
            // Doubles are written with exponents, as in RFC 8785.
            assert_eq!(again.canonical(&form).expect("it has a canonical form"), once, "{form:?}");
        }
    }
});
