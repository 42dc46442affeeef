//! Counts what would happen, before anything does.

use std::collections::BTreeMap;

use ichido_core::time::Timestamp;
use ichido_store::dead_letter::limits::MAX_COUNTED;
use ichido_store::dead_letter::{LetterClass, LetterClasses};
use ichido_store::error::StoreError;

use super::bulk::BulkOperation;
use super::policy::RequeueRefusal;

/// What a bulk operation would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preflight {
    /// When it was counted, by the store's clock.
    ///
    /// Later letters are not part of the operation.
    pub as_of: Timestamp,
    /// How many letters the filter matches, at most [`MAX_COUNTED`].
    pub matched: u64,
    /// How many of them are eligible.
    pub eligible: u64,
    /// The eligible ones, by queue.
    pub queues: BTreeMap<String, u64>,
    /// The eligible ones, by the code of their last error.
    ///
    /// An empty text if there is none.
    pub errors: BTreeMap<String, u64>,
    /// The others, by queue and reason.
    pub refused: BTreeMap<(String, RequeueRefusal), u64>,
    /// Whether the filter matches more letters than were counted.
    ///
    /// The operation is about all of them, and each number here is a minimum.
    pub has_more: bool,
}

impl Preflight {
    /// Returns whether no letter that matches is eligible.
    pub const fn moves_nothing(&self) -> bool {
        self.eligible == 0 && !self.has_more
    }

    /// Returns how many are refused for a reason.
    pub fn refused_for(&self, reason: RequeueRefusal) -> u64 {
        self.refused.iter().filter(|((_, refusal), _)| *refusal == reason).map(|(_, count)| count).sum()
    }
}

impl BulkOperation {
    /// Counts what would happen; changes nothing.
    ///
    /// The database counts letters by what decides about them, and the policies judge each such class once.
    pub async fn preflight(&self) -> Result<Preflight, StoreError> {
        let now = self.store.now().await?;
        self.count(now, now).await
    }

    /// Counts only what was a letter at an earlier moment.
    ///
    /// The [`Preflight::as_of`] that a person agreed to.
    pub async fn preflight_as_of(&self, as_of: Timestamp) -> Result<Preflight, StoreError> {
        let now = self.store.now().await?;
        self.count(as_of.min(now), now).await
    }

    async fn count(&self, as_of: Timestamp, now: Timestamp) -> Result<Preflight, StoreError> {
        let filter = self.filter_as_of(as_of);
        let mut preflight = Preflight {
            as_of,
            matched: 0,
            eligible: 0,
            queues: BTreeMap::new(),
            errors: BTreeMap::new(),
            refused: BTreeMap::new(),
            has_more: false,
        };
        let keeps_for = self.policies.keeps_for();
        let LetterClasses { classes, has_more } =
            self.store.dead_letters().classes(&filter, &keeps_for, now, MAX_COUNTED).await?;
        preflight.has_more = has_more;
        for LetterClass { traits, code, count } in classes {
            preflight.matched += count;
            let queue = traits.queue.as_str().to_owned();
            if let Err(reason) = self.action.judge(&self.policies, &traits, now) {
                *preflight.refused.entry((queue, reason)).or_default() += count;
                continue;
            }
            preflight.eligible += count;
            *preflight.queues.entry(queue).or_default() += count;
            *preflight.errors.entry(code.unwrap_or_default()).or_default() += count;
        }
        Ok(preflight)
    }
}

/// Formats how many letters are eligible: `4 of 5`, or `at least 4 of more than 5` if more match than were counted.
pub fn format_counts(eligible: u64, matched: u64, has_more: bool) -> String {
    if has_more {
        format!("at least {eligible} of more than {matched}")
    } else {
        format!("{eligible} of {matched}")
    }
}
