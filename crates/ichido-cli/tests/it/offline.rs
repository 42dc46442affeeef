//! `ichido send --offline-queue` and `ichido offline` as processes: through a server that misbehaves, and killed in front of a real one.

mod crash;
mod deciding;
mod guide;
mod queueing;
