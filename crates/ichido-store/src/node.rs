//! What the nodes of one database tell each other: that they live, and how fast a destination may be called.
//!
//! Guarantee: of two nodes that write a pace over the same version, one succeeds and the other is told, so no change is lost.

use ichido_core::time::Timestamp;
use uuid::Uuid;

/// A node as it was last heard of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its id, new for each start of the program.
    pub id: Uuid,
    /// Its name, for people.
    pub name: String,
    /// When it was first heard of.
    pub started_at: Timestamp,
    /// When it was last heard of.
    pub seen_at: Timestamp,
}

/// A destination's pace, the same for all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPace {
    /// Which writing of it this is; the next one must name it.
    pub version: i64,
    /// The pace, in the words of whoever wrote it.
    pub bytes: Vec<u8>,
}

impl SharedPace {
    /// The version that a first writing names.
    pub const NEVER_WRITTEN: i64 = 0;
}
