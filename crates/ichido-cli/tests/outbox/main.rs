//! `ichido config`, `worker` and `send` as processes, with real databases and real HTTP.

mod config;
mod folder;
mod program;
