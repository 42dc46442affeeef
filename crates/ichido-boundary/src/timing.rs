//! How long a request may take at a boundary.

use std::time::Duration;

use super::Boundary;

/// How long all tries of the sender may take together, the waits between them included; `None` where the file does not
/// say how long one takes.
pub(super) fn in_all(file: &Boundary) -> Option<Duration> {
    let a_try = file.http.timeouts.of_a_try()?;
    let tries =
        file.http.retry.plan().map_or(a_try, |plan| {
            a_try.saturating_mul(plan.attempts.get()).saturating_add(plan.waits_in_all())
        });
    // Where only the time in all is given, it bounds the tries as well.
    match file.http.timeouts.upstream_timeout_ms {
        Some(_) => Some(tries),
        None => Some(a_try),
    }
}
