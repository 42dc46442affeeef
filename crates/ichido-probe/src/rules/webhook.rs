//! Rules about a consumer of webhooks, as Standard Webhooks defines it.

use super::in_flight::met;
use super::with_effects;
use crate::exchange::{ProbeRequest, Step};
use crate::kit::{Kit, NotApplicable};
use crate::seen::{Judged, Seen, fail, not_applicable, shown};

/// Older or newer than any usual tolerance, which is five minutes.
const OUT_OF_TIME_SECS: i64 = 30 * 60;
/// How many deliveries are released together.
const TOGETHER: usize = 10;

/// A valid delivery: a refusal says something only if such a one is accepted.
fn control(kit: &Kit<'_>) -> Step {
    Step::Send(kit.delivery("the control, a valid delivery", 9, 0))
}

/// Fails unless the consumer takes the delivery.
fn is_taken(seen: &Seen<'_>, index: usize) -> Judged<()> {
    let (request, response) = (seen.request(index)?, seen.response(index)?);
    if response.is_success() { Ok(()) } else { fail(format!("{} got {}", request.purpose, shown(response))) }
}

/// Ends the judgement unless the consumer takes a valid delivery at all.
fn is_taken_at_all(seen: &Seen<'_>, index: usize) -> Judged<()> {
    let response = seen.response(index)?;
    if response.is_success() {
        return Ok(());
    }
    not_applicable(format!("a valid delivery got {}", shown(response)))
}

/// Fails unless the consumer refuses the delivery.
fn is_refused(seen: &Seen<'_>, index: usize) -> Judged<()> {
    let (request, response) = (seen.request(index)?, seen.response(index)?);
    if response.status / 100 == 4 {
        Ok(())
    } else {
        fail(format!("{} got {}, not 4xx", request.purpose, shown(response)))
    }
}

pub(super) fn signed_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    Ok(vec![Step::Send(kit.delivery("a signed delivery", 1, 0))])
}

pub(super) fn signed(seen: &Seen<'_>) -> Judged<String> {
    is_taken(seen, 0)?;
    Ok(seen.response(0)?.status.to_string())
}

pub(super) fn forged_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let without = |mut request: ProbeRequest| {
        request.headers.retain(|(name, _)| name != "webhook-signature");
        request
    };
    let mut changed = kit.delivery("a delivery whose body was changed", 2, 0);
    changed.body.push(b' ');
    let mut other = kit.delivery("a delivery with another signature", 3, 0);
    other.set("webhook-signature", "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    Ok(vec![
        control(kit),
        Step::Send(without(kit.delivery("a delivery without a signature", 1, 0))),
        Step::Send(changed),
        Step::Send(other),
    ])
}

pub(super) fn forged(seen: &Seen<'_>) -> Judged<String> {
    is_taken_at_all(seen, 0)?;
    (1..4).try_for_each(|index| is_refused(seen, index))?;
    seen.effects_are(1, 1)?;
    Ok(with_effects(seen, "all are refused, and a signed one is accepted"))
}

pub(super) fn out_of_time_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    Ok(vec![
        control(kit),
        Step::Send(kit.delivery("a delivery signed 30 minutes ago", 1, OUT_OF_TIME_SECS)),
        Step::Send(kit.delivery("a delivery signed 30 minutes ahead", 2, -OUT_OF_TIME_SECS)),
    ])
}

pub(super) fn out_of_time(seen: &Seen<'_>) -> Judged<String> {
    is_taken_at_all(seen, 0)?;
    (1..3).try_for_each(|index| is_refused(seen, index))?;
    seen.effects_are(1, 1)?;
    Ok(with_effects(seen, "both are refused, and one in time is accepted"))
}

pub(super) fn repeated_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    Ok(vec![
        Step::Send(kit.delivery("a delivery", 1, 1)),
        Step::Send(kit.delivery("the same delivery again", 1, 0)),
    ])
}

pub(super) fn repeated(seen: &Seen<'_>) -> Judged<String> {
    is_taken_at_all(seen, 0)?;
    is_taken(seen, 1)?;
    seen.effects_are(1, 1)?;
    Ok(with_effects(seen, "both are accepted"))
}

pub(super) fn together_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let all = (0..TOGETHER).map(|_| kit.delivery("a simultaneous delivery", 1, 0));
    Ok(vec![Step::Together(all.collect()), Step::Send(kit.delivery("a later delivery", 1, 0))])
}

pub(super) fn together(seen: &Seen<'_>) -> Judged<String> {
    let last = seen.exchanges.len().saturating_sub(1);
    is_taken_at_all(seen, last)?;
    seen.effects_are(1, 1)?;
    let met = met(&seen.exchanges[..last])?;
    Ok(with_effects(seen, &format!("{met} deliveries at once")))
}

pub(super) fn reordered_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    Ok(vec![
        Step::Send(kit.delivery("the second of two events, first", 2, 0)),
        Step::Send(kit.delivery("the first of two events, late", 1, 60)),
        Step::Send(kit.delivery("the second event again", 2, 0)),
    ])
}

pub(super) fn reordered(seen: &Seen<'_>) -> Judged<String> {
    is_taken_at_all(seen, 0)?;
    (1..3).try_for_each(|index| is_taken(seen, index))?;
    seen.effects_are(2, 2)?;
    Ok(with_effects(seen, "each event takes effect once"))
}
