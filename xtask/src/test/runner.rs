//! Runs tests in parallel, each in its own process.
//!
//! Guarantee: every test of every binary runs exactly once, or the run fails. A test that exceeds its time limit is
//! killed and counts as failed. Nothing is retried: a flaky test fails until it is fixed.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::binaries::Binary;
use super::now;

/// How many tests run in parallel. Most of them wait for a server, a timer or another process.
pub(super) const AT_ONCE: usize = 6;
/// The same for `--quick`, which runs nothing beside them and no process suite.
pub(super) const AT_ONCE_IF_QUICK: usize = 8;
/// How many of these may be of a process suite: such a test runs several programs, and some of them have time limits.
const PROCESS_SUITES_AT_ONCE: usize = 3;
/// Timeout of one test, or of the unit tests of one crate.
const LIMIT: Duration = Duration::from_mins(10);
/// How many of the slowest tests are listed.
const SLOWEST: usize = 10;
/// The suites that start, kill and restart programs for many seconds. They run first, the longest before the others, so
/// no long test runs alone at the end. `--quick` leaves them out.
const PROCESS_SUITES: [(&str, &str); 12] = [
    ("ichido-cli", "offline::crash::"),
    ("ichido-client", "offline::crash::"),
    ("ichido-cli", "machines::"),
    ("bookmarks", "kill::"),
    ("ichido-cli", "outbox::storm::"),
    ("ichido-cli", "examples::"),
    ("ichido-cli", "demo::"),
    ("ichido-cli", "judge::crashing::"),
    ("ichido-store", "crash::"),
    ("ichido", "worker::tx::kills::"),
    ("ichido", "once::outage::"),
    // Every test of the command starts it.
    ("ichido-cli", ""),
];

/// The suites whose tests take a second of processor time or more, because they load thousands of rows, run thousands of
/// rounds, or poll for long. `--quick` leaves them out as well.
const SLOW_SUITES: [(&str, &str); 19] = [
    ("ichido-store", "wire::crosswise::"),
    ("ichido-store", "plans_sqlite::"),
    ("ichido-store", "plans::"),
    ("ichido-store", "wire::meanwhile::"),
    ("ichido-store", "postgres_for_tests::"),
    ("ichido-store", "conformance::audit::sealing_beside_writers_"),
    ("ichido-store", "conformance::work::sixteen_claimers_"),
    ("ichido", "worker_signs::"),
    ("ichido", "letters_bounded::"),
    ("ichido", "worker::cancelling::request_behind_a_page_of_others_"),
    ("ichido", "worker::sending::sixteen_workers_"),
    ("ichido", "worker::alerts::"),
    ("ichido", "worker::pacing::"),
    ("ichido-core", "world::"),
    ("ichido-core", "pace::"),
    ("bookmarks", "api::alerts::"),
    ("bookmarks", "api::probe::"),
    ("ichido", "once::probe::"),
    ("ichido-probe", "switches::"),
];

/// Returns the index of a test's suite. It decides how early a test of a process suite starts.
fn index_in(suites: &[(&str, &str)], package: &str, test: &str) -> Option<usize> {
    suites.iter().position(|(of, prefix)| *of == package && test.starts_with(prefix))
}

/// One process to run: a test, or all unit tests of a crate.
#[derive(Debug)]
struct TestProcess {
    package: String,
    binary: PathBuf,
    folder: PathBuf,
    /// `None` runs the whole binary.
    test: Option<String>,
    /// Its index among the process suites, if it belongs to one.
    suite: Option<usize>,
}

impl TestProcess {
    fn name(&self) -> String {
        match &self.test {
            Some(test) => format!("{}::{test}", self.package),
            None => format!("{} (unit tests)", self.package),
        }
    }
}

/// Decides whether to run a test, by its crate and its name; unit tests have no name.
pub(super) type Keep<'a> = dyn Fn(&str, Option<&str>) -> bool + Sync + 'a;

/// Returns whether `--quick` runs a test: it is not part of a process suite or a slow suite, and in a crate that did not
/// change itself a test for both databases runs on SQLite only.
pub(super) fn is_quick(package: &str, test: Option<&str>, has_changed: bool) -> bool {
    let is_repeated = |test: &str| !has_changed && test.ends_with("::postgres");
    let is_in = |suites: &[_], test: &str| index_in(suites, package, test).is_some();
    test.is_none_or(|test| !is_in(&PROCESS_SUITES, test) && !is_in(&SLOW_SUITES, test) && !is_repeated(test))
}

/// The result of a test process.
struct TestResult {
    name: String,
    took: Duration,
    /// How many tests passed, or what the process printed before it failed.
    outcome: Result<usize, String>,
}

/// Tests to run.
pub(super) struct Tests<'a> {
    /// The name of their step; no two at once have the same.
    pub(super) name: &'a str,
    pub(super) binaries: &'a [Binary],
    pub(super) keep: &'a Keep<'a>,
    pub(super) env: &'a [(String, String)],
    /// How many run in parallel.
    pub(super) at_once: usize,
}

impl Tests<'_> {
    /// Runs them and prints failures, the slowest tests and the count.
    pub(super) fn run(&self, root: &Path) -> Result<(), String> {
        let output = root.join("target/test-output").join(self.name);
        std::fs::create_dir_all(&output).map_err(|error| format!("{}: {error}", output.display()))?;
        let (process, others): (Vec<TestProcess>, Vec<TestProcess>) =
            self.jobs()?.into_iter().partition(|job| job.suite.is_some());
        let queues = [process, others].map(|jobs| Mutex::new(VecDeque::from(jobs)));
        let ran = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for worker in 0..self.at_once {
                let (queues, ran, log) = (&queues, &ran, output.join(worker.to_string()));
                // Some start with the process suites, which take longest; the others come to them last.
                let order = if worker < PROCESS_SUITES_AT_ONCE { [0, 1] } else { [1, 0] };
                scope.spawn(move || {
                    while let Some(job) = order.into_iter().find_map(|queue| next(&queues[queue])) {
                        let done = run_job(&job, &log, self.env);
                        if let Err(printed) = &done.outcome {
                            println!("\nFAILED {}\n{printed}", done.name);
                        }
                        ran.lock().unwrap_or_else(PoisonError::into_inner).push(done);
                    }
                });
            }
        });
        report(ran.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the processes to run, in order.
    fn jobs(&self) -> Result<Vec<TestProcess>, String> {
        let mut jobs = Vec::new();
        for binary in self.binaries {
            let job = |test: Option<String>| TestProcess {
                package: binary.package.clone(),
                binary: binary.path.clone(),
                folder: binary.folder.clone(),
                suite: test.as_deref().and_then(|test| index_in(&PROCESS_SUITES, &binary.package, test)),
                test,
            };
            if binary.is_integration {
                jobs.extend(tests_of(binary)?.into_iter().map(|test| job(Some(test))));
            } else {
                jobs.push(job(None));
            }
        }
        jobs.retain(|job| (self.keep)(&job.package, job.test.as_deref()));
        jobs.sort_by_key(|job| job.suite);
        Ok(jobs)
    }
}

fn next(jobs: &Mutex<VecDeque<TestProcess>>) -> Option<TestProcess> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

/// Returns the tests of a binary that are not ignored. Other tests start the ignored ones.
fn tests_of(binary: &Binary) -> Result<Vec<String>, String> {
    let list = |arguments: &[&str]| -> Result<Vec<String>, String> {
        let output = Command::new(&binary.path).args(arguments).current_dir(&binary.folder).output();
        let output = output.map_err(|error| format!("{}: {error}", binary.path.display()))?;
        if !output.status.success() {
            return Err(format!("{} cannot list its tests ({})", binary.path.display(), output.status));
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    };
    let ignored: BTreeSet<String> =
        list(&["--list", "--format", "terse", "--ignored"])?.into_iter().collect();
    let mut tests = list(&["--list", "--format", "terse"])?;
    tests.retain(|test| !ignored.contains(test));
    Ok(tests)
}

fn run_job(job: &TestProcess, log: &Path, env: &[(String, String)]) -> TestResult {
    let start = now();
    let outcome = run_process(job, log, env);
    TestResult { name: job.name(), took: now().duration_since(start), outcome }
}

fn run_process(job: &TestProcess, log: &Path, env: &[(String, String)]) -> Result<usize, String> {
    let io = |error: std::io::Error| format!("{}: {error}", job.binary.display());
    // A file and not a pipe: a server that a test leaves behind would hold the pipe open. A new file each time: a
    // process that an earlier test left running may still write to its own.
    if log.exists() {
        std::fs::remove_file(log).map_err(io)?;
    }
    let file = File::create(log).map_err(io)?;
    let mut command = Command::new(&job.binary);
    if let Some(test) = &job.test {
        command.args(["--exact", test]);
    }
    command.current_dir(&job.folder).envs(env.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(file.try_clone().map_err(io)?).stderr(file);
    let mut child = command.spawn().map_err(io)?;
    let (pid, (ended, end)) = (child.id().to_string(), channel());
    let waiting = std::thread::spawn(move || ended.send(child.wait()));
    let status = match end.recv_timeout(LIMIT) {
        Ok(status) => status.map_err(io)?,
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            // Its child processes first, which are found through their parent. Servers watch it and exit on their own.
            let killed = [
                Command::new("pkill").args(["-KILL", "-P", &pid]).status(),
                Command::new("kill").args(["-KILL", &pid]).status(),
            ];
            drop((killed, waiting.join()));
            return Err(format!("{}\nkilled: it ran longer than {LIMIT:?}", read(log)));
        }
    };
    let printed = read(log);
    match passed(&printed) {
        Some(count) if status.success() && (job.test.is_none() || count == 1) => Ok(count),
        _ => Err(format!("{printed}\n({status})")),
    }
}

fn read(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_else(|error| error.to_string().into_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the count in `test result: ok. 1 passed; 0 failed; …`.
fn passed(printed: &str) -> Option<usize> {
    let (_, rest) = printed.rsplit_once("test result: ok. ")?;
    rest.split_once(" passed")?.0.parse().ok()
}

fn report(mut ran: Vec<TestResult>) -> Result<(), String> {
    ran.sort_by_key(|job| std::cmp::Reverse(job.took));
    println!("\nSlowest tests:");
    for job in ran.iter().take(SLOWEST) {
        println!("{:>7.1} s  {}", job.took.as_secs_f64(), job.name);
    }
    let passed: usize = ran.iter().filter_map(|job| job.outcome.as_ref().ok()).sum();
    let failed: Vec<&str> =
        ran.iter().filter(|job| job.outcome.is_err()).map(|job| job.name.as_str()).collect();
    println!("\n{passed} passed, {} failed", failed.len());
    if failed.is_empty() { Ok(()) } else { Err(format!("failed:\n  {}", failed.join("\n  "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read_from_the_harness() {
        let printed =
            "\nrunning 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured\n";
        assert_eq!(passed(printed), Some(1));
        assert_eq!(passed("test result: FAILED. 0 passed; 1 failed"), None);
        assert_eq!(passed(""), None);
    }

    #[test]
    fn quick_run_leaves_out_long_suites_and_the_second_database_of_dependents() {
        for (package, test, has_changed, runs) in [
            ("ichido-store", Some("races::two_claims::postgres"), true, true),
            ("ichido-store", Some("plans_sqlite::claims_use_their_index"), true, false),
            ("ichido", Some("worker::alerts::opens_once::sqlite"), false, false),
            ("ichido", Some("worker::retries::postgres"), false, false),
            ("ichido", Some("worker::retries::sqlite"), false, true),
            ("ichido", Some("worker::needs_postgres"), false, true),
            ("ichido", Some("worker::tx::kills::killed"), true, false),
            ("ichido-cli", Some("help"), true, false),
            ("ichido-cli", None, false, true),
        ] {
            assert_eq!(is_quick(package, test, has_changed), runs, "{package} {test:?}");
        }
    }
}
