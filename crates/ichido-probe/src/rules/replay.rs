//! Rules about the response to a retry.

use ichido_core::ledger::Profile;

use super::with_effects;
use crate::exchange::{ProbeRequest, Step};
use crate::json::{respelled, two_spellings};
use crate::kit::{Kit, NotApplicable};
use crate::seen::{Judged, Seen, fail, is_echoed, is_same, not_applicable, shown};

/// What a request is for that shows whether bodies are compared at all.
const OTHER_BODY: &str = "another body under its key";
/// How often a completed request is sent again.
const RETRIES: usize = 50;

pub(super) fn retry_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    Ok(vec![Step::Send(kit.keyed("the first request", 1)), Step::Send(kit.keyed("the retry", 1))])
}

// SPEC A3, C5.
pub(super) fn retry(seen: &Seen<'_>) -> Judged<String> {
    let (first, again) = (seen.accepted(0)?, seen.response(1)?);
    seen.effects_are(1, 1)?;
    is_same(first, again, "the retry")?;
    let marker = seen.profile.numbers().replay_marker;
    // The draft has no marker.
    if seen.profile != Profile::Ietf && again.header(marker) != Some("true") {
        return fail(format!("the retry gets the same response, but without {marker}: true"));
    }
    if seen.profile != Profile::Ietf && seen.is_marked(0)? {
        return fail("the first response is marked as a replay");
    }
    let echoed = (is_echoed(seen.request(0)?, first), is_echoed(seen.request(1)?, again));
    if seen.profile == Profile::Acp && echoed != (true, true) {
        return fail("the key is not echoed");
    }
    if seen.profile == Profile::Ichido && echoed.0 != echoed.1 {
        return fail("the key is echoed in one of the two responses");
    }
    let id =
        |response: &'_ crate::exchange::ProbeResponse| response.header("x-request-id").map(str::to_owned);
    if seen.profile == Profile::Ichido && id(first).is_some() && id(first) == id(again) {
        return fail("the retry has the x-request-id of the first request");
    }
    Ok(with_effects(seen, "the same status and body"))
}

pub(super) fn many_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let mut steps = vec![Step::Send(kit.keyed("the first request", 1))];
    steps.extend((0..RETRIES).map(|_| Step::Send(kit.keyed("a retry", 1))));
    Ok(steps)
}

pub(super) fn many(seen: &Seen<'_>) -> Judged<String> {
    seen.accepted(0)?;
    seen.effects_are(1, 1)?;
    for index in 1..seen.exchanges.len() {
        let response = seen.response(index)?;
        if response.status / 100 == 5 {
            return fail(format!("retry {index} got {}", shown(response)));
        }
    }
    Ok(with_effects(seen, &format!("{} retries", seen.exchanges.len() - 1)))
}

pub(super) fn other_spelling_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let other = respelled(&kit.body(1)).ok_or("the body is not a JSON object")?;
    let with_body = |purpose, number, body: String| {
        Step::Send(ProbeRequest { body: body.into_bytes(), ..kit.keyed(purpose, number) })
    };
    let mut steps = vec![
        Step::Send(kit.keyed("the first request", 1)),
        with_body("the same JSON in another spelling", 1, other),
    ];
    if let Some((integer, decimal)) = two_spellings(&kit.body(2)) {
        steps.push(with_body("a number like 1.0", 2, decimal));
        steps.push(with_body("the same number like 1", 2, integer));
    }
    steps.extend(kit.other_body(OTHER_BODY, 1).ok().map(Step::Send));
    Ok(steps)
}

// SPEC C9.
pub(super) fn other_spelling(seen: &Seen<'_>) -> Judged<String> {
    seen.accepted(0)?;
    let last = seen.exchanges.len().saturating_sub(1);
    let has_other = seen.request(last)?.purpose == OTHER_BODY;
    let has_pair = 2 + usize::from(has_other) < seen.exchanges.len();
    // Another body that runs is another rule's matter.
    let is_other_taken = has_other && seen.response(last)?.is_success();
    // Some APIs take no decimal point where they expect an integer.
    let is_taken = has_pair && seen.response(2)?.is_success();
    // A refused decimal may block its key.
    let most = 1 + u64::from(has_pair) + u64::from(is_other_taken);
    seen.effects_are(1 + u64::from(is_taken), most)?;
    let by = compared_by(seen, 0)?;
    let of_numbers = if is_taken { Some(compared_by(seen, 2)?) } else { None };
    if is_other_taken {
        return not_applicable("another body under the same key is not refused, so bodies are not compared");
    }
    if !has_other {
        return Ok(with_effects(
            seen,
            "the other spelling gets the first response, or is refused as the profile allows",
        ));
    }
    let mut evidence = format!("bodies are compared by their {by}");
    if let Some(by) = of_numbers {
        evidence.push_str(", 1 and 1.0 by their ");
        evidence.push_str(by);
    }
    Ok(with_effects(seen, &evidence))
}

/// Says how the two spellings from `index` on were compared.
fn compared_by(seen: &Seen<'_>, index: usize) -> Judged<&'static str> {
    let (first, again) = (seen.accepted(index)?, seen.response(index + 1)?);
    let may_differ = match seen.profile {
        Profile::Ietf => true,
        // Stripe compares parameters, which are texts.
        Profile::Stripe => index == 2,
        Profile::Ichido | Profile::Acp => false,
    };
    if may_differ && again.status == seen.profile.numbers().mismatch_status {
        return Ok("bytes");
    }
    is_same(first, again, seen.request(index + 1)?.purpose)?;
    Ok("meaning")
}

/// Fields that belong to the outcome.
const OF_OUTCOME: [&str; 8] = [
    "content-type",
    "location",
    "etag",
    "content-language",
    "content-location",
    "content-disposition",
    "last-modified",
    "link",
];

pub(super) fn headers_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    Ok(vec![Step::Send(kit.keyed("the first request", 1)), Step::Send(kit.keyed("the retry", 1))])
}

pub(super) fn headers(seen: &Seen<'_>) -> Judged<String> {
    let (first, again) = (seen.accepted(0)?, seen.response(1)?);
    if first.status != again.status {
        return fail(format!("the retry got {}, not {}", again.status, first.status));
    }
    let mut repeated = Vec::new();
    for name in OF_OUTCOME {
        let (one, other): (Vec<_>, Vec<_>) = (first.lines(name).collect(), again.lines(name).collect());
        if one != other {
            let text = |lines: &[&[u8]]| String::from_utf8_lossy(&lines.join(&b", "[..])).into_owned();
            return fail(format!("{name} is \"{}\", first it was \"{}\"", text(&other), text(&one)));
        }
        repeated.extend((!one.is_empty()).then_some(name));
    }
    if seen.profile == Profile::Ichido && again.lines("set-cookie").next().is_some() {
        return fail("the retry sets a cookie again");
    }
    Ok(format!("the same status, {}", repeated.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::tests::{exchange, judged_as};
    use crate::seen::Verdict;

    #[test]
    fn spellings_of_a_number_are_compared_as_the_profile_says() {
        for (profile, is_kept) in Profile::ALL.into_iter().zip([false, true, true, false]) {
            let refused = exchange(profile.numbers().mismatch_status, "another body");
            let first = exchange(201, "1");
            let exchanges = [first.clone(), first.clone(), exchange(201, "2"), refused.clone()];
            let verdict = judged_as(profile, other_spelling, &exchanges, 2);
            assert_eq!(matches!(verdict, Verdict::Pass(_)), is_kept, "{profile}: {verdict:?}");
            let alike = [first.clone(), first.clone(), exchange(201, "2"), exchange(201, "2")];
            let verdict = judged_as(profile, other_spelling, &alike, 2);
            assert!(matches!(verdict, Verdict::Pass(_)), "{profile}: {verdict:?}");
            let invalid = [first.clone(), first, exchange(400, "an integer, please"), refused];
            let verdict = judged_as(profile, other_spelling, &invalid, 1);
            assert!(matches!(verdict, Verdict::Pass(_)), "{profile}: {verdict:?}");
        }
    }
}
