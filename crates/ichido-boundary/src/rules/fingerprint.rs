//! Rules for fingerprints: what makes two requests the same is explicit and strong enough.
// SPEC C3, C9, C12.

pub(super) mod input;

use ichido_core::json::Numbers;

use super::refusal::not_refused;
use super::{Violation, in_guarantees};
use crate::{Enabled, FingerprintInput, HopChain};

fn include(guarantees: &Enabled) -> impl Iterator<Item = &str> {
    guarantees.fingerprint.include.iter().flatten().map(String::as_str)
}

pub(super) fn inputs_are_there<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let mut found = Vec::new();
    for (file, guarantees, base) in chain.owners() {
        let inputs: Vec<_> =
            include(guarantees).filter_map(|one| FingerprintInput::parse(one).ok()).collect();
        let claims = input::identity_claims(chain);
        let asks = inputs.iter().any(|one| input::is_caller(one) || input::is_identity_header(chain, one));
        let wanted: [(&str, bool); 4] = [
            // If the adapter names its claim, that claim is required.
            ("the caller (`claims.sub` or `identity`)", asks || !claims.is_empty()),
            ("`route.operation`", inputs.contains(&FingerprintInput::Operation)),
            ("`idempotency-key`", inputs.contains(&FingerprintInput::Key)),
            ("`body_hash`", inputs.contains(&FingerprintInput::BodyHash)),
        ];
        let mut missing: Vec<String> =
            wanted.iter().filter(|(_, is_there)| !is_there).map(|(name, _)| (*name).to_owned()).collect();
        let unnamed = claims.iter().filter(|(_, claim)| !inputs.iter().any(|one| input::names(one, claim)));
        missing.extend(unnamed.map(|(adapter, claim)| {
            format!("`claims.{claim}`, with which {} identifies the caller", adapter.name())
        }));
        if !missing.is_empty() {
            let pointer = format!("{base}/fingerprint/include");
            found.push(Violation::new(file, pointer, format!("missing: {}", missing.join(", "))));
        }
    }
    found
}

pub(super) fn inputs_are_stable<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    in_guarantees(chain, |guarantees| {
        include(guarantees).enumerate().filter_map(|(index, one)| {
            let what = match () {
                () if input::is_nameless(one) => format!("`{one}` does not name a single value"),
                () if input::changes(one) => format!("`{one}` differs between attempts"),
                () => return None,
            };
            Some((format!("fingerprint/include/{index}"), what))
        })
    })
}

pub(super) fn inputs_are_read<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let mut found = Vec::new();
    for (file, guarantees, base) in chain.owners() {
        // An input that changes, or names nothing, has its own rule.
        let stable = include(guarantees)
            .enumerate()
            .filter(|(_, one)| !input::is_nameless(one) && !input::changes(one));
        found.extend(stable.filter_map(|(index, one)| {
            let what = match FingerprintInput::parse(one) {
                Ok(input) => input::unreadable_reason(chain, &input)?,
                Err(error) => error.to_string(),
            };
            Some(Violation::new(file, format!("{base}/fingerprint/include/{index}"), what))
        }));
    }
    found
}

pub(super) fn hash_is_strong<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    in_guarantees(chain, |guarantees| {
        let what = match guarantees.fingerprint.body_hash.algorithm.as_deref() {
            Some(algorithm) if is_sha256(algorithm) => return None,
            Some(algorithm) => format!("`{algorithm}` is not sha256"),
            None => "`algorithm` is missing".to_owned(),
        };
        Some(("fingerprint/body_hash/algorithm", what))
    })
}

fn is_sha256(algorithm: &str) -> bool {
    ["sha256", "sha-256", "sha_256"].iter().any(|one| one.eq_ignore_ascii_case(algorithm))
}

pub(super) fn normal_form_is_declared<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    in_guarantees(chain, |guarantees| {
        let body_hash = &guarantees.fingerprint.body_hash;
        let encoding = &body_hash.input.encoding;
        let declared = [
            ("type", encoding.r#type.is_some()),
            ("rules/object_member_order", encoding.rules.object_member_order.is_some()),
            ("rules/number_representation", encoding.rules.number_representation.is_some()),
        ];
        // RFC 8785 specifies the details itself.
        let is_whole = encoding.r#type.as_deref().is_some_and(is_jcs);
        let silent = declared
            .into_iter()
            .filter(move |(member, is_declared)| !is_declared && (*member == "type" || !is_whole));
        let silent = silent.map(|(member, _)| {
            let name = member.rsplit('/').next().unwrap_or(member);
            (format!("input/encoding/{member}"), format!("`{name}` is missing"))
        });
        let wrong = body_hash.body_rules_errors().into_iter();
        let wrong = wrong.map(|error| (error.member().replace('.', "/"), error.to_string()));
        silent.chain(wrong).map(|(member, what)| (format!("fingerprint/body_hash/{member}"), what))
    })
}

fn is_jcs(encoding: &str) -> bool {
    ["jcs", "rfc8785"].iter().any(|one| one.eq_ignore_ascii_case(encoding))
}

pub(super) fn numbers_are_exact<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    in_guarantees(chain, |guarantees| {
        let body_hash = &guarantees.fingerprint.body_hash;
        let is_partners_form = body_hash.input.encoding.r#type.as_deref().is_some_and(is_jcs);
        let numbers = body_hash.body_rules().ok()?.form.numbers;
        let pointer = "fingerprint/body_hash/input/encoding/rules/number_representation";
        let what = "different integers above 2^53 count as equal";
        (numbers == Numbers::Double && !is_partners_form).then_some((pointer, what))
    })
}

pub(super) fn large_bodies_are_refused<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    in_guarantees(chain, |guarantees| {
        let body_hash = &guarantees.fingerprint.body_hash;
        let bound = match body_hash.max_body_bytes_to_hash {
            None => Some("`max_body_bytes_to_hash` is missing".to_owned()),
            Some(0) => Some("the limit is 0, so nothing is hashed".to_owned()),
            Some(_) => None,
        };
        let reaction = match &body_hash.on_body_too_large {
            None => Some("`on_body_too_large` is missing".to_owned()),
            Some(reaction) => not_refused(reaction),
        };
        let wrong = [("max_body_bytes_to_hash", bound), ("on_body_too_large", reaction)];
        wrong
            .into_iter()
            .filter_map(|(member, what)| Some((format!("fingerprint/body_hash/{member}"), what?)))
    })
}
