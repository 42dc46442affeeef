//! The result of a run of `ichido judge`, for people and as JSON.
// SPEC B12.

use std::collections::BTreeMap;
use std::time::Duration;

use ichido_core::text::table;
use ichido_core::verdict::ErrorCode;
use serde_json::{Value, json};

use super::{Judgement, Profile};
use crate::judge::{Counts, EndpointStatus, FallbackReason, JudgeEnd, JudgeReport, Outcome};
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
    /// Whether a file of an earlier run is still there instead.
    is_kept: bool,
}

impl<'a> RunResult<'a> {
    /// Counts the outcomes of a run that took this long and whose judgements go to `path`.
    ///
    /// If nothing was judged and that file exists, it is kept.
    pub fn new(
        report: &'a JudgeReport<Judgement>,
        profile: &'a Profile,
        max_output_tokens: u32,
        took: Duration,
        path: &'a str,
        exists: bool,
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
        let fallback_label = &profile.fallback;
        let is_kept = exists && labels.iter().all(|(_, count)| *count == 0);
        Self { report, labels, fallbacks, fallback_label, max_output_tokens, took, path, is_kept }
    }

    /// Returns whether a file of an earlier run stays, because nothing was judged.
    pub fn is_kept(&self) -> bool {
        self.is_kept
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
            let was_twice_enough = !self.fallbacks.contains_key("cut_off");
            let advised = max.saturating_mul(if was_twice_enough { 2 } else { 4 });
            let why = format!("answers did not fit into {max} tokens; pass --max-output-tokens {advised}");
            rows.push(row("  cut off", cut_off, why));
        }
        if let [_, _, ..] = self.report.endpoints.as_slice() {
            rows.extend(self.report.endpoints.iter().map(
                |EndpointStatus { name, calls, failed, .. }| {
                    row(&format!("  {name}"), *calls, format!("without an answer {failed}"))
                },
            ));
        }
        rows.push(row("possibly billed", lost, "calls without a response".to_owned()));
        rows.push(row(
            "tokens",
            tokens_in.saturating_add(tokens_out),
            format!("{tokens_in} in, {tokens_out} out"),
        ));
        rows.push(["time".to_owned(), format_duration(self.took), String::new()]);
        let lines = self.report.outcomes.len();
        rows.push(if self.is_kept {
            row("results", 0, format!("nothing was judged, so {} is unchanged", self.path))
        } else {
            row("results", lines as u64, format!("one line per article, in {}", self.path))
        });
        let mut text = table(["RESULT", "COUNT", "DETAILS"], rows);
        let is_paused = self.report.outcomes.contains(&Outcome::Fallback(FallbackReason::Paused));
        text += match self.report.ended {
            JudgeEnd::Deadline if is_paused => {
                "the provider's pause ends after the deadline; run the same command again after the pause\n"
            }
            JudgeEnd::Deadline => "the deadline passed; run the same command again for the rest\n",
            _ => "",
        };
        text
    }

    /// Returns why no article can be judged and what to do about it, if the run ended for that.
    pub fn failure(&self) -> Option<String> {
        let (what, help) = match &self.report.ended {
            JudgeEnd::SetUp { code: ErrorCode::BadRequest, why } if why.starts_with("404") => (
                format!("cannot call the model: {why}"),
                "check the model's name, and that --endpoint is the base URL of the API, such as https://api.openai.com/v1"
                    .to_owned(),
            ),
            JudgeEnd::SetUp { code: ErrorCode::AnswerUnusable, why } => (
                format!("the model gives no usable answers: {why}"),
                "check that --endpoint is the base URL of the API, such as https://api.openai.com/v1, and whether the model \
                 can write JSON"
                    .to_owned(),
            ),
            JudgeEnd::SetUp { code, why } => {
                (format!("cannot call the model: {code}, {why}"), advice(*code).to_owned())
            }
            JudgeEnd::CutOff { max_tokens } => (
                format!("the model's answers do not fit into {max_tokens} tokens"),
                format!("pass --max-output-tokens {} or more", max_tokens.saturating_mul(2)),
            ),
            JudgeEnd::Whole | JudgeEnd::Deadline | JudgeEnd::Stopped => return None,
        };
        Some(format!("{what}; {help}, then run the command again"))
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
            "out_is_unchanged": self.is_kept,
            "endpoints": self.report.endpoints.iter().map(endpoint).collect::<Vec<_>>(),
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

/// Returns what to do about calls that all fail with this code.
const fn advice(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Unauthorized => "check the API key, and that its account may use the model",
        ErrorCode::QuotaSpent => "raise the account's quota or pay its bill",
        ErrorCode::ConnectFailed | ErrorCode::NetworkTimeout => {
            "check the scheme, host and port of --endpoint, and that a server listens there"
        }
        _ => "check --endpoint, the model's name and --max-output-tokens",
    }
}

fn endpoint(EndpointStatus { name, calls, failed, .. }: &EndpointStatus) -> Value {
    json!({ "endpoint": name, "calls": calls, "failed": failed })
}

fn row(name: &str, count: u64, details: String) -> [String; 3] {
    [name.to_owned(), count.to_string(), details]
}

#[cfg(test)]
mod tests {
    use ichido_core::time::Timestamp;

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
        let endpoint = |name: &str, calls, failed| EndpointStatus {
            name: name.to_owned(),
            calls,
            failed,
            pause: None,
            is_away: false,
        };
        let endpoints = vec![endpoint("https://a", 12, 8), endpoint("https://b", 2, 2)];
        let report = JudgeReport { outcomes, counts, endpoints, ended: JudgeEnd::Whole };
        let profile = Profile::parse(Profile::DEFAULT).unwrap();
        let took = Duration::from_millis(12_400);
        let result = RunResult::new(&report, &profile, 2_048, took, "judgements.jsonl", true);
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
  cut off        2      answers did not fit into 2048 tokens; pass --max-output-tokens 8192
  https://a      12     without an answer 8
  https://b      2      without an answer 2
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
        assert_eq!(json["endpoints"][0], json!({ "endpoint": "https://a", "calls": 12, "failed": 8 }));
        let kept = RunResult { is_kept: true, ..result }.render();
        assert!(
            kept.contains("results          0      nothing was judged, so judgements.jsonl is unchanged"),
            "{kept}"
        );
    }

    #[test]
    fn failure_names_what_to_check_by_its_cause() {
        let profile = Profile::parse(Profile::DEFAULT).unwrap();
        let failure = |ended| {
            let (outcomes, endpoints) = (Vec::new(), Vec::new());
            let report = JudgeReport { outcomes, counts: Counts::default(), endpoints, ended };
            RunResult::new(&report, &profile, 2_048, Duration::ZERO, "o", false).failure()
        };
        let set_up = |code, why: &str| failure(JudgeEnd::SetUp { code, why: why.into() }).unwrap();
        let refused = set_up(ErrorCode::ConnectFailed, "refused");
        assert!(refused.contains("CONNECT_FAILED, refused; check the scheme, host and port"), "{refused}");
        assert!(set_up(ErrorCode::QuotaSpent, "402").contains("quota or pay"));
        assert!(set_up(ErrorCode::Unauthorized, "401").contains("check the API key"));
        assert!(
            set_up(ErrorCode::AnswerUnusable, "HTML")
                .contains("no usable answers: HTML; check that --endpoint")
        );
        let missing = set_up(ErrorCode::BadRequest, "404 Not Found: model_not_found");
        assert!(
            missing.contains("model: 404 Not Found: model_not_found; check the model's name"),
            "{missing}"
        );
        let cut_off = failure(JudgeEnd::CutOff { max_tokens: 400 }).unwrap();
        assert!(cut_off.contains("do not fit into 400 tokens; pass --max-output-tokens 800"), "{cut_off}");
        assert_eq!(failure(JudgeEnd::Deadline), None);
    }

    #[test]
    fn pause_beyond_the_deadline_is_told_apart() {
        let profile = Profile::parse(Profile::DEFAULT).unwrap();
        let end = |why| {
            let (outcomes, endpoints) = (vec![Outcome::Fallback(why)], Vec::new());
            let report =
                JudgeReport { outcomes, counts: Counts::default(), endpoints, ended: JudgeEnd::Deadline };
            RunResult::new(&report, &profile, 2_048, Duration::ZERO, "o", false).render()
        };
        assert!(end(FallbackReason::Paused).contains("the provider's pause ends after the deadline; run"));
        assert!(end(FallbackReason::Deadline).contains("the deadline passed; run"));
    }
}
