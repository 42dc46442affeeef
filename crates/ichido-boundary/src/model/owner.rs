//! What the owner of the outcome guarantees: fingerprint, replay, in-flight, conflict, retention.

use std::time::Duration;

use ichido_core::ledger::Profile;

use super::Reaction;
use crate::member::object;

object! {
    /// The guarantees of the outcome's owner.
    Enabled {
        /// Who completes idempotency: `adapter`.
        owner: Option<String>,
        /// Whether a state-changing request without a key is refused.
        require_key: Option<bool>,
        /// What is done about a state-changing request without a key.
        on_missing_key: Option<Reaction>,
        /// What makes two requests under one key the same request.
        fingerprint: Fingerprint,
        /// What holds a key while its first request runs.
        inflight_lock: Option<InFlightLock>,
        /// What is done when a key comes back with another request.
        conflict_rule: ConflictRule,
        /// What a duplicate is answered.
        response_replay: ResponseReplay,
        /// How long outcomes are kept.
        storage: Storage,
    }
}

object! {
    /// What makes two requests under one key the same request.
    Fingerprint {
        /// Its inputs: `identity`, `route.operation`, `idempotency-key`, `method`, `path`, `query`, `body_hash`, and of your
        /// own choice `claims.NAME` (`claims.tenant_id`, `claims.actor.actor_id`) and `headers.NAME` (`headers.x-tenant`). The
        /// adapter compares every one of them.
        include: Option<Vec<String>>,
        /// How the body is hashed.
        body_hash: BodyHash,
    }
}

object! {
    /// How the body is hashed.
    BodyHash {
        /// The hash: `sha256`.
        algorithm: Option<String>,
        /// What is hashed.
        input: Input,
        /// The largest body that is hashed.
        max_body_bytes_to_hash: Option<u64>,
        /// What is done about a larger body.
        on_body_too_large: Option<Reaction>,
    }
}

object! {
    /// What is hashed of a body.
    Input {
        /// The form a body is brought to first.
        encoding: Encoding,
        /// JSON pointers to members that do not count, such as `/trace_id`.
        leave_out: Option<Vec<String>>,
    }
}

object! {
    /// The form a body is brought to before it is hashed.
    Encoding {
        /// `canonical_json`; `jcs` for RFC 8785. Bodies that are not JSON are hashed as they are.
        r#type: Option<String>,
        /// The details of the form.
        rules: EncodingRules,
    }
}

object! {
    /// The details of canonical JSON.
    EncodingRules {
        /// How members are ordered: `sorted`.
        object_member_order: Option<String>,
        /// What makes two numbers equal: `exact`, `exact_no_exponent` (exponents are refused) or `double`.
        number_representation: Option<String>,
        /// What makes two texts equal: `as_written` or `nfc`.
        unicode_normalization: Option<String>,
    }
}

object! {
    /// The lock of a key while its first request is in flight.
    InFlightLock {
        /// Whether it is there at all; without it, it is.
        enabled: Option<bool>,
        /// The status for a duplicate that meets it and is not made to wait.
        status_on_lock_conflict: Option<u16>,
    }
}

object! {
    /// The reaction to a key that is reused for a different request.
    ConflictRule {
        /// The reaction: refused, and nothing stored is shown.
        same_key_different_fingerprint: Option<Reaction>,
    }
}

object! {
    /// The response to a duplicate.
    ResponseReplay {
        /// When the first request has its outcome: `replay`.
        on_duplicate_after_success: Option<Reaction>,
        /// When it is still running.
        on_duplicate_while_inflight: WhileInFlight,
        /// The headers of the first answer that are kept and given again.
        response_headers_subset_allowlist: Option<Vec<String>>,
    }
}

object! {
    /// The response to a duplicate of a request in flight.
    WhileInFlight {
        /// How long it waits for the outcome.
        wait_up_to_ms: Option<u64>,
        /// What it is answered then: 202 in our profile, 409 in the IETF's.
        on_timeout: Option<Reaction>,
    }
}

object! {
    /// Where outcomes are kept.
    Storage {
        /// How long outcomes are kept.
        ttl: Option<Ttl>,
    }
}

object! {
    /// How long something is kept: the sum of its units.
    Ttl {
        /// Days.
        days: Option<u64>,
        /// Hours.
        hours: Option<u64>,
        /// Minutes.
        minutes: Option<u64>,
        /// Why it may be shorter than 24 hours, where it is (SPEC C7).
        reason: Option<String>,
    }
}

object! {
    /// A length of time: the sum of its units.
    Length {
        /// Days.
        days: Option<u64>,
        /// Hours.
        hours: Option<u64>,
        /// Minutes.
        minutes: Option<u64>,
    }
}

impl Enabled {
    /// Returns whether the other says the same about this member.
    pub(crate) fn agrees(&self, other: &Self, member: &str) -> bool {
        match member {
            "owner" => self.owner == other.owner,
            "require_key" => self.require_key == other.require_key,
            "on_missing_key" => self.on_missing_key == other.on_missing_key,
            "fingerprint" => self.fingerprint == other.fingerprint,
            "inflight_lock" => self.inflight_lock == other.inflight_lock,
            "conflict_rule" => self.conflict_rule == other.conflict_rule,
            "response_replay" => self.response_replay == other.response_replay,
            "storage" => self.storage == other.storage,
            _ => self == other,
        }
    }

    /// Returns how long a duplicate waits for the first request's outcome.
    pub fn in_flight_wait(&self) -> Option<Duration> {
        self.response_replay.on_duplicate_while_inflight.wait_up_to_ms.map(Duration::from_millis)
    }

    /// Returns the status for a duplicate whose first request is still in flight.
    pub fn in_flight_status(&self) -> Option<u16> {
        let after_waiting = self.response_replay.on_duplicate_while_inflight.on_timeout.as_ref();
        let on_lock = self.inflight_lock.as_ref().and_then(|lock| lock.status_on_lock_conflict);
        after_waiting.and_then(|reaction| reaction.status).or(on_lock)
    }

    /// Returns the status for another request under the same key.
    pub fn conflict_status(&self) -> Option<u16> {
        self.conflict_rule.same_key_different_fingerprint.as_ref().and_then(|reaction| reaction.status)
    }

    /// Returns the profile with these statuses.
    ///
    /// It is ours if the file has neither status, and `None` if no profile has them.
    pub fn profile(&self) -> Option<Profile> {
        let (conflict, in_flight) = (self.conflict_status(), self.in_flight_status());
        [Profile::Ichido, Profile::Ietf, Profile::Stripe].into_iter().find(|profile| {
            let numbers = profile.numbers();
            conflict.is_none_or(|status| status == numbers.mismatch_status)
                && in_flight.is_none_or(|status| status == numbers.in_flight_status)
        })
    }

    /// Returns how long an outcome is kept.
    pub fn ttl(&self) -> Option<Duration> {
        self.storage.ttl.as_ref().map(Ttl::length)
    }
}

impl Ttl {
    /// Returns the duration; the longest possible one if the sum is longer.
    pub fn length(&self) -> Duration {
        sum(self.days, self.hours, self.minutes)
    }
}

impl Length {
    /// Returns the duration; the longest possible one if the sum is longer.
    pub fn length(&self) -> Duration {
        sum(self.days, self.hours, self.minutes)
    }
}

fn sum(days: Option<u64>, hours: Option<u64>, minutes: Option<u64>) -> Duration {
    const MINUTE: u64 = 60;
    let units = [(days, 24 * 60 * MINUTE), (hours, 60 * MINUTE), (minutes, MINUTE)];
    let seconds = units.map(|(count, unit)| count.unwrap_or(0).saturating_mul(unit));
    Duration::from_secs(seconds.into_iter().fold(0, u64::saturating_add))
}
