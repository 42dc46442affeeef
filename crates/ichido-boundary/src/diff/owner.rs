//! Changes to what the owner of the outcome guarantees.

use ichido_core::json::{Numbers, Unicode};

use super::render::shorter;
use super::{Loosening, Pair, list, loosening, lost, lost_names};
use crate::{BodyHash, Boundary, Enabled, Mode};

pub(super) fn compare(Pair { before, after, .. }: &Pair<'_>) -> Vec<Loosening> {
    let is_owner = |file: &Boundary| file.http.idempotency.mode == Some(Mode::Enabled);
    if !is_owner(before) || !is_owner(after) {
        return Vec::new();
    }
    let base = after.http.idempotency.enabled_pointer();
    let (old, new) = (&before.http.idempotency.enabled, &after.http.idempotency.enabled);
    let (old_hash, new_hash) = (&old.fingerprint.body_hash, &new.fingerprint.body_hash);
    let mut found = Vec::new();
    for input in lost_names(list(old.fingerprint.include.as_ref()), list(new.fingerprint.include.as_ref())) {
        let what = format!("`{input}`: was in the fingerprint, now is not");
        found.push(loosening("ICH-B030", format!("{base}/fingerprint/include"), what));
    }
    found.extend(form(old_hash, new_hash, &format!("{base}/fingerprint/body_hash")));
    found.extend(duplicate_responses(old, new, base));
    let shorter_ttl = shorter("retention of outcomes", old.ttl(), new.ttl());
    found.extend(shorter_ttl.map(|what| loosening("ICH-B052", format!("{base}/storage/ttl"), what)));
    found
}

/// Finds changes to what is hashed of a body.
///
/// Different requests must not become equal, and a retry of an earlier request must not become a new one.
fn form(old: &BodyHash, new: &BodyHash, base: &str) -> Vec<Loosening> {
    let mut found = Vec::new();
    for member in lost(list(new.input.leave_out.as_ref()), list(old.input.leave_out.as_ref())) {
        let what = format!("`{member}` in the body: was hashed, now left out");
        found.push(loosening("ICH-B033", format!("{base}/input/leave_out"), what));
    }
    if let (Some(was), Some(is)) = (old.max_body_bytes_to_hash, new.max_body_bytes_to_hash)
        && was != is
    {
        let why = if is < was {
            "a retry with a body between the two sizes is refused and does not get its outcome"
        } else {
            "more bytes are read before a body is refused"
        };
        let what = format!("maximum body size in bytes: was {was}, now {is}; {why}");
        found.push(loosening("ICH-B035", format!("{base}/max_body_bytes_to_hash"), what));
    }
    let (Ok(was), Ok(is)) = (old.body_rules(), new.body_rules()) else {
        return found;
    };
    let encoding = format!("{base}/input/encoding");
    if let (Some(was), Some(is)) = (&old.input.encoding.r#type, &new.input.encoding.r#type)
        && is_jcs(was) != is_jcs(is)
    {
        let what = format!("canonical form of the body: was {was}, now {is}");
        found.push(loosening("ICH-B033", format!("{encoding}/type"), what));
    }
    if strictness(is.form.numbers) < strictness(was.form.numbers) {
        let what = format!("numbers: was {}, now {}", numbers(was.form.numbers), numbers(is.form.numbers));
        found.push(loosening("ICH-B034", format!("{encoding}/rules/number_representation"), what));
    }
    if was.form.unicode != is.form.unicode {
        let what = format!("strings: was {}, now {}", unicode(was.form.unicode), unicode(is.form.unicode));
        found.push(loosening("ICH-B033", format!("{encoding}/rules/unicode_normalization"), what));
    }
    found
}

fn is_jcs(encoding: &str) -> bool {
    !encoding.eq_ignore_ascii_case("canonical_json")
}

const fn strictness(numbers: Numbers) -> u8 {
    match numbers {
        Numbers::Double => 0,
        Numbers::Exact => 1,
        Numbers::ExactNoExponent => 2,
    }
}

const fn numbers(numbers: Numbers) -> &'static str {
    match numbers {
        Numbers::Double => "compared as doubles",
        Numbers::Exact => "compared exactly",
        Numbers::ExactNoExponent => "compared exactly, with exponents refused",
    }
}

const fn unicode(unicode: Unicode) -> &'static str {
    match unicode {
        Unicode::AsWritten => "compared as written",
        Unicode::Nfc => "compared in NFC",
    }
}

/// Finds changes to the response to a duplicate.
fn duplicate_responses(old: &Enabled, new: &Enabled, base: &str) -> Vec<Loosening> {
    let pointer = format!("{base}/response_replay/on_duplicate_while_inflight/wait_up_to_ms");
    let wait = shorter("wait of a duplicate for the outcome", old.in_flight_wait(), new.in_flight_wait());
    let mut found: Vec<Loosening> =
        wait.map(|what| loosening("ICH-B042", pointer, what)).into_iter().collect();
    let statuses = [
        (
            "a different request with a used key",
            "conflict_rule",
            old.conflict_status(),
            new.conflict_status(),
        ),
        ("a request in flight", "response_replay", old.in_flight_status(), new.in_flight_status()),
    ];
    for (what, member, was, is) in statuses {
        if let (Some(was), Some(is)) = (was, is)
            && was != is
        {
            let what = format!("the status for {what}: was {was}, now {is}; clients depend on it");
            found.push(loosening("ICH-B043", format!("{base}/{member}"), what));
        }
    }
    let pointer = format!("{base}/response_replay/response_headers_subset_allowlist");
    let replayed = list(old.response_replay.response_headers_subset_allowlist.as_ref());
    let replays = list(new.response_replay.response_headers_subset_allowlist.as_ref());
    for header in lost_names(replayed, replays) {
        let what = format!("`{header}`: was repeated by a replay, now is not");
        found.push(loosening("ICH-B044", pointer.clone(), what));
    }
    for header in lost_names(replays, replayed) {
        let what = format!("`{header}`: was not repeated by a replay, now is, to every caller with the key");
        found.push(loosening("ICH-B045", pointer.clone(), what));
    }
    found
}
