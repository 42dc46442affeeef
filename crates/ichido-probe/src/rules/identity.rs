//! Rules about which requests are the same: body, key, operation, caller.

use ichido_core::ledger::Profile;
use serde_json::Value;

use super::with_effects;
use crate::exchange::{EffectCount, ProbeRequest, Step};
use crate::json::{is_link, null_and_absent, telling_values, values_without_links, with_number};
use crate::kit::{Kit, NotApplicable, OWN_BODY};
use crate::seen::{Doubt, Judged, Seen, fail, is_same, not_applicable, refused, shown, unverified};

/// Whether a response is the stored one of another request; `None` if they are alike and nothing tells.
fn is_replay(seen: &Seen<'_>, first: usize, again: usize) -> Judged<Option<bool>> {
    if seen.is_marked(again)? {
        return Ok(Some(true));
    }
    let (request, first, again) = (seen.request(again)?, seen.response(first)?, seen.response(again)?);
    if first.body != again.body {
        return Ok(Some(false));
    }
    let sent = String::from_utf8_lossy(&request.body);
    Ok(telling_values(&first.body).iter().any(|value| !sent.contains(&**value)).then_some(true))
}

pub(super) fn other_body_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let other = kit.other_body("another body under its key", 1)?;
    let own = kit.other_body(OWN_BODY, 2)?;
    Ok(vec![Step::Send(own), Step::Send(kit.keyed("the first request", 1)), Step::Send(other)])
}

// SPEC A4.
pub(super) fn other_body(seen: &Seen<'_>) -> Judged<String> {
    seen.control()?;
    seen.accepted(1)?;
    let (other, expected) = (seen.response(2)?, seen.profile.numbers().mismatch_status);
    if other.status / 100 != 4 {
        return fail(refused("another body under the same key", other, expected));
    }
    if *seen.effects == EffectCount::Counted(1) && other.status == expected {
        seen.doubt.set(Doubt::Missing);
        return unverified(
            "the effect of another body is not counted; pass --vary POINTER to a member that the counter does not read",
        );
    }
    seen.effects_are(2, 2)?;
    if other.status != expected {
        return fail(refused("another body under the same key", other, expected));
    }
    Ok(with_effects(seen, &format!("{expected}, and under a key of its own it runs")))
}

pub(super) fn other_operation_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let missing =
        "there is no other operation; pass --other-operation 'METHOD /path', one that takes the same body";
    let (method, path) = kit.target.other_operation.as_ref().ok_or(missing)?;
    let other = |purpose, number| {
        let request = kit.keyed(purpose, number);
        Step::Send(ProbeRequest { method: method.clone(), target: path.clone(), ..request })
    };
    Ok(vec![
        other("another operation under a key of its own", 2),
        Step::Send(kit.keyed("the first request", 1)),
        other("another operation under its key", 1),
    ])
}

// SPEC C3.
pub(super) fn other_operation(seen: &Seen<'_>) -> Judged<String> {
    seen.control()?;
    seen.accepted(1)?;
    let (other, expected) = (seen.response(2)?, seen.profile.numbers().mismatch_status);
    let is_refused = other.status == expected;
    match (is_replay(seen, 1, 2)?, seen.profile) {
        (Some(true), _) => fail(format!("another operation got the response of the first: {}", shown(other))),
        (_, profile) if is_refused && profile != Profile::Acp => Ok(format!("{}, refused", other.status)),
        (Some(false), _) if other.is_success() => Ok("another operation runs".to_owned()),
        (_, Profile::Acp) if !other.is_success() => {
            fail(format!("another operation does not run: {}", shown(other)))
        }
        (_, _) if !other.is_success() => fail(refused("another operation", other, expected)),
        (_, _) => unverified("both operations respond alike"),
    }
}

pub(super) fn close_values_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    // The first integer that a double cannot hold, and the one before it.
    const LAST_EXACT: u64 = 1 << 53;
    let body = kit.body(1);
    let mut steps = Vec::new();
    let mut pair = |key, of: [(&'static str, String); 2]| {
        for (purpose, body) in of {
            let mut request = kit.keyed(purpose, key);
            request.body = body.into_bytes();
            steps.push(Step::Send(request));
        }
    };
    if let Some((one, other)) = with_number(&body, LAST_EXACT).zip(with_number(&body, LAST_EXACT + 1)) {
        pair(1, [("the number 2^53", one), ("the number 2^53+1 under its key", other)]);
    }
    if let Some((null, absent)) = null_and_absent(&body) {
        pair(2, [("a member that is null", null), ("a member that is absent under its key", absent)]);
    }
    if steps.is_empty() { Err("the body is not a JSON object".to_owned()) } else { Ok(steps) }
}

// SPEC C9.
pub(super) fn close_values(seen: &Seen<'_>) -> Judged<String> {
    let mut told_apart = Vec::new();
    for pair in (0..seen.exchanges.len()).step_by(2) {
        let first = seen.response(pair)?;
        if !first.is_success() {
            continue;
        }
        let request = seen.request(pair + 1)?;
        match is_replay(seen, pair, pair + 1)? {
            Some(true) => {
                return fail(format!(
                    "{} got the response of {}",
                    request.purpose,
                    seen.request(pair)?.purpose
                ));
            }
            None => return unverified("both requests respond alike"),
            Some(false) => told_apart.push(seen.request(pair)?.purpose),
        }
    }
    if told_apart.is_empty() {
        return not_applicable("the API refuses such values");
    }
    Ok(format!("told apart: {}", told_apart.join(", ")))
}

pub(super) fn other_key_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let first = kit.keyed("the first request", 1);
    let other = kit.keyed("the same body under another key", 2);
    let other = ProbeRequest { body: first.body.clone(), target: first.target.clone(), ..other };
    Ok(vec![Step::Send(first), Step::Send(other)])
}

pub(super) fn other_key(seen: &Seen<'_>) -> Judged<String> {
    seen.accepted(0)?;
    let again = seen.response(1)?;
    if !again.is_success() || seen.is_marked(1)? {
        return fail(format!("the same body under another key got {}", shown(again)));
    }
    let is_one = *seen.effects == EffectCount::Counted(1)
        || (*seen.effects == EffectCount::NotCounted && is_replay(seen, 0, 1)? == Some(true));
    // SPEC A7.
    if is_one && seen.profile == Profile::Ichido {
        return not_applicable("the API also deduplicates by content");
    }
    seen.effects_are(2, 2)?;
    if is_one {
        return fail(format!("the same body under another key got {}", shown(again)));
    }
    Ok(with_effects(seen, "both run"))
}

pub(super) fn other_caller_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let theirs = |request: ProbeRequest| {
        let missing = "the probe knows no other caller; pass --second-identity 'HEADER: VALUE'";
        Kit::instead(request, kit.target.second_identity.as_ref(), missing).map(Step::Send)
    };
    Ok(vec![
        Step::Send(kit.keyed("the first request", 1)),
        Step::Send(kit.keyed("the same caller's request under another key", 2)),
        theirs(kit.keyed("another caller's request under another key", 3))?,
        theirs(kit.keyed("another caller's request under the same key", 1))?,
    ])
}

// SPEC C3.
pub(super) fn other_caller(seen: &Seen<'_>) -> Judged<String> {
    let (first, control, theirs) = (seen.accepted(0)?, seen.accepted(1)?, seen.response(3)?);
    // Without this, a refusal could mean that the API does not know the caller.
    seen.accepted(2)?;
    match theirs.status {
        200..300 if seen.is_marked(3)? => fail(format!("another caller got a replay: {}", shown(theirs))),
        200..300 if theirs.body != first.body => Ok("another caller gets a result of its own".to_owned()),
        200..300 if first.body != control.body => {
            fail(format!("another caller got the first caller's response: {}", shown(theirs)))
        }
        200..300 => unverified("all responses are alike"),
        _ => fail(format!("another caller learns that the key is used: {}", shown(theirs))),
    }
}

pub(super) fn fresh_credential_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let missing = "the probe has no other credential of the caller; pass --fresh-credential 'HEADER: VALUE'";
    let fresh = |purpose, number| {
        let request = kit.keyed(purpose, number);
        Kit::instead(request, kit.target.fresh_credential.as_ref(), missing).map(Step::Send)
    };
    Ok(vec![
        fresh("a request with --fresh-credential under a key of its own", 2)?,
        Step::Send(kit.keyed("the first request", 1)),
        fresh("the retry with another credential", 1)?,
    ])
}

pub(super) fn fresh_credential(seen: &Seen<'_>) -> Judged<String> {
    // Without this, a refusal could mean that the credential is not valid.
    seen.control()?;
    let (first, again) = (seen.accepted(1)?, seen.response(2)?);
    seen.effects_are(2, 2)?;
    is_same(first, again, "the retry with another credential")?;
    Ok(with_effects(seen, "the same response"))
}

pub(super) fn refusal_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let other = kit.other_body("another body under its key", 1)?;
    Ok(vec![Step::Send(kit.keyed("the first request", 1)), Step::Send(other)])
}

pub(super) fn refusal(seen: &Seen<'_>) -> Judged<String> {
    let (first, refusal) = (seen.accepted(0)?, seen.response(1)?);
    if refusal.status / 100 != 4 {
        return not_applicable(format!("nothing was refused: another body got {}", shown(refusal)));
    }
    let text = String::from_utf8_lossy(&refusal.body);
    // A link says nothing to a caller who may not follow it.
    let mut said = match values_without_links(&refusal.body) {
        none if none.is_empty() => vec![text.clone().into_owned()],
        said => said,
    };
    let lines = |headers: &[(String, Vec<u8>)]| -> Vec<String> {
        headers.iter().map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect()
    };
    said.extend(lines(&refusal.headers).into_iter().filter(|line| !is_link(line.trim_start_matches('<'))));
    let mut sent = Vec::new();
    for request in [seen.request(0)?, seen.request(1)?] {
        sent.push(String::from_utf8_lossy(&request.body).into_owned());
        // A key may come back.
        sent.extend(lines(&request.headers));
    }
    let mut stored = telling_values(&first.body);
    stored.retain(|value| !sent.iter().any(|sent| sent.contains(&**value)));
    if let Some(value) = stored.iter().find(|value| said.iter().any(|said| said.contains(&***value))) {
        return fail(format!("the refusal shows \"{value}\" of the first response"));
    }
    let parsed: Option<Value> = serde_json::from_str(&text).ok();
    let Some(Value::Object(members)) = parsed else {
        return fail(format!("the refusal is not a JSON object: {}", shown(refusal)));
    };
    if matches!(seen.profile, Profile::Ichido | Profile::Ietf) {
        let is_problem =
            refusal.header("content-type").is_some_and(|kind| kind.starts_with("application/problem+json"));
        if !is_problem {
            return fail("the refusal is not application/problem+json");
        }
        if members.get("status").is_some_and(|status| *status != refusal.status)
            || !members.contains_key("title")
        {
            return fail(format!("the problem has no title, or another status: {}", shown(refusal)));
        }
    }
    Ok(format!("{} reveals nothing", refusal.status))
}
