//! Rules for operations: declared, with known words, and possible to keep.

use ichido_core::ledger::{Policy, PolicyError};

use super::path::path_problem;
use super::{Violation, adapters, operations};
use crate::rules::key::{SAFE_METHODS, is_method};
use crate::{Enabled, Guarantee, HopChain, Operation, OperationClass};

pub(in crate::rules) fn are_declared<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let mut found = Vec::new();
    for file in adapters(chain) {
        if operations(file).next().is_none() {
            found.push(Violation::new(file, "/operations", "`operations` is missing or empty"));
        }
        for (pointer, _, operation) in operations(file) {
            let silent =
                missing(operation).map(|member| (member.to_owned(), format!("`{member}` is missing")));
            let path = operation.path.as_deref().and_then(path_problem).map(|what| ("path".to_owned(), what));
            let wrong = silent.chain(path).chain(wrong_methods(chain, operation));
            found.extend(
                wrong.map(|(member, what)| Violation::new(file, format!("{pointer}/{member}"), what)),
            );
        }
    }
    found
}

/// Returns the required members that are missing.
fn missing(operation: &Operation) -> impl Iterator<Item = &'static str> {
    let is_read = operation.class == Some(OperationClass::Read);
    let is_keyed = operation.guarantee == Some(Guarantee::Keyed);
    let declared = [
        ("path", operation.path.is_some()),
        ("class", operation.class.is_some()),
        ("guarantee", operation.guarantee.is_some() || is_read),
        ("keeps_keys_for", !is_keyed || operation.keeps_keys_for.is_some()),
    ];
    declared.into_iter().filter(|(_, is_declared)| !is_declared).map(|(member, _)| member)
}

/// Returns what is wrong with the methods, by the member's pointer relative to the operation.
fn wrong_methods(chain: &HopChain<'_>, operation: &Operation) -> Vec<(String, String)> {
    let Some(methods) = &operation.methods else {
        return Vec::new();
    };
    if methods.is_empty() {
        return vec![("methods".to_owned(), "the list of methods is empty".to_owned())];
    }
    let is_read = operation.class == Some(OperationClass::Read);
    let wrong = methods.iter().enumerate().filter_map(|(index, method)| {
        let what = match () {
            () if !is_method(chain, method) => {
                format!("`{method}` is not an HTTP method; use POST, PATCH and so on")
            }
            () if is_safe(method) && operation.class.is_some() && !is_read => {
                format!("{method} changes nothing; use class `read`")
            }
            () => return None,
        };
        Some((format!("methods/{index}"), what))
    });
    wrong.collect()
}

fn is_safe(method: &str) -> bool {
    SAFE_METHODS.contains(&method)
}

pub(in crate::rules) fn can_be_kept<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let silent = Enabled::default();
    let guarantees = chain.owners().last().map_or(&silent, |(_, guarantees, _)| guarantees);
    let mut found = Vec::new();
    for file in adapters(chain) {
        for (pointer, _, operation) in operations(file) {
            if operation.class == Some(OperationClass::Read) {
                continue; // Reads are passed on unchanged: there is nothing to keep.
            }
            if operation.guarantee == Some(Guarantee::Transactional) {
                let what = "an effect behind a network call is not part of the adapter's transaction";
                found.push(Violation::new(file, format!("{pointer}/guarantee"), what));
                continue;
            }
            let errors = Policy::build(operation.draft(guarantees)).err();
            // How long outcomes are kept, and how long duplicates wait, have their own rules.
            let own = errors
                .iter()
                .flat_map(|errors| errors.iter())
                .filter(|error| matches!(error, PolicyError::UpstreamForgetsTooSoon { .. }));
            found.extend(
                own.map(|error| Violation::new(file, format!("{pointer}/keeps_keys_for"), error.to_string())),
            );
        }
    }
    found
}

pub(in crate::rules) fn reads_are_safe<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let mut found = Vec::new();
    for file in adapters(chain) {
        let reads = operations(file).filter(|(_, _, one)| one.class == Some(OperationClass::Read));
        for (pointer, _, operation) in reads {
            let Some(methods) = &operation.methods else {
                let what = "`methods` is missing, so it matches every state-changing request to its path";
                found.push(Violation::new(file, format!("{pointer}/methods"), what));
                continue;
            };
            // Another rule finds words that are not methods.
            let unsafe_ones =
                methods.iter().enumerate().filter(|(_, method)| !is_safe(method) && is_method(chain, method));
            found.extend(unsafe_ones.map(|(index, method)| {
                let what = format!("{method} may change something, but a read is not protected");
                Violation::new(file, format!("{pointer}/methods/{index}"), what)
            }));
        }
    }
    found
}
