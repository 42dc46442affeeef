//! The audit trail: sealed, verified, and pruned with its subjects.

use ichido_core::audit::AuditKey;
use ichido_core::audit::entry::EntryId;
use ichido_core::audit::seal::SealHead;
use ichido_core::audit::verify::AuditReport;
use ichido_core::time::Timestamp;

use super::{AuditTrail, audit_page};
use crate::audit::{
    self, AuditFilter, AuditPage, AuditPruned, AuditSealed, KeysSealed, MAX_SEAL_ENTRIES, MAX_SEAL_KEYS,
    trail,
};
use crate::driver::{on, retry_read};
use crate::future::StoreFuture;
use crate::key_sealing;
use crate::statement::shared;
use crate::transaction::Transaction;

impl<'s> AuditTrail<'s> {
    /// Seals at most `limit` entries, never many more than [`MAX_SEAL_ENTRIES`].
    ///
    /// Call it again until there is nothing to seal; [`crate::audit`] has an example. One node is enough, the one that holds
    /// the task. If two try at once, one gets [`StoreError::Busy`](crate::error::StoreError::Busy) or finds nothing, and no entry is sealed twice.
    // SPEC F5.
    pub fn seal(self, key: Option<&'s AuditKey>, limit: u32) -> StoreFuture<'s, AuditSealed> {
        Box::pin(async move {
            let limit = limit.clamp(1, MAX_SEAL_ENTRIES);
            on!(&*self.0.driver, driver => driver.audit_seal(key, limit).await)
        })
    }

    /// Seals settled key records that expire after `after` (`None` for all), in the order of their expiry. It examines at most
    /// `limit`, and no more than [`MAX_SEAL_KEYS`].
    ///
    /// Continue after [`KeysSealed::after`], and start again from time to time: new records may expire before those that were
    /// examined. [`AuditTrail::seal`] then seals the entry that proves them. One node is enough; if two try at once, a record
    /// may be sealed twice, which is harmless.
    // SPEC C5, F5.
    pub fn seal_keys(self, after: Option<Timestamp>, limit: u32) -> StoreFuture<'s, KeysSealed> {
        Box::pin(async move {
            let now = self.0.now().await?;
            key_sealing::seal(&self.0.driver, after, now, limit.clamp(1, MAX_SEAL_KEYS)).await
        })
    }

    /// Returns the last seal. Keep it where nobody with write access to this database can write: it shows whether later seals
    /// were cut off.
    pub fn head(self) -> StoreFuture<'s, Option<SealHead>> {
        Box::pin(async move {
            let row = self.0.driver.optional(shared!("seal_last"), &[]).await?;
            row.map(|row| Ok(audit::seal(&row)?.head())).transpose()
        })
    }

    /// Lists entries for people, newest first: those with an actor, and those about anything but messages. Entries of workers
    /// are in the history of their message. `before` is [`AuditPage::next`]. At most
    /// [`limits::MAX_PAGE`](crate::message::limits::MAX_PAGE).
    // SPEC F5.
    pub fn list(
        self,
        filter: &'s AuditFilter,
        before: Option<EntryId>,
        limit: u32,
    ) -> StoreFuture<'s, AuditPage> {
        Box::pin(async move { audit_page::page(&self.0.driver, filter, before, limit).await })
    }

    /// Verifies the whole trail as of one moment.
    ///
    /// It reads in pages and keeps only its findings; writes continue meanwhile. `head` is one that was kept.
    pub fn verify(self, key: Option<&'s AuditKey>, head: Option<SealHead>) -> StoreFuture<'s, AuditReport> {
        Box::pin(async move {
            retry_read(|| async { on!(&*self.0.driver, driver => driver.audit_verify(key, head).await) })
                .await
        })
    }

    /// Deletes the lists of seals whose entries are all deleted. Checks at most `limit` seals after a number (0 for all).
    ///
    /// Root and count stay, and with them the chain.
    pub fn prune(self, key: Option<&'s AuditKey>, after: u64, limit: u32) -> StoreFuture<'s, AuditPruned> {
        Box::pin(async move {
            let work = async |transaction: &mut Transaction<'_>| {
                transaction.lock_seals().await?;
                trail::prune(&mut transaction.connection(), key, after, limit).await.map(Some)
            };
            let pruned = self.0.driver.transact(work).await?;
            Ok(pruned.unwrap_or(AuditPruned { seals: 0, after: None }))
        })
    }
}
