//! What the tests of the rules share.

use std::cell::Cell;

use ichido_core::ledger::Profile;

use crate::exchange::{Cut, EffectCount, Exchange, Patience, ProbeRequest, ProbeResponse, Received};
use crate::seen::{Judged, Seen, Verdict};

/// Returns an exchange with this response.
pub(super) fn exchange(status: u16, body: &str) -> Exchange {
    let request = ProbeRequest {
        purpose: "a request",
        method: "POST".to_owned(),
        target: "/".to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
        cut: Cut::Never,
        patience: Patience::UntilDone,
    };
    let response = ProbeResponse { status, headers: Vec::new(), body: body.into() };
    let received = Received::Response(response);
    Exchange { request, received, earlier: Vec::new(), is_with_previous: false }
}

/// Concludes with the profile ietf.
pub(super) fn judged(of: fn(&Seen<'_>) -> Judged<String>, exchanges: &[Exchange], effects: u64) -> Verdict {
    judged_as(Profile::Ietf, of, exchanges, effects)
}

/// Concludes.
pub(super) fn judged_as(
    profile: Profile,
    of: fn(&Seen<'_>) -> Judged<String>,
    exchanges: &[Exchange],
    effects: u64,
) -> Verdict {
    let effects = EffectCount::Counted(effects);
    let seen = Seen { exchanges, effects: &effects, profile, doubt: Cell::default() };
    of(&seen).map_or_else(|verdict| verdict, Verdict::Pass)
}
