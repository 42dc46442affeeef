//! Rules about duplicates that arrive while the first request is in flight.

use ichido_core::ledger::Profile;

use super::with_effects;
use crate::exchange::{Exchange, ProbeResponse, Received, Step};
use crate::kit::{Kit, NotApplicable, OWN_BODY};
use crate::seen::{Judged, Seen, fail, not_applicable, refused, shown, unverified};
use crate::target::Condition;

/// How many requests are released together, one key each time.
const RACES: [usize; 3] = [2, 10, 100];
/// What a request is for that ends a race.
const LATER: &str = "a later retry";
/// How many are released together to meet one in flight.
const RACERS: usize = 10;

pub(super) fn race_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let mut steps = Vec::new();
    for (key, count) in RACES.into_iter().enumerate() {
        steps.push(Step::Together((0..count).map(|_| kit.keyed("a simultaneous request", key)).collect()));
        steps.push(Step::Send(kit.polled(LATER, key)));
    }
    Ok(steps)
}

// SPEC C6.
pub(super) fn race(seen: &Seen<'_>) -> Judged<String> {
    if !seen.exchanges.iter().any(|one| matches!(one.received, Received::Response(_))) {
        return unverified("no request got a response");
    }
    for exchange in seen.exchanges {
        match &exchange.received {
            Received::Response(response) if response.status == 500 => {
                return fail(format!("{} got {}", exchange.request.purpose, shown(response)));
            }
            _ => (),
        }
    }
    let last = seen.exchanges.len().saturating_sub(1);
    if accepted(seen).next().is_none() {
        seen.accepted(last)?;
    }
    let races: Vec<_> = seen.exchanges.split_inclusive(|one| one.request.purpose == LATER).collect();
    let count = races.len() as u64;
    seen.effects_are(count, count)?;
    let mut index = 0;
    let mut evidence = Vec::new();
    for race in races {
        index += race.len();
        let later = seen.done(index - 1)?;
        if !later.is_success() {
            return fail(format!("{LATER} got {}", shown(later)));
        }
        evidence.push(met(&race[..race.len() - 1])?);
    }
    Ok(with_effects(seen, &format!("{} requests at once", evidence.join(", "))))
}

/// Returns how many of these simultaneous requests met; at least two, or there was no race.
pub(super) fn met(race: &[Exchange]) -> Judged<String> {
    let is_answered =
        |one: &&Exchange| matches!(&one.received, Received::Response(response) if !response.is_busy());
    match (race.iter().filter(is_answered).count(), race.len()) {
        (answered, count) if answered == count => Ok(count.to_string()),
        (answered @ 0..2, count) => {
            unverified(format!("of {count} requests released together, {answered} got an answer"))
        }
        (answered, count) => Ok(format!("{answered} of {count}")),
    }
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
    steps.push(Step::Send(kit.polled(LATER, 1)));
    Ok(steps)
}

// SPEC C6.
pub(super) fn duplicate(seen: &Seen<'_>) -> Judged<String> {
    let last = seen.exchanges.len().saturating_sub(1);
    if accepted(seen).next().is_none() {
        seen.accepted(last)?;
    }
    let is_slow = seen.exchanges.len() == 3;
    if is_slow {
        seen.overlap(0, 1, Condition::Slow)?;
        seen.response(1)?;
    }
    seen.effects_are(1, 1)?;
    let last = seen.done(last)?;
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
    match (met, is_slow) {
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
    let control = kit.other_body(OWN_BODY, 2)?;
    Ok(vec![Step::Send(control), Step::During(slow, vec![Step::Send(other)])])
}

// SPEC A4.
pub(super) fn other_body(seen: &Seen<'_>) -> Judged<String> {
    seen.control()?;
    let (first, other) = (seen.response(1)?, seen.response(2)?);
    seen.overlap(1, 2, Condition::Slow)?;
    // On a busy machine the other one may be the first to arrive.
    let (first, other) = if is_done(seen, other) && !is_done(seen, first) { (2, first) } else { (1, other) };
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
    let last = kit.provoked(Condition::Outlast, kit.polled(LATER, 1))?;
    Ok(vec![Step::During(slow, vec![Step::Send(duplicate)]), Step::Send(last)])
}

pub(super) fn outlasted(seen: &Seen<'_>) -> Judged<String> {
    if accepted(seen).next().is_none() {
        seen.accepted(2)?;
    }
    seen.overlap(0, 1, Condition::Outlast)?;
    seen.done(2)?;
    seen.effects_are(1, 1)?;
    Ok(with_effects(seen, "a request that outlasts its lease"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::tests::{exchange, judged};
    use crate::seen::Verdict;

    fn later(status: u16, body: &str) -> Exchange {
        let mut later = exchange(status, body);
        later.request.purpose = LATER;
        later
    }

    fn meanwhile(exchange: Exchange) -> Exchange {
        Exchange { is_with_previous: true, ..exchange }
    }

    fn closed() -> Exchange {
        Exchange { received: Received::Closed("reset".to_owned()), ..exchange(0, "") }
    }

    #[test]
    fn duplicates_count_even_if_later_retries_get_a_conflict() {
        let exchanges = [exchange(201, "1"), exchange(201, "2"), later(409, "1")];
        let found = judged(race, &exchanges, 3);
        assert_eq!(found, Verdict::Fail("3 effects instead of 1".to_owned()));
        let found = judged(race, &exchanges, 1);
        assert_eq!(found, Verdict::Fail("a later retry is still in flight after 1 try: 409 1".to_owned()));
    }

    #[test]
    fn a_race_of_one_is_not_judged() {
        let alone = [exchange(201, "1"), closed(), later(201, "1")];
        let why = "of 2 requests released together, 1 got an answer";
        assert_eq!(judged(race, &alone, 1), Verdict::Unverified(why.to_owned()));
        let two = [exchange(201, "1"), closed(), exchange(409, "busy"), later(201, "1")];
        assert_eq!(judged(race, &two, 1), Verdict::Pass("2 of 3 requests at once, 1 effect".to_owned()));
    }

    #[test]
    fn either_of_two_bodies_in_flight_may_arrive_first() {
        let (done, refused) = (exchange(201, "1"), exchange(422, "another body"));
        for (first, other) in [(&done, &refused), (&refused, &done)] {
            let exchanges = [done.clone(), first.clone(), meanwhile(other.clone())];
            assert_eq!(judged(other_body, &exchanges, 1), Verdict::Pass("422".to_owned()));
        }
        let both = judged(other_body, &[done.clone(), done.clone(), meanwhile(done.clone())], 2);
        assert!(matches!(both, Verdict::Fail(_)), "{both:?}");
    }

    #[test]
    fn a_duplicate_that_comes_after_the_response_is_not_judged() {
        let (done, refused) = (exchange(201, "1"), exchange(422, "another body"));
        for verdict in [
            judged(other_body, &[done.clone(), done.clone(), refused], 1),
            judged(duplicate, &[done.clone(), done.clone(), done.clone()], 1),
            judged(outlasted, &[done.clone(), done.clone(), done.clone()], 1),
        ] {
            assert!(matches!(&verdict, Verdict::Unverified(why) if why.contains("--provoke")), "{verdict:?}");
        }
        let waits = judged(duplicate, &[done.clone(), meanwhile(done.clone()), done.clone()], 1);
        assert_eq!(waits, Verdict::Pass("the duplicate waits for the outcome, 1 effect".to_owned()));
        let silent = judged(duplicate, &[done.clone(), meanwhile(closed()), done], 1);
        assert_eq!(silent, Verdict::Fail("a request got no response: reset".to_owned()));
    }

    #[test]
    fn another_body_must_be_one_that_the_api_accepts() {
        let (done, invalid) = (exchange(201, "1"), exchange(422, "invalid"));
        let found = judged(other_body, &[invalid.clone(), done, meanwhile(invalid)], 1);
        assert!(matches!(found, Verdict::NotApplicable(_)), "{found:?}");
    }
}
