//! Where a page ends, as a text that says nothing to people.
//!
//! Guarantee: what was not written here is not read back as something else, but for one in four billion.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ichido_core::digest::Digest;

use super::problem::{Code, Problem};

/// How many bytes tell a garbled one.
const CHECK_BYTES: usize = 4;

/// The place as a text.
pub(super) fn write(place: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode([place, check(place).as_slice()].concat())
}

/// The place that was written.
pub(super) fn read<const N: usize>(text: &str) -> Result<[u8; N], Problem> {
    read_any(text).ok_or_else(|| {
        let detail =
            "cursor is none; give what the page before had as its next, or leave it out to begin anew";
        Problem::new(Code::ParameterInvalid, detail)
    })
}

fn read_any<const N: usize>(text: &str) -> Option<[u8; N]> {
    // Three bytes are four characters; what is longer is not looked at.
    if (N + CHECK_BYTES).div_ceil(3) * 4 < text.len() {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (place, told) = bytes.split_last_chunk::<CHECK_BYTES>()?;
    (*told == check(place)).then(|| place.try_into().ok()).flatten()
}

fn check(place: &[u8]) -> [u8; CHECK_BYTES] {
    let digest = Digest::of_bytes(place);
    let (first, _) = digest.as_bytes().split_at(CHECK_BYTES);
    first.try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_and_nothing_else_does() {
        let place = *b"0123456789abcdef";
        let text = write(&place);
        assert_eq!(read_any::<16>(&text), Some(place));
        assert_eq!(read_any::<15>(&text), None, "of another length");
        let longer = format!("{text}AAAA");
        for garbled in ["", "AAAA", "../../etc", &text[1..], &text.replace('M', "N"), &longer] {
            assert_eq!(read_any::<16>(garbled), None, "{garbled}");
        }
        for index in 0..text.len() {
            let other = if text.as_bytes()[index] == b'A' { "B" } else { "A" };
            let mut garbled = text.clone();
            garbled.replace_range(index..=index, other);
            assert_ne!(read_any::<16>(&garbled), Some(place), "{garbled}");
        }
    }
}
