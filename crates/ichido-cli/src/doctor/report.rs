//! What was looked at, and how it is told.

use std::fmt::Write as _;

use ichido_core::text::visible;
use serde_json::{Value, json};

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) what: String,
    pub(super) state: State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Well,
    Finding {
        /// What to do about it.
        mend: String,
    },
    /// It is well still, and will not be.
    Warning {
        /// What to do about it.
        mend: String,
    },
    /// It could not be looked at, which says nothing.
    Unknown,
}

impl Check {
    pub(super) fn well(name: &'static str, what: impl Into<String>) -> Self {
        Self { name, what: what.into(), state: State::Well }
    }

    pub(super) fn unknown(name: &'static str, what: impl Into<String>) -> Self {
        Self { name, what: what.into(), state: State::Unknown }
    }

    pub(super) fn finding(name: &'static str, what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { name, what: what.into(), state: State::Finding { mend: mend.into() } }
    }

    pub(super) fn warning(name: &'static str, what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { name, what: what.into(), state: State::Warning { mend: mend.into() } }
    }

    fn is_warning(&self) -> bool {
        matches!(self.state, State::Warning { .. })
    }

    pub(super) fn is_finding(&self) -> bool {
        matches!(self.state, State::Finding { .. })
    }
}

/// A line for each, the mend of a finding under it, and how many there are.
pub(super) fn human(checks: &[Check]) -> String {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Check { name, what, state } in checks {
        let (mark, mend) = match state {
            State::Well => ("ok     ", None),
            State::Finding { mend } => ("FINDING", Some(mend)),
            State::Warning { mend } => ("warning", Some(mend)),
            State::Unknown => ("unknown", None),
        };
        // A string takes all.
        _ = writeln!(text, "{mark}  {name:width$}  {}", visible(what));
        if let Some(mend) = mend {
            _ = writeln!(text, "{:9}{:width$}  mend: {}", "", "", visible(mend));
        }
    }
    match checks.iter().filter(|check| check.is_finding()).count() {
        0 if checks.iter().any(Check::is_warning) => text.push_str("nothing to mend at once\n"),
        0 => text.push_str("nothing to mend\n"),
        1 => text.push_str("1 finding\n"),
        many => _ = writeln!(text, "{many} findings"),
    }
    text
}

/// The same as one object.
pub(super) fn json(checks: &[Check]) -> String {
    let shown = |Check { name, what, state }: &Check| -> Value {
        match state {
            State::Well => json!({ "name": name, "state": "ok", "what": what }),
            State::Finding { mend } => {
                json!({ "name": name, "state": "finding", "what": what, "mend": mend })
            }
            State::Warning { mend } => {
                json!({ "name": name, "state": "warning", "what": what, "mend": mend })
            }
            State::Unknown => json!({ "name": name, "state": "unknown", "what": what }),
        }
    };
    let findings = checks.iter().filter(|check| check.is_finding()).count();
    let checks: Vec<Value> = checks.iter().map(shown).collect();
    format!("{}\n", json!({ "findings": findings, "checks": checks }))
}
