//! `ichido send --offline-queue` and `ichido offline` as processes: with a misbehaving server, and killed in front of
//! a real one.

mod crash;
mod deciding;
mod guide;
mod queueing;
