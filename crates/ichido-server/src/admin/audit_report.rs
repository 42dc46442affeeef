//! Renders the report of `ichido audit verify`, for people and as JSON.
//!
//! Guarantee: it says "intact" only of a trail that is, and names what the report could not prove.

use std::fmt::Write as _;
use std::time::Duration;

use ichido_core::audit::key_record::KeyFinding;
use ichido_core::audit::seal::SealHead;
use ichido_core::audit::verify::{AuditFinding, AuditReport, Kind, SetBack};
use ichido_core::settings::duration;
use ichido_core::text::visible;
use serde_json::{Value, json};

/// Renders the report as text: the findings first, then what it could not prove.
pub fn render_text(report: &AuditReport, head_given: bool) -> String {
    let mut out = String::new();
    for finding in &report.findings {
        _ = writeln!(out, "{}", render_finding(finding));
    }
    for finding in &report.keys {
        _ = writeln!(out, "{}", render_key(finding));
    }
    let listed = (report.findings.len() + report.keys.len()) as u64;
    if listed < report.found {
        _ = writeln!(out, "… and {} more", report.found - listed);
    }
    for late in &report.late {
        _ = writeln!(
            out,
            "note: message {} entry {} in seal {} is dated {}, more than an hour before entries that were sealed earlier: a clock was wrong or the entry was forged; compare the message with other records",
            late.entry.message, late.entry, late.seal, late.at
        );
    }
    let AuditReport { seals, sealed, forgotten, unsealed, key_records, .. } = report;
    let verdict = match () {
        () if report.is_whole() => "intact",
        () if is_only_unkeyed(report) => "NOT SEALED WITH THIS KEY",
        () => "TAMPERED WITH",
    };
    _ = writeln!(out, "{verdict}: {sealed} entries in {seals} seals, {forgotten} of them deleted since");
    if 0 < *key_records {
        _ = writeln!(out, "{key_records} sealed key records were compared");
    }
    if let Some(set_back) = &report.set_back {
        _ = writeln!(out, "note: {}", render_clock(set_back));
    }
    for limit in limits(report, head_given) {
        _ = writeln!(out, "note: {limit}");
    }
    if 0 < report.hops_unsealed {
        _ = writeln!(
            out,
            "note: {} messages were sealed by an earlier version without their hops; changes to these hops are not detected",
            report.hops_unsealed
        );
    }
    if 0 < *unsealed {
        let since =
            report.unsealed_since.map(|since| format!(", the oldest from {since}")).unwrap_or_default();
        _ = writeln!(
            out,
            "note: {unsealed} entries are not sealed yet{since}: they are valid unless listed above, but a valid forgery is not detected; run `ichido audit seal`"
        );
    }
    out
}

/// Describes how far the database's clock went back.
fn render_clock(set_back: &SetBack) -> String {
    let SetBack { seals, entries, max } = set_back;
    // Rounded up to minutes if it is more than one: seconds add nothing.
    let secs = match max.as_secs() {
        secs @ ..60 => secs,
        secs => secs.div_ceil(60) * 60,
    };
    let by = duration::format(Duration::from_secs(secs));
    format!(
        "the database's clock was set back by up to {by}, or dates were forged before sealing: {entries} entries are dated before their predecessors, and {seals} seals before entries that were sealed earlier; compare with another log before you rely on these dates"
    )
}

/// Formats a finding: `changed: message … entry 4.0 in seal 3, of 2026-…: why`.
fn render_finding(finding: &AuditFinding) -> String {
    let mut line = format!("{}:", finding.kind.as_str());
    if let Some(message) = &finding.message {
        _ = write!(line, " message {message}");
    }
    if let Some(entry) = &finding.entry {
        _ = write!(line, " entry {entry}");
    }
    if let Some(seal) = finding.seal {
        let before = if finding.message.is_some() { " in" } else { "" };
        _ = write!(line, "{before} seal {seal}");
    }
    if let Some(at) = finding.at {
        _ = write!(line, ", of {at}");
    }
    _ = write!(line, ": {}", finding.why);
    line
}

/// Formats a finding about a key record: `removed: key 0123456789abcdef of orders.create for ann, of 2026-…: why`.
fn render_key(finding: &KeyFinding) -> String {
    let KeyFinding { kind, operation, identity, key, at, why } = finding;
    let (operation, identity) = (visible(operation), visible(identity));
    format!("{}: key {key} of {operation} for {identity}, of {at}: {why}", kind.as_str())
}

/// Returns whether the only finding is that no seal was ever made with a key.
///
/// An attacker without the key can only rebuild all seals without it, so this does not pass. The innocent explanation
/// is that nobody has sealed with a key yet.
fn is_only_unkeyed(report: &AuditReport) -> bool {
    report.seals_keyed == 0
        && report.found == report.findings.len() as u64
        && report.findings.iter().all(|finding| finding.kind == Kind::SealUnkeyed)
}

/// Lists what weakens this proof.
fn limits(report: &AuditReport, head_given: bool) -> Vec<&'static str> {
    let mut limits = Vec::new();
    if report.seals == 0 {
        limits.push(
            "there are no seals, so entries were only checked for validity; run `ichido audit seal` to create seals",
        );
        return limits;
    }
    if is_only_unkeyed(report) && !report.is_whole() {
        limits.push(
            "no seal was made with a key, so this key proves nothing: either sealing does not use the key yet (set the worker's audit_key, or pass --key-file to `ichido audit seal`; its first seal covers all earlier ones), or someone without the key recreated the seals; pass a saved head (--head) to find out",
        );
    } else if report.seals_keyed == 0 {
        limits.push(
            "the seals were made without a key, so anyone with write access to the database can recreate them",
        );
    } else if !report.key_given {
        limits.push("no key was given (--key-file), so the seals' codes were not checked");
    }
    if !head_given {
        limits.push("no head was given (--head), so missing seals at the end are not detected");
    }
    limits
}

/// Renders the report as one JSON object.
pub fn render_json(report: &AuditReport) -> Value {
    let findings = report.findings.iter().map(|finding| {
        json!({
            "kind": finding.kind.as_str(),
            "message": finding.message.map(|message| message.to_string()),
            "entry": finding.entry.map(|entry| json!({ "fence": entry.fence, "step": entry.step })),
            "seal": finding.seal,
            "at": finding.at.map(|at| at.to_string()),
            "why": finding.why,
        })
    });
    let keys = report.keys.iter().map(|finding| {
        json!({
            "kind": finding.kind.as_str(),
            "operation": finding.operation,
            "identity": finding.identity,
            "key_hash": finding.key.to_string(),
            "at": finding.at.to_string(),
            "why": finding.why,
        })
    });
    let late = report.late.iter().map(|late| {
        json!({
            "message": late.entry.message.to_string(),
            "entry": { "fence": late.entry.fence, "step": late.entry.step },
            "seal": late.seal,
            "at": late.at.to_string(),
        })
    });
    json!({
        "whole": report.is_whole(),
        "found": report.found,
        "findings": findings.collect::<Vec<_>>(),
        "keys": keys.collect::<Vec<_>>(),
        "key_records": report.key_records,
        "late": late.collect::<Vec<_>>(),
        "set_back": report.set_back.map(|set_back| json!({
            "seals": set_back.seals,
            "entries": set_back.entries,
            "max_seconds": set_back.max.as_secs(),
        })),
        "hops_unsealed": report.hops_unsealed,
        "seals": report.seals,
        "seals_keyed": report.seals_keyed,
        "key_given": report.key_given,
        "sealed": report.sealed,
        "forgotten": report.forgotten,
        "unsealed": report.unsealed,
        "unsealed_since": report.unsealed_since.map(|since| since.to_string()),
        "head": report.head.as_ref().map(ToString::to_string),
    })
}

/// Renders the last seal as JSON.
pub fn render_head(head: &SealHead) -> Value {
    json!({ "head": head.to_string(), "seal": head.number, "entries": head.total })
}
