//! Logs do not hold keys (SPEC C5).

use super::{Found, Rule, declare};
use crate::boundary::Way;
use crate::key::NAMES;

pub(super) const RULES: &[Rule] = &[declare! {
    "ICH-B090", Warning, "C5",
    "The key is kept out of the logs",
    why: "Whoever reads a key in a log can replay the answer that belongs to it. Logs carry its hash, by which the tools \
          find it again.",
    mend: "Name `idempotency-key` in `observability.redaction`.",
    example: "bff_to_gateway.json" at "/observability",
    check: keys_are_redacted,
}];

fn keys_are_redacted<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    way.files()
        .filter_map(|file| {
            let what = match &file.observability.redaction {
                None => "it is not said what is kept out of the logs",
                Some(redaction) if NAMES.iter().any(|name| redaction.names(name)) => return None,
                Some(_) => "idempotency-key is not among what is kept out of the logs",
            };
            Some(Found::at(file, "/observability/redaction", what))
        })
        .collect()
}
