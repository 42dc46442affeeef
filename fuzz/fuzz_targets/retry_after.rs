//! Any text as `Retry-After` at any time: no panic, and no wait beyond the maximum.
#![no_main]

use ichido_core::retry::MAX_WAIT;
use ichido_core::time::Timestamp;
use ichido_core::verdict::{hint_of, retry_after};

libfuzzer_sys::fuzz_target!(|input: (i64, &[u8])| {
    let (micros, value) = input;
    let now = Timestamp::from_micros(micros);
    if let Ok(text) = std::str::from_utf8(value) {
        assert!(retry_after(text, now).unwrap_or_default() <= MAX_WAIT);
    }
    for name in ["Retry-After", "retry-after-ms", "x-amz-retry-after"] {
        assert!(hint_of([(name, value)], now).unwrap_or_default() <= MAX_WAIT);
    }
});
