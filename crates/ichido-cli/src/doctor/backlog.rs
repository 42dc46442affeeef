//! Evaluates what waits for a person: parked messages, dead letters, messages that nobody sends, and firing alerts.

use std::fmt::Display;
use std::time::Duration;

use ichido_core::lifecycle::StateName;
use ichido_core::settings::duration;
use ichido_store::diagnostics::Backlog;

use super::report::DoctorCheck;

/// How many queues or alerts a line names.
const MAX_NAMED: usize = 10;
/// How long a message may be due before somebody should look.
const MAX_DUE_FOR: Duration = Duration::from_mins(5);

pub(super) fn evaluate(backlog: &Backlog) -> Vec<DoctorCheck> {
    let mut checks = messages(backlog);
    if checks.is_empty() {
        checks.push(DoctorCheck::passed("messages", "none is parked, dead or overdue"));
    }
    checks.push(match backlog.firing.len() {
        0 => DoctorCheck::passed("alerts", "none is firing"),
        many => {
            let named =
                backlog.firing.iter().map(|(rule, about)| format!("{rule} {about}").trim().to_owned());
            let what = format!("{many} firing: {}", list(named));
            DoctorCheck::finding(
                "alerts",
                what,
                "`ichido alerts` says what happened; the runbook has each alert",
            )
        }
    });
    checks
}

fn messages(backlog: &Backlog) -> Vec<DoctorCheck> {
    const NAME: &str = "messages";
    let in_state = |state| {
        let counts = backlog.counts.iter().filter(move |count| count.state == state && 0 < count.count);
        list(counts.map(|count| format!("{} of queue {}", count.count, count.queue)))
    };
    let overdue = backlog.oldest.iter().filter(|(_, since)| MAX_DUE_FOR < backlog.now.since(*since));
    let overdue = list(overdue.map(|(queue, since)| {
        let waits = Duration::from_secs(backlog.now.since(*since).as_secs());
        format!("queue {queue} for {}", duration::format(waits))
    }));
    let (parked, dead) = (in_state(StateName::Parked), in_state(StateName::Dead));
    let parked = (!parked.is_empty()).then(|| {
        let help = "find out whether they took effect, then decide: `ichido dead list --parked`, `ichido dead decide`";
        DoctorCheck::finding(NAME, format!("parked, because their effect is unknown: {parked}"), help)
    });
    let dead = (!dead.is_empty()).then(|| {
        let help = "`ichido dead list` shows why; requeue or discard them";
        DoctorCheck::warning(NAME, format!("dead: {dead}"), help)
    });
    let overdue = (!overdue.is_empty()).then(|| {
        let help = "check that a server or worker of the queue runs, that the queue is not paused (`ichido queues list`) and that its destination keeps up";
        DoctorCheck::warning(NAME, format!("due and not sent: {overdue}"), help)
    });
    let unfinished = [StateName::Queued, StateName::Failed, StateName::Sending];
    let waiting = backlog.counts.iter().filter(|count| unfinished.contains(&count.state));
    let waiting: i64 = waiting.map(|count| count.count).sum();
    let idle = (backlog.living == 0 && 0 < waiting).then(|| {
        let what = format!("no worker is running; unfinished messages that wait for one: {waiting}");
        DoctorCheck::warning(NAME, what, "start `ichido serve` or `ichido worker`")
    });
    [idle, parked, dead, overdue].into_iter().flatten().collect()
}

fn list(items: impl Iterator<Item = impl Display>) -> String {
    items.take(MAX_NAMED).map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}
