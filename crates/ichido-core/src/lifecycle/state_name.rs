//! The state of a message without the state's data.

use super::State;
use crate::verdict::Effect;
use crate::words;

words! {
    /// The name of a [`State`], for filters, counts and transitions.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum StateName {
        /// [`State::Queued`].
        Queued = "queued",
        /// [`State::Sending`].
        Sending = "sending",
        /// [`State::Failed`].
        Failed = "failed",
        /// [`State::Parked`].
        Parked = "parked",
        /// [`State::Sent`].
        Sent = "sent",
        /// [`State::Dead`].
        Dead = "dead",
        /// [`State::Cancelled`].
        Cancelled = "cancelled",
    }
}

impl StateName {
    /// Returns whether only an operator can move it.
    pub const fn is_final(self) -> bool {
        match self {
            Self::Sent | Self::Dead | Self::Cancelled => true,
            Self::Queued | Self::Sending | Self::Failed | Self::Parked => false,
        }
    }

    /// Names what is known of a message's effect in this state: `in_flight` means that it is not known yet.
    ///
    /// `effect` is what earlier attempts showed.
    pub fn effect_name(self, effect: Effect) -> &'static str {
        match self {
            Self::Sending => "in_flight",
            Self::Queued | Self::Failed | Self::Parked | Self::Sent | Self::Dead | Self::Cancelled => {
                effect.as_str()
            }
        }
    }
}

impl State {
    /// Returns which state it is.
    pub const fn state_name(&self) -> StateName {
        match self {
            Self::Queued { .. } => StateName::Queued,
            Self::Sending { .. } => StateName::Sending,
            Self::Failed { .. } => StateName::Failed,
            Self::Parked { .. } => StateName::Parked,
            Self::Sent => StateName::Sent,
            Self::Dead { .. } => StateName::Dead,
            Self::Cancelled { .. } => StateName::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_is_read_back_by_its_name() {
        for stage in StateName::ALL {
            assert_eq!(StateName::parse(stage.as_str()), Some(stage));
            assert_eq!(stage.to_string(), stage.as_str());
        }
        assert_eq!(StateName::parse(""), None);
    }

    #[test]
    fn effect_of_a_message_in_flight_is_not_known_yet() {
        for stage in StateName::ALL {
            for effect in [Effect::NotDone, Effect::Done, Effect::Unknown] {
                let expected = if stage == StateName::Sending { "in_flight" } else { effect.as_str() };
                assert_eq!(stage.effect_name(effect), expected);
            }
        }
    }
}
