//! Rules for logs and traces: they record the key, and do not contain the caller's credentials.
// SPEC C5.

use ichido_core::key::NAMES;

use super::Violation;
use super::headers::spellings_sent;
use crate::{HopChain, Redaction};

/// Headers that prove the caller's identity.
const PROOFS: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "set-cookie"];

/// Those that every file must keep out of the logs by name.
const REDACTED: [&str; 2] = ["authorization", "cookie"];

pub(super) fn key_is_recorded_and_credentials_are_not<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let sent = spellings_sent(chain);
    let violation = |redaction: &Redaction| {
        let mut keys = NAMES.iter().zip(sent).filter(|(_, is_sent)| *is_sent).map(|(name, _)| *name);
        let shown = PROOFS.into_iter().find(|header| redaction.shows(header));
        let open = || REDACTED.into_iter().find(|header| !redaction.names(header));
        let mut lost = || keys.find(|key| redaction.removes(key));
        shown
            .map(|header| format!("{header} is shown in the logs"))
            .or_else(|| open().map(|header| format!("{header} is not kept out of the logs")))
            .or_else(|| lost().map(|key| format!("{key} is not recorded").to_ascii_lowercase()))
    };
    let files = chain.files().filter_map(|file| {
        let what = match &file.observability.redaction {
            None => Some("`redaction` is missing".to_owned()),
            Some(redaction) => violation(redaction),
        };
        what.map(|what| Violation::new(file, "/observability/redaction", what))
    });
    files.collect()
}
