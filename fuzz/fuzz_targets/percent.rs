//! Any text as a part of a URL: no panic, and decoding undoes an encoding of every byte.
#![no_main]

use ichido_http::url::percent_decoded;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let encoded: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
    assert_eq!(percent_decoded(&encoded).as_deref(), Some(text));
    match percent_decoded(text) {
        Some(decoded) if !text.contains('%') => assert_eq!(decoded, text),
        Some(decoded) => assert!(decoded.len() < text.len()),
        None => assert!(text.contains('%')),
    }
});
