//! `ichido backup`, `ichido doctor`, `ichido healthcheck` and what is shipped to run Ichido by, with real databases and processes.

mod backup;
mod doctor;
mod healthcheck;
mod packaging;
