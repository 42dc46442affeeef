//! What a person sees while `ichido judge` runs: how far it is, how long it takes, and pauses.
//!
//! Guarantee: a pause that the provider asked for is announced once, at the first look after it began. So is each reason
//! why articles are not judged, and each endpoint that does not respond.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use ichido_core::plan::Estimate;
use ichido_core::time::Timestamp;

use super::Article;
use super::plan::{Plan, counted};
use crate::judge::{Counts, EndpointStatus, FallbackReason, JudgePause, limits};
use crate::seconds::format_duration;

/// A shorter pause is only shown in the bar: it ends before a person has read about it.
///
/// Less than what pauses an endpoint, because the first look is a moment after its response.
const MIN_ANNOUNCED: Duration = limits::MIN_PAUSE.saturating_sub(SAME_PAUSE);
/// A shorter one is part of the pace.
const MIN_SHOWN: Duration = Duration::from_secs(5);
/// Two pauses that end within this time are one: a clock is read for each look.
const SAME_PAUSE: Duration = Duration::from_secs(5);
/// Maximum number of reasons that are told during a run; the result has them all.
const MAX_TOLD: usize = 20;
/// A few articles that happened to be fast, or slow, say little about the others.
const MIN_MEASURED: u32 = 5;

/// The progress of a run, looked at again and again.
#[derive(Debug, Default)]
pub struct Progress {
    /// The time of the last look, since the run began.
    looked: Duration,
    /// The time without calls, because the provider asked for it.
    paused: Duration,
    /// The end of the pause that was announced last.
    announced: Option<Timestamp>,
    /// The ends of the endpoints' pauses that were announced last.
    endpoint_pauses: BTreeMap<String, Timestamp>,
    /// The reasons that were told.
    told: BTreeSet<String>,
}

impl Progress {
    /// Looks at a run that has taken this long. Returns the text beside the bar, and a pause to announce.
    pub fn look(
        &mut self,
        counts: &Counts,
        pause: Option<JudgePause>,
        took: Duration,
        plan: &Plan,
    ) -> (String, Option<String>) {
        let pause = pause.filter(|pause| MIN_SHOWN <= pause.left);
        if pause.is_some() {
            self.paused = self.paused.saturating_add(took.saturating_sub(self.looked));
        }
        self.looked = took;
        let text = if let Some(pause) = &pause {
            pause.render_end()
        } else {
            // Rounded up: nothing is left only at the end.
            let left = self.left(counts, took, plan).as_millis().div_ceil(1_000);
            let left = Duration::from_secs(u64::try_from(left).unwrap_or(u64::MAX));
            let Counts { throttled, retries, .. } = counts;
            format!("about {} left, throttled {throttled}, retries {retries}", format_duration(left))
        };
        (text, pause.and_then(|pause| self.announce(&pause, counts, plan)))
    }

    /// Returns what a person wants to know at once: why articles were given up, by the indexes in `articles`, and which
    /// endpoints are paused or do not respond, with the plan of the others.
    pub fn news(
        &mut self,
        articles: &[Article],
        given_up: &[(usize, FallbackReason)],
        endpoints: &[EndpointStatus],
        counts: &Counts,
        plan: &Plan,
    ) -> String {
        let mut news = String::new();
        for (index, why) in given_up {
            if let Some(article) = articles.get(*index).filter(|_| self.is_new(why.to_string())) {
                _ = writeln!(news, "line {} is not judged: {why}", article.line);
            }
        }
        for EndpointStatus { name, pause, is_away, .. } in endpoints {
            if *is_away && self.is_new(format!("{name} is away")) {
                _ = writeln!(news, "{name} fails; calls to it are retried, seldom until one succeeds");
            }
            // With one endpoint, the run is paused.
            let pause = pause.filter(|pause| MIN_ANNOUNCED <= pause.left && 1 < endpoints.len());
            let announced = self.endpoint_pauses.get(name).copied();
            if let Some(pause) = pause.filter(|pause| !is_same(announced, pause)) {
                self.endpoint_pauses.insert(name.clone(), pause.until);
                _ = writeln!(news, "{name}: {pause}; Ctrl-C to stop");
                // If all are paused, the run is, which is announced with its plan.
                if endpoints.iter().any(|endpoint| endpoint.pause.is_none()) {
                    news += &render_left(counts, plan, None);
                }
            }
        }
        news
    }

    fn is_new(&mut self, what: String) -> bool {
        self.told.len() < MAX_TOLD && self.told.insert(what)
    }

    /// Returns the remaining time without pauses, from what is known: at first the plan, then the calls of this run, and
    /// then its pace.
    fn left(&self, counts: &Counts, took: Duration, plan: &Plan) -> Duration {
        let (done, left) = progress_of(counts);
        let planned = plan.of(left, counts.latency()).likely;
        let Ok(parts) = u32::try_from(done) else { return planned };
        if parts < MIN_MEASURED {
            return planned;
        }
        let each = took.saturating_sub(self.paused) / parts;
        each.saturating_mul(u32::try_from(left).unwrap_or(u32::MAX))
    }

    fn announce(&mut self, pause: &JudgePause, counts: &Counts, plan: &Plan) -> Option<String> {
        if pause.left < MIN_ANNOUNCED || is_same(self.announced, pause) {
            return None;
        }
        self.announced = Some(pause.until);
        let left = render_left(counts, plan, Some(pause));
        Some(format!("{pause}; Ctrl-C to stop, `ichido judge --resume` to ask now\n{left}"))
    }
}

/// Renders the plan of what is left, after a pause.
fn render_left(counts: &Counts, plan: &Plan, pause: Option<&JudgePause>) -> String {
    let (_, left) = progress_of(counts);
    let takes = plan.of(left, counts.latency());
    let Estimate { best, likely, bad_day } = pause.map_or(takes, |pause| pause.delays(takes));
    let [best, likely, bad_day] = [best, likely, bad_day].map(format_duration);
    let articles = counted(usize::try_from(left).unwrap_or(usize::MAX), "article");
    format!("{articles} left: {best} at best, likely {likely}, {bad_day} on a bad day\n")
}

/// Returns whether this is the pause that was announced with this end.
fn is_same(announced: Option<Timestamp>, pause: &JudgePause) -> bool {
    announced.is_some_and(|until| pause.until <= until.plus(SAME_PAUSE))
}

/// Returns how many articles are done and how many are left.
fn progress_of(counts: &Counts) -> (u64, u64) {
    let done = counts.answered + counts.fallbacks;
    (done, counts.missing.saturating_sub(done))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::articles::plan::PlanInputs;
    use crate::judge::{KnownJudgements, Settings};

    const START: Timestamp = Timestamp::from_secs(1_763_550_000);

    fn plan() -> Plan {
        let known = KnownJudgements { answered: 0, missing: 12, tokens: 0, lost: 0 };
        let latency = Duration::from_secs(5);
        let inputs = PlanInputs {
            deadline: None,
            latency,
            max_output_tokens: 200,
            pause: None,
            learned_spacing: None,
            price: None,
        };
        Plan::new(12, known, &Settings::DEFAULT, &inputs)
    }

    fn counts(answered: u64, answering: Duration) -> Counts {
        Counts { missing: 12, answered, answering, ..Counts::default() }
    }

    /// A pause until a fixed time, seen this long after the start.
    fn pause(took: Duration) -> JudgePause {
        let left = Duration::from_mins(40).saturating_sub(took);
        JudgePause { until: START.plus(Duration::from_mins(40)), left, requested: None }
    }

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn remaining_time_is_known_from_the_first_look() {
        let mut progress = Progress::default();
        let mut left = |counts: Counts, took| progress.look(&counts, None, took, &plan()).0;
        // Six rounds of 7.5 s, and one article of twelve that waits 14 s.
        assert!(left(counts(0, Duration::ZERO), secs(0)).starts_with("about 59s left"));
        // Calls take 1 s: five rounds of 3.5 s, and the same wait.
        assert!(left(counts(2, secs(2)), secs(4)).starts_with("about 32s left"));
        // Six articles in 18 s.
        assert!(left(counts(6, secs(6)), secs(18)).starts_with("about 18s left"));
    }

    #[test]
    fn pause_is_announced_once_with_the_plan() {
        let mut progress = Progress::default();
        let (text, announced) = progress.look(&counts(6, secs(6)), Some(pause(secs(18))), secs(18), &plan());
        let expected = "paused until 11:40 UTC (39m 42s from now) by the provider; Ctrl-C to stop, \
                        `ichido judge --resume` to ask now\n\
                        6 articles left: 39m 52s at best, likely 40m 06s, 40m 22s on a bad day\n";
        assert_eq!(announced.as_deref(), Some(expected));
        assert_eq!(text, "paused until 11:40 UTC (39m 42s from now)");
        let (_, announced) = progress.look(&counts(6, secs(6)), Some(pause(secs(19))), secs(19), &plan());
        assert_eq!(announced, None);
        let (until, left) = (START.plus(Duration::from_mins(70)), Duration::from_mins(30));
        let again = JudgePause { until, left, requested: None };
        let (_, announced) = progress.look(&counts(6, secs(6)), Some(again), secs(2_400), &plan());
        assert!(announced.is_some(), "it asked again");
        let short = JudgePause { until: START.plus(Duration::from_mins(90)), left: secs(20), ..again };
        let (text, announced) = progress.look(&counts(6, secs(6)), Some(short), secs(2_500), &plan());
        assert_eq!(announced, None);
        assert!(text.starts_with("paused until"), "{text}");
    }

    #[test]
    fn each_reason_and_each_endpoint_is_told_once() {
        let articles = super::super::read("{\"title\":\"A\"}\n\n{\"title\":\"B\"}".as_bytes(), "a").unwrap();
        let refused = |why: &str| FallbackReason::Unusable { why: why.into() };
        let mut progress = Progress::default();
        let mut news = |given_up: &[(usize, FallbackReason)], endpoints: &[EndpointStatus]| {
            progress.news(&articles, given_up, endpoints, &counts(6, secs(6)), &plan())
        };
        let first = news(&[(1, refused("too long")), (0, refused("too long"))], &[]);
        assert_eq!(first, "line 3 is not judged: the model gave no usable answer: too long\n");
        assert_eq!(news(&[(0, refused("too long"))], &[]), "");
        assert!(news(&[(0, refused("prose"))], &[]).starts_with("line 1 "));
        let endpoint = |name: &str, pause, is_away| EndpointStatus {
            name: name.to_owned(),
            calls: 0,
            failed: 0,
            pause,
            is_away,
        };
        let east = endpoint("east", Some(pause(secs(0))), false);
        assert_eq!(news(&[], std::slice::from_ref(&east)), "", "the run is paused, which is announced");
        let both = [east, endpoint("west", None, true)];
        let told = "east: paused until 11:40 UTC (40m 00s from now) by the provider; Ctrl-C to stop\n\
                    6 articles left: 10.5s at best, likely 24.5s, 40.5s on a bad day\n\
                    west fails; calls to it are retried, seldom until one succeeds\n";
        assert_eq!(news(&[], &both), told);
        assert_eq!(news(&[], &both), "");
        for number in 0..50 {
            news(&[(0, refused(&number.to_string()))], &[]);
        }
        assert_eq!(news(&[(0, refused("one more"))], &[]), "", "there is a limit");
    }

    #[test]
    fn paused_time_says_nothing_about_the_pace() {
        let mut progress = Progress::default();
        for took in 10..=110 {
            progress.look(&counts(6, secs(6)), Some(pause(secs(took))), secs(took), &plan());
        }
        // The first look was in the pause, so it began at once; since it ended, six articles took 11 s.
        let (text, _) = progress.look(&counts(6, secs(6)), None, secs(121), &plan());
        assert!(text.starts_with("about 11s left"), "{text}");
    }
}
