//! The flags of every server that listens, and what they come to.

use std::time::Duration;

use super::limits::Limits;
use crate::duration;
use crate::faults::Faults;

/// How much it takes in, and how long it waits.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct Bounds {
    /// Connections at once, and requests on all of them; more wait
    #[arg(long, value_name = "COUNT", default_value = "1024")]
    pub(crate) connections_max: String,

    /// How long a request's head may take, and a connection be idle
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub(crate) head_timeout: String,

    /// How long a body may make no progress
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(crate) body_idle_timeout: String,

    /// How long a request's body may take in all
    #[arg(long, value_name = "TIME", default_value = "5m")]
    pub(crate) body_timeout: String,

    /// How long requests in flight may go on after SIGTERM
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(crate) drain_timeout: String,
}

impl Bounds {
    /// Understands them, or says everything that is wrong.
    pub(crate) fn resolve(&self, faults: &mut Faults) -> Option<Limits> {
        let connections_max = count("--connections-max", &self.connections_max, faults);
        let head = time("--head-timeout", &self.head_timeout, faults);
        let body_idle = time("--body-idle-timeout", &self.body_idle_timeout, faults);
        let body = time("--body-timeout", &self.body_timeout, faults);
        let drain = time("--drain-timeout", &self.drain_timeout, faults);
        Some(Limits {
            connections_max: usize::try_from(connections_max?).ok()?,
            head: head?,
            body_idle: body_idle?,
            body: body?,
            drain: drain?,
        })
    }
}

/// A length of time above zero: no time at all would let nothing through.
pub(crate) fn time(flag: &str, text: &str, faults: &mut Faults) -> Option<Duration> {
    let parsed = faults.check(flag, duration::parse(text))?;
    if parsed.is_zero() {
        faults.add(flag, "no time at all would let nothing through; give it some, such as 3s");
        return None;
    }
    Some(parsed)
}

/// A count from 1 to a million.
pub(crate) fn count(flag: &str, text: &str, faults: &mut Faults) -> Option<u32> {
    const COUNT_MAX: u32 = 1_000_000;
    let parsed = text.parse().ok().filter(|count| (1..=COUNT_MAX).contains(count));
    if parsed.is_none() {
        faults.add(flag, format!("\"{text}\" is no count; write a whole number from 1 to {COUNT_MAX}"));
    }
    parsed
}
