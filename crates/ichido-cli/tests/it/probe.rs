//! `ichido probe` as a process: against the server, the proxy and services of the tests.
// Spec: F3.

mod command;
mod http2;
mod options;
mod ours;
