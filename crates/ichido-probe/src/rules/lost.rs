//! Rules about connections and processes that end too early.

use super::with_effects;
use crate::exchange::{Cut, Step};
use crate::kit::{Kit, NotApplicable};
use crate::seen::{Judged, Seen, fail, shown};
use crate::target::{Command, Condition};

/// Concludes that the retry after a loss succeeds, with one effect.
fn one_effect(seen: &Seen<'_>, what: &str) -> Judged<String> {
    let last = seen.exchanges.len().saturating_sub(1);
    seen.response(last)?;
    seen.effects_are(0, 1)?;
    let last = seen.done(last)?;
    if !last.is_success() {
        return fail(format!("the retry got {}", shown(last)));
    }
    seen.effects_are(1, 1)?;
    Ok(with_effects(seen, what))
}

/// A request whose connection is cut, and its retry.
fn cut_and_retry(kit: &Kit<'_>, purpose: &'static str, cut: Cut) -> Vec<Step> {
    vec![Step::Send(kit.cut(purpose, 1, cut)), Step::Send(kit.polled("the retry", 1))]
}

pub(super) fn response_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    Ok(cut_and_retry(kit, "a request that is cut in its response", Cut::InResponse))
}

pub(super) fn response(seen: &Seen<'_>) -> Judged<String> {
    one_effect(seen, "the retry gets the outcome")
}

pub(super) fn connection_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let mut steps = vec![Step::Send(kit.cut("a connection without a request", 1, Cut::BeforeRequest))];
    steps.extend(cut_and_retry(kit, "a request that is cut before its response", Cut::AfterRequest));
    Ok(steps)
}

pub(super) fn connection(seen: &Seen<'_>) -> Judged<String> {
    one_effect(seen, "the retry gets the outcome")
}

pub(super) fn upload_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    if kit.body(1).len() < 2 {
        return Err("the request has no body".to_owned());
    }
    Ok(cut_and_retry(kit, "a request that is cut in its body", Cut::InRequest))
}

pub(super) fn upload(seen: &Seen<'_>) -> Judged<String> {
    one_effect(seen, "the complete request runs")
}

pub(super) fn process_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let crash = kit.command(Command::Crash)?;
    let request = kit.keyed("a request in flight when the API is killed", 1);
    let first = if let Ok(slow) = kit.provoked(Condition::Slow, request) {
        vec![Step::During(slow, vec![crash])]
    } else {
        vec![Step::Send(kit.cut("a request in flight when the API is killed", 1, Cut::AfterRequest)), crash]
    };
    Ok(first.into_iter().chain([Step::Send(kit.polled("the retry after the restart", 1))]).collect())
}

pub(super) fn process(seen: &Seen<'_>) -> Judged<String> {
    let last = seen.response(1)?;
    seen.effects_are(0, 1)?;
    // SPEC F2: an unknown outcome may be reported; it is never run again.
    if last.is_success() && !seen.is_in_flight(last) {
        seen.effects_are(1, 1)?;
    }
    Ok(with_effects(seen, &format!("the retry after the restart got {}", last.status)))
}
