//! Runs one part of one contestant in its own process, and measures it.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::counters::{Counters, DatabaseProbe, peak_kib};
use super::protocol::{Part, Report, Task};
use super::sample::Sample;
use crate::report::Stopwatch;

/// How long a contestant may take to connect and create its tables.
const SETUP_LIMIT: Duration = Duration::from_mins(1);

/// A contestant's process that waits for its start. It is killed when this is dropped.
pub(super) struct Contender {
    child: Child,
    input: Option<ChildStdin>,
    reports: Receiver<Report>,
    /// The port, of a server.
    pub(super) port: Option<u16>,
}

impl Contender {
    /// Starts the process and waits until it is ready. Its errors are written to `errors`.
    pub(super) fn start(mut command: Command, task: &Task, errors: &Path) -> Result<Self, String> {
        let argument = serde_json::to_string(task).expect("plain numbers");
        let errors = File::create(errors).map_err(|error| format!("{}: {error}", errors.display()))?;
        command.arg(argument).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        let mut child = command.spawn().map_err(|error| format!("cannot start {command:?}: {error}"))?;
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, reports) = channel();
        std::thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            for report in lines.filter_map(|line| serde_json::from_str::<Report>(&line).ok()) {
                let _received = sender.send(report);
            }
        });
        let input = child.stdin.take();
        let mut contender = Self { child, input, reports, port: None };
        contender.port = contender.wait(SETUP_LIMIT, |report| report.ready)?.port;
        Ok(contender)
    }

    /// Starts the part and returns what it took, or why it did not end.
    pub(super) async fn run(
        &mut self,
        task: &Task,
        probe: Option<&DatabaseProbe>,
        limit: Duration,
    ) -> Result<Sample, String> {
        let before = Counters::read(probe, self.child.id()).await;
        let watch = Stopwatch::start();
        self.go()?;
        let report = self.wait(limit, |report| report.done)?;
        let seconds = watch.elapsed().as_secs_f64();
        let started = report.latencies_us.len();
        if task.part == Part::Pickup && started != task.count {
            return Err(format!("it reported {started} latencies of {} messages", task.count));
        }
        Ok(self.sample(before, seconds, probe, report.latencies_us).await)
    }

    /// Tells the contestant to start.
    pub(super) fn go(&mut self) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("it was told to end")?;
        input
            .write_all(b"go\n")
            .and_then(|()| input.flush())
            .map_err(|error| format!("it has ended: {error}"))
    }

    /// Reads the counters now.
    pub(super) async fn counters(&self, probe: Option<&DatabaseProbe>) -> Counters {
        Counters::read(probe, self.child.id()).await
    }

    /// Returns what happened since `before`.
    pub(super) async fn sample(
        &self,
        before: Counters,
        seconds: f64,
        probe: Option<&DatabaseProbe>,
        latencies_us: Vec<f64>,
    ) -> Sample {
        let delta = self.counters(probe).await.since(before);
        Sample::new(seconds, delta, probe.is_some(), peak_kib(self.child.id()), latencies_us)
    }

    fn wait(&mut self, limit: Duration, is_it: impl Fn(&Report) -> bool) -> Result<Report, String> {
        let watch = Stopwatch::start();
        loop {
            match self.reports.recv_timeout(limit.saturating_sub(watch.elapsed())) {
                Ok(report) if is_it(&report) => return Ok(report),
                Ok(_) => (),
                Err(_) => {
                    return Err(match self.child.try_wait() {
                        Ok(Some(status)) => format!("it ended with {status}"),
                        _ => format!("it did not answer within {} s", limit.as_secs()),
                    });
                }
            }
        }
    }
}

impl Drop for Contender {
    fn drop(&mut self) {
        // The part is over and measured: nothing of a graceful end is of interest.
        drop(self.input.take());
        let _killed = self.child.kill();
        let _ended = self.child.wait();
    }
}
