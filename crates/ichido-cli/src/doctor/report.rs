//! The checks and their report.

use std::fmt::Write as _;

use ichido_core::text::visible;
use serde_json::{Value, json};

/// A single check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DoctorCheck {
    pub(super) name: &'static str,
    pub(super) what: String,
    pub(super) state: State,
    /// How to fix it.
    pub(super) help: Option<String>,
}

ichido_core::words! {
    /// The result of a check.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum State {
        Passed = "ok",
        Finding = "finding",
        /// It works now, but will not for long.
        Warning = "warning",
        /// It could not be checked, which is not a finding.
        Unknown = "unknown",
    }
}

impl DoctorCheck {
    pub(super) fn passed(name: &'static str, what: impl Into<String>) -> Self {
        Self { name, what: what.into(), state: State::Passed, help: None }
    }

    pub(super) fn unknown(name: &'static str, what: impl Into<String>) -> Self {
        Self { state: State::Unknown, ..Self::passed(name, what) }
    }

    pub(super) fn finding(name: &'static str, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { state: State::Finding, help: Some(help.into()), ..Self::passed(name, what) }
    }

    pub(super) fn warning(name: &'static str, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { state: State::Warning, ..Self::finding(name, what, help) }
    }

    pub(super) fn is_finding(&self) -> bool {
        self.state == State::Finding
    }
}

/// Renders one line per check, the help under each finding, and the number of findings.
pub(super) fn render_text(checks: &[DoctorCheck]) -> String {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for DoctorCheck { name, what, state, help } in checks {
        let mark = if *state == State::Finding { "FINDING" } else { state.as_str() };
        // Writing to a string cannot fail.
        _ = writeln!(text, "{mark:7}  {name:width$}  {}", visible(what));
        if let Some(help) = help {
            _ = writeln!(text, "{:9}{:width$}  help: {}", "", "", visible(help));
        }
    }
    match checks.iter().filter(|check| check.is_finding()).count() {
        0 if checks.iter().any(|check| check.state == State::Warning) => {
            text.push_str("no findings, only warnings\n");
        }
        0 => text.push_str("no findings\n"),
        1 => text.push_str("1 finding\n"),
        many => _ = writeln!(text, "{many} findings"),
    }
    text
}

/// Renders the report as one JSON object.
pub(super) fn render_json(checks: &[DoctorCheck]) -> String {
    let shown = |DoctorCheck { name, what, state, help }: &DoctorCheck| -> Value {
        let mut shown = json!({ "name": name, "state": state.as_str(), "what": what });
        if let Some(help) = help {
            shown["help"] = json!(help);
        }
        shown
    };
    let findings = checks.iter().filter(|check| check.is_finding()).count();
    let checks: Vec<Value> = checks.iter().map(shown).collect();
    format!("{}\n", json!({ "findings": findings, "checks": checks }))
}
