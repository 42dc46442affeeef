//! Header fields encoded in one column. Repeats, order and raw bytes are preserved.

/// The first byte of every encoding, to distinguish later formats.
const VERSION: u8 = 1;

/// The bytes that a field takes beside its name and value: their lengths.
pub(crate) const FIELD_BYTES: usize = 8;

/// Encodes each field as two lengths and two byte strings.
pub(crate) fn encode(headers: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    for (name, value) in headers {
        for part in [name.as_bytes(), value] {
            let len = u32::try_from(part.len()).unwrap_or(u32::MAX);
            bytes.extend_from_slice(&len.to_be_bytes());
            bytes.extend_from_slice(&part[..len as usize]);
        }
    }
    bytes
}

/// Decodes the fields. Returns `None` if the encoding is invalid.
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let (&VERSION, mut rest) = bytes.split_first()? else { return None };
    let mut headers = Vec::new();
    while !rest.is_empty() {
        let name = String::from_utf8(part(&mut rest)?.to_vec()).ok()?;
        headers.push((name, part(&mut rest)?.to_vec()));
    }
    Some(headers)
}

fn part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, after) = rest.split_first_chunk::<4>()?;
    let len = usize::try_from(u32::from_be_bytes(*len)).ok()?;
    let (part, after) = after.split_at_checked(len)?;
    *rest = after;
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_with_repeats_order_and_raw_bytes() {
        let headers = vec![
            ("link".to_owned(), b"</a>".to_vec()),
            ("x-raw".to_owned(), vec![0, 0xff, b'\n']),
            ("link".to_owned(), b"</b>, </c>".to_vec()),
            ("empty".to_owned(), Vec::new()),
        ];
        assert_eq!(decode(&encode(&headers)), Some(headers));
        assert_eq!(decode(&encode(&[])), Some(Vec::new()));
    }

    #[test]
    fn damaged_column_gives_no_headers() {
        let whole = encode(&[("a".to_owned(), b"b".to_vec())]);
        for cut in 2..whole.len() {
            assert_eq!(decode(&whole[..cut]), None, "cut at {cut}");
        }
        assert_eq!(decode(&[]), None);
        assert_eq!(decode(&[9]), None, "an unknown version");
    }
}
