//! Rules about requests that fail, and keys that end.

use ichido_core::ledger::Profile;

use super::with_effects;
use crate::exchange::Step;
use crate::kit::{Kit, NotApplicable};
use crate::seen::{Judged, Seen, fail, is_same, not_applicable, shown};
use crate::target::{Command, Condition};

pub(super) fn invalid_body_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    if serde_json::from_str::<serde_json::Value>(&kit.body(1)).is_err() {
        return Err("the body is not JSON, so the probe cannot make an invalid one".to_owned());
    }
    let mut invalid = kit.keyed("a request with an invalid body", 1);
    invalid.body.pop();
    Ok(vec![kit.control(), Step::Send(invalid), Step::Send(kit.polled("the corrected request", 1))])
}

pub(super) fn invalid_body(seen: &Seen<'_>) -> Judged<String> {
    seen.control()?;
    let (first, fixed) = (seen.response(1)?, seen.response(2)?);
    if first.status / 100 != 4 {
        return not_applicable(format!("the API does not refuse an incomplete JSON body: {}", shown(first)));
    }
    let may_repeat = matches!(seen.profile, Profile::Ietf | Profile::Stripe);
    let is_repeated = (first.status, &first.body) == (fixed.status, &fixed.body);
    if fixed.is_success() {
        seen.effects_are(2, 2)?;
        return Ok(with_effects(seen, "the corrected request runs"));
    }
    seen.effects_are(1, 1)?;
    if fixed.status == seen.profile.numbers().mismatch_status && (may_repeat || !is_repeated) {
        return Ok(with_effects(seen, &format!("the corrected request got {}", fixed.status)));
    }
    if may_repeat && is_repeated {
        return Ok(with_effects(seen, "the refusal is repeated"));
    }
    fail(format!("the corrected request got {}", shown(fixed)))
}

pub(super) fn after_effect_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let failing = kit.provoked(Condition::Fail, kit.keyed("a request that fails", 1))?;
    Ok(vec![kit.control(), Step::Send(failing), Step::Send(kit.polled("the retry", 1))])
}

// SPEC F2.
pub(super) fn after_effect(seen: &Seen<'_>) -> Judged<String> {
    seen.control()?;
    let (first, again) = (seen.response(1)?, seen.any_response(2)?);
    if first.status / 100 != 5 {
        return not_applicable(format!("--provoke fail did not make it fail: {}", shown(first)));
    }
    seen.effects_are(1, 2)?;
    let is_kept = (first.status, &first.body) == (again.status, &again.body);
    match seen.profile {
        Profile::Acp if !again.is_success() => {
            fail(format!("the retry after a 5xx did not run: {}", shown(again)))
        }
        Profile::Stripe if !is_kept => {
            fail(format!("the retry got {} instead of the {}", shown(again), first.status))
        }
        _ => Ok(with_effects(seen, &format!("the retry after {} got {}", first.status, again.status))),
    }
}

pub(super) fn limited_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let limited = kit.provoked(Condition::Limit, kit.keyed("a request that is limited", 1))?;
    Ok(vec![kit.control(), Step::Send(limited), Step::Send(kit.polled("the retry", 1))])
}

pub(super) fn limited(seen: &Seen<'_>) -> Judged<String> {
    seen.control()?;
    let (first, again) = (seen.response(1)?, seen.any_response(2)?);
    if first.status != 429 {
        return not_applicable(format!("--provoke limit did not get 429: {}", shown(first)));
    }
    if !again.is_success() {
        return fail(format!("the retry after 429 got {}", shown(again)));
    }
    seen.effects_are(2, 2)?;
    Ok(with_effects(seen, "the retry runs"))
}

pub(super) fn store_outage_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    Ok(vec![
        kit.control(),
        kit.command(Command::Outage)?,
        Step::Send(kit.once("a request while the store is down", 1)),
        kit.command(Command::Recover)?,
        Step::Send(kit.polled("the retry", 1)),
    ])
}

pub(super) fn store_outage(seen: &Seen<'_>) -> Judged<String> {
    seen.control()?;
    let (during, after) = (seen.response(1)?, seen.response(2)?);
    if during.status / 100 != 5 {
        return fail(format!("a request while the store is down got {}, not 5xx", shown(during)));
    }
    if !after.is_success() {
        return fail(format!("the retry got {}", shown(after)));
    }
    seen.effects_are(2, 2)?;
    Ok(with_effects(seen, &format!("{}, and the retry runs", during.status)))
}

pub(super) fn expired_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    Ok(vec![
        Step::Send(kit.keyed("the first request", 1)),
        kit.command(Command::Expire)?,
        Step::Send(kit.keyed("the same request after its key expired", 1)),
    ])
}

// SPEC A5.
pub(super) fn expired(seen: &Seen<'_>) -> Judged<String> {
    seen.accepted(0)?;
    let late = seen.response(1)?;
    if matches!(seen.profile, Profile::Ietf | Profile::Acp) {
        seen.effects_are(1, 2)?;
        return Ok(with_effects(seen, &format!("an expired key got {}", late.status)));
    }
    if !late.is_success() || seen.is_marked(1)? {
        return fail(format!("an expired key got {}", shown(late)));
    }
    seen.effects_are(2, 2)?;
    Ok(with_effects(seen, "an expired key is new"))
}

/// How much larger than the usual response a large one must be.
const MIN_MORE_BYTES: usize = 1_000;

pub(super) fn large_response_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let large = |purpose| kit.provoked(Condition::Large, kit.keyed(purpose, 1)).map(Step::Send);
    Ok(vec![kit.control(), large("a request with a large response")?, large("the retry")?])
}

pub(super) fn large_response(seen: &Seen<'_>) -> Judged<String> {
    let (usual, first, again) = (seen.accepted(0)?, seen.accepted(1)?, seen.response(2)?);
    let (usual, large) = (usual.body.len(), first.body.len());
    if large < usual + MIN_MORE_BYTES {
        return not_applicable(format!(
            "--provoke large did not make the response larger: {large} bytes, {usual} without it"
        ));
    }
    seen.effects_are(2, 2)?;
    if again.is_success() {
        is_same(first, again, "the retry")?;
    }
    Ok(with_effects(seen, &format!("{large} bytes, then {}", again.status)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::tests::{exchange, judged};
    use crate::seen::Verdict;

    #[test]
    fn a_response_that_is_not_large_is_not_judged() {
        let large = "x".repeat(MIN_MORE_BYTES + 1);
        let of = |first: &str, status, again: &str| {
            let exchanges = [exchange(201, "1"), exchange(201, first), exchange(status, again)];
            judged(large_response, &exchanges, 2)
        };
        assert!(matches!(of("2", 201, "2"), Verdict::NotApplicable(_)));
        assert!(matches!(of(&large, 201, &large), Verdict::Pass(_)));
        assert!(matches!(of(&large, 409, "not stored"), Verdict::Pass(_)));
        assert!(matches!(of(&large, 201, "2"), Verdict::Fail(_)));
    }
}
