//! The guide to the transactional outbox, followed. Every line of Rust in it stands here.

use ichido::destination::{Failed, Handler, Job};
use ichido::worker::{Running, Worker};
use ichido_core::key::IdempotencyKey;
use ichido_store::Store;
use ichido_store::message::{NewMessage, QueueName};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[derive(Serialize, Deserialize)]
struct Ordered {
    order: i64,
    item: String,
}

async fn place(store: &Store, pool: &PgPool, person: &str, item: &str) -> Result<i64, Error> {
    let queue = QueueName::parse("mail").ok_or("a queue's name")?;
    let mut transaction = pool.begin().await?;
    let insert = sqlx::query_scalar("INSERT INTO orders (item) VALUES ($1) RETURNING id").bind(item);
    let order: i64 = insert.fetch_one(&mut *transaction).await?;
    let body = serde_json::to_vec(&Ordered { order, item: item.to_owned() })?;
    // One key for one mail: putting it in again is no second one.
    let key = IdempotencyKey::parse(&format!("order-{order}"))?;
    let message = NewMessage::new(queue.clone(), person, key, body);
    store.message_enqueue_in_postgres(&mut transaction, message).await?;
    transaction.commit().await?;
    store.queue_wake(&queue); // It would be found without, a moment later.
    Ok(order)
}

fn work(store: Store, mailer: Mailer) -> Result<Running, Error> {
    let handler = Handler::json(move |job: Job<Ordered>| {
        let mailer = mailer.clone();
        async move {
            let Ordered { order, item } = job.payload;
            // The same key on every try: a mailer that honours it sends one mail.
            match mailer.send(job.key.as_str(), &format!("Order {order}: {item}")).await {
                Ok(()) => Ok(()),
                Err(why) => Err(Failed::unreachable(why)),
            }
        }
    });
    Ok(Worker::of(store).handler("mail", handler.honours_keys(KEEPS_KEYS_FOR)).start()?)
}

use followed::{KEEPS_KEYS_FOR, Mailer};

mod followed {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use ichido_core::lifecycle::Stage;
    use ichido_store::message::MessageFilter;
    use ichido_store::testing::postgres;

    use super::{PgPool, Store, place, work};
    use crate::fixture::look_again;

    const GUIDE: &str = include_str!("../../../../docs/guides/transactional-outbox.md");
    pub(super) const KEEPS_KEYS_FOR: Duration = Duration::from_hours(24);

    /// A mailer that honours keys, and is down at first.
    #[derive(Clone, Default)]
    pub(super) struct Mailer(Arc<Mutex<(usize, BTreeMap<String, String>)>>);

    impl Mailer {
        #[expect(clippy::unused_async, reason = "a real one waits")]
        pub(super) async fn send(&self, key: &str, mail: &str) -> Result<(), &'static str> {
            let mut mails = self.0.lock().unwrap();
            mails.0 += 1;
            if mails.0 == 1 {
                return Err("down");
            }
            mails.1.insert(key.to_owned(), mail.to_owned());
            Ok(())
        }
    }

    fn lines(text: &str) -> String {
        text.lines().map(str::trim).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_line_of_its_code_stands_here() {
        let here = lines(include_str!("guide.rs"));
        let blocks: Vec<&str> =
            GUIDE.split("```rust\n").skip(1).map(|part| part.split("```").next().unwrap()).collect();
        assert_eq!(blocks.len(), 3);
        for block in blocks {
            assert!(here.contains(&lines(block)), "not compiled:\n{block}");
        }
    }

    /// SPEC D4: the order and its mail, or neither; and one mail, though the first try failed.
    #[tokio::test]
    async fn an_order_and_its_mail_come_together_or_not_at_all() {
        let database = postgres::fresh_database().await;
        let store = Store::open(&database.url, 4).await.unwrap();
        let pool = PgPool::connect(&database.url).await.unwrap();
        let orders = "CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY, item text CHECK (item <> 'nothing'))";
        sqlx::query(orders).execute(&pool).await.unwrap();
        let mailer = Mailer::default();
        let worker = work(store.clone(), mailer.clone()).unwrap();
        assert!(place(&store, &pool, "ann", "nothing").await.is_err());
        let order = place(&store, &pool, "ann", "apple").await.unwrap();
        let only = loop {
            let messages = store.message_list(&MessageFilter::default(), 10).await.unwrap();
            assert_eq!(messages.len(), 1, "of what was rolled back there is no message");
            match messages[0].status {
                Stage::Sent => break messages[0].clone(),
                // The schedule's wait is over.
                Stage::Failed => store.skew_by(Duration::from_secs(5)),
                _ => look_again().await,
            }
        };
        assert_eq!(only.tries, 2);
        let mails: Vec<String> = mailer.0.lock().unwrap().1.values().cloned().collect();
        assert_eq!(mails, [format!("Order {order}: apple")]);
        worker.stop();
        worker.ended().await;
    }
}
