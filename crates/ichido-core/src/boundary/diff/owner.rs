//! What the owner of the outcome promises.

use super::{Loose, list, loose, lost};
use crate::boundary::{BodyHash, Boundary, Mode};
use crate::json::Numbers;

pub(super) fn compare(before: &Boundary, after: &Boundary) -> Vec<Loose> {
    let is_owner = |file: &Boundary| file.http.idempotency.mode == Some(Mode::Enabled);
    if !is_owner(before) || !is_owner(after) {
        return Vec::new();
    }
    let base = after.http.idempotency.enabled_pointer();
    let (old, new) = (&before.http.idempotency.enabled, &after.http.idempotency.enabled);
    let mut found = Vec::new();
    for input in lost(list(old.fingerprint.include.as_ref()), list(new.fingerprint.include.as_ref())) {
        let what = format!("`{input}` was in the fingerprint, and is not");
        found.push(loose("ICH-B030", format!("{base}/fingerprint/include"), what));
    }
    let (old_hash, new_hash) = (&old.fingerprint.body_hash, &new.fingerprint.body_hash);
    for member in lost(list(new_hash.input.leave_out.as_ref()), list(old_hash.input.leave_out.as_ref())) {
        let what = format!("`{member}` counted in the digest, and does not");
        found.push(loose("ICH-B033", format!("{base}/fingerprint/body_hash/input/leave_out"), what));
    }
    let numbers = |body_hash: &BodyHash| body_hash.body_rules().ok().map(|rules| rules.form.numbers);
    if numbers(old_hash) != Some(Numbers::Double) && numbers(new_hash) == Some(Numbers::Double) {
        let pointer = format!("{base}/fingerprint/body_hash/input/encoding");
        found.push(loose("ICH-B034", pointer, "numbers were compared exactly, and are compared as doubles"));
    }
    let replayed = list(old.response_replay.response_headers_subset_allowlist.as_ref());
    let replays = list(new.response_replay.response_headers_subset_allowlist.as_ref());
    for header in lost(replayed, replays) {
        let pointer = format!("{base}/response_replay/response_headers_subset_allowlist");
        found.push(loose("ICH-B044", pointer, format!("`{header}` was repeated by a replay, and is not")));
    }
    if new.ttl().is_some() && new.ttl() < old.ttl() {
        let what = "outcomes are kept for less time than before";
        found.push(loose("ICH-B052", format!("{base}/storage/ttl"), what));
    }
    found
}
