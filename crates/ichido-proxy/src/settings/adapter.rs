//! The adapter's operations, each with its policy and identity, from flags and files.

use std::sync::Arc;

use http::Method;
use http::header::HeaderName;
use ichido_boundary::{Boundary, Enabled, FingerprintInput, Guarantee, Operation, OperationClass, owner};
use ichido_core::json::CanonicalForm;
use ichido_core::ledger::{Class, KeyNeed, OperationGuarantee, Policy, PolicyDraft, Profile};
use ichido_core::settings::ConfigErrors;

use super::identities::Identities;
use super::{Files, time};
use crate::adapter::ServiceKey;
use crate::args::Args;
use crate::filters::{FilterRules, KeyRule};
use crate::identity::Identity;
use crate::route::{Pattern, PatternError};

/// The resolved settings of an adapter.
pub(crate) struct AdapterSettings {
    /// The URL of the store.
    pub(crate) store: String,
    /// In order of precedence.
    pub(crate) operations: Vec<OperationSettings>,
    /// The header fields of a replay, if not all the stored ones are sent.
    pub(crate) replayed_fields: Option<Vec<String>>,
}

impl AdapterSettings {
    /// Returns the header fields that identify callers or are compared between requests.
    pub(super) fn relied_on(&self) -> impl Iterator<Item = HeaderName> {
        let protections = self.operations.iter().filter_map(|operation| operation.protection.as_ref());
        protections.flat_map(|protection| {
            let compared = protection.extra_inputs.iter().filter_map(|input| match input {
                FingerprintInput::Header(name) => HeaderName::from_bytes(name.as_bytes()).ok(),
                _ => None,
            });
            protection.identity.header().into_iter().chain(compared)
        })
    }
}

/// One operation.
pub(crate) struct OperationSettings {
    pub(crate) name: String,
    pub(crate) methods: Vec<Method>,
    pub(crate) pattern: Pattern,
    /// `None` if the operation changes nothing and needs no protection.
    pub(crate) protection: Option<Protection>,
}

/// How an operation is protected.
pub(crate) struct Protection {
    pub(crate) draft: PolicyDraft,
    pub(crate) identity: Arc<Identity>,
    /// Fingerprint inputs beyond the identity and the standard ones.
    pub(crate) extra_inputs: Vec<FingerprintInput>,
    pub(crate) form: CanonicalForm,
    pub(crate) max_request_bytes: Option<usize>,
    pub(crate) service_key: ServiceKey,
}

/// Resolves the adapter's flags and files.
pub(super) fn adapter(
    args: &Args,
    files: &Files,
    rules: &FilterRules,
    faults: &mut ConfigErrors,
) -> Option<AdapterSettings> {
    let both: Vec<Boundary> = files.iter().cloned().collect();
    let promises = owner(&both).map(|file| (file, &file.http.idempotency.enabled));
    let mut identities = Identities::new(args, files);
    let mut operations = Vec::new();
    let mut drafts = drafts(args, files, rules, promises.map(|(_, promises)| promises), faults);
    sort(&mut drafts, faults);
    let service_keys = [("client", ServiceKey::Clients), ("derived", ServiceKey::Derived)];
    let chosen_key = pick("--service-key", args.adapter.service_key.as_ref(), &service_keys, faults);
    for draft in drafts {
        let key_need =
            if matches!(rules.key, KeyRule::Optional) { KeyNeed::Optional } else { KeyNeed::Required };
        operations.extend(draft.finish(args, promises, key_need, chosen_key, &mut identities, faults));
    }
    identities.check_flags(faults);
    let store = args.adapter.store.clone();
    if store.is_none() {
        faults.add("--store", "the adapter needs a store for its ledger; use sqlite:FILE or postgres://…");
    }
    let subset =
        promises.and_then(|(_, promises)| promises.response_replay.response_headers_subset_allowlist.clone());
    Some(AdapterSettings { store: store?, operations, replayed_fields: subset })
}

/// An operation before its identity is known.
struct OperationDraft<'a> {
    location: String,
    name: String,
    methods: Vec<Method>,
    pattern: Pattern,
    policy: PolicyDraft,
    from_file: Option<&'a Operation>,
}

fn drafts<'a>(
    args: &Args,
    files: &'a Files,
    rules: &FilterRules,
    promises: Option<&Enabled>,
    faults: &mut ConfigErrors,
) -> Vec<OperationDraft<'a>> {
    let silent = Enabled::default();
    let promises = promises.unwrap_or(&silent);
    let mut drafts = Vec::new();
    for text in &args.adapter.operation {
        match method_and_pattern(text) {
            Ok((method, pattern)) => drafts.push(OperationDraft {
                location: format!("--operation \"{text}\""),
                name: format!("{method} {pattern}"),
                methods: vec![method],
                pattern,
                policy: Operation::default().draft(promises),
                from_file: None,
            }),
            Err(what) => faults.add("--operation", what),
        }
    }
    let file = files.sending.as_ref();
    let from_file = file.and_then(|file| file.operations.as_ref().map(|operations| (file, operations)));
    for (file, (name, operation)) in
        from_file.iter().flat_map(|(file, named)| named.iter().map(move |one| (file, one)))
    {
        let pointer = format!("/operations/{}", name.replace('~', "~0").replace('/', "~1"));
        let location = format!("{}:{}: {name}", file.file(), file.place(&pointer).at);
        drafts.extend(operation_from_file(location, name, operation, rules, promises, faults));
    }
    if drafts.is_empty() && args.adapter.operation.is_empty() {
        faults.add(
            "--operation",
            "no operation is configured, so nothing would be protected; add one, such as \"POST /v1/orders\", or pass \
             a boundary file with operations",
        );
    }
    drafts
}

fn operation_from_file<'a>(
    location: String,
    name: &str,
    operation: &'a Operation,
    rules: &FilterRules,
    promises: &Enabled,
    faults: &mut ConfigErrors,
) -> Option<OperationDraft<'a>> {
    let Some(path) = &operation.path else {
        faults.add(location, "the operation has no path; add one, such as \"/v1/orders/{id}\"");
        return None;
    };
    let pattern = faults.check(&location, Pattern::parse(path))?;
    let default = || ["POST", "PATCH"].map(str::to_owned).to_vec();
    let named =
        operation.methods.clone().or_else(|| rules.methods.state_changing.clone()).unwrap_or_else(default);
    let methods = named.iter().map(|method| Method::from_bytes(method.as_bytes()));
    let Ok(methods) = methods.collect::<Result<Vec<_>, _>>() else {
        faults.add(location, "one of its methods is not an HTTP method; use POST, PATCH and so on");
        return None;
    };
    if operation.guarantee == Some(Guarantee::Transactional) {
        faults.add(
            &location,
            "a proxy cannot commit in the service's transaction; use idempotent, keyed or none, or use the library",
        );
        return None;
    }
    let policy = operation.draft(promises);
    Some(OperationDraft {
        location,
        name: name.to_owned(),
        methods,
        pattern,
        policy,
        from_file: Some(operation),
    })
}

impl OperationDraft<'_> {
    fn finish(
        mut self,
        args: &Args,
        promises: Option<(&Boundary, &Enabled)>,
        key_need: KeyNeed,
        chosen_key: Option<ServiceKey>,
        identities: &mut Identities<'_>,
        faults: &mut ConfigErrors,
    ) -> Option<OperationSettings> {
        overlay(&mut self.policy, args, faults);
        self.policy.key = Some(key_need);
        let Self { location, name, methods, pattern, policy, from_file } = self;
        if policy.class == Class::Read {
            return Some(OperationSettings { name, methods, pattern, protection: None });
        }
        if let Some(method) = methods.iter().find(|method| method.is_safe()) {
            faults.add(&location, format!("{method} changes nothing, so it is not deduplicated; remove it"));
        }
        if let Err(errors) = Policy::build(policy.clone()) {
            for error in errors.iter() {
                // Here it is a flag.
                faults.add(&location, error.to_string().replace("short_ttl_reason", "--short-ttl-reason"));
            }
        }
        let rules = promises.map(|(file, promises)| {
            let hash = &promises.fingerprint.body_hash;
            (faults.check(file.file(), hash.body_rules()), hash.max_body_bytes_to_hash)
        });
        let (form, max_bytes) = match rules {
            Some((rules, max_bytes)) => {
                (rules?.form, max_bytes.and_then(|bytes| usize::try_from(bytes).ok()))
            }
            None => (CanonicalForm::default(), None),
        };
        let identity = identities.find(
            &location,
            from_file.and_then(|operation| operation.identity.as_ref()),
            faults,
        )?;
        let inputs = match promises {
            Some((file, promises)) => faults.check(file.file(), promises.fingerprint.inputs())?,
            None => Vec::new(),
        };
        let extra_inputs = faults.check(&location, identity.extra_inputs(&inputs))?;
        let service_key = chosen_key.unwrap_or_else(|| default_key(policy.guarantee, &identity));
        let protection = Protection {
            draft: policy,
            identity,
            extra_inputs,
            form,
            max_request_bytes: max_bytes,
            service_key,
        };
        Some(OperationSettings { name, methods, pattern, protection: Some(protection) })
    }
}

/// Applies the flags for all operations to a policy.
fn overlay(policy: &mut PolicyDraft, args: &Args, faults: &mut ConfigErrors) {
    let flags = &args.adapter;
    let classes = [
        OperationClass::Mutate,
        OperationClass::Irreversible,
        OperationClass::ExternalEffect,
        OperationClass::Billing,
    ];
    let classes = classes.map(|class| (class.as_str(), class.class()));
    policy.class = pick("--class", flags.class.as_ref(), &classes, faults).unwrap_or(policy.class);
    let modes = [OperationGuarantee::Idempotent, OperationGuarantee::Keyed, OperationGuarantee::None];
    let modes = modes.map(|mode| (mode.as_str(), mode));
    policy.guarantee = pick("--guarantee", flags.guarantee.as_ref(), &modes, faults).or(policy.guarantee);
    let profiles = Profile::ALL.map(|profile| (profile.as_str(), profile));
    policy.profile = pick("--profile", flags.profile.as_ref(), &profiles, faults).unwrap_or(policy.profile);
    let mut set = |flag: &str, text: &Option<String>, slot: &mut Option<std::time::Duration>| {
        if let Some(text) = text {
            *slot = time(flag, text, faults).or(*slot);
        }
    };
    set("--ttl", &flags.ttl, &mut policy.ttl);
    set("--keeps-keys-for", &flags.keeps_keys_for, &mut policy.keeps_keys_for);
    set("--lease", &flags.lease, &mut policy.lease);
    if flags.short_ttl_reason.is_some() {
        policy.short_ttl_reason.clone_from(&flags.short_ttl_reason);
    }
}

/// Returns the value that a flag names, or `None` if absent or unknown.
fn pick<T: Copy>(
    flag: &str,
    text: Option<&String>,
    known: &[(&str, T)],
    faults: &mut ConfigErrors,
) -> Option<T> {
    let text = text?;
    let found = known.iter().find(|(name, _)| name == text).map(|(_, value)| *value);
    if found.is_none() {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        faults.add(flag, format!("\"{text}\" is not valid; use one of: {}", names.join(", ")));
    }
    found
}

/// Picks the default key for the service.
///
/// It is the client's key if there is one caller or the service ignores keys, and a derived key otherwise.
// Spec: D7.
fn default_key(mode: Option<OperationGuarantee>, identity: &Identity) -> ServiceKey {
    if mode == Some(OperationGuarantee::Keyed) && !identity.is_single() {
        ServiceKey::Derived
    } else {
        ServiceKey::Clients
    }
}

/// Parses `POST /v1/orders/{id}`.
fn method_and_pattern(text: &str) -> Result<(Method, Pattern), String> {
    let wrong = || format!("\"{text}\" is not a method and path; write it like \"POST /v1/orders/{{id}}\"");
    let (method, path) = text.split_once(' ').ok_or_else(wrong)?;
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| wrong())?;
    let pattern = Pattern::parse(path.trim()).map_err(|error: PatternError| error.to_string())?;
    Ok((method, pattern))
}

/// Sorts operations by precedence and reports those that match the same requests.
fn sort(drafts: &mut [OperationDraft<'_>], faults: &mut ConfigErrors) {
    drafts.sort_by(|one, other| one.pattern.precedes(&other.pattern));
    for pair in drafts.windows(2) {
        let [one, other] = pair else { continue };
        let share = one.methods.iter().any(|method| other.methods.contains(method));
        if share && one.pattern.precedes(&other.pattern).is_eq() {
            faults.add(
                &one.location,
                format!("it matches the same requests as {}; keep one of them", other.name),
            );
        }
    }
    let mut names: Vec<&str> = drafts.iter().map(|draft| draft.name.as_str()).collect();
    names.sort_unstable();
    for pair in names.windows(2).filter(|pair| pair[0] == pair[1]) {
        faults.add(
            "operations",
            format!("two operations are named {}; give each operation its own name", pair[0]),
        );
    }
}
