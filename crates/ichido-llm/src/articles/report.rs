//! The result of a run of `ichido judge`, for people and as JSON.
// SPEC B12.

use std::collections::BTreeMap;
use std::time::Duration;

use ichido_core::text::table;
use serde_json::{Value, json};

use super::{Judgement, Profile};
use crate::judge::{Counts, FallbackReason, JudgeEnd, JudgeReport, Outcome};
use crate::seconds::format_duration;

/// The result of a run.
pub struct RunResult<'a> {
    report: &'a JudgeReport<Judgement>,
    /// How many articles have each label of the profile, without fallbacks.
    labels: Vec<(&'a str, u64)>,
    /// How many fallbacks there are for each reason, and the first of them.
    fallbacks: BTreeMap<&'static str, (u64, &'a FallbackReason)>,
    fallback_label: &'a str,
    max_output_tokens: u32,
    took: Duration,
    /// Where the judgements are.
    path: &'a str,
}

impl<'a> RunResult<'a> {
    /// Counts the outcomes of a run that took this long and whose judgements are at `path`.
    pub fn new(
        report: &'a JudgeReport<Judgement>,
        profile: &'a Profile,
        max_output_tokens: u32,
        took: Duration,
        path: &'a str,
    ) -> Self {
        let mut labels: Vec<_> = profile.names().map(|name| (name, 0)).collect();
        let mut fallbacks = BTreeMap::new();
        for outcome in &report.outcomes {
            match outcome {
                Outcome::Judged(judged) => {
                    if let Some((_, count)) = labels.iter_mut().find(|(name, _)| *name == judged.answer.label)
                    {
                        *count += 1;
                    }
                }
                Outcome::Fallback(why) => fallbacks.entry(why.as_str()).or_insert((0, why)).0 += 1,
            }
        }
        Self { report, labels, fallbacks, fallback_label: &profile.fallback, max_output_tokens, took, path }
    }

    /// Returns how many articles were not judged.
    pub fn fallbacks(&self) -> u64 {
        self.fallbacks.values().map(|(count, _)| count).sum()
    }

    /// Returns how many articles were judged, in this run or before.
    pub fn judged(&self) -> u64 {
        self.labels.iter().map(|(_, count)| count).sum()
    }

    /// Renders the result for people.
    pub fn render(&self) -> String {
        let Counts {
            calls, retries, throttled, unusable, cut_off, lost, known, tokens_in, tokens_out, ..
        } = self.report.counts;
        let mut rows = vec![row("judged", self.judged(), format!("{known} of them known before"))];
        rows.extend(self.labels.iter().map(|(name, count)| row(&format!("  {name}"), *count, String::new())));
        let label = if self.fallbacks.is_empty() {
            String::new()
        } else {
            format!("labelled {}", self.fallback_label)
        };
        rows.push(row("fallbacks", self.fallbacks(), label));
        rows.extend(self.fallbacks.iter().map(|(name, (count, why))| {
            let which = if 1 < *count { "the first: " } else { "" };
            row(&format!("  {name}"), *count, format!("{which}{why}"))
        }));
        rows.push(row(
            "calls",
            calls,
            format!("retries {retries}, throttled {throttled}, unusable answers {unusable}"),
        ));
        if 0 < cut_off {
            let max = self.max_output_tokens;
            let why = format!(
                "answers did not fit; --max-output-tokens is {max}, and asking again allows {}",
                max.saturating_mul(2)
            );
            rows.push(row("  cut off", cut_off, why));
        }
        rows.push(row("possibly billed", lost, "calls without a response".to_owned()));
        rows.push(row(
            "tokens",
            tokens_in.saturating_add(tokens_out),
            format!("{tokens_in} in, {tokens_out} out"),
        ));
        rows.push(["time".to_owned(), format_duration(self.took), String::new()]);
        let lines = self.report.outcomes.len();
        rows.push(row("results", lines as u64, format!("one line per article, in {}", self.path)));
        let mut text = table(["RESULT", "COUNT", "DETAILS"], rows);
        if self.report.ended == JudgeEnd::Deadline {
            text += "the deadline passed; run the same command again for the rest\n";
        }
        text
    }

    /// Renders the result as JSON.
    pub fn to_json(&self) -> Value {
        let Counts {
            calls,
            retries,
            throttled,
            unusable,
            cut_off,
            repaired,
            lost,
            known,
            tokens_in,
            tokens_out,
            ..
        } = self.report.counts;
        let reasons: BTreeMap<_, _> = self.fallbacks.iter().map(|(name, (count, _))| (name, count)).collect();
        json!({
            "articles": self.report.outcomes.len(),
            "judged": self.judged(),
            "known_before": known,
            "labels": self.labels.iter().copied().collect::<BTreeMap<_, _>>(),
            "fallbacks": self.fallbacks(),
            "fallbacks_by_reason": reasons,
            "calls": calls,
            "retries": retries,
            "throttled": throttled,
            "unusable_answers": unusable,
            "cut_off_answers": cut_off,
            "repaired_answers": repaired,
            "possibly_billed": lost,
            "tokens": { "in": tokens_in, "out": tokens_out },
            "seconds": self.took.as_secs_f64(),
            "out": self.path,
            "ended": match &self.report.ended {
                JudgeEnd::Whole => "whole",
                JudgeEnd::Deadline => "deadline",
                JudgeEnd::Stopped => "stopped",
                JudgeEnd::SetUp { .. } => "set_up",
                JudgeEnd::CutOff { .. } => "cut_off",
            },
        })
    }
}

fn row(name: &str, count: u64, details: String) -> [String; 3] {
    [name.to_owned(), count.to_string(), details]
}

#[cfg(test)]
mod tests {
    use ichido_core::time::Timestamp;
    use ichido_core::verdict::ErrorCode;

    use super::*;
    use crate::judge::JudgedAnswer;

    fn judged(label: &str) -> Outcome<Judgement> {
        let answer = Judgement { label: label.to_owned(), confidence: 1.0, reason: String::new() };
        Outcome::Judged(JudgedAnswer { answer, at: Timestamp::EPOCH, was_known: false, lost: 0 })
    }

    #[test]
    fn result_lists_labels_fallbacks_calls_and_the_output_file() {
        let spent =
            FallbackReason::Spent { code: ErrorCode::RateLimited, why: "429 Too Many Requests".into() };
        let cut_off = FallbackReason::CutOff { max_tokens: 4_096 };
        let fallbacks = [spent.clone(), spent, cut_off].map(Outcome::Fallback);
        let outcomes = ["FYI", "THINK", "FYI"].map(judged).into_iter().chain(fallbacks).collect();
        let counts = Counts {
            known: 1,
            calls: 14,
            retries: 9,
            throttled: 10,
            unusable: 2,
            cut_off: 2,
            lost: 1,
            tokens_in: 900,
            tokens_out: 100,
            ..Counts::default()
        };
        let report = JudgeReport { outcomes, counts, ended: JudgeEnd::Whole };
        let profile = Profile::parse(Profile::DEFAULT).unwrap();
        let result =
            RunResult::new(&report, &profile, 2_048, Duration::from_millis(12_400), "judgements.jsonl");
        let expected = "\
RESULT           COUNT  DETAILS
judged           3      1 of them known before
  ACT_NOW        0
  THINK          1
  FYI            2
  IGNORE         0
fallbacks        3      labelled IGNORE
  cut_off        1      the answer did not fit into 4096 tokens
  retries_spent  2      the first: its retries are exhausted: RATE_LIMITED, 429 Too Many Requests
calls            14     retries 9, throttled 10, unusable answers 2
  cut off        2      answers did not fit; --max-output-tokens is 2048, and asking again allows 4096
possibly billed  1      calls without a response
tokens           1000   900 in, 100 out
time             12.4s
results          6      one line per article, in judgements.jsonl
";
        assert_eq!(result.render(), expected);
        let json = result.to_json();
        assert_eq!(json["labels"], json!({ "ACT_NOW": 0, "THINK": 1, "FYI": 2, "IGNORE": 0 }));
        assert_eq!(json["fallbacks_by_reason"], json!({ "cut_off": 1, "retries_spent": 2 }));
        assert_eq!((&json["seconds"], &json["out"]), (&json!(12.4), &json!("judgements.jsonl")));
    }
}
