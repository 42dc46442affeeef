//! The rule for the order of steps: it is the one in which proxies handle headers.
// SPEC C8.

use super::Violation;
use crate::HopChain;

/// Words that begin the name of a step that removes headers.
///
/// A header passes if every such step passes it, so their order makes no difference.
const REMOVING: [&str; 12] = [
    "allow",
    "allowlist",
    "deny",
    "denylist",
    "drop",
    "filter",
    "lowercase",
    "normalise",
    "normalize",
    "remove",
    "strip",
    "whitelist",
];
/// Words that begin the name of a step that checks headers, of which none that is checked can be removed.
const CHECKING: [&str; 4] = ["check", "require", "validate", "verify"];
/// Words that begin the name of a step that sets headers.
const SETTING: [&str; 7] = ["add", "append", "generate", "inject", "overwrite", "propagate", "set"];

pub(in crate::rules) fn is_kept<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let mut found = Vec::new();
    for file in chain.files() {
        let mut set_by = None;
        for (index, step) in file.headers.pipeline_order.iter().flatten().enumerate() {
            let begins = step.split(['_', '-', ' ']).next().unwrap_or_default().to_ascii_lowercase();
            let is_one_of = |words: &[&str]| words.contains(&begins.as_str());
            let what = match set_by {
                _ if is_one_of(&SETTING) => {
                    set_by = Some(step);
                    continue;
                }
                _ if is_one_of(&CHECKING) => continue,
                None if is_one_of(&REMOVING) => continue,
                Some(before) if is_one_of(&REMOVING) => {
                    format!("`{step}` comes after `{before}`, but proxies set headers last")
                }
                _ => format!("`{step}` is not a step of a proxy"),
            };
            found.push(Violation::new(file, format!("/headers/pipeline_order/{index}"), what));
        }
    }
    found
}
