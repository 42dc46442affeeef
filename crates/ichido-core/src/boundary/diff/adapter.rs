//! What an adapter does.

use super::{Loose, loose, lost};
use crate::boundary::member::escape;
use crate::boundary::{Boundary, Effect, Length, Named, Operation, OperationClass, Ttl};
use crate::ledger::Class;

pub(super) fn compare(before: &Boundary, after: &Boundary) -> Vec<Loose> {
    let mut found = Vec::new();
    if before.identity.is_some() && before.identity != after.identity {
        found.push(loose("ICH-B080", "/identity", "who asks is known in another way: old keys count as new"));
    }
    for (name, old) in before.operations.iter().flat_map(Named::iter) {
        let pointer = format!("/operations/{}", escape(name));
        let mut operations = after.operations.iter().flat_map(Named::iter);
        match operations.find(|(other, _)| *other == name) {
            Some((_, new)) => found.extend(operation(old, new, &pointer)),
            None => {
                found.push(loose(
                    "ICH-B081",
                    pointer,
                    "the operation is gone: nothing protects its requests",
                ));
            }
        }
    }
    found
}

fn operation(old: &Operation, new: &Operation, pointer: &str) -> Vec<Loose> {
    let mut found = Vec::new();
    let class = |operation: &Operation| operation.class.map_or(Class::ExternalEffect, OperationClass::class);
    let is_weaker = class(old).acts_for_good() && !class(new).acts_for_good();
    if is_weaker || (class(old) != Class::Read && class(new) == Class::Read) {
        let what = "its class was one that protects more";
        found.push(loose("ICH-B081", format!("{pointer}/class"), what));
    }
    let effect = |operation: &Operation| operation.effect.unwrap_or(Effect::Opaque);
    if effect(old) == Effect::Opaque && effect(new) != Effect::Opaque {
        let what = "a call without an answer was held for a person, and is repeated";
        found.push(loose("ICH-B081", format!("{pointer}/effect"), what));
    }
    let methods = |operation: &Operation| operation.methods.clone().unwrap_or_default();
    let is_narrowed = old.methods.is_none() && new.methods.is_some();
    if is_narrowed || (new.methods.is_some() && lost(&methods(old), &methods(new)).next().is_some()) {
        found.push(loose("ICH-B081", format!("{pointer}/methods"), "it protects fewer methods than before"));
    }
    if old.path != new.path {
        let what = "its path is another: requests to the old one are not protected by it";
        found.push(loose("ICH-B081", format!("{pointer}/path"), what));
    }
    if old.identity != new.identity {
        let what = "who asks is known in another way: old keys count as new";
        found.push(loose("ICH-B080", format!("{pointer}/identity"), what));
    }
    let ttl = |operation: &Operation| operation.ttl.as_ref().map(Ttl::length);
    if ttl(old).is_some() && ttl(new) < ttl(old) {
        let what = "its outcomes are kept for less time than before";
        found.push(loose("ICH-B052", format!("{pointer}/ttl"), what));
    }
    let keeps = |operation: &Operation| operation.upstream_keeps_keys_for.as_ref().map(Length::length);
    if keeps(old).is_some() && keeps(old) < keeps(new) {
        let what = "its service is relied on to remember keys for longer than before";
        found.push(loose("ICH-B082", format!("{pointer}/upstream_keeps_keys_for"), what));
    }
    found
}
