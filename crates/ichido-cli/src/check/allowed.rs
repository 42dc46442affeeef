//! Findings that are accepted, each with a reason.

use std::io::Write as _;

use ichido_boundary::report;
use ichido_boundary::{BoundaryRule, Finding, Severity, UNREADABLE};
use ichido_core::settings::ConfigErrors;
use ichido_core::text::visible;

use super::naming;
use crate::exit::Exit;

/// What the rules are applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckSubject {
    /// The files themselves. Errors cannot be allowed: the proxy would not start.
    Files,
    /// A change from old files to new ones, which may be intended.
    Change,
}

/// The rules whose findings are accepted.
#[derive(Debug)]
pub(super) struct AllowList(Vec<Allowance>);

#[derive(Debug)]
struct Allowance {
    rule: &'static BoundaryRule,
    reason: String,
    is_used: bool,
}

impl AllowList {
    /// Parses the flags, each `RULE=REASON`.
    pub(super) fn parse(flags: &[String], subject: CheckSubject) -> Result<Self, Exit> {
        let mut faults = ConfigErrors::default();
        let mut allowed: Vec<Allowance> = Vec::new();
        for flag in flags {
            let Some(one) = faults.check("--allow", Allowance::parse(flag, subject)) else { continue };
            if allowed.iter().any(|other| other.rule == one.rule) {
                faults
                    .add("--allow", format!("{} is given twice; pass it once, with one reason", one.rule.id));
            }
            allowed.push(one);
        }
        Ok(faults.or(Some(Self(allowed)))?)
    }

    /// Splits findings into open ones and accepted ones with their reasons.
    pub(super) fn split(&mut self, findings: Vec<Finding>) -> (Vec<Finding>, Vec<report::Allowed>) {
        let (mut open, mut accepted) = (Vec::new(), Vec::new());
        for finding in findings {
            match self.0.iter_mut().find(|one| one.rule == finding.rule) {
                Some(one) => {
                    one.is_used = true;
                    accepted.push(report::Allowed { finding, reason: one.reason.clone() });
                }
                None => open.push(finding),
            }
        }
        for one in self.0.iter().filter(|one| !one.is_used) {
            note(&format!("--allow {} is not needed: the rule has no findings; remove it", one.rule.id));
        }
        (open, accepted)
    }
}

impl Allowance {
    fn parse(flag: &str, subject: CheckSubject) -> Result<Self, String> {
        let shown = visible(flag);
        let Some((id, reason)) = flag.split_once('=') else {
            return Err(format!("\"{shown}\" has no reason; write RULE=REASON, such as ICH-B034=\"…\""));
        };
        let reason = visible(reason.trim());
        if !reason.contains(char::is_alphanumeric) {
            return Err(format!("\"{shown}\" has no reason; explain it in words for the next reader"));
        }
        let rule = naming::find(id)?;
        if *rule == UNREADABLE {
            return Err(format!("{} cannot be allowed: an unreadable file cannot be checked", rule.id));
        }
        if subject == CheckSubject::Files && rule.severity == Severity::Error {
            return Err(format!(
                "{} is an error, and `ichido proxy` does not start with it; fix it. Only warnings can be allowed, and with \
                 --diff any change",
                rule.id
            ));
        }
        Ok(Self { rule, reason, is_used: false })
    }
}

/// Prints a note to standard error, outside of any report.
pub(super) fn note(line: &str) {
    // If standard error is closed, nobody needs the note.
    _ = writeln!(std::io::stderr(), "ichido check: {line}");
}
