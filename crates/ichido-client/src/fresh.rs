//! A new key, for those who have none yet.

use ichido_core::key::IdempotencyKey;

use ichido_http::clock;

/// The system gives no random bytes, and a key that somebody else may have too is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no key can be made: the system gives no random bytes ({0}); give the action a key of your own")]
pub struct NoRandomness(getrandom::Error);

/// A key that nobody had before: a UUIDv7, of this moment and of random bytes of the system (SPEC A7).
///
/// One for each action of a person, made when the person acts, and kept with the bytes until the outcome is known: what makes a new key for
/// a second try makes a second action.
///
/// ```
/// let (first, second) = (ichido_client::fresh_key()?, ichido_client::fresh_key()?);
/// assert_ne!(first, second);
/// assert_eq!(first.as_str().len(), 36);
/// # Ok::<(), ichido_client::NoRandomness>(())
/// ```
pub fn fresh_key() -> Result<IdempotencyKey, NoRandomness> {
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(NoRandomness)?;
    Ok(IdempotencyKey::fresh(clock::now(), random))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_made_in_the_same_moment_differ() {
        let keys: HashSet<_> = (0..10_000).map(|_| fresh_key().unwrap()).collect();
        assert_eq!(keys.len(), 10_000);
    }
}
