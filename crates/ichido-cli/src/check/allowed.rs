//! What is accepted although a rule finds it, each with its reason.

use std::io::Write as _;

use ichido_core::boundary::{Finding, Rule, Severity, UNREADABLE, rule};

use super::{LISTED, misconfigured};
use crate::exit::Exit;
use crate::faults::Faults;

/// What the rules are asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// Files as they are. An error stays one: the proxy would not start.
    Files,
    /// A change from old files to new ones, which may be meant.
    Change,
}

/// The rules whose findings are accepted.
#[derive(Debug)]
pub(super) struct Allowed(Vec<Allowance>);

#[derive(Debug)]
struct Allowance {
    rule: &'static Rule,
    reason: String,
    is_used: bool,
}

impl Allowed {
    /// Understands the flags, each `RULE=REASON`.
    pub(super) fn parse(flags: &[String], judged: Judged) -> Result<Self, Exit> {
        let mut faults = Faults::default();
        let mut allowed: Vec<Allowance> = Vec::new();
        for flag in flags {
            let Some(one) = faults.check("--allow", Allowance::parse(flag, judged)) else { continue };
            if allowed.iter().any(|other| other.rule == one.rule) {
                faults.add("--allow", format!("{} is given twice; give one reason", one.rule.id));
            }
            allowed.push(one);
        }
        faults.or(Some(Self(allowed))).map_err(misconfigured)
    }

    /// The findings that are not accepted. Those that are, are said on standard error, so that none is lost from sight.
    pub(super) fn sift(&mut self, findings: Vec<Finding>) -> Vec<Finding> {
        let mut kept = Vec::new();
        for finding in findings {
            let Some(one) = self.0.iter_mut().find(|one| one.rule == finding.rule) else {
                kept.push(finding);
                continue;
            };
            one.is_used = true;
            let Finding { rule, place, what, .. } = finding;
            note(&format!(
                "allowed {} at {}:{}: {what} (reason: {})",
                rule.id, place.file, place.at, one.reason
            ));
        }
        for one in self.0.iter().filter(|one| !one.is_used) {
            note(&format!("--allow {} is not needed: the rule finds nothing; take it out", one.rule.id));
        }
        kept
    }
}

impl Allowance {
    fn parse(flag: &str, judged: Judged) -> Result<Self, String> {
        let shown = flag.escape_debug();
        let Some((id, reason)) = flag.split_once('=') else {
            return Err(format!("\"{shown}\" gives no reason; write RULE=REASON, such as ICH-B034=\"…\""));
        };
        let reason: String = reason.trim().escape_debug().collect();
        if reason.is_empty() {
            return Err(format!("\"{shown}\" gives no reason; whoever reads it next needs one"));
        }
        let Some(rule) = rule(id.trim()) else {
            return Err(format!("there is no rule \"{}\"; {LISTED}", id.escape_debug()));
        };
        if *rule == UNREADABLE {
            return Err(format!("{} cannot be allowed: what cannot be read cannot be judged", rule.id));
        }
        if judged == Judged::Files && rule.severity == Severity::Error {
            return Err(format!(
                "{} is an error, on which `ichido proxy` does not start; mend it. Warnings can be allowed, and with \
                 --diff every change",
                rule.id
            ));
        }
        Ok(Self { rule, reason, is_used: false })
    }
}

fn note(line: &str) {
    // Whoever closed standard error does not want to know.
    _ = writeln!(std::io::stderr(), "ichido check: {line}");
}
