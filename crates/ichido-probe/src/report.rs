//! What a run found, for people and for machines.
//!
//! Guarantee: the same findings give the same text. No text of a target controls the terminal or ends a line, and no
//! credential is shown.

use std::fmt::Write as _;

use ichido_core::ledger::Profile;
use ichido_core::text::table::{Column, View};
use ichido_core::text::{bounded, visible};
use ichido_rules::Severity;
use ichido_rules::sarif::{SarifResult, log};
use serde_json::{Value, json};

use crate::exchange::{EffectCount, Exchange};
use crate::rules::{ProbeRule, rules};
use crate::seen::Verdict;
use crate::unchecked::Unchecked;

/// What was found about a rule.
#[derive(Clone, Debug)]
pub struct RuleFinding {
    /// The rule.
    pub rule: &'static ProbeRule,
    /// The verdict.
    pub verdict: Verdict,
    /// What was sent and received.
    pub exchanges: Vec<Exchange>,
    /// The counted effects.
    pub effects: EffectCount,
    /// The commands that repeat it, without credentials.
    pub transcript: String,
    /// Why a failure is accepted, if the baseline accepts it.
    pub accepted: Option<String>,
}

/// What a run found.
#[derive(Clone, Debug)]
pub struct Report {
    /// One finding for each rule, in the order of the rules.
    pub findings: Vec<RuleFinding>,
    /// What was not checked; `None` if the run is complete.
    pub unchecked: Option<Unchecked>,
    /// Why no rule was tested: the first request was not accepted, or the counter does not see it.
    pub not_tested: Option<String>,
    /// The profile that was expected.
    pub profile: Profile,
    /// The target's method.
    pub method: String,
    /// The target's URL, without its query.
    pub url: String,
    /// The name of the run, which is part of all its markers.
    pub run: String,
    /// Whether simultaneous requests were sent over HTTP/2.
    pub is_http2: bool,
    /// How many requests were sent.
    pub requests: usize,
}

/// How many findings there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Rules that are kept.
    pub passed: usize,
    /// Rules of severity error that are broken.
    pub errors: usize,
    /// Rules of severity warning that are broken.
    pub warnings: usize,
    /// Broken rules that the baseline accepts.
    pub accepted: usize,
    /// Rules of which nothing was seen.
    pub unverified: usize,
    /// Rules that do not apply.
    pub not_applicable: usize,
}

impl RuleFinding {
    pub(crate) fn new(
        rule: &'static ProbeRule,
        verdict: Verdict,
        exchanges: Vec<Exchange>,
        effects: EffectCount,
    ) -> Self {
        // What a target sends may be long.
        let verdict = verdict.map(|why| bounded(&why, MAX_EVIDENCE_CHARS));
        Self { rule, verdict, exchanges, effects, transcript: String::new(), accepted: None }
    }

    /// Whether the rule is broken and the baseline does not accept it.
    pub const fn is_open(&self) -> bool {
        matches!(self.verdict, Verdict::Fail(_)) && self.accepted.is_none()
    }

    fn word(&self) -> &'static str {
        if self.accepted.is_some() { "accepted" } else { self.verdict.as_str() }
    }
}

impl Report {
    /// Counts the findings.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for finding in &self.findings {
            *match (&finding.verdict, finding.rule.severity) {
                (Verdict::Fail(_), _) if finding.accepted.is_some() => &mut totals.accepted,
                (Verdict::Fail(_), Severity::Error) => &mut totals.errors,
                (Verdict::Fail(_), Severity::Warning) => &mut totals.warnings,
                (Verdict::Pass(_), _) => &mut totals.passed,
                (Verdict::Unverified(_), _) => &mut totals.unverified,
                (Verdict::NotApplicable(_), _) => &mut totals.not_applicable,
            } += 1;
        }
        totals
    }

    /// Returns the scheme, host and port of the target.
    fn origin(&self) -> &str {
        let host = self.url.find("://").map_or(0, |scheme| scheme + 3);
        self.url[host..].find('/').map_or(&*self.url, |path| &self.url[..host + path])
    }

    /// Formats the findings for a person: a table, then what to do about each broken rule, then a summary.
    pub fn people(&self, view: &View) -> String {
        if let Some(why) = &self.not_tested {
            return format!("nothing was tested: {}\n\n{}", visible(why), self.summary());
        }
        let rows = self.findings.iter().map(|finding| {
            [finding.rule.id, finding.word(), finding.rule.title, finding.verdict.why()].map(str::to_owned)
        });
        let columns = [
            Column::text("RULE"),
            Column::state("VERDICT"),
            Column::free("REQUIREMENT").spare(),
            Column::free("EVIDENCE"),
        ];
        let mut text = view.table(columns, rows);
        for finding in self.findings.iter().filter(|finding| finding.is_open()) {
            let rule = finding.rule;
            // A `String` takes whatever is written to it.
            _ = writeln!(text, "\n{} {}: {}", rule.severity, rule.id, rule.title);
            _ = writeln!(text, "  found:    {}", visible(finding.verdict.why()));
            _ = writeln!(text, "  expected: {}", rule.expected(self.profile));
            _ = writeln!(text, "  why:      {}", rule.why);
            _ = writeln!(text, "  fix:      {}", rule.help);
            _ = writeln!(text, "  replay:");
            for line in finding.transcript.lines().take(MAX_SHOWN_LINES) {
                _ = writeln!(text, "    {}", visible(line));
            }
            let rest = finding.transcript.lines().skip(MAX_SHOWN_LINES).count();
            if 0 < rest {
                _ = writeln!(text, "    … {rest} more lines; --json has all");
            }
        }
        text + "\n" + &self.summary()
    }

    fn summary(&self) -> String {
        let Totals { passed, errors, warnings, accepted, unverified, not_applicable } = self.totals();
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let unchecked =
            self.unchecked.as_ref().map_or_else(String::new, |unchecked| format!("{unchecked}\n"));
        format!(
            "{} {} as {}: {passed} passed, {errors} error{}, {warnings} warning{}, {accepted} accepted, \
             {unverified} unverified, {not_applicable} not applicable\n\
             {} requests were sent{}; what they created is marked {}\n{unchecked}",
            self.method,
            visible(&self.url),
            self.profile,
            plural(errors),
            plural(warnings),
            self.requests,
            if self.is_http2 { ", simultaneous ones over HTTP/2" } else { "" },
            self.run
        )
    }

    /// Formats the findings as a JSON object.
    pub fn to_json(&self) -> Value {
        let totals = self.totals();
        json!({
            "method": self.method,
            "url": self.url,
            "profile": self.profile.as_str(),
            "run": self.run,
            "requests": self.requests,
            "races_over": if self.is_http2 { "HTTP/2" } else { "HTTP/1.1" },
            "passed": totals.passed,
            "errors": totals.errors,
            "warnings": totals.warnings,
            "accepted": totals.accepted,
            "unverified": totals.unverified,
            "not_applicable": totals.not_applicable,
            "not_tested": self.not_tested,
            "incomplete": self.unchecked.as_ref().map(ToString::to_string),
            "findings": self.findings.iter().map(|finding| json!({
                "rule": finding.rule.id,
                "title": finding.rule.title,
                "severity": finding.rule.severity.as_str(),
                "verdict": finding.verdict.as_str(),
                "evidence": finding.verdict.why(),
                "expected": finding.rule.expected(self.profile),
                "help": finding.rule.help,
                "accepted": finding.accepted,
                "effects": match finding.effects { EffectCount::Counted(count) => Some(count), _ => None },
                "transcript": finding.transcript,
            })).collect::<Vec<_>>(),
        })
    }
}

/// How much evidence of a rule is shown.
const MAX_EVIDENCE_CHARS: usize = 400;
/// The longest transcript that a person is shown; `--json` has all.
const MAX_SHOWN_LINES: usize = 40;

/// Formats runs as SARIF, for code scanning.
pub fn sarif(reports: &[Report], version: &str) -> String {
    let results = reports.iter().flat_map(|report| {
        let broken = report.findings.iter().filter(|finding| matches!(finding.verdict, Verdict::Fail(_)));
        broken.map(move |finding| SarifResult {
            rule: finding.rule.declared(),
            message: format!(
                "{} {}: {}. Expected: {}. {}",
                report.method,
                visible(&report.url),
                visible(finding.verdict.why()),
                finding.rule.expected(report.profile),
                finding.rule.help
            ),
            location: json!({
                "physicalLocation": {
                    "artifactLocation": { "uri": report.url[report.origin().len()..].trim_start_matches('/') },
                    "region": { "startLine": 1 },
                },
                "logicalLocations": [{ "fullyQualifiedName": format!("{} {}", report.method, report.url) }],
            }),
            justification: finding.accepted.as_deref().map(visible),
        })
    });
    log("ichido probe", version, rules().map(ProbeRule::declared), results)
}

/// Formats runs as XML in `JUnit`'s form: a suite for each target, a case for each rule.
///
/// A rule that is not applicable or unverified is skipped, with its reason.
pub fn junit(reports: &[Report]) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for report in reports {
        let totals = report.totals();
        let skipped = totals.unverified + totals.not_applicable + totals.accepted;
        // A `String` takes whatever is written to it.
        _ = writeln!(
            text,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{skipped}\">",
            xml(&format!("{} {} as {}", report.method, report.url, report.profile)),
            report.findings.len(),
            totals.errors + totals.warnings,
        );
        for finding in &report.findings {
            let name = xml(&format!("{}: {}", finding.rule.id, finding.rule.title));
            let why = xml(&format!("{}: {}", finding.word(), finding.verdict.why()));
            let inside = match (&finding.verdict, finding.is_open()) {
                (Verdict::Pass(_), _) => String::new(),
                (_, true) => {
                    let transcript = xml(&finding.transcript);
                    format!(
                        "<failure type=\"{}\" message=\"{why}\">{transcript}</failure>",
                        finding.rule.severity
                    )
                }
                (_, false) => format!("<skipped message=\"{why}\"/>"),
            };
            _ = writeln!(
                text,
                "    <testcase classname=\"ichido.probe\" name=\"{name}\">{inside}</testcase>"
            );
        }
        text.push_str("  </testsuite>\n");
    }
    text + "</testsuites>\n"
}

/// Escapes text for XML, which has no way to write most control characters.
fn xml(text: &str) -> String {
    let mut escaped = String::new();
    for one in text.chars() {
        match one {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            one if one.is_control() => escaped.push(char::REPLACEMENT_CHARACTER),
            one => escaped.push(one),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let of = |id: &str, verdict| {
            let rule = rules().find(|rule| rule.id == id).expect("a rule");
            RuleFinding::new(rule, verdict, Vec::new(), EffectCount::Counted(2))
        };
        Report {
            findings: vec![
                of("ICH-P06", Verdict::Pass("1 effect".to_owned())),
                of("ICH-P08", Verdict::Fail("2 effects <\u{1b}[2J> instead of 1".to_owned())),
                of("ICH-P13", Verdict::Fail("409".to_owned())),
                of("ICH-P16", Verdict::NotApplicable("no second identity".to_owned())),
                of("ICH-P19", Verdict::Unverified("no counter".to_owned())),
            ],
            unchecked: None,
            not_tested: None,
            profile: Profile::Ichido,
            method: "POST".to_owned(),
            url: "http://127.0.0.1:1/v1/orders".to_owned(),
            run: "probe-1".to_owned(),
            is_http2: false,
            requests: 9,
        }
    }

    #[test]
    fn people_see_what_is_broken_and_what_to_do() {
        let view =
            View { width: None, wide: true, colours: false, now: ichido_core::time::Timestamp::from_secs(0) };
        let text = report().people(&view);
        assert!(
            text.contains("error ICH-P08: Simultaneous requests have one effect\n  found:    2 effects"),
            "{text}"
        );
        assert!(
            text.contains("  expected: 2, 10 and 100 requests released together: 1 effect each\n"),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(text.contains("1 passed, 1 error, 1 warning, 0 accepted"), "{text}");
        let totals =
            Totals { passed: 1, errors: 1, warnings: 1, accepted: 0, unverified: 1, not_applicable: 1 };
        assert_eq!(report().totals(), totals);
    }

    #[test]
    fn machines_get_every_finding() {
        let json = report().to_json();
        assert_eq!((&json["errors"], &json["findings"][1]["verdict"]), (&1.into(), &"fail".into()));
        let sarif: Value = serde_json::from_str(&sarif(&[report()], "1")).unwrap();
        let run = &sarif["runs"][0];
        assert_eq!(run["results"].as_array().map(Vec::len), Some(2));
        assert_eq!(run["tool"]["driver"]["rules"].as_array().map(Vec::len), Some(rules().count()));
        let place = &run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
        assert_eq!(place, "v1/orders");
    }

    #[test]
    fn junit_skips_what_was_not_seen() {
        let text = junit(&[report()]);
        assert!(text.contains("tests=\"5\" failures=\"2\" skipped=\"2\""), "{text}");
        assert!(text.contains("<skipped message=\"not applicable: no second identity\"/>"), "{text}");
        assert!(text.contains("&lt;\\u{1b}[2J&gt;"), "{text}");
    }
}
