//! Creates new keys.

use ichido_core::key::IdempotencyKey;

use ichido_http::clock;

/// The system provides no random bytes, so a key would not be unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot create a key: the system provides no random bytes ({0}); give the action a key of your own")]
pub struct RandomnessError(getrandom::Error);

/// Creates a unique key: a UUIDv7 with random bytes of the system.
///
/// Create one key for each action of a person, when the person acts, and keep it with the bytes until the outcome is
/// known. A new key for a second attempt makes a second action.
///
/// ```
/// let (first, second) = (ichido_client::new_key()?, ichido_client::new_key()?);
/// assert_ne!(first, second);
/// assert_eq!(first.as_str().len(), 36);
/// # Ok::<(), ichido_client::RandomnessError>(())
/// ```
// Spec: A7.
pub fn new_key() -> Result<IdempotencyKey, RandomnessError> {
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(RandomnessError)?;
    Ok(IdempotencyKey::fresh(clock::now(), random))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_created_at_the_same_moment_differ() {
        let keys: HashSet<_> = (0..10_000).map(|_| new_key().unwrap()).collect();
        assert_eq!(keys.len(), 10_000);
    }
}
