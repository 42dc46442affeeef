//! Profiles: the numbers in which idempotent APIs differ.

use std::time::Duration;

use crate::key::KeySyntax;
use crate::verdict::VerdictTable;
use crate::words;

words! {
    /// The API convention that an operation's responses follow.
    // SPEC A4, C6.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub enum Profile {
        /// Our own: 409 for a different request; for one in flight, a wait and then 202.
        #[default]
        Ichido = "ichido",
        /// The IETF draft: 422 and 409.
        Ietf = "ietf",
        /// Stripe's first API: 400 and 409.
        Stripe = "stripe",
        /// The Agentic Commerce Protocol: 422 and 409, the key is echoed, and a 5xx is never a result.
        Acp = "acp",
    }
}

/// The numbers of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileNumbers {
    /// The status for a different request under the same key.
    pub mismatch_status: u16,
    /// The status for a duplicate of an action that is still in flight.
    pub in_flight_status: u16,
    /// How long such a duplicate waits for the outcome first, by default.
    pub in_flight_wait: Duration,
    /// The status for an action whose outcome is unknown.
    pub unknown_status: u16,
    /// The status for an action that was done and whose response was not kept.
    pub not_kept_status: u16,
    /// The header that marks a replay.
    pub replay_marker: &'static str,
}

impl Profile {
    /// Returns the verdict table for clients of such servers.
    pub const fn client_table(self) -> VerdictTable {
        match self {
            Self::Ichido => VerdictTable::client(),
            // Both say 409 for in flight and 422 for another request.
            Self::Ietf | Self::Acp => VerdictTable::client_ietf(),
            Self::Stripe => VerdictTable::client_stripe(),
        }
    }

    /// Returns which keys its requests may have.
    // SPEC C1.
    pub const fn key_syntax(self) -> KeySyntax {
        match self {
            Self::Ichido | Self::Stripe | Self::Acp => KeySyntax::Visible,
            Self::Ietf => KeySyntax::AnyString,
        }
    }

    /// Whether its responses echo the key.
    pub const fn echoes_key(self) -> bool {
        matches!(self, Self::Acp)
    }

    /// Returns the profile's numbers.
    pub const fn numbers(self) -> ProfileNumbers {
        let ichido = ProfileNumbers {
            mismatch_status: 409,
            in_flight_status: 202,
            in_flight_wait: Duration::from_secs(2),
            unknown_status: 409,
            not_kept_status: 409,
            replay_marker: "Idempotency-Replayed",
        };
        let ietf = ProfileNumbers {
            mismatch_status: 422,
            in_flight_status: 409,
            in_flight_wait: Duration::ZERO,
            ..ichido
        };
        match self {
            Self::Ichido => ichido,
            Self::Ietf => ietf,
            Self::Stripe => {
                ProfileNumbers { mismatch_status: 400, replay_marker: "Idempotent-Replayed", ..ietf }
            }
            Self::Acp => ProfileNumbers { replay_marker: "Idempotent-Replayed", ..ietf },
        }
    }
}
