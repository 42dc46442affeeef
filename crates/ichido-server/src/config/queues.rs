//! Queues: `[queues.NAME]`, and what holds where one says nothing, `[queue_defaults]`.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Duration;

use ichido::worker::limits::{BATCH_SIZE_DEFAULT, LEASE_DEFAULT, PARALLELISM_DEFAULT, PARALLELISM_MAX};
use ichido::worker::{OutboundKey, Queue};
use ichido_core::retry::{Retry, TRIES_MAX};
use ichido_core::settings::Faults;
use ichido_store::message::limits::CLAIM_MAX;

use super::document::Section;
use super::environment::{self, Environment};
use super::intake::Intake;
use super::outside::Outside;
use super::retry;

/// The most retries: with the first try, as many tries as a schedule makes.
pub(super) const RETRIES_MAX: u32 = TRIES_MAX - 1;

/// The keys that calls may carry, as the file names them.
const OUTBOUND_KEYS: [(&str, OutboundKey); 2] =
    [("derived", OutboundKey::Derived), ("own", OutboundKey::Own)];

/// A queue that was understood, and where each of its settings was said.
pub(super) struct Placed {
    pub(super) queue: Queue,
    pub(super) intake: Intake,
    own_place: String,
    places: HashMap<&'static str, String>,
}

impl Placed {
    /// Where a setting was said; where nobody said it, the queue itself.
    pub(super) fn place(&self, name: &str) -> String {
        self.places.get(name).unwrap_or(&self.own_place).clone()
    }
}

/// A value that may have been said in several places, and where it was.
struct Said<T> {
    value: Option<T>,
    place: Option<String>,
}

impl<T> Said<T> {
    fn nowhere() -> Self {
        Self { value: None, place: None }
    }

    /// What was said more closely, or this.
    fn unless(self, closer: Option<T>, place: String) -> Self {
        match closer {
            Some(value) => Self { value: Some(value), place: Some(place) },
            None => self,
        }
    }
}

/// What holds where a queue says nothing: the file's word, then the environment's.
pub(super) struct Defaults {
    parallelism: Said<u32>,
    batch_size: Said<u32>,
    retries_max: Said<u32>,
    lease: Said<Duration>,
}

impl Defaults {
    pub(super) fn read(section: Option<Section<'_>>, environment: &Environment, faults: &mut Faults) -> Self {
        let mut defaults = Self {
            parallelism: Said::nowhere(),
            batch_size: Said::nowhere(),
            retries_max: Said::nowhere(),
            lease: Said::nowhere(),
        };
        if let Some(mut section) = section {
            defaults = defaults.closer(&mut section, faults);
            section.finish(faults);
        }
        let variable = |name: &str| format!("the variable {name}");
        Self {
            parallelism: defaults
                .parallelism
                .unless(environment.parallelism, variable(environment::PARALLELISM)),
            batch_size: defaults.batch_size.unless(environment.batch_size, variable(environment::BATCH_SIZE)),
            retries_max: defaults
                .retries_max
                .unless(environment.retries_max, variable(environment::RETRY_MAX)),
            lease: defaults.lease.unless(environment.lease, variable(environment::STUCK_THRESHOLD_MIN)),
        }
    }

    /// With what a section says of its own.
    fn closer(self, section: &mut Section<'_>, faults: &mut Faults) -> Self {
        let parallelism = section.count("parallelism", 1..=PARALLELISM_MAX, faults);
        let batch_size = section.count("batch_size", 1..=CLAIM_MAX, faults);
        let retries_max = section.count("retries_max", 0..=RETRIES_MAX, faults);
        let lease = section.time("lease", faults);
        Self {
            parallelism: self.parallelism.unless(parallelism, section.place("parallelism")),
            batch_size: self.batch_size.unless(batch_size, section.place("batch_size")),
            retries_max: self.retries_max.unless(retries_max, section.place("retries_max")),
            lease: self.lease.unless(lease, section.place("lease")),
        }
    }

    fn copied(&self) -> Self {
        fn copied<T: Copy>(said: &Said<T>) -> Said<T> {
            Said { value: said.value, place: said.place.clone() }
        }
        Self {
            parallelism: copied(&self.parallelism),
            batch_size: copied(&self.batch_size),
            retries_max: copied(&self.retries_max),
            lease: copied(&self.lease),
        }
    }
}

/// Reads one queue's section.
pub(super) fn read(
    name: &str,
    mut section: Section<'_>,
    defaults: &Defaults,
    outside: &Outside<'_>,
    faults: &mut Faults,
) -> Option<Placed> {
    let destination = section.text("destination", faults);
    if !section.has("destination") {
        faults.add(section.place("destination"), "is missing; name one of the [destinations]");
    }
    let said = defaults.copied().closer(&mut section, faults);
    let retry = retry::read(&mut section, faults);
    let requeue = section.flag("requeue", faults).unwrap_or(false);
    let key = section.word("outbound_key", &OUTBOUND_KEYS, faults);
    let marks = section.flag("marks", faults);
    let intake = Intake::read(&mut section, outside, faults);
    let own_place = section.own_place();
    let mut places: HashMap<&'static str, String> = HashMap::new();
    for name in ["destination", "retry"] {
        places.insert(name, section.place(name));
    }
    for (name, place) in [
        ("parallelism", said.parallelism.place),
        ("batch_size", said.batch_size.place),
        ("lease", said.lease.place),
    ] {
        places.extend(place.map(|place| (name, place)));
    }
    section.finish(faults);
    // What is wrong with it was said; what else is wrong with the queue is said as well.
    let mut retry = retry.unwrap_or(Retry::OUTBOX);
    if let Some(retries) = said.retries_max.value {
        retry.tries = NonZeroU32::MIN.saturating_add(retries);
    }
    let queue = Queue {
        parallelism: at_least_one(said.parallelism.value.unwrap_or(PARALLELISM_DEFAULT)),
        batch_size: at_least_one(said.batch_size.value.unwrap_or(BATCH_SIZE_DEFAULT)),
        retry,
        requeue,
        lease: said.lease.value.unwrap_or(LEASE_DEFAULT),
        key: key.unwrap_or(OutboundKey::Derived),
        marks,
        ..Queue::new(name, destination?)
    };
    Some(Placed { queue, intake, own_place, places })
}

/// Counts are read with a bound of 1 below.
fn at_least_one(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN)
}
