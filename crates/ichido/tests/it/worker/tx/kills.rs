//! A process with transactional handlers is killed after statements of its path and at random: each order and each receipt
//! exists once.
//!
//! The handlers promise nothing: a second run adds a second row. Each process starts with a clock that is further ahead, so it
//! takes the claims of those before it as lapsed. At random, a process is killed while its successor already works on the same
//! orders. One run of each round is stalled: it goes on when another one has done its work, before its process may be killed, and
//! only the fence keeps it from doing that again.
// Spec: H1.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use ichido::destination::{Job, JobError};
use ichido::worker::Worker;
use ichido::{Pool, Tx};
use ichido_core::lifecycle::StateName;
use ichido_core::retry::Guarantee;
use ichido_store::Store;
use ichido_store::dead_letter::{DeadLetterRow, RequeuePolicy};
use ichido_store::message::{MessageFilter, Note};
use ichido_store::testing::while_busy;
use sqlx::{Postgres, Sqlite};

use super::business::{AnyTx, Business, Order, Receipt};
use crate::worker::fixture::{BACKOFF, QUEUE, WorkerFixture, many, poll_pause};
use process_for_tests::own_process;
use process_for_tests::statement_log::{Logged, for_each_statement};

const URL: &str = "ICHIDO_TX_URL";
/// How many processes there were before this one.
const ROUND: &str = "ICHIDO_TX_ROUND";
/// After which statement of its own order the process dies; it has none if this is 0.
const STATEMENT: &str = "ICHIDO_TX_STATEMENT";
/// How much further ahead the clock of each process is: longer than any lease here.
const AHEAD: Duration = Duration::from_mins(30);
/// How many orders there are for each process that is killed at random; the first of them stalls.
const ORDERS_PER_KILL: i64 = 20;
/// What a process says, with a number: an order that it starts, one that it stalls, one that goes on, and how many statements
/// its own order had.
const STARTED: &str = "order";
const STALLED: &str = "stalled";
const LATE: &str = "late";
const STATEMENTS: &str = "statements";
/// How long to wait for processes that may have nothing more to say.
const PATIENCE: Duration = Duration::from_millis(300);
/// How long to wait for a stalled run to go on.
const MAX_STALL: Duration = Duration::from_secs(10);
/// How long an order may wait for a process.
const MAX_WAIT: Duration = Duration::from_mins(2);
/// More statements than the path of one order has. On a slow machine, many others are counted with it.
const MAX_STATEMENTS: i64 = 60;
/// A statement that no process comes to.
const NEVER: i64 = i64::MAX;

/// How often a process is killed on each database.
fn kills() -> i64 {
    // `cargo xtask soak` sets more.
    std::env::var("ICHIDO_TX_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(40)
}

/// How many of them are at random, at least. The others are spread over the statements.
fn random_kills() -> i64 {
    kills() / 4
}

/// The statements that are left before the process dies; negative if it does not.
static LEFT: AtomicI64 = AtomicI64::new(i64::MIN);

/// Counts a statement, and dies after one of them.
fn count_down(statement: &Logged) {
    // The child's look at its own order is not part of the path.
    let is_ours = statement.text.starts_with("SELECT n FROM orders");
    if !is_ours && LEFT.load(Ordering::SeqCst) != i64::MIN && LEFT.fetch_sub(1, Ordering::SeqCst) == 1 {
        // All threads end at once, and nothing is cleaned up.
        std::process::abort();
    }
}

fn say(word: &str, number: i64) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{word} {number}").and_then(|()| out.flush()).unwrap();
}

/// The order at which this process dies, and after which of its statements.
fn doom() -> (i64, i64) {
    static DOOM: OnceLock<(i64, i64)> = OnceLock::new();
    *DOOM.get_or_init(|| {
        let number = |name: &str| std::env::var(name).unwrap().parse().unwrap();
        (number(ROUND), number(STATEMENT))
    })
}

async fn place(job: Job<Order>, tx: AnyTx) -> Result<(), JobError> {
    let n = job.payload.n;
    let (round, statement) = doom();
    if n == round && 0 < statement {
        LEFT.store(statement, Ordering::SeqCst);
    }
    if statement == 0 && n % ORDERS_PER_KILL == 0 && job.attempt == 1 {
        // This run is stalled until another one has done its work, and then does it again.
        say(STALLED, n);
        let business = Business::at(&std::env::var(URL)?).await;
        while !business.orders().await.contains(&n) {
            poll_pause().await;
        }
        say(LATE, n);
    } else {
        say(STARTED, n);
    }
    tx.order(n).await?;
    tx.enqueue(&Receipt { order: n }).await?;
    Ok(())
}

async fn receive(job: Job<Receipt>, tx: AnyTx) -> Result<(), JobError> {
    tx.order(-job.payload.order).await
}

fn worker(store: Store, business: &Business) -> Worker {
    // Seldom, because each look is a statement that counts.
    let worker = Worker::new(store).idle_sleep(Duration::from_millis(100)).pool(business.pool.clone());
    let worker = match &business.pool {
        Pool::Postgres(_) => worker
            .handle_tx(|job: Job<Order>, tx: Tx<Postgres>| place(job, AnyTx::Postgres(tx)))
            .handle_tx(|job: Job<Receipt>, tx: Tx<Postgres>| receive(job, AnyTx::Postgres(tx))),
        Pool::Sqlite(_) => worker
            .handle_tx(|job: Job<Order>, tx: Tx<Sqlite>| place(job, AnyTx::Sqlite(tx)))
            .handle_tx(|job: Job<Receipt>, tx: Tx<Sqlite>| receive(job, AnyTx::Sqlite(tx))),
    };
    // With one at a time, a message that a process died with is not running when the next one dies.
    let is_doomed = 0 < doom().1;
    worker.tune(QUEUE, |queue| queue.parallelism = many(if is_doomed { 1 } else { 4 }))
}

/// Not a test: the process that is killed. It ends by itself when its own order is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the tests below as a process of its own"]
async fn child() {
    if !own_process::is_own() {
        return;
    }
    let (url, (round, statement)) = (std::env::var(URL).unwrap(), doom());
    // The test harness may have begun a line.
    println!();
    for_each_statement(count_down);
    let store = Store::open(&url, 4).await.unwrap();
    store.advance_clock(AHEAD * u32::try_from(round).unwrap());
    let business = Business::at(&url).await;
    let worker = worker(store.clone(), &business).start().unwrap();
    if statement == 0 {
        return worker.ended().await;
    }
    while !business.orders().await.contains(&-round) {
        poll_pause().await;
    }
    say(STATEMENTS, statement - LEFT.swap(i64::MIN, Ordering::SeqCst));
    worker.stop();
    worker.ended().await;
}

/// What a process said.
struct Said {
    round: i64,
    word: String,
    number: i64,
}

/// A running process.
struct Process {
    round: i64,
    child: Child,
}

impl Process {
    fn start(url: &str, round: i64, statement: i64, said: Sender<Said>) -> Self {
        let mut command = own_process::command("worker::tx::kills::child");
        command.env(URL, url).env(ROUND, round.to_string()).env(STATEMENT, statement.to_string());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let Some((word, number)) = line.split_once(' ') else { continue };
                let Ok(number) = number.parse() else { continue };
                // Nobody listens any more once the child was killed.
                let _ = said.send(Said { round, word: word.to_owned(), number });
            }
        });
        Self { round, child }
    }

    /// Waits for its end. Returns whether it was not killed.
    async fn ended(mut self) -> bool {
        tokio::task::spawn_blocking(move || self.child.wait().unwrap().success()).await.unwrap()
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// What the processes do.
struct Runs {
    said: Receiver<Said>,
    /// Runs that are stalled: the round of their process, and their order.
    stalled: HashSet<(i64, i64)>,
    /// How many stalled runs went on.
    late: i64,
}

impl Runs {
    fn next_within(&mut self, timeout: Duration) -> Option<Said> {
        let said = self.said.recv_timeout(timeout).ok()?;
        let run = (said.round, said.number);
        match said.word.as_str() {
            STALLED => {
                self.stalled.insert(run);
            }
            LATE => self.late += i64::from(self.stalled.remove(&run)),
            _ => (),
        }
        Some(said)
    }

    fn next(&mut self) -> Said {
        self.next_within(MAX_WAIT).expect("the orders are worked on")
    }

    fn until_started(&mut self, order: i64) {
        while self.next().number != order {}
    }

    /// Waits until the stalled runs of a process have gone on, and have had time to commit.
    fn until_late(&mut self, process: &Process) {
        while self.stalled.iter().any(|(round, _)| *round == process.round) {
            if self.next_within(MAX_STALL).is_none() {
                // Its order is dead: two processes were taken to have died with it.
                self.stalled.retain(|(round, _)| *round != process.round);
            }
        }
        while self.next_within(PATIENCE).is_some() {}
    }
}

/// The same sequence in every run; the timing differs anyway.
fn dice(seed: i64) -> u64 {
    let mixed = (seed.unsigned_abs() + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40
}

async fn enqueue(fixture: &WorkerFixture, from: i64, count: i64) {
    let orders = (from..from + count).map(|n| Order { n }.draft()).collect();
    for enqueued in fixture.store.messages().enqueue_all(orders).await {
        enqueued.unwrap();
    }
}

/// Counts the statements of one order's path.
async fn count_statements(fixture: &WorkerFixture, round: i64) -> i64 {
    enqueue(fixture, round, 1).await;
    let (sender, said) = channel();
    let process = Process::start(&fixture.url, round, NEVER, sender);
    assert!(process.ended().await, "it ends by itself");
    said.iter().find(|said| said.word == STATEMENTS).expect("a count").number.min(MAX_STATEMENTS)
}

/// Kills a process after each statement of one order's path, or after `max_kills` of them, a new order each time. Returns how
/// many processes there were, and how many of them were killed.
async fn at_statements(fixture: &WorkerFixture, max_kills: i64) -> (i64, i64) {
    let all = count_statements(fixture, 1).await;
    let count = all.min(max_kills);
    let mut killed = 0;
    for nth in 1..=count {
        let round = 1 + nth;
        enqueue(fixture, round, 1).await;
        let process = Process::start(&fixture.url, round, nth * all / count, channel().0);
        // The last statements are not always needed.
        killed += i64::from(!process.ended().await);
    }
    (1 + count, killed)
}

/// Kills processes at random, each while its successor works on the same orders. Returns how many stalled runs went on.
async fn at_random(fixture: &WorkerFixture, first: i64, kills: i64) -> i64 {
    let (sender, said) = channel();
    let mut runs = Runs { said, stalled: HashSet::new(), late: 0 };
    let mut last: Option<Process> = None;
    for round in first..first + kills {
        let next = Process::start(&fixture.url, round, 0, sender.clone());
        let stalling = 1_000 + round * ORDERS_PER_KILL;
        enqueue(fixture, stalling, 1).await;
        runs.until_started(stalling);
        if let Some(last) = &last {
            runs.until_late(last);
        }
        enqueue(fixture, stalling + 1, ORDERS_PER_KILL - 1).await;
        // Between them, they start all of them at least once.
        for _ in 0..=dice(round) % 12 {
            runs.next();
        }
        if let Some(last) = last.replace(next) {
            last.kill();
        }
    }
    if let Some(last) = last {
        last.kill();
    }
    runs.late
}

/// Lets everything end without a kill. A message that several workers died with waits for a person, who requeues it.
async fn finish(fixture: &WorkerFixture, round: i64) {
    fixture.pass(AHEAD * u32::try_from(round).unwrap());
    let business = Business::at(&fixture.url).await;
    let worker = worker_here(fixture, &business);
    let mut were_all_sent = false;
    loop {
        let all = all_messages(fixture).await;
        let are_all_sent = all.iter().all(|(_, status)| *status == StateName::Sent);
        // Twice: the receipt of an order that was sent during the first look is in the second.
        if are_all_sent && were_all_sent {
            break;
        }
        were_all_sent = are_all_sent;
        let dead = all.iter().filter(|(_, status)| *status == StateName::Dead);
        let dead: Vec<uuid::Uuid> = dead.map(|(id, _)| *id).collect();
        let policy = |_: &DeadLetterRow| RequeuePolicy { requeue: true, guarantee: Guarantee::Transactional };
        let note = Note::default();
        while_busy(|| fixture.store.dead_letters().requeue(&dead, policy, &note)).await;
        let is_waiting = |status: StateName| matches!(status, StateName::Sent | StateName::Failed);
        if all.iter().all(|(_, status)| is_waiting(*status)) {
            fixture.pass(BACKOFF);
        }
        poll_pause().await;
    }
    worker.stop();
    worker.ended().await;
}

fn worker_here(fixture: &WorkerFixture, business: &Business) -> ichido::worker::WorkerHandle {
    let worker = fixture.builder().pool(business.pool.clone());
    let quiet = |job: Job<Order>, tx: AnyTx| async move {
        tx.order(job.payload.n).await?;
        tx.enqueue(&Receipt { order: job.payload.n }).await
    };
    let worker = match &business.pool {
        Pool::Postgres(_) => worker
            .handle_tx(move |job: Job<Order>, tx: Tx<Postgres>| quiet(job, AnyTx::Postgres(tx)))
            .handle_tx(|job: Job<Receipt>, tx: Tx<Postgres>| receive(job, AnyTx::Postgres(tx))),
        Pool::Sqlite(_) => worker
            .handle_tx(move |job: Job<Order>, tx: Tx<Sqlite>| quiet(job, AnyTx::Sqlite(tx)))
            .handle_tx(|job: Job<Receipt>, tx: Tx<Sqlite>| receive(job, AnyTx::Sqlite(tx))),
    };
    worker.start().unwrap()
}

async fn all_messages(fixture: &WorkerFixture) -> Vec<(uuid::Uuid, StateName)> {
    let (mut all, mut filter) = (Vec::new(), MessageFilter::default());
    loop {
        let page = fixture.store.messages().list(&filter, 100).await.unwrap();
        let Some(last) = page.last() else { return all };
        filter.after = Some(last.id);
        all.extend(page.iter().map(|row| (row.id, row.status)));
    }
}

async fn killed(fixture: WorkerFixture) {
    let business = Business::open(&fixture).await;
    let (doomed, by_statement) = at_statements(&fixture, kills() - random_kills()).await;
    assert!(5 < by_statement, "it was killed after {by_statement} statements");
    let random = (kills() - by_statement).max(random_kills());
    let first = doomed + 1;
    let late = at_random(&fixture, first, random).await;
    // Not all: one is killed in the last round, some lost their claim before they began, and some orders are dead.
    assert!(random / 4 <= late, "{late} stalled runs went on");
    finish(&fixture, first + random).await;
    let orders = 1_000 + first * ORDERS_PER_KILL..1_000 + (first + random) * ORDERS_PER_KILL;
    let placed: Vec<i64> = (1..=doomed).chain(orders).collect();
    let expected: Vec<i64> = placed.iter().rev().map(|n| -n).chain(placed.iter().copied()).collect();
    business.assert_orders(&expected).await;
    let messages = all_messages(&fixture).await.len();
    assert_eq!(messages, expected.len(), "each order has one receipt");
    let report = fixture.store.audit().verify(None, None).await.unwrap();
    assert_eq!(report.findings, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_transactional_handlers_take_effect_once_on_postgres() {
    killed(WorkerFixture::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_transactional_handlers_take_effect_once_on_sqlite() {
    killed(WorkerFixture::sqlite().await).await;
}
