//! Changes to what an adapter does.

use ichido_core::ledger::Class;

use super::render::{render_duration, render_names, shorter};
use super::{Loosening, Pair, list, loosening, lost};
use crate::member::escape;
use crate::{Guarantee, Identity, IdentitySource, Length, NamedValues, Operation, OperationClass, Ttl};

pub(super) fn compare(pair: &Pair<'_>) -> Vec<Loosening> {
    let Pair { before, after, .. } = pair;
    let mut found = Vec::new();
    if let Some(was) = before.identity.as_ref()
        && before.identity != after.identity
    {
        found.push(loosening(
            "ICH-B080",
            "/identity",
            describe_identity_change(was, after.identity.as_ref()),
        ));
    }
    for (name, old) in before.operations.iter().flat_map(NamedValues::iter) {
        let pointer = format!("/operations/{}", escape(name));
        let mut operations = after.operations.iter().flat_map(NamedValues::iter);
        if let Some((_, new)) = operations.find(|(other, _)| *other == name) {
            found.extend(operation(pair, old, new, &pointer));
        } else {
            let what = "the operation was removed: nothing protects its requests";
            found.push(loosening("ICH-B081", pointer, what));
        }
    }
    found
}

fn describe_identity_change(was: &Identity, is: Option<&Identity>) -> String {
    let describe = |identity: &Identity| {
        let source = identity.source.map_or("no source", IdentitySource::as_str);
        let names = identity.name.as_ref().map(|names| names.0.join(" and ")).unwrap_or_default();
        format!("{source} {names}").trim_end().to_owned()
    };
    let is = is.map_or("not set".to_owned(), describe);
    format!("the caller's identity: was {}, now {is}; existing keys count as new", describe(was))
}

fn operation(pair: &Pair<'_>, old: &Operation, new: &Operation, pointer: &str) -> Vec<Loosening> {
    let mut found = class_and_guarantee_changes(old, new, pointer);
    let methods = |operation: &Operation| match &operation.methods {
        Some(methods) => render_names(methods),
        None => "all state-changing methods".to_owned(),
    };
    let is_narrowed = old.methods.is_none() && new.methods.is_some();
    let is_lost = lost(list(old.methods.as_ref()), list(new.methods.as_ref())).next().is_some();
    if is_narrowed || (new.methods.is_some() && is_lost) {
        let what = format!("its methods: was {}, now {}", methods(old), methods(new));
        found.push(loosening("ICH-B081", format!("{pointer}/methods"), what));
    }
    if old.path != new.path {
        let describe =
            |path: &Option<String>| path.as_ref().map_or("not set".to_owned(), |path| format!("`{path}`"));
        let (was, is) = (describe(&old.path), describe(&new.path));
        let what = format!("its path: was {was}, now {is}; requests to the old path are not protected");
        found.push(loosening("ICH-B081", format!("{pointer}/path"), what));
    }
    let was = old.identity.as_ref().or(pair.before.identity.as_ref());
    let is = new.identity.as_ref().or(pair.after.identity.as_ref());
    if let Some(previous) = was
        && old.identity != new.identity
        && was != is
    {
        found.push(loosening(
            "ICH-B080",
            format!("{pointer}/identity"),
            describe_identity_change(previous, is),
        ));
    }
    let ttl = |operation: &Operation, default| operation.ttl.as_ref().map(Ttl::length).or(default);
    // A change for all operations is reported once, where it was made.
    let shorter_ttl =
        shorter("retention of its outcomes", ttl(old, pair.default_ttl.0), ttl(new, pair.default_ttl.1));
    let shorter_ttl = shorter_ttl.filter(|_| old.ttl != new.ttl);
    found.extend(shorter_ttl.map(|what| loosening("ICH-B052", format!("{pointer}/ttl"), what)));
    let keeps = |operation: &Operation| operation.keeps_keys_for.as_ref().map(Length::length);
    if let (Some(was), Some(is)) = (keeps(old), keeps(new))
        && was < is
    {
        let what = format!(
            "how long its service must keep a key: was {}, now {}",
            render_duration(was),
            render_duration(is)
        );
        found.push(loosening("ICH-B082", format!("{pointer}/keeps_keys_for"), what));
    }
    found
}

fn class_and_guarantee_changes(old: &Operation, new: &Operation, pointer: &str) -> Vec<Loosening> {
    let mut found = Vec::new();
    let class = |operation: &Operation| operation.class.map_or(Class::ExternalEffect, OperationClass::class);
    let is_weaker = class(old).is_permanent() && !class(new).is_permanent();
    if is_weaker || (class(old) != Class::Read && class(new) == Class::Read) {
        let describe = |operation: &Operation| operation.class.map_or("not set", OperationClass::as_str);
        let what = format!("its class: was {}, now {}, which protects less", describe(old), describe(new));
        found.push(loosening("ICH-B081", format!("{pointer}/class"), what));
    }
    let guarantee = |operation: &Operation| operation.guarantee.unwrap_or(Guarantee::None);
    if guarantee(old) == Guarantee::None && guarantee(new) != Guarantee::None {
        let is = guarantee(new);
        let what = format!(
            "its guarantee: was none, now {is}; a call without a response was parked, now is retried"
        );
        found.push(loosening("ICH-B081", format!("{pointer}/guarantee"), what));
    }
    found
}
