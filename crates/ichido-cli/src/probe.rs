//! `ichido probe`: tests any HTTP API's idempotency from outside.
//!
//! Guarantee: it sends no request that it has not shown, and none beyond this machine that nobody agreed to. It ends
//! within its bounds, and names what it leaves behind. The verdicts are those of [`ichido_probe`].
// Spec: F3.

mod args;
mod document;
mod targets;

use std::path::Path;

use ichido_http::clock;
use ichido_http::signals::Signals;
use ichido_probe::{
    Baseline, ProbeRule, Report, RulePlan, Secrets, Target, announcement, check_writable, control, junit,
    plan, planned, rules_for, run_name, sarif,
};
use serde_json::json;

pub(crate) use args::Args;

use crate::exit::Exit;
use crate::out;
use targets::Resolved;

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let Resolved { targets, baseline, bounds } = targets::resolve(&args)?;
    let random: [u8; 4] = std::array::from_fn(|_| fastrand::u8(..));
    if args.dry_run {
        return dry_run(&targets, random, args.json);
    }
    for (flag, file) in [("--junit", &args.junit), ("--sarif", &args.sarif)] {
        file.as_deref().map_or(Ok(()), check_writable).map_err(|why| Exit::invalid(flag, why))?;
    }
    let mut agreed = Vec::new();
    for target in &targets {
        if is_agreed(target, random, &args)? {
            agreed.push(target);
        }
    }
    let mut signals = Signals::listen()?;
    let mut reports = Vec::new();
    for target in &agreed {
        let progress = |rule: &ProbeRule| tracing::info!(rule = rule.id, "rule started");
        let report =
            ichido_probe::run_until(target, bounds(target), random, clock::now, progress, signals.next());
        let report = report.await.map_err(|error| Exit::Failed(error.to_string()))?;
        let is_stopped = report.unchecked.as_ref().is_some_and(|unchecked| unchecked.is_stopped);
        reports.push(report);
        if is_stopped {
            break;
        }
    }
    let shown = show(&mut reports, &baseline, &args);
    match (shown, incomplete(&reports, &agreed[reports.len()..])) {
        (Ok(()) | Err(Exit::Findings), Some(incomplete)) => Err(incomplete),
        (shown, _) => shown,
    }
}

/// Shows what will be sent, and asks where that is not plainly meant: beyond this machine, or found in a document.
fn is_agreed(target: &Target, random: [u8; 4], args: &Args) -> Result<bool, Exit> {
    let what = announcement(target, random, clock::now(), args.max_requests);
    out::eprint(&format!("ichido probe: {what}\n"));
    if args.yes || (target.is_local() && args.openapi.is_none()) {
        return Ok(true);
    }
    out::ask("yes", &format!("ichido probe {what}"))
}

/// Says what was not checked; `None` if all was.
fn incomplete(reports: &[Report], left: &[&Target]) -> Option<Exit> {
    let unchecked: Vec<_> = reports.iter().filter_map(|report| report.unchecked.as_ref()).collect();
    let is_stopped = unchecked.iter().any(|unchecked| unchecked.is_stopped);
    let mut why: Vec<String> = unchecked.iter().map(ToString::to_string).collect();
    // A query may hold a credential.
    let path = |target: &Target| target.path.split('?').next().unwrap_or_default().to_owned();
    why.extend(left.iter().map(|target| format!("{} {} was not tested", target.method, path(target))));
    let why = why.join("; ");
    match () {
        () if why.is_empty() => None,
        () if is_stopped => Some(Exit::Interrupted(why)),
        () => Some(Exit::Failed(why)),
    }
}

/// What is sent before the requests of the rules.
const FIRST: &str = "The request as it is; again under another key where effects are missing";

/// Shows what a run would send.
fn dry_run(targets: &[Target], random: [u8; 4], is_json: bool) -> Result<(), Exit> {
    let run = run_name(random);
    let mut total = 0;
    let mut all = Vec::new();
    for target in targets {
        let secrets = Secrets::of(target);
        let first = control(target, &run, clock::now());
        total += first.requests();
        let text = planned(target, &secrets, &first);
        if is_json {
            all.push(json!({ "rule": null, "title": FIRST, "would_send": text }));
        } else {
            out::print(&format!("## {FIRST}\n{text}\n"))?;
        }
        for rule in rules_for(target) {
            let planned_rule = plan(rule, target, &run, clock::now());
            total += planned_rule.as_ref().map_or(0, RulePlan::requests);
            let text = match &planned_rule {
                Ok(planned_rule) => planned(target, &secrets, planned_rule),
                Err(verdict) => format!("# {}: {}\n", verdict.as_str(), verdict.why()),
            };
            if is_json {
                all.push(json!({ "rule": rule.id, "title": rule.title, "would_send": text }));
            } else {
                out::print(&format!("## {}: {}\n{text}\n", rule.id, rule.title))?;
            }
        }
    }
    if is_json {
        return out::print_line(json!({ "requests": total, "rules": all }));
    }
    out::print_line(format!("{total} requests, and more where a request is in flight; nothing was sent"))
}

fn show(reports: &mut [Report], baseline: &Baseline, args: &Args) -> Result<(), Exit> {
    for id in baseline.accept(reports) {
        out::eprint(&format!("ichido probe: the baseline lists {id}, which is not broken; remove it\n"));
    }
    if args.json {
        out::print_line(json!({ "runs": reports.iter().map(Report::to_json).collect::<Vec<_>>() }))?;
    } else {
        for report in &*reports {
            out::print(&report.people(&out::view()))?;
        }
    }
    let write = |file: &Option<std::path::PathBuf>, text: String| {
        file.as_ref().map_or(Ok(()), |file| save(file, &text))
    };
    write(&args.junit, junit(reports))?;
    write(&args.sarif, sarif(reports, env!("CARGO_PKG_VERSION")))?;
    let (mut errors, mut seen) = (0, 0);
    for totals in reports.iter().map(Report::totals) {
        errors += totals.errors;
        seen += totals.passed + totals.errors + totals.warnings + totals.accepted;
    }
    match (errors, seen) {
        // An incomplete run says itself why.
        (0, 0) if reports.iter().all(|report| report.unchecked.is_none()) => {
            let why: Vec<&str> = reports.iter().filter_map(|report| report.not_tested.as_deref()).collect();
            let why = if why.is_empty() { "the evidence says why".to_owned() } else { why.join("; ") };
            Err(Exit::Failed(format!("nothing was tested: {why}")))
        }
        (0, _) => Ok(()),
        _ => Err(Exit::Findings),
    }
}

fn save(file: &Path, text: &str) -> Result<(), Exit> {
    std::fs::write(file, text)
        .map_err(|error| Exit::Failed(format!("cannot write {}: {error}", file.display())))
}
