//! Answers of models are stored, and calls that may have been billed without an answer are known.
// SPEC B7, B12.

use std::time::Duration;

use ichido_store::Store;
use ichido_store::answer::{AskOutcome, QuestionId, TopicCount, limits};
use ichido_store::error::StoreError;
use ichido_store::testing::while_busy;
use uuid::Uuid;

use crate::both_databases;
use crate::fixture::StoreFixture;

const LEASE: Duration = Duration::from_secs(10);

fn question(number: u8) -> QuestionId {
    QuestionId::from_bytes([number; 32])
}

async fn ask(store: &Store, number: u8, holder: Uuid) -> AskOutcome {
    store.answers().ask(question(number), "articles", holder, LEASE).await.unwrap()
}

both_databases! {
    #[test]
    async fn stored_answer_is_returned_to_every_caller(fixture: StoreFixture) {
        let (store, ann, bob) = (&fixture.store, Uuid::now_v7(), Uuid::now_v7());
        assert_eq!(store.answers().find(&[question(1)]).await.unwrap(), []);
        assert_eq!(ask(store, 1, ann).await, AskOutcome::Run { lost: 0 });
        let kept = store.answers().store(question(1), b"a \0 cat").await.unwrap();
        store.advance_clock(Duration::from_hours(24 * 366));
        let AskOutcome::Replay(answer) = ask(store, 1, bob).await else { panic!("it is answered") };
        assert_eq!((answer.bytes.as_slice(), answer.lost), (&b"a \0 cat"[..], 0));
        assert_eq!(kept, Some(answer.clone()));
        assert_eq!(store.answers().store(question(3), b"nobody asked").await.unwrap(), None);
        let found = store.answers().find(&[question(2), question(1)]).await.unwrap();
        assert_eq!(found.len(), 1, "of what was never asked nothing is known");
        assert_eq!(found[0].answer, Some(answer));
    }

    #[test]
    async fn only_one_of_two_runs_asks(fixture: StoreFixture) {
        let (store, ann, bob) = (&fixture.store, Uuid::now_v7(), Uuid::now_v7());
        assert_eq!(ask(store, 1, ann).await, AskOutcome::Run { lost: 0 });
        assert!(matches!(ask(store, 1, bob).await, AskOutcome::InFlight { .. }));
        assert_eq!(ask(store, 1, ann).await, AskOutcome::Run { lost: 0 }, "it is hers already");
        store.answers().fail(question(1), bob, true).await.unwrap();
        assert!(matches!(ask(store, 1, bob).await, AskOutcome::InFlight { .. }), "he cannot give up what is hers");
        store.answers().fail(question(1), ann, false).await.unwrap();
        assert_eq!(ask(store, 1, bob).await, AskOutcome::Run { lost: 0 }, "nothing was lost");
    }

    #[test]
    async fn ten_runs_at_once_ask_once(fixture: StoreFixture) {
        let runs: Vec<_> = (0..10)
            .map(|_| {
                let (store, run) = (fixture.store.clone(), Uuid::now_v7());
                tokio::spawn(async move {
                    while_busy(|| store.answers().ask(question(1), "articles", run, LEASE)).await
                })
            })
            .collect();
        let mut ours = 0;
        for run in runs {
            ours += u32::from(matches!(run.await.unwrap(), AskOutcome::Run { .. }));
        }
        assert_eq!(ours, 1);
    }

    #[test]
    async fn a_call_whose_run_died_is_lost_and_counted(fixture: StoreFixture) {
        let (store, ann, bob) = (&fixture.store, Uuid::now_v7(), Uuid::now_v7());
        let _ = ask(store, 1, ann).await;
        store.advance_clock(LEASE / 2);
        store.answers().renew(ann, LEASE).await.unwrap();
        store.advance_clock(LEASE / 2 + Duration::from_secs(1));
        assert!(matches!(ask(store, 1, bob).await, AskOutcome::InFlight { .. }), "she was heard of");
        store.advance_clock(LEASE);
        assert_eq!(ask(store, 1, bob).await, AskOutcome::Run { lost: 1 });
        // A call whose own run does not know the outcome counts as lost, too.
        store.answers().fail(question(1), bob, true).await.unwrap();
        assert_eq!(ask(store, 1, bob).await, AskOutcome::Run { lost: 2 });
        store.answers().store(question(1), b"yes").await.unwrap();
        assert_eq!(store.answers().find(&[question(1)]).await.unwrap()[0].answer.as_ref().unwrap().lost, 2);
    }

    #[test]
    async fn first_answer_wins(fixture: StoreFixture) {
        let (store, ann, bob) = (&fixture.store, Uuid::now_v7(), Uuid::now_v7());
        let _ = ask(store, 1, ann).await;
        store.advance_clock(LEASE);
        let _ = ask(store, 1, bob).await;
        // The run was only slow, and reports after all.
        assert_eq!(store.answers().store(question(1), b"hers").await.unwrap().unwrap().bytes, b"hers");
        let stands = store.answers().store(question(1), b"his").await.unwrap().unwrap();
        assert_eq!(stands.bytes, b"hers");
        store.answers().fail(question(1), bob, true).await.unwrap();
        assert_eq!(store.answers().find(&[question(1)]).await.unwrap()[0].lost, 1, "an answer loses nothing");
    }

    #[test]
    async fn answers_are_deleted_by_topic_unless_being_asked(fixture: StoreFixture) {
        let (store, ann) = (&fixture.store, Uuid::now_v7());
        for number in 1..=3 {
            let _ = ask(store, number, ann).await;
        }
        store.answers().store(question(1), b"yes").await.unwrap();
        let _ = store.answers().ask(question(9), "mails", ann, LEASE).await.unwrap();
        store.answers().store(question(9), b"yes").await.unwrap();
        store.answers().fail(question(2), ann, true).await.unwrap();
        assert_eq!(store.answers().delete("articles", 1).await.unwrap(), 1, "a bounded step");
        assert_eq!(store.answers().delete("articles", 10).await.unwrap(), 1, "but for the third");
        assert!(store.answers().find(&[question(9)]).await.unwrap()[0].answer.is_some());
        assert_eq!(ask(store, 1, ann).await, AskOutcome::Run { lost: 0 }, "as if it had never been asked");
        store.advance_clock(LEASE);
        assert_eq!(store.answers().delete("articles", 10).await.unwrap(), 2);
    }

    #[test]
    async fn answers_are_counted_by_topic(fixture: StoreFixture) {
        let (store, ann) = (&fixture.store, Uuid::now_v7());
        assert_eq!(store.answers().topics().await.unwrap(), []);
        for number in 1..=3 {
            let _ = ask(store, number, ann).await;
        }
        store.answers().store(question(1), b"yes").await.unwrap();
        let _ = store.answers().ask(question(9), "Mails", ann, LEASE).await.unwrap();
        let count = |topic: &str, questions, answers| TopicCount { topic: topic.to_owned(), questions, answers };
        assert_eq!(store.answers().topics().await.unwrap(), [count("Mails", 1, 0), count("articles", 3, 1)]);
    }

    #[test]
    async fn an_answer_that_is_too_long_is_refused(fixture: StoreFixture) {
        let (store, ann) = (&fixture.store, Uuid::now_v7());
        let _ = ask(store, 1, ann).await;
        let long = vec![b'x'; limits::MAX_ANSWER_BYTES + 1];
        let refused = store.answers().store(question(1), &long).await;
        assert!(matches!(refused, Err(StoreError::TooLarge { .. })), "{refused:?}");
        let nameless = store.answers().ask(question(2), "", ann, LEASE).await;
        assert!(matches!(nameless, Err(StoreError::Empty { .. })), "{nameless:?}");
        let many = vec![question(1); limits::MAX_FIND + 1];
        assert!(store.answers().find(&many).await.is_err());
    }
}
