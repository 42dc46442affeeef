//! Logs do not hold keys (SPEC C5).

use ichido_core::key::NAMES;

use super::headers::spellings_sent;
use super::{Found, Rule, declare};
use crate::Way;

pub(super) const RULES: &[Rule] = &[declare! {
    "ICH-B090", Warning, "C5",
    "The key, and what proves who asks, is kept out of the logs",
    why: "Whoever reads a key in a log can replay the answer that belongs to it. Logs carry its hash, by which the tools \
          find it again. With `authorization` or a cookie beside it, they can ask for anything.",
    mend: "Name `idempotency-key`, as the lists of headers spell it, in `observability.redaction`, and let nothing there (`never_redact`, `false`, `plain`) \
           show it, `authorization`, `cookie` or `set-cookie`.",
    example: "bff_to_gateway.json" at "/observability",
    check: keys_are_redacted,
}];

/// What proves who asks.
const PROOFS: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "set-cookie"];

fn keys_are_redacted<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let sent = spellings_sent(way);
    way.files()
        .filter_map(|file| {
            let what = match &file.observability.redaction {
                None => "`redaction` is missing".to_owned(),
                Some(redaction) => {
                    let mut all = NAMES.iter().chain(&PROOFS);
                    let mut spelled = NAMES.iter().zip(sent).filter(|(_, is_sent)| *is_sent);
                    match all.find(|header| redaction.shows(header)) {
                        Some(header) => format!("{header} is shown in the logs").to_ascii_lowercase(),
                        None if spelled.any(|(name, _)| redaction.names(name)) => return None,
                        None => {
                            let name = if sent[0] { NAMES[0] } else { NAMES[1] };
                            format!("{name} is not among what is kept out of the logs").to_ascii_lowercase()
                        }
                    }
                }
            };
            Some(Found::at(file, "/observability/redaction", what))
        })
        .collect()
}
