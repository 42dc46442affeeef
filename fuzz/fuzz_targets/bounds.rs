//! Any text as a flag of a server: no panic, a value within its bounds, or exactly one error under the flag.
#![no_main]

use ichido_core::settings::ConfigErrors;
use ichido_http::server::bounds::{MAX_COUNT, address, count, time};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(address) = address(text) {
        assert!(text.starts_with("localhost:") || text.parse() == Ok(address));
    }
    let mut faults = ConfigErrors::default();
    match count("--flag", text, &mut faults) {
        Some(count) => assert!((1..=MAX_COUNT).contains(&count)),
        None => assert!(faults.to_string().contains("--flag")),
    }
    let mut faults = ConfigErrors::default();
    match time("--flag", text, &mut faults) {
        Some(time) => assert!(!time.is_zero()),
        None => assert!(faults.to_string().contains("--flag")),
    }
});
