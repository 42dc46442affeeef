//! The contest: every contestant does the same parts on the same server, in turn, several rounds.
//!
//! Guarantee: contestants are interleaved, so a machine that slows down slows all of them; each part runs in its own
//! process; the server is durable; a contestant that fails a part gets no number for it, and the others go on.

mod chart;
mod contestant;
mod counted;
mod counters;
pub(crate) mod endpoint;
pub(crate) mod floor;
mod fresh;
mod growth;
pub(crate) mod ours;
mod process;
pub(crate) mod protocol;
mod results;
mod sample;
mod size;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ichido_store::testing::postgres::Cluster;

use self::contestant::{CONTESTANTS, Contestant, root};
use self::counters::DatabaseProbe;
use self::fresh::{Fresh, pool};
use self::process::Contender;
use self::protocol::{Part, Task};
use self::results::{Machine, Measurement, Results};
use self::sample::Sample;
use self::size::Chosen;
pub(crate) use self::size::Size;
use crate::floor::{self as least_sql};

/// The server's settings: enough memory for all of it, and no checkpoint within a turn.
pub(crate) const SERVER: [(&str, &str); 5] = [
    ("shared_buffers", "1GB"),
    ("max_wal_size", "4GB"),
    ("min_wal_size", "2GB"),
    ("checkpoint_timeout", "30min"),
    ("max_connections", "300"),
];
/// The bytes of a payload.
const BYTES: usize = 200;
/// Offered messages per second.
pub(crate) const RATES: [f64; 3] = [100.0, 1_000.0, 5_000.0];
/// The longest time of a part.
const LIMIT: Duration = Duration::from_mins(2);
/// The longest time of a pickup, which offers messages for seconds. A contestant that takes longer did not keep up.
const PICKUP_LIMIT: Duration = Duration::from_secs(20);
/// A contestant whose median pickup takes longer than this is not offered more.
const MAX_PICKUP_US: f64 = 1e6;

/// Runs everything, prints the tables, and writes the results; those of a quick run only below `target`.
///
/// A full run that was interrupted goes on after its last finished round, on the same machine, day and commit.
pub(crate) async fn run(size: Size, names: &[&str]) {
    let chosen = Chosen(names);
    let folder = if size.is_quick { root().join("target/bench") } else { root().join("bench") };
    fs::create_dir_all(root().join("target/bench")).expect("a folder");
    let cluster = Cluster::start(&SERVER).expect("a PostgreSQL server");
    let pool = pool(&cluster.url("postgres")).await;
    let machine = Machine::read(&pool).await;
    warm_up(&cluster).await;
    let stored = if size.is_quick { None } else { Results::read(&folder) };
    let interrupted = stored.filter(|stored| stored.continues_on(&machine));
    let mut results = interrupted.unwrap_or_else(|| Results::new(machine, size.is_quick));
    while results.rounds < size.rounds {
        let round = results.rounds + 1;
        eprintln!(
            "round {round} of {}; about {:.0} minutes to the end",
            size.rounds,
            size.minutes_left(results.rounds)
        );
        for contestant in CONTESTANTS.iter().filter(|it| chosen.has(it.name)) {
            eprintln!("round {round}: {}", contestant.name);
            turn(&cluster, contestant, size, &mut results).await;
        }
        endpoint::turn(&cluster, size.seconds, &chosen, &mut results).await;
        results.rounds = round;
        results.write(&folder);
    }
    if chosen.all() {
        growth::run(&cluster, size.max_messages, &mut results).await;
    }
    results.is_complete = true;
    results.write(&folder);
    println!("{}\n{}", table::summary(Some(&results)), table::details(Some(&results)));
    if size.is_quick {
        println!("Written to target/bench. A quick run says that everything works, not how fast it is.");
    } else {
        render(Some(&results));
    }
}

/// Renders the tables and charts from `bench/results.json`.
pub(crate) fn report() {
    render(Results::read(&root().join("bench")).as_ref());
}

fn render(results: Option<&Results>) {
    rewrite("bench/README.md", |text| table::between_marks(text, &table::summary(results)));
    fs::write(root().join("bench/RESULTS.md"), table::details(results)).expect("written");
    if let Some(results) = results {
        chart::write(results, &root().join("bench/charts"));
        rewrite("docs/scale.md", |text| table::between_marks(text, &table::capacity::text(results)));
    }
}

fn rewrite(path: &str, changed: impl Fn(&str) -> String) {
    let path = root().join(path);
    let text = fs::read_to_string(&path).expect("a page of the repository");
    fs::write(&path, changed(&text)).expect("written");
}

/// All parts of one contestant. The pickups get their own database, because single enqueues leave messages behind.
async fn turn(cluster: &Cluster, contestant: &Contestant, size: Size, results: &mut Results) {
    let messages = contestant.messages.min(size.max_messages);
    let plan = [
        vec![
            (Part::EnqueueBulk, 0.0, messages),
            (Part::Drain, 0.0, messages),
            (Part::EnqueueOne, 0.0, size.singly),
        ],
        RATES.map(|rate| (Part::Pickup, rate, whole(rate * size.seconds))).to_vec(),
    ];
    for parts in plan {
        let database = Fresh::postgres(cluster).await;
        let mut keeps_up = true;
        for (part, rate, count) in parts {
            if !contestant.does(part) || !keeps_up {
                continue;
            }
            let task = Task { part, url: database.url(), count, bytes: BYTES, rate, workers: 1 };
            let sample = measure(contestant, &task, database.probe()).await;
            keeps_up = part != Part::Pickup || sample.is_some_and(|it| it.p50_us <= Some(MAX_PICKUP_US));
            results.add(Measurement::of(contestant.name, &task), sample);
            // All start a drain with statistics and without dead rows.
            database.vacuum().await;
        }
        database.remove(cluster).await;
    }
}

/// Runs one part; a failure is printed with the end of the contestant's errors.
async fn measure(contestant: &Contestant, task: &Task, probe: Option<&DatabaseProbe>) -> Option<Sample> {
    let errors: PathBuf =
        root().join("target/bench").join(format!("{}.log", contestant.name.replace(' ', "-")));
    let outcome = attempt(contestant, task, probe, &errors).await;
    outcome
        .inspect_err(|error| {
            let log = fs::read_to_string(&errors).unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(8).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            eprintln!("{}, {:?} {}: {error}\n{}", contestant.name, task.part, task.rate, tail.join("\n"));
        })
        .ok()
}

async fn attempt(
    contestant: &Contestant,
    task: &Task,
    probe: Option<&DatabaseProbe>,
    errors: &Path,
) -> Result<Sample, String> {
    let limit = if task.part == Part::Pickup { PICKUP_LIMIT } else { LIMIT };
    let mut contender = Contender::start(Contestant::command_of(contestant.program), task, errors)?;
    let before = counted::unfinished(contestant, probe).await;
    let sample = contender.run(task, probe, limit).await?;
    let after = counted::unfinished(contestant, probe).await;
    if let Some((before, after)) = before.zip(after) {
        counted::check(task.part, task.count, before, after)?;
    }
    Ok(sample)
}

/// The first writes create log segments, which is slower than recycling them.
async fn warm_up(cluster: &Cluster) {
    let database = cluster.database().await.expect("a database");
    let pool = pool(&database.url).await;
    least_sql::tables(&pool).await;
    least_sql::enqueue_bulk(&pool, 100).await;
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a few thousand messages, never a negative number"
)]
fn whole(count: f64) -> usize {
    count.round() as usize
}
