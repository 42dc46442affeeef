//! Inflates what a site has compressed, though nobody asked for it.

use std::io::Read;

use brotli_decompressor::Decompressor;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

/// The size of the brotli decoder's input buffer.
const BUFFER_BYTES: usize = 4 << 10;
/// How a brotli body with a larger window than the standard's begins.
const LARGE_WINDOW: u8 = 0x11;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    Deflate,
    Brotli,
}

impl Coding {
    /// Returns the coding of a response, or the header if it is unknown or there are several.
    pub(super) fn parse(headers: &HeaderMap) -> Result<Option<Self>, String> {
        let fields = headers.get_all(CONTENT_ENCODING).iter();
        let fields: Vec<_> = fields.map(|field| String::from_utf8_lossy(field.as_bytes())).collect();
        let all = fields.join(",").to_ascii_lowercase();
        let mut codings = all.split(',').map(str::trim).filter(|coding| !matches!(*coding, "" | "identity"));
        let coding = match codings.next() {
            None => None,
            Some("gzip" | "x-gzip") => Some(Self::Gzip),
            Some("deflate") => Some(Self::Deflate),
            Some("br") => Some(Self::Brotli),
            Some(_) => return Err(all),
        };
        if codings.next().is_none() { Ok(coding) } else { Err(all) }
    }

    /// Returns the first bytes of what was compressed. However much more a small body would become, it is not made.
    pub(crate) fn inflate(self, bytes: &[u8], max_bytes: usize) -> Vec<u8> {
        match self {
            Self::Gzip => beginning(MultiGzDecoder::new(bytes), max_bytes),
            Self::Deflate => {
                // Some servers leave out the frame that the standard asks for.
                let framed = beginning(ZlibDecoder::new(bytes), max_bytes);
                if framed.is_empty() { beginning(DeflateDecoder::new(bytes), max_bytes) } else { framed }
            }
            // A window of up to a gigabyte is not part of HTTP (RFC 7932 ends at 16 MiB).
            Self::Brotli if bytes.first().is_some_and(|byte| byte & 0x7f == LARGE_WINDOW) => Vec::new(),
            Self::Brotli => beginning(Decompressor::new(bytes, BUFFER_BYTES), max_bytes),
        }
    }
}

fn beginning(decoder: impl Read, max_bytes: usize) -> Vec<u8> {
    let mut inflated = Vec::new();
    // A body that was cut off ends with an error, and what came before is the beginning of the page.
    _ = decoder.take(max_bytes as u64).read_to_end(&mut inflated);
    inflated
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    use super::*;

    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn each_coding_is_inflated() {
        let text = b"a fox ".repeat(100);
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(&text).unwrap();
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::fast());
        raw.write_all(&text).unwrap();
        // "a fox" as one uncompressed brotli block, by hand: there is no encoder here.
        let brotli = [&[0x0b, 0x02, 0x80][..], b"a fox", &[0x03]].concat();
        assert_eq!(Coding::Gzip.inflate(&gzipped(&text), 4_096), text);
        assert_eq!(Coding::Deflate.inflate(&zlib.finish().unwrap(), 4_096), text);
        assert_eq!(Coding::Deflate.inflate(&raw.finish().unwrap(), 4_096), text);
        assert_eq!(Coding::Brotli.inflate(&brotli, 4_096), b"a fox");
    }

    #[test]
    fn a_bomb_is_inflated_to_the_limit_only() {
        let bomb = gzipped(&vec![0; 64 << 20]);
        assert!(bomb.len() < 128 << 10);
        assert_eq!(Coding::Gzip.inflate(&bomb, 2 << 20).len(), 2 << 20);
    }

    #[test]
    fn the_beginning_of_a_cut_body_is_kept() {
        let text: Vec<u8> = (0..20_000_u32).flat_map(u32::to_le_bytes).collect();
        let cut = gzipped(&text);
        let inflated = Coding::Gzip.inflate(&cut[..cut.len() / 2], text.len());
        assert!(1_000 < inflated.len() && text.starts_with(&inflated));
    }

    #[test]
    fn unknown_and_repeated_codings_are_refused() {
        for (header, expected) in [
            ("", Ok(None)),
            ("identity", Ok(None)),
            ("GZIP", Ok(Some(Coding::Gzip))),
            ("identity, br", Ok(Some(Coding::Brotli))),
            ("zstd", Err("zstd".to_owned())),
            ("gzip, gzip", Err("gzip, gzip".to_owned())),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_ENCODING, header.parse().unwrap())]);
            assert_eq!(Coding::parse(&headers), expected, "{header}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_stay_within_the_limit(bytes in any::<Vec<u8>>()) {
            for coding in [Coding::Gzip, Coding::Deflate, Coding::Brotli] {
                prop_assert!(coding.inflate(&bytes, 1_000).len() <= 1_000);
            }
        }
    }
}
