//! `ichido config`, `worker` and `send` as processes, with real databases, real HTTP and real signals.

mod acceptance;
mod config;
mod database;
mod dying;
mod guide;
mod metrics;
mod model;
mod program;
mod sending;
mod standing_still;
mod storm;
mod stream;
mod waiting;
mod watching;
