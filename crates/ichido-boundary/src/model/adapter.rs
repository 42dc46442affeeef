//! What an adapter does: its operations and their callers.

pub use ichido_core::ledger::OperationGuarantee as Guarantee;
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

one_of! { Guarantee }

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
        /// Where the caller's identity comes from.
        source: Option<IdentitySource>,
        /// The name of the header, of the claim, of the API key's header, or of the single caller. Several claims can
        /// identify the caller together (`["tenant_id", "sub"]`); a dot selects a member of a claim (`actor.actor_id`).
        name: Option<IdentityNames>,
    }
}

object! {
    /// One operation that can be requested.
    Operation {
        /// The methods of the operation. Default: all state-changing methods.
        methods: Option<Vec<String>>,
        /// The path pattern, such as `/v1/orders/{id}`.
        path: Option<String>,
        /// The kind of work.
        class: Option<OperationClass>,
        /// What repeating the effect would do. Default: `none`.
        guarantee: Option<Guarantee>,
        /// The caller's identity, if this operation has its own.
        identity: Option<Identity>,
        /// How long its outcomes are kept, if this operation has its own time.
        ttl: Option<Ttl>,
        /// How long the service keeps a key, if the guarantee is `keyed`.
        keeps_keys_for: Option<Length>,
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
            guarantee: self.guarantee,
            ttl: ttl.map(Ttl::length),
            short_ttl_reason: ttl.and_then(|ttl| ttl.reason.clone()),
            keeps_keys_for: self.keeps_keys_for.as_ref().map(Length::length),
            in_flight_wait: guarantees.in_flight_wait(),
            ..PolicyDraft::new(class)
        }
    }
}
