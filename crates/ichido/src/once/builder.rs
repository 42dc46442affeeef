//! Builder of the layer. `build` validates everything and reports all errors together.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderName, Method};
use ichido_core::digest::BodyRules;
use ichido_core::json::CanonicalForm;
use ichido_core::ledger::{
    Class, KeyNeed, OnUnknown, OperationGuarantee, Policy, PolicyDraft, PolicyError, Profile, RecordName,
};

use super::BoxError;
use super::keeper::LeaseKeeper;
use super::metrics;
use super::reconcile::{ReconcileFn, ReconciledRequest};
use super::service::OnceLayer;
use super::settings::{CallerFn, CallerIdentity, Guarantee, IdentityError, OperationName, Settings, limits};
use crate::handler_tx::Pool;

/// Settings of an operation; [`Once::build`] turns them into a layer.
///
/// The identity and the class are required; everything else has a default.
#[derive(Clone)]
#[must_use = "a builder protects nothing until it is built and applied as a layer"]
pub struct Once {
    operation: OperationName,
    policy: PolicyDraft,
    has_class: bool,
    effect: Guarantee,
    claim_first: bool,
    caller: Option<CallerFn>,
    reconcile: Option<ReconcileFn>,
    methods: Vec<Method>,
    form: CanonicalForm,
    max_request_bytes: usize,
    max_response_bytes: usize,
    response_whole_within: Duration,
    echo_key: Option<bool>,
}

impl Once {
    /// Names an operation, such as `bookmarks.create`.
    ///
    /// The same key under another operation is another action.
    pub fn operation(name: impl Into<Arc<str>>) -> Self {
        Self::new(OperationName::Named(name.into()))
    }

    /// Derives the operation's name from the request, such as from its route pattern.
    pub fn operation_by(name_for: impl Fn(&Parts) -> Cow<'static, str> + Send + Sync + 'static) -> Self {
        Self::new(OperationName::By(Arc::new(name_for)))
    }

    fn new(operation: OperationName) -> Self {
        Self {
            operation,
            // The class has no default; `has_class` records whether it was set.
            policy: PolicyDraft::new(Class::Mutate),
            has_class: false,
            effect: Guarantee::None,
            claim_first: false,
            caller: None,
            reconcile: None,
            methods: vec![Method::POST, Method::PATCH],
            form: CanonicalForm::default(),
            max_request_bytes: limits::DEFAULT_MAX_REQUEST_BYTES,
            max_response_bytes: limits::DEFAULT_MAX_RESPONSE_BYTES,
            response_whole_within: limits::RESPONSE_WHOLE_WITHIN_DEFAULT,
            echo_key: None,
        }
    }

    /// Sets the whole policy, replacing earlier settings. [`Once::guarantee`] determines its mode.
    pub fn policy(self, policy: PolicyDraft) -> Self {
        Self { policy, has_class: true, ..self }
    }

    /// Sets the class of work.
    // Spec: C10.
    pub fn class(mut self, class: Class) -> Self {
        self.policy.class = class;
        self.has_class = true;
        self
    }

    /// Sets what repeating the effect would do; the default is [`Guarantee::None`].
    pub fn guarantee(self, effect: Guarantee) -> Self {
        Self { effect, ..self }
    }

    /// Claims the key before a transactional handler runs, so two nodes never run it for one key at the same time.
    ///
    /// Without it, a duplicate that arrives at another node meanwhile runs too. Its transaction is rolled back and the
    /// first outcome replayed, so what the handler does in its transaction happens once. Use it for a handler that is
    /// expensive, or that also acts outside of its transaction. For each request it costs one more commit and a second write
    /// of the key's record, and a process that dies blocks its keys until their lease ends ([`Once::lease`]). The other
    /// guarantees always claim.
    pub fn claim_first(self) -> Self {
        Self { claim_first: true, ..self }
    }

    /// Derives the identity from the request's head.
    ///
    /// It is a stable name of the caller, never an address or the bytes of a token.
    pub fn identity(
        self,
        identify: impl Fn(&Parts) -> Result<String, IdentityError> + Send + Sync + 'static,
    ) -> Self {
        self.caller(move |parts| Ok(CallerIdentity { identity: identify(parts)?, inputs: None }))
    }

    /// Derives the identity and further compared inputs, such as a tenant's claim or header.
    pub fn caller(
        self,
        caller_for: impl Fn(&Parts) -> Result<CallerIdentity, IdentityError> + Send + Sync + 'static,
    ) -> Self {
        Self { caller: Some(Arc::new(caller_for)), ..self }
    }

    /// Reads the identity from a header that a trusted proxy sets on every request.
    ///
    /// A request without it gets 403.
    pub fn identity_header(self, name: HeaderName) -> Self {
        self.identity(move |parts| {
            let mut lines = parts.headers.get_all(&name).iter();
            match (lines.next().map(http::HeaderValue::to_str), lines.next()) {
                (Some(Ok(identity)), None) if !identity.is_empty() => Ok(identity.to_owned()),
                _ => Err(IdentityError::HeaderMissing { name: name.clone() }),
            }
        })
    }

    /// Uses one identity for all requests, for a service with a single client.
    pub fn single_identity(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.identity(move |_| Ok(name.clone()))
    }

    /// Sets the API whose conventions the responses follow.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.policy.profile = profile;
        self
    }

    /// Sets whether a key is required. Without an optional key, a request runs unprotected.
    pub fn key(mut self, need: KeyNeed) -> Self {
        self.policy.key = Some(need);
        self
    }

    /// Sets how long a settled key is stored.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.policy.ttl = Some(ttl);
        self
    }

    /// Sets how long the upstream remembers a key, in keyed mode.
    pub fn keeps_keys_for(mut self, time: Duration) -> Self {
        self.policy.keeps_keys_for = Some(time);
        self
    }

    /// Sets how long a duplicate waits for the first request's outcome.
    pub fn in_flight_wait(mut self, wait: Duration) -> Self {
        self.policy.in_flight_wait = Some(wait);
        self
    }

    /// Sets how long a claim holds without renewal.
    ///
    /// A crashed process blocks its keys for that long.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.policy.lease = Some(lease);
        self
    }

    /// Sets what to do about an unknown outcome.
    pub fn on_unknown(mut self, what: OnUnknown) -> Self {
        self.policy.on_unknown = Some(what);
        self
    }

    /// Sets a function that looks up an unknown outcome when its key arrives again.
    // Spec: F2.
    pub fn reconcile<F, A>(mut self, ask: F) -> Self
    where
        F: Fn(RecordName) -> A + Send + Sync + 'static,
        A: Future<Output = Result<ReconciledRequest, BoxError>> + Send + 'static,
    {
        self.policy.on_unknown = Some(OnUnknown::Reconcile);
        self.reconcile = Some(Arc::new(move |name| Box::pin(ask(name))));
        self
    }

    /// Sets the protected methods; POST and PATCH by default. All others pass through untouched.
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        Self { methods: methods.into_iter().collect(), ..self }
    }

    /// Sets when two JSON bodies are equal: numbers, Unicode, and ignored fields.
    // Spec: C9.
    pub fn json_form(self, form: CanonicalForm) -> Self {
        Self { form, ..self }
    }

    /// Sets the largest request body; a larger one is refused before anything is done.
    pub fn max_request_bytes(self, bytes: usize) -> Self {
        Self { max_request_bytes: bytes, ..self }
    }

    /// Sets the largest stored response body.
    ///
    /// A larger one is passed on, and a replay reports that it was not stored.
    pub fn max_response_bytes(self, bytes: usize) -> Self {
        Self { max_response_bytes: bytes, ..self }
    }

    /// Sets when a response of unknown length counts as a stream.
    pub fn response_timeout(self, time: Duration) -> Self {
        Self { response_whole_within: time, ..self }
    }

    /// Sets whether responses echo the key; off by default, except in the profile [`Profile::Acp`].
    ///
    /// Use the same setting at all boundaries.
    // Spec: C5.
    pub fn echo_key(self, echo: bool) -> Self {
        Self { echo_key: Some(echo), ..self }
    }

    /// Validates the settings and builds the layer, on `&ichido` or a [`LeaseKeeper`].
    pub fn build(self, keeper: &impl AsRef<LeaseKeeper>) -> Result<OnceLayer, OnceConfigErrors> {
        let keeper = keeper.as_ref();
        let mut errors = self.config_errors(keeper);
        let (mode, pool) = match self.effect {
            Guarantee::Transactional(pool) => (OperationGuarantee::Transactional, Some(pool)),
            Guarantee::Idempotent => (OperationGuarantee::Idempotent, None),
            Guarantee::Keyed => (OperationGuarantee::Keyed, None),
            Guarantee::None => (OperationGuarantee::None, None),
        };
        let echo_key = self.echo_key.unwrap_or(self.policy.profile.echoes_key());
        let policy = Policy::build(PolicyDraft { guarantee: Some(mode), ..self.policy });
        let policy =
            policy.map_err(|found| errors.extend(found.iter().cloned().map(OnceConfigError::Policy))).ok();
        let (policy, caller) = OnceConfigErrors::or(errors, policy.zip(self.caller))?;
        if let OperationName::Named(name) = &self.operation {
            metrics::register_operation(name);
            if matches!(mode, OperationGuarantee::Keyed | OperationGuarantee::None) {
                keeper.mark_lapsed_of(name);
            }
        }
        if let Some(pool) = &pool {
            pool.warn_of_our_schema();
        }
        Ok(OnceLayer::new(Settings {
            keeper: keeper.clone(),
            operation: self.operation,
            caller,
            policy: Arc::new(policy),
            pool,
            pool_is_checked: AtomicBool::new(false),
            claim_first: self.claim_first,
            reconcile: self.reconcile,
            methods: self.methods,
            rules: BodyRules { form: self.form, max_bytes: self.max_request_bytes },
            max_response_bytes: self.max_response_bytes,
            response_whole_within: self.response_whole_within,
            echo_key,
        }))
    }

    /// Finds the errors outside of the policy.
    fn config_errors(&self, keeper: &LeaseKeeper) -> Vec<OnceConfigError> {
        let mut errors = Vec::new();
        if let OperationName::Named(name) = &self.operation
            && !is_name(name, limits::MAX_OPERATION_BYTES)
        {
            errors.push(OnceConfigError::OperationName);
        }
        if !self.has_class {
            errors.push(OnceConfigError::NoClass);
        }
        if self.caller.is_none() {
            errors.push(OnceConfigError::NoIdentity);
        }
        if self.methods.is_empty() {
            errors.push(OnceConfigError::NoMethod);
        }
        let safe = self.methods.iter().filter(|method| method.is_safe());
        errors.extend(safe.map(|method| OnceConfigError::SafeMethod { method: method.clone() }));
        for (what, bytes) in
            [("max_request_bytes", self.max_request_bytes), ("max_response_bytes", self.max_response_bytes)]
        {
            if limits::MAX_BYTES < bytes {
                errors.push(OnceConfigError::BoundTooLarge { what, bytes });
            }
        }
        let is_sqlite = keeper.store().is_sqlite();
        match &self.effect {
            Guarantee::Transactional(Pool::Postgres(_)) if is_sqlite => {
                errors.push(OnceConfigError::OtherDatabase);
            }
            Guarantee::Transactional(Pool::Sqlite(_)) if !is_sqlite => {
                errors.push(OnceConfigError::OtherDatabase);
            }
            _ => (),
        }
        let reconciles = self.policy.on_unknown == Some(OnUnknown::Reconcile);
        if reconciles != self.reconcile.is_some() {
            errors.push(OnceConfigError::ReconcileHalf);
        }
        errors
    }
}

/// Returns whether a text can name an operation or identity in the store.
pub(crate) fn is_name(text: &str, max_bytes: usize) -> bool {
    !text.is_empty() && text.len() <= max_bytes && !text.contains('\0')
}

ichido_core::debug_only! {
    Once as once { policy, effect }
}

/// Why the settings do not make a layer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OnceConfigError {
    /// The name is missing or cannot be stored.
    #[error("an operation's name must have 1 to {} bytes and no NUL", limits::MAX_OPERATION_BYTES)]
    OperationName,
    /// The class is missing.
    #[error("no class is set; call class(…) with Class::Mutate, Irreversible or ExternalEffect")]
    NoClass,
    /// The identity is missing.
    #[error(
        "no identity is set; call identity(…) to read it from the request, identity_header(…), or \
            single_identity(…) if there is only one caller"
    )]
    NoIdentity,
    /// No method would be protected.
    #[error("no method is protected; name at least one, or omit methods(…) for POST and PATCH")]
    NoMethod,
    /// A safe method has nothing to protect.
    #[error("{method} changes nothing, so it is not deduplicated; remove it from methods(…)")]
    SafeMethod {
        /// The method.
        method: Method,
    },
    /// A limit above the memory allowed for one request.
    #[error("{what} is {bytes} bytes; at most {} are allowed in memory", limits::MAX_BYTES)]
    BoundTooLarge {
        /// The limit.
        what: &'static str,
        /// Its value.
        bytes: usize,
    },
    /// The transaction could not store the outcome.
    #[error(
        "the transaction's pool and the store use different kinds of database; give the layer a pool on the \
            store's database"
    )]
    OtherDatabase,
    /// A reconcile function without the policy, or the policy without a function.
    #[error("OnUnknown::Reconcile and reconcile(…) need each other; set both or neither")]
    ReconcileHalf,
    /// The policy contradicts itself.
    #[error(transparent)]
    Policy(PolicyError),
}

/// All errors of a builder. Displays one error per line.
pub type OnceConfigErrors = crate::BuildErrors<OnceConfigError>;
