//! Evaluates the queues that workers have published.

use ichido::worker::ShortKeyRetention;
use ichido_core::retry::Guarantee;
use ichido_core::settings::duration;
use ichido_server::config::Config;
use ichido_store::facts::{PublishedQueue, QueueFacts};
use ichido_store::node::NodeRow;

use super::evaluate::short_memory_finding;
use super::report::DoctorCheck;

const NAME: &str = "queues";

/// Checks that nodes agree, with the configuration too. Without one, checks that receivers remember keys long enough.
pub(super) fn evaluate(queues: &[PublishedQueue], config: Option<&Config>) -> Vec<DoctorCheck> {
    if queues.is_empty() {
        return vec![DoctorCheck::unknown(NAME, "no worker has published a queue yet")];
    }
    let mut checks: Vec<DoctorCheck> =
        queues.iter().filter(|queue| queue.nodes_disagree()).map(disagreement).collect();
    checks.extend(
        config.into_iter().flat_map(|config| queues.iter().filter_map(|queue| outdated(queue, config))),
    );
    if checks.is_empty() {
        let what = format!("{} published by workers, and the nodes of each agree", queues.len());
        checks.push(DoctorCheck::passed(NAME, what));
    }
    if config.is_none() {
        checks.extend(queues.iter().filter_map(forgets_early));
    }
    checks
}

fn disagreement(queue: &PublishedQueue) -> DoctorCheck {
    let says = |(node, facts): &(NodeRow, QueueFacts)| {
        let NodeRow { name, id, .. } = node;
        format!("node {name} ({id}): {}", described(facts))
    };
    let said: Vec<String> = queue.nodes.iter().map(says).collect();
    let (name, counts) = (queue.queue.as_str(), described(&queue.facts));
    let what =
        format!("queue {name}: its nodes disagree; {}; the setting in effect is: {counts}", said.join("; "));
    let help = format!("give all workers of queue {name} the same settings and restart those that differ");
    DoctorCheck::finding(NAME, what, help)
}

/// Reports a queue whose workers run with another guarantee than the configuration here.
fn outdated(queue: &PublishedQueue, config: &Config) -> Option<DoctorCheck> {
    let name = queue.queue.as_str();
    let configured = config.queues.iter().find(|known| known.name == name)?;
    let to = config.destinations.iter().find(|known| known.name == configured.destination)?;
    let guarantee = to.guarantee().filter(|guarantee| *guarantee != queue.facts.guarantee)?;
    let (here, there) = (promised(guarantee), promised(queue.facts.guarantee));
    let what =
        format!("queue {name}: the configuration has another guarantee ({here}) than its workers ({there})");
    Some(DoctorCheck::warning(NAME, what, "restart the servers and workers with this configuration"))
}

fn described(facts: &QueueFacts) -> String {
    let guarantee = promised(facts.guarantee);
    let QueueFacts { requeue, max_attempts, retry_horizon: horizon, .. } = facts;
    format!("{guarantee}, requeue = {requeue}, {max_attempts} attempts within {}", duration::format(*horizon))
}

fn promised(guarantee: Guarantee) -> String {
    match guarantee {
        Guarantee::Idempotent => "calls may be repeated".to_owned(),
        Guarantee::Keyed { keeps_for } => format!("keys kept for {}", duration::format(keeps_for)),
        Guarantee::Transactional => "transactional".to_owned(),
        Guarantee::None => "no guarantee".to_owned(),
    }
}

fn forgets_early(queue: &PublishedQueue) -> Option<DoctorCheck> {
    let (guarantee, horizon) = (queue.facts.guarantee, queue.facts.retry_horizon);
    let Guarantee::Keyed { keeps_for } = guarantee else { return None };
    let help = "have the receiver remember keys for longer, or shorten the queue's retries".to_owned();
    let memory = ShortKeyRetention { keeps_for, horizon, help };
    (keeps_for < horizon).then(|| short_memory_finding(queue.queue.as_str(), "its receiver", &memory))
}
