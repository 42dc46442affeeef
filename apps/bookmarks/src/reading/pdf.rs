//! Finds the title of a PDF file in its metadata. Nothing else of the file is read.
//!
//! The `Info` dictionary and the XMP packet are searched for as bytes: that needs no table of objects, and the file may
//! be cut off. What is inside a compressed object is not found.

use super::html;

/// How much of an object is searched.
const OBJECT_BYTES: usize = 8 << 10;
/// How deep brackets in a string may be nested.
const MAX_DEPTH: usize = 8;

/// Returns the title in the metadata, if it has one.
pub(super) fn title(pdf: &[u8]) -> Option<String> {
    let found = info(pdf).or_else(|| xmp(pdf))?;
    Some(found).filter(|title| !title.trim().is_empty())
}

/// Returns `/Title` of the dictionary that `/Info 12 0 R` refers to. In an encrypted file it cannot be read.
fn info(pdf: &[u8]) -> Option<String> {
    if find(pdf, b"/Encrypt").is_some() {
        return None;
    }
    // The last one: a file that was changed has several.
    let reference = &pdf[pdf.windows(6).rposition(|window| window == b"/Info ")? + 6..];
    let reference = &reference[..find(&reference[..reference.len().min(24)], b"R")?];
    let object = [reference.trim_ascii(), b" obj"].concat();
    let starts = |at: &usize| !at.checked_sub(1).is_some_and(|before| pdf[before].is_ascii_digit());
    let at = pdf.windows(object.len()).rposition(|window| window == object).filter(starts)?;
    let object = &pdf[at..pdf.len().min(at + OBJECT_BYTES)];
    let object = &object[..find(object, b"endobj").unwrap_or(object.len())];
    let value = object[find(object, b"/Title")? + 6..].trim_ascii_start();
    match value {
        [b'(', rest @ ..] => Some(text(&literal(rest))),
        [b'<', rest @ ..] => Some(text(&hexadecimal(rest))),
        _ => None,
    }
}

/// Returns `dc:title` of the XMP packet, which is XML. Only the text between two tags is decoded.
fn xmp(pdf: &[u8]) -> Option<String> {
    let packet = &pdf[find(pdf, b"<dc:title")?..];
    let packet = &packet[..packet.len().min(OBJECT_BYTES)];
    let packet = &packet[..find(packet, b"</dc:title")?];
    let item = &packet[find(packet, b"<rdf:li")?..];
    let item = &item[find(item, b">")? + 1..];
    let item = String::from_utf8_lossy(&item[..find(item, b"<")?]);
    Some(html::read(&format!("<title>{item}</title>")).title)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Reads a string up to its closing bracket.
fn literal(bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut depth) = (Vec::new(), 0);
    let mut rest = bytes.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        match byte {
            b')' if depth == 0 => break,
            b')' => depth -= 1,
            b'(' if depth == MAX_DEPTH => break,
            b'(' => depth += 1,
            b'\\' => {
                match rest.next() {
                    Some(b'n') => out.push(b'\n'),
                    Some(b'r') => out.push(b'\r'),
                    Some(b't') => out.push(b'\t'),
                    // A line that goes on.
                    Some(b'\r') => drop(rest.next_if_eq(&b'\n')),
                    Some(b'\n' | b'b' | b'f') | None => (),
                    Some(digit @ b'0'..=b'7') => {
                        let mut code = digit - b'0';
                        for _ in 0..2 {
                            let Some(next) = rest.next_if(|next| (b'0'..=b'7').contains(next)) else { break };
                            code = code.wrapping_mul(8).wrapping_add(next - b'0');
                        }
                        out.push(code);
                    }
                    Some(other) => out.push(other),
                }
                continue;
            }
            _ => (),
        }
        out.push(byte);
    }
    out
}

/// Reads a string of hexadecimal digits; a missing last one is 0.
fn hexadecimal(bytes: &[u8]) -> Vec<u8> {
    let digits =
        bytes.iter().take_while(|byte| **byte != b'>').filter_map(|byte| char::from(*byte).to_digit(16));
    let digits: Vec<u8> = digits.filter_map(|digit| u8::try_from(digit).ok()).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect()
}

/// Decodes a string: UTF-16 or UTF-8 by its mark, else `PDFDocEncoding`.
fn text(bytes: &[u8]) -> String {
    match bytes {
        [0xfe, 0xff, rest @ ..] => encoding_rs::UTF_16BE.decode_without_bom_handling(rest).0.into_owned(),
        [0xff, 0xfe, rest @ ..] => encoding_rs::UTF_16LE.decode_without_bom_handling(rest).0.into_owned(),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => bytes.iter().map(|byte| pdf_doc(*byte)).collect(),
    }
}

/// Decodes a character of `PDFDocEncoding`, which is Latin-1 with two rows of its own.
fn pdf_doc(byte: u8) -> char {
    const ACCENTS: [char; 8] = ['˘', 'ˇ', 'ˆ', '˙', '˝', '˛', '˚', '˜'];
    const SIGNS: [char; 33] = [
        '•', '†', '‡', '…', '—', '–', 'ƒ', '⁄', '‹', '›', '−', '‰', '„', '“', '”', '‘', '’', '‚', '™', 'ﬁ',
        'ﬂ', 'Ł', 'Œ', 'Š', 'Ÿ', 'Ž', 'ı', 'ł', 'œ', 'š', 'ž', '\u{fffd}', '€',
    ];
    match byte {
        0x18..=0x1f => ACCENTS[usize::from(byte - 0x18)],
        0x80..=0xa0 => SIGNS[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with_info(value: &[u8]) -> Vec<u8> {
        let outline = b"%PDF-1.4\n3 0 obj << /Title (Chapter 1) >> endobj\n112 0 obj << /Title (Other) >> endobj\n12 0 obj\n<< /Producer (x) /Title ";
        [outline, value, b" >>\nendobj\ntrailer << /Root 1 0 R /Info 12 0 R >>"].concat()
    }

    #[test]
    fn the_title_is_read_from_the_info_dictionary() {
        for (value, expected) in [
            (&b"(The fox)"[..], "The fox"),
            (b"(A \\(small\\) fox (and a dog))", "A (small) fox (and a dog)"),
            (b"(caf\\351 \\200 \\\n2)", "café • 2"),
            (b"(\xfe\xff\x67\x71\x4e\xac)", "東京"),
            (b"<FEFF 6771 4EAC>", "東京"),
            (b"<54686520666F78>", "The fox"),
            (b"(\xef\xbb\xbf\xe6\x9d\xb1)", "東"),
        ] {
            assert_eq!(title(&with_info(value)).as_deref(), Some(expected));
        }
        let encrypted = [&with_info(b"(scrambled)")[..], b"/Encrypt 5 0 R"].concat();
        for none in [&with_info(b"( )")[..], &with_info(b"[1]"), &encrypted, b"%PDF-1.4", b"/Info 1 0 R", b""]
        {
            assert_eq!(title(none), None);
        }
    }

    #[test]
    fn the_title_is_read_from_the_xmp_packet() {
        let packet = b"%PDF <x:xmpmeta><dc:title><rdf:Alt><rdf:li xml:lang=\"x-default\">Fox &amp; \xe6\x9d\xb1</rdf:li></rdf:Alt></dc:title>";
        assert_eq!(title(packet).as_deref(), Some("Fox & 東"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_searched_without_a_panic(bytes in any::<Vec<u8>>(), value in any::<Vec<u8>>()) {
            drop(title(&bytes));
            drop(title(&with_info(&value)));
            drop(title(&[b"/Info ", &bytes[..]].concat()));
        }
    }
}
