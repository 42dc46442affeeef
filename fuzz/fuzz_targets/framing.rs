//! Any bytes on a connection: no panic, and the same verdict however the bytes are cut into reads.
#![no_main]

use ichido_http::server::framing::Framing;

libfuzzer_sys::fuzz_target!(|input: (u8, &[u8])| {
    let (size, bytes) = input;
    let mut whole = Framing::default();
    let at_once = whole.take(bytes).map_err(|refused| (refused.good, refused.fault));
    let mut parts = Framing::default();
    let mut seen = 0;
    let mut in_parts = Ok(());
    for part in bytes.chunks(usize::from(size).max(1)) {
        if let Err(refused) = parts.take(part) {
            in_parts = Err((seen + refused.good, refused.fault));
            break;
        }
        seen += part.len();
    }
    assert_eq!(at_once, in_parts);
});
