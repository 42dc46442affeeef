//! The binary `ichido`.
//!
//! Start at [`cli`], which lists the commands. Each command has a module of the same name.
mod alerts;
mod api_client;
mod audit;
mod backup;
mod bar;
mod beside;
mod check;
mod cli;
mod completions;
mod config;
mod dead;
mod demo;
mod destinations;
mod doctor;
mod exit;
mod healthcheck;
mod id;
mod judge;
mod keys;
mod messages;
mod mock_broker;
mod offline;
mod out;
mod probe;
mod proxy;
mod queues;
mod send;
mod serve;
mod store;
mod target;
mod token;
mod worker;

use std::process::ExitCode;

use ichido_http::signals;

/// The allocator: a server that accepts many small requests allocates all the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::run()
}
