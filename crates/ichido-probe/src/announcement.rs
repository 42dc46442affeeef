//! What a person is told before anything is sent.

use ichido_core::text::visible;
use ichido_core::time::Timestamp;

use crate::kit::run_name;
use crate::rules::{RulePlan, plan, rules_for};
use crate::run::control;
use crate::secrets::Secrets;
use crate::target::Target;

/// Says what a run sends to a target and what it leaves behind, without secrets and control characters.
pub fn announcement(target: &Target, random: [u8; 4], now: Timestamp, max_requests: usize) -> String {
    let run = run_name(random);
    let plans = rules_for(target).filter_map(|rule| plan(rule, target, &run, now).ok());
    let plans: Vec<RulePlan> = plans.chain([control(target, &run, now)]).collect();
    let requests: usize = plans.iter().map(RulePlan::requests).sum();
    let effects: usize = plans.iter().map(RulePlan::effects).sum();
    let body = if target.body.is_empty() { String::new() } else { format!(" with {}", target.body) };
    let secrets = Secrets::of(target);
    let text = format!(
        "sends variants of {} {}{}{body}: about {requests} requests (at most {max_requests}); up to {effects} take \
         effect, marked {run}, and nothing removes what they leave",
        target.method,
        target.origin(),
        secrets.redacted_url(&target.path),
    );
    visible(&secrets.redacted(&text))
}
