//! `ichido mock-broker` as a process, over real sockets.

pub(crate) mod broker;
mod counting;
mod delivery;
mod faults;
mod orders;
mod settings;
mod stopping;
