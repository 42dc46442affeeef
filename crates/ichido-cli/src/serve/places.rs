//! Places that callers hold for as long as they are served: so many in all, and so many for one token.
//!
//! Where no tokens are, whoever is on this machine is one caller, and may have all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use super::caller::Caller;

/// All places of one kind.
pub(super) struct Places {
    most: usize,
    most_of_one: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Default)]
struct Taken {
    count: usize,
    /// Only tokens that have one.
    by_token: HashMap<Uuid, usize>,
}

/// Why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// All are taken.
    Full,
    /// The token has as many as one may.
    OwnFull,
}

/// One place, for as long as it lives.
pub(super) struct Place {
    taken: Arc<Mutex<Taken>>,
    token: Option<Uuid>,
}

impl Places {
    pub(super) fn new(most: usize, most_of_one: usize) -> Self {
        Self { most, most_of_one, taken: Arc::default() }
    }

    /// Takes one for a caller.
    pub(super) fn take(&self, caller: &Caller) -> Result<Place, NoPlace> {
        let mut all = lock(&self.taken);
        let own = caller.token.and_then(|token| all.by_token.get(&token)).copied().unwrap_or_default();
        // First its own: to be told that all are taken would be to be told of others.
        if caller.token.is_some() && self.most_of_one <= own {
            return Err(NoPlace::OwnFull);
        }
        if self.most <= all.count {
            return Err(NoPlace::Full);
        }
        all.count += 1;
        all.by_token.extend(caller.token.map(|token| (token, own + 1)));
        Ok(Place { taken: Arc::clone(&self.taken), token: caller.token })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = lock(&self.taken);
        all.count -= 1;
        let Some(token) = self.token else { return };
        match all.by_token.get_mut(&token) {
            Some(count) if 1 < *count => *count -= 1,
            _ => _ = all.by_token.remove(&token),
        }
    }
}

fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    // Each change under it is whole.
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use ichido_store::token::Role;

    use super::*;

    fn caller(token: Option<u128>) -> Caller {
        Caller { name: "ann".to_owned(), role: Role::Viewer, token: token.map(Uuid::from_u128) }
    }

    #[test]
    fn one_token_has_its_share_and_all_together_have_all() {
        let places = Places::new(5, 2);
        let take = |token| places.take(&caller(token));
        let first = take(Some(1)).expect("a place");
        let second = take(Some(1)).expect("a place");
        assert_eq!(take(Some(1)).err(), Some(NoPlace::OwnFull));
        let other = take(Some(2)).expect("another's is not its own");
        let local = [take(None).expect("a place"), take(None).expect("a place")];
        assert_eq!(take(None).err(), Some(NoPlace::Full));
        assert_eq!(take(Some(3)).err(), Some(NoPlace::Full));
        drop((first, local));
        take(Some(1)).expect("what was given back");
        assert_eq!(lock(&places.taken).count, 2);
        drop((second, other));
        assert!(lock(&places.taken).by_token.is_empty(), "nothing is left of who has gone");
    }
}
