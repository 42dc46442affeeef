//! API keys, stored as hashes.

use ichido_core::digest::Digest;
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};

/// The maximum number of keys in a file. Each request is compared with all of them.
const MAX_KEYS: usize = 10_000;
/// The longest key that is checked.
const MAX_KEY_BYTES: usize = 4096;

/// The known keys and their identities.
pub(crate) struct ApiKeys(Vec<(Digest, String)>);

/// Why a file is not a list of API keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApiKeysError {
    #[error(
        "line {line} is not `sha256:HEX IDENTITY`; create the hash with: printf 'sha256:%s\\n' \"$(printf %s \"$KEY\" \
         | sha256sum | cut -c1-64)\""
    )]
    Line { line: usize },
    #[error("line {line} repeats the key of an earlier line; a key belongs to one caller")]
    Twice { line: usize },
    #[error("the file contains no key, so every request would be rejected; add a key")]
    None,
    #[error("the file contains more than {MAX_KEYS} keys")]
    TooMany,
}

impl ApiKeys {
    /// Parses lines of `sha256:HEX IDENTITY`, ignoring empty lines and lines that begin with `#`.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiKeysError> {
        let mut keys: Vec<(Digest, String)> = Vec::new();
        for (index, content) in text.lines().map(str::trim).enumerate() {
            let line = index + 1;
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let (hash, identity) =
                content.split_once(char::is_whitespace).ok_or(ApiKeysError::Line { line })?;
            let hash = Digest::parse(hash).ok_or(ApiKeysError::Line { line })?;
            if keys.iter().any(|(known, _)| *known == hash) {
                return Err(ApiKeysError::Twice { line });
            }
            if keys.len() == MAX_KEYS {
                return Err(ApiKeysError::TooMany);
            }
            keys.push((hash, identity.trim().to_owned()));
        }
        if keys.is_empty() { Err(ApiKeysError::None) } else { Ok(Self(keys)) }
    }

    /// Returns the identity of a key.
    ///
    /// It compares all keys in constant time, so timing does not reveal how close a guess was.
    pub(crate) fn identity(&self, key: &[u8]) -> Option<String> {
        if MAX_KEY_BYTES < key.len() {
            return None;
        }
        let hash = Digest::of_bytes(key);
        let mut found = u64::MAX;
        for (index, (known, _)) in (0..).zip(&self.0) {
            let is_same: Choice = known.as_bytes().ct_eq(hash.as_bytes());
            found.conditional_assign(&index, is_same);
        }
        let (_, identity) = self.0.get(usize::try_from(found).ok()?)?;
        Some(identity.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_key_is_found_by_its_hash() {
        let hash = |key: &str| Digest::of_bytes(key.as_bytes()).to_string();
        let text = format!("# ours\n\n{}\talice \n{} bob the builder\n", hash("k1"), hash("k2"));
        let keys = ApiKeys::parse(&text).expect("two keys");
        assert_eq!(keys.identity(b"k1").as_deref(), Some("alice"));
        assert_eq!(keys.identity(b"k2").as_deref(), Some("bob the builder"));
        for other in ["", "k3", "K1", hash("k1").as_str()] {
            assert_eq!(keys.identity(other.as_bytes()), None, "{other}");
        }
        assert_eq!(keys.identity(&[b'k'; MAX_KEY_BYTES + 1]), None);
    }

    #[test]
    fn invalid_key_file_is_rejected_with_its_line() {
        let hash = Digest::of_bytes(b"k").to_string();
        assert_eq!(ApiKeys::parse("# nothing").err(), Some(ApiKeysError::None));
        assert_eq!(ApiKeys::parse("\nplain alice").err(), Some(ApiKeysError::Line { line: 2 }));
        assert_eq!(ApiKeys::parse(&hash).err(), Some(ApiKeysError::Line { line: 1 }));
        let twice = format!("{hash} a\n{hash} b");
        assert_eq!(ApiKeys::parse(&twice).err(), Some(ApiKeysError::Twice { line: 2 }));
    }
}
