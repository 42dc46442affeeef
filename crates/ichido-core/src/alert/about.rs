//! The subject of an alert.

use std::fmt;

/// The subject of an alert, written as `queue orders`, `operation orders.create`, `destination broker` or `trail`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AlertSubject {
    /// A queue of the outbox.
    Queue(String),
    /// An operation of the ledger.
    Operation(String),
    /// A destination.
    Destination(String),
    /// The audit trail.
    Trail,
}

const TRAIL: &str = "trail";

impl AlertSubject {
    /// Parses what [`fmt::Display`] wrote; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        if text == TRAIL {
            return Some(Self::Trail);
        }
        let (kind, name) = text.split_once(' ').filter(|(_, name)| !name.is_empty())?;
        let name = name.to_owned();
        Some(match kind {
            "queue" => Self::Queue(name),
            "operation" => Self::Operation(name),
            "destination" => Self::Destination(name),
            _ => return None,
        })
    }

    /// Returns the queue, if it is one.
    pub fn queue(&self) -> Option<&str> {
        match self {
            Self::Queue(name) => Some(name),
            Self::Operation(_) | Self::Destination(_) | Self::Trail => None,
        }
    }
}

impl fmt::Display for AlertSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue(name) => write!(f, "queue {name}"),
            Self::Operation(name) => write!(f, "operation {name}"),
            Self::Destination(name) => write!(f, "destination {name}"),
            Self::Trail => f.write_str(TRAIL),
        }
    }
}
