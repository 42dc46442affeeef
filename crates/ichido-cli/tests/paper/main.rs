//! `ichido paper` as a process, over real sockets.

mod broker;
mod counting;
mod delivery;
mod faults;
mod orders;
mod settings;
mod stopping;
