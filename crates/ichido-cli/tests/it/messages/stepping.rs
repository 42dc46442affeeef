//! An operator's steps on one message.

use ichido_core::lifecycle::Failure;
use ichido_core::time::Timestamp;
use ichido_core::verdict::Effect;
use serde_json::Value;
use uuid::Uuid;

use super::fixture::{ServerAndStore, objects};
use crate::dead::fixture::{StoreFixture, both_databases};

impl ServerAndStore {
    /// Takes the same step on one message at the server and on another on the store; returns the output without ids.
    fn each(&self, ids: [Uuid; 2], step: &[&str]) -> String {
        let [there, here] = ids.map(|id| id.to_string());
        let text = [step, &["--reason", "as the broker says"]].concat();
        let left = [
            (self.at_server(&[&["messages"], &text[..], &[&there]].concat()), &there),
            (self.at_store(&[&["messages"], &text[..], &[&here]].concat()), &here),
        ];
        let output = left.map(|(left, id)| {
            assert_eq!((left.code, left.err.as_str()), (Some(0), ""), "{left:?}");
            let events = self.json(&["messages", "events", id]);
            let last = events.last().unwrap();
            assert_eq!(
                (&last["actor"], &last["error_text"]),
                (&"olivia".into(), &"as the broker says".into()),
                "{last}"
            );
            left.out.replace(id.as_str(), "ID")
        });
        assert_eq!(output[0], output[1], "both ways say the same");
        output[0].clone()
    }

    /// Checks that both refuse a step, as a conflict with the current state.
    fn refused(&self, arguments: &[&str], why: &str) {
        let left = self.both(arguments);
        assert_eq!((left.code, left.out.as_str()), (Some(4), ""), "{left:?}");
        assert!(left.err.contains(why), "no {why:?} in {}", left.err);
    }
}

both_databases! {
    #[test]
    async fn queued_message_is_cancelled(fixture: StoreFixture) {
        let dead = fixture.dead("ledger", 1).await[0].to_string();
        let targets = ServerAndStore::on(fixture);
        let ids = [targets.put("orders", "k-1", "{}").await, targets.put("orders", "k-2", "{}").await];
        assert_eq!(targets.each(ids, &["cancel"]), "ID: cancelled; its effect is not done\n");
        let json: Vec<Value> = targets.json(&["messages", "cancel", &ids[0].to_string()]);
        assert_eq!((json.len(), &json[0]["status"]), (1, &"cancelled".into()), "repeating it is not an error");
        targets.refused(&["messages", "cancel", &dead], "this one is dead");
    }

    #[test]
    async fn dead_letter_is_requeued_if_its_queue_allows_it(fixture: StoreFixture) {
        let [first, second] = fixture.dead("orders", 2).await[..] else { panic!("two") };
        let forbidden = fixture.dead("ledger", 1).await[0].to_string();
        let doubtful = fixture.letters("mail", 1, Failure::Permanent, Effect::Unknown).await[0].to_string();
        let targets = ServerAndStore::on(fixture);
        assert_eq!(targets.each([first, second], &["requeue"]), "ID: requeued\n");
        targets.refused(&["messages", "requeue", &first.to_string()], "this one is queued");
        targets.refused(&["messages", "requeue", &forbidden], "the message was not requeued");
        targets.refused(&["messages", "requeue", &doubtful, "--json"], "the message was not requeued");
        assert_eq!(objects(&targets.success_output(&["messages", "show", &forbidden, "--json"]))[0]["status"], "dead");
    }

    #[test]
    async fn failed_message_is_retried_at_once(fixture: StoreFixture) {
        let retry = Failure::Retry { due: Timestamp::from_secs(4_000_000_000) };
        let [first, second] = fixture.letters("ledger", 2, retry, Effect::NotDone).await[..] else { panic!("two") };
        let targets = ServerAndStore::on(fixture);
        assert_eq!(targets.each([first, second], &["retry"]), "ID: due now; attempt 2 of 9 is next\n");
        targets.refused(&["messages", "retry", &first.to_string()], "this one is queued");
    }

    #[test]
    async fn operator_decision_is_applied(fixture: StoreFixture) {
        let mut parked = Vec::new();
        for _ in 0..6 {
            parked.push(fixture.arrived("mail", Failure::InDoubt).await);
        }
        let known = fixture.dead("mail", 1).await[0].to_string();
        let targets = ServerAndStore::on(fixture);
        for (pair, finding, output) in [
            ([parked[0], parked[1]], "done", "ID: done; it counts as sent\n"),
            ([parked[2], parked[3]], "not-done", "ID: not done; it is sent again\n"),
            ([parked[4], parked[5]], "give-up", "ID: dead; its effect stays unknown\n"),
        ] {
            assert_eq!(targets.each(pair, &["decide", finding]), output);
        }
        targets.refused(&["messages", "decide", "done", &parked[2].to_string()], "this one is queued");
        targets.refused(&["messages", "decide", "done", &known], "");
    }
}
