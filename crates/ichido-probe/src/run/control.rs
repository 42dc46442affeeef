//! Requests beside those of the rules: does the API accept the request at all, and does the counter see its effect?
//!
//! Guarantee: an API that does not accept the request gets only this one, and nothing is concluded from a counter that does
//! not see an accepted one. At the end each marker is counted once more, so a late second effect is found.

use std::cell::Cell;

use ichido_core::time::Timestamp;
use tokio::time::sleep;

use super::{COUNT_AGAIN_AFTER, MAX_COUNTS, Run};
use crate::exchange::{EffectCount, Step};
use crate::kit::Kit;
use crate::report::RuleFinding;
use crate::rules::{RulePlan, judge};
use crate::seen::{Seen, Verdict};
use crate::target::{Counter, MARKER, Target};
use crate::transcript::transcript;

/// What its keys and its marker are made of, as those of a rule are.
const ID: &str = "ICH-P00";
/// The number of the key before the first rule.
const FIRST: usize = 1;

/// Plans the request that is sent before those of the rules.
pub fn control(target: &Target, run: &str, now: Timestamp) -> RulePlan {
    planned(&Kit::new(target, ID, run, now), FIRST)
}

fn planned(kit: &Kit<'_>, number: usize) -> RulePlan {
    let purpose = "the first request";
    let request = if kit.target.webhook.is_some() {
        kit.delivery(purpose, number, 0)
    } else {
        kit.polled(purpose, number)
    };
    RulePlan { steps: vec![Step::Send(request)], count: kit.count(), marker: kit.marker() }
}

/// What came of a control.
enum Control {
    /// It was accepted, and the counter sees it or failed.
    Seen,
    /// It was accepted, and the count is as before.
    Unseen,
    /// It was not accepted: why.
    Refused(Verdict),
    /// A bound of the run was reached.
    NotSent,
}

/// A rule whose effects are counted once more at the end.
pub(super) struct Later {
    pub(super) planned: RulePlan,
    /// Which finding it is.
    pub(super) index: usize,
    /// The count before its steps.
    pub(super) before: u64,
}

impl Run<'_> {
    /// Sends the target's request as it is. Returns why nothing can be tested.
    pub(super) async fn try_target(&mut self) -> Option<Verdict> {
        match self.control().await {
            Control::Seen | Control::NotSent => None,
            Control::Unseen => Some(Verdict::Unverified(format!("the counter {}", self.blindness()))),
            // That it refuses a valid delivery is a fault of a consumer, which a rule is about.
            Control::Refused(Verdict::NotApplicable(_)) if self.target.webhook.is_some() => None,
            Control::Refused(why) => Some(why),
        }
    }

    /// Whether the counter still sees an accepted request: a list may be full, or end at a limit.
    pub(super) async fn still_counts(&mut self) -> bool {
        let marker = self.marker.clone();
        let control = self.control().await;
        self.marker = marker;
        self.is_blind |= matches!(control, Control::Unseen);
        !self.is_blind
    }

    /// Says what a counter that sees nothing lacks.
    pub(super) fn blindness(&self) -> String {
        let options = match self.target.counter {
            Some(Counter::Command(_)) => "--count-command",
            Some(Counter::Get { .. }) | None => "--count and --at",
        };
        format!("does not see an accepted request; check {options}")
    }

    async fn control(&mut self) -> Control {
        self.controls += 1;
        let kit = Kit::new(self.target, ID, &self.name, self.now);
        let RulePlan { steps, count, marker } = planned(&kit, self.controls);
        self.marker = marker;
        let before = self.count(count.as_ref()).await;
        let mut exchanges = Vec::new();
        if self.steps(steps, &mut exchanges).await.is_err() {
            return Control::NotSent;
        }
        let (effects, profile) = (&EffectCount::NotCounted, self.target.profile);
        let seen = Seen { exchanges: &exchanges, effects, profile, doubt: Cell::default() };
        if let Err(why) = seen.accepted(0) {
            return Control::Refused(why.map(|why| self.secrets.redacted(&why)));
        }
        for counts in 1..=MAX_COUNTS {
            match (&before, self.count(count.as_ref()).await) {
                // The counter may be behind.
                (Some(Ok(before)), Some(Ok(after))) if *before == after && counts < MAX_COUNTS => {
                    sleep(COUNT_AGAIN_AFTER).await;
                }
                (Some(Ok(before)), Some(Ok(after))) if *before == after => return Control::Unseen,
                (_, Some(Ok(after))) => {
                    self.counted = Some(after);
                    break;
                }
                _ => break,
            }
        }
        Control::Seen
    }

    /// Counts the effects of each rule once more: one that came after its count is an effect too.
    pub(super) async fn count_later(&mut self, all: Vec<Later>, findings: &mut [RuleFinding]) {
        let is_of_marker =
            matches!(&self.target.counter, Some(Counter::Get { path, .. }) if path.contains(MARKER));
        if !is_of_marker {
            return;
        }
        let control = control(self.target, &self.name, self.now);
        // A counter of all markers has risen since; one that others move has, too.
        if self.counted.is_none()
            || self.count(control.count.as_ref()).await.and_then(Result::ok) != self.counted
        {
            return;
        }
        for Later { planned, index, before } in all {
            let finding = &mut findings[index];
            let (Verdict::Pass(_), EffectCount::Counted(counted)) = (&finding.verdict, &finding.effects)
            else {
                continue;
            };
            let Some(Ok(after)) = self.count(planned.count.as_ref()).await else { return };
            let effects = EffectCount::Counted(after.saturating_sub(before));
            if effects == EffectCount::Counted(*counted) {
                continue;
            }
            let (verdict, _) = judge(finding.rule, self.target.profile, &finding.exchanges, &effects);
            if let Verdict::Fail(why) = verdict {
                finding.verdict = Verdict::Fail(format!("{why}, counted again at the end of the run"));
                let exchanges = &finding.exchanges;
                finding.transcript = transcript(self.target, &self.secrets, &planned, exchanges, &effects);
                finding.effects = effects;
            }
        }
    }
}
