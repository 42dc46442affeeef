//! Rules about the key's header line.

use ichido_core::ledger::Profile;

use super::with_effects;
use crate::exchange::Step;
use crate::kit::{KEY, Kit, NotApplicable};
use crate::seen::{Judged, Seen, Verdict, fail, is_same, not_applicable, shown};

/// The profile says nothing about a rule.
fn says_nothing(profile: Profile) -> NotApplicable {
    format!("the profile {profile} does not say")
}

pub(super) fn missing_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    Ok(vec![kit.control(), Step::Send(kit.plain("a request without a key", 1))])
}

pub(super) fn missing(seen: &Seen<'_>) -> Judged<String> {
    seen.control()?;
    let response = seen.response(1)?;
    match seen.profile {
        Profile::Stripe if response.is_success() => {
            seen.effects_are(2, 2)?;
            Ok(with_effects(seen, "a request without a key runs"))
        }
        Profile::Stripe => not_applicable(format!("keys are required here: {}", shown(response))),
        Profile::Ietf if response.is_success() => not_applicable("keys are optional here"),
        _ if response.status == 400 => {
            seen.effects_are(1, 1)?;
            Ok(with_effects(seen, "400, and with a key it runs"))
        }
        _ => fail(format!("a request without a key got {}, not 400", shown(response))),
    }
}

pub(super) fn invalid_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let profile = kit.target.profile;
    // HTTP itself allows no control character.
    let mut keys: Vec<(&str, Vec<u8>)> =
        vec![("a key with a control character", format!("{}\x01", kit.key(2)).into_bytes())];
    // To Stripe's API, an empty key is none, and a quote is a character like others.
    if profile != Profile::Stripe {
        keys.push(("an empty key", Vec::new()));
    }
    if matches!(profile, Profile::Ichido | Profile::Ietf) {
        keys.push(("an unterminated key", format!("\"{}", kit.key(1)).into_bytes()));
        keys.push(("a key that is not ASCII", format!("{}\u{e9}", kit.key(3)).into_bytes()));
    }
    // The draft has no limit.
    if profile != Profile::Ietf {
        keys.push(("a key of 256 characters", format!("{:k<256}", kit.key(4)).into_bytes()));
    }
    let send = |(number, (purpose, key))| Step::Send(kit.with_key(purpose, number, key));
    Ok([kit.control()].into_iter().chain((1..).zip(keys).map(send)).collect())
}

pub(super) fn invalid(seen: &Seen<'_>) -> Judged<String> {
    seen.control()?;
    for index in 1..seen.exchanges.len() {
        // A server may also close the connection: bytes like these are not HTTP.
        let Some(status) = seen.status(index)? else { continue };
        // The draft names no status.
        let is_draft = seen.profile == Profile::Ietf;
        if status != 400 && !(is_draft && status / 100 == 4) {
            let expected = if is_draft { "4xx" } else { "400" };
            let (purpose, response) = (seen.request(index)?.purpose, seen.response(index)?);
            return fail(format!("{purpose} got {}, not {expected}", shown(response)));
        }
    }
    seen.effects_are(1, 1)?;
    Ok(with_effects(seen, "all are refused, and a valid one runs"))
}

pub(super) fn quoted_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let quoted = || Step::Send(kit.with_key("the quoted key", 1, format!("\"{}\"", kit.key(1))));
    let bare = || Step::Send(kit.with_key("the bare key", 1, kit.key(1)));
    match kit.target.profile {
        Profile::Ichido => Ok(vec![bare(), quoted()]),
        Profile::Ietf => Ok(vec![kit.control(), bare()]),
        profile => Err(says_nothing(profile)),
    }
}

pub(super) fn quoted(seen: &Seen<'_>) -> Judged<String> {
    if seen.profile == Profile::Ietf {
        seen.control()?;
        let response = seen.response(1)?;
        if response.status != 400 {
            return fail(format!("a bare key got {}, not 400", shown(response)));
        }
        seen.effects_are(1, 1)?;
        return Ok(with_effects(seen, "a bare key is refused, and a quoted one runs"));
    }
    same_key(seen, "the quoted key")
}

/// Concludes that two spellings are one key.
fn same_key(seen: &Seen<'_>, what: &str) -> Judged<String> {
    let (first, again) = (seen.accepted(0)?, seen.response(1)?);
    seen.effects_are(1, 1).map_err(|verdict| match verdict {
        Verdict::Fail(why) => Verdict::Fail(format!("{what} is another key: {why}")),
        other => other,
    })?;
    is_same(first, again, what)?;
    Ok(with_effects(seen, &format!("{what} is the same key")))
}

pub(super) fn two_lines_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let two = |purpose, first, second| {
        let mut request = kit.keyed(purpose, first);
        let line = kit.keyed(purpose, second).headers.into_iter().filter(|(name, _)| name == KEY);
        request.headers.extend(line);
        Step::Send(request)
    };
    Ok(vec![kit.control(), two("the same key in two lines", 1, 1), two("two keys in two lines", 2, 3)])
}

pub(super) fn two_lines(seen: &Seen<'_>) -> Judged<String> {
    let may_run = matches!(seen.profile, Profile::Stripe | Profile::Acp);
    seen.control()?;
    let mut ran = 0;
    for index in 1..3 {
        let response = seen.response(index)?;
        match response.status {
            400 => (),
            _ if may_run && response.is_success() => ran += 1,
            _ => {
                return fail(format!("{} got {}, not 400", seen.request(index)?.purpose, shown(response)));
            }
        }
    }
    seen.effects_are(1 + ran, 1 + ran)?;
    Ok(with_effects(seen, if ran == 0 { "both are refused, and one line runs" } else { "one line counts" }))
}

pub(super) fn parameter_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    if !matches!(kit.target.profile, Profile::Ichido | Profile::Ietf) {
        return Err(says_nothing(kit.target.profile));
    }
    let with_parameter = format!("\"{}\";x=1", kit.key(1));
    Ok(vec![
        Step::Send(kit.keyed("the first request", 1)),
        Step::Send(kit.with_key("the key with a parameter", 1, with_parameter)),
    ])
}

pub(super) fn parameter(seen: &Seen<'_>) -> Judged<String> {
    same_key(seen, "the key with a parameter")
}
