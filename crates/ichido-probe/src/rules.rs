//! The rules: what each sends, and what it concludes from what came back.
//!
//! [`rules()`] is the table, in the order of the ids. What a rule expects in each profile is written on its page.

#![expect(
    clippy::unnecessary_wraps,
    reason = "the steps of all rules have one type, and some apply everywhere"
)]

mod failing;
mod identity;
mod in_flight;
mod key_syntax;
mod lost;
mod replay;
#[cfg(test)]
mod tests;
mod webhook;

use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Deref;

use ichido_core::ledger::Profile;
use ichido_core::time::Timestamp;
use ichido_rules::RulePage;

use crate::exchange::{EffectCount, Exchange, ProbeRequest, Step};
use crate::kit::{KEY, Kit, NotApplicable};
use crate::seen::{Doubt, Judged, Seen, Verdict, counted};
use crate::target::Target;

/// One rule.
pub struct ProbeRule {
    declared: RulePage,
    /// What it is about.
    pub subject: Subject,
    /// Whether it is about effects, so it needs a counter.
    pub counts_effects: bool,
    steps: fn(&Kit<'_>) -> Result<Vec<Step>, NotApplicable>,
    conclude: fn(&Seen<'_>) -> Judged<String>,
}

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An API that takes idempotency keys.
    Api,
    /// A consumer of webhooks.
    Webhook,
}

/// The requests of a rule.
#[derive(Clone, Debug)]
pub struct RulePlan {
    /// The steps.
    pub steps: Vec<Step>,
    /// The request that counts effects, before and after the steps.
    pub count: Option<ProbeRequest>,
    /// The text that marks its requests.
    pub marker: String,
}

impl RulePlan {
    /// Returns how many requests it sends at least.
    pub fn requests(&self) -> usize {
        self.steps.iter().flat_map(Step::requests).count() + 2 * usize::from(self.count.is_some())
    }

    /// Returns how many of them may take effect in an API that keeps the rule.
    pub fn effects(&self) -> usize {
        let requests = self.steps.iter().flat_map(Step::requests);
        let key = |request: &ProbeRequest| {
            let is_key = |name: &str| name.eq_ignore_ascii_case(KEY) || name == "webhook-id";
            request.headers.iter().find(|(name, _)| is_key(name)).map(|(_, value)| value.clone())
        };
        requests.map(key).collect::<HashSet<_>>().len()
    }
}

impl Deref for ProbeRule {
    type Target = RulePage;

    fn deref(&self) -> &RulePage {
        &self.declared
    }
}

impl std::fmt::Debug for ProbeRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.declared.fmt(f)
    }
}

impl ProbeRule {
    /// Returns what the rule expects of a profile, as its page says.
    pub fn expected(&self, profile: Profile) -> &'static str {
        let row = format!("\n| {profile} | ");
        let found = self.page.split_once(&*row).and_then(|(_, rest)| rest.split_once(" |"));
        found.map_or_else(
            // A page without a table says it in one line.
            || self.page.rsplit_once(EXPECTED).map_or("", |(_, rest)| rest.trim()),
            |(text, _)| text,
        )
    }

    /// Returns its page.
    pub const fn declared(&self) -> &RulePage {
        &self.declared
    }
}

/// The heading of what is expected.
const EXPECTED: &str = "What is expected\n\n";

macro_rules! rule {
    ($id:literal, $subject:ident, $counts:literal, $steps:path, $conclude:path) => {
        ProbeRule {
            declared: RulePage::new(include_str!(concat!("../../../docs/probe/", $id, ".md")), EXPECTED),
            subject: Subject::$subject,
            counts_effects: $counts,
            steps: $steps,
            conclude: $conclude,
        }
    };
}

static RULES: [ProbeRule; 36] = [
    rule!("ICH-P01", Api, true, key_syntax::missing_steps, key_syntax::missing),
    rule!("ICH-P02", Api, true, key_syntax::invalid_steps, key_syntax::invalid),
    rule!("ICH-P03", Api, true, key_syntax::quoted_steps, key_syntax::quoted),
    rule!("ICH-P04", Api, true, key_syntax::two_lines_steps, key_syntax::two_lines),
    rule!("ICH-P05", Api, true, key_syntax::parameter_steps, key_syntax::parameter),
    rule!("ICH-P06", Api, true, replay::retry_steps, replay::retry),
    rule!("ICH-P07", Api, true, replay::many_steps, replay::many),
    rule!("ICH-P08", Api, true, in_flight::race_steps, in_flight::race),
    rule!("ICH-P09", Api, true, in_flight::duplicate_steps, in_flight::duplicate),
    rule!("ICH-P10", Api, true, identity::other_body_steps, identity::other_body),
    rule!("ICH-P11", Api, false, in_flight::other_body_steps, in_flight::other_body),
    rule!("ICH-P12", Api, false, identity::other_operation_steps, identity::other_operation),
    rule!("ICH-P13", Api, true, replay::other_spelling_steps, replay::other_spelling),
    rule!("ICH-P14", Api, false, identity::close_values_steps, identity::close_values),
    rule!("ICH-P15", Api, true, identity::other_key_steps, identity::other_key),
    rule!("ICH-P16", Api, false, identity::other_caller_steps, identity::other_caller),
    rule!("ICH-P17", Api, true, identity::fresh_credential_steps, identity::fresh_credential),
    rule!("ICH-P18", Api, false, replay::headers_steps, replay::headers),
    rule!("ICH-P19", Api, true, lost::response_steps, lost::response),
    rule!("ICH-P20", Api, true, lost::connection_steps, lost::connection),
    rule!("ICH-P21", Api, true, lost::upload_steps, lost::upload),
    rule!("ICH-P22", Api, true, failing::invalid_body_steps, failing::invalid_body),
    rule!("ICH-P23", Api, true, failing::after_effect_steps, failing::after_effect),
    rule!("ICH-P24", Api, true, failing::limited_steps, failing::limited),
    rule!("ICH-P25", Api, true, lost::process_steps, lost::process),
    rule!("ICH-P26", Api, true, in_flight::outlasted_steps, in_flight::outlasted),
    rule!("ICH-P27", Api, true, failing::store_outage_steps, failing::store_outage),
    rule!("ICH-P28", Api, true, failing::expired_steps, failing::expired),
    rule!("ICH-P29", Api, true, failing::large_response_steps, failing::large_response),
    rule!("ICH-P30", Api, false, identity::refusal_steps, identity::refusal),
    rule!("ICH-W01", Webhook, false, webhook::signed_steps, webhook::signed),
    rule!("ICH-W02", Webhook, true, webhook::forged_steps, webhook::forged),
    rule!("ICH-W03", Webhook, true, webhook::out_of_time_steps, webhook::out_of_time),
    rule!("ICH-W04", Webhook, true, webhook::repeated_steps, webhook::repeated),
    rule!("ICH-W05", Webhook, true, webhook::together_steps, webhook::together),
    rule!("ICH-W06", Webhook, true, webhook::reordered_steps, webhook::reordered),
];

/// Returns every rule in the order of its id.
pub fn rules() -> impl Iterator<Item = &'static ProbeRule> {
    RULES.iter()
}

/// The rules about a target.
pub fn rules_for(target: &Target) -> impl Iterator<Item = &'static ProbeRule> {
    let is_webhook = target.webhook.is_some();
    rules().filter(move |rule| (rule.subject == Subject::Webhook) == is_webhook)
}

/// Plans what a rule sends to a target, or says why it does not apply.
///
/// `run` is the name of the run, which every marker and key depends on.
pub fn plan(
    rule: &'static ProbeRule,
    target: &Target,
    run: &str,
    now: Timestamp,
) -> Result<RulePlan, Verdict> {
    let kit = Kit::new(target, rule.id, run, now);
    let steps = (rule.steps)(&kit).map_err(Verdict::NotApplicable)?;
    Ok(RulePlan { steps, count: kit.count(), marker: kit.marker() })
}

/// Gives the verdict on a rule, and why the effects should be counted again first.
pub(crate) fn judge(
    rule: &ProbeRule,
    profile: Profile,
    exchanges: &[Exchange],
    effects: &EffectCount,
) -> (Verdict, Doubt) {
    let seen = Seen { exchanges, effects, profile, doubt: Cell::default() };
    let verdict = match (rule.conclude)(&seen) {
        Err(verdict) => verdict,
        Ok(why) if rule.counts_effects && *effects == EffectCount::NotCounted => Verdict::Unverified(
            format!("{why}; its effects were not counted: pass --count or --count-command"),
        ),
        Ok(why) => match effects {
            EffectCount::Failed(failed) if rule.counts_effects => {
                Verdict::Unverified(format!("{why}; the counter failed: {failed}"))
            }
            _ => Verdict::Pass(why),
        },
    };
    (verdict, seen.doubt.get())
}

/// Joins what was seen with the counted effects.
pub(crate) fn with_effects(seen: &Seen<'_>, what: &str) -> String {
    match seen.effects {
        EffectCount::Counted(count) => format!("{what}, {}", counted(*count)),
        EffectCount::NotCounted | EffectCount::Failed(_) => what.to_owned(),
    }
}
