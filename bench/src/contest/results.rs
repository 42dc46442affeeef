//! The results of a run, as they are stored in `results.json`.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};
use sqlx::{PgPool, Row as _};

use super::protocol::{Part, Task};
use super::sample::{Sample, Spread};

/// All results of one run, with the machine it ran on.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    /// Rounds that are finished.
    pub(crate) rounds: usize,
    /// Whether nothing is left to run.
    pub(crate) is_complete: bool,
    pub(crate) is_quick: bool,
    pub(crate) measurements: Vec<Measurement>,
}

/// Where and when a run was made.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Machine {
    pub(crate) date: String,
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) postgres: String,
    pub(crate) commit: String,
}

/// What was measured, and the sample of each round.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Measurement {
    pub(crate) contestant: String,
    pub(crate) part: Part,
    /// Messages, or requests of an endpoint.
    pub(crate) count: usize,
    pub(crate) bytes: usize,
    pub(crate) rate: f64,
    pub(crate) workers: usize,
    /// Finished messages that were there before.
    pub(crate) history: usize,
    pub(crate) samples: Vec<Sample>,
}

impl Machine {
    /// Reads what is known of this machine.
    pub(super) async fn read(pool: &PgPool) -> Self {
        let said = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).output();
            output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
        };
        let row = sqlx::query("SELECT current_setting('server_version') AS version").fetch_one(pool).await;
        let version: String = row.expect("a version").get("version");
        let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Self {
            date: said("date", &["--utc", "+%Y-%m-%d"]),
            processor: processor.map(|(_, name)| name.to_owned()).unwrap_or_default(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            postgres: version.split(' ').next().unwrap_or_default().to_owned(),
            commit: said("git", &["rev-parse", "--short=10", "HEAD"]),
        }
    }
}

impl Measurement {
    pub(super) fn of(contestant: &str, task: &Task) -> Self {
        Self {
            contestant: contestant.to_owned(),
            part: task.part,
            count: task.count,
            bytes: task.bytes,
            rate: task.rate,
            workers: task.workers,
            history: 0,
            samples: Vec::new(),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        let key = |it: &Self| {
            (it.contestant.clone(), it.part, it.count, it.bytes, it.rate.to_bits(), it.workers, it.history)
        };
        key(self) == key(other)
    }

    /// Returns the spread of a number that each sample has.
    pub(crate) fn spread(&self, number: impl Fn(&Sample) -> Option<f64>) -> Option<Spread> {
        Spread::new(self.samples.iter().filter_map(number))
    }

    /// Returns the spread of messages per second.
    pub(crate) fn rates(&self) -> Option<Spread> {
        self.spread(|sample| Some(float(self.count) / sample.seconds))
    }

    /// Returns the median of something per message.
    pub(crate) fn per_message(&self, number: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        self.spread(number).map(|spread| spread.median / float(self.count))
    }
}

impl Results {
    pub(super) fn new(machine: Machine, is_quick: bool) -> Self {
        Self { machine, rounds: 0, is_complete: false, is_quick, measurements: Vec::new() }
    }

    /// Returns whether a run on this machine, day and commit goes on where these results end.
    pub(super) fn continues_on(&self, machine: &Machine) -> bool {
        !self.is_complete && self.machine == *machine
    }

    /// Adds the sample of a round. A failure leaves the measurement with one sample less.
    pub(super) fn add(&mut self, measurement: Measurement, sample: Option<Sample>) {
        let known = self.measurements.iter().position(|known| known.is_same(&measurement));
        let index = known.unwrap_or_else(|| {
            self.measurements.push(measurement);
            self.measurements.len() - 1
        });
        if let Some(measurement) = self.measurements.get_mut(index) {
            measurement.samples.extend(sample);
        }
    }

    /// Finds a measurement of the contest.
    pub(crate) fn find(&self, contestant: &str, part: Part, rate: f64) -> Option<&Measurement> {
        self.measurements
            .iter()
            .find(|it| it.contestant == contestant && it.part == part && it.rate.to_bits() == rate.to_bits())
    }

    pub(super) fn write(&self, folder: &Path) {
        let text = serde_json::to_string_pretty(self).expect("plain numbers");
        fs::write(folder.join("results.json"), text + "\n").expect("written");
    }

    /// Reads the results of the last run, if there was one.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let text = fs::read_to_string(folder.join("results.json")).ok()?;
        Some(serde_json::from_str(&text).expect("results of this version"))
    }
}

/// Returns a count as a float; counts here are far below 2^52.
#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
pub(crate) fn float(count: usize) -> f64 {
    count as f64
}
