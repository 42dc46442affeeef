//! What keeps a store well: copies of it, and a look at how its database is set up.

mod backup;
mod vitals;
