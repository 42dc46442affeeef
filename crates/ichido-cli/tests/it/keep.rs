//! `ichido backup`, `ichido doctor`, `ichido healthcheck` and the packaging files, with real databases and processes.

mod backup;
mod doctor;
mod healthcheck;
mod packaging;
