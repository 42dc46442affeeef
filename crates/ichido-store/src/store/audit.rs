//! The audit trail: sealed, verified, and pruned with what it is about.

use ichido_core::audit::AuditKey;
use ichido_core::audit::seal::Head;
use ichido_core::audit::verify::Report;

use super::AuditTrail;
use crate::audit::{self, AuditPruned, AuditSealed, SEAL_ENTRIES_MAX, trail};
use crate::driver::{on, retry_read};
use crate::error::StoreError;
use crate::statement::shared;
use crate::transaction::Transaction;

impl AuditTrail<'_> {
    /// Seals at most `limit` entries, never more than [`SEAL_ENTRIES_MAX`] by much. Call it again until there is nothing to seal; the
    /// example is at [`crate::audit`]. It is enough once, by whoever is the caretaker; where two try at once, one is
    /// [`StoreError::Busy`] or finds nothing, and no entry is sealed twice.
    // SPEC F5.
    pub async fn seal(self, key: Option<&AuditKey>, limit: u32) -> Result<AuditSealed, StoreError> {
        let limit = limit.clamp(1, SEAL_ENTRIES_MAX);
        on!(&*self.0.driver, driver => driver.audit_seal(key, limit).await)
    }

    /// The last seal, to be kept where nobody who can write this database can write: it shows when later ones were cut off.
    pub async fn head(self) -> Result<Option<Head>, StoreError> {
        let row = self.0.driver.optional(shared!("seal_last"), &[]).await?;
        row.map(|row| Ok(audit::seal(&row)?.head())).transpose()
    }

    /// Judges the whole trail as it stands at one moment. It reads in pages and keeps nothing but what it found; writes go on
    /// beside it. `head` is one that was kept.
    pub async fn verify(self, key: Option<&AuditKey>, head: Option<Head>) -> Result<Report, StoreError> {
        retry_read(|| async { on!(&*self.0.driver, driver => driver.audit_verify(key, head).await) }).await
    }

    /// Looks at no more than `limit` seals after a number (0 for all), and gives back the room of those whose entries have all been
    /// forgotten: root and count stay, and the chain with them.
    pub async fn prune(
        self,
        key: Option<&AuditKey>,
        after: u64,
        limit: u32,
    ) -> Result<AuditPruned, StoreError> {
        let work = async |transaction: &mut Transaction<'_>| {
            transaction.lock_seals().await?;
            trail::prune(&mut transaction.connection(), key, after, limit).await.map(Some)
        };
        let pruned = self.0.driver.transact(work).await?;
        Ok(pruned.unwrap_or(AuditPruned { seals: 0, after: None }))
    }
}
