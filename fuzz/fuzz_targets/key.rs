//! Any bytes as header values: no panic, and a parsed key keeps its invariant in every spelling.
#![no_main]

use ichido_core::key::{IdempotencyKey, KeySyntax, read, read_as};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // The first zero byte splits the input over the two names, so agreement is tested too.
    let (first, second) = match data.iter().position(|byte| *byte == 0) {
        Some(split) => (&data[..split], Some(&data[split + 1..])),
        None => (data, None),
    };
    let fields = [("Idempotency-Key", Some(first)), ("X-Idempotency-Key", second)];
    let fields = fields.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)));
    if let Ok(Some(key)) = read_as(fields.clone(), KeySyntax::AnyString) {
        assert!((1..=IdempotencyKey::MAX_LEN).contains(&key.as_str().len()));
        let header = key.to_header_value();
        assert_eq!(read_as([("idempotency-key", header.as_bytes())], KeySyntax::AnyString), Ok(Some(key)));
    }
    if let Ok(Some(key)) = read(fields) {
        assert!((1..=IdempotencyKey::MAX_LEN).contains(&key.as_str().len()));
        assert!(key.as_str().bytes().all(|byte| byte.is_ascii_graphic()));
        let quoted = key.to_field_value();
        assert_eq!(read([("idempotency-key", quoted.as_bytes())]), Ok(Some(key)));
    }
});
