//! Cases 26 and 27: the store goes away before the effect, during a write, and after the effect.

use std::str::FromStr as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ichido::once::{Effect, Pool};
use ichido_core::ledger::Phase;
use ichido_store::Store;
use ichido_store::ledger::KeyRecord;
use ichido_store::testing::postgres::{Cluster, Stop};
use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::{Executor as _, Transaction};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::both_databases;
use crate::fixture::{Fixture, Mode, in_time, keyed};

fn is_settled(record: Option<&KeyRecord>) -> bool {
    record.is_some_and(|record| matches!(record.record.phase, Phase::Settled { .. }))
}

/// Keeps everybody else from writing to the ledger, until it is dropped.
enum Blocked {
    Postgres { _open: Transaction<'static, sqlx::Postgres> },
    Sqlite { _open: Transaction<'static, sqlx::Sqlite> },
}

impl Blocked {
    async fn by(pool: &Pool) -> Self {
        match pool {
            Pool::Postgres(pool) => {
                let mut open = pool.begin().await.unwrap();
                open.execute("LOCK TABLE ichido.ledger IN EXCLUSIVE MODE").await.unwrap();
                Self::Postgres { _open: open }
            }
            Pool::Sqlite(pool) => Self::Sqlite { _open: Store::begin_immediate(pool).await.unwrap() },
        }
    }
}

both_databases! {
    #[test]
    async fn without_the_store_nothing_is_run(fixture: Fixture) {
        let orders = fixture.orders(Mode::Opaque);
        fixture.close_store().await;
        let answer = keyed("k1").send(&orders).await;
        answer.assert_problem(503, "store_unavailable");
        assert_eq!(answer.field("retry-after"), Some("5"));
        fixture.assert_effects(0).await;
    }

    #[test]
    async fn case_27_when_the_store_goes_after_the_effect_the_answer_is_true_and_is_stored_later(fixture: Fixture) {
        let blocked = Arc::new(tokio::sync::Mutex::new(None));
        let (pool, blocking) = (fixture.business.clone(), Arc::clone(&blocked));
        let handler = fixture.handler(move |run| {
            let (pool, blocking) = (pool.clone(), Arc::clone(&blocking));
            async move {
                run.order().await;
                *blocking.lock().await = Some(Blocked::by(&pool).await);
                run.created()
            }
        });
        let once = fixture.once(Mode::Opaque).in_flight_wait(Duration::ZERO);
        let orders = fixture.serve(once, handler.clone());
        keyed("k1").send(&orders).await.assert_first(201, "order 1");
        assert!(matches!(fixture.phase("k1").await, Some(Phase::Claimed { .. })), "it is not stored yet");
        assert_eq!(fixture.keeper.under_way(), 1, "and the layer is at it");
        let duplicate = keyed("k1").send(&orders).await;
        assert!(matches!(duplicate.status(), 202 | 503), "{duplicate:?}");
        drop(blocked.lock().await.take());
        fixture.until("k1", is_settled).await;
        keyed("k1").send(&orders).await.assert_replay(201, "order 1");
        assert_eq!(handler.runs(), 1);
        fixture.keeper.drained().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_27_a_server_that_is_down_after_the_effect_and_comes_back() {
    in_time(async {
        let cluster = Arc::new(Cluster::start(&[]).expect("a PostgreSQL server"));
        let database = cluster.database().await.expect("a database");
        let fixture = Fixture::open(&database.url, None).await;
        let stopping = Arc::clone(&cluster);
        let handler = fixture.handler(move |run| {
            let cluster = Arc::clone(&stopping);
            async move {
                run.order().await;
                tokio::task::spawn_blocking(move || cluster.stop(Stop::Immediate)).await.unwrap().unwrap();
                run.created()
            }
        });
        let orders = fixture.serve(fixture.once(Mode::Opaque), handler.clone());
        keyed("k1").send(&orders).await.assert_first(201, "order 1");
        let meanwhile = keyed("k2").send(&fixture.orders(Mode::Opaque)).await;
        meanwhile.assert_problem(503, "store_unavailable");
        let starting = Arc::clone(&cluster);
        tokio::task::spawn_blocking(move || starting.start_again()).await.unwrap().unwrap();
        fixture.keeper.drained().await;
        assert!(is_settled(fixture.record("k1").await.as_ref()));
        keyed("k1").send(&orders).await.assert_replay(201, "order 1");
        assert_eq!(handler.runs(), 1);
        fixture.assert_effects(1).await;
    })
    .await;
}

/// When a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// Before what was sent arrives.
    Before,
    /// When the server has answered, and before the answer arrives.
    After,
}

/// A way to PostgreSQL that can be cut at one message.
struct Cutter {
    port: u16,
    armed: Arc<Mutex<Option<(&'static str, Cut)>>>,
}

impl Cutter {
    async fn before(url: &str) -> Self {
        let options = PgConnectOptions::from_str(url).unwrap();
        let server = format!("{}:{}", options.get_host(), options.get_port());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let armed = Arc::new(Mutex::new(None));
        let shared = Arc::clone(&armed);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(relay(client, server, Arc::clone(&shared)));
            }
        });
        Self { port, armed }
    }

    /// The next message that holds this text is cut.
    fn arm(&self, text: &'static str, cut: Cut) {
        *self.armed.lock().unwrap() = Some((text, cut));
    }

    fn has_cut(&self) -> bool {
        self.armed.lock().unwrap().is_none()
    }

    fn options(&self, url: &str) -> PgConnectOptions {
        PgConnectOptions::from_str(url).unwrap().host("127.0.0.1").port(self.port)
    }

    /// The address of the same database by this way.
    fn url(&self, url: &str) -> String {
        let port = PgConnectOptions::from_str(url).unwrap().get_port();
        let by_way = url.replace(&format!(":{port}/"), &format!(":{}/", self.port));
        assert_ne!(by_way, url, "the port stands in the address");
        by_way
    }
}

/// Carries bytes both ways, until it is told to cut.
async fn relay(mut client: TcpStream, mut server: TcpStream, armed: Arc<Mutex<Option<(&'static str, Cut)>>>) {
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(count @ 1..) = read else { return };
                let holds = |text: &str| asked[..count].windows(text.len()).any(|part| part == text.as_bytes());
                let cut = {
                    let mut armed = armed.lock().unwrap();
                    armed.take_if(|(text, _)| holds(text)).map(|(_, cut)| cut)
                };
                if cut == Some(Cut::Before) || server.write_all(&asked[..count]).await.is_err() {
                    return;
                }
                if cut == Some(Cut::After) {
                    drop(server.read(&mut answered).await);
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let Ok(count @ 1..) = read else { return };
                if client.write_all(&answered[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_26_a_claim_whose_answer_was_lost_knows_itself_again() {
    in_time(async {
        let fixture = Fixture::postgres().await;
        let cutter = Cutter::before(&fixture.url).await;
        let node = Fixture::at(fixture.place().by(cutter.url(&fixture.url))).await;
        let orders = node.orders(Mode::Opaque);
        // Prepared once, so that the next claim is a single message.
        keyed("warm").send(&orders).await.assert_first(201, "order 1");
        cutter.arm("the-lost-claim", Cut::After);
        keyed("the-lost-claim").send(&orders).await.assert_first(201, "order 2");
        assert!(cutter.has_cut());
        keyed("the-lost-claim").send(&orders).await.assert_replay(201, "order 2");
        fixture.assert_effects(2).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_of_unknown_fate_is_read_back() {
    in_time(async {
        let fixture = Fixture::postgres().await;
        let cutter = Cutter::before(&fixture.url).await;
        let pool = PgPool::connect_with(cutter.options(&fixture.url)).await.unwrap();
        let once = fixture.once(Mode::Transactional).effect(Effect::Transactional(pool.into()));
        let orders = fixture.serve(once, fixture.ordering());
        cutter.arm("COMMIT", Cut::After);
        keyed("done").send(&orders).await.assert_first(201, "order 1");
        assert!(cutter.has_cut());
        fixture.assert_effects(1).await;
        keyed("done").send(&orders).await.assert_replay(201, "order 1");
        cutter.arm("COMMIT", Cut::Before);
        let answer = keyed("not-done").send(&orders).await;
        answer.assert_problem(503, "store_unavailable");
        assert!(cutter.has_cut());
        fixture.keeper.drained().await;
        fixture.assert_effects(1).await;
        assert_eq!(fixture.phase("not-done").await, None);
        keyed("not-done").send(&orders).await.assert_first(201, "order 3");
        fixture.assert_effects(2).await;
    })
    .await;
}
