//! What the owner of the outcome guarantees: fingerprint, replay, in-flight, conflict, retention.

use std::time::Duration;

use ichido_core::ledger::Profile;

use super::{EncodingRules, Reaction, RequireKey};
use crate::member::object;

object! {
    /// The guarantees of the outcome's owner.
    Enabled {
        /// The owner of the outcome: `adapter`.
        owner: Option<String>,
        /// Whether a state-changing request without a key is refused. It may be next to `mode` in any mode.
        require_key: Option<RequireKey>,
        /// The response to a state-changing request without a key.
        on_missing_key: Option<Reaction>,
        /// The values that must be equal for two requests with the same key to count as the same request.
        fingerprint: Fingerprint,
        /// The lock of a key while its first request is in flight.
        inflight_lock: Option<InFlightLock>,
        /// The response to a different request with the same key.
        conflict_rule: ConflictRule,
        /// The response to a duplicate.
        response_replay: ResponseReplay,
        /// Where and how long outcomes are kept.
        storage: Storage,
    }
}

object! {
    /// The values that must be equal for two requests with the same key to count as the same request.
    Fingerprint {
        /// The inputs: `identity`, `route.operation`, `idempotency-key`, `method`, `path`, `query`, `body_hash`, and any
        /// `claims.NAME` (`claims.tenant_id`, `claims.actor.actor_id`) and `headers.NAME` (`headers.x-tenant`). The
        /// adapter compares all of them.
        include: Option<Vec<String>>,
        /// How the body is hashed.
        body_hash: BodyHash,
    }
}

object! {
    /// How the body is hashed.
    BodyHash {
        /// The hash algorithm: `sha256`.
        algorithm: Option<String>,
        /// The part of the body that is hashed.
        input: Input,
        /// The maximum size of a body that is hashed, in bytes.
        max_body_bytes_to_hash: Option<u64>,
        /// The response to a larger body.
        on_body_too_large: Option<Reaction>,
    }
}

object! {
    /// The part of the body that is hashed.
    Input {
        /// The canonical form of the body.
        encoding: Encoding,
        /// JSON pointers to members that are not hashed, such as `/trace_id`.
        leave_out: Option<Vec<String>>,
    }
}

object! {
    /// The canonical form of the body.
    Encoding {
        /// The form: `canonical_json`, or `jcs` for RFC 8785. Bodies that are not JSON are hashed as they are.
        r#type: Option<String>,
        /// The rules of the canonical form.
        rules: EncodingRules,
    }
}

object! {
    /// The lock of a key while its first request is in flight.
    InFlightLock {
        /// Whether the key is locked. Default: true.
        enabled: Option<bool>,
        /// The status for a duplicate that finds the lock and does not wait.
        status_on_lock_conflict: Option<u16>,
    }
}

object! {
    /// The reaction to a key that is reused for a different request.
    ConflictRule {
        /// The refusal, which shows nothing of the stored response.
        same_key_different_fingerprint: Option<Reaction>,
    }
}

object! {
    /// The response to a duplicate.
    ResponseReplay {
        /// The response after the first request has completed: `replay`.
        on_duplicate_after_success: Option<Reaction>,
        /// The response while the first request is in flight.
        on_duplicate_while_inflight: WhileInFlight,
        /// The headers of the first response that a replay repeats.
        response_headers_subset_allowlist: Option<Vec<String>>,
    }
}

object! {
    /// The response to a duplicate of a request in flight.
    WhileInFlight {
        /// How long a duplicate waits for the outcome, in milliseconds.
        wait_up_to_ms: Option<u64>,
        /// The response after that wait: 202 in Ichido's profile, 409 in the IETF profile.
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
    /// How long outcomes are kept: the sum of the units.
    Ttl {
        /// Days.
        days: Option<u64>,
        /// Hours.
        hours: Option<u64>,
        /// Minutes.
        minutes: Option<u64>,
        // SPEC C7.
        /// The reason, if the time is shorter than 24 hours.
        reason: Option<String>,
    }
}

object! {
    /// A duration: the sum of the units.
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
        Profile::ALL.into_iter().find(|profile| {
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
