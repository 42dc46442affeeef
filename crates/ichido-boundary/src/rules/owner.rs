//! Rules for ownership: only the adapter completes idempotency, and the files agree.
// SPEC C2, C5, C8.

pub(super) mod guarantees;

use super::Violation;
use crate::{Boundary, HopChain, Mode, Name};

const MODE_POINTER: &str = "/http/idempotency/mode";

fn may_own(name: Name) -> bool {
    matches!(name, Name::GatewayToAdapter | Name::Adapter)
}

pub(super) fn only_the_adapter_owns<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let wrong = chain.owners().filter(|(file, ..)| !may_own(file.name()));
    wrong
        .map(|(file, ..)| {
            let receiver = file.name().receiver().as_str();
            Violation::new(file, MODE_POINTER, format!("the {receiver} would own the outcome here"))
        })
        .collect()
}

pub(super) fn the_owner_is_named<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    chain
        .owners()
        .filter(|(file, ..)| may_own(file.name()))
        .filter_map(|(file, guarantees, base)| {
            let what = match guarantees.owner.as_deref() {
                Some("adapter") => return None,
                Some(other) => format!("the owner is `{other}`"),
                None => "`owner` is missing".to_owned(),
            };
            Some(Violation::new(file, format!("{base}/owner"), what))
        })
        .collect()
}

pub(super) fn somebody_owns<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let candidate = chain.file(Name::GatewayToAdapter).or(chain.file(Name::Adapter));
    let is_owned = chain.owners().any(|(file, ..)| may_own(file.name()));
    // If the mode is missing or `disabled`, another rule reports it.
    let is_said = |file: &&Boundary| {
        file.http.idempotency.mode == Some(Mode::ValidateOnly) || file.name() == Name::Adapter
    };
    let candidate = candidate.filter(|_| !is_owned).filter(is_said);
    candidate
        .map(|file| Violation::new(file, MODE_POINTER, "no boundary of this hop chain owns the outcome"))
        .into_iter()
        .collect()
}

pub(super) fn the_owner_is_among_them<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let files: Vec<&Boundary> = chain.files().collect();
    // A single file is not a hop chain; if the owner's file exists, other rules check who owns.
    let [first, .., last] = files[..] else {
        return Vec::new();
    };
    if first.name() == last.name() || may_own(last.name()) || chain.owners().next().is_some() {
        return Vec::new();
    }
    let mut judged: Vec<&str> = files.iter().map(|file| file.name().as_str()).collect();
    judged.dedup();
    let what = format!("only {} were checked, and none of them owns the outcome", judged.join(" and "));
    vec![Violation::new(last, "/boundary", what)]
}

pub(super) fn echo_is_the_same<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let echoes = |file: &&Boundary| file.http.idempotency.echo_key == Some(true);
    // The service behind the adapter need not know keys, so a missing member there says nothing.
    let counts = |file: &&Boundary| file.name() != Name::Adapter || file.http.idempotency.echo_key.is_some();
    let Some(echoing) = chain.files().find(echoes) else {
        return Vec::new();
    };
    let silent = chain.files().filter(|file| counts(file) && !echoes(file));
    silent
        .map(|file| {
            let what = format!("the key is not echoed here, but it is at {}", echoing.name());
            Violation::new(file, "/http/idempotency/echo_key", what)
        })
        .collect()
}

pub(super) fn one_file_each<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let files: Vec<&Boundary> = chain.files().collect();
    let pairs = files.windows(2).filter(|pair| pair[0].name() == pair[1].name());
    pairs
        .map(|pair| {
            Violation::new(pair[1], "/boundary", format!("{} is about the same boundary", pair[0].file()))
        })
        .collect()
}

pub(super) fn no_gap<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let files: Vec<&Boundary> = chain.files().collect();
    let gaps = files.windows(2).filter(|pair| pair[0].name() as usize + 1 < pair[1].name() as usize);
    gaps.map(|pair| {
        let what = format!("there is no file between {} and {}", pair[0].name(), pair[1].name());
        Violation::new(pair[1], "/boundary", what)
    })
    .collect()
}

pub(super) fn methods_agree<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let files: Vec<&Boundary> = chain.hops().collect();
    let pairs = files.windows(2);
    pairs
        .filter_map(|pair| {
            let (above, below) = (pair[0], pair[1]);
            let passing = above.http.methods.allowed.iter().flatten();
            // The first hop responds to a preflight request, which goes no further.
            let stopped: Vec<&str> = passing
                .map(String::as_str)
                .filter(|method| *method != "OPTIONS" && !below.http.methods.allows(method))
                .collect();
            let what = format!("{} allows {}", above.name(), stopped.join(", "));
            (!stopped.is_empty()).then(|| Violation::new(below, "/http/methods/allowed", what))
        })
        .collect()
}
