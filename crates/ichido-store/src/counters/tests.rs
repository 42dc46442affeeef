//! Counts in memory, and their rows.

use super::*;

fn counted_twice(counters: &Counters) {
    counters.message_arrived("orders", Arrival::New);
    counters.message_arrived("orders", Arrival::Repeated);
    counters.message_arrived("orders", Arrival::Conflict);
    counters.request_arrived("orders", Arrival::Repeated, true);
    counters.request_parked("orders");
    counters.request_fenced("orders");
    counters.claimed("orders", [Duration::from_millis(20)].into_iter());
    counters.executed("orders", 2);
    counters.retried("orders", true);
    counters.sent("orders", &[Duration::from_secs(3)]);
    counters.dead("orders", None);
    counters.parked("orders");
    counters.throttled("orders");
    counters.fenced("orders");
    counters.model_called("a model", true);
    counters.model_throttled("a model");
    counters.model_replied("a model", 300, 20);
    counters.model_billed_twice("a model", 2);
}

#[test]
fn failed_counts_are_added_later() {
    let (counters, once) = (Counters::default(), Counters::default());
    counted_twice(&counters);
    let taken = counters.take();
    counted_twice(&counters);
    counters.restore(taken);
    for _ in 0..2 {
        counted_twice(&once);
    }
    assert_eq!(counters.take(), once.take());
    assert_eq!(counters.take(), BTreeMap::new());
}

#[test]
fn rows_come_in_the_order_of_their_key() {
    let counters = Counters::default();
    counted_twice(&counters);
    counters.sent("orders", &[Duration::from_mins(3)]);
    counters.dead("mail", Some(Duration::ZERO));
    let all = counters.with_sums(&counters.take());
    let rows = rows(&all);
    let keys: Vec<_> = rows.iter().map(|row| (row.about, row.kind, row.slot)).collect();
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    assert_eq!(keys, sorted);
    let micros = rows.iter().filter(|row| row.about == "queue orders").map(|row| row.micros);
    assert_eq!(micros.sum::<i64>(), 183_020_000);
}

#[test]
fn destinations_and_totals_are_the_sums_of_their_queues() {
    let counters = Counters::default();
    for (queue, destination) in [("orders", "shop"), ("refunds", "shop"), ("mail", "smtp")] {
        counters.serve(queue, destination);
        counters.message_arrived(queue, Arrival::New);
        counters.sent(queue, &[Duration::from_secs(1)]);
    }
    counters.message_arrived("elsewhere", Arrival::New);
    counters.request_arrived("create", Arrival::New, true);
    let all = counters.with_sums(&counters.take());
    let shop = &all["destination shop"];
    assert_eq!((shop.arrived, shop.sent, shop.left.count(), shop.left.micros), (0, 2, 2, 2_000_000));
    assert_eq!(all["destination smtp"].sent, 1);
    let queues = &all["queues"];
    assert_eq!((queues.arrived, queues.sent, queues.executed), (4, 3, 0));
    assert_eq!((all["operations"].arrived, all["operations"].executed), (1, 1));
    assert_eq!(all.len(), 4 + 1 + 2 + 2);
}

#[test]
fn the_total_of_models_is_their_sum() {
    let counters = Counters::default();
    for model in ["small", "large"] {
        counters.model_called(model, false);
        counters.model_replied(model, 300, 20);
        counters.model_billed_twice(model, 0);
    }
    counters.model_called("large", true);
    let all = counters.with_sums(&counters.take());
    let models = &all["models"];
    assert_eq!((models.executed, models.retried, models.tokens_in, models.tokens_out), (3, 1, 600, 40));
    assert_eq!((all["model small"].executed, all["model large"].retried, all.len()), (1, 1, 3));
}

#[test]
fn new_arrivals_are_accepted() {
    let counters = Counters::default();
    counted_twice(&counters);
    let taken = counters.take();
    assert_eq!(taken[&SeriesSubject::Queue("orders".to_owned())].accepted(), 1);
    assert_eq!(taken[&SeriesSubject::Operation("orders".to_owned())].accepted(), 0);
}

#[test]
fn more_subjects_than_the_bound_are_not_counted() {
    let counters = Counters::default();
    for number in 0..=MAX_SUBJECTS {
        counters.message_arrived(&format!("q{number}"), Arrival::New);
    }
    counters.message_arrived("q0", Arrival::New);
    let taken = counters.take();
    assert_eq!(taken.len(), MAX_SUBJECTS);
    assert_eq!(taken[&SeriesSubject::Queue("q0".to_owned())].arrived, 2);
}
