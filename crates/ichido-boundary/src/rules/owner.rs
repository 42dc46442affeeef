//! One owner, one way: only the adapter completes idempotency, and the files agree (SPEC C2, C5, C8).

mod promises;

use super::{Found, Rule, declare};
use crate::{Boundary, Mode, Name, Way};

pub(super) const RULES: &[Rule] = &[
    declare! {
        "ICH-B070", Error, "C2, C8, C12",
        "Only the adapter completes idempotency",
        why: "A BFF or gateway that stores and answers outcomes is not in the effect's transaction: when its call times out \
              it cannot know what happened, and it hides from the adapter the retries that would have found out.",
        mend: "Set the mode to `validate_only`; `enabled` belongs into `gateway_to_adapter` and `adapter`.",
        example: "bff_to_gateway.json" at "/http/idempotency",
        check: only_the_adapter_owns,
    },
    declare! {
        "ICH-B071", Error, "C2",
        "The owner is the adapter, by name",
        why: "Two teams that each take the other for the owner have none.",
        mend: "Say `\"owner\": \"adapter\"`.",
        example: "gateway_to_adapter.json" at "/http/idempotency/enabled/owner",
        check: the_owner_is_named,
    },
    declare! {
        "ICH-B072", Error, "C2, C8",
        "Somebody completes idempotency",
        why: "A key that everybody checks and nobody remembers protects nothing.",
        mend: "Set the mode of `gateway_to_adapter` (or of `adapter`) to `enabled`, and say what it promises.",
        example: "gateway_to_adapter.json" at "/http/idempotency",
        check: somebody_owns,
    },
    declare! {
        "ICH-B073", Error, "C5, C8",
        "The key is echoed at all boundaries or at none",
        why: "A client that is promised its key back takes an answer without it for somebody else's. Whether it comes must not \
              depend on which hop answered.",
        mend: "Set `http.idempotency.echo_key` to the same value in every file.",
        example: "bff_to_gateway.json" at "/http/idempotency/echo_key",
        check: echo_is_the_same,
    },
    declare! {
        "ICH-B074", Error, "C8",
        "There is one file for each boundary",
        why: "Of two files about one boundary nobody knows which one holds.",
        mend: "Keep one, or put the files of another way into a folder of their own.",
        example: "adapter.json" at "",
        check: one_file_each,
    },
    declare! {
        "ICH-B075", Warning, "C8",
        "No boundary is missing in between",
        why: "Where a file is missing, nobody has checked that the key survives that hop, nor that its times fit.",
        mend: "Add the file, or check the parts of the way separately.",
        example: "bff_to_gateway.json" at "",
        check: no_gap,
    },
    declare! {
        "ICH-B076", Warning, "C8",
        "A method that passes above passes below",
        why: "What one hop lets in and the next refuses fails late, with an answer that comes from the middle.",
        mend: "Allow the method below, or stop it above.",
        example: "bff_to_gateway.json" at "/http/methods",
        check: methods_agree,
    },
    declare! {
        "ICH-B077", Error, "C2, C8",
        "The adapter's file and the one before it promise the same",
        why: "The gateway's team reads the one, the adapter runs on the other.",
        mend: "Say it in one of the two files, or the same in both.",
        example: "adapter.json" at "/http",
        check: promises::agree,
    },
    declare! {
        "ICH-B078", Error, "C2, C8",
        "What the owner promises stands in one place, and only where the mode is `enabled`",
        why: "Beside an `enabled` that says otherwise, one of the two is read and people read the other. Where the mode is \
              `validate_only`, an owner, a storage or a replay is either dead text or a second owner.",
        mend: "Keep it inside `enabled` of the boundary where the adapter receives, and take it out everywhere else. \
               `\"owner\": \"adapter\"` and `\"storage\": \"none\"` may stand where the mode is another.",
        example: "bff_to_gateway.json" at "/http/idempotency",
        check: promises::stand_in_their_place,
    },
    declare! {
        "ICH-B079", Warning, "C2, C8",
        "The files reach as far as the boundary that completes idempotency",
        why: "The hops that were judged check the key and pass it on. Whether anybody at the end remembers it, and what \
              becomes of a duplicate there, nobody has looked at.",
        mend: "Give `gateway_to_adapter` (or `adapter`) as well.",
        example: "gateway_to_adapter.json" at "" without "adapter.json",
        check: the_owner_is_among_them,
    },
];

const MODE_POINTER: &str = "/http/idempotency/mode";

fn may_own(name: Name) -> bool {
    matches!(name, Name::GatewayToAdapter | Name::Adapter)
}

fn only_the_adapter_owns<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let wrong = way.owners().filter(|(file, ..)| !may_own(file.name()));
    wrong
        .map(|(file, ..)| {
            let receiver = file.name().receiver().as_str();
            Found::at(file, MODE_POINTER, format!("the {receiver} would complete idempotency here"))
        })
        .collect()
}

fn the_owner_is_named<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    way.owners()
        .filter(|(file, ..)| may_own(file.name()))
        .filter_map(|(file, promises, base)| {
            let what = match promises.owner.as_deref() {
                Some("adapter") => return None,
                Some(other) => format!("the owner is `{other}`"),
                None => "`owner` is missing".to_owned(),
            };
            Some(Found::at(file, format!("{base}/owner"), what))
        })
        .collect()
}

fn somebody_owns<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let candidate = way.file(Name::GatewayToAdapter).or(way.file(Name::Adapter));
    let is_owned = way.owners().any(|(file, ..)| may_own(file.name()));
    // Where the mode is missing or `disabled`, another rule says so.
    let is_said = |file: &&Boundary| {
        file.http.idempotency.mode == Some(Mode::ValidateOnly) || file.name() == Name::Adapter
    };
    let candidate = candidate.filter(|_| !is_owned).filter(is_said);
    candidate
        .map(|file| Found::at(file, MODE_POINTER, "nobody on this way completes idempotency"))
        .into_iter()
        .collect()
}

fn the_owner_is_among_them<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let files: Vec<&Boundary> = way.files().collect();
    // One file alone is not taken for a way; where the owner's file is there, other rules ask who owns.
    let [first, .., last] = files[..] else {
        return Vec::new();
    };
    if first.name() == last.name() || may_own(last.name()) || way.owners().next().is_some() {
        return Vec::new();
    }
    let mut judged: Vec<&str> = files.iter().map(|file| file.name().as_str()).collect();
    judged.dedup();
    let what = format!("judged are {}, and none of them completes idempotency", judged.join(" and "));
    vec![Found::at(last, "/boundary", what)]
}

fn echo_is_the_same<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let echoes = |file: &&Boundary| file.http.idempotency.echo_key == Some(true);
    // The service behind the adapter need not know of keys, so silence there says nothing.
    let counts = |file: &&Boundary| file.name() != Name::Adapter || file.http.idempotency.echo_key.is_some();
    let Some(echoing) = way.files().find(echoes) else {
        return Vec::new();
    };
    let silent = way.files().filter(|file| counts(file) && !echoes(file));
    silent
        .map(|file| {
            let what = format!("the key is not echoed here, and it is at {}", echoing.name());
            Found::at(file, "/http/idempotency/echo_key", what)
        })
        .collect()
}

fn one_file_each<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let files: Vec<&Boundary> = way.files().collect();
    let pairs = files.windows(2).filter(|pair| pair[0].name() == pair[1].name());
    pairs
        .map(|pair| Found::at(pair[1], "/boundary", format!("{} is about the same boundary", pair[0].file())))
        .collect()
}

fn no_gap<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let place = |name: Name| Name::ALL.iter().position(|one| *one == name);
    let files: Vec<&Boundary> = way.files().collect();
    let gaps = files.windows(2).filter(|pair| place(pair[0].name()).map(|at| at + 1) < place(pair[1].name()));
    gaps.map(|pair| {
        let what = format!("there is no file between {} and {}", pair[0].name(), pair[1].name());
        Found::at(pair[1], "/boundary", what)
    })
    .collect()
}

fn methods_agree<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let files: Vec<&Boundary> = way.hops().collect();
    let pairs = files.windows(2);
    pairs
        .filter_map(|pair| {
            let (above, below) = (pair[0], pair[1]);
            let passing = above.http.methods.allowed.iter().flatten();
            // A preflight request is answered by the first hop and goes no further.
            let stopped: Vec<&str> = passing
                .map(String::as_str)
                .filter(|method| *method != "OPTIONS" && !below.http.methods.allows(method))
                .collect();
            let what = format!("{} lets {} pass", above.name(), stopped.join(", "));
            (!stopped.is_empty()).then(|| Found::at(below, "/http/methods/allowed", what))
        })
        .collect()
}
