//! Rules about duplicates that arrive while the first request is in flight.

use ichido_core::ledger::Profile;

use super::with_effects;
use crate::exchange::{ProbeResponse, Received, Step};
use crate::kit::{Kit, NotApplicable};
use crate::seen::{Judged, Seen, Verdict, fail, not_applicable, refused, shown};
use crate::target::Condition;

/// How many requests are released together, one key each time.
const RACES: [usize; 3] = [2, 10, 100];
/// How many are released together to meet one in flight.
const RACERS: usize = 10;

pub(super) fn race_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let mut steps = Vec::new();
    for (key, count) in RACES.into_iter().enumerate() {
        steps.push(Step::Together((0..count).map(|_| kit.keyed("a simultaneous request", key)).collect()));
        steps.push(Step::Send(kit.polled("a later retry", key)));
    }
    Ok(steps)
}

// SPEC C6.
pub(super) fn race(seen: &Seen<'_>) -> Judged<String> {
    let races = i64::try_from(RACES.len()).unwrap_or(i64::MAX);
    let mut answered = 0;
    for exchange in seen.exchanges {
        let Received::Response(response) = &exchange.received else { continue };
        answered += 1;
        if response.status == 500 {
            return fail(format!("{} got {}", exchange.request.purpose, shown(response)));
        }
    }
    if answered == 0 {
        return Err(Verdict::Unverified("no request got a response".to_owned()));
    }
    let last = seen.exchanges.len().saturating_sub(1);
    if accepted(seen).next().is_none() {
        seen.accepted(last)?;
    }
    seen.effects_are(races, races)?;
    seen.done(last)?;
    Ok(with_effects(seen, "2, 10 and 100 requests at once"))
}

/// Returns the responses with an outcome.
fn accepted<'a>(seen: &Seen<'a>) -> impl Iterator<Item = &'a ProbeResponse> {
    seen.exchanges.iter().filter_map(|exchange| match &exchange.received {
        Received::Response(response) if is_done(seen, response) => Some(response),
        _ => None,
    })
}

/// Returns a duplicate of a request that is in flight, or a race of requests that may meet one.
fn meeting(kit: &Kit<'_>) -> Vec<Step> {
    match kit.provoked(Condition::Slow, kit.keyed("the first request", 1)) {
        Ok(slow) => {
            let duplicate =
                kit.provoked(Condition::Slow, kit.keyed("the duplicate", 1)).unwrap_or_else(|_| slow.clone());
            vec![Step::During(slow, vec![Step::Send(duplicate)])]
        }
        Err(_) => vec![Step::Together((0..RACERS).map(|_| kit.keyed("a simultaneous request", 1)).collect())],
    }
}

pub(super) fn duplicate_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let mut steps = meeting(kit);
    steps.push(Step::Send(kit.polled("a later retry", 1)));
    Ok(steps)
}

// SPEC C6.
pub(super) fn duplicate(seen: &Seen<'_>) -> Judged<String> {
    let last = seen.exchanges.len().saturating_sub(1);
    if accepted(seen).next().is_none() {
        seen.accepted(last)?;
    }
    seen.effects_are(1, 1)?;
    let last = seen.done(last)?;
    let is_met = seen.exchanges.len() == 3;
    let others = seen.exchanges.iter().filter_map(|exchange| match &exchange.received {
        Received::Response(response) if (response.status, &response.body) != (last.status, &last.body) => {
            Some((exchange.request.purpose, response))
        }
        _ => None,
    });
    let mut met = 0;
    for (purpose, response) in others {
        if response.is_busy() {
            continue;
        }
        is_report(seen, response).or_else(|why| fail(format!("{purpose} got {}: {why}", shown(response))))?;
        met += 1;
    }
    match (met, is_met) {
        (0, false) => not_applicable(
            "no duplicate met the first request in flight; pass --provoke slow='HEADER: VALUE'",
        ),
        (0, true) => Ok(with_effects(seen, "the duplicate waits for the outcome")),
        (count, _) => Ok(with_effects(seen, &format!("{count} learn that it is in flight"))),
    }
}

/// Says what a report of an action in flight lacks.
fn is_report(seen: &Seen<'_>, response: &ProbeResponse) -> Result<(), String> {
    if !seen.is_in_flight(response) {
        let status = seen.profile.numbers().in_flight_status;
        let header = if status == 202 { " with Idempotency-Status: processing" } else { "" };
        return Err(format!("expected {status}{header}, or the outcome"));
    }
    let must_hint = matches!(seen.profile, Profile::Ichido | Profile::Acp);
    if must_hint && response.header("retry-after").is_none() {
        Err("it lacks Retry-After".to_owned())
    } else {
        Ok(())
    }
}

pub(super) fn other_body_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let slow = kit.provoked(Condition::Slow, kit.keyed("the first request", 1))?;
    let other = kit.provoked(Condition::Slow, kit.other_body("another body under its key", 1)?)?;
    Ok(vec![Step::During(slow, vec![Step::Send(other)])])
}

// SPEC A4.
pub(super) fn other_body(seen: &Seen<'_>) -> Judged<String> {
    let (first, other) = (seen.response(0)?, seen.response(1)?);
    // On a busy machine the other one may be the first to arrive.
    let (first, other) = if is_done(seen, other) && !is_done(seen, first) { (1, first) } else { (0, other) };
    seen.accepted(first)?;
    let numbers = seen.profile.numbers();
    let may_wait = seen.profile != Profile::Ichido && other.status == numbers.in_flight_status;
    if other.status != numbers.mismatch_status && !may_wait {
        return fail(refused("another body in flight", other, numbers.mismatch_status));
    }
    Ok(format!("{}", other.status))
}

fn is_done(seen: &Seen<'_>, response: &ProbeResponse) -> bool {
    response.is_success() && !seen.is_in_flight(response)
}

pub(super) fn outlasted_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let slow = kit.provoked(Condition::Outlast, kit.keyed("the first request", 1))?;
    let duplicate = kit.provoked(Condition::Outlast, kit.polled("the duplicate", 1))?;
    let last = kit.provoked(Condition::Outlast, kit.polled("a later retry", 1))?;
    Ok(vec![Step::During(slow, vec![Step::Send(duplicate)]), Step::Send(last)])
}

pub(super) fn outlasted(seen: &Seen<'_>) -> Judged<String> {
    seen.response(2)?;
    seen.effects_are(1, 1)?;
    Ok(with_effects(seen, "a request that outlasts its lease"))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::exchange::{Cut, EffectCount, Exchange, Patience, ProbeRequest};

    fn exchange(status: u16, body: &str) -> Exchange {
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

    fn judged(of: fn(&Seen<'_>) -> Judged<String>, exchanges: &[Exchange], effects: i64) -> Verdict {
        let effects = EffectCount::Counted(effects);
        let seen =
            Seen { exchanges, effects: &effects, profile: Profile::Ietf, is_missing: Cell::new(false) };
        of(&seen).map_or_else(|verdict| verdict, Verdict::Pass)
    }

    #[test]
    fn duplicates_count_even_if_later_retries_get_a_conflict() {
        let exchanges = [exchange(201, "1"), exchange(201, "2"), exchange(409, "1")];
        let found = judged(race, &exchanges, 5);
        assert_eq!(found, Verdict::Fail("5 effects instead of 3".to_owned()));
        let found = judged(race, &exchanges, 3);
        assert_eq!(found, Verdict::Fail("a request is still in flight after 1 try: 409 1".to_owned()));
    }

    #[test]
    fn either_of_two_bodies_in_flight_may_arrive_first() {
        let (done, refused) = (exchange(201, "1"), exchange(422, "another body"));
        for exchanges in [[done.clone(), refused.clone()], [refused, done.clone()]] {
            assert_eq!(judged(other_body, &exchanges, 1), Verdict::Pass("422".to_owned()));
        }
        let both = judged(other_body, &[done.clone(), done], 2);
        assert!(matches!(both, Verdict::Fail(_)), "{both:?}");
    }
}
