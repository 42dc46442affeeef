//! The binary `ichido`.
//!
//! Start at [`cli`], the commands; each has a module of its name.

mod accept;
mod alerts;
mod audit;
mod backup;
mod body_key;
mod check;
mod cli;
mod clock;
mod completions;
mod config;
mod dead;
mod demo;
mod destinations;
mod doctor;
mod duration;
mod exit;
mod faults;
mod healthcheck;
mod id;
mod judge;
mod ledger;
mod listen;
mod messages;
mod offline;
mod out;
mod paper;
mod proxy;
mod queues;
mod reach;
mod redacted;
mod schema;
mod send;
mod serve;
mod signals;
mod size;
mod store;
mod table;
mod token;
mod traces;
mod worker;

use std::process::ExitCode;

/// A server that takes in small requests asks for memory more often than for anything else.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::run()
}
