//! What keeps a store well: copies of it, and a look at how its database is set up.

#![expect(clippy::unwrap_used, reason = "what a test did not expect ends it, helpers included")]

mod backup;
mod vitals;
