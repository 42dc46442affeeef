//! Judges all entries of a message together.
//!
//! Each entry must follow from the previous one, and the message must be in the state they give.

use std::collections::HashMap;
use std::time::Duration;

use uuid::Uuid;

use super::{AuditFinding, Kind, SetBack, Verifier};
use crate::audit::course::{CourseViolation, Walk};
use crate::audit::entry::{AuditEntry, EntryId};
use crate::audit::key_record::{KEYS_SEALED, KeyList};
use crate::time::Timestamp;

/// A database clock that NTP keeps right goes back by less.
const MIN_SET_BACK: Duration = Duration::from_secs(1);

/// The entries of one message, as far as they were seen.
#[derive(Debug)]
pub(super) struct Histories {
    message: Uuid,
    walk: Walk,
}

/// What the rules need to know about the store besides its entries.
#[derive(Clone, Debug, Default)]
pub struct Issued {
    /// The last issued fence.
    pub fence: i64,
    /// The messages that leases name, each with its greatest fence.
    pub leases: HashMap<Uuid, i64>,
    /// The time: lists of key records that expired before are not checked.
    pub now: Timestamp,
}

impl Issued {
    /// Returns whether a worker holds the message with this last entry.
    ///
    /// Its claim is later than every entry.
    pub fn is_sending(&self, message: Uuid, last: Option<EntryId>) -> bool {
        let lease = self.leases.get(&message);
        lease.is_some_and(|fence| last.is_none_or(|last| last.fence < *fence))
    }
}

impl Verifier<'_> {
    /// Judges every entry by the rules, sealed or not.
    ///
    /// They come in the order of message, fence and step; [`Verifier::histories_end`] comes last.
    pub fn histories(&mut self, entries: &[AuditEntry], issued: &Issued) {
        for entry in entries {
            self.note_key_list(entry, issued.now);
            if self.walking.as_ref().is_none_or(|walking| walking.message != entry.id.message) {
                self.histories_end(issued);
                let walk = Walk::from_the_first();
                self.walking = Some(Histories { message: entry.id.message, walk });
            }
            let Some(Histories { walk, .. }) = &mut self.walking else { continue };
            let set_back = walk.set_back(entry).filter(|by| MIN_SET_BACK <= *by);
            match (walk.step(entry, issued.fence), set_back) {
                (Err(violation), _) => self.report_violation(entry.id, Some(entry.at), violation),
                (Ok(()), Some(by)) => self.set_back(by).entries += 1,
                (Ok(()), None) => (),
            }
        }
    }

    /// Remembers which list of key records an entry proves.
    fn note_key_list(&mut self, entry: &AuditEntry, now: Timestamp) {
        if entry.about.is_none() || entry.kind != KEYS_SEALED {
            return;
        }
        let list = entry.excerpt.as_deref().and_then(KeyList::parse);
        self.key_lists.extend(list.filter(|list| now < list.until).map(|list| (entry.id.message, list)));
    }

    /// Ends the entries.
    pub fn histories_end(&mut self, issued: &Issued) {
        let Some(Histories { message, walk }) = self.walking.take() else { return };
        if let Err((entry, violation)) = walk.end(issued.is_sending(message, walk.last())) {
            self.report_violation(entry, None, violation);
        }
    }

    /// Reports a message that is not in the state its entries give.
    pub fn misplaced(&mut self, message: Uuid, kind: Kind, why: &'static str) {
        if !self.reported.contains(&message) {
            let finding =
                AuditFinding { kind, seal: None, message: Some(message), entry: None, at: None, why };
            self.add(finding);
        }
    }

    /// An entry of a message with a known finding follows from nothing for that reason.
    ///
    /// It is not reported again.
    fn report_violation(&mut self, entry: EntryId, at: Option<Timestamp>, violation: CourseViolation) {
        if !self.reported.contains(&entry.message) {
            let (kind, why) = (Kind::DoesNotFollow, violation.why());
            self.add(AuditFinding {
                kind,
                seal: None,
                message: Some(entry.message),
                entry: Some(entry),
                at,
                why,
            });
        }
    }

    /// Records that a clock was set back by this much.
    pub(super) fn set_back(&mut self, by: Duration) -> &mut SetBack {
        let set_back = self.report.set_back.get_or_insert_default();
        set_back.max = set_back.max.max(by);
        set_back
    }
}
