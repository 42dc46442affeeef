//! Decides a page's encoding: from its bytes, its server, or its head.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// How far into a page its head is searched for an encoding, as browsers do.
const HEAD_BYTES: usize = 1_024;

/// Decodes a page. An invalid character becomes �.
pub(super) fn decode(bytes: &[u8], label: Option<&str>) -> String {
    let declared = label.and_then(|label| Encoding::for_label(label.as_bytes()));
    let encoding = declared
        .or_else(|| in_head(bytes))
        .unwrap_or_else(|| if std::str::from_utf8(bytes).is_ok() { UTF_8 } else { WINDOWS_1252 });
    // A byte order mark wins over both.
    encoding.decode(bytes).0.into_owned()
}

/// Returns what follows `charset=` in the head: both ways to write it contain that.
fn in_head(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes[..bytes.len().min(HEAD_BYTES)].to_ascii_lowercase();
    let after = head.windows(8).position(|window| window == b"charset=")? + 8;
    let label: Vec<u8> = head[after..]
        .iter()
        .copied()
        .skip_while(|byte| matches!(byte, b'"' | b'\'' | b' '))
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':' | b'.'))
        .collect();
    Encoding::for_label(&label)
}
