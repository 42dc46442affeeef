//! Dead letters in bulk: what would happen, then as a canary, with progress, stoppable, and recorded (SPEC D17, E4).
//!
//! Guarantee: a letter is sent again only where its queue allows it and the effect cannot happen twice, each judged by the lifecycle
//! at the moment it is moved. A bulk takes a bounded number at a time; stopped at any moment, by whatever, what it did is done,
//! and running it again goes on with the rest, because what was requeued is no letter any more. Who began it, with which filter, and how
//! it ended are entries of the audit trail. One at a time works on a queue; one whose process was killed is known as abandoned once it
//! has been silent for [`limits::LEASE`].
//!
//! ```
//! use ichido::letters::{Bulk, Canary, Ended, Policies, Work};
//! # use ichido_store::Store;
//! use ichido_store::letter::LetterFilter;
//!
//! # async fn run(store: Store) -> Result<(), Box<dyn std::error::Error>> {
//! let bulk = Bulk {
//!     // What the workers of the queues have published.
//!     policies: Policies::published(&store).await?,
//!     store,
//!     work: Work::Requeue { canary: Some(Canary::DEFAULT) },
//!     filter: LetterFilter::default(),
//!     actor: "olivia".to_owned(),
//!     reason: Some("the broker is back".to_owned()),
//! };
//! let preflight = bulk.preflight().await?;
//! println!("{} of {} would go", preflight.would_go, preflight.matched);
//! let report = bulk.run(&preflight, || false, |progress| println!("{progress:?}")).await?;
//! assert_eq!(report.ended, Ended::Done);
//! # Ok(())
//! # }
//! ```
//!
//! Start at [`Bulk`]. `canary` and `policy` decide, and neither asks a database or a clock.

mod bulk;
mod canary;
mod claim;
mod policy;
mod preflight;
mod record;
mod watch;

pub use crate::worker::{Resolution, tell_resolved};
pub use bulk::{Bulk, BulkError, Ended, Progress, Report, Work, limits};
pub use canary::{Canary, Watched};
pub use claim::Living;
pub use policy::{Policies, QueuePolicy, Refusal};
pub use preflight::Preflight;
pub use record::{StopAsked, ask_to_stop};
