//! Reports the result of a run, for people and as JSON.
// Spec: B12.

use std::fmt::Write as _;

use ichido_llm::articles::Judgement;
use ichido_llm::articles::plan::Plan;
use ichido_llm::judge::{Counts, JudgeEnd, JudgeReport, Outcome};
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::out;

/// Prints the result, and returns the command's result.
pub(super) fn finish(
    as_json: bool,
    plan: &Plan,
    report: &JudgeReport<Judgement>,
    quiet: bool,
) -> Result<(), Exit> {
    let fallbacks = report.outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Fallback(_))).count();
    if as_json {
        out::print_line(json!({ "plan": plan.to_json(), "summary": summary(report, fallbacks) }))?;
    } else {
        let text = render(report, fallbacks);
        if quiet {
            out::eprint(&text);
        } else {
            out::print(&text)?;
        }
    }
    match &report.ended {
        JudgeEnd::SetUp { code, why } => Err(Exit::Failed(format!(
            "cannot call the model: {code}, {why}; check --endpoint, the model's name, the API key and the account's permissions, then run the command again"
        ))),
        _ if 0 < fallbacks => Err(Exit::Findings),
        _ => Ok(()),
    }
}

fn render(report: &JudgeReport<Judgement>, fallbacks: usize) -> String {
    let Counts { calls, retries, throttled, unusable, lost, known, tokens_in, tokens_out, .. } =
        report.counts;
    let judged = report.outcomes.len() - fallbacks;
    let mut text = format!("{judged} judged ({known} already known), {fallbacks} fallbacks\n");
    _ = writeln!(
        text,
        "{calls} calls, {retries} of them retries; {throttled} throttled, {unusable} unusable responses, {tokens_in} tokens in, {tokens_out} out"
    );
    if 0 < lost {
        _ = writeln!(text, "{lost} calls had no response but may have been billed");
    }
    if report.ended == JudgeEnd::Deadline {
        text += "the deadline passed; run the same command again for the rest\n";
    }
    text
}

fn summary(report: &JudgeReport<Judgement>, fallbacks: usize) -> Value {
    let Counts { calls, retries, throttled, unusable, repaired, lost, known, tokens_in, tokens_out, .. } =
        report.counts;
    json!({
        "articles": report.outcomes.len(),
        "judged": report.outcomes.len() - fallbacks,
        "known_before": known,
        "fallbacks": fallbacks,
        "calls": calls,
        "retries": retries,
        "throttled": throttled,
        "unusable_answers": unusable,
        "repaired_answers": repaired,
        "possibly_billed": lost,
        "tokens": { "in": tokens_in, "out": tokens_out },
        "ended": match &report.ended {
            JudgeEnd::Whole => "whole",
            JudgeEnd::Deadline => "deadline",
            JudgeEnd::Stopped => "stopped",
            JudgeEnd::SetUp { .. } => "set_up",
        },
    })
}
