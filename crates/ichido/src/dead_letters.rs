//! Bulk operations on dead letters: preflight, canary, progress, stop and audit.
//!
//! Guarantee: a letter is requeued only if its effect cannot happen twice and, once it is dead, its queue allows it. The
//! lifecycle judges each one when it is moved. A preflight counts a limited number of letters, and says if there are more. A bulk
//! operation moves all that match, a limited number at a time. It can be stopped at any
//! moment, even by a crash: completed work stays, and running it again continues with the rest, because a requeued message
//! is no longer a letter. The audit trail records who started it, with which filter, and how it ended. One operation at a
//! time works on a queue; one whose process was killed counts as abandoned after [`limits::LEASE`] of silence.
//!
//! ```
//! use ichido::dead_letters::{BulkOperation, Canary, BulkEnd, RequeuePolicies, BulkAction};
//! # use ichido_store::Store;
//! use ichido_store::dead_letter::DeadLetterFilter;
//!
//! # async fn run(store: Store) -> Result<(), Box<dyn std::error::Error>> {
//! let bulk = BulkOperation {
//!     // What the workers of the queues have published.
//!     policies: RequeuePolicies::published(&store).await?,
//!     store,
//!     action: BulkAction::Requeue { canary: Some(Canary::DEFAULT) },
//!     filter: DeadLetterFilter::default(),
//!     actor: "olivia".to_owned(),
//!     reason: Some("the broker is back".to_owned()),
//! };
//! let preflight = bulk.preflight().await?;
//! println!("{} of {} would go", preflight.eligible, preflight.matched);
//! let report = bulk.run(&preflight, || false, |progress| println!("{progress:?}")).await?;
//! assert_eq!(report.ended, BulkEnd::Done);
//! # Ok(())
//! # }
//! ```
//!
//! Start at [`BulkOperation`]. `canary` and `policy` decide, without a database or a clock.
// Spec: D17, E4.

mod bulk;
mod canary;
mod claim;
mod policy;
mod preflight;
mod record;
mod trail;
mod watch;

pub use crate::worker::{Resolution, record_resolution};
pub use bulk::{BulkAction, BulkEnd, BulkError, BulkOperation, BulkProgress, BulkReport, limits};
pub use canary::{Canary, CanaryCounts};
pub use claim::LiveBulks;
pub use policy::{RequeuePolicies, RequeuePolicy, RequeueRefusal};
pub use preflight::{Preflight, format_counts};
pub use record::{StopRequest, request_stop};
pub use trail::RecordedStart;
