//! Which state a message is in, without what the state holds.

use std::fmt;

use super::State;

/// The name of a [`State`]: what is asked for in a filter, counted, and told of a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// [`State::Queued`].
    Queued,
    /// [`State::Sending`].
    Sending,
    /// [`State::Failed`].
    Failed,
    /// [`State::Parked`].
    Parked,
    /// [`State::Sent`].
    Sent,
    /// [`State::Dead`].
    Dead,
    /// [`State::Cancelled`].
    Cancelled,
}

impl Stage {
    /// All of them, in the order of a message's life.
    pub const ALL: [Self; 7] =
        [Self::Queued, Self::Sending, Self::Failed, Self::Parked, Self::Sent, Self::Dead, Self::Cancelled];

    /// The stable name, as the API, the metrics and the database have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sending => "sending",
            Self::Failed => "failed",
            Self::Parked => "parked",
            Self::Sent => "sent",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }

    /// The stage of this name, or `None` when it is no name.
    ///
    /// ```
    /// use ichido_core::lifecycle::Stage;
    ///
    /// assert_eq!(Stage::parse("parked"), Some(Stage::Parked));
    /// assert_eq!(Stage::parse("Parked"), None);
    /// ```
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.as_str() == name)
    }

    /// Whether nothing moves it on but an operator.
    pub const fn is_final(self) -> bool {
        match self {
            Self::Sent | Self::Dead | Self::Cancelled => true,
            Self::Queued | Self::Sending | Self::Failed | Self::Parked => false,
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl State {
    /// Which state it is.
    pub const fn stage(&self) -> Stage {
        match self {
            Self::Queued { .. } => Stage::Queued,
            Self::Sending { .. } => Stage::Sending,
            Self::Failed { .. } => Stage::Failed,
            Self::Parked { .. } => Stage::Parked,
            Self::Sent => Stage::Sent,
            Self::Dead { .. } => Stage::Dead,
            Self::Cancelled { .. } => Stage::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_is_read_back_by_its_name() {
        for stage in Stage::ALL {
            assert_eq!(Stage::parse(stage.as_str()), Some(stage));
            assert_eq!(stage.to_string(), stage.as_str());
        }
        assert_eq!(Stage::parse(""), None);
    }
}
