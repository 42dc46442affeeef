//! Inputs of a fingerprint that a boundary file selects, such as a claim or a header.

use crate::digest::Hasher;

/// Further inputs of a fingerprint as one hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inputs([u8; 32]);

impl Inputs {
    /// Hashes inputs in order, each with its name and values; `None` if there are none.
    ///
    /// An input without a value is absent, which differs from an empty value. Several values (the lines of a header)
    /// stay separate: every part is prefixed with its length, so no two lists have the same bytes.
    ///
    /// ```
    /// use ichido_core::fingerprint::Inputs;
    ///
    /// let tenant = |values: &[&[u8]]| Inputs::new([("headers/x-tenant", values)]);
    /// assert_ne!(tenant(&[b"a", b"b"]), tenant(&[b"a, b"]));
    /// assert_ne!(tenant(&[]), tenant(&[b""]));
    /// ```
    pub fn new<N, V, B>(inputs: impl IntoIterator<Item = (N, V)>) -> Option<Self>
    where
        N: AsRef<str>,
        V: AsRef<[B]>,
        B: AsRef<[u8]>,
    {
        let mut inputs = inputs.into_iter().peekable();
        inputs.peek()?;
        let mut hasher = Hasher::new("ichido/fingerprint-inputs/1");
        for (name, values) in inputs {
            let values = values.as_ref();
            hasher.part(name.as_ref().as_bytes());
            hasher.part(&(values.len() as u64).to_be_bytes());
            for value in values {
                hasher.part(value.as_ref());
            }
        }
        Some(Self(hasher.finish()))
    }

    pub(super) const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}
