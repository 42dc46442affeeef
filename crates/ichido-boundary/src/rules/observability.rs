//! Rules for logs: they do not contain keys.
// SPEC C5.

use ichido_core::key::NAMES;

use super::Violation;
use super::headers::spellings_sent;
use crate::HopChain;

/// Headers that prove the caller's identity.
const PROOFS: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "set-cookie"];

pub(super) fn keys_are_redacted<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let sent = spellings_sent(chain);
    chain
        .files()
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
                            format!("{name} is not kept out of the logs").to_ascii_lowercase()
                        }
                    }
                }
            };
            Some(Violation::new(file, "/observability/redaction", what))
        })
        .collect()
}
