//! Rules for the key: it is required where the request begins, and at every hop.
// SPEC C1, C2, C8, A1.

use super::Violation;
use super::refusal::not_refused;
use crate::{Boundary, HopChain, Methods, MisspelledMember, Mode, Name, RouteOperations};

/// The methods that change nothing (RFC 9110): they need no key.
pub(crate) const SAFE_METHODS: [&str; 4] = ["GET", "HEAD", "OPTIONS", "TRACE"];

/// The HTTP methods that change state, which pass if `allowed` is missing.
const UNSAFE_METHODS: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

/// The status for a request without its key.
// SPEC A1.
const MISSING_KEY_STATUS: u16 = 400;

pub(super) fn mode_is_declared<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    const POINTER: &str = "/http/idempotency/mode";
    let found = |file: &'a Boundary| match file.http.idempotency.mode {
        Some(Mode::Disabled) => Some(Violation::new(file, POINTER, "idempotency is disabled here")),
        // The adapter's guarantees may be in the file before its own.
        None if file.name() == Name::Adapter => None,
        None => Some(Violation::new(file, POINTER, "`mode` is missing")),
        Some(Mode::ValidateOnly | Mode::Enabled) => None,
    };
    chain.files().filter_map(found).collect()
}

pub(super) fn key_is_required<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let found = |file: &'a Boundary| {
        let idempotency = &file.http.idempotency;
        let pointer = match idempotency.mode? {
            Mode::ValidateOnly if idempotency.key_requirement().is_none() => {
                "/http/idempotency/validate_only/require_header_when_state_changing".to_owned()
            }
            Mode::ValidateOnly | Mode::Enabled => idempotency.require_key_pointer(),
            Mode::Disabled => return None,
        };
        let what = "a state-changing request without a key is not refused here";
        (!idempotency.requires_key()).then(|| Violation::new(file, pointer, what))
    };
    chain.files().filter_map(found).collect()
}

pub(super) fn missing_key_is_refused<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let found = |file: &'a Boundary| {
        let idempotency = &file.http.idempotency;
        if idempotency.mode? == Mode::Disabled {
            return None;
        }
        let what = match (idempotency.on_missing_key(), idempotency.mode?) {
            // The owner refuses in any case: `require_key` says so.
            (None, Mode::Enabled | Mode::Disabled) => return None,
            (None, Mode::ValidateOnly) => "the response to a missing key is not declared".to_owned(),
            (Some(reaction), _) => match (not_refused(reaction), reaction.status) {
                (Some(what), _) => what,
                (None, Some(MISSING_KEY_STATUS)) => return None,
                (None, Some(status)) => format!("a request without a key gets {status}, not 400"),
                (None, None) => "`status` is missing".to_owned(),
            },
        };
        Some(Violation::new(file, idempotency.missing_key_pointer(), what))
    };
    chain.files().filter_map(found).collect()
}

/// A detailed `require_key` must say what proxies do: they require the key by method, for all state-changing ones.
pub(super) fn requirement_is_kept<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let mut found = Vec::new();
    for file in chain.files() {
        let idempotency = &file.http.idempotency;
        let Some(required) = idempotency.key_requirement() else { continue };
        let base = idempotency.require_key_pointer();
        let methods = &file.http.methods;
        if let Some(listed) = &required.apply_to_methods {
            let pointer = format!("{base}/apply_to_methods");
            let changing = methods.state_changing.iter().flatten();
            let without = changing.filter(|method| !listed.contains(method));
            found.extend(without.map(|method| {
                Violation::new(file, pointer.clone(), format!("{method} changes state, but is not listed"))
            }));
            let unchanging = listed.iter().enumerate().filter(|(_, method)| !methods.changes_state(method));
            found.extend(unchanging.map(|(index, method)| {
                let what = format!("{method} is not listed in `state_changing`, so no proxy requires a key");
                Violation::new(file, format!("{pointer}/{index}"), what)
            }));
        }
        if let Some(RouteOperations::Named(names)) = &required.require_header_on_route_operations {
            let pointer = format!("{base}/require_header_on_route_operations");
            found.extend(names.iter().enumerate().filter_map(|(index, name)| {
                let what = uncovered_operation(chain, methods, name)?;
                Some(Violation::new(file, format!("{pointer}/{index}"), what))
            }));
        }
    }
    found
}

/// Returns why a key would not be required for the operation; `None` if the adapter's file is not checked too.
fn uncovered_operation(chain: &HopChain<'_>, methods: &Methods, name: &str) -> Option<String> {
    let operations = chain.file(Name::Adapter)?.operations.as_ref()?;
    let Some((_, operation)) = operations.iter().find(|(known, _)| *known == name) else {
        return Some(format!("the adapter has no operation `{name}`"));
    };
    let method = operation.methods.iter().flatten().find(|method| !methods.changes_state(method))?;
    Some(format!("`{name}` has the method {method}, which is not listed in `state_changing`"))
}

pub(super) fn unsafe_methods_change_state<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    chain
        .hops()
        .filter_map(|file| {
            let methods = &file.http.methods;
            let missing: Vec<&str> = passing(methods)
                .filter(|method| !SAFE_METHODS.contains(method) && !named(methods, method))
                .collect();
            let what = match &methods.state_changing {
                _ if missing.is_empty() => return None,
                None => format!(
                    "`state_changing` is missing, but these methods are allowed: {}",
                    missing.join(", ")
                ),
                Some(_) => format!("allowed, but not listed as state-changing: {}", missing.join(", ")),
            };
            Some(Violation::new(file, "/http/methods/state_changing", what))
        })
        .collect()
}

pub(super) fn safe_methods_change_nothing<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let mut found = Vec::new();
    for file in chain.files() {
        let named = file.http.methods.state_changing.iter().flatten().enumerate();
        for (index, method) in named.filter(|(_, method)| SAFE_METHODS.contains(&method.as_str())) {
            let pointer = format!("/http/methods/state_changing/{index}");
            found.push(Violation::new(
                file,
                pointer,
                format!("{method} is a safe method and changes nothing"),
            ));
        }
    }
    found
}

pub(super) fn members_are_spelled_right<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let of_file = |file: &'a Boundary| file.misspelled_members().iter().map(move |one| (file, one));
    chain
        .files()
        .flat_map(of_file)
        .map(|(file, MisspelledMember { pointer, meant })| {
            Violation::new(
                file,
                pointer,
                format!("unknown member, which is ignored; did you mean `{meant}`?"),
            )
        })
        .collect()
}

/// Returns the methods that pass.
fn passing(methods: &Methods) -> Box<dyn Iterator<Item = &str> + '_> {
    match &methods.allowed {
        Some(allowed) => Box::new(allowed.iter().map(String::as_str)),
        None => Box::new(UNSAFE_METHODS.into_iter()),
    }
}

fn named(methods: &Methods, method: &str) -> bool {
    methods.state_changing.iter().flatten().any(|one| one == method)
}

/// Returns whether it is an HTTP method, or one that the chain's files name.
pub(super) fn is_method(chain: &HopChain<'_>, method: &str) -> bool {
    let is_of_http = SAFE_METHODS.contains(&method) || UNSAFE_METHODS.contains(&method);
    let named = chain.files().flat_map(|file| {
        let methods = &file.http.methods;
        methods.allowed.iter().chain(&methods.state_changing).flatten()
    });
    let is_spelled =
        !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
    is_of_http || (is_spelled && named.into_iter().any(|one| one == method))
}
