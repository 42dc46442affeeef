//! What an adapter does: its operations and their callers.

pub use ichido_core::ledger::EffectMode as Effect;
use ichido_core::ledger::{Class, PolicyDraft};

use super::{Enabled, IdentityNames, Length, Ttl};
use crate::member::{object, one_of, words};

words! {
    /// The kind of work that an operation does.
    // SPEC C10.
    OperationClass {
        /// Changes nothing.
        Read = "read",
        /// Changes the service's own state.
        Mutate = "mutate",
        /// Cannot be undone.
        Irreversible = "irreversible",
        /// Acts on an external system.
        ExternalEffect = "external_effect",
        /// Charges somebody: an external effect.
        Billing = "billing",
    }
}

one_of! { Effect }

words! {
    /// Where the caller's identity comes from.
    IdentitySource {
        /// A header that a trusted hop sets.
        Header = "header",
        /// A claim of a verified JWT.
        JwtClaim = "jwt_claim",
        /// An API key, by its hash.
        ApiKey = "api_key",
        /// There is one caller, named in the file.
        Single = "single",
    }
}

object! {
    /// The caller's identity. Its secrets and public keys are not part of the file.
    Identity {
        /// Where the caller's stable name comes from.
        source: Option<IdentitySource>,
        /// The header's name, the claim's name, the API key's header, or the single caller's name. Several claims name the
        /// caller together (`["tenant_id", "sub"]`); a dot leads into a claim that is an object (`actor.actor_id`).
        name: Option<IdentityNames>,
    }
}

object! {
    /// One operation that can be requested.
    Operation {
        /// The methods it answers to; without it, every state-changing one.
        methods: Option<Vec<String>>,
        /// The route's pattern, such as `/v1/orders/{id}`.
        path: Option<String>,
        /// What kind of work it is.
        class: Option<OperationClass>,
        /// How its outcome becomes durable; without it, `opaque`.
        effect: Option<Effect>,
        /// Who asks, where it is not as for the others.
        identity: Option<Identity>,
        /// How long its outcomes are kept, where it is not as for the others.
        ttl: Option<Ttl>,
        /// How long the service remembers a key, where the effect is `keyed`.
        upstream_keeps_keys_for: Option<Length>,
    }
}

impl OperationClass {
    /// Returns the ledger's class.
    pub const fn class(self) -> Class {
        match self {
            Self::Read => Class::Read,
            Self::Mutate => Class::Mutate,
            Self::Irreversible => Class::Irreversible,
            Self::ExternalEffect | Self::Billing => Class::ExternalEffect,
        }
    }
}

impl Operation {
    /// Returns the policy that the file requests for this operation.
    ///
    /// `guarantees` are those of the boundary that owns the outcome.
    ///
    /// A missing class counts as an external effect, which is protected most.
    pub fn draft(&self, guarantees: &Enabled) -> PolicyDraft {
        let class = self.class.map_or(Class::ExternalEffect, OperationClass::class);
        let ttl = self.ttl.as_ref().or(guarantees.storage.ttl.as_ref());
        PolicyDraft {
            profile: guarantees.profile().unwrap_or_default(),
            mode: self.effect,
            ttl: ttl.map(Ttl::length),
            short_ttl_reason: ttl.and_then(|ttl| ttl.reason.clone()),
            upstream_keeps_keys_for: self.upstream_keeps_keys_for.as_ref().map(Length::length),
            in_flight_wait: guarantees.in_flight_wait(),
            ..PolicyDraft::new(class)
        }
    }
}
