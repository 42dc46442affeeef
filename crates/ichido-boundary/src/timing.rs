//! How long a request may take at a boundary.

use std::time::Duration;

use super::Boundary;

/// Returns how long all attempts of the sender may take, including the waits between them.
///
/// `None` if the file does not say how long an attempt takes.
pub(super) fn total_time(file: &Boundary) -> Option<Duration> {
    let attempt = file.http.timeouts.attempt_timeout()?;
    let attempts = file.http.retry.plan().map_or(attempt, |plan| {
        attempt.saturating_mul(plan.attempts.get()).saturating_add(plan.waits_in_all())
    });
    // If only the total time is given, it also limits the attempts.
    match file.http.timeouts.upstream_timeout_ms {
        Some(_) => Some(attempts),
        None => Some(attempt),
    }
}
